"""Audits and fairness constraints for classifiers, regressors, rankers and clusterings.

Sub-packages are imported on first use, so ``import skfair`` takes almost no time. numba, pandas and
matplotlib are loaded only when they are needed.
"""

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

from skfair._version import __version__
from skfair.utils.namesakes import warn_of_namesakes
from skfair.utils.other_names import explain_modules_of_others, missing_attribute
from skfair.utils.wings import names_of_wings

if TYPE_CHECKING:
    from skfair.estimators.certificate import Certificate
    from skfair.estimators.objective import Objective
    from skfair.groups.cohort import Cohort
    from skfair.groups.estimates import Estimate
    from skfair.groups.probabilities import GroupProbabilities
    from skfair.groups.sensitive import Sensitive

__all__ = [
    "__version__",
    "show_versions",
    "Certificate",
    "Cohort",
    "Estimate",
    "GroupProbabilities",
    "Objective",
    "Sensitive",
    "classification",
    "cluster",
    "constraints",
    "datasets",
    "exceptions",
    "export",
    "metrics",
    "model_selection",
    "models",
    "preprocessing",
    "regression",
    "solvers",
    *names_of_wings(__name__),
]
_SUBPACKAGES = tuple(__all__[8:])
# Objects that several sub-packages use, with the modules that define them.
_OBJECTS = {
    "Certificate": "skfair.estimators.certificate",
    "Cohort": "skfair.groups.cohort",
    "Estimate": "skfair.groups.estimates",
    "GroupProbabilities": "skfair.groups.probabilities",
    "Objective": "skfair.estimators.objective",
    "Sensitive": "skfair.groups.sensitive",
}


warn_of_namesakes()
explain_modules_of_others()


def __getattr__(name: str) -> Any:
    """Import a public sub-package or object when it is first used."""
    if name in (*_SUBPACKAGES, "papers"):  # papers may be missing, so it is not in __all__
        return import_module(f"skfair.{name}")
    if name in _OBJECTS:
        return getattr(import_module(_OBJECTS[name]), name)
    raise missing_attribute(__name__, name, sys._getframe(1))


def __dir__() -> list[str]:
    """List the public names, sub-packages included."""
    return sorted(__all__)


def show_versions() -> None:
    """Print the versions of skfair, of Python and of the libraries it stands on.

    Paste the output into every bug report.

    See Also
    --------
    sklearn.show_versions : The same for scikit-learn.

    Examples
    --------
    >>> import skfair
    >>> skfair.show_versions()  # doctest: +ELLIPSIS
    skfair...
    """
    from skfair.utils.versions import version_table

    print(version_table())  # noqa: T201 - it is asked to
