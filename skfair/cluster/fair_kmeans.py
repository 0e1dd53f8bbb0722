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
from scipy.sparse import issparse
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
from skfair.cluster.limits import representation_rules, warn_of_crossing
from skfair.cluster.prediction import PricePredictionMixin
from skfair.cluster.results import (
    center_attributes,
    clustering_attributes,
    warn_of_result,
)
from skfair.cluster.rows import check_enough, clustering_problem, row_checks
from skfair.cluster.starts import starting_centers
from skfair.cluster.stream import StreamMixin
from skfair.groups.encoding import GroupEncoding
from skfair.groups.sensitive import SensitiveLike
from skfair.groups.training_data import TrainingData
from skfair.problems.clustering.counts import Rules
from skfair.problems.clustering.points import RepresentationProblem
from skfair.solvers.clustering.base import (
    Clustering,
    ClusteringSolver,
    RunSettings,
    check_limits,
    check_rows_suit,
    clustering_solver,
    takes_sparse,
)
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

    Minimises the k-means cost under limits on the composition of every cluster. With
    ``min_balance`` the limit is on the balance,

    .. math:: \min_{g, g'} \frac{n_{kg}}{n_{kg'}} \ge \beta \quad \text{for every cluster } k,

    with :math:`n_{kg}` the number of members of group g in cluster k; with ``share_bounds`` each
    group's share of every cluster lies between bounds, rounded to whole people. The limits hold for
    the labels of the training data, exactly, in whole people; with sample weights, each of them may
    be missed by less than the largest weight.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    min_balance : float or None, default=0.8
        Smallest balance of a cluster, in [0, 1]; larger is fairer and costs more. None for no
        limit, needed together with ``share_bounds``.
    relative_balance : bool, default=True
        Whether ``min_balance`` is a share of the balance of the whole sample (0.8 is the "80
        percent constraint") or an absolute balance. An absolute balance above that of the sample is
        an error.
    share_bounds : float or dict, default=None
        Limits on shares instead of a balance: a dict of group -> (lower, upper), or a factor f that
        keeps every share r of the sample within [f r, r / f].
    solver : {"prices", "swap", "variational", "smooth"} or object, default="prices"
        A name, or an object with parameters of its own, for example ``Swap(n_swap_steps=8)``.

        - "prices", :class:`~skfair.solvers.Prices`: our own, by the dual of the assignment
          problem; cheapest and exact.
        - "swap", :class:`~skfair.papers.Swap`: stochastic k-means steps and group swaps,
          Algorithm 2 of [1]_; keeps ``min_balance`` whenever swaps can. One attribute, no sample
          weights.
        - "variational", :class:`~skfair.papers.Variational`: penalises the Kullback-Leibler
          fairness error with ``fairness_weight`` [2]_; needs ``min_balance=None``. One attribute.
        - "smooth", :class:`~skfair.papers.Smooth`: alternating gradients on a smooth relaxation,
          Algorithm 4 of [1]_; trades by ``n_kmeans_steps`` and ``n_swap_steps``, needs
          ``min_balance=None``. One attribute.
    init : {"k-means++", "random"} or array-like, default="k-means++"
        How the starting centres are chosen, or the centres, (n_clusters, n_features).
    n_init : "auto" or int, default="auto"
        Number of runs, of which the cheapest is kept ("variational" and "smooth": that of least
        objective, which weighs fairness too). Each run starts twice: from plain k-means,
        and from k-means on the points relative to their group's mean, the best of three each.
        "auto" is one run; more runs begin with that one, so that they are never worse.
    max_iter : int, default=100
        Largest number of rounds per run.
    tol : float, default=1e-4
        A run ends when the centres move by less, relative to the variance of the features.
        "swap" and "variational" compare their objectives instead, "smooth" only reports whether
        the centres rest; see there.
    n_jobs : int, default=None
        Number of parallel runs; see joblib.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        Means of the clusters.
    labels_ : ndarray or Dask array of shape (n_samples,)
        Cluster of each row, within the limits.
    inertia_ : float
        Sum of squared distances of the rows to the means of their clusters.
    balance_ : float
        Smallest balance of a cluster.
    cluster_balances_ : ndarray of shape (n_clusters,)
        Balance of each cluster; 0 for an empty one.
    group_counts_ : ndarray of shape (n_clusters, n_groups)
        Number (or weight) of the members of each group in each cluster.
    prices_ : ndarray of shape (n_clusters, n_groups)
        What a member of a group pays, on top of the squared distance, to join a cluster.
    lower_bound_ : float
        No assignment within the limits costs less at the centres for which ``labels_`` were chosen;
        ``cluster_centers_`` are the means of these labels.
    assignment_gap_ : float
        Relative excess of the cost of ``labels_`` at those centres over ``lower_bound_``.
    n_iter_ : int
        Number of rounds.
    status_ : str
        "converged", "max_iter", "stopped" or "infeasible".
    history_ : dict of ndarray
        Objective, violation and CPU seconds per round; with Dask also the bytes exchanged.

    See Also
    --------
    sklearn.cluster.KMeans : Without limits.

    Notes
    -----
    A round costs a few passes over the rows, O(n K d) each, whatever the number of groups. Large
    data settle on a sample of 10000 rows first. Rounds on all rows then look again only at those
    near a tie between clusters. From 210001 rows on, a sample of 70000 rows follows the first one,
    and about three rounds see all rows, in two passes each. For K clusters the
    limits of a balance between J groups cost K J (J - 1) multipliers, share bounds 2 K J.

    X, groups and weights may be Dask collections ("prices" only). A pass then exchanges centres,
    prices and counts with the blocks, whatever the number of rows, and rows stay where they are,
    but for those of the sample.

    Sparse rows ("prices" only) are clustered as dense ones are, and a pass costs O(K) for each of
    their numbers that is not 0. Where they have many columns the runs of k-means at the start see
    them in the directions in which they differ most.

    Exact proportion cannot be met by whole people in general. Where ``min_balance`` is so close to
    1 that it is out of reach, each limit is missed by less than one person; where even that fails,
    a ``ConvergenceWarning`` says by how much.

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
    >>> bool(model.balance_ >= 0.8 * min(np.mean(sex == "f"), np.mean(sex == "m")))
    True
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
        solver: str | ClusteringSolver = "prices",
        init: Literal["k-means++", "random"] | MatrixLike = "k-means++",
        n_init: int | Literal["auto"] = "auto",
        max_iter: int = 100,
        tol: float = 1e-4,
        sensitive: SensitiveLike = None,
        random_state: Seed = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.min_balance = min_balance
        self.relative_balance = relative_balance
        self.share_bounds = share_bounds
        self.solver = solver
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.sensitive = sensitive
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
        data = self._read(
            X,
            supervised=False,
            sensitive_features=sensitive_features,
            sample_weight=sample_weight,
            **row_checks(X),
        )
        check_rows_suit(solver, is_elsewhere=data.blocks is not None, is_sparse=issparse(data.X))
        min_balance = self._kept_balance(solver)
        check_limits(
            solver,
            data.groups.n_attributes,
            has_weights=data.has_weights,
            min_balance=min_balance,
            has_share_bounds=self.share_bounds is not None,
        )
        rules = self._rules(data, min_balance)
        check_enough(data, self.n_clusters)
        problem = clustering_problem(data, rules, self.n_clusters)
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
            if n_runs == 1 or data.blocks is not None or self.n_jobs in (None, 1):
                runs = [self._run(problem, solver, seed, callback) for seed in seeds]
            else:
                runs = Parallel(n_jobs=self.n_jobs)(
                    delayed(self._run)(problem, solver, seed) for seed in seeds
                )
        best = min(runs, key=lambda run: run.standing)
        self.__dict__.update(clustering_attributes(problem, data.groups, best))
        warn_of_result(problem, best, self.balance_, self.max_iter)
        if min_balance:
            warn_of_crossing(self.group_counts_, data.groups, min_balance, self.relative_balance)
        return self

    def _kept_balance(self, solver: ClusteringSolver) -> float | None:
        """Return ``min_balance``; None where it is the default and the solver cannot keep any."""
        is_default = self.min_balance == type(self)().min_balance
        if solver.keeps_balance or self.min_balance is None or not is_default:
            return self.min_balance
        warn_user(
            f"solver={solver.name!r} trades cost against balance by {solver.trades_by} and keeps "
            f"no limit, so min_balance={self.min_balance} is ignored. Pass min_balance=None, or "
            "use solver='prices' for a limit that is kept."
        )
        return None

    def _rules(self, data: TrainingData, min_balance: float | None) -> Rules:
        """Turn the limits into constraints, and say so when there is nothing to limit."""
        groups = data.groups
        if groups.is_vacuous and groups.levels.attributes:
            warn_user(
                f"sensitive_features has a single group, {groups.names[0]!r}, so no limit is "
                "active and this is plain k-means."
            )
        return representation_rules(
            groups,
            self.n_clusters,
            min_balance=min_balance,
            relative_balance=self.relative_balance,
            share_bounds=self.share_bounds,
            sums=data.groups.sums(data.sample_weight),
            weight_range=data.weight_range,
        )

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
