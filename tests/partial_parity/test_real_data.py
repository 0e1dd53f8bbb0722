"""Every solver of limits within intervals on COMPAS: what the attributes say is so."""

import numpy as np
import pytest

from skfair.classification import PartialParityClassifier
from skfair.partial_parity.strict_rounds import INTERVAL_SOLVERS
from tests import naive
from tests.public import names_in
from tests.registries import SOLVERS
from tests.solvers import test_every_solver_on_real_data as real

pytestmark = real.pytestmark
OF_PAPERS = [*INTERVAL_SOLVERS, *names_in(SOLVERS, of_papers=True)]
# What problems lack, so that solvers that need it are refused.
LACKING = {"draw", "hessian"}
WITHIN = [
    *(name for name in SOLVERS if not LACKING & set(SOLVERS[name].needs)),
    *INTERVAL_SOLVERS,
    "repair",
]


@pytest.mark.parametrize(
    "solver",
    [pytest.param(name, marks=pytest.mark.slow if name in OF_PAPERS else ()) for name in WITHIN],
)
def test_shares_of_an_interval_keep_the_limit(solver):
    """Definition 4.2 of partial_fairness_idca: the largest difference over all thresholds."""
    X, y, group = real.people()
    short = {"max_iter": 8} if solver in list(INTERVAL_SOLVERS) else {}
    model = PartialParityClassifier(
        (0.1, 0.5), max_disparity=0.15, solver=solver, group_aware=solver == "repair", **short
    )
    real.quietly(model, X, y, sensitive_features=group)
    given = {"sensitive_features": group} if model.is_group_aware_ else {}
    scores = model.decision_function(X, **given)
    gap = 0.0
    masses = {
        g: naive.overlap_masses(scores[group == g], np.ones((group == g).sum()), [(0.1, 0.5)])
        for g in np.unique(group)
    }
    for threshold in scores:
        one, other = (m @ (scores[group == g] > threshold) for g, m in masses.items())
        gap = max(gap, abs(one - other))
    assert model.train_disparity_ == pytest.approx(gap, abs=1e-9)
    assert model.is_within_limit_ == (gap <= 0.15 + 1e-9)
    # The algorithms of the paper make no rounds, and may miss the limit: then they say so.
    assert model.is_within_limit_ or (model.status_ == "infeasible" and solver in OF_PAPERS)


@pytest.mark.parametrize("solver", [name for name in SOLVERS if name not in WITHIN])
def test_a_solver_that_needs_what_problems_lack_is_refused(solver):
    X, y, group = real.people()
    model = PartialParityClassifier((0.1, 0.5), max_disparity=0.15, solver=SOLVERS[solver]())
    with pytest.raises(TypeError, match="cannot solve a PartialParityProblem"):
        real.quietly(model, X, y, sensitive_features=group)
