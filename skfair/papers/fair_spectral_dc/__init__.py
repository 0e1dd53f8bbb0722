"""Fair spectral clustering by differences of convex functions, and what it compares with.

F. Tonin, A. Lambert, J. A. K. Suykens and V. Cevher, "Accelerating spectral clustering under
fairness constraints".

Fair spectral clustering looks for an orthonormal H of largest Tr(H'MH) with F'H = 0, where columns
of F mark the members of a group minus its share. The exact solvers of the package compute
eigenvectors in the null space of F'. The algorithms in this folder do not.

- Algorithm 1, with the dual (14) and update (16): :class:`skfair.papers.DCADMM`: ADMM whose step in
  H minimises a difference of convex functions. It is a reproduction, and it solves a different
  problem, which its module explains
- FFSC, table 4: :class:`skfair.papers.FFSC`: coordinate descent on labels, a reconstruction
  (Feng, Zhong and Pan, 2024)
- UFSC, table 4: :class:`skfair.papers.UFSC`: graph, embedding and labels in turn, a
  reconstruction (Zhang and Wang, 2024)

They are chosen by name, ``FairSpectralClustering(solver="dc_admm")``, and compared on the page of
the benchmark. None of them is a default: exact eigenvectors are faster here and satisfy F'H = 0.
"""
