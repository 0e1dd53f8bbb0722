"""Audits do not ask about names of groups that they were told of."""

import numpy as np
import pandas as pd
import pytest

from skfair.__main__ import main
from skfair.report import audit, audit_data
from tests.groups.test_attributes import ASKED, asked_by, sample


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
