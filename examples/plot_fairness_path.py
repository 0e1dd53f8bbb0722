"""
How much accuracy does a stricter limit cost?
=============================================

We train one classifier with smaller and smaller limits. When does the accuracy begin to fall, how
well does a limit on the training data hold on unseen data, and what changes if the model may use
the group? A path answers all three questions.
"""

# %%
# The data
# --------
# There are three samples of loan applicants: models are fitted to the first, chosen with the
# second, and reported on the third.
import matplotlib.pyplot as plt
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from skfair.classification import ConstrainedERMClassifier
from skfair.datasets import make_loans
from skfair.inspection import FairnessPathDisplay
from skfair.metrics import fairness_report
from skfair.model_selection import fairness_path

fitted_to, chosen_by, reported_on = (make_loans(5000, bias=2.0, random_state=s) for s in range(3))


def encoder(*words):
    """Impute and scale numbers, encode words; all other columns are left out."""
    numbers = make_pipeline(SimpleImputer(), StandardScaler())
    return make_column_transformer(
        (numbers, make_column_selector(dtype_include="number")), (OneHotEncoder(), list(words))
    )


# %%
# The path
# --------
# ``fairness_path`` goes from the largest limit to the smallest. Every fit starts from the previous
# one.


def path_of(features):
    """Fit a classifier under each of several bounds."""
    return fairness_path(
        ConstrainedERMClassifier("demographic_parity"),
        features.fit_transform(fitted_to.data),
        fitted_to.target,
        max_disparities=[0.2, 0.15, 0.1, 0.07, 0.05, 0.03, 0.02, 0.01],
        sensitive_features=fitted_to.sensitive_features["sex"],
        X_test=features.transform(chosen_by.data),
        y_test=chosen_by.target,
        sensitive_features_test=chosen_by.sensitive_features["sex"],
    )


blind = encoder("credit_history", "housing", "purpose")
path = path_of(blind)
print("bound  disparity: train  test    accuracy: train  test")
columns = (path.train_disparities, path.test_disparities, path.train_scores, path.test_scores)
for bound, *row in zip(path.max_disparities, *columns, strict=True):
    print("{:<5} {:17.3f} {:6.3f} {:16.3f} {:6.3f}".format(bound, *row))

# %%
# Filled markers show the training sample: none is to the right of its limit, the grey line. Hollow
# markers show the same models on the second sample.
figure, ax = plt.subplots(figsize=(7, 4.5), layout="constrained")
FairnessPathDisplay.from_path(path, ax=ax, show_bounds=True)

# %%
# One model of it
# ---------------
# ``select`` takes the most accurate model within a limit on the *second* sample. The sample that
# was used to choose a model makes it look better than it is, so the report uses the third.
model = path.select(max_disparity=0.08)
report = fairness_report(
    reported_on.target,
    model.predict(blind.transform(reported_on.data)),
    sensitive_features=reported_on.sensitive_features["sex"],
    random_state=0,
)
print(f"fitted with max_disparity={model.max_disparity}")
print(report.compact(digits=3).head(3))

# %%
# If the model may use the group
# ------------------------------
# If sex is not a feature, the model can make rates more similar only through columns that are
# correlated with it, and small limits are expensive. With sex as a feature they cost less. Whether
# this is allowed depends on the law and the purpose.
aware = encoder("credit_history", "housing", "purpose", "sex")
figure, ax = plt.subplots(figsize=(7, 4.5), layout="constrained")
first = FairnessPathDisplay.from_path(path, name="without sex", ax=ax)
second = path_of(aware)
FairnessPathDisplay.from_path(second, name="with sex", ax=first.ax_)
for name, one in (("without", path), ("with", second)):
    print(f"{name:<8} sex, at most 0.02: training accuracy {one.train_scores[-2]:.3f}")
