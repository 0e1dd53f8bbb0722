"""Constraints within the levels of an allowed attribute, which fit gets as control features."""

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skfair import Sensitive
from skfair.classification import ConstrainedERMClassifier, FairDecisionClassifier
from skfair.constraints import ConditionalOn
from tests.seeds import generator


def people(n=1200, seed=0):
    """Women apply to the department that admits few; in both they are less likely to be taken."""
    rng = generator(seed)
    sex = rng.choice(["f", "m"], n)
    faculty = np.where(rng.random(n) < np.where(sex == "f", 0.7, 0.3), "art", "law")
    X = np.c_[rng.normal(size=(n, 2)), sex == "m", faculty == "law"].astype(float)
    y = X @ [1.0, 0.5, 0.8, 1.5] + rng.normal(size=n) > 1.2
    return X, y.astype(int), sex, faculty


def gaps(selected, sex, faculty):
    """Differences of selection rates within each faculty, by plain counting."""
    return {
        name: abs(
            selected[(faculty == name) & (sex == "f")].mean()
            - selected[(faculty == name) & (sex == "m")].mean()
        )
        for name in np.unique(faculty)
    }


CONSTRAINT = ConditionalOn("demographic_parity")


def test_columns_of_X_hold_the_strata_and_stay_in_the_model():
    X, y, sex, faculty = people()
    given = ConstrainedERMClassifier(CONSTRAINT, 0.05)
    given.fit(X, y, sensitive_features=sex, control_features=faculty)
    by_column = ConstrainedERMClassifier(CONSTRAINT, 0.05, sensitive=Sensitive(control_features=3))
    by_column.fit(X, y, sensitive_features=sex)
    assert np.array_equal(given.coef_, by_column.coef_)
    assert by_column.coef_.shape == (1, 4)
    table = pd.DataFrame(X, columns=["a", "b", "male", "law"])
    by_name = ConstrainedERMClassifier(
        CONSTRAINT,
        0.05,
        sensitive=Sensitive("male", keep=True, control_features=["law"]),
    ).fit(table, y)
    assert by_name.train_disparity_ == pytest.approx(given.train_disparity_, abs=1e-12)


def test_routing():
    X, y, sex, faculty = people(600)
    grid = {"constrainedermclassifier__max_disparity": [0.05, 0.2]}
    pipeline = make_pipeline(StandardScaler(), ConstrainedERMClassifier(CONSTRAINT))
    with config_context(enable_metadata_routing=True):
        search = GridSearchCV(pipeline, grid, cv=2, error_score="raise")
        search.fit(X, y, sensitive_features=sex, control_features=faculty)
    limit = search.best_params_["constrainedermclassifier__max_disparity"]
    assert max(gaps(search.predict(X), sex, faculty).values()) <= limit


@pytest.mark.parametrize("n_blocks", [1, 5])
def test_blocks_give_what_memory_gives(n_blocks):
    da = pytest.importorskip("dask.array")
    dd = pytest.importorskip("dask.dataframe")
    X, y, sex, faculty = people()
    here = ConstrainedERMClassifier(CONSTRAINT, 0.03)
    here.fit(X, y, sensitive_features=sex, control_features=faculty)
    size = -(-len(y) // n_blocks)
    lazy = [da.from_array(one, chunks=size) for one in (X.astype(float), y, sex, faculty)]
    there = ConstrainedERMClassifier(CONSTRAINT, 0.03)
    there.fit(*lazy[:2], sensitive_features=lazy[2], control_features=lazy[3])
    assert there.coef_ == pytest.approx(here.coef_, abs=1e-6)
    assert there.train_disparity_ == pytest.approx(here.train_disparity_, abs=1e-10)
    assert list(there.disparity_by_group_) == list(here.disparity_by_group_)
    columns = dd.from_pandas(pd.DataFrame(X, columns=["a", "b", "m", "law"]), npartitions=n_blocks)
    by_column = ConstrainedERMClassifier(
        CONSTRAINT, 0.03, sensitive=Sensitive(control_features="law")
    )
    target, groups = (dd.from_pandas(pd.Series(one), npartitions=n_blocks) for one in (y, sex))
    by_column.fit(columns, target, sensitive_features=groups)
    assert by_column.coef_ == pytest.approx(here.coef_, abs=1e-6)


def test_strata_in_another_order_than_the_rows_are_noticed_by_predictions():
    X, y, sex, faculty = people(400)
    X, given = pd.DataFrame(X), {"sensitive_features": sex}
    strata = pd.Series(faculty, name="faculty")
    model = FairDecisionClassifier(constraint=CONSTRAINT, group_aware=True, random_state=0)
    model.fit(X, y, **given, control_features=strata)
    usual = model.predict(X, **given, control_features=strata)
    assert (model.predict(X, **given, control_features=faculty) == usual).all()
    with pytest.raises(ValueError, match="control_features"):
        model.predict(X, **given)
    with pytest.raises(ValueError, match="control_features and the data have the same index"):
        model.predict(X, **given, control_features=strata[::-1])
    with pytest.raises(ValueError, match="control_features and the data have the same index"):
        model.score(X, y, **given, control_features=strata.to_frame()[::-1])


def test_streams_have_no_strata():
    with pytest.raises(AttributeError, match="no attribute 'partial_fit'") as caught:
        ConstrainedERMClassifier(CONSTRAINT, enforce="surrogate").partial_fit(*people()[:2])
    assert "needs control_features in fit" in str(caught.value.__cause__)
