"""Post-processing for any clusterer: the clusters stay, and rows join them within limits.

``fit`` has the steps of the method: fit the clusterer, compute the costs of all rows in all
clusters (:func:`cost_table`), turn the limits into constraints (``limits.py``), and assign the rows
by prices (``assignment/by_prices.py``).
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.cluster import MiniBatchKMeans
from sklearn.frozen import FrozenEstimator
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.utils import Tags, check_random_state, get_tags
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.metadata_routing import MetadataRouter
from sklearn.utils.validation import _is_fitted, _num_samples, check_is_fitted

from skfair._typing import ColumnLike, ColumnsLike, FloatArray, MatrixLike, Seed
from skfair.base import SensitiveFeaturesMixin, fit_method
from skfair.cluster.assignment.by_prices import assign
from skfair.cluster.assignment.cost_table import CostProblem
from skfair.cluster.batches import Batch
from skfair.cluster.limits import (
    MIN_BALANCE,
    compare_groups,
    limits_of,
    representation_constraints,
)
from skfair.cluster.results import (
    FairClusterMixin,
    count_attributes,
    missed_by,
    warn_of_large,
    warn_of_missed,
)
from skfair.groups.sensitive import SensitiveLike
from skfair.read import ROW_CHECKS, read_features, read_groups, read_rows
from skfair.utils.docs import documented
from skfair.utils.pieces import ROWS
from skfair.utils.rounding import TINY
from skfair.utils.routing import fit_arguments, refuse_misspelt, router_to
from skfair.utils.text import listed
from skfair.utils.threads import one_thread_if_few, over_blocks
from skfair.utils.warn import warn_user

CostFunction = Callable[[Any, Any], Any]


@documented
class FairAssignment(MetaEstimatorMixin, FairClusterMixin, SensitiveFeaturesMixin, BaseEstimator):
    """Assign rows to the clusters of any clusterer so that clusters are balanced by group.

    A clone of the clusterer is fitted first. Its rows are then assigned to its clusters so that
    each cluster satisfies the limits and the total cost is as small as possible. The cost of a row
    is its squared distance to the centre of the cluster, or minus the logarithm of its probability.
    These clusters then do not change any more, whereas :class:`FairKMeans` moves centres to their
    rows. If the places of the centres are given, such as those of schools, pass a fitted clusterer
    as ``FrozenEstimator(clusterer)``, which is not fitted again.

    Parameters
    ----------
    clusterer : estimator, default=None
        The clusterer. It must have ``cluster_centers_``, ``centroids_`` (such as HDBSCAN with
        ``store_centers``) or ``predict_proba`` (such as mixtures). If None, ``MiniBatchKMeans()``
        is used. A fitted clusterer is fitted again with a warning, unless it is passed as
        ``sklearn.frozen.FrozenEstimator(clusterer)``, whose clusters stay as they are.
    min_balance : float or None, default=0.8
        Minimum balance of each cluster, in [0, 1]. The balance is the size of the smallest group in
        the cluster over the size of the largest group. If None, the balance is not limited, which
        is required with ``share_bounds``.
    relative_balance : bool, default=True
        If True, ``min_balance`` is a share of the balance of the whole sample. If False, it is an
        absolute balance.
    share_bounds : float or dict, default=None
        Limits on the share of each group in each cluster, as in :class:`FairKMeans`. They require
        ``min_balance=None``.
    size_bounds : pair (low, high), default=None
        Smallest and largest total weight of a cluster. Floats in [0, 1] are shares of the weight of
        all rows, and integers are weights. An array gives one of these for each cluster. If None,
        sizes are not limited.
    costs : "precomputed" or callable, default=None
        The costs of the rows in the clusters. If None, they are the ones described above.

        - "precomputed" means that X holds the cost of each row in each cluster, such as travel
          times from homes to schools, in ``fit`` and for new rows. No clusterer is used.
        - A function is called as ``costs(clusterer, X)`` and returns the cost of each row in each
          cluster, such as distances to medoids or distances of mixed columns. X is passed to it
          without conversion.
    random_state : int, RandomState instance or None, default=None
        Seed of the clusterer, which is used if the clusterer has no seed of its own.

    Attributes
    ----------
    clusterer_ : estimator or None
        The fitted clusterer. It is None if the costs are precomputed.
    labels_ : ndarray of shape (n_samples,)
        Cluster of each row, within the limits.
    cost_ : float
        Mean cost of the rows in their clusters.
    cost_without_limits_ : float
        Mean cost of the rows if each row joins its cheapest cluster.
    cluster_sizes_ : ndarray of shape (n_clusters,)
        Weight of the rows of each cluster.
    group_counts_ : ndarray of shape (n_clusters, n_groups)
        Weight of each group in each cluster.
    cluster_balances_ : ndarray of shape (n_clusters,)
        Balance of each cluster, which is the size of its smallest group over the size of its
        largest group.
    balance_ : float
        Smallest balance of a cluster.
    relative_balance_ : float
        Smallest balance of a cluster as a share of the balance of the sample.
    prices_ : ndarray of shape (n_clusters, n_groups)
        Price of each group in each cluster, which is added to the cost of a row of this group.
    status_ : str
        How the fit ended. A limit that is missed by less than a whole row counts as satisfied.
    groups_ : ndarray of shape (n_groups,)
        Names of the groups.
    model_features_ : ndarray
        Names or positions of the columns of X that are clustered.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray
        Names of the columns of X, if it has them.

    See Also
    --------
    FairKMeans : K-means clustering with limits, which also moves the centres.

    Notes
    -----
    Each evaluation of the prices takes one pass over the table of costs, O(n K) for n rows and K
    clusters. If there are more than 20,000 rows, prices are first computed on a sample of 10,000
    rows. If rows times clusters are at most 20,000 and the limits are active, sets of rows that
    move together are searched, which may take about a second, or two with unequal weights.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.mixture import GaussianMixture
    >>> from skfair.cluster import FairAssignment
    >>> from skfair.metrics import balance_score
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 2)) + 3 * rng.integers(0, 2, (200, 1))
    >>> sex = np.where(X[:, 0] + rng.normal(size=200) > 1.5, "f", "m")
    >>> mixture = GaussianMixture(2, random_state=0)
    >>> model = FairAssignment(mixture, min_balance=0.8).fit(X, sensitive_features=sex)
    >>> before = balance_score(mixture.fit_predict(X), sensitive_features=sex)
    >>> print(f"smallest balance of a cluster: {before:.2f} before, {model.balance_:.2f} now")
    smallest balance of a cluster: 0.15 before, 0.77 now

    Five schools stay where they are, and pupils are assigned to them by distance, within the number
    of seats of each school.

    >>> from sklearn.cluster import KMeans
    >>> from sklearn.frozen import FrozenEstimator
    >>> places = np.array([[-1.0, 0.0], [0.0, 1.0], [1.5, 1.5], [3.0, 2.0], [3.0, 4.0]])
    >>> seats = [30, 60, 60, 40, 40]
    >>> schools = FrozenEstimator(KMeans(5, init=places, n_init=1).fit(places))
    >>> model = FairAssignment(schools, size_bounds=([0] * 5, seats))
    >>> model = model.fit(X, sensitive_features=sex)
    >>> bool(np.allclose(model.clusterer_.cluster_centers_, places))
    True
    >>> bool(np.all(model.cluster_sizes_ <= seats))
    True

    If travel times to the schools are known, they are the costs. A pupil who moves in later joins
    one of the schools with a free seat. The limits then apply to all pupils together.

    >>> minutes = 10 * np.sqrt(((X[:, None] - places) ** 2).sum(axis=2))
    >>> model = FairAssignment(costs="precomputed", size_bounds=([0] * 5, seats))
    >>> model = model.fit(minutes, sensitive_features=sex)
    >>> late = model.assign(minutes[:1] + 1, sensitive_features=["f"], before="fit")
    >>> bool(model.cluster_sizes_[late[0]] < seats[late[0]])
    True
    """

    # Prices differ by group, so ``predict`` takes the groups.
    __metadata_request__predict = {"sensitive_features": True}

    _endings = ("converged", "infeasible")
    _parameter_constraints: dict[str, Any] = {
        "clusterer": [HasMethods(["fit"]), None],
        "min_balance": [Interval(Real, 0, 1, closed="both"), None],
        "relative_balance": ["boolean"],
        "share_bounds": [Real, dict, None],
        "size_bounds": ["array-like", None],
        "costs": [StrOptions({"precomputed"}), callable, None],
        "random_state": ["random_state"],
        **SensitiveFeaturesMixin._group_constraints,
    }

    def __init__(
        self,
        clusterer: Any = None,
        *,
        min_balance: float | None = MIN_BALANCE,
        relative_balance: bool = True,
        share_bounds: Any = None,
        size_bounds: Any = None,
        costs: CostFunction | Literal["precomputed"] | None = None,
        sensitive: SensitiveLike = None,
        random_state: Seed = None,
    ) -> None:
        self.clusterer = clusterer
        self.min_balance = min_balance
        self.relative_balance = relative_balance
        self.share_bounds = share_bounds
        self.size_bounds = size_bounds
        self.costs = costs
        self.sensitive = sensitive
        self.random_state = random_state

    @fit_method
    @one_thread_if_few
    def fit(
        self,
        X: MatrixLike,
        y: ColumnLike | None = None,
        *,
        sensitive_features: ColumnsLike | None = None,
        sample_weight: ColumnLike | None = None,
        **fit_params: Any,
    ) -> FairAssignment:
        """Fit the clusterer, and assign the rows within the limits.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The rows.
        **fit_params : dict
            Further arguments of ``clusterer.fit``. With metadata routing, these are the ones that
            it has requested.

        Returns
        -------
        self : FairAssignment
            The fitted estimator.
        """
        refuse_misspelt(self, self._inner(), fit_params)
        data = read_rows(
            self,
            X,
            supervised=False,
            sensitive_features=sensitive_features,
            sample_weight=sample_weight,
            needs_groups=compare_groups(limits_of(self)),
            **self._row_checks(),
        )
        self._keep(data.reading)
        others = {"sensitive_features": sensitive_features}
        self.clusterer_ = self._fitted(data.X, data.sample_weight, fit_params, others)
        costs = cost_table(self.clusterer_, data.X, self.costs)
        n_clusters, groups, weights = costs.shape[1], data.groups, data.sample_weight
        constraints = representation_constraints(groups, n_clusters, limits_of(self), weights)
        problem = CostProblem(groups, constraints, n_clusters, weights)
        placement = assign(problem, costs)
        if placement.is_feasible:
            # If rows are few or heavy, several moves at once may lower the cost further.
            placement.settle()
        self.labels_ = np.asarray(placement.labels, dtype=np.int32)
        own = costs[np.arange(len(costs)), self.labels_]
        self.cost_ = float(np.average(own, weights=problem.weights))
        self.cost_without_limits_ = float(np.average(costs.min(axis=1), weights=problem.weights))
        self.prices_ = problem.group_prices(placement.multipliers)
        self._size_prices = problem.size_prices(placement.multipliers)
        counts = problem.counts(placement.labels) @ problem.membership.T
        missed = missed_by(problem, placement.labels)
        counted = count_attributes(counts, data.groups, problem.constraints)
        self._store(counted | {"status_": "infeasible" if missed > 0 else "converged"})
        if missed > 0:
            warn_of_missed("The limits", missed)
        elif problem.constraints.sizes is None:
            warn_of_large(self.cluster_sizes_, problem.largest_weight)
        return self

    def _row_checks(self) -> dict[str, Any]:
        """Return options for the check of rows, which is left out if ``costs`` reads them."""
        if callable(self.costs):
            return {"skip_check_array": True}
        return {**ROW_CHECKS, "accept_sparse": get_tags(self).input_tags.sparse and "csr"}

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        reads_sparse = get_tags(self._inner()).input_tags.sparse
        tags.input_tags.sparse = reads_sparse and self.costs != "precomputed"
        return tags

    def _inner(self) -> Any:
        return MiniBatchKMeans() if self.clusterer is None else self.clusterer

    def get_metadata_routing(self) -> MetadataRouter:
        """Get the metadata routing of this object and of the clusterer inside.

        Returns
        -------
        router : MetadataRouter
            The routing, for :func:`sklearn.utils.metadata_routing.process_routing`.
        """
        return router_to(self, self._inner(), "clusterer")

    def _fitted(
        self,
        X: MatrixLike,
        sample_weight: FloatArray | None,
        metadata: dict[str, Any],
        others: dict[str, Any],
    ) -> Any:
        """Return the frozen clusterer, a fitted clone, or None if X holds the costs.

        ``metadata`` are the further arguments of ``fit``, and ``others`` what routing may pass on.
        """
        if "costs" in metadata:
            raise TypeError(
                "fit takes no costs. Create FairAssignment(costs='precomputed'), and pass the "
                "costs as X: a row for each person, and a column for each cluster."
            )
        is_frozen = isinstance(self.clusterer, FrozenEstimator)
        if metadata and (is_frozen or self.costs == "precomputed"):
            raise ValueError(
                f"fit got {listed(list(metadata))}, but it fits no clusterer, which could take "
                "them. Leave them out."
            )
        if self.costs == "precomputed":
            if self.clusterer is not None:
                raise ValueError(
                    "With costs='precomputed', X holds the cost of each row in each cluster, and "
                    f"no clusterer is used; got clusterer={self.clusterer!r}. Leave one of the two "
                    "out."
                )
            return None
        inner = self._inner()
        if isinstance(inner, FrozenEstimator):
            check_is_fitted(inner)
            return inner
        if _is_fitted(inner):
            warn_user(
                f"This {type(inner).__name__} is fitted already, and a clone of it is fitted "
                "again, so its clusters may move. Pass FrozenEstimator(clusterer), of "
                "sklearn.frozen, to keep its clusters. To fit it again, pass clone(clusterer)."
            )
        inner = clone(inner)
        if self.random_state is not None and inner.get_params().get("random_state", 0) is None:
            seed = check_random_state(self.random_state).randint(2**31 - 1)
            inner.set_params(random_state=seed)
        return inner.fit(X, **fit_arguments(self, inner, sample_weight, metadata, others))

    def predict(
        self, X: MatrixLike, *, sensitive_features: ColumnsLike | None = None
    ) -> NDArray[np.int32]:
        """Assign new rows to clusters.

        With their groups, rows join the cluster with the smallest cost plus price. Without groups,
        they join the cluster with the smallest cost.

        With ``size_bounds``, the cost of rows without a group includes the price for the size of
        the cluster.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            New rows.
        sensitive_features : array-like of shape (n_samples,) or (n_samples, n_attributes)
            The group of each row, which is optional.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            Cluster of each row.
        """
        check_is_fitted(self)
        codes = read_groups(self, X, sensitive_features)
        costs = cost_table(
            self.clusterer_, read_features(self, X, **self._row_checks()), self.costs
        )
        if codes is None:
            costs = costs + self._size_prices.T
        for attribute in () if codes is None else codes:
            costs = costs + self.prices_.T[attribute]
        return np.asarray(costs.argmin(axis=1), dtype=np.int32)

    def _joining(self, batch: Batch) -> tuple[CostProblem, FloatArray]:
        rows, constraints, held = batch
        costs = cost_table(self.clusterer_, rows.X, self.costs)
        weights = rows.sample_weight
        return CostProblem(rows.groups, constraints, costs.shape[1], weights, held), costs


def distances_to_centers(clusterer: Any, X: Any) -> FloatArray:
    """Return squared distances to the centres, (n_samples, n_clusters).

    The middle of the centres is subtracted first, because far from 0 squares would leave no digits
    for the distances. It is not subtracted from sparse rows, because their zeros would be lost.
    """
    is_sparse = sparse.issparse(X)
    X = X if is_sparse else np.asarray(X)
    centers = getattr(clusterer, "cluster_centers_", None)
    centers = np.asarray(clusterer.centroids_ if centers is None else centers)
    middle = np.zeros(centers.shape[1]) if is_sparse else centers.mean(axis=0)
    origin = np.asarray(middle, dtype=X.dtype)
    around, distances = centers - origin, np.empty((X.shape[0], centers.shape[0]))

    def of_block(start: int, stop: int) -> None:
        rows = X[start:stop] if is_sparse else X[start:stop] - origin
        distances[start:stop] = euclidean_distances(rows, around, squared=True)

    over_blocks(of_block, X.shape[0], ROWS)
    return distances


def negative_log_chances(clusterer: Any, X: MatrixLike) -> FloatArray:
    """Return minus the logarithm of the probabilities of clusters."""
    chances = np.asarray(clusterer.predict_proba(X), dtype=np.float64)
    return np.asarray(-np.log(np.maximum(chances, TINY)))


# The attributes from which costs can be computed. The first that a clusterer has is used.
COSTS: dict[str, CostFunction] = {
    "predict_proba": negative_log_chances,
    "cluster_centers_": distances_to_centers,
    "centroids_": distances_to_centers,
}


def cost_table(clusterer: Any, X: MatrixLike, function: CostFunction | str | None) -> FloatArray:
    """Return the costs of rows in each cluster, (n_samples, n_clusters), checked.

    ``function`` is the parameter ``costs``. If it is None, it is chosen by ``COSTS``.
    """
    if isinstance(function, str):  # "precomputed", so X holds the costs, and was checked
        return np.asarray(X, dtype=np.float64)
    name = type(clusterer).__name__
    if function is None:
        function = next((COSTS[has] for has in COSTS if hasattr(clusterer, has)), None)
    if function is None:
        raise TypeError(
            f"{name} has none of {', '.join(COSTS)}, so the cost of joining a cluster is not "
            "known. Pass costs=, a function of the fitted clusterer and X."
        )
    try:
        costs = np.asarray(function(clusterer, X), dtype=np.float64)
    except TypeError as error:
        raise TypeError(
            f"costs must be a function of the fitted clusterer and X that returns numbers, got "
            f"{function!r}: {error}"
        ) from error
    n_samples = _num_samples(X)
    if costs.ndim != 2 or costs.shape[0] != n_samples or not np.isfinite(costs).all():
        raise ValueError(
            f"The costs of {name} must be finite numbers of shape ({n_samples}, n_clusters), got "
            f"the shape {costs.shape}."
        )
    return costs
