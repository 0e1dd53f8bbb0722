"""
Who pays for a limit: who gains and who loses?
==============================================

A limit changes the decisions about some people. That rates are closer does not say why: are more
people of one group accepted, or fewer of the other? If nobody gains, it is called levelling down.
"""

import matplotlib.pyplot as plt
from sklearn.linear_model import LogisticRegression

from skfair.classification import FairDecisionClassifier
from skfair.datasets import make_loans

X, y, people = make_loans(6000, bias=2.0, missing_rate=0.0, random_state=0)
X, sex = X.select_dtypes("number"), people["sex"]
model = FairDecisionClassifier(LogisticRegression(max_iter=2000), cv=3, random_state=0)
before = model.set_params(max_disparity=1.0).fit(X, y, sensitive_features=sex).train_predictions_

# %%
# Three ways to the same disparity
# --------------------------------
# All three models satisfy the limit of 5 points, and none of them uses the group. The limit alone
# refuses people of both groups: their rates are close, because both are low.
# ``selection_rate="as before"`` accepts as many people in all as without a limit, so that what one
# group gains the other one loses. ``min_rate="as before"`` lets no group lose.
ways = {
    "the limit alone": {},
    'selection_rate="as before"': {"selection_rate": "as before"},
    'min_rate="as before"': {"min_rate": "as before"},
}
figure, axes = plt.subplots(1, 3, figsize=(10, 2.8), sharey=True, layout="constrained")
for ax, (name, way) in zip(axes, ways.items(), strict=True):
    model.set_params(max_disparity=0.05, selection_rate=None, min_rate=None).set_params(**way)
    after = model.fit(X, y, sensitive_features=sex).train_predictions_
    for place, group in enumerate(("female", "male")):
        own = sex == group
        up = ((after > before) & own).sum() / own.sum()
        down = ((after < before) & own).sum() / own.sum()
        ax.bar(place, up, color="C2", label="now accepted" if place == 0 else None)
        ax.bar(place, -down, color="C1", label="now refused" if place == 0 else None)
    ax.axhline(0, color="0.3", lw=1)
    ax.set_xticks([0, 1], ["women", "men"])
    ax.set_title(f"{name}\naccepted: {before.mean():.0%}, now {after.mean():.0%}", fontsize=10)
axes[0].set_ylabel("share of the group")
axes[0].legend()
