"""All gaps of scores between groups in one walk down the sorted rows, whatever their weights."""

import numpy as np

from skfair._kernels.declaring import njit


@njit(cache=True)
def score_gaps(
    scores,
    codes,
    positive,
    weights,
    per_weight,
    starts,
    partner,
    pair,
    is_second,
    above,
    tied,
    last,
    gaps,
    wins,
):
    """Add up what every pair of groups differs by, and how often one group outranks the other.

    Rows have descending scores; ``per_weight`` (n_groups, 3) is the mass of a weight of 1 among
    all rows, positives and negatives of a group. Entries ``starts[g]:starts[g + 1]`` list the
    partners of group g, the number of the pair and whether g is its second group. ``above`` and
    ``tied`` (n_groups, 3) and ``last`` (n_pairs,) are room to work in: zeros, and the first score.

    Adds to ``gaps`` (n_pairs, 2) the largest difference and the area between the groups, and to
    ``wins`` (n_pairs, 3) the probability that a row of the first group scores above one of the
    second, the same for its positives and the other's negatives, and with groups exchanged; to
    row ``n_pairs + g`` that of positives and negatives of group g. A tie counts one half.
    """
    n, n_groups, n_pairs = scores.size, above.shape[0], last.size
    touched, is_touched = np.empty(n_groups, np.int64), np.zeros(n_groups, np.bool_)
    i = 0
    while i < n:
        threshold, n_touched = scores[i], 0
        while i < n and scores[i] == threshold:
            w, g = weights[i], codes[i]
            if w > 0:
                if not is_touched[g]:
                    touched[n_touched], is_touched[g] = g, True
                    n_touched += 1
                tied[g, 0] += w * per_weight[g, 0]
                side = 1 if positive[i] else 2
                tied[g, side] += w * per_weight[g, side]
            i += 1
        for k in range(n_touched):
            g = touched[k]
            wins[n_pairs + g, 1] += tied[g, 2] * (above[g, 1] + 0.5 * tied[g, 1])
            for q in range(starts[g], starts[g + 1]):
                h, p = partner[q], pair[q]
                gaps[p, 1] += abs(above[g, 0] - above[h, 0]) * (last[p] - threshold)
                last[p] = threshold
                beaten = tied[g, 2] * (above[h, 1] + 0.5 * tied[h, 1])
                if is_second[q]:
                    wins[p, 0] += tied[g, 0] * (above[h, 0] + 0.5 * tied[h, 0])
                    wins[p, 1] += beaten
                else:
                    wins[p, 2] += beaten
        for k in range(n_touched):
            g = touched[k]
            is_touched[g] = False
            for side in range(3):
                above[g, side] += tied[g, side]
                tied[g, side] = 0.0
        for k in range(n_touched):
            g = touched[k]
            for q in range(starts[g], starts[g + 1]):
                p = pair[q]
                gaps[p, 0] = max(gaps[p, 0], abs(above[g, 0] - above[partner[q], 0]))
