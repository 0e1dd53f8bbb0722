"""The examples of the gallery: four jobs of new users, and the order in which all are shown."""

import ast
import os
import runpy
from pathlib import Path

import matplotlib.pyplot as plt
import pytest

ROOT = Path(__file__).parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("plot_*.py"))
JOBS = ("adult", "segments", "graph", "top_fifth")
REAL = ("adult", "compas", "communities")


@pytest.mark.slow
@pytest.mark.parametrize("job", sorted({*JOBS, *REAL}))
def test_a_job_runs_without_a_warning_and_draws(job, tmp_path, monkeypatch):
    if job == "graph":
        pytest.importorskip("networkx")
    if job in REAL and not os.environ.get("SKFAIR_DATA"):
        pytest.skip("SKFAIR_DATA names no folder with real data")
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(ROOT / "examples" / f"plot_{job}.py"), run_name="__main__")
    assert plt.get_fignums()
    assert not os.listdir(tmp_path)


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
