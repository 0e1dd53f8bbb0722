"""
Post-processing: what thresholds do to decisions
================================================

``FairDecisionClassifier`` does not change the probabilities of a model, but moves the thresholds.
With two columns we can draw where each group is granted a loan, before and after.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression

from skfair.classification import FairDecisionClassifier

rng = np.random.default_rng(0)
group = rng.choice(["a", "b"], 4000)
X = rng.normal(size=(4000, 2)) + (group == "a")[:, None] * [0.8, 0.0]
y = (X[:, 0] + X[:, 1] + rng.normal(size=4000) > 0.8).astype(int)

fair = FairDecisionClassifier(LogisticRegression(), max_disparity=0.05, group_aware=True)
fair = fair.fit(X, y, sensitive_features=group)
print(fair.to_thresholds().round(3).to_string())

# %%
# Two thresholds on one probability
# ---------------------------------
# The dashed line is the decision boundary of the model without a limit. The solid lines are the
# boundaries within the limit, one for each group. The group with fewer loans gets the lower one.
figure, ax = plt.subplots(figsize=(5, 3.9), layout="constrained")
grid = np.stack(np.meshgrid(np.linspace(-3, 4, 201), np.linspace(-3, 3, 201)), axis=-1)
rows = grid.reshape(-1, 2)
for name, colour, marker in (("a", "C0", "o"), ("b", "C1", "s")):
    own = np.flatnonzero(group == name)[:150]
    ax.scatter(X[own, 0], X[own, 1], s=10, marker=marker, color=colour, label=f"group {name}")
    decided = fair.predict(rows, sensitive_features=np.full(len(rows), name))
    ax.contour(*grid.T, decided.reshape(201, 201).T, levels=[0.5], colors=colour)
plain = LogisticRegression().fit(X, y).predict(rows)
ax.contour(*grid.T, plain.reshape(201, 201).T, levels=[0.5], colors="0.3", linestyles="--")
ax.set(xlabel="first column", ylabel="second column")
ax.legend()
