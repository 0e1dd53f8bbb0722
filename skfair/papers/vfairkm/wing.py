"""The algorithms of this paper, which register themselves when they are imported."""

NAMES = {
    "skfair.papers": {
        "Variational": "variational",
    },
}
