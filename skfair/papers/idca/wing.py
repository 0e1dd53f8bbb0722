"""The paper on IDCA as a wing, read by ``skfair.utils.wings``.

``NAMES`` are the names that it adds to ``skfair.papers``, with the module of this folder that has
each.
"""

NAMES = {
    "skfair.papers": {
        "DCPenalty": "dc_penalty",
        "DCSSG": "dc_ssg",
        "IDCA": "idca",
        "IDCAStochastic": "idca_stochastic",
    },
}
