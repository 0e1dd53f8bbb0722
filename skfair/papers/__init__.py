"""A room for each paper: its algorithms, and those that it compares with.

Names such as ``solver="plada"`` find them. Nothing else of skfair imports them, but for the
registries, when they are asked for a name that they do not know or for all names: skfair works
without this folder, and without any of its rooms.
"""

from skfair.utils.deferred import deferred
from skfair.utils.wings import names_of_wings

__getattr__, __dir__ = deferred(__name__, takes_wings=True)

__all__ = [*names_of_wings(__name__)]
