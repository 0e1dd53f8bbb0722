"""Pooled estimates of small intersections against what was counted: subsamples of Adult.

Cells are sex x race x age (five classes). Known are the rates of the whole table, in cells of 200
rows or more; how far the estimates of a subsample are from them, and how many of the intervals
contain them.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from skfair.datasets import load_local
from skfair.metrics import group_report

RATES = ("base_rate", "selection_rate", "true_positive_rate")
KNOWN = 200


def main(*, quick: bool = False) -> list[dict[str, Any]]:
    """Measure errors and coverage for three sizes of the subsamples."""
    adult = load_local("adult")
    ages = pd.cut(adult.data["age"], [0, 25, 35, 45, 55, 200]).astype(str)
    groups = adult.sensitive_features[["sex", "race"]].astype(str).assign(age=ages)
    y = pd.factorize(adult.target, sort=True)[0]
    X = StandardScaler().fit_transform(adult.data.select_dtypes("number").fillna(0))
    predicted = LogisticRegression(max_iter=500).fit(X, y).predict(X)
    true = group_report(y, predicted, sensitive_features=groups).drop("overall")
    true = true[true["n"] >= KNOWN]
    rng, results = np.random.default_rng(0), []
    for n in (500, 1000, 3000):
        found: dict[tuple[str, str], list[pd.DataFrame]] = {}
        for _ in range(5 if quick else 50):
            rows = rng.integers(0, y.size, n)
            for estimate in ("raw", "pooled"):
                report = group_report(
                    *(y[rows], predicted[rows]),
                    sensitive_features=groups.iloc[rows],
                    estimate=estimate,
                ).reindex(true.index)
                for rate in RATES:
                    ends = report[[rate, f"{rate}_low", f"{rate}_high"]].to_numpy(float)
                    known = np.column_stack([ends, true[rate]])
                    found.setdefault((estimate, rate), []).append(known[~np.isnan(ends[:, 0])])
        for (estimate, rate), parts in found.items():
            value, low, high, wanted = np.concatenate(parts).T
            error = float(np.sqrt(np.mean((value - wanted) ** 2)))
            covered, width = float(np.mean((low <= wanted) & (wanted <= high))), np.mean(high - low)
            own = {"estimate": estimate, "rate": rate, "n": n, "error": error, "covered": covered}
            results.append(own | {"width": float(width)})
            print(f"{n:5} {rate:19} {estimate:6} error {error:.3f} covered {covered:.3f}")
    return results


def canary() -> list[dict[str, Any]]:
    """Return the results of a small cell."""
    return main()


def numbers(results: list[dict[str, Any]]) -> dict[str, float]:
    """Return errors of selection rates of the smallest subsamples, and how many intervals hold."""
    few = min(one["n"] for one in results)
    found = {"rows": few}
    for one in results:
        if one["n"] == few and one["rate"] == "selection_rate":
            found[one["estimate"]] = one["error"]
            if one["estimate"] == "pooled":
                found["covered"] = one["covered"]
    return found


if __name__ == "__main__":
    main(quick="--quick" in sys.argv)
