"""One look for the pictures of the site: the colours of the displays, no frames."""

from benchmarks.harness import rc_params


def reset(gallery_conf, name):
    """Undo the settings that an example of the gallery made, and begin with those of the site."""
    import matplotlib.pyplot as plt

    plt.rcdefaults()
    plt.rcParams.update(rc_params())
    plt.rcParams["figure.figsize"] = (5, 3.75)  # so that letters can be read in 300 pixels of it
