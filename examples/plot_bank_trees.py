"""
A bank: boosted trees with a limit for each attribute
=====================================================

A bank uses boosted trees to grant loans. The shares of women and men who are granted a loan may
differ by 5 percentage points, those of three ethnic groups by 10. The trees do not change; only the
decisions are adjusted.
"""

import matplotlib.pyplot as plt
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder

from skfair import Sensitive
from skfair.classification import FairDecisionClassifier
from skfair.datasets import make_loans
from skfair.metrics import group_report

X, y, people = make_loans(8000, bias=2.0, random_state=0)
X, X_new, y, y_new, people, people_new = train_test_split(X, y, people, random_state=0)
words = (OrdinalEncoder(), ["credit_history", "housing", "purpose"])
numbers = ("passthrough", make_column_selector(dtype_include="number"))
booster = HistGradientBoostingClassifier(max_iter=40, random_state=0)
trees = make_pipeline(make_column_transformer(words, numbers), booster)
plain = trees.fit(X, y)
limited = FairDecisionClassifier(
    trees, max_disparity={"sex": 0.05, "ethnicity": 0.1}, sensitive=Sensitive(crossed=False)
).fit(X, y, sensitive_features=people)
for name, value in limited.train_disparities_.items():
    print(f"{name}: {value:.3f} on the training rows")

# %%
# This is the disparity of each attribute for new applicants, before and after. They differ from the
# training rows by chance, so their disparity can be a little above the limit.
fig, axes = plt.subplots(1, 2, figsize=(9, 3), sharex=True, layout="constrained")
for ax, (name, model) in zip(axes, {"trees": plain, "limited": limited}.items(), strict=True):
    report = group_report(
        y_new, model.predict(X_new), sensitive_features=people_new, intersectional=False
    )
    ax.barh(report.index[:-1], report["selection_rate"][:-1], color="C0")
    ax.set(title=f"{name}: accuracy {report['accuracy'].iloc[-1]:.2f}", xlabel="share granted")
axes[1].set_yticklabels([])
