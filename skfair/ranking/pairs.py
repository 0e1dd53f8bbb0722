"""Pairs of a better and a worse document of one query, and the constraint on their errors.

:func:`skfair.ranking.task.make_task` calls :func:`draw_pairs` for the rows of the learning problem,
and :func:`bind_pairs` for its constraint.

An *atom* is a group, or with several attributes an intersection of groups. A *kind* is a query, the
atom of the better document and the atom of the worse one (which may be the same), and holds the
pairs of these. The constraint compares, within each query, the error rate on pairs whose better
document is in one group with the rate on opposite pairs. With one attribute these are two kinds,
otherwise sums of kinds. So a kind is a *cell* of the constraint, a set of rows with a mean. If a
kind has very many pairs, only some are drawn.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.utils.random import sample_without_replacement

from skfair._typing import FloatArray, IntArray
from skfair.constraints.bound import BoundConstraint
from skfair.constraints.comparisons import Pairwise
from skfair.constraints.moments import Moment, smooth_step
from skfair.groups.encoding import Cells, GroupEncoding
from skfair.groups.limits import Limit, limits_of_attributes, loosest
from skfair.utils.validation import check_limit


class PairErrors(Moment):
    """Errors on pairs: 1 for a negative difference of scores, 1/2 for a difference of 0."""

    is_rate = True

    def parts(
        self, scores: FloatArray, temperature: float, rows: IntArray | slice | None = None
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return value, slope and curvature of sigmoid(-T z) for temperature T and scores z."""
        return smooth_step(scores, -temperature, temperature)

    def strict(self, scores: FloatArray) -> FloatArray:
        """Return 1 for pairs in the wrong order, and 1/2 for ties."""
        return np.where(scores < 0, 1.0, np.where(scores == 0, 0.5, 0.0))


class Kind(NamedTuple):
    """The pairs of one query whose documents are of two given atoms of the groups."""

    query: int
    better: int  # atom of the better document
    worse: int  # atom of the worse document
    n_pairs: int  # number of all pairs, drawn or not
    # (n_drawn,): row numbers of the better and the worse document of the pairs that were drawn
    first: IntArray
    second: IntArray


class QueryPairs(NamedTuple):
    """Pairs of all queries, one kind after the other."""

    kinds: list[Kind]  # kinds with at least one pair, in the order of their pairs below
    # (n_pairs,): row numbers of the better and the worse document
    first: IntArray
    second: IntArray
    # (n_pairs,): weights in the mean loss. All queries have the same weight, and within a query all
    # pairs
    weights: FloatArray


def draw_pairs(
    grades: FloatArray,  # (n_samples,): relevance of each document
    queries: list[IntArray],  # rows of the documents of each query
    atoms: IntArray,  # (n_samples,): atom of each document
    max_pairs: int,
    rng: np.random.RandomState,
) -> QueryPairs:
    """Return at most ``max_pairs`` pairs of each kind, drawn without replacement.

    Pairs are numbered and not listed, so this takes O(n log n) for n documents of a query.
    """
    kinds = [
        kind
        for query, rows in enumerate(queries)
        for kind in _kinds_of_query(query, rows, grades, atoms, max_pairs, rng)
    ]
    if not kinds:
        raise ValueError(
            "No query has two documents of different grades, so there is nothing to learn. Check "
            "y and query_id."
        )
    totals = np.zeros(len(queries))
    for kind in kinds:
        totals[kind.query] += kind.n_pairs
    n_queries = np.count_nonzero(totals)
    weights = [
        np.full(kind.first.size, kind.n_pairs / kind.first.size / totals[kind.query] / n_queries)
        for kind in kinds
    ]
    first, second = (np.concatenate(ends) for ends in zip(*(k[-2:] for k in kinds), strict=True))
    return QueryPairs(kinds, first, second, np.concatenate(weights))


def _kinds_of_query(
    query: int,
    rows: IntArray,
    grades: FloatArray,
    atoms: IntArray,
    max_pairs: int,
    rng: np.random.RandomState,
) -> Iterator[Kind]:
    """Yield the kinds of one query that have pairs; ``rows`` are its documents."""
    present, where = np.unique(atoms[rows], return_index=True)
    rows = rows[np.argsort(grades[rows], kind="stable")]
    # Atoms are in the order of their first rows, so that draws do not depend on group names.
    members = {int(atom): rows[atoms[rows] == atom] for atom in present[np.argsort(where)]}
    for better, above in members.items():
        for worse, below in members.items():
            # Both are sorted by grade, so document i of ``above`` is better than the first
            # n_worse[i] of ``below``. Its pairs have the numbers up to ends[i].
            n_worse = np.searchsorted(grades[below], grades[above], side="left")
            ends = np.cumsum(n_worse)
            n_pairs = int(ends[-1])
            if not n_pairs:
                continue
            numbers = np.arange(n_pairs)
            if n_pairs > max_pairs:
                numbers = sample_without_replacement(n_pairs, max_pairs, random_state=rng)
            i = np.searchsorted(ends, numbers, side="right")
            j = numbers - (ends - n_worse)[i]
            yield Kind(query, better, worse, n_pairs, above[i], below[j])


def bind_pairs(
    pairs: QueryPairs,
    query_names: list[Any],
    groups: GroupEncoding,
    atoms: Cells,
    max_disparity: Limit,
) -> tuple[BoundConstraint, IntArray, FloatArray]:
    """Return the constraint on errors, what each of its rows compares, and the limit of each row.

    A constraint row belongs to a query and two groups a < b of one attribute. These are (query, a,
    b) in the second result, (n_rows, 3). The value of the row is the error rate on pairs whose
    better document is in b and whose worse one is in a, minus the rate on the opposite pairs. There
    is a row only if the query has both sorts of pairs and the attribute has a limit. The limits are
    the third result, (n_rows,). The ``max_disparity`` of the constraint is the largest limit.
    """
    number = {kind[:3]: k for k, kind in enumerate(pairs.kinds)}
    sizes = np.array([kind.n_pairs for kind in pairs.kinds], dtype=np.float64)
    # The list of atoms of each group.
    members = [row.indices.tolist() for row in atoms.membership]
    limit_of = limits_of_attributes(max_disparity, groups)
    check_limit(min(loosest(max_disparity), 1.0), f"max_disparity={max_disparity!r}", ratio="")
    compared: list[tuple[int, int, int]] = []
    limits: list[float] = []
    rates: list[tuple[list[int], FloatArray]] = []  # numbers of kinds, and their shares in a rate
    for query in sorted({kind.query for kind in pairs.kinds}):
        for a, b in _group_pairs(groups):
            limit = limit_of[groups.attribute_of_group[a]]
            if limit is None:
                continue
            both = [
                [
                    number[query, i, j]
                    for i in members[g]
                    for j in members[h]
                    if (query, i, j) in number
                ]
                for g, h in ((a, b), (b, a))
            ]
            if all(both):
                compared.append((query, a, b))
                limits.append(limit)
                rates += [(own, sizes[own] / sizes[own].sum()) for own in both]
    names = [
        f"query {query_names[query]}: {groups.names[g]} better than {groups.names[h]}"
        for query, a, b in compared
        for g, h in ((a, b), (b, a))
    ]
    constraint = _constraint(pairs, rates, names, max(limits, default=0.0))
    return constraint, np.array(compared, dtype=np.int64).reshape(-1, 3), np.array(limits)


def _group_pairs(groups: GroupEncoding) -> list[tuple[int, int]]:
    """Return the pairs a < b of groups of the same attribute."""
    attribute = groups.attribute_of_group
    ends = np.nonzero(np.triu(attribute[:, None] == attribute, k=1))
    return list(zip(*(ends.tolist() for ends in ends), strict=True))


def _constraint(
    pairs: QueryPairs,
    rates: list[tuple[list[int], FloatArray]],
    names: list[str],
    max_disparity: float,
) -> BoundConstraint:
    """Return the constraint, whose rows each compare two rates.

    ``names`` are the names of the rates. Kinds that some rate needs become cells, and a rate is a
    row of a matrix over the cells.
    """
    used = np.unique(np.concatenate([np.empty(0, np.int64), *(own for own, _ in rates)]))
    cell_of_kind = np.full(len(pairs.kinds), -1)
    cell_of_kind[used] = np.arange(used.size)
    n_drawn = np.array([kind.first.size for kind in pairs.kinds])
    cells = np.repeat(cell_of_kind, n_drawn)  # cell of each pair; -1 if no rate needs it
    row_weights = np.where(cells >= 0, np.repeat(1 / n_drawn, n_drawn), 0.0)
    columns = [cell_of_kind[own] for own, _ in rates]
    matrix = sparse.csr_array(
        (
            np.concatenate([np.empty(0), *(shares for _, shares in rates)]),
            np.concatenate([np.empty(0, np.int64), *columns]),
            np.cumsum([0, *(len(own) for own, _ in rates)]),
        ),
        shape=(len(rates), used.size),
    )
    return BoundConstraint(
        name="PairErrorParity",
        moment=PairErrors(),
        cells=np.maximum(cells, 0),
        row_weights=row_weights,
        rates=matrix,
        overall=sparse.csr_array(matrix.shape),
        quotients=None,
        rate_names=tuple(names),
        rate_groups=np.full(len(names), -1),
        compared_sets=np.repeat(np.arange(len(names) // 2), 2),
        comparison=Pairwise(),
        max_disparity=max_disparity,
    )
