"""A modified proximal-perturbed Lagrangian (PLADA), and the methods that it compares with.

"A modified proximal-perturbed Lagrangian for non-convex non-smooth representatives of fairness
constraints", anonymous authors, under review.

The problem is to minimise a loss F under one-sided constraints G(theta) <= 0 on smooth rates.
Slacks u in [0, u_max] turn the constraints into G(theta) + u = z, and a proximal term drives the
perturbation z to 0.

- the Lagrangian, (7): :mod:`~skfair.papers.plada.plada`, with z and its multiplier eliminated
- Algorithm 1, (9) to (12): :class:`skfair.papers.Plada`
- the same on batches, appendix D.3, figure 7: :class:`skfair.papers.PladaStochastic`
- SSG: :class:`skfair.papers.SSG`: switching subgradients
- IPP-SSG: :class:`skfair.papers.IPPSSG`: inexact proximal points, by switching steps (Huang and
  Lin, 2023)
- IPP-ConEx: :class:`skfair.papers.IPPConEx`: the same, by constraint extrapolation (Boob and
  others, 2022)
- multiplier model: :class:`skfair.papers.MultiplierModel`: a network gives the multiplier of each
  of very many constraints

One-sided constraints come from :mod:`skfair.papers.one_sided`. All are names of ``solver=`` of
``ConstrainedERMClassifier``. Each class says what it changes against its paper.
"""
