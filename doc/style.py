"""One look for the pictures of the site: the colours of the displays, no frames."""

from skfair.inspection._style import PALETTE

FRAMELESS = {"axes.spines.top": False, "axes.spines.right": False}


def rc_params():
    """Return the settings of matplotlib for every picture of the site."""
    from cycler import cycler

    return {"axes.prop_cycle": cycler(color=PALETTE), **FRAMELESS}


def reset(gallery_conf, name):
    """Undo the settings that an example of the gallery made, and begin with those of the site."""
    import matplotlib.pyplot as plt

    plt.rcdefaults()
    plt.rcParams.update(rc_params())
