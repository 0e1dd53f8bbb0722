"""The constraint group_auc without groups at prediction, on data that no test was tuned for."""

import os

import numpy as np
import pandas as pd
import pytest
from sklearn.preprocessing import StandardScaler

from skfair.classification import PartialParityClassifier
from skfair.datasets import load_local
from tests import naive
from tests.seeds import generator

pytestmark = [
    pytest.mark.data,
    pytest.mark.skipif(not os.environ.get("SKFAIR_DATA"), reason="needs the folder of data sets"),
]
INTERVAL = (0.1, 0.5)


@pytest.mark.parametrize(("bound", "first"), [(0.02, 6), (0.05, 10), (0.1, 14)])
def test_the_bound_is_kept(bound, first):
    data = load_local("compas")
    X = pd.get_dummies(data.data).to_numpy(dtype=float)
    for seed in range(first, first + 2):
        rows = generator(seed).choice(len(X), 2000, replace=False)
        Z = StandardScaler().fit_transform(X[rows][:, X[rows].std(axis=0) > 0])
        group = data.sensitive_features["sex"].iloc[rows].to_numpy().astype(str)
        y = data.target.to_numpy()[rows]
        model = PartialParityClassifier(INTERVAL, "group_auc", max_disparity=bound)
        model.fit(Z, y, sensitive_features=group)
        scores = model.decision_function(Z)
        (one, first), (other, second) = (
            (scores[here], naive.overlap_masses(scores[here], np.ones(here.sum()), [INTERVAL]))
            for here in (group == g for g in np.unique(group))
        )
        won = first @ np.heaviside(one[:, None] - other, 0.5) @ second
        assert abs(won - 0.5) <= bound + 1e-9
        assert model.score(Z, y) > 0.7
