"""Tests of two rates, counted: size and power on a grid of group sizes, limits and rates.

Size is the largest chance, over all rates that differ by the limit or more, that a test declares
them to be within it; it must not exceed 5%. Power is compared with the exact test at equal rates.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from scipy import stats

from skfair.groups.two_rates import exact_statistic, melded, rejection_rate, score

ALPHA = 0.05


def exact_region(n1: int, n0: int, limit: float) -> np.ndarray:
    """Return the tables that the exact test rejects, as a boolean array."""
    statistic = np.round(exact_statistic(n1, n0, limit, False), 8)
    edge = np.linspace(limit, 1, 401)
    chances = np.einsum(
        "ei,ej->eij",
        stats.binom.pmf(np.arange(n1 + 1), n1, edge[:, None]),
        stats.binom.pmf(np.arange(n0 + 1), n0, np.clip(edge - limit, 0, 1)[:, None]),
    ).reshape(edge.size, -1)
    order = np.argsort(statistic.ravel(), kind="stable")
    total = chances[:, order].cumsum(axis=1).max(axis=0)
    last = np.searchsorted(statistic.ravel()[order], statistic.ravel(), side="right") - 1
    return total[last].reshape(statistic.shape) <= ALPHA


def size_of(region: np.ndarray, limit: float) -> float:
    """Return the largest chance of a region on and beyond the edge of the hypothesis."""
    n1, n0 = region.shape[0] - 1, region.shape[1] - 1
    further = limit + (1 - limit) * np.linspace(0, 0.5, 6)
    return max(float(rejection_rate(region, n1, n0, one, False).max()) for one in further)


def power_of(region: np.ndarray) -> np.ndarray:
    """Return the chance of a region at equal rates."""
    n1, n0 = region.shape[0] - 1, region.shape[1] - 1
    rates = np.linspace(0.02, 0.98, 49)[:, None]
    first = stats.binom.pmf(np.arange(n1 + 1), n1, rates)
    second = stats.binom.pmf(np.arange(n0 + 1), n0, rates)
    return ((first @ region) * second).sum(axis=1)


def main(*, quick: bool = False) -> list[dict[str, Any]]:
    """Measure the grid."""
    sizes = (10, 30, 60) if quick else range(5, 61, 5)
    results = []
    for n1 in sizes:
        for n0 in sizes:
            for limit in (0.1, 0.2, 0.3) if quick else (0.05, 0.1, 0.15, 0.2, 0.3, 0.4):
                k1, k0 = np.meshgrid(np.arange(n1 + 1.0), np.arange(n0 + 1.0), indexing="ij")
                best = exact_region(n1, n0, limit)
                regions = {"exact": best}
                for name, test in (("melded", melded), ("score", score)):
                    p = test(k1.ravel(), n1, k0.ravel(), n0, limit, False)
                    regions[name] = p.reshape(k1.shape) <= ALPHA
                for name, region in regions.items():
                    lost = power_of(best) - power_of(region)
                    results.append(
                        {
                            "test": name,
                            "n1": n1,
                            "n0": n0,
                            "limit": limit,
                            "size": size_of(region, limit),
                            "power_lost": float(lost.max()),
                        }
                    )
    for name in ("exact", "melded", "score"):
        own = [one for one in results if one["test"] == name]
        print(
            f"{name:7s} largest size {max(one['size'] for one in own):.4f}, power lost at most "
            f"{max(one['power_lost'] for one in own):.3f}, cells {len(own)}"
        )
    return results


if __name__ == "__main__":
    main(quick="--quick" in sys.argv)
