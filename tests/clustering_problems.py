"""Clustering problems without rules from plain arrays, and results in the units of the data."""

from dataclasses import replace

import numpy as np

from skfair.groups.encoding import encode_groups
from skfair.problems.clustering.counts import Rules
from skfair.problems.clustering.points import RepresentationProblem
from skfair.solvers.clustering.base import RunSettings


def free_problem(X, codes, n_clusters, n_groups, weights=None):
    """Rows whose groups have these numbers; a group may have no rows."""
    every = encode_groups(np.arange(n_groups))
    counts = np.bincount(codes, minlength=n_groups)
    groups = replace(every, codes=np.asarray(codes, np.int64)[None], counts=counts)
    return RepresentationProblem(X, groups, Rules.none(n_groups), n_clusters, weights)


def soft_run(solver, problem, centers, max_iter, tol, random_state=0):
    """Run a soft solver from centres in the units of the data, and return those units."""
    settings = RunSettings(max_iter, np.random.RandomState(random_state), tol=tol)
    found = solver._soft_clustering(problem, problem.units.inwards(centers), settings)
    offsets = problem.units.squared_outwards(found.offsets)
    return found._replace(centers=problem.units.outwards(found.centers), offsets=offsets)
