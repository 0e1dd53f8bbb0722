"""Thresholds of groups against counting by hand and exhaustive search."""

import numpy as np
import pytest

from skfair._kernels import cuts as kernels
from skfair.enforcement.cuts import score_blocks
from skfair.groups.encoding import encode_groups
from skfair.groups.intervals import Intervals
from skfair.metrics import partial_statistical_parity_gap
from skfair.partial_parity._kernels import middle_levels
from skfair.partial_parity.repair import band_maps
from skfair.partial_parity.thresholds import choose_cuts, natural_cuts
from tests import naive
from tests.naive import repair as twin
from tests.python_kernels import as_python
from tests.seeds import generator

PARITY, OPPORTUNITY, ODDS = ["ends"], ["positive"], ["positive", "negative"]
EXACT = 1e-9


class Case:
    """Random rows: half of the cases have ties, half weights, some an interval per group."""

    def __init__(self, seed, n_max=60, n_groups=None, tie_free=False):
        rng = self.rng = generator(seed)
        self.n_groups = n_groups or int(rng.integers(2, 5))
        sizes = rng.integers(2, max(3, n_max // self.n_groups + 1), self.n_groups)
        self.codes = rng.permutation(np.repeat(np.arange(self.n_groups), sizes))
        n = self.codes.size
        self.scores = rng.normal(size=n) + 0.7 * self.codes * rng.choice([-1, 1])
        if rng.random() < 0.5 and not tie_free:
            self.scores = np.round(self.scores, int(rng.integers(0, 2)))
        self.targets = np.where(rng.random(n) < 0.5, 1.0, -1.0)
        for g in range(self.n_groups):  # both classes in every group
            self.targets[np.flatnonzero(self.codes == g)[:2]] = [1, -1]
        self.given_weights = rng.random(n) + 0.1 if rng.random() < 0.5 else None
        self.tolerance = float(rng.choice([0, 0.02, 0.1, 0.3, 0.8, 1.0]))
        ends = np.sort(rng.choice(21, 4, replace=False)) / 20
        kind = rng.integers(3)
        self.interval = [(ends[0], ends[2]), [(ends[0], ends[1]), (ends[2], ends[3])], None][kind]
        if self.interval is None:
            pairs = np.sort([rng.choice(11, 2, replace=False) for _ in range(self.n_groups)])
            self.interval = {g: tuple(pair / 10) for g, pair in enumerate(pairs)}
        self.intervals = Intervals(self.interval, encode_groups(self.codes).levels)
        self.bounds = [pairs.tolist() for pairs in self.intervals.bounds]

    @property
    def weights(self):
        return np.ones(self.codes.size) if self.given_weights is None else self.given_weights

    def blocks(self, scores=None, min_gap=0.0):
        scores = self.scores if scores is None else scores
        return score_blocks(
            scores, self.codes, self.n_groups, self.targets, self.given_weights, min_gap
        )

    def levels(self, blocks, kinds=PARITY):
        share = self.intervals.share
        return [[share(getattr(one, k), g) for g, one in enumerate(blocks)] for k in kinds]

    def cuts(self, kinds=PARITY, threshold=None, scores=None, tolerance=None):
        blocks = self.blocks(scores)
        tolerance = self.tolerance if tolerance is None else tolerance
        return choose_cuts(blocks, self.levels(blocks, kinds), tolerance, threshold)

    def repaired(self, scores=None, threshold=0.0, tolerance=None):
        """Return maps, mapped scores, the tolerance kept and the thresholds."""
        scores = self.scores if scores is None else scores
        tolerance = self.tolerance if tolerance is None else tolerance
        thresholds = self.cuts(PARITY, threshold, scores, tolerance).thresholds
        maps, kept = band_maps(self.blocks(scores), thresholds, self.intervals, tolerance)
        return maps, maps(scores, self.codes), kept, thresholds

    def gap(self, scores):
        return partial_statistical_parity_gap(
            None,
            scores,
            sensitive_features=self.codes,
            interval=self.interval,
            sample_weight=self.given_weights,
        )

    def largest_block(self):
        """Largest share of a group's interval that equal scores own."""
        largest = 0.0
        for g, bounds in enumerate(self.bounds):
            mine = self.codes == g
            _, place = np.unique(-self.scores[mine], return_inverse=True)
            ranks = np.cumsum(np.bincount(place, self.weights[mine])) / self.weights[mine].sum()
            shares = [naive.interval_share(rank, bounds) for rank in [0, *ranks]]
            largest = max(largest, np.diff(shares).max())
        return largest


def spreads_and_gain(case, cuts, kinds):
    """Count by hand what thresholds do."""
    rows = (case.scores, case.codes, case.targets, case.weights)
    groups = list(enumerate(cuts.thresholds))
    levels = [twin.levels_of_cut(*rows, case.bounds, g, t, kinds) for g, t in groups]
    return np.ptp(levels, axis=0), sum(twin.gain_of_cut(*rows, g, t) for g, t in groups)


@pytest.fixture(params=["compiled", "python"])
def kernel(request, monkeypatch):
    if request.param == "python":
        for home, name in ((kernels, "best_cuts"), (middle_levels, "middle_levels")):
            monkeypatch.setattr(home, name, as_python(getattr(home, name)))


@pytest.mark.parametrize("kinds", [PARITY, OPPORTUNITY, ODDS], ids=lambda kinds: "+".join(kinds))
@pytest.mark.parametrize("seed", range(8))
@pytest.mark.usefixtures("kernel")
def test_cuts_equal_exhaustive_search(kinds, seed):
    case = Case(seed, n_max=18, n_groups=2 + seed % 2)
    cuts = case.cuts(kinds)
    spreads, gain = spreads_and_gain(case, cuts, kinds)
    rows = (case.scores, case.codes, case.targets, case.weights)
    assert spreads.max() <= case.tolerance + EXACT
    assert gain == pytest.approx(
        twin.best_gain(*rows, case.bounds, kinds, case.tolerance), abs=1e-12
    )
    for g, (block, count) in enumerate(zip(case.blocks(), cuts.counts, strict=True)):
        assert np.count_nonzero(block.scores > cuts.thresholds[g]) == count


@pytest.mark.parametrize("tolerance", [0.0, 0.001, 0.01, 0.1])
@pytest.mark.parametrize("seed", range(4))
def test_two_constraints_are_exact_for_many_rows(seed, tolerance):
    """No pair of cuts within a limit, however small, is better than the one that is found."""
    rng = generator(seed)
    case = Case(seed, n_max=2500, n_groups=2, tie_free=True)
    case.targets = np.where(rng.random(case.codes.size) < 0.9, 1.0, -1.0)
    for g in range(2):
        case.targets[np.flatnonzero(case.codes == g)[:2]] = [1, -1]
    case.scores = case.scores + case.targets * rng.random(case.codes.size)
    spreads, gain = spreads_and_gain(case, case.cuts(ODDS, tolerance=tolerance), ODDS)
    assert spreads.max() <= tolerance + EXACT
    best = best_pair(case, case.blocks(), tolerance + 1e-12)
    assert gain == pytest.approx(best, abs=1e-12)


def best_pair(case, blocks, tolerance):
    """Best gain over all pairs of cuts of two groups under both constraints, as one table."""
    allowed = True
    for constraint in case.levels(blocks, ODDS):
        allowed = allowed & (np.abs(np.subtract.outer(*constraint)) <= tolerance)
    return np.where(allowed, np.add.outer(*(one.gains for one in blocks)), -np.inf).max()


@pytest.mark.parametrize("seed", range(5))
def test_no_threshold_cuts_scores_that_count_as_tied(seed):
    """Steps below the gap add up: tied scores may spread further than the gap to the next ones."""
    rng = generator(seed)
    scores = np.cumsum(rng.choice([0.05, 0.11], 60, p=[0.8, 0.2]))
    codes, targets = np.repeat([0, 1], 30), rng.choice([-1.0, 1.0], 60)
    blocks = score_blocks(scores, codes, 2, targets, min_gap=0.1)
    for tolerance in (0.0, 0.1, 1.0):
        levels = [one.ends for one in blocks]
        cuts = choose_cuts(blocks, [levels], tolerance, None)
        for g, (level, count) in enumerate(zip(levels, cuts.counts, strict=True)):
            share = np.mean(scores[codes == g] > cuts.thresholds[g])
            assert share == pytest.approx(level[count], abs=1e-12)


def neighbours(case, dtype):
    """The scores of a case, with neighbouring numbers in place of its distinct values."""
    places = np.unique(case.scores, return_inverse=True)[1]
    values = [dtype(1 + case.rng.random())]
    for _ in range(places.max()):
        values.append(np.nextafter(values[-1], dtype(10)))
    return np.array(values)[places].astype(np.float64)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_thresholds_tell_neighbouring_numbers_apart(dtype):
    """Half-way between two neighbours there may be no number."""
    for seed in range(20):
        case = Case(seed, n_max=20)
        case.scores = neighbours(case, dtype)
        cuts = case.cuts(PARITY)
        for g, (block, count) in enumerate(zip(case.blocks(), cuts.counts, strict=True)):
            assert np.count_nonzero(block.scores > cuts.thresholds[g]) == count
        threshold = float(case.scores[0])
        natural = natural_cuts(case.blocks(), threshold)
        assert np.array_equal(case.scores > threshold, case.scores > natural.thresholds[0])
