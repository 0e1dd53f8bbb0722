"""Slow twins of the DC functions with the ramp of width w: plain loops over the rows, raw formulas.

Theta is (weights, intercept, one threshold per percentile) for the columns as given, standardised.
"""

import numpy as np


def log_loss(margin):
    return np.logaddexp(0.0, -margin)


def ramp_parts(x, width):
    """Both convex parts of the ramp and their slopes, Example D.3 with 2 width in place of 1."""
    plus, minus = x / (2 * width) + 0.5, x / (2 * width) - 0.5
    slope = 1 / (2 * width)
    return (max(plus, 0.0), slope * (plus > 0)), (max(minus, 0.0), slope * (minus > 0))


class TinyParity:
    """Problem (15) as written: G groups, P thresholds, rates between p and p + room."""

    def __init__(self, Z, y, groups, percentiles, room, width, alpha_diagonal, shares=None):
        self.Z, self.y, self.groups, self.width = Z, y, groups, width
        self.shares = [1 / len(y)] * len(y) if shares is None else shares  # of rows in the loss
        self.percentiles, self.room, self.alpha_diagonal = percentiles, room, alpha_diagonal
        self.n_weights = Z.shape[1]
        # Upper rows first, then the lower ones, each with all groups of the first percentile first.
        names = [(p, k) for p in range(len(percentiles)) for k in range(max(groups) + 1)]
        self.sides = [(p, k, +1) for p, k in names] + [(p, k, -1) for p, k in names]

    def objective(self, v):
        """f_0 = f_0^+ and its gradient."""
        weights = v[: self.n_weights]
        value = 0.5 * np.sum(self.alpha_diagonal * weights**2)
        gradient = np.zeros(len(v))
        gradient[: self.n_weights] = self.alpha_diagonal * weights
        for row, label, share in zip(self.Z, self.y, self.shares, strict=True):
            margin = label * (row @ weights)
            value += log_loss(margin) * share
            gradient[: self.n_weights] -= label * row / (1 + np.exp(margin)) * share
        return value, gradient

    def rate_parts(self, v, p, k):
        """Plus and minus part of the rate of group k above threshold p, with gradients."""
        parts = [[0.0, np.zeros(len(v))], [0.0, np.zeros(len(v))]]
        members = [i for i in range(len(self.y)) if self.groups[i] == k]
        for i in members:
            x = self.Z[i] @ v[: self.n_weights] - v[self.n_weights + p]
            for part, (value, slope) in zip(parts, ramp_parts(x, self.width), strict=True):
                part[0] += value / len(members)
                part[1][: self.n_weights] += slope * self.Z[i] / len(members)
                part[1][self.n_weights + p] -= slope / len(members)
        return parts

    def convex_and_concave(self, v, side):
        """f_i^+ and f_i^- of one side, each a value and a gradient."""
        p, k, sign = side
        plus, minus = self.rate_parts(v, p, k)
        if sign > 0:
            return (plus[0] - self.percentiles[p] - self.room, plus[1]), minus
        return (minus[0] + self.percentiles[p], minus[1]), plus

    def of_rows(self, rows, factors):
        """The same of some rows, each of which stands for some factor of rows in the loss."""
        shares = [self.shares[i] * factor for i, factor in zip(rows, factors, strict=True)]
        rest = self.percentiles, self.room, self.width, self.alpha_diagonal, shares
        return TinyParity(self.Z[rows], self.y[rows], self.groups[rows], *rest)

    def primal_dual(self, w, batches, V, alpha, queues, mu=0.0):
        """Iterates and queues of section G.9 on (31) with tangents at w, a batch per step."""
        iterates, all_queues, v = [w], [list(queues)], w
        for batch in batches:
            away, tangents = v - w, [batch.convex_and_concave(w, side)[1] for side in self.sides]
            direction = V * (batch.objective(v)[1] + mu * away)
            rows = []
            for side, queue, (at_w, slope) in zip(
                self.sides, all_queues[-1], tangents, strict=True
            ):
                value, gradient = batch.convex_and_concave(v, side)[0]
                value = value - at_w - slope @ away + mu / 2 * away @ away
                rows.append((value, gradient - slope + mu * away))
                direction = direction + queue * rows[-1][1]
            new = v - direction / (2 * alpha)
            all_queues.append(
                [
                    max(queue + value + gradient @ (new - v), 0.0)
                    for queue, (value, gradient) in zip(all_queues[-1], rows, strict=True)
                ]
            )
            v = new
            iterates.append(v)
        return iterates, all_queues

    def algorithm2(self, w, eps, n_steps):
        """All iterates of Algorithm 2 on (31) at w."""
        tangents = [self.convex_and_concave(w, side)[1] for side in self.sides]

        def g(v, i):
            (value, gradient), (at_w, slope) = (
                self.convex_and_concave(v, self.sides[i])[0],
                tangents[i],
            )
            return value - at_w - slope @ (v - w), gradient - slope

        iterates = [w]
        for _ in range(n_steps):
            v = iterates[-1]
            rows = [g(v, i) for i in range(len(self.sides))]
            worst = max(rows, key=lambda row: row[0])
            aim, gradient = (eps, self.objective(v)[1]) if worst[0] <= eps else worst
            iterates.append(v - aim / (gradient @ gradient) * gradient)
        return iterates


class TinyPairs(TinyParity):
    """Problem (21) as written, in the parts of Example D.5: pairs of groups, in ranks, theta = 0.

    The second terms of (84) lack a factor 1 / n_k in print, without which they are no identity.
    """

    def __init__(self, Z, y, groups, interval, kappa, width, alpha_diagonal):
        low, high = interval
        super().__init__(Z, y, groups, [], kappa * (high - low), width, alpha_diagonal)
        self.low, self.high = interval
        pairs = [(k, j) for k in range(max(groups) + 1) for j in range(k + 1, max(groups) + 1)]
        self.sides = pairs + [(j, k) for k, j in pairs]

    def mean_parts(self, v, k):
        """F_k^+ and F_k^-, the means of both parts over a group, with gradients."""
        members = [i for i in range(len(self.y)) if self.groups[i] == k]
        means = [[0.0, np.zeros(len(v))], [0.0, np.zeros(len(v))]]
        for i in members:
            both = ramp_parts(self.Z[i] @ v[: self.n_weights], self.width)
            for mean, (value, slope) in zip(means, both, strict=True):
                mean[0] += value / len(members)
                mean[1] += slope * self.Z[i] / len(members)
        return means

    def larger(self, v, k, end):
        """F_k^+ + max(F_k^- + end, F_k^+) with a subgradient."""
        plus, minus = self.mean_parts(v, k)
        shifted = (minus[0] + end, minus[1])
        most = plus if plus[0] >= shifted[0] else shifted
        return plus[0] + most[0], plus[1] + most[1]

    def convex_and_concave(self, v, side):
        """f_i^+ and f_i^- of an ordered pair, each a value and a gradient."""
        of_k, of_j = ([self.larger(v, g, end) for end in (self.low, self.high)] for g in side)
        plus = (of_k[0][0] + of_j[1][0], of_k[0][1] + of_j[1][1])
        minus = (of_j[0][0] + of_k[1][0] + self.room, of_j[0][1] + of_k[1][1])
        return plus, minus

    def violation(self, v):
        """The largest left side of (26) minus its right side, by clipping the rates."""
        rates = []
        for k in range(max(self.groups) + 1):
            plus, minus = self.mean_parts(v, k)
            rate = plus[0] - minus[0]
            rates.append(min(rate, self.high) - min(rate, self.low))
        return max(rates[k] - rates[j] for k, j in self.sides) - self.room
