"""
A certified limit: how often is it violated in the population?
==============================================================

A limit on the training rows is often violated in the population. With ``certificate=0.95``
decisions are tested on rows that were not used to find them. If no decisions pass the test, the fit
says so.
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


population, _, their_group = people(100_000, seed=99)
for confidence in (None, 0.95):
    disparities = []
    for seed in range(40):
        X, y, group = people(2000, seed)
        model = FairDecisionClassifier(
            LogisticRegression(), max_disparity=0.1, group_aware=True, certificate=confidence
        ).fit(X, y, sensitive_features=group)
        decided = model.predict(population, sensitive_features=their_group)
        disparities.append(
            demographic_parity_difference(None, decided, sensitive_features=their_group)
        )
    n_violated = sum(disparity > 0.1 for disparity in disparities)
    print(f"certificate={confidence}: {n_violated} of {len(disparities)} fits violate the limit")

# %%
# The path of decisions
# ---------------------
# Upwards, decisions become more accurate and their disparity grows. Each step is tested on rows
# that were not used to find it, and the search ends where the test fails for the first time: where
# the disparity that can be shown for the population exceeds the limit.
display = CertificateDisplay.from_estimator(model)
plt.gcf().set_size_inches(7, 4)
