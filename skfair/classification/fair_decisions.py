"""Any classifier, fair decisions: the model stays, and what it decides satisfies the limits.

``fit`` reads as the method does: cross-fit the model, bind the constraints to the rows, search
offsets, store them. A row is decided for the class with the largest probability minus offset.
"""

from __future__ import annotations

from functools import partial
from numbers import Integral, Real
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin
from sklearn.metrics import accuracy_score
from sklearn.utils import _safe_indexing, check_random_state
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from skfair._typing import (
    ClassLabel,
    ColumnLike,
    ColumnsLike,
    Estimator,
    FloatArray,
    MatrixLike,
    Seed,
)
from skfair.base import SensitiveFeaturesMixin, fit_method
from skfair.enforcement.decisions.lines import decided
from skfair.estimators.certified.certificate import Certificate, Certified
from skfair.estimators.certified.paths import certify
from skfair.estimators.classes import PositiveClass, accuracy_in_blocks
from skfair.estimators.decisions.bind import bind
from skfair.estimators.decisions.prediction import (
    Decider,
    linear_of,
    strata_of_new_rows,
)
from skfair.estimators.decisions.solve import fit_classes, read_folds, search
from skfair.estimators.group_probabilities import fit_groups
from skfair.estimators.objective import Measure, Objective
from skfair.estimators.wrapped_estimator import WrapsEstimator, read_for_wrapped
from skfair.estimators.wrapped_scores import as_rows, groups_of_new_rows, kept_folds, mean_chances
from skfair.groups.attributes import check_aligned
from skfair.groups.sensitive import SensitiveLike
from skfair.read import read_features
from skfair.utils.dask_collections import by_block, is_lazy
from skfair.utils.docs import documented
from skfair.utils.routing import refuse_misspelt
from skfair.utils.row_hash import row_draws
from skfair.utils.threads import one_thread_if_few
from skfair.utils.validation import check_weights
from skfair.utils.wrappers import warn_of_decider


@documented
class FairDecisionClassifier(
    Certified,
    WrapsEstimator,
    PositiveClass,
    ClassifierMixin,
    SensitiveFeaturesMixin,
    MetaEstimatorMixin,
    BaseEstimator,
):
    r"""Post-process any classifier so that its decisions satisfy fairness constraints.

    Use it for boosted trees, pipelines, and where the group may be used. The classifier is
    fitted on folds; then

    .. math:: \hat y(x) = \arg\max_c \; p_c(x) - \sum_{g, k} P(g, k | x) \, L_{gkc}

    for groups g and true classes k, with the L of the most accurate decisions within the limits: of
    two classes and known groups, thresholds; of several, each class is compared with the rest.
    Limits hold exactly for ``train_predictions_``, by models that have not seen these rows;
    ``predict(X_train)`` uses models that have. New rows may miss them in either direction by about
    one standard error.

    Parameters
    ----------
    estimator : classifier, default=None
        With ``predict_proba`` or ``decision_function``; None for ``LogisticRegression()``.
    constraint : str, Constraint or list of them, default="demographic_parity"
        Differences of rates: "demographic_parity", "equal_opportunity", "false_positive_parity",
        "false_negative_parity", "equalized_odds", "accuracy_parity", "predictive_parity"; largest
        rates: "bounded_selection_rate", "bounded_false_positive_rate",
        "bounded_false_negative_rate". Or objects.
    max_disparity : float, dict or None, default=0.05
        The limit; a dict has one for each attribute, with ``Sensitive(crossed=False)``. None finds
        the smallest one at which ``objective`` is reached.
    objective : str, array-like, callable or Objective, default="accuracy"
        "accuracy", "balanced_accuracy", "f1", "mcc", costs by true class and decision,
        ``function(tn, fp, fn, tp)`` of shares, or an :class:`~skfair.Objective`.
    min_rate : float, "as before" or dict, default=None
        Smallest true positive rate of a group if a constraint looks at positives (as equalized odds
        does), else selection rate; or by class.
    selection_rate : float, (float, float), "as before" or dict, default=None
        Share of all rows that is selected: exactly, from low to high, or as many as without the
        constraint; or by class.
    group_aware : bool or "thresholds", default=False
        Whether decisions use the group, which ``predict`` then needs and which may be disparate
        treatment in law; if not, it is estimated. Where one threshold for each group cannot match
        several rates, a hash of the row chooses between two; "thresholds" forbids that.
    group_estimator : classifier, default=None
        Estimates groups; None for logistic regression or gradient boosting, as ``estimator``.
    unseen : {"error", "overall"}, default="error"
        Whether a new group raises, or counts as the average row.
    cv : int, splitter, iterable, "auto" or "prefit", default="auto"
        The folds; "auto" is 5, or 10 for certificates of few rows. Within each group and class a
        hash of the row says which fold it is in, so the order of the rows does not matter; folds of
        a splitter are taken as they are. "prefit": ``estimator`` is fitted; pass rows it has not
        seen.
    random_state : int, RandomState instance or None, default=None
        Seed, also of the hash.
    n_jobs : int, default=None
        Parallel fits.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes.
    offsets_ : ndarray of shape (n_groups, n_strata, n_classes, n_classes)
        L by group, stratum, true class and decision.
    tie_weight_ : float
        Weight of p log p in p where many rows would be tied.
    estimators_, group_estimators_ : list
        Models of the folds, and of groups by attribute.
    train_predictions_ : ndarray of shape (n_samples,)
        Decisions on the training rows, for which limits hold.
    train_disparity_, train_disparities_ : float, dict of str to float
        Their disparity, and that of each constraint.
    changes_ : dict of str to Change
        By "selection rate", what the limits change on the training rows: ``before`` is the share of
        selected rows by the same model without the limits, ``after`` the share with them,
        ``by_group`` has both for each group, and ``rows_up`` and ``rows_down`` are the numbers of
        rows that are newly selected and no longer selected. With more than two
        classes, the keys are "share of" each class.
    train_objective_, price_of_fairness_ : float
        Their objective; what limits cost of it.
    status_ : str
        "converged", "infeasible", "certified" or "no_solution".
    method_ : str
        How the decisions were found. "none" are those of the model, which satisfy the limits.
        "windows" are the best thresholds of the groups, "mixtures" several thresholds for a group,
        "offsets" the result of a search, and "path" that of a certified search. "threshold" is one
        threshold for all or the same decision for everybody, where that is worth more on the
        training rows than all else.
    mixed_share_ : float
        Share of rows that a hash decides.
    is_group_aware_ : bool
        Whether predictions need the group.

    See Also
    --------
    ConstrainedERMClassifier : Trained under constraints.
    PartialParityCalibrator : Constraints within an interval of ranks.

    Notes
    -----
    Data may be Dask collections around a fitted classifier (``cv="prefit"``) with
    ``group_aware=True``. Its probabilities are computed where the rows are, and the decisions are
    those of rows in memory.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.ensemble import HistGradientBoostingClassifier
    >>> from skfair.classification import FairDecisionClassifier
    >>> rng = np.random.default_rng(0)
    >>> sex = rng.choice(["f", "m"], 600)
    >>> X = rng.normal(size=(600, 3)) + (sex == "m")[:, None] * [1, 0, 0]
    >>> y = X[:, 0] + X[:, 1] + rng.normal(size=600) > 0.5
    >>> booster = HistGradientBoostingClassifier(max_iter=20, random_state=0)
    >>> model = FairDecisionClassifier(booster, "demographic_parity", 0.05)
    >>> model = model.fit(X, y, sensitive_features=sex)
    >>> print(f"disparity of the decisions: {model.train_disparity_:.2f}")
    disparity of the decisions: 0.05
    """

    __metadata_request__fit = {"control_features": True}
    __metadata_request__predict = {"sensitive_features": True, "control_features": True}
    __metadata_request__decision_function = {"sensitive_features": True, "control_features": True}
    __metadata_request__score = {"sensitive_features": True, "control_features": True}

    _reads_probabilities = True
    _learns_without_group = True
    _takes_partitions = True
    _decider: Decider
    estimators_: list[Any]
    is_group_aware_: bool

    _parameter_constraints: dict[str, Any] = {
        "estimator": [HasMethods(["fit"]), None],
        "constraint": "no_validation",  # make_constraints says more
        "max_disparity": [Interval(Real, 0, None, closed="left"), dict, None],
        "group_aware": ["boolean", StrOptions({"thresholds"})],
        "group_estimator": [HasMethods(["fit", "predict_proba"]), None],
        "cv": ["cv_object", StrOptions({"auto", "prefit"})],
        "objective": "no_validation",  # Objective says more
        "min_rate": "no_validation",  # floors and budgets say more
        "selection_rate": "no_validation",
        "unseen": [StrOptions({"error", "overall"})],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
        **Certified._confidence_constraints,
        **PositiveClass._pos_label_constraints,
        **SensitiveFeaturesMixin._group_constraints,
    }

    def __init__(
        self,
        estimator: Estimator | None = None,
        constraint: Any = "demographic_parity",
        max_disparity: Any = 0.05,
        *,
        objective: Measure | Objective = "accuracy",
        min_rate: Any = None,
        selection_rate: Any = None,
        group_aware: bool | Literal["thresholds"] = False,
        group_estimator: Estimator | None = None,
        unseen: Literal["error", "overall"] = "error",
        sensitive: SensitiveLike = None,
        confidence: float | Certificate | None = None,
        pos_label: ClassLabel = None,
        cv: Any = "auto",
        random_state: Seed = None,
        n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.constraint = constraint
        self.max_disparity = max_disparity
        self.objective = objective
        self.min_rate = min_rate
        self.selection_rate = selection_rate
        self.group_aware = group_aware
        self.group_estimator = group_estimator
        self.unseen = unseen
        self.sensitive = sensitive
        self.confidence = confidence
        self.pos_label = pos_label
        self.cv = cv
        self.random_state = random_state
        self.n_jobs = n_jobs

    @fit_method
    @one_thread_if_few
    def fit(
        self,
        X: MatrixLike,
        y: ColumnLike,
        sample_weight: ColumnLike | None = None,
        *,
        sensitive_features: ColumnsLike | None = None,
        control_features: ColumnsLike | None = None,
        groups: ColumnLike | None = None,
        **fit_params: Any,
    ) -> FairDecisionClassifier:
        """Fit the classifier on folds, and choose the offsets of its decisions.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The rows, in whatever form the classifier takes.
        y : array-like of shape (n_samples,)
            Two or more classes; see ``pos_label``.
        control_features : array-like of shape (n_samples,) or (n_samples, n_attributes)
            Allowed attributes, for constraints that hold within each of their levels.
        **fit_params : dict
            What ``estimator.fit`` takes besides, such as ``clf__sample_weight`` of a pipeline;
            columns are cut to the folds. With metadata routing, what it has requested.
        """
        refuse_misspelt(self, self._inner(), fit_params)
        self.cv = kept_folds(self.cv)
        if is_lazy(X, y, groups, sensitive_features, control_features, sample_weight):
            if not (self.group_aware and self._is_prefit):  # others fit models on the rows
                raise TypeError(
                    "FairDecisionClassifier does not read Dask collections here: it does around a "
                    "fitted estimator (cv='prefit'), with group_aware=True. Pass these, or rows in "
                    "memory."
                )
            self._check_fits_on_partitions(groups)
        others = {"sensitive_features": sensitive_features, "control_features": control_features}
        X, data = read_for_wrapped(self, X, y, groups, sample_weight=sample_weight, **others)
        self._keep(data.reading)
        problem = bind(
            data,
            self.constraint,
            max_disparity=self.max_disparity,
            min_rate=self.min_rate,
            selection_rate=self.selection_rate,
            objective=self.objective,
            pos_label=self.pos_label,
            certificate=None if self.confidence is None else self._certificate(),
        )
        params = self._row_params((data.people or data).sample_weight, fit_params, others)
        key = int(check_random_state(self.random_state).randint(2**31))
        draws = partial(row_draws, names=self.model_features_.tolist(), key=key)
        of_folds = 0 if self.random_state is None else key + 1  # without a seed always the same
        folds = read_folds(self.cv, X, data, groups, problem, of_folds)
        fits = fit_classes(self, data, problem.rows, params, folds, of_folds)
        solve = certify if problem.is_certified else search
        group_fits = partial(fit_groups, self)
        solved = solve(problem, data, fits, group_fits, self.group_aware, draws, self.random_state)
        if self.group_aware and data.groups.has_group is not None:
            rows = np.flatnonzero(~data.groups.has_group)
            strata = None if problem.rows.strata is None else problem.rows.strata.codes[rows]
            unknown = np.full((data.groups.n_attributes, rows.size), -1)
            of_rows = _safe_indexing(data.X, rows), fits.chances[rows], unknown, strata
            labels = decided(solved["_decider"].margins(*of_rows))
            solved["train_predictions_"][rows] = problem.rows.classes[labels]
        self._forget()
        self.__dict__.update(solved, is_group_aware_=bool(self.group_aware))
        return self

    def _margins(
        self,
        X: MatrixLike,
        sensitive_features: ColumnsLike | None,
        control_features: ColumnsLike | None,
    ) -> FloatArray:
        """Return the expected worth of each decision minus its offset, of the ordered classes."""
        check_is_fitted(self)
        decider = self._decider
        groups = groups_of_new_rows(self, X, sensitive_features)
        strata = strata_of_new_rows(decider, X, control_features, self._sensitive.within)
        rows = read_features(self, as_rows(X), skip_check_array=True)
        chances = mean_chances(self.estimators_, rows, self._ordered_classes)
        return decider.margins(rows, chances, groups, strata)

    @by_block(n_columns=lambda model: None if model.classes_.size == 2 else model.classes_.size)
    def decision_function(
        self,
        X: MatrixLike,
        *,
        sensitive_features: ColumnsLike | None = None,
        control_features: ColumnsLike | None = None,
    ) -> FloatArray:
        """Return probability minus offset of each class, or their difference if there are two.

        Returns
        -------
        scores : ndarray of shape (n_samples,) or (n_samples, n_classes)
            With two classes a positive score decides for the second one.
        """
        values = self._margins(X, sensitive_features, control_features)
        if self._decider.uses_groups:
            warn_of_decider(self, "scores")
        return self._sign * (values[:, 1] - values[:, 0]) if values.shape[1] == 2 else values

    @by_block(dtype=lambda model: model.classes_.dtype)
    def predict(
        self,
        X: MatrixLike,
        *,
        sensitive_features: ColumnsLike | None = None,
        control_features: ColumnsLike | None = None,
    ) -> NDArray[Any]:
        """Return the decisions.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            The class that each row is decided for.
        """
        values = self._margins(X, sensitive_features, control_features)
        return np.asarray(self._ordered_classes[decided(values)])

    @by_block(n_columns=lambda model: model.classes_.size)
    def predict_proba(self, X: MatrixLike) -> FloatArray:
        """Return the probabilities of the classifier, as they are without limits.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
            Columns in the order of ``classes_``: the mean over the models of the folds.
        """
        check_is_fitted(self)
        if self._decider.offsets.any() or self._decider.corrections is not None:
            warn_of_decider(self, "probabilities")
        rows = read_features(self, as_rows(X), skip_check_array=True)
        return mean_chances(self.estimators_, rows, self.classes_)

    @by_block(n_columns=lambda model: model.classes_.size)
    def predict_log_proba(self, X: MatrixLike) -> FloatArray:
        """Return logarithms of the probabilities of the classifier, as they are without limits.

        Returns
        -------
        log_probabilities : ndarray of shape (n_samples, n_classes)
            Columns in the order of ``classes_``; minus infinity for a probability of 0.
        """
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.predict_proba(X)))

    def score(
        self,
        X: MatrixLike,
        y: ColumnLike,
        sample_weight: ColumnLike | None = None,
        *,
        sensitive_features: ColumnsLike | None = None,
        control_features: ColumnsLike | None = None,
    ) -> float:
        """Return the accuracy of the decisions.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The rows.
        y : array-like of shape (n_samples,)
            Their true classes.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.

        Returns
        -------
        score : float
            Weighted share of the rows whose class is decided for.
        """
        groups = {"sensitive_features": sensitive_features, "control_features": control_features}
        if is_lazy(X, y, sample_weight, *groups.values()):
            passed = {name: own for name, own in groups.items() if own is not None}
            return accuracy_in_blocks(self, X, y, sample_weight, **passed)
        check_aligned(X=X, y=y, sample_weight=sample_weight, **groups)
        predicted = self.predict(X, **groups)
        weights = check_weights(sample_weight, predicted.size)
        return float(accuracy_score(y, predicted, sample_weight=weights))

    def to_thresholds(self) -> Any:
        """Return the thresholds on the probability of the positive class, by group.

        Returns
        -------
        thresholds : DataFrame
            By group: ``threshold``, and whether rows ``above`` or ``below`` it are selected. Groups
            are those of all attributes together, such as "sex=f, age=young", if there are several.
        """
        check_is_fitted(self)
        if not self.is_group_aware_ or self.classes_.size > 2:
            raise ValueError(
                "Decisions are thresholds only for two classes and known groups (group_aware=True)."
            )
        return self._decider.thresholds(self.groups_)

    def to_linear(self) -> Any:
        """Return the decisions as one linear formula of the columns for each group.

        For a logistic regression that was passed fitted (``cv="prefit"``): means over the models of
        several folds are not linear.

        Returns
        -------
        formulas : DataFrame
            By group: the coefficient of each column and the ``intercept``. A row is decided for the
            second class if its columns times the coefficients, plus the intercept, are above 0.
        """
        table = self.to_thresholds()
        return linear_of(table, self.estimators_, self.model_features_, self._sign)
