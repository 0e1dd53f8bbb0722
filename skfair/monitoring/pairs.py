"""Which groups a monitor compares, and what it weighs."""

from __future__ import annotations

import numpy as np

from skfair._typing import FloatArray, IntArray
from skfair.monitoring.batches import check_keys
from skfair.monitoring.gauges import Gauges
from skfair.monitoring.windows import Windows
from skfair.utils.text import listed


class ComparedPairs(Gauges):
    """The pairs of groups of a monitor, and the evidence against their limits."""

    horizon: int
    reference_batches: int | None

    def _begin(self, keys: list[tuple[str, str]]) -> None:
        """Start with groups: (attribute, name), the attribute is empty if there is one limit."""
        check_keys(keys)
        self._attributes, self._names = [a for a, _ in keys], [name for _, name in keys]
        limits = np.array([self._limits_by_attribute.get(a, np.nan) for a in self._attributes])
        wanted = self._reference_names
        is_reference = np.array([name == wanted.get(a) for a, name in keys])
        missing = set(wanted) - {
            a for (a, _), is_own in zip(keys, is_reference, strict=True) if is_own
        }
        if missing:
            raise ValueError(
                f"reference={self.reference!r} is not among the groups {listed(self._names)}. "
                "If it comes later, name all groups: DisparityMonitor(groups=...)."
            )
        has_reference = np.array([a in wanted for a in self._attributes])
        # Pairs are in the order of the names, so that those of two monitors are alike; a reference
        # group is the second one of its pairs.
        order = np.array(sorted(range(len(keys)), key=keys.__getitem__), np.int64)
        order = np.concatenate([order[~is_reference[order]], order[is_reference[order]]])
        i, j = (order[places] for places in np.triu_indices(order.size, 1))
        attributes = np.array(self._attributes)
        is_compared = (attributes[i] == attributes[j]) & np.isfinite(limits[i])
        is_compared &= is_reference[j] | ~has_reference[i]
        i, j = i[is_compared], j[is_compared]
        if self.min_ratio is not None:  # each rate must be so many times the other
            i, j = np.concatenate([i, j]), np.concatenate([j, i])
        n_rates = len(self._spec.rates)
        # (n_pairs, 3): number of the rate, and of both groups
        self._pairs: IntArray = np.stack(
            [np.repeat(np.arange(n_rates), i.size), np.tile(i, n_rates), np.tile(j, n_rates)],
            axis=1,
        )
        self._limits = limits[self._pairs[:, 1]]
        self._counts: FloatArray = np.zeros((len(keys), 2, 2))
        self._windows = self._empty_windows()

    def _empty_windows(self) -> Windows:
        return Windows(
            len(self._pairs), self.horizon, self.reference_batches, self.min_ratio is not None
        )

    @property
    def _keys(self) -> list[tuple[str, str]]:
        return list(zip(self._attributes, self._names, strict=True))

    def _weigh(self) -> tuple[int, int, float]:
        """Set the evidence; return where most of it is: start, pair and direction."""
        if not self._names or not self._windows.watched.any():
            return 0, 0, 1.0
        self.evidence_, start, pair, sign = self._windows.log_total(self._limits)
        return start, pair, sign
