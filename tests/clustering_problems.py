"""Clustering problems without rules from plain arrays, and results in the units of the data."""

from dataclasses import replace

import numpy as np

from skfair.groups.encoding import encode_groups
from skfair.problems.clustering.counts import Rules
from skfair.problems.clustering.points import RepresentationProblem


def free_problem(X, codes, n_clusters, n_groups, weights=None):
    """Rows whose groups have these numbers; a group may have no rows."""
    every = encode_groups(np.arange(n_groups))
    counts = np.bincount(codes, minlength=n_groups)
    groups = replace(every, codes=np.asarray(codes, np.int64)[None], counts=counts)
    return RepresentationProblem(X, groups, Rules.none(n_groups), n_clusters, weights)


def soft_run(solve, problem, centers, callback=None, **options):
    """Run a soft solver from centres in the units of the data, and return those units."""

    def outwards(centers, offsets):
        return problem.units.outwards(centers), problem.units.squared_outwards(offsets)

    def outer_callback(state):
        return callback is not None and callback(outwards(*state))

    found = solve(problem, problem.units.inwards(centers), callback=outer_callback, **options)
    centers, offsets = outwards(found.centers, found.offsets)
    return found._replace(centers=centers, offsets=offsets)
