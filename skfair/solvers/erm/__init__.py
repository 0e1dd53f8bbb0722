"""Solvers of empirical risk minimisation under constraints, which see no groups, rows or models.

``al_newton`` is for linear scores, ``al_lbfgs`` for models without second derivatives or with many
columns, and ``alm`` (on the base ``stochastic``) for networks and streams. ``newton_system``,
``lbfgs`` and ``elastic_step`` solve their inner problems.
"""
