"""
Calibration within groups: do probabilities mean the same?
==========================================================

Of the people with a predicted probability of 30%, three in ten should have been granted a loan, in
each group. This fails if past labels were recorded differently in some groups, or if groups differ
in a column that the model does not have.
"""

import matplotlib.pyplot as plt
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

from skfair.datasets import make_loans
from skfair.report import audit

X, y, people = make_loans(20_000, bias=3.0, missing_rate=0.0, random_state=0)
X = X.select_dtypes("number")  # the sex is not among them
X, X_new, y, y_new, people, people_new = train_test_split(X, y, people, random_state=0)
model = LogisticRegression(max_iter=2000).fit(X, y)
found = audit(y_new, y_score=model.predict_proba(X_new)[:, 1], sensitive_features=people_new["sex"])
table = found.calibration

# %%
# Above the diagonal, loans were granted more often than predicted
# ----------------------------------------------------------------
# Each point is a tenth of a group, with a 95% interval of the observed share. The labels are past
# decisions, which were biased: the model expects too much for women, and too little for men.
figure, ax = plt.subplots(figsize=(5, 4.6), layout="constrained")
ax.plot([0, 1], [0, 1], color="0.6", lw=1)
looks = {"female": ("women", "#0072B2", "o"), "male": ("men", "#D55E00", "s")}
for group, own in table.groupby("group"):
    name, colour, marker = looks[group]
    low, high = own["mean_target_low"], own["mean_target_high"]
    error = [own["mean_target"] - low, high - own["mean_target"]]
    ax.errorbar(
        own["mean_score"], own["mean_target"], error, fmt=marker, ms=4, color=colour, label=name
    )
ax.set(xlabel="predicted probability", ylabel="share that was granted a loan")
ax.legend()
