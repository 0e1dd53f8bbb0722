"""PartialParityClassifier: tables of the paper, certificates, solvers, peers, cost.

Fairness is 1 minus a disparity. Under "ccdf" it is that of ``partial_ccdf_gap``, the reading that
the tables of partial_fairness_idca agree with; under "conditional" that of Definition 4.2. Rows of
the paper are means of five splits. No setting of a model depends on the data set.
"""

import time
import warnings
from statistics import mean, median
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from benchmarks import _fairlearn
from benchmarks._erm_data import figure
from benchmarks._partial_data import (
    A9A_INTERVAL,
    BANK_INTERVAL,
    SEEDS,
    Part,
    a9a,
    bank,
    compas,
)
from benchmarks.harness import alternate, data_folder, lacks
from skfair.classification import PartialParityCalibrator, PartialParityClassifier
from skfair.constraints.partial import Surrogate, read_constraint
from skfair.groups.encoding import encode_groups
from skfair.groups.intervals import Intervals
from skfair.losses import make_loss
from skfair.metrics import (
    noise_floor,
    partial_ccdf_gap,
    partial_statistical_parity_gap,
    statistical_parity_gap,
)
from skfair.papers import IDCA
from skfair.papers.idca.parts import DCProblem
from skfair.partial_parity.grouped_scores import GroupedLinearScore
from skfair.partial_parity.objectives import MeanLoss
from skfair.partial_parity.promise import promise_of_fit
from skfair.partial_parity.ranked_moment import IntervalRows
from skfair.partial_parity.repair import repair_scores
from skfair.solvers import ALLBFGS

# (fairness, accuracy) on test rows: table 3, the columns of the partial intervals.
PAPER = {
    "a9a": [
        (0.5970, 0.8499),
        (0.7017, 0.8492),
        (0.7841, 0.8479),
        (0.8732, 0.8445),
        (0.9310, 0.8393),
        (0.9752, 0.8311),
    ],
    "bank": [
        (0.4366, 0.9015),
        (0.6582, 0.9027),
        (0.7376, 0.9028),
        (0.8954, 0.9025),
        (0.9634, 0.8983),
    ],
}
BOUNDS = (0.01, 0.02, 0.03, 0.05, 0.06, 0.07, 0.08, 0.1, 0.12, 0.15, 0.2, 0.3, 0.4, 0.6)
RAMP = Surrogate("ramp", 0.5)  # of the paper


def fitted(part: Part, interval: Any, bound: float, **params: Any) -> PartialParityClassifier:
    """Fit a classifier."""
    params = {"group_aware": True, **params}
    model = PartialParityClassifier(interval, max_disparity=bound, **params)
    return model.fit(part.X, part.y, sensitive_features=part.groups)


def of_test(model: Any, part: Part, gap: Any, **params: Any) -> tuple[float, float]:
    """Return fairness and accuracy on other rows."""
    scores = model.decision_function(part.X, sensitive_features=part.groups)
    fairness = 1 - gap(None, scores, sensitive_features=part.groups, **params)
    return fairness, float(np.mean((scores > 0) == (part.y > 0)))


def unconstrained(results: dict[str, Any], quick: bool) -> None:
    """Figure 2: the model without a constraint on a9a."""
    print("   2. a9a, no constraint: accuracy, fairness over all ranks, Definition 4.2 on 5-30%")
    rows = []
    for seed in range(1 if quick else 3):
        train, test = a9a(seed)
        model = fitted(train, A9A_INTERVAL, 1.0)
        partial, accuracy = of_test(
            model, test, partial_statistical_parity_gap, interval=A9A_INTERVAL
        )
        rows.append((accuracy, of_test(model, test, statistical_parity_gap)[0], partial))
    accuracy, full, partial = np.mean(rows, axis=0).tolist()
    for name, value, wanted, bar in (
        ("accuracy", accuracy, 0.8498, "<= 0.001"),
        ("fairness, all ranks", full, 0.5955, "<= 0.006"),
        ("fairness, Definition 4.2", partial, 0.156, "<= 0.02"),
    ):
        figure(results, f"{name}: off by", abs(value - wanted), bar, f"{value:.4f}")


def rows_of_paper(results: dict[str, Any], quick: bool) -> None:
    """Figure 3: for each row of the paper, a model that is at least as fair and as accurate.

    The test part of Bank has 350 people of the smaller group: means of five splits differ by .01 in
    fairness and .003 in accuracy, so there are twenty. Three of its rows ask for .9000 to .9003,
    and linear scores reach .8996 without a constraint, so the calibrator on boosted trees competes,
    with the defaults of both. On a9a linear scores suffice, and trees, which take long, are left
    out.
    """
    print("   3. rows of table 3 (ccdf scale): fairness / accuracy on test rows, means of splits")
    more = tuple(range(SEEDS[0], SEEDS[0] + 20))
    cases: Any = [
        ("a9a", a9a, A9A_INTERVAL, SEEDS, (0.0, 0.001), ("repair", "alm")),
        ("bank", bank, BANK_INTERVAL, more, (0.005, 0.0025), ("repair", "alm", "trees")),
    ]
    bounds = {"repair": BOUNDS, "alm": BOUNDS[::2], "trees": (0.03, 0.08, 0.12)}
    for name, load, interval, seeds, slack, kinds in cases[:1] if quick else cases:
        parts = [load(seed) for seed in seeds[: 1 if quick else None]]
        ours = {}
        for kind in kinds:
            for bound in bounds[kind][:: 3 if quick else 1]:
                rows = []
                for train, test in parts:
                    model = scorer(train, kind, interval, bound)
                    rows.append(of_test(model, test, partial_ccdf_gap, interval=interval))
                ours[kind, bound] = np.array(rows)
        means = {key: rows.mean(axis=0) for key, rows in ours.items()}
        results[f"table {name}"] = {f"{s} {b}": row.tolist() for (s, b), row in means.items()}
        for fairness, accuracy in PAPER[name]:
            least = np.array([fairness - slack[0], accuracy - slack[1]])
            room = {key: float((row - least).min()) for key, row in means.items()}
            best = max(room, key=lambda key: room[key])
            note = f"{best[0]} {best[1]}: {means[best][0]:.4f} / {means[best][1]:.4f}"
            if len(parts) > 5:
                fives = [
                    max((rows[i : i + 5].mean(axis=0) - least).min() for rows in ours.values())
                    for i in range(0, len(parts), 5)
                ]
                note += f"; of {len(fives)} sets of five splits {sum(np.array(fives) >= 0)} keep it"
            title = f"{name}, paper {fairness:.4f} / {accuracy:.4f}: room"
            figure(results, title, room[best], ">= 0", note)


def scorer(train: Part, kind: str, interval: Any, bound: float) -> Any:
    """Fit a classifier by its solver, or the calibrator on boosted trees."""
    if kind != "trees":
        solver = {"alm": "al_lbfgs"}.get(kind, kind)
        return fitted(train, interval, bound, scale="ccdf", solver=solver)
    model = PartialParityCalibrator(
        HistGradientBoostingClassifier(random_state=0), interval, max_disparity=bound, scale="ccdf"
    )
    return model.fit(train.X, train.y, sensitive_features=train.groups)


def problem_15(part: Part, bound: float, surrogate: Surrogate) -> DCProblem:
    """Return (15) as the paper solves it: cross terms, ten percentiles, its reading of kappa."""
    groups, targets = encode_groups(part.groups), np.where(part.y > 0, 1.0, -1.0)
    n, (low, high) = targets.size, A9A_INTERVAL
    wider = Intervals(A9A_INTERVAL, groups.levels).widened(bound)
    ranks = low + (high - low) * (np.arange(10) + 0.5) / 10
    rows = IntervalRows(groups, targets, None, wider, wider.share(ranks, 0))
    moments = read_constraint("statistical_parity").moments(rows, surrogate)
    loss = MeanLoss(make_loss("log_loss", "classification"), targets, np.full(n, 1 / n))
    model = GroupedLinearScore(part.X, groups.codes[0], [True, True])
    return DCProblem(model, loss, moments, bound / wider.lengths[0], alpha=1e-6)


class Watch:
    """Callback of a solver: stops it when it is near a value, or when its time is up."""

    def __init__(self, problem: Any, value: float, limit: float) -> None:
        self.problem, self.value, self.limit = problem, value, limit
        self.start, self.seconds, self.best = time.process_time(), np.inf, np.inf
        self.violation = np.inf

    def __call__(self, theta: Any) -> bool:
        """Say whether the solver is to stop."""
        spent = time.process_time() - self.start
        at = self.problem.evaluate(theta)
        if at.objective < self.best:
            self.best, self.violation = at.objective, self.problem.violation(at)
        if at.objective <= self.value:
            self.seconds = spent
        return spent > self.limit or np.isfinite(self.seconds)


def solvers(results: dict[str, Any], quick: bool) -> None:
    """Figure 4: the augmented Lagrangian against the algorithm of the paper, on problem (15)."""
    print("   4. a9a, problem (15) with the ramp, kappa .05: objective, violation, CPU seconds")
    limit = 1.0 if quick else 30.0
    seconds, values, violations = [], [], []
    train, _ = a9a(SEEDS[0])
    sharp = problem_15(train, 0.05, RAMP)
    rounded = problem_15(train, 0.05, Surrogate("ramp", 0.5, 0.2))
    for _ in range(2 if quick else 4):
        start = time.process_time()
        theta = rounded.start(np.zeros(rounded.model.n_parameters))
        theta = ALLBFGS().solve(rounded, theta, tol=1e-3, max_iter=400).theta
        seconds.append(time.process_time() - start)
        at = sharp.evaluate(theta)
        values.append(at.objective)
        violations.append(sharp.violation(at))
    ours = median(seconds[1:])
    print(f"       {'alm':<14}{values[-1]:.5f}  {violations[-1]:.1e}  {ours:.2f}")
    best, fastest = np.inf, np.inf
    for eps in (5e-3,) if quick else (1e-3, 2e-3, 5e-3):
        watch = Watch(sharp, values[-1], limit)
        zeros = sharp.start(np.zeros(sharp.model.n_parameters))
        IDCA(eps=eps).solve(sharp, zeros, tol=0.0, max_iter=10**6, callback=watch)
        spent = min(watch.seconds, limit)
        print(f"       idca {eps:<9g}{watch.best:.5f}  {watch.violation:.1e}  {spent:.2f}")
        best, fastest = min(best, watch.best), min(fastest, spent)
    figure(results, "CPU, idca / alm", fastest / ours, ">= 15", f"idca stopped at {limit:g} s")
    figure(results, "objective, alm - idca", values[-1] - best, "<= 0")
    figure(results, "violation of (15) with the ramp, alm", violations[-1], "<= 1e-3")


def certificates(results: dict[str, Any], quick: bool) -> None:
    """Figure 5: disparity on the training rows, by the metric."""
    print("   5. conditional scale, training rows: share of fits within the limit")
    kept: dict[str, list[bool]] = {"aware": [], "blind": []}
    truthful, spent = [], {"aware": [], "blind": []}
    for name, load in (("a9a", a9a), ("compas", compas))[1 if quick else 0 :]:
        for seed in SEEDS[: 1 if quick else None]:
            for kind in kept:
                is_blind = kind == "blind"
                train, test = (
                    load(seed, is_blind=True) if name == "a9a" and is_blind else load(seed)
                )
                for bound in (0.2, 0.1, 0.05):
                    start = time.process_time()
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore", ConvergenceWarning)
                        model = fitted(train, A9A_INTERVAL, bound, group_aware=not is_blind)
                    spent[kind].append(time.process_time() - start)
                    gap = (
                        1
                        - of_test(
                            model, train, partial_statistical_parity_gap, interval=A9A_INTERVAL
                        )[0]
                    )
                    kept[kind].append(gap <= bound + 1e-9)
                    truthful.append(model.is_within_limit_ == kept[kind][-1])
                    fairness, accuracy = of_test(
                        model, test, partial_statistical_parity_gap, interval=A9A_INTERVAL
                    )
                    key = f"{kind} {name} {bound}"
                    results.setdefault(key, []).append([gap, fairness, accuracy])
    for kind, flags in kept.items():
        bar = ">= 1" if kind == "aware" else ">= 0.95"
        note = f"{sum(flags)} of {len(flags)}, {median(spent[kind]):.2f} s a fit"
        figure(results, f"{kind} models", mean(flags), bar, note)
    figure(results, "the flag says the truth", mean(truthful), ">= 1")


def definition(results: dict[str, Any], quick: bool) -> None:
    """Figure 6: Definition 4.2 on test rows of a9a, by the default solver."""
    print("   6. a9a, Definition 4.2 on test rows, repair, means of splits")
    for bound, least_fair, least_accurate in ((0.05, 0.93, 0.83), (0.1, 0.895, 0.832)):
        rows = []
        for seed in SEEDS[: 1 if quick else None]:
            train, test = a9a(seed)
            model = fitted(train, A9A_INTERVAL, bound)
            rows.append(of_test(model, test, partial_statistical_parity_gap, interval=A9A_INTERVAL))
        fairness, accuracy = np.mean(rows, axis=0).tolist()
        figure(results, f"bound {bound}: fairness", fairness, f">= {least_fair}")
        figure(results, f"bound {bound}: accuracy", accuracy, f">= {least_accurate}")


def peers(results: dict[str, Any], quick: bool) -> None:
    """Figure 7: fairlearn's reduction at equal demographic parity on training rows."""
    print("   7. a9a, demographic parity: ExponentiatedGradient of fairlearn")
    if lacks("fairlearn"):
        return

    for eps in (0.05,) if quick else (0.05, 0.02):
        rows = []
        for seed in SEEDS[: 1 if quick else 3]:
            train, test = a9a(seed)
            dense = train.X.toarray()
            start = time.process_time()
            base = LogisticRegression(solver="liblinear")
            theirs = _fairlearn.reduction(base, "demographic_parity", 2 * eps)
            theirs.fit(dense, train.y, sensitive_features=train.groups)
            seconds = time.process_time() - start
            # A limit of theirs is on the distance to the overall rate; ours is their training gap.
            bound = rate_gap(theirs._pmf_predict(dense)[:, 1], train.groups)
            start = time.process_time()
            ours = fitted(train, (0.0, 1.0), bound, constraint="demographic_parity")
            ratio = (time.process_time() - start) / seconds
            scores = ours.decision_function(test.X, sensitive_features=test.groups)
            chances = theirs._pmf_predict(test.X.toarray())[:, 1]
            gain = np.mean(np.where(test.y > 0, 1, -1) * ((scores > 0) - chances))
            gaps = rate_gap(scores > 0, test.groups), rate_gap(chances, test.groups)
            rows.append([gain, ratio, roc_auc_score(test.y, scores), *gaps])
        gain, ratio, auc, gap, their_gap = np.median(rows, axis=0).tolist()
        note = f"gaps on test rows {gap:.3f} / {their_gap:.3f}"
        figure(results, f"eps {eps}: accuracy, ours - theirs", gain, ">= -0.002", note)
        figure(results, f"eps {eps}: CPU, ours / theirs", ratio, "<= 0.1", f"AUC {auc:.3f}")


def rate_gap(positive: Any, groups: Any) -> float:
    """Return the difference of the mean predictions of two groups."""
    return abs(float(positive[groups == 1].mean() - positive[groups == 0].mean()))


def cost(results: dict[str, Any], quick: bool) -> None:
    """Figure 8: repair of a million scores, one evaluation of the smooth problem, five groups."""
    n = 100_000 if quick else 1_000_000
    print(f"   8. {n} scores of five groups; an evaluation on a9a; five groups of a9a by race")
    rng = np.random.default_rng(SEEDS[0])
    groups = rng.integers(0, 5, n)
    X = rng.normal(size=(n, 1)) + 0.3 * groups[:, None]
    y = rng.random(n) < 1 / (1 + np.exp(-X[:, 0]))
    promise = promise_of_fit(
        "statistical_parity",
        A9A_INTERVAL,
        "conditional",
        0.05,
        groups=encode_groups(groups),
        y=y,
        classes=np.array([False, True]),
        weights=None,
    )
    fitted_before = FrozenEstimator(LogisticRegression(C=1e6).fit(X, y))
    calibrator = PartialParityCalibrator(fitted_before, A9A_INTERVAL)
    times = alternate(
        {
            "repair": lambda: repair_scores(promise, X[:, 0]),
            "whole": lambda: calibrator.fit(X, y, sensitive_features=groups),
        },
        3,
    )
    note = f"fit of the calibrator around a fitted scorer {times['whole']['cpu']:.2f} s"
    figure(results, "repair: seconds", times["repair"]["cpu"], "<= 1", note)

    train, _ = a9a(SEEDS[0])
    problem = problem_15(train, 0.05, Surrogate("smoothstep", 0.6))
    theta = problem.start(rng.normal(size=problem.model.n_parameters) / 20)
    multipliers = np.ones(problem.n_constraints)

    def evaluate() -> None:
        for k in range(20):
            problem.evaluate(theta + 1e-9 * k).gradient(multipliers)

    milliseconds = 50 * alternate({"al": evaluate}, 9)["al"]["cpu"]
    title = f"value and gradient, {problem.n_constraints} constraints: ms"
    figure(results, title, milliseconds, "<= 3")

    rows = []
    for seed in SEEDS[: 1 if quick else None]:
        train, test = a9a(seed, group="race")
        model = fitted(train, A9A_INTERVAL, 0.05)
        fairness, accuracy = of_test(
            model, test, partial_statistical_parity_gap, interval=A9A_INTERVAL
        )
        scores = rng.random(test.y.size)
        floor = noise_floor(
            partial_statistical_parity_gap,
            None,
            scores,
            sensitive_features=test.groups,
            interval=A9A_INTERVAL,
            n_permutations=20,
            random_state=0,
        )
        rows.append([fairness, 1 - floor.mean, accuracy])
    fairness, least, accuracy = np.mean(rows, axis=0).tolist()
    note = f"fairness {fairness:.3f}, of alike groups {least:.3f}"
    figure(
        results, "five races: fairness - that of alike groups", fairness - least, ">= -0.03", note
    )
    figure(results, "five races: accuracy", accuracy, ">= 0.843")


def main(quick: bool = False) -> dict[str, Any]:
    """Run all figures."""
    results: dict[str, Any] = {}
    if data_folder() is None:
        return results
    for part in (unconstrained, rows_of_paper, solvers, certificates, definition, peers, cost):
        part(results, quick)
    return results


def canary() -> list[float]:
    """Return the results of a small cell."""
    train, test = bank(SEEDS[0])
    model = fitted(train, BANK_INTERVAL, 0.1)
    return [*of_test(model, test, partial_statistical_parity_gap, interval=BANK_INTERVAL)]
