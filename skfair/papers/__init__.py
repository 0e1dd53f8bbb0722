"""A folder for each paper: its algorithms, and those that it compares with.

Names such as ``solver="plada"`` find them. Nothing else of skfair imports them, except the
registries, if they are asked for all names or for one that they do not know. So skfair works
without this folder, and without any folder in it.
"""

from skfair.utils.deferred import deferred
from skfair.utils.wings import names_of_wings

__getattr__, __dir__ = deferred(__name__, takes_wings=True)

__all__ = [*names_of_wings(__name__)]
