"""Docstrings are completed from their signature, and keep what they say themselves."""

import subprocess
import sys
from inspect import getdoc

from skfair.utils.docs import documented, documenter
from tests.public import public_packages


def test_what_a_docstring_says_itself_goes_first():
    @documenter({"x": "x : float\n    Shared.", "Returns": "y : float\n    Shared."})
    def function(x, z=1):
        """Add.

        Parameters
        ----------
        z : int, default=1
            Its own.

        Returns
        -------
        w : float
            Its own.
        """

    assert getdoc(function) == (
        "Add.\n\nParameters\n----------\nx : float\n    Shared.\nz : int, default=1\n    Its own."
        "\n\nReturns\n-------\nw : float\n    Its own."
    )


def test_parameters_and_fitted_attributes_are_taken_from_base_classes():
    class Base:
        """Base.

        Parameters
        ----------
        a, b : float
            Two numbers.

        Attributes
        ----------
        groups_ : list
            Names.
        inner : int
            Of no concern to users.
        """

        def __init__(self, a, b):
            pass

        def run(self, n):
            """Run.

            Parameters
            ----------
            n : int
                Steps.
            """

    @documented
    class Child(Base):
        """Child.

        Parameters
        ----------
        c : float
            A third one.

        Attributes
        ----------
        coef_ : list
            Weights.

        Notes
        -----
        Short.
        """

        def __init__(self, c, a, b):
            pass

        def run(self, n, extra):
            """Run further."""

        @classmethod
        def made(cls, extra):
            """Make one.

            Parameters
            ----------
            extra : str
                Another one.
            """

        def fit(self, X):
            """Fit."""

    names = "c : float\n    A third one.\na, b : float\n    Two numbers."
    notes = "Attributes\n----------\ncoef_ : list\n    Weights.\ngroups_ : list\n    Names."
    notes += "\n\nNotes\n-----\nShort."
    assert getdoc(Child) == f"Child.\n\nParameters\n----------\n{names}\n\n{notes}"
    steps = "n : int\n    Steps.\nextra : str\n    Another one."
    assert getdoc(Child.run) == f"Run further.\n\nParameters\n----------\n{steps}"
    assert "The input samples." in getdoc(Child.fit)
    assert "The fitted estimator." in getdoc(Child.fit)


def test_a_thing_without_a_docstring_stays_without():
    @documented
    def function(X):
        pass

    assert function.__doc__ is None


def test_imports_where_python_strips_docstrings():
    """Paragraphs that are shared are docstrings, which -OO takes away."""
    code = f"import {', '.join(f'skfair.{name}' for name in public_packages())}"
    subprocess.run([sys.executable, "-OO", "-c", code], check=True)
