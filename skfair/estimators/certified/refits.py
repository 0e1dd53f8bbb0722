"""Certificates of models that are refitted under rising limits, for decisions, scores and means.

This is the second of two ways. The first one (:mod:`skfair.estimators.certified.paths`) changes
only the offsets of decisions, and keeps the model. A constraint that is trained into the weights
cannot be changed afterwards. So here the estimator itself is fitted under a limit far below the
limit of the user, and then under larger ones. Each model is judged on rows that it has not seen.
The order is fixed beforehand, so each test may use the full error probability of 1 - confidence.
The last model before the first failure is returned.

A family calls, in this order:

1. :func:`in_parts` or :func:`in_folds` splits the rows into rows to fit on and rows to judge by,
   which :class:`HeldOut` holds. Linear regressors use folds, so that all rows judge.
2. :func:`refits` for the models, one after the other. (Folds of linear regressors have
   :func:`skfair.estimators.certified.linear_folds.linear_refits`.) :func:`split_and_fits` makes
   these two steps at once, for rows in two parts.
3. :func:`certified_refit`, with its own ``judge(models) -> Judgement``, for the fitted attributes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import _safe_indexing, check_random_state, indexable

from skfair._typing import IntArray, Seed
from skfair.constraints.base import Constraint, have_own_limits, limit_for
from skfair.estimators.certificate import SHARES, Certified
from skfair.estimators.wrapped_scores import (
    FEW_ROWS,
    FOLDS,
    FOLDS_OF_FEW,
    Split,
    as_rows,
    make_splits,
)
from skfair.groups.attributes import take_rows
from skfair.groups.row_units import RowUnits, n_people, said_people
from skfair.groups.training_data import TrainingData
from skfair.utils.endings import ENDINGS
from skfair.utils.warn import unwanted, warn_user

# A proof mostly succeeds if the limit is at least this many times the margin (bound minus
# disparity). :func:`_warn` uses the factor to estimate how many people are needed.
_FOR_POWER = 1.7


class Judgement(NamedTuple):
    """The evidence about a model from the rows that judge it."""

    p_value: float  # p-value of the hypothesis that the disparity is at least the limit
    disparity: float  # disparity on these rows
    bound: float  # the smallest limit that could be certified
    quality: float  # the score of the model
    selection_rate: float  # share of the rows that are selected; NaN if nothing is selected
    is_constant: bool  # whether all rows get the same decision
    # Further attributes to report: "p_values_" and "certified_disparities_", by constraint
    by_constraint: Mapping[str, object] = {}


class HeldOut(NamedTuple):
    """Rows and one or several splits. A split is a pair (rows of a fit, rows that judge it)."""

    X: Any
    y: Any
    splits: Sequence[Split]
    units: RowUnits | None = None  # the unit of each row; None if no two rows share one

    @property
    def judging(self) -> IntArray:
        """Numbers of the rows that judge, split after split."""
        return np.concatenate([judging for _, judging in self.splits])

    @property
    def judging_units(self) -> RowUnits | None:
        return None if self.units is None else self.units.taken(self.judging)

    def predictions(self, models: Sequence[Any]) -> NDArray[Any]:
        """Return predictions for :attr:`judging`; ``models`` holds one model for each split."""
        take = np.take if isinstance(self.X, np.ndarray) else _safe_indexing
        parts = [
            np.asarray(model.predict(take(self.X, rows, axis=0)))
            for model, (_, rows) in zip(models, self.splits, strict=True)
        ]
        return np.concatenate(parts)


def in_parts(kinds: IntArray, seed: Seed, share: float, units: RowUnits | None = None) -> Split:
    """Divide rows into (fit, judge) so that a share of each kind judges, such as group and class.

    Raises if all rows of a kind would be in one part, unless the kind has a single row. Rows of one
    unit (person) are in the same part, and count as a single row of their most frequent kind.
    """
    if units is not None:
        typical = units.typical_rows(kinds)
        parts = in_parts(kinds[typical], seed, share)
        fitted, judging = (np.isin(units.codes, units.codes[typical[part]]) for part in parts)
        return np.flatnonzero(fitted), np.flatnonzero(judging)
    rng, sizes = check_random_state(seed), np.bincount(kinds)
    # Each kind gets its share, rounded up or down so that the sum over the kinds is right, too.
    n_judging = np.diff(np.floor(share * np.cumsum(sizes) + rng.random()).astype(int), prepend=0)
    n_both = np.minimum(n_judging, sizes - n_judging)
    if (n_both[sizes > 1] == 0).any():
        least = int(sizes[(sizes > 1) & (n_both == 0)].min())
        raise ValueError(
            f"Certificate(share={share:g}) leaves rows on one side only of a cell of group and "
            f"class with {least} rows: each needs one to fit on and one to judge by. Pass a value "
            f"from {1 / least:.2g} to {1 - 1 / least:.2g}, or merge small groups."
        )
    order = rng.permutation(kinds.size)  # a stable sort by kind follows: random within each kind
    order = order[np.argsort(kinds[order], kind="stable")]
    rank = np.arange(kinds.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    is_judging = rank < n_judging[kinds[order]]
    return np.sort(order[~is_judging]), np.sort(order[is_judging])


def in_folds(data: TrainingData, seed: Seed) -> list[Split]:
    """Return pairs (fit, judge) of rows for folds in which all groups are spread evenly.

    Each row judges in exactly one fold. Rows whose group is not known do not judge.
    """
    kinds, key = data.groups.cells().codes, int(check_random_state(seed).randint(2**31))
    n = n_people(kinds.size, data.units)
    wanted = FOLDS_OF_FEW if n < FEW_ROWS else FOLDS
    n_folds = int(np.clip(min(np.bincount(kinds).max(), n), 2, wanted))
    splits = make_splits(n_folds, data, kinds, key=key, is_numeric=True)
    return [(fitted, data.groups.known(judging)) for fitted, judging in splits]


def refits(
    estimator: Certified,  # has the parameter ``certificate``; it is not changed
    rows: HeldOut,  # rows with one split
    metadata: Mapping[str, Any],  # other arguments of ``fit``: groups, strata, weights
) -> Iterator[list[Any]]:
    """Yield a list with one fitted clone of the estimator for each share of the limits.

    The shares rise up to 1. It is a list because :func:`certified_refit` takes a model for each
    split.
    """
    fitted, _ = rows.splits[0]
    X, y = _safe_indexing(rows.X, fitted), _safe_indexing(rows.y, fitted)
    own = {name: take_rows(v, fitted) for name, v in metadata.items() if v is not None}
    # The parameters that hold limits. If all constraints have limits of their own, max_disparity
    # stays None.
    limits = {"constraint": estimator.constraint}
    if not have_own_limits(estimator.constraint):
        limits["max_disparity"] = limit_for(estimator.constraint, estimator.max_disparity)
    for share in SHARES:
        scaled = {name: scaled_limits(limit, share) for name, limit in limits.items()}
        model = clone(estimator)
        # set_params would fail for a subclass whose __init__ lacks these parameters.
        vars(model).update(certificate=None, **scaled)
        with unwanted(UserWarning):  # warnings about limits that are violated on these rows
            model.fit(X, y, **own)
        yield [model]


def split_and_fits(
    estimator: Certified,
    X: Any,  # X as it was passed, because the models are clones of the estimator and read it
    data: TrainingData,
    kinds: IntArray,  # (n_samples,): group and class of each row, as one number, see ``in_parts``
    metadata: Any,  # groups, strata and weights, as the user passed them
    seed: Seed,
) -> tuple[HeldOut, Iterator[list[Any]]]:
    """Return the rows, split for fit and test, and an iterator of models under rising limits.

    Each model is fitted when the iterator is asked for it.
    """
    rows, y = indexable(as_rows(X), data.y)
    fitted, judging = in_parts(kinds, seed, estimator._certificate().share, data.units)
    held_out = HeldOut(rows, y, [(fitted, data.groups.known(judging))], data.units)
    return held_out, refits(estimator, held_out, metadata)


def one_limit(limit: Any) -> float:
    """Return ``max_disparity`` as a number; raise if it is a dict of limits of attributes."""
    if isinstance(limit, Mapping):
        raise ValueError(
            "certificate= needs one max_disparity for all attributes here, got "
            f"{limit!r}. Use the smallest one."
        )
    return float(limit)


def scaled_limits(value: Any, share: float) -> Any:
    """Return ``constraint`` or ``max_disparity`` with all limits in it multiplied by a share.

    A number is a limit, a dict holds one for each attribute, and constraint objects may have limits
    of their own. None (no limit) and names of constraints are returned unchanged.
    """
    if isinstance(value, Constraint):
        own = {
            name: scaled_limits(limit, share)
            for name, limit in value.get_params().items()
            if name.endswith("max_disparity")
        }
        return clone(value).set_params(**own)
    if isinstance(value, Mapping):
        return {name: scaled_limits(limit, share) for name, limit in value.items()}
    if isinstance(value, list | tuple):
        return [scaled_limits(limit, share) for limit in value]
    return value if value is None or isinstance(value, str) else value * share


def certified_refit(
    estimator: Certified,
    rows: HeldOut,
    path: Iterable[list[Any]],  # models of all splits for each step, under rising limits
    judge: Callable[[list[Any]], Judgement],  # judges the models of a step
    # The limit of each constraint by its name. Callers with a single limit pass it under the key
    # "", and it holds for any name
    limits: Mapping[str, float],
    quality: str = "accuracy",  # the key of ``path_`` for ``Judgement.quality``
    # Returns the model for new rows, given the models of a step
    deployed: Callable[[list[Any]], Any] = itemgetter(0),
) -> dict[str, Any]:
    """Test the steps up to the first failure; return the fitted attributes of the step before.

    If the first step fails, its attributes are returned with the status "no_solution", after a
    warning. Later steps of the path are never fitted.
    """
    confidence, steps = estimator._certificate().confidence, []
    for models in path:
        steps.append((models, judge(models)))
        if steps[-1][1].p_value > 1 - confidence:
            break
    is_shown = np.array([verdict.p_value <= 1 - confidence for _, verdict in steps])
    models, verdict = steps[max(int(is_shown.sum()) - 1, 0)]
    is_certified = bool(is_shown.any()) and not verdict.is_constant
    p_values, disparities, bounds, qualities, rates = np.array([step[:5] for _, step in steps]).T
    smallest = min(limits.values())
    reason = "" if is_certified else _warn(rows, verdict, confidence, smallest)
    # Only fitted attributes (they begin or end with _) of the model are copied to the estimator.
    # Its parameters stay, and so does its number of rows, which includes the rows that judge.
    fitted = {
        name: value
        for name, value in vars(deployed(models)).items()
        if (name[0] == "_" or name[-1] == "_") and name != "_n_rows"
    }
    # The model was fitted under a share of the limits. The limits of the user are reported.
    reached = fitted.get("_limits", {})
    return fitted | {
        "_limits": {k: {"": of[""], "limit": limits.get(k, smallest)} for k, of in reached.items()},
        "_reason": reason,
        "status_": "certified" if is_certified else "no_solution",
        "p_value_": verdict.p_value,
        "certified_disparity_": verdict.bound,
        **verdict.by_constraint,
        "path_": {
            quality: qualities,
            "selection_rate": rates,
            "disparity": disparities,
            "bound": bounds,
            "p_value": p_values,
            "is_certified": is_shown,
        },
    }


def _warn(rows: HeldOut, verdict: Judgement, confidence: float, limit: float) -> str:
    """Warn that nothing was certified, with the reason and advice; return the reason."""
    n, people = n_people(len(rows.y), rows.units), said_people(len(rows.y), rows.units)
    n_judging = n_people(rows.judging.size, rows.judging_units)
    judges = f", {n_judging} of them to judge by" if n_judging < n else ""
    # Margins are proportional to 1 / root of the number of people.
    needed = n * (_FOR_POWER * (verdict.bound - verdict.disparity) / max(limit, 1e-4)) ** 2
    reason = "what can be shown of the fairest one exceeds a limit"
    advice = "The rows at hand may do with a larger max_disparity or a lower confidence."
    if verdict.is_constant and verdict.p_value <= 1 - confidence:
        reason = "the models of which it can be shown treat all rows alike"
        advice = "Raise max_disparity."
    elif needed > 1.1 * n:
        advice = f"About {int(np.ceil(needed - n))} more people (with groups in the same shares) "
        advice += "are needed."
    warn_user(
        f"With {people}{judges}, no model was found of which it can be shown, at a confidence of "
        f"{confidence:g}, that it satisfies max_disparity={limit:g} for unseen data: {reason}. "
        f"{advice} {ENDINGS['no_solution']} status_ is 'no_solution'.",
        ConvergenceWarning,
    )
    return reason
