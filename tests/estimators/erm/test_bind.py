"""Problems are built and solvers chosen from settings and rows, without a fit."""

from dataclasses import replace

import pytest

from skfair.classification import ConstrainedERMClassifier
from skfair.constraints import DemographicParity
from skfair.estimators.erm.bind import active_constraints, bind
from skfair.estimators.erm.solve import choose_solver
from skfair.estimators.erm.task import TargetScale, Task
from skfair.groups.encoding import encode_groups
from skfair.groups.training_data import TrainingData
from skfair.losses import LogLoss
from skfair.models.choice import ChosenModel
from skfair.solvers import ALM, ALNewton
from tests.seeds import generator

rng = generator(0)
X, SIGNS = rng.normal(size=(90, 3)), rng.choice([-1.0, 1.0], 90)
DATA = TrainingData(X, SIGNS, None, encode_groups(["a", "b", "c"] * 30))
SETTINGS = ConstrainedERMClassifier(max_disparity=0.1)._settings()


def built(layers=(), alpha=None, constraints=("demographic_parity",), **options):
    constraints = active_constraints(list(constraints), "classification", DATA, 0.1)
    settings = replace(SETTINGS, model=ChosenModel(layers), alpha=alpha)
    task = Task(SIGNS, LogLoss(), None, (-1, 1), TargetScale(), settings)
    return bind(DATA, task, constraints, **options)


def test_the_default_penalty_counts_all_rows_of_a_stream():
    assert built().alpha == 1 / 90
    assert built(earlier=10).alpha == 1 / 100
    assert built(alpha=0.3).alpha == 0.3


def test_constraints_of_the_same_name_are_numbered():
    constraints = "demographic_parity", DemographicParity(reference="overall")
    names = [constraint.name for constraint in built(constraints=constraints).constraints]
    assert names == ["DemographicParity (1)", "DemographicParity (2)"]


def test_the_solver_follows_the_problem():
    assert isinstance(choose_solver("auto", built()), ALNewton)
    assert isinstance(choose_solver("auto", built(layers=(4,))), ALM)
    assert isinstance(choose_solver("auto"), ALM)  # of a stream
    assert isinstance(choose_solver("al_newton"), ALNewton)
    own = ALNewton()
    assert choose_solver(own, built()) is own
    with pytest.raises(TypeError, match="ALNewton cannot solve a ConstrainedERM"):
        choose_solver(own, built(layers=(4,)))
