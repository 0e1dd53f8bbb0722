r"""Smooth steps in place of "score > threshold": the option ``surrogate=`` of constraints.

:func:`make_surrogate` reads the option when a fit states its smooth problem. The moments over
ranked rows then call :meth:`Surrogate.rates` and :meth:`Surrogate.slopes` in every evaluation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from skfair._typing import FloatArray, IntArray
from skfair.utils.threads import over_blocks

Kind = Literal["ramp", "smoothstep", "sigmoid"]

# The kernels in skfair/partial_parity/_kernels/soft_steps.py use the same codes. They cannot import
# them, because files with kernels import only skfair._kernels.declaring from skfair.
KINDS: dict[Kind, int] = {"ramp": 0, "smoothstep": 1, "sigmoid": 2}
# Default widths in units of the score (0.5 is the paper's). The rounded corners of a ramp extend
# over the part ROUNDING of its width.
WIDTHS: dict[Kind, float] = {"ramp": 0.5, "smoothstep": 0.6, "sigmoid": 0.25}
ROUNDING = 0.2
# A block of rows has about this many steps (rows times thresholds).
_STEPS = 1 << 17


@dataclass(frozen=True)
class Surrogate:
    r"""A smooth step from 0 to 1.

    Examples
    --------
    >>> import numpy as np
    >>> from skfair.constraints.partial import Surrogate
    >>> Surrogate("ramp", 0.5)(np.array([-1.0, 0.0, 0.25, 1.0]))
    array([0.  , 0.5 , 0.75, 1.  ])
    """

    # Straight; cubic; logistic. The first two rise between ``-width`` and ``width``, the last
    # one has slope ``1 / (4 width)`` at 0 and never ends
    kind: Kind
    width: float  # a smaller width is closer to the true step
    # Only for the ramp: its corners are parabolas that extend over this part of the width to both
    # sides, so that gradient methods converge. 0 is the ramp of the paper
    rounding: float = 0.0

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(
                f"surrogate must be one of {', '.join(map(repr, KINDS))}, got {self.kind!r}."
            )
        if not 0 < self.width < np.inf or not 0 <= self.rounding <= 1:
            raise ValueError(
                f"A surrogate needs width > 0 and rounding in [0, 1], got {self.width!r} and "
                f"{self.rounding!r}."
            )

    def __call__(self, x: FloatArray) -> FloatArray:
        """Return the step at distances from the threshold."""
        from skfair.partial_parity._kernels.soft_steps import steps

        x = np.ascontiguousarray(x, dtype=np.float64)
        out = np.empty_like(x)
        steps(x.ravel(), *self.codes, out.ravel())
        return out

    def rates(
        self,
        scores: FloatArray,  # (n,)
        cells: IntArray,  # (n,)
        weights: FloatArray,  # (n,)
        thresholds: FloatArray,  # (n_thresholds,)
        n_cells: int,
    ) -> FloatArray:
        """Return sums of weights * step(score - threshold) by cell, (n_thresholds, n_cells)."""
        add_rates, _, how = self._kernels()

        def of_block(i: int, j: int) -> FloatArray:
            sums = np.zeros((n_cells, thresholds.size))
            add_rates(scores[i:j], cells[i:j], weights[i:j], thresholds, *how, sums)
            return sums

        parts = over_blocks(of_block, scores.size, _rows_of(thresholds))
        return np.ascontiguousarray(sum(parts, np.zeros((n_cells, thresholds.size))).T)

    def slopes(
        self,
        scores: FloatArray,
        cells: IntArray,
        weights: FloatArray,
        thresholds: FloatArray,
        pull: FloatArray,  # (n_thresholds, n_cells)
    ) -> tuple[FloatArray, FloatArray]:
        """Return the slopes of the sum of ``pull`` times rates, by scores and by thresholds."""
        _, add_slopes, how = self._kernels()
        slopes, pull = np.zeros(scores.size), np.ascontiguousarray(pull)

        def of_block(i: int, j: int) -> FloatArray:
            of_thresholds = np.zeros(thresholds.size)
            rows = scores[i:j], cells[i:j], weights[i:j], thresholds
            add_slopes(*rows, *how, pull, slopes[i:j], of_thresholds)
            return of_thresholds

        parts = over_blocks(of_block, scores.size, _rows_of(thresholds))
        return slopes, np.asarray(sum(parts, np.zeros(thresholds.size)))

    def _kernels(self) -> tuple[Callable[..., None], Callable[..., None], tuple[Any, ...]]:
        """Return the kernels of rates and of slopes, and the arguments that describe the step."""
        from skfair.partial_parity._kernels import soft_steps

        if self.kind == "smoothstep" or (self.kind == "ramp" and not self.rounding):
            how = 0.5 / float(self.width), 0.5, 1.0, self.kind == "smoothstep"
            return soft_steps.plain_rates, soft_steps.plain_slopes, how
        return soft_steps.soft_rates, soft_steps.soft_slopes, self.codes

    @property
    def codes(self) -> tuple[int, float, float, int]:
        """Arguments of kernels: kind, width, rounding in units of the score, part (0 is all)."""
        return KINDS[self.kind], float(self.width), float(self.rounding * self.width), 0

    @property
    def is_compact(self) -> bool:
        """Whether the step is exactly 0 and 1 beyond its width."""
        return self.kind != "sigmoid"

    def narrowed(self, factor: float) -> Surrogate:
        """Return the step with another width."""
        return replace(self, width=self.width * factor)


def make_surrogate(
    surrogate: Kind | Surrogate,
    *,
    spread: float = 1.0,  # spread of the scores, divided by the spread that suits the widths
    is_rounded: bool = False,  # whether corners of a ramp are rounded, for precise solvers
) -> Surrogate:
    """Return a step of the usual width, unless it is the user's own."""
    if isinstance(surrogate, Surrogate):
        return surrogate
    rounding = ROUNDING if surrogate == "ramp" and is_rounded else 0.0
    return Surrogate(surrogate, WIDTHS[surrogate] * (spread or 1.0), rounding)


def _rows_of(thresholds: FloatArray) -> int:
    """Return the number of rows in a block."""
    return 1 + _STEPS // max(1, thresholds.size)
