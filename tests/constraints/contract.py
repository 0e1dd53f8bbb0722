"""The contract of every constraint: a function that lists breaches, also of planted bad ones.

A constraint is measured by the function of ``skfair.metrics`` that it names; they share no code.
"""

import warnings

import numpy as np
from scipy.optimize import minimize

import skfair.metrics
from skfair.classification import ConstrainedERMClassifier
from skfair.enforcement.strict_evaluation import StrictEvaluation
from tests.seeds import generator
from tests.small_problems import people

ROWS = people(seed=1, n=120, n_levels=(3,))


def measured(constraint, rows, scores, is_rate=None, **options):
    """The disparity by the constraint's own metric; None where a rate is undefined."""
    if is_rate is None:
        is_rate = constraint.prepare(rows.training_rows(), 1.0).moment.is_rate
    value = getattr(skfair.metrics, constraint.metric)(
        (rows.signs > 0).astype(int),
        (scores > 0).astype(int) if is_rate else scores,
        sensitive_features=np.column_stack(rows.columns),
        intersectional=False,
        sample_weight=rows.weights,
        **constraint.metric_options("log_loss", 1),
        **({"zero_division": np.nan} if is_rate else {}),
        **options,
    )
    return None if np.isnan(value) else constraint.compared().disparity_of_metric(value)


def breaches(constraint):
    """List what a constraint does not keep of the contract."""
    if constraint.metric is None:
        return ["it names no metric"]
    if wrong := derivative_breaches(constraint):
        return wrong
    return [
        *counting_breaches(constraint),
        *weight_breaches(constraint),
        *scan_breaches(constraint),
        *fit_breaches(constraint),
    ]


def derivative_breaches(constraint):
    try:
        moment = constraint.prepare(ROWS.training_rows(), 1.0).moment
    except ValueError:  # binding checks the slope as well
        return ["its slope is not the derivative of its value"]
    scores, h = generator(0).normal(size=ROWS.signs.size), 1e-6
    found = []
    for temperature in (1.0, 4.0):
        up, down, (_, slope, curvature) = (
            moment.parts(scores + s, temperature) for s in (h, -h, 0.0)
        )
        if not np.allclose(slope, (up[0] - down[0]) / (2 * h), atol=1e-7):
            found.append("its slope is not the derivative of its value")
        if not np.allclose(curvature, (up[1] - down[1]) / (2 * h), atol=1e-6):
            found.append("its curvature is not the derivative of its slope")
    return found


def counting_breaches(constraint):
    found = []
    for seed, levels in enumerate([(2,), (4,), (3, 2)]):
        rows = people(seed, n=90, n_levels=levels, weighted=seed > 0)
        scores = generator(seed).normal(size=90)
        value = measured(constraint, rows, scores)
        own = constraint.prepare(rows.training_rows(), 1.0).disparity(scores)
        if value is not None and abs(own - value) > 1e-12:
            found.append(f"its disparity is {own:g}, that of its metric {value:g}")
    return found


def weight_breaches(constraint):
    rng = generator(0)
    times = rng.integers(1, 4, ROWS.signs.size)
    again = np.repeat(np.arange(times.size), times)
    scores = rng.normal(size=times.size)
    weighted = constraint.prepare(ROWS._replace(weights=times * 1.0).training_rows(), 1.0)
    repeated = constraint.prepare(ROWS.take(again).training_rows(), 1.0)
    one, other = (
        bound.row_values(bound.means(bound.moment.parts(z, 2.0)[0]))
        for bound, z in ((weighted, scores), (repeated, scores[again]))
    )
    return [] if np.allclose(one, other, atol=1e-12) else ["weights are not repetitions"]


def scan_breaches(constraint):
    """Compare the threshold scan with trying every cut, each measured by the metric."""
    found = []
    for seed, limit in enumerate((0.173, 0.079)):
        rows = people(seed, n=36, n_levels=(3 - seed,), weighted=seed == 1)
        bound = constraint.prepare(rows.training_rows(), limit)
        if not bound.moment.is_rate:
            return []
        scores = np.round(generator(seed).normal(size=36) + 0.5 * rows.signs, 1)
        weights = np.ones(36) if rows.weights is None else rows.weights
        strict = StrictEvaluation.of_scores([bound], rows.signs, weights / weights.sum())
        scan = strict.threshold(scores, 1e-9)
        levels = np.unique(scores)
        cuts = np.concatenate([[levels[0] - 1], (levels[1:] + levels[:-1]) / 2, [levels[-1] + 1]])
        best = -np.inf
        for cut in cuts:
            value = measured(constraint, rows, scores - cut, is_rate=True)
            if value is not None and value <= limit:
                right = (scores > cut) == (rows.signs > 0)
                best = max(best, weights @ right / weights.sum())
        own = measured(constraint, rows, scores + scan.shift, is_rate=True)
        if own is not None and abs(scan.verdict.excess - (own - limit)) > 1e-9:
            found.append(f"its scan reports {scan.verdict.excess:g}, counting {own - limit:g}")
        if best > (scan.verdict.merit if scan.verdict.is_feasible else -np.inf) + 1e-9:
            found.append(f"its scan finds {scan.verdict.merit:g}, counting {best:g}")
    return found


def fit_breaches(constraint):
    """A strict fit keeps a bound a little below what the model without it has."""
    y, groups = (ROWS.signs > 0).astype(int), ROWS.columns[0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # small groups; not converged is seen below
        loose = ConstrainedERMClassifier(constraint, 1.0).fit(ROWS.X, y, sensitive_features=groups)
        limit = max(0.9 * loose.train_disparity_, 0.0)  # a mean excess may be negative
        limit = max(limit, 0.5 * (loose.train_disparity_ + least_found(constraint, loose)))
        model = ConstrainedERMClassifier(constraint, limit).fit(
            ROWS.X, y, sensitive_features=groups
        )
    value = measured(constraint, ROWS, model.decision_function(ROWS.X))
    if value is None or value <= limit + 1e-9:
        return []
    return [f"a strict fit under {limit:g} ends at {value:g}"]


def least_found(constraint, loose):
    """The least disparity of some models: that of constant scores, or of a search from a fit.

    Equal scores have no disparity, but a limit on losses may be one that no model keeps.
    """

    def of_scores(scores):
        value = measured(constraint, ROWS, scores)
        return np.inf if value is None else value

    constant = min(of_scores(np.full(ROWS.signs.size, z)) for z in (-1.0, 1.0))
    if constant < loose.train_disparity_:
        return constant
    start = np.append(loose.coef_, loose.intercept_)
    found = minimize(lambda x: of_scores(ROWS.X @ x[:-1] + x[-1]), start, method="Nelder-Mead")
    return min(found.fun, loose.train_disparity_)
