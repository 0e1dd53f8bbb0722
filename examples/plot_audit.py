"""
An audit of two models: what predictions do to groups
=====================================================

A bank replaces a model and must report what changes for which group. One call compares the two
models. The result is a page that can be shared.
"""

# %%
# Two models
# ----------
# The old model is a plain logistic regression. For the new one, the selection rates of women and
# men may differ by at most 0.05 on the training data.
import matplotlib.pyplot as plt
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

from skfair.classification import ConstrainedERMClassifier
from skfair.datasets import make_loans
from skfair.report import Audit

X, y, groups = make_loans(6000, missing_rate=0.0, random_state=0)
X = X.select_dtypes("number")
X, X_test, y, y_test, groups, groups_test = train_test_split(X, y, groups, random_state=0)
old = LogisticRegression(max_iter=2000).fit(X, y)
new = ConstrainedERMClassifier(max_disparity=0.05).fit(X, y, sensitive_features=groups["sex"])

# %%
# The audit
# ---------
# The audit uses people that neither model has seen. The summary says which differences are larger
# than chance can explain, and what the change costs.
audit = Audit.from_estimator(
    new, X_test, y_test, sensitive_features=groups_test, before=old, title="Loans"
)
print(audit)

# %%
# The gaps, now and before
# ------------------------
gaps = audit.gaps[audit.gaps["view"] == "sex"]
print(gaps.pivot(index="metric", columns="model", values="value").round(3))

# %%
# The subgroups that differ most
# ------------------------------
# The p-values account for the whole search.
columns = ["measure", "subgroup", "n", "value", "rest", "p_value"]
print(audit.subgroups[columns].groupby("measure", sort=False).head(1).round(3).to_string())

# %%
# The report
# ----------
# ``audit.to_html("report.html")`` writes everything as one page. Drawn here: the selection rates
# that it compares.
page = audit.to_html()
print(f"{len(page) / 1000:.0f} kB")
models, groups = ("old", "new"), ("female", "male")
figure, ax = plt.subplots(figsize=(5, 3.2), layout="constrained")
for sex in groups:
    rates = [model.predict(X_test)[groups_test["sex"] == sex].mean() for model in (old, new)]
    (line,) = ax.plot(models, rates, "o-")
    ax.text(1.08, rates[1], f"{sex} {rates[1]:.0%}", color=line.get_color(), va="center")
    ax.text(-0.08, rates[0], f"{rates[0]:.0%}", color=line.get_color(), va="center", ha="right")
ax.set(ylabel="share predicted to be granted", xlim=(-0.4, 1.6), ylim=(0, 0.7))
