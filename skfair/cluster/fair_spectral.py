"""Spectral clustering under group fairness, with balanced labels.

``fit`` reads as the method does: read the rows, bind the limits to them, build the affinity, embed
its rows under the group constraint, turn the embedding into labels, report. The embedding is that
of fair_spectral_dc, problem (5); the rounding to balanced labels is that of skfair.
"""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import Tags, check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from skfair._typing import ColumnLike, ColumnsLike, FloatArray, MatrixLike, Seed
from skfair.base import SensitiveFeaturesMixin, fit_method, report_iterations
from skfair.cluster.embedding import (
    adjacency,
    by_node,
    check_room,
    embed,
    embedding_attributes,
    graph_checks,
)
from skfair.cluster.limits import check_enough, limits_of, representation_constraints
from skfair.cluster.results import FairClusterMixin
from skfair.cluster.rounding import CutPrediction, Rounding, label_attributes, remember, rounded
from skfair.groups.encoding import GroupEncoding
from skfair.groups.sensitive import SensitiveLike
from skfair.problems.clustering.counts import Constraints
from skfair.problems.cut.affinity import Affinity
from skfair.problems.cut.choice import Choice, affinity_kind, make_affinity
from skfair.problems.cut.group_cut import GroupCut
from skfair.read import read_features, read_groups, read_rows
from skfair.solvers.eigen.base import EIGEN_SOLVERS, EigenSolver
from skfair.solvers.parameters import check_parameters
from skfair.utils.availability import available_if
from skfair.utils.docs import documented
from skfair.utils.older import CallbackSupportMixin
from skfair.utils.threads import one_blas_thread


def _knows_new_rows(self: FairSpectralClustering) -> bool:
    if not affinity_kind(self.affinity).weighs_new_rows:
        raise AttributeError(
            f"affinity={self.affinity!r} is a graph of the rows of fit and says nothing of new "
            "rows. Use a kernel, 'nystroem' or 'landmark' to predict."
        )
    return True


@documented
class FairSpectralClustering(
    SensitiveFeaturesMixin, CallbackSupportMixin, FairClusterMixin, BaseEstimator
):
    r"""Spectral clustering whose clusters keep the groups in proportion.

    Use it for graphs, and for clusters that are not round. With weights W between the rows, degrees
    D and :math:`M = D^{-1/2} W D^{-1/2}`, the rows are embedded by the solution of

    .. math:: \max_H \operatorname{Tr}(H' M H) \quad \text{subject to} \quad H'H = I,\; F'H = 0,

    where :math:`F'H = 0` says that each cluster holds the groups in the shares of the whole sample.
    That binds the embedding only. With ``assign_labels="fair"`` the labels satisfy the limits,
    exactly, in whole people, at as small a normalised cut as can be found.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    min_balance : float or None, default=0.8
        Smallest balance of a cluster, in [0, 1], for "fair" labels. None for no limit, needed
        together with ``share_bounds``.
    relative_balance : bool, default=True
        Whether ``min_balance`` is a share of the balance of the whole sample (0.8 is the "80
        percent constraint") or an absolute balance.
    share_bounds : float or dict, default=None
        A dict of group -> (lower, upper), or a factor f that keeps every share r of the sample
        within [f r, r / f].
    size_bounds : pair (low, high), default=None
        Smallest and largest number of rows of a cluster, for "fair" labels: shares of all rows as
        floats in [0, 1], numbers of rows as integers, or an array with one of these for each
        cluster. If None, sizes are not limited.
    assign_labels : {"fair", "kmeans", "cluster_qr"}, default="fair"
        How the embedding becomes labels; only "fair" satisfies the limits. Labels of a solver stay.
    affinity : str, callable or Affinity, default="rbf"
        - A kernel of :func:`sklearn.metrics.pairwise.pairwise_kernels`, or a callable: a dense
          matrix of weights, which must not be negative.
        - "nearest_neighbors": a sparse graph of the ``n_neighbors`` nearest rows.
        - "precomputed": X is a symmetric matrix of weights; "precomputed_nearest_neighbors": a
          sparse graph of distances.
        - "nystroem" (rbf), "landmark" (rows linked through their nearest landmarks): approximations
          by 500 landmarks, for large samples.

        An object of ``skfair.cluster.affinities`` replaces ``gamma`` and ``n_neighbors``.
    gamma : float, default=None
        Width of the kernel, larger is narrower; None is 1 / n_features, for "landmark" one over the
        mean squared distance to the landmarks used.
    n_neighbors : int, default=10
        Neighbours, or landmarks, of a row.
    n_components : int, default=None
        Number of eigenvectors; None takes ``n_clusters``.
    n_init : int, default=10
        Runs of k-means on the embedding.
    solver : str or eigen-solver, default="auto"
        "auto" is "dense" (exact, O(n^3)) up to 1000 rows and for landmarks, else "lanczos", block
        Lanczos under the constraint. "arpack" takes one vector at a time, to machine precision.
        "dc_admm" [1]_, "ufsc" and "ffsc" reproduce papers. Or an object of :mod:`skfair.solvers`.
    random_state : int, RandomState instance or None, default=None
        Seed.
    n_jobs : int, default=None
        Parallel jobs of the search for neighbours.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of each row.
    affinity_matrix_ : ndarray or sparse array of shape (n_samples, n_samples), or None
        The weights; None for factored affinities.
    embedding_ : ndarray of shape (n_samples, n_components)
        ``D^-1/2 H``; rows without edges are zero.
    eigenvalues_ : ndarray of shape (n_components,)
        Leading eigenvalues under the constraint, in falling order.
    spectral_cost_, ncut_ : float
        ``n_components`` minus the sum of the eigenvalues; normalised cut of ``labels_``.
    fairness_residual_, orthogonality_residual_ : float
        ``|Q'H|`` for an orthonormal basis Q of F; ``|H'H - I|``.
    balance_, average_balance_, relative_balance_ : float
        Smallest and mean balance of a cluster; the smallest relative to the sample.
    cluster_balances_ : ndarray of shape (n_clusters,)
        Balance of each cluster; 0 for an empty one.
    cluster_sizes_ : ndarray of shape (n_clusters,)
        Number of the rows of each cluster.
    group_counts_ : ndarray of shape (n_clusters, n_groups)
        Members of each group in each cluster.
    n_iter_, n_products_ : int
        Iterations of the solver; columns that the affinity was multiplied with.
    status_ : str
        "converged", "max_iter", "stopped" or "infeasible".
    history_ : dict of ndarray
        What the solver recorded per iteration.

    See Also
    --------
    FairKMeans : For data whose clusters are round.
    sklearn.cluster.SpectralClustering : Without limits.

    Notes
    -----
    Rows without edges have no place in the embedding; "fair" labels use them where limits need
    them.

    References
    ----------
    .. [1] F. Tonin, A. Lambert, J. A. K. Suykens and V. Cevher, "Accelerating spectral clustering
       under fairness constraints", ICML 2025.
    .. [2] M. Kleindessner, S. Samadi, P. Awasthi and J. Morgenstern, "Guarantees for spectral
       clustering with fairness constraints", ICML 2019.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import make_moons
    >>> from skfair.cluster import FairSpectralClustering
    >>> X, moon = make_moons(300, noise=0.2, random_state=0)
    >>> sex = np.where(np.random.default_rng(0).random(300) < 0.3 + 0.4 * moon, "f", "m")
    >>> model = FairSpectralClustering(2, affinity="nearest_neighbors", random_state=0)
    >>> model = model.fit(X, sensitive_features=sex)
    >>> print(f"smallest balance: {model.relative_balance_:.0%} of that of the sample")
    smallest balance: 98% of that of the sample
    """

    _parameter_constraints = {
        "n_clusters": [Interval(Integral, 1, None, closed="left")],
        "n_components": [Interval(Integral, 1, None, closed="left"), None],
        "affinity": [str, callable, Affinity],
        "gamma": [Interval(Real, 0, None, closed="left"), None],
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "solver": [str, EigenSolver],
        "assign_labels": [StrOptions({"fair", "kmeans", "cluster_qr"})],
        "min_balance": [Interval(Real, 0, 1, closed="both"), None],
        "relative_balance": ["boolean"],
        "share_bounds": [Real, dict, None],
        "size_bounds": ["array-like", None],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
        **SensitiveFeaturesMixin._group_constraints,
    }

    # New rows may be assigned by the prices of their groups, so prediction takes the groups.
    __metadata_request__predict = {"sensitive_features": True}

    labels_: NDArray[np.int32]
    embedding_: NDArray[Any]
    group_counts_: FloatArray
    balance_: float
    _prediction: CutPrediction

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        min_balance: float | None = 0.8,
        relative_balance: bool = True,
        share_bounds: Any = None,
        size_bounds: Any = None,
        assign_labels: Literal["fair", "kmeans", "cluster_qr"] = "fair",
        sensitive: SensitiveLike = None,
        affinity: Choice = "rbf",
        gamma: float | None = None,
        n_neighbors: int = 10,
        n_components: int | None = None,
        n_init: int = 10,
        solver: str | EigenSolver = "auto",
        random_state: Seed = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.min_balance = min_balance
        self.relative_balance = relative_balance
        self.share_bounds = share_bounds
        self.size_bounds = size_bounds
        self.assign_labels = assign_labels
        self.sensitive = sensitive
        self.affinity = affinity
        self.gamma = gamma
        self.n_neighbors = n_neighbors
        self.n_components = n_components
        self.n_init = n_init
        self.solver = solver
        self.random_state = random_state
        self.n_jobs = n_jobs

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        kind = affinity_kind(self.affinity)
        tags.input_tags.sparse, tags.input_tags.pairwise = kind.reads_sparse, kind.is_pairwise
        return tags

    @fit_method
    @one_blas_thread
    def fit(
        self,
        X: MatrixLike,
        y: ColumnLike | None = None,
        *,
        sensitive_features: ColumnsLike | None = None,
    ) -> FairSpectralClustering:
        """Cluster X within the limits.

        Parameters
        ----------
        X : {array-like, sparse matrix, graph} of shape (n_samples, n_features)
            The rows to cluster, or their weights, (n_samples, n_samples), if precomputed; then also
            a graph of networkx or igraph, whose nodes are the rows.
        sensitive_features : array-like of shape (n_samples,) or (n_samples, n_attributes)
            The group of each row. For a graph it may be a Series, frame or dict by node, in any
            order; arrays are in the order of the nodes.
        """
        affinity = make_affinity(self.affinity, self.get_params(deep=False))
        check_parameters(affinity)
        X, nodes = adjacency(X, is_pairwise=affinity.is_pairwise)
        sensitive_features = by_node(sensitive_features, nodes)
        solver = EIGEN_SOLVERS[self.solver]() if isinstance(self.solver, str) else self.solver
        checks = graph_checks(affinity, X, self._sensitive.columns)
        data = read_rows(self, X, supervised=False, sensitive_features=sensitive_features, **checks)
        self._keep(data.reading)
        constraints = bind(self, data.groups)
        rng = check_random_state(self.random_state)
        weights = affinity.build(data.X, rng=rng)
        problem = GroupCut(weights, data.groups)
        n_vectors = self.n_components or self.n_clusters
        check_room(problem, weights.matrix, n_vectors)
        with report_iterations(self, X, y, max_iter=None, attributes=lambda state: {}) as callback:
            vectors, result = embed(problem, n_vectors, solver, rng, callback)
        self.__dict__.update(embedding_attributes(problem, vectors, result, affinity.dtype))
        how = Rounding(self.n_clusters, self.assign_labels, self.n_init)
        cut = rounded(problem, self.embedding_, result, data.groups, constraints, how, rng)
        self.__dict__.update(label_attributes(cut, data.groups, constraints))
        self.affinity_matrix_ = weights.matrix
        if weights.new_rows is not None:
            self._prediction = remember(weights.new_rows, weights, cut, data.groups, constraints)
        return self

    @available_if(_knows_new_rows)
    def predict(
        self, X: MatrixLike, *, sensitive_features: ColumnsLike | None = None
    ) -> NDArray[np.int32]:
        """Assign new rows to clusters.

        A row joins the cluster where the normalised cut rises least, by its weights to the rows of
        the fit. With its group, the price of the group is added, which satisfies the limits about
        as well as new data are like the training data; few rows with sharp clusters vary much.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            New rows.
        sensitive_features : array-like of shape (n_samples,) or (n_samples, n_attributes)
            Their groups; optional. Read from the columns of X that ``sensitive`` names, if any.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            Cluster of each row.
        """
        check_is_fitted(self)
        codes = read_groups(self, X, sensitive_features)
        rows = read_features(
            self, X, accept_sparse="csr", dtype=[np.float64, np.float32], order="C"
        )
        return self._prediction.labels(rows, codes)


def bind(model: FairSpectralClustering, groups: GroupEncoding) -> Constraints:
    """Return the limits as constraints; only fair labels have any."""
    check_enough(groups.n_samples, model.n_clusters)
    limits = limits_of(model)
    if model.assign_labels != "fair":
        limits = None, model.relative_balance, None, None
    return representation_constraints(groups, model.n_clusters, limits)
