"""The commands ``choose`` and ``decide`` of ``python -m skfair``, for people who do not program.

``choose`` (:func:`run_choose`) makes the page on which a committee chooses a limit, from a file.
Half of the rows fit a model under each limit, and the other half judge the models. The decisions
come from boosted trees, or from the column of scores of the user's own model. The committee
downloads its decision from the page as a file, the *memo*.

``decide`` (:func:`run_decide`) puts the limit into force: it fits the chosen model again, by the
options that the memo holds and from the same file, and decides about new rows. It compares a
*fingerprint*, a hash of rows and decisions, to make sure that this is the chosen model.

``wing.py`` defines the options and calls the two functions. This is the only file of the report
that imports estimators.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from shlex import join
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold, GroupShuffleSplit, ShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.utils import _safe_indexing

from skfair.classification import FairDecisionClassifier
from skfair.estimators.kept_models import keeping_models
from skfair.exceptions import SelectionRateWarning
from skfair.groups.labels import check_positive
from skfair.groups.outcomes import explaining_missing
from skfair.groups.sensitive import Sensitive
from skfair.model_selection import FairnessPath, fairness_path
from skfair.records.decision_memo import chosen_limits, open_memo
from skfair.report.choosing.choice import Choice
from skfair.report.commands.audit import check_options, label_of, read_data, table_of
from skfair.report.files.table_file import TableFile, decimal_of
from skfair.utils.factorize import factorize
from skfair.utils.files import check_outputs, replacing
from skfair.utils.text import listed, visible
from skfair.utils.validation import check_limit, check_scores
from skfair.utils.warn import unwanted, warn_user

# The share of rows that judge models. A quarter would make intervals 1.4 times as wide, and
# three quarters would leave half as many rows to fit the models to.
_JUDGING = 0.5
# There is a warning if the overall selection rate changes by more than this, as in estimators.
_MUCH_MOVED = 0.1
# The options on which the models depend. A memo holds them, so that ``decide`` can fit again.
_OF_FIT = (
    "target",
    "columns",
    "score",
    "before",
    "sensitive",
    "units",
    "constraint",
    "group_aware",
    "one_model",
    "pos_label",
    "pos_label_true",
    "bins",
    "date_format",
    "drop_missing",
    "missing",
    "decimal",
    "encoding",
    "random_state",
)
# The column that ``decide`` adds.
_DECISION = "decision"


class _Sample(NamedTuple):
    """The rows of a file as numbers, and what is needed to read other rows in the same way."""

    table: TableFile
    rows: dict[str, Any]  # X, y, sensitive_features, and what else was named
    words: dict[str, dict[str, int]]  # numbers of the words in each column of words
    labels: tuple[Any, Any]  # the negative and the positive label of decisions

    def halves(self, seed: int) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the rows that fit models and the rows that judge them.

        All rows of a person are in the same half.
        """
        people = self.rows.get("units")
        splitter = ShuffleSplit if people is None else GroupShuffleSplit
        cut = splitter(1, test_size=_JUDGING, random_state=np.random.RandomState(seed))
        first, second = (
            {name: _safe_indexing(values, half) for name, values in self.rows.items()}
            for half in next(cut.split(self.rows["y"], groups=people))
        )
        return first, second


def run_choose(options: argparse.Namespace) -> int:
    """Run ``choose``: fit models under all limits, print a table of them, and write the page."""
    check_options(options, [".html"])
    for limit in options.limits:
        check_limit(limit, f"--limits {limit:g}")
    sample = _read(options)
    fitting, judging = sample.halves(options.random_state)
    before = judging.get("before")
    # The page counts changes against the first decisions: those of today if --before names them,
    # and else decisions under a limit of 100%, which limits nothing.
    limits = options.limits if before is not None else [1.0, *options.limits]
    source = "boosted trees (HistGradientBoostingClassifier)"
    if options.score is not None:
        source = f"the scores in {options.score!r}"
    n_fitting, n_judging = (f"{len(half['y']):,} rows" for half in (fitting, judging))
    sys.stdout.write(
        f"Decisions by {visible(source)}, fitted to {n_fitting} and judged on {n_judging}.\n"
    )
    with keeping_models():
        path, held = (_path(options, sample, fitting, limits, is_held) for is_held in (False, True))
    stated = {name: getattr(options, name) for name in ("confidence", "suppress_below")}
    stated = {name: value for name, value in stated.items() if value is not None}
    command = {name: getattr(options, name) for name in _OF_FIT}
    command["file"] = Path(options.file).name
    choice = path._choice(judging, before, held, stated, command)
    title = options.title or f"Which limit? Decisions by {source}, {Path(options.file).name}"
    decided = options.decided or "selected"
    choice.to_html(options.out, title=title, decided=decided)
    # These are the numbers of the page, of the same groups. If they counted groups that the page
    # hides, the difference would give the hidden groups away.
    table = choice.table().to_string(index=False, float_format="{:.3f}".format, na_rep="-")
    lines = [*table.split("\n"), *(f"Not compared, {text}." for text in choice.not_compared())]
    lines += _advice(choice, options, decided)
    lines.append(f"The page is in {options.out}.")
    sys.stdout.writelines(f"{visible(line)}\n" for line in lines)
    return 0


def run_decide(options: argparse.Namespace) -> int:
    """Run ``decide``: decide about the rows of a file by the model that a committee chose."""
    read = {"the file of the rows": options.file, "the memo": options.memo}
    read["the file of the rows of the fit"] = options.fitted_on
    check_outputs([("--out", options.out, [".csv"])], read.items(), force=options.force)
    name, memo = open_memo(options.memo)
    limits = chosen_limits(name, memo)
    if not isinstance(memo.get("command"), dict):
        raise ValueError(
            f"{name} is about a page that was made in Python, so no command can fit its model "
            "again. Decide with the model itself: path.estimators[k].predict(X)."
        )
    fitted = argparse.Namespace(**memo["command"] | {"file": options.fitted_on})
    fitted.block_rows = options.block_rows
    sample = _read(fitted)
    fitting, judging = sample.halves(fitted.random_state)
    bound = max(limit for limit in limits.values() if limit is not None)
    path = _path(fitted, sample, fitting, [bound], memo["holds_overall_rate"])
    (step,) = path._choice(judging).steps
    if step["fingerprint"] != memo.get("fingerprint"):
        raise ValueError(
            f"The model that was fitted to {options.fitted_on!r} is not the one that the committee "
            f"chose: its fingerprint differs from that of {name}. Pass the unchanged file that the "
            f"page was made of, {memo['command'].get('file')!r}, and use the versions of skfair "
            f"({memo.get('skfair')}) and scikit-learn with which it was made."
        )
    (model,) = path.estimators
    rows, frame = _new_rows(fitted, sample, options)
    is_positive = model.predict(rows.pop("X"), **rows) == 1
    negative, positive = sample.labels
    frame[_DECISION] = np.where(is_positive, positive, negative)
    with replacing(options.out) as beside:
        frame.to_csv(beside, index=False)
    check = ["audit", options.out, "--prediction", _DECISION, "--sensitive", fitted.sensitive]
    check += ["--pos-label", str(positive), "--fail-if", str(options.memo)]
    for name, values in {"--bins": fitted.bins, "--missing": [fitted.missing]}.items():
        check += [text for value in values if value is not None for text in (name, value)]
    lines = [
        f"{len(frame):,} rows, of which {is_positive.mean():.1%} are {positive!r}.",
        f"The decisions are in {options.out}, column {_DECISION!r}.",
        f"Check the limit: {join(['python', '-m', 'skfair', *check])}",
        "The model uses the limit up, so the interval may have values on both sides of it (exit "
        "code 3). With --inconclusive pass the check fails only if an excess is shown.",
    ]
    sys.stdout.writelines(f"{visible(line)}\n" for line in lines)
    return 0


def _path(
    options: argparse.Namespace,
    sample: _Sample,
    fitting: dict[str, Any],
    limits: list[float],
    is_held: bool,  # whether the overall selection rate is held at its value today
) -> FairnessPath:
    """Fit a model under each limit to the rows in ``fitting``.

    With ``--score``, the scores are column 0 of X. They alone make decisions, and further columns
    only estimate the group.
    """
    trees = HistGradientBoostingClassifier(random_state=options.random_state)
    model: Any = trees
    if options.score is not None:
        scores = ColumnTransformer([("score", "passthrough", [0])])
        model = make_pipeline(scores, LogisticRegression())
    cv: Any = "auto"
    if "units" in fitting:
        cv = [*GroupKFold().split(fitting["X"], groups=fitting["units"])]
    rate: Any = None
    if is_held:
        before = sample.rows.get("before")
        rate = "as before" if before is None else float(np.mean(before))
    limited = FairDecisionClassifier(
        model,
        options.constraint,
        selection_rate=rate,
        group_aware=options.group_aware,
        group_estimator=trees if options.score is not None else None,
        sensitive=Sensitive(intersectional=False),
        cv=cv,
        ensemble=not options.one_model,
        random_state=options.random_state,
    )
    of_fit = {name: fitting[name] for name in ("X", "y", "sensitive_features")}
    with unwanted(SelectionRateWarning):  # the printed table shows the rates
        return fairness_path(limited, **of_fit, max_disparities=limits)


def _advice(choice: Choice, options: argparse.Namespace, decided: str) -> Iterator[str]:
    """Warn if models change the overall selection rate much, and say what can be done."""
    steps = [*choice.distinct()]
    base = steps[0]["numbers"]["rate"][0]
    moved = {
        is_held: [
            step
            for step in steps
            if step["holds_overall_rate"] == is_held
            and abs(step["numbers"]["rate"][0] - base) > _MUCH_MOVED
        ]
        for is_held in (False, True)
    }
    every = moved[False] + moved[True]
    if every:
        rates = ", ".join(
            f"{step['numbers']['rate'][0]:.0%} ({choice.name_of(step)})" for step in every
        )
        ways = [] if moved[True] else ["choose a row with the overall rate held"]
        ways += [] if options.group_aware else ["let decisions use the group (--group-aware)"]
        yield (
            f"Warning: the share of all who are {decided} moves by more than 10 points from "
            f"{base:.0%} ({choice.reference}) to {rates}, so "
            f"{' or '.join(ways) or 'choose a larger limit'}."
        )
    if options.score is not None and options.columns is None and not options.group_aware:
        yield (
            "One score tells little about the group of a person, so limits without the group "
            "change many decisions: with --columns beside --score the group is estimated from "
            "these columns, and with --group-aware each group has a threshold of its own, which "
            "mostly changes fewer decisions."
        )


def _read(options: argparse.Namespace) -> _Sample:
    """Read the file: columns as numbers, and labels and today's decisions as 0 and 1."""
    table, rows = read_data(options, options.file)
    of_target = options.pos_label if options.pos_label_true is None else options.pos_label_true
    labels: tuple[Any, Any] = 0, 1
    for name, text in {"y": of_target, "before": options.pos_label}.items():
        if name not in rows:
            continue
        levels = factorize(rows[name]).levels
        positive = label_of(text, levels)
        try:
            before = rows.get("before") if name == "y" else None
            with explaining_missing((rows[name].name, rows[name]), {options.before: before}):
                codes = check_positive(rows[name], rows[name].name, positive)
        except ValueError as error:
            raise ValueError(_with_remedy(str(error), name, options)) from error
        positive = 1 if positive is None else positive
        positive = next((level for level in levels if level == positive), positive)
        others = [level for level in levels if level != positive]
        labels = others[0] if len(others) == 1 else f"not {positive}", positive
        rows[name] = codes
    words = {
        str(name): {str(word): k for k, word in enumerate(factorize(values).levels)}
        for name, values in rows["X"].select_dtypes(exclude="number").items()
    }
    for name in set(words) - {options.score}:
        _refuse_numbers(rows["X"][name])
    return _Sample(table, rows | {"X": _numbers(rows["X"], words, options.score)}, words, labels)


def _with_remedy(error: str, name: str, options: argparse.Namespace) -> str:
    """Add to an error about the labels ``name`` the option that names the positive label."""
    if name == "y" and options.pos_label_true is not None:
        return error.replace("pos_label=", "pos_label_true=")
    if options.before is None or options.pos_label_true is not None:
        return error
    return (
        f"{error} If the columns of --target and --before have labels of their own, name the "
        "positive one of both: --pos-label for --before, and --pos-label-true for --target."
    )


def _refuse_numbers(values: pd.Series) -> None:
    """Raise for numbers that were read as text, which would be taken for words."""
    mark, texts = decimal_of(values), values.dropna()
    are_plain = bool(pd.to_numeric(texts, errors="coerce").notna().all())  # may be postal codes
    if mark is not None and not are_plain:
        raise ValueError(
            f"Column {values.name!r} has numbers that are written as {texts.iloc[0]!r}. "
            f"Pass --decimal {mark} to read them, or leave the column out with --columns."
        )


def _numbers(X: pd.DataFrame, words: dict[str, dict[str, int]], score: str | None) -> pd.DataFrame:
    """Return columns as numbers: a word is its number in ``words``, or NaN if it is not there."""
    columns: dict[Any, Any] = {}
    for name, values in X.items():
        columns[name] = values
        if name == score:
            columns[name] = pd.Series(check_scores(values, str(name)), values.index)
        elif name in words:  # dates and mixed columns are read as words
            columns[name] = values.map(str).map(words[str(name)]).astype(float)
            columns[name] = columns[name].mask(values.isna())
    return pd.DataFrame(columns)


def _new_rows(
    fitted: argparse.Namespace, sample: _Sample, options: argparse.Namespace
) -> tuple[dict[str, Any], pd.DataFrame]:
    """Read the file of new rows.

    Returns the arguments of ``predict``, and all columns as they stand in the file. The options of
    the fit apply, except for the encoding and the decimal mark if they are named anew. The target
    and today's decisions are not read, and the scores are read as a column of X.
    """
    reading = {name: getattr(options, name) for name in ("decimal", "encoding")}
    stated = {name: value for name, value in reading.items() if value is not None}
    of_rows = argparse.Namespace(**vars(fitted) | stated)
    of_rows.target = of_rows.before = of_rows.units = of_rows.score = None
    of_rows.drop_missing = []
    names = tuple(sample.rows["X"].columns)
    table = table_of(of_rows, options.file)
    if not fitted.group_aware:  # decisions do not use the group, and the file need not have it
        table = table._replace(groups=[], bins={})
    table = table._replace(others=names)
    table.check()
    frame = pd.concat(list(table.blocks()), ignore_index=True)
    if not len(frame):
        raise ValueError(f"{table.path.name} has no rows.")
    for name in names:
        if name not in sample.words and not pd.api.types.is_numeric_dtype(frame[name]):
            _refuse_numbers(frame[name])
            raise ValueError(
                f"Column {name!r} has {_first_word(frame[name])!r}, but only numbers in the file "
                "that the model was fitted to."
            )
    for name in sample.words.keys() - {fitted.score}:
        _warn_of_words(frame[name], sample.words[name])
    rows: dict[str, Any] = {"X": _numbers(frame[list(names)], sample.words, fitted.score)}
    if fitted.group_aware:
        rows["sensitive_features"] = frame[table.groups]
    every = table.as_written()
    if _DECISION in every:
        raise ValueError(
            f"{table.path.name} has a column {_DECISION!r} already. Rename it, because the new "
            "decisions are written to a column of this name."
        )
    return rows, every


def _warn_of_words(values: pd.Series, known: dict[str, int]) -> None:
    """Count the rows with words that the fit did not know, which are decided as missing."""
    texts = values[values.notna()].map(str)
    new = texts[~texts.isin(list(known))]
    if len(new):
        warn_user(
            f"Column {values.name!r} has words that the fit did not know, {listed(new.unique())}, "
            f"in {len(new):,} of {len(values):,} rows. They count as missing, which may change "
            "decisions. If they are other spellings, write them as in the file of the fit: "
            f"{listed(known)}."
        )


def _first_word(values: Iterable[Any]) -> Any:
    """Return the first value that is no number, for a message."""
    series = pd.Series(list(values)).dropna()
    return series[pd.to_numeric(series, errors="coerce").isna()].iloc[0]
