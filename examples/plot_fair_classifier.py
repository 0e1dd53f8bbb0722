"""
A classifier within a limit, and its disparity on unseen data
=============================================================

In the past, women were refused loans more often. A logistic regression repeats this. We train a
model within a limit, measure what the limit costs, and see how well a limit on the training data
holds on unseen data.
"""

# %%
# The data
# --------
# The data are loan applications with strings and missing values. Neither sex nor ethnicity is a
# feature, but income and housing are correlated with them.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from skfair.classification import ConstrainedERMClassifier
from skfair.datasets import make_loans
from skfair.inspection import GroupRatesDisplay
from skfair.metrics import demographic_parity_difference, fairness_report

BIAS = 2.0
X, y, people = make_loans(10_000, bias=BIAS, random_state=0)
X_train, X_test, y_train, y_test, people_train, people_test = train_test_split(
    X, y, people, test_size=0.5, random_state=0
)
sex_train, sex_test = people_train["sex"], people_test["sex"]


def pipeline(classifier):
    """Encode the columns, then classify."""
    numbers = make_pipeline(SimpleImputer(), StandardScaler())
    columns = make_column_transformer(
        (numbers, make_column_selector(dtype_include="number")),
        (OneHotEncoder(handle_unknown="ignore"), ["credit_history", "housing", "purpose"]),
    )
    return make_pipeline(columns, classifier)


def fair_pipeline(X, y, sex, **options):
    """Fit a classifier whose selection rates may differ by a few points only."""
    model = pipeline(ConstrainedERMClassifier("demographic_parity", **options))
    return model.fit(X, y, constrainedermclassifier__sensitive_features=sex)


# %%
# Plain and fair
# --------------
# The limit is on the difference of selection rates. On the training data it holds exactly, on the
# test data up to sampling noise, which the standard error shows.
models = {"logistic regression": pipeline(LogisticRegression()).fit(X_train, y_train)}
for bound in (0.1, 0.05, 0.02):
    models[f"at most {bound}"] = fair_pipeline(X_train, y_train, sex_train, max_disparity=bound)

print(f"{'':<20} accuracy: train  test    disparity: train  test")
for name, model in models.items():
    gap = demographic_parity_difference(
        y_train, model.predict(X_train), sensitive_features=sex_train
    )
    report = fairness_report(
        y_test, model.predict(X_test), sensitive_features=sex_test, random_state=0
    ).loc["demographic_parity_difference"]
    print(
        f"{name:<20} {model.score(X_train, y_train):15.3f} {model.score(X_test, y_test):5.3f} "
        f"{gap:17.3f}  {report['value']:.3f} +- {report['standard_error']:.3f}"
    )

figure, axes = plt.subplots(1, 2, figsize=(11, 4), sharey=True, layout="constrained")
for ax, name in zip(axes, ("logistic regression", "at most 0.05"), strict=True):
    GroupRatesDisplay.from_predictions(
        y_test, models[name].predict(X_test), sensitive_features=sex_test, ax=ax
    )
    ax.set_title(f"{name}, test data")

# %%
# A smooth approximation is not enough
# ------------------------------------
# Published methods limit the mean of a sigmoid of the score instead of the decisions. With the same
# limits, these are the true disparities on the training data:
for bound in (0.1, 0.05, 0.02):
    model = fair_pipeline(X_train, y_train, sex_train, max_disparity=bound, enforce="surrogate")
    print(f"smooth bound {bound:<4}: true disparity {model[-1].train_disparity_:.3f}")

# %%
# Unseen data
# -----------
# The data are simulated, so we can draw a population. Each point is a model that was fitted to its
# own sample and keeps the limit there. In the population the disparity is larger, by about one
# standard error of a sample of this size (plus or minus one), because the fit has reduced the
# disparity for its training rows in particular.
population = make_loans(50_000, bias=BIAS, random_state=100)
is_woman = population.sensitive_features["sex"] == "female"


def population_gaps(n_samples, bound, n_repeats=8):
    """Fit to several samples and measure every model on the population."""
    gaps = []
    for seed in range(n_repeats):
        sample = make_loans(n_samples, bias=BIAS, random_state=seed)
        sex = sample.sensitive_features["sex"]
        model = fair_pipeline(sample.data, sample.target, sex, max_disparity=bound)
        predicted = model.predict(population.data)
        gaps.append(demographic_parity_difference(None, predicted, sensitive_features=is_woman))
    return np.array(gaps)


def standard_error(n_samples):
    """Return that of the difference of two rates, were both the rate of positives."""
    rate, share = population.target.mean(), is_woman.mean()
    return np.sqrt(rate * (1 - rate) / (n_samples * share * (1 - share)))


limit = 0.1
small, large = (population_gaps(n, limit) for n in (1000, 5000))
margin = population_gaps(5000, limit - 2 * standard_error(5000))
for name, n, gaps in (
    ("1000 rows", 1000, small),
    ("5000 rows", 5000, large),
    ("5000 rows, margin", 5000, margin),
):
    print(
        f"{name:<18} standard error {standard_error(n):.3f}, population gap {gaps.mean():.3f} "
        f"({gaps.min():.3f} to {gaps.max():.3f}), {np.sum(gaps <= limit)} of {gaps.size} within"
    )

# %%
# A margin
# --------
# If the limit matters for unseen data, train with a smaller limit, for example by two standard
# errors, as in the third row of the picture.
figure, ax = plt.subplots(figsize=(7, 2.6), layout="constrained")
for position, gaps in enumerate((small, large, margin)):
    ax.plot(gaps, np.full(gaps.size, position), "o", fillstyle="none")
ax.axvline(limit, color="0.5", linestyle="--", label="limit")
ax.set_yticks(range(3), ["1000 rows", "5000 rows", "5000 rows,\nwith a margin"])
ax.set_ylim(2.5, -0.5)
ax.set_xlim(left=0)
ax.set_xlabel("Difference of selection rates in the population")
ax.legend(loc="lower left")
