"""The parameter ``sensitive=``: columns of sensitive attributes, and groups made of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Integral
from typing import Literal, TypeAlias

from skfair._typing import ColumnNames
from skfair.utils.keywords import NamedArguments
from skfair.utils.text import settings_repr


@dataclass(frozen=True, repr=False)
class Sensitive(NamedArguments):
    """Options of the sensitive attributes of an estimator.

    Pass the name of a column (``sensitive="sex"``) to an estimator, or a ``Sensitive`` to set more
    options. They define where the attributes are and how groups are made of them. Whether decisions
    may depend on the group is set by ``group_aware`` of the estimator.

    Parameters
    ----------
    columns : str, int or list of them, default=None
        Names or positions of the columns of X that hold the attributes. In a pipeline, positions
        refer to the columns that this step receives. If None, the attributes are passed to ``fit``
        as ``sensitive_features``.
    intersectional : bool, default=True
        If True, the groups are the intersections of all attributes. If False, limits hold for the
        groups of each attribute separately.
    keep : bool, default=False
        If True, the model also uses these columns as features. If False, they are kept out of the
        model.
    control_features : str, int or list of them, default=None
        Names or positions of the columns of X that hold control features, such as the department.
        Constraints then hold within each of their levels.
    probabilities : bool, default=False
        If True, the columns hold the probability of each group, as in
        :class:`skfair.GroupProbabilities`. If False, they hold the groups.
    missing : {"raise", "loss"}, default="raise"
        Treatment of rows whose group is missing (None, NaN or NA).

        - "raise": ``fit`` raises an error.
        - "loss": The model learns from these rows, but limits, minimum rates and selection rates do
          not count them, so these hold for the rows with a group. A row without the value of one
          of several attributes counts as a row without any group. If predictions use the group,
          they average over the groups for such rows.

        Metrics raise an error for missing groups, so drop the rows without a group to check the
        limits.

    See Also
    --------
    skfair.Certificate : Options of limits that are certified for the population.

    Examples
    --------
    Two attributes are limited separately, so the groups are two sexes and two age groups instead
    of their four intersections.

    >>> import pandas as pd
    >>> from skfair import Sensitive
    >>> from skfair.classification import ConstrainedERMClassifier
    >>> X = pd.DataFrame({"sex": ["f", "m"] * 60, "age": (["old"] + ["young"] * 2) * 40})
    >>> X["income"], y = range(120), [0] * 60 + [1] * 60
    >>> model = ConstrainedERMClassifier(sensitive=Sensitive(["sex", "age"], intersectional=False))
    >>> model.fit(X, y).groups_.tolist()
    ['sex=f', 'sex=m', 'age=old', 'age=young']
    >>> model.model_features_.tolist()
    ['income']
    """

    _elsewhere = {
        name: f"It is an argument of the estimator, FairDecisionClassifier({name}=...)."
        for name in ("unseen", "group_aware", "max_disparity", "certificate", "pos_label")
    }

    columns: ColumnNames | None = None
    intersectional: bool = True
    keep: bool = False
    control_features: ColumnNames | None = None
    probabilities: bool = False
    missing: Literal["raise", "loss"] = "raise"

    def __post_init__(self) -> None:
        for name in ("intersectional", "keep", "probabilities"):
            if not isinstance(getattr(self, name), bool):
                raise TypeError(f"{name} must be True or False, got {getattr(self, name)!r}.")
        if self.missing not in ("raise", "loss"):
            raise ValueError(f"missing must be 'raise' or 'loss', got {self.missing!r}.")
        for name in ("columns", "control_features"):
            value = getattr(self, name)
            if value is not None and not isinstance(value, str | Integral | Iterable):
                raise TypeError(f"{name} must be a name, a position or a list, got {value!r}.")

    def __repr__(self) -> str:
        return settings_repr(self)


# The types that estimators accept as ``sensitive``.
SensitiveLike: TypeAlias = ColumnNames | Sensitive | None


def read_sensitive(sensitive: SensitiveLike) -> Sensitive:
    """Return the parameter ``sensitive`` as an object."""
    return sensitive if isinstance(sensitive, Sensitive) else Sensitive(sensitive)


def sensitive_of(estimator: object) -> Sensitive:
    """Return the parameter ``sensitive`` of any estimator; estimators of others name no column."""
    return read_sensitive(getattr(estimator, "sensitive", None))
