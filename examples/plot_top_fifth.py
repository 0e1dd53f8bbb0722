"""
A shortlist of 20% with six groups
==================================

The best fifth of the applicants is invited. The invitation rates of six groups (sex and ethnicity
crossed) may differ by at most 5 percentage points. In any case, between 19.5% and 20.5% are
invited.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder

from skfair.classification import FairDecisionClassifier
from skfair.datasets import make_loans

loans = make_loans(12_000, bias=2.0, random_state=0)
X, y, people = loans.data, loans.target, loans.sensitive_features
columns = make_column_transformer(
    (OrdinalEncoder(), ["credit_history", "housing", "purpose"]),
    ("passthrough", make_column_selector(dtype_include="number")),
)
trees = make_pipeline(columns, HistGradientBoostingClassifier(max_iter=40, random_state=0))
group = people["sex"] + ", " + people["ethnicity"]

shares = {}
for limit in (1.0, 0.05):
    model = FairDecisionClassifier(
        trees, max_disparity=limit, selection_rate=(0.195, 0.205), group_aware=True, cv=3
    ).fit(X, y, sensitive_features=group)
    invited = model.train_predictions_ == 1
    rates = [invited[group == name].mean() for name in model.groups_]
    shares[limit] = rates
    print(
        f"limit {limit}: {invited.mean():.3f} invited, disparity {np.ptp(rates):.3f}, "
        f"{y[invited].mean():.3f} of those invited were granted a loan"
    )

# %%
# Hollow dots are without a limit, full dots are within it.
figure, ax = plt.subplots(figsize=(5.2, 3.9), layout="constrained")
ax.hlines(model.groups_, shares[1.0], shares[0.05], color="0.8", lw=4, zorder=0)
ax.plot(shares[1.0], model.groups_, "o", color="C0", markerfacecolor="white", label="no limit")
ax.plot(shares[0.05], model.groups_, "o", color="C0", label="within 5 points")
ax.set(title="A shortlist of 20%, six groups", xlabel="share invited", xlim=(-0.02, None))
ax.legend()
