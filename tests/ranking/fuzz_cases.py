"""Rankings: hard fits and arguments."""

from typing import Any

import numpy as np

from skfair import Sensitive
from skfair.ranking import FairRanker
from tests.fuzz.hard_fits import EXACT, LIMITS, Count, Fit, Pair
from tests.fuzz.hard_rows import Rows, draw_rows, pick
from tests.fuzz.parameters import options
from tests.fuzz.values import ODD_VECTORS
from tests.naive import ranking


def fair_ranker(rng: np.random.Generator) -> Fit:
    rows = draw_rows(rng, [9, 14, 24, 40, 60], 4, has_weights=False)
    intersectional = bool(rng.integers(2))
    query_id = rng.integers(0, int(rng.integers(1, 6)), rows.n)
    estimator = FairRanker(
        pick(rng, LIMITS),
        sensitive=Sensitive(intersectional=intersectional),
        query_share=pick(rng, [0.95, 1.0, 0.5]),
        max_iter=40,
        random_state=0,
    )

    def count(model: Any) -> Count:
        by_query = gaps_of_queries(rows, model.predict(rows.X), query_id, intersectional)
        known = [gap for gap in by_query if gap is not None]
        within = [gap <= model.max_disparity + EXACT for gap in known]
        share = float(np.mean(within)) if known else 1.0
        pairs = [
            Pair("train_disparity_", model.train_disparity_, max(known, default=0.0)),
            Pair("share_within_", model.share_within_, share),
        ]
        return Count(pairs, model.query_share - share - EXACT)

    return Fit(estimator, rows, count, rows.y, {"query_id": query_id})


def gaps_of_queries(rows: Rows, scores: Any, query_id: Any, intersectional: bool) -> list[Any]:
    """The gap of each query, of its worst attribute; None where none is defined."""
    by_attribute = [
        ranking.pair_error_gaps(rows.y, scores, query_id, groups)
        for groups in rows.columns(intersectional)
    ]
    of_queries = zip(*by_attribute, strict=True)
    return [max((g for g in gaps if g is not None), default=None) for gaps in of_queries]


FITS = {"FairRanker": fair_ranker}
SETTINGS = {"FairRanker": {"max_iter": 8}}
ARGUMENTS = {
    "query_id": (lambda s: np.arange(s.n) % 3, ODD_VECTORS),
    "query_column": ([None], [0, "sex", [0], 99, -1]),
    **{
        f"{name}.agg": (["mean", "median", "worst", 0.9], [-0.1, 1.5, True, "max"])
        for name in ("pair_error_gap", "exposure_gap", "rank_gap")
    },
    "k": ([None, 3], [0, -1, 2.5, 10**6]),
    "gap": options("pair_error", "exposure", "rank"),
    **{
        f"RankingGapDisplay{maker}.limit": ([None, 0.1], [-1, "a", float("inf")])
        for maker in ("", ".from_predictions")
    },
}
