"""Variational fair k-means (VFairKM), which SAfairKM compares with.

I. M. Ziko, J. Yuan, E. Granger and I. Ben Ayed, "Variational fair clustering"; the problem is (7)
in appendix C of the paper on SAfairKM.

The method minimises the k-means cost plus a multiple mu of the Kullback-Leibler divergence of a
target U from the groups' shares P_k in each cluster. It trades cost against shares and enforces no
limit.

- problem (7): :class:`skfair.papers.Variational`; mu is its weight
- bound updates: :class:`~skfair.papers.vfairkm.soft_assignment.SoftAssignment`

The appendix prints the problem only. The bound on its concave part and the convergence of the
updates are derived in :mod:`~skfair.papers.vfairkm.variational`.
"""
