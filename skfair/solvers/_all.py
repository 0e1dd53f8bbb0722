"""The names of ``skfair.solvers``, imported when one of them is first used."""

from skfair.solvers.erm.al_lbfgs import ALLBFGS as ALLBFGS
from skfair.solvers.erm.al_newton import ALNewton as ALNewton
from skfair.solvers.erm.alm import ALM as ALM
