"""A folder for each paper: its algorithms, and the algorithms that it compares with.

Users choose an algorithm by name, such as ``solver="plada"``. Only the registries import these
folders, and only if they are asked for all names or for an unknown one. So skfair works without
this folder, and without any folder in it.
"""

from skfair.utils.deferred import deferred
from skfair.utils.wings import names_of_wings

__getattr__, __dir__ = deferred(__name__)

__all__ = [*names_of_wings(__name__)]
