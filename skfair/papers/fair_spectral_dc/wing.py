"""The algorithms of this paper, which register themselves when they are imported."""

NAMES = {
    "skfair.papers": {
        "DCADMM": "dc_admm",
        "FFSC": "ffsc",
        "UFSC": "ufsc",
    },
}
