"""Clustering problems without constraints from plain arrays, and results in units of the data."""

from dataclasses import replace
from types import SimpleNamespace
from unittest import mock

import numpy as np

from skfair.cluster.assignment.counts import Constraints
from skfair.cluster.assignment.points import RepresentationProblem
from skfair.cluster.kmeans.solver import RunSettings
from skfair.groups.encoding import encode_groups
from skfair.papers.vfairkm import variational
from skfair.papers.vfairkm.soft_assignment import SoftAssignment


def free_problem(X, codes, n_clusters, n_groups, weights=None):
    """Rows whose groups have these numbers; a group may have no rows."""
    every = encode_groups(np.arange(n_groups))
    counts = np.bincount(codes, minlength=n_groups)
    groups = replace(every, codes=np.asarray(codes, np.int64)[None], counts=counts)
    return RepresentationProblem(X, groups, Constraints.none(n_groups), n_clusters, weights)


def soft_run(solver, problem, centers, max_iter, tol):
    """Run a soft solver from centres in the units of the data, and return those units."""
    soft, seen = [], []

    def made(*args, **kwargs):
        soft.append(SoftAssignment(*args, **kwargs))
        return soft[-1]

    rng = np.random.RandomState(0)
    settings = RunSettings(max_iter, rng, tol, callback=lambda x: seen.append(x.copy()))
    with mock.patch.object(variational, "SoftAssignment", made):
        found = solver.run(problem, problem.units.inwards(centers), settings)
    return SimpleNamespace(
        # The last centres that the solver saw: those of its result are the means of the labels.
        **found._asdict() | {"centers": problem.units.outwards(seen[-1])},
        offsets=problem.units.squared_outwards(found.prices),
        assignment=np.exp(soft[-1].logs) if soft else None,
    )
