"""Rows without a group, ``missing="loss"``: models learn from them, and no limit counts them."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skfair import Certificate, Sensitive
from skfair.classification import (
    ConstrainedERMClassifier,
    FairDecisionClassifier,
)
from skfair.constraints import ConditionalOn, DemographicParity
from skfair.estimators.certified.refits import in_folds
from skfair.groups.encoding import GroupEncoding, encode_groups
from skfair.groups.training_data import TrainingData
from skfair.metrics import (
    demographic_parity_difference,
    equalized_odds_difference,
    mean_score_difference,
    wasserstein_gap,
)
from skfair.regression import ConstrainedERMRegressor, FairDecisionRegressor
from tests.messages import messages
from tests.seeds import generator

# Limits on small samples are tight here. tests/estimators/test_explained.py is about the warning.
pytestmark = pytest.mark.filterwarnings("ignore:The limits lower R2")

N = 600
RNG = generator(0)
SEX, AGE = RNG.choice(["f", "m"], N), RNG.choice(["old", "young"], N)
Z = RNG.normal(size=(N, 3)) + np.outer(SEX == "m", [1, 0, 0.5])
NUMBERS = Z[:, 0] + Z[:, 1] + RNG.normal(size=N)
Y = (NUMBERS > 0.5).astype(int)
KNOWN = RNG.random(N) > 0.1
GROUPS = np.where(KNOWN, SEX, None)
X = pd.DataFrame(Z, columns=list("abc"))
FRAME = X.assign(sex=GROUPS)
LOSS, OF_SEX = Sensitive(missing="loss"), Sensitive("sex", missing="loss")
INTERVAL = (0.0, 0.5)
LOGISTIC = LogisticRegression()
PREFIT = FrozenEstimator(LogisticRegression().fit(X, Y))
# What is fitted, the target, and how the promise is counted on predictions.
PROMISES = {
    "erm": (ConstrainedERMClassifier(), Y, demographic_parity_difference, {}),
    "erm, odds": (
        ConstrainedERMClassifier("equalized_odds", 0.1),
        Y,
        equalized_odds_difference,
        {},
    ),
    "numbers": (ConstrainedERMRegressor("mean_score_parity"), NUMBERS, mean_score_difference, {}),
    "blind": (
        *(FairDecisionClassifier(group_estimator=LOGISTIC, cv=3), Y),
        *(demographic_parity_difference, {}),
    ),
    "aware": (FairDecisionClassifier(group_aware=True), Y, demographic_parity_difference, {}),
    "maps": (
        *(FairDecisionRegressor(group_estimator=LOGISTIC, max_disparity=0.1), NUMBERS),
        *(wasserstein_gap, {}),
    ),
    "aware maps": (FairDecisionRegressor(group_aware=True), NUMBERS, wasserstein_gap, {}),
}


def seeded(model):
    has_seed = "random_state" in model.get_params(deep=False)
    return clone(model).set_params(**{"random_state": 0} if has_seed else {})


def outcomes(model, table):
    if hasattr(model, "interval"):
        return model.decision_function(table)
    if hasattr(model, "train_predictions_"):
        return model.train_predictions_
    return model.predict(table)


def check_promise(model, y, metric, options):
    model = seeded(model).set_params(sensitive=OF_SEX).fit(FRAME, y)
    found = outcomes(model, FRAME)
    counted = metric(y[KNOWN], found[KNOWN], sensitive_features=SEX[KNOWN], **options)
    assert model.train_disparity_ == pytest.approx(counted, abs=1e-9)
    limit = 0.05 if model.max_disparity is None else model.max_disparity
    assert counted <= limit + 1e-9
    assert model.groups_.tolist() == ["f", "m"]
    assert np.isfinite(model.predict(FRAME)).all()


@pytest.mark.parametrize("promise", PROMISES.values(), ids=PROMISES)
def test_the_promise_holds_for_rows_with_a_group(promise):
    check_promise(*promise)


def check_nothing_changes(model, y):
    plain, other = (
        seeded(model).set_params(sensitive=sensitive).fit(X, y, sensitive_features=SEX)
        for sensitive in (None, LOSS)
    )
    states = [
        {k: v for k, v in m.__getstate__().items() if k != "sensitive"} for m in (plain, other)
    ]
    assert pickle.dumps(states[0]) == pickle.dumps(states[1])


@pytest.mark.parametrize("promise", PROMISES.values(), ids=PROMISES)
def test_without_missing_values_nothing_changes(promise):
    check_nothing_changes(*promise[:2])


@pytest.mark.parametrize("weights", [None, RNG.integers(1, 4, N)])
def test_the_model_learns_from_rows_without_a_group(weights):
    """If the limit does not bind, they count as all others do; if it does, they count, too."""
    own = None if weights is None else weights[KNOWN]
    for limit in (1.0, 0.05):
        model = ConstrainedERMClassifier(max_disparity=limit, sensitive=OF_SEX)
        found = model.fit(FRAME, Y, weights).coef_[0, :3]
        plain = ConstrainedERMClassifier(max_disparity=limit, sensitive="sex")
        of_some = plain.fit(FRAME[KNOWN], Y[KNOWN], own).coef_[0, :3]
        assert not np.allclose(found, of_some, atol=1e-6)
        if limit == 1.0:
            of_all = plain.fit(X.assign(sex=SEX), Y, weights).coef_[0, :3]
            np.testing.assert_array_equal(found, of_all)
    assert f"rows {N} ({(~KNOWN).sum()} without a group), " in model.summary_
    assert "without" not in plain.summary_


@pytest.mark.parametrize(
    "model",
    [
        FairDecisionClassifier(PREFIT, group_aware=True),
        FairDecisionClassifier(PREFIT, group_aware=True, constraint="equalized_odds"),
        FairDecisionRegressor(
            FrozenEstimator(LinearRegression().fit(X, NUMBERS)), group_aware=True
        ),
    ],
)
def test_what_follows_a_fitted_model_is_chosen_by_rows_with_a_group(model):
    check_rows_with_a_group(model)


def check_rows_with_a_group(model):
    y = NUMBERS if isinstance(model, FairDecisionRegressor) else Y
    found = clone(model).set_params(sensitive=OF_SEX).fit(FRAME, y)
    dropped = clone(model).set_params(sensitive="sex").fit(FRAME[KNOWN], y[KNOWN])
    np.testing.assert_allclose(found.predict(FRAME[KNOWN]), dropped.predict(FRAME[KNOWN]))
    assert found.train_disparity_ == pytest.approx(dropped.train_disparity_, abs=1e-9)
    if hasattr(found, "train_predictions_"):  # the model has seen all rows: nothing differs
        np.testing.assert_allclose(found.train_predictions_, found.predict(FRAME), atol=1e-9)


def test_models_of_groups_do_not_learn_from_rows_without_one():
    class Recorder(LogisticRegression):
        sizes = []

        def fit(self, X, y, sample_weight=None):
            self.sizes.append(len(X))
            return super().fit(X, y, sample_weight)

    model = FairDecisionClassifier(group_estimator=Recorder(), cv=4, sensitive=OF_SEX)
    model.fit(FRAME, Y)
    assert sum(Recorder.sizes) == 3 * KNOWN.sum()  # each row is in all fits but one


@pytest.mark.parametrize("constraint", ["demographic_parity", "equalized_odds"])
def test_missing_groups_are_predicted_as_unseen_ones(constraint):
    settings = {"constraint": constraint, "group_aware": True, "sensitive": LOSS, "random_state": 0}
    model = FairDecisionClassifier(unseen="overall", **settings)
    model.fit(X, Y, sensitive_features=GROUPS)
    unseen = model.predict(X, sensitive_features=np.where(KNOWN, SEX, "x"))
    np.testing.assert_array_equal(model.predict(X, sensitive_features=GROUPS), unseen)
    strict = FairDecisionClassifier(**settings).fit(X, Y, sensitive_features=GROUPS)
    np.testing.assert_array_equal(strict.predict(X, sensitive_features=GROUPS), unseen)
    with pytest.raises(ValueError, match="did not occur at fit: 'x'"):
        strict.predict(X, sensitive_features=np.where(KNOWN, SEX, "x"))


@pytest.mark.parametrize("crossed", [True, False])
@pytest.mark.parametrize(
    "model", [ConstrainedERMClassifier(), FairDecisionClassifier(group_aware=True)]
)
def test_rows_that_lack_one_of_several_attributes_count_in_none(model, crossed):
    old = RNG.random(N) > 0.1
    both, known = pd.DataFrame({"sex": GROUPS, "age": np.where(old, AGE, None)}), KNOWN & old
    sensitive = Sensitive(["sex", "age"], intersectional=crossed, missing="loss")
    table = pd.concat([X, both], axis=1)
    model = clone(model).set_params(sensitive=sensitive).fit(table, Y)
    counted = demographic_parity_difference(
        Y[known],
        outcomes(model, table)[known],
        sensitive_features=both[known],
        intersectional=crossed,
    )
    assert model.train_disparity_ == pytest.approx(counted, abs=1e-9)
    assert len(model.groups_) == 4
    assert not any("nan" in name.lower() or "none" in name.lower() for name in model.groups_)


def test_levels_of_incomplete_rows_only_are_no_groups():
    """The only rows of "x" lack the other attribute."""
    sex, age = SEX.astype(object), AGE.astype(object)
    sex[:20], age[:20] = "x", None
    both = pd.DataFrame({"sex": sex, "age": age})
    for crossed in (True, False):
        model = ConstrainedERMClassifier(
            sensitive=Sensitive(intersectional=crossed, missing="loss")
        )
        model.fit(X, Y, sensitive_features=both)
        assert not any("x" in name.split("=") for name in model.groups_)


@pytest.mark.parametrize("group_aware", [False, True])
def test_changes_count_rows_with_a_group(group_aware):
    model = FairDecisionClassifier(PREFIT, group_aware=group_aware, sensitive=OF_SEX)
    model.fit(FRAME, Y)
    change, free = model.changes_["selection rate"], PREFIT.predict(X)[KNOWN]
    found = model.train_predictions_[KNOWN]
    assert (change.before, change.after) == pytest.approx((free.mean(), found.mean()))
    for group in "fm":
        own = SEX[KNOWN] == group
        stages = change.by_group[group]
        assert (stages.before, stages.after) == pytest.approx((free[own].mean(), found[own].mean()))
    assert (change.rows_up, change.rows_down) == ((found > free).sum(), (found < free).sum())


def test_limits_within_strata_leave_them_out():
    strata = RNG.choice(["u", "v"], N)
    for model in (ConstrainedERMClassifier(), FairDecisionClassifier(group_aware=True)):
        model.set_params(constraint=ConditionalOn(DemographicParity()), sensitive=OF_SEX)
        model.fit(FRAME, Y, control_features=strata)
        counted = demographic_parity_difference(
            None,
            outcomes(model, FRAME)[KNOWN],
            sensitive_features=SEX[KNOWN],
            control_features=strata[KNOWN],
        )
        assert model.train_disparity_ == pytest.approx(counted, abs=1e-9)


def test_floors_and_budgets_count_rows_with_a_group():
    settings = {"min_rate": 0.3, "selection_rate": 0.4, "sensitive": OF_SEX}
    models = ConstrainedERMClassifier(**settings), FairDecisionClassifier(PREFIT, **settings)
    for model in models:
        found = outcomes(model.fit(FRAME, Y), FRAME)[KNOWN]
        assert abs(found.sum() - 0.4 * KNOWN.sum()) <= 0.5
        assert min(found[SEX[KNOWN] == group].mean() for group in "fm") >= 0.3


def test_rows_without_a_group_do_not_judge():
    """Of many more rows without a group limits are shown as far off as of those with one."""
    settings = {"group_aware": True, "max_disparity": 0.25, "certificate": 0.8, "cv": 5}
    values = np.r_[Z, generator(0).normal(size=(4 * N, 3))]
    many = pd.DataFrame(values, columns=list("abc"))
    many["sex"] = np.r_[GROUPS, np.full(4 * N, None)]
    of_many, margins = np.r_[Y, generator(1).integers(0, 2, 4 * N)], []
    for table, y, sensitive in ((many, of_many, OF_SEX), (FRAME[KNOWN], Y[KNOWN], "sex")):
        model = FairDecisionClassifier(PREFIT, sensitive=sensitive, random_state=0, **settings)
        model.fit(table, y)
        margins.append(model.certified_disparity_ - model.train_disparity_)
    assert margins[0] == pytest.approx(margins[1], rel=0.3)
    encoding = GroupEncoding.of(np.where(KNOWN, SEX == "m", -1)[None], encode_groups(SEX).levels)
    judging = [rows for _, rows in in_folds(TrainingData(Z, NUMBERS, None, encoding), 0)]
    np.testing.assert_array_equal(np.sort(np.concatenate(judging)), np.flatnonzero(KNOWN))


@pytest.mark.parametrize(
    ("model", "y"),
    [
        (ConstrainedERMClassifier(max_disparity=0.7), Y),
        (ConstrainedERMClassifier(max_disparity=0.7, certificate=Certificate(0.8, by="split")), Y),
        (ConstrainedERMRegressor("mean_score_parity", 2.0), NUMBERS),
    ],
)
def test_all_certificates_take_them(model, y):
    check_certificate(model, y)


def check_certificate(model, y):
    model = seeded(model).set_params(sensitive=OF_SEX, certificate=model.certificate or 0.8)
    model.fit(FRAME, y)
    assert model.status_ == "certified"
    assert model.p_value_ <= 0.2


def test_parts_of_a_stream():
    model = ConstrainedERMClassifier(sensitive=OF_SEX, random_state=0)
    for _ in range(2):
        model.partial_fit(FRAME, Y)
        found = model.predict(FRAME)[KNOWN]
        counted = demographic_parity_difference(None, found, sensitive_features=SEX[KNOWN])
        assert model.train_disparity_ == pytest.approx(counted, abs=1e-9)


@pytest.mark.parametrize(
    "column",
    [
        GROUPS.tolist(),
        np.where(KNOWN, SEX.astype(object), np.nan),
        np.where(KNOWN, SEX == "m", np.nan),
        np.ma.masked_array(SEX, ~KNOWN),
        pd.Series(GROUPS, dtype="string"),
        pd.Series(GROUPS, dtype="category"),
        pd.array(np.where(KNOWN, SEX == "m", None), dtype="boolean"),
        {"sex": GROUPS},
    ],
    ids=lambda column: type(getattr(column, "array", column)).__name__,
)
def test_all_kinds_of_missing_values_are_read(column):
    model = ConstrainedERMClassifier(sensitive=LOSS).fit(X, Y, sensitive_features=column)
    expected = ConstrainedERMClassifier(sensitive=OF_SEX).fit(FRAME, Y)
    np.testing.assert_array_equal(model.coef_[0], expected.coef_[0, :3])


@pytest.mark.parametrize("model", [ConstrainedERMClassifier(), FairDecisionClassifier()])
def test_a_single_group_is_left(model):
    model.set_params(sensitive=LOSS)
    with pytest.warns(UserWarning, match="a single group, 'f'"):
        model.fit(X, Y, sensitive_features=np.where(SEX == "f", "f", None))
    assert model.train_disparity_ == 0


def lazy_fit():
    array = pytest.importorskip("dask.array")
    X, y, sex = (array.from_array(values, chunks=200) for values in (Z, Y, (SEX == "m") * 1.0))
    ConstrainedERMClassifier(sensitive=LOSS).fit(X, y, sensitive_features=sex)


def fit_without_groups(model):
    model.set_params(sensitive=LOSS).fit(X, Y, sensitive_features=np.full(N, None))


test_what_cannot_be_done_is_said = messages(
    (ValueError, "Each row has a missing", lambda: fit_without_groups(ConstrainedERMClassifier())),
    (ValueError, "Each row has a missing", lambda: fit_without_groups(FairDecisionClassifier())),
    (ValueError, r"missing='loss'.*Dask collections. Drop the rows", lazy_fit),
    (ValueError, "missing must be 'raise' or 'loss'", lambda: Sensitive(missing="drop")),
)


def test_settings_are_shown_and_searched():
    assert repr(OF_SEX) == "Sensitive('sex', missing='loss')"
    assert clone(ConstrainedERMClassifier(sensitive=OF_SEX)).sensitive == OF_SEX
    scaled = make_column_transformer((StandardScaler(), ["a", "b", "c"]), remainder="passthrough")
    scaled.set_output(transform="pandas").set_params(verbose_feature_names_out=False)
    model = make_pipeline(scaled, FairDecisionClassifier(sensitive=OF_SEX, group_aware=True))
    limits = {"fairdecisionclassifier__max_disparity": [0.02, 0.2]}
    search = GridSearchCV(model, limits, cv=2, error_score="raise").fit(FRAME, Y)
    assert search.best_estimator_[-1].groups_.tolist() == ["f", "m"]
    assert search.score(FRAME, Y) > 0.6
