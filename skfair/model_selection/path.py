"""The trade between a score and a disparity: one estimator under stricter and stricter bounds.

``fairness_path`` fits clones from the loosest bound to the strictest and returns a
``FairnessPath``, which selects a model (``select``) or makes the page of a committee (``to_html``).
A limit holds for the training sample only. Pass a second sample, or ``n_splits``, to measure the
disparity on unseen data. If a model is selected by that sample, a third one is needed for a report.

The disparity of the second sample is measured by the metrics of the constraints, which
``_disparity_of`` combines. ``_compared_metrics``, ``_held_rate``, ``_costs`` and
``_training_rates`` read the facts about a model that ``to_html`` shows.

If the estimator has a limit for each attribute, these are the ``limits``. All bounds and
disparities are then multiples of them (:mod:`skfair.model_selection.limits`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from numbers import Real
from os import PathLike
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn import get_config
from sklearn.base import clone, is_regressor
from sklearn.metrics import accuracy_score, check_scoring, r2_score
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from skfair import metrics
from skfair._typing import ColumnLike, ColumnsLike, Estimator, FloatArray, MatrixLike, Seed
from skfair.constraints.base import Constraint, make_constraints
from skfair.estimators.kept_models import keeping_models
from skfair.exceptions import ExplainedVarianceWarning, LooseLimitWarning
from skfair.groups.cohort import cohort_of
from skfair.groups.named_columns import take_columns
from skfair.groups.sensitive import read_sensitive, sensitive_of
from skfair.metrics.own_metrics import against_rest
from skfair.metrics.scorers import make_measure
from skfair.model_selection.limits import (
    Limits,
    disparity_reached,
    in_multiples,
    limits_of,
    multiple_within,
)
from skfair.model_selection.search import best_within
from skfair.model_selection.splits import StratifiedSensitiveShuffleSplit
from skfair.utils.dask_collections import is_lazy
from skfair.utils.response import SCORE_METHODS, GroupsInHand, get_response, positive_class
from skfair.utils.row_hash import row_draws
from skfair.utils.text import listed, plural
from skfair.utils.validation import check_scores
from skfair.utils.warn import unwanted, warn_user
from skfair.utils.wings import functions_of_wings

# Share of the rows on which models are measured in each random split; train_test_split has the same
# default. With half of it, the spread over splits shows the noise of few test rows. With twice as
# much, models are fitted to few training rows.
TEST_SHARE = 0.25


@dataclass(frozen=True, eq=False)
class FairnessPath:
    """Models that were fitted under several limits, as returned by :func:`fairness_path`.

    Parameters
    ----------
    max_disparities : ndarray of shape (n_models,)
        The limits, from the loosest to the strictest. They are multiples of ``limits`` if these are
        given.
    estimators : list of estimators
        The fitted model for each limit.
    train_disparities : ndarray of shape (n_models,)
        Disparity of each model on the training sample, which is its ``train_disparity_``.
    train_scores : ndarray of shape (n_models,)
        Score of each model on the training sample, of the same predictions as its disparity. Larger
        is better. If the disparity is that of out-of-fold predictions, so is the score.
    test_disparities : ndarray of shape (n_models,) or None, default=None
        Disparity of each model on the test sample, if there is one.
    test_scores : ndarray of shape (n_models,) or None, default=None
        Score of each model on the test sample, if there is one.
    score_name : str, default="score"
        Name of the score.
    limits : dict of str to float or None, default=None
        The limit of each attribute, if limits and disparities are given as multiples of these. At a
        disparity of 1, all limits are satisfied and one of them is reached exactly.
    split_disparities : ndarray of shape (n_splits, n_models) or None, default=None
        Disparity on the test part of each random split. The means over the splits are
        ``test_disparities``.
    split_scores : ndarray of shape (n_splits, n_models) or None, default=None
        Score on the test part of each random split. The means over the splits are ``test_scores``.
    train_rows : str or None, default=None
        SHA-256 of the training samples, by which pages and displays recognise them.

    Attributes
    ----------
    nondominated : ndarray of bool of shape (n_models,)
        True for each model that no other model dominates. A model is dominated if another one has
        at least its score and at most its disparity. Test values are used if there are any,
        otherwise training values.

    See Also
    --------
    skfair.inspection.FairnessPathDisplay : Plot of the rates of each group for each limit.
    skfair.inspection.FairnessFrontDisplay : Plot of scores against disparities.

    Examples
    --------
    >>> import numpy as np
    >>> from skfair.model_selection import FairnessPath
    >>> path = FairnessPath(
    ...     max_disparities=np.array([0.2, 0.1, 0.05]),
    ...     estimators=["loose", "middle", "strict"],
    ...     train_disparities=np.array([0.18, 0.1, 0.05]),
    ...     train_scores=np.array([0.85, 0.84, 0.8]),
    ... )
    >>> path.select(max_disparity=0.1)
    'middle'
    >>> path.nondominated
    array([ True,  True,  True])
    """

    max_disparities: FloatArray
    estimators: list[Any]
    train_disparities: FloatArray
    train_scores: FloatArray
    test_disparities: FloatArray | None = None
    test_scores: FloatArray | None = None
    score_name: str = "score"
    limits: Limits | None = None
    split_disparities: FloatArray | None = None
    split_scores: FloatArray | None = None
    train_rows: str | None = None

    def __repr__(self) -> str:
        import pandas as pd

        columns = {
            "max_disparity": self.max_disparities,
            "train_disparity": self.train_disparities,
            f"train_{self.score_name}": self.train_scores,
            "test_disparity": self.test_disparities,
            f"test_{self.score_name}": self.test_scores,
        }
        if self.split_disparities is not None and self.split_scores is not None:
            columns["test_disparity_std"] = self.split_disparities.std(axis=0)
            columns[f"test_{self.score_name}_std"] = self.split_scores.std(axis=0)
        table = pd.DataFrame(
            {name: column for name, column in columns.items() if column is not None}
        )
        return f"FairnessPath of {plural(len(table), 'model')}\n" + table.to_string(
            index=False, float_format="{:.3f}".format
        )

    @property
    def nondominated(self) -> NDArray[np.bool_]:
        """Models that no other model dominates."""
        disparities, scores = self._judged_by
        return metrics.nondominated(disparities, scores)

    @property
    def _judged_by(self) -> tuple[FloatArray, FloatArray]:
        """Disparities and scores on the test sample, or on the training sample if there is none."""
        if self.test_disparities is None or self.test_scores is None:
            return self.train_disparities, self.train_scores
        return self.test_disparities, self.test_scores

    def select(self, *, max_disparity: float) -> Any:
        """Return the model with the best score whose disparity is within a limit.

        The limit is compared with the measured disparity of each model, not with the limit under
        which the model was fitted. Test values are used if there are any, otherwise training
        values.

        Parameters
        ----------
        max_disparity : float or dict
            The largest disparity that is allowed. If the path has ``limits``, a dict with one limit
            per attribute is also accepted. It is converted to the largest multiple of ``limits``
            that satisfies all of them.

        Returns
        -------
        estimator : estimator
            The fitted model. If several models have the same score, it is the one with the
            strictest limit. If no model is within the limit, a ``NoFeasibleModelWarning`` is raised
            and the closest model is returned.
        """
        if isinstance(max_disparity, Mapping):
            max_disparity = multiple_within(max_disparity, self.limits)
        disparities, scores = self._judged_by
        if np.isnan(scores).all():
            raise ValueError(
                "The path has no training scores to select by. Pass X_test or n_splits to "
                "fairness_path, which measure all models on rows that they were not fitted on."
            )
        choose = best_within(score="score", limit={"disparity": max_disparity})
        # best_within takes the first of equal scores, so the strictest bound comes first. The keys
        # are the same as in GridSearchCV.cv_results_.
        candidates = {
            "mean_test_score": scores[::-1],
            "mean_test_disparity": disparities[::-1],
        }
        return self.estimators[::-1][choose(candidates)]

    def to_html(
        self,
        path: str | PathLike[str] | None = None,
        *,
        X: MatrixLike,
        y: ColumnLike,
        sensitive_features: ColumnsLike,
        before: Any = None,
        rate_held: FairnessPath | None = None,
        decided: str = "selected",
        title: str = "Which limit?",
        sample_weight: ColumnLike | None = None,
        units: ColumnLike | None = None,
        confidence: float = 0.95,
        suppress_below: float | None = None,
    ) -> str:
        """Render the page on which a committee chooses one of the limits.

        A slider moves through the limits. For each limit, the page shows the rates of the groups
        with confidence intervals, the disparity of each attribute, the accuracy, the decisions that
        change, the right and wrong decisions in each group, and if the limit is certified. A button
        writes the decision with its reasons as a memo, for printing and as JSON. The page is a
        single file that works offline. Without scripts, it shows all limits at once.

        Parameters
        ----------
        path : str or path-like, default=None
            Path of the file that is written. If None, no file is written.
        X : array-like of shape (n_samples, n_features)
            Samples on which the models are measured. Use samples that no model was fitted on. If
            they are the training samples, the page shows out-of-fold decisions of the models that
            have them (``train_predictions_``).
        y : array-like of shape (n_samples,)
            True labels of these samples, of two classes.
        sensitive_features : array-like of shape (n_samples,) or (n_samples, n_attributes)
            Sensitive attributes of these samples, which the page shows. Limits are matched by the
            names of the attributes, so pass the columns that the models were fitted with.
        before : estimator or array-like of shape (n_samples,), default=None
            The current model or its decisions. They come first on the slider as "no limit", and
            changes are counted relative to them. If None, changes are counted relative to the model
            with the largest limit.
        rate_held : FairnessPath, default=None
            A second path with the same limits, whose models keep the overall selection rate. Set
            ``selection_rate`` to the rate of today's decisions, or to "as before" for the rate of
            the model. The page then has a switch between the two paths.
        decided : str, default="selected"
            Word for a positive decision, such as "released" or "granted".
        title : str, default="Which limit?"
            Title of the page.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples. If None, all samples have the same weight.
        units : array-like of shape (n_samples,), default=None
            Identifier of the unit that each row belongs to, as in :func:`skfair.report.audit`.
        confidence : float, default=0.95
            Confidence level of each interval.
        suppress_below : float, default=None
            Size below which groups are not shown, as in :func:`skfair.report.audit`. If None, it is
            10.

        Returns
        -------
        text : str
            The page as HTML.
        """
        rows: dict[str, Any] = {"X": X, "y": y, "sensitive_features": sensitive_features}
        rows |= {"sample_weight": sample_weight, "units": units}
        options = {"confidence": confidence, "suppress_below": suppress_below}
        choice = self._choice(rows, before, rate_held, options)
        text: str = choice.to_html(path, title=title, decided=decided)
        return text

    def _choice(
        self,
        rows: dict[str, Any],  # the arguments of to_html with a value for each row
        before: Any = None,
        rate_held: FairnessPath | None = None,
        options: Mapping[str, Any] = MappingProxyType({}),
        command: dict[str, Any] | None = None,  # the options of choose, if it fitted the models
    ) -> Any:
        """Return the ``Choice`` (of ``skfair.report``) that :meth:`to_html` writes as a page.

        ``python -m skfair choose`` calls it, too. It raises if the page cannot show this path.
        """
        pages = _pages()
        X, y, sensitive_features = (rows[name] for name in ("X", "y", "sensitive_features"))
        paths = [self] if rate_held is None else [self, rate_held]
        if not np.array_equal(paths[0].max_disparities, paths[-1].max_disparities):
            raise ValueError(
                f"rate_held has the limits {paths[-1].max_disparities.tolist()}, but the path has "
                f"{self.max_disparities.tolist()}. Fit both paths with the same max_disparities."
            )
        limited, positive = _limited(self.estimators[0])[0], positive_class(self.estimators[0])
        if positive is None:
            raise ValueError(
                "to_html shows decisions between two classes, but the first model is "
                f"{self.estimators[0]!r}. FairnessPathDisplay draws paths of other models."
            )
        compared = _compared_metrics(limited)
        with keeping_models():  # predictions of the models of the folds are computed only once
            candidates = [own._candidates(X, sensitive_features) for own in paths]
        if before is not None:
            if hasattr(before, "predict"):
                before = get_response(before, X, "predict", sensitive_features=sensitive_features)
            candidates = [[pages.Candidate("none", before), *own] for own in candidates]
        beside = {name: own for name, own in rows.items() if name not in ("X", "y")}
        judged = pages.Judged(
            X,
            cohort_of(y, pos_label=positive, **beside),
            compared,
            getattr(getattr(limited, "_group_levels", None), "attributes", ()),
            sensitive_of(limited).intersectional,
            dict(options),
        )
        return pages.Choice.of(candidates, judged, command)

    def _predictions(self, X: MatrixLike, sensitive_features: Any) -> list[Any]:
        """Return the predictions of each model: of its training rows the out-of-fold ones."""
        is_known = self.train_rows is not None and _digest(X) == self.train_rows
        out_of_fold = partial(_out_of_fold, n_rows=_num_samples(X))
        passed = {"sensitive_features": sensitive_features}
        return [
            get_response(model, X, "predict", **passed) if not is_known or own is None else own
            for model, own in zip(self.estimators, map(out_of_fold, self.estimators), strict=True)
        ]

    def _candidates(self, X: MatrixLike, sensitive_features: ColumnsLike) -> list[Any]:
        """Return a ``Candidate`` of the page for each model, with its decisions and attributes.

        Its limits are by attribute, or {"": limit} if one limit holds for all intersections.
        """
        pages, candidates = _pages(), []
        decisions = self._predictions(X, sensitive_features)
        of_models = zip(self.max_disparities.tolist(), self.estimators, decisions, strict=True)
        for bound, model, decided in of_models:
            limited, _ = _limited(model)
            asked, own = limited.max_disparity, sensitive_of(limited)
            names = getattr(getattr(limited, "_group_levels", None), "attributes", ("",))
            names = names if len(names) == 1 or not own.intersectional else ("",)
            by_name = asked if isinstance(asked, Mapping) else dict.fromkeys(names, float(asked))
            certificate = getattr(limited, "certificate", None)
            candidate = pages.Candidate(
                f"{100 * bound:g}%"
                if self.limits is None
                else f"\N{MULTIPLICATION SIGN} {bound:g}",
                decided,
                {name: limit for name, limit in by_name.items() if limit is not None},
                holds_overall_rate=getattr(limited, "selection_rate", None) is not None,
                held_rate=_held_rate(limited),
                training_rates=_training_rates(limited),
                group_aware=own.keep or bool(getattr(limited, "is_group_aware_", False)),
                status=getattr(limited, "status_", "fitted"),
                confidence=getattr(certificate, "confidence", certificate),
                certified=getattr(limited, "certified_disparity_", None),
                costs=_costs(limited),
            )
            candidates.append(candidate)
        return candidates


def _pages() -> Any:
    """Return the module that makes pages; raise if ``skfair.report`` is not installed."""
    for choices in functions_of_wings("choices"):
        return choices()
    raise ImportError("to_html makes a page of audits, a part of skfair that is not installed.")


def _training_rates(limited: Any) -> tuple[float, float, float] | None:
    """Return the selection rates of the training decisions before, without and with the limits.

    If the fit did not store them, return None.
    """
    change = getattr(limited, "changes_", {}).get("selection rate")
    return None if change is None else (change.before, change.without_limits, change.after)


def fairness_path(
    estimator: Estimator,
    X: MatrixLike,
    y: ColumnLike,
    *,
    max_disparities: ArrayLike = (0.32, 0.16, 0.08, 0.04, 0.02, 0.01),
    sensitive_features: ColumnsLike | None = None,
    sample_weight: ColumnLike | None = None,
    X_test: MatrixLike | None = None,
    y_test: ColumnLike | None = None,
    sensitive_features_test: ColumnsLike | None = None,
    metric: Callable[..., float] | None = None,
    scoring: Any = "accuracy",
    n_splits: int | None = None,
    random_state: Seed = None,
) -> FairnessPath:
    """Fit an estimator under several limits to show the trade-off between score and disparity.

    The models are those of separate fits. What a limit does not change is computed once: the models
    that an estimator fits on its folds and for the groups, and their predictions. Around boosted
    trees a path of nine limits takes two to five times as long as one fit.

    Parameters
    ----------
    estimator : estimator
        A classifier or regressor with the parameter ``max_disparity`` and the fitted attribute
        ``train_disparity_``, or a pipeline whose last step is such an estimator. It is cloned
        before each fit.
    X : array-like of shape (n_samples, n_features)
        The training samples.
    y : array-like of shape (n_samples,)
        The targets of the training samples.
    max_disparities : array-like of float, default=(0.32, 0.16, 0.08, 0.04, 0.02, 0.01)
        The limits in the units of the constraint, in any order. The default is meant for
        differences of rates. For losses and scores, other values are needed. If the estimator has
        one limit per attribute, such as ``max_disparity={"sex": 0.05, "age": 0.08}``, the values
        are multiples of these limits, for example ``(4, 2, 1, 0.5)``. The disparities of the path
        are then multiples too, and they do not include constraints with a limit of their own.
    sensitive_features : array-like of shape (n_samples,) or (n_samples, n_attributes), default=None
        Sensitive attributes of the training samples. They are needed unless the estimator reads
        them from columns of X.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the training samples, which count in the fits and in the training scores.
    X_test : array-like, default=None
        Samples of a test set on which every model is measured.
    y_test : array-like, default=None
        The targets of the test set.
    sensitive_features_test : array-like, default=None
        Sensitive attributes of the test set. They are needed unless the estimator reads them from
        columns of X.
    metric : callable, default=None
        Metric of the disparity on the test set. It is a metric of :mod:`skfair.metrics` that is 0
        at parity, or a function with the same arguments. Set its options with
        ``functools.partial``. If None, the metric of the estimator's ``constraint`` is used, and
        with several constraints or classes the largest disparity. For constraints within strata
        and constraints without a metric, it must be given.
    scoring : str or callable, default="accuracy"
        Score of the models, as the name of a scorer of scikit-learn or as a scorer. Pass a score of
        numbers, such as "r2", for a regressor. The training score of estimators with
        ``train_predictions_`` is the score of these out-of-fold predictions, as their disparity is.
        It is NaN for scores that need more than predictions, such as "roc_auc".
    n_splits : int, default=None
        Number of random splits that replace a test set. In each split, the path is fitted on three
        quarters of the rows and measured on the rest, stratified by group and class. The means over
        the splits are stored as ``test_disparities`` and ``test_scores``, and the path prints
        their standard deviations. The models of the path itself are fitted on all rows. It cannot
        be combined with ``X_test``.
    random_state : int, RandomState instance or None, default=None
        Seed of the splits. Pass an int for reproducible results.

    Returns
    -------
    path : FairnessPath
        The fitted models with their disparities and scores, from the loosest to the strictest
        limit.

    See Also
    --------
    best_within : Selection by cross-validation with ``GridSearchCV``.
    skfair.inspection.FairnessPathDisplay : Plot of the rates of each group for each limit.
    skfair.inspection.FairnessFrontDisplay : Plot of scores against disparities.

    Examples
    --------
    >>> import numpy as np
    >>> from skfair.classification import ConstrainedERMClassifier
    >>> from skfair.datasets import make_group_scores
    >>> from skfair.model_selection import fairness_path
    >>> y, scores, groups = make_group_scores(400, random_state=0)
    >>> X = np.column_stack([scores, groups == "a"])
    >>> model = ConstrainedERMClassifier("demographic_parity")
    >>> limits = [0.2, 0.1, 0.05]
    >>> path = fairness_path(model, X, y, max_disparities=limits, sensitive_features=groups)
    >>> for disparity, score in zip(path.train_disparities, path.train_scores):
    ...     print(f"disparity {disparity:.2f}, accuracy {score:.2f}")
    disparity 0.20, accuracy 0.73
    disparity 0.10, accuracy 0.72
    disparity 0.04, accuracy 0.71
    >>> path.select(max_disparity=0.1).max_disparity
    0.1
    """
    limited, prefix = _limited(estimator)
    parameters = _parameters(limited)
    bounds = _read_bounds(max_disparities)
    scorer = check_scoring(estimator, scoring)
    limits = limits_of(parameters["max_disparity"])
    if n_splits is not None and X_test is not None:
        raise ValueError("n_splits and X_test were both given. Pass one of them.")
    groups_test = _test_groups(estimator, X_test, y_test, sensitive_features_test)
    disparity = None if X_test is None else _disparity_of(limited, y, metric, limits)

    weights = {} if sample_weight is None else {"sample_weight": sample_weight}
    groups = {} if sensitive_features is None else {"sensitive_features": sensitive_features}
    # A pipeline passes arguments of fit on by metadata routing, or without it by their prefix.
    of_fit = "" if get_config()["enable_metadata_routing"] else prefix
    fit_params = {of_fit + name: values for name, values in {**groups, **weights}.items()}
    measured: dict[str, Any] = {}
    with keeping_models():  # the common work of all fits is done only once
        models = []
        for bound in bounds.tolist():
            # The limit of an attribute without a limit stays None.
            wanted = bound if limits is None else {n: v and v * bound for n, v in limits.items()}
            model = clone(estimator).set_params(**{f"{prefix}max_disparity": wanted})
            # A path may start at very large limits on purpose. It shows the score of each model.
            with unwanted(LooseLimitWarning, ExplainedVarianceWarning):
                models.append(model.fit(X, y, **fit_params))
        train_scores = _train_scores(scorer, models, X, y, sensitive_features, weights)
        if np.isnan(train_scores).any() and X_test is None and n_splits is None:
            warn_user(
                f"The training scores of scoring={scoring!r} are undefined: either they need more "
                "than the out-of-fold predictions whose disparity is shown, or certificate= refits "
                "the models to a part of the rows. Pass X_test or n_splits, which measure both on "
                "rows that no model was fitted on."
            )
        if disparity is not None:
            if limits is not None:
                disparity = in_multiples(disparity, limits)
            gaps = [
                disparity(one, X_test, y_test, sensitive_features=groups_test) for one in models
            ]
            measured["test_disparities"] = np.array(gaps, dtype=float)
            measured["test_scores"] = _scores(scorer, models, X_test, y_test, groups_test)

    path = FairnessPath(
        max_disparities=bounds,
        estimators=models,
        train_disparities=np.array(
            [disparity_reached(_limited(model)[0], limits) for model in models], dtype=float
        ),
        train_scores=train_scores,
        score_name=scoring if isinstance(scoring, str) else "score",
        limits=limits,
        train_rows=_digest(X),
        **measured,
    )
    if n_splits is None:
        return path
    options = {"max_disparities": bounds, "metric": metric, "scoring": scoring}
    splitter = partial(StratifiedSensitiveShuffleSplit, n_splits, random_state=random_state)
    return _over_splits(path, estimator, splitter, X, y, groups, weights, options)


def _over_splits(
    path: FairnessPath,
    estimator: Estimator,
    make_splitter: Callable[..., StratifiedSensitiveShuffleSplit],
    X: MatrixLike,
    y: ColumnLike,
    groups: dict[str, Any],
    weights: dict[str, Any],
    options: dict[str, Any],
) -> FairnessPath:
    """Return the path with test values of models that are fitted again in each random split.

    ``make_splitter`` still needs ``test_size`` and ``sensitive``. ``groups`` and ``weights`` are
    arguments of ``fairness_path`` by name (empty if not given), and ``options`` its other ones.
    """
    by_row, measured = {**groups, **weights}, []
    columns = None if groups else sensitive_of(estimator).columns
    splitter = make_splitter(test_size=TEST_SHARE, sensitive=columns)
    for train, test in splitter.split(X, y, **groups):
        of_test = {f"{name}_test": _safe_indexing(values, test) for name, values in groups.items()}
        of_train = {name: _safe_indexing(values, train) for name, values in by_row.items()}
        of_test |= {"X_test": _safe_indexing(X, test), "y_test": _safe_indexing(y, test)}
        X_part, y_part = _safe_indexing(X, train), _safe_indexing(y, train)
        part = fairness_path(estimator, X_part, y_part, **of_train, **of_test, **options)
        measured.append((part.test_disparities, part.test_scores))
    disparities, scores = np.array(measured).swapaxes(0, 1)
    return replace(
        path,
        test_disparities=disparities.mean(axis=0),
        test_scores=scores.mean(axis=0),
        split_disparities=disparities,
        split_scores=scores,
    )


def _limited(estimator: Any) -> tuple[Any, str]:
    """Return the estimator that has the limit, and the prefix of its parameters.

    It is the last step of a pipeline, with a prefix such as "clf__", or the estimator itself with
    an empty prefix.
    """
    if not isinstance(estimator, Pipeline):
        return estimator, ""
    name, last = estimator.steps[-1]
    return last, f"{name}__"


def _parameters(estimator: Estimator) -> dict[str, Any]:
    """Return the estimator's parameters; raise unless the limit is one of them."""
    is_estimator = hasattr(estimator, "get_params") and not isinstance(estimator, type)
    parameters = estimator.get_params(deep=False) if is_estimator else {}
    if "max_disparity" not in parameters:
        raise TypeError(
            "fairness_path needs an estimator with the parameter max_disparity, such as "
            f"ConstrainedERMClassifier, or a pipeline that ends in one, but got {estimator!r}."
        )
    return dict(parameters)


def _read_bounds(max_disparities: ArrayLike) -> FloatArray:
    """Return the distinct bounds, from the loosest to the strictest."""
    every = max_disparities if isinstance(max_disparities, list | tuple) else [max_disparities]
    if any(isinstance(limits, Mapping) for limits in every):
        raise ValueError(
            "max_disparities must be numbers: one limit for all attributes of a model, or what the "
            "limits of estimator.set_params(max_disparity={...}) are multiplied by."
        )
    bounds = np.unique(check_scores(max_disparities, "max_disparities"))[::-1]
    if bounds[-1] < 0:
        raise ValueError(f"max_disparities must be at least 0, got {bounds[-1]:g}.")
    return bounds


def _test_groups(
    estimator: Estimator,
    X_test: MatrixLike | None,
    y_test: ColumnLike | None,
    sensitive_features_test: ColumnsLike | None,
) -> Any:
    """Return the groups of the second sample, or None without one; raise if a part is missing.

    Groups that are not given are columns of ``X_test`` if the estimator's ``sensitive`` says so.
    """
    parts = {"X_test": X_test, "y_test": y_test, "sensitive_features_test": sensitive_features_test}
    if X_test is not None and sensitive_features_test is None:
        columns = sensitive_of(estimator).columns
        if columns is not None:
            parts["sensitive_features_test"] = take_columns(X_test, columns)
    missing = [name for name, part in parts.items() if part is None]
    if missing and len(missing) < len(parts):
        raise ValueError(
            f"A test sample needs X_test, y_test and sensitive_features_test; {listed(missing)} "
            "is missing. Pass all of them, or none."
        )
    return parts["sensitive_features_test"]


def _disparity_of(
    estimator: Estimator,
    y: ColumnLike,
    metric: Callable[..., float] | None,
    limits: Limits | None,
) -> Callable[..., float]:
    """Return a function (model, X, y, *, sensitive_features) that measures the disparity.

    It is the given metric, or the largest of the metrics of the estimator's constraints. If there
    are ``limits`` of attributes, constraints with a limit of their own are left out, because their
    disparity is not a multiple of ``limits``. Only the classes of ``y`` are used.
    """
    if metric is not None:
        return make_measure(metric)
    parameters = estimator.get_params(deep=False)
    loss = parameters.get("loss", "log_loss")
    classes = [None] if is_regressor(estimator) else np.unique(np.asarray(y)).tolist()
    positive = parameters.get("pos_label")
    positive = classes[-1] if positive is None else positive
    measures = []
    for constraint in _measurable_constraints(estimator, parameters.get("constraint")):
        if limits is not None and constraint.own_limit is not None:
            continue
        constraint_metric = getattr(metrics, str(constraint.metric))
        options = constraint.metric_options(loss, positive)
        parts = [constraint_metric]
        if "loss" not in options and "pos_label" in options:
            # With several classes each is limited against the rest. The metric gets labels True and
            # False. One of them may not occur, so the metric must be told the positive class.
            options["pos_label"] = True
            labels = classes if len(classes) > 2 else [positive]
            parts = [against_rest(constraint_metric, label) for label in labels]
        options["intersectional"] = read_sensitive(parameters.get("sensitive")).intersectional
        measures += [(make_measure(part, **options), constraint.compared()) for part in parts]

    def disparity(*sample: Any, **groups: Any) -> float:
        disparities = [
            comparison.disparity_of_metric(scorer(*sample, **groups))
            for scorer, comparison in measures
        ]
        return max(disparities, default=0.0)

    return disparity


def _measurable_constraints(estimator: Estimator, constraint: Any) -> list[Constraint]:
    """Return the constraints of an estimator; raise if one of them has no metric."""
    error = ValueError(
        f"There is no default metric for the constraint {constraint!r}. Pass metric=, a function "
        "of skfair.metrics with its options bound by functools.partial."
    )
    try:
        constraints = make_constraints(
            constraint, "regression" if is_regressor(estimator) else "classification"
        )
    except ValueError as unknown:
        raise error from unknown
    if any(constraint.metric is None or constraint.within_strata for constraint in constraints):
        raise error
    return constraints


def _compared_metrics(estimator: Any) -> list[str]:
    """Return the metrics of the constraints whose limit the path varies.

    Raises unless the page can show them: differences and ratios of rates between all pairs.
    """
    error = ValueError(
        "to_html shows limits on differences and ratios of rates between pairs of groups, such as "
        f"constraint='demographic_parity'; got {estimator!r}."
    )
    try:
        constraints = _measurable_constraints(estimator, getattr(estimator, "constraint", None))
    except ValueError as unknown:
        raise error from unknown
    varied = [constraint for constraint in constraints if constraint.own_limit is None]
    names = dict.fromkeys(str(constraint.metric) for constraint in varied)
    is_known = all(name in metrics.labels.LABEL_METRICS for name in names)
    is_known &= all(constraint.reference == "pairwise" for constraint in varied)
    if not names or not is_known or hasattr(estimator, "interval"):
        raise error
    return list(names)


def _held_rate(estimator: Any) -> float | None:
    """Return the overall selection rate that a fit had to keep, or None if there is none."""
    rate: Any = getattr(estimator, "selection_rate", None)
    if isinstance(rate, str):  # "as before"
        change = getattr(estimator, "changes_", {}).get("selection rate")
        return None if change is None else float(change.before)
    return float(rate) if isinstance(rate, Real) else None


def _costs(estimator: Any) -> FloatArray | None:
    """Return the (2, 2) costs that an estimator minimises, positive class last, or None."""
    costs: Any = getattr(estimator, "objective", None)
    if np.shape(costs) != (2, 2):
        return None
    is_first = positive_class(estimator) == estimator.classes_[0]
    return np.asarray(costs, float)[::-1, ::-1] if is_first else np.asarray(costs, float)


class _OutOfFold:
    """A fitted model that predicts its training rows as the models of its folds did.

    It stands in for the model in scorers. Scores and probabilities of these models are not kept.
    """

    def __init__(self, model: object, predictions: Any) -> None:
        self._model, self._predictions = model, predictions

    def predict(self, X: MatrixLike, **_groups: Any) -> Any:
        return self._predictions

    def score(self, X: MatrixLike, y: ColumnLike, sample_weight: Any = None) -> float:
        measure = r2_score if is_regressor(self._model) else accuracy_score
        return float(measure(y, self._predictions, sample_weight=sample_weight))

    def __getattr__(self, name: str) -> Any:
        if name in SCORE_METHODS:
            raise _NoScoresError(name)
        return getattr(self._model, name)


class _NoScoresError(ValueError):
    """A scorer needs scores of training rows, of which only predictions are known."""


def _out_of_fold(model: Any, n_rows: int) -> Any:
    """Return the out-of-fold predictions of the training rows; None if the model has none.

    A certificate refits some estimators to a part of the rows, so they have predictions of fewer.
    """
    predictions = getattr(_limited(model)[0], "train_predictions_", None)
    return predictions if predictions is not None and len(predictions) == n_rows else None


def _digest(X: MatrixLike) -> str | None:
    """Return the SHA-256 of rows, by which they are recognised; None for Dask collections."""
    if is_lazy(X):
        return None
    rows = X if hasattr(X, "shape") else np.asarray(X, dtype=object)
    return sha256(row_draws(rows, None, 0).tobytes()).hexdigest()


def _train_scores(
    scorer: Callable[..., float],
    models: list[Any],
    X: MatrixLike,
    y: ColumnLike,
    groups: Any,
    weights: dict[str, Any],
) -> FloatArray:
    """Return the score of the predictions that the disparity of each model was measured on.

    It is NaN if these predictions are not known.
    """
    scores = []
    for model in models:
        known = _out_of_fold(model, _num_samples(X))
        if known is None:
            is_of_all = getattr(_limited(model)[0], "certificate", None) is None
            found = _scores(scorer, [model], X, y, groups, **weights) if is_of_all else [np.nan]
            scores.append(float(found[0]))
            continue
        try:
            scores.append(float(scorer(_OutOfFold(model, known), X, y, **weights)))
        except _NoScoresError:
            scores.append(np.nan)
    return np.array(scores)


def _scores(
    scorer: Callable[..., float],
    models: list[Any],
    X: MatrixLike | None,
    y: ColumnLike | None,
    groups: Any,
    **weights: Any,
) -> FloatArray:
    """Return the score of each model; models that predict by group are given ``groups``."""
    asked = models if groups is None else [GroupsInHand(model, groups) for model in models]
    return np.array([scorer(model, X, y, **weights) for model in asked], dtype=float)
