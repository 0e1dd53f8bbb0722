"""The paper that compares stochastic methods as a wing, read by ``skfair.utils.wings``.

``NAMES`` maps each public name of this folder to the module that defines it. The names are offered
by ``skfair.papers``.
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
