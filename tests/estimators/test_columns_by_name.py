"""Estimators around another model take tables by the names of columns, if that model does."""

import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline

from skfair import Sensitive
from skfair.classification import FairDecisionClassifier
from skfair.preprocessing import Reweighing
from skfair.regression import FairDecisionRegressor
from tests.families import by_families
from tests.seeds import generator

WAYS = {
    "blind": (FairDecisionClassifier, LogisticRegression, {}),
    "aware": (FairDecisionClassifier, LogisticRegression, {"group_aware": True}),
    "numbers": (FairDecisionRegressor, LinearRegression, {}),
    **by_families("AROUND_MODELS"),
    "reweighed": (Reweighing, LogisticRegression, {}),
}


def people():
    rng = generator(3)
    X = pd.DataFrame(rng.normal(size=(300, 3)), columns=["income", "debt", "age"])
    X["sex"] = rng.choice(["f", "m"], 300)
    y = (X["income"] - X["debt"] + (X["sex"] == "m") + rng.normal(size=300) > 0).astype(int)
    return X, y


def fitted(name, by_name):
    """Return an estimator around a model that takes columns by name, or that does not."""
    kind, model, params = WAYS[name]
    by_names = make_column_transformer(("passthrough", ["debt", "income"]))
    inside = make_pipeline(by_names, model()) if by_name else model()
    X, y = people()
    how = {"max_disparity": 0.3, **params} if kind is not Reweighing else {}
    return kind(inside, sensitive=Sensitive("sex"), **how).fit(X, y), X


@pytest.mark.parametrize("name", [name for name in WAYS if name != "reweighed"])
def test_columns_are_known_by_their_names_where_the_model_inside_knows_them(name):
    model, X = fitted(name, by_name=True)
    expected = model.predict(X)
    for table in (X[X.columns[::-1]], X.assign(id=1), X.assign(id="a")[["id", *X.columns[::-1]]]):
        assert (model.predict(table) == expected).all()
    with pytest.raises(ValueError, match="income"):
        model.predict(X.drop(columns="income"))


@pytest.mark.parametrize("name", WAYS)
def test_columns_in_another_order_are_refused_where_the_model_inside_refuses_them(name):
    model, X = fitted(name, by_name=False)
    for table in (X[X.columns[::-1]], X.assign(id=1)):
        with pytest.raises(ValueError, match="feature names"):
            model.predict(table)


def test_new_people_may_lack_the_group_in_tables_with_more_columns():
    model, X = fitted("blind", by_name=True)
    table = X.drop(columns="sex").assign(id=1)[["id", "age", "debt", "income"]]
    assert (model.predict(table) == model.predict(X)).all()
