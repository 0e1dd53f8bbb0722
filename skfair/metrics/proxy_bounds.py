r"""Bounds on a disparity if groups are known by probability only.

A *cell* is a set of people with the same proxies. The data show the share pi_u of each group u in a
cell, and the share p of the people in an event (a label and a prediction), but not which event goes
with which group. So the share of people who are in the group and in the event lies between
max(0, pi_u + p - 1) and min(pi_u, p), the bounds of Frechet. Their sums over the cells bound a rate
of the group. Every person who is counted for one group is taken from another group, so the largest
rate of one group and the smallest rate of the other can occur together (Kallus, Mao and Zhou 2022).
Coarser cells make the bounds wider, never false.

``disparity_bounds`` makes probabilities (``_probabilities``) and cells (``_cells``), and computes
all numbers once for the sample and once for each resample (``_differences``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils import check_random_state

from skfair._typing import (
    BoolArray,
    ClassLabel,
    ColumnLike,
    ColumnsLike,
    FloatArray,
    IntArray,
    Seed,
)
from skfair.groups.attributes import Role, check_alignment, check_missing, read_columns
from skfair.groups.cohort_calls import spreads_cohort
from skfair.groups.declared_rates import rate_named, rates_of
from skfair.groups.encoding import encode_groups
from skfair.groups.outcomes import outcomes_of
from skfair.groups.probabilities import GroupProbabilities, check_length
from skfair.groups.row_units import RowUnits, read_units
from skfair.metrics.disparity_tests import MeasuredConstraint, requested_metric
from skfair.metrics.intervals import quantiles
from skfair.metrics.labels import LabelSpec
from skfair.utils.dask_collections import is_lazy
from skfair.utils.factorize import factorize
from skfair.utils.rounding import TINY
from skfair.utils.text import listed
from skfair.utils.validation import check_number, check_probability, check_weights

if TYPE_CHECKING:
    import pandas as pd

PROXIES = Role("proxies", "Proxy", "cell")  # the words for proxies in error messages
# Smaller cells are merged until they have this many rows. In cells of fewer rows, the shares of
# groups look more certain than they are, and bounds would be too narrow by about half a standard
# error of a rate in a cell.
ROWS_OF_CELL = 100
# If shares of groups come from known groups, each cell also needs this many rows of known group.
KNOWN_OF_CELL = 30
# Cells that are made from probabilities instead of proxies are at most this many.
MOST_CELLS = 50


@spreads_cohort
def disparity_bounds(
    metric: str | MeasuredConstraint | Callable[..., float],
    y_true: ColumnLike | None,
    y_pred: ColumnLike,
    *,
    sensitive_features: ColumnsLike,
    accuracy: float | ColumnsLike | None = None,
    known_groups: ColumnLike | None = None,
    proxies: ColumnsLike | None = None,
    sample_weight: ColumnLike | None = None,
    units: ColumnLike | None = None,
    pos_label: ClassLabel = None,
    confidence: float = 0.95,
    n_bootstrap: int = 200,
    random_state: Seed = 0,
) -> pd.DataFrame:
    r"""Bound the true disparity if groups are known only by probability, or guessed.

    If each row has only a probability of belonging to a group, rates can be estimated by weighting
    rows with these probabilities. Such weighted rates are biased if predictions depend on the group
    beyond what the probabilities explain, and the data do not show by how much. The bounds hold for
    any such dependence.

    Parameters
    ----------
    metric : str, constraint or metric
        The disparity to bound. It must be a difference of rates of labels, such as
        ``"demographic_parity"``, ``"equal_opportunity"`` or ``"equalized_odds"``.
    y_true : array-like of shape (n_samples,) or None
        True labels. They may be None if the rates do not need them.
    y_pred : array-like of shape (n_samples,)
        Predicted labels.
    sensitive_features : GroupProbabilities or array-like of shape (n_samples,)
        Probabilities of the groups, or the guessed group of each row. Guessed groups require
        ``accuracy`` or ``known_groups``.
    accuracy : float or table of shape (n_groups, n_groups), default=None
        Accuracy of guessed groups. With two groups, a single number gives the share of correct
        guesses among the people who are guessed to be in a group. A table has one row for each
        guessed group, with the shares of the true groups among its people.
    known_groups : array-like of shape (n_samples,), default=None
        True groups of a random subset of the rows, with None or NaN for all other rows. The shares
        of the groups are then taken from this subset, so probabilities need not be calibrated.
    proxies : array-like of shape (n_samples,) or (n_samples, n_columns), default=None
        Variables from which the probabilities were derived, such as the place of residence. People
        with the same proxies form a cell. If None, people with similar probabilities form a cell.
        Cells of less than 100 rows are merged.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the rows.
    units : array-like of shape (n_samples,), default=None
        Labels of rows that belong together, for example the person behind each visit. Units are
        then resampled with all of their rows. Without ``units``, every row is treated as a
        different person.
    pos_label : label, default=None
        The class that counts as positive. It may be None if the labels are 0 and 1, -1 and 1, or
        booleans. It is required for other labels, such as 1 and 2 or strings.
    confidence : float, default=0.95
        Confidence level at which the true difference of the population lies between ``lower_low``
        and ``upper_high``.
    n_bootstrap : int, default=200
        Number of resamples of the rows, which must be at least 20.
    random_state : int, RandomState instance or None, default=0
        Seed of the resampling.

    Returns
    -------
    bounds : DataFrame
        Table with one row for each rate and pair of groups. ``weighted`` is the weighted rate of
        the ``first`` group minus the weighted rate of the ``second``. ``lower`` and ``upper`` bound
        the true difference in this sample, and ``lower_low`` and ``upper_high`` bound the true
        difference in the population. ``width`` is ``upper_high`` minus ``lower_low``. If
        ``known_groups`` is given, ``corrected`` is the weighted difference after its error, as
        estimated from the known groups, has been removed, with a confidence interval.

    See Also
    --------
    skfair.GroupProbabilities : Groups that are known by probability.
    outcome_bounds : Bounds if groups are known, and outcomes only for some rows.

    Notes
    -----
    Probabilities must be calibrated in each cell: among the people with probability 0.3, 30% must
    be members. ``known_groups`` must be a random subset. Bounds are narrow only if probabilities
    are close to 0 or 1. Confidence limits use the basic (reverse percentile) bootstrap, since
    bounds from few rows are too narrow. Each resample costs O(n G) for G groups.

    References
    ----------
    Kallus, Mao and Zhou (2022), Assessing algorithmic fairness with unobserved protected class
    using data combination, Management Science 68; Chen, Kallus, Mao, Svacha and Udell (2019),
    Fairness under unawareness, FAccT.

    Examples
    --------
    >>> import numpy as np
    >>> from skfair import GroupProbabilities
    >>> from skfair.metrics import disparity_bounds
    >>> chance = np.repeat([0.95, 0.05], 500)
    >>> sex, y_pred = GroupProbabilities({"f": chance, "m": 1 - chance}), [1, 0, 1, 1, 0] * 200
    >>> bounds = disparity_bounds("demographic_parity", None, y_pred, sensitive_features=sex)
    >>> bounds[["first", "second", "lower", "upper"]].round(2).values.tolist()
    [['f', 'm', -0.1, 0.1]]
    """
    import pandas as pd

    given = y_true, y_pred, sensitive_features, known_groups, proxies, sample_weight
    spec = difference_of("disparity_bounds", metric, confidence, n_bootstrap, *given)
    if y_true is None and spec.uses_y_true:
        raise ValueError(f"Bounds on the {listed(spec.rates)} need y_true, got None.")
    of_rows = outcomes_of(y_true, y_pred, pos_label)
    n = of_rows.size
    for column in (y_pred, y_true, known_groups, proxies, sample_weight):
        check_alignment(sensitive_features, column)
    table = _probabilities(sensitive_features, accuracy, known_groups)
    check_length(table, n)
    weights = check_weights(sample_weight, n)
    weights = np.ones(n) if weights is None else weights
    known = None if known_groups is None else _known(known_groups, table)
    rows = spec.rates, of_rows, table.values, _cells(table, proxies, known), known
    rng = np.random.default_rng(check_random_state(random_state).randint(2**31))
    sample = _differences(weights, *rows)
    picks = resamples(read_units(units, n), n, n_bootstrap, rng)
    draws = [_differences(weights * picked, *rows) for picked in picks]
    first, second = (np.array(table.names)[side] for side in np.triu_indices(len(table.names), 1))
    columns = {
        "rate": np.repeat(spec.rates, first.size),
        "first": np.tile(first, len(spec.rates)),
        "second": np.tile(second, len(spec.rates)),
    }
    columns |= _described(sample, np.stack(draws, axis=1), 0.5 * (1 - confidence))
    if known is None:
        columns = {name: column for name, column in columns.items() if "corrected" not in name}
    return pd.DataFrame(columns)


def difference_of(
    name: str,  # of the function of bounds
    metric: str | MeasuredConstraint | Callable[..., float],
    confidence: float,
    n_bootstrap: int,
    *columns: Any,
) -> LabelSpec:
    """Check arguments that all bounds take, and return the difference of rates that is bounded."""
    check_probability(confidence, "confidence")
    check_number(n_bootstrap, "n_bootstrap", low=20, kind=Integral)
    if is_lazy(*columns):
        raise TypeError(f"{name} resamples rows in memory. compute() the collections.")
    spec = requested_metric(metric, "difference")[1]
    are_means = spec is not None and all(rate_named(rate).is_mean for rate in spec.rates)
    if spec is None or spec.kind != "difference" or not are_means:
        raise ValueError(
            f"{name} is for differences of rates of labels, not for metric={metric!r}. Pass a name "
            "such as 'equal_opportunity' or 'equalized_odds'."
        )
    return spec


def resamples(
    together: RowUnits | None, n_rows: int, n_bootstrap: int, rng: np.random.Generator
) -> Iterator[IntArray]:
    """Yield how often each row is in each resample of the rows, or of units with all their rows."""
    together = together or RowUnits(np.arange(n_rows), n_rows)
    owners, size = together.codes, together.n_units
    for _ in range(n_bootstrap):
        yield np.bincount(rng.integers(size, size=size), minlength=size)[owners]


def _differences(
    weights: FloatArray,
    rates: tuple[str, ...],
    outcomes: IntArray,  # 2 * true class + predicted class
    chances: FloatArray,  # (n_samples, n_groups)
    cells: IntArray,  # the cell of each row
    known: IntArray | None,  # the true group of each row, -1 if it is not known
) -> FloatArray:
    """Return four numbers for each rate and pair of groups: (4, n_rates * n_pairs).

    The numbers are the difference of the rates weighted by probabilities, the smallest and the
    largest true difference, and the weighted difference as corrected by known groups (uncorrected
    if ``known`` is None). ``weights`` are the weights of the rows, or of a resample of the rows.
    """
    n_groups, n_cells = chances.shape[1], int(cells.max()) + 1
    # ``joint`` is the weight of the rows of each cell and outcome.
    joint = _sums(4 * cells + outcomes, weights, np.ones((weights.size, 1)), 4 * n_cells)
    # ``own`` and ``members`` are the weights and groups of the rows that give the shares of groups
    # in cells: all rows, or the rows of known group.
    own, members = weights, chances
    weighted = corrected = _sums(outcomes, weights, chances, 4)
    if known is not None:
        part = np.flatnonzero(known >= 0)
        cells, own, members = cells[part], weights[part], np.eye(n_groups)[known[part]]
        # Rows of known group show the error of the probabilities for each outcome. The error is
        # scaled to the weight of all rows.
        scale = weights.sum() / max(float(own.sum()), TINY)
        corrected = weighted + _sums(outcomes[part], own * scale, members - chances[part], 4)
        corrected = np.maximum(corrected, 0.0)
    of_groups = _sums(cells, own, members, n_cells)
    totals = of_groups.sum(axis=1, keepdims=True)
    shares = np.where(totals > 0, of_groups / np.where(totals > 0, totals, 1.0), 1 / n_groups)
    first, second = np.triu_indices(n_groups, 1)
    parts = []
    for rate in rates:
        low, high = _rate_bounds(joint.reshape(-1, 2, 2), shares, rate)
        seen, right = (rates_of(table.T.reshape(-1, 2, 2), rate) for table in (weighted, corrected))
        sides = ((seen, seen), (low, high), (high, low), (right, right))
        parts.append([a[first] - b[second] for a, b in sides])
    return np.concatenate(parts, axis=1)


def _sums(codes: IntArray, weights: FloatArray, values: FloatArray, n_codes: int) -> FloatArray:
    """Add up weights times values, (n_rows, n_groups), over the rows of each code."""
    sums = [np.bincount(codes, weights * own, n_codes) for own in values.T]
    return np.stack(sums, axis=1)


def _rate_bounds(
    outcomes: FloatArray,  # (n_cells, 2, 2): weights by true and predicted class
    groups: FloatArray,  # (n_cells, n_groups): the share of each group
    rate: str,
) -> tuple[FloatArray, FloatArray]:
    """Return the smallest and the largest rate of each group that the cells allow.

    A rate is a / (a + o): a is the weight of the group's rows in the numerator, and o the weight of
    its other rows in the denominator. The rate grows with a and falls with o, and the largest a can
    occur together with the smallest o.
    """
    above, below = rate_named(rate).above, rate_named(rate).below
    mass = outcomes.sum(axis=(1, 2))
    ends = []  # the smallest and the largest a of each group, and then the same for o
    for entries in (above, below - above):
        share = (outcomes * entries).sum(axis=(1, 2)) / np.where(mass > 0, mass, 1.0)
        least = np.maximum(groups + share[:, None] - 1, 0.0)
        most = np.minimum(groups, share[:, None])
        ends.append((mass @ least, mass @ most))
    (fewest, most), (fewest_others, most_others) = ends
    with np.errstate(invalid="ignore", divide="ignore"):
        low, high = fewest / (fewest + most_others), most / (most + fewest_others)
    return np.nan_to_num(low, nan=0.0), np.nan_to_num(high, nan=1.0)


def _described(sample: FloatArray, draws: FloatArray, tail: float) -> dict[str, Any]:
    """Return the columns of the table, from ``_differences`` of the sample and of all resamples."""
    weighted, _, _, corrected = sample
    ends = quantiles(draws[3], tail)
    of_bounds = widened(sample[1:3], draws[1:3], tail)
    of_known = {"corrected": corrected, "corrected_low": ends[0], "corrected_high": ends[1]}
    return {"weighted": weighted} | of_bounds | of_known


def widened(
    sample: FloatArray,  # (2, n_comparisons): lower and upper bounds in the sample
    draws: FloatArray,  # (2, n_bootstrap, n_comparisons): the same in the resamples
    tail: float,
) -> dict[str, Any]:
    """Return the columns of bounds, in the sample and in the population.

    The bounds are widened for sampling error by the basic bootstrap: 2 * bound - quantile of the
    resampled bounds.
    """
    lower, upper = sample
    low = np.minimum(2 * lower - np.quantile(draws[0], 1 - tail, axis=0), lower)
    high = np.maximum(2 * upper - np.quantile(draws[1], tail, axis=0), upper)
    low, high = np.clip(low, -1, 1), np.clip(high, -1, 1)
    sides = {"lower": lower, "upper": upper, "lower_low": low, "upper_high": high}
    return sides | {"width": high - low}


def _probabilities(groups: Any, accuracy: Any, known_groups: Any) -> GroupProbabilities:
    """Return the probability of each group for each row.

    If groups are guessed, a row gets the probabilities that ``accuracy`` states for its guess.
    Without ``accuracy``, the guess gets the probability 1, and ``known_groups`` correct it later.
    """
    if isinstance(groups, GroupProbabilities):
        if accuracy is not None:
            raise ValueError(
                f"accuracy={accuracy!r} is for guessed groups, and sensitive_features are "
                "probabilities already. Pass one of the two."
            )
        return groups
    guessed = encode_groups(groups)
    names, codes = guessed.names, guessed.codes[0]
    if accuracy is None and known_groups is None:
        raise ValueError(
            "sensitive_features are guessed groups, so accuracy= or known_groups= must say how "
            "right they are. Or pass skfair.GroupProbabilities."
        )
    if len(names) < 2:
        raise ValueError(f"sensitive_features has the group {names[0]!r} only.")
    if accuracy is None:
        return GroupProbabilities(np.eye(len(names))[codes], list(names))
    if np.ndim(accuracy) == 0:
        check_number(accuracy, "accuracy", 0, 1)
        if len(names) > 2:
            raise ValueError(
                f"A single number, accuracy={accuracy!r}, is for two groups, but there are "
                f"{len(names)}. Pass a table with one row for each guessed group, which holds the "
                "shares of the true groups."
            )
        accuracy = np.array([[accuracy, 1 - accuracy], [1 - accuracy, accuracy]])
    else:
        accuracy = GroupProbabilities(accuracy).values
        if accuracy.shape != (len(names), len(names)):
            raise ValueError(
                f"accuracy must have a row and a column for each of the groups {listed(names)}, "
                f"got the shape {accuracy.shape}."
            )
    return GroupProbabilities(accuracy[codes], list(names))


def _known(known_groups: Any, table: GroupProbabilities) -> IntArray:
    """Return the number of the true group of each row, or -1 if it is not known."""
    factorized = factorize(np.asarray(known_groups, dtype=object))
    check_length(table, factorized.codes.size)
    unknown = [str(level) for level in factorized.levels if str(level) not in table.names]
    if unknown:
        raise ValueError(
            f"known_groups has {listed(unknown)}, but the groups are {listed(table.names)}."
        )
    n_known = int((factorized.codes >= 0).sum())
    if n_known < ROWS_OF_CELL:
        raise ValueError(
            f"known_groups has the group of {n_known} rows, but shares of groups need "
            f"{ROWS_OF_CELL} rows or more. Leave it out, and say the accuracy of the guess."
        )
    places = np.array([table.names.index(str(level)) for level in factorized.levels] + [-1])
    return places[factorized.codes]


def _cells(table: GroupProbabilities, proxies: Any, known: IntArray | None) -> IntArray:
    """Return the cell of each row.

    The cell is the combination of the proxies of the row if ``proxies`` are given. Otherwise rows
    with the same probabilities are a cell. If there would be more than ``MOST_CELLS`` cells, rows
    with the same likeliest group are divided at quantiles of the probability of this group instead.
    """
    is_known = np.ones(len(table), bool) if known is None else known >= 0
    if proxies is not None:
        columns = read_columns(proxies, PROXIES, len(table))
        factorized = [factorize(values) for _, values in columns]
        for (name, _), proxy in zip(columns, factorized, strict=True):
            check_missing(proxy, name or "proxies", PROXIES)
        codes = np.unique([proxy.codes for proxy in factorized], axis=1, return_inverse=True)[1]
        return _merged(codes.ravel(), is_known)
    kinds = np.unique(table.values.round(9), axis=0, return_inverse=True)[1].ravel()
    if kinds.max() < MOST_CELLS:
        return _merged(kinds, is_known)
    likeliest, largest = table.values.argmax(axis=1), table.values.max(axis=1)
    # The number of rows in a cell must be enough for shares of groups, contain enough rows of known
    # group, and keep the number of cells small.
    least = max(ROWS_OF_CELL, int(KNOWN_OF_CELL / is_known.mean()) + 1, kinds.size // MOST_CELLS)
    cells = np.zeros(len(table), np.int64)
    for group in np.unique(likeliest):
        own = np.flatnonzero(likeliest == group)
        n_cells = max(own.size // least, 1)
        ends = np.quantile(largest[own], np.arange(1, n_cells) / n_cells)
        cells[own] = np.searchsorted(ends, largest[own]) + group * kinds.size
    return _merged(cells, is_known)


def _merged(codes: IntArray, is_known: BoolArray) -> IntArray:
    """Number the cells from 0, after all cells with too few rows were merged into one.

    A cell is too small if it has fewer than ``ROWS_OF_CELL`` rows, or fewer than ``KNOWN_OF_CELL``
    rows of known group. If the small cells together are still too small, larger ones are added.
    """
    _, codes, sizes = np.unique(codes, return_inverse=True, return_counts=True)
    codes = codes.ravel()
    fullness = np.minimum(
        sizes / ROWS_OF_CELL, np.bincount(codes, is_known, sizes.size) / KNOWN_OF_CELL
    )
    order = np.argsort(fullness, kind="stable")
    n_merged = int((fullness < 1).sum())
    while 0 < n_merged < sizes.size and fullness[order[:n_merged]].sum() < 1:
        n_merged += 1
    number = np.zeros(sizes.size, np.int64)
    number[order[n_merged:]] = np.arange(1, sizes.size - n_merged + 1)
    return np.unique(number[codes], return_inverse=True)[1].astype(np.int64).ravel()
