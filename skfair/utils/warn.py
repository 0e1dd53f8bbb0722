"""Warnings that point at the line of the user, however many layers lie in between."""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path

import joblib
import sklearn

# Frames in these folders are not the user's. A folder ends with a separator, for a script of the
# user's may lie beside it and begin with its name.
_ROOTS = tuple(
    str(folder) + os.sep
    for folder in (
        Path(__file__).parents[1],
        *(Path(str(module.__file__)).parent for module in (sklearn, joblib)),
    )
)


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn as if from the innermost line outside this package and scikit-learn.

    Parameters
    ----------
    message : str
        What is wrong, what was received, what to do.
    category : type, default=UserWarning
        The kind of warning.
    """
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_ROOTS):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
