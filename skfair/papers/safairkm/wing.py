"""The paper on SAfairKM as a wing, read by ``skfair.utils.wings``.

``NAMES`` maps each public name of this folder to the module that defines it. The names are offered
by ``skfair.papers``.
"""

NAMES = {
    "skfair.papers": {
        "Smooth": "smooth",
        "Swap": "swap",
        "alternating_gradient": "alternating",
    },
}
