r"""Smooth steps in place of "score > threshold", and their difference-of-convex parts.

Every step here is S-shaped: convex below 0 and concave above. So one split serves all of them,

.. math:: \sigma = \sigma^+ - \sigma^-, \quad
   \sigma^+(x) = \sigma(x) \text{ for } x \le 0, \; \sigma(0) + \sigma'(0) x \text{ for } x > 0

with both parts convex. For the ramp these are the parts of Example D.3 of partial_fairness_idca;
for the sigmoid they are tighter than the quadratic split of its Example D.4.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from skfair._typing import FloatArray, IntArray
from skfair.utils.threads import over_blocks

Part = Literal["whole", "plus", "minus"]
Kind = Literal["ramp", "smoothstep", "sigmoid"]

# The same codes are written in skfair/_kernels/soft_steps.py, which is closed.
KINDS: dict[Kind, int] = {"ramp": 0, "smoothstep": 1, "sigmoid": 2}
PARTS: dict[Part, int] = {"whole": 0, "plus": 1, "minus": 2}
# Steps in a block of rows.
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
    width: float  # the smaller, the closer to the true step
    # Only for the ramp: its corners are parabolas that reach this part of the width to either
    # side, so that gradient methods converge; 0 for the ramp of the paper
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

    def __call__(self, x: FloatArray, part: Part = "whole") -> FloatArray:
        """Return the step, or one of its convex parts, at distances from the threshold."""
        from skfair._kernels.soft_steps import steps

        x = np.ascontiguousarray(x, dtype=np.float64)
        out = np.empty_like(x)
        steps(x.ravel(), *self.codes, PARTS[part], out.ravel())
        return out

    def rates(
        self,
        scores: FloatArray,  # (n,)
        cells: IntArray,  # (n,)
        weights: FloatArray,  # (n,)
        thresholds: FloatArray,  # (n_thresholds,)
        n_cells: int,
        part: Part = "whole",
    ) -> FloatArray:
        """Return the weighted steps of scores above thresholds, (n_thresholds, n_cells)."""
        from skfair._kernels import soft_steps

        plain = self._plain(part)
        kernel = soft_steps.plain_rates if plain else soft_steps.soft_rates
        steps = thresholds, *(plain or (*self.codes, PARTS[part]))

        def of_block(i: int, j: int) -> FloatArray:
            sums = np.zeros((n_cells, thresholds.size))
            kernel(scores[i:j], cells[i:j], weights[i:j], *steps, sums)
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
        part: Part = "whole",
    ) -> tuple[FloatArray, FloatArray]:
        """Return the slopes of the sum of ``pull`` times rates, by scores and by thresholds."""
        from skfair._kernels import soft_steps

        plain = self._plain(part)
        kernel = soft_steps.plain_slopes if plain else soft_steps.soft_slopes
        steps = thresholds, *(plain or (*self.codes, PARTS[part])), np.ascontiguousarray(pull)
        slopes = np.zeros(scores.size)

        def of_block(i: int, j: int) -> FloatArray:
            of_thresholds = np.zeros(thresholds.size)
            kernel(scores[i:j], cells[i:j], weights[i:j], *steps, slopes[i:j], of_thresholds)
            return of_thresholds

        parts = over_blocks(of_block, scores.size, _rows_of(thresholds))
        return slopes, np.asarray(sum(parts, np.zeros(thresholds.size)))

    @property
    def codes(self) -> tuple[int, float, float]:
        """What kernels are given: kind, half-width, rounding in units of the score."""
        return KINDS[self.kind], float(self.width), float(self.rounding * self.width)

    def _plain(self, part: Part) -> tuple[float, ...] | None:
        """Return what the kernels of plain steps are given; None if corners need others."""
        half = 0.5 / float(self.width)
        if self.kind == "smoothstep" and part == "whole":
            return half, 0.5, 1.0, True
        if self.kind == "ramp" and not self.rounding:
            top = 1.0 if part == "whole" else np.inf
            return half, -0.5 if part == "minus" else 0.5, top, False
        return None

    @property
    def is_compact(self) -> bool:
        """Whether the step is exactly 0 and 1 beyond its width."""
        return self.kind != "sigmoid"

    def narrowed(self, factor: float) -> Surrogate:
        """Return the step with another width."""
        return replace(self, width=self.width * factor)


def _rows_of(thresholds: FloatArray) -> int:
    """Return the number of rows in a block."""
    return 1 + _STEPS // max(1, thresholds.size)
