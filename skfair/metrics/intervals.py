"""The noise floor of a metric: its values under permuted groups; and ends of intervals.

``noise_floor`` evaluates a metric again and again, each time with one *deal*: groups that are dealt
out to the rows at random, within strata and within the classes that the metric conditions on.
``_deals`` permutes the groups of rows in memory. ``_lazy_deals`` does the same to Dask collections
by drawing how many rows of each group have which label and score.

``difference_interval``, ``quantiles`` and ``spread`` turn intervals, or resampled values of any
origin, into the numbers that reports print. Reports and ``disparity_bounds`` call them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from inspect import signature
from itertools import islice
from numbers import Integral, Real
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from sklearn.utils import _safe_indexing, check_random_state

from skfair._typing import ColumnLike, ColumnsLike, FloatArray, IntArray, Seed
from skfair.groups.attributes import take_rows
from skfair.groups.cohort import Cohort, columns_for
from skfair.groups.cohort_calls import refuse_ignored, takes_cohort
from skfair.groups.cohort_rows import refuse_kinds
from skfair.groups.declared_rates import rate_named
from skfair.groups.distinct_rows import WeightedRows
from skfair.groups.encoding import encode_groups
from skfair.groups.levels import number_tuples
from skfair.groups.probabilities import GroupProbabilities
from skfair.groups.row_units import read_units
from skfair.groups.strata import read_strata
from skfair.groups.weighted_rows import LazyRows
from skfair.metrics.labels import LABEL_METRICS, LARGEST_RATES
from skfair.utils.dask_collections import is_lazy
from skfair.utils.factorize import Factorized, factorize, first_rows
from skfair.utils.validation import check_labels, check_number

# Which metrics compare rows within a class, so that groups are dealt out within it (``_kept``):
# metrics of scores within true classes, losses if their subset= is not "all", and metrics of labels
# whose rates divide by rows of a true class, or of a predicted one.
_WITHIN_CLASSES = {
    *("inter_group_pairwise_gap", "intra_group_pairwise_gap"),
    *("partial_equal_opportunity_gap", "partial_equalized_odds_gap"),
}
_LOSSES = {"loss_parity_difference", "largest_group_loss"}


# Options of a metric with a value for each row.
_OF_ROWS = ("sensitive_features", "control_features", "sample_weight")
# The arguments of a metric: (y_true, y_score), and the options that change with the deal.
_Deal: TypeAlias = tuple[tuple[Any, Any], dict[str, Any]]


class NoiseFloor(NamedTuple):
    """Values of a metric under random groups, as returned by :func:`noise_floor`.

    Attributes
    ----------
    mean : float
        Mean value over the permutations.
    upper : float
        95th percentile of the values. A measured value below it is not evidence of a difference.
    values : ndarray of shape (n_permutations,)
        The value for each permutation.
    """

    mean: float
    upper: float
    values: FloatArray


@takes_cohort
def noise_floor(
    metric: Callable[..., float],
    y_true: ColumnLike | None,
    y_score: ColumnLike,
    *,
    sensitive_features: ColumnsLike,
    control_features: ColumnsLike | None = None,
    n_permutations: int = 100,
    units: ColumnLike | None = None,
    random_state: Seed = 0,
    **params: Any,
) -> NoiseFloor:
    """Measure the value that a metric shows by chance for groups of these sizes.

    Even identical groups differ by chance in a sample. To measure by how much, the groups are
    permuted at random, which keeps their sizes and removes any relation to the scores. The values
    that the metric still shows are noise. If the groups are identical in the population, with
    scores distributed as in the sample, a new sample of the same size shows ``mean`` on average.

    The noise floor is not a lower limit for other models. It falls with more rows, and it is
    smaller for predictions that hardly vary, such as rare positive decisions. For metrics that
    compare groups within a class, such as true positive rates, groups are permuted within each
    class, so a group with few positives keeps few. For Dask collections, the number of rows of each
    group with each label and score is drawn instead, which has the same distribution.

    Parameters
    ----------
    metric : callable
        A metric of this package with the signature ``metric(y_true, y_score, *, sensitive_features,
        ...)``, or a function of your own, for which groups are permuted over all rows.
    y_true : array-like of shape (n_samples,) or None
        True labels, which are passed to the metric.
    y_score : array-like of shape (n_samples,)
        Scores or predicted labels, which are passed to the metric.
    sensitive_features : array-like of shape (n_samples,) or (n_samples, n_attributes)
        The groups to permute.
    control_features : array-like of shape (n_samples,) or (n_samples, n_columns), default=None
        Control features, which are passed to the metric. Groups are then permuted within each
        stratum.
    n_permutations : int, default=100
        Number of permutations. More permutations make the result more stable, and the cost is
        proportional to their number.
    units : array-like of shape (n_samples,), default=None
        Labels of rows that belong together, for example the person behind each visit. Groups are
        then permuted between units: the rows of a unit get the groups of the rows of another unit,
        in random order. If every unit has a row in each group, groups are so swapped within units.
        Without ``units``, every row is treated as a different person, which underestimates the
        noise if people occur more than once.
    random_state : int, RandomState instance or None, default=0
        Seed of the permutations.
    **params
        Further arguments of the metric, such as ``interval``.

    Returns
    -------
    floor : NoiseFloor
        The result, with ``mean``, ``upper`` (the 95th percentile) and all ``values``. Ratios are
        worse if they are smaller, so compare them with ``numpy.quantile(floor.values, 0.05)``.

    See Also
    --------
    disparity_test : Tests a limit on a disparity.
    sample_size : Number of people that a limit needs.

    Examples
    --------
    >>> import numpy as np
    >>> from skfair.metrics import noise_floor, statistical_parity_gap
    >>> scores, sex = np.linspace(0, 1, 200), np.repeat(["f", "m"], 100)
    >>> floor = noise_floor(
    ...     statistical_parity_gap, None, scores, sensitive_features=sex, random_state=0
    ... )
    >>> floor.values.shape, 0.05 < floor.mean < floor.upper < 0.3
    ((100,), True)
    """
    check_number(n_permutations, "n_permutations", low=1, kind=Integral)
    if not callable(metric):
        raise TypeError(f"metric must be a function, got {metric!r}.")
    rng = check_random_state(random_state)
    if isinstance(y_true, Cohort):
        y_true, y_score, units, own = _columns_of(y_true, metric)
        params |= own
    else:
        params["sensitive_features"] = sensitive_features
        if control_features is not None:
            params["control_features"] = control_features
    kept = _kept(metric, params)
    if units is None and is_lazy(y_true, y_score, *map(params.get, _OF_ROWS)):
        deals = _lazy_deals(y_true, y_score, params, kept, rng)
    else:
        labels = {"y_true": y_true, "y_score": y_score}.get(kept or "")
        deals = _deals((y_true, y_score), params, labels, units, rng)
    numbers: list[float] = []
    for rows, options in islice(deals, n_permutations):
        number = metric(*rows, **{**params, **options})
        if not isinstance(number, Real):
            raise TypeError(f"metric must return a number, got {type(number).__name__}.")
        numbers.append(float(number))
    values = np.array(numbers)
    return NoiseFloor(float(values.mean()), float(np.quantile(values, 0.95)), values)


def _columns_of(people: Cohort, metric: Any) -> tuple[Any, Any, Any, dict[str, Any]]:
    """Return what is true and what is measured of a cohort, its units, and options of a metric."""
    refuse_kinds(people)
    parameters = signature(metric).parameters
    refuse_ignored(getattr(metric, "__name__", "The metric"), people, parameters)
    is_of_labels = "y_score" not in parameters or people.y_score is None
    measured = people.y_pred if is_of_labels else people.y_score
    own = columns_for(people, parameters)
    names = "sensitive_features", "control_features", "sample_weight", "pos_label"
    options = {name: own[name] for name in names if own.get(name) is not None}
    return people.y_true, measured, people.units, options


def _kept(metric: Any, params: Mapping[str, Any]) -> str | None:
    """Return the argument within whose classes groups are dealt out: "y_true", "y_score" or None.

    A metric such as a true positive rate compares groups among the rows of one class, so each group
    keeps its number of rows of that class in every deal.
    """
    while isinstance(metric, partial):  # options may be bound by functools.partial
        metric, params = metric.func, {**metric.keywords, **params}
    name = getattr(metric, "__name__", "")
    by_class = name in _LOSSES and params.get("subset", "all") != "all"
    if by_class or name in _WITHIN_CLASSES:
        return "y_true"
    spec = {**LABEL_METRICS, **LARGEST_RATES}.get(name)
    given = {rate_named(rate).given for rate in spec.rates} if spec is not None else set()
    return {"y_true": "y_true", "y_pred": "y_score"}.get(given.pop()) if len(given) == 1 else None


def _deals(
    rows: tuple[Any, Any], params: Any, labels: Any, units: Any, rng: np.random.RandomState
) -> Iterator[_Deal]:
    """Yield deals without end: the given rows, with the groups permuted within strata and classes.

    ``rows`` are y_true and y_score, ``params`` the options of the metric, and ``labels`` the column
    that ``_kept`` names, or None. The rows of a unit in a stratum and class are a block; without
    ``units`` each row is one. In each deal a block gets the groups of another block of its stratum
    and class, its giver: the rows of the block, in a random order, get the groups of the rows of
    the giver one after the other, and if the giver has fewer rows, its groups repeat. So the groups
    are swapped within a block that has several.
    """
    groups = params["sensitive_features"]
    if isinstance(groups, GroupProbabilities):
        n_rows = len(groups)
    else:
        like = rows[0] if hasattr(rows[0], "index") else rows[1]
        n_rows = encode_groups(groups, like=like).n_samples
    strata = _strata(params.get("control_features"), labels, n_rows)
    together = read_units(units, n_rows)
    block = np.arange(n_rows)
    if together is not None:
        shape = np.array([strata.max() + 1, together.n_units])
        block, _ = number_tuples([strata, together.codes], shape)
    # The rows block by block, with the place of each row there, and the stratum of a block
    by_block, sizes = np.argsort(block, kind="stable"), np.bincount(block)
    starts = np.cumsum(sizes) - sizes
    first, place = starts[block], np.argsort(by_block)
    stratum = strata[by_block[starts]]
    by_stratum, giver = np.argsort(stratum, kind="stable"), np.empty_like(stratum)
    while True:
        # A random order of all blocks, sorted by stratum, is a random order within each stratum.
        drawn = rng.permutation(stratum.size)
        giver[by_stratum] = drawn[np.argsort(stratum[drawn], kind="stable")]
        giver_of_row = giver[block]
        if together is not None:  # the rows of each block in a random order
            shuffled = rng.permutation(n_rows)
            place[shuffled[np.argsort(block[shuffled], kind="stable")]] = np.arange(n_rows)
        order = by_block[starts[giver_of_row] + (place - first) % sizes[giver_of_row]]
        yield rows, {"sensitive_features": _permuted(groups, order)}


def _strata(
    control_features: ColumnsLike | None, labels: ColumnLike | None, n_rows: int
) -> IntArray:
    """Number the combination of stratum and class of each row; either may be None."""
    codes = np.zeros(n_rows, np.int64)
    if control_features is not None:
        codes = read_strata(control_features, n_samples=n_rows).codes
    if labels is None:
        return codes
    factorized = check_labels(labels, "labels", n_rows)
    inside: IntArray = codes * len(factorized.levels) + factorized.codes
    return np.unique(inside, return_inverse=True)[1].astype(np.int64).ravel()


def _permuted(groups: Any, order: IntArray) -> Any:
    """Put the rows of sensitive features of any kind in another order; an index stays as it is."""
    if isinstance(groups, Mapping):
        return {name: _permuted(column, order) for name, column in groups.items()}
    taken = take_rows(groups, order)
    return taken.set_axis(groups.index) if hasattr(groups, "set_axis") else taken


def _lazy_deals(
    y_true: Any, y_score: Any, params: dict[str, Any], kept: str | None, rng: np.random.RandomState
) -> Iterator[_Deal]:
    """Yield deals of Dask collections without end, as few weighted rows that stand for all.

    The collections are read once, as rows with equal labels, score (or bin of it) and group, and a
    count. A deal draws how many rows of each group get which labels and score, which has the same
    distribution as permuting the groups.
    """
    groups = (*map(params.get, _OF_ROWS), params.get("intersectional", True))
    if getattr(getattr(y_score, "dtype", None), "kind", "O") not in "biuf":  # names of classes
        rows = LazyRows({"y_true": y_true, "y_score": y_score}, {}, *groups).kinds()
    else:
        rows = LazyRows({"y_true": y_true}, {"y_score": y_score}, *groups).binned("y_score")
    labels = None if kept is None else rows.columns.get(kept)
    strata = _strata(rows.control_features, labels, rows.weights.size)
    generator = np.random.default_rng(rng.randint(2**31))
    members = [np.flatnonzero(strata == s) for s in range(strata.max() + 1)]
    while True:
        parts = [_dealt_within(rows, own, generator) for own in members]
        values, owners, weights = (np.concatenate(part) for part in zip(*parts, strict=True))
        columns = {name: _safe_indexing(column, values) for name, column in rows.columns.items()}
        dealt = replace(rows.groups, codes=rows.groups.codes[:, owners])
        options = {"sensitive_features": dealt, "sample_weight": weights}
        control_features = rows._replace(columns=columns).control_features
        if control_features is not None:
            options["control_features"] = control_features
        yield (columns.get("y_true"), columns["y_score"]), options


def _dealt_within(
    rows: WeightedRows, stratum: IntArray, rng: np.random.Generator
) -> tuple[IntArray, IntArray, FloatArray]:
    """Deal the groups out within one stratum, given as the numbers of its rows.

    Returned are, for each combination of labels and group that was drawn, the row that has these
    labels, the row that has this group, and the weight. Each group in turn draws as many rows as it
    has from those that are left (a multivariate hypergeometric draw). The weight of n drawn rows
    with the same labels is random with the mean and the variance of their sum, since the weights
    of single rows are not known.
    """
    counts, squares = rows.counts[stratum], rows.squares[stratum]
    columns = [factorize(_safe_indexing(column, stratum)) for column in rows.columns.values()]
    # By number of the distinct labels and score ("value"): rows in all, rows left, and weights
    value, first = _distinct(columns)
    weights = np.bincount(value, rows.weights[stratum])
    left = total = np.bincount(value, counts).astype(np.int64)
    mean = weights / total
    variance = np.maximum(np.bincount(value, squares) / total - mean**2, 0.0)
    of_groups = [factorize(codes[stratum]) for codes in rows.groups.codes]
    owner, first_owned = _distinct(of_groups)
    kept, weight, n_kept = [], [], []
    for size in np.bincount(owner, counts).astype(np.int64).tolist():
        drawn = rng.multivariate_hypergeometric(left, size, method="marginals")
        left = left - drawn
        # The variance of the sum of ``drawn`` out of ``total`` weights, without replacement.
        spread = np.sqrt(variance * drawn * (total - drawn) / np.maximum(total - 1, 1))
        noise = spread * rng.standard_normal(drawn.size) if spread.any() else 0.0
        chosen = np.flatnonzero(drawn)
        kept.append(chosen)
        weight.append(np.maximum(drawn * mean + noise, 0.0)[chosen])
        n_kept.append(chosen.size)
    values = stratum[first[np.concatenate(kept)]]
    return values, stratum[np.repeat(first_owned, n_kept)], np.concatenate(weight)


def _distinct(columns: list[Factorized]) -> tuple[IntArray, IntArray]:
    """Number the distinct rows of some columns, and return the first row of each number as well."""
    shape = np.array([len(column.levels) for column in columns])
    numbers, _ = number_tuples([column.codes for column in columns], shape)
    return numbers, first_rows(numbers)


def difference_interval(
    values: FloatArray,
    low: FloatArray,
    high: FloatArray,
    place: IntArray | int,
    correlation: FloatArray | float = 0.0,  # correlation of each value with the value at its place
) -> tuple[FloatArray, FloatArray]:
    """Return the ends of intervals of the differences ``values - values[place]``.

    Each value has an interval from ``low`` to ``high``. The lower end of a difference is as far
    below it as the root of the sum of two squares: the distance from the first value down to its
    own end, and from the second value up to its own. The upper end is made in the same way. For
    shares with Wilson's intervals this is Newcombe's interval (1998, method 10). For means it is
    about Welch's. If both values rest on the same units, they are correlated, and twice the product
    of the two distances and the correlation is taken off, as in his interval for pairs.
    """
    below, above = values - low, high - values
    difference = values - values[place]
    return (
        difference - joined(below, above[place], correlation),
        difference + joined(above, below[place], correlation),
    )


def joined(first: FloatArray, second: FloatArray, correlation: FloatArray | float) -> FloatArray:
    """Return the error of a difference, given the errors of both values and their correlation."""
    squares = first**2 + second**2 - 2 * correlation * first * second
    return np.sqrt(np.maximum(squares, 0.0))


def quantiles(draws: FloatArray, tail: float) -> tuple[FloatArray, FloatArray]:
    """Return the quantiles ``tail`` and 1 - ``tail`` over the first axis of resampled values.

    Undefined resamples (NaN) are ignored. If all of them are undefined, both ends are NaN.
    """
    undefined = ~np.isfinite(draws).any(axis=0)
    filled = np.where(undefined, 0.0, draws)  # else numpy warns of columns without numbers
    low, high = np.nanquantile(filled, [tail, 1 - tail], axis=0)
    return np.where(undefined, np.nan, low), np.where(undefined, np.nan, high)


def spread(draws: FloatArray) -> float:
    """Return the standard deviation of the resamples that are defined; NaN if there is only one."""
    finite = draws[np.isfinite(draws)]
    return float(finite.std(ddof=1)) if finite.size > 1 else np.nan
