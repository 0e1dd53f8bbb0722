"""The groups that a monitor compares: their counts, and the evidence against limits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from skfair._typing import FloatArray, IntArray
from skfair.groups.limits import Limit
from skfair.groups.rates import CellMeans, hits_and_rows, rates_of
from skfair.groups.table import GroupTable
from skfair.metrics.labels import LABEL_METRICS
from skfair.monitoring.batches import check_keys, checked_batch, reference_keys
from skfair.monitoring.windows import Windows, aligned, checked_numbers
from skfair.utils.text import check_text, listed, plural
from skfair.utils.validation import check_number
from skfair.utils.warn import warn_user

# The attributes of the cells of a monitor.
COLUMNS = ("attribute", "group")
# The largest number that a float counts exactly.
MOST_ROWS = 2**53


class Alarm(NamedTuple):
    """An alarm for the pair of groups whose disparity exceeds its limit.

    Attributes
    ----------
    batch : int, str, date or datetime
        The batch after which the alarm was raised.
    since : int, str, date or datetime
        The batch in which the change probably began.
    rate : str
        Name of the rate that differs.
    higher : str
        The group with the higher rate.
    lower : str
        The group with the lower rate.
    disparity : float
        The difference of the rates since the change. With ``reference_batches`` it is the increase
        of this difference, and with ``min_ratio`` the ratio of the lower to the higher rate.
    standard_error : float
        Standard error of ``disparity``.
    """

    batch: Any
    since: Any
    rate: str
    higher: str
    lower: str
    disparity: float
    standard_error: float


class Comparison:
    """Counts of groups and the evidence against limits, since the first batch of a monitor.

    ``+`` adds the rows of two monitors with the same settings, which watched side by side.

    Parameters
    ----------
    settings : dict
        Those of the monitor.
    table : GroupTable
        Rows of each group by true and predicted class. Its cells are attribute and group; the
        attribute is empty if there is one limit.

    Attributes
    ----------
    limit : float or dict
        ``min_ratio`` or ``max_disparity``, as users gave it.
    limits : dict of str to float
        The limit of each attribute that has one; the key "" is the common limit.
    references : dict of str to str
        The name of the reference group of each attribute that has one.
    pairs : ndarray of shape (n_pairs, 3)
        The number of the rate, and of both groups.
    limits_of_pairs : ndarray of shape (n_pairs,)
        The limit of each pair.
    windows : Windows
        The sums since each start.
    first : dict of int to batch
        The number or time of the batch of each start.
    repeated : GroupTable
        The rows of each group that were evidence in batches in which units repeat, with the sums
        over units.
    met : set of float
        The number of each unit that was read.
    """

    def __init__(self, settings: dict[str, Any], table: GroupTable) -> None:
        self.settings, self.table, self.keys = settings, table, table.cells()
        check_keys(self.keys)
        self.rates = LABEL_METRICS[f"{settings['constraint']}_difference"].rates
        self.is_ratio = settings["min_ratio"] is not None
        self.limit: Limit = settings["min_ratio" if self.is_ratio else "max_disparity"]
        limits = self.limit if isinstance(self.limit, Mapping) else {"": self.limit}
        self.limits = {a: value for a, value in limits.items() if value is not None}
        self.references = reference_keys(settings["reference"], self.limit)
        self.pairs = self._pairs()
        of_groups = np.array([self.limits.get(a, np.nan) for a, _ in self.keys])
        self.limits_of_pairs = of_groups[self.pairs[:, 1]]
        lengths = settings["horizon"], settings["reference_batches"]
        self.windows = Windows(len(self.pairs), *lengths, self.is_ratio)
        self.first: dict[int, Any] = {}
        n_groups = len(self.keys)
        self.repeated = replace(
            table,
            sums={"weights": np.zeros((n_groups, 2, 2)), "squares": np.zeros((n_groups, 2, 2))}
            | {"products": np.zeros((n_groups, 4, 2, 2))},
        )
        self.met: set[float] = set()

    @property
    def names(self) -> list[str]:
        """The names of the groups."""
        return [name for _, name in self.keys]

    @property
    def n_batches(self) -> int:
        """How many batches were read."""
        return max(self.first, default=-1) + 1

    @property
    def last(self) -> Any:
        """The number or time of the last batch; None before the first one."""
        return self.first[self.n_batches - 1] if self.first else None

    @property
    def n_rows(self) -> int:
        """How many rows were read; those of each attribute are the same."""
        n_attributes = len({a for a, _ in self.keys})
        return int(self.table.weights.sum() / max(1, n_attributes))

    def _pairs(self) -> IntArray:
        """Return the pairs of groups of each rate: of an attribute with a limit, all or with one.

        They are in the order of the names, so that those of two monitors agree; a reference
        group is the second one of its pairs.
        """
        is_reference = np.array([name == self.references.get(a) for a, name in self.keys], bool)
        attributes = np.array([a for a, _ in self.keys], str)
        if self.keys and not set(self.references) <= set(attributes[is_reference]):
            raise ValueError(
                f"reference={self.settings['reference']!r} is not among the groups "
                f"{listed(self.names)}. If it comes later, name all groups: "
                "DisparityMonitor(levels=...)."
            )
        order = np.array(sorted(range(len(self.keys)), key=self.keys.__getitem__), np.int64)
        order = np.concatenate([order[~is_reference[order]], order[is_reference[order]]])
        i, j = (order[places] for places in np.triu_indices(order.size, 1))
        has_limit, has_reference = (
            np.array([a in known for a, _ in self.keys], bool)
            for known in (self.limits, self.references)
        )
        is_compared = (attributes[i] == attributes[j]) & has_limit[i]
        is_compared &= is_reference[j] | ~has_reference[i]
        i, j = i[is_compared], j[is_compared]
        if self.is_ratio:  # each rate must be this many times the other
            i, j = np.concatenate([i, j]), np.concatenate([j, i])
        n_rates = len(self.rates)
        rate = np.repeat(np.arange(n_rates), i.size)
        return np.stack([rate, np.tile(i, n_rates), np.tile(j, n_rates)], axis=1)

    def with_groups(self, table: GroupTable) -> Comparison:
        """Return the evidence about the groups of another table; there is none for new ones."""
        made = Comparison(self.settings, table)
        made.first, made.met = dict(self.first), self.met
        made.repeated += self.repeated
        place = {key: k for k, key in enumerate(made.keys)}
        at = np.array([place[key] for key in self.keys], np.int64)
        rate, i, j = self.pairs.T
        numbers = np.full((len(self.rates), len(place), len(place)), -1)
        numbers[rate, at[i], at[j]] = np.arange(rate.size)
        made.windows = self.windows.with_pairs(numbers[tuple(made.pairs.T)])
        if not self.keys:  # nothing was missed before the first group
            made.windows.watched[:] = True
        return made

    def __add__(self, other: Comparison) -> Comparison:
        n_both = len(self.met & other.met)
        if n_both:
            warn_user(
                f"{plural(n_both, 'unit')} of both monitors: the rows of each are evidence twice, "
                "which makes false alarms likelier. Let one monitor read all rows of a unit."
            )
        made = Comparison(self.settings, self.table + other.table)
        left, right = self.with_groups(made.table), other.with_groups(made.table)
        made.first, windows = aligned((left.windows, left.first), (right.windows, right.first))
        made.windows = windows[0].merged(windows[1])
        made.repeated, made.met = left.repeated + right.repeated, self.met | other.met
        return made

    def add(self, rows: GroupTable, batch: Any, evidence: GroupTable) -> None:
        """Add the rows of a batch, all of known groups, and a start before it.

        Evidence are the rows of units that no earlier batch had.
        """
        number = self.n_batches
        self.windows.start(number)
        starts, first = self.windows.starts.tolist(), {**self.first, number: batch}
        self.first = {start: first[start] for start in starts}
        self.table += rows
        n_groups = len(self.keys)
        nothing = {x: np.zeros((n_groups, *own.shape[1:])) for x, own in evidence.sums.items()}
        new = replace(self.table, sums=nothing) + evidence
        sums = np.array([hits_and_rows(new.weights, rate) for rate in self.rates])
        if new.has_units:
            worth = [shares_worth(new.means(r), self.repeated.means(r)) for r in self.rates]
            sums *= np.array(worth)[:, None]
            self.repeated += new
        rate, i, j = self.pairs.T
        of_pairs = np.stack([sums[rate, :, i], sums[rate, :, j]], axis=1)
        self.windows.add(of_pairs, self.settings["min_group_size"], self.limits_of_pairs)

    def evidence(self) -> tuple[float, int, int, float]:
        """Return the evidence, and where most of it is: start, pair and direction."""
        if not self.windows.watched.any():
            return 0.0, 0, 0, 1.0
        return self.windows.log_total(self.limits_of_pairs)

    def alarm(self, batch: Any, start: int, pair: int, sign: float) -> Alarm:
        """Return what was found after a batch: the pair that differs since a start."""
        rate, i, j = self.pairs[pair].tolist()
        size, error = self.windows.estimate(start, pair)
        size = self.limits_of_pairs[pair] - size if self.is_ratio else size
        since = self.first[int(self.windows.starts[start])]
        higher, lower = (self.names[k] for k in ((i, j) if sign > 0 else (j, i)))
        size, error = float(sign * size), float(error)
        return Alarm(batch, since, self.rates[rate], higher, lower, size, error)

    def recent(self, attribute: str) -> tuple[float, float]:
        """Return the disparity of about the last ten blocks, and its standard error."""
        wanted = self.references.get(attribute)
        own = np.array([a == attribute for a, _ in self.keys], bool)
        if self.is_ratio and wanted is not None:  # of others to the reference group
            own &= np.array([name == wanted for name in self.names], bool)
        known = self.windows.known[own[self.pairs[:, 1]]]
        rows = np.where(known[:, :, 1] > 0, known[:, :, 1], np.nan)
        rates = known[:, :, 0] / rows
        (first, second), (of_first, of_second) = rates.T, (rates * (1 - rates) / rows).T
        if not self.is_ratio:
            sizes, errors = first - second, np.sqrt(of_first + of_second)
            distances, sizes = np.abs(sizes), np.abs(sizes) if wanted is None else sizes
        else:
            base = np.where(first > 0, first, np.nan)
            sizes = second / base
            errors = np.sqrt(of_second + sizes**2 * of_first) / base
            distances = -sizes if wanted is None else -np.minimum(sizes, 1 / np.maximum(sizes, 1.0))
        if np.isnan(distances).all():
            return np.nan, np.nan
        worst = int(np.nanargmax(distances))
        return float(sizes[worst]), float(errors[worst])

    def rates_by_name(self) -> dict[str, dict[str, float]]:
        """Return each rate of each group, over all rows."""
        by_rate = {}
        for rate in self.rates:
            values = rates_of(self.table.weights, rate).tolist()
            by_rate[rate] = dict(zip(self.names, values, strict=True))
        return by_rate

    def impact_ratios(self) -> dict[str, dict[str, float]]:
        """Return each rate of each group over that of its reference group, or the highest one."""
        ratios: dict[str, dict[str, float]] = {}
        for rate, values in self.rates_by_name().items():
            ratios[rate] = {}
            for attribute in dict.fromkeys(a for a, _ in self.keys):
                own = {name: values[name] for a, name in self.keys if a == attribute}
                highest = np.nanmax([*own.values(), -np.inf])
                base = own.get(self.references.get(attribute, ""), highest)
                ratios[rate] |= {n: v / base if base > 0 else np.nan for n, v in own.items()}
        return ratios

    def to_dict(self) -> dict[str, Any]:
        """Return plain lists and numbers."""
        state = {
            "groups": self.keys,
            "counts": self.table.weights.tolist(),
            "first": list(self.first.items()),
            "windows": self.windows.to_dict(),
        }
        if self.met:  # a monitor that was given no units has the state that it always had
            repeated = {name: own.tolist() for name, own in self.repeated.sums.items()}
            state |= {"units": sorted(self.met), "repeated": repeated}
        return state

    @classmethod
    def restored(cls, settings: dict[str, Any], state: dict[str, Any]) -> Comparison:
        """Return what was stored; raise for what no monitor can have seen."""
        keys = [texts(key, 2) for key in state["groups"]]
        counts = checked_numbers(state["counts"], "counts", (len(keys), 2, 2), 0)
        made = cls(settings, GroupTable.of_keys(COLUMNS, keys, {"weights": counts}))
        for attribute in {a for a, _ in made.keys}:
            total = counts[[a == attribute for a, _ in made.keys]].sum()
            if total != made.n_rows or total > MOST_ROWS:
                raise ValueError(f"The counts are not those of {made.n_rows} rows.")
        units = state.get("units", [])
        made.met = set(checked_numbers(units, "units", (len(units),), 0, 1).tolist())
        if units:
            most, shapes = float(made.n_rows) ** 2, made.repeated.sums
            repeated = {
                name: checked_numbers(state["repeated"][name], name, own.shape, 0, most)
                for name, own in shapes.items()
            }
            made.repeated = replace(made.repeated, sums=repeated)
            if (repeated["weights"] > counts).any() or len(units) > made.n_rows:
                raise ValueError("More rows or units are evidence than were read.")
        last = None
        for number, batch in state["first"]:
            what = "The number of a batch"
            check_number(number, what, made.n_batches, MOST_ROWS, kind=int)
            made.first[number] = last = checked_batch(batch, last)
        made.windows = made.windows.restored(state["windows"], made.n_rows, made.n_batches)
        if list(made.first) != made.windows.starts.tolist():
            raise ValueError("The batches of the state are not those of its sums.")
        with np.errstate(all="ignore"):
            evidence = made.evidence()[0]
        if not np.isfinite(evidence):
            raise ValueError(f"The evidence of the state is {evidence}.")
        return made


def shares_worth(new: CellMeans, before: CellMeans) -> FloatArray:
    """Return the share of the rows of a batch, which has units, that independent ones are worth.

    What the rows of a unit have in common is known from earlier batches. If the batch itself said
    it, one whose few hits are spread over many units would count more than one with many, and the
    weighted mean of rates would be too low: up to 83% of streams at the limit had a false alarm.
    The batch adds as large a share to what earlier rows are worth as it adds rows, or units if that
    is less. Without earlier rows each unit counts once.
    """
    (rows, units), (rows_before, units_before) = (
        (own.weight, own.weight**2 / np.maximum(own.sums[2, 0], 1.0)) for own in (new, before)
    )
    known = np.maximum(rows_before, 1.0), np.maximum(units_before, 1.0)
    worth = before.n_effective * np.minimum(rows / known[0], units / known[1])
    worth = np.where(rows_before > 0, np.minimum(worth, rows), units)
    return np.asarray(worth / np.maximum(rows, 1.0))


def texts(values: list[Any], n: int) -> tuple[Any, ...]:
    """Return this many texts; raise for anything else."""
    if len(values) != n or not all(isinstance(text, str) for text in values):
        raise ValueError(f"Expected {n} texts, got {values!r:.100}.")
    check_text(values, "The name")
    return tuple(values)
