"""The paper that compares stochastic methods as a wing, read by ``skfair.utils.wings``.

``NAMES`` are the names that it adds to ``skfair.papers``, with the module of this folder that has
each.
"""

NAMES = {
    "skfair.papers": {
        "Ghost": "ghost",
        "Penalty": "penalty",
        "SGD": "sgd",
        "SSLALM": "ssl_alm",
        "SSw": "ssw",
    },
}
