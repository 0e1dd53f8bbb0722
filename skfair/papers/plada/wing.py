"""The paper on PLADA as a wing, read by ``skfair.utils.wings``.

``NAMES`` are the names that it adds to ``skfair.papers``, with the module of this folder that has
each.
"""

NAMES = {
    "skfair.papers": {
        "IPPConEx": "ipp_conex",
        "IPPSSG": "ipp_ssg",
        "MultiplierModel": "multiplier_model",
        "Plada": "plada",
        "PladaStochastic": "plada_stochastic",
        "SSG": "ssg",
    },
}
