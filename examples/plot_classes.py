"""
Three classes: fair decisions beyond yes and no
===============================================

Applicants get a loan, a smaller loan or no loan. The rule applies to each of the three classes: the
shares of women and men in it may differ by at most 5 percentage points.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import RandomForestClassifier

from skfair.classification import FairDecisionClassifier

rng = np.random.default_rng(0)
sex = rng.choice(["women", "men"], 3000)
X = rng.normal(size=(3000, 4)) + (sex == "men")[:, None] * [0.7, 0.3, 0.0, 0.0]
merit = X[:, 0] + X[:, 1] + 0.7 * rng.normal(size=3000)
y = np.select([merit > 1.2, merit > 0.2], ["loan", "small loan"], "none")

forest = RandomForestClassifier(60, min_samples_leaf=10, random_state=0)
names = ["loan", "small loan", "none"]
figure, axes = plt.subplots(2, 1, figsize=(5.2, 3.9), sharex=True, layout="constrained")
for ax, limit in zip(axes, (1.0, 0.05), strict=True):
    model = FairDecisionClassifier(forest, max_disparity=limit, group_aware=True, cv=3)
    decided = model.fit(X, y, sensitive_features=sex).train_predictions_
    left = np.zeros(2)
    for shade, name in zip(("0.25", "0.55", "0.85"), names, strict=True):
        shares = np.array([np.mean(decided[sex == who] == name) for who in ("women", "men")])
        ax.barh(["women", "men"], shares, left=left, color=shade, label=name)
        left += shares
        print(f"limit {limit}, {name}: women {shares[0]:.3f}, men {shares[1]:.3f}")
    name = "no limit" if limit == 1.0 else "at most 5 points apart"
    ax.set_title(f"{name}: accuracy {np.mean(decided == y):.2f}")
axes[1].set_xlabel("share")
figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
