"""How labels are read: numbers are numbers, and a positive class is compared with the rest."""

import re
import warnings
from functools import partial

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import f1_score

from skfair import metrics
from skfair.__main__ import main
from skfair.exceptions import LooseLimitWarning
from skfair.report import audit as audited
from skfair.report import find_subgroups
from tests.seeds import generator

DisparityMonitor = pytest.importorskip("skfair.monitoring").DisparityMonitor

audit = partial(audited, n_simulations=60)
ANSWERS = np.array(["No", "Yes", "unclear"])
DIFFERENCE, RATIO = "demographic_parity_difference", "demographic_parity_ratio"


def people(rng, n=400):
    """Return groups of n people."""
    return rng.permutation(np.resize(["man", "woman"], n))


def answered(rng, groups, share=0.5):
    """Return one of three answers for each person, "Yes" with this probability."""
    return rng.choice(ANSWERS, len(groups), p=[(1 - share) / 2, share, (1 - share) / 2])


def judged(rng, groups, shift=2):
    """Return scores from 1 to 10, which are higher for men."""
    scores = np.clip(np.round(rng.normal(5, 2, len(groups)) + shift * (groups == "man")), 1, 10)
    scores[:2] = 1, 10
    return scores.astype(int)


def run_command(capsys, *arguments):
    """Run a command and return what it prints, its messages and its exit code."""
    code = main([*arguments])
    return *capsys.readouterr(), code


def numbers_of(found):
    return found.rates[["view", "group", "measure", "value", "value_low"]], found.gaps


def same(found, other):
    for own, beside in zip(numbers_of(found), numbers_of(other), strict=True):
        pd.testing.assert_frame_equal(own, beside)


@pytest.mark.parametrize("kind", [int, float, "Int64", "category", object])
def test_scores_of_a_judge_are_numbers(kind):
    rng = generator()
    groups = people(rng)
    scores = judged(rng, groups)
    given = pd.Series(scores).astype(kind)
    read = audit(None, given, sensitive_features={"group": groups})
    same(read, audit(None, scores, sensitive_features={"group": groups}, task="numbers"))
    assert read.task == "numbers"
    assert "read as numbers from 1 to 10" in str(read).splitlines()[0]
    assert read.value("mean_score_difference") == pytest.approx(
        abs(scores[groups == "man"].mean() - scores[groups == "woman"].mean())
    )
    for page in (read.to_html(), read.to_markdown(), read._repr_html_()):
        assert "ead as numbers from 1 to 10" in page
    assert read.to_dict()["reading"] == "read as numbers from 1 to 10"
    # A gate checks the means, and says of rates of labels why there are none.
    assert read.check("mean_score_difference > 9").outcome == "pass"
    with pytest.raises(ValueError, match="labels were read as numbers from 1 to 10"):
        read.check(f"{DIFFERENCE} > 0.1")
    found = find_subgroups(None, scores, columns={"group": groups})
    assert set(found["measure"]) == {"mean_prediction"}


def test_fractions_are_numbers_whatever_holds_them():
    rng = generator()
    groups = people(rng)
    scores = rng.integers(0, 3, len(groups)) / 2
    for given in (scores, scores.astype(object), pd.Series(scores).astype("Float64")):
        read = audit(None, given, sensitive_features={"group": groups})
        assert read.reading == "read as numbers from 0 to 1"
        with pytest.raises(ValueError, match="has fractions, so it is read as numbers"):
            audit(None, given, sensitive_features={"group": groups}, pos_label=1)
        for label in (None, 1):
            with pytest.raises(ValueError, match="has numbers such as 0.5, not labels"):
                metrics.demographic_parity_difference(
                    None, given, sensitive_features=groups, pos_label=label
                )


def test_ends_of_numbers_are_not_those_of_single_people():
    rng = generator()
    groups = people(rng)
    salaries = rng.normal(50_000, 8000, len(groups)).round(2)
    first = str(audit(None, salaries, sensitive_features={"group": groups})).splitlines()[0]
    low, high = map(float, re.search(r"numbers from about (\S+) to (\S+)", first).groups())
    assert low <= salaries.min() < salaries.max() <= high
    assert low % 1000 == high % 1000 == 0


def test_classes_beside_outcomes_stay_classes():
    rng = generator()
    groups = people(rng)
    few = rng.integers(0, 4, len(groups))
    predicted = rng.permutation(few)
    read = audit(few, predicted, sensitive_features={"group": groups})
    assert read.reading == "read as 4 classes: 0, 1, 2, 3"
    assert read.value("accuracy_parity_difference") == pytest.approx(
        metrics.accuracy_parity_difference(few, predicted, sensitive_features=groups)
    )


@pytest.mark.parametrize(("has_true", "n_values"), [(True, 9), (False, 5), (False, 3)])
def test_what_may_be_either_warns_and_names_task(has_true, n_values):
    rng = generator()
    groups = people(rng)
    values = rng.permutation(np.resize(np.arange(n_values), len(groups)))
    given = (values if has_true else None, rng.permutation(values))
    sensitive = {"sensitive_features": {"group": groups}}
    with pytest.warns(UserWarning, match=r"classes or numbers.*task='numbers'.*task='classes'"):
        read = audit(*given, **sensitive)
    assert read.task == "classes"
    same(read, audit(*given, **sensitive, task="classes"))
    assert audit(*given, **sensitive, task="numbers").task == "numbers"


@pytest.mark.parametrize(
    "call",
    [
        metrics.demographic_parity_difference,
        metrics.group_report,
        lambda *rows, **who: metrics.disparity_test(DIFFERENCE, *rows, **who, max_disparity=0.1),
        lambda *rows, **who: metrics.disparity_bounds(DIFFERENCE, *rows, **who, accuracy=0.9),
        lambda *rows, **who: DisparityMonitor(levels=["man", "woman"]).update(*rows, **who),
    ],
)
def test_metrics_of_labels_refuse_numbers_and_the_remedies_run(call):
    rng = generator()
    groups = people(rng)
    scores = judged(rng, groups)
    with pytest.raises(ValueError, match="y_pred is read as numbers from 1 to 10") as caught:
        call(None, scores, sensitive_features=groups)
    assert "mean_score_difference" in str(caught.value)
    assert "y_pred > 5.5" in str(caught.value)
    assert metrics.mean_score_difference(None, scores, sensitive_features=groups) > 0
    assert metrics.demographic_parity_difference(
        None, scores > 5.5, sensitive_features=groups
    ) == pytest.approx(
        metrics.demographic_parity_difference(
            None, np.where(scores > 5.5, 7, 3), sensitive_features=groups, pos_label=7
        )
    )


@pytest.mark.parametrize("n_others", [1, 2, 5])
@pytest.mark.parametrize("has_true", [True, False])
def test_a_positive_class_is_compared_with_the_rest(n_others, has_true):
    rng = generator()
    groups = people(rng)
    labels = np.array(["Yes", *(f"other {i}" for i in range(n_others))])
    predicted, true = (rng.permutation(np.resize(labels, len(groups))) for _ in range(2))
    sensitive = {"sensitive_features": {"group": groups}}
    given = true if has_true else None, predicted
    plain = true == "Yes" if has_true else None, predicted == "Yes"
    read = audit(*given, **sensitive, pos_label="Yes")
    same(read, audit(*plain, **sensitive))
    rest = ", ".join(sorted(labels[1:])[:5])
    assert read.reading == f"read as {len(labels)} classes; positive: Yes, against {rest}"
    assert "positive: Yes, against other 0" in read.to_html()
    for condition in (f"{DIFFERENCE} > 0.1", f"{RATIO} < 0.8", f"group: {DIFFERENCE} > 0.1"):
        assert read.check(condition) == audit(*plain, **sensitive).check(condition)
    for name, metric in vars(metrics).items():
        if name.endswith(("parity_difference", "parity_ratio")) and (
            has_true or name == DIFFERENCE
        ):
            if name in ("loss_parity_difference", "loss_parity_ratio"):
                continue
            own = {"sensitive_features": groups, "zero_division": np.nan}
            assert metric(*given, **own, pos_label="Yes") == pytest.approx(
                metric(*plain, **own), nan_ok=True
            ), name
    for pos_label, hint in (("yes", " Did you mean 'Yes'?"), ("zzz", "")):
        for call in (audit, metrics.demographic_parity_difference, metrics.group_report):
            with pytest.raises(
                ValueError, match=r"is not one of the labels .* Pass one of them\."
            ) as e:
                call(*given, sensitive_features={"group": groups}, pos_label=pos_label)
            assert str(e.value).endswith(f"them.{hint}")


def test_nearest_label_is_named_as_it_is():
    rng = generator()
    groups = people(rng)
    with pytest.raises(ValueError, match=r"Did you mean 10\?"):
        audit(None, judged(rng, groups), sensitive_features=groups, pos_label="10")


def test_metrics_of_ones_own_take_a_positive_class_of_several():
    rng = generator()
    groups = people(rng)
    true = answered(rng, groups)
    predicted = np.where(rng.random(len(groups)) < 0.5, true, answered(rng, groups))
    f1 = metrics.make_group_metric(f1_score)
    expected = f1(true == "Yes", predicted == "Yes", sensitive_features=groups)
    given = {"sensitive_features": groups, "pos_label": "Yes"}
    assert f1(true, predicted, **given) == pytest.approx(expected)
    found = audit(true, predicted, **given, metrics=[f1])
    assert found.value("f1_score_difference") == pytest.approx(expected)
    report = metrics.group_report(true, predicted, **given, metrics={"f1": f1_score}, n_bootstrap=0)
    assert abs(report["f1"]["man"] - report["f1"]["woman"]) == pytest.approx(expected)
    with pytest.raises(ValueError, match="Did you mean 'Yes'"):
        f1(true, predicted, sensitive_features=groups, pos_label="yes")


def test_several_classes_have_no_positive_one_unless_it_is_named():
    rng = generator()
    groups = people(rng)
    answers = answered(rng, groups)
    with pytest.raises(ValueError, match=r"pos_label='Yes' compares .* Leave out one"):
        audit(None, answers, sensitive_features=groups, pos_label="Yes", task="classes")
    with pytest.raises(ValueError, match=r"'Yes', 'unclear', which do not show .* pos_label="):
        audit(None, answers, sensitive_features=groups, task="binary")
    with pytest.raises(ValueError, match=r"read as 3 classes: No, Yes, unclear.*pos_label="):
        audit(None, answers, sensitive_features=groups, preset="ugesp")
    with pytest.raises(ValueError, match="One class of several is named by pos_label="):
        audit(None, answers, sensitive_features=groups).check(f"{RATIO} < 0.8")


def test_monitors_compare_a_label_with_the_rest():
    rng = generator()
    groups = people(rng, 3000)
    answers = answered(rng, groups)
    own = DisparityMonitor(levels=["man", "woman"], pos_label="Yes")
    plain = DisparityMonitor(levels=["man", "woman"])
    own.update(None, answers, sensitive_features=groups)
    plain.update(None, answers == "Yes", sensitive_features=groups)
    assert own.history_ == plain.history_


@pytest.mark.parametrize("preset", [None, "ugesp"])
def test_the_shell_reads_as_python_does(tmp_path, capsys, preset):
    rng = generator()
    groups = people(rng)
    outcomes = np.array(["Rejected", "Hired", "Withdrawn"])[rng.integers(0, 3, len(groups))]
    file, page = tmp_path / "a.csv", tmp_path / "u.html"
    pd.DataFrame({"Sex": groups, "Outcome": outcomes, "score": judged(rng, groups)}).to_csv(
        file, index=False
    )
    given = [str(file), "--sensitive", "Sex", "--prediction"]
    law = [] if preset is None else ["--preset", preset]
    asked = ["Outcome", "--pos-label", "Hired", "--out", str(page), *law]
    out, err, code = run_command(capsys, "audit", *given, *asked)
    assert code == 0, err
    first = out.splitlines()[0]
    assert first.endswith("read as 3 classes; positive: Hired, against Rejected, Withdrawn")
    assert "positive: Hired, against Rejected, Withdrawn" in page.read_text()
    rates = [
        round(100 * np.mean(outcomes[groups == own] == "Hired"), 1) for own in ("man", "woman")
    ]
    assert all(f"{rate:g}% (" in out for rate in rates)
    _, err, code = run_command(capsys, "audit", *given, "Outcome", "--pos-label", "hired", *law)
    assert code == 2
    assert "Did you mean 'Hired'" in err
    out, err, code = run_command(
        capsys, "audit", *given, "score", "--fail-if", "mean_score_difference > 9"
    )
    assert code == 0
    assert "read as numbers from 1 to 10" in out.splitlines()[0]
    _, err, code = run_command(capsys, "audit", *given, "score", "--fail-if", f"{DIFFERENCE} > 0.1")
    assert code == 2
    assert "read as numbers from 1 to 10" in err


def test_scores_of_a_judge_show_a_shift_without_a_warning():
    """A shift of two points among 400 people is five times its standard error, or more."""
    rng = generator()
    groups = people(rng)
    found = audit(None, judged(rng, groups), sensitive_features={"group": groups})
    assert found.gaps["is_beyond_chance"].any()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        audit(None, judged(rng, groups, 0), sensitive_features={"group": groups})


def test_an_unknown_level_in_another_spelling_is_named():
    rng = generator(31)
    sex = rng.choice(["f", "m", "Refused"], 300)
    decided = rng.integers(0, 2, 300)
    given = {"sensitive_features": {"sex": sex}, "n_simulations": 20}
    with pytest.warns(UserWarning, match="names 'refused'.* Pass unknown='Refused'"):
        audited(None, decided, unknown="refused", **given)
    found = audited(None, decided, unknown="Refused", **given)
    assert "Refused" not in set(found.gaps["first_group"]) | set(found.gaps["second_group"])


def test_a_large_limit_on_a_ratio_asks_whether_the_ratio_was_meant():
    decided, sex = np.arange(400) % 2, np.arange(400) // 2 % 2
    given = {"sensitive_features": sex, "comparison": "ratio"}
    with pytest.warns(LooseLimitWarning, match=r"pass min_ratio=0\.8"):
        metrics.disparity_test("demographic_parity", None, decided, max_disparity=0.8, **given)
    del given["comparison"]
    metrics.disparity_test("demographic_parity", None, decided, min_ratio=0.8, **given)


def test_a_condition_on_a_name_that_is_unknown_does_not_speak_of_signs():
    found = audited(
        None, np.arange(400) % 2, sensitive_features=np.arange(400) // 2 % 2, n_simulations=20
    )
    with pytest.raises(ValueError, match="disparate_impact") as error:
        found.check("disparate_impact < 0.8")
    assert "fails the models" not in str(error.value)
