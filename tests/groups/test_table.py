"""Tables of parts of a sample add up to that of the whole, whatever is compared."""

import numpy as np
import pandas as pd
import pytest

from skfair.groups.measured_rows import MeasuredRows
from tests.seeds import generator

RATES = ("selection_rate", "true_positive_rate")


@pytest.mark.parametrize("is_weighted", [False, True])
@pytest.mark.parametrize("is_crossed", [False, True])
@pytest.mark.parametrize("has_strata", [False, True])
def test_parts_add_up(is_weighted, is_crossed, has_strata):
    rng = generator(0)
    y_true, y_pred = rng.integers(0, 2, (2, 600))
    people = pd.DataFrame({name: rng.choice(list("abc"), 600) for name in ("x", "y", "stratum")})
    weights = rng.uniform(0.1, 3, 600) if is_weighted else None

    def table(rows):
        own = people.iloc[rows]
        strata = own["stratum"] if has_strata else None
        who = own[["x", "y"]], strata, weights if weights is None else weights[rows], is_crossed
        return MeasuredRows.of_labels(y_true[rows], y_pred[rows], *who, pos_label=1).table()

    whole = table(slice(None))
    parts = table(slice(0, 200)) + table(slice(200, 210)) + table(slice(210, 600))
    added = parts.compared(["group"], whole.within)
    for kind, reference in (("difference", "pairwise"), ("ratio", "overall"), ("total", "overall")):
        asked = kind, RATES, reference
        assert added.compare(*asked) == pytest.approx(whole.compare(*asked), rel=1e-12)
    for rate in RATES:
        sizes, expected = (np.sort(own.means(rate).n_effective) for own in (added, whole))
        assert sizes == pytest.approx(expected, rel=1e-12)
    with pytest.raises(TypeError, match="says by compared"):
        parts.compare("difference", RATES)
