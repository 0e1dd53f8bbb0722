"""k-means whose clusters keep the groups in proportion.

``fit`` reads as the method does: read the data and groups, turn the limits into rules, start from
plain k-means, run the solver, store the result. The default solver, by prices, is our own; the
others are those of safairkm and of the method it compares with.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from numbers import Integral, Real
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    ClusterMixin,
    TransformerMixin,
)
from sklearn.callback import CallbackSupportMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_array, check_random_state
from sklearn.utils._param_validation import Interval, StrOptions

from skfair._typing import FloatArray
from skfair.base import SensitiveFeaturesMixin, fit_method, report_iterations
from skfair.blocks.partitions import is_lazy
from skfair.cluster.limits import count_balances, data_balances, representation_rules
from skfair.cluster.other_solvers import OTHER_SOLVERS, check_solver
from skfair.cluster.prediction import PricePredictionMixin, squared_unit_of
from skfair.cluster.rows import check_lazy_solver, rows_in_blocks, rows_in_memory
from skfair.cluster.starts import starting_centers
from skfair.groups.encoding import GroupEncoding
from skfair.problems.clustering.representation import RepresentationProblem, Rules
from skfair.solvers.clustering.prices import Assignment, PriceClustering, assign, cluster_by_prices
from skfair.utils.validation import check_weights
from skfair.utils.warn import warn_user


class FairKMeans(
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
    the labels of the training data, exactly, in whole people (or sample weights).

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    min_balance : float or None, default=0.8
        Smallest balance of a cluster, in [0, 1]; larger is fairer and costs more. None for no
        limit, needed together with ``share_bounds``.
    relative_balance : bool, default=True
        Whether ``min_balance`` is a share of the balance of the whole sample (0.8 is the "80
        percent rule") or an absolute balance. An absolute balance above that of the sample is an
        error.
    share_bounds : float or dict, default=None
        Limits on shares instead of a balance: a dict of group -> (lower, upper), or a factor f that
        keeps every share r of the sample within [f r, r / f].
    solver : {"prices", "swap", "variational", "smooth"}, default="prices"
        - "prices": our own, by the dual of the assignment problem; cheapest and exact.
        - "swap": stochastic k-means steps and group swaps, Algorithm 2 of [1]_; keeps
          ``min_balance`` whenever swaps can. One attribute, no sample weights.
        - "variational": penalises the Kullback-Leibler fairness error with ``fairness_weight``
          [2]_; needs ``min_balance=None``. One attribute.
        - "smooth": alternating gradients on a smooth relaxation, Algorithm 4 of [1]_; trades by
          ``n_kmeans_steps`` and ``n_swap_steps``, needs ``min_balance=None``. One attribute.
    init : {"k-means++", "random"} or array-like, default="k-means++"
        How the starting centres are chosen, or the centres, (n_clusters, n_features).
    n_init : "auto" or int, default="auto"
        Number of runs, of which the cheapest is kept. Each run starts twice: from plain k-means,
        and from k-means on the points relative to their group's mean. "auto" is one run whose
        starts are the best of three.
    n_kmeans_steps : int, default=20
        Rows per k-means step of "swap"; weight of the cost in "smooth".
    n_swap_steps : int, default=4
        Swaps after each k-means step of "swap"; weight of the balance in "smooth".
    swap_target : {"local", "global"}, default="local"
        Whether "swap" exchanges with the cluster nearest to the least balanced one, (5) of [1]_,
        or with the one that has most to give, (4).
    swap_candidates : "auto" or int, default="auto"
        How many rows "swap" compares per exchange; "auto" lets the number grow.
    batch_size : int or None, default=1024
        Rows per gradient of "smooth"; None takes all.
    fairness_weight : float, default=1.0
        Weight of the fairness error in "variational"; larger is fairer and costs more.
    max_iter : int, default=100
        Largest number of rounds per run.
    tol : float, default=1e-4
        A run ends when the centres move by less, relative to the variance of the features.
    random_state : int, RandomState instance or None, default=None
        Seed.
    n_jobs : int, default=None
        Number of parallel runs; see joblib.
    intersectional : bool, default=True
        Whether several attributes are crossed, or limited one by one (their groups overlap).
    sensitive_columns : str, int or list of them, default=None
        Columns of X that hold the attributes, for work without metadata routing.
    drop_sensitive : bool, default=True
        Whether these columns are kept out of the distances.

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
        No assignment within the limits to these centres costs less.
    assignment_gap_ : float
        Relative excess of the cost of ``labels_`` at these centres over ``lower_bound_``.
    n_iter_ : int
        Number of rounds.
    status_ : str
        "converged", "max_iter", "stopped" or "infeasible".
    history_ : dict of ndarray
        Objective, violation and CPU seconds per round; with Dask also the bytes exchanged.
    groups_ : ndarray of shape (n_groups,)
        Names of the groups.
    model_features_ : ndarray
        Names or positions of the columns of X that the distances use.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray
        Names of the columns of X, if it has them.

    See Also
    --------
    sklearn.cluster.KMeans : Without limits.

    Notes
    -----
    A round costs a few passes over the rows, O(n K d) each, whatever the number of groups; large
    data settle on a sample of 10000 rows first. For K clusters the limits of a balance between J
    groups cost K J (J - 1) multipliers, share bounds 2 K J.

    X, groups and weights may be Dask collections ("prices" only). A pass then exchanges centres,
    prices and counts with the blocks, whatever the number of rows, and rows stay where they are,
    but for those of the sample.

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

    _parameter_constraints = {
        "n_clusters": [Interval(Integral, 1, None, closed="left")],
        "min_balance": [Interval(Real, 0, 1, closed="both"), None],
        "relative_balance": ["boolean"],
        "share_bounds": [Real, dict, None],
        "solver": [StrOptions({"prices", *OTHER_SOLVERS})],
        "init": [StrOptions({"k-means++", "random"}), "array-like"],
        "n_init": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")],
        "n_kmeans_steps": [Interval(Integral, 0, None, closed="left")],
        "n_swap_steps": [Interval(Integral, 0, None, closed="left")],
        "swap_target": [StrOptions({"global", "local"})],
        "swap_candidates": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")],
        "batch_size": [Interval(Integral, 1, None, closed="left"), None],
        "fairness_weight": [Interval(Real, 0, None, closed="left")],
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
        solver: str = "prices",
        init: Any = "k-means++",
        n_init: Any = "auto",
        n_kmeans_steps: int = 20,
        n_swap_steps: int = 4,
        swap_target: str = "local",
        swap_candidates: Any = "auto",
        batch_size: int | None = 1024,
        fairness_weight: float = 1.0,
        max_iter: int = 100,
        tol: float = 1e-4,
        random_state: Any = None,
        n_jobs: int | None = None,
        intersectional: bool = True,
        sensitive_columns: Any = None,
        drop_sensitive: bool = True,
    ) -> None:
        self.n_clusters = n_clusters
        self.min_balance = min_balance
        self.relative_balance = relative_balance
        self.share_bounds = share_bounds
        self.solver = solver
        self.init = init
        self.n_init = n_init
        self.n_kmeans_steps = n_kmeans_steps
        self.n_swap_steps = n_swap_steps
        self.swap_target = swap_target
        self.swap_candidates = swap_candidates
        self.batch_size = batch_size
        self.fairness_weight = fairness_weight
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.intersectional = intersectional
        self.sensitive_columns = sensitive_columns
        self.drop_sensitive = drop_sensitive

    @fit_method
    def fit(
        self, X: Any, y: Any = None, *, sensitive_features: Any = None, sample_weight: Any = None
    ) -> FairKMeans:
        """Cluster X within the limits.

        Parameters
        ----------
        X : array-like or Dask collection of shape (n_samples, n_features)
            The rows to cluster.
        y : object
            Not used; exists for compatibility.
        sensitive_features : array-like of shape (n_samples,) or (n_samples, n_attributes)
            The group of each row.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows, in the cost and in the limits.

        Returns
        -------
        self : FairKMeans
            The fitted estimator.
        """
        options = {
            "sensitive_features": sensitive_features,
            "sample_weight": sample_weight,
            "dtype": [np.float64, np.float32],
            "order": "C",
        }
        is_elsewhere = is_lazy(X, sensitive_features, sample_weight)
        if is_elsewhere:
            check_lazy_solver(self.solver)
            rows = rows_in_blocks(self._read_training(X, **options))
        else:
            rows = rows_in_memory(self._read_fit_data(X, supervised=False, **options))
        groups = rows.groups
        check_solver(self.solver, groups, self.min_balance, self.share_bounds)
        rules = self._rules(groups, rows.sums, rows.person)
        self._check_enough_rows(rows.n_samples)
        problem = rows.problem(rules, self.n_clusters)
        rng = check_random_state(self.random_state)
        is_one = self.n_init == "auto" or not isinstance(self.init, str)
        n_runs = 1 if is_one else int(self.n_init)
        seeds = rng.randint(np.iinfo(np.int32).max, size=n_runs)
        with report_iterations(
            self, X, y, max_iter=None, attributes=lambda c: self._centers_state(problem, c)
        ) as callback:
            if n_runs == 1 or is_elsewhere or self.n_jobs in (None, 1):
                runs = [self._run(problem, groups, seed, callback) for seed in seeds]
            else:
                runs = Parallel(n_jobs=self.n_jobs)(
                    delayed(self._run)(problem, groups, seed) for seed in seeds
                )
        best = min(runs, key=lambda run: (run.violation, run.cost))
        self._store(problem, groups, best)
        return self

    def _rules(self, groups: GroupEncoding, sums: FloatArray, person: float) -> Rules:
        """Turn the limits into rules, and say so when there is nothing to limit."""
        if groups.n_groups == groups.n_attributes and groups.levels.attributes:
            warn_user(
                f"sensitive_features has a single group, {groups.names[0]!r}, so no limit is "
                "active and this is plain k-means.",
                UserWarning,
            )
        return representation_rules(
            groups,
            self.n_clusters,
            min_balance=self.min_balance,
            relative_balance=self.relative_balance,
            share_bounds=self.share_bounds,
            sums=sums,
            person=person,
        )

    def _check_enough_rows(self, n_samples: int) -> None:
        if n_samples < self.n_clusters:
            raise ValueError(f"n_samples={n_samples} should be >= n_clusters={self.n_clusters}.")

    def _run(
        self,
        problem: RepresentationProblem,
        groups: GroupEncoding,
        seed: int,
        callback: Callable[[Any], bool] | None = None,
    ) -> PriceClustering:
        """Start from plain k-means and run the solver once."""
        rng = check_random_state(seed)
        starts = self._starts(problem, rng)
        if self.solver == "prices":
            return cluster_by_prices(
                problem,
                starts,
                max_iter=self.max_iter,
                tol=self.tol,
                random_state=rng,
                callback=callback,
            )
        beta = None
        if self.min_balance is not None:
            attained = data_balances(groups, groups.sums(problem.weights))[0]
            beta = self.min_balance * (attained if self.relative_balance else 1.0)
        solve = OTHER_SOLVERS[self.solver]
        runs = [solve(self, problem, groups, beta, start, rng, callback) for start in starts]
        return min(runs, key=lambda run: (run.violation, run.cost))

    def _starts(
        self, problem: RepresentationProblem, rng: np.random.RandomState
    ) -> list[FloatArray]:
        """Return scaled starting centres: the given ones, or those of :func:`starting_centers`."""
        if isinstance(self.init, str):
            n_trials = 3 if self.n_init == "auto" else 1
            return starting_centers(problem, self.init, n_trials, rng)
        init = check_array(self.init, dtype=np.float64, input_name="init")
        expected = (self.n_clusters, problem.X.shape[1])
        if init.shape != expected:
            raise ValueError(f"init has the shape {init.shape}, expected {expected}.")
        return [np.asarray((init - problem.mean) / problem.scale)]

    def _centers_state(self, problem: RepresentationProblem, centers: FloatArray) -> dict[str, Any]:
        """Return the attributes that prediction needs, for monitors of a run."""
        return {
            "cluster_centers_": problem.unscaled(centers).astype(problem.X.dtype),
            "_scaled_prices": np.zeros((self.n_clusters, len(self.groups_))),
            "_units": (problem.mean, problem.scale),
            "_scaled_centers": np.asarray(centers, dtype=np.float64),
        }

    def _store(
        self,
        problem: RepresentationProblem,
        groups: GroupEncoding,
        found: PriceClustering,
        *,
        is_final: bool = True,
    ) -> None:
        """Store the result of a fit, and warn if the limits are not met."""
        for name, value in self._centers_state(problem, found.centers).items():
            setattr(self, name, value)
        self.labels_ = problem.label_rows(found.labels)
        squared_unit = squared_unit_of(problem.scale)
        total = squared_unit * problem.total_weight
        self.inertia_ = found.cost * total
        by_rule = -(found.multipliers @ problem.group_rules)
        self._scaled_prices = by_rule if found.prices is None else found.prices
        with np.errstate(over="ignore"):  # data near the end of the range of floats
            self.prices_ = self._scaled_prices * squared_unit
        # In the order in which the rules were made, which is that of a stream's later parts.
        self._multipliers = np.empty_like(found.multipliers)
        self._multipliers[:, problem.rule_order] = found.multipliers
        self.group_counts_ = problem.counts(found.labels) @ problem.membership.T
        self.cluster_balances_ = count_balances(self.group_counts_, groups)
        self.balance_ = float(self.cluster_balances_.min())
        self.lower_bound_ = found.lower_bound * total
        bound = found.lower_bound
        self.assignment_gap_ = (found.cost_at_bound - bound) / bound if bound > 0 else 0.0
        self.n_iter_ = found.n_iter
        self.history_ = found.history
        missed = problem.rules.violation_beyond(problem.counts(found.labels), problem.person)
        self.status_ = "infeasible" if missed > 0 else found.status
        if not is_final:
            return
        if missed > 0:
            warn_user(
                f"The limits are missed by {missed:.4g} in all (largest weight of a row: "
                f"{problem.person:g}); the balance reached is {self.balance_:.4g}. Ask for a "
                "smaller min_balance or wider share_bounds, or for fewer clusters.",
                ConvergenceWarning,
            )
        elif found.status == "max_iter":
            warn_user(
                f"The centres still move after max_iter={self.max_iter} rounds. The limits are "
                "met; increase max_iter or tol for a cheaper clustering.",
                ConvergenceWarning,
            )

    @fit_method
    def partial_fit(
        self, X: Any, y: Any = None, *, sensitive_features: Any = None, sample_weight: Any = None
    ) -> FairKMeans:
        """Go on with the next part of a stream.

        The first part is clustered as by ``fit`` and must contain every group. Each further part is
        assigned so that the limits hold for everything seen so far; then the centres move to the
        running means and the prices are averaged. ``labels_`` are those of the last part,
        ``group_counts_``, ``cluster_balances_`` and ``balance_`` count all parts.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The next rows.
        y : object
            Not used; exists for compatibility.
        sensitive_features : array-like of shape (n_samples,) or (n_samples, n_attributes)
            The group of each row.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.

        Returns
        -------
        self : FairKMeans
            The estimator.
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
        groups = self._read_part_groups(X, sensitive_features)
        rows = self._read_features(X, dtype=[np.float64, np.float32], order="C")
        weights = check_weights(sample_weight, rows.shape[0])
        seen = self.group_counts_.sum(axis=0) + groups.sums(weights)
        rules = representation_rules(
            replace(groups, counts=seen),
            self.n_clusters,
            min_balance=self.min_balance,
            relative_balance=self.relative_balance,
            share_bounds=self.share_bounds,
            sums=seen,
            person=1.0 if weights is None else float(weights.max()),
        )
        problem = RepresentationProblem(
            rows,
            groups,
            rules,
            self.n_clusters,
            weights,
            before=self.group_counts_,
            units=self._units,
        )
        found = assign(problem, self._scaled_centers, multipliers=self._multipliers)
        self._absorb(problem, groups, found)
        return self

    def _absorb(
        self, problem: RepresentationProblem, groups: GroupEncoding, found: Assignment
    ) -> None:
        """Add an assigned part of a stream to the counts, the means and the prices."""
        first = slice(0, int(groups.offsets[1]))  # one attribute counts every row once
        before = self.group_counts_[:, first].sum(axis=1)
        means, mass = problem.means(found.labels)
        share = mass / np.where(before + mass > 0, before + mass, 1.0)
        centers = self._scaled_centers + share[:, None] * (means - self._scaled_centers)
        for name, value in self._centers_state(problem, centers).items():
            setattr(self, name, value)
        # The latest thirty parts or so decide: early prices belong to centres that have moved on.
        step = max(0.03, problem.total_weight / (before.sum() + problem.total_weight))
        self._multipliers = self._multipliers + step * (found.multipliers - self._multipliers)
        self._scaled_prices = -(self._multipliers @ problem.group_rules)
        self.prices_ = self._scaled_prices * squared_unit_of(problem.scale)
        self.labels_ = problem.label_rows(found.labels)
        self.group_counts_ = (
            self.group_counts_ + problem.counts(found.labels) @ problem.membership.T
        )
        self.cluster_balances_ = count_balances(self.group_counts_, groups)
        self.balance_ = float(self.cluster_balances_.min())
        total = squared_unit_of(problem.scale) * problem.total_weight
        self.inertia_ = found.cost * total
        self.lower_bound_ = found.lower_bound * total
        self.n_iter_ += 1

    # Written out, since set_output wraps only what a class itself defines.
    transform = PricePredictionMixin.transform

    def fit_predict(
        self, X: Any, y: Any = None, *, sensitive_features: Any = None, sample_weight: Any = None
    ) -> NDArray[np.int32]:
        """Cluster X within the limits and return the labels.

        Parameters
        ----------
        X : array-like or Dask collection of shape (n_samples, n_features)
            The rows to cluster.
        y : object
            Not used; exists for compatibility.
        sensitive_features : array-like of shape (n_samples,) or (n_samples, n_attributes)
            The group of each row.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            Cluster of each row.
        """
        fitted = self.fit(X, y, sensitive_features=sensitive_features, sample_weight=sample_weight)
        return fitted.labels_

    def fit_transform(
        self, X: Any, y: Any = None, *, sensitive_features: Any = None, sample_weight: Any = None
    ) -> NDArray[Any]:
        """Cluster X within the limits and return the distances to the centres.

        Parameters
        ----------
        X : array-like or Dask collection of shape (n_samples, n_features)
            The rows to cluster.
        y : object
            Not used; exists for compatibility.
        sensitive_features : array-like of shape (n_samples,) or (n_samples, n_attributes)
            The group of each row.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.

        Returns
        -------
        distances : ndarray of shape (n_samples, n_clusters)
            Euclidean distances.
        """
        fitted = self.fit(X, y, sensitive_features=sensitive_features, sample_weight=sample_weight)
        return fitted.transform(X)
