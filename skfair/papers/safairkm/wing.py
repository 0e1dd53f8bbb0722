"""The paper on SAfairKM as a wing, read by ``skfair.utils.wings``.

``NAMES`` are the names that it adds to ``skfair.papers``, with the module of this folder that has
each.
"""

NAMES = {
    "skfair.papers": {
        "Smooth": "smooth",
        "Swap": "swap",
        "alternating_gradient": "alternating",
    },
}
