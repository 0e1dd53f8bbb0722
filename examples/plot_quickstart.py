"""
Audit a loan model, then choose a fairer one
============================================

A bank's model decides on loan applications. As in real tables, there are numbers, strings, missing
values and two sensitive columns. We fit an ordinary scikit-learn pipeline, measure how it treats
each group, search for the most accurate model whose selection rates differ by at most ten
percentage points, and train a model within a limit.
"""

# %%
# The data
# --------
# ``make_loans`` simulates applications with past decisions that were biased against a group.
import os
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

from skfair.classification import ConstrainedERMClassifier
from skfair.datasets import make_loans
from skfair.inspection import GroupRatesDisplay
from skfair.metrics import (
    demographic_parity_difference,
    fairness_report,
    get_scorer,
    group_report,
)
from skfair.model_selection import StratifiedSensitiveKFold, best_within

X, y, sensitive = make_loans(4000, random_state=0)
X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=0)
sex_test = X_test["sex"]
print(X.head(3).to_string())

# %%
# The audit
# ---------
# An audit works with any model, because it only uses the predictions.


def make_model(drop: tuple[str, ...] = ()):
    """A gradient boosting pipeline that leaves out some columns."""
    encoder = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    columns = make_column_transformer(
        ("drop", list(drop)),
        (encoder, make_column_selector(dtype_include=["object", "string", "category"])),
        remainder="passthrough",
    )
    return make_pipeline(columns, HistGradientBoostingClassifier(max_iter=60, random_state=0))


model = make_model().fit(X_train, y_train)
predicted = model.predict(X_test)
report = group_report(y_test, predicted, sensitive_features=sex_test)
shown = ["n", "base_rate", "selection_rate", "accuracy"]
print(report.compact(digits=2)[shown].to_string())

# %%
# Differences have a standard error: on a thousand applications a difference of two points may be
# chance, but a difference of twenty points is not.
gaps = fairness_report(y_test, predicted, sensitive_features=sex_test, random_state=0)
print(gaps.loc[["demographic_parity_difference", "equal_opportunity_difference"]].round(3))

# %%
# The choice
# ----------
# The search sees two scores, accuracy and the difference of selection rates, and keeps the most
# accurate candidate within the limit. The groups are read from the column ``sex`` of X, also when
# the model itself does not use it.
limit = 0.1
search = GridSearchCV(
    make_model(),
    {
        "columntransformer": [make_model(drop)[0] for drop in ((), ("sex",), ("sex", "income"))],
        "histgradientboostingclassifier__learning_rate": [0.01, 0.1],
    },
    scoring={
        "accuracy": "accuracy",
        "gap": get_scorer("neg_demographic_parity_difference", sensitive="sex"),
    },
    cv=StratifiedSensitiveKFold(3, sensitive="sex"),
    refit=best_within(score="accuracy", limit={"gap": limit}),
)
search.fit(X_train, y_train)
chosen = search.best_estimator_.predict(X_test)

for name, labels in (("first model", predicted), ("chosen model", chosen)):
    value = fairness_report(y_test, labels, sensitive_features=sex_test, random_state=0).loc[
        "demographic_parity_difference"
    ]
    accuracy = (labels == y_test).mean()
    print(
        f"{name:<13} accuracy {accuracy:.3f}   difference of selection rates "
        f"{value['value']:.3f} +- {value['standard_error']:.3f}"
    )

# %%
# A model within a limit
# ----------------------
# The search could only choose among models that were trained without a limit.
# ``ConstrainedERMClassifier`` is trained within one: on the training data its selection rates
# differ by at most the limit; on the test data they can differ a little more because of sampling
# noise. We compare it with scikit-learn's logistic regression on the same columns.


def make_linear(classifier):
    """A linear model on imputed, scaled and encoded columns."""
    numbers = make_pipeline(SimpleImputer(), StandardScaler())
    columns = make_column_transformer(
        (numbers, make_column_selector(dtype_include="number")),
        (OneHotEncoder(), make_column_selector(dtype_exclude="number")),
    )
    return make_pipeline(columns, classifier)


plain = make_linear(LogisticRegression()).fit(X_train, y_train)
fair = make_linear(ConstrainedERMClassifier("demographic_parity", max_disparity=limit / 2))
fair.fit(X_train, y_train, constrainedermclassifier__sensitive_features=X_train["sex"])

print(f"{'':<26} accuracy: train  test    disparity: train  test")
for name, linear in (("LogisticRegression", plain), ("ConstrainedERMClassifier", fair)):
    samples = (X_train, y_train), (X_test, y_test)
    accuracies = [linear.score(*sample) for sample in samples]
    gaps = [
        demographic_parity_difference(labels, linear.predict(rows), sensitive_features=rows["sex"])
        for rows, labels in samples
    ]
    print("{:<26} {:15.3f} {:5.3f} {:17.3f} {:5.3f}".format(name, *accuracies, *gaps))

# %%
# The picture
# -----------
pictures = {
    "First model": predicted,
    "Chosen model": chosen,
    "Trained under a limit": fair.predict(X_test),
}
figure, axes = plt.subplots(1, 3, figsize=(15, 4), sharey=True, layout="constrained")
for ax, (name, labels) in zip(axes, pictures.items(), strict=True):
    GroupRatesDisplay.from_predictions(y_test, labels, sensitive_features=sex_test, ax=ax)
    ax.set_title(name)
folder = Path() if os.access(".", os.W_OK) else Path(tempfile.gettempdir())
figure.savefig(folder / "quickstart.png", dpi=120)
print(f"The picture is in {folder / 'quickstart.png'}.")
