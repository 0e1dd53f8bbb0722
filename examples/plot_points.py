"""
Plain and fair k-means on a map
===============================

A city opens six youth clubs. Most people of each language group live on one side of the river, so
clubs at the centres of plain k-means would each serve mostly one group. How much farther do people
travel if every club has both?
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.spatial import ConvexHull
from sklearn.cluster import KMeans

from skfair.cluster import FairKMeans
from skfair.metrics import balance_score

# %%
# The map
# -------
# The farther from the river, the larger the share of one group.
rng = np.random.default_rng(3)
X = rng.uniform((-1.6, 0), (1.6, 4.8), (600, 2)) + rng.normal(0, 0.1, (600, 2))
is_eastern = rng.random(600) < 1 / (1 + np.exp(-3 * X[:, 0]))
language = np.where(is_eastern, "eastern", "western")

# %%
# Two clusterings
# ---------------
# The balance of a cluster is the size of its smaller group over the size of its larger one.
# ``min_balance=0.8`` asks for at least 80% of the balance of the whole city in every cluster.
models = {
    "k-means": KMeans(6, n_init=10, random_state=0).fit(X),
    "fair k-means": FairKMeans(6, min_balance=0.8, random_state=0).fit(
        X, sensitive_features=language
    ),
}
titles = {}
for name, model in models.items():
    distance = np.linalg.norm(X - model.cluster_centers_[model.labels_], axis=1).mean()
    titles[name] = f"{name}\nmean distance {distance:.2f} km"
    balance = balance_score(model.labels_, sensitive_features=language, relative=True)
    print(f"{name:<12} smallest balance {balance:.2f}, mean distance {distance:.2f} km")

# %%
# The picture
# -----------
# An outline surrounds the people of each cluster. The bar at its centre shows the shares of the two
# groups.
COLOURS = {"western": "#0072B2", "eastern": "#E69F00"}


def draw(ax, model, title):
    """Draw the people, and an outline and a bar of shares for each cluster."""
    for name, colour in COLOURS.items():
        ax.scatter(*X[language == name].T, s=20, color=colour, alpha=0.6, lw=0)
    for cluster, (x, y) in enumerate(model.cluster_centers_):
        members = model.labels_ == cluster
        hull = X[members][ConvexHull(X[members]).vertices]
        ax.fill(*hull.T, facecolor="0.3", alpha=0.06)
        ax.fill(*hull.T, facecolor="none", edgecolor="0.25", lw=1.2)
        left = x - 0.4
        for name, colour in COLOURS.items():
            width = 0.8 * (language[members] == name).mean()
            ax.barh(y, width, 0.22, left, color=colour, edgecolor="white", lw=1.5, zorder=3)
            left += width
    ax.set(title=title, aspect="equal", xticks=[], yticks=[])
    ax.spines[:].set_visible(False)


figure, panels = plt.subplots(1, 2, figsize=(7, 5.7), layout="compressed")
for ax, (name, model) in zip(panels, models.items(), strict=True):
    draw(ax, model, titles[name])
