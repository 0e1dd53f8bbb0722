"""
Ranks and intervals: where do scores differ?
============================================

A disparity between groups can lie at the top of a ranking, in the middle or at the bottom. An
interval of ranks is counted from the top of each group: ``(0, 0.2)`` is the best fifth of each.
"""

from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression

from skfair.datasets import make_loans
from skfair.inspection import GroupScoreDisplay
from skfair.metrics import noise_floor, partial_ccdf_gap

X, y, people = make_loans(6000, bias=2.0, missing_rate=0.0, random_state=0)
X, sex = X.select_dtypes("number"), people["sex"]
model = LogisticRegression(max_iter=2000).fit(X, y)
scores = model.decision_function(X)

# %%
# Five intervals
# --------------
# The value is the largest difference of selection rates over all thresholds in this range. Bars
# below the dot are not evidence of a difference.
edges = np.linspace(0, 1, 6)
intervals = [(float(low), float(high)) for low, high in pairwise(edges)]
options = {"sensitive_features": sex}
values = [partial_ccdf_gap(None, scores, interval=i, **options) for i in intervals]
floors = [
    noise_floor(partial_ccdf_gap, None, scores, interval=i, random_state=0, **options).upper
    for i in intervals
]
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.4), layout="constrained")
left.bar(range(5), values)
left.plot(range(5), floors, "ko", label="largest by chance, 95%")
left.set_xticks(range(5), [f"{low:.0%} to {high:.0%}" for low, high in intervals], rotation=20)
left.set(xlabel="ranks, from the top of each group", ylabel="CCDF gap", ylim=(0, 0.2))
left.legend()
GroupScoreDisplay.from_predictions(
    None, scores, sensitive_features=sex, interval=(0.0, 0.2), ax=right
)
