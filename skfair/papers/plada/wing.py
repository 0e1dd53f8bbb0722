"""The paper on PLADA as a wing, read by ``skfair.utils.wings``.

``NAMES`` maps each public name of this folder to the module that defines it. The names are offered
by ``skfair.papers``.
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
