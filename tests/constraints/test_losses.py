"""Constraints on losses: sums over classes, excess over the loss of all rows."""

from functools import partial

import numpy as np
import pytest

from skfair import Sensitive
from skfair.classification import ConstrainedERMClassifier
from skfair.constraints import ConditionalOn, ExcessLoss, LossParity
from skfair.groups.strata import Strata
from skfair.metrics import excess_loss, loss_parity_difference
from skfair.regression import ConstrainedERMRegressor
from tests.naive import erm as naive
from tests.seeds import generator
from tests.small_problems import people

WHO = people(seed=3, n=200, n_levels=(3,), weighted=True)
SCORES = generator(0).normal(size=200)
LOSSES = np.logaddexp(0, -WHO.signs * SCORES)


def mean_loss(kept):
    return np.average(LOSSES[kept], weights=WHO.weights[kept])


def sums_of_classes():
    """The loss of each group, added up over both classes; that of all rows last."""
    groups = WHO.columns[0]
    every = [groups == g for g in "abc"] + [np.full(200, True)]
    return [mean_loss(k & (WHO.signs > 0)) + mean_loss(k & (WHO.signs < 0)) for k in every]


def measured(constraint):
    """What the metric of the constraint says."""
    given = {"sensitive_features": WHO.columns[0], "sample_weight": WHO.weights}
    return loss_parity_difference(
        WHO.signs, SCORES, **given, **constraint.metric_options("log_loss", 1)
    )


@pytest.mark.parametrize("reference", ["pairwise", "overall"])
def test_classes_are_added_up_before_groups_are_compared(reference):
    constraint = LossParity(subset="class", reference=reference, sum_classes=True)
    bound = constraint.prepare(WHO.training_rows(), 0.1)
    *of_groups, overall = sums_of_classes()
    against = of_groups if reference == "pairwise" else [overall]
    expected = max(abs(a - b) for a in of_groups for b in against)
    assert bound.disparity(SCORES) == pytest.approx(expected, abs=1e-12)
    assert bound.rate_names == ("a", "b", "c")
    found = measured(constraint)
    assert found == pytest.approx(expected, abs=1e-12)
    apart = LossParity(subset="class", reference=reference).prepare(WHO.training_rows(), 0.1)
    assert bound.disparity(SCORES) != pytest.approx(apart.disparity(SCORES), abs=1e-3)


def test_within_strata_classes_are_added_up_in_each():
    strata = generator(1).integers(0, 2, 200)
    rows = WHO.training_rows()._replace(strata=Strata(strata, ("east", "west")))
    constraint = ConditionalOn(LossParity(subset="class", sum_classes=True))
    bound = constraint.prepare(rows, 0.1)
    metric = constraint.metric_options("log_loss", 1)
    found = loss_parity_difference(
        WHO.signs,
        SCORES,
        sensitive_features=WHO.columns[0],
        control_features=strata,
        sample_weight=WHO.weights,
        **metric,
    )
    assert bound.disparity(SCORES) == pytest.approx(found, abs=1e-12)
    assert bound.rate_names[0] == "a, east"
    assert len(bound.rate_names) == 6


def test_a_group_without_a_class_in_a_stratum_has_no_sum_there():
    strata = np.where((WHO.columns[0] == "a") & (WHO.signs > 0), 1, 0)
    strata[:40] = 1
    strata[(WHO.columns[0] == "a") & (WHO.signs > 0)] = 1
    rows = WHO.training_rows()._replace(strata=Strata(strata, ("east", "west")))
    bound = ConditionalOn(LossParity(subset="class", sum_classes=True)).prepare(rows, 0.1)
    assert "a, east" not in bound.rate_names
    assert "b, east" in bound.rate_names


@pytest.mark.parametrize("reference", ["pairwise", "overall"])
def test_absolute_differences_of_classes_are_added_up(reference):
    """|d+| + |d-|, the third row of table 1 of fairness_constrained_benchmark."""
    constraint = LossParity(subset="class", reference=reference, sum_classes="absolute")
    bound = constraint.prepare(WHO.training_rows(), 0.1)
    given = WHO.signs > 0, WHO.columns[0], WHO.weights, reference
    expected = naive.absolute_differences_of_classes(LOSSES, *given)
    assert bound.disparity(SCORES) == pytest.approx(expected, abs=1e-12)
    found = measured(constraint)
    assert found == pytest.approx(expected, abs=1e-12)
    with pytest.raises(ValueError, match="sum_classes must be False, True or 'absolute'"):
        LossParity(subset="class", sum_classes="abs").prepare(WHO.training_rows(), 0.1)


def test_within_strata_absolute_differences_are_added_up_in_each():
    strata = generator(1).integers(0, 2, 200)
    rows = WHO.training_rows()._replace(strata=Strata(strata, ("east", "west")))
    bound = ConditionalOn(LossParity(subset="class", sum_classes="absolute")).prepare(rows, 0.1)
    expected = max(
        naive.absolute_differences_of_classes(
            LOSSES[here], WHO.signs[here] > 0, WHO.columns[0][here], WHO.weights[here], "pairwise"
        )
        for here in (strata == 0, strata == 1)
    )
    assert bound.disparity(SCORES) == pytest.approx(expected, abs=1e-12)
    assert len(set(bound.rate_names)) == 12


def test_a_fit_keeps_the_sum_of_absolute_differences():
    who = people(seed=0, n=400, n_levels=(2,))
    y, groups = (who.signs > 0).astype(int), who.columns[0]

    def left(constraint):
        model = ConstrainedERMClassifier(constraint, 0.02).fit(who.X, y, sensitive_features=groups)
        losses = np.logaddexp(0, -who.signs * model.decision_function(who.X))
        given = y == 1, groups, np.ones(400), "pairwise"
        return naive.absolute_differences_of_classes(losses, *given)

    assert left(LossParity(subset="class", sum_classes="absolute")) <= 0.02 + 1e-9
    assert left(LossParity(subset="class", sum_classes=True)) > 0.05


def test_a_sum_needs_classes():
    with pytest.raises(ValueError, match="subset must be 'all', 'positive' or 'class'"):
        LossParity(subset="negative").tasks  # noqa: B018 (what a fit asks first)
    with pytest.raises(ValueError, match="pass subset='class', not 'all'"):
        loss_parity_difference([0, 1], [1, 2], sensitive_features=["a", "b"], sum_classes=True)


def excesses():
    return [mean_loss(WHO.columns[0] == g) - mean_loss(np.full(200, True)) for g in "abc"]


@pytest.mark.parametrize(
    ("agg", "constraint", "reduce"),
    [("worst", ExcessLoss, max), ("mean", partial(ExcessLoss, agg="mean"), np.mean)],
)
def test_excesses_are_those_counted(agg, constraint, reduce):
    expected = reduce(excesses())
    given = {"sensitive_features": WHO.columns[0], "sample_weight": WHO.weights, "agg": agg}
    assert excess_loss(WHO.signs, SCORES, **given) == pytest.approx(expected, abs=1e-12)
    bound = constraint().prepare(WHO.training_rows(), 0.1)
    assert bound.disparity(SCORES) == pytest.approx(expected, abs=1e-12)
    assert np.isneginf(bound.lower).all()
    assert bound.upper.size == (1 if agg == "mean" else 3)


@pytest.mark.parametrize("agg", ["worst", "mean"])
def test_an_attribute_of_one_group_changes_nothing(agg):
    alone = np.full(200, "x")
    columns = np.column_stack([alone, WHO.columns[0]])
    given = {"intersectional": False, "agg": agg, "sample_weight": WHO.weights}
    found = excess_loss(WHO.signs, SCORES, sensitive_features=columns, **given)
    constraint = ExcessLoss(agg=agg)
    rows = WHO._replace(columns=[alone, WHO.columns[0]]).training_rows()
    assert constraint.prepare(rows, 0.1).disparity(SCORES) == pytest.approx(found, abs=1e-12)
    reduce = max if agg == "worst" else np.mean
    assert found == pytest.approx(reduce(excesses()), abs=1e-12)


def overlapping(n=150):
    """Indicator columns of three groups that overlap."""
    who = people(seed=5, n=n, n_levels=(2, 2, 2), weighted=True)
    return who._replace(columns=[(column == "b").astype(int) for column in who.columns])


@pytest.mark.parametrize(
    ("agg", "kind", "reduce"),
    [("worst", ExcessLoss, max), ("mean", partial(ExcessLoss, agg="mean"), np.mean)],
)
def test_members_only(agg, kind, reduce):
    """Of indicator columns only members are limited, (18) of plada."""
    who = overlapping()
    constraint = kind(members_only=True)
    bound = constraint.prepare(who.training_rows(), 0.2)
    losses, scores = np.logaddexp(0, -who.signs * SCORES[:150]), SCORES[:150]
    expected = naive.mean_excess(losses, who.columns, who.weights, reduce)
    assert bound.disparity(scores) == pytest.approx(expected, abs=1e-12)
    assert bound.row_values(bound.means(losses)).max() == pytest.approx(expected, abs=1e-12)
    assert (bound.upper == 0.2).all()
    given = {
        "sensitive_features": np.column_stack(who.columns),
        "sample_weight": who.weights,
        "intersectional": False,
    }
    options = constraint.metric_options("log_loss", 1)
    assert excess_loss(who.signs, scores, **given, **options) == pytest.approx(expected, abs=1e-12)


def test_a_fit_keeps_18_of_plada():
    """The mean excess of the members, and not with their complements, is what is limited."""
    rng = generator(0)
    X = rng.normal(size=(600, 4))
    members = (X[:, :3] + rng.normal(size=(600, 3)) > 1.2).astype(int)
    y = (X @ [1, 1, 1, 1] + (1 + 2 * members.sum(axis=1)) * rng.normal(size=600) > 0).astype(int)

    def mean_excess(constraint):
        model = ConstrainedERMClassifier(
            constraint, 0.01, loss="hinge", sensitive=Sensitive(intersectional=False)
        )
        scores = model.fit(X, y, sensitive_features=members).decision_function(X)
        losses = np.maximum(0, 1 - (2 * y - 1) * scores)
        return naive.mean_excess(losses, members.T, np.ones(600), np.mean), model

    value, model = mean_excess(ExcessLoss(agg="mean", members_only=True))
    assert value <= 0.01 + 1e-9
    assert model.train_disparity_ == pytest.approx(value, abs=1e-9)
    assert mean_excess(ExcessLoss(agg="mean"))[0] > 0.012


@pytest.mark.parametrize("agg", ["worst", "mean"])
def test_members_are_those_of_indicator_columns(agg):
    constraint = ExcessLoss(agg=agg, members_only=True)
    with pytest.raises(ValueError, match="the levels 'a', 'b'.*indicator column"):
        constraint.prepare(WHO.training_rows(), 0.1)
    who = overlapping()
    table = np.column_stack(who.columns)
    crossed = {"sensitive_features": table, "members_only": True}
    with pytest.raises(ValueError, match="Pass intersectional=False"):
        excess_loss(who.signs, SCORES[:150], **crossed)
    flags = {"sensitive_features": table[:, 0] == 1, "members_only": True}
    losses = np.logaddexp(0, -who.signs * SCORES[:150])
    expected = losses[table[:, 0] == 1].mean() - losses.mean()
    assert excess_loss(who.signs, SCORES[:150], **flags) == pytest.approx(expected, abs=1e-12)


def test_one_group_has_no_excess():
    given = {"sensitive_features": ["a", "a"], "loss": "hinge"}
    with pytest.raises(ValueError, match="nothing to compare"):
        excess_loss([0, 1], [1, 2], **given)
    bound = ExcessLoss().prepare(people(n=20, n_levels=(1,)).training_rows(), 0.1)
    assert bound.upper.size == 0


def unequal(n=600):
    """A large group that is easy to predict, and a small one that is not."""
    rng = generator(0)
    group = np.where(rng.random(n) < 0.8, "large", "small")
    X = rng.normal(size=(n, 3))
    of_group = np.where(group == "large", X[:, 0], X[:, 1])
    return X, of_group + np.where(group == "large", 0.3, 1.0) * rng.normal(size=n), group


@pytest.mark.parametrize(
    ("name", "agg"), [("excess_loss", "worst"), (ExcessLoss(agg="mean"), "mean")]
)
def test_fits_keep_their_limits(name, agg):
    X, response, group = unequal()
    y = (response > 0).astype(int)
    given = {"sensitive_features": group, "agg": agg}

    def of_classifier(limit):
        model = ConstrainedERMClassifier(name, limit).fit(X, y, sensitive_features=group)
        return excess_loss(y, model.decision_function(X), **given), model

    free, _ = of_classifier(9.0)
    kept, model = of_classifier(0.5 * free)
    assert free > 0.05
    assert 0.4 * free < kept <= 0.5 * free + 1e-9
    assert model.train_disparity_ == pytest.approx(kept, abs=1e-9)

    def of_regressor(limit):
        model = ConstrainedERMRegressor(name, limit).fit(X, response, sensitive_features=group)
        options = {"loss": "squared_error", "task": "regression", **given}
        return excess_loss(response, model.predict(X), **options)

    free = of_regressor(99.0)
    assert 0.4 * free < of_regressor(0.5 * free) <= 0.5 * free + 1e-9


def test_groups_that_are_served_better_are_not_limited():
    """The small group is below the mean by more than the limit, which a difference would not be."""
    rng = generator(0)
    group = np.where(rng.random(600) < 0.9, "large", "small")
    X = rng.normal(size=(600, 2))
    y = (X[:, 0] + np.where(group == "large", 1.5, 0.1) * rng.normal(size=600) > 0).astype(int)
    model = ConstrainedERMClassifier("excess_loss", 0.1).fit(X, y, sensitive_features=group)
    free = ConstrainedERMClassifier("excess_loss", 9.0).fit(X, y, sensitive_features=group)
    assert model.coef_ == pytest.approx(free.coef_)
    losses = np.logaddexp(0, -(2 * y - 1) * model.decision_function(X))
    assert losses.mean() - losses[group == "small"].mean() > 0.1
    assert not np.any(model.multipliers_)
