"""The parameter ``certificate=``: :class:`Certificate`, and the base of estimators that have it.

The tests of certificates are in :mod:`skfair.estimators.certified`.
"""

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
# A certificate fits models (or finds offsets) under these shares of the limits, and tests them one
# after the other, up to the first failure. With 8 shares instead of 11 the R2 of certified
# regressions is lower by 0.004 (+- 0.002, 50 fits).
SHARES = np.linspace(0.05, 1.0, 11).tolist()
NOT_LAZY = (
    "certificate= is for rows in memory: Dask collections are not divided into parts. Fit without "
    "it, and test with skfair.metrics.disparity_test, which reads them."
)


@dataclass(frozen=True, repr=False)
class Certificate:
    """Options of limits that are certified for the population.

    A limit on the training rows says little about other people from the same population, whose
    disparity exceeds it in about half of the fits. A certified limit holds for the population with
    the given confidence. Pass a number (``certificate=0.95``) to an estimator, or a ``Certificate``
    to set more options.

    Parameters
    ----------
    confidence : float, default=0.95
        Confidence level at which the limits are certified for the population that the rows are
        drawn from.
    by : {"auto", "cross", "split"}, default="auto"
        How the training rows are used.

        - "cross": The models are fitted on folds, and the limits are tested on the out-of-fold
          decisions, so all rows serve for both. This needs linear scores, and in classification
          also the log loss, no class weights, ``solver="auto"`` and ``enforce="strict"``.
        - "split": The model is fitted on one part of the rows, and the limits are tested on the
          other part.
        - "auto": "cross" is used if possible, otherwise "split". Regressors use "split" for more
          than 50,000 rows.

        Estimators with only one of the two methods require "auto".
    share : float, default=0.5
        Fraction of the rows that are used for the test if rows are split. It is the same in each
        group, and in each class if there are classes.
    shift : float, default=0.0
        Fraction of each group (and class) that people from elsewhere may make up without violating
        the limits: anybody may come, and those who were there before leave at random. This protects
        against a shift of the population, and the limits become stricter in return. It does not
        cover people who leave because of their predictions. A limit on means is tightened by about
        this fraction of the range of the predictions, and the new people must not leave this range.
        A limit within an interval is tightened by this fraction divided by the length of the
        interval, or by twice as much for constraints other than "statistical_parity".

    See Also
    --------
    skfair.Sensitive : Options of the sensitive attributes.

    Notes
    -----
    In classification, certificates are available for differences and ratios of selection rates,
    true and false positive rates, and accuracies. Decisions that are post-processed must maximise
    the accuracy, the balanced accuracy or minus the costs. In regression, certificates are
    available for "mean_score_parity" without sample weights.

    The unit of a certificate is a person. If people have several rows, such as visits or monthly
    records, use ``fit(..., units=)`` to say which rows belong together. All rows of a person are
    then used either for fitting or for the test. They count as the number of independent rows with
    the same cluster-robust variance. Without ``units`` each row is treated as a different person.
    In simulations of people with ten similar rows on average, and more for some than for others,
    the limit was then exceeded in a third of the certified fits.

    Examples
    --------
    >>> import numpy as np
    >>> from skfair import Certificate
    >>> from skfair.classification import ConstrainedERMClassifier
    >>> rng = np.random.default_rng(0)
    >>> sex = rng.choice(["f", "m"], 2000)
    >>> X = rng.normal(size=(2000, 3)) + (sex == "m")[:, None] * [1, 0, 0]
    >>> y = X[:, 0] + X[:, 1] + rng.normal(size=2000) > 0.5
    >>> model = ConstrainedERMClassifier(max_disparity=0.15, certificate=Certificate(0.9))
    >>> model = model.fit(X, y, sensitive_features=sex)
    >>> print(f"{model.status_}: at most {model.certified_disparity_:.2f} in the population")
    certified: at most 0.15 in the population
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
    """Raise if ``min_rate`` or ``selection_rate`` is given and a certificate cannot enforce it.

    ``has_paths`` is True for decisions between two classes by thresholds on probabilities, which
    can enforce a selection rate.
    """
    if min_rate is not None:
        raise ValueError(
            "certificate= does not go together with min_rate, which holds on the training rows "
            "only. Set it to None."
        )
    if selection_rate is not None and (not has_paths or isinstance(selection_rate, Mapping)):
        raise ValueError(
            f"selection_rate={selection_rate!r} does not go together with certificate= here. Set "
            "it to None, or use FairDecisionClassifier with two classes, which certifies a number, "
            "a pair (low, high) or 'as before'."
        )


class Certified:
    """An estimator whose limits can be certified for unseen data.

    Attributes
    ----------
    certified_disparity_ : float
        Upper confidence bound on the disparity in the population. With several constraints, it
        bounds the largest of their disparities. It is only available with ``certificate``.
    certified_disparities_ : dict of str to float
        Upper confidence bound on the disparity in the population, for each constraint. It is only
        available with ``certificate``.
    p_value_ : float
        p-value of the hypothesis that the population violates any limit. It is the sum of the
        p-values of all compared pairs if the gaps were closed on the tested rows (``by="cross"``),
        and the largest one if rows are split. It is only available with ``certificate``.
    p_values_ : dict of str to float
        p-value of the hypothesis that the population violates the limit, for each constraint. It is
        only available with ``certificate``.
    path_ : dict of str to ndarray
        Course of the search for a certified model, with one entry per step. The models become less
        strict from step to step. The last one before the first failed test is used; with
        ``by="cross"`` the last one at which the mean of the fold models is within the limits, too.
        The keys include "disparity", "bound", "p_value", "is_certified" and the score, such as
        "accuracy". It is only available with ``certificate``.
    """

    __metadata_request__fit = {"units": True}

    certificate: float | Certificate | None
    constraint: Any
    max_disparity: Any
    random_state: Seed
    get_params: Callable[..., dict[str, Any]]
    _CERTIFIED: ClassVar = (
        *("p_value_", "p_values_"),
        *("certified_disparity_", "certified_disparities_", "path_", "_reason"),
    )
    _certificate_constraints: ClassVar[dict[str, Any]] = {
        "certificate": [Interval(Real, 0, 1, closed="neither"), Certificate, None],
    }

    def _certificate(self) -> Certificate:
        """Return the parameter ``certificate``, which must not be None, as an object."""
        asked = self.certificate
        return asked if isinstance(asked, Certificate) else Certificate(cast(float, asked))

    def _promised(self) -> dict[str, Any]:
        """Return the attributes about limits for an estimator that predicts by this one."""
        names = "_limits", "changes_", "status_", "train_disparity_", "train_disparities_"
        return {name: getattr(self, name) for name in (*self._CERTIFIED, *names)}

    def _forget(self, *names: str) -> None:
        """Delete the attributes of the certificate of an earlier fit, and those in ``names``."""
        for name in (*self._CERTIFIED, *names):
            self.__dict__.pop(name, None)
