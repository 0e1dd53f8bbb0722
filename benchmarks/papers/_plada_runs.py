"""Runs of the solvers for the benchmark ``plada``: their course, their prices, a network.

A run is watched from outside: loss, violation and CPU seconds come from the solver's own history,
the parameters from its callback. Stationarity is worked out after the run, off the clock, and by
one formula for all solvers, as switching subgradients have no multipliers of their own.
"""

from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import nnls

from benchmarks._erm_data import Part
from skfair.models import mlp_scores
from skfair.papers.one_sided import OneSided

SEEDS = (3101, 3102, 3103)
NEAR = (1e-2, 1e-3)  # distances of the loss from the optimum, and violations, called near
N_POINTS = 14  # of each curve that is kept
# The paper says five hidden layers, not how wide, and gives no limits: for the excess loss of every
# group, and for its mean over the groups.
N_LAYERS, EACH, MEAN = 5, 0.1, 0.02
MEASURED = ("error", "mean excess", "largest excess")


class Run(NamedTuple):
    """A solver's result, and parameters and constraint values of all iterates."""

    result: Any
    thetas: list[Any]
    values: list[Any]


def watched(problem: Any, solver: Any, n_steps: int, seed: int = SEEDS[0]) -> Run:
    """Run a solver for a number of steps (``al_newton`` until it is done) and keep its iterates."""
    start = problem.start(np.random.RandomState(seed))
    thetas, values = [start], [problem.evaluate(start).constraints]

    def keep(theta: Any) -> None:
        thetas.append(theta)
        values.append(problem.evaluate(theta).constraints)  # the solver has just asked for it

    result = solver.solve(problem, start, tol=1e-9, max_iter=n_steps, callback=keep)
    return Run(result, thetas, values)


def course(problem: Any, run: Run, optimum: float) -> dict[str, Any]:
    """Return the curves of a run, when it came near the optimum to stay, and what it returned."""
    history = run.result.history
    excess = history["objective"] - optimum
    distance = np.maximum(np.abs(excess), history["max_violation"])
    returned = problem.evaluate(run.result.theta)
    kept = thinned(len(run.thetas))
    return {
        "curves": {
            "seconds": rounded(history["seconds"][kept]),
            "loss": rounded(excess[kept]),
            "violation": rounded(history["max_violation"][kept]),
            "stationarity": rounded([stationarity(problem, run.thetas[k]) for k in kept]),
        },
        "near": [settled(distance <= near, history["seconds"]) for near in NEAR],
        "n_steps": run.result.n_iter,
        "seconds": float(history["seconds"][-1]),
        "returned": rounded(
            [
                returned.objective - optimum,
                problem.violation(returned),
                stationarity(problem, run.result.theta),
            ]
        ),
    }


def stationarity(problem: Any, theta: Any) -> float:
    """Return how far a point is from stationary: the best multipliers are found for it.

    The smallest length, over multipliers >= 0, of the gradient of the Lagrangian together with
    the products of multipliers and room to the bounds.
    """
    at = problem.evaluate(theta)
    jacobian = at.jacobian()
    room = np.maximum(-OneSided(problem).values(at), 0.0)  # of all upper, then all lower bounds
    system = np.vstack([np.vstack([jacobian, -jacobian]).T, np.diag(room)])
    right = np.concatenate([-at.gradient(), np.zeros(room.size)])
    return float(nnls(system, right)[1])


def prices(problem: Any, solver: Any, run: Run) -> dict[str, list[Any]]:
    """Return |lambda - mu|, and lambda and mu of the row that presses most, over the iterations.

    They are those of the run: by equations (10) to (12) they follow from the constraint values.
    """
    constraints = OneSided(problem)
    G = [constraints.values(SimpleNamespace(constraints=value)) for value in run.values]
    rho = solver.alpha / (1 + solver.alpha * solver.beta)
    tau = 1 / (3 * rho) if solver.tau is None else solver.tau
    mu = np.zeros(constraints.n)
    u = np.clip(-G[0], 0.0, solver.u_max)
    lam = mu + rho * (G[0] + u)
    rows = [(lam, mu)]
    for k in range(1, len(G)):
        u = np.clip(u - tau * lam, 0.0, solver.u_max)
        gap = lam - mu
        limit = rho * solver.kappa / (k * (gap @ gap + 1))
        mu = mu + min(solver.gamma0, limit) / rho * gap
        lam = mu + rho * (G[k] + u)
        rows.append((lam, mu))
    replayed = constraints.signed(np.maximum(lam, 0.0))
    if not np.allclose(replayed, run.result.multipliers, rtol=1e-9, atol=1e-12):
        raise RuntimeError("the prices worked out here are not those that the solver returned")
    kept, worst = thinned(len(rows)), int(np.argmax(lam))
    return {
        "iteration": kept.tolist(),
        "gap": rounded([np.linalg.norm(rows[k][0] - rows[k][1]) for k in kept]),
        "lambda": rounded([rows[k][0][worst] for k in kept]),
        "mu": rounded([rows[k][1][worst] for k in kept]),
    }


def group_losses(part: Part, network: Any) -> tuple[float, ...]:
    """Return error rate, and mean (18) and maximum of the groups' excess hinge losses."""
    scores = mlp_scores(*network, part.X)
    if not np.isfinite(scores).all():
        return (np.nan,) * len(MEASURED)
    margins = signs(part.y) * scores
    hinge = np.maximum(1 - margins, 0.0)
    excess = hinge @ part.groups / part.groups.sum(axis=0) - hinge.mean()
    return np.mean(margins <= 0), excess.mean(), excess.max()


def signs(y: Any) -> Any:
    return np.where(y > 0, 1.0, -1.0)


def thinned(length: int) -> Any:
    """Return positions of a curve, evenly spread on a logarithmic axis, with both ends."""
    return np.unique(np.rint(np.geomspace(1, length, N_POINTS)).astype(int)) - 1


def settled(is_near: Any, seconds: Any) -> list[Any] | None:
    """Return the step from which on all are near, and its CPU seconds; None if the last is not."""
    step = is_near.size - int(np.argmin(is_near[::-1])) if not is_near.all() else 0
    return [step, float(seconds[step])] if step < is_near.size else None


def rounded(values: Any) -> list[float | None]:
    """Return plain numbers of three digits; None for what has diverged."""
    return [float(f"{value:.3g}") if abs(value) < 1e6 else None for value in values]
