"""FairKMeans: assignment against the linear programme, fronts, rivals at equal balance, scale.

Adult and Bank as prepared for safairkm: columns standardised on all rows, rows of length 1, 5000 of
them drawn with ``RandomState(1)``. Seeds here were not used while the method was made.
"""

import time
import tracemalloc
import warnings
from typing import Any

import numpy as np
from scipy import sparse
from scipy.optimize import LinearConstraint, linprog, milp
from sklearn.cluster import KMeans, kmeans_plusplus
from sklearn.datasets import make_blobs
from sklearn.preprocessing import StandardScaler, normalize

from benchmarks.harness import alternate, data_folder
from skfair import Sensitive
from skfair.cluster import FairKMeans, ParetoFairKMeans
from skfair.cluster.assignment.by_prices import assign
from skfair.cluster.assignment.counts import balance_constraints
from skfair.cluster.assignment.points import RepresentationProblem
from skfair.datasets import load_local
from skfair.groups.encoding import encode_groups
from skfair.metrics import balance_score, hypervolume, kmeans_cost
from skfair.papers import Variational

SEEDS = (911, 912, 913, 914, 915)


def prepared(name: str, n: int = 5000) -> tuple[Any, Any]:
    """Return points and groups of a safairkm data set."""
    frame = load_local(name).frame
    X = normalize(StandardScaler().fit_transform(frame.drop(columns="demograph").to_numpy(float)))
    rows = np.random.RandomState(1).choice(len(X), n, replace=False)
    return np.ascontiguousarray(X[rows]), frame["demograph"].to_numpy()[rows]


def assignment_problem(X: Any, groups: Any, n_clusters: int, share: float, seed: int) -> Any:
    encoding = encode_groups(groups)
    beta = share * encoding.counts.min() / encoding.counts.max()
    problem = RepresentationProblem(
        X, encoding, balance_constraints(encoding, np.array([beta])), n_clusters
    )
    centers = KMeans(n_clusters, n_init=1, random_state=seed).fit(X).cluster_centers_
    return problem, (centers - problem.units.mean) / problem.units.scale


def exact_assignment(problem: Any, centers: Any, integer: bool = False) -> float:
    """Cost of the best assignment by HiGHS: a linear programme, or whole people."""
    D = problem.distances(centers).costs(slice(0, problem.n_samples))
    n, k = D.shape
    once = sparse.kron(sparse.eye(n), np.ones((1, k)), format="csr")
    parts = sparse.csr_matrix(problem.constraints.matrix[:, problem.cells])
    rules = sparse.vstack([sparse.kron(parts, np.eye(k)[[c]]) for c in range(k)], format="csr")
    if integer:
        found = milp(
            D.ravel(),
            integrality=np.ones(D.size),
            bounds=(0, 1),
            constraints=[LinearConstraint(once, 1, 1), LinearConstraint(rules, 0, np.inf)],
            options={"mip_rel_gap": 1e-7},
        )
    else:
        found = linprog(
            D.ravel(), A_ub=-rules, b_ub=np.zeros(rules.shape[0]), A_eq=once, b_eq=np.ones(n)
        )
    return float(found.fun) / n


def assignments(results: dict[str, Any], quick: bool) -> None:
    """Figure 1: cost above the linear programme, and time against HiGHS."""
    print("   assignment at fixed centres, n=5000, K=10: excess over the LP; CPU against HiGHS")
    names = ("safairkm_adult", "safairkm_bank")[: 1 if quick else 2]
    for name in names:
        X, groups = prepared(name)
        for share in (0.9,) if quick else (0.9, 0.99):
            problem, centers = assignment_problem(X, groups, 10, share, SEEDS[0])
            exact: list[float] = []
            times = alternate(
                {
                    "ours": lambda p=problem, c=centers: assign(p, c, exact=True),
                    "highs": lambda p=problem, c=centers, e=exact: e.append(exact_assignment(p, c)),
                },
                1 if quick else 3,
            )
            found = assign(problem, centers, exact=True)
            excesses, violation = [found.cost / exact[0] - 1], found.violation
            for seed in [] if quick else SEEDS[1:]:
                problem, centers = assignment_problem(X, groups, 10, share, seed)
                found = assign(problem, centers, exact=True)
                excesses.append(found.cost / exact_assignment(problem, centers) - 1)
                violation = max(violation, found.violation)
            ratio = times["highs"]["cpu"] / times["ours"]["cpu"]
            results[f"assignment {name} {share}"] = {
                "excess": excesses,
                "ratio": ratio,
                "violation": violation,
            }
            print(
                f"     {name:<16}{share:5.2f}  +{100 * np.median(excesses):.4f} % (worst "
                f"{100 * max(excesses):.4f} %)  {ratio:5.1f}x less CPU   violation {violation:g}"
            )
    X, groups = prepared("safairkm_adult", 400)
    excesses = []
    for seed in range(SEEDS[0], SEEDS[0] + (1 if quick else 20)):
        problem, centers = assignment_problem(X, groups, 4, 0.8, seed)
        exact_cost = exact_assignment(problem, centers, integer=True)
        excesses.append(assign(problem, centers, exact=True).cost / exact_cost - 1)
    results["assignment milp"] = excesses
    print(
        f"     n=400, K=4 against whole people (milp), {len(excesses)} seeds: "
        f"median +{100 * np.median(excesses):.4f} %, worst +{100 * max(excesses):.4f} %"
    )


def fronts(results: dict[str, Any], quick: bool) -> None:
    """Figure 2: hypervolume (box to twice the k-means cost) and price of fairness."""
    print("   fronts: hypervolume, price of 90 % of the data's balance, CPU (worst, median, worst)")
    settings = [(f"safairkm_{name}", k) for k in (10, 5) for name in ("adult", "bank")]
    for name, k in settings[2:3] if quick else settings:
        X, groups = prepared(name)
        sizes = np.unique(groups, return_counts=True)[1]
        balance = sizes.min() / sizes.max()
        plain = KMeans(k, n_init=10, random_state=0).fit(X).inertia_
        volumes, prices, seconds = [], [], []
        for seed in SEEDS[:2] if quick else SEEDS:
            start = time.process_time()
            front = ParetoFairKMeans(k, random_state=seed).fit(X, sensitive_features=groups)
            seconds.append(time.process_time() - start)
            area = hypervolume(front.costs_, front.balances_, ref_cost=2 * plain)
            volumes.append(area / (plain * balance))
            prices.append(front.costs_[front.balances_ >= 0.9 * balance].min() / plain - 1)
        key = f"front {name} K={k}"
        results[key] = {
            "hypervolume": min(volumes),
            "price": float(np.median(prices)),
            "cpu": max(seconds[1:]),
        }
        print(
            f"     {name:<16}K={k:<3} {min(volumes):.4f}   {100 * np.median(prices):5.2f} %   "
            f"{max(seconds[1:]):.2f} s"
        )


def plain_variational(X: Any, codes: Any, centers: Any, weight: float) -> Any:
    """Return labels of the variational method with one constant, written plainly in numpy.

    As it was first described: updates of the soft assignments with the step 1/2 until they gain
    less than a hundred-thousandth, then the means. For weights up to about .2, where it is stable.
    """
    n, tol = len(X), 1e-5
    members = np.eye(codes.max() + 1)[codes]
    target = members.mean(axis=0)
    unit = ((X - X.mean(axis=0)) ** 2).sum() / n
    objective = np.inf
    for _ in range(100):
        distances = (
            (X**2).sum(axis=1)[:, None] - 2 * X @ centers.T + (centers**2).sum(axis=1)
        ) / unit
        soft = np.exp(-distances)
        soft /= soft.sum(axis=1, keepdims=True)
        before, value = objective, np.inf
        for _ in range(10_000):
            counts = members.T @ soft / n
            slopes = weight * (1 / counts.sum(axis=0) - (target[:, None] / counts)[codes])
            logs = np.log(np.maximum(soft, 1e-300)) - (distances + slopes) / 2
            soft = np.exp(logs - logs.max(axis=1, keepdims=True))
            soft /= soft.sum(axis=1, keepdims=True)
            counts = members.T @ soft / n
            shares = counts / counts.sum(axis=0)
            divergence = -(target[:, None] * np.log(shares / target[:, None])).sum()
            last, value = value, (soft * distances).sum() / n + weight * divergence
            if abs(last - value) <= tol * abs(value):
                break
        centers = soft.T @ X / soft.sum(axis=0)[:, None]
        objective = value
        if abs(before - objective) <= tol * abs(objective):
            break
    return soft.argmax(axis=1)


def rivals(results: dict[str, Any], quick: bool) -> None:
    """Figure 4: the variational method, and prices at the balance that it reached."""
    print("   variational, then prices at equal balance: cost ratio, CPU ratio")
    for name in ("safairkm_adult",) if quick else ("safairkm_adult", "safairkm_bank"):
        X, groups = prepared(name)
        codes = np.unique(groups, return_inverse=True)[1]
        for seed in SEEDS[: 1 if quick else 3]:
            centers = kmeans_plusplus(X, 10, random_state=seed)[0]
            settings = [("ours", 0.3), ("ours", 1.0), ("plain", 0.05), ("plain", 0.2)]
            for kind, weight in settings[: 2 if quick else 4]:
                start = time.process_time()
                if kind == "plain":
                    labels = plain_variational(X, codes, centers, weight)
                else:
                    rival = FairKMeans(
                        10,
                        solver=Variational(weight),
                        min_balance=None,
                        random_state=seed,
                        n_init=1,
                    )
                    labels = rival.fit(X, sensitive_features=groups).labels_
                middle = time.process_time()
                balance = balance_score(labels, sensitive_features=groups, relative=True)
                begin = time.process_time()
                ours = FairKMeans(10, min_balance=balance, random_state=seed, n_init=1)
                ours.fit(X, sensitive_features=groups)
                end = time.process_time()
                cost = ours.inertia_ / kmeans_cost(X, labels)
                cpu = (middle - start) / (end - begin)
                results[f"variational {kind} {name} {seed} {weight}"] = {"cost": cost, "cpu": cpu}
                print(
                    f"     {name:<16}{kind:<6} weight {weight:<4} seed {seed}  balance "
                    f"{balance:.3f} of the data's   {cost:.4f}   {cpu:5.1f}x"
                )


def scale(results: dict[str, Any], quick: bool) -> None:
    """Figure 6: CPU against KMeans, and memory against the size of X."""
    print("   scale, K=20, d=10, 3 groups: CPU against KMeans, peak memory in sizes of X")
    for n in (20_000,) if quick else (100_000, 1_000_000):
        X, _ = make_blobs(n, 10, centers=20, cluster_std=3, random_state=SEEDS[0])
        rng = np.random.default_rng(SEEDS[0])
        groups = rng.choice(3, n, p=[0.5, 0.3, 0.2])
        groups[(X[:, 0] > 0) & (rng.random(n) < 0.5)] = 0
        times = alternate(
            {
                "ours": lambda X=X, g=groups: FairKMeans(20, random_state=1).fit(
                    X, sensitive_features=g
                ),
                "kmeans": lambda X=X: KMeans(20, n_init=1, random_state=1).fit(X),
            },
            3 if n < 1_000_000 else 1,
        )
        tracemalloc.start()
        FairKMeans(20, random_state=1).fit(X, sensitive_features=groups)
        peak = tracemalloc.get_traced_memory()[1] / X.nbytes
        tracemalloc.stop()
        ratio = times["ours"]["cpu"] / times["kmeans"]["cpu"]
        results[f"scale {n}"] = {"ratio": ratio, "memory": peak}
        print(f"     n={n:<8} {ratio:.1f}x KMeans   +{peak:.2f} x X")


def overlapping(results: dict[str, Any], quick: bool) -> None:
    """Figure 7: sex, race and marital status at once, every share within [0.8 r, r / 0.8]."""
    frame = load_local("adult").frame
    rows = np.random.RandomState(1).choice(len(frame), 10_000, replace=False)
    names = ["age", "education-num", "capital-gain", "capital-loss", "hours-per-week"]
    X = StandardScaler().fit_transform(frame[names].to_numpy(float))[rows]
    table = frame[["sex", "race", "marital-status"]].astype(str).iloc[rows]
    print("   Adult, 10000 rows, three overlapping attributes: rows out of the limits, CPU")
    for k in (5, 10):
        start = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            model = FairKMeans(
                k,
                min_balance=None,
                share_bounds=0.8,
                sensitive=Sensitive(intersectional=False),
                random_state=SEEDS[0],
            ).fit(X, sensitive_features=table)
        seconds = time.process_time() - start
        size, out = np.bincount(model.labels_, minlength=k), 0.0
        for column in table:
            for value in table[column].unique():
                member = (table[column] == value).to_numpy()
                count = np.bincount(model.labels_, weights=member, minlength=k)
                out += np.maximum(0, np.floor(0.8 * member.mean() * size) - count).sum()
                out += np.maximum(0, count - np.ceil(member.mean() / 0.8 * size)).sum()
        results[f"overlapping K={k}"] = {"out of bounds": out, "cpu": seconds}
        print(f"     K={k:<3} {out:g} rows   {seconds:.2f} s")


def sizes(results: dict[str, Any], quick: bool) -> None:
    """Figure 8: CPU of fits whose clusters have bounds on their sizes, against fits without."""
    n, k = 10_000, 10
    print("   clusters of limited sizes, n=10000, K=10, 3 groups: CPU against no bounds")
    bounds = {"none": None, "within half": (0.05, 0.15), "within 20%": (0.08, 0.12)}
    bounds["equal"] = (n // k, n // k)
    cpu = dict.fromkeys(bounds, 0.0)
    for seed in SEEDS[: 1 if quick else None]:
        rng = np.random.default_rng(seed)
        centers = 1.5 * rng.normal(size=(12, 6))
        X = centers[rng.choice(12, n, p=rng.dirichlet(np.full(12, 2.0)))]
        X = X + rng.normal(size=X.shape)
        groups = np.digitize(X[:, 0] + 2 * rng.normal(size=n), [-1, 1.5])
        times = alternate(
            {
                name: lambda b=b, X=X, g=groups: FairKMeans(k, size_bounds=b, random_state=1).fit(
                    X, sensitive_features=g
                )
                for name, b in bounds.items()
            },
            3,
        )
        for name, of in times.items():
            cpu[name] += of["cpu"]
    for name in bounds:
        results[f"sizes {name}"] = {"ratio": cpu[name] / cpu["none"]}
        print(f"     {name:12s} {cpu[name] / cpu['none']:.2f}")


def main(*, quick: bool = False) -> dict[str, Any]:
    results: dict[str, Any] = {}
    if data_folder() is not None:
        assignments(results, quick)
        fronts(results, quick)
        rivals(results, quick)
        overlapping(results, quick)
    scale(results, quick)
    sizes(results, quick)
    return results


def canary() -> dict[str, float]:
    """Return the results of a small cell."""
    X, groups = prepared("safairkm_adult", 1500)
    problem, centers = assignment_problem(X, groups, 5, 0.9, SEEDS[0])
    model = FairKMeans(5, min_balance=0.9, random_state=0).fit(X, sensitive_features=groups)
    return {
        "assignment": assign(problem, centers, exact=True).cost,
        "linear programme": exact_assignment(problem, centers),
        "fit": model.inertia_,
    }
