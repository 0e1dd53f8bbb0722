"""Thresholds from scores that another system has computed, in memory or in an engine."""

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone

from skfair import Cohort
from skfair.classification import FairDecisionClassifier
from skfair.groups import engine_scores, engine_tables
from skfair.metrics import demographic_parity_difference, equalized_odds_difference
from tests.seeds import generator

N = 6000
NAMES = {"y_true": "repaid", "y_score": "chance", "sensitive_features": ["sex"]}


def scored(digits=3):
    rng = generator(digits)
    sex = rng.choice(["f", "m", "x"], N, p=[0.4, 0.4, 0.2])
    chance = 1 / (1 + np.exp(-rng.normal(size=N) - 0.7 * (sex == "m")))
    repaid = np.where(rng.random(N) < chance, "yes", "no")
    columns = {"sex": sex, "chance": chance.round(digits), "repaid": repaid}
    return pd.DataFrame(columns | {"weight": rng.choice([0.5, 1.0, 2.0], N)})


def in_duckdb(table):
    connection = duckdb.connect()
    connection.register("scored", table)
    return connection.table("scored")


ENGINES = {"polars": lambda table: pl.from_pandas(table).lazy(), "duckdb": in_duckdb}
METRICS = {
    "demographic_parity": demographic_parity_difference,
    "equalized_odds": equalized_odds_difference,
}


@pytest.mark.parametrize("engine", ENGINES.values(), ids=ENGINES)
@pytest.mark.parametrize("constraint", METRICS)
@pytest.mark.parametrize("weight", [None, "weight"])
def test_thresholds_of_a_table_are_those_of_the_rows(engine, constraint, weight):
    table = scored()
    names = NAMES | ({} if weight is None else {"sample_weight": weight})
    rows = Cohort(**{name: table[own] for name, own in names.items()}, pos_label="yes")
    counted = Cohort.from_table(engine(table), **names, pos_label="yes")
    options = {"constraint": constraint, "max_disparity": 0.02}
    models = [FairDecisionClassifier.from_scores(one, **options) for one in (rows, counted)]
    groups = {"sensitive_features": table[["sex"]]}
    predicted = [model.predict(table[["chance"]], **groups) for model in models]
    assert np.array_equal(*predicted)
    tables = [model.to_thresholds() for model in models]
    pd.testing.assert_frame_equal(*tables)
    metric = METRICS[constraint](
        table["repaid"],
        predicted[1],
        sensitive_features=table["sex"],
        sample_weight=None if weight is None else table[weight],
        pos_label="yes",
    )
    assert metric == pytest.approx(models[1].train_disparity_, abs=1e-9)
    assert metric <= 0.02 + 1e-9


def test_bins_of_scores_keep_the_limit_to_their_resolution(monkeypatch):
    monkeypatch.setattr(engine_scores, "N_BINS", 400)
    monkeypatch.setattr(engine_tables, "MOST_KINDS", 2000)
    table = scored(12)
    people = Cohort.from_table(in_duckdb(table), **NAMES, pos_label="yes")
    exact = people._kinds.resolution(pd.factorize(people.sensitive_features["sex"])[0])
    assert 0 < exact < 0.02
    model = FairDecisionClassifier.from_scores(people, max_disparity=0.03)
    decided = model.predict(table[["chance"]], sensitive_features=table[["sex"]])
    gap = demographic_parity_difference(
        None, decided, sensitive_features=table["sex"], pos_label="yes"
    )
    assert gap <= 0.03 + 2 * exact


def test_either_class_is_positive_and_the_model_can_be_cloned():
    table = scored()
    for positive in ("yes", "no"):
        chance = table["chance"] if positive == "yes" else 1 - table["chance"]
        people = Cohort(
            table["repaid"], y_score=chance, sensitive_features=table[["sex"]], pos_label=positive
        )
        model = FairDecisionClassifier.from_scores(people, max_disparity=0.02)
        X, groups = pd.DataFrame({"chance": chance}), {"sensitive_features": table[["sex"]]}
        decided = model.predict(X, **groups) == positive
        assert chance[decided].mean() > chance[~decided].mean()
        again = clone(model).fit(X, table["repaid"], **groups)
        assert np.array_equal(again.predict(X, **groups) == positive, decided)


def test_what_cannot_be_decided_is_refused():
    table = scored()
    rows = {name: table[own] for name, own in NAMES.items()}
    with pytest.raises(ValueError, match="probabilities of the positive class, from 0 to 1"):
        FairDecisionClassifier.from_scores(Cohort(**rows | {"y_score": 10 * table["chance"]}))
    del rows["y_true"]
    with pytest.raises(ValueError, match="the cohort lacks one of them"):
        FairDecisionClassifier.from_scores(Cohort(**rows))
    with pytest.raises(ValueError, match="Leave group_aware=False out"):
        FairDecisionClassifier.from_scores(Cohort(**rows), group_aware=False)
    people = Cohort.from_table(in_duckdb(table), **NAMES, pos_label="yes")
    for options in ({"certificate": 0.95}, {"cv": 5}):
        with pytest.raises(TypeError, match="divide single rows"):
            FairDecisionClassifier.from_scores(people, **options)
    with pytest.raises(TypeError, match="takes no estimator="):
        FairDecisionClassifier.from_scores(people, estimator=None)
    three = Cohort(
        np.resize(["a", "b", "c"], N), y_score=table["chance"], sensitive_features=table[["sex"]]
    )
    with pytest.raises(ValueError, match="decides between two classes"):
        FairDecisionClassifier.from_scores(three)
