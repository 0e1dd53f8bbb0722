"""The maps of repair: the limits that they keep, and the scores that they leave alone."""

import numpy as np
import pytest

from tests.naive import repair as twin
from tests.partial_parity.test_thresholds import EXACT, Case, kernel, neighbours  # noqa: F401


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
