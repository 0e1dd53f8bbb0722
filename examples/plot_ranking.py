"""
Rankings that are fair query by query
=====================================

Documents are sorted for each query by a score that was learned from grades. In the past, one group
of documents got higher grades than it deserved. How large is the disparity of rankings that are
learned from these grades, which limit helps on new queries, and what does it cost?
"""

# %%
# The data
# --------
# We simulate 300 queries of 60 documents. A document is in the group "high" if its quality score,
# the last of 40 columns, is above the median. Half of the queries are for training.
import matplotlib.pyplot as plt
import numpy as np

from skfair.datasets import make_ranking_queries
from skfair.inspection import RankingGapDisplay
from skfair.metrics import exposure_gap, ndcg, pair_error_gap
from skfair.ranking import FairRanker

X, y, query_id, groups = make_ranking_queries(
    18_000, n_documents=60, n_features=40, n_informative=10, random_state=0
)
seen = query_id < 150
train = {"query_id": query_id[seen], "sensitive_features": groups[seen]}
new = {"query_id": query_id[~seen], "sensitive_features": groups[~seen]}
for group in ("high", "low"):
    print(f"mean grade of the group {group!r}: {y[groups == group].mean():.2f}")

# %%
# With and without a limit
# ------------------------
# A pair of documents is an error if the worse one is ranked first. The disparity of a query is the
# difference of the error rates on pairs whose better document is in one group and on pairs whose
# better document is in the other. A limit of 1 has no effect.
rankers = {}
for limit in (1.0, 0.25):
    ranker = FairRanker(max_disparity=limit, random_state=0)
    rankers[limit] = ranker.fit(X[seen], y[seen], **train)
    print(
        f"limit {limit}: {ranker.share_within_:.0%} of the training queries within, "
        f"{ranker.n_solves_} problems solved"
    )

figure, ax = plt.subplots(layout="constrained")
for limit, ranker in rankers.items():
    RankingGapDisplay.from_estimator(
        ranker, X[~seen], y[~seen], **new, name=f"limit {limit}", ax=ax
    )
ax.set_title("150 new queries")

# %%
# The documents of one query
# --------------------------
# ``rank`` returns the rank of each document. Those of the group "high" move down a little.
one = query_id == 200
figure, axes = plt.subplots(1, 2, figsize=(8, 3), sharey=True, layout="constrained")
for ax, (limit, ranker) in zip(axes, rankers.items(), strict=True):
    places = ranker.rank(X[one])
    for group, color in (("high", "C0"), ("low", "C1")):
        own = groups[one] == group
        ax.scatter(places[own], y[one][own], color=color, label=group)
    ax.set(title=f"limit {limit}", xlabel="Place")
axes[0].set_ylabel("Grade")
axes[0].legend()

# %%
# Which limit?
# ------------
# If the groups are dealt at random within each query, the same scores have a disparity by chance
# alone. Limits near that can only be kept by fitting the noise of the training queries: the quality
# falls, without a gain for new queries.
rng = np.random.default_rng(0)
order = np.lexsort((rng.random(query_id[~seen].size), query_id[~seen]))  # queries stay together
dealt = groups[~seen][order]
by_chance = pair_error_gap(
    y[~seen], rankers[1.0].predict(X[~seen]), query_id=new["query_id"], sensitive_features=dealt
)
print(f"disparity by chance: {by_chance:.2f}")
limits = (1.0, 0.5, 0.4, 0.3, 0.25, 0.2)
shown = {"disparity": [], "exposure": [], "nDCG": []}
for limit in limits:
    ranker = FairRanker(max_disparity=limit, random_state=0).fit(X[seen], y[seen], **train)
    scores = ranker.predict(X[~seen])
    shown["disparity"].append(pair_error_gap(y[~seen], scores, **new))
    shown["exposure"].append(exposure_gap(None, scores, **new))
    shown["nDCG"].append(ndcg(y[~seen], scores, **new))
    print(f"limit {limit}: " + ", ".join(f"{name} {v[-1]:.3f}" for name, v in shown.items()))

figure, axes = plt.subplots(1, 2, figsize=(8, 3), layout="constrained")
axes[0].plot(limits, shown["disparity"], "o-", label="pair errors")
axes[0].plot(limits, shown["exposure"], "s--", label="exposure")
axes[0].set(xlabel="Limit", ylabel="Mean disparity, new queries", ylim=(0, None))
axes[0].legend()
axes[1].plot(limits, shown["nDCG"], "o-")
axes[1].set(xlabel="Limit", ylabel="nDCG, new queries")
best = limits[int(np.argmin(shown["disparity"]))]
print(f"the smallest disparity on new queries is that of the limit {best}")
