"""Any classifier, fair decisions: the model stays, and what it decides satisfies the limits.

``fit`` reads as the method does: cross-fit the model, bind the constraints to the rows, search
prices, store them. A row is decided for the class with the largest probability minus price.
"""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, Literal

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin
from sklearn.utils import indexable
from sklearn.utils._metadata_requests import UNUSED
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import _check_y

from skfair._typing import (
    ClassLabel,
    ColumnLike,
    ColumnsLike,
    Estimator,
    MatrixLike,
    Seed,
)
from skfair.base import SensitiveFeaturesMixin, fit_method
from skfair.estimators.certified.certificate import Certificate
from skfair.estimators.decisions.fitting import DecisionFitting
from skfair.estimators.decisions.steps import (
    clash,
    class_rules,
    in_order,
    report,
    report_objective,
)
from skfair.estimators.erm.problem import active_rules
from skfair.estimators.inner_scores import as_rows, keep_folds
from skfair.estimators.objective import Measure, Objective
from skfair.groups.attributes import check_aligned
from skfair.groups.sensitive import SensitiveLike
from skfair.utils.docs import documented
from skfair.utils.routing import refuse_misspelt
from skfair.utils.threads import one_thread_if_few


@documented
class FairDecisionClassifier(DecisionFitting, MetaEstimatorMixin, BaseEstimator):
    r"""Any classifier with decisions that keep fairness limits on the training rows.

    The classifier is fitted as it is, on folds, so that every training row has probabilities from
    models that have not seen it. Then a price is set for each decision:

    .. math:: \hat y(x) = \arg\max_c \; p_c(x) - \sum_{g, k} P(g, k | x) \, L_{gkc}

    for groups g and true classes k. The prices L are those of the most accurate decisions that keep
    the limits. With two classes and known groups they amount to thresholds for each group. With
    one known attribute the probabilities are first corrected within groups that clearly need it.

    Limits hold for ``train_predictions_``, the decisions on the training rows by models that have
    not seen these rows. ``predict(X_train)`` uses models that have, and may exceed the limits.

    Parameters
    ----------
    estimator : classifier, default=None
        The classifier, with ``predict_proba``, or with ``decision_function``, which is calibrated.
        None stands for ``LogisticRegression()``.
    constraint : str, Constraint or list of them, default="demographic_parity"
        Differences of rates of decisions: "demographic_parity", "equal_opportunity",
        "false_positive_parity", "false_negative_parity", "equalized_odds", "accuracy_parity",
        "predictive_parity"; largest rates: "bounded_selection_rate", "bounded_false_positive_rate",
        "bounded_false_negative_rate". Or objects of :mod:`skfair.constraints`. With several classes
        each holds for each class against the rest, accuracy parity for all of them at once.
    max_disparity : float, dict or None, default=0.05
        The limit of the constraints without one of their own; a dict has one for each attribute,
        None for no limit, and needs ``Sensitive(crossed=False)`` if there are several. None finds
        the smallest one at which the objective is reached: see ``objective``.
    group_aware : bool or "thresholds", default=False
        Whether decisions use the group of a person, which ``predict`` then needs. Otherwise it is
        estimated from the other columns. Using the group may be disparate treatment in law, and
        the most accurate decisions within a loose limit may differ more between groups than those
        of the classifier itself. Where one threshold for each group cannot match several rates, a
        group may have several, and a number made of the columns of a row says which one it gets:
        always the same, but two similar people may be decided differently. "thresholds" forbids
        that.
    group_estimator : classifier, default=None
        Estimates group and class together if groups may not be used. None for a small model of
        the columns as the transformers of ``estimator`` return them: logistic regression if
        ``estimator`` is linear or the columns are sparse, else gradient boosting. Settings of
        ``estimator`` do not count for it.
    cv : int, splitter, iterable, "auto" or "prefit", default="auto"
        The folds; splitters of :mod:`skfair.model_selection` get the groups. ``fit`` makes a
        generator of folds a list, since copies and files cannot hold one. "auto" means 5, or 10
        with ``confidence`` and fewer than 3000 rows: of few rows the more accurate decisions.
        "prefit" takes a fitted ``estimator`` as it is: pass rows it has not seen.
    objective : str, array-like, callable or Objective, default="accuracy"
        What decisions are to be best in: "accuracy", "balanced_accuracy", "f1" or "mcc"; a matrix
        (n_classes, n_classes) with the cost of deciding for a class (column) given the true one
        (row); ``function(tn, fp, fn, tp)`` of shares of the rows; or an
        :class:`~skfair.Objective`, such as ``Objective("precision_at_recall", recall=0.8)``. With
        ``max_disparity=None``, ``Objective("f1", at_least=0.6)`` finds the smallest disparity at
        an F1 of at least .6.
    min_rate : float, "as before" or dict, default=None
        No group's rate may be below: the true positive rate if a constraint looks at the positives,
        alone or beside the negatives as equalized odds does, else the selection rate. "as before"
        means that of the classifier without constraints. With several classes a dict from classes
        to values, or a value for ``pos_label``.
    selection_rate : float, (float, float) or dict, default=None
        Share of all rows that are decided for the positive class: exactly (to half a row), or from
        low to high. With several classes a dict from classes to values, or a value for
        ``pos_label``.
    unseen : {"error", "overall"}, default="error"
        What is done with a group at prediction that was not there in fit: an error, or the prices
        of the average row.
    random_state : int, RandomState instance or None, default=None
        Seed of the sample that large data sets begin with.
    n_jobs : int, default=None
        Folds that are fitted at the same time.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes, in order.
    prices_ : ndarray of shape (n_groups, n_strata, n_classes, n_classes)
        Price of a decision (last axis), by group, stratum and true class.
    tie_weight_ : float
        Weight of p log p, which is added to each probability p before prices where these alone
        would leave many rows tied: three or more classes and known groups. Else 0.
    estimators_ : list of classifiers
        The models of the folds; their probabilities are averaged.
    group_estimators_ : list of lists of classifiers
        For each attribute the models of groups, if these are estimated and limits bind.
    train_predictions_ : ndarray of shape (n_samples,)
        Decisions on the training rows, by models that have not seen them: what limits hold for.
    train_disparity_ : float
        Disparity of these, the largest of all constraints.
    train_disparities_ : dict of str to float
        Disparity of each constraint; the name says where it is 1 minus a ratio.
    train_objective_ : float
        The objective of these; minus the mean cost for a cost matrix.
    price_of_fairness_ : float
        How much of the objective is given up on the training rows. Below 0 if corrections within
        groups gain more than the limits cost.
    status_ : str
        "converged", or "infeasible" if a limit is missed. With ``confidence`` "certified", or
        "no_solution" if no decisions could be shown to satisfy the limits.
    method_ : str
        What found the prices: "windows", "prices", "mixtures" of thresholds, or "none" if all
        are 0; with ``confidence``
        "path".
    path_ : dict of str to ndarray of shape (n_steps,)
        With ``confidence``: the path from certainly fair to free decisions; of each step
        "accuracy", "selection_rate" (NaN with several classes), "disparity", "bound", "p_value" and
        "is_certified".
    mixed_share_ : float
        Share of the training rows between thresholds of their group, which such a number decides.
    is_group_aware_ : bool
        Whether predictions need the group.

    See Also
    --------
    ConstrainedERMClassifier : A linear model or network that is trained under the constraints.
    PartialParityCalibrator : Constraints on scores within an interval of ranks.

    Notes
    -----
    Limits hold for the training rows, exactly; new rows may miss them by about one standard
    error, in either direction.
    The search costs a few passes over the rows and O(n log n) for each exact line search.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.ensemble import HistGradientBoostingClassifier
    >>> from skfair.classification import FairDecisionClassifier
    >>> rng = np.random.default_rng(0)
    >>> sex = rng.choice(["f", "m"], 600)
    >>> X = rng.normal(size=(600, 3)) + (sex == "m")[:, None] * [1, 0, 0]
    >>> y = X[:, 0] + X[:, 1] + rng.normal(size=600) > 0.5
    >>> booster = HistGradientBoostingClassifier(max_iter=20)
    >>> model = FairDecisionClassifier(booster, "demographic_parity", 0.05)
    >>> model = model.fit(X, y, sensitive_features=sex)
    >>> rates = [model.train_predictions_[sex == s].mean() for s in ("f", "m")]
    >>> bool(abs(rates[0] - rates[1]) <= 0.05)
    True
    """

    __metadata_request__fit = {"control_features": True, "groups": UNUSED}  # they are of cv

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
        **DecisionFitting._confidence_constraints,
        **DecisionFitting._pos_label_constraints,
        **SensitiveFeaturesMixin._group_constraints,
    }

    def __init__(
        self,
        estimator: Estimator | None = None,
        constraint: Any = "demographic_parity",
        max_disparity: Any = 0.05,
        *,
        group_aware: bool | Literal["thresholds"] = False,
        group_estimator: Estimator | None = None,
        cv: Any = "auto",
        objective: Measure | Objective = "accuracy",
        min_rate: Any = None,
        selection_rate: Any = None,
        unseen: Literal["error", "overall"] = "error",
        sensitive: SensitiveLike = None,
        confidence: float | Certificate | None = None,
        pos_label: ClassLabel = None,
        random_state: Seed = None,
        n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.constraint = constraint
        self.max_disparity = max_disparity
        self.group_aware = group_aware
        self.group_estimator = group_estimator
        self.cv = cv
        self.objective = objective
        self.min_rate = min_rate
        self.selection_rate = selection_rate
        self.unseen = unseen
        self.sensitive = sensitive
        self.confidence = confidence
        self.pos_label = pos_label
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
        """Fit the classifier on folds, and choose the prices of its decisions.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The rows, in whatever form the classifier takes.
        y : array-like of shape (n_samples,)
            Two or more classes; see ``pos_label``.
        control_features : array-like of shape (n_samples,) or (n_samples, n_attributes)
            Allowed attributes, for constraints that hold within each of their levels.
        groups : array-like of shape (n_samples,)
            What rows belong to, such as people, for a ``cv`` like ``GroupKFold`` that keeps rows of
            the same one in one fold. They are not compared.
        **fit_params : dict
            What ``estimator.fit`` takes besides, such as ``clf__sample_weight`` of a pipeline;
            columns are cut to the folds. With metadata routing, what it has requested.
        """
        if fit_params:
            refuse_misspelt(self, self._inner(), fit_params)
        keep_folds(self)
        self._refuse_lazy(X, y, sensitive_features, control_features, sample_weight, groups)
        check_aligned(X=X, y=y, groups=groups)
        X, y = indexable(as_rows(X), _check_y(y, estimator=self))
        others: dict[str, Any] = {
            "sensitive_features": sensitive_features,
            "control_features": control_features,
        }
        data = self._read(X, y, sample_weight=sample_weight, skip_check_array=True, **others)
        rules = active_rules(self.constraint, "classification", data, self.max_disparity)
        rows = self._labelled(data, rules)
        params = self._row_params((data.people or data).sample_weight, fit_params, others)
        folds = self._folds(X, y, rows, groups)
        if rows.strata is not None:
            self._keep_strata(X, control_features)
        goal = self._goal(rules, rows)  # of shares alone, whatever the order of the rows
        limit = 0.0 if goal.at_least is not None else self.max_disparity
        fair = class_rules(rules, rows, limit)
        if self.confidence is not None and any(rule.limits_something for rule in fair):
            return self._certify(data, rows, fair, goal, params, folds)
        chances, splits = self._cross_fit(data, rows, params, folds)
        judge_of, before = self._judge_of(rules, rows, goal, chances)
        joint = self._joint_chances(data, rows, chances, judge_of(fair), before.predicted, splits)
        order, places = np.arange(rows.codes.size), np.arange(rows.groups.n_groups)
        if joint is not None:
            rows, chances, joint, order, places = in_order(rows, chances, joint)
            fair = class_rules(rules, rows, limit)
            judge_of, before = self._judge_of(rules, rows, goal, chances)
        judge, n_fair = judge_of(fair), sum(bool(rule.bound.blocks.size) for rule in fair)
        search = self._searching(rows, data.X, chances, joint, goal, before)
        if goal.at_least is None:
            candidate = search.best(judge)
        else:
            judge, candidate = search.smallest(
                lambda limit: judge_of(class_rules(rules, rows, limit)), n_fair
            )
        chosen = candidate.chosen
        self._store_prices(chosen.prices.reshape(places.size, -1)[places], candidate.worth)
        reported = report(judge, chosen, n_fair, clash(rules, self.min_rate, self.selection_rate))
        self.__dict__.update(reported | report_objective(goal, rows, chosen, before.predicted))
        self.train_predictions_ = self._ordered_classes[chosen.predicted[order][data.first_rows]]
        return self
