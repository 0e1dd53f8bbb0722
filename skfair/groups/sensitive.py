"""The parameter ``sensitive=``: columns of sensitive attributes, and groups made of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Integral
from typing import Literal, TypeAlias

from skfair._typing import ColumnNames
from skfair.utils.text import settings_repr


@dataclass(frozen=True, repr=False)
class Sensitive:
    """What an estimator does with sensitive attributes.

    Estimators take the names of columns, ``sensitive="sex"``, or such an object. It says where the
    attributes are, never whether decisions depend on them: that is ``group_aware=``.

    Parameters
    ----------
    columns : str, int or list of them, default=None
        Columns of X that hold the attributes. None if they are passed to ``fit``.
    crossed : bool, default=True
        Whether several attributes are crossed, or limited one by one (their groups overlap).
    keep : bool, default=False
        Whether the model gets these columns, too.
    within : str, int or list of them, default=None
        Columns of X that hold control features, such as the department, for constraints within
        their levels.
    probabilities : bool, default=False
        Whether the columns hold the probability of each group, as in
        :class:`skfair.GroupProbabilities`, not the groups themselves.
    missing : {"raise", "loss"}, default="raise"
        What is done with rows whose group is missing (None, NaN or NA). If "raise", a fit raises.
        If "loss", the model learns from these rows, but no limit, floor or budget counts them: the
        limits hold for the rows with a group. A row that lacks one of several attributes counts in
        none of them. A model whose predictions use the group averages over the groups for such
        rows. Metrics raise for missing groups, so drop the rows without one to check the limits.

    See Also
    --------
    skfair.Certificate : What limits for the population ask for.

    Examples
    --------
    >>> from skfair import Sensitive
    >>> from skfair.classification import ConstrainedERMClassifier
    >>> ConstrainedERMClassifier(sensitive=Sensitive(["sex", "age"], crossed=False))
    ConstrainedERMClassifier(sensitive=Sensitive(['sex', 'age'], crossed=False))
    """

    columns: ColumnNames | None = None
    crossed: bool = True
    keep: bool = False
    within: ColumnNames | None = None
    probabilities: bool = False
    missing: Literal["raise", "loss"] = "raise"

    def __post_init__(self) -> None:
        for name in ("crossed", "keep", "probabilities"):
            if not isinstance(getattr(self, name), bool):
                raise TypeError(f"{name} must be True or False, got {getattr(self, name)!r}.")
        if self.missing not in ("raise", "loss"):
            raise ValueError(f"missing must be 'raise' or 'loss', got {self.missing!r}.")
        for name in ("columns", "within"):
            value = getattr(self, name)
            if value is not None and not isinstance(value, str | Integral | Iterable):
                raise TypeError(f"{name} must be a name, a position or a list, got {value!r}.")

    def __repr__(self) -> str:
        return settings_repr(self)


# What estimators take as ``sensitive``.
SensitiveLike: TypeAlias = ColumnNames | Sensitive | None


def read_sensitive(sensitive: SensitiveLike) -> Sensitive:
    """Return what was given as an object."""
    return sensitive if isinstance(sensitive, Sensitive) else Sensitive(sensitive)


def sensitive_of(estimator: object) -> Sensitive:
    """Return what any estimator says of sensitive attributes; nothing of one of another package."""
    return read_sensitive(getattr(estimator, "sensitive", None))
