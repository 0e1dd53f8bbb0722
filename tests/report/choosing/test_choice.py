"""The page on which a committee chooses a limit shows what the models decide."""

import html
import json
import os
import re
import shutil
from functools import partial

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline

import skfair
from skfair import Certificate, Sensitive, metrics
from skfair.classification import (
    ConstrainedERMClassifier,
    FairDecisionClassifier,
)
from skfair.constraints import DemographicParity
from skfair.model_selection import FairnessPath, fairness_path
from skfair.report import audit
from tests.report.results.test_pages import Page
from tests.seeds import generator

LIMITS = [0.3, 0.1, 0.05]
WORDS = {"title": "Which limit?", "decided": "selected"}
MEMO = {"kind", "version", "skfair", "constraint", "metric", "command"}


class Cut(ClassifierMixin, BaseEstimator):
    """Selects above a threshold that falls with the limit for the first group; fits nothing."""

    def __init__(
        self,
        max_disparity=0.1,
        constraint="demographic_parity",
        sensitive=None,
        selection_rate=None,
        certificate=None,
        objective="accuracy",
    ):
        self.max_disparity = max_disparity
        self.constraint = constraint
        self.sensitive = sensitive
        self.selection_rate = selection_rate
        self.certificate = certificate
        self.objective = objective
        self.classes_ = np.array([0, 1])

    def fit(self, X, y):
        return self

    def predict(self, X):
        worst = self.max_disparity
        worst = max(worst.values()) if isinstance(worst, dict) else worst
        return (X[:, 0] > 0.5 - (0.4 - worst) * X[:, 1]).astype(int)


def path_of(model=Cut, limits=LIMITS, **state):
    models = [model(max_disparity=limit) for limit in limits]
    for one in models:
        vars(one).update(state)
    nothing = np.zeros(len(limits))
    return FairnessPath(np.array(limits), models, nothing, nothing)


@pytest.fixture(scope="module")
def rows():
    rng = generator(0)
    women = rng.integers(0, 2, 900)
    score = rng.random(900)
    y = (rng.random(900) < score).astype(int)
    sex = pd.Series(np.array(["men", "women"])[women], name="sex")
    return {"X": np.column_stack([score, women]), "y": y, "sensitive_features": sex}


def data_of(text):
    """Return the numbers that the page holds."""
    (plain,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', text)
    return json.loads(plain)


def test_values_are_those_of_the_decisions_of_the_models(rows):
    path, X, y, sex = path_of(), *rows.values()
    before = (X[:, 0] > 0.6).astype(int)
    for first in (before, None):
        steps = data_of(path.to_html(**rows, before=first))["steps"]
        decisions = [model.predict(X) for model in path.estimators]
        decisions = decisions if first is None else [before, *decisions]
        assert len(steps) == len(decisions)
        for step, p in zip(steps, decisions, strict=True):
            numbers = step["numbers"]
            assert numbers["n"] == 900
            assert numbers["accuracy"][0] == pytest.approx(np.mean(p == y), abs=1e-6)
            found = numbers["attributes"]["sex"]
            gap = metrics.demographic_parity_difference(y, p, sensitive_features=sex)
            shown = found["disparities"]["demographic_parity_difference"]
            assert shown["value"] == pytest.approx(gap, abs=1e-6)
            assert shown["low"] <= shown["value"] <= shown["high"]
            for group, own in found["groups"].items():
                is_in = (sex == group).to_numpy()
                value, low, high = own["rate"]
                assert value == pytest.approx(p[is_in].mean(), abs=1e-6)
                assert low < value < high
                then = decisions[0][is_in]
                assert own["rate_before"][0] == pytest.approx(then.mean(), abs=1e-6)
                n = is_in.sum()
                assert own["n"] == n
                assert own["share"] == pytest.approx(n / 900, abs=1e-6)
                assert own["newly"] * n == pytest.approx((p[is_in] > then).sum(), abs=1e-3)
                assert own["no_longer"] * n == pytest.approx((p[is_in] < then).sum(), abs=1e-3)
                for name, true, chosen in (
                    *(("rightly_selected", 1, 1), ("wrongly_selected", 0, 1)),
                    *(("wrongly_not", 1, 0), ("rightly_not", 0, 0)),
                ):
                    share = ((y == true) & (p == chosen))[is_in].mean()
                    assert own[name] == pytest.approx(share, abs=1e-5)


def test_no_limit_is_first_and_today_is_a_model_or_decisions(rows):
    today = LogisticRegression().fit(rows["X"], rows["y"])
    texts = [path_of().to_html(**rows, before=own) for own in (today, today.predict(rows["X"]))]
    assert texts[0] == texts[1]
    first, second, *_ = data_of(texts[0])["steps"]
    assert (first["label"], first["limits"], first["status"]) == ("none", None, "no limit")
    assert second["limits"] == {"": 0.3}
    assert "These are the decisions of today." in texts[0]
    assert "today" not in re.sub(r"<script>.*", "", path_of().to_html(**rows), flags=re.S)


class Words(Cut):
    """Decides in words, of which "fit" is the positive one."""

    def __init__(self, max_disparity=0.1, constraint="demographic_parity"):
        super().__init__(max_disparity, constraint)
        self.classes_, self.pos_label_ = np.array(["fit", "unfit"]), "fit"

    def predict(self, X):
        return np.where(super().predict(X) == 1, "fit", "unfit")


def test_labels_may_be_words_and_models_pipelines(rows):
    plain = data_of(path_of().to_html(**rows))
    words = {**rows, "y": np.where(rows["y"] == 1, "fit", "unfit")}
    assert [step["numbers"] for step in data_of(path_of(Words).to_html(**words))["steps"]] == [
        step["numbers"] for step in plain["steps"]
    ]
    path = path_of()
    path.estimators[:] = [Pipeline([("last", model)]) for model in path.estimators]
    assert data_of(path.to_html(**rows)) == plain


@pytest.mark.parametrize("kind", ["array", "two columns", "one group"])
def test_groups_may_have_no_name_or_be_alone(rows, kind):
    sex = rows["sensitive_features"].to_numpy()
    groups = {"array": sex, "one group": np.full(900, "all")}
    groups["two columns"] = np.column_stack([sex, np.arange(900) % 2])
    path = path_of(partial(Cut, sensitive=Sensitive(intersectional=False)))
    page = Page(path.to_html(**{**rows, "sensitive_features": groups[kind]}))
    labels = [given["aria-label"] for _, given in page.tags if given.get("role") == "region"]
    assert len(set(labels)) == len(labels)
    assert "sensitive" not in page.text.partition("{")[0]
    assert ("Difference by " in page.text) == (kind != "one group")


@pytest.mark.parametrize("constraint", ["demographic_parity", "equalized_odds"])
def test_one_group_is_no_comparison(rows, constraint):
    """The page of rows of men only measures no difference, so no limit is said to be kept."""
    choice = path_of(partial(Cut, constraint=constraint))._choice(
        rows | {"sensitive_features": pd.Series(["m"] * 900, name="sex")}
    )
    for step in choice.steps:
        for gap in step["numbers"]["attributes"]["sex"]["disparities"].values():
            assert (gap["value"], gap["is_kept"]) == (None, None)
            assert "no two of them have people to compare" in gap["not_compared"]
    text = choice.to_html(**WORDS)
    assert "the limit is kept for sex:" not in text
    assert "not known whether the limit is kept for sex" in text


def test_who_moves_is_said_of_a_thousand_people(rows):
    text = path_of().to_html(**rows, before=np.zeros(900, int), decided="granted a loan")
    p, sex = path_of().estimators[0].predict(rows["X"]), rows["sensitive_features"]
    men, women = (round(1000 * p[sex == group].sum() / 900) for group in ("men", "women"))
    assert f"{men} more men and {women} more women are granted a loan than today." in text
    assert f"In all, {p.mean():.0%} are granted a loan, instead of 0%." in text
    text = path_of().to_html(**rows, before=np.ones(900, int))
    assert f"{round(1000 * (1 - p)[sex == 'men'].sum() / 900)} fewer men" in text


def test_a_limit_on_ratios_is_the_distance_from_1(rows):
    model = partial(Cut, constraint=DemographicParity(comparison="ratio"))
    data = data_of(path_of(model).to_html(**rows))
    assert (data["memo"]["constraint"], data["memo"]["metric"]) == (
        "demographic_parity",
        "demographic_parity_ratio",
    )
    p = path_of().estimators[-1].predict(rows["X"])
    ratio = metrics.demographic_parity_ratio(
        rows["y"], p, sensitive_features=rows["sensitive_features"]
    )
    (gap,) = data["steps"][-1]["numbers"]["attributes"]["sex"]["disparities"].values()
    assert gap["value"] == pytest.approx(1 - ratio, abs=1e-6)
    assert gap["low"] <= gap["value"] <= gap["high"]
    assert gap["is_kept"] == (1 - ratio <= LIMITS[-1])
    judged = audit(rows["y"], p, sensitive_features=rows["sensitive_features"], n_simulations=50)
    for step in data["steps"]:
        read = judged.check({**data["memo"], **step})
        (limit,) = step["limits"].values()
        assert read[1:] == judged.check(f"demographic_parity_ratio < {1 - limit}")[1:]


def test_limits_are_compared_with_the_attributes_that_they_limit(rows):
    groups = pd.DataFrame({"sex": rows["sensitive_features"], "age": np.arange(900) % 3})
    rows = {**rows, "sensitive_features": groups}
    each = partial(Cut, sensitive=Sensitive(intersectional=False))

    def limits(path, chosen):
        step = data_of(path.to_html(**rows))["steps"][-1]
        assert step["limits"] == chosen
        own = step["numbers"]["attributes"]
        return {view: next(iter(v["disparities"].values()))["limit"] for view, v in own.items()}

    assert limits(path_of(each), {"": 0.05}) == {"sex": 0.05, "age": 0.05}
    assert limits(path_of(), {"": 0.05}) == {"sex": None, "age": None, "sex x age": 0.05}
    fitted = fairness_path(
        ConstrainedERMClassifier(), rows["X"], rows["y"], max_disparities=[0.2],
        sensitive_features=groups["sex"],
    )  # fmt: skip
    assert limits(fitted, {"sex": 0.2}) == {"sex": 0.2, "age": None}
    nameless = fairness_path(
        ConstrainedERMClassifier(), rows["X"], rows["y"], max_disparities=[0.2],
        sensitive_features=groups["sex"].to_numpy(),
    )  # fmt: skip
    alone = {**rows, "sensitive_features": groups["sex"]}
    (step,) = data_of(nameless.to_html(**alone))["steps"]
    assert step["limits"] == {"": 0.2}
    assert "the limit 20%" in nameless.to_html(**alone)
    of_each = path_of(each, [2.0])
    of_each.estimators[0].max_disparity = {"sex": 0.2, "age": 0.1}
    of_each = FairnessPath(*list(vars(of_each).values())[:4], limits={"sex": 0.1, "age": 0.05})
    chosen = {"sex": 0.2, "age": 0.1}
    assert limits(of_each, chosen) == chosen
    assert "20% by sex, 10% by age" in of_each.to_html(**rows)


def test_small_groups_are_hidden_as_in_audits(rows):
    sex = rows["sensitive_features"].to_numpy(object)
    sex[:7], sex[7:25] = "few", "some"
    rows = {**rows, "sensitive_features": pd.Series(sex, name="sex")}
    rows["y"] = np.where((sex == "some") & (np.arange(900) > 10), 0, rows["y"])
    text = path_of().to_html(**rows)
    for step in data_of(text)["steps"]:
        assert step["numbers"]["n"] == 893
        groups = step["numbers"]["attributes"]["sex"]["groups"]
        assert list(groups) == ["men", "some", "women"]
        # Of 18 people a handful are truly positive: nothing joins decisions and outcomes.
        assert groups["some"]["rightly_selected"] is groups["some"]["accuracy"][0] is None
        assert groups["some"]["rate"][0] is not None
    assert "few (sex)" in text
    assert (
        "few"
        in data_of(path_of().to_html(**rows, suppress_below=1))["steps"][0]["numbers"][
            "attributes"
        ]["sex"]["groups"]
    )


def of_class(n_few):
    """Rows of four groups, of which "few" has so many people that are truly positive.

    Another group is hidden with it, or the sums over all groups would give it away. Both classes
    of each group have scores that are spread evenly.
    """
    sex = np.repeat(["few", "divers", "men", "women"], [200, 200, 300, 300])
    y = np.where(np.arange(1000) < 200, np.arange(1000) < n_few, np.arange(1000) // 50 % 2)
    evenly = np.arange(1000) * (np.sqrt(5) - 1) / 2 % 1
    X = np.column_stack([evenly, sex == "few"])  # Cut selects more of the group
    return {"X": X, "y": y.astype(int), "sensitive_features": pd.Series(sex, name="sex")}


def test_a_limit_is_not_called_kept_for_groups_that_cannot_be_compared():
    """One rule for the page, the memo, checks and the table; an excess that is seen stays one."""
    metric = "equal_opportunity_difference"
    model = partial(Cut, constraint="equal_opportunity")
    for n_few in (0, 3, 20):
        rows = of_class(n_few)
        choice = path_of(model, [0.4, 0.05])._choice(rows)
        text = html.unescape(re.sub(r"\s+", " ", choice.to_html(**WORDS)))
        outcomes = []
        for step, kept in zip(choice.steps, choice.table()["kept"], strict=True):
            (gap,) = step["numbers"]["attributes"]["sex"]["disparities"].values()
            p = model(gap["limit"]).predict(rows["X"])
            gaps = {"sensitive_features": rows["sensitive_features"], "metrics": [metric]}
            found = audit(rows["y"], p, **gaps, n_simulations=50)
            check = found.check({**choice.head, **step})
            assert found.value(metric) == pytest.approx(gap["value"], abs=1e-6)
            is_within = gap["value"] <= gap["limit"]
            if n_few < 10:
                assert re.fullmatch(r".*few.* \(too few people count in .*\)", gap["not_compared"])
                assert gap["is_kept"] is (None if is_within else False)
                assert check.outcome in ("inconclusive", "fail")
                assert gap["not_compared"].replace("(", "(sex: ") in check.undefined
                assert f"Not compared: {gap['not_compared']}" in text
                assert f"sex: {gap['not_compared']}" in choice.not_compared()
            else:
                assert gap["not_compared"] == ""
                assert gap["is_kept"] == is_within
                assert "Not compared" not in text
            assert kept == {True: "yes", False: "no", None: "open"}[gap["is_kept"]]
            outcomes.append(gap["is_kept"])
        assert ("On these rows the limit is kept" in text) == (True in outcomes)
        assert ("not known whether the limit is kept" in text) == (None in outcomes)
    assert outcomes[0] is True


@pytest.mark.parametrize("n_few", [5, 20])
def test_groups_that_are_too_small_are_named_by_page_and_memo(n_few):
    """With 5 people a group is hidden, with 20 it is shown and not compared."""
    rng = generator(0)
    sex = np.repeat(["few", "men", "women"], [n_few, 300, 300])
    X = np.column_stack([rng.random(sex.size), sex == "few"])
    rows = {"X": X, "y": rng.integers(0, 2, sex.size)}
    rows["sensitive_features"] = pd.Series(sex, name="sex")
    choice = path_of(limits=[0.4])._choice(rows)
    (gap,) = choice.steps[0]["numbers"]["attributes"]["sex"]["disparities"].values()
    assert gap["value"] <= 0.4
    assert (gap["is_kept"], gap["not_compared"]) == (None, "few (too few people)")
    text = choice.to_html(**WORDS)
    assert "the limit is kept for sex:" not in text
    assert "Not compared: few (too few people)" in text
    assert choice.table()["kept"].tolist() == ["open"]


def test_a_page_says_why_no_difference_is_measured():
    sex = np.repeat(["few", "many"], [20, 600])
    X, y = np.column_stack([np.arange(620) / 620, sex == "few"]), np.arange(620) % 2
    groups = pd.Series(sex, name="sex")
    choice = path_of(limits=[0.4])._choice({"X": X, "y": y, "sensitive_features": groups})
    (gap,) = choice.steps[0]["numbers"]["attributes"]["sex"]["disparities"].values()
    assert (gap["value"], gap["is_kept"]) == (None, None)
    assert "not known whether the limit is kept for sex" in choice.to_html(**WORDS)
    assert "Not compared: few (too few people)" in choice.to_html(**WORDS)


def fitted_path(groups, intersectional=False, limit=None):
    rng = generator(0)
    X, y = rng.normal(size=(400, 2)), rng.integers(0, 2, 400)
    model = FairDecisionClassifier(
        LogisticRegression(),
        max_disparity=limit or 0.1,
        sensitive=Sensitive(intersectional=intersectional),
        random_state=0,
        cv=2,
    )
    path = fairness_path(model, X, y, max_disparities=[1.0], sensitive_features=groups)
    return path, {"X": X, "y": y}


@pytest.mark.parametrize("crossed", [False, True])
def test_limits_are_matched_by_name_or_refused(crossed):
    rng = generator(0)
    groups = pd.DataFrame({"sex": rng.choice(["f", "m"], 400), "race": rng.choice(["A", "B"], 400)})
    limit = None if crossed else {"sex": 0.2, "race": 0.04}
    path, rows = fitted_path(groups, crossed, limit)
    renamed = groups.rename(columns={"sex": "gender", "race": "ethnicity"})
    for other in (groups.to_numpy(), renamed, groups[["sex"]], groups["sex"].to_numpy()):
        with pytest.raises(ValueError, match=r"limit 'sex', 'race', but.*matched by name"):
            path.to_html(**rows, sensitive_features=other)
    limits = [
        {view: gap["limit"] for view, own in step["numbers"]["attributes"].items()
         for gap in own["disparities"].values()}
        for given in (groups, groups[["race", "sex"]])
        for step in data_of(path.to_html(**rows, sensitive_features=given))["steps"]
    ]  # fmt: skip
    if not crossed:
        assert limits == [{"sex": 0.2, "race": 0.04}] * 2
        return
    assert limits[0] == {"sex": None, "race": None, "sex x race": 1.0}
    more = groups.assign(age=rng.choice(["old", "young"], 400))
    with pytest.raises(ValueError, match="limit the intersections of 'sex', 'race'"):
        path.to_html(**rows, sensitive_features=more)


def test_one_attribute_needs_no_name_but_no_other_one():
    sex = generator(0).choice(["f", "m"], 400)
    named, nameless = pd.Series(sex, name="sex"), sex
    for at_fit, on_page in ((named, nameless), (nameless, named), (nameless, nameless)):
        path, rows = fitted_path(at_fit)
        (step,) = data_of(path.to_html(**rows, sensitive_features=on_page))["steps"]
        assert step["limits"] == {"": 1.0}
    path, rows = fitted_path(named)
    with pytest.raises(ValueError, match="limit 'sex', but sensitive_features has 'gender'"):
        path.to_html(**rows, sensitive_features=named.rename("gender"))


def test_text_of_the_data_is_harmless(rows):
    name = "</script><b onclick=x>w"
    sex = rows["sensitive_features"].replace("women", name).rename("<i>&sex")
    text = path_of().to_html(
        **{**rows, "sensitive_features": sex}, decided="<u>in", title="</title><s>"
    )
    assert not re.search(r"<(b|i|u|s)[ >]|</title><", text)
    page = Page(text)
    assert page.open == []
    assert [given for tag, given in page.tags if tag == "script"] == [
        {"type": "application/json", "id": "data"},
        {},
    ]
    assert name in data_of(text)["steps"][0]["numbers"]["attributes"]["<i>&sex"]["groups"]


def test_the_page_is_sound_and_says_all_without_scripts(rows, tmp_path):
    file = tmp_path / "choice.html"
    text = path_of().to_html(file, **rows, before=np.ones(900, int), rate_held=path_of(HELD))
    assert file.read_text(encoding="utf-8") == text
    assert len(text) < 400_000
    page = Page(text)
    assert page.open == []
    assert len(set(page.ids)) == len(page.ids)
    assert not page.unlabelled
    assert page.headings.count(1) == 1
    assert all(b - a <= 1 for a, b in zip(page.headings, page.headings[1:], strict=False))
    assert not re.search(r"https?:|//\w+\.|@import|url\(", text)
    labels = {given.get("for") for tag, given in page.tags if tag == "label"}
    assert {"step", "reasons", "names", "date"} <= labels
    (slider,) = [given for _, given in page.tags if given.get("type") == "range"]
    assert (slider["min"], slider["value"], slider["max"]) == ("0", "2", "3")  # opens on 10%
    hidden = {given["id"] for _, given in page.tags if "hidden" in given and "id" in given}
    assert hidden == {"pick", "dots", "decide", "memo"}  # what only a script can work
    panels = [given["aria-label"] for tag, given in page.tags if tag == "article"]
    assert panels[:4] == ["none", "30%", "10%", "5%"]
    assert panels[4:] == [f"{limit}, overall rate held" for limit in ("30%", "10%", "5%")]


HELD = partial(Cut, selection_rate="as before")


def test_two_paths_hold_the_overall_rate_or_not(rows):
    data = data_of(path_of().to_html(**rows, rate_held=path_of(HELD)))
    assert [step["holds_overall_rate"] for step in data["steps"]] == [False] * 3 + [True] * 3
    assert data["n_limits"] == 3
    assert [step["holds_overall_rate"] for step in data_of(path_of(HELD).to_html(**rows))["steps"]]
    with pytest.raises(ValueError, match="Fit both paths with the same max_disparities"):
        path_of().to_html(**rows, rate_held=path_of(HELD, [0.3, 0.1]))


@pytest.mark.parametrize(
    ("state", "sentence"),
    [
        ({"status_": "certified", "certificate": 0.9}, "certified: with a confidence of 90% it"),
        ({"status_": "certified", "certificate": Certificate(0.8)}, "with a confidence of 80% it"),
        ({"status_": "no_solution", "certificate": 0.9}, "The limit is not certified"),
        ({"status_": "infeasible"}, "did not reach the limit on its training rows"),
        ({"status_": "converged"}, "It is not certified for other people"),
        ({"is_group_aware_": True}, "Decisions use the group of each person"),
        ({"sensitive": Sensitive(keep=True)}, "Decisions use the group of each person"),
        ({"is_group_aware_": False}, "Decisions do not use the group of a person"),
    ],
)
def test_what_is_known_of_a_limit_is_said(rows, state, sentence):
    path = path_of(certified_disparity_=0.042, **state)
    text = path.to_html(**rows)
    assert sentence in text
    step = data_of(text)["steps"][-1]
    asked = state.get("certificate")
    assert step["confidence"] == getattr(asked, "confidence", asked)
    assert step["status"] == state.get("status_", "fitted")
    assert step["numbers"]["certified"] == 0.042
    assert ("could be shown is 4.2%" in text) == (step["status"] == "certified")


def test_costs_are_in_the_unit_of_the_objective(rows):
    costs = [[0, 5.0], [1.0, 0]]
    step = data_of(path_of(partial(Cut, objective=costs)).to_html(**rows))["steps"][1]
    y, p = rows["y"], path_of().estimators[1].predict(rows["X"])
    cost = np.mean(5 * ((y == 0) & (p == 1)) + ((y == 1) & (p == 0)))
    assert step["numbers"]["cost"] == pytest.approx(cost, abs=1e-5)
    turned = path_of(partial(Cut, objective=costs), pos_label_=0)
    step = data_of(turned.to_html(**rows))["steps"][1]
    assert step["numbers"]["cost"] == pytest.approx(cost, abs=1e-5)
    assert step["numbers"]["rate"][0] == pytest.approx(np.mean(p == 0), abs=1e-6)
    assert data_of(path_of().to_html(**rows))["steps"][1]["numbers"]["cost"] is None


def test_weights_units_and_the_confidence_count(rows):
    def overall(**options):
        return data_of(path_of().to_html(**rows, **options))["steps"][0]["numbers"]["rate"]

    weights = np.where(rows["X"][:, 0] > 0.5, 3.0, 1.0)
    p = path_of().estimators[0].predict(rows["X"])
    assert overall(sample_weight=weights)[0] == pytest.approx(np.average(p, weights=weights), 1e-5)
    value, low, high = overall()
    _, wide_low, wide_high = overall(units=p * 100 + np.arange(900) % 30)
    assert wide_high - wide_low > high - low
    _, narrow_low, narrow_high = overall(confidence=0.5)
    assert low < narrow_low < value < narrow_high < high


def test_the_fingerprint_is_that_of_rows_and_decisions(rows):
    def fingerprint(path=None, **changes):
        text = (path or path_of()).to_html(**{**rows, **changes})
        every = [step["fingerprint"] for step in data_of(text)["steps"]]
        assert len(set(every)) == len(every)
        (of_all,) = re.findall(r'class="hash">([0-9a-f]{64})<', text)
        return of_all

    first = fingerprint()
    assert re.fullmatch("[0-9a-f]{64}", first)
    assert fingerprint() == first
    assert fingerprint(title="Another title") == first
    other = [
        fingerprint(y=1 - rows["y"]),
        fingerprint(X=np.column_stack([rows["X"], np.arange(900)])),
        fingerprint(sensitive_features=rows["sensitive_features"].replace("men", "x")),
        fingerprint(path_of(limits=[0.3, 0.1, 0.02])),
    ]
    assert len({first, *other}) == 5


def test_group_aware_models_get_the_groups(rows):
    path = fairness_path(
        FairDecisionClassifier(LogisticRegression(), group_aware=True, random_state=0),
        rows["X"], rows["y"], max_disparities=[0.2, 0.1],
        sensitive_features=rows["sensitive_features"],
    )  # fmt: skip
    other = {name: values[::-1][:800] for name, values in rows.items()}
    given = {"sensitive_features": other["sensitive_features"]}
    for shown, p in (  # out-of-fold decisions on the rows of the fit
        (rows, path.estimators[-1].train_predictions_),
        (other, path.estimators[-1].predict(other["X"], **given)),
    ):
        step = data_of(path.to_html(**shown))["steps"][-1]
        assert step["group_aware"]
        assert step["numbers"]["rate"][0] == pytest.approx(p.mean(), abs=1e-6)


def test_the_stages_of_the_fit_are_told_apart():
    """The objective undoes class weights, and the page does not blame the limit for it."""
    rng = generator(0)
    sex = rng.choice(["f", "m"], 900)
    X = rng.normal(size=(900, 2))
    y = (X[:, 0] + 2 * rng.logistic(size=900) > 3).astype(int)
    model = FairDecisionClassifier(LogisticRegression(class_weight="balanced"), random_state=0)
    path = fairness_path(model, X, y, sensitive_features=sex, max_disparities=[0.3, 0.1])
    text = path.to_html(X=X, y=y, sensitive_features=sex)
    for step, own in zip(data_of(text)["steps"], path.estimators, strict=True):
        change = own.changes_["selection rate"]
        assert step["training_rates"] == [change.before, change.without_limits, change.after]
        said = f"the model by itself made {change.before:.1%} selected, the best decisions"
        assert f"{said} without a limit {change.without_limits:.1%}" in re.sub(r"\s+", " ", text)


@pytest.fixture
def browser(monkeypatch):
    play = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    program = shutil.which(os.environ.get("CHROMIUM", "chromium"))
    if program is None:
        pytest.skip("there is no Chromium")
    with play.sync_playwright() as browsers:
        browser = browsers.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield browser
        browser.close()


def test_in_a_browser_the_keyboard_chooses_a_limit_and_the_memo_is_json(rows, tmp_path, browser):
    file, said = tmp_path / "choice.html", []
    today = (rows["X"][:, 0] > 0.6).astype(int)
    text = path_of().to_html(file, **rows, before=today, rate_held=path_of(HELD))
    page = browser.new_page(viewport={"width": 390, "height": 800})
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda asked: said.append(asked.url))
    page.goto(file.as_uri())
    head = page.locator("article.step:visible h2")
    assert head.all_inner_texts() == ["Limit 10%"]
    dot = page.locator("#dots tr[data-group=women] .to")
    places = [dot.evaluate("e => e.style.transform")]
    page.focus("#step")
    for _ in range(2):
        page.keyboard.press("ArrowLeft")
        places.append(dot.evaluate("e => e.style.transform"))
    assert len(set(places)) == 3
    assert head.all_inner_texts() == ["No limit"]
    for _ in range(2):
        page.keyboard.press("ArrowRight")
    assert head.all_inner_texts() == ["Limit 10%"]
    page.select_option("#other", label="5%")
    assert page.locator("article.step:visible").count() == 2
    page.check("#held")
    assert head.all_inner_texts() == ["Limit 10%, overall rate held", "Limit 5%"]
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    page.fill("#reasons", 'More women, "as we wish" </b>')
    page.fill("#names", "Ada & Byron")
    page.fill("#date", "2026-12-01")
    page.click("#decide button")
    with page.expect_download() as download:
        page.click("#download")
    memo = json.loads(download.value.path().read_text(encoding="utf-8"))
    assert download.value.suggested_filename == "decision-2026-12-01.json"
    data = data_of(text)
    step = data["steps"][data["n_limits"] + 2]
    assert memo.keys() - MEMO == {
        *("date", "limits", "holds_overall_rate", "group_aware", "status", "confidence"),
        *("reasons", "names", "numbers", "fingerprint", "checksum", "held_rate"),
        "training_rates",
    }
    assert {name: memo[name] for name in MEMO} == data["memo"]
    assert (memo["kind"], memo["version"]) == ("skfair decision", 1)
    assert memo["skfair"] == skfair.__version__
    assert memo["limits"] == {"": 0.1}
    assert memo["holds_overall_rate"] is True
    assert memo["numbers"] == step["numbers"]
    assert memo["date"] == "2026-12-01"
    assert (memo["reasons"], memo["names"]) == ('More women, "as we wish" </b>', "Ada & Byron")
    assert memo["reasons"] in page.inner_text("#memo")
    p, sex = path_of().estimators[1].predict(rows["X"]), rows["sensitive_features"]
    judged = audit(rows["y"], p, sensitive_features=sex, n_simulations=50)
    asked = judged.check("demographic_parity_difference > 0.1")
    assert judged.check(download.value.path().rename(tmp_path / "memo.json"))[1:] == asked[1:]
    page.evaluate("document.getElementById('step').value = 0")
    page.dispatch_event("#step", "input")
    page.click("#decide button")
    memo = json.loads(page.text_content("#json"))
    assert memo["limits"] is None
    assert memo["holds_overall_rate"] is False
    assert [text for text in said if not text.startswith(("file:", "blob:"))] == []


@pytest.mark.parametrize("name", ["title", "decided"])
def test_words_that_are_empty_are_refused(rows, name):
    with pytest.raises(ValueError, match=f"{name}=' ' is empty. Pass words"):
        path_of().to_html(**rows, **{name: " "})
