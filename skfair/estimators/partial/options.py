"""Parameters of PartialParityClassifier read: objective, solver, smooth steps."""

from __future__ import annotations

from dataclasses import replace

from skfair._typing import FloatArray, IntervalLike
from skfair.constraints.partial import Surrogate
from skfair.constraints.partial.surrogates import Kind
from skfair.losses import LOSSES, Loss, make_loss
from skfair.problems.partial.objectives import BoundObjective, MeanLoss, Objective
from skfair.problems.partial.ranking import PAIR_LOSSES
from skfair.solvers.base import DC_SOLVERS, SOLVERS, Solver
from skfair.solvers.erm.al_lbfgs import ALLBFGS
from skfair.utils.text import did_you_mean

# Half-widths of the smooth steps in units of the score (0.5 is the paper's), and the rounding of a
# ramp's corners.
WIDTHS = {"ramp": 0.5, "smoothstep": 0.6, "sigmoid": 0.25}
ROUNDING = 0.2
# Standard deviation of scores for which these widths are, where they follow it.
SPREAD = 1.5


def make_objective(
    loss: str | Loss | Objective,
    interval: IntervalLike,  # of the constraint
    targets: FloatArray,
    shares: FloatArray,
) -> BoundObjective:
    """Return what is minimised: a mean loss of rows, or of pairs of rows."""
    if isinstance(loss, str) and loss in PAIR_LOSSES:
        pairs = PAIR_LOSSES[loss]
        if loss == "partial_auc":
            if isinstance(interval, dict):
                raise ValueError(
                    "loss='partial_auc' ranks the negatives of all groups together, so its "
                    "interval must be the same for all groups. Pass one as "
                    "loss=PairLoss(interval=...)."
                )
            pairs = replace(pairs, interval=interval)
        return pairs.prepare(targets, shares)
    if isinstance(loss, Objective):
        return loss.prepare(targets, shares)
    fitting = [name for name in LOSSES if "classification" in LOSSES[name].tasks]
    if isinstance(loss, str) and loss not in fitting:
        known = [*fitting, *PAIR_LOSSES]
        raise ValueError(
            f"There is no loss {loss!r} for classification.{did_you_mean(loss, known)} The losses "
            f"are {', '.join(map(repr, known))}."
        )
    return MeanLoss(make_loss(loss, "classification"), targets, shares)


def solver_of_name(name: str) -> Solver:
    """Return a solver of smooth problems by its name."""
    if name == "auto":
        return ALLBFGS()
    for registry in (SOLVERS, DC_SOLVERS):
        if name in registry:
            return registry[name]()
    known = ["auto", "repair", *DC_SOLVERS, *SOLVERS]
    listing = ", ".join(map(repr, known))
    raise ValueError(
        f"There is no solver {name!r}.{did_you_mean(name, known)} The solvers are {listing}."
    )


def make_surrogate(
    surrogate: Kind | Surrogate, solver: Solver, spread: float = SPREAD
) -> Surrogate:
    """Return the smooth step; as wide as scores are spread, unless it is the user's own.

    It has no corners for solvers that run until they have converged.
    """
    if isinstance(surrogate, Surrogate):
        return surrogate
    rounding = ROUNDING if surrogate == "ramp" and solver.is_precise else 0.0
    made = Surrogate(surrogate, WIDTHS[surrogate], rounding)
    return made.narrowed(spread / SPREAD) if spread else made
