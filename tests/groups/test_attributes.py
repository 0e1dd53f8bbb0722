"""Names of groups that look like missing values are asked about, once."""

import warnings

import numpy as np
import pytest
from sklearn.cluster import KMeans

from skfair import metrics
from skfair.classification import ConstrainedERMClassifier, FairDecisionClassifier
from skfair.cluster import FairAssignment
from skfair.groups.encoding import encode_groups
from skfair.preprocessing import Reweighing
from tests.families import by_families
from tests.seeds import generator

audit = pytest.importorskip("skfair.report").audit

ASKED = "stand for missing values?"
NAMES = ["nan", "NaN", "", " ", "None", "unknown", "Unknown", "NaT", "<NA>", "null", "-999", "-1"]
NAMES += ["?", "NA", "N/A", "n/a", "-", ".", "missing", "Missing", "9", "99", "999", "-9"]


def asked_by(call):
    """Return the questions that a call asks."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return [str(one.message) for one in caught if ASKED in str(one.message)]


def sample(odd, seed=0, n=600):
    rng = generator(seed)
    groups = rng.choice(np.array(["f", "m", odd], object), n, p=[0.4, 0.4, 0.2])
    X = rng.normal(size=(n, 2))
    return X, (X[:, 0] + rng.normal(size=n) > 0).astype(int), groups


CALLS = {
    "metric": lambda X, y, A: metrics.demographic_parity_difference(y, y, sensitive_features=A),
    "group_report": lambda X, y, A: metrics.group_report(y, y, sensitive_features=A),
    "fairness_report": lambda X, y, A: metrics.fairness_report(y, y, sensitive_features=A),
    "scores": lambda X, y, A: metrics.mean_score_difference(y, X[:, 0], sensitive_features=A),
    "erm": lambda X, y, A: ConstrainedERMClassifier().fit(X, y, sensitive_features=A),
    "decisions": lambda X, y, A: FairDecisionClassifier(cv=2).fit(X, y, sensitive_features=A),
    "clusters": lambda X, y, A: FairAssignment(KMeans(2)).fit(X, sensitive_features=A),
    "reweighing": lambda X, y, A: Reweighing().fit(X, y, sensitive_features=A),
    **by_families("ASKING"),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_each_way_to_read_groups_asks_once(name):
    X, y, A = sample("nan")
    (question,) = asked_by(lambda: CALLS[name](X, y, A))
    assert "has the group 'nan' among others" in question


@pytest.mark.parametrize("odd", [*NAMES, -999, -1, 9, 99, 999, -9, 9.0])
def test_every_such_name_is_asked_about(odd):
    is_number = not isinstance(odd, str)
    for others in ([0, 1], [1, 2, 3, 4, 5]) if is_number else (["0", "1"], ["f", "m"]):
        (question,) = asked_by(lambda groups=[*others, odd]: encode_groups(groups))
        assert repr(odd) in question
    assert asked_by(lambda: encode_groups([odd, odd])) == []


def test_the_remedies_for_missing_groups_run():
    """The error of an audit names ``unknown=``, and the question the level to pass to it."""
    rng = generator(0)
    sex = rng.choice(np.array(["f", "m"], object), 600)
    y = rng.integers(0, 2, 600)
    known = np.arange(600) >= 90
    lacking = np.where(known, sex, None)
    with pytest.raises(ValueError, match=r"in an audit \(unknown=numpy.nan\)"):
        audit(y, y, sensitive_features=lacking)
    apart = audit(y, y, sensitive_features=lacking, unknown=np.nan)
    named = np.where(known, sex, "?")
    (question,) = asked_by(lambda: audit(y, y, sensitive_features=named))
    assert "pass unknown='?'" in question
    assert asked_by(lambda: audit(y, y, sensitive_features=named, unknown="?")) == []
    alone = audit(y[known], y[known], sensitive_features=sex[known])
    for page in (apart, audit(y, y, sensitive_features=named, unknown="?")):
        assert page.gaps["value"].equals(alone.gaps["value"])


@pytest.mark.parametrize(
    "levels",
    [
        ["f", "m"],
        ["not stated", "f"],
        ["nan"],  # no other group
        [-1, 1],  # labels
        ["-1", "1"],
        [-2, -1, 0, 1, 2],  # a scale
        ["Nancy", "-10", "none of these"],
        [0, 1, 2],
        [0.5, 1.5],
        [1, 2, 3, 4, 5, 6, 7, 8, 9],  # codes, of which 9 is one
        ["7", "8", "9", "10", "11"],  # grades of a school
        [0, 10, 20, 30, 40, 99],  # ages
        [*range(18, 60), 99],
        [8, 9],
        [98, 99, 100],
        ["K", "7", "8", "9"],
        ["+", "-"],
        [*range(12), 99],  # many codes
    ],
)
def test_others_are_not(levels):
    assert asked_by(lambda: encode_groups(levels)) == []
