"""The decorator ``documented``, which completes the docstrings of constraints.

Registered constraints of :mod:`skfair.constraints` are decorated with it. The docstring of a class
describes only what is special about the constraint. ``@documented`` adds the name of the metric,
what takes the constraint, an example, and the parameters that many constraints share.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TypeVar

from skfair.constraints.base import Constraint
from skfair.utils.docs import documenter

ConstraintType = TypeVar("ConstraintType", bound=type[Constraint])

# Adds the descriptions of these parameters to constraints that take but do not describe them.
_with_parameters = documenter(
    {
        "comparison": """comparison : {"difference", "ratio"}, default="difference"
    Whether the limit applies to the difference of two rates, or to 1 minus the smaller rate over
    the larger one.""",
        "min_ratio": """min_ratio : float, default=None
    The smallest ratio of two rates that is allowed, such as 0.8 for the four-fifths rule. It
    replaces ``comparison`` and ``max_disparity``.""",
    }
)


# The example of every constraint. If the constraint can be used for classification, a classifier is
# fitted, and ``classes`` makes two classes of the target. Otherwise a regressor is fitted, which
# takes the constraint by keyword (``passed``).
_EXAMPLE = """

See Also
--------
{see_also}

Examples
--------
>>> import numpy as np
>>> from {package} import {estimator}
>>> from skfair.constraints import {name}
>>> rng = np.random.default_rng(0)
>>> sex = rng.choice(["f", "m"], 500, p=[0.3, 0.7])
>>> X = rng.normal(size=(500, 3)) + (sex == "m")[:, None] * [1, 0, 0]
>>> y = X[:, 0] + np.where(sex == "m", X[:, 1], X[:, 2]) + rng.normal(size=500){classes}
>>> for limit in ({loose}, {limit}):
...     model = {estimator}({passed}{name}(limit))
...     model = model.fit(X, y, sensitive_features=sex)
...     print(f"limit {{limit}}: disparity {{model.train_disparity_:.2f}}")
limit {loose}: disparity {before}
limit {limit}: disparity {after}"""


def documented(
    *,
    before: str,  # disparity that the example prints under the limit ``loose``
    after: str,  # disparity that the example prints under ``limit``
    loose: float = 1.0,
    limit: float = 0.05,
) -> Callable[[ConstraintType], ConstraintType]:
    """Return a decorator that adds to the docstring of a constraint its metric and an example.

    Parameters that the class takes but does not describe are added, too.
    """

    def document(kind: ConstraintType) -> ConstraintType:
        name, metric = kind.__name__, kind().metric
        measured = (
            f"\n\nThe disparity is measured by :func:`skfair.metrics.{metric}`." if metric else ""
        )
        of_classes = "classification" in kind().tasks
        example = _EXAMPLE.format(
            package="skfair.classification" if of_classes else "skfair.regression",
            estimator="ConstrainedERMClassifier" if of_classes else "FairDecisionRegressor",
            passed="" if of_classes else "constraint=",
            classes=" > 0.5" if of_classes else "",
            name=name,
            before=before,
            after=after,
            loose=loose,
            limit=limit,
            see_also="\n".join(_see_also(kind())),
        )
        kind.__doc__ = inspect.cleandoc(kind.__doc__ or "") + measured + example
        return _with_parameters(kind)

    return document


def _see_also(made: Constraint) -> list[str]:
    """Return the lines of the section "See Also": the metric, and estimators that take it."""
    lines = [f"skfair.metrics.{made.metric} : Measures the disparity."] if made.metric else []
    are_rates = made.tasks.isdisjoint({"regression", "predictions"})  # of decisions
    if are_rates:
        lines.append("skfair.classification.FairDecisionClassifier : Limits any model's decisions.")
    if "predictions" in made.tasks:
        lines.append("skfair.regression.FairDecisionRegressor : Limits any model's predictions.")
    for task, package in (("Classifier", "classification"), ("Regressor", "regression")):
        if package in made.tasks:
            trains = f"Trains a {task.lower()} within the limit."
            lines.append(f"skfair.{package}.ConstrainedERM{task} : {trains}")
    return lines
