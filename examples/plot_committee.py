"""
A page on which a committee chooses the limit
=============================================

The limit is chosen by a credit committee, whose members do not program. They are shown who gets
another decision than today, for each limit, on one page with a slider. The memo of their decision
is a file that later audits can read.
"""

# %%
# One model for each limit
# ------------------------
# One half of the applicants trains the models, the other half judges them. The second path has the
# same limits, and keeps the number of loans.
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
from sklearn.linear_model import LogisticRegression

from skfair.classification import FairDecisionClassifier
from skfair.datasets import make_loans
from skfair.metrics import group_report
from skfair.model_selection import fairness_path

X, y, people = make_loans(6000, bias=2.0, missing_rate=0.0, random_state=0)
X, train, rest = X.select_dtypes("number"), slice(0, 3000), slice(3000, 6000)
today = LogisticRegression(max_iter=2000).fit(X[train], y[train])
model = FairDecisionClassifier(LogisticRegression(max_iter=2000), cv=3, random_state=0)
limits = {"max_disparities": [0.2, 0.1, 0.05, 0.02], "sensitive_features": people["sex"][train]}
path = fairness_path(model, X[train], y[train], **limits)
held = fairness_path(model.set_params(selection_rate="as before"), X[train], y[train], **limits)

# %%
# The page
# --------
# The page is one file, to send or to show in the meeting. Open it and move the slider:
# `a page of this kind <../../sample_choice.html>`__.
file = Path(tempfile.mkdtemp()) / "choice.html"
path.to_html(
    file,
    X=X[rest],
    y=y[rest],
    sensitive_features=people[["sex"]][rest],
    before=today,
    rate_held=held,
    decided="granted a loan",
    title="Loans: which difference do we accept?",
)
print(f"{file.name}: {file.stat().st_size / 1000:.0f} kB")

# %%
# One thing that it shows
# -----------------------
# Both paths bring the rates of women and men together. The limit alone does it by granting fewer
# loans to everybody, which a curve of accuracy against disparity does not say.
figure, axes = plt.subplots(1, 2, figsize=(8, 2.8), sharey=True, layout="constrained")
names = ["none", *(f"{limit:.0%}" for limit in path.max_disparities)]
for ax, title, own in zip(
    axes, ("the limit alone", "overall rate held"), (path, held), strict=True
):
    decisions = [one.predict(X[rest]) for one in (today, *own.estimators)]
    reports = [group_report(y[rest], p, sensitive_features=people["sex"][rest]) for p in decisions]
    for group in ("female", "male", "overall"):
        rates = [report.loc[group, "selection_rate"] for report in reports]
        ax.plot(names, rates, "o:" if group == "overall" else "o-", label=group)
    ax.set(title=title, xlabel="limit", ylim=(0, None))
axes[0].set_ylabel("share granted a loan")
axes[0].legend()
