"""
Levelling down, before and after: who gains and who loses?
==========================================================

A limit changes the decisions about some people. That rates are closer does not say why: are more
people of one group accepted, or fewer of the other? The second is called levelling down.
"""

import matplotlib.pyplot as plt
from sklearn.linear_model import LogisticRegression

from skfair.classification import FairDecisionClassifier
from skfair.datasets import make_loans

X, y, people = make_loans(6000, bias=2.0, missing_rate=0.0, random_state=0)
X, sex = X.select_dtypes("number"), people["sex"]
model = LogisticRegression(max_iter=2000)
options = {"estimator": model, "group_aware": True, "cv": 3}
before = FairDecisionClassifier(model, max_disparity=1.0, cv=3)  # the model as it is
before = before.fit(X, y, sensitive_features=sex).train_predictions_
accepted = float(before.mean())

# %%
# Three ways to the same disparity
# --------------------------------
# All three models satisfy the limit. In the last one both groups lose, although the rates are as
# close as in the others. ``min_rate="as before"`` prevents this: then no group may be selected
# less often than without limits.
ways = {
    "limit alone": {},
    "as many loans as before": {"selection_rate": (accepted - 0.005, accepted + 0.005)},
    "two fifths fewer loans": {"selection_rate": (0.55 * accepted, 0.6 * accepted)},
}
figure, axes = plt.subplots(1, 3, figsize=(10, 2.8), sharey=True, layout="constrained")
for ax, (name, budget) in zip(axes, ways.items(), strict=True):
    after = FairDecisionClassifier(max_disparity=0.03, **budget, **options)
    after = after.fit(X, y, sensitive_features=sex).train_predictions_
    for place, group in enumerate(("female", "male")):
        own = sex == group
        up = ((after > before) & own).sum() / own.sum()
        down = ((after < before) & own).sum() / own.sum()
        ax.bar(place, up, color="C2", label="now accepted" if place == 0 else None)
        ax.bar(place, -down, color="C1", label="now refused" if place == 0 else None)
        print(f"{name}, {group}: {up:.3f} now accepted, {down:.3f} now refused")
    ax.axhline(0, color="0.3", lw=1)
    ax.set_xticks([0, 1], ["women", "men"])
    ax.set_title(name)
axes[0].set_ylabel("share of the group")
axes[0].legend()
