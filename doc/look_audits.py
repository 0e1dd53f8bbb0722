"""Look at audits in a real browser: part of ``make doc-look``.

Audits of decisions, scores, a rule of law, several classes and numbers, the page on which a
committee chooses a limit, and the page of a search for alternatives are written as people would
write them, and opened dark and light, narrow and wide.
Faults are:

- a message on the console, or a page that asks the network for something;
- a page that can be scrolled sideways, or a table that is cut;
- anything that axe-core objects to: contrast, headings, names for readers of screens;
- a table that the keyboard cannot sort, a slider that the keyboard cannot move;
- a page that says less where scripts are off, or whose folded parts are not printed then;
- more than six sheets of paper, or names of groups that are broken into single letters there.

Pictures, and the PDF of each, lie in ``doc/_build/look/audits`` for people to look at.
"""

import re
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from look import AXE, SHOTS, THEMES, WIDER, WIDTHS, browser_of
from playwright.sync_api import Browser, Page, sync_playwright
from sample_audits import alternatives, choice, samples

from skfair.datasets import make_loans
from skfair.report import audit, audit_data

MOST_SHEETS = 6
KEYS_TO_ANYTHING = 400
# Phones, small screens, large ones.
AUDIT_WIDTHS = {**WIDTHS, "middle": 1024}
CUT = """() => {
  document.querySelectorAll('details').forEach(details => { details.open = true; });
  const cut = () => [...document.querySelectorAll('.scroll')].filter(
    e => e.scrollWidth > e.clientWidth + 1).map(e => 'cut: ' + e.getAttribute('aria-label'));
  return new Promise(done => setTimeout(() => done(cut()), 100));
}"""
NARROW = """() => [...document.querySelectorAll('.dots tbody th')].filter(
  e => e.checkVisibility() && e.clientWidth < 5 * parseFloat(getComputedStyle(e).fontSize)
    && e.clientHeight > 3 * parseFloat(getComputedStyle(e).fontSize)
).map(e => 'a name in a narrow column: ' + e.textContent)"""
AXE_ALL = """async () => (await axe.run(document, {resultTypes: ['violations']})).violations.map(
  v => `${v.id}: ${v.nodes[0].target.join(' ')}: ${v.nodes[0].any[0]?.message || v.help}`)"""
FOCUS = """() => {
  const e = document.activeElement;
  return [e.tagName, e.id, e.closest('th') ? 'head' : ''].join(' ');
}"""
FIRST_COLUMN = """() => [...document.activeElement.closest('table').tBodies[0].rows].map(
  row => row.cells[0].dataset.value ?? row.cells[0].textContent.trim())"""


def writers() -> Iterator[tuple[str, Callable[[Path], object]]]:
    """Yield what writes a page of each kind, by name."""
    yield from ((name, one.to_html) for name, one in samples())
    loans = make_loans(4000, random_state=0)
    y, groups = loans.target, loans.sensitive_features
    half = np.arange(len(y)) < len(y) // 2
    earlier = {"X": loans.data[half], "sensitive_features": groups[half]}
    yield (
        "data",
        audit_data(
            loans.data[~half], y[~half], sensitive_features=groups[~half], earlier=earlier
        ).to_html,
    )
    few = slice(250)  # groups of so few people that some are hidden
    yield "few", audit(y[few], (y != 1)[few], sensitive_features=groups[few]).to_html
    yield "choice", choice
    yield "alternatives", alternatives


def presses(page: Page, wanted: str) -> bool:
    """Press Tab until the focus is on what is wanted."""
    for _ in range(KEYS_TO_ANYTHING):
        page.keyboard.press("Tab")
        if re.search(wanted, page.evaluate(FOCUS)):
            return True
    return False


def keyboard(page: Page) -> Iterator[str]:
    """Sort a table, or move the slider, without a mouse."""
    if page.locator("#step").count():
        shown = page.locator("#step-shown")
        before = shown.inner_text()
        if not presses(page, "INPUT step"):
            yield "the slider cannot be reached by the keyboard"
        page.keyboard.press("ArrowRight")
        if shown.inner_text() == before:
            yield "the slider does not move"
        return
    if not page.locator("table.sortable:visible").count() and presses(page, "SUMMARY"):
        page.keyboard.press("Enter")
    if not presses(page, "BUTTON .*head"):
        yield "no table can be reached by the keyboard"
        return
    orders = []
    for _ in range(2):
        page.keyboard.press("Enter")
        orders.append(page.evaluate(FIRST_COLUMN))
    if orders[0] != orders[1][::-1] or len(orders[0]) < 2:
        yield f"the keyboard does not sort: {orders}"


def without_script(browser: Browser, address: str) -> Iterator[str]:
    """Yield a fault unless every section and row is there with scripts off."""
    page = browser.new_context(java_script_enabled=False).new_page()
    page.goto(address)
    shown = "section:not([hidden])"
    parts = {"screen": [shown, f"{shown} > h2", f"{shown} svg:not(.folded svg)", "article"]}
    parts["print"] = [".folded > .scroll table", ".folded > .grid svg"]
    for media, wanted in ((media, one) for media, some in parts.items() for one in some):
        page.emulate_media(media=media)
        all_of_them, seen = page.locator(wanted).count(), page.locator(f"{wanted}:visible").count()
        if seen < all_of_them:
            yield f"{seen} of {all_of_them} {wanted} are seen without scripts ({media})"
    page.close()


def printed(page: Page, file: Path) -> Iterator[str]:
    """Print to a PDF, count its sheets, and look for names in columns that are too narrow."""
    page.emulate_media(media="print")
    yield from page.evaluate(NARROW)
    page.pdf(path=file, format="A4", prefer_css_page_size=True)
    sheets = len(re.findall(rb"/Type\s*/Page\b", file.read_bytes()))
    if not 1 <= sheets <= MOST_SHEETS:
        yield f"{sheets} sheets of paper"


def looked_at(browser: Browser, name: str, file: Path, axe: str) -> Iterator[str]:
    """Yield the faults of one audit."""
    address = file.resolve().as_uri()
    for width, pixels in AUDIT_WIDTHS.items():
        for theme in THEMES:
            said: list[str] = []
            page = browser.new_page(viewport={"width": pixels, "height": 900}, color_scheme=theme)
            page.on("console", lambda message, said=said: said.append(message.text))
            page.on("pageerror", lambda error, said=said: said.append(str(error)))
            page.on("request", lambda asked, said=said: said.append(f"asks for {asked.url}"))
            page.goto(address)
            said.remove(f"asks for {address}")
            said += page.evaluate(WIDER)
            page.screenshot(
                full_page=True, type="jpeg", quality=60,
                path=file.with_name(f"{name}-{theme}-{width}.jpg"),
            )  # fmt: skip
            if axe:
                page.evaluate(axe)
                said += page.evaluate(AXE_ALL)
            said += keyboard(page)
            said += page.evaluate(CUT)
            if (theme, width) == ("light", "wide"):
                said += printed(page, file.with_suffix(".pdf"))
            yield from (f"{name} ({theme}, {width}): {fault}" for fault in said)
            page.close()
    yield from (f"{name}: {fault}" for fault in without_script(browser, address))


def main() -> None:
    """Write audits and look at them."""
    folder = SHOTS / "audits"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    axe, faults, sizes = AXE.read_text() if AXE.exists() else "", [], {}
    with sync_playwright() as play:
        browser = browser_of(play)
        for name, write in writers():
            file = folder / f"{name}.html"
            write(file)
            sizes[name] = file.stat().st_size
            faults += looked_at(browser, name, file, axe)
        browser.close()
    looks = len(THEMES) * len(AUDIT_WIDTHS)
    largest = max(sizes.values()) / 1e6
    print(f"{len(sizes)} pages, {looks} looks each, {len(faults)} faults; up to {largest:.2f} MB")
    print("\n".join(faults))
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
