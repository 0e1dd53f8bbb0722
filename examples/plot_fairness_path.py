"""
How much accuracy does a stricter limit cost?
=============================================

We train one classifier with smaller and smaller limits. Who is selected more or less often, when
does the accuracy begin to fall, and what changes if the model may use the group? A path answers all
three questions.
"""

# %%
# The data
# --------
# There are three samples of loan applicants: models are fitted to the first, chosen with the
# second, and reported on the third.
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from skfair.classification import ConstrainedERMClassifier
from skfair.datasets import make_loans
from skfair.inspection import FairnessFrontDisplay, FairnessPathDisplay
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
# one. The result prints what each limit costs on the training sample and on the second one.


def path_of(features):
    """Fit a classifier under each of several limits."""
    return fairness_path(
        ConstrainedERMClassifier("demographic_parity"),
        features.fit_transform(fitted_to.data),
        fitted_to.target,
        max_disparities=[0.14, 0.1, 0.05, 0.02],
        sensitive_features=fitted_to.sensitive_features["sex"],
        X_test=features.transform(chosen_by.data),
        y_test=chosen_by.target,
        sensitive_features_test=chosen_by.sensitive_features["sex"],
    )


blind = encoder("credit_history", "housing", "purpose")
path = path_of(blind)
print(path)

# %%
# Who is selected
# ---------------
# Each panel compares a model of the path with the same classifier without a limit, on the second
# sample. The selection rates of women and men move towards each other.
rows, sex = blind.transform(chosen_by.data), chosen_by.sensitive_features["sex"]
plain = LogisticRegression(max_iter=1000)
plain.fit(blind.transform(fitted_to.data), fitted_to.target)
FairnessPathDisplay.from_path(path, rows, chosen_by.target, sensitive_features=sex, before=plain)

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
second = path_of(encoder("credit_history", "housing", "purpose", "sex"))
first = FairnessFrontDisplay.from_classifiers(
    path.test_scores, path.test_disparities, name="without sex"
)
FairnessFrontDisplay.from_classifiers(
    second.test_scores, second.test_disparities, name="with sex", ax=first.ax_
)
for name, one in (("without", path), ("with", second)):
    print(f"{name:<8} sex, at most 0.02: training accuracy {one.train_scores[-1]:.3f}")
