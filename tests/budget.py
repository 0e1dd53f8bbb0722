"""How much there is to read: lines of code of each folder, and four counts of the whole package.

``[tool.skfair.budget]`` in ``pyproject.toml`` holds what each may have. The numbers only fall: a
capability pays with a deletion. Where they had to rise, ``budget_rose`` says why.
``python -m tests.budget`` prints today's counts in that form.

A line of code holds a token that is neither a comment nor a docstring. In ``tests`` every line
counts.
"""

import ast
import io
import subprocess
import tokenize
import tomllib
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parent.parent
LAYOUT = {
    *(tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE),
    *(tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER),
}
# A folder that is this much below its number gives the rest back.
SLACK = 0.02


def code_lines(text):
    """Count the lines of a file that hold code."""
    lines = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in LAYOUT:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        has_text = isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        if has_text and ast.get_docstring(node, clean=False) is not None:
            lines.difference_update(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    return len(lines)


def passes_on(function):
    """Whether a function does no more than call another."""
    body = function.body[ast.get_docstring(function) is not None :]
    is_return = len(body) == 1 and isinstance(body[0], ast.Return)
    return is_return and isinstance(body[0].value, ast.Call)


def numbers(tree):
    """Count the numbers in constants of a module."""
    values = [node.value for node in tree.body if isinstance(node, ast.Assign | ast.AnnAssign)]
    constants = [x for value in values if value for x in ast.walk(value)]
    return sum(isinstance(x, ast.Constant) and type(x.value) in (int, float) for x in constants)


def counted(root=ROOT):
    """Count what the budget limits in a checkout."""
    counts = Counter()
    for path in sorted((root / "skfair").rglob("*.py")):
        text = path.read_text()
        tree = ast.parse(text)
        parts = path.relative_to(root / "skfair").parts
        counts[parts[0] if len(parts) > 1 else "top"] += code_lines(text)
        counts["files"] += 1
        counts["numbers in constants"] += numbers(tree)
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef):
                counts["functions that pass on"] += passes_on(node)
            elif isinstance(node, ast.ClassDef):
                bases = map(ast.unparse, node.bases)
                counts["named tuples"] += any(base.endswith("NamedTuple") for base in bases)
    tests = (root / "tests").rglob("*.py")
    counts["tests"] = sum(len(path.read_text().splitlines()) for path in tests)
    return dict(counts)


NOT_FOLDERS = {"files", "numbers in constants", "functions that pass on", "named tuples", "tests"}


def total(numbers):
    """Add up the lines of the package."""
    return sum(n for name, n in numbers.items() if name not in NOT_FOLDERS)


def settings(text):
    """Read the settings of the house from the text of ``pyproject.toml``."""
    return tomllib.loads(text).get("tool", {}).get("skfair", {})


def breaches(counts, budget):
    """List the counts that are above their number, or so far below that it should fall."""
    listed = []
    for name in sorted({*counts, *budget}):
        have, may = counts.get(name, 0), budget.get(name, 0)
        if have > may:
            listed.append(f"{name}: {have} where the budget is {may}; delete something")
        elif have < may * (1 - SLACK):
            listed.append(f"{name}: {have} where the budget is {may}; lower it")
    return listed


def raises(budget, earlier):
    """List what rose since an earlier budget. Folders may hand lines to each other."""
    pairs = {name: (budget[name], earlier[name]) for name in NOT_FOLDERS if name in earlier}
    if earlier:
        pairs["lines of code"] = (total(budget), total(earlier))
    return [f"{name} rose from {b} to {a}" for name, (a, b) in pairs.items() if a > b]


def earlier_settings(root=ROOT):
    """Yield the settings of the last commits, back to the last reason to let numbers rise."""
    reason = settings((root / "pyproject.toml").read_text()).get("budget_rose")
    for commit in ("HEAD", "HEAD~1", "HEAD~5"):
        command = ["git", "-C", str(root), "show", f"{commit}:pyproject.toml"]
        shown = subprocess.run(command, capture_output=True, text=True)
        if shown.returncode == 0 and settings(shown.stdout).get("budget_rose") == reason:
            yield settings(shown.stdout)


if __name__ == "__main__":
    for name, number in sorted(counted().items(), key=lambda pair: -pair[1]):
        print(f'"{name}" = {number}')
