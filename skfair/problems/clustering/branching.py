"""A search for whole numbers, by linear programmes that anybody can interrupt.

The sums that have to be whole are those of the rows which constraints do not tell apart: once all
of them are, what is left is a transport, whose cheapest answers are whole by themselves. So a
branch says that such a sum is at most, or at least, a whole number. Every answer of a linear
programme is rounded and mended by the caller, who says what the best of these attempts costs.

The search ends after a number of linear programmes, whatever the clock says, so that equal problems
have equal answers on any machine.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from skfair._typing import FloatArray

# From which distance to a whole number on a sum counts as a fraction.
_FRACTION = 1e-6


class Relaxed(NamedTuple):
    """A linear programme in which some sums of the unknowns have to be whole."""

    cost: FloatArray  # (n_unknowns,)
    # Unknowns from 0 to ``most`` with ``left @ unknowns <= right``
    left: Any  # (n_limits, n_unknowns), sparse
    right: FloatArray  # (n_limits,)
    most: FloatArray  # (n_unknowns,)
    sums: Any  # (n_sums, n_unknowns), sparse: what has to be whole
    importance: FloatArray  # (n_sums,): fractions of the most important ones are decided first
    offset: float = 0.0  # what is paid besides


class _Node(NamedTuple):
    """A programme with its answer; of two the one of less cost comes first."""

    bound: float
    number: int  # of the linear programme: no two are equal
    unknowns: FloatArray
    surplus: FloatArray  # what each unknown would cost more than the bound if it were 1
    programme: Relaxed

    def branches(self, room: float) -> Iterator[Relaxed]:
        """Yield the programme with one sum rounded down, and up; nothing if all are whole.

        Unknowns that would cost more than there is room for are 0 from here on.
        """
        programme = self.programme
        sums = programme.sums @ self.unknowns
        distance = np.abs(sums - np.rint(sums))
        is_part = distance >= _FRACTION
        if not is_part.any():
            return
        worst = int((distance * is_part * programme.importance).argmax())
        row, most = programme.sums[[worst]], np.where(self.surplus > room, 0.0, programme.most)
        for sign, limit in ((1.0, np.floor(sums[worst])), (-1.0, -np.ceil(sums[worst]))):
            left = sparse.vstack([programme.left, sign * row], format="csr")
            yield programme._replace(left=left, right=np.append(programme.right, limit), most=most)


class Search:
    """Follow the most promising branch until it ends, then the best of those that were left."""

    def __init__(
        self,
        # What whole numbers cost at best, after an attempt to make some near an answer
        attempt: Callable[[FloatArray], float],
        least: float,  # and before any attempt
        gap: float,  # share of the cost that need not be gained
        n_programmes: int,  # linear programmes, at most
    ) -> None:
        self._attempt, self._least, self._gap = attempt, least, gap
        self._n_programmes, self._n_solved = n_programmes, 0

    def run(self, programme: Relaxed) -> None:
        """Show answers of the programme, and of its branches, to ``attempt``."""
        waiting: list[_Node] = []
        node = self._solved(programme)
        while node is not None:
            branches = node.branches(self._enough - node.bound)
            better = sorted(filter(None, map(self._solved, branches)))
            for other in better[1:]:
                heapq.heappush(waiting, other)
            node = better[0] if better else self._next(waiting)

    def _solved(self, programme: Relaxed) -> _Node | None:
        """Solve a programme and try what is near; None if it is not worth a branch."""
        if self._n_solved == self._n_programmes:
            return None
        self._n_solved += 1
        ends: Any = np.stack([np.zeros_like(programme.most), programme.most], axis=1)
        solution: Any = linprog(
            programme.cost, A_ub=programme.left, b_ub=programme.right, bounds=ends
        )
        if solution.status != 0 or solution.fun + programme.offset >= self._enough:
            return None
        self._least = min(self._least, self._attempt(solution.x))
        bound = float(solution.fun) + programme.offset
        return _Node(bound, self._n_solved, solution.x, solution.lower.marginals, programme)

    def _next(self, waiting: list[_Node]) -> _Node | None:
        """Take the best of the branches that were left, if it may still be cheaper."""
        if not waiting or waiting[0].bound >= self._enough:
            return None
        return heapq.heappop(waiting)

    @property
    def _enough(self) -> float:
        """What an answer has to cost less than."""
        return self._least * (1 - self._gap)
