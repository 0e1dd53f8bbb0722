"""The slow twin of the swap kernels: everything is counted again from the labels, each time."""

from itertools import pairwise, product

import numpy as np


class SwapTwin:
    """A labelling and the steps of Algorithm 2 on it.

    ``rows`` is the order in which the cells are filled at the start; None keeps no cells: members
    are then found by walking through the rows of their group, which must be consecutive.
    """

    def __init__(self, X, codes, labels, n_clusters, n_groups, rows=None):
        self.X = np.asarray(X, np.longdouble) - X.mean(axis=0, dtype=np.float64)
        self.codes, self.labels = np.asarray(codes), np.array(labels, int)
        self.K, self.J = n_clusters, n_groups
        self.cells = None
        if rows is not None:
            self.cells = {
                (g, k): [i for i in rows if codes[i] == g and labels[i] == k]
                for g, k in product(range(n_groups), range(n_clusters))
            }
        self.moves = []

    def members(self, k, g=None):
        mask = self.labels == k
        return np.flatnonzero(mask if g is None else mask & (self.codes == g))

    def counts(self):
        return np.array([[len(self.members(k, g)) for g in range(self.J)] for k in range(self.K)])

    def sums(self):
        return np.array([self.X[self.members(k)].sum(axis=0) for k in range(self.K)])

    def center(self, k):
        rows = self.members(k)
        return self.X[rows].mean(axis=0) if len(rows) else np.zeros(self.X.shape[1])

    def cost(self):
        gaps = self.X - np.array([self.center(k) for k in self.labels])
        return float((gaps**2).sum() / len(self.X))

    def balances(self):
        return [min(row) / max(row) if max(row) else 0.0 for row in self.counts().tolist()]

    def balance(self):
        return min(self.balances())

    def move(self, i, to):
        source, g = self.labels[i], self.codes[i]
        self.moves.append((i, source, to))
        self.labels[i] = to
        if self.cells is None:
            return
        # The rows of a group are one line, cut into cells: a row that leaves its cell gives its
        # place to the one at the far end, and so does each cell on the way.
        cell = self.cells[g, source]
        place = cell.index(i)
        if to > source:
            cell[place] = cell[-1]
            cell.pop()
            for k in range(source + 1, to):
                between = self.cells[g, k]
                self.cells[g, k] = between[-1:] + between[:-1]
            self.cells[g, to].insert(0, i)
        else:
            cell[place] = cell[0]
            cell.pop(0)
            for k in range(to + 1, source):
                between = self.cells[g, k]
                self.cells[g, k] = between[1:] + between[:1]
            self.cells[g, to].append(i)

    def kmeans_step(self, batch):
        full = [k for k in range(self.K) if len(self.members(k))]
        centers = np.array([self.center(k) for k in full])
        squares = ((self.X[batch][:, None] - centers) ** 2).sum(axis=2)
        closest = [full[k] for k in squares.argmin(axis=1)]
        distance = squares.min(axis=1)
        for k in range(self.K):
            if k not in full and distance.max() > -np.inf:
                farthest = int(distance.argmax())
                closest[farthest], distance[farthest] = k, -np.inf
        for i, k in zip(batch, closest, strict=True):
            if k != self.labels[i] and len(self.members(self.labels[i])) > 1:
                self.move(i, k)

    def can_give(self, k, coming, leaving, floor):
        row = self.counts()[k]
        row[coming] -= 1
        if leaving >= 0:
            row[leaving] += 1
        return row.min() > 0 and row.min() / row.max() > floor

    def target(self, low, coming, leaving, floor, constraint):
        others = [k for k in range(self.K) if k != low and self.can_give(k, coming, leaving, floor)]
        if not others:
            return -1
        counts = self.counts()
        if constraint == 1 and counts[low].sum():
            gaps = [((self.center(k) - self.center(low)) ** 2).sum() for k in others]
            return others[int(np.argmin(gaps))]
        if leaving < 0:
            return others[int(np.argmax(counts[others, coming]))]
        with np.errstate(divide="ignore"):
            return others[int(np.argmax(counts[others, coming] / counts[others, leaving]))]

    def pick_swap(self, constraint):
        balances = self.balances()
        low = int(np.argmin(balances))
        floor, row = balances[low], self.counts()[low]
        if floor == 1:
            return None
        least, most = int(row.argmin()), int(row.argmax())
        if row[most] - row[least] < 2:
            choices = [(g, -1) for g in range(self.J) if row[g] == row[least]]
        else:
            choices = [(least, most)] + [
                (g, h)
                for g, h in product(range(self.J), repeat=2)
                if row[h] - row[g] >= 2 and (row[g] == row[least] or row[h] == row[most])
            ]
        for coming, leaving in choices:
            target = self.target(low, coming, leaving, floor, constraint)
            if target >= 0:
                return low, target, coming, leaving
        return None

    def candidates(self, g, k, draw, n_candidates):
        if self.cells is not None:
            cell = self.cells[g, k]
            place = int(draw * len(cell))
        else:
            group = np.flatnonzero(self.codes == g)
            start = group[0] + int(draw * len(group))
            cell = self.members(k, g).tolist()
            place = sum(i < start for i in cell)
        return [cell[(place + c) % len(cell)] for c in range(min(n_candidates, len(cell)))]

    def swap_step(self, draws, n_candidates, constraint):
        picked = self.pick_swap(constraint)
        if picked is None:
            return False
        low, target, coming, leaving = picked
        direction = self.center(low) - self.center(target)
        rows = self.candidates(coming, target, draws[1], n_candidates)
        row_in = rows[int(np.argmax(self.X[rows] @ direction))]
        if leaving >= 0:
            rows = self.candidates(leaving, low, draws[0], n_candidates)
            self.move(rows[int(np.argmin(self.X[rows] @ direction))], target)
        self.move(row_in, low)
        return True

    def iterate(self, batch, draws, n_candidates, constraint, enough, at_once=None):
        at_once = at_once or max(len(batch), 1)
        for first in range(0, len(batch), at_once):
            self.kmeans_step(batch[first : first + at_once])
        for draw in draws:
            if self.balance() >= enough or not self.swap_step(draw, n_candidates, constraint):
                return


def front_course(X, codes, starts, n_clusters, n_groups, pairs, draws, at_once=None):
    """The course of Algorithm 3: per iteration the points of the list, cheapest first.

    ``X`` holds one group after the other. An entry of ``draws`` says of one iteration, for each
    labelling of the list, which rows its batches have (those of all pairs in one line), the draws
    of its swaps, and how many candidates these compare.
    """

    def point(labels):
        twin = SwapTwin(X, codes, labels, n_clusters, n_groups)
        return twin.cost(), twin.balance(), twin.labels

    def front(points):
        # Of equal points the first stays: parents come before children.
        kept = []
        for one in sorted(points, key=lambda p: (p[0], -p[1])):
            if not kept or one[1] > kept[-1][1]:
                kept.append(one)
        return kept

    course = [front([point(labels) for labels in starts])]
    for draw in draws:
        points = list(course[-1])
        batches, chances, n_candidates = draw(len(points))
        for parent, batch, chance in zip(course[-1], batches, chances, strict=True):
            for n_a, n_b in pairs:
                twin = SwapTwin(X, codes, parent[2], n_clusters, n_groups)
                rows, batch = batch[:n_a], batch[n_a:]
                twin.iterate(rows, chance[:n_b], n_candidates, 1, 1.0, at_once)
                points.append((twin.cost(), twin.balance(), twin.labels))
        course.append(front(points))
    return course


def reachable_balance(codes, sizes):
    """Largest balance of two groups over all ways to fill clusters of the given sizes."""
    n_first = int(np.sum(np.asarray(codes) == 0))
    best = 0.0
    for counts in product(*(range(size + 1) for size in sizes)):
        if sum(counts) == n_first:
            best = max(
                best,
                min(min(a, s - a) / max(a, s - a) for a, s in zip(counts, sizes, strict=True)),
            )
    return best


def thinned(costs, balances, n_kept):
    """Drop, one by one, the inner point without which the dominated area is largest."""
    keep = list(range(len(costs)))

    def area(points):
        return sum((costs[j] - costs[i]) * balances[i] for i, j in pairwise(points))

    while len(keep) > max(n_kept, 2):
        without = [keep[:i] + keep[i + 1 :] for i in range(1, len(keep) - 1)]
        keep = max(without, key=area)
    return keep
