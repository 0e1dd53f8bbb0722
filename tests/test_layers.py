"""A call passes few functions of the package before its arithmetic begins."""

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.linear_model import LogisticRegression

from skfair.classification import ConstrainedERMClassifier, FairDecisionClassifier
from skfair.classification.certifying import certified
from skfair.cluster import FairKMeans
from skfair.constraints import moments
from skfair.constraints.bound import BoundConstraint
from skfair.estimators import classes, limits, objective
from skfair.estimators.certified import paths
from skfair.estimators.erm import bind
from skfair.estimators.wrapped_scores import check_prefit, known_folds
from skfair.groups.encoding import GroupEncoding
from skfair.metrics import demographic_parity_difference
from skfair.problems.erm.problem import ConstrainedERM
from skfair.solvers.base import check_needs
from tests.walks import functions_before, name_of


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    return {name: rng.integers(0, 2, 200) for name in ("y_true", "y_pred", "sensitive_features")}


@pytest.mark.parametrize(("groups", "most"), [("codes", 18), ("names", 23)])
def test_a_metric_enters_few_functions_before_it_counts_its_rows(rows, groups, most):
    if groups == "names":
        rows = rows | {"sensitive_features": np.array(["f", "m"])[rows["sensitive_features"]]}
    entered = functions_before(
        GroupEncoding.cross_counts, lambda: demographic_parity_difference(**rows)
    )
    assert len(entered) <= most, entered


# The estimator with its defaults, where its arithmetic begins, and what it enters before that.
FITS = [
    (ConstrainedERMClassifier(), ConstrainedERM._measure, 112),
    (FairDecisionClassifier(LogisticRegression()), LogisticRegression.fit, 102),  # 7 hash the rows
    (FairKMeans(3), KMeans.fit, 83),
]
# What only fits with other than default parameters, or of very many rows, ask for.
NOT_BY_DEFAULT = (
    *(limits.floors, limits.budget, limits.unique_names, bind.decisions_of_free_model),
    *(classes.read_positive, classes.warn_of_choice, moments.check_moment),
    *(BoundConstraint.scaled, BoundConstraint.restricted, check_needs),
    *(objective.read_costs, known_folds, check_prefit, certified, paths.certify),
)


@pytest.mark.parametrize(("model", "arithmetic", "most"), FITS)
def test_a_fit_enters_few_functions_before_its_arithmetic(model, arithmetic, most):
    entered = entered_by_fit(model, arithmetic)
    assert len(entered) <= most, entered


@pytest.mark.parametrize(("model", "arithmetic", "most"), FITS)
def test_a_fit_does_not_enter_what_its_defaults_do_not_ask_for(model, arithmetic, most):
    assert not set(entered_by_fit(model, arithmetic)) & set(map(name_of, NOT_BY_DEFAULT))


def entered_by_fit(model, arithmetic):
    """Return what a fit enters; an earlier one has done the imports that are deferred."""
    rng = np.random.default_rng(0)
    X, groups = rng.normal(size=(300, 5)), rng.integers(0, 2, 300)
    y = (X[:, 0] + 0.5 * groups + rng.normal(size=300) > 0).astype(int)
    model.fit(X, y, sensitive_features=groups)
    return functions_before(arithmetic, lambda: model.fit(X, y, sensitive_features=groups))


def test_a_walk_ends_at_the_arithmetic_or_says_that_it_never_got_there():
    def arithmetic():
        raise AssertionError("entered")

    assert functions_before(arithmetic, lambda: [GroupEncoding, arithmetic()]) == []
    with pytest.raises(AssertionError, match="never reached"):
        functions_before(arithmetic, lambda: None)
