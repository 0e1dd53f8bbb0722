"""ConstrainedERMClassifier(certificate=...): decisions with offsets where that is possible."""

import warnings
from itertools import product

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from skfair import Certificate, Sensitive
from skfair.classification import (
    ConstrainedERMClassifier,
    FairDecisionClassifier,
)
from skfair.constraints import ConditionalOn
from skfair.estimators.certificate import SHARES
from tests.estimators.certified.test_judges import EVERYBODY, OPTIONS, SURE, fitted, people
from tests.estimators.certified.test_judges import options as certified
from tests.seeds import generator


def test_offsets_on_all_rows_cost_less_accuracy_than_a_split():
    """In the mean of six samples .02 less, which is five of its standard deviations."""
    quality, new = {"auto": [], "split": []}, people(20_000, shift=1.6)
    for seed, certify in product(range(1, 7), quality):
        model = ConstrainedERMClassifier(max_disparity=0.3, **certified(SURE, by=certify))
        X, y, groups = people(3000, seed, shift=1.6)
        model.fit(X, y, sensitive_features=groups)
        quality[certify].append(model.score(*new[:2]))
    assert np.mean(quality["auto"]) > np.mean(quality["split"])


def test_cross_is_that_of_fair_decisions():
    model = fitted(ConstrainedERMClassifier(max_disparity=0.15, **OPTIONS))
    base = LogisticRegression(solver="newton-cholesky", max_iter=1000)
    same = fitted(FairDecisionClassifier(base, max_disparity=0.15, **OPTIONS))
    assert model.decisions_.offsets_ == pytest.approx(same.offsets_, abs=1e-8)
    X = EVERYBODY[0]
    assert np.array_equal(model.predict(X), same.predict(X))
    assert not hasattr(model, "coef_")


def test_a_penalty_reaches_the_models_of_the_folds():
    model = fitted(ConstrainedERMClassifier(max_disparity=0.15, alpha=0.1, **OPTIONS))
    assert pytest.approx(1 / (0.1 * 3000)) == model.decisions_.estimators_[0].C
    free = fitted(ConstrainedERMClassifier(max_disparity=0.15, alpha=0.0, **OPTIONS))
    sizes = [np.abs(one.decisions_.estimators_[0].coef_).sum() for one in (model, free)]
    assert sizes[0] < 0.8 * sizes[1]


@pytest.mark.parametrize(
    "options",
    [
        {"model": (3,), "max_iter": 30},
        {"loss": "hinge"},
        {"class_weight": "balanced"},
        {"solver": "al_newton"},
    ],
)
def test_what_has_no_offsets_is_split(options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = fitted(ConstrainedERMClassifier(max_disparity=0.3, **OPTIONS, **options))
    assert len(model.path_["bound"]) <= len(SHARES)
    assert not hasattr(model, "decisions_")
    with pytest.raises(ValueError, match=r"Use Certificate\(by='split'\)"):
        fitted(ConstrainedERMClassifier(**{**certified(by="cross"), **options}))


def test_strata_in_columns_of_the_model_have_offsets():
    X, y, sex = (part[:3000] for part in EVERYBODY)
    job = generator(3).integers(0, 2, 3000)
    table = np.column_stack([sex == "b", X, job])
    constraint = ConditionalOn("demographic_parity")
    options = {"max_disparity": 0.3, "sensitive": Sensitive(0, control_features=[4]), **OPTIONS}
    model = ConstrainedERMClassifier(constraint, **options).fit(table, y)
    base = LogisticRegression(solver="newton-cholesky", max_iter=1000)
    same = FairDecisionClassifier(base, constraint, group_aware=False, **options)
    same.fit(table, y)
    assert model.predict(table).tolist() == same.predict(table).tolist()
    assert model.status_ == same.status_ == "certified"
    # Groups that leave the model cannot tell the stratum at prediction.
    options["sensitive"] = Sensitive([0, 4], control_features=[4])
    options["max_disparity"] = 0.9
    split = ConstrainedERMClassifier(constraint, **options).fit(table, y)
    assert not hasattr(split, "decisions_")
    # A constraint across strata does not look at them.
    across = ConstrainedERMClassifier(max_disparity=0.3, **certified(by="cross"))
    with pytest.warns(UserWarning, match="so they change nothing"):
        across.fit(table[:, 1:], y, sensitive_features=sex, control_features=job)
    assert across.decisions_.offsets_.shape[1] == 1


def test_columns_in_huge_units_are_certified_without_a_word():
    X, y, sex = (part[:800] for part in EVERYBODY)
    decided = [
        ConstrainedERMClassifier(max_disparity=0.2, certificate=0.95, random_state=0)
        .fit(unit * X, y, sensitive_features=sex)
        .predict(unit * X)
        for unit in (1.0, 1e8)
    ]
    assert (decided[0] == decided[1]).mean() > 0.95


def test_no_certificate_outlives_what_it_is_about():
    X, y, sex = (part[:3000] for part in EVERYBODY)
    fresh = ConstrainedERMClassifier(max_disparity=0.15, certificate=0.95)
    fresh.fit(X, y, sensitive_features=sex)
    model = ConstrainedERMClassifier(max_disparity=0.15).fit(X, y, sensitive_features=sex)
    model.set_params(certificate=0.95).fit(X, y, sensitive_features=sex)
    assert set(vars(model)) == set(vars(fresh))
    with pytest.raises(AttributeError, match="no attribute 'partial_fit'") as caught:
        model.partial_fit(X, y, sensitive_features=sex)
    assert "partial_fit certifies nothing" in str(caught.value.__cause__)
    model.set_params(certificate=None).partial_fit(X, y, sensitive_features=sex)
    assert not {"decisions_", "path_", "p_value_", "certified_disparity_"} & set(vars(model))
    np.testing.assert_allclose(model.decision_function(X), X @ model.coef_[0] + model.intercept_[0])


def test_a_certified_surrogate_knows_no_changes():
    """It ended in numpy's error about an empty sequence."""
    rng = generator(4001)
    sex, X = rng.integers(0, 2, 600), rng.normal(size=(600, 3))
    y = (X[:, 0] + 0.5 * sex + rng.logistic(size=600) > 0).astype(int)
    model = ConstrainedERMClassifier(
        max_disparity=0.7,
        enforce="surrogate",
        certificate=Certificate(0.9, by="split"),
        random_state=0,
    ).fit(X, y, sensitive_features=sex)
    assert model.status_ == "certified"
    assert model.changes_ == {}
