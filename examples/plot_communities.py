"""
Crime in communities: predictions whose distributions are alike
===============================================================

A regressor predicts the rate of violent crimes of 1,994 communities in the United States. For
communities with many black residents it predicts far higher rates. ``FairDecisionRegressor`` moves
the predictions until the distributions of both kinds of communities differ as little as we ask for.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.metrics import mean_squared_error
from sklearn.model_selection import train_test_split

from skfair.datasets import load_local
from skfair.inspection import GroupScoreDisplay
from skfair.metrics import wasserstein_gap
from skfair.regression import FairDecisionRegressor

# ``fetch_communities_crime()`` downloads it. Here it lies in the folder that SKFAIR_DATA names.
data = load_local("communities_crime")
rate = data.frame["ViolentCrimesPerPop"]
kind = np.where(data.frame["racepctblack"] >= data.frame["racepctblack"].median(), "more", "fewer")
X = data.data.select_dtypes("number").drop(columns=["ViolentCrimesPerPop"], errors="ignore")
X, X_new, y, y_new, kind, kind_new = train_test_split(X, rate, kind, random_state=0)
trees = HistGradientBoostingRegressor(max_iter=60, random_state=0)
plain = trees.fit(X, y).predict(X_new)

# %%
# From no limit to nearly equal distributions
# -------------------------------------------
# A smaller limit on the distance of the distributions (their Wasserstein distance) costs accuracy.
fig, axes = plt.subplots(1, 3, figsize=(10, 3), sharey=True, layout="constrained")
predictions = {"no limit": plain}
for limit in (0.1, 0.02):
    model = FairDecisionRegressor(trees, "wasserstein", limit, group_aware=True)
    model.fit(X, y, sensitive_features=kind)
    predictions[f"limit {limit}"] = model.predict(X_new, sensitive_features=kind_new)
for ax, (name, predicted) in zip(axes, predictions.items(), strict=True):
    GroupScoreDisplay.from_predictions(y_new, predicted, sensitive_features=kind_new, ax=ax)
    gap = wasserstein_gap(None, predicted, sensitive_features=kind_new)
    error = mean_squared_error(y_new, predicted) ** 0.5
    ax.set_title(f"{name}: distance {gap:.2f}, error {error:.2f}", fontsize=10)
    ax.set_xlabel("predicted rate of violent crimes")
