"""What the pages of the site and the README promise beyond their code, which is run."""

import os
import re
import shutil
import subprocess
import sys
import textwrap
import time
import tomllib
import warnings
from functools import partial
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import skfair
from skfair.classification import ConstrainedERMClassifier, FairDecisionClassifier
from skfair.datasets import load_local, make_loans
from skfair.metrics import demographic_parity_difference
from skfair.preprocessing import Reweighing
from skfair.utils.registry import has_papers
from tests.public import option_objects, public_objects
from tests.seeds import generator, seed_of

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"


@pytest.mark.skipif(shutil.which("make") is None, reason="there is no make")
def test_the_commands_of_the_readme_do_all_the_set_up(tmp_path):
    """Each installs once, and nothing has to be installed before it."""
    (block,) = re.findall(r"## Install and try\n\n```bash\n(.*?)```", README.read_text(), re.S)
    commands = [line.partition("#")[0].split() for line in block.splitlines()]
    assert commands == [["make", "demo"], ["make", "test"]]
    for command in (*commands, ["make", "lint"]):
        fresh = [*command, "--dry-run", f"VENV={tmp_path / 'venv'}"]
        steps = subprocess.run(fresh, cwd=ROOT, check=True, capture_output=True, text=True).stdout
        assert steps.count("-m venv") == steps.count(" install ") == 1


@pytest.mark.slow
def test_the_demo_makes_the_picture_of_the_readme(tmp_path):
    """In a process of its own, as ``make demo`` does, in half a minute."""
    pytest.importorskip("matplotlib")
    environment = {**os.environ, "SKFAIR_DEMO": str(tmp_path), "MPLBACKEND": "Agg"}
    script = ROOT / "examples" / "plot_quickstart.py"
    start = time.monotonic()
    subprocess.run([sys.executable, script], env=environment, cwd=ROOT, check=True)
    assert time.monotonic() - start < 60  # 30 where nothing else runs
    (shown,) = re.findall(r'<img src="(.*?)"', README.read_text())
    assert (tmp_path / Path(shown).name).exists()
    assert (ROOT / "doc" / "_static" / Path(shown).name).stat().st_size < 100_000


def test_the_picture_of_the_front_page_has_the_numbers_of_its_sample(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "doc")
    picture = import_module("hero").picture()
    page = (ROOT / "doc" / "index.rst").read_text()
    printed = re.findall(r"^(?:before|after) +women (\d+)% +men (\d+)%", page, re.MULTILINE)
    drawn = re.findall(r">women (\d+)%<.*?>men (\d+)%<", picture, re.DOTALL)
    assert drawn == printed
    assert len(drawn) == 2


def test_the_small_pictures_of_the_front_page_have_the_numbers_of_its_sentences(monkeypatch):
    harness = pytest.importorskip("benchmarks.harness", reason="benchmarks come with a checkout")
    monkeypatch.syspath_prepend(ROOT / "doc")
    pictures = import_module("wins").pictures()
    text = " ".join(harness.filled((ROOT / "doc" / "index.rst").read_text()).split())
    drawn = {
        name: re.findall(r'class="strong".*?>(.*?)<', picture) for name, picture in pictures.items()
    }
    assert all(f"win_{name}.svg" in text for name in drawn)
    assert all(share in text for share in drawn["pairs"])
    assert f"in {float(drawn['warehouse'][-1].split()[0]):.0f} seconds" in text
    for counts in (drawn["clusters"][0], drawn["clusters"][2]):
        assert "ahead in {} and behind in {} of".format(*counts.split(" : ")) in text


def test_the_chart_of_estimators_links_to_pages():
    links = re.findall(r'href="(.*?)\.html', (ROOT / "doc" / "_static" / "choose.svg").read_text())
    assert len(links) > 5
    assert [link for link in links if not (ROOT / "doc" / f"{link}.rst").exists()] == []


# A small site, and a search like Sphinx's: it finds the pages with every word.
SMALL_SITE = """
const pages = {
  plain: ["fair", "metric"], user_guide: ["fair", "metric"], one: ["fair", "limit"],
  two: ["fair", "cluster"], far: ["other"],
};
const docnames = Object.keys(pages);
const stopwords = new Set(["of"]), splitQuery = (text) => text.split(" ");
class Stemmer { stemWord(word) { return word.replace(/s$/, ""); } }
const hit = (name) => [name, name, "", null, 5, name, "text"];
const findAll = (words) =>
  docnames.filter((name) => [...words].every((word) => pages[name].includes(word))).map(hit);
const indexentries = {"names of tests": [[4, "index-0", true]], limits: [[0, "id1", false]],
  calibration: [[2, "index-1", true]]};
const Search = {_index: {docnames, titles: docnames, filenames: docnames, indexentries}};
"""


@pytest.mark.skipif(shutil.which("node") is None, reason="there is no node")
@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("fair limit", ["one", "user_guide"]),  # every word comes first
        ("fair limit absent", ["one", "user_guide"]),  # a word of no page is left out
        ("other metric", ["user_guide", "far", "plain"]),  # a rare word weighs more
        ("metric", ["user_guide", "plain"]),
        ("name test fair", ["far", "user_guide"]),  # by an index entry
        ("calib", ["one"]),  # by the first letters of an entry
        ("cal", []),
        ("constraint", ["one"]),  # by a word that means the same
        ("fair constraint", ["one", "user_guide"]),
        ("absent", []),
    ],
)
def test_pages_with_some_of_the_words_are_found(query, first):
    script = (ROOT / "doc" / "_static" / "scorer.js").read_text()
    ask = f"""
      Search.performTermsSearch = findAll;
      {script}
      const found = Search.performTermsSearch(new Set("{query}".split(" ")), new Set());
      found.forEach((one) => (one[4] = Scorer.score(one)));
      found.sort((a, b) => b[4] - a[4]);
      console.log([...new Set(found.map(([page]) => page))].join(" "));
    """
    asked = ["node", "-e", SMALL_SITE + ask]
    run = subprocess.run(asked, capture_output=True, text=True, check=True)
    assert run.stderr == ""
    assert run.stdout.split()[: max(len(first), 1)] == first


@pytest.mark.skipif(shutil.which("node") is None, reason="there is no node")
@pytest.mark.parametrize(
    ("sphinx", "ask", "answer"),
    [
        ("", "Scorer.term", "5"),
        ("const Search = {};", "Scorer.term", "5"),
        (
            SMALL_SITE + "Search.performTermsSearch = findAll; delete Search._index;",
            "Search.performTermsSearch(new Set(['metric'])).length",
            "2",
        ),
    ],
)
def test_the_plain_search_remains_where_sphinx_has_other_names(sphinx, ask, answer):
    script = (ROOT / "doc" / "_static" / "scorer.js").read_text()
    asked = ["node", "-e", f"{sphinx}{script}console.log({ask})"]
    run = subprocess.run(asked, capture_output=True, text=True, check=True)
    assert run.stdout.strip() == answer


def test_the_links_of_the_readme_lead_somewhere_from_an_index_page():
    """A package index knows no other files of the checkout."""
    text = re.sub(r"```.*?```", "", README.read_text(), flags=re.DOTALL)
    assert not re.findall(r"\]\((?!https?:)", text)


def test_the_page_of_the_api_lists_what_is_public():
    """By ``__all__`` of the package and its parts, and what parameters of estimators may be."""
    page = (ROOT / "doc" / "api.rst").read_text()
    listed = re.findall(r"^ {3}([\w.]+)$", page, re.MULTILINE)
    listed = [name for name in listed if has_papers() or not name.startswith("papers.")]
    public = {name.removeprefix("skfair.") for name, _ in public_objects()}
    options = {name.removeprefix("skfair.") for name, _ in option_objects()}
    assert {"cluster.affinities.Kernel", "constraints.partial.IntervalConstraint"} <= options
    assert (public | options) - set(listed) == set()
    returned = {"report.Audit", "report.DataAudit", "metrics.reports.Report"}  # nobody makes them
    returned |= {"model_selection.FairnessPath"}
    assert set(listed) - (public | options) == returned
    assert len(listed) == len(set(listed))


def block(page, words):
    """The block of code that has these words; such blocks are no doctests, so they are run here."""
    text = (ROOT / "doc" / page).read_text()
    blocks = re.findall(r"^\.\. code-block:: python\n\n((?:   .*\n|\n)+)", text, re.MULTILINE)
    (found,) = [textwrap.dedent(one) for one in blocks if words in one]
    return found


@pytest.mark.slow
def test_the_block_on_torch_runs():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed (extra torch)")
    rng = generator(0)
    X, groups = rng.normal(size=(200, 16)).astype(np.float32), rng.permutation(np.arange(200) % 2)
    y = (X[:, 0] + rng.normal(size=200) > 0).astype(int)
    rows = torch.utils.data.TensorDataset(*map(torch.as_tensor, (X, y, groups)))
    names = {"X": X, "y": y, "sex": groups, "trained": torch.nn.Linear(16, 1)}
    names["loader"] = torch.utils.data.DataLoader(rows, batch_size=100)
    names["ConstrainedERMClassifier"] = partial(ConstrainedERMClassifier, max_iter=20)
    code = block("user_guide/networks_and_streams.rst", "TorchScore")
    exec(code.replace('device="cuda"', 'device="cpu"'), names)
    assert names["state"].keys() == names["module"].state_dict().keys()


def test_the_block_on_a_dask_cluster_runs(tmp_path, monkeypatch):
    """As a script of its own; the processes of a cluster, which take seconds, are left out."""
    dask, distributed = pytest.importorskip("dask"), pytest.importorskip("distributed")
    pytest.importorskip("pyarrow")
    asked = []
    monkeypatch.setattr(distributed, "LocalCluster", lambda **options: asked.append(options))
    monkeypatch.setattr(distributed, "Client", asked.append)
    monkeypatch.chdir(tmp_path)
    loans = make_loans(400, missing_rate=0.0, random_state=seed_of(0))
    table = loans.data.assign(sex=loans.sensitive_features["sex"], granted=loans.target)
    Path("loans").mkdir()
    for number, part in enumerate([table[:200], table[200:]]):
        part.to_parquet(f"loans/{number}.parquet")
    names = {"__name__": "__main__"}
    with dask.config.set({}):
        exec(block("how_to/dask.rst", "LocalCluster"), names)
    assert names["model"].train_disparity_ <= 0.05 + 1e-9
    assert asked[0].keys() == {"n_workers", "threads_per_worker", "memory_limit"}


@pytest.mark.data
@pytest.mark.skipif(not os.environ.get("SKFAIR_DATA"), reason="needs the folder of data sets")
@pytest.mark.filterwarnings("ignore")
def test_the_block_on_release_before_trial_prints_what_it_says(capsys):
    people = load_local("compas").frame
    names = {"race": people["race"].astype(object).where(people["race"] == "African-American", "-")}
    names["y"] = 1 - people["two_year_recid"]
    names["X"] = people[["age", "priors_count", *people.filter(regex="juv_.*_count")]]
    names["ConstrainedERMClassifier"] = ConstrainedERMClassifier
    code = block("user_guide/choosing_a_limit.rst", "as before")
    exec(code, names)
    printed, said = capsys.readouterr().out, "".join(re.findall(r"^# ({.*\n)", code, re.MULTILINE))
    numbers = [list(map(float, re.findall(r"\d\.\d+", text))) for text in (printed, said)]
    assert len(numbers[0]) == 7
    assert numbers[1] == pytest.approx(numbers[0], rel=0.01)


def faulty():
    """What raises each message of the FAQ about data."""
    loans = make_loans(300, bias=2.0, random_state=seed_of(0))
    with_gaps, y, sex = loans.data.select_dtypes("number"), loans.target, loans.sensitive_features
    X, sex, few = with_gaps.fillna(0), sex["sex"], slice(10)
    model, number = ConstrainedERMClassifier(max_iter=20), X["income"]

    def fit(X=X, y=y, groups=sex, model=model):
        return model.fit(X, y, sensitive_features=groups)

    def predict(columns):
        return fit(X.to_numpy()).predict(X.iloc[:, :columns])

    return {
        "Input X contains NaN": lambda: fit(with_gaps),
        "Input y contains NaN": lambda: fit(y=y.astype(float).where(y.index > 3)),
        "Sensitive attribute 'sex' has 4 missing values": lambda: fit(
            groups=sex.where(sex.index > 3)
        ),
        "could not convert string to float": lambda: fit(loans.data),
        "Found input variables with inconsistent numbers of samples": lambda: fit(y=y[few]),
        "sensitive_features has 10 rows but the other data have": lambda: fit(groups=sex[few]),
        "the same index labels in a different order": lambda: fit(groups=sex[::-1]),
        "Expected a 2-dimensional container": lambda: fit(number),
        "Expected 2D array, got 1D array instead": lambda: fit(number.to_numpy()),
        "X has 2 features, but ConstrainedERMClassifier is expecting 4": lambda: predict(2),
        "The feature names should match those that were passed during fit": lambda: fit().predict(
            X.iloc[:, :2]
        ),
        "Unknown label type: continuous": lambda: fit(y=number + X["age"]),
        "needs samples of at least 2 classes in the data": lambda: fit(y=0 * y),
        "Only binary classification is supported": lambda: fit(y=y.index % 3),
        "y_pred has numbers such as": lambda: demographic_parity_difference(
            y, number / 1000, sensitive_features=sex
        ),
        "which looks continuous (at most 50 are read as groups)": lambda: fit(groups=number),
        "missing 1 required keyword-only argument: 'sensitive_features'": lambda: (
            demographic_parity_difference(y, y)
        ),
        "takes 2 arguments without a name, got 3": lambda: demographic_parity_difference(y, y, sex),
        "sample_weight must be numeric": lambda: model.fit(X, y, sex),
        "takes no sample_weight, so weights would change nothing": lambda: fit(
            model=Reweighing(KNeighborsClassifier())
        ),
        "was fitted without sensitive_features": lambda: model.fit(X, y),
        "Pipeline.fit does not accept the sensitive_features parameter": lambda: fit(
            model=make_pipeline(StandardScaler(), model)
        ),
        "instance is not fitted yet": lambda: clone(model).predict(X),
        "takes a fitted estimator": lambda: fit(
            model=FairDecisionClassifier(LogisticRegression(), cv="prefit")
        ),
        "TOTAL NO. OF ITERATIONS REACHED LIMIT": lambda: LogisticRegression(max_iter=2).fit(X, y),
    }


def test_the_faq_has_the_messages_that_are_raised():
    """So that whoever searches for a message finds it, with every version of scikit-learn."""
    page = re.sub(r"[`\s]+", " ", (ROOT / "doc" / "user_guide" / "faq.rst").read_text())
    for message, cause in faulty().items():
        assert message in page
        said = []
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                cause()
            except (TypeError, ValueError) as error:
                said = [error]
        said += [warning.message for warning in caught]
        said = [re.sub(r"\s+", " ", str(one)).lower() for one in said]  # scipy wrote "of" and "OF"
        assert any(message.lower() in one for one in said), message


def test_the_conda_recipe_needs_what_the_package_needs():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    recipe = (ROOT / "conda" / "recipe.yaml").read_text()
    needed = ["python" + project["requires-python"], *project["dependencies"]]
    run = recipe.partition("  run:\n")[2].partition("tests:")[0]
    assert re.findall(r"- (\S+) (\S+)", run) == [
        re.match(r"([\w-]+)(.*)", one).groups() for one in needed
    ]
    assert f'version: "{skfair.__version__}"' in recipe


@pytest.mark.skipif(os.name != "posix", reason="releases are built by a script for a shell")
def test_a_release_says_where_its_code_is(tmp_path):
    """A copy of the repository gets its links, and the picture of the README, from one address."""
    script, address = ROOT / ".ci" / "addresses", "https://example.org/people/skfair"
    parts = ("pyproject.toml", "README.md", "CITATION.cff", "conda/recipe.yaml")
    (tmp_path / "conda").mkdir()
    for part in parts:
        text = (ROOT / part).read_text()
        # A release is tested with these files, too, and has its addresses already.
        text = text.partition("\n[project.urls]")[0] if part == "pyproject.toml" else text
        text = re.sub(r'src="https:.*?/doc/', 'src="doc/', text)
        text = re.sub(r"\n *repository(-code)?: .*", "", text)
        (tmp_path / part).write_text(text)
    subprocess.run([script, address + "/", tmp_path], check=True)
    urls = tomllib.loads((tmp_path / parts[0]).read_text())["project"]["urls"]
    assert urls["Repository"] == address
    assert set(urls.values()) > {address, f"{address}/issues"}
    pictures = re.findall(r'<img src="(.*?)"', (tmp_path / "README.md").read_text())
    assert pictures == [f"{address}/raw/main/doc/_static/demo.png"]
    assert (tmp_path / "CITATION.cff").read_text().count(f'\nrepository-code: "{address}"\n') == 1
    about = (tmp_path / "conda" / "recipe.yaml").read_text().partition("about:")[2]
    assert f"\n  repository: {address}\n" in about
    for wrong in ([], ["example.org"], ["https://"], [address, tmp_path]):
        run = subprocess.run([script, *wrong], capture_output=True, text=True)
        assert run.returncode == 2
        assert "https://" in run.stderr or "has addresses already" in run.stderr
        assert not run.stdout


def test_pull_requests_are_tested_on_each_python_and_on_the_oldest_versions():
    """And by commands that exist."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    pythons = re.findall(r"Python :: (3\.\d+)", " ".join(project["classifiers"]))
    workflow = (ROOT / ".github" / "workflows" / "ci.yml").read_text()
    tested = re.findall(r'python: "(3\.\d+)", dependencies: (\w+)', workflow)
    assert tested == [(pythons[0], "oldest"), *((python, "newest") for python in pythons[1:])]
    commands = re.findall(r"run: make (\S+)", workflow)
    known = re.search(r"^\.PHONY: (.*)", (ROOT / "Makefile").read_text(), re.MULTILINE)[1].split()
    assert commands == ["lint", "test", "doc"]
    assert set(commands) <= set(known)


@pytest.mark.skipif(shutil.which("make") is None, reason="there is no make")
def test_the_oldest_dependencies_are_those_of_the_project(tmp_path):
    asked = [sys.executable, ROOT / ".ci" / "oldest.py"]
    oldest = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.split()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert [one.replace("==", ">=") for one in oldest[: len(project["dependencies"])]] == project[
        "dependencies"
    ]
    fresh = ["make", "test", "--dry-run", f"VENV={tmp_path / 'venv'}", "DEPENDENCIES=oldest"]
    steps = subprocess.run(fresh, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    install = next(line for line in steps.splitlines() if " install " in line)
    assert f"--constraint {tmp_path / 'venv' / 'oldest.txt'}" in install


def test_every_file_that_the_way_in_names_is_there():
    """Links between the pages of the repository, and what CONTRIBUTING tells people to read."""
    for page in [*ROOT.glob("*.md"), *(ROOT / ".github").rglob("*.md")]:
        for link in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text()):
            assert (page.parent / link).exists(), (page.name, link)
    text = (ROOT / "CONTRIBUTING.md").read_text()
    named = {*re.findall(r"`((?:\.?\w+/)+[\w.]*\.\w+|[A-Z_]+\.md)`", text)} - {
        "examples/plot_NAME.py"
    }
    assert len(named) > 5
    package = Path(skfair.__file__).parent
    for name in named:
        places = (ROOT / name, package.parent / name, package / name)
        assert any(place.exists() for place in places), name


def built_page(name, arguments, example="<pre>&gt;&gt;&gt; 1</pre>", link="index.html"):
    """A reference page as Sphinx writes it, with the signature that matters."""
    shown = ", ".join(f'<em class="sig-param"><span>{own}</span></em>' for own in arguments)
    head = f'<dt class="sig sig-object py" id="{name}">{name}({shown})</dt>'
    return f'<html><body>{head}{example}<a href="../{link}">up</a></body></html>'


def test_faults_of_built_pages_are_found(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "doc")
    built = import_module("built_pages")
    (tmp_path / "generated").mkdir()
    (tmp_path / "index.html").write_text("<a id='top' href='#top'>top</a>")
    public = {**dict(public_objects()), **dict(option_objects())}
    pages = {name: tmp_path / "generated" / f"{name}.html" for name in public}
    for name, thing in public.items():
        unmade = built.is_unmade(name, thing)
        pages[name].write_text(built_page(name, [] if unmade else built.own_arguments(thing)))
    assert list(built.faults(tmp_path)) == []
    estimator = "skfair.classification.FairDecisionClassifier"
    for wrong, said in (
        ({"arguments": ["*args", "**kwargs"]}, "shows (*args, **kwargs) for (estimator"),
        ({"arguments": []}, "shows () for (estimator"),
        ({"example": ""}, "has neither an example nor a picture"),
        ({"example": "&gt;&gt;&gt; Annotated[int]"}, "shows Annotated"),
        ({"link": "gone.html"}, "no such page ../gone.html"),
        ({"link": "index.html#gone"}, "no such anchor ../index.html#gone"),
    ):
        right = {"arguments": built.own_arguments(FairDecisionClassifier)}
        pages[estimator].write_text(built_page(estimator, **right | wrong))
        (fault,) = built.faults(tmp_path)
        assert said in fault
    pages[estimator].unlink()
    assert list(built.faults(tmp_path)) == [f"{estimator}: no page"]
