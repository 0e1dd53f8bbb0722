"""The paper on IDCA as a wing, read by ``skfair.utils.wings``.

``NAMES`` maps each public name of this folder to the module that defines it. The names are offered
by ``skfair.papers``.
"""

NAMES = {
    "skfair.papers": {
        "DCPenalty": "dc_penalty",
        "DCSSG": "dc_ssg",
        "IDCA": "idca",
        "IDCAStochastic": "idca_stochastic",
    },
}
