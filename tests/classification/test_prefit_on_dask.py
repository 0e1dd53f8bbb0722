"""Decisions of a fitted model on Dask collections: the same as in memory."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from sklearn.compose import make_column_transformer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from skfair.classification import FairDecisionClassifier
from tests.seeds import generator

pytestmark = pytest.mark.filterwarnings("ignore::skfair.exceptions.PositiveClassWarning")

dd = pytest.importorskip("dask.dataframe")

COLUMNS = ["a", "b", "town"]


def people(n=3000, seed=0):
    rng = generator(seed)
    sex = rng.choice(["f", "m", "x"], n, p=[0.35, 0.45, 0.2])
    a = rng.normal(size=n) + 0.8 * (sex == "m")
    b = rng.normal(size=n)
    town = rng.choice(["north", "south"], n)
    y = a + b + (town == "north") + rng.normal(size=n) > 1
    frame = {"a": a, "b": b, "town": town, "sex": sex, "y": np.where(y, "yes", "no")}
    return pd.DataFrame(frame | {"w": rng.choice([0.5, 1.0, 2.0], n)})


@pytest.fixture(scope="module")
def frozen():
    frame = people(500, seed=1)
    columns = make_column_transformer((OneHotEncoder(), ["town"]), remainder="passthrough")
    model = make_pipeline(columns, LogisticRegression()).fit(frame[COLUMNS], frame.y)
    model[-1].intercept_ -= 1.6  # so few are above 0 that every constraint has something to do
    return FrozenEstimator(model)


@pytest.mark.parametrize("settings", [{}, {"selection_rate": 0.3}, {"max_disparity": 0.0}])
def test_decisions_are_those_of_memory(settings, frozen):
    frame = people()
    lazy = dd.from_pandas(frame, npartitions=5)
    here, there = (
        FairDecisionClassifier(frozen, "equalized_odds", group_aware=True, **settings).fit(
            of[COLUMNS], of.y, sensitive_features=of.sex
        )
        for of in (frame, lazy)
    )
    assert here.summary_ == there.summary_
    assert_array_equal(here.train_predictions_, there.train_predictions_)
    predicted = there.predict(lazy[COLUMNS], sensitive_features=lazy.sex)
    assert_array_equal(here.predict(frame[COLUMNS], sensitive_features=frame.sex), predicted)
    scores = [here.score(of[COLUMNS], of.y, sensitive_features=of.sex) for of in (frame, lazy)]
    assert scores[0] == pytest.approx(scores[1])
