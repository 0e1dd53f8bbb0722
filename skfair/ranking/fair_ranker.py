"""A ranker with a limit, in each query, on the difference of its errors on pairs of documents.

``fit`` reads rows, queries and groups, draws pairs (``pairs.py``), solves smooth problems until
enough queries satisfy the limit on their true errors, and reports the scores (``task.py``).
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
from skfair.models import mlp_scores
from skfair.models.choice import LINEAR_OR_LAYERS
from skfair.models.units import product
from skfair.ranking.metrics import ndcg
from skfair.ranking.task import make_task, report, solve
from skfair.read import ROW_CHECKS, read_features, read_rows
from skfair.solvers.base import Solver
from skfair.utils.docs import documented
from skfair.utils.older import CallbackSupportMixin
from skfair.utils.threads import one_blas_thread
from skfair.utils.validation import check_labels, one_dimensional
from skfair.utils.warn import warn_user


@documented
class FairRanker(SensitiveFeaturesMixin, CallbackSupportMixin, BaseEstimator):
    r"""Learning to rank under a limit on the pair errors between groups in each query.

    The ranker learns a score for each document, and the documents of a query are sorted by this
    score. A pair error is a worse document that is ranked above a better one of the same query. A
    pair with tied scores counts as half an error. For each query and any two groups a and b, two
    error rates are compared: of the pairs in which the better document belongs to a and the worse
    one to b, and of the opposite pairs. Their difference is at most ``max_disparity``, as measured
    by :func:`skfair.metrics.pair_error_gap`. Predictions do not need the group.

    The scores :math:`h_\theta(x)` solve the problem

    .. math:: \min_\theta \; \text{mean of } \ell(h_\theta(x_i) - h_\theta(x_j))
       \text{ over pairs with } y_i > y_j \; + \; \frac{\alpha}{2} \lVert \theta \rVert^2,

    subject to these constraints, where all queries have the same weight. The limit holds for a
    fraction ``share_within_`` of the training queries. New queries have about the same disparity on
    average, but a single one may exceed the limit.

    Parameters
    ----------
    max_disparity : float or dict, default=0.15
        The limit on the disparity of each query. A dict sets one limit for each attribute, which
        may be None for an attribute without a limit. Several attributes require
        ``Sensitive(intersectional=False)``. A query of 100 documents has a disparity of about 0.07
        by chance, so much smaller limits fit the noise of the training queries.
    query_share : float or None, default=0.95
        Fraction of the training queries that must satisfy the limit. Queries with few documents may
        be unable to satisfy it. If None, one problem with smooth errors is solved, as in the
        papers, and the limit is not enforced strictly.
    model : "linear" or tuple of int, default="linear"
        Model of the scores. A tuple such as ``(64, 32)`` sets the hidden layers of a network.
    loss : {"log_loss", "hinge", "squared_hinge"} or Loss, default="log_loss"
        Loss of the score of the better document minus the score of the worse one.
    alpha : float or None, default=None
        Weight of the L2 penalty. Larger values mean stronger regularisation. If None, 1 / n_samples
        is used.
    solver : str or solver object, default="auto"
        Algorithm that solves the constrained problem. If "auto", "al_lbfgs" is used. If
        ``query_share`` is below 1, it also gives up queries whose limit would cost too much. Other
        choices are "alm" of :mod:`skfair.solvers`, and "multiplier_model", "plada",
        "plada_stochastic" and further algorithms of :mod:`skfair.papers`.
    max_iter : int or None, default=None
        Maximum number of iterations in each run of the solver. If None, it is 100 for "auto", and
        other solvers use their own default.
    tol : float, default=1e-3
        Tolerance of the solver for the residual of the first-order optimality conditions.
    query_column : str, int or None, default=None
        Name or position of the column of X that holds the queries, as an alternative to
        ``query_id``. The model does not use this column as a feature. Positions in ``sensitive``
        refer to the columns without it.
    random_state : int, RandomState instance or None, default=None
        Seed of the sampled pairs, of the initial weights of hidden layers and of stochastic
        solvers. Pass an int for reproducible results.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Coefficients of a linear model.
    coefs_ : list of ndarray
        Weights of the layers of a network.
    intercepts_ : list of ndarray
        Intercepts of the layers of a network.
    disparity_by_query_ : ndarray of shape (n_queries,)
        Disparity of each training query. With more than two groups, it is the largest disparity of
        two groups. It is NaN if the disparity of a query is undefined.
    train_disparity_ : float
        Largest disparity of a training query.
    share_within_ : float
        Fraction of the training queries that satisfy the limit.
    queries_ : ndarray of shape (n_queries,)
        Identifiers of the training queries.
    n_pairs_ : int
        Number of pairs of documents in the training loss.
    multipliers_ : ndarray of shape (n_constraints,)
        Lagrange multipliers. Each one is the increase of the objective per unit by which the limit
        is tightened.
    constraint_names_ : ndarray of shape (n_constraints,)
        Names of the constraints that ``multipliers_`` belong to.
    objective_ : float
        Mean loss plus penalty.
    kkt_residual_ : float
        Residual of the first-order optimality conditions in the smooth problem whose solution is
        the model.
    n_iter_ : int
        Number of iterations of the solver in this problem.
    n_solves_ : int
        Number of problems that were solved.
    status_ : str
        How the fit ended. The limit counts as satisfied if at least a fraction ``query_share`` of
        the queries satisfies it. If ``query_share`` is None, only the solver is checked.
    history_ : dict of str to ndarray
        Progress of the solver, for example "iteration" and "objective".
    n_features_in_ : int
        Number of columns of X in ``fit``, without the query column.

    See Also
    --------
    skfair.metrics.pair_error_gap : The disparity that is limited.
    skfair.datasets.make_ranking_queries : Synthetic queries for a first try.

    Notes
    -----
    An iteration costs O(nnz(X) + n_pairs), regardless of the number of queries.

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
    >>> new = dict(query_id=query_id[~seen], sensitive_features=groups[~seen])
    >>> for limit in (1.0, 0.2):
    ...     model = FairRanker(max_disparity=limit, random_state=0)
    ...     model = model.fit(X[seen], y[seen], query_id[seen], sensitive_features=groups[seen])
    ...     gap = pair_error_gap(y[~seen], model.predict(X[~seen]), **new)
    ...     ndcg = model.score(X[~seen], y[~seen], query_id[~seen])
    ...     print(f"limit {limit}: mean disparity of new queries {gap:.2f}, nDCG {ndcg:.2f}")
    limit 1.0: mean disparity of new queries 0.26, nDCG 0.90
    limit 0.2: mean disparity of new queries 0.09, nDCG 0.90
    """

    # With metadata routing on, meta-estimators deliver queries and groups without requests.
    __metadata_request__fit = {"sensitive_features": True, "query_id": True}
    __metadata_request__score = {"query_id": True}

    _endings = ("converged", "max_iter", "stopped", "infeasible")
    # No warning about columns that tell the group: groups are often bands of a quality score.
    _names_group_columns = False
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
        """Fit the scores on pairs of documents of the same query.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Features of the documents.
        y : array-like of shape (n_samples,)
            Relevance of the documents. Better documents have larger numbers.
        query_id : array-like of shape (n_samples,), default=None
            Identifier of the query of each document. If None, the query is read from
            ``query_column``. If ``query_column`` is also None, all documents belong to one query.
        sensitive_features : array-like of shape (n_samples,) or (n_samples, n_attributes)
            Sensitive attributes, which define the group of each document.
        """
        check_aligned(X=X, query_id=query_id, sensitive_features=sensitive_features)
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
        # These attributes may be from an earlier fit with another model.
        for name in ("coef_", "coefs_", "intercepts_"):
            self.__dict__.pop(name, None)
        self._store(report(task, solution, self.max_disparity, self.query_share))
        return self

    def predict(self, X: MatrixLike) -> FloatArray:
        """Return the score of each document.

        Returns
        -------
        scores : ndarray of shape (n_samples,)
            The scores. Documents with larger scores come first within their query. Scores of
            different queries are not comparable.
        """
        check_is_fitted(self)
        X, _ = self._split_query(X, None)
        rows = read_features(self, X, **ROW_CHECKS)
        if hasattr(self, "coefs_"):
            return np.asarray(mlp_scores(self.coefs_, self.intercepts_, rows), dtype=np.float64)
        return product(rows, self.coef_)

    def rank(self, X: MatrixLike, query_id: ColumnLike | None = None) -> IntArray:
        """Return the rank of each document within its query.

        ``X[np.argsort(model.rank(X))]`` sorts the documents of one query. If documents are tied,
        the one that comes first in X has the better rank.

        Parameters
        ----------
        query_id : array-like of shape (n_samples,), default=None
            Identifier of the query of each document, as in :meth:`fit`. The queries may be new.

        Returns
        -------
        places : ndarray of shape (n_samples,)
            The ranks. The best document of each query has rank 1.
        """
        scores = self.predict(X)
        _, query_id = self._split_query(X, query_id)
        codes = check_labels(query_id, "query_id", scores.size).codes
        # Scores of equal documents may differ by rounding, so they are rounded to 12 digits.
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
            Relevance of the documents, which must be at least 0.
        query_id : array-like of shape (n_samples,), default=None
            Identifier of the query of each document, as in :meth:`fit`.

        Returns
        -------
        ndcg : float
            Mean normalised discounted cumulative gain of the queries. It lies between 0 and 1, and
            larger is better.
        """
        scores = self.predict(X)
        relevance = one_dimensional(y, "y")  # an array without an index, so y goes by position
        return ndcg(relevance, scores, query_id=self._split_query(X, query_id)[1])

    def _split_query(self, X: MatrixLike, query_id: ColumnLike | None) -> tuple[Any, Any]:
        """Return X without the query column, and the queries. Without queries, all rows are one."""
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
