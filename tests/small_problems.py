"""Small constrained problems, built by hand and as naive twins: shared by tests in score space."""

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.optimize import minimize

from skfair.constraints.base import TrainingRows, make_constraints
from skfair.datasets import make_loans
from skfair.groups.encoding import encode_groups
from skfair.losses import make_loss
from skfair.models import LinearScore
from skfair.problems.erm.problem import LinearConstrainedERM
from tests.naive import erm as naive
from tests.registries import CONSTRAINT_KINDS, LOSSES
from tests.seeds import generator, seed_of


def loans(seed, n=2000, bias=2.0):
    """Points, classes and groups where demographic parity costs several points of accuracy."""
    data = make_loans(n, bias=bias, missing_rate=0.0, random_state=seed_of(seed))
    columns = ["income", "loan_amount", "employment_years", "age"]
    sex = data.sensitive_features["sex"].to_numpy(str)
    return data.data[columns].to_numpy(float), data.target.to_numpy(), sex


def task_of(loss):
    return "classification" if "classification" in LOSSES[loss].tasks else "regression"


def constraints_for(loss):
    """Names of the constraints that make sense with a loss."""
    return [name for name in CONSTRAINT_KINDS if task_of(loss) in CONSTRAINT_KINDS[name]().tasks]


def trained_constraints():
    """Names of the constraints that models are trained under."""
    tasks = {"classification", "regression"}
    return [name for name in CONSTRAINT_KINDS if CONSTRAINT_KINDS[name]().tasks & tasks]


def references_of(constraint):
    if constraint in naive.EXCESS:
        return ["overall"]
    return ["pairwise", "overall"] if "reference" in constraint_parameters(constraint) else [None]


def constraint_parameters(constraint):
    return CONSTRAINT_KINDS[constraint]().get_params()


def make_constraint(constraint, reference="pairwise"):
    if "reference" in constraint_parameters(constraint) and reference in references_of(constraint):
        return CONSTRAINT_KINDS[constraint](reference=reference)
    return CONSTRAINT_KINDS[constraint]()


class People(NamedTuple):
    """Rows, both kinds of targets, one list of groups per attribute, weights."""

    X: np.ndarray
    signs: np.ndarray
    response: np.ndarray
    columns: list[np.ndarray]
    weights: np.ndarray | None

    def targets(self, loss):
        return self.signs if task_of(loss) == "classification" else self.response

    def take(self, order):
        """The same people in another order, or several times."""
        columns = [groups[order] for groups in self.columns]
        weights = None if self.weights is None else self.weights[order]
        return People(self.X[order], self.signs[order], self.response[order], columns, weights)

    def groups(self):
        return encode_groups(np.column_stack(self.columns), intersectional=False)

    def training_rows(self, loss="log_loss"):
        task = task_of(loss)
        names: Any = ("no", "yes") if task == "classification" else None
        made = make_loss(loss, task)
        return TrainingRows(self.groups(), self.targets(loss), self.weights, made, names)


def people(seed=0, n=80, n_levels=(2,), d=3, weighted=False):
    """Draw people whose groups differ in everything and all have both classes."""
    rng = generator(seed)
    codes = [rng.permutation(np.arange(n) // 2 % levels) for levels in n_levels]
    X = rng.normal(size=(n, d))
    X[:, 0] += codes[0]
    response = X @ np.linspace(1, 0.3, d) + 0.7 * codes[0] + 0.5 * rng.normal(size=n)
    response -= np.median(response)
    signs = np.zeros(n)
    while not all(len(set(zip(code, signs, strict=True))) == 2 * len(set(code)) for code in codes):
        signs = np.where(response + 1.5 * rng.normal(size=n) > 0, 1.0, -1.0)
    weights = rng.uniform(0.2, 3, n) if weighted else None
    columns = [np.array(list("abcdefgh"))[code] for code in codes]
    return People(X, signs, response, columns, weights)


def build(who, constraints, bound=0.05, loss="log_loss", alpha=0.05, is_sparse=False, **options):
    """The problem as an estimator would build it; ``constraints`` as a user would pass them."""
    rows = who.training_rows(loss)
    several = constraints if isinstance(constraints, list | tuple) else [constraints or []]
    named = [CONSTRAINT_KINDS[c]() if isinstance(c, str) else c for c in several if c != []]
    made = make_constraints(named, task_of(loss)) if named else []
    X = sparse.csr_array(who.X) if is_sparse else who.X
    return LinearConstrainedERM(
        LinearScore(X, sample_weight=who.weights, **options),
        rows.loss,
        rows.targets,
        [constraint.prepare(rows, bound) for constraint in made],
        sample_weight=who.weights,
        alpha=alpha,
    )


def twin(
    who, constraints, bound=0.05, loss="log_loss", alpha=0.05, reference="pairwise", **options
):
    """The same from the formulas; ``constraints`` is a list of names."""
    return naive.Risk(
        who.X,
        who.targets(loss),
        who.columns,
        [(name, reference, bound) for name in constraints],
        loss=loss,
        alpha=alpha,
        weights=who.weights,
        **options,
    )


def raw(problem, theta):
    """Weights and intercept of a point, as the naive twin takes them."""
    return np.append(*problem.model.raw(problem.model_part(theta)))


def same_point(problem, theta, other):
    """The parameters of another problem (other coordinates) that mean the same as ``theta``."""
    centers = theta[problem.model.n_parameters :]
    coef, intercept = problem.model.raw(problem.model_part(theta))
    return np.concatenate([other.model.standardised(coef, intercept), centers])


def names_of(protocol):
    """What a protocol asks for."""
    return {
        name
        for kind in protocol.__mro__
        for name in (*vars(kind), *vars(kind).get("__annotations__", ()))
        if not name.startswith("_")
    }


def optimum(problem, start=None):
    """The solution by scipy, from values and gradients on all rows."""
    at = problem.evaluate
    rows = [(j, 1.0, bound) for j, bound in enumerate(problem.upper) if np.isfinite(bound)]
    rows += [(j, -1.0, -bound) for j, bound in enumerate(problem.lower) if np.isfinite(bound)]
    which, signs, bounds = np.array(rows).reshape(-1, 3).T
    which = which.astype(int)
    found = minimize(
        lambda x: at(x).objective,
        problem.start(np.random.RandomState(0)) if start is None else start,
        jac=lambda x: at(x).gradient(),
        method="SLSQP",
        constraints={
            "type": "ineq",
            "fun": lambda x: bounds - signs * at(x).constraints[which],
            "jac": lambda x: -signs[:, None] * at(x).jacobian()[which],
        }
        if rows
        else (),
        options={"ftol": 1e-12, "maxiter": 500},
    )
    assert problem.violation(at(found.x)) <= 1e-8, found
    return found


def random_point(problem, seed=0):
    return generator(seed).normal(0, 0.7, problem.n_parameters)


def random_multipliers(problem, seed=1):
    return generator(seed).normal(size=problem.n_constraints)


def central(function, x, h=1e-6):
    """Central differences of a number or an array, one column per entry of x."""
    steps = h * np.eye(x.size)
    return np.stack([(function(x + s) - function(x - s)) / (2 * h) for s in steps], axis=-1)


def lagrangian(problem, multipliers, batch=None):
    def value(theta):
        at = problem.evaluate(theta, batch)
        return at.objective + multipliers @ at.constraints

    return value
