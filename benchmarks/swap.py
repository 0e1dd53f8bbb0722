"""Swap descent and swap front: time per child against plain numpy, growth with n, and one epoch."""

import time
from statistics import median
from typing import Any

import numpy as np
from sklearn.cluster import MiniBatchKMeans
from sklearn.datasets import make_blobs

from benchmarks.harness import alternate, data_folder, timed
from skfair.papers import Swap
from skfair.papers.safairkm.swap import PAIRS


def adult_points(n_rows: int | None = 5000) -> tuple[Any, Any]:
    """Return points and groups: columns standardised, rows of length 1, then a sample of them."""
    from skfair.datasets import load_local

    bunch = load_local("safairkm_adult")
    X = bunch.data.to_numpy(np.float64)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    codes = np.unique(bunch.sensitive_features["demograph"], return_inverse=True)[1]
    if n_rows is None:
        return X, codes.astype(np.int64)
    rows = np.random.RandomState(1).choice(len(X), n_rows, replace=False)
    return np.ascontiguousarray(X[rows]), codes[rows].astype(np.int64)


class PlainSearch:
    """Algorithm 3 in plain numpy: masks, copies of labels, objectives from scratch."""

    def __init__(self, X: Any, codes: Any, n_clusters: int, n_groups: int, seed: int) -> None:
        self.X, self.codes, self.K, self.J = X, codes, n_clusters, n_groups
        self.rng = np.random.default_rng(seed)

    def counts(self, labels: Any) -> Any:
        """Return the rows per cluster and group."""
        cells = labels * self.J + self.codes
        return np.bincount(cells, minlength=self.K * self.J).reshape(self.K, self.J)

    def centers(self, labels: Any) -> Any:
        """Return the means of the clusters."""
        centers = np.zeros((self.K, self.X.shape[1]))
        for k in range(self.K):
            members = labels == k
            if members.any():
                centers[k] = self.X[members].mean(axis=0)
        return centers

    def child(self, labels: Any, n_a: int, n_b: int, n_candidates: int) -> tuple[Any, float, float]:
        """Apply one pair to a labelling: labels, cost and balance."""
        X, codes, labels = self.X, self.codes, labels.copy()
        centers, counts = self.centers(labels), self.counts(labels)
        if n_a:
            batch = self.rng.integers(len(X), size=n_a)
            gaps = X[batch][:, None] - centers
            labels[batch] = (gaps * gaps).sum(axis=2).argmin(axis=1)
            centers, counts = self.centers(labels), self.counts(labels)
        for _ in range(n_b):
            balances = counts.min(axis=1) / np.maximum(counts.max(axis=1), 1)
            low = balances.argmin()
            coming, leaving = counts[low].argmin(), counts[low].argmax()
            after = counts.copy()
            after[:, coming] -= 1
            after[:, leaving] += 1
            can = after.min(axis=1) / after.max(axis=1) > balances[low]
            can[low] = False
            if not can.any():
                break
            distance = ((centers - centers[low]) ** 2).sum(axis=1)
            target = np.where(can, distance, np.inf).argmin()
            direction = centers[low] - centers[target]
            outside = np.flatnonzero((labels == target) & (codes == coming))
            inside = np.flatnonzero((labels == low) & (codes == leaving))
            i = self.rng.choice(outside, n_candidates)
            j = self.rng.choice(inside, n_candidates)
            i, j = i[(X[i] @ direction).argmax()], j[(X[j] @ direction).argmin()]
            labels[i], labels[j] = low, target
            centers[low] += (X[i] - X[j]) / counts[low].sum()
            centers[target] += (X[j] - X[i]) / counts[target].sum()
            counts[low, coming] += 1
            counts[low, leaving] -= 1
            counts[target, coming] -= 1
            counts[target, leaving] += 1
        gaps = X - self.centers(labels)[labels]
        cost = float(np.einsum("ij,ij->", gaps, gaps) / len(X))
        counts = self.counts(labels)
        return labels, cost, float((counts.min(axis=1) / np.maximum(counts.max(axis=1), 1)).min())

    def iterate(self, front: list[Any], n_candidates: int) -> list[Any]:
        """Run one iteration over all labellings (labels, cost, balance) and filter."""
        points = front + [
            self.child(labels, n_a, n_b, n_candidates)
            for labels, _, _ in front
            for n_a, n_b in PAIRS
        ]
        cost, balance = np.array([p[1] for p in points]), np.array([p[2] for p in points])
        order = np.lexsort((-balance, cost))
        best = np.maximum.accumulate(balance[order])
        improves = np.append(True, best[1:] > best[:-1])
        return [points[i] for i in order[improves]]


def ours(X: Any, codes: Any, n_iter: int, seed: int, **fields: Any) -> tuple[float, float]:
    """Return CPU seconds per child: of the whole search, and without set-up and result."""
    total, front = timed(
        lambda: Swap(**fields).search(X, codes, 10, 2, max_iter=n_iter, random_state=seed)
    )
    n_children, seconds = front.history["n_children"], front.history["seconds"]
    loop = (seconds[-1] - seconds[0]) / n_children[1:].sum()
    return total / n_children.sum(), loop


def plain(X: Any, codes: Any, n_iter: int, n_candidates: int, seed: int) -> float:
    """Return CPU seconds per child of the plain search, without its set-up."""
    search = PlainSearch(X, codes, 10, 2, seed)
    odds = np.exp(search.rng.normal(size=(15, 10)))
    front = [
        search.child(search.rng.choice(10, len(X), p=p), 0, 0, 1)
        for p in odds / odds.sum(axis=1, keepdims=True)
    ]
    n_children, start = 0, time.process_time()
    for _ in range(n_iter):
        n_children += len(front) * len(PAIRS)
        front = search.iterate(front, n_candidates)
    return (time.process_time() - start) / n_children


def children(rounds: int, quick: bool) -> dict[str, Any]:
    """Compare seconds per child with plain numpy, and with those at twenty times the rows."""
    X, codes = adult_points()
    X_all, codes_all = adult_points(None)
    rng = np.random.default_rng(0)
    rows = rng.integers(len(X_all), size=100_000)
    X_large = X_all[rows] + rng.normal(scale=1e-3, size=(rows.size, X.shape[1]))
    codes_large = codes_all[rows]
    n_iter = 20 if quick else 300
    results: dict[str, Any] = {}
    print(f"   Adult, K=10, {n_iter} iterations, 200 points; microseconds of CPU per child")
    print(
        "     candidates   plain numpy   ours (loop)   ratio  (loop)   ours at n=1e5 (loop)  growth"
    )
    for n_candidates in (1, 8):
        times: dict[str, list[Any]] = {"plain": [], "ours": [], "large": []}
        for r in range(rounds + 1):  # the first round compiles
            options = {"seed": r, "swap_candidates": n_candidates}
            times["plain"].append(plain(X, codes, 2 if quick else 6, n_candidates, r))
            times["ours"].append(ours(X, codes, n_iter, **options))
            times["large"].append(ours(X_large, codes_large, n_iter, **options))
        slow = median(times["plain"][1:])
        (fast, fast_loop), (large, large_loop) = (
            [median(pair[i] for pair in times[name][1:]) for i in (0, 1)]
            for name in ("ours", "large")
        )
        row = {
            "plain": slow, "ours": fast, "ours loop": fast_loop, "ratio": slow / fast,
            "ratio loop": slow / fast_loop, "ours 1e5": large, "ours 1e5 loop": large_loop,
            "growth": large / fast, "growth loop": large_loop / fast_loop,
        }  # fmt: skip
        results[f"{n_candidates} candidates"] = row
        print(
            f"     {n_candidates:<10} {1e6 * slow:13.0f} {1e6 * fast:7.2f} ({1e6 * fast_loop:.2f}) "
            f"{row['ratio']:7.0f}x ({row['ratio loop']:.0f}x) {1e6 * large:10.2f} "
            f"({1e6 * large_loop:.2f}) {row['growth']:7.2f}x ({row['growth loop']:.2f}x)"
        )
    return results


def epoch(rounds: int) -> dict[str, Any]:
    """Compare one pass of the descent with one of MiniBatchKMeans."""
    X, blob = make_blobs(100_000, 10, centers=20, cluster_std=3, random_state=0)
    rng = np.random.default_rng(0)
    codes = np.where(rng.random(len(X)) < 0.5, blob % 3, rng.integers(0, 3, len(X)))
    peer = MiniBatchKMeans(20, max_iter=1, n_init=1, batch_size=1024, random_state=0)
    labels = peer.fit(X).labels_
    options: dict[str, Any] = {"labels": labels, "max_iter": 1, "random_state": 0}
    solver = Swap(swap_candidates=8)
    table = alternate(
        {
            "MiniBatchKMeans": lambda: peer.fit(X),
            "swaps": lambda: solver.descend(X, codes, 20, 3, **options),
            "swaps, bound": lambda: solver.descend(X, codes, 20, 3, min_balance=0.6, **options),
        },
        rounds,
    )
    results = {name: times["cpu"] for name, times in table.items()}
    results["ratio"] = results["swaps"] / results["MiniBatchKMeans"]
    print("   one pass, n=1e5, K=20, d=10, J=3, 20 rows and 4 swaps of 8 candidates each")
    print(
        f"     swaps {results['swaps']:.3f} s, with a limit {results['swaps, bound']:.3f} s, "
        f"MiniBatchKMeans {results['MiniBatchKMeans']:.3f} s: {results['ratio']:.2f}x"
    )
    return results


def main(*, quick: bool = False) -> dict[str, Any]:
    results: dict[str, Any] = {}
    rounds = 1 if quick else 5
    if data_folder() is not None:
        results["children"] = children(rounds, quick)
    results["epoch"] = epoch(rounds)
    return results


def canary() -> dict[str, Any]:
    """Return the results of a small cell."""
    X, codes = adult_points(1000)
    front = Swap(swap_candidates=8).search(X, codes, 5, 2, max_iter=20, random_state=0)
    return {"costs": front.costs.tolist(), "balances": front.balances.tolist()}
