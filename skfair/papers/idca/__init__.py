"""Differences of convex functions for rates within intervals of percentiles (IDCA).

Y. He, Y. Huang, Y. Yao and Q. Lin, "Enforcing fair predicted scores on intervals of percentiles by
difference-of-convex constraints", arXiv 2505.12530.

Scores are compared within an interval of each group's own ranks. With ramps in place of steps the
constraints are differences of convex functions, f_i = f_i^+ - f_i^-, problem (27).

- (21), (50), (56): constraints in pairs of groups and in ranks: the problem
  :class:`skfair.partial_parity.problem.PartialParityProblem`
- (31), (32): :class:`~skfair.papers.idca.base.Linearised`
- Algorithm 1, IDCA: :class:`skfair.papers.IDCA`
- Algorithm 2, its steps: :func:`~skfair.papers.idca.base.switching_step`
- Algorithm 3: :class:`skfair.papers.DCSSG`, the same step on the f_i themselves
- section G.9, networks: :class:`skfair.papers.IDCAStochastic`, inner steps of Yu, Neely and Wei
  (2017)
- (114), (119), section G.3: :class:`skfair.papers.DCPenalty`, a baseline

They are values of ``solver=`` of ``PartialParityClassifier``, and run once, as in the paper. The
default of the package solves smooth problems in rounds, until the measured disparity is within the
limit.
"""
