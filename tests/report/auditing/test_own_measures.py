"""Metrics of one's own in audits: values, errors, checks, small groups, and how often they err."""

from functools import partial

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import (
    f1_score,
    matthews_corrcoef,
    max_error,
    median_absolute_error,
    recall_score,
    roc_auc_score,
)

from skfair.metrics import equal_opportunity_difference, make_group_metric
from skfair.report import Audit, audit
from tests.seeds import generator

F1, MACRO = make_group_metric(f1_score), make_group_metric(partial(f1_score, average="macro"))


def patients(n=1200, key=0, shares=(0.5, 0.3, 0.2)):
    rng = generator(key)
    hospital, y = rng.choice(["east", "north", "west"], n, p=shares), rng.integers(0, 2, n)
    score = y + (0.6 + 0.7 * (hospital == "west")) * rng.normal(size=n)
    return hospital, rng.choice(["f", "m"], n), y, score, (score > 0.5).astype(int)


def table_of(found, measure, view):
    own = found.rates[(found.rates["measure"] == measure) & (found.rates["view"] == view)]
    return own.set_index("group")


@pytest.mark.parametrize(
    "labels", [pytest.param((0, 1), marks=pytest.mark.slow), ("ill", "well"), ("well", "ill")]
)
def test_tables_have_the_values_of_each_group(labels):
    hospital, sex, y, score, predicted = patients()
    own = [F1, make_group_metric(f1_score, compare="ratio"), make_group_metric(roc_auc_score)]
    own.append(make_group_metric(matthews_corrcoef))
    names = np.array(labels)
    found = audit(
        names[y], names[predicted], y_score=score, before=names[1 - predicted], n_simulations=50,
        sensitive_features={"hospital": hospital, "sex": sex}, pos_label=labels[1], metrics=own,
    )  # fmt: skip
    for view, codes in {"hospital": hospital, "sex": sex, "": np.full(y.size, "all")}.items():
        for name in np.unique(codes):
            rows = codes == name
            value = table_of(found, "f1_score", view).loc[name, "value"]
            assert value == pytest.approx(f1_score(y[rows], predicted[rows]))
            value = table_of(found, "before:f1_score", view).loc[name, "value"]
            assert value == pytest.approx(f1_score(y[rows], 1 - predicted[rows]))
            value = table_of(found, "roc_auc_score", view).loc[name, "value"]
            assert value == pytest.approx(roc_auc_score(y[rows], score[rows]))
            value = table_of(found, "matthews_corrcoef", view).loc[name, "value"]
            assert value == pytest.approx(matthews_corrcoef(y[rows], predicted[rows]))
    who = {"sensitive_features": hospital}
    for metric in own[:2]:
        value = found.value(metric.__name__, "hospital")
        assert value == pytest.approx(metric(y, predicted, **who))
    again = Audit.from_dict(found.to_dict())
    assert again.check("f1 difference > 0.9")[1:] == found.check("f1_score_difference > 0.9")[1:]
    for text in (found.to_html(), found.to_markdown()):
        assert "F1 score (difference)" in text


def test_errors_are_those_of_the_bootstrap_of_scipy():
    hospital, _, y, score, predicted = patients(600)
    units = np.arange(600) // 2
    own = [make_group_metric(roc_auc_score), F1]
    for given, step in (({}, 1), ({"units": units}, 2)):
        found = audit(
            y, predicted, y_score=score, sensitive_features={"hospital": hospital}, metrics=own,
            **given,
        )  # fmt: skip
        in_west = hospital == "west"

        def statistic(drawn, metric, column, step=step, in_west=in_west):
            rows = (step * drawn.astype(int)[:, None] + np.arange(step)).ravel()
            rows = rows[in_west[rows]]
            return metric(y[rows], column[rows])

        for metric, column in ((roc_auc_score, score), (f1_score, predicted)):
            row = table_of(found, metric.__name__, "hospital").loc["west"]
            error = (row["value_high"] - row["value_low"]) / (2 * 1.96)
            twin = stats.bootstrap(
                (np.arange(600 // step),), partial(statistic, metric=metric, column=column),
                vectorized=False, n_resamples=200, method="percentile", rng=generator(1),
            ).standard_error  # fmt: skip
            assert error == pytest.approx(twin, rel=0.35)  # both have an error of 5%


def test_a_recall_is_judged_like_equal_opportunity():
    """The same rate, once counted and once resampled, has about the same interval and p-value."""
    hospital, sex, y, _, predicted = patients(3000)
    names = ["equal_opportunity_difference", make_group_metric(recall_score)]
    found = audit(
        y, predicted, sensitive_features={"hospital": hospital}, control_features={"sex": sex},
        metrics=names,
    )  # fmt: skip
    for is_conditional in (False, True):
        own = found.gaps[found.gaps["is_conditional"] == is_conditional].set_index("metric")
        counted = own.loc["equal_opportunity_difference"]
        resampled = own.loc["recall_score_difference"]
        assert counted["value"] == pytest.approx(resampled["value"])
        for end in ("value_low", "value_high", "noise_upper"):
            assert counted[end] == pytest.approx(resampled[end], abs=0.03)
    value = equal_opportunity_difference(y, predicted, sensitive_features=hospital)
    assert found.value("recall_score_difference") == pytest.approx(value)
    within = found.within.pivot_table(
        index=["group", "other"], columns="measure", values="n_strata"
    )
    assert (within["recall_score"] == within["true_positive_rate"]).all()


def test_several_classes_and_numbers():
    hospital, _, y, score, _ = patients()
    classes = np.array(["a", "b", "c"])[np.digitize(score, [0, 1])]
    true = np.where(generator(1).random(y.size) < 0.7, classes, "b")
    who = {"sensitive_features": {"hospital": hospital}, "n_simulations": 50}
    found = audit(true, classes, metrics=[MACRO], **who)
    assert found.value("f1_score_difference") == pytest.approx(
        MACRO(true, classes, sensitive_features=hospital)
    )
    worst = make_group_metric(median_absolute_error)
    found = audit(y + 0.1 * score, 10 * score, metrics=[worst, make_group_metric(max_error)], **who)
    expected = worst(y + 0.1 * score, 10 * score, sensitive_features=hospital)
    assert found.value("median_absolute_error_difference") == pytest.approx(expected)
    assert found.check("median absolute error difference > 9").outcome == "pass"
    assert "%" not in str(found).replace("5%", "")


def test_a_gate_needs_data():
    """F1 per hospital as a gate: it passes with many rows, and is open with few."""

    def outcome(n, limit):
        rng = generator(n)
        hospital, y = np.arange(n) % 3, np.arange(n) // 3 % 2
        predicted = np.where(rng.random(n) < 0.15, 1 - y, y)
        who = {"sensitive_features": {"hospital": hospital}}
        return audit(y, predicted, metrics=[F1], **who).check(f"f1 difference > {limit}").outcome

    assert outcome(30_000, 0.05) == "pass"
    assert outcome(300, 0.05) != "pass"  # the margin alone is larger than the limit


def test_a_hospital_without_positives_does_not_pass():
    hospital, _, y, _, predicted = patients()
    y, predicted = (np.where(hospital == "west", 0, own) for own in (y, predicted))
    with pytest.warns(UserWarning, match=r"No interval is known of .*f1.* for west \(hospital\)"):
        found = audit(y, predicted, sensitive_features={"hospital": hospital}, metrics=[F1])
    check = found.check("f1 difference > 0.9")
    assert check.outcome == "inconclusive"
    assert "west" in check.undefined
    assert found.check("f1 difference > 0.9", allow_undefined=True).outcome == "pass"


def test_a_metric_with_one_value_in_all_resamples_does_not_pass():
    """Scores that separate the classes have an area of 1, from which rounding may take 1e-16."""
    rng = generator(0)
    group, y = np.arange(200) % 2, np.arange(200) // 2 % 2
    scores = 0.2 * rng.random(200) + 0.6 * y
    with pytest.warns(UserWarning, match="No interval is known"):
        found = audit(
            y,
            y_score=scores,
            threshold=0.5,
            sensitive_features={"g": group},
            metrics=[make_group_metric(roc_auc_score)],
        )
    check = found.check("roc_auc difference > 0.05")
    assert check.outcome == "inconclusive"
    assert "the same value in all resamples" in check.sentence


def test_what_is_hidden_is_hidden_of_own_metrics():
    """No rows of a small group count, and groups with few of a class have no F1."""
    hospital, _, y, _, predicted = patients()
    small = np.r_[np.full(5, "tiny"), hospital[5:]]
    shown = np.arange(y.size) >= 5
    found = audit(y, predicted, sensitive_features={"hospital": small}, metrics=[F1])
    value = table_of(found, "f1_score", "").loc["all", "value"]
    assert value == pytest.approx(f1_score(y[shown], predicted[shown]))
    assert "tiny" not in set(found.rates["group"])
    few = np.where((hospital == "west") & (np.cumsum((hospital == "west") & (y == 1)) > 3), 0, y)
    with pytest.warns(UserWarning, match="No interval is known"):
        found = audit(few, predicted, sensitive_features={"hospital": hospital}, metrics=[F1])
    assert np.isnan(table_of(found, "f1_score", "hospital").loc["west", "value"])


def test_what_an_audit_cannot_have_says_so(tmp_path):
    hospital, _, y, _, predicted = patients(300)
    who = {"sensitive_features": {"hospital": hospital}}
    with pytest.raises(ValueError, match="compares no groups"):
        audit(y, predicted, metrics=[make_group_metric(f1_score, compare="smallest")], **who)
    with pytest.raises(ValueError, match="name of small letters"):
        audit(y, predicted, metrics=[make_group_metric(lambda a, b: 0.0)], **who)
    with pytest.raises(ValueError, match=r"make_group_metric\(f1_score\)"):
        audit(y, predicted, metrics=[f1_score], **who)
    with pytest.raises(ValueError, match="needs y_true and y_score"):
        audit(y, predicted, metrics=[make_group_metric(roc_auc_score)], **who)

    def accuracy(y_true, y_pred):
        return 0.0

    with pytest.raises(ValueError, match="has a measure 'accuracy' already"):
        audit(y, predicted, metrics=[make_group_metric(accuracy)], **who)

    def error_rate(y_true, y_pred):
        return 0.0

    with pytest.raises(ValueError, match="'error_rate' begins like"):
        audit(y, predicted, metrics=[make_group_metric(error_rate)], **who)
    with pytest.raises(ValueError, match="Two metrics are called 'f1_score'"):
        audit(y, predicted, metrics=[F1, MACRO], **who)
    found = audit(y, predicted, metrics=[F1], **who)
    with pytest.raises(ValueError, match="has no record"):
        found.record(tmp_path / "record.json")
    with pytest.raises(ValueError, match="Write 'f1 difference >= 0.05'"):
        found.check("f1 difference < 0.05")
    with pytest.raises(ValueError, match="no metric 'recall_difference'"):
        found.check("recall difference > 0.05")


def test_a_positive_class_that_the_metric_names():
    hospital, _, y, score, predicted = patients()
    names = np.array(["no", "yes"])
    for name in names:
        own = make_group_metric(partial(f1_score, pos_label=name))
        who = {"sensitive_features": {"hospital": hospital}, "pos_label": "yes"}
        found = audit(names[y], names[predicted], metrics=[own], n_simulations=20, **who)
        value = own(names[y], names[predicted], sensitive_features=hospital)
        assert found.value("f1_score_difference") == pytest.approx(value)
    who = {"sensitive_features": {"hospital": hospital}, "threshold": 0.5, "metrics": [F1]}
    found = audit(y, y_score=score, n_simulations=20, **who)
    value = F1(y, predicted, sensitive_features=hospital)
    assert found.value("f1_score_difference") == pytest.approx(value)


@pytest.mark.slow
def test_equal_hospitals_rarely_differ():
    """Intervals of the worst difference hold, and few audits find one, as of counted rates."""
    n_audits, found_any, held = 400, 0, 0
    for key in range(n_audits):
        rng = generator(key)
        hospital, y = rng.choice(["a", "b", "c"], 600, p=[0.6, 0.3, 0.1]), rng.integers(0, 2, 600)
        predicted = np.where(rng.random(600) < 0.2, 1 - y, y)
        found = audit(
            y, predicted, sensitive_features={"hospital": hospital}, metrics=[F1], n_simulations=99
        )
        found_any += bool(found.gaps["is_beyond_chance"].iloc[0])
        held += found.gaps["value_low"].iloc[0] <= 0
    # 5% of 400, which chance exceeds by 6 standard deviations less than once in 1e6 runs
    assert found_any <= 20 + 6 * np.sqrt(19)
    assert held >= n_audits - found_any
