"""Stochastic alternating balance fair k-means (SAfairKM).

S. Liu and L. N. Vicente, "A stochastic alternating balance k-means algorithm for fair clustering".

The problem, (2) there, has two objectives over labellings: the mean squared distance of the rows to
the centres of their clusters, and the balance, the smallest ratio of two groups' counts in one
cluster. K-means steps lower the first, and swaps of rows between clusters raise the second. The
numbers of both in an iteration, n_a and n_b, determine the point of the front that is reached.

- the objectives, (2): :mod:`~skfair.papers.safairkm.swap_sample`, in counts and sums that a move
  changes in O(d)
- Algorithm 2, SAfairKM: :class:`skfair.papers.Swap`, ``cluster``
- Algorithm 3, the front: its ``search``, which ``ParetoFairKMeans(solver="swap")`` runs
- Algorithm 4, Theorem 5.1: :func:`skfair.papers.alternating_gradient`, for any two smooth functions
- Section 5, its remark on smoothed minima: :class:`skfair.papers.Smooth`: centres and an offset
  for each pair of group and cluster; cost and balance in
  :mod:`~skfair.papers.safairkm.soft_objectives`

``swap.py`` lists the changes and their reasons. ``Swap.paper()`` undoes what can be undone. The
default
solver of the package, :class:`skfair.solvers.Prices`, solves another problem: least cost within a
limit on the balance.
"""
