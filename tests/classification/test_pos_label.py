"""Which class is the positive one: what the parameter changes, and who is warned."""

import pickle
import warnings
from functools import partial

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skfair import Certificate
from skfair.classification import (
    ConstrainedERMClassifier,
    FairDecisionClassifier,
)
from skfair.constraints import ConditionalOn, DemographicParity, EqualizedOdds, LossParity
from skfair.constraints.rates import RateParity
from skfair.exceptions import PositiveClassWarning
from skfair.metrics import (
    disparity_bounds,
    disparity_upper_bound,
    equal_opportunity_difference,
    fairness_report,
    get_scorer,
    group_report,
    intra_group_pairwise_gap,
    loss_parity_difference,
    make_fairness_scorer,
    make_group_metric,
)
from skfair.model_selection import fairness_path
from tests.families import by_families, rows_of_families
from tests.seeds import generator

RNG = generator(0)
SEX = RNG.choice(["f", "m"], 900)
X = RNG.normal(size=(900, 4)) + (SEX == "m")[:, None] * [1, 0, 0, 0]
# 1 sorts last. Of the names the good ones are first in one pair and last in the other.
Y = (X[:, 0] + X[:, 1] + RNG.normal(size=900) > 0.5).astype(int)
FIRST = np.where(Y == 1, "approved", "rejected")
LAST = np.where(Y == 1, "yes", "no")

CERTIFIED = {"max_disparity": 0.2, "certificate": 0.9}
MODELS = {
    "erm": ConstrainedERMClassifier(max_disparity=0.03),
    "erm, balanced": ConstrainedERMClassifier(class_weight="balanced", max_disparity=0.03),
    "erm, al_lbfgs": ConstrainedERMClassifier(solver="al_lbfgs", max_disparity=0.03),
    "erm, layers": ConstrainedERMClassifier(model=(4,), max_iter=50, random_state=0),
    "erm, cross": ConstrainedERMClassifier(**CERTIFIED, random_state=0),
    "erm, split": ConstrainedERMClassifier(
        max_disparity=0.25, certificate=Certificate(0.9, by="split"), random_state=0
    ),
    "decisions": FairDecisionClassifier(max_disparity=0.03, random_state=0),
    "decisions, aware": FairDecisionClassifier(
        max_disparity=0.03, group_aware=True, random_state=0
    ),
    "decisions, certified": FairDecisionClassifier(**CERTIFIED, random_state=0),
    "decisions, costs": FairDecisionClassifier(max_disparity=0.03, random_state=0),
}
CONSTRAINT_NAMES = ["equal_opportunity", "false_positive_parity", "predictive_parity"]
CASES = [
    (name, constraint)
    for name in MODELS
    for constraint in CONSTRAINT_NAMES
    if constraint == CONSTRAINT_NAMES[0] or name in ("erm", "decisions", "decisions, aware")
]


def groups_for(model):
    return {"sensitive_features": SEX} if getattr(model, "is_group_aware_", False) else {}


def true_positive_rates(model, y, positive):
    selected = model.predict(X, **groups_for(model)) == positive
    return [selected[(y == positive) & (group == SEX)].mean() for group in ("f", "m")]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("name", "constraint"), CASES)
def test_the_order_of_the_names_does_not_matter(name, constraint):
    first, last = (clone(MODELS[name]).set_params(constraint=constraint) for _ in range(2))
    if "costs" in name:  # in the order of the classes: to approve the wrong ones costs more
        first.set_params(objective=[[0, 1], [3, 0]])
        last.set_params(objective=[[0, 3], [1, 0]])
    first.set_params(pos_label="approved").fit(X, FIRST, sensitive_features=SEX)
    last.set_params(pos_label="yes").fit(X, LAST, sensitive_features=SEX)
    assert (first.classes_ == ["approved", "rejected"]).all()
    assert (first.pos_label_, last.pos_label_) == ("approved", "yes")
    decided = first.predict(X, **groups_for(first)) == "approved"
    assert np.array_equal(decided, last.predict(X, **groups_for(last)) == "yes")
    assert first.train_disparity_ == pytest.approx(last.train_disparity_, abs=1e-12)
    # scikit-learn's convention: positive scores, and the second column, are for classes_[1]
    scores = first.decision_function(X, **groups_for(first))
    assert np.array_equal(scores > 0, ~decided)
    # Models of scikit-learn inside of certified ones stop at a tolerance of 1e-4.
    atol = 1e-4 if "cross" in name or "certified" in name else 1e-8
    others = -last.decision_function(X, **groups_for(last))
    np.testing.assert_allclose(scores, others, atol=atol)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        chances = first.predict_proba(X), last.predict_proba(X)
    np.testing.assert_allclose(chances[0], chances[1][:, ::-1], atol=atol)


@pytest.mark.parametrize("name", ["erm", "erm, al_lbfgs", "decisions", "decisions, aware"])
def test_the_limit_is_on_the_class_that_is_named(name):
    rng, kept = generator(0), {}
    X = rng.normal(size=(900, 4)) + (SEX == "m")[:, None] * [2, 0, 0, 0]
    of_rows = np.where(X[:, 0] + X[:, 1] + rng.normal(size=900) > 1, "approved", "rejected")
    for positive in ("approved", "rejected"):
        model = clone(MODELS[name]).set_params(
            constraint="equal_opportunity", max_disparity=0.02, pos_label=positive
        )
        model.fit(X, of_rows, sensitive_features=SEX)
        if hasattr(model, "train_predictions_"):
            decided = model.train_predictions_
        else:
            decided = model.predict(X)
        for label in ("approved", "rejected"):
            low, high = sorted(
                (decided == label)[(label == of_rows) & (group == SEX)].mean()
                for group in ("f", "m")
            )
            kept[positive, label] = high - low <= 0.02 + 1e-12
    assert kept["approved", "approved"]
    assert kept["rejected", "rejected"]
    assert not (kept["approved", "rejected"] and kept["rejected", "approved"])


@pytest.mark.parametrize("name", ["erm", "decisions"])
def test_floors_and_budgets_are_of_the_class_that_is_named(name):
    for positive in ("approved", "rejected"):
        model = clone(MODELS[name]).set_params(selection_rate=0.2, pos_label=positive)
        model.fit(X, FIRST, sensitive_features=SEX)
        decided = getattr(model, "train_predictions_", None)
        decided = model.predict(X) if decided is None else decided
        assert abs((decided == positive).sum() - 180) <= 1
        model.set_params(selection_rate=None, constraint="equal_opportunity", min_rate=0.9)
        model.fit(X, FIRST, sensitive_features=SEX)
        decided = getattr(model, "train_predictions_", None)
        decided = model.predict(X) if decided is None else decided
        for group in ("f", "m"):
            rate = (decided == positive)[(positive == FIRST) & (group == SEX)].mean()
            assert rate >= 0.9 - 1e-9


def test_coefficients_and_offsets_are_in_the_order_of_the_classes():
    first = ConstrainedERMClassifier("equal_opportunity", pos_label="approved")
    first.fit(X, FIRST, sensitive_features=SEX)
    scores = X @ first.coef_[0] + first.intercept_[0]
    np.testing.assert_allclose(first.decision_function(X), scores)
    base = LogisticRegression().fit(X, FIRST)
    aware = FairDecisionClassifier(
        base, "equal_opportunity", 0.02, group_aware=True, cv="prefit", pos_label="approved"
    ).fit(X, FIRST, sensitive_features=SEX)
    decided = aware.predict(X, sensitive_features=SEX)
    table = aware.to_thresholds()["threshold"]
    above = base.predict_proba(X)[:, 0] > table[SEX].to_numpy()
    assert np.array_equal(decided == "approved", above)
    formulas = aware.to_linear()
    own = formulas.loc[SEX].to_numpy()
    second = (own[:, :-1] * X).sum(axis=1) + own[:, -1] > 0
    assert np.array_equal(decided == "rejected", second)
    # Worth minus offset, by hand, with offsets in the order of classes_.
    group = (SEX == "m").astype(int)
    chances = base.predict_proba(X)
    margins = chances - np.einsum("ik,ikc->ic", chances, aware.offsets_[group, 0])
    assert np.array_equal(aware.classes_[margins.argmax(axis=1)], decided)


def test_strata_and_parts_of_a_stream_have_the_positive_class_too():
    level = np.where(X[:, 2] > 0, "high", "low")
    pair = []
    for y, positive in ((FIRST, "approved"), (LAST, "yes")):
        model = ConstrainedERMClassifier(
            ConditionalOn("equal_opportunity"), 0.05, pos_label=positive
        )
        model.fit(X, y, sensitive_features=SEX, control_features=level)
        pair.append(model.predict(X) == positive)
    assert np.array_equal(*pair)
    pair = []
    for y, positive in ((FIRST, "approved"), (LAST, "yes")):
        model = ConstrainedERMClassifier("equal_opportunity", random_state=0, pos_label=positive)
        for part in (slice(0, 450), slice(450, 900)):
            model.partial_fit(X[part], y[part], sensitive_features=SEX[part])
        pair.append(model.predict(X) == positive)
    assert np.array_equal(*pair)


def test_a_stream_is_warned_of_the_choice_once():
    model, parts = ConstrainedERMClassifier("equal_opportunity"), (slice(0, 450), slice(450, 900))
    with pytest.warns(PositiveClassWarning):
        model.partial_fit(X[parts[0]], LAST[parts[0]], sensitive_features=SEX[parts[0]])
    model.partial_fit(X[parts[1]], LAST[parts[1]], sensitive_features=SEX[parts[1]])


@pytest.mark.parametrize(
    "constraint", ["equal_opportunity", "mean_score_parity", LossParity(subset="positive")]
)
@pytest.mark.parametrize("solver", ["al_newton", "alm"])
def test_every_kind_of_moment_is_of_the_positive_class(constraint, solver):
    pair = []
    for y, positive in ((FIRST, "approved"), (LAST, "yes")):
        model = ConstrainedERMClassifier(
            constraint, 0.1, solver=solver, enforce="surrogate", pos_label=positive, random_state=0
        )
        pair.append(model.fit(X, y, sensitive_features=SEX))
    np.testing.assert_allclose(pair[0].coef_, -pair[1].coef_, atol=1e-8)
    assert pair[0].train_disparity_ == pytest.approx(pair[1].train_disparity_, abs=1e-8)
    assert pair[0].train_disparity_ > 0


def warned(model, y, sensitive_features=SEX):
    """The warnings of a fit to some rows that are about the positive class."""
    some = slice(0, 240)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        model.fit(X[some], y[some], sensitive_features=sensitive_features[some])
    return [one for one in found if issubclass(one.category, PositiveClassWarning)]


class OwnConstraint(RateParity):
    """A constraint on those who have not earned it."""

    subset = "negative"


DEPENDS = [
    ConstrainedERMClassifier("equal_opportunity"),
    ConstrainedERMClassifier("false_negative_parity"),
    ConstrainedERMClassifier("predictive_parity", 0.2),
    ConstrainedERMClassifier(LossParity(subset="positive")),
    ConstrainedERMClassifier("bounded_false_positive_rate", 0.5),
    ConstrainedERMClassifier(OwnConstraint()),
    ConstrainedERMClassifier(min_rate=0.2),
    ConstrainedERMClassifier("equal_opportunity", **CERTIFIED),
    FairDecisionClassifier(constraint=DemographicParity(min_ratio=0.8)),
    FairDecisionClassifier(constraint=EqualizedOdds(comparison="ratio"), max_disparity=0.3),
    FairDecisionClassifier(constraint=["demographic_parity", "false_positive_parity"]),
    FairDecisionClassifier(selection_rate=(0.2, 0.4)),
    FairDecisionClassifier(min_rate="as before"),
    *rows_of_families("BY_POSITIVE_CLASS"),
]
DOES_NOT = [
    ConstrainedERMClassifier(),
    ConstrainedERMClassifier("equalized_odds"),
    ConstrainedERMClassifier("accuracy_parity"),
    ConstrainedERMClassifier("loss_parity"),
    ConstrainedERMClassifier(LossParity(subset="class")),
    ConstrainedERMClassifier("bounded_group_loss", 0.6),
    ConstrainedERMClassifier("excess_loss"),
    ConstrainedERMClassifier("mean_score_parity"),
    ConstrainedERMClassifier(DemographicParity(reference="overall")),
    FairDecisionClassifier(**CERTIFIED),
    FairDecisionClassifier(selection_rate={"approved": 0.4}),
    FairDecisionClassifier(selection_rate="as before"),
    *rows_of_families("BY_BOTH_CLASSES"),
]


@pytest.mark.parametrize("model", DEPENDS, ids=str)
def test_a_choice_that_matters_is_said(model):
    [one] = warned(clone(model), FIRST)
    assert "'approved', 'rejected': 'rejected' is taken" in str(one.message)
    assert one.filename == __file__
    if "pos_label" in model.get_params():
        assert "Pass pos_label='rejected' to keep it, or pos_label='approved'." in str(one.message)
        for positive in ("approved", "rejected"):
            assert not warned(clone(model).set_params(pos_label=positive), FIRST)
    else:
        assert "Pass y == 'rejected' to keep it, or y == 'approved'." in str(one.message)
        assert not warned(clone(model), FIRST == "approved")


def test_usual_labels_say_it_themselves_and_one_group_has_no_constraint():
    for model in (DEPENDS[0], *rows_of_families("BY_POSITIVE_CLASS")[1:2]):
        for usual in (Y, 2 * Y - 1, Y == 1, Y.astype(float)):
            assert not warned(clone(model), usual)
        assert warned(clone(model), Y + 1)  # 1 is good and 2 is bad in some data, and not in others
        assert not warned(clone(model), FIRST, np.full(SEX.size, "all"))


@pytest.mark.parametrize("model", DOES_NOT, ids=str)
def test_nothing_is_said_where_the_choice_does_not_matter(model):
    assert not warned(clone(model), FIRST)


@pytest.mark.parametrize("model", [m for m in DOES_NOT if "pos_label" in m.get_params()], ids=str)
def test_the_choice_does_not_matter_there(model):
    models = [
        clone(model).set_params(pos_label=one).fit(X, FIRST, sensitive_features=SEX)
        for one in ("approved", "rejected")
    ]
    decided = [one.predict(X) for one in models]
    right = [np.mean(labels == FIRST) for labels in decided]
    # The search of FairDecisionClassifier may end elsewhere, within a standard error.
    is_searched = isinstance(model, FairDecisionClassifier)
    assert right[0] == pytest.approx(right[1], abs=1 / 900**0.5 if is_searched else 0.02)
    if not is_searched:
        reached = [one.train_disparity_ for one in models]
        assert np.mean(decided[0] != decided[1]) < 0.1  # ties of thresholds
        assert reached[0] == pytest.approx(reached[1], abs=0.03)


THREE = np.select([X[:, 0] > 0.8, X[:, 0] > -0.3], ["approved", "deferred"], "rejected")


def test_of_several_classes_it_is_that_of_floors_and_budgets():
    model = FairDecisionClassifier(max_disparity=0.3, selection_rate=0.25, random_state=0)
    with pytest.raises(ValueError, match="or pos_label must say which class it is for"):
        model.fit(X, THREE, sensitive_features=SEX)
    named = clone(model).set_params(pos_label="approved").fit(X, THREE, sensitive_features=SEX)
    assert abs((named.train_predictions_ == "approved").sum() - 225) <= 1
    by_dict = clone(model).set_params(selection_rate={"approved": 0.25})
    by_dict.fit(X, THREE, sensitive_features=SEX)
    assert np.array_equal(named.train_predictions_, by_dict.train_predictions_)
    without = clone(model).set_params(selection_rate=None, pos_label="approved")
    with pytest.raises(ValueError, match="no effect: of the 3 classes of y each is limited"):
        without.fit(X, THREE, sensitive_features=SEX)
    assert not warned(clone(model).set_params(selection_rate=None), THREE)


def test_copies_grids_and_later_fits_keep_it():
    for name in ("erm", "decisions"):
        model = clone(MODELS[name]).set_params(constraint="equal_opportunity", pos_label="approved")
        model.fit(X, FIRST, sensitive_features=SEX)
        copied = pickle.loads(pickle.dumps(model))
        assert np.array_equal(copied.predict(X), model.predict(X))
        assert clone(model).pos_label == "approved"
        before = model.predict(X), model.pos_label_
        with pytest.raises(ValueError, match="not a class"):
            model.fit(X, LAST, sensitive_features=SEX)
        assert np.array_equal(before[0], model.predict(X))
        assert model.pos_label_ == before[1]
        model.set_params(pos_label=None).fit(X, Y, sensitive_features=SEX)
        assert model.pos_label_ == 1
        again = clone(model).fit(X, Y, sensitive_features=SEX)
        assert np.array_equal(model.predict(X), again.predict(X))


def test_grids_choose_among_limits_of_the_positive_class():
    table = np.column_stack([X, SEX == "m"])
    model = ConstrainedERMClassifier("equal_opportunity", pos_label="approved", sensitive=[4])
    scorer = get_scorer("neg_equal_opportunity_difference", sensitive=[4], pos_label="approved")
    search = GridSearchCV(model, {"max_disparity": [0.02, 0.3]}, scoring=scorer, cv=3)
    search.fit(table, FIRST)
    assert search.best_params_ == {"max_disparity": 0.02}
    found = equal_opportunity_difference(
        FIRST, search.predict(table), sensitive_features=SEX, pos_label="approved"
    )
    assert -scorer(search, table, FIRST) == pytest.approx(found)


def test_displays_audits_and_paths_ask_the_model():
    inspection, report = map(pytest.importorskip, ("skfair.inspection", "skfair.report"))
    model = ConstrainedERMClassifier("equal_opportunity", 0.02, pos_label="approved")
    piped = make_pipeline(StandardScaler(), model)
    piped.fit(X, FIRST, constrainedermclassifier__sensitive_features=SEX)
    rates = true_positive_rates(piped, FIRST, "approved")
    shown = inspection.GroupRatesDisplay.from_estimator(piped, X, FIRST, sensitive_features=SEX)
    at = [str(rate) for rate in shown.rates].index("true_positive_rate")
    assert shown.values[at].tolist() == pytest.approx(rates)
    found = report.Audit.from_estimator(piped, X, FIRST, sensitive_features=SEX).rates
    of_groups = (found["measure"] == "true_positive_rate") & found["group"].isin(["f", "m"])
    assert found["value"][of_groups].tolist() == pytest.approx(rates)
    path = fairness_path(
        clone(model), X, FIRST, sensitive_features=SEX, max_disparities=[0.02, 0.1]
    )
    first = true_positive_rates(path.estimators[0], FIRST, "approved")
    assert path.train_disparities[0] == pytest.approx(abs(first[0] - first[1]))


GROUPS = {"sensitive_features": SEX}
# Whatever reads labels without a model. f1_score takes 1 for positive, whatever the labels.
READERS = {
    "labels": partial(equal_opportunity_difference, **GROUPS),
    "scores": lambda y, p, **o: intra_group_pairwise_gap(y, X[:, 0], **GROUPS, **o),
    "losses": lambda y, p, **o: loss_parity_difference(y, X[:, 0], **GROUPS, **o),
    "group metric": partial(make_group_metric(f1_score), **GROUPS),
    "group report": partial(group_report, **GROUPS),
    "own metric": partial(
        group_report, metrics={"f1": f1_score}, rates=False, method=None, **GROUPS
    ),
    "fairness report": partial(fairness_report, n_bootstrap=0, **GROUPS),
    "test": partial(disparity_upper_bound, "equal_opportunity", **GROUPS),
    "bounds": partial(
        disparity_bounds, "equal_opportunity", accuracy=0.9, random_state=0, **GROUPS
    ),
    **{name: partial(read, **GROUPS) for name, read in by_families("READERS_OF_LABELS").items()},
}


@pytest.mark.parametrize("name", READERS)
def test_labels_say_which_class_is_positive_or_it_is_asked_for(name):
    decided, read = (X[:, 0] > 0.4).astype(int), READERS[name]
    with np.printoptions(precision=9):
        wanted = repr(read(Y, decided))
        for clear in ([-1, 1], [False, True], [0.0, 1.0]):
            assert repr(read(np.array(clear)[Y], np.array(clear)[decided])) == wanted
        for unclear in ([1, 2], [2, 1], [0, 2], ["no", "yes"], ["yes", "no"]):
            y, p = np.array(unclear)[Y], np.array(unclear)[decided]
            with pytest.raises(
                ValueError, match=f"{unclear[0]!r}.* which do not show which class is"
            ):
                read(y, p)
            assert repr(read(y, p, pos_label=unclear[1])) == wanted


@pytest.mark.parametrize("pos_label", [None, 1, 2])
def test_a_model_of_one_and_two_is_measured_as_it_was_limited(pos_label):
    """German credit is coded like this."""
    inspection, report = map(pytest.importorskip, ("skfair.inspection", "skfair.report"))
    y, table = Y + 1, np.column_stack([X, SEX == "m"])
    fair = FairDecisionClassifier(
        LogisticRegression(), "equal_opportunity", 0.02, group_aware=True, pos_label=pos_label,
        random_state=0, cv="prefit", sensitive=[4],
    )  # fmt: skip
    fair.set_params(estimator=LogisticRegression().fit(X, y))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PositiveClassWarning)
        fair.fit(table, y)
    plain, positive = LogisticRegression().fit(table, y), pos_label or 2
    wanted = equal_opportunity_difference(
        y == positive, fair.predict(table) == positive, sensitive_features=SEX
    )
    assert wanted == pytest.approx(fair.train_disparity_)
    for model, named in (
        (fair, {}),
        (plain, {} if pos_label is None else {"pos_label": pos_label}),
    ):
        found = model.predict(table)
        gap = equal_opportunity_difference(y == positive, found == positive, **GROUPS)
        scorer = get_scorer("neg_equal_opportunity_difference", sensitive=[4], **named)
        assert scorer(model, table, y) == -gap
        f1 = make_fairness_scorer(f1_score, greater_is_better=True, sensitive=[4], **named)
        assert f1(model, table, y) == f1_score(y, found, pos_label=positive)
        rates = [np.mean(found[group == SEX] == positive) for group in ("f", "m")]
        of_model = report.Audit.from_estimator(model, table, y, **GROUPS, n_simulations=20, **named)
        assert of_model.value("equal_opportunity_difference") == pytest.approx(gap)
        shown = of_model.rates.query("measure == 'selection_rate' and view != ''")
        assert shown["value"].tolist() == pytest.approx(rates)
        drawn = inspection.GroupRatesDisplay.from_estimator(
            model, table, y, **GROUPS, rates="selection_rate", **named
        )
        assert drawn.values[0] == pytest.approx(rates)
