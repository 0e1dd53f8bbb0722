"""Post-processing for any classifier: the model stays, and its decisions satisfy the limits.

``fit`` binds the constraints to the rows, fits the model on folds, and searches offsets. The steps
are in the files of ``skfair/estimators/decisions``: ``bind.py``, ``fits.py`` and ``solve.py``; with
a certificate :mod:`skfair.estimators.certified.paths` searches the offsets. Predictions are those
of the :class:`~skfair.estimators.decisions.prediction.Decider` that the search returns: a row gets
the class with the largest expected utility minus offset.
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
from sklearn.utils.validation import _num_samples, check_is_fitted

from skfair._typing import (
    ClassLabel,
    ColumnLike,
    ColumnsLike,
    Estimator,
    FloatArray,
    IntArray,
    MatrixLike,
    Seed,
)
from skfair.base import SensitiveFeaturesMixin, fit_method
from skfair.enforcement.decisions.lines import decided
from skfair.estimators.certificate import Certificate, Certified
from skfair.estimators.certified.paths import certify
from skfair.estimators.classes import PositiveClass, accuracy_in_blocks
from skfair.estimators.decisions.bind import DecisionSpec, bind
from skfair.estimators.decisions.explanation import explained
from skfair.estimators.decisions.fits import fit_classes, read_folds
from skfair.estimators.decisions.formulas import formula_of
from skfair.estimators.decisions.prediction import (
    Decider,
    linear_of,
    strata_of_new_rows,
)
from skfair.estimators.decisions.solve import search
from skfair.estimators.objective import Measure, Objective
from skfair.estimators.passed_scores import rows_of_scores
from skfair.estimators.seen_rows import check_unseen
from skfair.estimators.wrapped_estimator import FitsOnFolds, read_for_wrapped
from skfair.estimators.wrapped_scores import as_rows, groups_of_new_rows, kept_folds, mean_chances
from skfair.groups.attributes import check_aligned
from skfair.groups.cohort import Cohort, kinds_of
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
    FitsOnFolds,
    PositiveClass,
    ClassifierMixin,
    SensitiveFeaturesMixin,
    MetaEstimatorMixin,
    BaseEstimator,
):
    r"""Post-process any classifier so that its decisions satisfy fairness constraints.

    The classifier may be of any kind, for example boosted trees or a pipeline. It is fitted on
    folds, and its out-of-fold probabilities are then used to find the best decisions within the
    limits. The classifier itself does not change. Use :class:`ConstrainedERMClassifier` to train a
    linear model or a network under constraints instead.

    The decision is the class with the largest probability after an offset is subtracted,

    .. math:: \hat y(x) = \arg\max_c \; p_c(x) - \sum_{g, k} P(g, k | x) \, L_{gkc}.

    Here g runs over groups and k over true classes. The offsets L are chosen to maximise
    ``objective`` subject to the limits. With two classes and known groups, this amounts to one
    threshold per group. With more classes, each class is compared with all others. If decisions may
    not use the group, its probability is estimated from the features.

    The limits hold exactly for ``train_predictions_``, the out-of-fold decisions on the training
    rows. ``predict(X_train)`` may differ, because its models have seen these rows. On new data the
    disparity may lie above or below the limit by about one standard error.

    Parameters
    ----------
    estimator : classifier, default=None
        The classifier, which must have ``predict_proba`` or ``decision_function``. If it only has
        ``decision_function``, its scores are calibrated in each fold, and with ``cv="prefit"`` an
        error is raised. If None, a ``LogisticRegression()`` is used.
    constraint : str, Constraint or list of them, default="demographic_parity"
        The fairness constraint, or a list of constraints that all have to hold.

        - "demographic_parity", "equal_opportunity", "false_positive_parity",
          "false_negative_parity", "equalized_odds", "accuracy_parity" and "predictive_parity" limit
          differences of rates between groups.
        - "bounded_selection_rate", "bounded_false_positive_rate" and "bounded_false_negative_rate"
          limit the largest rate of a group.

        Pass an object from :mod:`skfair.constraints` for more options, such as a limit of its own
        (``DemographicParity(0.05)`` instead of ``max_disparity``) or a ratio.
    max_disparity : float or dict, default=None
        The limit on the disparity. A dict sets one limit for each attribute, which may be None for
        an attribute without a limit. Several attributes require
        ``Sensitive(intersectional=False)``. If None, it is 0.05, or with ``Objective(at_least=)``
        the disparity is minimised. It must be left out if each constraint has a limit of its own.
    objective : str, array-like, callable or Objective, default="accuracy"
        Metric that the decisions maximise: "accuracy", "balanced_accuracy", "f1", "mcc", a cost
        matrix of shape (true class, decision), or a function ``function(tn, fp, fn, tp)`` of
        fractions of the rows. Pass an :class:`~skfair.Objective` for more options.
    min_rate : float, "as before" or dict, default=None
        Minimum rate that every group must reach. This is the true positive rate for constraints
        conditioned on the positive class (such as equalized odds), otherwise the selection rate. If
        "as before", each group keeps at least the rate that the classifier itself gives it, by its
        own ``predict`` on rows that it has not seen. A dict sets one value per class. If None,
        there is no minimum. It cannot be combined with ``certificate``.
    selection_rate : float, (float, float), "as before" or dict, default=None
        Fraction of all rows that are selected. A pair sets a range from low to high. If "as
        before", it is the fraction that the classifier itself selects, by its own ``predict`` on
        rows that it has not seen. A dict sets one value per class. If None, the fraction may change
        freely: to maximise the objective, and to satisfy the limits.
    group_aware : bool or "mixed", default=False
        Whether decisions use the group.

        - False: The group is estimated from the other columns, see ``group_estimators_``.
        - True: Decisions use the group, so ``predict`` needs it. This may be disparate treatment
          under the law. With two classes, each group gets one threshold.
        - "mixed": As True, but a group may have two thresholds, and a hash of the row chooses
          between them. Some constraints, such as equalized odds, cost less accuracy this way, but
          two similar people may get different decisions, with no reason that could be explained to
          them. Equal rows always get the same decision.
    group_estimator : classifier, default=None
        Classifier that estimates the group if decisions may not use it. If None, a logistic
        regression is used if ``estimator`` is linear or the columns are sparse, otherwise gradient
        boosting. A ``FrozenEstimator`` must not have seen the rows, as with ``cv="prefit"``.
    unseen : {"error", "overall"}, default="error"
        Treatment of rows at prediction whose group is missing (None, NaN or NA) or did not occur in
        ``fit``. If "error", an error is raised. If "overall", the offsets are averaged over the
        groups.
    cv : int, splitter, iterable, "auto" or "prefit", default="auto"
        Folds on which the classifier is fitted.

        - "auto": 5 folds are used, or up to 10 for a certificate with few rows.
        - int: The number of folds. Within each group and class, a hash of the row determines its
          fold, so the order of the rows does not matter.
        - splitter or iterable: The splits are used as they are. The training part and the test part
          of a split must have no rows in common.
        - "prefit": ``estimator`` is already fitted. The rows that are passed to ``fit`` must be new
          to it. If they seem to be its training rows, a ``SeenRowsWarning`` is given, and with
          ``certificate`` an error is raised. A ``FrozenEstimator`` is treated in the same way, also
          inside a pipeline, a calibrator or another estimator.
    n_jobs : int, default=None
        Number of fits that run in parallel. If None, the fits are made one after another.
    random_state : int, RandomState instance or None, default=None
        Seed of the search and of the hash that assigns rows to folds and thresholds. Pass an int
        for reproducible results. It does not reach the model inside: if ``estimator`` draws random
        numbers itself, as a random forest does, give it a ``random_state`` of its own, too.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The class labels.
    offsets_ : ndarray of shape (n_groups, n_strata, n_classes, n_classes)
        Offsets L for each group, stratum of the control features, true class and decision.
    tie_weight_ : float
        Weight of a term p log p that is added to the probabilities p if many rows would otherwise
        be tied. It is 0 if no ties have to be broken.
    estimators_ : list of classifiers
        Classifiers that predict new rows, and whose probabilities are averaged: those of the folds,
        or a single one.
    group_estimators_ : list of lists
        Models of the group for each attribute, one per fold or a single one. The list is empty if
        the group does not have to be estimated.
    train_predictions_ : ndarray of shape (n_samples,)
        Out-of-fold decisions on the training rows, for which the limits hold.
    train_disparity_ : float
        Disparity of ``train_predictions_``. With several constraints, it is the largest disparity.
    train_disparities_ : dict of str to float
        Disparity of ``train_predictions_`` for each constraint. With more than two classes, most
        constraints have one entry for each class, such as "DemographicParity (y=1)".
    changes_ : dict of str to Change
        Selection rate on the training rows at three stages of the fit. The key "selection rate"
        holds an object with these attributes.

        - ``before``: The rate of the classifier itself, by its own ``predict`` on rows that it has
          not seen.
        - ``without_limits``: The rate of the best decisions for ``objective`` without limits. It
          differs from ``before`` if the classifier has class weights, for example.
        - ``after``: The rate of ``train_predictions_``, within the limits.
        - ``by_group``: The same three rates for each group.
        - ``rows_up`` and ``rows_down``: The numbers of rows that are newly selected and no longer
          selected, in comparison with the classifier itself.

        With more than two classes, there is one key "share of ..." for each class.
    train_objective_ : float
        Value of the objective for ``train_predictions_``.
    price_of_fairness_ : float
        Loss in the objective on the training rows that is caused by the limits.
    status_ : str
        How the fit ended. Without a certificate, the limits are checked for ``train_predictions_``.
    method_ : str
        Method that found the decisions.

        - "none": The best decisions for ``objective`` without limits satisfy the limits, so the
          limits change nothing.
        - "windows": Each group has its best threshold.
        - "mixtures": A group has several thresholds, and a hash of the row chooses between them.
          This only occurs with ``group_aware="mixed"``.
        - "offsets": The offsets were found by a numerical search.
        - "threshold": There is one threshold for all groups, or the same decision for everybody.
          This was better on the training rows than the result of the search.
        - "path": The decisions were found by the search for a certificate.
    close_call_rate_ : float
        Share of the training rows whose decision would be another one if the folds were dealt anew,
        as far as that can be estimated without another fit, see :meth:`close_calls`. NaN with
        ``certificate``, with ``group_aware="mixed"``, with two folds, or with more than 12,500
        rows, where few decisions change.
    mixed_share_ : float
        Fraction of the training rows for which a hash chooses between two thresholds.
    is_group_aware_ : bool
        True if ``predict`` needs the group.

    See Also
    --------
    ConstrainedERMClassifier : Linear or neural classifier that is trained under constraints.
    PartialParityCalibrator : Post-processing for constraints within an interval of ranks.

    Notes
    -----
    Scores of another system, also those of a table in an engine, are read by :meth:`from_scores`.
    Dask collections are accepted for a fitted classifier (``cv="prefit"``) with
    ``group_aware=True``. The probabilities are computed in the partitions, and the result is the
    same as for rows in memory.

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
    >>> print(f"disparity {model.train_disparity_:.2f}")
    disparity 0.05
    >>> for group, rates in model.changes_["selection rate"].by_group.items():
    ...     print(f"{group}: selection rate {rates.before:.0%}, {rates.after:.0%} with the limit")
    f: selection rate 35%, 53% with the limit
    m: selection rate 64%, 58% with the limit
    """

    __metadata_request__fit = {"control_features": True}
    __metadata_request__predict = {"sensitive_features": True, "control_features": True}
    __metadata_request__decision_function = {"sensitive_features": True, "control_features": True}
    __metadata_request__score = {"sensitive_features": True, "control_features": True}
    __metadata_request__close_calls = {"sensitive_features": True, "control_features": True}

    _reads_probabilities = True
    _endings = ("converged", "infeasible", "certified", "no_solution")
    _learns_without_group = True
    _takes_caps = True
    _takes_partitions = True
    _decider: Decider
    is_group_aware_: bool

    _parameter_constraints: dict[str, Any] = {
        "estimator": [HasMethods(["fit"]), None],
        "constraint": "no_validation",  # make_constraints checks it, with better messages
        "max_disparity": [Interval(Real, 0, None, closed="left"), dict, None],
        "group_aware": ["boolean", StrOptions({"mixed"})],
        "group_estimator": [HasMethods(["fit", "predict_proba"]), None],
        "cv": ["cv_object", StrOptions({"auto", "prefit"})],
        "ensemble": ["boolean"],
        "objective": "no_validation",  # Objective checks it
        "min_rate": "no_validation",  # floors() of estimators/limits.py checks it
        "selection_rate": "no_validation",  # budget() in the same file checks it
        "unseen": [StrOptions({"error", "overall"})],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
        **Certified._certificate_constraints,
        **PositiveClass._pos_label_constraints,
        **SensitiveFeaturesMixin._group_constraints,
    }

    def __init__(
        self,
        estimator: Estimator | None = None,
        constraint: Any = "demographic_parity",
        max_disparity: Any = None,
        *,
        objective: Measure | Objective = "accuracy",
        min_rate: Any = None,
        selection_rate: Any = None,
        group_aware: bool | Literal["mixed"] = False,
        group_estimator: Estimator | None = None,
        unseen: Literal["error", "overall"] = "error",
        sensitive: SensitiveLike = None,
        pos_label: ClassLabel = None,
        certificate: float | Certificate | None = None,
        cv: Any = "auto",
        ensemble: bool = True,
        n_jobs: int | None = None,
        random_state: Seed = None,
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
        self.certificate = certificate
        self.pos_label = pos_label
        self.cv = cv
        self.ensemble = ensemble
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
        units: ColumnLike | None = None,
        **fit_params: Any,
    ) -> FairDecisionClassifier:
        """Fit the classifier on folds, and choose the offsets of its decisions.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The training samples, in any form that the classifier accepts.
        y : array-like of shape (n_samples,)
            Labels of two or more classes. ``pos_label`` sets the positive class.
        **fit_params : dict
            Further arguments of ``estimator.fit``, such as ``clf__sample_weight`` for a pipeline.
            Arguments with one value per row are split into the folds. With metadata routing
            enabled, these are the arguments that ``estimator`` has requested.
        """
        refuse_misspelt(self, self._inner(), fit_params)
        self.cv = kept_folds(self.cv)
        if self.certificate is not None and not self.ensemble and self._has_folds:
            raise ValueError(
                "certificate= tests the models of the folds, and a single model of all rows "
                "(ensemble=False) is none of them. Leave ensemble=False out. Or certify one model: "
                "fit it to other rows, and pass it as FrozenEstimator(model), with "
                "group_aware=True."
            )
        if is_lazy(X, y, units, sensitive_features, control_features, sample_weight):
            if not (self.group_aware and self._is_prefit):  # then models are fitted on the rows
                raise TypeError(
                    "FairDecisionClassifier does not read Dask collections here: it does around a "
                    "fitted estimator (cv='prefit'), with group_aware=True. Pass these, or rows in "
                    "memory."
                )
            self._check_fits_on_partitions(units)
        others = {"sensitive_features": sensitive_features, "control_features": control_features}
        X, data = read_for_wrapped(self, X, y, units, sample_weight=sample_weight, **others)
        self._keep(data.reading)
        spec = DecisionSpec(
            constraint=self.constraint,
            max_disparity=self.max_disparity,
            objective=self.objective,
            min_rate=self.min_rate,
            selection_rate=self.selection_rate,
            pos_label=self.pos_label,
            certificate=None if self.certificate is None else self._certificate(),
            group_aware=self.group_aware,
            random_state=self.random_state,
        )
        problem = bind(data, spec)
        check_unseen(self, data)
        params = self._row_params((data.passed or data).sample_weight, fit_params, others)
        key = int(check_random_state(self.random_state).randint(2**31))
        draws = partial(row_draws, names=self.model_features_.tolist(), key=key)
        # The key of the hash that deals rows to folds. Without a seed the folds are always the
        # same.
        of_folds = 0 if self.random_state is None else key + 1
        folds = read_folds(self.cv, X, data, units, problem, of_folds)
        fits = fit_classes(self, data, problem.rows, params, folds, of_folds)
        solve = certify if problem.is_certified else search
        solved = solve(problem, data, fits, draws)
        # The search ignored training rows without a group. They are decided like new rows.
        if self.group_aware and data.groups.has_group is not None:
            rows = np.flatnonzero(~data.groups.has_group)
            strata = None if problem.rows.strata is None else problem.rows.strata.codes[rows]
            unknown = np.full((data.groups.n_attributes, rows.size), -1)
            of_rows = _safe_indexing(data.X, rows), fits.chances[rows], unknown, strata
            labels = decided(solved["_decider"].margins(*of_rows))
            solved["train_predictions_"][rows] = problem.rows.classes[labels]
        self._forget()
        self._store(solved | {"is_group_aware_": bool(self.group_aware)})
        return self

    @classmethod
    def from_scores(cls, cohort: Cohort, **settings: Any) -> FairDecisionClassifier:
        """Choose a threshold for each group from scores that another system has computed.

        The scores may be in a table in an engine (:meth:`skfair.Cohort.from_table`), which counts
        them. Rows with the same score, outcome and group are then decided together. If there are
        more than 65,536 different scores, so are those of a bin, whose resolution the cohort
        states.

        Parameters
        ----------
        cohort : Cohort
            Rows with ``y_true``, ``y_score`` (probabilities of the positive class) and groups.
        **settings
            Parameters of the estimator, such as ``constraint`` and ``max_disparity``.

        Returns
        -------
        model : FairDecisionClassifier
            The fitted estimator. Its only feature is the score, so that it decides about
            ``table[["chance"]]``. :meth:`to_thresholds` is a table for a query.

        Examples
        --------
        >>> import skfair
        >>> from skfair.classification import FairDecisionClassifier
        >>> chances, sex = [0.2, 0.4, 0.6, 0.8] * 100, ["f", "f", "m", "m"] * 100
        >>> repaid = [0, 1, 0, 1] * 100
        >>> people = skfair.Cohort(repaid, y_score=chances, sensitive_features={"sex": sex})
        >>> model = FairDecisionClassifier.from_scores(people, max_disparity=0.0)
        >>> model.to_thresholds()["threshold"].round(2).tolist()
        [0.3, 0.7]
        """
        if settings.get("group_aware", True) is False:
            raise ValueError(
                "from_scores knows nothing of a row but its score and its group, so decisions need "
                "both. Leave group_aware=False out, or fit a model on its features."
            )
        for name in ("estimator", "sensitive"):
            if name in settings:
                raise TypeError(f"from_scores() takes no {name}=: the cohort has the scores.")
        if kinds_of(cohort) is not None and not {"certificate", "cv"}.isdisjoint(settings):
            raise TypeError(
                "certificate= and cv= divide single rows, and the table was counted in its engine. "
                "Leave them out, or pass the rows, as in Cohort(...)."
            )
        estimator, X, given = rows_of_scores(cohort)
        positive = {} if cohort.pos_label is None else {"pos_label": cohort.pos_label}
        settings = {"group_aware": True, "cv": "prefit", **positive, **settings}
        return cls(estimator, **settings).fit(X, **given)

    def _margins(
        self,
        X: MatrixLike,
        sensitive_features: ColumnsLike | None,
        control_features: ColumnsLike | None,
    ) -> FloatArray:
        """Return the expected utility of each decision minus its offset, (n_samples, n_classes).

        The classes are in the order of ``_ordered_classes``.
        """
        known = self._read_new(X, sensitive_features, control_features)
        return self._decider.margins(*known)

    def _read_new(
        self,
        X: MatrixLike,
        sensitive_features: ColumnsLike | None,
        control_features: ColumnsLike | None,
    ) -> tuple[Any, FloatArray, IntArray | None, IntArray | None]:
        """Return what a decider reads of new rows: rows, probabilities, groups and strata."""
        if not hasattr(self, "_decider"):  # check_is_fitted itself takes longer than a threshold
            check_is_fitted(self)
        groups = groups_of_new_rows(self, X, sensitive_features)
        columns = self._sensitive.control_features
        strata = strata_of_new_rows(self._decider, X, control_features, columns)
        rows = read_features(self, as_rows(X), skip_check_array=True)
        return rows, mean_chances(self.estimators_, rows, self._ordered_classes), groups, strata

    @by_block(n_columns=lambda model: None if model.classes_.size == 2 else model.classes_.size)
    def decision_function(
        self,
        X: MatrixLike,
        *,
        sensitive_features: ColumnsLike | None = None,
        control_features: ColumnsLike | None = None,
    ) -> FloatArray:
        """Return the probability of each class minus its offset.

        Returns
        -------
        scores : ndarray of shape (n_samples,) or (n_samples, n_classes)
            Score of each class. With two classes, this is the difference of their scores, and a
            positive value means that the second class is predicted.
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
        """Predict the class of each sample under the limits.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            The predicted class labels.
        """
        values = self._margins(X, sensitive_features, control_features)
        return np.asarray(self._ordered_classes[decided(values)])

    @by_block(dtype=lambda model: np.dtype(bool))
    def close_calls(
        self,
        X: MatrixLike,
        *,
        sensitive_features: ColumnsLike | None = None,
        control_features: ColumnsLike | None = None,
    ) -> NDArray[np.bool_]:
        """Say whose decision might be another one if the folds were dealt anew.

        The offsets depend on the folds, which are dealt by a hash of the rows and ``random_state``.
        Another deal gives other offsets, which decide differently about people near a threshold.
        ``fit`` estimates the offsets of one other deal, without fitting any model again: each
        probability of a training row is changed as much as two models of other folds differ about
        the row.

        Returns
        -------
        is_close : ndarray of bool of shape (n_samples,)
            Whether the decision differs between both deals. Their share of the training rows is
            ``close_call_rate_``.
        """
        check_is_fitted(self)
        if self._decider.other_offsets is None:
            if not np.isnan(self.close_call_rate_):
                groups_of_new_rows(self, X, sensitive_features)  # raises if they are missing
                return np.zeros(_num_samples(X), bool)
            raise ValueError(
                "Close calls are known for at most 12,500 rows, for limits without certificate= "
                "and group_aware='mixed', around models that are fitted on three folds or more. To "
                "count them here, fit again with another random_state, and compare the decisions."
            )
        known = self._read_new(X, sensitive_features, control_features)
        own, other = self._decider.margins(*known), self._decider.dealt_anew().margins(*known)
        return np.asarray(decided(own) != decided(other))

    def explain_decision(
        self,
        X: MatrixLike,
        *,
        sensitive_features: ColumnsLike | None = None,
        control_features: ColumnsLike | None = None,
    ) -> Any:
        """Say why people got their decision, and what the limits change of it.

        This requires two classes. A row has a threshold on the probability of the positive class.
        If the group is known it is that of the group. If it is estimated, the threshold also
        depends on the estimate, so that two people may have different ones.

        Returns
        -------
        reasons : DataFrame
            A table with one row per sample, and these columns.

            - ``decision``: The predicted class.
            - ``probability``: The probability of the positive class.
            - ``threshold`` and ``selected``: The threshold of this person, and whether people
              "above" or "below" it are selected. It is inf or -inf if the decision is the same
              whatever the probability.
            - ``threshold_without_limits`` and ``decision_without_limits``: The same without the
              limits, by ``objective`` alone. For a ratio such as "f1" errors keep the weights that
              they have within the limits.
            - "estimated sex=f", and so on: The estimated probability of each group, if decisions
              use it.
            - ``sentence``: The decision in words.
        """
        known = self._read_new(X, sensitive_features, control_features)
        if self.classes_.size > 2:
            raise ValueError(
                f"explain_decision has no thresholds for {self.classes_.size} classes. Compare "
                "decision_function(X), the probabilities minus offsets, with predict_proba(X)."
            )
        table = explained(self._decider, *known, self._ordered_classes, self.groups_)
        return table.set_index(X.index) if hasattr(X, "index") else table

    @by_block(n_columns=lambda model: model.classes_.size)
    def predict_proba(self, X: MatrixLike) -> FloatArray:
        """Return the class probabilities of the classifier, which the limits do not change.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
            Probability of each class, averaged over ``estimators_``. The columns are in the order
            of ``classes_``.
        """
        check_is_fitted(self)
        if self._decider.offsets.any() or self._decider.corrections is not None:
            warn_of_decider(self, "probabilities")
        rows = read_features(self, as_rows(X), skip_check_array=True)
        return mean_chances(self.estimators_, rows, self.classes_)

    @by_block(n_columns=lambda model: model.classes_.size)
    def predict_log_proba(self, X: MatrixLike) -> FloatArray:
        """Return the logarithms of the class probabilities, which the limits do not change.

        Returns
        -------
        log_probabilities : ndarray of shape (n_samples, n_classes)
            Logarithm of the probability of each class, with the columns in the order of
            ``classes_``. It is minus infinity for a probability of 0.
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
            The test samples.
        y : array-like of shape (n_samples,)
            The true class labels.

        Returns
        -------
        score : float
            Weighted fraction of correct decisions.
        """
        groups = {"sensitive_features": sensitive_features, "control_features": control_features}
        if is_lazy(X, y, sample_weight, *groups.values()):
            passed = {name: own for name, own in groups.items() if own is not None}
            return accuracy_in_blocks(self, X, y, sample_weight, **passed)
        check_aligned(X=X, sample_weight=sample_weight, **groups)
        predicted = self.predict(X, **groups)
        weights = check_weights(sample_weight, predicted.size)
        return float(accuracy_score(y, predicted, sample_weight=weights))

    def to_thresholds(self) -> Any:
        """Return the thresholds on the probability of the positive class.

        This requires two classes, and decisions that do not estimate the group: with
        ``group_aware=True`` each group has a threshold, and without it there is a single one if the
        limits need no more. An error is raised if a group has several thresholds (``method_`` is
        "mixtures"), as may happen with ``group_aware="mixed"``.

        Returns
        -------
        thresholds : DataFrame
            A table with one row per group, or a single row "everybody" for group-blind decisions.
            The column ``threshold`` holds the threshold, and the column ``selected`` says if the
            rows "above" or "below" it are selected. With several attributes, the groups are their
            intersections, such as "sex=f, age=young".

        See Also
        --------
        to_formula : The same for group-blind decisions that estimate the group.
        """
        check_is_fitted(self)
        if self.classes_.size > 2:
            raise ValueError("Decisions are thresholds only for two classes.")
        return self._decider.thresholds(self.groups_ if self.is_group_aware_ else None)

    def to_linear(self) -> Any:
        """Return the decisions of each group as a linear formula of the features.

        This requires a fitted logistic regression (``cv="prefit"``), because an average over the
        models of several folds is not linear. It also requires thresholds, as in
        :meth:`to_thresholds`.

        Returns
        -------
        formulas : DataFrame
            A table with one row per group, or a single row "everybody", which holds the coefficient
            of each feature and the ``intercept``. The second class is predicted if the sum of the
            features times their coefficients, plus the intercept, is above 0.
        """
        table = self.to_thresholds()
        return linear_of(table, self.estimators_, self.model_features_, self._sign)

    def to_formula(self) -> Any:
        """Return group-blind decisions as a table of linear scores, for a query or a spreadsheet.

        If the group is estimated, decisions are not linear in the features, but they are made of
        the linear scores of logistic regressions. This requires two classes, and logistic
        regressions (perhaps after a ``StandardScaler`` or a ``MaxAbsScaler``) as models of the
        classes and of the groups. ``group_estimator=None`` makes such models of the groups.

        Returns
        -------
        scores : DataFrame
            A table with one row per score. The columns hold the coefficient of each feature, the
            ``intercept`` and the ``weight``. The index has the levels ``of`` ("outcome", or for
            example "group of sex" for an attribute), ``model`` (the number of the fold), ``group``
            and ``label``. To decide about a row,

            1. compute each score: the features times their coefficients, plus the intercept,
            2. take exp of it, and divide by the sum over the rows with the same ``of`` and
               ``model``. The mean over the models is the probability,
            3. divide the probabilities of an attribute by their sum over the groups with the same
               ``label``,
            4. for each label, multiply the probabilities of each attribute with their ``weight``,
               add them up, and add the ``weight`` of the outcome. Multiply the sum by the
               probability of the outcome.

            The sum over the labels is ``decision_function``. The second class is predicted if it is
            above 0.

        See Also
        --------
        to_thresholds : Thresholds, if decisions do not estimate the group.
        skfair.export.to_onnx : A graph of any decisions, for programs without Python.
        """
        check_is_fitted(self)
        if self.classes_.size > 2 or (self.is_group_aware_ and not self.group_estimators_):
            raise ValueError(
                "to_formula is for two classes and group-blind decisions. to_thresholds() returns "
                "the threshold of each group, and skfair.export.to_onnx converts any decisions."
            )
        own = self._decider, self.estimators_, self._ordered_classes
        return formula_of(*own, self.model_features_, self._sign)
