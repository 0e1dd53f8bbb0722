"""The examples of the gallery: five jobs of new users, and the order in which all are shown."""

import ast
import io
import os
import runpy
import tokenize
from pathlib import Path

import matplotlib.pyplot as plt
import pytest

ROOT = Path(__file__).parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("plot_*.py"))
JOBS = ("bank_trees", "segments", "graph", "top_fifth", "solvers")
NO_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}


def lines_of_code(text):
    """Count the lines that are neither blank nor comment nor docstring."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    kept = {
        line
        for token in tokens
        if token.type not in NO_CODE
        for line in range(token.start[0], token.end[0] + 1)
    }
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.FunctionDef) and ast.get_docstring(node):
            kept -= set(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    return len(kept)


def test_lines_are_counted_without_comments_and_docstrings():
    assert lines_of_code('"""Title\n\nText.\n"""\n\n# why\na = (\n    1\n)\n') == 3


@pytest.mark.parametrize("job", JOBS)
def test_a_job_is_short(job):
    assert lines_of_code((ROOT / "examples" / f"plot_{job}.py").read_text()) <= 30


@pytest.mark.slow
@pytest.mark.parametrize("job", JOBS)
def test_a_job_runs_without_a_warning_and_draws(job, tmp_path, monkeypatch):
    if job == "graph":
        pytest.importorskip("networkx")
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


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_has_a_title_and_an_introduction(path):
    title, line, blank, text = ast.get_docstring(ast.parse(path.read_text())).split("\n", 3)
    assert line == "=" * len(title)
    assert not blank
    assert len(text) > 80
