"""The algorithms of this paper, which register themselves when they are imported."""

NAMES = {
    "skfair.papers": {
        "DCPenalty": "dc_penalty",
        "DCSSG": "dc_ssg",
        "IDCA": "idca",
        "IDCAStochastic": "idca_stochastic",
    },
}
