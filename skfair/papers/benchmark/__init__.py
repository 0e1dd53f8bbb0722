"""Stochastic methods for training under constraints, as one benchmark compares them.

A. Kliachkin, J. Lepšová, G. Bareilles and J. Marecek, "Benchmarking stochastic approximation
algorithms for fairness-constrained training of deep neural networks".

Loss and constraints are means over a distribution, and each step sees a batch.

- Stochastic Ghost: :class:`skfair.papers.Ghost`: steps solve quadratic programmes, and a random
  batch size removes their bias
- SSL-ALM: :class:`skfair.papers.SSLALM`: a smoothed, linearised augmented Lagrangian
- plain ALM: :class:`skfair.solvers.ALM`, the default for networks and streams
- Switching subgradient: :class:`skfair.papers.SSw`
- SGD without constraints: :class:`skfair.papers.SGD`
- SGD with a fixed penalty: :class:`skfair.papers.Penalty`

Their base class is in :mod:`skfair.solvers.erm.stochastic`. It draws batches and keeps running
means and the state that ``partial_fit`` continues from.
"""
