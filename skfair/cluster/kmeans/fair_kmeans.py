"""k-means whose clusters keep the groups in proportion.

``fit`` has the steps of the method: read the data and groups, bind the limits to the rows
(:func:`bind`), solve from starts by plain k-means (:func:`solve`), and report (``results.py``).
``partial_fit`` continues with the next part of a stream (``stream.py``), and ``predict``,
``transform``, ``score`` and ``assign`` are for new rows (``prediction.py``).

The default solver (``prices.py``) is skfair's own. The other solvers come from papers: those of
safairkm, and the variational method that it compares with.
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, Literal

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
)
from sklearn.utils import Tags, check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from skfair._typing import ColumnLike, ColumnsLike, FloatArray, MatrixLike, Seed
from skfair.base import SensitiveFeaturesMixin, fit_method, report_iterations
from skfair.cluster.assignment.counts import Constraints
from skfair.cluster.assignment.points import RepresentationProblem, Units
from skfair.cluster.batches import Batch
from skfair.cluster.kmeans.prediction import (
    center_distances,
    cost_of_rows,
    labels_at_prices,
    score_block,
)
from skfair.cluster.kmeans.results import (
    center_attributes,
    clustering_attributes,
    warn_of_result,
)
from skfair.cluster.kmeans.rows import clustering_problem, row_checks
from skfair.cluster.kmeans.solver import (
    Clustering,
    ClusteringSolver,
    RunSettings,
    check_suits,
    clustering_solver,
    takes_sparse,
)
from skfair.cluster.kmeans.starts import starting_centers
from skfair.cluster.kmeans.stream import with_part
from skfair.cluster.limits import (
    MIN_BALANCE,
    check_enough,
    compare_groups,
    limits_of,
    representation_constraints,
    warn_of_crossing,
)
from skfair.cluster.results import FairClusterMixin, missed_by, warn_of_missed
from skfair.groups.attributes import check_aligned
from skfair.groups.sensitive import SensitiveLike
from skfair.groups.training_data import TrainingData
from skfair.read import ROW_CHECKS, read_features, read_groups, read_part_groups, read_rows
from skfair.utils.dask_collections import align, by_block, is_lazy, without_rows
from skfair.utils.docs import documented
from skfair.utils.history import go_on
from skfair.utils.older import CallbackSupportMixin
from skfair.utils.threads import one_blas_thread
from skfair.utils.validation import check_weights
from skfair.utils.warn import warn_user


@documented
class FairKMeans(
    SensitiveFeaturesMixin,
    CallbackSupportMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    FairClusterMixin,
    BaseEstimator,
):
    r"""K-means clustering with balanced groups in every cluster.

    Use it like :class:`sklearn.cluster.KMeans` if every cluster should contain the groups in
    similar proportions as the whole sample. It minimises the cost of k-means subject to a limit on
    the balance of every cluster k,

    .. math:: \min_{g, g'} \frac{n_{kg}}{n_{kg'}} \ge \beta,

    where :math:`n_{kg}` is the number of members of group g in cluster k. The share of each group
    can be limited instead, and the sizes of the clusters may be limited as well. The limits hold
    exactly for ``labels_``, up to the rounding to whole people. With sample weights, each limit may
    be violated by less than the largest weight, except for bounds on sizes. New rows that are
    assigned by ``predict`` satisfy the limits on average.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    min_balance : float or None, default=0.8
        Minimum balance of each cluster, in [0, 1]. A larger value is fairer and increases the cost.
        If None, the balance is not limited, which is required with ``share_bounds``.
    relative_balance : bool, default=True
        If True, ``min_balance`` is a share of the balance of the whole sample, so 0.8 is the "80
        percent constraint". If False, it is an absolute balance, which must not exceed the balance
        of the sample.
    share_bounds : float or dict, default=None
        Limits on the share of each group in each cluster. A dict sets a pair (lower, upper) for
        each group. A factor f requires that a group with the share r in the sample has a share
        between f r and r / f in each cluster. Limits are rounded to whole people.
    size_bounds : pair (low, high), default=None
        Smallest and largest total weight of a cluster. A float in [0, 1] is a share of the weight
        of all rows. An integer is a weight, which is a number of rows if there are no sample
        weights. An array has one of these for each cluster, in the order of the centres given in
        ``init``. Without given centres, larger clusters get larger bounds. If None, sizes are not
        limited.
    init : {"k-means++", "random"} or array-like, default="k-means++"
        Method by which the starting centres are chosen, or the centres themselves, with shape
        (n_clusters, n_features).
    n_init : "auto" or int, default="auto"
        Number of runs, of which the best one is kept. "auto" is 1. Each run starts from k-means,
        and from k-means on the points after the mean of their group has been subtracted.
    solver : {"prices", "swap", "variational", "smooth"} or object, default="prices"
        Algorithm that solves the problem. Only "prices" accepts ``share_bounds``, ``size_bounds``
        and several attributes that are kept apart by ``Sensitive(intersectional=False)``.

        - "prices", :class:`~skfair.solvers.Prices`, solves the dual of the assignment problem. It
          satisfies the limits exactly and takes the least time.
        - "swap", :class:`~skfair.papers.Swap`, makes stochastic k-means steps and swaps [1]_. It
          does not accept sample weights.
        - "variational", :class:`~skfair.papers.Variational`, adds a penalty on a divergence [2]_.
          It keeps no limit, so ``min_balance`` is ignored with a warning unless it is None.
        - "smooth", :class:`~skfair.papers.Smooth`, makes alternating gradient steps [1]_. It keeps
          no limit either.
    max_iter : int, default=100
        Maximum number of rounds of a run.
    tol : float, default=1e-4
        Tolerance of the movement of the centres, relative to the variance of the features, below
        which a run stops. The solvers of papers compare their own objectives instead.
    n_jobs : int, default=None
        Number of runs that are computed in parallel.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        Means of the clusters.
    labels_ : ndarray of shape (n_samples,)
        Cluster of each row, within the limits.
    inertia_ : float
        Sum of squared distances of the rows to the means of their clusters.
    balance_ : float
        Smallest balance of a cluster.
    relative_balance_ : float
        Smallest balance of a cluster as a share of the balance of the sample.
    cluster_balances_ : ndarray of shape (n_clusters,)
        Balance of each cluster, which is 0 for an empty cluster.
    cluster_sizes_ : ndarray of shape (n_clusters,)
        Number (or weight) of the rows of each cluster.
    group_counts_ : ndarray of shape (n_clusters, n_groups)
        Number (or weight) of the members of each group in each cluster.
    prices_ : ndarray of shape (n_clusters, n_groups)
        Price of each group in each cluster, which is added to the squared distance of a row of this
        group.
    lower_bound_ : float
        Lower bound on the cost of all labels within the limits, at the centres for which
        ``labels_`` were chosen. Only the solver "prices" computes it. It is 0 for other solvers.
    assignment_gap_ : float
        Relative excess of the cost of ``labels_`` over this bound. It is 0 for other solvers.
    n_iter_ : int
        Number of rounds of the best run.
    status_ : str
        How the fit ended. A limit that is missed by less than a row counts as satisfied, unless
        the solver reports it as violated.
    history_ : dict of ndarray
        Objective, violation and CPU seconds of each round.

    See Also
    --------
    sklearn.cluster.KMeans : K-means clustering without limits.

    Notes
    -----
    A round takes a few passes over the rows, which cost O(n K d) each. Large data are first
    clustered on a sample, so only a few rounds use all rows. With "prices", X may be sparse, and X,
    groups and weights may be Dask collections. If whole people cannot satisfy a ``min_balance``
    close to 1, each limit is violated by less than one person. If this is not possible either, a
    ``ConvergenceWarning`` states the violation.

    References
    ----------
    .. [1] S. Liu and L. N. Vicente, "A stochastic alternating balance k-means algorithm for fair
       clustering", 2021.
    .. [2] I. M. Ziko, J. Yuan, E. Granger and I. Ben Ayed, "Variational fair clustering", AAAI
       2021.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.cluster import KMeans
    >>> from skfair.cluster import FairKMeans
    >>> from skfair.metrics import balance_score
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 2))
    >>> sex = np.where(X[:, 0] > 0, "f", "m")  # the groups live apart
    >>> plain = KMeans(2, n_init=10, random_state=0).fit(X)
    >>> model = FairKMeans(2, min_balance=0.8, random_state=0).fit(X, sensitive_features=sex)
    >>> before = balance_score(plain.labels_, sensitive_features=sex)
    >>> print(f"smallest balance of a cluster: {before:.2f} before, {model.balance_:.2f} now")
    smallest balance of a cluster: 0.20 before, 0.68 now
    """

    _endings = ("converged", "max_iter", "stopped", "infeasible")
    _takes_partitions = True

    # Prices differ by group, so ``predict`` takes the groups.
    __metadata_request__predict = {"sensitive_features": True}

    cluster_centers_: NDArray[Any]
    labels_: NDArray[np.int32]
    _scaled_centers: FloatArray
    _scaled_prices: FloatArray
    _units: Units

    _parameter_constraints = {
        "n_clusters": [Interval(Integral, 1, None, closed="left")],
        "min_balance": [Interval(Real, 0, 1, closed="both"), None],
        "relative_balance": ["boolean"],
        "share_bounds": [Real, dict, None],
        "size_bounds": ["array-like", None],
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
        min_balance: float | None = MIN_BALANCE,
        relative_balance: bool = True,
        share_bounds: Any = None,
        size_bounds: Any = None,
        sensitive: SensitiveLike = None,
        init: Literal["k-means++", "random"] | MatrixLike = "k-means++",
        n_init: int | Literal["auto"] = "auto",
        solver: str | ClusteringSolver = "prices",
        max_iter: int = 100,
        tol: float = 1e-4,
        n_jobs: int | None = None,
        random_state: Seed = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.min_balance = min_balance
        self.relative_balance = relative_balance
        self.share_bounds = share_bounds
        self.size_bounds = size_bounds
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
            needs_groups=compare_groups(limits_of(self)),
            **row_checks(X),
        )
        self._keep(data.reading)
        problem = clustering_problem(data, bind(self, data, solver), self.n_clusters)
        best = solve(self, problem, solver, X, y)
        self._store(clustering_attributes(problem, data.groups, best))
        other = "" if solver.keeps_shares else "solver='prices' and "
        warn_of_result(problem, best, self.balance_, self.max_iter, other)
        if self.min_balance and solver.keeps_balance:
            warn_of_crossing(
                self.group_counts_, data.groups, self.min_balance, self.relative_balance
            )
        return self

    @fit_method
    def partial_fit(
        self,
        X: MatrixLike,
        y: ColumnLike | None = None,
        *,
        sensitive_features: ColumnsLike | None = None,
        sample_weight: ColumnLike | None = None,
    ) -> FairKMeans:
        """Update the clustering with the next part of a stream.

        The first part is clustered as by ``fit`` and must contain every group. Each further part is
        assigned so that the limits hold for all rows seen so far. Rows of earlier parts stay in
        their clusters, so a part of few groups may make this impossible: a warning says so, and
        ``status_`` is "infeasible". Then the centres move to the running means, and the prices are
        averaged. ``labels_``, ``inertia_``, ``lower_bound_`` and ``assignment_gap_`` describe the
        last part, whereas sizes, counts and balances describe all parts. ``history_`` is the one of
        the first part. Shares in ``size_bounds`` are shares of all rows so far, and are satisfied
        up to one row.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The next rows.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        if is_lazy(X, sensitive_features, sample_weight):
            raise TypeError(
                "partial_fit takes one part of a stream in memory, got a Dask collection. Pass "
                "its partitions one by one, computed, or the whole collection to fit."
            )
        if not hasattr(self, "cluster_centers_"):
            return self.fit(
                X, y, sensitive_features=sensitive_features, sample_weight=sample_weight
            )
        groups, held = read_part_groups(self, X, sensitive_features), self.group_counts_
        rows = read_features(self, X, **ROW_CHECKS)
        weights = check_weights(sample_weight, rows.shape[0])
        limits = limits_of(self)
        constraints = representation_constraints(groups, self.n_clusters, limits, weights, held)
        part = TrainingData(rows, None, weights, groups)
        problem = clustering_problem(part, constraints, self.n_clusters, held, self._units)
        so_far = self._scaled_centers, self._multipliers, self.cluster_sizes_
        moved = with_part(problem, *so_far)._replace(n_iter=self.n_iter_ + 1, history=self.history_)
        found = clustering_attributes(problem, groups, moved, held)
        if (missed := missed_by(problem, moved.labels)) > 0:
            stays = "; rows of earlier parts stay in their clusters"
            warn_of_missed("The limits on all rows so far", missed, stays)
        self._store(found)
        return self

    @by_block(dtype=np.int32)
    def predict(
        self, X: MatrixLike, *, sensitive_features: ColumnsLike | None = None
    ) -> NDArray[np.int32]:
        """Assign new rows to clusters.

        With their groups, rows join the cluster with the smallest squared distance plus price. The
        limits then hold approximately, if new data resemble the training data. Without groups, rows
        join the nearest centre, and the limits need not hold. With ``size_bounds``, the distance to
        a centre then includes the price for the size of the cluster. Use :meth:`assign` for a batch
        that must satisfy the limits exactly.

        Parameters
        ----------
        X : array-like, sparse matrix or Dask collection of shape (n_samples, n_features)
            New rows.
        sensitive_features : array-like of shape (n_samples,) or (n_samples, n_attributes)
            The group of each row, which is optional. If the estimator has ``sensitive`` columns,
            the groups are read from X.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            Cluster of each row.
        """
        check_is_fitted(self)
        codes = read_groups(self, X, sensitive_features)
        rows, prices = read_features(self, X, **ROW_CHECKS), self._scaled_prices
        # Without groups, all rows count as one group and pay the price for the cluster's size.
        if codes is None and self._size_prices.any():
            codes, prices = np.zeros((1, rows.shape[0]), np.int32), self._size_prices
        return labels_at_prices(rows, codes, self._scaled_centers, prices, self._units)

    @by_block(
        n_columns=lambda model: model.n_clusters, dtype=lambda model: model.cluster_centers_.dtype
    )
    def transform(self, X: MatrixLike) -> NDArray[Any]:
        """Compute the distances of rows to the centres.

        Parameters
        ----------
        X : array-like, sparse matrix or Dask collection of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        distances : ndarray of shape (n_samples, n_clusters)
            Euclidean distances, with the dtype of X.
        """
        check_is_fitted(self)
        rows = read_features(self, X, **ROW_CHECKS)
        return center_distances(rows, self._scaled_centers, self._units)

    def score(
        self, X: MatrixLike, y: ColumnLike | None = None, sample_weight: ColumnLike | None = None
    ) -> float:
        """Return minus the sum of squared distances to the nearest centres.

        Parameters
        ----------
        X : array-like, sparse matrix or Dask collection of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        score : float
            The score, for which larger is better as in ``KMeans``.
        """
        check_is_fitted(self)
        if is_lazy(X, sample_weight):
            blocks = align(X=X, sample_weight=sample_weight)
            return float(blocks.total(score_block, without_rows(self)))
        check_aligned(X=X, sample_weight=sample_weight)
        rows = read_features(self, X, **ROW_CHECKS)
        weights = check_weights(sample_weight, rows.shape[0])
        return -cost_of_rows(rows, weights, self._scaled_centers, self._units)

    def _joining(self, batch: Batch) -> tuple[RepresentationProblem, FloatArray]:
        data, constraints, held = batch
        problem = clustering_problem(data, constraints, self.n_clusters, held)
        return problem, problem.units.inwards(self.cluster_centers_)

    def fit_transform(
        self,
        X: MatrixLike,
        y: ColumnLike | None = None,
        *,
        sensitive_features: ColumnsLike | None = None,
        sample_weight: ColumnLike | None = None,
    ) -> NDArray[Any]:
        """Cluster X within the limits, and compute the distances to the centres.

        Parameters
        ----------
        X : array-like, sparse matrix or Dask collection of shape (n_samples, n_features)
            The rows to cluster.
        y : object
            Not used. It exists for compatibility.

        Returns
        -------
        distances : ndarray of shape (n_samples, n_clusters)
            Euclidean distances to the centres.
        """
        return self.fit(
            X, y, sensitive_features=sensitive_features, sample_weight=sample_weight
        ).transform(X)

    @property
    def _n_features_out(self) -> int:
        """Number of columns that ``transform`` returns."""
        return len(self.cluster_centers_)


def bind(model: FairKMeans, data: TrainingData, solver: ClusteringSolver) -> Constraints:
    """Return the limits as constraints on the rows; raise if the solver cannot enforce them.

    The default of ``min_balance`` is not an explicit wish of the user. So a solver that enforces no
    limit ignores it with a warning, whereas it raises for any other value.
    """
    groups, min_balance = data.groups, model.min_balance
    if min_balance == MIN_BALANCE and not solver.keeps_balance:
        warn_user(
            f"solver={solver.name!r} trades cost against balance by {solver.trades_by} and "
            f"keeps no limit, so min_balance={min_balance} is ignored. Pass min_balance=None, "
            "or use solver='prices' for a limit that is kept."
        )
        min_balance = None
    check_suits(solver, data, min_balance, model.share_bounds, model.size_bounds)
    limits = min_balance, *limits_of(model)[1:]
    constraints = representation_constraints(groups, model.n_clusters, limits, data.sample_weight)
    check_enough(groups.n_samples, model.n_clusters)
    return constraints


def solve(
    model: FairKMeans, problem: RepresentationProblem, solver: ClusteringSolver, X: Any, y: Any
) -> Clustering:
    """Return the best of ``n_init`` runs; callbacks get X and y as the user passed them."""
    rng = check_random_state(model.random_state)
    is_single = isinstance(model.n_init, str) or not isinstance(model.init, str)
    n_runs = 1 if is_single else int(model.n_init)
    if is_single and model.n_init not in ("auto", 1):
        warn_user(
            f"init holds the centres to start from, so one run is made instead of "
            f"n_init={model.n_init}. Pass n_init=1.",
            RuntimeWarning,
        )
    seeds = rng.randint(np.iinfo(np.int32).max, size=n_runs)
    with report_iterations(
        model, X, y, max_iter=None, attributes=lambda c: center_attributes(problem, c)
    ) as callback:
        if n_runs == 1 or is_lazy(X) or model.n_jobs in (None, 1):
            runs = [run_once(model, problem, solver, seed, callback) for seed in seeds]
        else:
            runs = Parallel(n_jobs=model.n_jobs)(
                delayed(run_once)(model, problem, solver, seed) for seed in seeds
            )
    return min(runs, key=lambda run: run.standing)


@one_blas_thread
def run_once(
    model: FairKMeans,
    problem: RepresentationProblem,
    solver: ClusteringSolver,
    seed: int,
    callback: Callable[[Any], bool] = go_on,
) -> Clustering:
    """Start from plain k-means and run the solver once."""
    rng = check_random_state(seed)
    starts = starting_centers(problem, model.init, rng)
    settings = RunSettings(model.max_iter, rng, model.tol, callback)
    return solver.cluster(problem, starts, settings)
