"""The distribution of disparities over queries: counted, drawn, compared."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from skfair.inspection import RankingGapDisplay
from tests.messages import messages
from tests.naive import ranking as naive
from tests.seeds import generator

pytestmark = pytest.mark.usefixtures("every_figure_is_drawn")


def sample(seed=0, n=200):
    rng = generator(seed)
    query_id = rng.integers(0, 8, n)
    query_id[0] = 8  # alone: its disparity is undefined
    return rng.integers(0, 3, n), rng.normal(size=n), query_id, rng.choice(["f", "m"], n)


class Ranker:
    def __init__(self, sensitive=None):
        self.sensitive = sensitive

    def predict(self, X):
        return X[:, 0]


GAPS = {
    "pair_error": naive.pair_error_gaps,
    "exposure": lambda y, s, q, g: naive.exposure_gaps(s, q, g),
    "rank": lambda y, s, q, g: naive.rank_gaps(s, q, g),
}


@pytest.mark.parametrize("gap", GAPS)
def test_the_curve_counts_queries(gap, legend_of):
    y, scores, query_id, groups = sample()
    display = RankingGapDisplay.from_predictions(
        y, scores, query_id=query_id, sensitive_features=groups, gap=gap, limit=0.2
    )
    gaps = sorted(v for v in GAPS[gap](y, scores, query_id, groups) if v is not None)
    x, share = display.line_.get_data()
    assert_allclose(x, [0, *gaps])
    assert_allclose(share, [count / len(gaps) for count in range(len(gaps) + 1)])
    assert display.limit_.get_xdata()[0] == 0.2
    assert legend_of(display.ax_) == [f"mean {np.mean(gaps):.3f}", "limit 0.2"]


def test_a_ranker_is_called_by_its_class(legend_of):
    y, scores, query_id, groups = sample()
    display = RankingGapDisplay.from_estimator(
        Ranker(), scores[:, None], y, query_id=query_id, sensitive_features=groups
    )
    assert legend_of(display.ax_)[0].startswith("Ranker: mean")


def test_groups_from_columns():
    y, scores, query_id, groups = sample()
    X = np.column_stack([scores, groups == "f"])
    direct, by_column, told = (
        RankingGapDisplay.from_estimator(model, X, y, query_id=query_id, **options)
        for model, options in (
            (Ranker(), {"sensitive_features": groups}),
            (Ranker(), {"sensitive": 1}),
            (Ranker(sensitive=[1]), {}),
        )
    )
    assert_allclose(by_column.gaps, direct.gaps)
    assert_allclose(told.gaps, direct.gaps)


def small(y=(0, 1) * 30, **options):
    groups = np.repeat(["a", "b", "c"], 20)
    options = {"query_id": np.arange(60) // 30, "sensitive_features": groups, **options}
    return RankingGapDisplay.from_predictions(y, np.linspace(0, 1, 60), **options)


test_messages = messages(
    (ValueError, "gap must be one of", lambda: RankingGapDisplay(gaps=[1], gap="ndcg")),
    (ValueError, "limit must be a number", lambda: RankingGapDisplay(gaps=[0.1], limit=-1)),
    (ValueError, "needs y_true", lambda: small(None)),
    (ValueError, "undefined in each of the 2 queries", lambda: small(np.ones(60))),
)
