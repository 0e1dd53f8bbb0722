"""The base of the solvers of k-means under limits: their arguments, results and registry.

A solver is a dataclass whose fields are its parameters, with their ranges as annotations. Its
abilities are class variables (``takes_weights``, ``keeps_balance`` and so on), which estimators,
error messages and contract tests read. They never compare names of solvers.

- ``FairKMeans`` finds a solver by :func:`clustering_solver`, asks :func:`check_suits` whether it
  can enforce the limits on these rows, and calls ``cluster``, which calls ``run`` from each start.
- ``ParetoFairKMeans`` calls ``front`` instead.
- Solvers register themselves by :func:`register`. The solvers of papers make their results by
  :func:`of_labels`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import validate_parameter_constraints

from skfair._typing import Callback, FloatArray
from skfair.cluster.assignment.counts import Constraints
from skfair.cluster.assignment.points import RepresentationProblem
from skfair.solvers.parameters import field_types
from skfair.utils.docs import documented
from skfair.utils.endings import Status
from skfair.utils.history import go_on
from skfair.utils.partitioned_rows import PartitionedRows
from skfair.utils.registry import PAPERS, Registry
from skfair.utils.signatures import ReadableSignature
from skfair.utils.threads import over_blocks

T = TypeVar("T")
R = TypeVar("R")

CLUSTERING_SOLVERS: Registry[type[ClusteringSolver]] = Registry(
    "clustering solver", "skfair.cluster.kmeans.prices", PAPERS
)


class Clustering(NamedTuple):
    """The result of a clustering solver, in the scaled units of the problem."""

    labels: NDArray[Any]  # cluster of each row
    centers: FloatArray  # (n_clusters, n_features): means of the clusters
    # (n_clusters, n_constraints): multipliers (dual variables) of the constraints, from which
    # prices follow; zeros if the solver has no dual
    multipliers: FloatArray
    cost: float  # mean squared distance to the means
    cost_at_bound: float  # cost of the labels at the centres for which ``lower_bound`` holds
    lower_bound: float  # no assignment to these centres within the constraints costs less
    violation: float  # sum of the violations of the constraints over clusters
    n_iter: int  # number of iterations
    status: Status  # why the solver ended
    history: dict[str, NDArray[Any]]  # columns of equal length
    # (n_clusters, n_groups): prices of the groups; if None, they follow from the multipliers
    prices: FloatArray | None = None
    # The value that the solver minimises, by which runs are compared; if None, it is the cost
    objective: float | None = None

    @property
    def standing(self) -> tuple[float, float, float]:
        """Key by which runs are compared, the smallest first: violation, objective, cost.

        Twelve digits are compared, because runs that end at the same clusters differ by rounding.
        The first of them is then the best.
        """
        objective = self.cost if self.objective is None else self.objective
        return self.violation, float(f"{objective:.12g}"), float(f"{self.cost:.12g}")


@dataclass(frozen=True)
class RunSettings:
    """The length of a run, its source of randomness, and its callback."""

    max_iter: int  # largest number of iterations
    random_state: np.random.RandomState  # source of randomness
    tol: float = 1e-4  # tolerance of the stopping test
    # ``callback(centers) -> stop``, called once after each iteration
    callback: Callback = go_on


class FrontPoint(NamedTuple):
    """A clustering of a front, and the constraints for which it was found."""

    # Balance that was asked for, as a share of the balance of the data; 0 if none was
    target: float
    constraints: Constraints
    clustering: Clustering


class Front(NamedTuple):
    """Clusterings along a front, and the history of the search for them."""

    points: list[FrontPoint]  # points in any order; dominated ones may be included
    history: dict[str, NDArray[Any]]  # one value per iteration; empty if there are no iterations


# Both are arguments of ``front``. A ConstraintsOf returns the constraints for a target, which is a
# balance as a share of the balance of the data. A Starts draws starting centres.
ConstraintsOf = Callable[[float], Constraints]
Starts = Callable[[np.random.RandomState], Sequence[FloatArray]]


@documented
class ClusteringSolver(BaseEstimator, ABC):
    """Base class of the methods for clustering under constraints. Subclasses are dataclasses.

    Attributes
    ----------
    name : str
        Name that stands for the solver with its default parameters.
    takes_weights : bool
        True if the solver accepts sample weights.
    takes_overlaps : bool
        True if the solver accepts several attributes, whose groups overlap.
    takes_sparse : bool
        True if the solver accepts sparse rows and rows in the partitions of a Dask collection.
    has_front : bool
        True if the solver computes whole fronts.
    keeps_balance : bool
        True if the labels satisfy ``min_balance`` whenever this is possible.
    keeps_shares : bool
        True if the labels satisfy ``share_bounds`` and ``size_bounds``.
    trades_by : str
        Parameters that set the trade-off between cost and balance if the solver enforces no limit.
    """

    __signature__ = ReadableSignature()
    name: ClassVar[str]
    takes_weights: ClassVar[bool] = True
    takes_overlaps: ClassVar[bool] = False
    takes_sparse: ClassVar[bool] = False
    has_front: ClassVar[bool] = False
    keeps_balance: ClassVar[bool] = False
    keeps_shares: ClassVar[bool] = False
    trades_by: ClassVar[str] = ""

    @abstractmethod
    def run(
        self, problem: RepresentationProblem, start: FloatArray, settings: RunSettings
    ) -> Clustering:
        """Cluster from one start.

        Parameters
        ----------
        start : ndarray of shape (n_clusters, n_features)
            Scaled initial centres.
        settings : RunSettings
            Maximum number of iterations, tolerance, random numbers and callback.

        Returns
        -------
        clustering : Clustering
            The clustering.
        """

    def cluster(
        self, problem: RepresentationProblem, starts: Sequence[FloatArray], settings: RunSettings
    ) -> Clustering:
        """Return the best clustering of several starts.

        Parameters
        ----------
        problem : RepresentationProblem
            The points and their constraints.
        starts : sequence of ndarray
            Scaled initial centres of each run.
        settings : RunSettings
            Settings of each run, as in :meth:`run`.

        Returns
        -------
        clustering : Clustering
            The best clustering. Runs are compared by their violation first, and then by their
            objective.
        """
        runs = [self.run(problem, start, settings) for start in starts]
        return min(runs, key=lambda run: run.standing)

    def front(
        self,
        problem: RepresentationProblem,
        constraints_of: ConstraintsOf,
        targets: FloatArray,
        starts: Starts,
        settings: RunSettings,
    ) -> Front:
        """Return clusterings along the front of cost against balance.

        Parameters
        ----------
        problem : RepresentationProblem
            The points. The constraints of this problem are not used.
        constraints_of : callable
            Function that returns the constraints for a balance in [0, 1], which is a fraction of
            the balance of the data.
        targets : ndarray
            Balances to aim at, in increasing order.
        starts : callable
            Function that draws starting centres, usually two for each run. Every second one is for
            the fair end of the front, so the search from it begins there.
        settings : RunSettings
            Settings of the runs. ``max_iter`` only applies to solvers that do not use targets.

        Returns
        -------
        front : Front
            The clusterings and the history of the search.
        """
        raise TypeError(f"solver={self.name!r} finds no fronts. Use solver='prices'.")


def takes_sparse(solver: str | ClusteringSolver) -> bool:
    """Return whether a solver, given as an object or by its name, takes sparse rows."""
    if isinstance(solver, str):  # for an unknown name fit raises
        return solver in CLUSTERING_SOLVERS and CLUSTERING_SOLVERS[solver].takes_sparse
    return solver.takes_sparse


def check_suits(
    solver: ClusteringSolver,
    data: Any,  # the training data
    min_balance: float | None = None,
    share_bounds: Any = None,
    size_bounds: Any = None,
) -> None:
    """Raise if a solver cannot take rows of this kind, or cannot enforce the limits.

    Limits that are None are not checked. A front has no ``min_balance``.
    """
    if isinstance(data.X, PartitionedRows) and not solver.takes_sparse:
        raise ValueError(
            f"solver={solver.name!r} needs the rows in memory, got a Dask collection. Use "
            "solver='prices', or compute() the collections."
        )
    if issparse(data.X) and not solver.takes_sparse:
        raise ValueError(
            f"solver={solver.name!r} needs dense rows, got a sparse matrix. Use solver='prices', "
            "or X.toarray() if it fits into memory."
        )
    n_attributes = data.groups.n_attributes
    if n_attributes > 1 and not solver.takes_overlaps:
        raise ValueError(
            f"solver={solver.name!r} needs a single attribute, got {n_attributes} that overlap. "
            "Cross them: Sensitive(intersectional=True), or use solver='prices'."
        )
    for name, bounds in (("share_bounds", share_bounds), ("size_bounds", size_bounds)):
        if bounds is not None and not solver.keeps_shares:
            raise ValueError(f"solver={solver.name!r} knows no {name}. Use solver='prices'.")
    if min_balance is not None and not solver.keeps_balance:
        raise ValueError(
            f"solver={solver.name!r} trades cost against balance by {solver.trades_by} and cannot "
            f"keep min_balance={min_balance}. Pass min_balance=None."
        )
    if data.has_weights and not solver.takes_weights:
        raise ValueError(
            f"solver={solver.name!r} exchanges single rows and knows no sample_weight. Use "
            "solver='prices'."
        )


def for_each(function: Callable[[T], R], items: Sequence[T], callback: Callback) -> list[R]:
    """Return ``function(item)`` for each item, in threads, or in turn if there is a callback.

    Solvers call it for the starts of a fit and for the points of a front.
    """
    if callback is not go_on:
        return [function(item) for item in items]
    return over_blocks(lambda i, _: function(items[i]), len(items), 1)


def register(solver: type[ClusteringSolver]) -> type[ClusteringSolver]:
    """Decorate a solver: enter it into the registry under its name."""
    return CLUSTERING_SOLVERS.register(solver.name)(solver)


def clustering_solver(solver: str | ClusteringSolver) -> ClusteringSolver:
    """Return the solver of a name, or the given one; check its parameters."""
    if isinstance(solver, str):
        return CLUSTERING_SOLVERS[solver]()
    kinds = field_types(type(solver))
    ranges = {field.name: list(kinds[field.name].__metadata__) for field in fields(solver)}
    settings = {name: getattr(solver, name) for name in ranges}
    validate_parameter_constraints(ranges, settings, caller_name=type(solver).__name__)
    return solver


def of_labels(
    problem: RepresentationProblem,
    labels: NDArray[Any],
    *,
    n_iter: int = 1,
    status: Status = "converged",
    history: dict[str, NDArray[Any]] | None = None,
    prices: FloatArray | None = None,
    objective: float | None = None,
) -> Clustering:
    """Return the clustering with these labels, for solvers that have no dual.

    Centres are the means. Multipliers and the lower bound are 0, and so are prices if None.
    """
    labels = labels.astype(np.int64)
    centers, _, cost = problem.means(labels)
    return Clustering(
        labels=labels,
        centers=centers,
        multipliers=np.zeros((problem.n_clusters, problem.constraints.slack.shape[1])),
        cost=cost,
        cost_at_bound=cost,
        lower_bound=0.0,
        violation=problem.violation(problem.counts(labels)),
        n_iter=n_iter,
        status=status,
        history=history or {},
        prices=np.zeros((problem.n_clusters, problem.n_groups)) if prices is None else prices,
        objective=objective,
    )
