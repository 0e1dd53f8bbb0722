"""Limits for each attribute, floors and budgets, as constrained classifiers keep them."""

import contextlib
import re
import warnings
from inspect import signature

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone, is_regressor
from sklearn.linear_model import LogisticRegression

from skfair import Sensitive, metrics
from skfair.classification import (
    ConstrainedERMClassifier,
    FairDecisionClassifier,
)
from skfair.constraints import (
    ConditionalOn,
    DemographicParity,
    EqualizedOdds,
    MeanScoreParity,
)
from skfair.exceptions import LooseLimitWarning, MissingGroupsWarning
from skfair.groups.limits import DEFAULT_LIMIT
from skfair.metrics import (
    demographic_parity_difference,
    largest_false_negative_rate,
    largest_false_positive_rate,
    largest_group_loss,
    largest_selection_rate,
)
from skfair.model_selection import fairness_path
from skfair.regression import ConstrainedERMRegressor, FairDecisionRegressor
from tests.families import rows_of_families
from tests.registries import CONSTRAINTS
from tests.seeds import generator


@pytest.fixture(scope="module")
def people():
    rng = generator(0)
    n = 800
    sex, age = rng.choice(["f", "m"], n), rng.choice(["old", "young"], n)
    X = rng.normal(size=(n, 3)) + (sex == "m")[:, None] * [1, 0, 0]
    X += (age == "old")[:, None] * [0, 0.7, 0]
    y = (X[:, 0] + X[:, 1] + rng.normal(size=n) > 0.8).astype(int)
    return X, y, pd.DataFrame({"sex": sex, "age": age})


APART = Sensitive(intersectional=False)


@pytest.mark.parametrize(
    "model",
    [
        FairDecisionClassifier(group_aware=True, cv=3, random_state=0),
        ConstrainedERMClassifier(),
        FairDecisionClassifier(group_aware=True, cv=3, random_state=0, certificate=0.9),
    ],
)
@pytest.mark.parametrize("other", [None, 0.06, 0.05])
def test_a_constraint_that_is_stated_twice_is_one(model, other):
    """Of two limits the tighter one holds; None is that of the estimator."""
    rng = generator(4001)
    sex, X = rng.integers(0, 3, 150), rng.normal(size=(150, 3))
    X[:, 0] += 0.7 * (sex == 0)
    y = (X[:, 0] - X[:, 1] + rng.logistic(size=150) > 0).astype(int)
    fits = []
    for constraint in (EqualizedOdds(0.05), [EqualizedOdds(other), EqualizedOdds(0.05)]):
        fresh = clone(model).set_params(constraint=constraint)
        if isinstance(constraint, list) and other is None:
            fresh.set_params(max_disparity=0.1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of so few rows
            fits.append(fresh.fit(X, y, sensitive_features=sex))
    once, twice = fits
    assert twice.train_disparities_ == once.train_disparities_
    assert list(once.train_disparities_) == ["EqualizedOdds"]
    given = {"sensitive_features": sex} if isinstance(model, FairDecisionClassifier) else {}
    assert np.array_equal(once.predict(X, **given), twice.predict(X, **given))


@pytest.mark.parametrize(
    ("model", "constraint"),
    [
        (ConstrainedERMClassifier, "equalized_odds"),
        (FairDecisionClassifier, "equalized_odds"),
        (ConstrainedERMClassifier, ConditionalOn("equal_opportunity")),
    ],
)
def test_a_floor_is_on_positives_if_a_constraint_looks_at_each_class(people, model, constraint):
    X, y, both = people
    given = {"sensitive_features": both["sex"]}
    if isinstance(constraint, ConditionalOn):
        given["control_features"] = both["age"]
    fitted = model(constraint=constraint, max_disparity=0.1, min_rate=0.85).fit(X, y, **given)
    found = getattr(fitted, "train_predictions_", fitted.predict(X))
    for sex in ("f", "m"):
        assert found[(both["sex"] == sex) & (y == 1)].mean() >= 0.85 - 1e-9
    assert found.mean() < 0.8  # a floor on selection rates would select more


@pytest.mark.parametrize(
    ("model", "heaviest"),
    [
        (ConstrainedERMClassifier("equalized_odds", loss="squared_hinge"), 1.0),
        (ConstrainedERMClassifier(max_disparity=0.1, class_weight="balanced"), 2.0),
        (FairDecisionClassifier(), 2.0),
        (FairDecisionClassifier(objective="balanced_accuracy", group_aware=True), 1.0),
        (FairDecisionClassifier(group_aware=True), 1.0),
        (FairDecisionClassifier(objective="f1", pos_label=0), 2.0),
    ],
)
def test_as_many_are_selected_as_before(people, model, heaviest):
    X, y, both = people
    weights = np.where(np.arange(y.size) % 3, 1.0, heaviest)

    def fitted(**options):
        own = clone(model).set_params(**options, random_state=0)
        own.fit(X, y, weights, sensitive_features=both["sex"])
        assert own.status_ == "converged"
        found = getattr(own, "train_predictions_", None)
        selected = (own.predict(X) if found is None else found) == own.pos_label_
        return own, np.average(selected, weights=weights)

    own, _ = fitted(max_disparity=1.0)
    before, half_a_row = own.changes_["selection rate"].before, 0.5 * heaviest / weights.sum()
    assert fitted(selection_rate="as before")[1] == pytest.approx(before, abs=half_a_row + 1e-6)


@pytest.mark.parametrize(
    ("constraint", "limit", "among"),
    [("demographic_parity", 0.05, None), ("equal_opportunity", 0.02, 1)],
)
def test_rates_as_before(people, constraint, limit, among):
    X, y, both = people
    given = {"sensitive_features": both["sex"]}

    def rates(found):
        inside = np.ones(y.size, bool) if among is None else y == among
        return np.array([found[(both["sex"] == s) & inside].mean() for s in ("f", "m")])

    free = ConstrainedERMClassifier(constraint, 1.0).fit(X, y, **given).predict(X)
    model = ConstrainedERMClassifier(constraint, limit, min_rate="as before").fit(X, y, **given)
    found = model.predict(X)
    assert np.ptp(rates(free)) > limit  # without a floor, a rate may be lower than before
    assert (rates(found) >= rates(free) - 1e-8).all()
    assert np.ptp(rates(found)) <= limit + 1e-9
    assert model.status_ != "infeasible"


def test_a_floor_as_before_on_other_models(people):
    X, y, both = people
    given = {"sensitive_features": both["sex"]}
    free = ConstrainedERMClassifier(max_disparity=1.0, model=(3,), random_state=0)
    model = ConstrainedERMClassifier(
        max_disparity=0.1, min_rate="as before", model=(3,), random_state=0
    )
    before, after = (one.fit(X, y, **given).predict(X) for one in (free, model))
    for sex in ("f", "m"):
        own = both["sex"] == sex
        assert after[own].mean() >= before[own].mean() - 1e-8
    plain = ConstrainedERMClassifier(max_disparity=1.0).fit(X, y, **given).predict(X)
    several = ConstrainedERMClassifier(
        max_disparity=0.1, min_rate="as before", sensitive=APART
    ).fit(X, y, sensitive_features=both)
    for name in both:
        for level in both[name].unique():
            own = (both[name] == level).to_numpy()
            assert several.predict(X)[own].mean() >= plain[own].mean() - 1e-8
    stream = ConstrainedERMClassifier(min_rate="as before", random_state=0)
    assert stream.partial_fit(X, y, **given).n_iter_ > 0


@pytest.mark.parametrize("model", [ConstrainedERMClassifier, FairDecisionClassifier])
@pytest.mark.parametrize("own", [0.02, {"sex": 0.02, "age": None}])
def test_a_constraint_within_strata_has_a_limit_for_all_attributes_or_for_each(people, model, own):
    X, y, both = people
    strata = generator(1).choice(["law", "arts"], y.size)
    fitted = model(
        constraint=ConditionalOn(DemographicParity(max_disparity=own)),
        sensitive=APART,
        random_state=0,
    ).fit(X, y, sensitive_features=both, control_features=strata)
    found = fitted.train_predictions_ if hasattr(fitted, "offsets_") else fitted.predict(X)
    for name in ["sex", "age"] if own == 0.02 else ["sex"]:
        given = {"sensitive_features": both[name], "control_features": strata}
        assert demographic_parity_difference(y, found, **given) <= 0.02 + 1e-9


@pytest.mark.parametrize(
    ("model", "own"),
    [
        (ConstrainedERMClassifier(), DemographicParity(0.2)),
        (ConstrainedERMClassifier(), DemographicParity(min_ratio=0.5)),
        (ConstrainedERMClassifier(), [DemographicParity(0.2), EqualizedOdds(0.3)]),
        (ConstrainedERMClassifier(), ConditionalOn("demographic_parity", 0.2)),
        (FairDecisionClassifier(cv=2), DemographicParity(0.2)),
        *rows_of_families("OWN_LIMITS"),
        (FairDecisionRegressor(cv=2), MeanScoreParity(0.9)),
        (ConstrainedERMRegressor(), MeanScoreParity(0.9)),
    ],
)
def test_a_limit_is_set_in_one_place(people, model, own):
    """The other one had no effect: a search over ``max_disparity`` compared equal models."""
    X, y, both = people
    given = {"sensitive_features": both["sex"], "control_features": both["age"]}
    if not isinstance(own, ConditionalOn):
        del given["control_features"]
    target = X.sum(axis=1) if is_regressor(model) else y
    twice = clone(model).set_params(constraint=own, max_disparity=0.7)
    with pytest.raises(ValueError, match="Set the limit in one place"):
        twice.fit(X, target, **given)
    once = clone(model).set_params(constraint=own).fit(X, target, **given)
    assert "limit 0.05" not in once.summary_


def test_a_limit_counts_as_set_at_every_value():
    """A limit of 0.05 beside ``min_ratio=0.8`` was dropped, because it was the default."""
    for model in (
        *(ConstrainedERMClassifier, FairDecisionClassifier),
        *(ConstrainedERMRegressor, FairDecisionRegressor),
        *(rows_of_families("TRAINED") + rows_of_families("CALIBRATORS")),
    ):
        assert signature(model).parameters["max_disparity"].default is None
    rng = generator(0)
    X, sex = rng.normal(size=(300, 2)), rng.permutation(np.resize(["f", "m"], 300))
    y, given = X[:, 0] + rng.normal(size=300) > 0, {"sensitive_features": sex}
    for ratio in (ConstrainedERMClassifier(), FairDecisionClassifier()):
        ratio.set_params(constraint=DemographicParity(min_ratio=0.8))
        for limit in (0.03, DEFAULT_LIMIT, 0.05, 0.2):
            model = clone(ratio).set_params(max_disparity=limit)
            with pytest.raises(ValueError, match="leave max_disparity out"):
                model.fit(X, y, **given)
        assert "limit 0.8" in clone(ratio).fit(X, y, **given).summary_
        by_default = clone(ratio).set_params(constraint="demographic_parity").fit(X, y, **given)
        assert f"limit {DEFAULT_LIMIT}" in by_default.summary_
    numbers = FairDecisionRegressor(constraint=MeanScoreParity(0.3), max_disparity=DEFAULT_LIMIT)
    with pytest.raises(ValueError, match="leave max_disparity out"):
        numbers.fit(X, X[:, 0], **given)


@pytest.mark.parametrize("options", [{"min_rate": "as before"}, {"min_rate": 0.2}, {}])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # limits are satisfied
def test_floors_and_budgets_are_no_disparities(people, options):
    X, y, both = people
    limits = {"sex": 0.1, "age": 0.2}
    model = ConstrainedERMClassifier(
        max_disparity=limits,
        sensitive=APART,
        selection_rate=(0.1, 0.9),
        **options,
    ).fit(X, y, sensitive_features=both)
    measured = {
        f"DemographicParity of {name}": demographic_parity_difference(
            y, model.predict(X), sensitive_features=both[name]
        )
        for name in limits
    }
    assert model.train_disparities_ == pytest.approx(measured)
    assert model.train_disparity_ == pytest.approx(max(measured.values()))
    assert set(model.disparity_by_group_) == {
        f"DemographicParity of {name}: {name}={level}" for name in both for level in both[name]
    }
    shares = [gap / limit for gap, limit in zip(measured.values(), limits.values(), strict=True)]
    path = fairness_path(model, X, y, max_disparities=[1], sensitive_features=both)
    assert path.train_disparities == pytest.approx(max(shares))


CAPS = {
    "bounded_selection_rate": largest_selection_rate,
    "bounded_false_positive_rate": largest_false_positive_rate,
    "bounded_false_negative_rate": largest_false_negative_rate,
}


@pytest.mark.parametrize("attributes", [["all"], ["all", "same"], ["all", "sex"]])
@pytest.mark.parametrize("constraint", CAPS)
def test_a_cap_holds_for_a_single_group(people, constraint, attributes):
    """A cap compares nobody. It was dropped: a rate of .43 under a limit of .1."""
    X, y, groups = people
    given = {"sensitive_features": groups.assign(all="a", same=1)[attributes]}
    for intersectional in (True, False):
        measured = {**given, "intersectional": intersectional}
        model = ConstrainedERMClassifier(
            constraint, 0.1, sensitive=Sensitive(intersectional=intersectional)
        )
        rate = CAPS[constraint](y, model.fit(X, y, **given).predict(X), **measured)
        assert rate <= 0.1 + 1e-9
        assert model.train_disparity_ == pytest.approx(rate, abs=1e-9)
        decisions = FairDecisionClassifier(
            None, constraint, 0.1, sensitive=Sensitive(intersectional=intersectional)
        )
        rate = CAPS[constraint](y, decisions.fit(X, y, **given).train_predictions_, **measured)
        assert rate <= 0.1 + 1e-9
        assert decisions.train_disparity_ == pytest.approx(rate, abs=1e-9)


def test_a_cap_holds_for_all_rows_without_groups(people):
    X, y, _ = people
    for model in (
        ConstrainedERMClassifier("bounded_selection_rate", 0.1),
        FairDecisionClassifier(None, "bounded_selection_rate", 0.1),
    ):
        with pytest.warns(MissingGroupsWarning):
            model.fit(X, y)
        assert 0.05 < model.train_disparity_ <= 0.1 + 1e-9
        assert model.predict(X).mean() <= 0.15  # the models of all folds decide about new rows


def test_a_cap_on_the_loss_holds_for_a_single_group(people):
    """It makes a heavily penalised model fit better than it would."""
    X, y, _ = people
    given = {"sensitive_features": ["a"] * len(y)}

    def fitted(limit):
        model = ConstrainedERMRegressor("bounded_group_loss", limit, alpha=1.0).fit(X, y, **given)
        options = {"task": "regression", "loss": "squared_error", **given}
        loss = largest_group_loss(y, model.predict(X), **options)
        assert model.train_disparity_ == pytest.approx(loss)
        return loss

    limit = 0.9 * fitted(10.0)
    assert 0.9 * limit < fitted(limit) <= limit + 1e-9


@pytest.mark.parametrize("estimator", [ConstrainedERMClassifier, FairDecisionClassifier])
def test_beside_a_cap_a_comparison_of_a_single_group_is_said_to_do_nothing(people, estimator):
    X, y, _ = people
    model = estimator(constraint=["demographic_parity", "bounded_selection_rate"])
    with pytest.warns(UserWarning, match="single group, 'a', so there is nothing"):
        model.fit(X, y, sensitive_features=["a"] * len(y))
    assert list(model.train_disparities_) == ["BoundedSelectionRate"]
    assert 0 < model.train_disparity_ <= 0.05 + 1e-9


@pytest.mark.parametrize(
    "kind", [ConstrainedERMClassifier, ConstrainedERMRegressor, FairDecisionClassifier]
)
def test_a_docstring_lists_the_constraints_that_its_estimator_accepts(kind):
    rng = generator(0)
    groups = rng.choice(["a", "b"], 200)
    X = rng.normal(size=(200, 2)) + (groups == "a")[:, None]
    y = X[:, 0] + rng.normal(size=200)
    y = y if kind is ConstrainedERMRegressor else (y > 0).astype(int)
    accepted = set()
    for name in CONSTRAINTS:
        with contextlib.suppress(ValueError):  # the message says that it is not for this estimator
            limit = 10.0 if "loss" in name or "score" in name else 1.0
            kind(constraint=name, max_disparity=limit).fit(X, y, sensitive_features=groups)
            accepted.add(name)
    paragraph = kind.__doc__.split("constraint : ")[1].split("max_disparity : ")[0]
    listed = set(re.findall(r'"(\w+)"', paragraph.partition("default=")[2].partition("\n")[2]))
    assert listed == accepted


def crowded():
    """Return few rows of several groups, for which small limits leave little freedom."""
    rng = generator()
    sex = rng.choice(list("abcd"), 240, p=[0.4, 0.3, 0.2, 0.1])
    X = rng.normal(size=(240, 3)) + 1.5 * (sex == "a")[:, None] * [1, 0, 0]
    return X, (X[:, 0] + X[:, 1] + rng.logistic(size=240) > 1).astype(int), sex


@pytest.mark.filterwarnings("ignore::UserWarning")  # they are what the test reads
@pytest.mark.parametrize(
    "model",
    [
        FairDecisionClassifier(LogisticRegression(), group_aware=True, random_state=0),
        pytest.param(
            FairDecisionClassifier(LogisticRegression(), random_state=0), marks=pytest.mark.slow
        ),
        ConstrainedERMClassifier(random_state=0),
    ],
    ids=["aware", "blind", "erm"],
)
@pytest.mark.parametrize("constraint", ["demographic_parity", "equal_opportunity"])
def test_limits_come_before_the_selection_rate(model, constraint):
    """The same decision for everybody keeps each limit, so only the rate may be missed."""
    X, y, sex = crowded()
    model = clone(model).set_params(
        constraint=constraint, max_disparity=0.01, selection_rate="as before"
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y, sensitive_features=sex)
    found = getattr(model, "train_predictions_", None)
    found = model.predict(X) if found is None else found
    disparity = getattr(metrics, f"{constraint}_difference")(y, found, sensitive_features=sex)
    assert disparity <= 0.01 + 1e-9
    change = model.changes_["selection rate"]
    is_missed = abs(change.after - change.before) > 0.5 / y.size + 1e-6
    assert is_missed == (model.status_ == "infeasible")
    said = [w for w in caught if "The limits between groups are kept, and the" in str(w.message)]
    assert len(said) == is_missed


@pytest.mark.filterwarnings("ignore::UserWarning")  # they are what the test reads
@pytest.mark.parametrize("group_aware", [True, False])
@pytest.mark.parametrize("constraint", ["equalized_odds", "demographic_parity"])
@pytest.mark.parametrize("seed", range(2))
def test_a_limit_below_one_person_names_one_that_leaves_a_choice(seed, constraint, group_aware):
    rng = generator(seed)
    sex = rng.choice(["f", "m"], 500)
    X = rng.normal(size=(500, 2)) + (sex == "m")[:, None]
    y = (X.sum(axis=1) + rng.logistic(size=500) > 1).astype(int)
    model = FairDecisionClassifier(None, constraint, 0, group_aware=group_aware, random_state=0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = model.fit(X, y, sensitive_features=sex).train_predictions_
    said = " ".join(str(warning.message) for warning in caught)
    named = re.search(r"changes in a rate \((.*?)\).* exist at a limit of ([\d.e-]+)\. ", said)
    assert named is not None or np.ptp(found) == 1
    if named is not None:
        one_person, limit = map(float, named.groups())
        assert 1 / 500 <= one_person <= limit
        looser = clone(model).set_params(max_disparity=limit).fit(X, y, sensitive_features=sex)
        assert np.ptp(looser.train_predictions_) == 1
        assert looser.train_disparity_ <= limit + 1e-9


def limited_fits(limit):
    """Return estimators with a limit on a difference of rates, in each way to set it.

    Each is in a pair with whether warnings about its limit name ``min_ratio`` as well.
    """
    of_sex = {"sex": limit, "age": None}
    own = [
        ConstrainedERMClassifier(max_disparity=limit),
        ConstrainedERMClassifier(EqualizedOdds(limit)),
        ConstrainedERMClassifier(max_disparity=of_sex, sensitive=APART),
        FairDecisionClassifier(max_disparity=limit, cv=2),
        FairDecisionClassifier(constraint=["accuracy_parity"], max_disparity=limit, cv=2),
        FairDecisionClassifier(max_disparity=of_sex, sensitive=APART, cv=2),
    ]
    of_families = [make(max_disparity=limit) for make in rows_of_families("LIMITED")]
    return [*((model, True) for model in own), *((model, False) for model in of_families)]


each_fit = pytest.mark.parametrize("number", range(len(limited_fits(0.5))))


@pytest.mark.parametrize("limit", [0.51, 0.99])
@each_fit
def test_a_limit_that_is_rather_a_ratio_is_warned_of(people, number, limit):
    X, y, both = people
    model, names_ratio = limited_fits(limit)[number]
    with pytest.warns(LooseLimitWarning, match="limits next to nothing.*1 for no limit") as caught:
        model.fit(X, y, sensitive_features=both)
    (said,) = {str(one.message) for one in caught if one.category is LooseLimitWarning}
    assert (f"(min_ratio={limit:g})" in said) == names_ratio
    assert str(limit) in said


@pytest.mark.filterwarnings("error::skfair.exceptions.LooseLimitWarning")
@pytest.mark.parametrize("limit", [0.5, 1])
@each_fit
def test_usual_limits_and_none_are_not_warned_of(people, number, limit):
    X, y, both = people
    model, _ = limited_fits(limit)[number]
    model.fit(X, y, sensitive_features=both)


def test_limits_that_are_no_differences_of_rates_are_as_large_as_they_are(people):
    X, y, both = people
    sex, numbers = both["sex"], X[:, 0] + X[:, 1]
    ratio = DemographicParity(min_ratio=0.2)
    with warnings.catch_warnings():
        warnings.simplefilter("error", LooseLimitWarning)
        ConstrainedERMClassifier("bounded_selection_rate", 0.8).fit(X, y, sensitive_features=sex)
        ConstrainedERMClassifier("loss_parity", 0.8).fit(X, y, sensitive_features=sex)
        ConstrainedERMClassifier(min_rate=0.3).fit(X, y, sensitive_features=sex)
        FairDecisionClassifier(constraint=ratio, cv=2).fit(X, y, sensitive_features=sex)
        ConstrainedERMRegressor(max_disparity=0.8).fit(X, numbers, sensitive_features=sex)
        FairDecisionRegressor(max_disparity=0.8).fit(X, numbers, sensitive_features=sex)
        path = fairness_path(
            ConstrainedERMClassifier(), X, y, max_disparities=[0.9, 0.1], sensitive_features=sex
        )
    assert path.max_disparities.tolist() == [0.9, 0.1]
