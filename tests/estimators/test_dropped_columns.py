"""Models that miss the sensitive column, or get columns of text."""

import numpy as np
import pandas as pd
import pytest
from sklearn.cluster import KMeans
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from skfair import Sensitive
from skfair.classification import (
    ConstrainedERMClassifier,
    FairDecisionClassifier,
)
from skfair.cluster import FairAssignment
from tests.families import rows_of_families
from tests.seeds import generator


def pipeline(last):
    columns = make_column_transformer((OneHotEncoder(), ["sex"]), ("passthrough", ["income"]))
    return make_pipeline(columns, last)


def around(kind, **given):
    if kind is FairAssignment:
        return FairAssignment(pipeline(KMeans(2)), **given)
    return kind(pipeline(LogisticRegression()), max_disparity=0.5, cv=3, **given)


@pytest.mark.parametrize("columns", ["sex", 1])
@pytest.mark.parametrize("kind", [FairDecisionClassifier, *rows_of_families("CALIBRATORS")])
def test_the_error_of_a_pipeline_says_how_to_pass_the_column_on(kind, columns):
    rng = generator(0)
    X = pd.DataFrame({"income": rng.normal(size=200), "sex": rng.choice(["f", "m"], 200)})
    y = (X["income"] + rng.normal(size=200) > 0).astype(int)
    with pytest.raises(ValueError, match="sex") as caught:
        around(kind, sensitive=columns).fit(X, y)
    (note,) = caught.value.__notes__
    assert "without 'sex'" in note
    around(kind, sensitive=Sensitive(columns, keep=True)).fit(X, y)  # as the note says


@pytest.mark.parametrize("kind", [FairDecisionClassifier, FairAssignment])
def test_errors_about_the_groups_themselves_get_no_note(kind):
    X = pd.DataFrame({"income": np.arange(40.0), "sex": [None, *"fm" * 19, "f"]})
    with pytest.raises(ValueError, match="Sensitive attribute 'sex' has 1 missing") as caught:
        around(kind, sensitive="sex").fit(X, np.arange(40) % 2)
    assert not hasattr(caught.value, "__notes__")


@pytest.mark.parametrize("sensitive", ["sex", None])
@pytest.mark.parametrize(
    "kind", [ConstrainedERMClassifier, FairDecisionClassifier, *rows_of_families("KINDS")]
)
def test_an_error_about_text_names_the_columns_that_the_model_gets(kind, sensitive):
    X = pd.DataFrame({"income": np.arange(80.0), "job": list("abcd") * 20, "sex": list("fm") * 40})
    metadata = {} if sensitive else {"sensitive_features": X["sex"]}
    with pytest.raises(ValueError, match="could not convert string to float") as caught:
        kind(sensitive=sensitive).fit(X, np.arange(80) // 2 % 2, **metadata)
    (note,) = caught.value.__notes__
    assert ("text in 'job'. " if sensitive else "text in 'job', 'sex'. ") in note
    assert "income" not in note
