"""k-means whose clusters keep the groups in proportion.

``fit`` reads as the method does: read the data and groups, turn the limits into constraints, start
from plain k-means, run the solver, store the result. The default solver, by prices, is our own; the
others are those of safairkm and of the method it compares with.
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, Literal

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    ClusterMixin,
    TransformerMixin,
)
from sklearn.utils import Tags, check_random_state
from sklearn.utils._param_validation import Interval, StrOptions

from skfair._typing import ColumnLike, ColumnsLike, MatrixLike, Seed
from skfair.base import SensitiveFeaturesMixin, fit_method, report_iterations
from skfair.cluster.limits import (
    check_enough,
    clustering_problem,
    representation_constraints,
    row_checks,
    warn_of_crossing,
)
from skfair.cluster.prediction import PricePredictionMixin
from skfair.cluster.results import (
    center_attributes,
    clustering_attributes,
    warn_of_result,
)
from skfair.cluster.starts import starting_centers
from skfair.cluster.stream import StreamMixin
from skfair.groups.encoding import GroupEncoding
from skfair.groups.sensitive import SensitiveLike
from skfair.groups.training_data import TrainingData
from skfair.problems.clustering.counts import Constraints
from skfair.problems.clustering.points import RepresentationProblem
from skfair.read import read_rows
from skfair.solvers.clustering.base import (
    Clustering,
    ClusteringSolver,
    RunSettings,
    check_limits,
    check_rows_suit,
    clustering_solver,
    takes_sparse,
)
from skfair.utils.dask_collections import is_lazy
from skfair.utils.docs import documented
from skfair.utils.history import go_on
from skfair.utils.older import CallbackSupportMixin
from skfair.utils.threads import one_blas_thread
from skfair.utils.warn import warn_user


@documented
class FairKMeans(
    StreamMixin,
    PricePredictionMixin,
    CallbackSupportMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    ClusterMixin,
    BaseEstimator,
):
    r"""k-means clustering whose clusters keep the groups in proportion.

    Use it like :class:`sklearn.cluster.KMeans` where every cluster is to hold the groups. It
    minimises the cost of k-means under a limit on the balance of every cluster k,

    .. math:: \min_{g, g'} \frac{n_{kg}}{n_{kg'}} \ge \beta,

    with :math:`n_{kg}` members of group g, or under bounds on each group's share. The limits hold
    for ``labels_``, exactly, in whole people; with sample weights each may be missed by less than
    the largest weight. ``predict`` follows them in the mean.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    min_balance : float or None, default=0.8
        Smallest balance of a cluster, in [0, 1]; larger is fairer and costs more. None for no
        limit, needed together with ``share_bounds``.
    relative_balance : bool, default=True
        Whether ``min_balance`` is a share of the balance of the whole sample (0.8 is the "80
        percent constraint") or an absolute balance, which may not be above that of the sample.
    share_bounds : float or dict, default=None
        A dict of group -> (lower, upper), or a factor f that keeps every share r of the sample
        within [f r, r / f]; rounded to whole people.
    init : {"k-means++", "random"} or array-like, default="k-means++"
        How the starting centres are chosen, or the centres, (n_clusters, n_features).
    n_init : "auto" or int, default="auto"
        Number of runs, of which the best is kept; "auto" is 1. Each starts from k-means, and from
        k-means on the points relative to their group's mean.
    solver : {"prices", "swap", "variational", "smooth"} or object, default="prices"
        - "prices", :class:`~skfair.solvers.Prices`: our own, by the dual of the assignment
          problem; cheapest and exact. The others take one attribute.
        - "swap", :class:`~skfair.papers.Swap`: stochastic k-means steps and swaps [1]_; no sample
          weights.
        - "variational", :class:`~skfair.papers.Variational`: a penalty on a divergence [2]_; needs
          ``min_balance=None``.
        - "smooth", :class:`~skfair.papers.Smooth`: alternating gradients [1]_; needs
          ``min_balance=None``.
    max_iter : int, default=100
        Most rounds of a run.
    tol : float, default=1e-4
        A run ends when the centres move by less, relative to the variance of the features. The
        solvers of papers compare their own objectives.
    random_state : int, RandomState instance or None, default=None
        Seed.
    n_jobs : int, default=None
        Number of parallel runs.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        Means of the clusters.
    labels_ : ndarray or Dask array of shape (n_samples,)
        Cluster of each row, within the limits.
    inertia_ : float
        Sum of squared distances of the rows to the means of their clusters.
    balance_, cluster_balances_ : float, ndarray of shape (n_clusters,)
        Smallest balance, and that of each cluster; 0 for an empty one.
    group_counts_ : ndarray of shape (n_clusters, n_groups)
        Number (or weight) of the members of each group in each cluster.
    prices_ : ndarray of shape (n_clusters, n_groups)
        What a member of a group pays, on top of the squared distance, to join a cluster.
    lower_bound_, assignment_gap_ : float
        No labels within the limits cost less at the centres for which ``labels_`` were chosen, and
        the relative excess of theirs.
    n_iter_ : int
        Number of rounds.
    status_ : str
        "converged", "max_iter", "stopped" or "infeasible".
    history_ : dict of ndarray
        Objective, violation and CPU seconds of each round.

    See Also
    --------
    sklearn.cluster.KMeans : Without limits.

    Notes
    -----
    A round costs a few passes over the rows, O(n K d) each. Large data settle on a sample first,
    and few rounds see all rows. X, groups and weights may be Dask collections, and X may be sparse,
    with "prices". Where whole people cannot meet a ``min_balance`` close to 1, each limit is missed
    by less than one person; where even that fails, a ``ConvergenceWarning`` says by how much.

    References
    ----------
    .. [1] S. Liu and L. N. Vicente, "A stochastic alternating balance k-means algorithm for fair
       clustering", 2021.
    .. [2] I. M. Ziko, J. Yuan, E. Granger and I. Ben Ayed, "Variational fair clustering", AAAI
       2021.

    Examples
    --------
    >>> import numpy as np
    >>> from skfair.cluster import FairKMeans
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 2))
    >>> sex = np.where(X[:, 0] > 0, "f", "m")  # the groups live apart
    >>> model = FairKMeans(2, min_balance=0.8, random_state=0).fit(X, sensitive_features=sex)
    >>> print(f"smallest balance of a cluster: {model.balance_:.2f}")
    smallest balance of a cluster: 0.68
    """

    _reads_blocks = True

    _parameter_constraints = {
        "n_clusters": [Interval(Integral, 1, None, closed="left")],
        "min_balance": [Interval(Real, 0, 1, closed="both"), None],
        "relative_balance": ["boolean"],
        "share_bounds": [Real, dict, None],
        "solver": [str, ClusteringSolver],
        "init": [StrOptions({"k-means++", "random"}), "array-like"],
        "n_init": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
        **SensitiveFeaturesMixin._group_constraints,
    }

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        min_balance: float | None = 0.8,
        relative_balance: bool = True,
        share_bounds: Any = None,
        sensitive: SensitiveLike = None,
        init: Literal["k-means++", "random"] | MatrixLike = "k-means++",
        n_init: int | Literal["auto"] = "auto",
        solver: str | ClusteringSolver = "prices",
        max_iter: int = 100,
        tol: float = 1e-4,
        random_state: Seed = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.min_balance = min_balance
        self.relative_balance = relative_balance
        self.share_bounds = share_bounds
        self.sensitive = sensitive
        self.init = init
        self.n_init = n_init
        self.solver = solver
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = takes_sparse(self.solver)
        return tags

    @fit_method
    @one_blas_thread
    def fit(
        self,
        X: MatrixLike,
        y: ColumnLike | None = None,
        *,
        sensitive_features: ColumnsLike | None = None,
        sample_weight: ColumnLike | None = None,
    ) -> FairKMeans:
        """Cluster X within the limits.

        Parameters
        ----------
        X : array-like, sparse matrix or Dask collection of shape (n_samples, n_features)
            The rows to cluster.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows, in the cost and in the limits.
        """
        solver = clustering_solver(self.solver)
        data = read_rows(
            self,
            X,
            supervised=False,
            sensitive_features=sensitive_features,
            sample_weight=sample_weight,
            **row_checks(X),
        )
        problem = clustering_problem(data, self._bind(data, solver), self.n_clusters)
        best = self._solve(problem, solver, X, y)
        self.__dict__.update(clustering_attributes(problem, data.groups, best))
        warn_of_result(problem, best, self.balance_, self.max_iter)
        if self.min_balance and solver.keeps_balance:
            warn_of_crossing(
                self.group_counts_, data.groups, self.min_balance, self.relative_balance
            )
        return self

    def _bind(self, data: TrainingData, solver: ClusteringSolver) -> Constraints:
        """Return the limits as constraints on the rows; raise if the solver cannot keep them."""
        check_rows_suit(solver, data)
        groups, min_balance = data.groups, self.min_balance
        is_default = min_balance == type(self)().min_balance
        if min_balance is not None and is_default and not solver.keeps_balance:
            warn_user(
                f"solver={solver.name!r} trades cost against balance by {solver.trades_by} and "
                f"keeps no limit, so min_balance={min_balance} is ignored. Pass min_balance=None, "
                "or use solver='prices' for a limit that is kept."
            )
            min_balance = None
        check_limits(solver, data, min_balance, self.share_bounds)
        if groups.is_vacuous and groups.levels.attributes:
            warn_user(
                f"sensitive_features has a single group, {groups.names[0]!r}, so no limit is "
                "active and this is plain k-means."
            )
        limits = min_balance, self.relative_balance, self.share_bounds
        sums = groups.sums(data.sample_weight)
        constraints = representation_constraints(
            groups, self.n_clusters, sums, limits, data.weight_range
        )
        check_enough(data.n_samples, self.n_clusters)
        return constraints

    def _solve(
        self, problem: RepresentationProblem, solver: ClusteringSolver, X: Any, y: Any
    ) -> Clustering:
        """Return the best of several runs, which callbacks follow with X and y as passed."""
        rng = check_random_state(self.random_state)
        is_single = isinstance(self.n_init, str) or not isinstance(self.init, str)
        n_runs = 1 if is_single else int(self.n_init)
        if is_single and self.n_init not in ("auto", 1):
            warn_user(
                f"init holds the centres to start from, so one run is made instead of "
                f"n_init={self.n_init}. Pass n_init=1.",
                RuntimeWarning,
            )
        seeds = rng.randint(np.iinfo(np.int32).max, size=n_runs)
        with report_iterations(
            self, X, y, max_iter=None, attributes=lambda c: center_attributes(problem, c)
        ) as callback:
            if n_runs == 1 or is_lazy(X) or self.n_jobs in (None, 1):
                runs = [self._run(problem, solver, seed, callback) for seed in seeds]
            else:
                runs = Parallel(n_jobs=self.n_jobs)(
                    delayed(self._run)(problem, solver, seed) for seed in seeds
                )
        return min(runs, key=lambda run: run.standing)

    @one_blas_thread
    def _run(
        self,
        problem: RepresentationProblem,
        solver: ClusteringSolver,
        seed: int,
        callback: Callable[[Any], bool] = go_on,
    ) -> Clustering:
        """Start from plain k-means and run the solver once."""
        rng = check_random_state(seed)
        starts = starting_centers(problem, self.init, rng)
        settings = RunSettings(self.max_iter, rng, self.tol, callback)
        return solver.cluster(problem, starts, settings)

    @classmethod
    def from_clustering(
        cls,
        problem: RepresentationProblem,
        groups: GroupEncoding,
        clustering: Clustering,
        reader: SensitiveFeaturesMixin,
        **parameters: Any,
    ) -> FairKMeans:
        """Return a fitted estimator from a clustering that a solver found.

        Parameters
        ----------
        problem : RepresentationProblem
            The points and the constraints that the clustering was made under.
        groups : GroupEncoding
            The groups of the points.
        clustering : Clustering
            What the solver returned.
        reader : estimator
            The one that read the training data: new rows are read in the same way.
        **parameters : object
            Parameters of the estimator; those of the reader are taken from there.

        Returns
        -------
        model : FairKMeans
            Fitted.
        """
        model = cls(
            problem.n_clusters,
            sensitive=reader.sensitive,
            **parameters,
        )
        model._read_like(reader)
        model.__dict__.update(clustering_attributes(problem, groups, clustering))
        return model

    # Written out, since set_output wraps only what a class itself defines.
    transform = PricePredictionMixin.transform
