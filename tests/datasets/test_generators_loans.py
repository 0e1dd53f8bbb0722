"""Loans: the bias dial, exact group sizes, gaps where promised, what comes back."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from pandas.api.types import is_numeric_dtype
from scipy.stats import binomtest, chi2_contingency, ttest_ind
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from skfair.datasets import make_loans
from tests.seeds import seed_of

NUMERIC = ["age", "income", "loan_amount", "employment_years"]
WORDS = ["credit_history", "housing", "purpose"]
SENSITIVE = ["sex", "ethnicity"]
INCOMPLETE = ["income", "employment_years", "credit_history", "housing"]


def gap(decision, groups):
    rates = pd.Series(np.asarray(decision)).groupby(np.asarray(groups)).mean()
    return rates.max() - rates.min()


def model():
    numbers = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
    return make_pipeline(
        make_column_transformer(
            (numbers, make_column_selector(dtype_include="number")),
            (OneHotEncoder(), make_column_selector(dtype_exclude="number")),
        ),
        LogisticRegression(),
    )


def test_columns_and_their_values():
    loans = make_loans(2000, random_state=seed_of())
    assert loans.data.columns.tolist() == NUMERIC + WORDS + SENSITIVE
    assert all(is_numeric_dtype(loans.data[c]) for c in NUMERIC)
    assert not any(is_numeric_dtype(loans.data[c]) for c in WORDS + SENSITIVE)
    assert loans.sensitive_features.columns.tolist() == SENSITIVE
    pd.testing.assert_frame_equal(loans.data[SENSITIVE], loans.sensitive_features)
    assert loans.target.name == "granted"
    assert loans.target.dtype == np.int64
    assert set(loans.target) == {0, 1}
    data = loans.data
    assert set(data["credit_history"].dropna()) == {"good", "short", "late payments"}
    assert set(data["housing"].dropna()) == {"own", "rent", "family"}
    assert set(data["purpose"]) == {"car", "home", "business", "education"}
    assert data["age"].between(18, 75).all()
    assert (data[["income", "loan_amount"]].dropna() > 0).all(axis=None)
    assert not (data["employment_years"] > data["age"] - 18).any()


def test_group_sizes_are_exact():
    """Shares may be given for one attribute only, and leave out a level."""
    groups = make_loans(1000, random_state=seed_of()).sensitive_features
    assert groups["sex"].value_counts().to_dict() == {"male": 550, "female": 450}
    assert groups["ethnicity"].value_counts().to_dict() == {"A": 700, "B": 200, "C": 100}
    shares = {"ethnicity": {"A": 0.25, "B": 0.75}}
    groups = make_loans(1001, group_shares=shares, random_state=seed_of()).sensitive_features
    assert abs(groups["ethnicity"].value_counts()["B"] - 750.75) < 1
    assert "C" not in set(groups["ethnicity"])
    assert groups["sex"].value_counts()["female"] == 450


@pytest.mark.parametrize("rate", [0.0, 0.05, 0.3])
def test_missing_cells_are_where_and_as_many_as_asked(rate):
    loans = make_loans(1000, missing_rate=rate, random_state=seed_of())
    missing = loans.data.isna().mean()
    assert missing[INCOMPLETE].tolist() == pytest.approx([rate] * 4)
    assert missing.drop(INCOMPLETE).max() == 0
    assert not loans.sensitive_features.isna().any(axis=None)


def test_bias_raises_the_gap_and_only_takes_grants_away():
    tables = [make_loans(40_000, bias=bias, random_state=seed_of()) for bias in (0, 0.5, 1, 2)]
    for name in SENSITIVE:
        gaps = [gap(t.target, t.sensitive_features[name]) for t in tables]
        assert (np.diff(gaps) > 0.02).all()
    for weaker, stronger in pairwise(tables):
        assert (weaker.target >= stronger.target).all()
        untouched = (weaker.sensitive_features == ["male", "A"]).all(axis=1)
        pd.testing.assert_frame_equal(weaker.data[untouched], stronger.data[untouched])
        assert weaker.target[untouched].equals(stronger.target[untouched])


def test_without_bias_sex_and_ethnicity_do_not_matter():
    loans = make_loans(8000, bias=0, missing_rate=0, random_state=seed_of())
    for name in SENSITIVE:
        counts = pd.crosstab(loans.sensitive_features[name], loans.target)
        assert chi2_contingency(counts).pvalue > 1e-7
    log_income, is_male = np.log(loans.data["income"]), loans.data["sex"] == "male"
    assert ttest_ind(log_income[is_male], log_income[~is_male]).pvalue > 1e-7


def test_a_logistic_regression_learns_the_decision_and_the_bias():
    X, y, groups = make_loans(20_000, random_state=seed_of())
    train, test = slice(4000), slice(4000, None)
    prediction = model().fit(X.iloc[train], y.iloc[train]).predict(X.iloc[test])
    assert 0.75 < (prediction == y.iloc[test]).mean() < 0.9
    assert 0.15 < gap(prediction, groups["sex"].iloc[test]) < 0.4
    blind = X.drop(columns=SENSITIVE)
    prediction = model().fit(blind.iloc[train], y.iloc[train]).predict(blind.iloc[test])
    # Leaving the columns out does not repair it: income and housing carry the past.
    assert gap(prediction, groups["sex"].iloc[test]) > 0.04


def test_what_the_decision_asks_for():
    X, y, _ = make_loans(8000, bias=0, missing_rate=0, random_state=seed_of())
    signs = {
        "income": np.log(X["income"]),
        "request": -np.log(X["loan_amount"] / X["income"]),
        "employment": X["employment_years"],
        "good": X["credit_history"] == "good",
        "late": -1.0 * (X["credit_history"] == "late payments"),
        "owner": X["housing"] == "own",
    }
    fitted = LogisticRegression(max_iter=1000).fit(pd.DataFrame(signs).astype(float), y)
    assert (fitted.coef_ > 0.03).all()


def test_amounts_and_homes_are_those_of_the_purpose_the_age_and_the_income():
    data = make_loans(8000, bias=0, missing_rate=0, random_state=seed_of()).data
    assert data["age"].dtype == np.int64
    typical = data.groupby("purpose")["loan_amount"].median()
    assert typical.sort_values().index.tolist() == ["education", "car", "business", "home"]
    assert binomtest((data["purpose"] == "car").sum(), 8000, 0.35).pvalue > 1e-7
    owners = data.groupby("housing")[["age", "income"]].mean()
    assert (owners.loc["own"] > owners.drop("own") * 1.02).all(axis=None)
    rich = data["income"] > data["income"].median()
    assert data["loan_amount"][rich].median() > 1.1 * data["loan_amount"][~rich].median()
