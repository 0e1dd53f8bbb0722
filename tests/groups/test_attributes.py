"""Names of groups that look like missing values are asked about, once."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.cluster import KMeans

from skfair import metrics
from skfair.__main__ import main
from skfair.classification import ConstrainedERMClassifier, FairDecisionClassifier
from skfair.cluster import FairAssignment
from skfair.groups.encoding import encode_groups
from skfair.preprocessing import Reweighing
from skfair.report import audit, audit_data
from tests.seeds import generator

ASKED = "stand for missing values?"
NAMES = ["nan", "NaN", "", " ", "None", "unknown", "Unknown", "NaT", "<NA>", "null", "-999", "-1"]


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
    "audit": lambda X, y, A: audit(
        y, y, y_score=X[:, 0], sensitive_features={"a": A, "b": y}, control_features=X[:, 1] > 0,
        n_simulations=5,
    ),
    "audit_data": lambda X, y, A: audit_data(X, sensitive_features=A, y=y, n_simulations=5),
    "erm": lambda X, y, A: ConstrainedERMClassifier().fit(X, y, sensitive_features=A),
    "decisions": lambda X, y, A: FairDecisionClassifier(cv=2).fit(X, y, sensitive_features=A),
    "clusters": lambda X, y, A: FairAssignment(KMeans(2)).fit(X, sensitive_features=A),
    "reweighing": lambda X, y, A: Reweighing().fit(X, y, sensitive_features=A),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_fits_metrics_and_audits_ask_once(name):
    X, y, A = sample("nan")
    (question,) = asked_by(lambda: CALLS[name](X, y, A))
    assert "has the group 'nan' among others" in question


@pytest.mark.parametrize("odd", [*NAMES, -999, -1])
def test_every_such_name_is_asked_about(odd):
    groups = [0, 1, odd] if isinstance(odd, int) else ["0", "1", odd]
    (question,) = asked_by(lambda: encode_groups(groups))
    assert repr(odd) in question


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
    ],
)
def test_others_are_not(levels):
    assert asked_by(lambda: encode_groups(levels)) == []


def test_what_may_explain_a_difference_is_not_asked_about():
    _, y, A = sample("unknown")
    sex = np.arange(len(y)) % 2
    options = {"sensitive_features": sex, "control_features": A, "n_simulations": 5}
    assert asked_by(lambda: audit(None, y, **options)) == []


@pytest.mark.filterwarnings("always:.*stand for missing values")
@pytest.mark.parametrize("odd", ["unknown", "nan", -999])
def test_an_audit_does_not_ask_about_what_it_was_told(odd, tmp_path, capsys):
    X, y, A = sample(odd)
    given = {"sensitive_features": A, "unknown": odd, "n_simulations": 5}
    assert asked_by(lambda: audit(None, y, **given)) == []
    assert (
        asked_by(lambda: audit_data(X, sensitive_features=A, y=y, unknown=odd, n_simulations=5))
        == []
    )
    path = tmp_path / "rows.csv"
    pd.DataFrame({"y": y, "a": A}).replace({"a": {"nan": "none"}}).to_csv(path, index=False)
    name = "none" if odd == "nan" else str(odd)
    asked = ["audit", str(path), "--prediction", "y", "--sensitive", "a", "--block-rows", "100"]
    for more, n_questions in (([], 1), (["--unknown", name], 0)):
        assert main([*asked, *more]) == 0
        assert capsys.readouterr().err.count(ASKED) == n_questions
    if odd == "unknown":
        frame = pd.DataFrame({"y": y, "a": A}).replace({"a": {"unknown": None}})
        frame.to_csv(path, index=False)
        assert main([*asked, "--missing", "unknown"]) == 0
        assert ASKED not in capsys.readouterr().err
