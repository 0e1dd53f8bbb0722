"""Summaries of fits: limits in force in their own units, and what they changed."""

import re
import warnings
from html import escape, unescape

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone, is_classifier, is_regressor

from skfair import Certificate, Sensitive
from skfair.classification import (
    ConstrainedERMClassifier,
    FairDecisionClassifier,
)
from skfair.cluster import FairAssignment
from skfair.constraints import DemographicParity
from skfair.exceptions import SelectionRateWarning
from skfair.regression import ConstrainedERMRegressor, FairDecisionRegressor
from tests.families import rows_of_families
from tests.seeds import generator

# Limits on small samples are tight here. tests/estimators/test_explained.py is about the warning.
pytestmark = pytest.mark.filterwarnings("ignore:The limits lower R2")

APART, EACH = {"sensitive": Sensitive(intersectional=False)}, {"sex": 0.1, "age": 0.2}
BOTH, RATIO = ("sex", "age"), DemographicParity(min_ratio=0.8)
DECISIONS = [FairDecisionClassifier, ConstrainedERMClassifier]


def people(seed=0, n=300):
    rng = generator(seed)
    groups = pd.DataFrame({"sex": rng.choice(["f", "m"], n), "age": rng.choice(["new", "old"], n)})
    X = rng.normal(size=(n, 3)) + (groups == ["m", "old"]).to_numpy() @ [[0.8, 0, 0], [0, 0.4, 0]]
    return X, X.sum(axis=1) + rng.logistic(size=n), groups


def fitted(model, attributes=("sex",), seed=0, **weights):
    X, y, groups = people(seed)
    given = {"sensitive_features": groups[list(attributes)], **weights}
    if hasattr(model, "min_balance"):
        return model.fit(X, **given)
    return model.fit(X, y > 1 if is_classifier(model) else y, **given)


def limits_of(summary):
    """Read what is reached and the limit, by name."""
    number = r"(-?[\d.]+(?:e-?\d+)?)"
    found = re.findall(rf"(?:^|, )([A-Za-z][^,()]*?) {number} \(limit {number}", summary)
    return {name: (float(reached), float(limit)) for name, reached, limit in found}


SPLIT = ConstrainedERMClassifier(certificate=Certificate(0.6, by="split"), random_state=0)
CASES = [
    *(
        (kind(constraint=DemographicParity(0.02)), {"DemographicParity": 0.02})
        for kind in DECISIONS
    ),
    *((kind(constraint=RATIO), {"DemographicParity ratio": 0.8}) for kind in DECISIONS),
    *(
        (
            model.set_params(constraint=[RATIO, "equal_opportunity"], max_disparity=0.1),
            {"DemographicParity ratio": 0.8, "EqualOpportunity": 0.1},
        )
        for model in (kind() for kind in DECISIONS)
    ),
    *(
        (
            kind(constraint="demographic_parity", max_disparity=EACH, **APART),
            {f"DemographicParity of {k}": EACH[k] for k in EACH},
        )
        for kind in DECISIONS
    ),
    (
        clone(SPLIT).set_params(
            constraint=[DemographicParity(0.3), "equal_opportunity"], max_disparity=0.5
        ),
        {"DemographicParity": 0.3, "EqualOpportunity": 0.5},
    ),
    (FairDecisionClassifier(max_disparity=0.2, certificate=0.6), {"DemographicParity": 0.2}),
    (ConstrainedERMRegressor(max_disparity=0.3), {"MeanScoreParity": 0.3}),
    (ConstrainedERMRegressor(max_disparity=0.3, certificate=0.6), {"MeanScoreParity": 0.3}),
    (
        FairDecisionRegressor(max_disparity=EACH, group_aware=True, **APART),
        {f"Wasserstein of {k}": EACH[k] for k in EACH},
    ),
    (
        FairAssignment(**APART, min_balance=0.5),
        {
            f"{word} of {k}": limit
            for k in BOTH
            for word, limit in (("balance", None), ("relative balance", 0.5))
        },
    ),
    *rows_of_families("SUMMARIES"),
]


@pytest.mark.filterwarnings("ignore:All rows are taken as one query")
@pytest.mark.parametrize(("model", "limits"), CASES)
def test_a_summary_has_each_limit_in_force_in_its_unit(model, limits):
    model = fitted(clone(model), BOTH if hasattr(model.sensitive, "intersectional") else ("sex",))
    assert model.status_ in ("converged", "max_iter", "certified"), model.summary_
    said = limits_of(model.summary_)
    assert set(said) == set(limits)
    for name, (reached, limit) in said.items():
        assert limits[name] is None or limit == pytest.approx(limits[name], rel=1e-3)
        at_least = any(word in name for word in ("ratio", "balance", "smallest"))
        slack = 0.05 if "share" in name else 5e-5  # shares are kept up to a row of 20
        assert (reached >= limit - slack) if at_least else (reached <= limit + slack)


@pytest.mark.parametrize("kind", rows_of_families("CALIBRATORS"))
def test_a_summary_says_which_limit_few_rows_leave(kind):
    with pytest.warns(UserWarning, match="is less than one row"):
        model = fitted(kind(max_disparity=0.001))
    assert f"(limit {model.effective_disparity_:.4g}, asked 0.001)" in model.summary_


def test_a_summary_says_why_nothing_is_certified():
    for kind in (FairDecisionClassifier(), clone(SPLIT)):
        with pytest.warns(UserWarning, match="no_solution") as caught:
            model = fitted(kind.set_params(max_disparity=1e-4, certificate=0.99))
        reason = re.search(r"no_solution: .*? \((.*)\)$", model.summary_)[1]
        assert len(reason) > 20
        assert reason in str(caught[0].message)
        model.set_params(certificate=None)
        assert "no_solution" not in fitted(model).summary_


FREE = [
    *((FairDecisionClassifier(group_aware=aware), 1.0) for aware in (False, True)),
    (FairDecisionClassifier(certificate=0.6, max_disparity=0.2), None),
    (ConstrainedERMClassifier(), 1.0),
    (ConstrainedERMClassifier(pos_label=False), 1.0),
    *rows_of_families("CHANGES"),
    (ConstrainedERMRegressor(), 1e9),
    (FairDecisionRegressor(group_aware=True), 1e9),
]


@pytest.mark.parametrize(("model", "free"), FREE)
def test_what_limits_changed_is_what_a_fit_without_them_predicts_differently(model, free):
    X, _, groups = people()
    weights = generator(1).integers(1, 3, len(X)).astype(float)

    def predictions(limit):
        own = fitted(clone(model).set_params(max_disparity=limit), sample_weight=weights)
        predicted = getattr(own, "train_predictions_", None)
        if predicted is None:
            is_aware = getattr(own, "is_group_aware_", False)
            predicted = own.predict(
                X, **{"sensitive_features": groups[["sex"]]} if is_aware else {}
            )
        return own, predicted == getattr(own, "pos_label_", True) if is_classifier(
            own
        ) else predicted

    own, after = predictions(model.max_disparity)
    name, change = next(iter(own.changes_.items()))
    assert len(own.changes_) == (
        3 if is_regressor(own) else 1
    )  # tests/estimators/test_explained.py
    digits = ".4g" if is_regressor(own) else ".1%"
    stages = [f"{x:{digits}}" for x in (change.before, change.without_limits, change.after)]
    if change.before != change.without_limits:
        model_itself, by_objective, within_limits = stages
        said = f"{model_itself} by the model itself, {by_objective} by the objective without limits"
        assert f"{name} {said}, {within_limits} within the limits" in own.summary_
    else:
        assert f"{name} {stages[1]} -> {stages[2]}" in own.summary_
    assert f"{change.rows_up} rows up, {change.rows_down} down" in own.summary_
    assert escape(own.summary_) in own._repr_html_()
    for k, values in enumerate([predictions(free)[1], after] if free else [None, after]):
        if values is None:
            continue
        assert (change.without_limits, change.after)[k] == pytest.approx(
            np.average(values, weights=weights)
        )
        assert set(change.by_group) == {"f", "m"}
        for group, ends in change.by_group.items():
            rows = (groups["sex"] == group).to_numpy()
            assert ends[k + 1] == pytest.approx(np.average(values[rows], weights=weights[rows]))
    if free and not isinstance(own, FairDecisionClassifier):
        before = predictions(free)[1]
        moved = after.astype(float) - before
        assert (change.rows_up, change.rows_down) == ((moved > 0).sum(), (moved < 0).sum())


def test_with_several_classes_the_share_of_each_is_said():
    X, y, groups = people()
    y = np.digitize(y, [0, 2])
    model = FairDecisionClassifier(max_disparity=0.1).fit(X, y, sensitive_features=groups["sex"])
    shares = np.bincount(model.train_predictions_, minlength=3) / len(y)
    assert [c.after for c in model.changes_.values()] == pytest.approx(shares.tolist())
    assert list(model.changes_) == [f"share of {k}" for k in range(3)]
    assert sum(c.rows_up - c.rows_down for c in model.changes_.values()) == 0


def uneven(n=300):
    """Return few people of the group that is mostly selected, whom others then count for more."""
    rng = generator()
    sex = np.array(["f", "m"])[(np.arange(n) % 4 == 0).astype(int)]
    X = rng.normal(size=(n, 2))
    X[:, 0] += 3 * (sex == "m")
    return X, (X[:, 0] + 0.3 * rng.normal(size=n) > 1.5).astype(int), sex


@pytest.mark.parametrize("kind", [ConstrainedERMClassifier, FairDecisionClassifier])
@pytest.mark.parametrize("is_uneven", [True, False])
@pytest.mark.parametrize("options", [{}, {"selection_rate": 0.3}])
def test_a_rate_that_limits_change_by_much_is_warned_of_and_no_other(kind, is_uneven, options):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = kind(max_disparity=0.02, **options)
        if is_uneven:
            X, y, sex = uneven()
            model.fit(X, y, sensitive_features=sex)
        else:
            fitted(model)
    change = model.changes_["selection rate"]
    said = [str(w.message) for w in caught if w.category is SelectionRateWarning]
    is_large = abs(change.after - change.before) > 0.1
    assert is_large or not is_uneven or options
    assert len(said) == (is_large and not options)
    for text in said:
        assert f"from {change.before:.1%} to {change.after:.1%}" in text
        assert "selection_rate='as before'" in text


def test_the_audit_of_a_fit_says_what_limits_changed():
    audit = pytest.importorskip("skfair.report").Audit
    X, y, groups = people()
    model = fitted(ConstrainedERMClassifier(max_disparity=0.02))
    rows = {"X": X, "y": y > 1, "sensitive_features": groups[["sex"]]}
    change = model.changes_["selection rate"]
    text = f"selection rate {change.before:.1%} -> {change.after:.1%} ({change.rows_up} rows up"
    alone = audit.from_estimator(model, **rows)
    for page in (alone.to_markdown(), alone.to_html()):
        assert text in unescape(page).replace("\\", "")
        assert "f " + f"{change.by_group['f'][0]:.1%}" not in page  # a group may be too small
    free = fitted(clone(model).set_params(max_disparity=1.0))
    both = audit.from_estimator(model, before=free, **rows)
    ends = [f"{100 * of:.1f}".rstrip("0").rstrip(".") for of in (change.before, change.after)]
    assert f"The selection rate changed from {ends[0]}% to {ends[1]}%" in repr(both)


@pytest.mark.parametrize("kind", [FairDecisionClassifier, FairDecisionRegressor])
def test_a_summary_says_that_the_group_is_estimated(kind):
    said = "groups estimated from the other columns (group_estimators_)"
    blind, aware = (fitted(kind(group_aware=is_aware)) for is_aware in (False, True))
    assert blind.group_estimators_
    assert said in blind.summary_
    assert said in blind._repr_html_()
    assert not aware.group_estimators_
    assert said not in aware.summary_
    assert said not in fitted(ConstrainedERMClassifier()).summary_
