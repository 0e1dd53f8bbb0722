"""Spectral clustering under group fairness, with balanced labels.

``fit`` has the steps of the method: read the rows, bind the limits to them, weigh pairs of rows
(``affinities/``, ``weights.py``), embed the rows under the group constraint (``group_cut.py``,
``eigen/``, ``embedding.py``), turn the embedding into labels within the limits (``rounding.py``,
``fair_cut.py``), and report. The embedding solves problem (5) of fair_spectral_dc, and the rounding
to balanced labels is skfair's own.
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
from skfair.cluster.assignment.cost_table import CostProblem
from skfair.cluster.assignment.counts import Constraints
from skfair.cluster.batches import Batch
from skfair.cluster.limits import (
    MIN_BALANCE,
    check_enough,
    compare_groups,
    limits_of,
    representation_constraints,
)
from skfair.cluster.results import FairClusterMixin, warn_of_large
from skfair.cluster.spectral.affinities.base import Affinity
from skfair.cluster.spectral.affinities.choice import Choice, affinity_kind, make_affinity
from skfair.cluster.spectral.eigen.base import EIGEN_SOLVERS, EigenSolver
from skfair.cluster.spectral.embedding import (
    adjacency,
    by_node,
    check_room,
    embed,
    embedding_attributes,
    graph_checks,
)
from skfair.cluster.spectral.group_cut import GroupCut
from skfair.cluster.spectral.rounding import (
    CutPrediction,
    Rounding,
    label_attributes,
    remember,
    rounded,
)
from skfair.groups.encoding import GroupEncoding
from skfair.groups.sensitive import SensitiveLike
from skfair.read import ROW_CHECKS, read_features, read_groups, read_rows
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
    r"""Spectral clustering with balanced groups in every cluster.

    Use it for graphs, and for clusters that are not round. The rows are embedded by eigenvectors of
    a graph, as in :class:`sklearn.cluster.SpectralClustering`, but under the constraint that each
    cluster contains the groups in the shares of the whole sample. With weights W between the rows,
    degrees D and :math:`M = D^{-1/2} W D^{-1/2}`, the embedding is the solution of

    .. math:: \max_H \operatorname{Tr}(H' M H) \quad \text{subject to} \quad H'H = I,\; F'H = 0,

    where :math:`F'H = 0` is the constraint on the groups. It applies only to the embedding. With
    ``assign_labels="fair"``, the labels also satisfy the limits exactly, in whole people, and their
    normalised cut is as small as can be found.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    min_balance : float or None, default=0.8
        Minimum balance of each cluster, in [0, 1], for "fair" labels. If None, the balance is not
        limited, which is required with ``share_bounds``.
    relative_balance : bool, default=True
        If True, ``min_balance`` is a share of the balance of the whole sample, so 0.8 is the "80
        percent constraint". If False, it is an absolute balance.
    share_bounds : float or dict, default=None
        Limits on the share of each group in each cluster, for "fair" labels. A dict sets a pair
        (lower, upper) for each group. A factor f requires that a group with the share r in the
        sample has a share between f r and r / f in each cluster.
    size_bounds : pair (low, high), default=None
        Smallest and largest number of rows of a cluster, for "fair" labels. Floats in [0, 1] are
        shares of all rows, and integers are numbers of rows. An array gives one of these for each
        cluster. If None, sizes are not limited.
    assign_labels : {"fair", "kmeans", "cluster_qr"}, default="fair"
        Method that turns the embedding into labels. Only "fair" satisfies the limits. If the solver
        returns labels itself, these are kept.
    affinity : str, callable or Affinity, default="rbf"
        The weights between the rows.

        - The name of a kernel of :func:`sklearn.metrics.pairwise.pairwise_kernels`, or a callable,
          gives a dense matrix of weights, which must not be negative.
        - "nearest_neighbors" gives a sparse graph of the ``n_neighbors`` nearest rows.
        - "precomputed" means that X is a symmetric matrix of weights.
        - "precomputed_nearest_neighbors" means that X is a sparse graph of distances.
        - "nystroem" approximates the rbf kernel by 500 landmarks, for large samples.
        - "landmark" links rows through the nearest of 500 landmarks, for large samples.

        An object of ``skfair.cluster.affinities`` has settings of its own, which replace ``gamma``
        and ``n_neighbors``.
    gamma : float, default=None
        Coefficient of the kernel, where a larger value gives a narrower kernel. If None, it is 1 /
        n_features, or for "landmark" 1 over the mean squared distance to the landmarks used.
    n_neighbors : int, default=10
        Number of neighbours, or landmarks, of each row.
    n_components : int, default=None
        Number of eigenvectors. If None, it is ``n_clusters``.
    n_init : int, default=10
        Number of runs of k-means on the embedding.
    solver : str or eigen-solver, default="auto"
        Algorithm that computes the embedding. "dense" is exact and costs O(n^3). "lanczos" is a
        block Lanczos method under the constraint, and "arpack" computes one vector at a time, to
        machine precision. "auto" chooses "dense" for up to 1000 rows and for landmarks, and
        "lanczos" otherwise. "dc_admm" [1]_, "ufsc" and "ffsc" are the algorithms of papers. An
        object of :mod:`skfair.solvers` is accepted too.
    n_jobs : int, default=None
        Number of parallel jobs of the search for neighbours.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of each row.
    affinity_matrix_ : ndarray or sparse array of shape (n_samples, n_samples), or None
        The weights between the rows. It is None for affinities that are kept in factors.
    embedding_ : ndarray of shape (n_samples, n_components)
        The embedding ``D^-1/2 H``, which is zero for rows without edges.
    eigenvalues_ : ndarray of shape (n_components,)
        Leading eigenvalues under the constraint, in decreasing order.
    spectral_cost_ : float
        Cost of the embedding, which is ``n_components`` minus the sum of the eigenvalues.
    ncut_ : float
        Normalised cut of ``labels_``.
    fairness_residual_ : float
        Violation of the constraint by the embedding, ``|Q'H|`` for an orthonormal basis Q of F.
    orthogonality_residual_ : float
        Deviation of the embedding from orthogonality, ``|H'H - I|``.
    balance_ : float
        Smallest balance of a cluster.
    average_balance_ : float
        Mean balance of the clusters.
    relative_balance_ : float
        Smallest balance of a cluster as a share of the balance of the sample.
    cluster_balances_ : ndarray of shape (n_clusters,)
        Balance of each cluster, which is 0 for an empty cluster.
    cluster_sizes_ : ndarray of shape (n_clusters,)
        Number of the rows of each cluster.
    group_counts_ : ndarray of shape (n_clusters, n_groups)
        Number of members of each group in each cluster.
    n_iter_ : int
        Number of iterations of the solver.
    n_products_ : int
        Number of columns by which the affinity was multiplied.
    status_ : str
        How the fit ended. The limits are the group constraint of the embedding and the limits on
        the labels, which may be missed by less than a row.
    history_ : dict of ndarray
        Values that the solver recorded in each iteration.

    See Also
    --------
    FairKMeans : Clustering with limits for data whose clusters are round.
    sklearn.cluster.SpectralClustering : Spectral clustering without limits.

    Notes
    -----
    Rows without edges have no place in the embedding. "fair" labels put them into clusters that
    need them to satisfy the limits.

    References
    ----------
    .. [1] F. Tonin, A. Lambert, J. A. K. Suykens and V. Cevher, "Accelerating spectral clustering
       under fairness constraints", ICML 2025.
    .. [2] M. Kleindessner, S. Samadi, P. Awasthi and J. Morgenstern, "Guarantees for spectral
       clustering with fairness constraints", ICML 2019.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.cluster import SpectralClustering
    >>> from sklearn.datasets import make_moons
    >>> from skfair.cluster import FairSpectralClustering
    >>> from skfair.metrics import balance_score
    >>> X, moon = make_moons(300, noise=0.2, random_state=0)
    >>> sex = np.where(np.random.default_rng(0).random(300) < 0.3 + 0.4 * moon, "f", "m")
    >>> options = {"affinity": "nearest_neighbors", "random_state": 0}
    >>> plain = SpectralClustering(2, **options).fit_predict(X)
    >>> model = FairSpectralClustering(2, **options).fit(X, sensitive_features=sex)
    >>> before = balance_score(plain, sensitive_features=sex, relative=True)
    >>> now = model.relative_balance_
    >>> print(f"share of the balance of the sample: {before:.0%} before, {now:.0%} now")
    share of the balance of the sample: 45% before, 98% now
    """

    _endings = ("converged", "max_iter", "stopped", "infeasible")
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

    # Prices differ by group, so ``predict`` takes the groups.
    __metadata_request__predict = {"sensitive_features": True}

    labels_: NDArray[np.int32]
    embedding_: NDArray[Any]
    group_counts_: FloatArray
    cluster_sizes_: FloatArray
    balance_: float
    _prediction: CutPrediction

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        min_balance: float | None = MIN_BALANCE,
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
        n_jobs: int | None = None,
        random_state: Seed = None,
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
            The rows to cluster. If the affinity is precomputed, X has the shape (n_samples,
            n_samples) and holds the weights between the rows, or it is a graph of networkx or
            igraph whose nodes are the rows.
        sensitive_features : array-like of shape (n_samples,) or (n_samples, n_attributes)
            The group of each row. For a graph, it may be a Series, DataFrame or dict by node, in
            any order. Arrays must be in the order of the nodes.
        """
        affinity = make_affinity(self.affinity, vars(self))
        check_parameters(affinity)
        X, nodes = adjacency(X, is_pairwise=affinity.is_pairwise)
        sensitive_features = by_node(sensitive_features, nodes)
        solver = EIGEN_SOLVERS[self.solver]() if isinstance(self.solver, str) else self.solver
        checks = graph_checks(affinity, X, self._sensitive.columns)
        data = read_rows(
            self,
            X,
            supervised=False,
            sensitive_features=sensitive_features,
            needs_groups=compare_groups(limits_of(self)),
            **checks,
        )
        self._keep(data.reading)
        constraints = bind(self, data.groups)
        rng = check_random_state(self.random_state)
        weights = affinity.build(data.X, rng=rng)
        problem = GroupCut(weights, data.groups)
        n_vectors = self.n_components or self.n_clusters
        check_room(problem, weights.matrix, n_vectors)
        with report_iterations(self, X, y, max_iter=None, attributes=lambda state: {}) as callback:
            vectors, result = embed(problem, n_vectors, solver, rng, callback)
        self._store(embedding_attributes(problem, vectors, result, affinity.dtype))
        how = Rounding(self.n_clusters, self.assign_labels, self.n_init)
        cut = rounded(problem, self.embedding_, result, data.groups, constraints, how, rng)
        self._store(label_attributes(cut, data.groups, constraints))
        if constraints.sizes is None:
            other = "" if self.assign_labels == "fair" else "assign_labels='fair' and "
            warn_of_large(self.cluster_sizes_, other=other)
        self.affinity_matrix_ = weights.matrix
        if weights.new_rows is not None:
            self._prediction = remember(weights.new_rows, weights, cut, data.groups, constraints)
        return self

    @available_if(_knows_new_rows)
    def predict(
        self, X: MatrixLike, *, sensitive_features: ColumnsLike | None = None
    ) -> NDArray[np.int32]:
        """Assign new rows to clusters.

        Each row joins the cluster for which the normalised cut increases least, according to its
        weights to the training rows. If groups are given, the price of the group is added. The
        limits then hold approximately, if new data resemble the training data. With few rows and
        clearly separated clusters, deviations can be large.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
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
        return self._prediction.labels(read_features(self, X, **ROW_CHECKS), codes)

    assign = available_if(_knows_new_rows)(FairClusterMixin.assign)

    def _joining(self, batch: Batch) -> tuple[CostProblem, FloatArray]:
        (rows, constraints, held), n_clusters = batch, self.n_clusters
        weights = rows.sample_weight
        problem = CostProblem(rows.groups, constraints, n_clusters, weights, held)
        return problem, self._prediction.costs(rows.X)


def bind(model: FairSpectralClustering, groups: GroupEncoding) -> Constraints:
    """Return the limits as constraints; without ``assign_labels="fair"`` there are none."""
    check_enough(groups.n_samples, model.n_clusters)
    limits = limits_of(model)
    if model.assign_labels != "fair":
        limits = None, model.relative_balance, None, None
    return representation_constraints(groups, model.n_clusters, limits)
