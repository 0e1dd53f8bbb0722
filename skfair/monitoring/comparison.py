"""The groups that a monitor compares: their counts, and the evidence against limits.

:class:`skfair.monitoring.DisparityMonitor` holds one ``Comparison``. It knows which groups and
limits there are, and turns the rows of a batch into counts of pairs of groups.
:class:`skfair.monitoring.windows.Windows` turns these counts into evidence and knows pairs only by
their numbers.

A group has a *key* (attribute, name). If there is one limit for all, groups are crossed and the
attribute is an empty string.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from skfair._typing import FloatArray, IntArray
from skfair.groups.declared_rates import hits_and_rows, rate_named, rates_of
from skfair.groups.limits import Limit
from skfair.groups.rates import CellMeans
from skfair.groups.shared_units import SharedUnits, unit_products
from skfair.groups.table import GroupTable, total
from skfair.groups.two_rates import worth_of_pairs
from skfair.monitoring.batches import check_keys, checked_batch, compared_by, reference_keys
from skfair.monitoring.windows import Windows, aligned, checked_numbers
from skfair.utils.rounding import TINY
from skfair.utils.text import check_text, listed, plural
from skfair.utils.validation import check_number
from skfair.utils.warn import warn_user

# The attributes of the cells of a monitor.
COLUMNS = ("attribute", "group")
# Up to this number, a float counts rows exactly.
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

    ``+`` adds the rows of two monitors that have the same settings and saw different rows.

    Parameters
    ----------
    settings : dict
        The settings of the monitor (``monitor._SETTINGS``).
    table : GroupTable
        Rows of each group by true and predicted class. Its cells are the keys of the groups.

    Attributes
    ----------
    limit : float or dict
        ``min_ratio`` or ``max_disparity``, as users gave it.
    limits : dict of str to float
        The limit of each attribute that has one, or {"": limit} if there is one limit for all.
    references : dict of str to str
        The name of the reference group of each attribute that has one.
    pairs : ndarray of shape (n_pairs, 3)
        The number of the rate (in ``rates``), and of both groups (in ``keys``).
    limits_of_pairs : ndarray of shape (n_pairs,)
        The limit of each pair.
    windows : Windows
        The sums since each start.
    first : dict of int to batch
        For each start, by the number of its batch from 0, the id of that batch (a number or time).
    repeated : GroupTable
        The rows of each group that were evidence in batches with several rows of a unit, with the
        sums over units. They tell what the rows of a unit have in common.
    shared : ndarray of shape (n_groups, 4, n_groups, 4)
        Of the same rows, sums over units of products: what a unit adds to one group, by true and
        predicted class, times what it adds to another. They tell how the rates vary together.
    met : set of float
        The numbers (hashes) of all units that were read.
    last_rows : str
        A digest of the rows of the last batch without units, or "".
    """

    def __init__(self, settings: dict[str, Any], table: GroupTable) -> None:
        self.settings, self.table, self.keys = settings, table, table.cells()
        check_keys(self.keys)
        self.rates = compared_by(settings["constraint"]).rates
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
        self.shared = np.zeros((n_groups, 4, n_groups, 4))
        self.met: set[float] = set()
        self.last_rows = ""

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
        """The id of the last batch, or None before the first one."""
        return self.first[self.n_batches - 1] if self.first else None

    @property
    def n_rows(self) -> int:
        """How many rows were read; every attribute counts each of them once."""
        n_attributes = len({a for a, _ in self.keys})
        return int(self.table.weights.sum() / max(1, n_attributes))

    def _pairs(self) -> IntArray:
        """Return the pairs of groups that are compared in each rate: (n_pairs, 3), see ``pairs``.

        They are the pairs within each attribute that has a limit, or those with its reference group
        if it has one, which then is the second group. They are in the order of the names, so that
        two monitors with the same groups have the same pairs. For ratios each pair is there in both
        orders.
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
        if self.is_ratio:  # each rate must be at least the limit times the other
            i, j = np.concatenate([i, j]), np.concatenate([j, i])
        n_rates = len(self.rates)
        rate = np.repeat(np.arange(n_rates), i.size)
        return np.stack([rate, np.tile(i, n_rates), np.tile(j, n_rates)], axis=1)

    def with_groups(self, table: GroupTable) -> Comparison:
        """Return a copy with the groups of a larger table; there is no evidence on new groups."""
        made = Comparison(self.settings, table)
        made.first, made.met, made.last_rows = dict(self.first), self.met, self.last_rows
        made.repeated += self.repeated
        place = {key: k for k, key in enumerate(made.keys)}
        at = np.array([place[key] for key in self.keys], np.int64)
        four = np.arange(4)
        made.shared[np.ix_(at, four, at, four)] = self.shared
        # By rate and new numbers of both groups: the number of the pair here, or -1
        rate, i, j = self.pairs.T
        numbers = np.full((len(self.rates), len(place), len(place)), -1)
        numbers[rate, at[i], at[j]] = np.arange(rate.size)
        made.windows = self.windows.with_pairs(numbers[tuple(made.pairs.T)])
        if not self.keys:  # no group had rows before, so nothing was missed
            made.windows.watched[:] = True
        return made

    def __add__(self, other: Comparison) -> Comparison:
        """Return the comparison of the rows of both, with the groups and the starts of both."""
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
        made.shared = left.shared + right.shared
        return made

    def add(self, rows: GroupTable, batch: Any, evidence: GroupTable) -> None:
        """Add a start, and the rows of the batch after it, all of known groups.

        ``rows`` are all rows, which count for rates. ``evidence`` are the rows of units that no
        earlier batch had, by which pairs are compared.
        """
        number = self.n_batches
        self.windows.start(number)
        starts, first = self.windows.starts.tolist(), {**self.first, number: batch}
        self.first = {start: first[start] for start in starts}
        self.table += rows
        n_groups = len(self.keys)
        nothing = {x: np.zeros((n_groups, *own.shape[1:])) for x, own in evidence.sums.items()}
        new, cells = total([replace(self.table, sums=nothing), evidence])
        # (n_rates, 2, n_groups): hits and rows, as many as independent rows would be
        sums = np.array([hits_and_rows(new.weights, rate) for rate in self.rates])
        if new.has_units:
            worth = [shares_worth(new.means(r), self.repeated.means(r)) for r in self.rates]
            sums *= np.array(worth)[:, None]
        rate, i, j = self.pairs.T
        of_pairs = np.stack([sums[rate, :, i], sums[rate, :, j]], axis=1)
        if new.has_units:
            shared = self._shared_by(evidence, cells[n_groups:])
            of_pairs *= self._worth_of_pairs(of_pairs[:, :, 1], new, shared)[:, None, None]
            self.repeated, self.shared = self.repeated + new, self.shared + shared
        self.windows.add(of_pairs, self.settings["min_group_size"], self.limits_of_pairs)

    def _shared_by(self, evidence: GroupTable, cells: IntArray) -> FloatArray:
        """Return what the units of a batch add to ``shared``; ``cells`` are numbers of groups."""
        parts, sums, n_groups = evidence.units, evidence.unit_sums, len(self.keys)
        if parts is None or sums is None or not parts.are_split:
            return np.zeros_like(self.shared)
        products = unit_products(replace(parts, cells=cells[parts.cells]), sums, n_groups)
        return np.asarray(products.toarray(), np.float64).reshape(self.shared.shape)

    def _worth_of_pairs(self, rows: FloatArray, new: GroupTable, shared: FloatArray) -> FloatArray:
        """Return, for each pair, independent rows per row in a batch whose units share both groups.

        ``rows`` are those of the two groups in the batch, (n_pairs, 2). As in ``shares_worth``,
        what rates have in common is estimated from earlier batches. If a smaller part of the units
        is in both groups now, the correlation is smaller in the same proportion.
        """
        worth = np.ones(len(self.pairs))
        if not self.shared.any() or not shared.any():
            return worth
        for number, rate in enumerate(self.rates):
            own = np.flatnonzero(self.pairs[:, 0] == number)
            i, j = self.pairs[own, 1:].T
            before = shared_units(self.shared, self.repeated.weights, rate)
            now = shared_units(shared, new.weights, rate)
            common = [
                of.overlap(i, j) / np.sqrt(np.maximum(of.overlap(i, i) * of.overlap(j, j), TINY))
                for of in (before, now)
            ]
            part = np.minimum(common[1] / np.maximum(common[0], TINY), 1.0)
            rates = np.nan_to_num(rates_of(self.repeated.weights, rate))
            (n1, n0), limits = rows[own].T, np.minimum(self.limits_of_pairs[own], 1.0)
            worth[own] = worth_of_pairs(
                rates[i] * n1,
                n1,
                rates[j] * n0,
                n0,
                1 - limits if self.is_ratio else limits,
                self.is_ratio,
                before.correlations(i, j) * part,
                now.overlap(i, j),
            )
        return worth

    def evidence(self) -> tuple[float, int, int, float]:
        """Return the log evidence, and where most of it is, see ``Windows.log_total``."""
        if not self.windows.watched.any():
            return 0.0, 0, 0, 1.0
        return self.windows.log_total(self.limits_of_pairs)

    def alarm(self, batch: Any, start: int, pair: int, sign: float) -> Alarm:
        """Return the alarm after a batch, for the start, pair and direction with most evidence."""
        rate, i, j = self.pairs[pair].tolist()
        size, error = self.windows.estimate(start, pair)
        # For a limit r on a ratio, D = r - q / p, so the ratio is r - D.
        size = self.limits_of_pairs[pair] - size if self.is_ratio else size
        since = self.first[int(self.windows.starts[start])]
        higher, lower = (self.names[k] for k in ((i, j) if sign > 0 else (j, i)))
        size, error = float(sign * size), float(error)
        return Alarm(batch, since, self.rates[rate], higher, lower, size, error)

    def recent(self, attribute: str) -> tuple[float, float]:
        """Return the disparity of about the last ten blocks, and its standard error.

        It is that of the worst pair of the attribute, in any rate: the largest difference, or the
        smallest ratio. With a reference group the difference is signed, and the ratio furthest from
        1 is taken, above or below. NaN before the first block.
        """
        wanted = self.references.get(attribute)
        own = np.array([a == attribute for a, _ in self.keys], bool)
        if self.is_ratio and wanted is not None:  # pairs with the reference in the denominator
            own &= np.array([name == wanted for name in self.names], bool)
        known = self.windows.known[own[self.pairs[:, 1]]]
        rows = np.where(known[:, :, 1] > 0, known[:, :, 1], np.nan)
        rates = known[:, :, 0] / rows
        # The rates of both groups of each pair, and the variances of these
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
        """Return each rate of each group over the rate of its reference group.

        If its attribute has none, the highest rate of the attribute takes its place.
        """
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
        """Return the state as plain lists and numbers, without the settings."""
        state = {
            "groups": self.keys,
            "counts": self.table.weights.tolist(),
            "first": list(self.first.items()),
            "windows": self.windows.to_dict(),
        }
        if self.met:  # monitors without units do not store these
            repeated = {name: own.tolist() for name, own in self.repeated.sums.items()}
            state |= {"units": sorted(self.met), "repeated": repeated}
        if self.shared.any():
            state["shared"] = self.shared.tolist()
        if self.last_rows:
            state["last_rows"] = self.last_rows
        return state

    @classmethod
    def restored(cls, settings: dict[str, Any], state: dict[str, Any]) -> Comparison:
        """Return the comparison that ``to_dict`` stored; raise if no monitor can have stored it."""
        keys = [texts(key, 2) for key in state["groups"]]
        counts = checked_numbers(state["counts"], "counts", (len(keys), 2, 2), 0)
        made = cls(settings, GroupTable.of_keys(COLUMNS, keys, {"weights": counts}))
        for attribute in {a for a, _ in made.keys}:
            total = counts[[a == attribute for a, _ in made.keys]].sum()
            if total != made.n_rows or total > MOST_ROWS:
                raise ValueError(
                    f"The state has {made.n_rows} rows, but counts {total:g} of {attribute!r}."
                )
        [made.last_rows] = texts([state.get("last_rows", "")], 1)
        units = state.get("units", [])
        made.met = set(checked_numbers(units, "units", (len(units),), 0, 1).tolist())
        if units:
            most, shapes = float(made.n_rows) ** 2, made.repeated.sums
            repeated = {
                name: checked_numbers(state["repeated"][name], name, own.shape, 0, most)
                for name, own in shapes.items()
            }
            made.repeated = replace(made.repeated, sums=repeated)
            if "shared" in state:
                shape = made.shared.shape
                made.shared = checked_numbers(state["shared"], "shared", shape, 0, most)
            if (repeated["weights"] > counts).any() or len(units) > made.n_rows:
                raise ValueError("More rows or units are evidence than were read.")
        last = None
        for number, batch in state["first"]:
            what = "The number of a batch"
            check_number(number, what, made.n_batches, MOST_ROWS, kind=int)
            made.first[number] = last = checked_batch(batch, last)
        # A row of a pair is worth up to about as many rows as there are, see worth_of_pairs.
        most_rows = made.n_rows**2 if made.shared.any() else made.n_rows
        made.windows = made.windows.restored(state["windows"], most_rows, made.n_batches)
        if list(made.first) != made.windows.starts.tolist():
            raise ValueError("The batches of the state are not those of its sums.")
        with np.errstate(all="ignore"):
            evidence = made.evidence()[0]
        if not np.isfinite(evidence):
            raise ValueError(
                f"The sums of the state give the evidence {evidence}, no finite number."
            )
        return made


def shares_worth(new: CellMeans, before: CellMeans) -> FloatArray:
    """Return, for each group, independent rows per row in a batch with several rows of a unit.

    What the rows of a unit have in common is estimated from earlier batches. If it were estimated
    from the batch itself, a batch whose few hits are spread over many units would count more than
    one with many hits, and the weighted mean of rates would be too low: up to 83% of streams at the
    limit had a false alarm. If the batch has a fraction f of the earlier rows, or of the earlier
    units if that is less, its rows are worth f times what the earlier rows are worth. Without
    earlier rows each unit counts once. Numbers of units are Kish's.
    """
    (rows, units), (rows_before, units_before) = (
        (own.weight, own.weight**2 / np.maximum(own.sums[2, 0], 1.0)) for own in (new, before)
    )
    known = np.maximum(rows_before, 1.0), np.maximum(units_before, 1.0)
    worth = before.n_effective * np.minimum(rows / known[0], units / known[1])
    worth = np.where(rows_before > 0, np.minimum(worth, rows), units)
    return np.asarray(worth / np.maximum(rows, 1.0))


def shared_units(products: FloatArray, weights: FloatArray, rate: str) -> SharedUnits:
    """Return what groups share in a rate, given ``Comparison.shared`` and the weights of groups.

    A unit adds c to the rate of a group, where c is the sum of its hits minus the rate times its
    rows, over the rows of the group. Both are sums of some of the four numbers of a unit.
    """
    own = rate_named(rate)
    hits, rows = (np.ravel(part).astype(float) for part in (own.above, own.below))
    n_hits, n_rows = hits_and_rows(weights, rate)
    safe = np.where(n_rows > 0, n_rows, np.inf)[:, None]
    influences, shares = (hits - (n_hits[:, None] / safe) * rows) / safe, rows / safe
    sums = [np.einsum("ap,apbq,bq->ab", own, products, own) for own in (influences, shares)]
    return SharedUnits(*sums)


def texts(values: list[Any], n: int) -> tuple[Any, ...]:
    """Return stored names as a tuple; raise unless they are ``n`` texts."""
    if len(values) != n or not all(isinstance(text, str) for text in values):
        raise ValueError(f"Expected {n} texts, got {values!r:.100}.")
    check_text(values, "The name")
    return tuple(values)
