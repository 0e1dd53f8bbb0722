"""The trade-off between the cost of k-means and the balance of its clusters, as a whole.

One fit gives the front: from plain k-means to clusters that hold the groups in the proportion of
the sample. ``fit`` reads the rows, chooses the targets (:func:`bind`), solves for each target
(:func:`solve`, with the constraints of :func:`limits_at`), and reports the points that no other
dominates (:func:`front_attributes`). A target is a balance to ask for, as a share of the balance of
the sample. ``select`` returns a point of the front as a fitted :class:`FairKMeans`.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from functools import partial
from numbers import Integral
from typing import Any, Literal

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags, check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from skfair._typing import Callback, ColumnLike, ColumnsLike, FloatArray, MatrixLike, Seed
from skfair.base import SensitiveFeaturesMixin, fit_method, report_iterations
from skfair.cluster.assignment.counts import Constraints, balance_constraints
from skfair.cluster.assignment.points import RepresentationProblem
from skfair.cluster.kmeans.fair_kmeans import FairKMeans
from skfair.cluster.kmeans.results import clustering_attributes
from skfair.cluster.kmeans.rows import clustering_problem, row_checks
from skfair.cluster.kmeans.solver import (
    ClusteringSolver,
    Front,
    FrontPoint,
    RunSettings,
    check_suits,
    clustering_solver,
    for_each,
    takes_sparse,
)
from skfair.cluster.kmeans.starts import starting_centers
from skfair.cluster.limits import (
    attribute_balances,
    check_enough,
    check_group_sizes,
    data_balances,
)
from skfair.cluster.results import missed_by, said_sizes, warn_of_large
from skfair.cluster.sizes import size_limits
from skfair.groups.encoding import GroupEncoding
from skfair.groups.sensitive import SensitiveLike
from skfair.groups.training_data import TrainingData
from skfair.metrics.fronts import hypervolume, nondominated
from skfair.read import read_rows
from skfair.utils.docs import documented
from skfair.utils.history import go_on
from skfair.utils.older import CallbackSupportMixin
from skfair.utils.threads import one_blas_thread
from skfair.utils.validation import check_number, check_numbers
from skfair.utils.warn import warn_user

# Each point of the front is a fitted model. These attributes are copied to it, because with them a
# model reads new rows in the same way as the training data.
_READING = (
    *("n_features_in_", "feature_names_in_", "groups_", "model_features_"),
    *("_group_levels", "_n_rows", "_model_positions"),
)
# The largest target. Exactly the balance of the sample is seldom possible, because people are not
# divisible, but a value just below usually is.
_NEARLY_ONE = 0.9995


@documented
class ParetoFairKMeans(SensitiveFeaturesMixin, CallbackSupportMixin, BaseEstimator):
    r"""Trade-off front between the cost of k-means and the balance of the clusters.

    One fit computes clusterings from plain k-means to clusters with the groups in the proportions
    of the sample. A clustering is on the front if no other clustering found has at most its cost
    and at least its balance, and is better in one of the two. The cost is the sum of squared
    distances to the means of the clusters. The balance is

    .. math:: \min_k \min_{g, g'} \frac{n_{kg}}{n_{kg'}},

    as a share of the balance of the sample, where :math:`n_{kg}` is the number of members of group
    g in cluster k. If several attributes are kept apart, the smallest of their shares counts.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    balances : int or array-like, default=41
        Number of evenly spread target balances, or the target balances themselves, as shares of the
        balance of the sample in [0, 1]. The ends 0 and 1 are always included.
    size_bounds : pair (low, high), default=None
        Smallest and largest total weight of a cluster, as in :class:`FairKMeans`, for all points of
        the front, see ``status_``. If None, sizes are not limited.
    solver : {"prices", "swap", "variational"} or object, default="prices"
        Algorithm that computes the front, given by its name or by an object such as
        ``Swap(max_points=50)``. Only "prices" accepts ``size_bounds`` and several attributes that
        are kept apart by ``Sensitive(intersectional=False)``.

        - "prices", :class:`~skfair.solvers.Prices`, applies the method of :class:`FairKMeans` to
          all target balances, and starts each from the solution of the one before.
        - "swap", :class:`~skfair.papers.Swap`, improves a list of clusterings by k-means steps and
          swaps for ``max_iter`` iterations (Algorithm 3 of safairkm). It does not use ``balances``,
          ``init`` and ``n_init``, and does not accept sample weights. Pass an object to set the
          options of the algorithm.
        - "variational", :class:`~skfair.papers.Variational`, makes one run for each weight of its
          penalty, ``Variational(front_weights=...)``. It does not use ``balances``.
    init : {"k-means++", "random"}, default="k-means++"
        Method by which the centres of plain k-means, the start of each sweep, are initialised.
    n_init : int, default=2
        Number of runs. Each run makes two sweeps, from plain k-means and from k-means on the points
        after the mean of their group has been subtracted.
    max_iter : int, default=500
        Maximum number of iterations of "swap", and of each run of "variational".

    Attributes
    ----------
    costs_ : ndarray of shape (n_points,)
        Cost of each point of the front, in increasing order.
    balances_ : ndarray of shape (n_points,)
        Balance of each point, which is the smallest one over the attributes. It increases if there
        is a single attribute.
    relative_balances_ : ndarray of shape (n_points,)
        Balance of each point as a share of the balance of the sample, in increasing order. It is
        the smallest share over the attributes.
    labels_ : ndarray of shape (n_points, n_samples)
        Labels of each point.
    centers_ : ndarray of shape (n_points, n_clusters, n_features)
        Means of the clusters of each point.
    knee_ : int
        Position of the point that is farthest above the straight line between the ends of the
        front. Beyond this point, a small reduction of the cost takes a large reduction of the
        balance.
    data_balance_ : float
        Balance of the whole sample, which no clustering can exceed.
    status_ : str
        How the fit ended. The limits are ``size_bounds``. Points of the front that violate them are
        left out. If all points do, because rows with large weights do not fit, a
        ``ConvergenceWarning`` states the violation, and all points are kept.
    history_ : dict of ndarray
        History of "swap", with one value per iteration for ``n_points`` of the list,
        ``n_children``, ``n_new`` (children that entered the list), ``cost`` (the lowest),
        ``balance`` (the highest), ``hypervolume`` and ``seconds``. It is empty for other solvers.

    See Also
    --------
    FairKMeans : Compute one clustering for a given balance.
    skfair.inspection.FairnessFrontDisplay : Draw the front.

    Notes
    -----
    A sweep takes one round of :class:`FairKMeans` for each balance, which costs O(n K d). For large
    data, the sweep uses a sample of 10000 rows, and the solution for each balance is then extended
    to all rows.

    Examples
    --------
    >>> import numpy as np
    >>> from skfair.cluster import ParetoFairKMeans
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 2))
    >>> sex = np.where(X[:, 0] > 0, "f", "m")
    >>> front = ParetoFairKMeans(2, balances=10, random_state=0).fit(X, sensitive_features=sex)
    >>> bool(np.all(np.diff(front.costs_) > 0) and np.all(np.diff(front.balances_) > 0))
    True
    >>> bool(front.select(min_balance=0.8).balance_ >= 0.8 * front.data_balance_)
    True
    """

    _endings = ("converged", "infeasible")
    _takes_partitions = True
    _models: list[FairKMeans]

    _parameter_constraints = {
        "n_clusters": [Interval(Integral, 1, None, closed="left")],
        "balances": [Interval(Integral, 2, None, closed="left"), "array-like"],
        "size_bounds": ["array-like", None],
        "solver": [str, ClusteringSolver],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "init": [StrOptions({"k-means++", "random"})],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
        **SensitiveFeaturesMixin._group_constraints,
    }

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        balances: Any = 41,
        size_bounds: Any = None,
        solver: str | ClusteringSolver = "prices",
        init: Literal["k-means++", "random"] = "k-means++",
        n_init: int = 2,
        max_iter: int = 500,
        sensitive: SensitiveLike = None,
        random_state: Seed = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.balances = balances
        self.size_bounds = size_bounds
        self.solver = solver
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.sensitive = sensitive
        self.random_state = random_state

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
    ) -> ParetoFairKMeans:
        """Find the front.

        Parameters
        ----------
        X : array-like, sparse matrix or Dask collection of shape (n_samples, n_features)
            The rows to cluster.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows, which apply to cost and balance.
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
        self._keep(data.reading)
        targets, attained = bind(self, data, solver)
        limits_of = partial(limits_at, data, attained, self.size_bounds, self.n_clusters)
        problem = clustering_problem(data, limits_of(1.0), self.n_clusters)
        with report_iterations(self, X, y, max_iter=None, attributes=lambda state: {}) as callback:
            front = solve(self, problem, solver, limits_of, targets, callback)
        self._store(front_attributes(self, problem, data.groups, attained, front.points))
        self.history_ = front.history
        if self.size_bounds is None:
            evenest = min((own.cluster_sizes_ for own in self._models), key=np.max)
            other = "" if solver.keeps_shares else "solver='prices' and "
            warn_of_large(evenest, problem.largest_weight, "At every point of the front: ", other)
        return self

    def select(self, min_balance: float | None = None, *, index: int | None = None) -> FairKMeans:
        """Return a point of the front as a fitted estimator.

        Parameters
        ----------
        min_balance : float, default=None
            Minimum balance as a share of the balance of the sample. The point of lowest cost that
            satisfies it is returned.
        index : int, default=None
            Position of the point to return, for example ``knee_``. Pass either ``min_balance`` or
            ``index``.

        Returns
        -------
        model : FairKMeans
            The fitted estimator, with labels, centres and prices.
        """
        check_is_fitted(self)
        if (min_balance is None) == (index is None):
            raise ValueError("select needs either min_balance or index.")
        if index is None:
            check_number(min_balance, "min_balance", 0, 1)
            enough = np.flatnonzero(self.relative_balances_ >= min_balance * (1 - 1e-12))  # type: ignore[operator]
            if not enough.size:
                raise ValueError(
                    f"No point of the front has {min_balance} of the sample's balance. The most "
                    f"balanced one has {self.relative_balances_[-1]:.6g}."
                )
            index = int(enough[0])
        check_number(index, "index", -len(self._models), len(self._models) - 1, Integral)
        model = copy(self._models[index])
        model.labels_ = self.labels_[index].astype(np.int32)
        return model

    def hypervolume(self, ref_cost: float | None = None) -> float:
        """Compute the dominated share of the box between a reference point and the ideal point.

        Parameters
        ----------
        ref_cost : float, default=None
            Cost of the reference point. If None, it is twice the smallest cost of the front. The
            ideal point has the smallest cost of the front and the balance of the sample.

        Returns
        -------
        share : float
            The share, between 0 and 1 (larger is better).
        """
        check_is_fitted(self)
        if not np.isfinite(self.costs_).all():
            raise ValueError(
                "The costs are beyond the range of floating-point numbers. Divide X by a power of "
                "ten."
            )
        smallest = float(self.costs_[0])
        if ref_cost is None and smallest == 0:
            raise ValueError(
                "The smallest cost of the front is 0, and twice that is no bad end of a box. Pass "
                "ref_cost, for example the cost of a single cluster."
            )
        return hypervolume(
            self.costs_,
            self.relative_balances_,
            ref_cost=2 * smallest if ref_cost is None else ref_cost,
            ideal_cost=smallest,
            ideal_balance=1.0,
        )


def bind(
    model: ParetoFairKMeans, data: TrainingData, solver: ClusteringSolver
) -> tuple[FloatArray, FloatArray]:
    """Return the targets, and the balance of the sample for each attribute.

    Other functions of this file call the second one ``attained``, because the whole sample, as a
    single cluster, attains it. A target is a share of it, the same one for each attribute.
    """
    check_suits(solver, data, size_bounds=model.size_bounds)
    targets = target_shares(model.balances)
    attained = data_balances(data.groups, data.groups.sums(data.sample_weight))
    check_enough(data.n_samples, model.n_clusters)
    check_group_sizes(data.groups, model.n_clusters, data.groups.counts)
    return targets, attained


def target_shares(balances: Any) -> FloatArray:
    """Return the targets in rising order, from 0 to 1, from the parameter ``balances``."""
    if isinstance(balances, Integral):
        return np.linspace(0, 1, int(balances))
    targets = np.unique(np.append(check_numbers(balances, "balances"), (0.0, 1.0)))
    if not (targets[0] >= 0 and targets[-1] <= 1):  # NaN sorts last and fails too
        raise ValueError(
            f"balances must lie in [0, 1] (shares of the sample's balance), got {balances!r}."
        )
    return targets


def limits_at(
    data: TrainingData, attained: FloatArray, size_bounds: Any, n_clusters: int, target: float
) -> Constraints:
    """Return the limits for one target: each balance is at least ``target * attained``.

    The limits on sizes, if there are any, are the same for all targets.
    """
    betas = min(target, _NEARLY_ONE) * attained
    balances = balance_constraints(data.groups, betas, data.weight_range[0])
    sizes = size_limits(size_bounds, n_clusters, data.groups, balances, data.sample_weight)
    return balances.with_sizes(sizes, data.groups)


def solve(
    model: ParetoFairKMeans,
    problem: RepresentationProblem,
    solver: ClusteringSolver,
    limits_of: Callable[[float], Constraints],
    targets: FloatArray,
    callback: Callback,
) -> Front:
    """Return the points that the solver found for all targets, from ``n_init`` starts."""
    rng = check_random_state(model.random_state)

    def starts(rng: np.random.RandomState) -> list[FloatArray]:
        runs = [starting_centers(problem, model.init, rng) for _ in range(model.n_init)]
        return [start for run in runs for start in run]

    settings = RunSettings(model.max_iter, rng, callback=callback)
    return solver.front(problem, limits_of, targets, starts, settings)


def front_attributes(
    model: ParetoFairKMeans,
    problem: RepresentationProblem,
    groups: GroupEncoding,
    attained: FloatArray,
    points: list[FrontPoint],
) -> dict[str, Any]:
    """Return the attributes of the front: the points that no other dominates.

    Points that violate ``size_bounds`` are left out, unless all do. Each point is a fitted model.
    The labels of all models are rows of one array of small integers, ``labels_``, from which
    ``select`` copies those of a model.
    """
    points, status = within_size_bounds(problem, points)
    costs = np.array([point.clustering.cost for point in points])

    def balance(point: FrontPoint) -> float:
        counts = problem.counts(point.clustering.labels) @ problem.membership.T
        return min(1.0, float((attribute_balances(counts, groups) / attained).min()))

    relative = np.array(for_each(balance, points, go_on))
    kept = np.flatnonzero(nondominated(costs, relative))
    kept = kept[np.argsort(costs[kept])]

    def model_of(i: int) -> FairKMeans:
        own = problem.with_constraints(points[i].constraints)
        fitted = FairKMeans(
            model.n_clusters,
            min_balance=float(min(relative[i], 1.0)),
            size_bounds=model.size_bounds,
            sensitive=model.sensitive,
        )
        known = {name: vars(model)[name] for name in _READING if name in vars(model)}
        fitted._store(known | clustering_attributes(own, groups, points[i].clustering))
        return fitted

    models = for_each(model_of, kept.tolist(), go_on)
    small = np.min_scalar_type(max(model.n_clusters - 1, 1))
    labels = np.stack([own.labels_ for own in models]).astype(small)
    for own in models:
        del own.labels_  # ``labels_`` of the front has them
    costs, relative = np.array([own.inertia_ for own in models]), relative[kept]
    sizes = np.concatenate([own.cluster_sizes_ for own in models])
    return {
        "labels_": labels,
        "costs_": costs,
        "balances_": np.array([own.balance_ for own in models]),
        "relative_balances_": relative,
        "centers_": np.stack([own.cluster_centers_ for own in models]),
        "data_balance_": float(attained.min()),
        "knee_": _knee(costs, relative),
        "status_": status,
        "_models": models,
        "_said_sizes": f"{said_sizes(sizes)} over the points of the front",
    }


def within_size_bounds(
    problem: RepresentationProblem, points: list[FrontPoint]
) -> tuple[list[FrontPoint], Literal["converged", "infeasible"]]:
    """Return the points that satisfy the bounds on sizes, or all if none does, and the status.

    With sample weights, whole rows may be unable to satisfy them. If no point does, a warning says
    by how much the best of them misses the bounds.
    """

    def missed(point: FrontPoint) -> float:
        if point.constraints.sizes is None:
            return 0.0
        limited = problem.with_constraints(point.constraints).with_sizes_only()
        return missed_by(limited, point.clustering.labels)

    by_point = np.array(for_each(missed, points, go_on))
    kept = np.flatnonzero(by_point <= 0)
    if kept.size:
        return [points[i] for i in kept], "converged"
    warn_user(
        f"The size_bounds are missed by {by_point.min():.4g} in all (largest weight of a row: "
        f"{problem.largest_weight:g}), and other points of the front miss them by more. Ask for "
        "wider size_bounds, or for fewer clusters.",
        ConvergenceWarning,
    )
    return points, "infeasible"


def _knee(costs: FloatArray, balances: FloatArray) -> int:
    """Return the index of the point farthest above the chord between the ends of the front.

    Both axes are scaled to [0, 1]. The index is 0 if there are fewer than three points.
    """
    if costs.size < 3 or not costs[0] < costs[-1]:
        return 0
    x = (costs - costs[0]) / (costs[-1] - costs[0])
    y = (balances - balances[0]) / (balances[-1] - balances[0])
    return int(np.argmax(y - x))
