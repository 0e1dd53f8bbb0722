"""Mini-batch k-means steps and group swaps on labellings, at a cost that does not depend on n.

Callers: ``Swap.descend`` in ``safairkm/swap.py`` (``descend``, ``raise_balance``) and the front in
``swap_front.py`` (``breed``, ``settle``, ``thin``). Both make ``iterate``, which is
``kmeans_step`` and then ``swap_step``. A *cell* is the rows of a group in a cluster. The
*bottleneck* is the cluster of the lowest balance.

The tuples ``data``, ``state`` and ``cells`` are the same as in ``swap_rows.py``. ``work = (block,
scores, lowest, closest, direction, balances)`` is scratch space of the shapes (d, b), (b,), (b,),
(b,), (d,) and (K,), where b is the batch size. A ``log`` of (rows, sources, targets) records every
move. The rule for the target of a swap is an integer: 0 global, 1 local (see ``pick_target``).
"""

import numpy as np

from skfair._kernels.declaring import njit


@njit(cache=True)
def shift_row(cells, row, group, source, target):
    """Move a row in ``order`` from one cell of its group to another one.

    Each cell in between moves by one place: its row at the far end fills the hole at the near end.
    """
    order, place, starts = cells
    hole = place[row]
    for k in range(source, target):  # the row moves right, so the cells in between move left
        last = starts[group, k + 1] - 1
        if last != hole:
            moved = order[last]
            order[hole] = moved
            place[moved] = hole
            hole = last
        starts[group, k + 1] = last
    for k in range(source, target, -1):
        first = starts[group, k]
        if first != hole:
            moved = order[first]
            order[hole] = moved
            place[moved] = hole
            hole = first
        starts[group, k] = first + 1
    order[hole] = row
    place[row] = hole


@njit(cache=True)
def move_row(data, state, cells, row, target):
    """Give a row another label and update counts, sums and cells."""
    X, center, scale, codes = data
    labels, counts, sums = state
    source, group = np.int64(labels[row]), codes[row]
    counts[source, group] -= 1
    counts[target, group] += 1
    for j in range(X.shape[1]):
        x = (X[row, j] - center[j]) * scale
        sums[source, j] -= x
        sums[target, j] += x
    labels[row] = target
    if cells[0].size > 0:
        shift_row(cells, row, group, source, target)


@njit(cache=True)
def cluster_size(counts, k):
    """Return the number of rows of a cluster."""
    size = 0
    for g in range(counts.shape[1]):
        size += counts[k, g]
    return size


@njit(cache=True)
def cluster_balance(counts, k):
    """Return the smallest count of a cluster divided by its largest one, 0 if it is empty."""
    least = most = counts[k, 0]
    for g in range(1, counts.shape[1]):
        least = min(least, counts[k, g])
        most = max(most, counts[k, g])
    return least / most if most > 0 else 0.0


@njit(cache=True)
def overall_balance(counts, balances):
    """Write the balance of every cluster and return the smallest one."""
    lowest = 1.0
    for k in range(counts.shape[0]):
        balances[k] = cluster_balance(counts, k)
        lowest = min(lowest, balances[k])
    return lowest


@njit(cache=True)
def mean_cost(state, total):
    """Return the mean squared distance of the rows to the centres, from counts and sums.

    ``total`` is the sum of all squares, from which the part that the centres explain is subtracted.
    """
    _, counts, sums = state
    explained = 0.0
    n_rows = 0
    for k in range(sums.shape[0]):
        size = cluster_size(counts, k)
        square = 0.0
        for j in range(sums.shape[1]):
            square += sums[k, j] * sums[k, j]
        explained += square / max(size, 1)
        n_rows += size
    return max(total - explained, 0.0) / n_rows


@njit(cache=True)
def kmeans_step(data, state, cells, batch, work, log, n_logged):
    """Assign the rows of a batch to the closest centre, with the centres from before the step.

    An empty cluster takes the row of the batch that is farthest from all centres. The last row of a
    cluster stays. Changes the state, appends to the log and returns its new length.
    """
    X, center, scale, _ = data
    labels, counts, sums = state
    block, scores, lowest, closest = work[:4]
    n_rows, n_features = batch.size, center.size
    for b in range(n_rows):
        for j in range(n_features):
            block[j, b] = (X[batch[b], j] - center[j]) * scale
        lowest[b] = np.inf
        # Reading the labels here, not at the end, takes 0.75x the time at n=1e5.
        closest[b] = labels[batch[b]]
    n_empty = 0
    for k in range(counts.shape[0]):
        size = cluster_size(counts, k)
        if size == 0:
            n_empty += 1
            continue
        # The score |c|^2 - 2 x c is computed for all rows of the batch in loops that the compiler
        # vectorises. It lacks |x|^2, which is the same for all clusters.
        inverse = 1.0 / size
        square = 0.0
        scores[:n_rows] = 0.0
        for j in range(n_features):
            c = sums[k, j] * inverse
            square += c * c
            c *= 2.0
            for b in range(n_rows):
                scores[b] += c * block[j, b]
        for b in range(n_rows):
            score = square - scores[b]
            is_closer = score < lowest[b]
            closest[b] = k if is_closer else closest[b]
            lowest[b] = score if is_closer else lowest[b]
    if n_empty > 0:
        seed_empty(counts, n_rows, work)
    for b in range(n_rows):
        row, target = np.int64(batch[b]), closest[b]
        source = labels[row]
        if source != target and cluster_size(counts, source) > 1:
            log[0][n_logged], log[1][n_logged], log[2][n_logged] = row, source, target
            n_logged += 1
            move_row(data, state, cells, row, target)
    return n_logged


@njit(cache=True)
def seed_empty(counts, n_rows, work):
    """Overwrite ``closest`` so that each empty cluster takes the farthest row of the batch.

    A batch with fewer rows than there are empty clusters fills some of them.
    """
    block, _, lowest, closest = work[:4]
    for b in range(n_rows):  # adds |x|^2, so that lowest is the squared distance
        for j in range(block.shape[0]):
            lowest[b] += block[j, b] * block[j, b]
    for k in range(counts.shape[0]):
        if cluster_size(counts, k) == 0:
            farthest = 0
            for b in range(1, n_rows):
                if lowest[b] > lowest[farthest]:
                    farthest = b
            if lowest[farthest] > -np.inf:
                closest[farthest] = k
                lowest[farthest] = -np.inf  # taken


@njit(cache=True)
def balance_after(counts, k, leaving, coming):
    """Return the balance of a cluster after one row leaves and one comes in.

    ``leaving`` and ``coming`` are the groups of these rows, or -1 for no row. The balance is 0 if
    a group would have no row left.
    """
    least, most = np.iinfo(np.int64).max, np.int64(0)
    for g in range(counts.shape[1]):
        n = counts[k, g]
        if g == leaving:
            n -= 1
        if g == coming:
            n += 1
        least = min(least, n)
        most = max(most, n)
    return least / most if least > 0 else 0.0


@njit(cache=True)
def pick_target(state, low, least, most, floor, rule):
    """Return the cluster that gives a row of group ``least`` to the bottleneck, -1 if none can.

    It gets a row of group ``most`` in return, or no row if ``most`` is -1. Only clusters whose
    balance stays above ``floor`` can give. Rule 0 (global) takes the one with the largest ratio of
    ``least`` to ``most``, or with the most rows of ``least`` if nothing is returned. Rule 1 (local)
    takes the one whose centre is closest to the centre of the bottleneck.
    """
    _, counts, sums = state
    chosen = -1
    best_n, best_d = np.int64(0), np.int64(1)
    nearest = np.inf
    n_low = cluster_size(counts, low)
    for k in range(counts.shape[0]):
        if k == low:
            continue
        n = counts[k, least]
        if rule == 0 or n_low == 0:
            d = counts[k, most] if most >= 0 else np.int64(1)
            if n * best_d > best_n * d and balance_after(counts, k, least, most) > floor:
                chosen, best_n, best_d = k, n, d
        elif n > 0:
            inverse, inverse_low = 1.0 / cluster_size(counts, k), 1.0 / n_low
            distance = 0.0
            for j in range(sums.shape[1]):
                gap = sums[k, j] * inverse - sums[low, j] * inverse_low
                distance += gap * gap
            if distance < nearest and balance_after(counts, k, least, most) > floor:
                chosen, nearest = k, distance
    return chosen


@njit(cache=True)
def pick_swap(state, balances, rule):
    """Return (bottleneck, target, group that comes in, group that goes out) of the next swap.

    The target is -1 if no swap raises the bottleneck, and the group that goes out is -1 if the
    bottleneck is as balanced as its size allows, so that a row comes in without exchange.
    """
    counts = state[1]
    n_groups = counts.shape[1]
    # These are int64 from the start. A literal has another type, for which numba would compile the
    # functions below once more.
    low = least = most = np.int64(0)
    nobody = np.int64(-1)
    for k in range(1, counts.shape[0]):
        if balances[k] < balances[low]:
            low = np.int64(k)
    floor = balances[low]
    for g in range(1, n_groups):
        if counts[low, g] < counts[low, least]:
            least = np.int64(g)
        if counts[low, g] > counts[low, most]:
            most = np.int64(g)
    smallest, largest = counts[low, least], counts[low, most]
    if floor == 1.0:
        return low, -1, least, most
    if largest - smallest < 2:
        for g in range(n_groups):
            if counts[low, g] == smallest:
                target = pick_target(state, low, g, nobody, floor, rule)
                if target >= 0:
                    return low, target, g, -1
        return low, -1, least, -1
    target = pick_target(state, low, least, most, floor, rule)
    if target >= 0 or n_groups == 2:
        return low, target, least, most
    # No cluster can exchange the largest and the smallest group of the bottleneck, so one of these
    # two and another group are tried.
    for g in range(n_groups):
        for h in range(n_groups):
            n_in, n_out = counts[low, g], counts[low, h]
            if n_out - n_in >= 2 and (n_in == smallest or n_out == largest):
                target = pick_target(state, low, g, h, floor, rule)
                if target >= 0:
                    return low, target, g, h
    return low, -1, least, most


@njit(cache=True)
def pick_row(data, state, cells, group, k, draw, n_candidates, direction, sign):
    """Return the candidate of a cell that lies farthest in a direction (times ``sign``).

    Candidates are ``n_candidates`` members of the cell in a row, from the place that ``draw``, in
    [0, 1), points to. After the last member comes the first one.
    """
    X, center, _, _ = data
    labels, counts, _ = state
    order, _, starts = cells
    is_sorted = order.size > 0
    if is_sorted:
        start, stop = starts[group, k], starts[group, k + 1]
    else:
        start, stop = starts[group, 0], starts[group, starts.shape[1] - 1]
    place = start + np.int64(draw * (stop - start))
    chosen = -1
    farthest = -np.inf
    for _ in range(min(n_candidates, counts[k, group])):
        row = place
        if is_sorted:
            row = np.int64(order[place])
        else:
            while labels[row] != k:
                row = row + 1 if row + 1 < stop else start
            place = row
        place = place + 1 if place + 1 < stop else start
        along = 0.0
        for j in range(center.size):
            along += (X[row, j] - center[j]) * direction[j]
        along *= sign
        if along > farthest:
            farthest = along
            chosen = row
    return chosen


@njit(cache=True)
def swap_step(data, state, cells, draws, n_candidates, rule, work, log, n_logged):
    """Swap one pair of rows between the bottleneck cluster and its target.

    The two ``draws`` pick the rows that go out and come in. Changes the state and
    ``balances``, appends to the log and returns its new length, unchanged if no swap helps.
    """
    _, counts, sums = state
    direction, balances = work[4:]
    low, target, coming, leaving = pick_swap(state, balances, rule)
    if target < 0:
        return n_logged
    n_low, n_target = cluster_size(counts, low), cluster_size(counts, target)
    # A row that lies farther in this direction is closer to the bottleneck's centre, compared with
    # the target's: the difference of its squared distances is linear in the row.
    for j in range(sums.shape[1]):
        direction[j] = sums[low, j] / max(n_low, 1) - sums[target, j] / n_target
    row_in = pick_row(data, state, cells, coming, target, draws[1], n_candidates, direction, 1.0)
    if leaving >= 0:
        out, drawn = leaving, draws[0]
        row_out = pick_row(data, state, cells, out, low, drawn, n_candidates, direction, -1.0)
        log[0][n_logged], log[1][n_logged], log[2][n_logged] = row_out, low, target
        n_logged += 1
        move_row(data, state, cells, row_out, target)
    log[0][n_logged], log[1][n_logged], log[2][n_logged] = row_in, target, low
    n_logged += 1
    move_row(data, state, cells, row_in, low)
    balances[low] = cluster_balance(counts, low)
    balances[target] = cluster_balance(counts, target)
    return n_logged


@njit(cache=True)
def iterate(data, state, cells, batch, at_once, draws, n_candidates, rule, enough, work, log):
    """Run one iteration of Algorithm 2: k-means steps, then swaps until the balance is enough.

    A k-means step takes ``at_once`` rows of the batch. Changes the state and ``balances``, writes
    the log from its beginning and returns its length.
    """
    counts, balances, n_logged = state[1], work[5], 0
    for i in range(0, batch.size, at_once):
        n_logged = kmeans_step(data, state, cells, batch[i : i + at_once], work, log, n_logged)
    balance = overall_balance(counts, balances)
    for r in range(draws.shape[0]):
        if balance >= enough:
            break
        before = n_logged
        n_logged = swap_step(data, state, cells, draws[r], n_candidates, rule, work, log, n_logged)
        if n_logged == before:
            break
        balance = balances.min()
    return n_logged


@njit(cache=True)
def descend(data, state, cells, rows, sizes, draws, n_candidates, rule, enough, work, log):
    """Run one iteration per entry of ``draws`` (n_iterations, n_swaps, 2).

    ``sizes`` are the rows of a batch, and how many of them are assigned before centres move.
    """
    batch_size, at_once = sizes
    for t in range(draws.shape[0]):
        batch = rows[t * batch_size : (t + 1) * batch_size]
        iterate(data, state, cells, batch, at_once, draws[t], n_candidates, rule, enough, work, log)


@njit(cache=True)
def raise_balance(data, state, cells, draws, n_candidates, rule, enough, work, log):
    """Swap until the balance is enough, no swap helps or the draws end.

    Returns the number of swaps made and whether no further swap helps.
    """
    balances = work[5]
    balance = overall_balance(state[1], balances)
    for r in range(draws.shape[0]):
        if balance >= enough:
            return r, False
        if swap_step(data, state, cells, draws[r], n_candidates, rule, work, log, 0) == 0:
            return r, True
        balance = balances.min()
    return draws.shape[0], False


@njit(cache=True)
def overwrite(target, source):
    """Copy an array. An assignment would take seconds to compile, for its error about shapes."""
    old, new = target.reshape(-1), source.reshape(-1)  # both arrays must be contiguous
    for i in range(old.size):
        old[i] = new[i]


@njit(cache=True)
def breed(
    data, cells, archive, slots, total, pairs, chance, n_candidates, rule, work, spare, log, outcome
):
    """Apply each pair (rows in the k-means step, swaps) to each labelling of an archive.

    ``archive`` holds the arrays of the states, stacked, and ``slots`` the used places in them.
    ``chance`` holds random rows, the number of rows per k-means step, and draws. All pairs of a
    labelling use the same draws, so that their rows stay in the cache. Moves are made in place and
    undone. Writes costs, balances and log lengths, of shape (labellings, pairs), into ``outcome``,
    and the moves of each child into ``log``.
    """
    all_labels, all_counts, all_sums = archive
    costs, balances, lengths = outcome
    batches, at_once, draws = chance
    counts, sums = spare
    for p in range(slots.size):
        labels = all_labels[slots[p]]
        state = (labels, counts, sums)
        n_batch = 0
        for c in range(pairs.shape[0]):
            overwrite(counts, all_counts[slots[p]])
            overwrite(sums, all_sums[slots[p]])
            batch = batches[p, n_batch : n_batch + pairs[c, 0]]
            n_batch += pairs[c, 0]
            draw = draws[p, : pairs[c, 1]]
            moves = (log[0][p, c], log[1][p, c], log[2][p, c])
            n_logged = iterate(
                data, state, cells, batch, at_once, draw, n_candidates, rule, 1.0, work, moves
            )
            costs[p, c] = mean_cost(state, total)
            balances[p, c] = work[5].min()
            lengths[p, c] = n_logged
            for m in range(n_logged - 1, -1, -1):
                labels[moves[0][m]] = moves[1][m]


@njit(cache=True)
def settle(data, cells, archive, parents, slots, log, lengths, parent_slots):
    """Write children into slots of the archive: copy the parent if needed, then repeat the moves.

    ``parents`` holds the (labelling, pair) of each child in ``log``. A child in the slot of its own
    parent must come after that parent's other children, which need the parent.
    """
    all_labels, all_counts, all_sums = archive
    for i in range(slots.size):
        p, c = parents[i, 0], parents[i, 1]
        source, target = parent_slots[p], slots[i]
        if source != target:
            overwrite(all_labels[target], all_labels[source])
            overwrite(all_counts[target], all_counts[source])
            overwrite(all_sums[target], all_sums[source])
        state = (all_labels[target], all_counts[target], all_sums[target])
        for m in range(lengths[p, c]):
            move_row(data, state, cells, np.int64(log[0][p, c, m]), np.int64(log[2][p, c, m]))


@njit(cache=True)
def thin(costs, balances, n_kept, kept):
    """Drop one point after another, each time the one that adds least to the hypervolume.

    Writes False into ``kept`` for dropped points. The points are a front, so both arrays ascend.
    The two ends stay.
    """
    n = costs.size
    before, after = np.arange(n) - 1, np.arange(n) + 1
    loss = np.full(n, np.inf)
    for i in range(1, n - 1):
        loss[i] = (costs[i + 1] - costs[i]) * (balances[i] - balances[i - 1])
    for _ in range(n - n_kept):
        worst = 0
        for i in range(1, n):
            if loss[i] < loss[worst]:
                worst = i
        if loss[worst] == np.inf:
            break
        kept[worst] = False
        loss[worst] = np.inf
        a, b = before[worst], after[worst]
        after[a], before[b] = b, a
        if a > 0:
            loss[a] = (costs[b] - costs[a]) * (balances[a] - balances[before[a]])
        if b < n - 1:
            loss[b] = (costs[after[b]] - costs[b]) * (balances[b] - balances[a])
