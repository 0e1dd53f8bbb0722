"""Slow, obvious twins of everything that the package computes fast. Plain numpy and loops."""

import itertools

import numpy as np


def pairs(groups):
    """All unordered pairs of group labels."""
    levels = sorted(set(groups))
    return [(a, b) for i, a in enumerate(levels) for b in levels[i + 1 :]]


def rate(hit, given, group, level, weights):
    """Weighted share of ``hit`` among the rows of a group for which ``given`` holds."""
    above = below = 0.0
    for h, c, g, w in zip(hit, given, group, weights, strict=True):
        if g == level and c:
            below += w
            above += w * bool(h)
    return above / below


def errors_per_error(y, p, group, level, weights):
    """Weight of the false negatives of a group per weight of its false positives."""
    negatives = positives = 0.0
    for truth, guess, g, w in zip(y, p, group, weights, strict=True):
        if g == level:
            negatives += w * (truth == 1 and guess == 0)
            positives += w * (truth == 0 and guess == 1)
    return negatives / positives if positives else np.nan


def rates(y, p, groups, weights):
    """Every rate of every group, as a dict of dicts."""
    y, p = np.asarray(y), np.asarray(p)
    every = np.ones(len(y), bool)
    table = {
        "selection_rate": (p == 1, every),
        "true_positive_rate": (p == 1, y == 1),
        "false_positive_rate": (p == 1, y == 0),
        "false_negative_rate": (p == 0, y == 1),
        "positive_predictive_value": (y == 1, p == 1),
        "negative_predictive_value": (y == 0, p == 0),
        "false_omission_rate": (y == 1, p == 0),
        "accuracy": (y == p, every),
    }
    found = {
        name: {g: rate(hit, given, groups, g, weights) for g in set(groups)}
        for name, (hit, given) in table.items()
    }
    found["error_ratio"] = {g: errors_per_error(y, p, groups, g, weights) for g in set(groups)}
    return found


def ccdf(scores, groups, level, weights, threshold):
    """Weighted share of a group that scores above a threshold."""
    scores, groups, weights = map(np.asarray, (scores, groups, weights))
    mine = groups == level
    return weights[mine & (scores > threshold)].sum() / weights[mine].sum()


def thresholds(scores):
    """One threshold below, above and between all distinct scores."""
    distinct = np.unique(scores)
    middle = (distinct[1:] + distinct[:-1]) / 2
    return np.concatenate(([distinct[0] - 1], middle, [distinct[-1] + 1]))


def interval_share(rank, intervals):
    """Share of the intervals that the ranks [0, rank] cover."""
    covered = sum(min(max(rank, low), high) - low for low, high in intervals)
    return covered / sum(high - low for low, high in intervals)


def partial_statistical_parity(scores, groups, weights, intervals):
    """Definition 4.2, threshold by threshold; ``intervals`` maps a group to its intervals."""
    gap = 0.0
    for a, b in pairs(groups):
        for t in thresholds(scores):
            one = interval_share(ccdf(scores, groups, a, weights, t), intervals[a])
            other = interval_share(ccdf(scores, groups, b, weights, t), intervals[b])
            gap = max(gap, abs(one - other))
    return gap


def partial_ccdf_gap(scores, groups, weights, intervals):
    """Largest difference of selection rates where a rate is inside its interval."""
    gap = 0.0
    for a, b in pairs(groups):
        for t in thresholds(scores):
            one, other = (ccdf(scores, groups, g, weights, t) for g in (a, b))
            inside = any(
                low <= value < high
                for value, g in ((one, a), (other, b))
                for low, high in intervals[g]
            )
            if inside:
                gap = max(gap, abs(one - other))
    return gap


def wasserstein(scores, groups, weights):
    """Area between the distribution functions, interval by interval of the scores."""
    distinct = np.unique(scores)
    worst = 0.0
    for a, b in pairs(groups):
        area = 0.0
        for low, high in itertools.pairwise(distinct):
            middle = (low + high) / 2
            one, other = (ccdf(scores, groups, g, weights, middle) for g in (a, b))
            area += abs(one - other) * (high - low)
        worst = max(worst, area)
    return worst


def overlap_masses(scores, weights, intervals):
    """Mass of each row of ONE group inside the intervals, ties sharing by weight."""
    scores, weights = np.asarray(scores, float), np.asarray(weights, float)
    total = weights.sum()
    length = sum(high - low for low, high in intervals)
    masses = np.zeros(len(scores))
    for i, s in enumerate(scores):
        above = weights[scores > s].sum() / total
        block = weights[scores == s].sum() / total
        if block == 0:
            continue
        inside = sum(
            max(0.0, min(above + block, high) - max(above, low)) for low, high in intervals
        )
        if inside > 1e-12:  # the end of an interval is the rank of a row but for rounding
            masses[i] = inside / length * (weights[i] / total) / block
    return masses


def win_rate(scores_a, masses_a, scores_b, masses_b, tie_value):
    """Probability that a row of a scores above one of b, over all pairs."""
    won = total = 0.0
    for s, m in zip(scores_a, masses_a, strict=True):
        for t, k in zip(scores_b, masses_b, strict=True):
            won += m * k * (1.0 if s > t else tie_value if s == t else 0.0)
            total += m * k
    return won / total


def partial_class_rate(scores, y, weights, intervals, threshold, label, rank_within):
    """Rate above a threshold among the rows of one group and class inside the intervals."""
    scores, y, weights = np.asarray(scores), np.asarray(y), np.asarray(weights, float)
    if rank_within == "class":
        scores, weights = scores[y == label], weights[y == label]
        masses = overlap_masses(scores, weights, intervals)
        return masses[scores > threshold].sum() / masses.sum()
    masses = overlap_masses(scores, weights, intervals)
    inside = masses * (y == label)
    return inside[scores > threshold].sum() / inside.sum()


# Clusterings and fronts. ``columns`` is a list of sensitive attributes, each a list of groups; for
# intersections pass one column of tuples. ``weight`` has one number per row.


def intersect(columns):
    return [list(zip(*columns, strict=True))]


def _count(labels, groups, weight, label=None, group=None):
    return sum(
        w
        for k, g, w in zip(labels, groups, weight, strict=True)
        if (label is None or k == label) and (group is None or g == group)
    )


def _present(values, weight):
    return sorted({v for v, w in zip(values, weight, strict=True) if w > 0})


def attribute_balances(labels, groups, weight, clusters, relative=False):
    names = _present(groups, weight)

    def balance(label):
        counts = [_count(labels, groups, weight, label, g) for g in names]
        return min(a / b if b else 0.0 for a in counts for b in counts) if any(counts) else 0.0

    values = [balance(k) for k in clusters]
    return [v / balance(None) for v in values] if relative else values


def cluster_balances(labels, columns, weight, clusters=None, relative=False):
    clusters = _present(labels, weight) if clusters is None else clusters
    return np.min(
        [attribute_balances(labels, c, weight, clusters, relative) for c in columns], axis=0
    )


def mean_balance(labels, columns, weight, relative=False):
    clusters = _present(labels, weight)
    return np.mean(
        [np.mean(attribute_balances(labels, c, weight, clusters, relative)) for c in columns]
    )


def shares(labels, groups, weight):
    """List (share in the cluster, share in the sample) over all clusters and groups."""
    total = _count(labels, groups, weight)
    return [
        (
            _count(labels, groups, weight, k, g) / _count(labels, groups, weight, k),
            _count(labels, groups, weight, None, g) / total,
        )
        for k in _present(labels, weight)
        for g in _present(groups, weight)
    ]


def share_deviations(labels, columns, weight):
    """Return (max, mean of the attributes' means)."""
    gaps = [[abs(p - r) for p, r in shares(labels, c, weight)] for c in columns]
    return max(max(gap) for gap in gaps), np.mean([np.mean(gap) for gap in gaps])


def share_ratio(labels, columns, weight):
    pairs = [pair for c in columns for pair in shares(labels, c, weight)]
    return min(min(p / r, r / p) if p else 0.0 for p, r in pairs)


def kl_fairness_error(labels, columns, weight):
    pairs = [pair for c in columns for pair in shares(labels, c, weight)]
    return sum(r * np.log(r / p) if p else np.inf for p, r in pairs)


def kmeans_cost(X, labels, weight, centers=None):
    X = np.asarray(X, dtype=np.longdouble)
    if centers is None:
        centers = {}
        for k in _present(labels, weight):
            rows = [i for i, label in enumerate(labels) if label == k]
            mass = sum(weight[i] for i in rows)
            centers[k] = sum(weight[i] * X[i] for i in rows) / mass
    return sum(
        weight[i] * ((X[i] - centers[labels[i]]) ** 2).sum() for i in range(len(X)) if weight[i] > 0
    )


def normalized_cut(affinity, labels):
    W = np.asarray(affinity, dtype=float)
    n = len(W)
    total = 0.0
    for k in set(labels):
        cut = sum(W[i, j] for i in range(n) for j in range(n) if labels[i] == k and labels[j] != k)
        volume = sum(W[i, j] for i in range(n) for j in range(n) if labels[i] == k)
        total += cut / volume if volume else 0.0
    return total


def nondominated(costs, balances):
    points = list(zip(costs, balances, strict=True))

    def dominated(i):
        c, b = points[i]
        worse = any(x <= c and y >= b and (x < c or y > b) for x, y in points)
        return worse or (c, b) in points[:i]

    return [not dominated(i) for i in range(len(points))]


def hypervolume(costs, balances, ref_cost, ref_balance, ideal_cost=None, ideal_balance=None):
    """Sum the dominated cells of the grid that all coordinates span."""
    points = [
        (c, b) for c, b in zip(costs, balances, strict=True) if c < ref_cost and b > ref_balance
    ]
    box = 1.0
    if ideal_cost is not None:
        points = [(max(c, ideal_cost), min(b, ideal_balance)) for c, b in points]
        box = (ref_cost - ideal_cost) * (ideal_balance - ref_balance)
    xs = sorted({ref_cost, *(c for c, _ in points)})
    ys = sorted({ref_balance, *(b for _, b in points)})
    area = 0.0
    for i in range(1, len(xs)):
        for j in range(1, len(ys)):
            if any(c <= xs[i - 1] and b >= ys[j] for c, b in points):
                area += (xs[i] - xs[i - 1]) * (ys[j] - ys[j - 1])
    return area / box
