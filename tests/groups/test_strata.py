"""Control features are read like sensitive features, and errors say which of the two it is."""

import numpy as np
import pandas as pd

from skfair.groups.attributes import CONTROL
from skfair.groups.encoding import encode_groups
from skfair.groups.strata import read_strata
from tests.messages import messages


def test_several_columns_are_crossed():
    frame = pd.DataFrame({"faculty": ["law", "art", "law"], "grade": [1, 1, 2]})
    codes, names, levels = read_strata(frame)
    assert names == ("faculty=art, grade=1", "faculty=law, grade=1", "faculty=law, grade=2")
    assert codes.tolist() == levels.encode(frame)[0].tolist() == [1, 0, 2]
    unnamed = read_strata(frame.to_numpy(object))
    assert unnamed.names[0] == "control_feature_0=art, control_feature_1=1"
    assert (unnamed.codes == codes).all()


def test_new_rows_are_matched_by_place_if_columns_had_no_names():
    levels = encode_groups([["law", 0], ["sales", 1]], role=CONTROL).levels
    assert levels.encode(FRAME)[0].tolist() == [1, 0]


FRAME = pd.DataFrame({"work": ["sales", "law"], "site": [1, 0]})
KNOWN, NAMED = (encode_groups(one, role=CONTROL).levels for one in ([["law", 0]], FRAME))
test_errors_name_control_features = messages(
    (
        *(ValueError, "Control attribute 'income' has 60 .* continuous"),
        lambda: read_strata(pd.Series(np.linspace(0, 1, 60), name="income")),
    ),
    (
        *(ValueError, "^Control attribute 'control_feature_0' has 1 level"),
        lambda: KNOWN.encode([["art", 0]]),
    ),
    (ValueError, "^control_features has 1 columns", lambda: KNOWN.encode(["law"])),
    (
        *(ValueError, "^control_features has no column 'site'"),
        lambda: NAMED.encode(FRAME.rename(columns={"site": "place"})),
    ),
)
