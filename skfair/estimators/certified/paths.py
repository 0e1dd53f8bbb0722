"""Certified decisions of a classifier: a path of offsets, tested on out-of-fold decisions.

:class:`skfair.classification.FairDecisionClassifier` calls :func:`certify` in place of
:func:`skfair.estimators.decisions.solve.search` if limits are to be certified for the population.
(:mod:`skfair.estimators.certified.refits` is for models that are trained under limits.)

The models of the folds are fitted once and stay fixed. A *path* is a sequence of steps, from
certainly fair decisions to decisions without limits. A step holds the offsets of all features. A
*feature* is a combination of group, stratum and true class. A row gets the class of the largest
expected utility minus offset (:mod:`skfair.enforcement.decisions.shares`).

The path is found on the out-of-fold probabilities of all rows, and the same rows test it. Each row
gets the decision of the model that has not seen it. The test knows that the path closed the gaps on
these rows (``RowRates.is_equalised``). A path for each fold, found on the other folds, would be no
safeguard: what it leaves in its own fold cancels over the folds, so that the tested gaps are the
same to first order. Certificates failed as often, and took 1.4 times as long.

With two classes the path comes from :mod:`skfair.enforcement.certified.offset_path`. With several
classes, each against the rest, a step satisfies a rising share of the limits on the rows. (With two
classes that would lose 1.5 points of accuracy: 120 fits, n=3,000.)

The test is about the models of the folds, but predictions come from their mean. Its rates may
differ. Boosted trees of different folds are certain of
different people, and if few people are selected the mean selects fewer (Adult, n=5000: 0.4% of the
people instead of 0.9%, and a gap of 0.06 instead of 0.01). In other cases its gaps are larger by
half a standard error. So the chosen step is the last certified one at which the rates of the folds,
plus the changes by the mean, satisfy the limits. The changes are measured on the training rows,
each of which was seen by all models but one. The models disagree there nearly as much as elsewhere
(measured and true changes have a correlation of 0.9: 40 samples, n=20,000). Equalized
odds 0.05 was exceeded in 20 of 196 fits without this, and in 3 of 114 with it (trees, half of the
rows positive, n=20,000).

Decisions that are nearly the same for everybody do not count as a solution, neither from the models
of the folds nor from their mean.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import _safe_indexing, check_random_state, gen_batches

from skfair._typing import FloatArray, IntArray
from skfair.enforcement.certified.gap_solver import PathRows
from skfair.enforcement.certified.offset_path import (
    full_step,
    near_rows,
    offset_path,
    starts_with_few,
)
from skfair.enforcement.certified.walk import (
    RowRates,
    Walked,
    last_satisfied,
    people_needed,
    row_rates,
    walk,
)
from skfair.enforcement.decisions.lines import decided
from skfair.enforcement.decisions.offsets import OffsetSearch
from skfair.enforcement.decisions.rows import Features
from skfair.enforcement.decisions.shares import Shares, margins
from skfair.enforcement.strict_evaluation import StrictEvaluation
from skfair.estimators.certificate import SHARES
from skfair.estimators.decisions.bind import DecisionProblem, LabelledRows
from skfair.estimators.decisions.fits import ClassFits
from skfair.estimators.decisions.prediction import decider_attributes
from skfair.estimators.group_probabilities import GroupModels
from skfair.estimators.limits import (
    KEEP_RATE,
    disparity_attributes,
    is_nearly_constant,
    kept_rate,
    selection_range,
    warn_of_changes,
)
from skfair.estimators.wrapped_scores import Split, chances_of
from skfair.groups.row_units import n_people, said_people
from skfair.groups.training_data import TrainingData
from skfair.utils.endings import ENDINGS
from skfair.utils.threads import one_blas_thread
from skfair.utils.warn import warn_user

# The path is found, and the mean is compared with the models of folds, on at most this many rows.
MOST_ROWS = 20_000
# Merging the two smallest groups is advised if it saves more than a third of the people needed.
_MUCH_LESS = 2 / 3


@dataclass(frozen=True, eq=False)
class Folds:
    """Models of folds, their out-of-fold probabilities of the training rows, and the limits."""

    X: Any
    rows: LabelledRows  # groups and classes
    splits: Sequence[Split]  # each row is in one test part
    models: Sequence[Any]  # models of the folds, or one that was fitted before
    chances: FloatArray  # (n_samples, n_classes): out-of-fold probabilities
    shares: Shares  # expected contributions of the rows to the rates, out-of-fold
    groups: GroupModels | None  # None if decisions may use the groups
    strict: StrictEvaluation  # the constraints, and the utility of decisions
    rates: RowRates  # rates of the constraints
    confidence: float
    # Smallest and largest share of selected rows; None if it is free. Two classes only
    wanted: tuple[float, float] | None
    # The share may be outside of ``wanted`` by this: 0, or a standard error for "as before"
    room: float

    def by_all(self, part: IntArray | slice) -> Iterator[tuple[FloatArray, Shares]]:
        """Yield probabilities and shares of some rows by each model, then by the mean of models."""
        X = _safe_indexing(self.X, part)
        chances = [chances_of(model, X, self.rows.classes) for model in self.models]
        if len(chances) < len(self.splits):  # a model that was passed fitted is used for all folds
            chances *= len(self.splits)
        chances.append(np.mean(chances, axis=0))
        joints: Iterable[FloatArray | None] = [None] * len(chances)
        if self.groups is not None:
            joints = self.groups.joints(X, chances)
        # Shares are made one after the other, because with many groups they need much memory.
        for of_model, joint in zip(chances, joints, strict=True):
            yield of_model, self.rows.shares(of_model, joint, part)

    def decide(self, chances: FloatArray, shares: Shares, path: FloatArray) -> NDArray[Any]:
        """Return the decisions of rows at every step of a path, (n_rows, n_steps).

        The path has the shape (n_steps, n_features, n_classes). The decisions are booleans with two
        classes (the second one is chosen), and numbers of classes with more.
        """
        if self.strict.n_classes == 2:
            selected = np.empty((len(chances), len(path)), bool)
            for rows in gen_batches(len(chances), MOST_ROWS):
                # Margins of all rows would take eight times as much memory as the decisions.
                selected[rows] = self.margins(chances[rows], shares[rows], path) > 0
            return selected
        values = chances @ self.strict.utility
        labels = np.empty((len(values), len(path)), np.int64)
        for step, offsets in enumerate(path):
            labels[:, step] = decided(margins(values, shares, offsets))
        return labels

    def margins(self, chances: FloatArray, shares: Shares, path: FloatArray) -> FloatArray:
        """Return utility minus offset of the second of two classes, minus that of the first one.

        The shape is (n_rows, n_steps). The first class has no offsets on paths of two classes.
        """
        gains = chances @ (self.strict.utility[:, 1] - self.strict.utility[:, 0])
        return np.asarray(gains[:, None] - np.asarray(shares @ path[..., 1].T))

    def cut(self, path: FloatArray, thresholds: FloatArray) -> FloatArray:
        """Return a path (n_steps, n_features, 2) with higher thresholds, one for each step.

        The margin of every row falls by the threshold of the step. It is added to the offsets of
        all features of one attribute, because the shares of a row in these add up to 1.
        """
        # Features are numbered group by group, so the features of the first attribute come first.
        everyone = np.arange(path.shape[1]) < 2 * self.rows.n_strata * self.rows.groups.offsets[1]
        added = thresholds[:, None] * everyone
        return np.asarray(path + np.stack([np.zeros_like(added), added], axis=-1))


def certify(
    problem: DecisionProblem,
    data: TrainingData,
    fits: ClassFits,
    draws: Callable[[Any], FloatArray],  # stored with the decider, and not used here
) -> dict[str, Any]:
    """Find decisions whose limits are certified for the population; return fitted attributes.

    ``bind`` has raised already if there are floors, or budgets of several classes.
    """
    rows, goal, spec, splits = problem.rows, problem.goal, problem.spec, fits.splits()
    certificate = spec.certificate
    assert certificate is not None
    assert goal.utility is not None
    strict = StrictEvaluation.of(problem.fair, rows.codes, rows.weights, goal.utility)
    rates = row_rates(strict.rates.constraints, rows.codes, rows.weights, data.units)
    rates = rates.against(certificate.shift)
    rates = replace(rates, is_equalised=True)
    groups = joint = None
    if not spec.group_aware:
        groups, joint, _ = fits.fit_groups(fits.chances)
    shares, weights = rows.shares(fits.chances, joint), rows.weights
    free = decided(fits.chances @ goal.utility)
    share, room = kept_rate(spec.selection_rate, fits.own == 1, weights), 0.0
    # "as before" is an estimate from these rows, so a deviation of one standard error is allowed.
    if isinstance(spec.selection_rate, str):
        room = float(np.linalg.norm(weights)) * (share * (1 - share)) ** 0.5
    wanted = None if share is None else selection_range(share, float(weights.max()))
    models, chances, confidence = fits.models, fits.chances, certificate.confidence
    folds = Folds(
        *(data.X, rows, splits, models, chances, shares, groups, strict, rates, confidence),
        *(wanted, room),
    )
    attributes, offsets, predicted = _last_certified(folds, check_random_state(spec.random_state))
    changes = rows.changes(fits.own, free, predicted, first_rows=data.first_rows)
    if attributes["status_"] == "certified" and wanted is None:
        warn_of_changes(
            changes,
            rows.codes,
            rows.weights,
            objective=goal.name,
            remedy=partial(_remedy, folds, fits.own),
        )
    return {
        "changes_": changes,
        **decider_attributes(rows, fits.models, groups, goal.utility, offsets, draws),
        **attributes,
        "mixed_share_": 0.0,
        "close_call_rate_": np.nan,
        "train_objective_": goal.of(rows.codes, rows.weights, predicted),
        "price_of_fairness_": attributes["price_of_fairness_"] * goal.unit,
        "train_predictions_": rows.classes[predicted],
    }


def _last_certified(
    folds: Folds, rng: np.random.RandomState
) -> tuple[dict[str, Any], FloatArray, IntArray]:
    """Choose the last certified step; return attributes, the offsets, and decisions of the rows.

    The offsets are for new rows, and for the mean of the models. The returned decisions of the
    training rows are out-of-fold decisions. All steps up to the last one that passes are certified
    together, so any of them may be chosen. If no step can be chosen, the status is "no_solution",
    and the first step is returned, whose decisions are the fairest.
    """
    strict, rates, is_pair = folds.strict, folds.rates, folds.strict.n_classes == 2
    codes, weights, shares = folds.rows.codes, folds.rows.weights, folds.shares
    confidence, wanted = folds.confidence, folds.wanted
    path = (_of_two if is_pair else _of_several)(folds, shares, rng)
    decisions = folds.decide(folds.chances, shares, path)
    walked = walk(rates, decisions, confidence)
    n_passed = walked.step + 1  # ``walked.step`` is -1 if the first step fails
    # ``chosen`` is the last passed step at which the mean satisfies the limits, too, or -1.
    mean, changes, by_mean = _by_mean(folds, path[: max(n_passed, 1)])
    chosen = last_satisfied(rates, decisions[:, :n_passed], changes[:, :n_passed], confidence)
    # Steps are visited one at a time, because the decisions of all steps as 64-bit numbers would
    # take more memory than X.
    utility = np.array([strict.utility_of(labels.astype(np.int64)) for labels in decisions.T])
    selected = np.array([weights @ labels for labels in decisions.T])
    constant = float((weights @ strict.values).max())  # utility of the best constant decision
    actual, by_folds = (
        np.bincount(labels.astype(np.int64), weights, strict.n_classes).astype(np.float64)
        for labels in (codes, decisions[:, chosen])
    )
    if wanted is None:
        is_useless = (
            utility[chosen] <= constant < utility.max()
            or is_nearly_constant(by_folds, actual)
            or is_nearly_constant(by_mean[:, chosen], actual)
        )
    else:
        is_useless = not wanted[0] - folds.room <= by_folds[1] <= wanted[1] + folds.room
    is_certified = chosen >= 0 and not is_useless
    step = chosen if is_certified else full_step(len(path)) if is_pair else 0
    labels, free = decisions[:, step].astype(np.int64), decided(folds.chances @ strict.utility)
    reason = "" if is_certified else _warn(folds, labels, free, walked, chosen >= 0)
    attributes = {
        "status_": "certified" if is_certified else "no_solution",
        "_reason": reason,
        **disparity_attributes(strict.rates.bounds, strict.rates.disparities(labels)),
        **walked.reported(step),
        "path_": {
            "accuracy": utility,
            "selection_rate": selected if is_pair else np.full(utility.size, np.nan),
            "disparity": walked.disparities,
            "bound": walked.bounds,
            "p_value": walked.p_values,
            "is_certified": np.arange(utility.size) <= chosen,
        },
        "method_": "path",
        "price_of_fairness_": strict.utility_of(free) - utility[step],
    }
    return attributes, (mean if step < len(mean) else path)[step], labels


@one_blas_thread
def _of_two(folds: Folds, shares: Shares, rng: np.random.RandomState) -> FloatArray:
    """Return the path of two classes, (n_steps, n_features, 2).

    The offsets of the first class are 0. If a share of selected rows is asked for, the path is
    found around the threshold that selects it, and then every step gets its own threshold on the
    out-of-fold margins, so that it selects that share.
    """
    rates, codes, utility = folds.rates, folds.rows.codes, folds.strict.utility
    of_rows, alike, n, weights = folds.rows.groups, None, codes.size, folds.rates.weights
    values, wanted, threshold = folds.chances @ utility, folds.wanted, 0.0
    gains = values[:, 1] - values[:, 0]
    if wanted is not None:
        threshold = float(_thresholds(gains[:, None], weights, *wanted)[0])
    gains -= threshold
    if folds.groups is None:
        strata = folds.rows.strata
        cells = of_rows.cells(None if strata is None else strata.codes, folds.rows.n_strata).codes
        alike = near_rows(cells, folds.chances[:, 1])
    some: IntArray | slice = slice(None)
    if n > MOST_ROWS:
        some = np.sort(rng.choice(n, MOST_ROWS, replace=False))
        rates = rates.part(some)
    n_kinds, from_few = 2 * folds.rows.n_strata, None
    if wanted is None:
        is_rare = float(weights @ (codes == 1)) <= 0.5
        from_few = starts_with_few(folds.rates, gains, is_rare, folds.confidence)
    rows = PathRows(
        rates,
        gains[some],
        shares[some],
        folds.rows.kinds[some],
        n_kinds,
        np.arange(of_rows.offsets[1] * n_kinds),
        from_few,
        None if alike is None else alike[some],
        (folds.chances @ (utility[:, 1] - utility[:, 0]) ** 2)[some],
        max(float(special.ndtri(folds.confidence) - special.ndtri(0.95)), 0.0),
    )
    second = offset_path(rows)
    path = np.stack([np.zeros_like(second), second], axis=-1)
    if wanted is not None:
        path = folds.cut(path, np.full(len(path), threshold))
        margins = folds.margins(folds.chances, shares, path)
        path = folds.cut(path, _thresholds(margins, weights, *wanted))
    return path


def _thresholds(
    margins: FloatArray, weights: FloatArray, low: FloatArray | float, high: FloatArray | float
) -> FloatArray:
    """Return for each step the threshold on margins at which a share from low to high is selected.

    If tied rows make that impossible, the nearest share is selected. If several thresholds are
    possible, the one that changes the number of selected rows least is returned.

    The thresholds are chosen on the rows that are tested later, but without their groups and true
    classes. Errors of rates are nearly the same at all thresholds nearby, so the choice hardly
    makes the tested rates look fairer than they are.
    """
    thresholds, now = np.zeros(margins.shape[1]), weights @ (margins > 0)
    lows, highs = np.broadcast_to(low, now.shape), np.broadcast_to(high, now.shape)
    for step, of_step in enumerate(margins.T):
        order = np.argsort(-of_step, kind="stable")
        # A threshold may lie after these places only, because tied rows stay together.
        last = np.flatnonzero(np.diff(of_step[order], append=-np.inf))
        selected = np.cumsum(weights[order])[last]
        missed = np.maximum(np.maximum(lows[step] - selected, selected - highs[step]), 0.0)
        at = np.lexsort((np.abs(selected - now[step]), missed))[0]
        thresholds[step] = of_step[order][last[at : at + 2]].mean()
    return thresholds


@one_blas_thread
def _of_several(folds: Folds, shares: Shares, rng: np.random.RandomState) -> FloatArray:
    """Return the path of several classes, (n_steps, n_features, n_classes).

    The last step has no offsets. It passes if the decisions of the models satisfy the limits.
    """
    strict, rows = folds.strict, folds.rows
    n_classes, offsets = strict.n_classes, rows.groups.offsets
    features = Features(rows.groups.n_groups, rows.n_strata, n_classes, np.arange(offsets[1]))
    values, kinds, some = folds.chances @ strict.utility, rows.kinds, rows.codes.size
    if some > MOST_ROWS:
        part = np.sort(rng.choice(some, MOST_ROWS, replace=False))
        bound = [
            replace(limited, bound=limited.bound.refitted(part, rows.counts))
            for limited in strict.rates.constraints
        ]
        columns = rows.codes[part], rows.counts[part]
        strict = StrictEvaluation.of(bound, *columns, strict.utility)
        values, shares, kinds = values[part], shares[part], kinds[part]
    search = OffsetSearch(strict, features, kinds, values, shares, rng)
    path = np.zeros((len(SHARES) + 1, features.size, n_classes))
    # The loop goes from the whole limits to small shares, so that each search starts from the
    # offsets of the previous one and stays near the decisions without limits.
    for step, share in reversed(list(enumerate(SHARES))):
        search = search.under(replace(strict, rates=strict.rates.scaled(share)))
        path[step] = search.search().offsets
    return path


@one_blas_thread
def _by_mean(folds: Folds, path: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Compare the decisions of the mean model with those of the model of each fold.

    Returns three things:

    - the path of the mean model; if a share of selected rows is asked for, its thresholds select as
      many rows as the folds do on average,
    - the difference of each rate between the mean and the folds, (n_rates, n_steps),
    - the share of the rows that get each class from the mean, (n_classes, n_steps).
    """
    rates, n = folds.rates, folds.rows.codes.size
    rows: IntArray | slice = slice(None)
    if n > MOST_ROWS:
        rows = np.linspace(0, n - 1, MOST_ROWS).astype(np.int64)
        rates = rates.part(rows)
        rates = replace(rates, weights=rates.weights / rates.weights.sum())
    by_folds: list[NDArray[Any]] = []
    for chances, shares in folds.by_all(rows):
        if len(by_folds) == len(folds.splits) and folds.wanted is not None:  # the mean, at last
            share = np.mean([rates.weights @ selected for selected in by_folds], axis=0)
            margins = folds.margins(chances, shares, path)
            path = folds.cut(path, _thresholds(margins, rates.weights, share, share))
        by_folds.append(folds.decide(chances, shares, path))
    of_mean = by_folds.pop()
    gained = [rates.gained(labels, rates.weights) for labels in (of_mean, *by_folds)]
    total = rates.totals()[:, None]
    changes = (gained[0] - np.mean(gained[1:], axis=0)) / np.where(total > 0, total, 1.0)
    by_mean = [rates.weights @ (of_mean == k) for k in range(folds.strict.n_classes)]
    return path, changes, np.stack(by_mean)


def _more_people(folds: Folds, decisions: NDArray[Any]) -> str:
    """Return how many more people the limits take at the rates of decisions; "" if these do.

    It also says if far fewer people do once the two smallest groups count as one.
    """
    groups, n = folds.rows.groups, n_people(decisions.size, folds.rates.units)
    needed = people_needed(folds.rates, decisions, folds.confidence)
    if needed <= n:
        return ""
    text = f"about {needed - n} more people are needed"
    if groups.n_attributes == 1 and groups.n_groups > 2:
        smallest = np.argsort(groups.counts, kind="stable")[:2].tolist()
        fewer = people_needed(folds.rates, decisions, folds.confidence, smallest)
        if fewer - n < _MUCH_LESS * (needed - n):
            rest = f"about {fewer - n}" if fewer > n else "none"
            names = " and ".join(repr(groups.names[k]) for k in smallest)
            text += f", or {rest} if the smallest groups {names} are merged"
    return text


def _remedy(folds: Folds, own: IntArray) -> str:
    """Return what helps if the selection rate moves; ``own`` are the decisions of the model."""
    if more := _more_people(folds, own):
        return f"At the share that the model itself selects, {more}. The alternative is to raise"
    return KEEP_RATE


def _warn(
    folds: Folds,
    decisions: IntArray,  # the fairest decisions
    free: IntArray,  # the decisions without limits
    walked: Walked,
    is_within: bool,
) -> str:
    """Warn that nothing was certified, with the reason and advice; return the reason.

    ``is_within`` says whether the mean satisfies the limits at some certified step. Such steps were
    refused for another reason.
    """
    rates = folds.rates
    advice = "More people, or a smoother model, may help."
    limits = sorted({float(rates.after_shift(peers.limit)) for peers in rates.compared})
    if is_within and folds.wanted is not None:
        reason = "those that do select another share, because many rows have the same score"
        advice = "Scores of a finer model, or a wider selection_rate=(low, high), may help."
    elif is_within:
        reason = "those that do are nearly the same decision for everybody, or worth no more"
        advice = "More people, a larger max_disparity, or columns that say more, may help."
        if more := _more_people(folds, free):
            advice = f"At the share that decisions without limits select, {more}."
    elif walked.step >= 0:
        reason = (
            "the models of the folds satisfy it, but their mean, which predicts, selects other "
            "rows and does not"
        )
    else:
        reason = "what can be shown of the fairest ones exceeds a limit"
        advice = "The rows at hand may do with a larger max_disparity or a lower confidence."
        if more := _more_people(folds, decisions):
            advice = f"With groups in the same shares, {more}."
    people = said_people(decisions.size, rates.units)
    warn_user(
        f"With {people} no decisions were found of which it can be shown, at a confidence of "
        f"{folds.confidence:g}, that they satisfy max_disparity="
        f"{' and '.join(f'{limit:g}' for limit in limits)} in the population: {reason}. "
        f"{advice} {ENDINGS['no_solution']} status_ is 'no_solution'.",
        ConvergenceWarning,
    )
    return reason
