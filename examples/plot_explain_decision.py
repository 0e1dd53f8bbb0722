"""
Why was I refused? One decision, and the part of the limit
==========================================================

A person who is refused asks for the reason. If decisions satisfy a limit, there are two: the
person's probability of repaying, and the threshold, which the limit has moved. We fit one model
that serves, and tell both for each person.
"""

# %%
# One model and its limit
# -----------------------
# With ``ensemble=False`` a single booster decides, ``estimator_``. Decisions do not use the sex of
# a person, but estimate it from the other columns.
import matplotlib.pyplot as plt
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.inspection import permutation_importance
from sklearn.model_selection import train_test_split

from skfair.classification import FairDecisionClassifier
from skfair.datasets import make_loans

X, y, people = make_loans(8_000, bias=2.0, random_state=0)
X = X[["income", "loan_amount", "employment_years", "age"]]
X_train, X_new, y_train, y_new, sex_train, sex_new = train_test_split(
    X, y, people["sex"], random_state=0
)
booster = HistGradientBoostingClassifier(max_depth=3, max_iter=50, random_state=0)
model = FairDecisionClassifier(booster, max_disparity=0.1, ensemble=False, random_state=0)
model.fit(X_train, y_train, sensitive_features=sex_train)
print(model.summary_)

# %%
# What the model looks at
# -----------------------
# ``estimator_`` is a booster like any other, so the tools for boosters explain it.
importance = permutation_importance(model.estimator_, X_new, y_new, random_state=0)
for name, lost in zip(X.columns, importance.importances_mean, strict=True):
    print(f"{name}: accuracy falls by {lost:.3f} if the column is shuffled")

# %%
# What the limit adds
# -------------------
# ``explain_decision`` has a line for each person: the probability, the threshold, and both without
# the limit. The last column says it in a sentence.
reasons = model.explain_decision(X_new)
refused = reasons[(reasons["decision"] == 0) & (reasons["decision_without_limits"] == 1)]
accepted = reasons[(reasons["decision"] == 1) & (reasons["decision_without_limits"] == 0)]
print(f"Of {len(reasons)} people {len(refused)} are refused because of the limit,")
print(f"and {len(accepted)} are accepted because of it. One of each:")
print(refused["sentence"].iloc[0])
print(accepted["sentence"].iloc[0])

# %%
# The picture shows all people. Without the limit everybody above the dashed line would be accepted.
# Now each person needs the threshold that goes with the estimate of the sex: people who look like
# men to the model need a higher probability than those who look like women.
figure, axes = plt.subplots(figsize=(6.4, 4))
is_accepted = reasons["decision"] == 1
for chosen, color, label in (
    (is_accepted, "tab:blue", "accepted"),
    (~is_accepted, "0.6", "refused"),
):
    axes.scatter(
        reasons.loc[chosen, "estimated female"],
        reasons.loc[chosen, "probability"],
        s=6,
        color=color,
        label=label,
    )
axes.axhline(reasons["threshold_without_limits"].iloc[0], color="black", linestyle="--")
axes.set_xlabel("estimated probability that the person is a woman")
axes.set_ylabel("probability of repaying")
axes.legend()
figure.tight_layout()

# %%
# An explanation is no evidence that groups are treated alike: decisions are measured with an
# audit. Where the law forbids decisions that depend on the group, ask whether it forbids an
# estimate of it, too. ``group_aware=True`` would show one threshold for each group instead.
