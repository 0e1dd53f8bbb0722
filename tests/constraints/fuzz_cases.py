"""Limits on rates, losses and scores: hard fits, counted by loops."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

from skfair import Sensitive
from skfair.classification import ConstrainedERMClassifier, FairDecisionClassifier
from skfair.constraints import ConditionalOn
from skfair.regression import ConstrainedERMRegressor
from tests.fuzz.hard_fits import EXACT, LIMITS, Count, Fit, Pair, weighted
from tests.fuzz.hard_rows import OFTEN_TIED, Rows, draw_rows, pick, with_numbers
from tests.naive import erm
from tests.registries import CONSTRAINT_KINDS

ON_RATES = [
    name for name, (_, what) in erm.CONSTRAINT_NAMES.items() if what not in ("loss", "score")
]
IN_REGRESSION = [
    name for name in CONSTRAINT_KINDS if "regression" in CONSTRAINT_KINDS[name]().tasks
]


@dataclass
class Limited:
    """A constraint: its name and options, its limit, and whether it holds within strata."""

    name: str
    limit: Any
    options: dict[str, Any]
    strata: np.ndarray | None
    unit: float = 1.0

    def made(self) -> Any:
        made = CONSTRAINT_KINDS[self.name](**self.options)
        own = None if isinstance(self.limit, dict) else self.limit
        if self.strata is not None:
            return ConditionalOn(made, max_disparity=own)
        return made.set_params(max_disparity=own)

    def parts(self, rows: Rows, intersectional: bool) -> list[tuple[list[np.ndarray], float]]:
        """The groups that are compared with each other, and their limit."""
        columns = rows.columns(intersectional)
        if not isinstance(self.limit, dict):
            return [(columns, self.limit)]
        limits = zip(columns, self.limit.values(), strict=True)
        return [([own], limit) for own, limit in limits if limit is not None]

    def counted(
        self, scores: Any, targets: Any, rows: Rows, intersectional: bool, loss: str = "log_loss"
    ) -> list[tuple[float, float, float]]:
        """Disparity, limit and unit, of each part."""
        reference = self.options.get("reference", "pairwise")
        comparison = self.options.get("comparison", "difference")
        more = (rows.weights, loss, comparison, self.strata)
        return [
            (erm.disparity(self.name, reference, scores, targets, columns, *more), limit, self.unit)
            for columns, limit in self.parts(rows, intersectional)
        ]


def draw_limited(
    rng: np.random.Generator, rows: Rows, names: Any, intersectional: bool, units: Any = (1, 1)
) -> Limited:
    """Draw a constraint with its limit, which may be one for each attribute.

    ``units`` are those of losses and of scores.
    """
    name, options = pick(rng, names), {}
    known = CONSTRAINT_KINDS[name]().get_params()
    if "comparison" in known and rng.random() < 0.2:
        options["comparison"] = "ratio"
    if "reference" in known and name not in erm.EXCESS and rng.random() < 0.25:
        options["reference"] = "overall"
    unit = float(units[erm.CONSTRAINT_NAMES[name][1] == "score"])
    limit: Any = unit * pick(rng, LIMITS)
    if len(rows.attributes) > 1 and not intersectional and rng.random() < 0.3:
        limit = dict(zip("abc"[: len(rows.attributes)], [limit, None, 2 * limit], strict=False))
    strata = np.array(["u", "v"])[rng.integers(0, 2, rows.n)] if rng.random() < 0.1 else None
    return Limited(name, limit, options, strata, unit)


def draw_several(
    rng: np.random.Generator, rows: Rows, names: Any, intersectional: bool, units: Any = (1, 1)
) -> tuple[list[Limited], dict[str, Any], dict[str, Any]]:
    """Draw one constraint or two; return the parameters that say so, and arguments of ``fit``."""
    drawn = [draw_limited(rng, rows, names, intersectional, units)]
    if rng.random() < 0.2 and not isinstance(drawn[0].limit, dict):
        other = draw_limited(rng, rows, names, intersectional, units)
        drawn += [] if isinstance(other.limit, dict) else [other]
    strata = [one.strata for one in drawn if one.strata is not None]
    for one in drawn:  # there is one list of them
        one.strata = strata[0] if one.strata is not None else None
    limit = drawn[0].limit if isinstance(drawn[0].limit, dict) else 0.05
    made: Any = [one.made() for one in drawn]
    settings = {"constraint": made[0] if len(made) == 1 else made, "max_disparity": limit}
    return drawn, settings, {"control_features": strata[0]} if strata else {}


def count_each(limited: list[Limited], *given: Any) -> list[tuple[float, float, float]]:
    return [part for one in limited for part in one.counted(*given)]


def summed_up(
    reported: float, found: list[tuple[float, float, float]], rounding: float = EXACT
) -> Count:
    """Compare the largest disparity with what is reported, and each with its limit."""
    counted, slack = -np.inf if found else 0.0, EXACT
    for value, _, unit in found:
        counted, slack = max((value, rounding * unit), (counted, slack))
    missed = max((value - limit - rounding * unit for value, limit, unit in found), default=0.0)
    return Count([Pair("train_disparity_", reported, counted, slack)], missed)


def erm_classifier(rng: np.random.Generator) -> Fit:
    rows, intersectional = draw_rows(rng), bool(rng.integers(2))
    names = list(erm.CONSTRAINT_NAMES)
    limited, settings, control = draw_several(rng, rows, names, intersectional)
    loss = pick(rng, ["log_loss", "log_loss", "hinge", "squared_hinge"])
    estimator = ConstrainedERMClassifier(
        **settings,
        loss=loss,
        sensitive=Sensitive(intersectional=intersectional),
        **pick(rng, [{}, {}, {}, {}, {"model": (3,), "max_iter": 20}]),
        random_state=0,
    )

    def count(model: Any) -> Count:
        scores, targets = model.decision_function(rows.X), 2 * rows.y - 1
        found = count_each(limited, scores, targets, rows, intersectional, loss)
        return summed_up(model.train_disparity_, found)

    given = weighted(rows) | control
    return Fit(estimator, rows, count, rows.y, given)


def erm_regressor(rng: np.random.Generator) -> Fit:
    rows, intersectional = with_numbers(rng, draw_rows(rng)), bool(rng.integers(2))
    loss = pick(rng, ["squared_error", "squared_error", "absolute_error"])
    unit = float(np.std(rows.y)) or 1.0
    units = unit**2 if loss == "squared_error" else unit, unit
    limited, settings, control = draw_several(rng, rows, IN_REGRESSION, intersectional, units)
    estimator = ConstrainedERMRegressor(
        **settings, loss=loss, sensitive=Sensitive(intersectional=intersectional), random_state=0
    )

    def count(model: Any) -> Count:
        scores = model.predict(rows.X)
        found = count_each(limited, scores, rows.y, rows, intersectional, loss)
        # Predictions far from 0 are rounded.
        rounding = max(EXACT, 1e-14 * float(np.abs(rows.y).max()) / unit)
        return summed_up(model.train_disparity_, found, rounding)

    given = weighted(rows) | control
    return Fit(estimator, rows, count, rows.y, given)


def fair_decisions(rng: np.random.Generator) -> Fit:
    n_classes = pick(rng, [2, 2, 3])
    rows = draw_rows(rng, n_classes=n_classes, ties=OFTEN_TIED)
    intersectional = bool(rng.integers(2))
    limited, settings, control = draw_several(rng, rows, ON_RATES, intersectional)
    inner = pick(
        rng,
        [LogisticRegression(), GaussianNB(), DecisionTreeClassifier(max_depth=2, random_state=0)],
    )
    is_fitted = rng.random() < 0.3
    estimator = FairDecisionClassifier(
        FrozenEstimator(inner.fit(rows.X, rows.y)) if is_fitted else inner,
        **settings,
        group_aware=pick(rng, [True, False, False]),
        cv=pick(rng, [2, 3]),
        sensitive=Sensitive(intersectional=intersectional),
        random_state=0,
    )

    def count(model: Any) -> Count:
        found = []
        for one in limited:
            for scores, targets in against_rest(one.name, model.train_predictions_, rows.y):
                found += one.counted(scores, targets, rows, intersectional)
        result = summed_up(model.train_disparity_, found)
        if is_fitted and model.is_group_aware_:  # groups that are guessed are so on folds
            known = {"sensitive_features": rows.sensitive_features} | control
            n_other = float(np.sum(model.predict(rows.X, **known) != model.train_predictions_))
            result.pairs.append(Pair("predict(X) != train_predictions_", n_other, 0.0))
        return result

    given = weighted(rows) | control
    return Fit(estimator, rows, count, rows.y, given)


def against_rest(name: str, predicted: Any, y: Any) -> list[tuple[np.ndarray, np.ndarray]]:
    """Each class against the rest, as scores and targets; right and wrong are one for all."""
    classes = np.unique(y)
    if name == "accuracy_parity" and classes.size > 2:
        return [(np.where(predicted == y, 1, -1), np.ones(len(y)))]
    wanted = classes[1:] if classes.size == 2 else classes
    return [(np.where(predicted == c, 1, -1), np.where(y == c, 1, -1)) for c in wanted]


FITS = {
    "ConstrainedERMClassifier": erm_classifier,
    "ConstrainedERMRegressor": erm_regressor,
    "FairDecisionClassifier": fair_decisions,
}
SETTINGS = {
    "ConstrainedERMClassifier": {"max_iter": 8},
    "ConstrainedERMRegressor": {"max_iter": 8},
    "FairDecisionClassifier": {"cv": 2, "max_disparity": 0.3},
    "FairDecisionRegressor": {"cv": 2, "max_disparity": 0.3},
}
