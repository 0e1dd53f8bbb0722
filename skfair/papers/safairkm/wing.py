"""The algorithms of this paper, which register themselves when they are imported."""

NAMES = {
    "skfair.papers": {
        "Smooth": "smooth",
        "Swap": "swap",
        "alternating_gradient": "alternating",
    },
}
