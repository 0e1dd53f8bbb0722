"""
Any model, fair decisions
=========================

We keep a gradient booster unchanged and limit the disparity of its decisions, with and without
using the group of each person.
"""

# %%
# Three classifiers around the same booster
# -----------------------------------------
# In the past, women were refused more often. The plain booster repeats this.
import matplotlib.pyplot as plt
import pandas as pd
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder

from skfair.classification import FairDecisionClassifier
from skfair.datasets import make_loans
from skfair.inspection import GroupRatesDisplay

X, y, people = make_loans(6000, bias=2.0, random_state=0)
X_train, X_test, y_train, y_test, people_train, people_test = train_test_split(
    X, y, people, test_size=0.5, random_state=0
)
sex_train, sex_test = people_train["sex"], people_test["sex"]
encoder = make_column_transformer(
    (OrdinalEncoder(), ["credit_history", "housing", "purpose"]),
    ("passthrough", make_column_selector(dtype_include="number")),
)
booster = make_pipeline(encoder, HistGradientBoostingClassifier(max_iter=40, random_state=0))
models = {
    "no limit": FairDecisionClassifier(booster, max_disparity=1.0),
    "group not used": FairDecisionClassifier(booster, max_disparity=0.05),
    "group used": FairDecisionClassifier(booster, max_disparity=0.05, group_aware=True),
}
for model in models.values():
    model.fit(X_train, y_train, sensitive_features=sex_train)

# %%
# Who is accepted
# ---------------
# These are the selection rates of new people and the accuracies.
fig, axes = plt.subplots(1, 3, figsize=(11, 3.2), sharex=True, layout="constrained")
accuracies = {}
for ax, (name, model) in zip(axes, models.items(), strict=True):
    predicted = model.predict(X_test, sensitive_features=sex_test)
    accuracies[name] = (predicted == y_test).mean()
    GroupRatesDisplay.from_predictions(
        y_test, predicted, sensitive_features=sex_test, rates="selection_rate", ax=ax
    )
    ax.set_title(f"{name}: accuracy {accuracies[name]:.3f}")

# %%
# The thresholds
# --------------
# With the group, there is one threshold on the probability for each group.
table = models["group used"].to_thresholds()
print(pd.DataFrame(table).round(3))
