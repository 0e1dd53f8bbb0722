"""Optimisation algorithms: one file per algorithm, each sees a problem and never an estimator.

A solver registers itself in :data:`SOLVERS` and has one method::

    solve(problem, theta0, *, random_state, callback) -> SolverResult

It asks the problem only for the methods that it lists in its class attribute ``needs``; a mismatch
is an error that names both. ``callback(theta) -> stop`` is called once after each iteration. A
solver never prints; it logs.
"""

from skfair.solvers.alternating import alternating_gradient
from skfair.solvers.base import SOLVERS, SolverResult, check_needs

__all__ = ["SOLVERS", "SolverResult", "alternating_gradient", "check_needs"]
