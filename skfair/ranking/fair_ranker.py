"""A ranker whose errors on pairs of documents are alike in both directions, query by query.

``fit`` reads rows, queries and groups, draws pairs, solves under a limit for each query until
enough of them satisfy it by the errors themselves, and reports the scores of documents.
"""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import HasMethods, Interval
from sklearn.utils.validation import _num_features, _num_samples, check_is_fitted

from skfair._typing import ColumnLike, ColumnsLike, FloatArray, IntArray, MatrixLike, Seed
from skfair.base import SensitiveFeaturesMixin, fit_method, report_iterations
from skfair.groups.attributes import check_aligned
from skfair.groups.limits import Limit
from skfair.groups.named_columns import column_positions, keep_columns, take_columns
from skfair.groups.sensitive import SensitiveLike
from skfair.losses import Loss
from skfair.metrics.rankings import ndcg
from skfair.models import mlp_scores
from skfair.models.choice import LINEAR_OR_LAYERS
from skfair.models.units import product
from skfair.ranking.task import make_task, report, solve
from skfair.read import ROW_CHECKS, read_features, read_rows
from skfair.solvers.base import Solver
from skfair.utils.docs import documented
from skfair.utils.older import CallbackSupportMixin
from skfair.utils.threads import one_blas_thread
from skfair.utils.validation import check_labels
from skfair.utils.warn import warn_user


@documented
class FairRanker(SensitiveFeaturesMixin, CallbackSupportMixin, BaseEstimator):
    r"""Ranker of the documents of queries, under a limit on pair errors for each query.

    Learns scores :math:`h_\theta(x)` from pairs of a better and a worse document of the same query,

    .. math:: \min_\theta \; \text{mean of } \ell(h_\theta(x_i) - h_\theta(x_j))
       \text{ over pairs with } y_i > y_j \; + \; \frac{\alpha}{2} \lVert \theta \rVert^2,

    where all queries count alike, under one constraint for each query and each two groups a, b: the
    error rate on pairs whose better document is in a and whose worse one is in b differs from that
    of the opposite pairs by at most ``max_disparity``, as :func:`skfair.metrics.pair_error_gap`
    measures it. That holds for ``share_within_`` of the training queries; new ones have about the
    same mean disparity and are not limited one by one. Scores do not need the group.

    Parameters
    ----------
    max_disparity : float or dict, default=0.15
        Limit on the disparity of a query; a dict has one for each attribute, None for none, and
        needs ``Sensitive(crossed=False)`` if there are several. A query of 100 documents has about
        0.07 by chance: much smaller limits learn the chance of the training queries.
    query_share : float or None, default=0.95
        Share of the training queries that are to satisfy the limit, which those of few documents
        may not be able to. None solves the problem with smooth errors once and promises nothing, as
        the papers do.
    model : "linear" or tuple of int, default="linear"
        Linear scores, or hidden layers such as ``(64, 32)``.
    loss : {"log_loss", "hinge", "squared_hinge"} or Loss, default="log_loss"
        Loss of a difference of scores, which should be positive.
    alpha : float or None, default=None
        Weight of the penalty on the weights; None is 1 / n_samples.
    solver : str or solver object, default="auto"
        "auto" is "al_lbfgs" which, if ``query_share`` is below 1, gives up queries that would cost
        the others too much. Or "multiplier_model", "plada", "plada_stochastic", "alm" and others of
        :mod:`skfair.solvers`.
    max_iter : int or None, default=None
        Most steps of one run of the solver; None for 100 with "auto", else for its own.
    tol : float, default=1e-3
        Largest residual of the first-order conditions.
    query_column : str, int or None, default=None
        Column of X that holds the queries, for work without metadata routing; it is kept out of the
        model. Positions in ``sensitive`` count the columns without it.
    random_state : int, RandomState instance or None, default=None
        Seed of the pairs, of hidden layers and of stochastic solvers.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Weights of linear scores.
    coefs_, intercepts_ : list of ndarray
        Layers of a network.
    disparity_by_query_ : ndarray of shape (n_queries,)
        Disparity of each training query, of the worst two groups; NaN where it is undefined.
    train_disparity_, share_within_ : float
        The largest of them, and the share of queries within the limit.
    queries_ : ndarray of shape (n_queries,)
        Names of the training queries.
    n_pairs_ : int
        Number of pairs that were learned from.
    multipliers_, constraint_names_ : ndarray of shape (n_constraints,)
        What the objective loses per unit of a tighter limit, and what each constraint compares.
    objective_, kkt_residual_ : float
        Mean loss plus penalty, and residual of the last smooth problem.
    n_iter_, n_solves_ : int
        Steps of the solver in the best round, and number of problems.
    status_ : str
        "converged", "max_iter", "stopped" or "infeasible".
    history_ : dict of ndarray
        Objective, violation and costs of each step of that round.
    n_features_in_ : int
        Number of columns of X without the query column.

    See Also
    --------
    skfair.metrics.pair_error_gap : What is limited.
    skfair.datasets.make_ranking_queries : Queries to try it on.

    Notes
    -----
    A step costs O(nnz(X) + pairs), whatever the number of queries.

    References
    ----------
    Narasimhan, H., Cotter, A., Gupta, M. and Wang, S. "Pairwise fairness for ranking and
    regression", AAAI 2020.

    Examples
    --------
    >>> from skfair.datasets import make_ranking_queries
    >>> from skfair.metrics import pair_error_gap
    >>> from skfair.ranking import FairRanker
    >>> X, y, query_id, groups = make_ranking_queries(
    ...     6000, n_documents=100, n_features=40, n_informative=5, bias=2, random_state=0
    ... )
    >>> seen = query_id < 30
    >>> model = FairRanker(max_disparity=0.2, random_state=0)
    >>> model = model.fit(X[seen], y[seen], query_id[seen], sensitive_features=groups[seen])
    >>> print(f"{model.share_within_:.0%} of the training queries are within the limit")
    100% of the training queries are within the limit
    >>> new = dict(query_id=query_id[~seen], sensitive_features=groups[~seen])
    >>> gap = pair_error_gap(y[~seen], model.predict(X[~seen]), **new)
    >>> print(f"mean disparity of new queries: {gap:.2f}")
    mean disparity of new queries: 0.09
    """

    # With metadata routing on, meta-estimators deliver queries and groups without requests.
    __metadata_request__fit = {"sensitive_features": True, "query_id": True}
    __metadata_request__score = {"query_id": True}

    _parameter_constraints: dict[str, Any] = {
        "max_disparity": [Interval(Real, 0, 1, closed="both"), dict],
        "loss": [str, Loss],
        "alpha": [Interval(Real, 0, None, closed="left"), None],
        "model": LINEAR_OR_LAYERS,
        "solver": [str, HasMethods("solve")],
        "query_share": [Interval(Real, 0, 1, closed="both"), None],
        "max_iter": [Interval(Integral, 1, None, closed="left"), None],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "random_state": ["random_state"],
        "query_column": [str, Integral, None],
        **SensitiveFeaturesMixin._group_constraints,
    }

    def __init__(
        self,
        max_disparity: Limit = 0.15,
        *,
        query_share: float | None = 0.95,
        query_column: str | int | None = None,
        sensitive: SensitiveLike = None,
        model: Literal["linear"] | tuple[int, ...] | list[int] = "linear",
        loss: str | Loss = "log_loss",
        alpha: float | None = None,
        solver: str | Solver = "auto",
        max_iter: int | None = None,
        tol: float = 1e-3,
        random_state: Seed = None,
    ) -> None:
        self.max_disparity = max_disparity
        self.query_share = query_share
        self.query_column = query_column
        self.sensitive = sensitive
        self.model = model
        self.loss = loss
        self.alpha = alpha
        self.solver = solver
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    @fit_method
    @one_blas_thread
    def fit(
        self,
        X: MatrixLike,
        y: ColumnLike,
        query_id: ColumnLike | None = None,
        *,
        sensitive_features: ColumnsLike | None = None,
    ) -> Self:
        """Learn scores from pairs of documents of the same query.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Features of the documents.
        y : array-like of shape (n_samples,)
            Grades of relevance: numbers, larger for better documents.
        query_id : array-like of shape (n_samples,), default=None
            The query of each document. None for ``query_column``, or a single query if there is
            none.
        sensitive_features : array-like of shape (n_samples,) or (n_samples, n_attributes)
            The group of each document.
        """
        check_aligned(X=X, y=y, query_id=query_id, sensitive_features=sensitive_features)
        if query_id is None and self.query_column is None:
            warn_user(
                "All rows are taken as one query, because neither query_id nor query_column was "
                "given. Pass query_id=numpy.zeros(len(y)) if they are."
            )
        X, query_id = self._split_query(X, query_id)
        checks = {"y_numeric": True, "ensure_min_samples": 2, **ROW_CHECKS}
        data = read_rows(self, X, y, sensitive_features=sensitive_features, **checks)
        self._keep(data.reading)
        rng = check_random_state(self.random_state)
        task = make_task(
            data, query_id, self.loss, self.alpha, self.model, self.max_disparity, rng=rng
        )
        with report_iterations(self, X, y, max_iter=None, attributes=task.fitted) as callback:
            solution = solve(
                task, self.solver, self.query_share, self.tol, self.max_iter, rng, callback
            )
        for name in ("coef_", "coefs_", "intercepts_"):  # nothing is left of another kind
            self.__dict__.pop(name, None)
        self.__dict__.update(report(task, solution, self.max_disparity, self.query_share))
        return self

    def predict(self, X: MatrixLike) -> FloatArray:
        """Return the scores of documents; only their order within a query means something.

        Returns
        -------
        scores : ndarray of shape (n_samples,)
            Larger for documents that should come first.
        """
        check_is_fitted(self)
        X, _ = self._split_query(X, None)
        rows = read_features(self, X, **ROW_CHECKS)
        if hasattr(self, "coefs_"):
            return np.asarray(mlp_scores(self.coefs_, self.intercepts_, rows), dtype=np.float64)
        return product(rows, self.coef_)

    def rank(self, X: MatrixLike, query_id: ColumnLike | None = None) -> IntArray:
        """Return the place of each document within its query, from 1.

        ``X[np.argsort(model.rank(X))]`` sorts the documents of one query. Of tied documents the
        one that stands first in X comes first.

        Parameters
        ----------
        query_id : array-like of shape (n_samples,), default=None
            The query of each document, as in :meth:`fit`; queries may be new.

        Returns
        -------
        places : ndarray of shape (n_samples,)
            1 for the best document of each query.
        """
        scores = self.predict(X)
        _, query_id = self._split_query(X, query_id)
        codes = check_labels(query_id, "query_id", scores.size).codes
        # Scores of equal documents differ by rounding, which must not order them.
        unit = float(np.abs(scores).max(initial=0.0)) or 1.0
        order = np.lexsort((-np.round(scores / unit, 12), codes))
        sizes = np.bincount(codes)
        places = np.empty(scores.size, np.int64)
        places[order] = 1 + np.arange(scores.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        return places

    def score(self, X: MatrixLike, y: ColumnLike, query_id: ColumnLike | None = None) -> float:
        """Return the mean nDCG of the queries.

        Parameters
        ----------
        y : array-like of shape (n_samples,)
            Grades of relevance, at least 0.
        query_id : array-like of shape (n_samples,), default=None
            The query of each document, as in :meth:`fit`.

        Returns
        -------
        ndcg : float
            Between 0 and 1, larger is better.
        """
        check_aligned(X=X, y=y, query_id=query_id)
        scores = self.predict(X)
        return ndcg(y, scores, query_id=self._split_query(X, query_id)[1])

    def _split_query(self, X: MatrixLike, query_id: ColumnLike | None) -> tuple[Any, Any]:
        """Return X without the query column, and the queries: without any there is a single one."""
        check_aligned(X=X, query_id=query_id)
        column = self.query_column
        if column is None:
            return X, np.zeros(_num_samples(X), np.int64) if query_id is None else query_id
        if query_id is not None:
            raise ValueError(
                f"query_id was passed although query_column={column!r} says that X holds the "
                "queries. Use one of the two."
            )
        (position,) = column_positions(X, column)
        rest = keep_columns(X, np.delete(np.arange(_num_features(X)), position))
        return rest, np.asarray(take_columns(X, column)).ravel()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        return tags
