"""
A limit that holds for new people
=================================

A limit that holds on the training rows is exceeded for new people in about half of all fits. With
``confidence=0.95`` decisions are tested on rows that were not used to find them. If no decisions
pass the test, the fit says so.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression

from skfair.classification import FairDecisionClassifier
from skfair.inspection import CertificateDisplay
from skfair.metrics import demographic_parity_difference


def people(n_rows, seed):
    """Draw applicants of two groups."""
    rng = np.random.default_rng(seed)
    group = rng.choice(["a", "b"], n_rows)
    X = rng.normal(size=(n_rows, 3)) + (group == "b")[:, None] * [0.7, 0.0, 0.0]
    return X, (X[:, 0] + X[:, 1] + rng.normal(size=n_rows) > 0.8).astype(int), group


everybody, _, their_group = people(100_000, seed=99)
X, y, group = people(3000, seed=1)
for confidence in (None, 0.95):
    model = FairDecisionClassifier(
        LogisticRegression(), max_disparity=0.1, group_aware=True, confidence=confidence
    ).fit(X, y, sensitive_features=group)
    decided = model.predict(everybody, sensitive_features=their_group)
    gap = demographic_parity_difference(None, decided, sensitive_features=their_group)
    print(f"confidence={confidence}: disparity among new people {gap:.3f}, {model.status_}")

# %%
# The path of decisions
# ---------------------
# From left to right, decisions become more accurate and their disparity grows. Each step is tested
# on rows that were not used to find it, and the search ends where the test fails for the first
# time.
display = CertificateDisplay.from_estimator(model)
plt.gcf().set_size_inches(7, 4)
