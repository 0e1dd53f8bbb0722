"""The algorithms of this paper, which register themselves when they are imported."""

NAMES = {
    "skfair.papers": {
        "Ghost": "ghost",
        "Penalty": "penalty",
        "SGD": "sgd",
        "SSLALM": "ssl_alm",
        "SSw": "ssw",
    },
}
