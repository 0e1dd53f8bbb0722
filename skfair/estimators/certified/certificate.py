"""The parameter ``confidence=``: certified limits and their options."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar, Literal, TypeAlias, cast, get_args

import numpy as np
from sklearn.utils._param_validation import Interval

from skfair._typing import Seed
from skfair.utils.text import settings_repr
from skfair.utils.validation import check_number, check_probability

Way: TypeAlias = Literal["auto", "cross", "split"]
# Limits of the steps of a walk, as shares of those that are asked for. With 8 steps the means of
# models of folds lose .004 of r2 (+- .002, 50 fits).
SHARES = np.linspace(0.05, 1.0, 11).tolist()
NOT_LAZY = (
    "confidence= is for rows in memory: Dask collections are not divided into parts. Fit without "
    "it, and test with skfair.metrics.disparity_test, which reads them."
)


@dataclass(frozen=True, repr=False)
class Certificate:
    """How a limit is certified for the population.

    Estimators take a number, ``confidence=0.95``, or such an object.

    Parameters
    ----------
    confidence : float, default=0.95
        Confidence level of the certificate, for the population that the rows are drawn from.
    by : {"auto", "cross", "split"}, default="auto"
        "cross" finds multipliers for the decisions of models that are fitted on folds, which uses
        all rows twice: for linear scores, the log loss and constraints on differences or ratios of
        rates. "split" trains on one part of the rows and judges on the other. "auto" is "cross"
        where that is possible. Estimators that know one way only take "auto".
    share : float, default=0.5
        Share of the rows that judge, of each group (and class, if there are classes), where rows
        are split.
    shift : float, default=0.0
        Share of each group (and class) that may be replaced by any other people, with the limits
        still satisfied. Of means it costs that share of the range of the predictions, which the
        others must not leave; within an interval that share over the length of the interval, or
        twice as much for constraints other than "statistical_parity".

    See Also
    --------
    skfair.Sensitive : Where the sensitive attributes are.

    Notes
    -----
    The unit of a certificate is a person. If people have several rows, such as visits or monthly
    records, say with ``fit(..., groups=)`` which rows belong together. The rows of a person are
    then all fitted on or all judged by, and count as many independent rows as have the same
    cluster-robust variance. Without ``groups`` every row is taken for another person, and with ten
    similar rows a person the limit was exceeded in 20 of 50 certified fits.

    Examples
    --------
    >>> from skfair import Certificate
    >>> from skfair.regression import ConstrainedERMRegressor
    >>> ConstrainedERMRegressor(confidence=Certificate(0.9, shift=0.01))
    ConstrainedERMRegressor(confidence=Certificate(0.9, shift=0.01))
    """

    confidence: float = 0.95
    by: Way = "auto"
    share: float = 0.5
    shift: float = 0.0

    def __post_init__(self) -> None:
        check_probability(self.confidence, "confidence")
        if self.by not in get_args(Way):
            raise ValueError(f"by must be 'auto', 'cross' or 'split', got {self.by!r}.")
        check_probability(self.share, "share")
        check_number(self.shift, "shift", 0, 1)
        if self.shift == 1:
            raise ValueError("shift=1 would replace everybody. Pass a share below 1.")

    def __repr__(self) -> str:
        return settings_repr(self)


def check_no_floors(min_rate: Any, selection_rate: Any, has_paths: bool) -> None:
    """Raise for limits that hold on the training rows only, and shares that no path can have."""
    if min_rate is not None:
        raise ValueError(
            "confidence= does not go together with min_rate, which holds on the training rows "
            "only. Set it to None."
        )
    if selection_rate is not None and (not has_paths or isinstance(selection_rate, Mapping)):
        raise ValueError(
            "confidence= goes together with selection_rate where thresholds are set on the "
            f"probabilities of two classes, not here; got selection_rate={selection_rate!r}. Use "
            "FairDecisionClassifier with a number, a pair (low, high) or 'as before', or set it to "
            "None."
        )


class Certified:
    """An estimator whose limits can be certified for unseen data.

    Attributes
    ----------
    certified_disparity_, certified_disparities_, p_value_, p_values_ : float, dict, float, dict
        With ``confidence``: the smallest limit that can be shown for the population, and how likely
        such data are at most if the limit is exceeded there.
    path_ : dict of str to ndarray
        Accuracy, disparity and bound of each step of the certificate.
    """

    __metadata_request__fit = {"groups": True}

    confidence: float | Certificate | None
    constraint: Any
    max_disparity: Any
    random_state: Seed
    get_params: Callable[..., dict[str, Any]]
    _CERTIFICATE: ClassVar = (
        *("p_value_", "p_values_"),
        *("certified_disparity_", "certified_disparities_", "path_", "_reason"),
    )
    _confidence_constraints: ClassVar[dict[str, Any]] = {
        "confidence": [Interval(Real, 0, 1, closed="neither"), Certificate, None],
    }

    def _certificate(self) -> Certificate:
        asked = self.confidence
        return asked if isinstance(asked, Certificate) else Certificate(cast(float, asked))

    def _forget(self, *names: str) -> None:
        """Forget the certificate of an earlier fit, and other fitted attributes."""
        for name in (*self._CERTIFICATE, *names):
            self.__dict__.pop(name, None)
