"""The paper on VFairKM as a wing, read by ``skfair.utils.wings``.

``NAMES`` maps each public name of this folder to the module that defines it. The names are offered
by ``skfair.papers``.
"""

NAMES = {
    "skfair.papers": {
        "Variational": "variational",
    },
}
