"""The reader of ACSIncome, on a file of the survey's shape; on the real one where it is there."""

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from skfair.datasets import load_local

FEATURES = ["AGEP", "COW", "SCHL", "MAR", "OCCP", "POBP", "RELP", "WKHP", "SEX"]


def person_file(folder, n=500, seed=0, **changed):
    """Write a file with the columns that are read, others between them, and missing answers."""
    rng = np.random.default_rng(seed)
    ranges = {
        "RT": (1, 2), "AGEP": (0, 95), "PWGTP": (0, 300), "COW": (1, 10), "SCHL": (1, 25),
        "MAR": (1, 6), "OCCP": (10, 9831), "POBP": (1, 555), "RELP": (0, 18), "WKHP": (0, 100),
        "SEX": (1, 3), "RAC1P": (1, 10), "PINCP": (-5000, 150000), "HINS1": (1, 3),
    }  # fmt: skip
    frame = pd.DataFrame({name: rng.integers(*ends, n) for name, ends in ranges.items()})
    frame = frame.astype({"WKHP": float, "OCCP": float, "PINCP": float})
    for name in ("WKHP", "OCCP", "PINCP"):
        frame.loc[rng.random(n) < 0.1, name] = np.nan
    frame = frame.assign(**changed)
    frame.to_csv(folder / "psam_p40.csv", index=False)
    return frame


def test_the_filter_target_and_groups(tmp_path):
    table = person_file(tmp_path)
    data = load_local("acs_income", tmp_path)
    kept = [
        row
        for _, row in table.iterrows()
        if row.AGEP > 16 and row.PINCP > 100 and row.WKHP > 0 and row.PWGTP >= 1
    ]
    assert len(data.data) == len(kept) > 100
    assert list(data.data.columns) == data.feature_names == FEATURES
    assert data.target.dtype == np.int64
    assert data.target.tolist() == [int(row.PINCP > 50000) for row in kept]
    names = data.sensitive_features["race_white"].tolist()
    assert names == ["white" if row.RAC1P == 1 else "other" for row in kept]
    assert data.data["OCCP"].tolist() == [-1 if np.isnan(row.OCCP) else row.OCCP for row in kept]
    assert "RAC1P" not in data.data
    X, y, groups = load_local("acs_income", tmp_path, return_X_y=True)
    assert X.equals(data.data)
    assert y.equals(data.target)
    assert groups.equals(data.sensitive_features)


def test_needs_no_index_and_says_what_is_absent(tmp_path):
    with pytest.raises(FileNotFoundError, match="does not hold 'psam_p40.csv'"):
        load_local("acs_income", tmp_path)
    person_file(tmp_path).drop(columns=["RELP"]).to_csv(tmp_path / "psam_p40.csv", index=False)
    with pytest.raises(ValueError, match="lacks the columns RELP"):
        load_local("acs_income", tmp_path)


@pytest.mark.data
def test_oklahoma():
    folder = os.environ.get("SKFAIR_DATA")
    if not folder or not (Path(folder) / "psam_p40.csv").exists():
        pytest.skip("psam_p40.csv is not in the folder of SKFAIR_DATA")
    assert len(load_local("acs_income").data) == 17_917
