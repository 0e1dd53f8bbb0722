"""Look at the built site in a real browser: ``make doc-look`` after ``make doc``.

Every page, dark and light, narrow and wide. It fails for: anything wider than the window (the page
can be scrolled sideways), a picture that does not load, an error of a script, and a link within the
site whose page or anchor does not exist. Screenshots of everything lie in ``doc/_build/look`` for
people to look at. Needs Chromium (``CHROMIUM`` names the program) and playwright.
"""

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urldefrag, urljoin, urlparse

from playwright.sync_api import Page, sync_playwright

SITE = Path(__file__).parent / "_build" / "html"
SHOTS = Path(__file__).parent / "_build" / "look"
WIDTHS = {"wide": 1400, "narrow": 390}
THEMES = ("light", "dark")
# Blocks may scroll inside themselves (code, tables, formulas); the page may not.
FAULTS = """() => {
  const root = document.documentElement, faults = [];
  if (root.scrollWidth > root.clientWidth + 1) {
    const wide = [...document.querySelectorAll('article *')].filter(
      e => e.getBoundingClientRect().right > root.clientWidth + 1 && !e.children.length);
    faults.push('wider than the window by ' + (root.scrollWidth - root.clientWidth) + ' px: '
      + wide.slice(0, 3).map(e => e.tagName + ' ' + e.textContent.slice(0, 40)).join(' | '));
  }
  for (const image of document.images)
    if (image.complete && !image.naturalWidth) faults.push('picture missing: ' + image.src);
  for (const formula of document.querySelectorAll('article math'))
    if (/\\\\[a-zA-Z]/.test(formula.textContent) || !formula.getBoundingClientRect().width)
      faults.push('formula not drawn: ' + formula.textContent.slice(0, 60));
  return faults;
}"""
LINKS = "() => [...document.querySelectorAll('a[href]')].map(a => a.getAttribute('href'))"
ANCHORS = "() => [...document.querySelectorAll('[id]')].map(e => e.id)"


def looked_at(page: Page, address: str, name: str) -> Iterator[str]:
    """Yield the faults of a page in each theme and width, and keep screenshots."""
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(f"script: {error}"))
    for theme in THEMES:
        page.add_init_script(f"localStorage.setItem('mode', '{theme}')")
        for width, pixels in WIDTHS.items():
            page.set_viewport_size({"width": pixels, "height": 900})
            page.goto(address, wait_until="load")
            page.evaluate(f"document.documentElement.dataset.theme = '{theme}'")
            for fault in page.evaluate(FAULTS):
                yield f"{name} ({theme}, {width}): {fault}"
            page.screenshot(
                full_page=True, path=SHOTS / f"{name.replace('/', '.')}-{theme}-{width}.png"
            )
    yield from (f"{name}: {error}" for error in errors)


def main() -> None:
    """Look at every page, then follow every link from page to page."""
    pages = sorted(path for path in SITE.rglob("*.html") if "_static" not in path.parts)
    if not pages:
        raise SystemExit(f"No pages in {SITE}; run make doc first.")
    shutil.rmtree(SHOTS, ignore_errors=True)
    SHOTS.mkdir(parents=True)
    faults: list[str] = []
    links: dict[str, set[str]] = {}
    anchors: dict[str, set[str]] = {}
    with sync_playwright() as play:
        program = os.environ.get("CHROMIUM") or shutil.which("chromium")
        browser = play.chromium.launch(executable_path=program, args=["--no-sandbox"])
        for path in pages:
            page = browser.new_page()
            # The rest of the world is not needed, and may not be reachable.
            page.route("http*://**", lambda route: route.abort())
            name = str(path.relative_to(SITE)).removesuffix(".html")
            faults += looked_at(page, path.as_uri(), name)
            links[path.as_uri()] = set(page.evaluate(LINKS))
            anchors[path.as_uri()] = set(page.evaluate(ANCHORS))
            page.close()
        browser.close()
    for address, targets in links.items():
        for target in sorted(targets):
            file, anchor = urldefrag(urljoin(address, target))
            if urlparse(file).scheme != "file":
                continue
            known = anchors.get(file)
            if known is None and not Path(unquote(urlparse(file).path)).exists():
                faults.append(f"{Path(address).name}: no such page {target}")
            elif known is not None and anchor and unquote(anchor) not in known:
                faults.append(f"{Path(address).name}: no such anchor {target}")
    print(f"{len(pages)} pages, {len(THEMES) * len(WIDTHS)} looks each, {len(faults)} faults")
    print("\n".join(faults))
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
