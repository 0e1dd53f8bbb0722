"""How the documentation is built: ``make doc``, or ``python -m sphinx -W -b html doc out``.

The build needs no network. Links into the manuals of numpy, scikit-learn and others do: set
``SKFAIR_DOC_INTERSPHINX=1`` to have them.
"""

import csv
import os
import re
import shutil
import sys
import tomllib
from importlib import import_module
from pathlib import Path

os.environ.setdefault("MPLBACKEND", "Agg")

from docutils import nodes
from PIL import Image, ImageOps
from sphinx.util import logging
from sphinx_gallery.sorting import ExplicitOrder

import skfair
from skfair._version import __version__

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent), str(HERE)]  # the benchmarks, and mathml.py
import recorded  # noqa: E402
import style  # noqa: E402
from built_pages import UNMADE  # noqa: E402

project = "skfair"
author = "The skfair developers"
copyright = author
version = release = __version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "mathml",
    "sphinx_copybutton",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
    "matplotlib.sphinxext.plot_directive",
]
if os.environ.get("SKFAIR_DOC_INTERSPHINX"):
    extensions.append("sphinx.ext.intersphinx")
    intersphinx_mapping = {
        "python": ("https://docs.python.org/3", None),
        "numpy": ("https://numpy.org/doc/stable", None),
        "scipy": ("https://docs.scipy.org/doc/scipy", None),
        "sklearn": ("https://scikit-learn.org/stable", None),
        "pandas": ("https://pandas.pydata.org/docs", None),
    }

root_doc = "index"
templates_path = ["_templates"]
exclude_patterns = ["_build", "generated/examples", "gallery_header.rst", "paper"]
default_role = "py:obj"
smartquotes = False  # default="worst" is code
toc_object_entries_show_parents = "hide"

# Reference pages: one per public name, written by autosummary from the tables of api.rst.
autosummary_generate = True
autodoc_preserve_defaults = True
autodoc_typehints = "none"  # the numpydoc sections say it in words
numpydoc_show_class_members = False  # the template of classes lists them

# Formulas without a script, and buttons that copy code without prompts and outputs.
html_math_renderer = "mathml"
copybutton_prompt_text = r">>> |\.\.\. "
copybutton_prompt_is_regexp = True

# Letters of a line of code that fit a window of 1,280 pixels, beside both side bars.
LINE = 84

# Pictures on the pages of the guide.
plot_include_source = True
plot_formats = [("png", 110)]
plot_html_show_formats = False
plot_html_show_source_link = False
plot_rcparams, plot_apply_rcparams = style.rc_params(), True

# The sections of the gallery, and the order in which examples are taught.
TAUGHT_ORDER = {
    "measure": (
        "quickstart",
        "audit",
        "noise_floor",
        "calibration",
        "intervals",
    ),
    "limit": (
        "fair_classifier",
        "adult",
        "compas",
        "communities",
        "prices",
        "who_pays_for_a_limit",
        "fairness_path",
        "committee",
        "overlapping",
        "classes",
        "regression",
        "guarantee",
        "repeat_visits",
        "explain_decision",
    ),
    "ranks": (
        "top_fifth",
        "shortlist",
        "admissions",
        "ranking",
    ),
    "clusters": (
        "points",
        "fair_front",
        "segments",
        "fair_spectral",
        "graph",
    ),
    "in_use": (
        "from_fairlearn",
        "monitor",
        "stream",
        "dask",
        "solvers",
    ),
}
SECTIONS = {
    "measure": ("Measure", "Audits, metrics, and how much of a disparity is chance."),
    "limit": ("Limit a model", "Decisions, models and certificates."),
    "ranks": ("Ranks and rankings", "Shortlists, admission, search results."),
    "clusters": ("Clusters", "Balanced k-means and spectral clustering."),
    "in_use": ("In use", "From fairlearn, monitors, streams, clusters of machines, solvers."),
}

# Pictures of several panels, of which the thumbnail shows one: from where to where in the width.
PANELS = {
    "communities": (0, 0.37),
    "quickstart": (0.38, 1),
    "intervals": (0.5, 1),
    "fair_classifier": (0, 0.53),
    "committee": (0, 0.54),
    "who_pays_for_a_limit": (0, 0.375),
    "segments": (0, 0.55),
    "fair_spectral": (0.53, 1),
    "graph": (0.5, 1),
}

# Examples that are not run without real data: recorded.py fills in what they gave.
UNRUN = () if os.environ.get("SKFAIR_DATA") else recorded.EXAMPLES

# Examples: the scripts and the heading of the gallery meet in a folder of generated files, so that
# an example that saves a picture leaves nothing in the checkout.
sphinx_gallery_conf = {
    "examples_dirs": "generated/examples",
    "gallery_dirs": "auto_examples",
    "filename_pattern": rf"plot_(?!{'|'.join(UNRUN)})" if UNRUN else "plot_",
    "ignore_repr_types": "matplotlib",
    "reference_url": {"skfair": None},
    "doc_module": ("skfair",),
    "subsection_order": ExplicitOrder([f"generated/examples/{part}" for part in TAUGHT_ORDER]),
    "within_subsection_order": ExplicitOrder(
        [f"plot_{name}.py" for names in TAUGHT_ORDER.values() for name in names]
    ),
    "nested_sections": False,
    "backreferences_dir": "generated/backreferences",
    "download_all_examples": False,
    "remove_config_comments": True,
    "write_computation_times": False,
    "reset_modules": ("style.reset",),
    "thumbnail_size": (600, 450),  # shown with half as many pixels, so that they are sharp
}

# A checkout may lie in a folder with a space: what the gallery fears then is looked at by look.py.
suppress_warnings = ["sphinx_gallery.space_in_filename"]

# Other versions of the site lie in folders beside this one: SKFAIR_DOC_VERSIONS="1.1 1.0".
html_context = {
    "versions": [release, *os.environ.get("SKFAIR_DOC_VERSIONS", "").split()],
}
html_theme = "pydata_sphinx_theme"
html_title = f"skfair {release}"
html_logo = html_favicon = "_static/logo.svg"
html_static_path = ["_static"]
html_extra_path = ["generated/extra"]
html_css_files = ["custom.css"]
html_show_sourcelink = False
html_copy_source = False
html_show_search_summary = True
html_search_scorer = str(HERE / "_static" / "scorer.js")
_WIDE = ("index", "install", "quickstart", "choose", "api", "changelog", "references")
_TWO_COLUMNS = "auto_examples/in_use/plot_from_fairlearn"
html_sidebars = {
    page: [] for page in (*_WIDE, _TWO_COLUMNS, "generated/*")
}  # there it has 187 names
html_theme_options = {
    "logo": {"text": "skfair"},
    "navbar_start": ["navbar-logo", "versions"],
    "navbar_end": ["theme-switcher", "navbar-icon-links"],
    "navbar_persistent": ["search-button"],
    "header_links_before_dropdown": 6,
    "show_prev_next": True,
    "navigation_with_keys": False,
    "secondary_sidebar_items": {
        "**": ["page-toc"],
        **{page: [] for page in ("index", "auto_examples/index", _TWO_COLUMNS)},
    },
    "footer_start": ["copyright"],
    "footer_end": [],
}
# Where the code is, if whoever builds the site says so (Makefile), or the metadata of the project.
_METADATA = tomllib.loads((HERE.parent / "pyproject.toml").read_text())["project"]
_REPOSITORY = os.environ.get("SKFAIR_REPOSITORY") or _METADATA.get("urls", {}).get("Repository")
if _REPOSITORY:
    html_theme_options["icon_links"] = [
        {"name": "Repository", "url": _REPOSITORY, "icon": "fa-solid fa-code-branch"}
    ]
_LINK = f"`repository <{_REPOSITORY}>`__" if _REPOSITORY else "repository"
rst_epilog = f".. |repository| replace:: {_LINK}"


def stage_examples():
    """Copy the example scripts and the headings of the gallery to where the gallery reads them."""
    target = HERE / "generated" / "examples"
    for part, names in TAUGHT_ORDER.items():
        (target / part).mkdir(parents=True, exist_ok=True)
        title, sentence = SECTIONS[part]
        heading = f"{title}\n{'-' * len(title)}\n\n{sentence}\n"
        (target / part / "GALLERY_HEADER.rst").write_text(heading)
        for name in names:
            shutil.copy2(HERE.parent / "examples" / f"plot_{name}.py", target / part)
            if name in UNRUN:
                recorded.stage(name, HERE / "auto_examples" / part / "images")
    shutil.copy2(HERE / "gallery_header.rst", target / "GALLERY_HEADER.rst")
    known = {(part, f"plot_{name}") for part, names in TAUGHT_ORDER.items() for name in names}
    for folder in (target, HERE / "auto_examples"):
        found = folder.rglob("plot_*")
        remove(path for path in found if (path.parent.name, path.name.split(".")[0]) not in known)


def stage_laws():
    """Write the lists of laws from the file that audits read."""
    from law_list import evidence, text

    (HERE / "generated" / "laws.txt").write_text(text(), encoding="utf-8")
    (HERE / "generated" / "evidence.txt").write_text(evidence(), encoding="utf-8")


def stage_names():
    """Write the tables of names of other libraries from the file that errors read."""
    from name_tables import LIBRARIES, text

    for library in LIBRARIES:
        path = HERE / "generated" / f"names_in_{library.replace(' ', '_')}.txt"
        path.write_text(text(library), encoding="utf-8")


def stage_endings():
    """Write the table of how fits end."""
    from ending_table import text

    (HERE / "generated" / "endings.txt").write_text(text(), encoding="utf-8")


def stage_benchmarks():
    """Write tables and pictures of the benchmarks from the records of their last full run."""
    from benchmarks.harness import RECORDS, module_of, read, show

    target = HERE / "generated" / "benchmarks"
    for record in sorted(RECORDS.glob("*.json")):
        if hasattr(module_of(record.stem), "tables"):
            show(record.stem, read(record.stem)["results"], target, say=lambda text: None)
    for path in target.glob("*.csv"):  # the cells are text, not markup
        text = re.sub(r"([|*`_\\])", r"\\\1", path.read_text())
        path.write_text(re.sub(r"(?<=,)-(?=[, ]|$)", r"\\-", text, flags=re.MULTILINE))


def stage_verdicts():
    """Write the table of verdicts: the sentence on top of each page, and if its record holds."""
    from benchmarks._records import standing
    from benchmarks.harness import filled, read

    rows = [("Comparison", "Verdict", "Measured")]
    index = (HERE / "benchmarks" / "index.rst").read_text()
    for name in re.findall(r"(?:^ {3}|:doc:`)(\w+)(?:$|`)", index, re.MULTILINE):
        page = HERE / "benchmarks" / f"{name}.rst"
        verdict = re.search(r"admonition:: Verdict\n\n((?: {3}.+\n)+)", page.read_text())
        if verdict:
            about = read(page.stem)
            measured = f"{about['date']}, {standing(about)}"
            text = filled(" ".join(verdict[1].split()), name)
            rows.append((f":doc:`{page.stem}`", text, measured))
    with (HERE / "generated" / "benchmarks" / "verdicts.csv").open("w", newline="") as file:
        csv.writer(file).writerows(rows)


def stage_audits():
    """Write the pages of audits that the site shows as samples."""
    from sample_audits import alternatives, choice, samples

    target = HERE / "generated" / "extra"
    target.mkdir(parents=True, exist_ok=True)
    for name, found in samples():
        found.to_html(
            target / ("sample_audit.html" if name == "decisions" else f"sample_{name}.html")
        )
    choice(target / "sample_choice.html")
    alternatives(target / "sample_alternatives.html")


def stage_tutorial():
    """Write the pictures of the tutorial."""
    import case_study

    case_study.draw(HERE / "generated")


def stage_front():
    """Write the pictures of the front page."""
    import hero
    import wins

    (HERE / "generated" / "hero.svg").write_text(hero.picture())
    for name, picture in wins.pictures().items():
        (HERE / "generated" / f"win_{name}.svg").write_text(picture)


def remove(paths):
    """Delete what an earlier build left of an example or of a public name that is gone."""
    for path in list(paths):
        path.unlink()


def listed_names():
    """Return the names in the tables of api.rst."""
    return set(re.findall(r"^ {3}([\w.]+)$", (HERE / "api.rst").read_text(), re.MULTILINE))


def public_names():
    """Return every public name below ``skfair``, as ``metrics.balance_score``."""
    names = []
    for entry in (*skfair.__all__, "papers"):
        if entry in (*skfair._SUBPACKAGES, "papers"):
            part = import_module(f"skfair.{entry}")
            names += [f"{entry}.{name}" for name in getattr(part, "__all__", ())]
        elif entry != "__version__":
            names.append(entry)
    return names


def check_api_page():
    """Warn, which fails the build, about each public name that api.rst does not list."""
    listed = listed_names()
    for name in public_names():
        if name not in listed:
            logging.getLogger(__name__).warning("api.rst does not list skfair.%s", name)
    pages = (HERE / "generated").glob("skfair.*.rst")
    remove(page for page in pages if page.stem.removeprefix("skfair.") not in listed)


def hide_constructor(app, what, name, thing, options, signature, returned):
    """Show no constructor of classes that nobody makes."""
    return ("", None) if what == "class" and name in UNMADE else None


def read_markdown(app, path, docname, content):
    """Turn the little markdown that the change log uses into reStructuredText, while reading it."""
    if path.suffix != ".md":
        return
    text = re.sub(r"(?<!`)`([^`\n]+(?:\n[^`\n]+)?)`(?!`)", r"``\1``", content[0])
    for marks, line in (("#", "="), ("##", "-"), ("###", "~")):
        text = re.sub(rf"^{marks} +(.+)$", lambda m, c=line: under(m[1], c), text, flags=re.M)
    text = re.sub(r"\[([^\]\n]+)\]\(([^)\n]+)\)", r"`\1 <\2>`__", text)
    content[0] = text


def under(title, character):
    """Return a heading."""
    return f"{title}\n{character * len(title)}\n"


def skip_foreign(app, what, name, obj, skip, options):
    """Leave out what a class inherits from other libraries: their manuals describe it."""
    home = getattr(getattr(obj, "fget", obj), "__module__", None) or ""
    return None if home.split(".")[0] == "skfair" else True


# The page of the guide about each class or function: by its name, else by its module.
READ_MORE = {
    "classification.ConstrainedERMClassifier": "user_guide/constrained_erm",
    "classification.PartialParity": "user_guide/partial_fairness",
    "classification": "user_guide/decisions",
    "cluster.FairSpectralClustering": "user_guide/fair_spectral",
    "cluster": "user_guide/fair_kmeans",
    "constraints": "user_guide/rules",
    "datasets": "how_to/datasets",
    "inspection": "auto_examples/index",
    "losses": "developer/add_a_loss",
    "metrics.disparity_": "user_guide/new_people",
    "metrics.exposure_gap": "user_guide/ranking",
    "metrics.get_scorer": "user_guide/model_selection",
    "metrics.group_auc_gap": "user_guide/metrics_of_scores",
    "metrics.impact_ratios": "how_to/legal_tables",
    "metrics.inter_group": "user_guide/metrics_of_scores",
    "metrics.intra_group": "user_guide/metrics_of_scores",
    "metrics.make_": "user_guide/model_selection",
    "metrics.ndcg": "user_guide/ranking",
    "metrics.noise_floor": "user_guide/metrics_of_scores",
    "metrics.pair_error_gap": "user_guide/ranking",
    "metrics.partial_": "user_guide/metrics_of_scores",
    "metrics.rank_gap": "user_guide/ranking",
    "metrics.sample_size": "user_guide/new_people",
    "metrics.statistical_parity_gap": "user_guide/metrics_of_scores",
    "metrics.suggest_interval": "user_guide/partial_fairness",
    "metrics.wasserstein_gap": "user_guide/metrics_of_scores",
    "metrics": "user_guide/metrics",
    "model_selection": "user_guide/model_selection",
    "models": "user_guide/networks_and_streams",
    "monitoring": "user_guide/monitoring",
    "papers": "benchmarks/index",
    "preprocessing": "user_guide/decisions",
    "ranking": "user_guide/ranking",
    "regression": "user_guide/decisions",
    "report": "user_guide/audit",
    "report.Alternatives": "how_to/alternatives",
    "report.alternatives": "how_to/alternatives",
    "report.search_alternatives": "how_to/alternatives",
    "solvers": "user_guide/constrained_erm",
    "Certificate": "user_guide/new_people",
    "Sensitive": "user_guide/groups",
}


def add_read_more(app, what, name, obj, options, lines):
    """Link the page of each class and function to the guide, below its first sentence."""
    about = name.removeprefix("skfair.")
    starts = [start for start in READ_MORE if about.startswith(start)]
    if what in ("class", "function") and starts and "" in lines:
        page = READ_MORE[max(starts, key=len)]
        sentence = f"Read more in the :doc:`User Guide </{page}>`."
        lines[lines.index("") : lines.index("")] = ["", sentence]


def add_record(app, docname, source):
    """Fill in numbers of records, and say below the page of a record how it was measured."""
    from benchmarks._records import origin
    from benchmarks.harness import RECORDS, filled, read

    folder, _, name = docname.rpartition("/")
    if folder.startswith("auto_examples"):  # the braces are those of code
        return
    name = name if folder == "benchmarks" else ""
    source[0] = filled(source[0], name)
    if (RECORDS / f"{name}.json").exists():
        source[0] += f"\n\n{origin(read(name))}\n"


def add_recorded(app, docname, source):
    """Show the recorded outputs of an example that was not run."""
    folder, _, name = docname.rpartition("/plot_")
    if name in UNRUN and "sphx-glr-script-out" not in source[0]:
        source[0] = recorded.filled(source[0], name, f"/{folder}/images")


def add_index(app, docname, source):
    """Let the search find a page by the queries that it answers."""
    from search_queries import ANSWERS

    app.env.note_dependency(str(HERE / "search_queries.py"))
    words = " ".join(ANSWERS.get(docname, "").split())
    if words:
        entries = "".join(f"   ! single: {query}\n" for query in words.split("; "))
        source[0] = f".. index::\n{entries}\n{source[0]}"


def show_one_panel(app):
    """Cut the thumbnails of wide pictures, which nobody could read."""
    width, height = sphinx_gallery_conf["thumbnail_size"]
    for path in (HERE / "auto_examples").rglob("sphx_glr_plot_*_001.png"):
        name = path.stem.removeprefix("sphx_glr_plot_").removesuffix("_001")
        if name not in PANELS:
            continue
        left, right = PANELS[name]
        with Image.open(path) as picture:
            size = picture.size
            panel = picture.convert("RGB").crop((left * size[0], 0, right * size[0], size[1]))
        panel = ImageOps.pad(panel, (width, height), color="white")
        panel.save(path.parent / "thumb" / path.name.replace("_001", "_thumb"))


def wrap_sentences(app, doctree, docname):
    """Let long lines of code and output wrap, unless they are rows of a table: these scroll."""
    for kind in (nodes.literal_block, nodes.doctest_block):
        for block in doctree.findall(kind):
            long = [line for line in block.astext().splitlines() if len(line) > LINE]
            rows = [line.lstrip(">. ") for line in long]
            if not any(re.search(r"\S {2,}\S", row) for row in rows):
                block["classes"].append("wraps")


def hide_reprs(app, doctree, docname):
    """Keep the words in HTML reprs, such as every parameter of a model, out of the search index."""
    for block in doctree.findall(nodes.raw):
        if "output_html" in block.astext():
            block["classes"].append("no-search")


def setup(app):
    check_api_page()
    app.connect("source-read", add_index)
    app.connect("source-read", add_record)
    app.connect("source-read", add_recorded)
    app.connect("autodoc-process-docstring", add_read_more, priority=400)
    app.connect("autodoc-process-signature", hide_constructor)
    app.connect("include-read", read_markdown)
    app.connect("autodoc-skip-member", skip_foreign)
    app.connect("doctree-resolved", wrap_sentences)
    app.connect("doctree-resolved", hide_reprs)
    app.connect("builder-inited", show_one_panel, priority=600)  # when the gallery has run


stage_examples()
stage_laws()
stage_names()
stage_endings()
stage_benchmarks()
stage_verdicts()
stage_audits()
stage_front()
stage_tutorial()
