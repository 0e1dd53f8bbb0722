"""Check the built pages: ``make doc`` runs it after Sphinx. Needs no browser and no network.

Node tries the search (``search.js``); where there is none, this is left out and said. Faults are:

- the page of a class or function whose signature does not have the arguments of the object, or
  has ``Annotated[``, which nobody reads;
- a public object without a page, or whose page has neither an example nor a picture;
- a link within the site whose page or anchor does not exist;
- queries of people (``search_queries.py``) whose first three results have no page that answers
  them, if they are more than a few.
"""

import inspect
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urldefrag, urlparse

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
from search_queries import queries  # noqa: E402

from tests.public import option_objects, public_objects  # noqa: E402

SITE = Path(os.environ.get("SITE", HERE / "_build" / "html"))
FIRST, MAX_UNANSWERED = 3, 3  # results that people look at, and queries
# Classes that nobody makes: what functions return, and a protocol. conf.py shows no constructor.
UNMADE = (
    *("skfair.report.Audit", "skfair.report.DataAudit"),
    *("skfair.metrics.reports.Report", "skfair.model_selection.FairnessPath"),
    *("skfair.Estimate", "skfair.models.ScoreFunction"),
)


class Page(HTMLParser):
    """The links and anchors of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note the link or the anchor of a tag."""
        found = dict(attrs)
        if tag == "a" and (link := found.get("href")):
            self.links.add(link)
        if anchor := found.get("id"):
            self.anchors.add(anchor)


def broken_links(site: Path) -> Iterator[str]:
    """Yield the links within the site that lead nowhere."""
    files = [file for file in site.rglob("*.html") if "_static" not in file.parts]
    pages = {file.resolve(): Page(file.read_text(encoding="utf-8")) for file in files}
    for file, page in pages.items():
        for link in sorted(page.links):
            address, anchor = urldefrag(link)
            if urlparse(link).scheme or link.startswith("//"):
                continue
            target = (file.parent / unquote(urlparse(address).path)).resolve() if address else file
            where = file.relative_to(site.resolve())
            if not target.exists():
                yield f"{where}: no such page {link}"
            elif target in pages and anchor and unquote(anchor) not in pages[target].anchors:
                yield f"{where}: no such anchor {link}"


def shown_arguments(page: str, name: str) -> list[str] | None:
    """Return the names of the arguments in the signature on a page; None if it has no signature."""
    found = re.search(rf'<dt class="sig[^>]*id="{re.escape(name)}">(.*?)</dt>', page, re.S)
    if found is None:
        return None
    parts = re.findall(r'<em class="sig-param">(.*?)</em>', found[1], re.S)
    texts = [unescape(re.sub(r"<[^>]+>", "", part)) for part in parts]
    return [text.split("=")[0].split(":")[0].strip() for text in texts]


def own_arguments(thing: Any) -> list[str]:
    """Return the names of the arguments of an object, with the stars that Python writes."""
    empty = inspect.Parameter.empty
    parameters = inspect.signature(thing).parameters.values()
    bare = [parameter.replace(annotation=empty, default=empty) for parameter in parameters]
    return [part for part in str(inspect.Signature(bare))[1:-1].split(", ") if part]


def faults_of_page(text: str, name: str, thing: Any) -> Iterator[str]:
    """Yield the faults of the page of a public object."""
    shown = shown_arguments(text, name)
    if shown is None:
        yield f"{name}: no signature"
    elif not is_unmade(name, thing) and shown != own_arguments(thing):
        yield f"{name}: shows ({', '.join(shown)}) for ({', '.join(own_arguments(thing))})"
    if "Annotated[" in text:
        yield f"{name}: shows Annotated[...]"
    if not re.search("&gt;&gt;&gt;|plot-directive|sphx-glr", text) and not is_unmade(name, thing):
        yield f"{name}: has neither an example nor a picture"


def is_unmade(name: str, thing: Any) -> bool:
    """Whether nobody makes such an object: results, protocols, errors and warnings."""
    return name in UNMADE or (inspect.isclass(thing) and issubclass(thing, Exception))


def unanswered(site: Path, node: str) -> Iterator[str]:
    """Yield each query of people for which none of the first results is a right page."""
    asked = queries()
    command, text = [node, HERE / "search.js", site], "\n".join(asked)
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=True)
    for query, pages in json.loads(done.stdout).items():
        if not {*pages[:FIRST]} & {*asked[query]}:
            yield f"search: {query}: {', '.join(pages[:FIRST]) or 'nothing found'}"


def search_faults(site: Path) -> list[str]:
    """Return the queries without an answer, if they are more than a few."""
    node = shutil.which("node")
    if node is None:
        print("The search was not tried: there is no node.")
        return []
    found = [*unanswered(site, node)]
    return found if len(found) > MAX_UNANSWERED else []


def faults(site: Path) -> Iterator[str]:
    """Yield the faults of all pages."""
    for name, thing in {**dict(public_objects()), **dict(option_objects())}.items():
        file = site / "generated" / f"{name}.html"
        if file.exists():
            yield from faults_of_page(file.read_text(encoding="utf-8"), name, thing)
        else:
            yield f"{name}: no page"
    yield from broken_links(site)


def main() -> None:
    """Print the faults, and exit with 1 if there are any."""
    if not (SITE / "index.html").exists():
        raise SystemExit(f"No pages in {SITE}; run make doc first.")
    found = [*faults(SITE), *search_faults(SITE)]
    print("\n".join([*found, f"{len(found)} faults in the built pages"]))
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
