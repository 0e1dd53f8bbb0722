"""Which solver a clusterer runs, and with which parameters."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from sklearn.base import BaseEstimator

from skfair.solvers.clustering.base import ClusteringSolver, clustering_solver
from skfair.utils.warn import warn_user

# Parameters of estimators that became fields of solvers.
_OF_SOLVERS = (
    "n_kmeans_steps",
    "n_swap_steps",
    "swap_target",
    "swap_candidates",
    "batch_size",
    "fairness_weight",
)


def chosen_solver(estimator: BaseEstimator) -> ClusteringSolver:
    """Return the solver of an estimator, with the deprecated parameters that it was given."""
    parameters = estimator.get_params(deep=False)
    solver = clustering_solver(parameters["solver"])
    defaults = _defaults(estimator)
    given = {name: parameters[name] for name in _OF_SOLVERS if parameters[name] != defaults[name]}
    if not given:
        return solver
    kind = type(solver)
    names = {field.name for field in fields(kind)}
    taken = {name: value for name, value in given.items() if name in names}
    if taken and isinstance(parameters["solver"], str):
        solver = clustering_solver(kind(**taken))
        instead = ", ".join(f"{name}={value!r}" for name, value in taken.items())
        advice = f"Pass solver={kind.__name__}({instead}), from skfair.solvers, instead."
    else:
        advice = f"They have no effect with this solver, {kind.__name__}: leave them out."
    warn_user(
        f"Parameters of single solvers are deprecated in {type(estimator).__name__} and will be "
        f"removed: {', '.join(given)}. {advice}",
        FutureWarning,
    )
    return solver


def kept_balance(estimator: BaseEstimator, solver: ClusteringSolver) -> float | None:
    """Return ``min_balance``; None where it is the default and the solver cannot keep any."""
    balance: float | None = estimator.get_params(deep=False)["min_balance"]
    if solver.keeps_balance or balance is None or balance != _defaults(estimator)["min_balance"]:
        return balance
    warn_user(
        f"solver={solver.name!r} trades cost against balance by {solver.trades_by} and keeps no "
        f"limit, so min_balance={balance} is ignored. Pass min_balance=None, or use "
        "solver='prices' for a limit that is kept."
    )
    return None


def _defaults(estimator: BaseEstimator) -> dict[str, Any]:
    """Return the defaults of keywords; a signature may have been rewritten to document them."""
    defaults: dict[str, Any] = type(estimator).__init__.__kwdefaults__
    return defaults
