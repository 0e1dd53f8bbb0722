"""
Incomes in the census: boosted trees with a limit for each attribute
====================================================================

Boosted trees predict who earns more than 50,000 dollars, from the census of 1994 (the Adult data).
The shares of women and men who are predicted to may differ by 10 percentage points, and so may the
shares of white people and others. The trees do not change: only the decisions are adjusted.
"""

import matplotlib.pyplot as plt
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import train_test_split

from skfair import Sensitive
from skfair.classification import FairDecisionClassifier
from skfair.datasets import load_local
from skfair.metrics import group_report

# ``fetch_adult()`` downloads the table. Here it lies in the folder that SKFAIR_DATA names.
census = load_local("adult")
X = census.data.drop(columns=["fnlwgt", "sex", "race", "relationship"])
people = census.sensitive_features[["sex", "race_white"]].astype(str)
people["race"] = people.pop("race_white").map({"race == 'White'": "white"}).fillna("other")
X, X_new, y, y_new, people, people_new = train_test_split(X, census.target, people, random_state=0)
trees = HistGradientBoostingClassifier(max_iter=60, random_state=0)
limited = FairDecisionClassifier(
    trees,
    max_disparity={"sex": 0.1, "race": 0.1},
    sensitive=Sensitive(intersectional=False),
    random_state=0,
).fit(X, y, sensitive_features=people)
print(limited.summary_)

# %%
# These are the rates of new people, before and after. They differ from the training rows by chance,
# so a disparity can be a little above the limit.
fig, ax = plt.subplots(figsize=(5.8, 3.2), layout="constrained")
before, after = (
    group_report(y_new, model.predict(X_new), sensitive_features=people_new, intersectional=False)
    for model in (trees.fit(X, y), limited)
)
shown = pd.DataFrame({"no limit": before["selection_rate"], "limited": after["selection_rate"]})
groups = shown.drop("overall")
ax.hlines(groups.index, groups["no limit"], groups["limited"], color="0.8", lw=4)
for name, colour in {"no limit": "white", "limited": "C0"}.items():
    ax.scatter(groups[name], groups.index, s=70, fc=colour, ec="C0", zorder=3, label=name)
ax.set(xlabel="share predicted to earn more than 50,000 dollars", xlim=(0, None), ylim=(3.5, -0.5))
right, right_after = before["accuracy"].iloc[-1], after["accuracy"].iloc[-1]
ax.set_title(f"accuracy {right:.1%} with no limit, {right_after:.1%} limited")
fig.legend(loc="outside lower center", ncols=2)
print(shown.round(3))
