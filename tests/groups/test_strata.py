"""Control features are read like sensitive features, and errors say which of the two it is."""

import numpy as np
import pandas as pd
import pytest

from skfair.groups.attributes import CONTROL
from skfair.groups.encoding import encode_groups
from skfair.groups.strata import read_strata


def test_several_columns_are_crossed():
    frame = pd.DataFrame({"faculty": ["law", "art", "law"], "grade": [1, 1, 2]})
    codes, names, levels = read_strata(frame)
    assert names == ("faculty=art, grade=1", "faculty=law, grade=1", "faculty=law, grade=2")
    assert codes.tolist() == levels.encode(frame)[0].tolist() == [1, 0, 2]
    unnamed = read_strata(frame.to_numpy(object))
    assert unnamed.names[0] == "control_feature_0=art, control_feature_1=1"
    assert (unnamed.codes == codes).all()


def test_continuous_control_features_are_refused():
    with pytest.raises(ValueError, match=r"Control attribute 'income' has 60 .* continuous"):
        read_strata(pd.Series(np.linspace(0, 1, 60), name="income"))


def test_new_rows_are_matched_and_errors_name_control_features():
    rows = [["law", 0], ["sales", 1]]
    levels = encode_groups(rows, role=CONTROL).levels
    frame = pd.DataFrame({"work": ["sales", "law"], "site": [1, 0]})  # no names at fit: by place
    assert levels.encode(frame)[0].tolist() == [1, 0]
    with pytest.raises(ValueError, match="^Control attribute 'control_feature_0' has 1 level"):
        levels.encode([["art", 0]])
    with pytest.raises(ValueError, match="^control_features has 1 columns"):
        levels.encode(["law"])
    named = encode_groups(frame.astype(str), role=CONTROL).levels
    with pytest.raises(ValueError, match="^control_features has no column 'site'"):
        named.encode(frame.astype(str).rename(columns={"site": "place"}))
