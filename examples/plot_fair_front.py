"""
How much does balance cost? The front of fair k-means
=====================================================

A bank divides its applicants into segments. With plain k-means, one segment contains almost only
men. How balanced can the segments be, and what does it cost? One fit answers this for all balances.
"""

# %%
# The data
# --------
# We use the incomes and years of employment of loan applicants. Both are correlated with sex.
import matplotlib.pyplot as plt
from sklearn.preprocessing import StandardScaler

from skfair.cluster import FairKMeans, ParetoFairKMeans
from skfair.datasets import make_loans
from skfair.inspection import ClusterCompositionDisplay, FairnessFrontDisplay

X, _, sensitive = make_loans(3000, bias=4.0, missing_rate=0.0, random_state=0)
points = StandardScaler().fit_transform(X[["age", "income", "employment_years"]])
sex = sensitive["sex"]

# %%
# The front
# ---------
# Every point is a clustering. Points to the left are cheaper, points higher up are more balanced.
# Beyond the knee, a little more balance costs much more.
front = ParetoFairKMeans(5, random_state=0).fit(points, sensitive_features=sex)
print(f"{front.costs_.size} clusterings, hypervolume {front.hypervolume():.3f}")
figure, ax = plt.subplots(figsize=(5, 3.7), layout="constrained")
FairnessFrontDisplay.from_clusterings(front.costs_, front.balances_, selected=front.knee_, ax=ax)

# %%
# Two points of it
# ----------------
# The picture shows plain k-means and the cheapest clustering with 80 percent of the balance.
figure, axes = plt.subplots(1, 2, figsize=(11, 4), sharey=True, layout="constrained")
for ax, share in zip(axes, (0.0, 0.8), strict=True):
    model = front.select(min_balance=share)
    ClusterCompositionDisplay.from_labels(model.labels_, sensitive_features=sex, ax=ax)
    extra = model.inertia_ / front.costs_[0] - 1
    ax.set_title(f"At least {share:.0%} of the balance: cost +{extra:.1%}")
    print(f"balance {model.balance_:.3f}, cost +{extra:.2%}")

# %%
# A single balance
# ----------------
# If you know the balance in advance, use ``FairKMeans``. Its lower bound shows how far the
# assignment can be from the best one for its centres.
model = FairKMeans(5, min_balance=0.8, random_state=0).fit(points, sensitive_features=sex)
print(f"balance {model.balance_:.3f}, at most {model.assignment_gap_:.2%} above the cheapest")
