"""Rankings of queries, pair by pair and place by place, in plain loops."""

from itertools import combinations

import numpy as np


def rows_of(query_id, query):
    return [i for i, name in enumerate(query_id) if name == query]


def pair_error_rate(y, scores, rows, better_in, worse_in):
    """Share of the pairs (better row of one set, worse row of another) in the wrong order."""
    errors, n_pairs = 0.0, 0
    for i in rows:
        for j in rows:
            if y[i] > y[j] and i in better_in and j in worse_in:
                n_pairs += 1
                errors += 1.0 if scores[i] < scores[j] else 0.5 if scores[i] == scores[j] else 0.0
    return errors / n_pairs if n_pairs else None


def pair_error_gaps(y, scores, query_id, groups):
    """The largest difference over pairs of groups, for each query; None where undefined."""
    gaps = []
    for query in sorted(set(query_id)):
        rows = rows_of(query_id, query)
        found = []
        for a, b in combinations(sorted({groups[i] for i in rows}), 2):
            in_a = {i for i in rows if groups[i] == a}
            in_b = {i for i in rows if groups[i] == b}
            one = pair_error_rate(y, scores, rows, in_a, in_b)
            other = pair_error_rate(y, scores, rows, in_b, in_a)
            if one is not None and other is not None:
                found.append(abs(one - other))
        gaps.append(max(found) if found else None)
    return gaps


def attention(scores, rows, k=None):
    """Attention of each row: that of its place, the mean of them for tied rows."""
    of_place = [1 / np.log2(1 + place) for place in range(1, len(rows) + 1)]
    if k is not None:
        of_place = [v if place < k else 0.0 for place, v in enumerate(of_place)]
    got = {}
    for i in rows:
        above = sum(scores[j] > scores[i] for j in rows)
        tied = sum(scores[j] == scores[i] for j in rows)
        got[i] = sum(of_place[above : above + tied]) / tied
    return got


def exposure_gaps(scores, query_id, groups, k=None):
    gaps = []
    for query in sorted(set(query_id)):
        rows = rows_of(query_id, query)
        got = attention(scores, rows, k)
        means = [
            np.mean([got[i] for i in rows if groups[i] == g]) for g in {groups[i] for i in rows}
        ]
        gaps.append(max(means) - min(means) if len(means) > 1 else None)
    return gaps


def rank_gaps(scores, query_id, groups, k=None):
    gaps = []
    for query in sorted(set(query_id)):
        rows = rows_of(query_id, query)
        got = attention(scores, rows, k)
        present = {groups[i] for i in rows}
        differences = []
        for g in present:
            own = [i for i in rows if groups[i] == g]
            share = sum(got[i] for i in own) / sum(got.values())
            differences.append(abs(share - len(own) / len(rows)))
        gaps.append(max(differences) if len(present) > 1 else None)
    return gaps


def ndcg(y, scores, query_id):
    """Mean over queries with several rows and a positive grade; for scores without ties."""
    values = []
    for query in sorted(set(query_id)):
        rows = rows_of(query_id, query)
        gain = sum(
            y[i] / np.log2(1 + place)
            for place, i in enumerate(sorted(rows, key=lambda i: -scores[i]), 1)
        )
        best = sum(
            y[i] / np.log2(1 + place)
            for place, i in enumerate(sorted(rows, key=lambda i: -y[i]), 1)
        )
        if len(rows) > 1 and best > 0:
            values.append(gain / best)
    return float(np.mean(values))
