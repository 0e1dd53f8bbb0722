"""What the solvers of papers say of wrong options and of problems that they do not solve."""

import numpy as np
import pytest

from skfair.classification import PartialParityCalibrator, PartialParityClassifier
from skfair.cluster import FairKMeans, ParetoFairKMeans
from skfair.cluster.kmeans.solver import clustering_solver
from skfair.papers import (
    MultiplierModel,
    PladaStochastic,
    Smooth,
    Swap,
    Variational,
    alternating_gradient,
)
from skfair.papers.benchmark.ghost import Ghost, QuadraticModel, solve_quadratic
from skfair.papers.idca.parts import part_of_moment
from skfair.solvers.base import SOLVERS
from skfair.solvers.parameters import check_parameters
from tests.messages import later, messages
from tests.papers.clustering_problems import free_problem, soft_run
from tests.partial_parity import test_ranks_in_groups as ranks
from tests.seeds import generator
from tests.small_problems import build, people

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
X = generator().normal(size=(60, 2))
GROUPS = np.arange(60) % 3
Y = np.arange(60) // 3 % 2
ONES = np.ones((1, 60), int)
LARGE = QuadraticModel(np.full(2, 1e160), np.zeros(1), np.array([[1e160, -2e160]]))


@later
def ranged(name, **values):
    check_parameters(SOLVERS[name](**values))


@later
def clustered(model, **options):
    model(3, **options).fit(X, sensitive_features=GROUPS)


def fronted(weights):
    return clustered(ParetoFairKMeans, solver=Variational(front_weights=weights))


def starting(labels):
    return clustered(ParetoFairKMeans, solver=Swap(starts=labels), max_iter=1)


@later
def descend(labels=GROUPS, **options):
    solver = clustering_solver(Swap(**options))
    solver.descend(X, GROUPS, 3, 3, labels=labels, random_state=0)


@later
def softly(kind, *steps, n_groups=3, **options):
    solver = clustering_solver(kind(*steps, **options))
    soft_run(solver, free_problem(X, GROUPS, 3, n_groups), X[:3], 10, 0.01)


def weighed(weight=0.5, **options):
    return softly(Variational, weight, **options)


def smooth(n_a=3, n_b=2, **options):
    return softly(Smooth, n_a, n_b, **options)


@later
def alternate(x0=(1.0,), **options):
    options = {"n_a": 1, "n_b": 1, "step": 0.1} | options
    alternating_gradient(lambda x, rng: x, lambda x, rng: x, x0, **options)


@later
def solve(solver, n_groups=2):
    problem = build(people(n_levels=(n_groups,)), "demographic_parity", 0.1)
    solver.solve(problem, problem.start(None))


def playing(**options):
    return solve(MultiplierModel(**options))


@later
def ranked(constraint, y=Y, **options):
    model = PartialParityClassifier((0.1, 0.5), constraint, **options)
    model.fit(X, y, sensitive_features=GROUPS)


@later
def in_groups(solver):
    rows, y, group = ranks.people()
    constraint = ranks.in_groups("equal_opportunity")
    model = PartialParityClassifier(ranks.INTERVAL, constraint, solver=solver)
    model.fit(rows, y, sensitive_features=group)


def calibrated():
    model = PartialParityCalibrator(None, constraint="group_auc_quadratic")
    model.fit(X, Y, sensitive_features=GROUPS)


WRONG = [
    # One name, two ranges: beta is a share of one solver and a length of another.
    (r"Ghost\(beta=0\): beta must be a number above 0", ranged("ghost", beta=0)),
    (r"Plada\(beta=7\): beta must be .* above 0 and below 1", ranged("plada", beta=7)),
    (r"Plada\(alpha=1\): alpha must be a number above 1", ranged("plada", alpha=1)),
    ("u_max must be a number above 0", ranged("plada", u_max=0.0)),
    ("eta must be a number above 0", ranged("plada", eta=-1.0)),
    (r"SSG\(schedule='none'\): schedule must be one of", ranged("ssg", schedule="none")),
    ("n_inner must be an integer above 0", ranged("ipp_ssg", n_inner=2.5)),
    ("beta must be a number above 0 and at most 1", ranged("ssl_alm", beta=0)),
    ("alpha must be", lambda: PladaStochastic(alpha=1.0)),
    ("beta must be", lambda: PladaStochastic(beta=1.0)),
    ("gamma0 must be", lambda: PladaStochastic(gamma0=0)),
    ("hidden_layer_sizes must be positive integers", playing(hidden_layer_sizes=1e-9)),
    ("hidden_layer_sizes must be positive integers", playing(hidden_layer_sizes=(0,))),
    ("hidden_layer_sizes must be positive integers", playing(hidden_layer_sizes="ab")),
    (r"the shape \(3, 1\), and the problem has 1", playing(descriptions=np.ones((3, 1)))),
    ("10 one-sided ones and max_constraints=9.*'alm'", solve(Ghost(max_constraints=9), 5)),
    ("entry 2e.160.*sample_weight", lambda: solve_quadratic(LARGE, 0.0, 2.0, 10.0)),
    # clusterings
    (
        "solver='swap' knows no size_bounds",
        clustered(FairKMeans, size_bounds=(0, 60), solver="swap"),
    ),
    ("front_weights", fronted(())),
    ("front_weights", fronted((-1.0,))),
    ("front_weights", fronted((0.0, -1.0))),
    ("front_weights", fronted((np.nan,))),
    ("front_weights", fronted(("much",))),
    (r"each of the 60 rows of X, got int64 of shape \(1, 9\)", starting(ONES[:, :9])),
    ("must be integers.*got float64", starting(1.0 * ONES)),
    ("numbers from 0 to 2.*from 3 to 3", starting(3 * ONES)),
    ("numbers from 0 to 2", starting(-ONES)),
    (r"of shape \(0, 60\)", starting(ONES[:0])),
    (r"of shape \(n_starts, n_samples\), got shape \(60,\)", starting(ONES[0])),
    ("numbers from 0 to 2, one per row of X", descend(3 * ONES[0])),
    ("values from -1 to -1", descend(-ONES[0])),
    (r"shape \(59,\)", descend(ONES[0, :59])),
    ("'swap_candidates' .*'auto'.* Got 'few'", descend(swap_candidates="few")),
    (r"not both 0, got \[\(0, 0\)\]", descend(n_kmeans_steps=0, n_swap_steps=0)),
    (r"'fairness_weight' .* in the range \[0.0, inf\). Got -1.0", weighed(-1.0)),
    ("Got nan", weighed(np.nan)),
    ("Got inf", weighed(np.inf)),
    ("must be 3 numbers", weighed(target_shares=[0.5, 0.5])),
    ("at least 0 and not all 0", weighed(target_shares=[-1, 1, 1])),
    ("at least 0 and not all 0", weighed(target_shares=[0, 0, 0])),
    ("share of group 3, which has no rows", weighed(n_groups=4, target_shares=[1] * 4)),
    (r"'lipschitz' .* in the range \(0.0, inf\)", weighed(lipschitz=0.0)),
    (r"'n_updates' .* in the range \[1, inf\)", weighed(n_updates=0)),
    ("'temperature' .*'auto'.* Got 'hot'", smooth(temperature="hot")),
    ("Got 0.0", smooth(temperature=0.0)),
    ("a pair of them", smooth(temperature=(1.0, 0.1, 0.01))),
    (r"'sharpness' .* in the range \(0.0, inf\)", smooth(sharpness=0.0)),
    (r"'batch_size' .* in the range \[1, inf\) or None. Got 0", smooth(batch_size=0)),
    ("must not both be 0", smooth(0, 0)),
    # alternating gradients
    ("x0 must be numbers, got ", alternate("somewhere")),
    ("x0 must be numbers, got ", alternate([[1.0], [1.0, 2.0]])),
    ("x0 must be numbers, got ", alternate({"x": 1.0})),
    ("n_a and n_b must not both be 0", alternate(n_a=0, n_b=0)),
    ("n_a must be an integer from 0", alternate(n_a=-1)),
    ("max_iter must be an integer from 1 to inf, got 0", alternate(max_iter=0)),
    ("needs strong_convexity", alternate(step="harmonic")),
    ("strong_convexity must be .* above 0", alternate(step="harmonic", strong_convexity=0.0)),
    ("lipschitz must be a number above 0", alternate(lipschitz=-1.0)),
    ("got 'constant'", alternate(step="constant")),
    ("got 0.0", alternate(step=0.0)),
    # intervals of ranks
    ("solver='al_lbfgs'", in_groups("idca")),
    ("solver='al_lbfgs'", in_groups("dc_ssg")),
    ("solver='al_lbfgs'", in_groups("dc_penalty")),
    ("cannot be satisfied by maps of the scores", calibrated),
    *(
        (words, ranked(constraint, **options, group_aware=aware))
        for aware in (True, False)
        for words, constraint, options in (
            ("no meaning.*'group_auc_quad", "group_auc_quadratic", {"scale": "ccdf"}),
            ("solver='al_lbfgs'", "group_auc_quadratic", {"solver": "repair"}),
            (
                "1 cell: group '?0'? with y=1.*Merge",
                "inter_group_pairwise",
                {"y": Y * (GROUPS > 0)},
            ),
        )
    ),
]
test_errors = messages(
    *((ValueError, *row) for row in WRONG),
    (TypeError, "object is no constraint whose", lambda: part_of_moment(object(), "plus")),
    (TypeError, "no 'on_rows'", ranked("demographic_parity", solver="idca_stochastic")),
    (TypeError, "no 'on_rows'", ranked("group_auc_quadratic", solver="idca_stochastic")),
)
