"""``python -m skfair choose``: the page on which a committee chooses a limit, made from a file.

Half of the rows fit a model under each limit, and the other half judge the models. The model is
boosted trees, which read words and missing values, or the column of scores of a model of one's own.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold, GroupShuffleSplit, ShuffleSplit
from sklearn.utils import _safe_indexing

from skfair.classification import FairDecisionClassifier
from skfair.exceptions import SelectionRateWarning
from skfair.groups.sensitive import Sensitive
from skfair.model_selection import FairnessPath, fairness_path
from skfair.report.command_audit import check_options, label_of, read_data
from skfair.utils.factorize import factorize
from skfair.utils.text import visible
from skfair.utils.validation import check_limit, check_positive, check_scores
from skfair.utils.warn import unwanted

# The share of the rows that judge. A quarter would give intervals that are 1.4 times as wide, and
# three quarters would leave half as many rows to fit the models to.
_JUDGING = 0.5


def run_choose(options: argparse.Namespace) -> int:
    """Fit models under all limits, print what they reach, and write the page."""
    check_options(options)
    if Path(options.out).suffix.lower() != ".html":
        raise ValueError(f"--out must end in .html, got {options.out!r}.")
    for limit in options.limits:
        check_limit(limit, f"--limits {limit:g}")
    rows, rng = _read(options), np.random.RandomState(options.seed)
    people = rows.get("units")
    splitter = ShuffleSplit if people is None else GroupShuffleSplit
    cut = splitter(1, test_size=_JUDGING, random_state=rng)
    halves = next(cut.split(rows["y"], groups=people))
    fitting, judging = (
        {name: _safe_indexing(values, half) for name, values in rows.items()} for half in halves
    )
    model: Any = HistGradientBoostingClassifier(random_state=options.seed)
    source = "boosted trees (HistGradientBoostingClassifier)"
    if options.score is not None:
        source, model = f"the scores in {options.score!r}", LogisticRegression()
    n_fitting, n_judging = (f"{half.size:,} rows" for half in halves)
    sys.stdout.write(f"Decisions by {source}, fitted to {n_fitting} and judged on {n_judging}.\n")
    cv: Any = "auto"
    if people is not None:
        cv = [*GroupKFold().split(fitting["X"], groups=fitting["units"])]
    limited = FairDecisionClassifier(
        model,
        options.constraint,
        group_aware=options.group_aware,
        sensitive=Sensitive(crossed=False),
        cv=cv,
        random_state=options.seed,
    )
    samples = {name: fitting[name] for name in ("X", "y", "sensitive_features")}
    paths: list[FairnessPath] = []
    for rate in (None, "as before"):
        limited.set_params(selection_rate=rate)
        with unwanted(SelectionRateWarning):  # the page shows the rates
            paths.append(fairness_path(limited, **samples, max_disparities=options.limits))
    stated = {name: getattr(options, name) for name in ("confidence", "suppress_below")}
    stated = {name: value for name, value in stated.items() if value is not None}
    before = judging.pop("before", None)
    choice = paths[0]._choice(judging, before, paths[1], stated)
    title = f"Which limit? Decisions by {source}, {Path(options.file).name}"
    words = {"title": options.title or title, "decided": options.decided or "selected"}
    choice.to_html(options.out, **words)
    table = choice.table().to_string(index=False, float_format="{:.3f}".format, na_rep="-")
    # The numbers of the page, of the same groups: the difference between two tables of the same
    # decisions would be what a hidden group adds.
    lines = [*table.split("\n"), *(f"Not compared, {text}." for text in choice.not_compared())]
    lines.append(f"The page is in {options.out}.")
    sys.stdout.writelines(f"{visible(line)}\n" for line in lines)
    return 0


def _read(options: argparse.Namespace) -> dict[str, Any]:
    """Return the rows as numbers: words by their place among all words, labels as 0 and 1."""
    _, rows = read_data(options, options.file)
    positive = label_of(options.positive, factorize(rows["y"]).levels)
    for name in [name for name in ("y", "before") if name in rows]:
        rows[name] = check_positive(rows[name], rows[name].name, positive)
    X = rows["X"].copy()
    if options.score is not None:
        X[options.score] = check_scores(X[options.score], options.score)
    for name in X.select_dtypes(exclude="number"):  # also dates, and both numbers and words
        codes = factorize(X[name]).codes
        X[name] = np.where(codes < 0, np.nan, codes)
    return rows | {"X": X}
