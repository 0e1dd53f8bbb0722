"""What is certified as a whole: models under rising limits, judged on rows that they have not seen.

A constraint that is trained into the weights cannot be priced afterwards. So the estimator itself
is fitted under a limit that is far below the one asked for, then under larger ones, and each model
is judged on other rows: it is fitted on one half and judged on the other, or (see
:mod:`skfair.estimators.certified.folds`) on folds. As the order is fixed beforehand, each may be
tested at the full level; the last one before the first failure is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from numbers import Real
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedKFold
from sklearn.utils import _safe_indexing, check_random_state
from sklearn.utils._param_validation import Interval

from skfair._typing import IntArray, Seed
from skfair.constraints.base import Constraint
from skfair.estimators.certified.certificate import SHARES, Certificate, read_certificate
from skfair.groups.attributes import take_rows
from skfair.utils.warn import unwanted, warn_user

# A proof that mostly succeeds takes this many times the rows whose bound is just at the limit.
_FOR_POWER = 1.7


class Certified:
    """An estimator whose limits can be certified for unseen data.

    Attributes
    ----------
    certified_disparity_ : float
        With ``confidence``: the smallest limit that can be shown to hold for unseen data.
    certified_disparities_ : dict of str to float
        The same of each constraint, and of each attribute that has a limit of its own; not for
        limits within an interval of ranks.
    p_value_ : float
        With ``confidence``: how likely such data are at most, if unseen data exceed a limit.
    p_values_ : dict of str to float
        The same of each constraint, and of each attribute that has a limit of its own.
    path_ : dict of str to ndarray of shape (n_steps,)
        With ``confidence``, on rows that had no part in a step: "accuracy" ("r2" of regressors),
        "selection_rate" (NaN of regressors), "disparity", "bound", "p_value" and "is_certified".
    """

    confidence: float | Certificate | None
    _CERTIFICATE: ClassVar = (
        *("p_value_", "p_values_"),
        *("certified_disparity_", "certified_disparities_", "path_"),
    )
    _confidence_constraints: ClassVar[dict[str, Any]] = {
        "confidence": [Interval(Real, 0, 1, closed="neither"), Certificate, None],
    }

    @property
    def _certificate(self) -> Certificate | None:
        return read_certificate(self.confidence)

    def _forget(self, *names: str) -> None:
        """Forget the certificate of an earlier fit, and other fitted attributes."""
        for name in (*self._CERTIFICATE, *names):
            vars(self).pop(name, None)


class Verdict(NamedTuple):
    """What the rows that judge say of a model."""

    p_value: float  # of "the disparity is the limit or more"
    disparity: float  # that was measured
    bound: float  # the smallest limit that can be shown
    quality: float  # the score of the model
    selection_rate: float  # share of the rows that are selected; NaN if nothing is selected
    is_constant: bool  # whether all rows are treated alike
    # More to report: "p_values_" and "certified_disparities_", by constraint
    by_rule: Mapping[str, object] = MappingProxyType({})


class JudgedRows(Protocol):
    """Rows to fit on and rows to judge by, and everything that belongs to them."""

    @property
    def y(self) -> Any:
        """The targets of all rows."""

    @property
    def n_judging(self) -> int:
        """Number of rows that judge."""

    def part(self, values: Any) -> Any:
        """Return what belongs to the rows that judge."""

    def path(self, estimator: Any, limits: Mapping[str, Any]) -> Iterator[Any]:
        """Yield what is judged, for each share of the limits; the shares rise up to 1.

        Limits that are missed on the rows of the fit are of no interest.
        """

    def predict(self, fitted: Any) -> NDArray[Any]:
        """Return predictions for the rows that judge, by a model that has not seen them."""

    def deployed(self, fitted: Any) -> NDArray[Any]:
        """Return predictions for the same rows by the model that is deployed."""

    def attributes(self, fitted: Any) -> dict[str, Any]:
        """Return the fitted attributes of the model."""


class Halves(NamedTuple):
    """Rows of which one part is for the fit, and the other one judges."""

    X: Any
    y: Any
    metadata: Mapping[str, Any]  # what ``fit`` takes besides: groups, strata, weights
    fitted: IntArray
    judging: IntArray

    @classmethod
    def of(
        cls,
        X: Any,
        y: Any,
        metadata: Mapping[str, Any],
        kinds: IntArray,
        seed: Seed,
        size: float = 0.5,
    ) -> Halves:
        """Divide rows by chance; of each kind, a share ``size`` judges."""
        fitted, judging = _halves(kinds, seed) if size == 0.5 else _parts(kinds, seed, size)
        used = {name: values for name, values in metadata.items() if values is not None}
        return cls(X, y, used, fitted, judging)

    def part(self, values: Any) -> Any:
        """Return what belongs to the rows that judge."""
        return None if values is None else take_rows(values, self.judging)

    @property
    def n_judging(self) -> int:
        """Number of rows that judge."""
        return self.judging.size

    def path(self, estimator: Any, limits: Mapping[str, Any]) -> Iterator[Any]:
        """Yield a model for each share of the limits, fitted on the other rows."""
        X, y, metadata = rows_of(self.X, self.y, self.metadata, self.fitted)
        for share in SHARES:
            scaled = {name: scaled_limits(value, share) for name, value in limits.items()}
            model = clone(estimator).set_params(confidence=None, **scaled)
            with unwanted(UserWarning):  # about limits that are missed on these rows
                model.fit(X, y, **metadata)
            yield model

    def predict(self, fitted: Any) -> NDArray[Any]:
        """Predict the rows that judge."""
        return np.asarray(fitted.predict(self.part(self.X)))

    def deployed(self, fitted: Any) -> NDArray[Any]:
        """Predict the same rows by what will predict: the model itself."""
        return self.predict(fitted)

    def attributes(self, fitted: Any) -> dict[str, Any]:
        """Return the fitted attributes of the model."""
        parameters = fitted.get_params(deep=False)
        return {name: value for name, value in vars(fitted).items() if name not in parameters}


def rows_of(
    X: Any, y: Any, metadata: Mapping[str, Any], rows: IntArray
) -> tuple[Any, Any, dict[str, Any]]:
    """Return some rows, their targets, and what belongs to them."""
    own = {name: take_rows(column, rows) for name, column in metadata.items()}
    return _safe_indexing(X, rows), _safe_indexing(y, rows), own


def _halves(kinds: IntArray, seed: Seed) -> tuple[IntArray, IntArray]:
    """Divide rows into halves; rows that are the only ones of their kind are taken together."""
    sizes = np.bincount(kinds)
    kinds = np.where(sizes[kinds] > 1, kinds, -1)
    if np.count_nonzero(kinds == -1) == 1:
        kinds = np.where(kinds == -1, kinds.max(), kinds)
    cut = StratifiedKFold(2, shuffle=True, random_state=seed)
    fitted, judging = next(iter(cut.split(np.zeros(kinds.size), kinds)))
    return fitted, judging


def _parts(kinds: IntArray, seed: Seed, size: float) -> tuple[IntArray, IntArray]:
    """Divide rows so that a share ``size`` of each kind judges; raise if it leaves one empty."""
    rng, sizes = check_random_state(seed), np.bincount(kinds)
    n_judging = np.diff(np.floor(size * np.cumsum(sizes) + rng.random()).astype(int), prepend=0)
    n_both = np.minimum(n_judging, sizes - n_judging)
    if (n_both[sizes > 1] == 0).any():
        least = int(sizes[(sizes > 1) & (n_both == 0)].min())
        raise ValueError(
            f"Certificate(share={size:g}) leaves rows on one side only of a cell of group and "
            f"class with {least} rows: each needs one to fit on and one to judge by. Pass a value "
            f"from {1 / least:.2g} to {1 - 1 / least:.2g}, or merge small groups."
        )
    order = rng.permutation(kinds.size)
    order = order[np.argsort(kinds[order], kind="stable")]
    rank = np.arange(kinds.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    is_judging = rank < n_judging[kinds[order]]
    return np.sort(order[~is_judging]), np.sort(order[is_judging])


def fit_under_rising_limits(
    estimator: Any,  # with the parameters ``max_disparity`` and ``confidence``; it is not changed
    rows: JudgedRows,
    # Returns the verdict on a fitted model, by the rows that judge
    judge: Callable[[Any], Verdict],
    # Parameters that hold limits: "max_disparity", and "constraint" if constraints have their own
    rules: Mapping[str, Any],
    limit: float,  # the smallest of these limits, for the warning
    confidence: float,
    quality: str = "accuracy",  # name of the score in ``path_``
) -> dict[str, Any]:
    """Fit the estimator under larger and larger limits, until one is not shown to hold."""
    models, verdicts = [], []
    for model in rows.path(estimator, rules):
        models.append(model)
        verdicts.append(judge(model))
        if verdicts[-1].p_value > 1 - confidence:
            break
    is_shown = [verdict.p_value <= 1 - confidence for verdict in verdicts]
    n_shown = sum(is_shown)
    kept = max(n_shown - 1, 0)
    is_certified = n_shown > 0 and not verdicts[kept].is_constant
    verdict = verdicts[kept]
    p_values, disparities, bounds, qualities, rates = np.array(
        [of_step[:5] for of_step in verdicts]
    ).T
    if not is_certified:
        _warn(rows, verdict, confidence, limit)
    return rows.attributes(models[kept]) | {
        "status_": "certified" if is_certified else "no_solution",
        "p_value_": verdict.p_value,
        "certified_disparity_": verdict.bound,
        **verdict.by_rule,
        "path_": {
            quality: qualities,
            "selection_rate": rates,
            "disparity": disparities,
            "bound": bounds,
            "p_value": p_values,
            "is_certified": np.array(is_shown),
        },
    }


def scaled_limits(value: Any, share: float) -> Any:
    """Return limits times a share: a number, one for each attribute, constraints with their own."""
    if isinstance(value, Constraint):
        own = {
            name: scaled_limits(limit, share)
            for name, limit in value.get_params().items()
            if name.endswith("max_disparity")
        }
        return clone(value).set_params(**own)
    if isinstance(value, Mapping):
        return {name: scaled_limits(limit, share) for name, limit in value.items()}
    if isinstance(value, list | tuple):
        return [scaled_limits(limit, share) for limit in value]
    return value if value is None or isinstance(value, str) else value * share


def _warn(rows: JudgedRows, verdict: Verdict, confidence: float, limit: float) -> None:
    n = len(rows.y)
    people = f"{n} people"
    if rows.n_judging < n:
        people += f", {rows.n_judging} of them to judge by"
    needed = n * (_FOR_POWER * (verdict.bound - verdict.disparity) / max(limit, 1e-4)) ** 2
    advice = "The rows at hand may do with a larger max_disparity or a lower confidence."
    if verdict.is_constant and verdict.p_value <= 1 - confidence:
        advice = "The models treat all rows alike, which is no solution: raise max_disparity."
    elif needed > 1.1 * n:
        advice = f"About {int(np.ceil(needed - n))} more people (with groups in the same shares) "
        advice += "are needed."
    warn_user(
        f"With {people}, no model was found of which it can be shown, at a confidence of "
        f"{confidence:g}, that it keeps max_disparity={limit:g} for unseen data: what can be shown "
        f"of the fairest one is {verdict.bound:.3g}. {advice} predict() uses it, and status_ is "
        "'no_solution'.",
        ConvergenceWarning,
    )
