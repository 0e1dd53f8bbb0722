"""
From fairlearn in ten minutes
=============================

A complete program with fairlearn on the left, and the same tasks with skfair on the right, on the
same rows. The right column was run when this page was built. The left column shows what fairlearn
0.15 printed, and a test of skfair runs it again. Limits are 0.05 unless the code says otherwise.

Both programs begin with these rows and this model. Loans were granted with a bias against women.
"""

import matplotlib.pyplot as plt
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import accuracy_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skfair.datasets import make_loans

loans = make_loans(8000, bias=2.0, missing_rate=0.0, random_state=0)
X = pd.get_dummies(loans.data.drop(columns=["sex", "ethnicity"]), dtype=float)
X_train, X_test, y_train, y_test, sex_train, sex_test = train_test_split(
    X, loans.target, loans.sensitive_features["sex"], random_state=0
)
plain = make_pipeline(StandardScaler(), LogisticRegression()).fit(X_train, y_train)
y_pred = plain.predict(X_test)


def show(decisions, disparity):
    """Print the accuracy and a disparity of decisions on the test rows."""
    value = disparity(y_test, decisions, sensitive_features=sex_test)
    print(f"accuracy {accuracy_score(y_test, decisions):.3f}, disparity {value:.3f}")


# %%
# The rates of each group
# -----------------------
# ``MetricFrame`` shows the metrics that it is given. ``group_report`` has a fixed set of rates with
# intervals, and other metrics by ``metrics=``.
#
# .. container:: fairlearn
#
#    **fairlearn**
#
#    .. code-block:: python
#
#       from fairlearn.metrics import (
#           MetricFrame,
#           selection_rate,
#           true_positive_rate,
#       )
#
#       frame = MetricFrame(
#           metrics={
#               "accuracy": accuracy_score,
#               "selection_rate": selection_rate,
#               "true_positive_rate": true_positive_rate,
#           },
#           y_true=y_test,
#           y_pred=y_pred,
#           sensitive_features=sex_test,
#       )
#       print(frame.by_group.round(3).to_string())
#
#    .. rst-class:: sphx-glr-script-out
#
#    .. code-block:: none
#
#               accuracy  selection_rate  true_positive_rate
#       sex
#       female     0.853           0.239               0.746
#       male       0.794           0.409               0.689
#
# **skfair**
from skfair.metrics import group_report

report = group_report(
    y_test,
    y_pred,
    sensitive_features=sex_test,
)
rates = ["accuracy", "selection_rate", "true_positive_rate"]
print(report[rates].round(3).to_string())

# %%
# A disparity with its interval
# -----------------------------
# The names of the disparities are the same in both libraries. Both draw the rows again and again
# for the interval. skfair draws within each group, and measures all disparities at once.
#
# .. container:: fairlearn
#
#    **fairlearn**
#
#    .. code-block:: python
#
#       from fairlearn.metrics import (
#           demographic_parity_difference,
#       )
#
#       show(y_pred, demographic_parity_difference)
#       frame = MetricFrame(
#           metrics=selection_rate,
#           y_true=y_test,
#           y_pred=y_pred,
#           sensitive_features=sex_test,
#           n_boot=200,
#           ci_quantiles=[0.025, 0.975],
#           random_state=0,
#       )
#       low, high = frame.difference_ci()
#       print(f"interval {low:.3f} to {high:.3f}")
#
#    .. rst-class:: sphx-glr-script-out
#
#    .. code-block:: none
#
#       accuracy 0.821, disparity 0.170
#       interval 0.134 to 0.213
#
# **skfair**
from skfair.metrics import demographic_parity_difference, fairness_report

show(y_pred, demographic_parity_difference)
found = fairness_report(
    y_test,
    y_pred,
    sensitive_features=sex_test,
)
row = found.loc["demographic_parity_difference"]
print(f"interval {row['value_low']:.3f} to {row['value_high']:.3f}")

# %%
# A threshold for each group
# --------------------------
# Both keep the model, and limit the difference of the selection rates to 0.05 by one threshold for
# each group. The limit holds on the training rows. On the test rows the disparity differs from it
# by chance.
#
# .. container:: fairlearn
#
#    **fairlearn**
#
#    .. code-block:: python
#
#       from fairlearn.postprocessing import (
#           ThresholdOptimizer,
#       )
#
#       thresholds = ThresholdOptimizer(
#           estimator=plain,
#           constraints="demographic_parity",
#           tol=0.05,
#           prefit=True,
#           predict_method="predict_proba",
#       )
#       thresholds.fit(
#           X_train,
#           y_train,
#           sensitive_features=sex_train,
#       )
#       decisions = thresholds.predict(
#           X_test,
#           sensitive_features=sex_test,
#           random_state=0,
#       )
#       show(decisions, demographic_parity_difference)
#
#    .. rst-class:: sphx-glr-script-out
#
#    .. code-block:: none
#
#       accuracy 0.796, disparity 0.071
#
# **skfair**
from skfair.classification import FairDecisionClassifier

thresholds = FairDecisionClassifier(
    plain,
    "demographic_parity",
    max_disparity=0.05,
    group_aware=True,
    cv="prefit",
)
thresholds.fit(
    X_train,
    y_train,
    sensitive_features=sex_train,
)
with_group = thresholds.predict(
    X_test,
    sensitive_features=sex_test,
)
show(with_group, demographic_parity_difference)

# %%
# Equalized odds
# --------------
# **fairlearn is ahead if the rates must be exactly equal.** It draws decisions at random for that,
# so a person may get another decision with another seed. The decisions of skfair do not change, so
# it needs a small limit. It is the other way round if you want to choose the limit: fairlearn
# refuses ``tol`` for equalized odds.
#
# .. container:: fairlearn
#
#    **fairlearn**
#
#    .. code-block:: python
#
#       from fairlearn.metrics import (
#           equalized_odds_difference,
#       )
#
#       exact = ThresholdOptimizer(
#           estimator=plain,
#           constraints="equalized_odds",
#           prefit=True,
#           predict_method="predict_proba",
#       )
#       exact.fit(
#           X_train,
#           y_train,
#           sensitive_features=sex_train,
#       )
#       first, second = (
#           exact.predict(
#               X_test,
#               sensitive_features=sex_test,
#               random_state=seed,
#           )
#           for seed in (0, 1)
#       )
#       show(first, equalized_odds_difference)
#       print(f"{(first != second).mean():.1%} change by the seed")
#
#    .. rst-class:: sphx-glr-script-out
#
#    .. code-block:: none
#
#       accuracy 0.831, disparity 0.007
#       2.0% change by the seed
#
# **skfair**
from skfair.metrics import equalized_odds_difference

odds = FairDecisionClassifier(
    plain,
    "equalized_odds",
    max_disparity=0.02,
    group_aware=True,
    cv="prefit",
)
odds.fit(
    X_train,
    y_train,
    sensitive_features=sex_train,
)
first, second = (
    odds.predict(
        X_test,
        sensitive_features=sex_test,
    )
    for _ in range(2)
)
show(first, equalized_odds_difference)
print(f"{(first != second).mean():.1%} change by the seed")

# %%
# Training within a limit
# -----------------------
# The group is unknown when the model predicts. fairlearn trains many models, and draws one of them
# for each prediction. skfair trains one. Both limits are on the distance between the selection rate
# of each group and that of all rows, which is what ``reference="overall"`` means. Without it skfair
# compares the groups with each other.
#
# .. container:: fairlearn
#
#    **fairlearn**
#
#    .. code-block:: python
#
#       from fairlearn.reductions import (
#           DemographicParity,
#           ExponentiatedGradient,
#       )
#
#       mixture = ExponentiatedGradient(
#           plain,
#           DemographicParity(difference_bound=0.025),
#           sample_weight_name="logisticregression__sample_weight",
#       )
#       mixture.fit(
#           X_train,
#           y_train,
#           sensitive_features=sex_train,
#       )
#       first, second = (
#           mixture.predict(X_test, random_state=seed)
#           for seed in (0, 1)
#       )
#       show(first, demographic_parity_difference)
#       print(f"{(first != second).mean():.1%} change by the seed")
#       print(f"{len(mixture.predictors_)} models")
#
#    .. rst-class:: sphx-glr-script-out
#
#    .. code-block:: none
#
#       accuracy 0.751, disparity 0.055
#       9.3% change by the seed
#       12 models
#
# **skfair**
from skfair.classification import ConstrainedERMClassifier
from skfair.constraints import DemographicParity

linear = ConstrainedERMClassifier(
    DemographicParity(0.025, reference="overall"),
)
linear.fit(
    X_train,
    y_train,
    sensitive_features=sex_train,
)
without_group = linear.predict(X_test)
show(without_group, demographic_parity_difference)
print("1 model with", linear.coef_.size, "coefficients")

# %%
# Boosted trees
# -------------
# **fairlearn is ahead if trees are to be trained within the limit**: ``ExponentiatedGradient``
# takes any estimator that takes weights. skfair trains linear models, splines and networks within
# limits. It leaves trees as they are, and limits their out-of-fold decisions. The group is
# estimated from the other columns, so that ``predict`` does not ask for it. Trees know the rows
# that they were trained on better than others. So a limit on these rows, as on the left, is
# exceeded by more on the test rows, at a higher accuracy.
#
# .. container:: fairlearn
#
#    **fairlearn**
#
#    .. code-block:: python
#
#       trees = HistGradientBoostingClassifier(
#           max_iter=30,
#           random_state=0,
#       )
#       mixture = ExponentiatedGradient(
#           trees,
#           DemographicParity(difference_bound=0.025),
#       )
#       mixture.fit(
#           X_train,
#           y_train,
#           sensitive_features=sex_train,
#       )
#       decisions = mixture.predict(X_test, random_state=0)
#       show(decisions, demographic_parity_difference)
#
#    .. rst-class:: sphx-glr-script-out
#
#    .. code-block:: none
#
#       accuracy 0.788, disparity 0.114
#
# **skfair**
trees = HistGradientBoostingClassifier(
    max_iter=30,
    random_state=0,
)
boosted = FairDecisionClassifier(
    trees,
    DemographicParity(0.025, reference="overall"),
    random_state=0,
)
boosted.fit(
    X_train,
    y_train,
    sensitive_features=sex_train,
)
of_trees = boosted.predict(X_test)
show(of_trees, demographic_parity_difference)

# %%
# Which limit?
# ------------
# ``GridSearch`` fits a model for each multiplier of a grid, and you choose among them. The grid of
# ``fairness_path`` has limits, and ``path.select(max_disparity=0.05)`` chooses.
#
# .. container:: fairlearn
#
#    **fairlearn**
#
#    .. code-block:: python
#
#       from fairlearn.reductions import GridSearch
#
#       grid = GridSearch(
#           plain,
#           DemographicParity(),
#           grid_size=5,
#           sample_weight_name="logisticregression__sample_weight",
#       )
#       grid.fit(
#           X_train,
#           y_train,
#           sensitive_features=sex_train,
#       )
#       for model in grid.predictors_:
#           show(
#               model.predict(X_test),
#               demographic_parity_difference,
#           )
#
#    .. rst-class:: sphx-glr-script-out
#
#    .. code-block:: none
#
#       accuracy 0.577, disparity 0.135
#       accuracy 0.786, disparity 0.098
#       accuracy 0.821, disparity 0.170
#       accuracy 0.811, disparity 0.207
#       accuracy 0.792, disparity 0.220
#
# **skfair**
from skfair.model_selection import fairness_path

path = fairness_path(
    ConstrainedERMClassifier(),
    X_train,
    y_train,
    max_disparities=[0.15, 0.1, 0.05, 0.02],
    sensitive_features=sex_train,
)
for model in path.estimators:
    show(
        model.predict(X_test),
        demographic_parity_difference,
    )

# %%
# Regression: a limit on the loss of each group
# ---------------------------------------------
# A linear model of the income has a larger squared error for men, and the limit makes it weigh
# their rows more. The error of women grows for it. fairlearn also needs the range of the target.
income = X_train["income"] / X_train["income"].std()
columns = X_train.drop(columns="income")


def show_losses(predicted):
    """Print the mean squared error of each group on the training rows."""
    losses = ((predicted - income) ** 2).groupby(sex_train).mean()
    print(f"women {losses['female']:.3f}, men {losses['male']:.3f}")


show_losses(LinearRegression().fit(columns, income).predict(columns))

# %%
# .. container:: fairlearn
#
#    **fairlearn**
#
#    .. code-block:: python
#
#       from fairlearn.reductions import (
#           BoundedGroupLoss,
#           SquareLoss,
#       )
#
#       mixture = ExponentiatedGradient(
#           LinearRegression(),
#           BoundedGroupLoss(
#               SquareLoss(income.min(), income.max()),
#               upper_bound=0.92,
#           ),
#       )
#       mixture.fit(
#           columns,
#           income,
#           sensitive_features=sex_train,
#       )
#       show_losses(mixture.predict(columns, random_state=0))
#
#    .. rst-class:: sphx-glr-script-out
#
#    .. code-block:: none
#
#       women 0.640, men 0.920
#
# **skfair**
from skfair.constraints import BoundedGroupLoss
from skfair.regression import ConstrainedERMRegressor

regressor = ConstrainedERMRegressor(
    BoundedGroupLoss(0.92),
)
regressor.fit(
    columns,
    income,
    sensitive_features=sex_train,
)
show_losses(regressor.predict(columns))

# %%
# Where fairlearn is ahead
# ------------------------
# - Any function goes into ``MetricFrame``, and has a ``.difference()`` and a ``.ratio()`` at once.
#   In skfair ``group_report(metrics=...)`` shows it by group, and ``make_group_metric`` makes a
#   difference or a ratio of it.
# - ``ExponentiatedGradient`` and ``GridSearch`` train any estimator that takes weights.
# - ``ThresholdOptimizer`` makes the rates of equalized odds exactly equal, by random draws.
# - ``CorrelationRemover`` takes out of the columns what is correlated with the group, and there are
#   adversarial networks. skfair has neither. Its metrics, scorers and limits work on top of both.
# - It has a larger community.
#
# All models in one picture
# -------------------------
# ``FairnessFrontDisplay.from_predictions`` takes the place of ``plot_model_comparison``. Here the
# numbers of fairlearn that are printed above are drawn beside those of skfair. The standard error
# of a disparity on these 2,000 test rows is about 0.02. All names of fairlearn are in the table of
# :doc:`/how_to/from_other_libraries`, and :doc:`/benchmarks/peers` compares accuracy and speed.
FAIRLEARN = {  # disparity, accuracy
    "no limit": (0.170, 0.821),
    "a threshold for each group": (0.071, 0.796),
    "linear model, group unknown": (0.055, 0.751),
    "trees, group unknown": (0.114, 0.788),
}
SKFAIR = {
    name: (
        demographic_parity_difference(y_test, decisions, sensitive_features=sex_test),
        accuracy_score(y_test, decisions),
    )
    for name, decisions in zip(
        FAIRLEARN, (y_pred, with_group, without_group, of_trees), strict=True
    )
}
figure, axes = plt.subplots(1, 2, figsize=(7.6, 3.4), sharey=True, layout="constrained")
for ax, number, title in zip(axes, (0, 1), ("disparity", "accuracy"), strict=True):
    for shift, marker, (library, models) in (
        (-0.13, "s", ("fairlearn", FAIRLEARN)),
        (0.13, "o", ("skfair", SKFAIR)),
    ):
        values = [pair[number] for pair in models.values()]
        places = [row + shift for row in range(len(values))]
        ax.plot(values, places, marker, label=library if number == 0 else None)
        for value, place in zip(values, places, strict=True):
            ax.annotate(
                f"{value:.3f}", (value, place), (7, 0), textcoords="offset points", va="center"
            )
    ax.set(title=f"{title} on test rows", yticks=range(len(FAIRLEARN)), yticklabels=FAIRLEARN)
axes[0].set(xlim=(0, 0.21), ylim=(3.5, -0.5))
axes[1].set(xlim=(0.7, 0.87))
axes[0].axvline(0.05, color="0.6", ls=":", zorder=0)
axes[0].annotate(
    "limit", (0.05, 3.45), (-4, 0), textcoords="offset points", ha="right", color="0.4"
)
figure.legend(loc="outside lower center", ncols=2)
