"""The algorithms of this paper, which register themselves when they are imported."""

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
