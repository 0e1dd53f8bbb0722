"""The examples of the gallery: jobs of new users, and the order in which all are shown.

Those with real data are in ``test_recorded.py``.
"""

import ast
import os
import re
import runpy
import textwrap
from pathlib import Path

import matplotlib.pyplot as plt
import pytest

ROOT = Path(__file__).parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("plot_*.py"))
JOBS = ("segments", "graph", "top_fifth", "from_fairlearn")  # adult, the fourth, has real data
FAIRLEARN = ROOT / "examples" / "plot_from_fairlearn.py"


@pytest.mark.slow
@pytest.mark.parametrize("job", JOBS)
def test_a_job_runs_without_a_warning_and_draws(job, tmp_path, monkeypatch):
    if job == "graph":
        pytest.importorskip("networkx")
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(ROOT / "examples" / f"plot_{job}.py"), run_name="__main__")
    assert plt.get_fignums()
    assert not os.listdir(tmp_path)


def left_column(cell):
    """Return the program of fairlearn in the text of a cell, and what it is said to print."""
    text = re.sub("^# ?", "", re.match("(?:#.*\n)*", cell)[0], flags=re.MULTILINE)
    blocks = re.findall(r"code-block:: \w+\n((?:(?: {6}.*)?\n)+)", text)
    return map(textwrap.dedent, blocks or ("", ""))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # fairlearn's own
def test_the_left_column_of_from_fairlearn_prints_what_it_says(capsys):
    """Draws and trees differ a little from machine to machine."""
    pytest.importorskip("fairlearn", reason="the left column needs fairlearn")
    first, *cells = FAIRLEARN.read_text(encoding="utf-8").split("# %%\n")
    names, n_blocks = {}, 0
    exec(first, names)
    for cell in cells:
        code, said = left_column(cell)
        capsys.readouterr()
        exec(code or cell.partition("FAIRLEARN = ")[0], names)
        if code:
            printed = capsys.readouterr().out
            now, then = (re.findall(r"\d+(?:\.\d+)?|[a-z_]+", text) for text in (printed, said))
            assert len(now) == len(then) > 0
            for word, before in zip(now, then, strict=True):
                if before[0].isdigit():
                    assert float(word) == pytest.approx(float(before), abs=0.015, rel=0.3), printed
                else:
                    assert word == before
            n_blocks += 1
    assert n_blocks == 8


def test_the_picture_of_from_fairlearn_has_the_numbers_of_the_left_column():
    _, *cells = FAIRLEARN.read_text(encoding="utf-8").split("# %%\n")
    (drawn,) = re.findall(r"^FAIRLEARN = (\{.*?^\})", cells[-1], re.MULTILINE | re.DOTALL)
    said = [f"accuracy {a:.3f}, disparity {d:.3f}" for d, a in ast.literal_eval(drawn).values()]
    printed = [tuple(left_column(cell))[1] for cell in cells]
    assert [any(line in text for text in printed) for line in said] == [True] * 4


def test_the_gallery_shows_every_example_once():
    tree = ast.parse((ROOT / "doc" / "conf.py").read_text())
    listed = next(
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "TAUGHT_ORDER"
    )
    names = sorted(name for part in listed.values() for name in part)
    assert names == [path.stem.removeprefix("plot_") for path in EXAMPLES]
    assert len(names) >= 24
