"""The paper on fair_spectral_dc as a wing, read by ``skfair.utils.wings``.

``NAMES`` maps each public name of this folder to the module that defines it. The names are offered
by ``skfair.papers``.
"""

NAMES = {
    "skfair.papers": {
        "DCADMM": "dc_admm",
        "FFSC": "ffsc",
        "UFSC": "ufsc",
    },
}
