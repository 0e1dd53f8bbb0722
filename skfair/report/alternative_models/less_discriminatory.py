"""Less discriminatory alternatives: models with less disparity that are about as good.

A lender must look for one and document the search. :func:`alternatives` compares models that the
user has fitted, and :class:`Alternatives` is its result, also shown as a page.
:mod:`skfair.report.alternative_models.search` fits the candidates itself, and compares them by the
functions of this file.

The smallest disparity of many candidates looks better than it is, because it was chosen. So the
intervals are simultaneous: with the stated confidence, the intervals of all candidates hold. They
come from a paired bootstrap
(:func:`paired_resamples`): all candidates are judged on the same resampled people, so that only
people for whom two models decide differently make a difference uncertain.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.utils import check_random_state
from sklearn.utils.validation import _num_samples

from skfair._typing import (
    ClassLabel,
    ColumnLike,
    ColumnsLike,
    FloatArray,
    IntArray,
    MatrixLike,
    Seed,
)
from skfair.groups.attributes import check_aligned
from skfair.groups.cohort import cohort_of
from skfair.groups.cohort_rows import value_rows
from skfair.groups.declared_rates import rates_of
from skfair.groups.levels import number_tuples
from skfair.groups.measured_rows import MeasuredRows
from skfair.groups.row_units import RowUnits
from skfair.metrics.disparity_tests import disparity_upper_bound
from skfair.metrics.labels import LABEL_METRICS
from skfair.report.results.pages import render_template
from skfair.report.results.pictures import Axis
from skfair.report.results.result import Page, written
from skfair.utils.docs import documented
from skfair.utils.response import get_response, positive_class
from skfair.utils.rounding import ROUNDING
from skfair.utils.text import check_text, did_you_mean, plural, visible
from skfair.utils.validation import check_number, check_probability, one_dimensional

# The metrics of disparity that a search accepts: differences of rates.
METRICS = tuple(name for name in LABEL_METRICS if name.endswith("_difference"))


@documented
@dataclass(frozen=True, eq=False, repr=False)
class Alternatives(Page):
    """Result of a search for alternatives, as returned by :func:`alternatives`.

    Parameters
    ----------
    table : DataFrame
        Table with one row per candidate. It has the columns ``candidate``, ``disparity`` and
        ``accuracy``, and ``disparity_change`` and ``accuracy_change`` from the baseline, with the
        ends ``_low`` and ``_high`` of their intervals. ``is_within_loss`` is True if the accuracy
        is at most ``max_loss`` lower. ``is_shown`` is True if both intervals show that the
        disparity is smaller and the loss is at most ``max_loss``. ``certified`` is an upper bound
        on the disparity of the population, or NaN if it was not requested.
    models : list of estimators
        The candidates. After a search, only the baseline and the selected candidate are fitted, on
        all rows.
    baseline : int
        Position of the model to replace.
    selected : int
        Position of the candidate with the smallest disparity within the loss. It is equal to
        ``baseline`` if no candidate has a smaller disparity.
    metric : str
        Name of the metric of disparity.
    max_loss : float
        The loss of accuracy that was allowed.
    confidence : float
        Confidence level at which all intervals of a column hold together.
    n_rows : int
        Number of rows on which candidates were evaluated.
    title : str
        Title of the page.
    further_gain : float, default=None
        Bound of :func:`search_alternatives` on the amount by which one more model could lower the
        disparity without losing more than ``max_loss``. It is None if the candidates were not drawn
        at random.
    chance : float, default=None
        Probability that one more model exceeds this bound.
    n_units : int, default=None
        Number of units to which the rows belong. It is None if each row is a unit.
    gain : float, default=None
        The ``gain`` that was passed to :func:`search_alternatives`.
    n_rows_needed : int, default=None
        Approximate number of evaluation rows with which ``further_gain`` would be ``gain`` for the
        same number of models. If units were given, the number of rows per unit is assumed to stay
        the same.

    See Also
    --------
    skfair.model_selection.fairness_path : Fit the candidates.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from skfair.datasets import make_loans
    >>> from skfair.report import alternatives
    >>> loans = make_loans(3000, random_state=0)
    >>> X, y = loans.data[["income", "age"]].fillna(0), loans.target
    >>> model = LogisticRegression().fit(X, y)
    >>> found = alternatives([model], X, y, sensitive_features=loans.sensitive_features["sex"])
    >>> found.estimator is model
    True
    """

    table: pd.DataFrame
    models: list[Any]
    baseline: int
    selected: int
    metric: str
    max_loss: float
    confidence: float
    n_rows: int
    title: str
    further_gain: float | None = None
    chance: float | None = None
    n_units: int | None = None
    gain: float | None = None
    n_rows_needed: int | None = None
    _templates = "alternatives.html.j2", "alternatives_cell.html.j2"

    @property
    def estimator(self) -> Any:
        """The less discriminatory alternative, or the baseline if there is none."""
        return self.models[self.selected]

    def sentences(self) -> list[str]:
        """Describe the result and its uncertainty.

        Returns
        -------
        sentences : list of str
            Two to six sentences.
        """
        rows: list[Any] = list(self.table.itertuples())
        base, best = rows[self.baseline], rows[self.selected]
        what = f"{self.metric.replace('_', ' ')} {100 * base.disparity:.1f} points"
        n_others, n_within = len(rows) - 1, int(self.table["is_within_loss"].sum()) - 1
        loss, level = f"{100 * self.max_loss:g} points", f"{100 * self.confidence:g}% confidence"
        owners = "" if self.n_units is None else f" of {plural(self.n_units, 'unit')}"
        sentences = [
            f"The baseline is {base.candidate}: {what}, accuracy {100 * base.accuracy:.1f}%, on "
            f"{self.n_rows:,} rows{owners}."
        ]
        if self.selected == self.baseline:
            nobody = f"None of the {n_others} other candidates has"
            nobody = "The other candidate does not have" if n_others == 1 else nobody
            sentences.append(
                f"{nobody} less disparity with a loss of accuracy of at most {loss} ({n_within} "
                "are within this loss)."
            )
        else:
            disparity, accuracy = (
                "{:+.1f} points ({:+.1f} to {:+.1f})".format(*self._in_points(name)[self.selected])
                for name in ("disparity", "accuracy")
            )
            sentences += [
                f"It was compared with {plural(n_others, 'other candidate')} ({n_within} with a "
                f"loss of accuracy of at most {loss}). Among these, {best.candidate} has the "
                f"smallest disparity: {100 * best.disparity:.1f} points, accuracy "
                f"{100 * best.accuracy:.1f}%.",
                f"The disparity changes by {disparity}, and the accuracy by {accuracy}. A smaller "
                f"disparity within this loss is {'' if best.is_shown else 'not '}shown at {level}.",
            ]
            if np.isfinite(best.certified):
                sentences.append(
                    f"In the population its disparity is at most {100 * best.certified:.1f} points "
                    f"({level}, all candidates together)."
                )
        if self.further_gain is not None and self.chance is not None:
            sentences.append(
                f"Further retraining would, with {level}, lower the disparity by less than "
                f"{100 * self.further_gain:.1f} points without losing more than {loss} of "
                "accuracy: another model with settings and seed drawn in the same way has a chance "
                f"of at most {100 * self.chance:g}% to do better."
            )
        if self.gain is not None and self.n_rows_needed is not None:
            times = self.n_rows_needed / self.n_rows
            owners = f" of {round(times * self.n_units):,} units" if self.n_units else ""
            sentences.append(
                f"With about {self.n_rows_needed:,} evaluation rows{owners} instead of "
                f"{self.n_rows:,}, this bound would be {100 * self.gain:g} points."
            )
        return sentences

    def _in_points(self, name: str) -> FloatArray:
        """Return the change and the ends of its interval in percentage points, (n_candidates, 3).

        ``name`` is "accuracy" or "disparity".
        """
        columns = [f"{name}_change", f"{name}_change_low", f"{name}_change_high"]
        return 100 * self.table[columns].to_numpy(np.float64)

    def _rendered(self, template: str) -> str:
        return render_template(
            template,
            result=self,
            rows=list(self.table.itertuples()),
            picture=_picture(self),
            has_certificate=bool(self.table["certified"].notna().any()),
        )

    def to_json(self, path: str | PathLike[str] | None = None) -> str:
        """Return the sentences and the table as JSON.

        Parameters
        ----------
        path : str or path-like, default=None
            File to which the text is written. If None, the text is only returned.

        Returns
        -------
        text : str
            The text, with the keys ``title``, ``sentences``, ``candidates`` and the settings of the
            search.
        """
        names = ["title", "metric", "max_loss", "confidence", "n_rows", "further_gain", "chance"]
        names += ["gain", "n_rows_needed"]
        known = {name: getattr(self, name) for name in names}
        known |= {"baseline": self.baseline, "selected": self.selected}
        known |= {} if self.n_units is None else {"n_units": self.n_units}
        known |= {"sentences": self.sentences()}
        known["candidates"] = json.loads(self.table.to_json(orient="records"))
        return written(json.dumps(known, indent=1), path)

    def __repr__(self) -> str:
        return "\n".join(visible(line) for line in (self.title, *self.sentences()))


def alternatives(
    candidates: Any,
    X: MatrixLike,
    y: ColumnLike,
    *,
    sensitive_features: ColumnsLike,
    before: object | None = None,
    units: ColumnLike | None = None,
    max_loss: float = 0.01,
    metric: str = "demographic_parity_difference",
    certify: bool = False,
    pos_label: ClassLabel = None,
    confidence: float = 0.95,
    n_bootstrap: int = 1000,
    title: str = "Less discriminatory alternatives",
    random_state: Seed = 0,
) -> Alternatives:
    """Find a less discriminatory alternative to a model among candidates.

    The alternative is the candidate with the smallest disparity whose accuracy is at most
    ``max_loss`` lower.

    Parameters
    ----------
    candidates : FairnessPath, or list or dict of estimators
        The candidates, which are fitted binary classifiers.
    X : array-like of shape (n_samples, n_features)
        Rows on which no candidate was fitted.
    y : array-like of shape (n_samples,)
        True labels.
    sensitive_features : array-like of shape (n_samples,) or (n_samples, n_attributes)
        The group of each row. Several attributes are crossed.
    before : estimator, default=None
        The model in use, which an alternative would replace. If None, it is the most accurate
        candidate.
    units : array-like of shape (n_samples,), default=None
        Labels of rows that belong together, such as the person of each row. If given, units are
        resampled instead of rows, and certificates count units.
    max_loss : float, default=0.01
        Largest loss of accuracy that is allowed for an alternative.
    metric : str, default="demographic_parity_difference"
        Name of the metric of disparity, which must be a difference of rates of
        :mod:`skfair.metrics`.
    certify : bool, default=False
        Whether to compute upper bounds on the disparity of the population, as
        :func:`skfair.metrics.disparity_upper_bound` does, which hold for all candidates together.
    pos_label : label, default=None
        The positive class. If None, the positive class of the first candidate is used, which is
        usually the second of its two classes.
    confidence : float, default=0.95
        Confidence level at which the intervals of all candidates hold together.
    n_bootstrap : int, default=1000
        Number of resamples.
    title : str, default="Less discriminatory alternatives"
        Title of the page.
    random_state : int, RandomState instance or None, default=0
        Seed of the resamples.

    Returns
    -------
    found : Alternatives
        The result, with ``table``, ``estimator`` and ``to_html()``.

    See Also
    --------
    search_alternatives : Refits a classifier to find candidates.
    audit : Audits a single model.

    Notes
    -----
    The baseline is treated as given. If it was chosen as the most accurate candidate on the same
    rows, its accuracy is slightly too high, and losses are overstated. Rows, or units, are
    resampled within groups. For rows this costs O(n_bootstrap * m * n_models * n_groups) for m
    distinct combinations of group, label and decisions.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from skfair.datasets import make_loans
    >>> from skfair.report import alternatives
    >>> loans = make_loans(3000, random_state=0)
    >>> X, y = loans.data[["income", "age"]].fillna(0), loans.target
    >>> sex = loans.sensitive_features["sex"]
    >>> models = {f"C={C}": LogisticRegression(C=C).fit(X[:2000], y[:2000]) for C in (0.001, 1)}
    >>> found = alternatives(models, X[2000:], y[2000:], sensitive_features=sex[2000:])
    >>> found.table["candidate"].tolist()
    ['C=0.001', 'C=1']
    """
    check_options(title, max_loss, confidence, n_bootstrap, metric)
    names, models = _read_candidates(candidates)
    if before is not None:
        names, models = ["before", *names], [before, *models]
    rows = read_judging_rows(X, y, sensitive_features, units)
    labels, codes, together = rows.values, rows.groups.cells.codes[0], rows.units
    positive = positive_of(models[0], pos_label)
    predictions = [
        np.asarray(get_response(model, X, "predict", sensitive_features=sensitive_features))
        for model in models
    ]
    decided, rng = [own == positive for own in predictions], check_random_state(random_state)
    resampled = paired_resamples(
        labels == positive, decided, codes, metric, n_bootstrap, rng, together
    )
    baseline = 0 if before is not None else int(np.argmax(resampled[1][0]))
    table = changes_table(names, resampled, baseline, confidence, max_loss)
    if certify:
        level = 1 - (1 - confidence) / len(models)
        table["certified"] = [
            disparity_upper_bound(
                metric.removesuffix("_difference"), labels, predicted, confidence=level,
                sensitive_features=sensitive_features, pos_label=positive, units=units,
            )
            for predicted in predictions
        ]  # fmt: skip
    selected = best_within_loss(table, baseline)
    results = (metric, float(max_loss), confidence, len(labels), title)
    n_units = getattr(together, "n_units", None)
    return Alternatives(table, models, baseline, selected, *results, n_units=n_units)


def read_judging_rows(
    X: MatrixLike, y: ColumnLike, sensitive_features: ColumnsLike, units: ColumnLike | None
) -> MeasuredRows:
    """Check the rows on which models are judged, and read their groups, units and labels.

    The labels are the ``values`` of the result.
    """
    check_aligned(X=X, y=y, sensitive_features=sensitive_features, units=units)
    labels = np.asarray(one_dimensional(y, "y", _num_samples(X)))
    people = cohort_of(labels, sensitive_features=sensitive_features)
    return value_rows(people, lambda _: labels, ["y_true"], units=units, each_row=True)


def best_within_loss(table: pd.DataFrame, baseline: int) -> int:
    """Return the row of the candidate with the smallest disparity.

    Only candidates that lose at most ``max_loss`` of accuracy are considered. If none of these has
    a smaller disparity than the baseline, the row of the baseline is returned.
    """
    selected = int(np.nanargmin(table["disparity"].where(table["is_within_loss"])))
    is_less = table["disparity"][selected] <= table["disparity"][baseline] - ROUNDING
    return selected if is_less else baseline


def check_options(
    title: str, max_loss: float, confidence: float, n_bootstrap: int, metric: str
) -> None:
    """Check the options that :func:`alternatives` and the search have in common."""
    check_text([title], "The title")
    check_number(max_loss, "max_loss", 0, 1)
    check_probability(confidence, "confidence")
    check_number(n_bootstrap, "n_bootstrap", 1)
    if metric not in METRICS:
        hint = did_you_mean(metric, METRICS)
        raise ValueError(f"metric must be one of {', '.join(METRICS)}, got {metric!r}.{hint}")


def _read_candidates(candidates: Any) -> tuple[list[str], list[Any]]:
    """Return the names and the models of a FairnessPath, a dictionary or a list of models."""
    if hasattr(candidates, "estimators") and hasattr(candidates, "max_disparities"):
        limits = np.asarray(candidates.max_disparities).tolist()
        return [f"limit {limit:.3g}" for limit in limits], list(candidates.estimators)
    if isinstance(candidates, Mapping) and candidates:
        return [str(name) for name in candidates], list(candidates.values())
    if isinstance(candidates, Sequence) and not isinstance(candidates, str) and len(candidates):
        return [f"candidate {k}" for k in range(len(candidates))], list(candidates)
    raise TypeError(
        "candidates must be a FairnessPath, or a list or dict of fitted models, "
        f"got {candidates!r}."
    )


def positive_of(model: object, pos_label: ClassLabel) -> Any:
    """Return the positive class; raise unless there are two."""
    classes = np.asarray(getattr(model, "classes_", ())).tolist()
    if len(classes) != 2 or (pos_label is not None and pos_label not in classes):
        raise ValueError(
            f"Candidates must be fitted classifiers of two classes, and pos_label one of them or "
            f"None; got {type(model).__name__} with the classes {classes}, pos_label={pos_label!r}."
        )
    return positive_class(model, pos_label)


def by_spread(errors: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the root mean square of each column, and the columns divided by it.

    A column of zeros is returned as it is.
    """
    spread = np.sqrt((errors**2).mean(axis=0))
    return spread, errors / np.where(spread > 0, spread, 1.0)


def paired_resamples(
    true: Any,
    decided: list[Any],
    codes: IntArray,
    metric: str,
    n_bootstrap: int,
    rng: np.random.RandomState,
    units: RowUnits | None = None,  # the rows of a unit in one group are drawn together
) -> tuple[FloatArray, FloatArray]:
    """Judge all models on the same resamples of the people of each group.

    ``true`` has whether the label of each row is positive, and ``decided`` the same for the
    decisions of each model. Returns disparities and accuracies, each of shape (1 + n_bootstrap,
    n_models). The first line is about the rows themselves, and each other line about one resample.

    Rows that agree in group, label and all decisions are of one *kind*, and a resample only needs
    the number of rows of each kind. So what is drawn is a multinomial count for each kind, with the
    number of rows of each group held.
    """
    columns = np.column_stack([codes, true, *decided]).astype(np.int64)
    distinct, kind, counts = np.unique(columns, axis=0, return_inverse=True, return_counts=True)
    group, n_groups = distinct[:, 0], int(codes.max()) + 1
    # Each entry that can be drawn is a kind, or with units a part (see below). ``group_drawn`` is
    # its group, and ``times`` the number of such entries in the sample.
    group_drawn, times = group, counts
    if units is not None:
        # A part is the rows of one unit in one group. Parts with the same number of rows of each
        # kind are interchangeable. They are recognised by a hash: each kind has a random number,
        # and the hash of a part is the sum of the numbers of its rows.
        part, pairs = number_tuples([codes, units.codes], np.array([n_groups, units.n_units]))
        words = np.random.RandomState(0).randint(2**40, size=counts.size)
        sums = np.bincount(part, words[kind.ravel()])
        _, distinct_parts, times = np.unique(sums, return_index=True, return_counts=True)
        group_drawn = pairs[distinct_parts, 0]
    drawn: FloatArray = np.zeros((n_bootstrap, times.size))
    for own in (group_drawn == number for number in np.unique(group)):
        total = int(times[own].sum())
        drawn[:, own] = rng.multinomial(total, times[own] / total, n_bootstrap)
    if units is not None:  # the counts of parts become counts of kinds
        rows_of_parts = sparse.csr_array((np.ones(part.size), (part, kind.ravel())))
        drawn = np.asarray(drawn @ rows_of_parts[distinct_parts])
    n_people = np.concatenate([counts[None], drawn])  # (1 + n_bootstrap, n_kinds)
    disparities, accuracies = [], []
    for decisions in distinct[:, 2:].T:
        # ``owners`` marks the entry of the table (group, label, decision) that counts each kind.
        owners = np.zeros((counts.size, 4 * n_groups))
        owners[np.arange(counts.size), group * 4 + distinct[:, 1] * 2 + decisions] = 1
        tables = (n_people @ owners).reshape(-1, n_groups, 2, 2)
        of_rates = (rates_of(tables, name) for name in LABEL_METRICS[metric].rates)
        apart = [np.nanmax(rates, axis=-1) - np.nanmin(rates, axis=-1) for rates in of_rates]
        disparities.append(np.max(apart, axis=0))
        right = tables[..., 0, 0].sum(axis=-1) + tables[..., 1, 1].sum(axis=-1)
        accuracies.append(right / n_people.sum(axis=-1))
    return np.stack(disparities, axis=-1), np.stack(accuracies, axis=-1)


def changes_table(
    names: list[str],
    resampled: tuple[FloatArray, FloatArray],  # what paired_resamples returns
    baseline: int,
    confidence: float,
    max_loss: float,
) -> pd.DataFrame:
    """Return the ``table`` of :class:`Alternatives`, without certificates.

    The intervals of a column hold simultaneously for all candidates. The interval of a candidate
    reaches from its change by ``m`` standard deviations of that change to both sides, and ``m`` is
    the same for all candidates. For each resample, take the largest error of any candidate in
    standard deviations: ``m`` is the quantile at ``confidence`` of these numbers.
    """
    by_name = dict(zip(("disparity", "accuracy"), resampled, strict=True))
    table = pd.DataFrame({"candidate": names} | {name: own[0] for name, own in by_name.items()})
    for name, drawn in by_name.items():
        changes = drawn - drawn[:, [baseline]]
        change, errors = changes[0], changes[1:] - changes[0]
        spread, scaled = by_spread(np.abs(errors))
        margin = np.quantile(scaled.max(axis=1), confidence) * spread
        table[f"{name}_change"] = change
        table[f"{name}_change_low"] = change - margin
        table[f"{name}_change_high"] = change + margin
    table["is_within_loss"] = table["accuracy_change"] >= -max_loss - ROUNDING
    is_kept = table["accuracy_change_low"] >= -max_loss - ROUNDING
    table["is_shown"] = is_kept & (table["disparity_change_high"] < 0)
    table["certified"] = np.nan
    return table


def _picture(result: Alternatives) -> dict[str, Any]:
    """Return the coordinates of the picture of a page, 300 wide and 200 high."""
    x, y = result._in_points("accuracy"), result._in_points("disparity")
    limit = -100 * result.max_loss
    across = Axis(min(limit, 0.0, x.min()), max(limit, 0.0, x.max()) + ROUNDING, 0.0, 300.0)
    up = Axis(min(0.0, y.min()), max(0.0, y.max()) + ROUNDING, 200.0, 0.0)
    kinds = {result.selected: "selected", result.baseline: "baseline"}
    places = zip(across.place(x), up.place(y), strict=True)
    points = [
        {"x": at, "x_ends": ends, "y": height, "y_ends": heights, "kind": kinds.get(k, "other")}
        for k, ((at, *ends), (height, *heights)) in enumerate(places)
    ]
    lines = {"limit": across.place(limit), "zero": up.place(0.0)}
    return {"points": points, **lines, "x": across.ticks(), "y": up.ticks()}
