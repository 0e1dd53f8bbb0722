r"""Stochastic ghost method: steps towards the solution of a quadratic model of the problem.

Algorithm 1 of the paper that compares stochastic solvers, for one-sided constraints G <= 0. The
direction at a point is the solution of (8),

.. math:: \min_d \; g'd + \frac{\tau}{2} |d|^2 \quad \text{subject to} \quad
   G + J d \le \kappa, \; |d|_\infty \le \beta

with estimates g, G and J from a batch. The solution is not linear in the batch, so its mean over
batches is biased. The estimator (9) removes the bias: it solves (8) for a batch of 2^(N+1) units
with a random N (the level), for the two halves of this batch, and for one unit.

Points that the paper leaves open, and changes:

- kappa is "a certain convex combination": (1 - mixing) times the largest violation plus mixing
  times the smallest violation of the linear model within a box of half-width rho. The latter is
  not found by a linear programme but by a scan along two lines. This can only make kappa larger,
  so (8) stays feasible. With the printed mixing, 0.5, a step repairs half of a violation but may
  use all the room of a satisfied constraint, so noise drives the iterates out of the feasible set.
  The default is 0.95.
- N is at most ``max_level``, since the expected number of rows is infinite for p0 < 1/2. The
  estimate is then the mean direction of batches of 2^(max_level + 1) units.
- A unit is ``n_loss`` rows and ``n_per_cell`` rows per cell, where a cell is a group or a class
  within a group. In the paper it is a single row, and then a difference of group means has no
  meaning.
- The whole batch is not evaluated, because its g, G and J are the means over its halves.

alpha -> length of the step, alpha_hat -> its decrease, lam -> multipliers of (8).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.optimize import minimize, nnls

from skfair._typing import FloatArray
from skfair.papers.one_sided import OneSided
from skfair.problems.protocol import Evaluation, StochasticProblem
from skfair.solvers.base import SOLVERS
from skfair.solvers.erm.stochastic import StochasticSolver, TrainingState
from skfair.solvers.parameters import Count, CountOrZero, Positive, Share, ShareOrZero
from skfair.utils.docs import documented
from skfair.utils.rounding import ROUNDING


class QuadraticModel(NamedTuple):
    """The data of the quadratic problem (8)."""

    gradient: FloatArray  # (n_parameters,): of the objective
    values: FloatArray  # (n_one_sided,): of the one-sided constraints
    jacobian: FloatArray  # (n_one_sided, n_parameters): of the one-sided constraints


@dataclass(kw_only=True)
class GhostState(TrainingState):
    """State of a ghost method."""

    alpha: float  # length of the last step


@documented
@SOLVERS.register("ghost")
@dataclass
class Ghost(StochasticSolver[GhostState]):
    r"""Stochastic ghost method.

    Parameters
    ----------
    n_loss : int, default=32
        Number of rows of a unit batch for the objective.
    n_per_cell : int, default=32
        Number of rows of a unit batch for each cell of each constraint.
    max_constraint_rows : int, default=512
        Maximum number of rows per step for all cells together.
    output : {"best", "last"}, default="best"
        The iterate that is returned. If "best", it is the best evaluation of the second half of the
        run. If "last", it is the last one.
    alpha : float, default=0.5
        Length of the first step, as a fraction of the direction.
    alpha_hat : float, default=0.05
        Decrease of the step length, which is multiplied by ``1 - alpha_hat * alpha`` in each step.
    p0 : float, default=0.4
        Parameter of the geometric distribution of the level N. With larger values, fewer rows are
        drawn.
    max_level : int, default=4
        Maximum level.
    tau : float, default=1.0
        Curvature of the quadratic model. With larger values, the directions are shorter.
    beta : float, default=10.0
        Maximum entry of a direction.
    rho : float, default=0.8
        Half-width of the box in which kappa searches for smaller violations. It must be below
        ``beta``.
    mixing : float, default=0.95
        Weight of these smaller violations in kappa, in [0, 1].
    max_constraints : int, default=200
        Maximum number of one-sided constraints. A constraint with two bounds counts twice. Problems
        with more constraints raise an error, because each constraint costs gradients of its own.

    See Also
    --------
    SSw : Switching subgradient method.
    skfair.solvers.ALM : The default for networks.

    Notes
    -----
    Each step costs one gradient for each constraint and for the objective, for each of three
    batches, and four quadratic problems with one dual variable per constraint. With the defaults,
    1500 steps end within 2e-3 of the optimum and of the limits on COMPAS, and within 1e-2 on Adult.
    The multipliers are the ones of problem (8) for all rows. Initial multipliers are not used.

    References
    ----------
    Kliachkin, A., Lepsova, J., Bareilles, G. and Marecek, J. "Benchmarking stochastic approximation
    algorithms for fairness-constrained training of deep neural networks", Algorithm 1.

    Facchinei, F. and Kungurtsev, V. "Stochastic approximation for expectation objective and
    expectation inequality-constrained nonconvex optimization", 2023.

    Examples
    --------
    >>> from skfair.papers.benchmark.ghost import Ghost
    >>> solver = Ghost.paper()
    >>> solver.p0, solver.alpha, solver.mixing
    (0.4, 0.05, 0.5)
    """

    n_loss: Count = 32
    n_per_cell: Count = 32
    max_constraint_rows: Count = 512
    alpha: Positive = 0.5
    alpha_hat: Share = 0.05
    p0: Share = 0.4
    max_level: CountOrZero = 4
    tau: Positive = 1.0
    beta: Positive = 10.0
    rho: Positive = 0.8
    mixing: ShareOrZero = 0.95
    max_constraints: Count = 200

    @classmethod
    def paper(cls) -> Self:
        """Return the solver with the parameters of section 4 of the paper.

        The batches differ from the paper. A unit is one row for each cell. The algorithm also draws
        a row for the loss. If the cells contain all rows, as with loss parity and demographic
        parity, the loss is instead estimated on the rows of the cells, without bias.

        Returns
        -------
        solver : Ghost
            A solver with these parameters.
        """
        return cls(
            n_loss=1,
            n_per_cell=1,
            averaging=None,
            output="last",
            alpha=0.05,
            alpha_hat=0.05,
            p0=0.4,
            max_level=10,
            tau=1.0,
            beta=10.0,
            rho=0.8,
            mixing=0.5,
        )

    def begin(
        self, problem: StochasticProblem, theta0: FloatArray, multipliers0: FloatArray | None = None
    ) -> GhostState:
        n_one_sided = OneSided(problem).n
        if n_one_sided > self.max_constraints:
            raise ValueError(
                f"The ghost method makes a pull-back for each constraint; the problem has "
                f"{n_one_sided} one-sided ones and max_constraints={self.max_constraints}. Choose "
                "solver='alm', whose cost does not depend on their number."
            )
        return GhostState(**vars(self._first_state(problem, theta0, None)), alpha=self.alpha)

    def _step(
        self,
        problem: StochasticProblem,
        state: GhostState,
        n_per_cell: int,
        rng: np.random.RandomState,
    ) -> None:
        def sample(n_units: int) -> QuadraticModel:
            batch = problem.draw(rng, n_units * self.n_loss, n_units * n_per_cell)
            return _quadratic_model(problem, problem.evaluate(state.theta, batch))

        level = min(rng.geometric(self.p0) - 1, self.max_level)
        is_last = level == self.max_level
        probability = (1 - self.p0) ** level * (1.0 if is_last else self.p0)
        odd, even = sample(2**level), sample(2**level)
        both = QuadraticModel(*[(a + b) / 2 for a, b in zip(odd, even, strict=True)])
        of_both, of_odd, of_even = (self._solved(model)[0] for model in (both, odd, even))
        gain = of_both - (of_odd + of_even) / 2
        direction = gain / probability + self._solved(sample(1))[0]  # eq. (9)
        state.alpha *= 1 - self.alpha_hat * state.alpha
        state.point += state.alpha * direction

    def _solved(self, model: QuadraticModel) -> tuple[FloatArray, FloatArray]:
        kappa = relaxation(model, self.rho, self.mixing)
        return solve_quadratic(model, kappa, self.tau, self.beta)

    def _final_multipliers(
        self, problem: StochasticProblem, at: Evaluation, multipliers: FloatArray
    ) -> FloatArray:
        lam = self._solved(_quadratic_model(problem, at))[1]
        return OneSided(problem).signed(lam)


def _quadratic_model(problem: StochasticProblem, at: Evaluation) -> QuadraticModel:
    """Return the data of (8) at an evaluated point."""
    constraints = OneSided(problem)
    signs = np.array([constraints.unit(row) for row in range(constraints.n)])
    signs = signs.reshape(constraints.n, problem.n_constraints)
    return QuadraticModel(at.gradient(), constraints.values(at), signs @ at.jacobian())


def relaxation(model: QuadraticModel, rho: float, mixing: float) -> float:
    """Return kappa, by which the linear constraints are relaxed so that (8) is feasible.

    Parameters
    ----------
    model : QuadraticModel
        The data.
    rho : float
        Half-width of the box of directions that are tried.
    mixing : float
        Weight of the smallest violation found there; the rest is that of the violation now.

    Returns
    -------
    kappa : float
        Not below what some direction of the box reaches.
    """
    values, jacobian = model.values, model.jacobian
    beyond = np.maximum(values, 0.0)
    worst = float(beyond.max(initial=0.0))
    if not worst:
        return 0.0
    # Two directions are scanned. One leads to the corner of the box where the violations, weighted
    # by themselves, fall most. The other leads to the nearest point where all constraints hold, or
    # along the steepest descent if there is no such point.
    steepest = jacobian.T @ beyond
    lam = _nearest_multipliers(jacobian, -values)
    way = steepest if lam is None else jacobian.T @ lam
    longest = float(np.abs(way).max(initial=0.0))
    if longest > 0 and (longest > rho or lam is None):
        way = way * (rho / longest)
    ways = np.stack([rho * np.sign(steepest), way])
    scanned = np.linspace(0, 1, 20)  # values of kappa
    ahead = values[:, None, None] - (jacobian @ ways.T)[:, :, None] * scanned
    reached = max(0.0, float(ahead.max(axis=0).min()))
    return (1 - mixing) * worst + mixing * reached


def solve_quadratic(
    model: QuadraticModel, kappa: float, tau: float, beta: float
) -> tuple[FloatArray, FloatArray]:
    """Solve the quadratic problem (8), which must be feasible.

    Without the box it is the search for the nearest point in a polyhedron. In the rare case that
    this point is outside the box, the dual function is maximised, in which d is clipped to the box.

    Parameters
    ----------
    model : QuadraticModel
        The data.
    kappa : float
        Upper bound of the linear constraints.
    tau : float
        Curvature.
    beta : float
        Largest entry of the solution.

    Returns
    -------
    direction : ndarray of shape (n_parameters,)
        The solution.
    lam : ndarray of shape (n_one_sided,)
        Multipliers of the linear constraints.
    """
    gradient, values, jacobian = model
    with np.errstate(over="ignore", invalid="ignore"):
        room = kappa - values + jacobian @ gradient / tau  # slack at the point -gradient / tau
    if not np.isfinite(room).all():
        largest = max(float(np.abs(part).max(initial=0.0)) for part in (gradient, jacobian))
        raise ValueError(
            f"Products of gradients overflow in the ghost method: largest entry {largest:g}. "
            "Make the numbers in X and sample_weight less different in size, or choose another "
            "solver."
        )
    nearest = _nearest_multipliers(jacobian, room)
    lam = np.zeros(values.size) if nearest is None else tau * nearest
    direction = -(gradient + jacobian.T @ lam) / tau
    if nearest is not None and np.abs(direction).max(initial=0.0) <= beta:
        return direction, lam

    def minus_dual(lam: FloatArray) -> tuple[float, FloatArray]:
        d = np.clip(-(gradient + jacobian.T @ lam) / tau, -beta, beta)
        excess = values - kappa + jacobian @ d
        return -float(gradient @ d + 0.5 * tau * (d @ d) + lam @ excess), -excess

    if lam.size:
        options: Any = {"ftol": 1e-15, "gtol": 1e-10, "maxiter": 500}
        bounds = [(0, None)] * lam.size
        minimum = minimize(
            minus_dual, lam, jac=True, method="L-BFGS-B", bounds=bounds, options=options
        )
        lam = minimum.x
    return np.clip(-(gradient + jacobian.T @ lam) / tau, -beta, beta), lam


def _nearest_multipliers(jacobian: FloatArray, room: FloatArray) -> FloatArray | None:
    """Return the multipliers of the point x nearest to 0 with jacobian @ x <= room.

    The result is None if there is no such point. Rows of zeros are left out, because no x changes
    them. The dual is a nonnegative least-squares problem with one more row than a triangular factor
    of the Jacobian (Lawson and Hanson's least-distance programming). Its residual is 0 if no point
    satisfies the constraints.
    """
    lam = np.zeros(room.size)
    lengths = np.sqrt((jacobian**2).sum(axis=1))
    rows = np.flatnonzero(lengths)
    if room[rows].min(initial=0.0) >= 0:
        return lam
    scale = float((-room[rows] / lengths[rows]).max())  # a lower bound of |x|
    factor: Any = np.linalg.qr(jacobian[rows].T, mode="r")
    matrix = np.vstack([-factor, -room[rows] / scale])
    target = np.zeros(matrix.shape[0])
    target[-1] = 1.0
    solution = nnls(matrix, target, maxiter=30 * rows.size + 30)[0]
    missing = 1.0 - float(matrix[-1] @ solution)
    if missing <= ROUNDING:
        return None
    lam[rows] = solution * scale / missing
    return lam
