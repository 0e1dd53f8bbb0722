"""Constraints on hundreds of groups for the benchmark ``plada``: figure 3, a network and lines.

Groups are those of appendix E of the paper. The constraints are
:class:`~skfair.constraints.ExcessLoss`, of each group and as a mean over groups, on the
members of the groups only.
"""

import time
import warnings
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.model_selection import train_test_split

from benchmarks._erm_data import Part, intersections
from benchmarks.papers._plada_runs import (
    EACH,
    MEAN,
    MEASURED,
    N_LAYERS,
    SEEDS,
    group_losses,
    rounded,
    signs,
    thinned,
    watched,
)
from skfair import Sensitive
from skfair.classification import ConstrainedERMClassifier
from skfair.constraints import Constraint, ExcessLoss
from skfair.constraints.base import TrainingRows
from skfair.constraints.bound import BoundConstraint
from skfair.groups.encoding import encode_groups
from skfair.losses import make_loss
from skfair.models import LinearScore, MLPScore
from skfair.papers import MultiplierModel
from skfair.problems.erm.problem import ConstrainedERM, LinearConstrainedERM
from skfair.solvers.base import SOLVERS

NEAR_BOUND = 0.01  # violations up to this are near
BATCH = 64  # rows of a stochastic step: an epoch is as many steps as make all rows
# A stochastic epoch costs many full ones, so there are fewer by this factor: of lines, of networks.
FEWER, FEWER_OF_NETWORKS = 10, 40


class Split(NamedTuple):
    """Training and test rows, and what describes the groups."""

    train: Part
    test: Part
    descriptions: Any  # (n_groups, 3)


def split(seed: int) -> Split:
    """Split the rows; keep the groups that have members and others in both parts."""
    part, descriptions = intersections()
    part = part._replace(groups=part.groups.astype(float))
    train, test = (
        Part(*(values[rows] for values in part))
        for rows in train_test_split(
            np.arange(part.y.size), test_size=0.3, stratify=part.y, random_state=seed
        )
    )
    share = train.groups.mean(axis=0)
    is_used = (share > 0.01) & (share < 0.99) & test.groups.any(axis=0)
    train, test = (one._replace(groups=one.groups[:, is_used]) for one in (train, test))
    return Split(train, test, descriptions[is_used])


def bound_to_groups(rule: Constraint, train: Part, bound: float) -> BoundConstraint:
    """Bind a constraint on hinge losses to the groups."""
    groups = encode_groups(train.groups.astype(int), intersectional=False)
    loss = make_loss("hinge", "classification")
    rows = TrainingRows(groups, signs(train.y), None, loss, (0, 1))
    return rule.prepare(rows, bound)


def rivals(descriptions: Any, an_epoch: int) -> dict[str, MultiplierModel]:
    """Return the multiplier model of Narasimhan et al., evaluated once an epoch."""
    options = {"n_loss": BATCH, "n_per_cell": BATCH, "check_every": an_epoch}
    return {
        "multiplier model, library": MultiplierModel(descriptions=descriptions, **options),
        "multiplier model, paper": replace(
            MultiplierModel.paper(), descriptions=descriptions, **options
        ),
    }


def steps_of(solver: Any, n_epochs: int, an_epoch: int, fewer: int) -> int:
    """Return how many steps a run has."""
    return max(n_epochs // fewer, 1) * an_epoch if solver.is_stochastic else n_epochs


def intersectional(n_epochs: int, width: int, seed: int) -> dict[str, Any]:
    """Train the network on Communities and Crime with hinge losses of groups bounded as in (18).

    (18) limits the mean over the groups, the text speaks of one constraint for each: both are run.
    The multiplier model, whose epochs take two seconds each, is trained on the first split only.
    """
    train, test, descriptions = split(seed)
    loss, targets = make_loss("hinge", "classification"), signs(train.y)
    model = MLPScore(train.X, (width,) * N_LAYERS)

    def problem(rule: Constraint, bound: float) -> ConstrainedERM:
        rules = [bound_to_groups(rule, train, bound)]
        return ConstrainedERM(model, loss, targets, rules, alpha=1 / targets.size)

    problems = {
        "every group": problem(ExcessLoss(members_only=True), EACH),
        "mean": problem(ExcessLoss(agg="mean", members_only=True), MEAN),
    }
    plada = SOLVERS["plada"]
    solvers = {
        "PLADA, library": plada(),
        "PLADA, paper": plada.paper(network=True),
        # With neither centres nor extrapolation this is descent and ascent on the Lagrangian.
        "plain Lagrangian": replace(SOLVERS["ipp_conex"](), proximal=0.0, extrapolation=0.0),
    }
    runs = {(rule, name): (problems[rule], solvers[name]) for rule in problems for name in solvers}
    an_epoch = -(-targets.size // BATCH)
    described = {"every group": descriptions, "mean": None} if seed == SEEDS[0] else {}
    for rule, told in described.items():
        for name, rival in rivals(told, an_epoch).items():
            runs[rule, name] = problems[rule], rival
    runs["no rule", "gradient steps"] = problems["mean"].relaxed(), plada()
    out: dict[str, Any] = {"n_groups": train.groups.shape[1], "runs": {}}
    parts = {"train": train, "test": test}
    for (rule, name), (solved, solver) in runs.items():
        with np.errstate(all="ignore"):  # the paper's step can diverge
            run = watched(
                solved, solver, steps_of(solver, n_epochs, an_epoch, FEWER_OF_NETWORKS), seed
            )
            kept = thinned(len(run.thetas))
            measured = {
                part: [group_losses(rows, model.raw(run.thetas[k])) for k in kept]
                for part, rows in parts.items()
            }
        curves = zip(MEASURED, zip(*measured["test"], strict=True), strict=True)
        out["runs"][f"{rule}: {name}"] = {
            "epoch": kept.tolist(),
            "curves": {measure: rounded(values) for measure, values in curves},
            "last": {part: rounded(rows[-1]) for part, rows in measured.items()},
            "seconds": float(run.result.history["seconds"][-1]),
        }
    return out


def lines(n_epochs: int, seed: int) -> dict[str, Any]:
    """Train linear scores under a limit for every group: epochs and CPU until all are kept."""
    train, test, descriptions = split(seed)
    loss, targets = make_loss("hinge", "classification"), signs(train.y)
    rules = [bound_to_groups(ExcessLoss(members_only=True), train, EACH)]
    model = LinearScore(train.X)
    problem = LinearConstrainedERM(model, loss, targets, rules, alpha=1 / targets.size)
    an_epoch = -(-targets.size // BATCH)
    solvers = {
        "al_newton": SOLVERS["al_newton"](),
        "PLADA, library": SOLVERS["plada"](),
        "PLADA, paper": SOLVERS["plada"].paper(),
        **rivals(descriptions, an_epoch),
    }
    watched(problem, solvers["al_newton"], 5)  # loads what is compiled
    out: dict[str, Any] = {"n_groups": train.groups.shape[1], "runs": {}}
    for name, solver in solvers.items():
        with np.errstate(all="ignore"):
            run = watched(problem, solver, steps_of(solver, n_epochs, an_epoch, FEWER), seed)
        missed = run.result.history["max_violation"]
        seconds = run.result.history["seconds"]
        is_far = ~(missed <= NEAR_BOUND)
        stays = missed.size - int(np.argmax(is_far[::-1])) if is_far.any() else 0
        weights, intercept = model.raw(run.result.theta)
        network = [weights[:, None]], [np.array([intercept])]
        out["runs"][name] = {
            "epochs": int(run.result.n_iter / (an_epoch if solver.is_stochastic else 1)),
            "near": [stays, float(seconds[stays])] if stays < missed.size else None,
            "violation": float(problem.violation(problem.evaluate(run.result.theta))),
            "objective": float(problem.evaluate(run.result.theta).objective),
            "train": rounded(group_losses(train, network)),
            "test": rounded(group_losses(test, network)),
            "seconds": float(seconds[-1]),
        }
    out["runs"]["ConstrainedERMClassifier"] = by_estimator(train, test)
    return out


def by_estimator(train: Part, test: Part) -> dict[str, Any]:
    """Fit the estimator with its defaults; it keeps exact losses, also of those in no group."""
    started = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # small groups
        fitted = ConstrainedERMClassifier(
            ExcessLoss(EACH), loss="hinge", sensitive=Sensitive(intersectional=False)
        ).fit(train.X, train.y, sensitive_features=train.groups.astype(int))
    seconds = time.process_time() - started
    network = [fitted.coef_.T], [fitted.intercept_]
    measured = group_losses(train, network)
    return {
        "epochs": int(fitted.n_iter_),
        "near": None,
        "violation": float(measured[-1] - EACH),
        "objective": float(fitted.objective_),
        "train": rounded(measured),
        "test": rounded(group_losses(test, network)),
        "seconds": seconds,
    }
