"""
From fairlearn in ten minutes
=============================

Ten tasks with fairlearn and with skfair, on the same rows. Both are run when this page is built,
and the table at the end has their seconds. It also says where fairlearn is the easier one.
"""

import time
import warnings
from contextlib import contextmanager

import fairlearn.metrics
import fairlearn.postprocessing
import fairlearn.preprocessing
import fairlearn.reductions
import matplotlib.pyplot as plt
import pandas as pd
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import accuracy_score
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skfair.classification import ConstrainedERMClassifier, FairDecisionClassifier
from skfair.constraints import BoundedGroupLoss
from skfair.datasets import make_loans
from skfair.inspection import FairnessFrontDisplay, GroupRatesDisplay
from skfair.metrics import (
    demographic_parity_difference,
    equalized_odds_difference,
    fairness_report,
    get_scorer,
    group_report,
)
from skfair.preprocessing import Reweighing
from skfair.regression import ConstrainedERMRegressor

warnings.simplefilter("ignore")  # fairlearn's mixtures warn of thresholds, mixed at random
X, y, people = make_loans(4000, bias=2.0, missing_rate=0.0, random_state=0)
X = X.select_dtypes("number")
X_train, X_test, y_train, y_test, sex_train, sex_test = train_test_split(
    X, y, people["sex"], random_state=0
)
plain = make_pipeline(StandardScaler(), LogisticRegression()).fit(X_train, y_train)
y_pred = plain.predict(X_test)
seconds = {}


@contextmanager
def timed(task, library):
    start = time.perf_counter()
    yield
    seconds.setdefault(task, {})[library] = time.perf_counter() - start


def measured(predicted):
    """Return accuracy and the disparity in equalized odds on test rows."""
    odds = equalized_odds_difference(y_test, predicted, sensitive_features=sex_test)
    return f"accuracy {accuracy_score(y_test, predicted):.3f}, equalized odds {odds:.3f}"


# %%
# 1. One number
# -------------
# The functions have the same names and arguments.
with timed("1 one number", "fairlearn"):
    theirs = fairlearn.metrics.demographic_parity_difference(
        y_test, y_pred, sensitive_features=sex_test
    )
with timed("1 one number", "skfair"):
    here = demographic_parity_difference(y_test, y_pred, sensitive_features=sex_test)
print(f"fairlearn {theirs:.4f}, skfair {here:.4f}")

# %%
# 2. A table by group
# -------------------
# ``MetricFrame`` takes the metrics that it is to show, ``group_report`` has a fixed set of rates
# with intervals, and takes more by ``metrics=``. **fairlearn is easier** if the metric is your own
# function: any function goes into ``MetricFrame``, and has a ``.difference()`` and a ``.ratio()``.
with timed("2 table by group", "fairlearn"):
    frame = fairlearn.metrics.MetricFrame(
        metrics={
            "accuracy": accuracy_score,
            "selection_rate": fairlearn.metrics.selection_rate,
            "true_positive_rate": fairlearn.metrics.true_positive_rate,
        },
        y_true=y_test,
        y_pred=y_pred,
        sensitive_features=sex_test,
    ).by_group
with timed("2 table by group", "skfair"):
    report = group_report(y_test, y_pred, sensitive_features=sex_test)
print(frame.round(3))
report[["accuracy", "selection_rate", "selection_rate_low", "selection_rate_high"]].round(3)

# %%
# 3. Disparities with intervals
# -----------------------------
# Both draw rows again and again; here within groups, and in compiled code.
with timed("3 intervals", "fairlearn"):
    resampled = fairlearn.metrics.MetricFrame(
        metrics=fairlearn.metrics.selection_rate,
        y_true=y_test,
        y_pred=y_pred,
        sensitive_features=sex_test,
        n_boot=50,
        ci_quantiles=[0.025, 0.975],
        random_state=0,
    )
    low, high = resampled.difference_ci()
with timed("3 intervals", "skfair"):
    intervals = fairness_report(y_test, y_pred, sensitive_features=sex_test, n_bootstrap=50)
print(f"fairlearn: {low:.3f} to {high:.3f}")
intervals.head(4).round(3)

# %%
# 4. Bars by group
# ----------------
with timed("4 bars", "fairlearn"):
    frame["selection_rate"].plot.bar(figsize=(4, 2.5))
with timed("4 bars", "skfair"):
    GroupRatesDisplay.from_predictions(y_test, y_pred, sensitive_features=sex_test)
plt.show()

# %%
# 5. A threshold for each group
# -----------------------------
# fairlearn's ``tol`` relaxes demographic parity and other single rates, and refuses equalized odds,
# which it enforces exactly by drawing some decisions at random. Predictions of skfair are the same
# each time.
with timed("5 thresholds", "fairlearn"):
    exact = fairlearn.postprocessing.ThresholdOptimizer(
        estimator=plain, constraints="equalized_odds", prefit=True, predict_method="predict_proba"
    ).fit(X_train, y_train, sensitive_features=sex_train)
    drawn = exact.predict(X_test, sensitive_features=sex_test, random_state=0)
with timed("5 thresholds", "skfair"):
    decisions = FairDecisionClassifier(
        plain, "equalized_odds", 0.05, group_aware=True, cv="prefit"
    ).fit(X_train, y_train, sensitive_features=sex_train)
    decided = decisions.predict(X_test, sensitive_features=sex_test)
print(f"no limit:  {measured(y_pred)}")
print(f"fairlearn: {measured(drawn)}")
print(f"skfair:    {measured(decided)}")

# %%
# 6. No group at prediction
# -------------------------
# fairlearn trains many models, and draws one of them for each prediction. skfair trains one. It
# compares the groups with each other, and fairlearn compares each group with all rows, so that its
# bound of 0.025 is about the same as a limit of 0.05.
with timed("6 without the group", "fairlearn"):
    mixture = fairlearn.reductions.ExponentiatedGradient(
        LogisticRegression(max_iter=1000),
        fairlearn.reductions.EqualizedOdds(difference_bound=0.025),
    ).fit(X_train, y_train, sensitive_features=sex_train)
    drawn = mixture.predict(X_test, random_state=0)
with timed("6 without the group", "skfair"):
    linear = ConstrainedERMClassifier("equalized_odds", 0.05)
    linear.fit(X_train, y_train, sensitive_features=sex_train)
    decided = linear.predict(X_test)
print(f"fairlearn: {measured(drawn)}")
print(f"skfair:    {measured(decided)}")

# %%
# 7. A search over limits
# -----------------------
# Estimators and scorers of skfair that find the group in a column of ``X`` need no routing.
# ``best_within`` of `skfair.model_selection` chooses the most accurate model within a limit on
# folds. In fairlearn the search is a loop.
limits = [0.02, 0.05, 0.1]
table = X_train.assign(sex=sex_train)
with timed("7 search", "fairlearn"):
    for limit in limits:
        fairlearn.reductions.ExponentiatedGradient(
            LogisticRegression(max_iter=1000),
            fairlearn.reductions.DemographicParity(difference_bound=limit / 2),
        ).fit(X_train, y_train, sensitive_features=sex_train)
with timed("7 search", "skfair"):
    search = GridSearchCV(
        ConstrainedERMClassifier(sensitive="sex"),
        {"max_disparity": limits},
        scoring={
            "accuracy": "accuracy",
            "disparity": get_scorer("neg_demographic_parity_difference", sensitive="sex"),
        },
        refit="accuracy",
        cv=3,
    ).fit(table, y_train)
shown = ["param_max_disparity", "mean_test_accuracy", "mean_test_disparity"]
pd.DataFrame(search.cv_results_)[shown].round(3)

# %%
# 8. Compare models in a picture
# ------------------------------
models = {"no limit": y_pred, "thresholds": decisions.predict(X_test, sensitive_features=sex_test)}
models["linear"] = decided
with timed("8 compare", "fairlearn"):
    fairlearn.metrics.plot_model_comparison(
        y_true=y_test,
        y_preds=models,
        sensitive_features=sex_test,
        x_axis_metric=accuracy_score,
        y_axis_metric=fairlearn.metrics.demographic_parity_difference,
    )
with timed("8 compare", "skfair"):
    FairnessFrontDisplay.from_predictions(y_test, models, sensitive_features=sex_test)
plt.show()

# %%
# 9. Regression: no group is served badly
# ---------------------------------------
amount = X_train["loan_amount"] / X_train["loan_amount"].std()
columns = X_train.drop(columns="loan_amount")
with timed("9 regression", "fairlearn"):
    fairlearn.reductions.ExponentiatedGradient(
        LinearRegression(),
        fairlearn.reductions.BoundedGroupLoss(
            fairlearn.reductions.SquareLoss(0, 10), upper_bound=0.9
        ),
    ).fit(columns, amount, sensitive_features=sex_train)
with timed("9 regression", "skfair"):
    ConstrainedERMRegressor(BoundedGroupLoss(0.9)).fit(
        columns, amount, sensitive_features=sex_train
    )

# %%
# 10. Before training
# -------------------
# fairlearn removes the correlation of columns with the group, and skfair weighs rows. Only
# fairlearn has a ``CorrelationRemover``: use it with the metrics and scorers of skfair.
with timed("10 before training", "fairlearn"):
    coded = X_train.assign(sex=(sex_train == "female").astype(float))
    fairlearn.preprocessing.CorrelationRemover(sensitive_feature_ids=["sex"]).fit_transform(coded)
with timed("10 before training", "skfair"):
    Reweighing(LogisticRegression(max_iter=1000)).fit(
        X_train, y_train, sensitive_features=sex_train
    )

# %%
# Seconds
# -------
# On this machine, in this run. Small ones depend on chance.
times = pd.DataFrame(seconds).T
# sphinx_gallery_thumbnail_number = -1
figure, ax = plt.subplots(figsize=(5.2, 3.9), layout="constrained")
ax.hlines(times.index, times["fairlearn"], times["skfair"], color="0.8", lw=4, zorder=0)
for library, marker in (("fairlearn", "s"), ("skfair", "o")):
    ax.plot(times[library], times.index, marker, label=library)
ax.set(title="Ten tasks in both libraries", xlabel="seconds", xscale="log")
ax.invert_yaxis()
ax.legend()
times.round(4)
