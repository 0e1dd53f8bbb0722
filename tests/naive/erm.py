"""Slow twins of losses, fairness constraints and constrained risk, straight from the formulas.

A constraint is a table of comparisons with one column per person: a line times the values of
the people is the difference of two rates (or one rate, where that is what is bounded). Strict
disparities, smooth ones and the constraints of a general-purpose solver all come from that table.
Nothing here knows of cells, centres, standardised columns or pull-backs.
"""

import numpy as np
from scipy.optimize import minimize

EXACT_LOSSES = {
    "log_loss": lambda z, t: np.logaddexp(0, -t * z),
    "hinge": lambda z, t: np.maximum(0, 1 - t * z),
    "squared_hinge": lambda z, t: np.maximum(0, 1 - t * z) ** 2,
    "squared_error": lambda z, t: (z - t) ** 2,
    "absolute_error": lambda z, t: np.abs(z - t),
}


def bent(x, width):
    """max(0, x) with a parabola from 0 to ``width``, in three pieces."""
    return np.where(x <= 0, 0, np.where(x < width, x**2 / (2 * width), x - width / 2))


SMOOTH_LOSSES = {
    **EXACT_LOSSES,
    "squared_error": lambda z, t: 0.5 * (z - t) ** 2,  # half of it is minimised, all is limited
    "hinge": lambda z, t: bent(1 - t * z, 0.2),
    "absolute_error": lambda z, t: bent(z - t, 0.05) + bent(t - z, 0.05),
}


class OfEachConstraint(dict):
    """What tests know of each constraint; an error about a new one says where it belongs."""

    def __missing__(self, name):
        raise LookupError(
            f"CONSTRAINT_NAMES of tests/naive/erm.py has no line for the constraint {name!r}. Add "
            "one that says which rows count and what is averaged over them."
        )


# Each constraint: the rows that count, what is averaged over them.
CONSTRAINT_NAMES = OfEachConstraint(
    {
        "demographic_parity": ("all", "selected"),
        "equal_opportunity": ("positive", "selected"),
        "false_positive_parity": ("negative", "selected"),
        "equalized_odds": ("class", "selected"),
        "accuracy_parity": ("all", "right"),
        "loss_parity": ("all", "loss"),
        "positive_loss_parity": ("positive", "loss"),
        "class_loss_parity": ("class", "loss"),
        "bounded_group_loss": ("all", "loss"),
        "excess_loss": ("all", "loss"),
        "mean_excess_loss": ("all", "loss"),
        "mean_score_parity": ("all", "score"),
        "false_negative_parity": ("positive", "rejected"),
        "predictive_parity": ("all", "selected"),
        "bounded_selection_rate": ("all", "selected"),
        "bounded_false_positive_rate": ("negative", "selected"),
        "bounded_false_negative_rate": ("positive", "rejected"),
    }
)
BOUNDED = [name for name in CONSTRAINT_NAMES if name.startswith("bounded")]
# How far groups are above everybody: the worst, or the mean of all; below is not limited.
EXCESS = {"excess_loss": np.max, "mean_excess_loss": np.mean}
PRECISE = ["predictive_parity"]  # the share of positives among those that are counted


def strict_values(what, scores, targets, loss):
    """What a constraint averages, one person at a time."""
    value = {
        "selected": lambda z, t: float(z > 0),
        "rejected": lambda z, t: float(z <= 0),
        "right": lambda z, t: float((z > 0) == (t > 0)),
        "loss": EXACT_LOSSES[loss],
        "score": lambda z, t: z,
    }[what]
    return np.array([value(z, t) for z, t in zip(scores, targets, strict=True)])


def smooth_values(what, scores, targets, loss, temperature=1.0):
    """The differentiable stand-in, for all people at once."""
    if what == "selected":
        return 0.5 * (1 + np.tanh(temperature * scores / 2))
    if what == "rejected":
        return 0.5 * (1 - np.tanh(temperature * scores / 2))
    if what == "right":
        return 0.5 * (1 + np.tanh(temperature * np.sign(targets) * scores / 2))
    reported = 2 if loss == "squared_error" else 1
    return reported * SMOOTH_LOSSES[loss](scores, targets) if what == "loss" else scores


def shares(kept, weights):
    """The weight of each person in the mean over the kept ones."""
    total = sum(w for k, w in zip(kept, weights, strict=True) if k)
    return np.array([w / total if k else 0.0 for k, w in zip(kept, weights, strict=True)])


IN_CLASS = {
    "all": [lambda t: True],
    "positive": [lambda t: t > 0],
    "negative": [lambda t: t <= 0],
    "class": [lambda t: t <= 0, lambda t: t > 0],
}


def comparisons(given, comparison, targets, columns, weights=None, mean=shares):
    """All comparisons of a constraint, in both directions; ``columns`` are lists of group labels.

    ``mean(kept, weights)`` says with what each person enters the rate of the kept ones.
    """
    weights = np.ones(len(targets)) if weights is None else weights
    table = []
    for counts in IN_CLASS[given]:
        everybody = mean([counts(t) for t in targets], weights)
        for groups in columns:
            means = [
                mean([counts(t) and g == level for t, g in zip(targets, groups, strict=True)], w)
                for level, w in ((level, weights) for level in sorted(set(groups)))
            ]
            if comparison == "bounded":
                table += means
            elif comparison == "overall":
                table += [sign * (mean - everybody) for mean in means for sign in (1, -1)]
            elif comparison in EXCESS:
                table += [mean - everybody for mean in means if len(means) > 1]
            else:
                table += [a - b for a in means for b in means if a is not b]
    if comparison == "mean_excess_loss" and table:
        table = [np.mean(table, axis=0)]
    return np.array(table).reshape(-1, len(targets))


def precision_shares(targets, weights):
    """Precision is not linear in decisions: its slope where half of what chance misses is right."""
    is_positive = np.array([float(t > 0) for t in targets])
    guessed = 0.5 * (1 + shares([True] * len(targets), weights) @ is_positive)

    def mean(kept, weights):
        own = shares(kept, weights)
        return own * (is_positive - guessed) / (own @ is_positive)

    return mean


def constraint_table(name, reference, targets, columns, weights=None):
    comparison = "bounded" if name in BOUNDED else name if name in EXCESS else reference
    mean = shares
    if name in PRECISE:
        everybody = np.ones(len(targets)) if weights is None else weights
        mean = precision_shares(targets, everybody)
    return comparisons(CONSTRAINT_NAMES[name][0], comparison, targets, columns, weights, mean)


def rates_of(name, values, targets, columns, weights=None, strata=None):
    """Rates by counting: for each class, stratum and attribute, those of groups and of all."""
    n = len(targets)
    weights = [1.0] * n if weights is None else weights
    strata = [None] * n if strata is None else strata

    def rate(kept):
        if name in PRECISE:
            selected = sum(w * v for k, w, v in zip(kept, weights, values, strict=True) if k)
            right = sum(
                w * v
                for k, w, v, t in zip(kept, weights, values, targets, strict=True)
                if k and t > 0
            )
            return right / selected if selected else 0.0
        total = sum(w for k, w in zip(kept, weights, strict=True) if k)
        return sum(w * v for k, w, v in zip(kept, weights, values, strict=True) if k) / total

    for counts in IN_CLASS[CONSTRAINT_NAMES[name][0]]:
        for stratum in sorted(set(strata), key=str):
            inside = [
                counts(t) and s == stratum and w > 0
                for t, s, w in zip(targets, strata, weights, strict=True)
            ]
            for groups in columns if any(inside) else []:
                there = sorted({g for g, k in zip(groups, inside, strict=True) if k})
                of_groups = {
                    g: rate([k and own == g for k, own in zip(inside, groups, strict=True)])
                    for g in there
                }
                yield of_groups, rate(inside)


def ratio(a, b):
    """The smaller over the larger; of two zeros 1."""
    return min(a, b) / max(a, b) if max(a, b) > 0 else 1.0


def disparity(
    name,
    reference,
    scores,
    targets,
    columns,
    weights=None,
    loss="log_loss",
    comparison="difference",
    strata=None,
):
    """The strict disparity of a constraint: its worst comparison, by plain counting."""
    values = strict_values(CONSTRAINT_NAMES[name][1], scores, targets, loss)
    worst, excesses = -np.inf if name in BOUNDED else 0.0, []
    for of_groups, everybody in rates_of(name, values, targets, columns, weights, strata):
        rates = list(of_groups.values())
        if name in EXCESS:
            excesses += [rate - everybody for rate in rates if len(rates) > 1]
            continue
        if name in BOUNDED:
            worst = max(worst, *rates)
            continue
        pairs = [(a, b) for a in rates for b in rates]
        if reference == "overall":
            pairs = [(a, everybody) for a in rates]
        for a, b in pairs:
            worst = max(worst, 1 - ratio(a, b) if comparison == "ratio" else abs(a - b))
    return float(EXCESS[name](excesses) if excesses else worst)


def derivative(function, z, h=1e-6):
    """Central differences, each entry by its own."""
    return (function(z + h) - function(z - h)) / (2 * h)


class Risk:
    """Mean loss plus alpha/2 |w|^2, and comparisons minus bounds, over weights w and intercept."""

    def __init__(
        self, X, targets, columns, constraints, *, loss, alpha, weights=None, temperature=1.0
    ):
        """``constraints`` are (name, reference, bound)."""
        n = len(X)
        self.rows = np.column_stack([X, np.ones(n)])
        self.targets, self.loss, self.alpha = targets, loss, alpha
        self.temperature = temperature
        self.masses = shares([True] * n, np.ones(n) if weights is None else weights)
        self.constraints = [
            (
                CONSTRAINT_NAMES[name][1],
                constraint_table(name, reference, targets, columns, weights),
                bound,
            )
            for name, reference, bound in constraints
        ]

    def losses(self, z):
        return SMOOTH_LOSSES[self.loss](z, self.targets)

    def values(self, what, z):
        return smooth_values(what, z, self.targets, self.loss, self.temperature)

    def objective(self, x):
        return self.masses @ self.losses(self.rows @ x) + self.alpha / 2 * x[:-1] @ x[:-1]

    def gradient(self, x):
        slopes = self.masses * derivative(self.losses, self.rows @ x)
        return self.rows.T @ slopes + self.alpha * np.append(x[:-1], 0)

    def excess(self, x):
        """Every comparison minus its bound: feasible means none above 0."""
        z = self.rows @ x
        return np.concatenate(
            [table @ self.values(what, z) - bound for what, table, bound in self.constraints]
        )

    def jacobian(self, x):
        z = self.rows @ x
        return np.vstack(
            [
                (table * derivative(lambda z, w=what: self.values(w, z), z)) @ self.rows
                for what, table, _ in self.constraints
            ]
        )

    def slsqp(self, x0=None):
        """Solve with scipy; the result has one multiplier >= 0 per comparison."""
        found = minimize(
            self.objective,
            np.zeros(self.rows.shape[1]) if x0 is None else x0,
            jac=self.gradient,
            method="SLSQP",
            constraints={
                "type": "ineq",
                "fun": lambda x: -self.excess(x),
                "jac": lambda x: -self.jacobian(x),
            },
            options={"ftol": 1e-12, "maxiter": 500},
        )
        assert self.excess(found.x).max(initial=0.0) <= 1e-8, found
        return found

    def optima(self, starts):
        """The local optima that SLSQP finds from several starts; it may fail from some of them."""
        found = []
        for start in starts:
            try:
                found.append(self.slsqp(start))
            except AssertionError:
                continue
        assert found, "scipy finds no point within the limits"
        return found

    def unlimited(self):
        """Where the objective alone, which is convex, is least."""
        start = np.zeros(self.rows.shape[1])
        return minimize(self.objective, start, jac=self.gradient, options={"gtol": 1e-8}).x

    def least_excess(self):
        """The smallest worst excess that any model has; constraints must be convex."""
        start = self.unlimited()
        p, worst = start.size, self.excess(start).max()
        found = minimize(
            lambda x: x[p],
            np.append(start, worst),
            jac=lambda x: np.eye(p + 1)[p],
            method="SLSQP",
            constraints={
                "type": "ineq",
                "fun": lambda x: x[p] - self.excess(x[:p]),
                "jac": lambda x: np.insert(-self.jacobian(x[:p]), p, 1, axis=1),
            },
            options={"ftol": 1e-10, "maxiter": 500},
        )
        return min(worst, self.excess(found.x[:p]).max())

    def pull(self, multipliers):
        """What the multipliers of comparisons weigh each person with, by constraint."""
        ends = np.cumsum([len(table) for _, table, _ in self.constraints])[:-1]
        parts = np.split(multipliers, ends)
        return [table.T @ part for (_, table, _), part in zip(self.constraints, parts, strict=True)]


def mean_excess(losses, columns, weights, reduce):
    """(18) of plada: the mean loss of the members of each group minus that of all rows."""
    overall = sum(losses * weights) / sum(weights)
    excesses = []
    for column in columns:
        members = [i for i in range(len(losses)) if column[i] == 1]
        total = sum(weights[i] for i in members)
        excesses.append(sum(losses[i] * weights[i] for i in members) / total - overall)
    return reduce(excesses)


def absolute_differences_of_classes(losses, is_positive, groups, weights, reference):
    """|d+| + |d-| of the pair of groups (or of a group and all rows) that is furthest apart."""

    def mean(keep):
        return sum(losses[keep] * weights[keep]) / sum(weights[keep])

    classes = [is_positive, ~is_positive]
    each = [[mean((groups == g) & c) for c in classes] for g in sorted(set(groups))]
    others = each if reference == "pairwise" else [[mean(c) for c in classes]]
    return max(abs(a[0] - b[0]) + abs(a[1] - b[1]) for a in each for b in others)
