"""The edits that the developer guide asks for, made one after the other as somebody new makes them.

They are the blocks of code with a file as their caption. Edited files lie in a folder of the test,
and everything else is imported from where it is, with its compiled kernels.
"""

import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import skfair
from tests.seeds import seed_of

ROOT = Path(__file__).parents[1]
PAGES = ROOT / "doc" / "developer"
PACKAGE = Path(skfair.__file__).parents[1]  # another folder if the package is installed
# Lines of a file that come into a table of it; all other blocks come at the end.
CONSTRAINTS = "skfair/constraints/__init__.py"
TABLES = (
    ("skfair/metrics/__init__.py", lambda line: True, "__all__ = [\n"),
    (CONSTRAINTS, lambda line: line[0] == '"', "__all__ = [\n"),
    (CONSTRAINTS, lambda line: line[0] != '"', "from skfair.constraints.rates import (\n"),
    ("tests/naive/erm.py", lambda line: True, "OfEachConstraint(\n    {\n"),
)
# Imports edited files from the folder, and all others from the checkout.
START = """
import sys
from importlib.machinery import PathFinder
from importlib.util import spec_from_file_location
from pathlib import Path

edits, *roots = map(Path, sys.argv[2:])


class Edited:
    def find_spec(name, path=None, target=None):
        found = PathFinder.find_spec(name, path)
        for root in roots:
            if found and found.has_location and Path(found.origin).is_relative_to(root):
                edited = edits / Path(found.origin).relative_to(root)
                folders = found.submodule_search_locations
                if edited.exists():
                    return spec_from_file_location(
                        name, edited, submodule_search_locations=folders
                    )
        return found


sys.path[:0] = map(str, roots)
sys.meta_path.insert(0, Edited)
import numpy as np
"""
METRIC = """
import skfair.monitoring, skfair.report
from skfair.metrics import fairness_report
print("imported")

from skfair.metrics import negative_predictive_parity_difference as difference
from skfair.metrics import disparity_test, negative_predictive_parity_ratio

rows = {"y_pred": [0, 0, 1, 0, 0, 1], "sensitive_features": list("aaabbb")}
for y_true, values in (([0, 0, 1, 0, 1, 1], (1.0, 0.5)), ([0, 1, 1, 1, 0, 1], (0.5, 0.5))):
    expected = max(values) - min(values), min(values) / max(values)
    found = [metric(y_true, **rows) for metric in (difference, negative_predictive_parity_ratio)]
    assert np.allclose(found, expected)
disparity_test("negative_predictive_parity", y_true, **rows, max_disparity=0.9)
assert "negative_predictive_parity_ratio" in fairness_report(y_true, **rows, n_bootstrap=0).index

from skfair.metrics import get_scorer, make_fairness_scorer
from skfair.monitoring import DisparityMonitor
from skfair.report import audit

assert make_fairness_scorer(difference)._sign == -1
DisparityMonitor("negative_predictive_parity", max_disparity=0.9).update(y_true, **rows)
own = {"metrics": ["negative_predictive_parity_difference"], "suppress_below": 1}
page = audit(y_true, **rows, **own, min_group_size=1).to_html()
assert "is a refusal right as often?" in page
"""
CONSTRAINT = """
import skfair.cluster, skfair.regression
from skfair.classification import ConstrainedERMClassifier
print("imported")

rng = np.random.default_rng(int(sys.argv[1]))
sex, X = np.repeat(["f", "m"], 100), rng.normal(size=(200, 2))
y = (X[:, 0] + 0.5 * (sex == "f") + rng.normal(size=200) > 0).astype(int)
model = ConstrainedERMClassifier("bounded_rejection_rate", 0.1).fit(X, y, sensitive_features=sex)
rejected = model.predict(X) == 0
assert all(rejected[(y == 1) & (sex == one)].mean() <= 0.1 for one in "fm")

from tests.naive import erm
assert erm.CONSTRAINT_NAMES["bounded_rejection_rate"] == ("positive", "rejected")
from skfair.constraints import BoundedRejectionRate
assert erm.BOUNDED[0] == "bounded_rejection_rate"
"""


def edits_of(page):
    """Yield the file and the text of each edit."""
    block = r"^ +\.\. code-block:: python\n +:caption: (\S+)\n\n((?: {6}.*\n|\n)+)"
    for file, text in re.findall(block, (PAGES / page).read_text(), re.MULTILINE):
        yield file, textwrap.dedent(text).strip("\n")


def edited(file, source, text):
    """Return the source of a file after an edit: lines in their tables, or text at its end."""
    for line in text.splitlines():
        for table in [table for place, start, table in TABLES if place == file and start(line)]:
            assert source.count(table) == 1
            source, text = source.replace(table, f"{table}{line}\n"), ""
    return f"{source}\n\n{text}\n" if text else source


def source_of(file):
    """Return the text of a file as it is."""
    return ((PACKAGE if file.startswith("skfair/") else ROOT) / file).read_text()


def run(code, folder):
    """Run Python with the edited files: what it prints, and its error."""
    asked = [sys.executable, "-W", "ignore", "-c", START + code, f"{seed_of(0)}", folder]
    done = subprocess.run([*asked, ROOT, PACKAGE], capture_output=True, text=True)
    return done.stdout, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("page", "code", "errors"),
    [
        ("add_a_metric.rst", METRIC, ["A file of skfair.metrics defines it: add it to", "^$"]),
        (
            "add_a_constraint.rst",
            CONSTRAINT,
            ["has no line for the constraint", "has no line for the constraint", "^$"],
        ),
    ],
)
def test_a_newcomer_can_follow_the_page(page, code, errors, tmp_path):
    """The package can be imported after each edit; what does not work yet says what to do."""
    for (file, text), error in zip(edits_of(page), errors, strict=True):
        copy = tmp_path / file
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(edited(file, source_of(file), text))
        printed, said = run(code, tmp_path)
        assert printed == "imported\n", said
        assert re.search(error, said)


def test_edits_in_another_order_say_what_to_do(tmp_path):
    """A public name that no file defines, or that is called and compared in no known way."""
    (_, functions), (file, names) = edits_of("add_a_metric.rst")
    (tmp_path / file).parent.mkdir(parents=True)
    (tmp_path / file).write_text(edited(file, source_of(file), names))
    assert "Define it in a file that skfair.metrics._all" in run(METRIC, tmp_path)[1]
    for right, wrong, words in (
        (
            '"negative_predictive_value"',
            '"negative_value"',
            "RATES of skfair/groups/declared_rates.py",
        ),
    ):
        code = f"from skfair.metrics.labels import _criterion\n{functions.replace(right, wrong)}"
        with pytest.raises(ValueError, match=words):
            exec(code, {})
