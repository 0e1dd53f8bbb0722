"""Alternating gradient descent: rate and weight on quadratics; the front of smooth k-means."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.cluster import KMeans, kmeans_plusplus

from benchmarks.harness import alternate, data_folder
from benchmarks.variational import fair_clustering_sample, figures_of
from skfair.cluster import FairKMeans
from skfair.papers import Smooth, alternating_gradient

DIM, NOISE, REPEATS = 10, 0.5, 40
PAIRS = [(1, 1), (1, 3), (3, 1), (4, 1), (1, 9), (9, 1), (5, 5)]


def _quadratic(rng: Any, highest: float) -> tuple[Any, Any]:
    """Return the Hessian, with eigenvalues from 1 to highest, and the minimiser."""
    basis = np.linalg.qr(rng.normal(size=(DIM, DIM)))[0]
    return (basis * np.linspace(1, highest, DIM)) @ basis.T, rng.normal(size=DIM)


def convergence(n_a: int, n_b: int, n_iter: int, seed: int = 0) -> tuple[float, float]:
    """Return the log-log slope of the distance to the optimum, and the error of the weight.

    Every row of the iterate is a repetition of its own. The weight is the one whose minimiser is
    nearest to the mean of the last iterates.
    """
    rng = np.random.default_rng(seed)
    (A, a), (B, b) = _quadratic(rng, 1.5), _quadratic(rng, 5 / 3)

    def minimiser(lam: float) -> Any:
        return np.linalg.solve(lam * A + (1 - lam) * B, lam * A @ a + (1 - lam) * B @ b)

    lam = n_a / (n_a + n_b)
    hessian, best = lam * A + (1 - lam) * B, minimiser(lam)
    marks = set(np.unique(np.geomspace(30, n_iter, 20).astype(int)).tolist())
    times: list[int] = []
    gaps: list[float] = []
    n_seen = 0

    def watch(x: Any) -> bool:
        nonlocal n_seen
        n_seen += 1
        if n_seen in marks:
            times.append(n_seen)
            gaps.append(0.5 * np.einsum("ri,ij,rj->r", x - best, hessian, x - best).mean())
        return False

    last = alternating_gradient(
        lambda x, draw: (x - a) @ A + NOISE * draw.normal(size=x.shape),
        lambda x, draw: (x - b) @ B + NOISE * draw.normal(size=x.shape),
        np.tile(a + 2, (REPEATS, 1)),
        n_a=n_a,
        n_b=n_b,
        strong_convexity=1.0,
        lipschitz=5 / 3,
        max_iter=n_iter,
        random_state=seed,
        callback=watch,
    ).theta.mean(axis=0)
    grid = np.linspace(0, 1, 10_001)
    found = grid[np.argmin([np.sum((minimiser(g) - last) ** 2) for g in grid])]
    return float(np.polyfit(np.log(times), np.log(gaps), 1)[0]), float(found - lam)


def smooth_front(
    X: Any, codes: Any, n_clusters: int, splits: Sequence[int], *, n_total: int = 10, seed: int = 1
) -> list[dict[str, float]]:
    """Return cost and balance of smooth fair k-means for the splits of n_total steps."""
    centers = kmeans_plusplus(X, n_clusters, random_state=seed)[0]
    points = []
    for n_a in splits:
        model = FairKMeans(
            n_clusters,
            min_balance=None,
            solver=Smooth(n_a, n_total - n_a),
            init=centers,
            max_iter=150,
            random_state=seed,
        )
        labels = model.fit(X, sensitive_features=codes).labels_
        points.append({"n_a": n_a, **figures_of(X, codes, labels)})
    return points


def main(*, quick: bool = False) -> dict[str, Any]:
    n_iter = 200 if quick else 3000
    results: dict[str, Any] = {"n_iter": n_iter}
    print(f"   two quadratics, d={DIM}, noise {NOISE}, {n_iter} iterations, {REPEATS} repetitions")
    for n_a, n_b in PAIRS[:2] if quick else PAIRS:
        slope, error = convergence(n_a, n_b, n_iter)
        results[f"steps {n_a}:{n_b}"] = {"slope": slope, "weight error": error}
        print(
            f"     {n_a}:{n_b}   slope {slope:6.3f} (bar -1.15 to -0.9)   weight off {error:8.5f}"
        )

    if data_folder() is None:
        return results
    for name, n_clusters in [("adult", 5)] if quick else [("adult", 5), ("bank", 5)]:
        X, codes = fair_clustering_sample(name)
        best = KMeans(n_clusters, n_init=10, random_state=0).fit(X).inertia_ / len(X)
        splits, points = (9,) if quick else (10, 9, 8, 7, 5, 2), []
        timed = alternate(
            {
                "front": lambda X=X, c=codes, k=n_clusters, s=splits, p=points: p.extend(
                    smooth_front(X, c, k, s)
                )
            },
            rounds=1,
        )
        points = points[: len(splits)]
        results[f"smooth {name} K={n_clusters}"] = {**timed["front"], "points": points}
        print(f"   smooth fair k-means, {name} K={n_clusters}: {timed['front']['cpu']:.2f} s")
        for point in points:
            print(
                f"     n_a={point['n_a']:<3} {100 * (point['cost'] / best - 1):6.2f} % dearer, "
                f"{point['relative balance']:.3f} of the data's balance"
            )
    return results


def canary() -> dict[str, Any]:
    """Return the results of a small cell."""
    X, codes = fair_clustering_sample("adult", 1000)
    return {"steps": convergence(1, 3, 200), "front": smooth_front(X, codes, 5, (9, 5))}
