"""What the maps of repair keep, and what they leave alone."""

import numpy as np
import pytest

from skfair.enforcement.partial.repair import band_maps, shift_maps
from skfair.enforcement.thresholds.cuts import choose_cuts, score_blocks
from skfair.groups.encoding import encode_groups
from skfair.groups.intervals import Intervals
from skfair.metrics import partial_statistical_parity_gap
from tests.enforcement.thresholds.test_cuts import EXACT, Case, kernel, neighbours  # noqa: F401
from tests.naive import repair as twin


def assert_keeps_order(before, after, codes):
    """Equal scores stay equal, and no two rows of a group change places."""
    for g in np.unique(codes):
        order = np.argsort(before[codes == g], kind="stable")
        x, y = before[codes == g][order], after[codes == g][order]
        assert np.all(np.diff(y) >= 0)
        assert np.all(np.diff(y)[np.diff(x) == 0] == 0)


@pytest.mark.parametrize("block_of_seeds", range(4))
def test_the_gap_is_kept_and_decisions_and_order_stay(block_of_seeds):
    for seed in range(50 * block_of_seeds, 50 * block_of_seeds + 50):
        case = Case(seed)
        threshold = None if seed % 4 == 0 else 0.0
        _, mapped, kept, thresholds = case.repaired(threshold=threshold)
        assert case.gap(mapped) <= kept + EXACT
        # Only a block of ties (or one row) that owns more than asked is a reason to keep less.
        largest = case.largest_block()
        assert kept <= max(case.tolerance, largest) + EXACT
        if largest <= case.tolerance - EXACT:
            assert kept == case.tolerance
        assert np.array_equal(mapped > 0, case.scores > thresholds[case.codes])
        assert_keeps_order(case.scores, mapped, case.codes)


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.usefixtures("kernel")
def test_rows_move_only_out_of_their_band_and_to_its_nearest_end(seed):
    case = Case(seed, n_max=24)
    _, mapped, _, thresholds = case.repaired()
    moved = case.scores - thresholds[case.codes]
    rows = (moved, case.codes, case.weights, case.bounds)
    points = twin.change_points(*rows)
    owned = twin.owned_shares(*rows)
    for z, new, (low, high), (a, b) in zip(
        moved, mapped, twin.bands(*rows, case.tolerance), owned, strict=True
    ):
        if b - a < EXACT:
            continue  # the row owns no share: it may go where its neighbours go
        assert low <= new <= high
        if low < z < high:
            assert new == z
        elif z > high:  # to below the end of the band, or onto it
            assert not np.any((points > new) & (points < high))
        elif z < low:
            assert not np.any((points > low) & (points < new))


@pytest.mark.parametrize("seed", range(40))
def test_scores_that_keep_the_constraint_stay(seed):
    """Also those that were repaired: the map is idempotent."""
    case = Case(seed)
    _, mapped, kept, _ = case.repaired()
    maps, again, _, thresholds = case.repaired(mapped, tolerance=kept + EXACT)
    assert np.array_equal(thresholds, np.zeros(case.n_groups))
    assert np.array_equal(again, mapped)
    assert all(np.array_equal(x, y) for x, y in zip(maps.before, maps.after, strict=True))


@pytest.mark.parametrize("seed", range(20))
def test_new_rows_stay_between_their_neighbours(seed):
    case = Case(seed)
    maps, mapped, _, thresholds = case.repaired()
    for g in range(case.n_groups):
        known, image = (values[case.codes == g] for values in (case.scores, mapped))
        known, first = np.unique(known, return_index=True)
        image = image[first]
        if known.size < 2:
            continue
        part = case.rng.random((20, known.size - 1))
        new = known[:-1] + part * np.diff(known)
        out = maps(new.ravel(), np.full(new.size, g)).reshape(new.shape)
        assert np.all((out >= image[:-1]) & (out <= image[1:]))
        assert np.array_equal(out > 0, new > thresholds[g])


@pytest.mark.parametrize("seed", range(20))
def test_scores_beyond_the_knots_move_in_parallel(seed):
    case = Case(seed)
    maps, *_ = case.repaired()
    steps = np.array([0.0, 0.5, 3.0, 1e6])
    for g, (x, y) in enumerate(zip(maps.before, maps.after, strict=True)):
        up = maps(x[-1] + steps, np.full(4, g))
        down = maps(x[0] - steps, np.full(4, g))
        assert up == pytest.approx(y[-1] + steps, rel=1e-12)
        assert down == pytest.approx(y[0] - steps, rel=1e-12)


@pytest.mark.parametrize("seed", range(20))
def test_relabelled_groups_have_the_same_maps(seed):
    """The threshold is fixed: of cuts that are equally accurate any may be chosen."""
    case = Case(seed)
    case.interval = (0.1, 0.7)
    levels = encode_groups(case.codes).levels
    case.intervals = Intervals(case.interval, levels)
    thresholds = np.linspace(-0.5, 0.5, case.n_groups) * (seed % 2)
    maps, kept = band_maps(case.blocks(), thresholds, case.intervals, case.tolerance)
    mapped = maps(case.scores, case.codes)
    names = case.rng.permutation(case.n_groups)
    case.codes = names[case.codes]
    renamed, also_kept = band_maps(
        case.blocks(), thresholds[np.argsort(names)], case.intervals, case.tolerance
    )
    assert also_kept == pytest.approx(kept, abs=1e-12)
    assert renamed(case.scores, case.codes) == pytest.approx(mapped, abs=1e-12)


@pytest.mark.parametrize(
    ("factor", "shift"),
    [
        (2.0**-20, 0),
        (2.0**20, 0),
        (1, 2.0**20),
    ],
)
def test_scale_and_origin_do_not_matter(factor, shift):
    for seed in range(20):
        case = Case(seed)
        case.scores = np.round(case.scores * 2**10) / 2**10  # so that shifts are exact
        threshold = 2.0**-7
        _, mapped, kept, _ = case.repaired(threshold=threshold)
        scores = case.scores * factor + shift
        _, other, also_kept, _ = case.repaired(scores, threshold=threshold * factor + shift)
        assert also_kept == kept
        assert np.array_equal(other > 0, mapped > 0)
        # Beyond the outermost score a row is put at a distance that shows among the digits.
        assert other / factor == pytest.approx(mapped, abs=2e-9 * max(1, shift))


def test_two_distinct_scores_cannot_be_split():
    codes = np.repeat([0, 1], 10)
    scores = np.where(np.arange(20) % 10 < np.repeat([8, 2], 10), 1.0, 0.0)
    blocks = score_blocks(scores, codes, 2, np.ones(20))
    intervals = Intervals((0.0, 1.0), encode_groups(codes).levels)
    maps, kept = band_maps(blocks, np.full(2, 0.5), intervals, 0.05)
    mapped = maps(scores, codes)
    gap = partial_statistical_parity_gap(
        None, mapped, sensitive_features=codes, interval=(0.0, 1.0)
    )
    assert kept == pytest.approx(0.8)  # the largest block of a group
    assert 0.6 - EXACT <= gap <= kept + EXACT
    assert np.array_equal(mapped > 0, scores > 0.5)


@pytest.mark.parametrize("value", [0.0, -3.0, 1e9])
@pytest.mark.parametrize("sizes", [(7, 2), (1, 1), (1, 5)])
def test_constant_scores_and_lonely_rows(value, sizes):
    codes = np.repeat([0, 1], sizes)
    scores = np.full(codes.size, value)
    targets = np.ones(codes.size)
    blocks = score_blocks(scores, codes, 2, targets)
    intervals = Intervals((0.1, 0.4), encode_groups(codes).levels)
    levels = [[intervals.share(one.ends, g) for g, one in enumerate(blocks)]]
    for threshold in (None, 0.0):
        thresholds = choose_cuts(blocks, levels, 0.05, threshold).thresholds
        maps, _ = band_maps(blocks, thresholds, intervals, 0.05)
        mapped = maps(scores, codes)
        assert np.ptp(mapped) == 0  # alike before, alike after
        decided = (scores > 0) if threshold == 0 else np.ones(codes.size, bool)
        assert np.array_equal(mapped > 0, decided)


def test_one_row_per_group_at_different_scores():
    codes = np.arange(3)
    scores = np.array([0.5, 1.5, 4.0])
    blocks = score_blocks(scores, codes, 3, np.ones(3))
    intervals = Intervals((0.2, 0.6), encode_groups(codes).levels)
    _, kept = band_maps(blocks, np.zeros(3), intervals, 0.05)
    assert kept == 1  # one row is all of its group


def test_shift_maps_only_subtract():
    codes = np.array([0, 0, 1, 1])
    scores = np.array([0.1, 0.7, 1e6, -1e6])
    blocks = score_blocks(scores, codes, 2, np.ones(4))
    thresholds = np.array([0.3, -0.2])
    assert np.array_equal(shift_maps(blocks, thresholds)(scores, codes), scores - thresholds[codes])


def test_neighbouring_scores_of_single_precision_are_told_apart():
    for seed in range(20):
        case = Case(seed, n_max=20)
        case.scores = neighbours(case, np.float32)
        _, mapped, kept, thresholds = case.repaired(threshold=None)
        assert case.gap(mapped) <= kept + EXACT
        assert np.array_equal(mapped > 0, case.scores > thresholds[case.codes])
        assert_keeps_order(case.scores, mapped, case.codes)
