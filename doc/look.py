"""Look at the built site in a real browser: ``make doc-look`` after ``make doc``.

Every page is opened once, from the disk, and looked at dark and light, narrow and wide. Faults are:

- anything wider than the window, so that the page can be scrolled sideways;
- a picture that does not load or has no alternative text, a formula that is not drawn, an error of
  a script, a page that the keyboard cannot enter;
- a page that asks the network for something;
- text of too little contrast, by axe-core (``make doc-look`` gets it from npm; ``AXE`` names the
  file; without it the check is left out and said to be);
- an output that says True where the reader wants a number, that is the repr of an object, or
  that ends in the dots of a doctest.

Pictures of all but the reference pages lie in ``doc/_build/look`` for people to look at. Needs
Chromium (``CHROMIUM`` names the program) and playwright.
"""

import os
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from playwright.sync_api import Browser, Page, Playwright, sync_playwright

HERE = Path(__file__).parent
SITE = Path(os.environ.get("SITE", HERE / "_build" / "html"))
SHOTS = HERE / "_build" / "look"
AXE = Path(os.environ.get("AXE", HERE / "_build" / "node_modules" / "axe-core" / "axe.min.js"))
WIDTHS = {"wide": 1400, "medium": 1024, "narrow": 360}
THEMES = ("light", "dark")
PICTURED = {("light", "wide"), ("dark", "narrow")}
# Blocks may scroll inside themselves (code, tables, formulas); the page may not.
WIDER = """() => {
  const root = document.documentElement;
  if (root.scrollWidth <= root.clientWidth + 1) return [];
  const wide = [...document.querySelectorAll('body *')].filter(
    e => e.getBoundingClientRect().right > root.clientWidth + 1 && !e.children.length);
  return ['wider than the window by ' + (root.scrollWidth - root.clientWidth) + ' px: '
    + wide.slice(0, 3).map(e => e.tagName + ' ' + e.textContent.slice(0, 40)).join(' | ')];
}"""
CONTENT = r"""() => {
  const faults = [];
  for (const image of document.images)
    if (image.complete && !image.naturalWidth) faults.push('picture missing: ' + image.src);
  for (const image of document.querySelectorAll('article img'))
    if (!image.alt.trim() && !image.closest('.sphx-glr-thumbcontainer'))
      faults.push('picture without an alternative text: ' + image.src);
  for (const formula of document.querySelectorAll('article math'))
    if (/\\[a-zA-Z]/.test(formula.textContent) || !formula.getBoundingClientRect().width)
      faults.push('formula not drawn: ' + formula.textContent.slice(0, 60));
  for (const place of document.querySelectorAll('article .math'))
    if (!place.querySelector('math')) faults.push('formula left as text: ' + place.textContent);
  return faults;
}"""
# Prompts whose answer is a truth value by name may print one.
OUTPUTS = r"""() => {
  const faults = [];
  for (const block of document.querySelectorAll('article .highlight pre')) {
    const lines = block.textContent.split('\n');
    if (!lines[0].startsWith('>>>')) continue;
    let asked = '';
    for (const line of lines) {
      if (/^(>>>|\.\.\.) /.test(line)) { asked = line; continue; }
      const isTruth = /^\(?(True|False)(, (True|False))*\)?$/.test(line.trim());
      if (isTruth && !/is_\w+|hasattr/.test(asked))
        faults.push(`the output of "${asked}" is ${line}`);
      if (/np\.\w+\(|object at 0x/.test(line)) faults.push('a repr is shown: ' + line);
      if (/^'\.\.\.'$|\d\.\.\.$/.test(line)) faults.push('an ellipsis is shown: ' + line);
    }
  }
  return faults;
}"""
# Text that looks alike is judged once: by its colours, size and weight, and its place in the page.
CONTRAST = """async (seen) => {
  const known = new Set(seen), fresh = new Map();
  for (const e of document.querySelectorAll('body *')) {
    if (![...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim())) continue;
    if (!e.checkVisibility({visibilityProperty: true, opacityProperty: true})) continue;
    let behind = e, grounds = [];
    for (; behind; behind = behind.parentElement) {
      const ground = getComputedStyle(behind).backgroundColor;
      if (ground !== 'rgba(0, 0, 0, 0)') grounds.push(ground);
    }
    const style = getComputedStyle(e);
    const key = [style.color, style.fontSize, style.fontWeight, ...grounds].join();
    if (!known.has(key) && !fresh.has(key)) fresh.set(key, e);
  }
  if (!fresh.size) return {keys: [], faults: []};
  const found = await axe.run([...fresh.values()].map(e => e),
    {runOnly: ['color-contrast'], resultTypes: ['violations']});
  const nodes = found.violations.flatMap(v => v.nodes);
  return {keys: [...fresh.keys()], faults: nodes.map(
    n => `${n.target.join(' ')}: ${n.any[0]?.message}`)};
}"""
# Colours that are on their way from one theme to the other are not judged.
STILL = "* {transition: none !important; animation: none !important}"


class Contrast:
    """Judges text by axe-core, each look of text once over all pages."""

    def __init__(self) -> None:
        self.script = AXE.read_text() if AXE.exists() else ""
        self.seen: list[str] = []

    def __call__(self, page: Page) -> list[str]:
        """Return the faults of a page in its present theme."""
        if not self.script:
            return []
        if not page.evaluate("typeof axe === 'object'"):
            page.evaluate(self.script)
        found = page.evaluate(CONTRAST, self.seen)
        self.seen += found["keys"]
        return [f"contrast: {fault}" for fault in found["faults"]]


# By the keyboard alone: the second press of Tab must focus something that can be seen.
FOCUS = """() => {
  const e = document.activeElement, box = e?.getBoundingClientRect();
  return e && e !== document.body && box.width > 0 && box.height > 0;
}"""


def looked_at(page: Page, name: str, contrast: Contrast) -> Iterator[str]:
    """Yield the faults of the open page in each theme and width, and keep pictures."""
    folder = name.partition("/")[0]
    yield from page.evaluate(CONTENT)
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    if not page.evaluate(FOCUS):
        yield "the keyboard focuses nothing"
    if folder not in ("developer", "generated"):
        yield from page.evaluate(OUTPUTS)
    for width, pixels in WIDTHS.items():
        page.set_viewport_size({"width": pixels, "height": 900})
        yield from (f"{fault} ({width})" for fault in page.evaluate(WIDER))
        for theme in THEMES:
            page.evaluate(f"document.documentElement.dataset.theme = '{theme}'")
            if width == "wide":
                yield from (f"{fault} ({theme})" for fault in contrast(page))
            if (theme, width) in PICTURED and folder != "generated":
                file = SHOTS / f"{name.replace('/', '.')}-{theme}-{width}.jpg"
                page.screenshot(full_page=True, type="jpeg", quality=60, path=file)


def browser_of(play: Playwright) -> Browser:
    """Start Chromium."""
    program = os.environ.get("CHROMIUM") or shutil.which("chromium")
    return play.chromium.launch(executable_path=program, args=["--no-sandbox"])


def main() -> None:
    """Look at every page."""
    pages = sorted(path for path in SITE.rglob("*.html") if "_static" not in path.parts)
    if not pages:
        raise SystemExit(f"No pages in {SITE}; run make doc first.")
    shutil.rmtree(SHOTS, ignore_errors=True)
    SHOTS.mkdir(parents=True)
    start, contrast = time.monotonic(), Contrast()
    faults: list[str] = []
    with sync_playwright() as play:
        browser = browser_of(play)
        page, name = browser.new_page(), ""
        page.on("pageerror", lambda error: faults.append(f"{name}: script: {error}"))
        page.on("request", lambda asked: _check_request(asked.url, name, faults))
        page.route("http*://**", lambda route: route.abort())
        for path in pages:
            name = str(path.relative_to(SITE)).removesuffix(".html")
            page.goto(path.as_uri(), wait_until="load")
            page.add_style_tag(content=STILL)
            faults += (f"{name}: {fault}" for fault in looked_at(page, name, contrast))
        browser.close()
    if not contrast.script:
        print(f"Contrast was not checked: no {AXE}. Get it with npm install axe-core.")
    seconds, looks = time.monotonic() - start, len(THEMES) * len(WIDTHS)
    print(f"{len(pages)} pages, {looks} looks each, {len(faults)} faults, {seconds:.0f} s")
    print("\n".join(faults))
    sys.exit(1 if faults else 0)


def _check_request(address: str, name: str, faults: list[str]) -> None:
    if address.startswith("http"):
        faults.append(f"{name}: asks the network for {address}")


if __name__ == "__main__":
    main()
