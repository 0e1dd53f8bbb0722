"""Whether something became slow: ``python -m benchmarks.check``, or ``make bench-check``.

Each case is measured against a yardstick of other libraries in the same run, on generated data. The
ratio is compared with the one of the record, ``records/check.json``; more than 25% above it is a
failure (exit code 1). A ratio that looks too high is measured again before it is believed. Absolute
times are never compared; still, ratios belong to a machine: on another one, or after a change that
is meant, write a record of its own by ``python -m benchmarks.check --keep``.

Then the records of all benchmarks are read: one that does not name how it was measured, or whose
code has changed since, is a failure as well. ``--records`` does only that.
"""

import argparse
import sys
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs
from sklearn.linear_model import LogisticRegression
from sklearn.manifold import spectral_embedding
from sklearn.metrics.pairwise import rbf_kernel

from benchmarks._records import faults
from benchmarks.harness import RECORDS, Table, alternate, check_threads, quiet, read, write
from benchmarks.threads import points
from skfair import metrics
from skfair.classification import ConstrainedERMClassifier, PartialParityClassifier
from skfair.cluster import FairKMeans, FairSpectralClustering, ParetoFairKMeans
from skfair.groups.encoding import encode_groups

ALLOWED = 1.25
Run = Callable[[], Any]


def labelled(n: int, d: int, n_groups: int) -> tuple[Any, Any, Any]:
    """Return rows, labels and groups; the first column tells much about the group."""
    rng = np.random.default_rng(4001)
    groups, X = rng.integers(n_groups, size=n), rng.standard_normal((n, d))
    X[:, 0] += groups / n_groups
    return X, (X[:, :5].sum(axis=1) + rng.logistic(size=n) > 0).astype(int), groups


def clustered(n: int) -> tuple[Any, Any]:
    """Return ten blobs and three groups, one of them more frequent on one side."""
    X, _ = make_blobs(n, 8, centers=10, cluster_std=3, random_state=4001)
    rng = np.random.default_rng(4001)
    groups = rng.choice(3, n, p=[0.5, 0.3, 0.2])
    groups[(X[:, 0] > 0) & (rng.random(n) < 0.5)] = 0
    return X, groups


def words(n: int, d: int, n_topics: int) -> tuple[Any, Any]:
    """Return counts of 30 words a text, mostly of its topic, and groups that prefer topics."""
    rng = np.random.default_rng(4001)
    topic = rng.integers(n_topics, size=n)
    places = rng.geometric(0.01, (n, 30)) + topic[:, None] * (d // n_topics)
    rows = np.repeat(np.arange(n, dtype=np.int32), 30)
    columns = np.minimum(places.ravel(), d - 1).astype(np.int32)
    X = sparse.csr_array((np.ones(rows.size), (rows, columns)), (n, d))
    return X, (rng.random(n) < np.where(topic % 2, 0.3, 0.6)).astype(int)


def metrics_cases() -> dict[str, tuple[Run, Run]]:
    """Compare metrics of a million rows with sorting a million numbers."""
    rng = np.random.default_rng(4001)
    n = 1_000_000
    groups, y, p = rng.integers(0, 10, n), rng.integers(0, 2, n), rng.integers(0, 2, n)
    names = np.array([f"group {i}" for i in range(10)])[groups]
    scores = rng.normal(size=n)

    def sort() -> Any:
        return np.sort(scores, kind="stable")

    return {
        "groups from strings / sort": (lambda: encode_groups(names), sort),
        "demographic_parity_difference / sort": (
            lambda: metrics.demographic_parity_difference(y, p, sensitive_features=groups),
            sort,
        ),
        "partial_statistical_parity_gap / sort": (
            lambda: metrics.partial_statistical_parity_gap(
                y, scores, sensitive_features=groups, interval=(0.05, 0.3)
            ),
            sort,
        ),
        "fairness_report of scores, 20 resamples / sort": (
            lambda: metrics.fairness_report(
                y, None, y_score=scores, sensitive_features=groups, n_bootstrap=20
            ),
            sort,
        ),
    }


def cluster_cases() -> dict[str, tuple[Run, Run]]:
    """Compare clusterers with k-means, and the spectral one with scikit-learn's embedding."""
    X, groups = clustered(50_000)
    few, few_groups = X[:3000], groups[:3000]
    many, many_groups = points(200_000, 10, np.float32)
    affinity = rbf_kernel(few, gamma=0.01)
    texts, text_groups = words(20_000, 10_000, 10)

    def spectral(**params: Any) -> FairSpectralClustering:
        return FairSpectralClustering(10, random_state=0, **params)

    def kmeans() -> Any:
        return KMeans(10, n_init=1, random_state=0).fit(X)

    return {
        "FairKMeans / KMeans": (
            lambda: FairKMeans(10, random_state=0).fit(X, sensitive_features=groups),
            kmeans,
        ),
        "FairKMeans / KMeans (200000 rows)": (
            lambda: FairKMeans(20, random_state=0).fit(many, sensitive_features=many_groups),
            lambda: KMeans(20, n_init=1, random_state=0).fit(many),
        ),
        "FairKMeans of sparse rows / KMeans": (
            lambda: FairKMeans(10, random_state=0).fit(texts, sensitive_features=text_groups),
            lambda: KMeans(10, n_init=1, random_state=0).fit(texts),
        ),
        "ParetoFairKMeans (3000 rows) / KMeans (50000)": (
            lambda: ParetoFairKMeans(10, random_state=0).fit(few, sensitive_features=few_groups),
            kmeans,
        ),
        "FairSpectralClustering / spectral_embedding": (
            lambda: spectral(affinity="precomputed").fit(affinity, sensitive_features=few_groups),
            lambda: spectral_embedding(affinity, n_components=10, random_state=0),
        ),
        "FairSpectralClustering(landmark) / KMeans": (
            lambda: spectral(affinity="landmark").fit(X, sensitive_features=groups),
            kmeans,
        ),
    }


def classifier_cases() -> dict[str, tuple[Run, Run]]:
    """Compare classifiers with logistic regression."""
    X, y, groups = labelled(100_000, 30, 2)
    many = np.random.default_rng(4001).integers(20, size=y.size).astype(str)

    def logistic() -> Any:
        return LogisticRegression(solver="newton-cholesky").fit(X, y)

    def fit(model: Any, groups: Any = groups) -> Run:
        return lambda: model.fit(X, y, sensitive_features=groups)

    return {
        "ConstrainedERMClassifier / logistic": (fit(ConstrainedERMClassifier()), logistic),
        "ConstrainedERMClassifier, equalized odds / logistic": (
            fit(ConstrainedERMClassifier("equalized_odds")),
            logistic,
        ),
        "ConstrainedERMClassifier, 20 groups / logistic": (
            fit(ConstrainedERMClassifier(), many),
            logistic,
        ),
        "PartialParityClassifier, blind / logistic": (
            fit(PartialParityClassifier(group_aware=False)),
            logistic,
        ),
        "PartialParityClassifier, aware / logistic": (
            fit(PartialParityClassifier(group_aware=True)),
            logistic,
        ),
    }


def ratio(ours: Run, yardstick: Run, rounds: int) -> float:
    times = alternate({"ours": ours, "yardstick": yardstick}, rounds)
    return times["ours"]["cpu"] / times["yardstick"]["cpu"]


def measured(kept: Mapping[str, float]) -> dict[str, float]:
    """Return the ratios; those that look too high against the record are measured up to twice more.

    Other work on the machine makes a ratio larger or smaller by chance; a slower program makes it
    larger every time.
    """
    found: dict[str, float] = {}
    for cases in (metrics_cases(), cluster_cases(), classifier_cases()):
        for name, (ours, yardstick) in cases.items():
            found[name] = ratio(ours, yardstick, 5)
            for _ in range(2):
                if name in kept and found[name] > ALLOWED * kept[name]:
                    found[name] = min(found[name], ratio(ours, yardstick, 9))
    return found


def slower(found: Mapping[str, float], kept: Mapping[str, float]) -> list[str]:
    """Return the cases whose ratio is more than 25% above that of the record."""
    return [name for name in found if name in kept and found[name] > ALLOWED * kept[name]]


def wrong_records() -> list[str]:
    """Return what is wrong with records; that of this module is meant for code that changes."""
    found = {path.stem: faults(read(path.stem)) for path in sorted(RECORDS.glob("*.json"))}
    return [f"{name}: {text}" for name in found if name != "check" for text in found[name]]


def main() -> None:
    """Measure, compare, and stop with code 1 if anything is slower or a record is wrong."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.check", description=__doc__)
    parser.add_argument("--keep", action="store_true", help="write a new record")
    parser.add_argument("--records", action="store_true", help="only look at the records")
    arguments = parser.parse_args()
    wrong = wrong_records()
    print("".join(f"   RECORD {text}\n" for text in wrong), end="")
    if arguments.records:
        sys.exit(1 if wrong else 0)
    check_threads()
    kept = {} if arguments.keep else read("check")["results"]
    with quiet():
        found = measured(kept)
    rows = [(name, value, kept.get(name, "new")) for name, value in found.items()]
    print(Table("CPU against a yardstick", ["case", "now", "record"], rows))
    if arguments.keep:
        write("check", found, RECORDS)
    worse = slower(found, kept)
    missing = sorted(set(kept) - set(found))
    if missing:
        print(f"   no longer measured: {', '.join(missing)}")
    for name in worse:
        print(f"   SLOWER: {name}: {found[name]:.3g}, was {kept[name]:.3g}")
    sys.exit(1 if worse or wrong else 0)


if __name__ == "__main__":
    main()
