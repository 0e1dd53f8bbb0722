"""Problems that solvers see: an objective and constraints, with their derivatives.

``protocol`` says what a solver may ask of a problem, and ``base`` has the methods that all problems
with bounds share. The problems themselves are in ``erm``, and in the wings and papers.
"""
