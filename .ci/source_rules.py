"""What no linter knows: fresh kernels, one entrance for rows, plain words, typed results.

``python .ci/source_rules.py`` prints each breach with its file and line, and fails if there is one.
"""

import ast
import io
import re
import sys
import tokenize
from pathlib import Path

ROOT = Path(__file__).parents[1]
# What a kernel may import. numba hashes only the text of a kernel's own file, so a kernel that
# called another file would return old numbers after an upgrade.
OPEN_TO_KERNELS = ("math", "numpy", "typing", "skfair._kernels.declaring")
NJIT = "njit(cache=True)"
# Who the rows are is read in ``groups/measured_rows.py``, and for fits in ``read.py``. Packages
# that measure call these functions nowhere else, so that rows of every kind work everywhere.
READERS = {"encode_groups", "read_strata", "read_units", "check_weights"}
MEASURING = ("inspection", "metrics", "monitoring", "report")
# Files that read what is no measured row.
READ_THEMSELVES = {
    "inspection/score_densities.py": {"check_weights"},  # of groups that are apart already
    "metrics/clusters.py": {"check_weights"},  # costs have no groups
    "metrics/intervals.py": READERS - {"check_weights"},  # noise_floor deals the groups anew
    "metrics/proxy_bounds.py": READERS - {"read_strata"},  # bounds need chances, not groups
    "monitoring/late_labels.py": {"encode_groups"},  # of rows that wait for their labels
    "report/data_sets/data_audit.py": {"read_units"},  # of rows without predictions
    "report/tables/reading.py": {"check_weights", "read_units"},  # of blocks of files, too
}
# Words of docstrings and comments, each with what to write instead.
GIVEN_UP = {
    r"\bNone (?:counts|draws|finds|gives|keeps|leaves|means|reads|stands|stays|takes|uses)\b": (
        "If None, ..."
    ),
    r"(?:^|[.;:] )Of (?:the |all |an? )?\w+(?: \w+){0,4}(?:, | the )": (
        "begin with the subject, not with 'Of X,'"
    ),
    r"; (?:of|for) \w+(?: \w+)?, ": "a sentence for each case, without '; of several, ...'",
    r"; if not, it\b": "a sentence for each case: 'If True, ... If False, ...'",
    r"\b(?:as before|from when|alike|besides)\b": "also, in the same way, apart from, since",
    r"\b(?:ours|theirs)\b": "the name of what it is",
    r"\bfor (?:itself|themselves)\b": "separately",
    r"\b(?:people|rows?|persons?) (?:is|are|(?:may|can|must) be) (?:\w+ )?decided\b": (
        "people get decisions, rows have them"
    ),
    r"\b[Hh]ow (?:sure|likely)\b": "confidence level, probability",
    r"\bat most a share of\b": "the error probability is at most",
    r"\bchance explains\b": "statistically significant",
    r"\bare selected in\b": "selection rate",
    r"\bin either direction by\b": "above or below",
    r"\bby models that have not seen\b": "out-of-fold",
    r"\bso many\b": "that many, or the number",
}


def kernel_breaches(tree):
    """Yield (line, breach) of what makes a compiled kernel stale, uncached or slow."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [alias.name for alias in node.names]
            for name in [node.module or ""] if isinstance(node, ast.ImportFrom) else names:
                if name not in OPEN_TO_KERNELS:
                    yield node.lineno, f"a kernel file imports {name}, and must be closed"
        elif isinstance(node, ast.FunctionDef):
            if [ast.unparse(decorator) for decorator in node.decorator_list] != [NJIT]:
                yield node.lineno, f"{node.name} must be decorated with @{NJIT} and nothing else"
            if any(isinstance(inner, ast.Raise | ast.Try) for inner in ast.walk(node)):
                yield node.lineno, f"{node.name} raises; kernels return a code instead"


def clock_breaches(tree):
    """Yield (line, breach) of limits of time, with which results depend on the machine.

    Imports of clocks are banned in ``pyproject.toml``.
    """
    for node in ast.walk(tree):
        words = {getattr(node, field, None) for field in ("arg", "value")}
        if words & {"time_limit", "timelimit"}:
            yield node.lineno, "a limit of time: results would depend on the machine"


def reader_breaches(tree, path):
    """Yield (line, breach) of calls by which a package that measures reads rows itself."""
    if not path.startswith(MEASURING):
        return
    for node in ast.walk(tree):
        called = getattr(getattr(node, "func", None), "id", None)
        if called in READERS - READ_THEMSELVES.get(path, set()):
            yield node.lineno, f"{called} is called by MeasuredRows alone"


def without_code(text):
    """Return prose without examples, formulas, code, roles and words in quotes."""
    text = re.sub(r"^( *)\.\. \w+::.*(?:\n\1 +\S.*|\n(?=\n\1 +\S))*", "", text, flags=re.M)
    text = re.sub(r"^ *(?:>>>|\.\.\.) .*(?:\n(?!\n).*)*", "", text, flags=re.M)
    return re.sub(r":\w+(?::\w+)?:`[^`]*`|``[^`]*``|`[^`]*`|\"[^\"]*\"", "X", text)


def docstrings(tree):
    """Yield (line, text) of each docstring, private ones too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and (
            doc := ast.get_docstring(node)
        ):
            yield node.body[0].lineno, doc


def comments(source):
    """Yield (line, text) of each comment; those on lines that follow each other are one."""
    first, lines = 0, []
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT:
            continue
        if token.start[0] != first + len(lines):
            yield first, "\n".join(lines)
            first, lines = token.start[0], []
        lines.append(token.string.lstrip("#: "))
    yield first, "\n".join(lines)


def word_breaches(source, tree):
    """Yield (line, breach) of words that are given up."""
    for line, text in [*docstrings(tree), *comments(source)]:
        for paragraph in re.split(r"\n *\n", without_code(text)):
            prose = " ".join(paragraph.split())
            for pattern, advice in GIVEN_UP.items():
                if found := re.search(pattern, prose):
                    words = prose[max(found.start() - 20, 0) : found.end() + 20]
                    yield line, f"'... {words} ...': write: {advice}"


def typed_results(text):
    """Yield the cells of tables on a page that hold a measurement.

    Results come from records (``:file:``) or from code that is run. A share, a ratio or seconds in
    a cell is a result; names, code and whole numbers are none.
    """
    tables = re.findall(r"^\.\. list-table::.*\n((?:   .*\n|\n)+)", text, re.M)
    tables += re.findall(r"^\.\. csv-table::.*\n((?:   (?!:file:).*\n|\n)+)", text, re.M)
    for cell in re.findall(r"^ +(?:\* )?- (.*)", "\n".join(tables), re.M):
        plain = re.sub(r"``.*?``|:\w+:`.*?`", "", cell)
        if re.search(r"^[+-]?\d*\.\d+(?:\s?%)?(?:[,;]|$)|^[+-]?\d+\s?%$|^\d[\d.]* s$", plain):
            yield f"a result is typed into a table: {cell}"


def breaches():
    """Yield every breach in the package and on the pages, with its place."""
    for path in sorted((ROOT / "skfair").rglob("*.py")):
        source = path.read_text(encoding="utf-8")
        tree = ast.parse(source)
        is_kernel = path.parent.name == "_kernels" and path.name != "declaring.py"
        for line, breach in [
            *(kernel_breaches(tree) if is_kernel else ()),
            *clock_breaches(tree),
            *reader_breaches(tree, path.relative_to(ROOT / "skfair").as_posix()),
            *word_breaches(source, tree),
        ]:
            yield f"{path.relative_to(ROOT)}:{line}: {breach}"
    for path in sorted((ROOT / "doc").rglob("*.rst")):
        is_made = {"_build", "auto_examples", "generated"} & set(path.parts)
        if not is_made and path.stem != "concepts":  # which shows how to word a result
            for breach in typed_results(path.read_text(encoding="utf-8")):
                yield f"{path.relative_to(ROOT)}: {breach}"


if __name__ == "__main__":
    found = list(breaches())
    print("\n".join(found) or "Kernels are closed, rows have one entrance, words are plain.")
    sys.exit(bool(found))
