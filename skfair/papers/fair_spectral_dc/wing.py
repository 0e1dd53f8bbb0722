"""The paper on fair_spectral_dc as a wing, read by ``skfair.utils.wings``.

``NAMES`` are the names that it adds to ``skfair.papers``, with the module of this folder that has
each.
"""

NAMES = {
    "skfair.papers": {
        "DCADMM": "dc_admm",
        "FFSC": "ffsc",
        "UFSC": "ufsc",
    },
}
