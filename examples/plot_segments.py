"""
200,000 customers in 12 segments, and a daily routine
=====================================================

A shop divides its customers into 12 segments. Each segment must have about the same shares of age
bands as all customers, and new customers are added every day.
"""

import matplotlib.pyplot as plt
import numpy as np

from skfair.cluster import FairKMeans
from skfair.inspection import ClusterCompositionDisplay
from skfair.metrics import balance_score


def customers(n_rows, seed):
    """Draw what customers buy, and their age bands."""
    rng = np.random.default_rng(seed)
    age = rng.choice(["under 30", "30 to 60", "over 60"], n_rows, p=[0.3, 0.5, 0.2])
    heaps = np.random.default_rng(0).normal(0, 3, (12, 6))[rng.integers(0, 12, n_rows)]
    return heaps + rng.normal(size=(n_rows, 6)) + 1.5 * (age == "over 60")[:, None], age


X, age = customers(200_000, seed=1)
segments = FairKMeans(12, min_balance=0.8, random_state=0).fit(X, sensitive_features=age)
balance = balance_score(segments.labels_, sensitive_features=age, relative=True)
print(f"all customers: {balance:.2f}")

# %%
# Each day the new customers are assigned as one batch. The limit holds for the batch, and its
# labels are final. ``predict`` without groups uses the nearest centre and keeps no limit.
assigned, nearest = [], []
for day in range(7):
    batch, its_age = customers(1000, seed=100 + day)
    for labels, found in (
        (segments.assign(batch, sensitive_features=its_age), assigned),
        (segments.predict(batch), nearest),
    ):
        found.append(balance_score(labels, sensitive_features=its_age, relative=True))
figure, (left, right) = plt.subplots(1, 2, figsize=(11, 3.6), layout="constrained")
ClusterCompositionDisplay.from_labels(segments.labels_, sensitive_features=age, ax=left)
left.set(xticks=range(12), xticklabels=range(12), xlabel="segment")
for values, style, name in ((assigned, "o-", "assign"), (nearest, "s--", "nearest centre")):
    (line,) = right.plot(values, style)
    right.text(6.2, values[-1], name, color=line.get_color(), va="bottom")
right.axhline(0.8, color="0.5", lw=1)
right.set(xlabel="day", ylabel="smallest balance", xlim=(-0.3, 8.5), ylim=(0, 1.02))
