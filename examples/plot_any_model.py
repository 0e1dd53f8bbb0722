"""
Keep your model, limit its decisions
====================================

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
from skfair.metrics import group_report

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
    "group-blind": FairDecisionClassifier(booster, max_disparity=0.05),
    "group-aware": FairDecisionClassifier(booster, max_disparity=0.05, group_aware=True),
}
for model in models.values():
    model.fit(X_train, y_train, sensitive_features=sex_train)

# %%
# Who is accepted
# ---------------
# Selection rates of unseen applicants, and accuracies.
figure, ax = plt.subplots(figsize=(7, 2.6), layout="constrained")
for row, model in enumerate(models.values()):
    predicted = model.predict(X_test, sensitive_features=sex_test)
    rates = 100 * group_report(y_test, predicted, sensitive_features=sex_test)["selection_rate"]
    ax.plot(rates[["female", "male"]], [row, row], color="0.8", lw=5, zorder=1)
    for (who, group), marker in zip([("women", "female"), ("men", "male")], "os", strict=True):
        colour = {"women": "C0", "men": "C1"}[who]
        ax.scatter(rates[group], row, s=70, color=colour, marker=marker)
        if row == 0:
            ax.annotate(
                who,
                (rates[group], 0),
                (0, 9),
                textcoords="offset points",
                ha="center",
                color=colour,
            )
    accuracy = (predicted == y_test).mean()
    ax.annotate(
        f"accuracy {accuracy:.1%}", (rates["male"], row), (12, -4), textcoords="offset points"
    )
ax.set(yticks=range(3), yticklabels=models, ylim=(2.5, -0.6), xlim=(0, 75), xlabel="accepted, %")

# %%
# The thresholds
# --------------
# With the group, there is one threshold on the probability for each group.
table = models["group-aware"].to_thresholds()
print(pd.DataFrame(table).round(3))
