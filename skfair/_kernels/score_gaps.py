"""All gaps of scores between groups in one walk down the sorted rows, whatever their weights.

Called by ``skfair/metrics/resampled_scores.py`` for each resample, where only the weights change.
"""

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

    Rows have descending scores, with the group ``codes``, whether they are ``positive``, and
    ``weights``. ``per_weight`` (n_groups, 3) is the share of a row of weight 1 among all rows, the
    positives and the negatives of its group, which are the sides 0, 1 and 2 of other arrays.
    Entries ``starts[g]:starts[g + 1]`` of the next three arrays list the pairs of group g: the
    other group (``partner``), the number of the pair (``pair``), and whether g is the second group
    of the pair (``is_second``).

    ``above`` and ``tied`` (n_groups, 3) are the shares of a group above the current score and at
    it, and start as zeros. ``last`` (n_pairs,) is the score at which one of the pair's groups last
    had a row, and starts as the highest score.

    Column 0 of ``gaps`` (n_pairs, 2) becomes the largest difference of the shares above a score,
    and column 1 the area between them as functions of the score. Added to ``wins`` (n_pairs +
    n_groups, 3), in which a tie counts one half:

    - row p, column 0: the probability that a row of the first group scores above one of the second,
    - row p, column 1: the same for positives of the first group and negatives of the second,
    - row p, column 2: the same for positives of the second group and negatives of the first,
    - row n_pairs + g, column 1: the same for positives and negatives of group g.
    """
    n, n_groups, n_pairs = scores.size, above.shape[0], last.size
    # The groups that have rows at the current score.
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
                # If both groups of a pair have rows at this score, the second visit adds an area of
                # 0, because ``last`` has reached the score.
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
