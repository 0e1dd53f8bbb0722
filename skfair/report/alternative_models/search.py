"""Search for less discriminatory alternatives by refitting a classifier at random.

:func:`search_alternatives` draws settings and seeds, refits the classifier with each, and stops
when another draw can be shown to gain little. It fits and judges the candidates by folds, and
passes their decisions to the functions that compare models in
:mod:`skfair.report.alternative_models.less_discriminatory`.

How many models are enough? The refitted models are a random sample of all models that could be
drawn (after arXiv 2512.23943). Call the share q (``chance``) of all models with the smallest
disparity the best ones. If n models are drawn, at least b of them are among the best with
probability P(Bin(n, q) >= b). So if disparities were known, the b-th smallest disparity of the n
models would be at most the largest disparity of the best ones, and another draw would go below it
with a probability of at most q.

Disparities are only measured, on rows that the models have not seen, so lower ends of intervals
take their place. Let a be the probability that the interval of one model misses its disparity. By
Markov's inequality, more than b - k of the b best models have intervals that miss with probability
at most a b / (b - k + 1), however the intervals depend on each other. Otherwise the lower ends of k
of the best models hold, and the k-th smallest of all lower ends takes the place of the b-th
smallest disparity.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy import stats
from sklearn.base import clone
from sklearn.model_selection import ParameterSampler, StratifiedGroupKFold, StratifiedKFold
from sklearn.utils import _safe_indexing, check_random_state
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import has_fit_parameter

from skfair._typing import (
    ClassLabel,
    ColumnLike,
    ColumnsLike,
    FloatArray,
    IntArray,
    MatrixLike,
    Seed,
)
from skfair.groups.attributes import take_rows
from skfair.groups.row_units import RowUnits
from skfair.report.alternative_models.less_discriminatory import (
    Alternatives,
    best_within_loss,
    by_spread,
    changes_table,
    check_options,
    paired_resamples,
    positive_of,
    read_judging_rows,
)
from skfair.utils.response import get_response
from skfair.utils.rounding import ROUNDING
from skfair.utils.validation import check_number, check_probability


def search_alternatives(
    estimator: Any,
    settings: Mapping[str, Any],
    X: MatrixLike,
    y: ColumnLike,
    *,
    sensitive_features: ColumnsLike,
    units: ColumnLike | None = None,
    gain: float = 0.02,
    max_loss: float = 0.01,
    chance: float = 0.05,
    max_models: int = 400,
    cv: int = 2,
    metric: str = "demographic_parity_difference",
    pos_label: ClassLabel = None,
    confidence: float = 0.95,
    n_bootstrap: int = 1000,
    title: str = "Less discriminatory alternatives",
    n_jobs: int | None = None,
    random_state: Seed = 0,
) -> Alternatives:
    """Search for a less discriminatory alternative by refitting a classifier.

    The classifier is refitted with random settings and seeds until it is shown that further models
    would lower the disparity by little.

    Parameters
    ----------
    estimator : classifier
        The model in use, which must be a classifier for two classes. It is refitted, and serves as
        the baseline.
    settings : dict
        Lists or distributions of its parameters, as in
        :class:`~sklearn.model_selection.RandomizedSearchCV`. ``random_state`` is drawn in addition.
    X : array-like of shape (n_samples, n_features)
        The rows. Models are evaluated on rows on which they were not fitted.
    y : array-like of shape (n_samples,)
        True labels.
    sensitive_features : array-like of shape (n_samples,) or (n_samples, n_attributes)
        The group of each row. Several attributes are crossed.
    units : array-like of shape (n_samples,), default=None
        Labels of rows that belong together, such as the person of each row. If given, no model is
        evaluated on a unit on which it was fitted, and units are resampled instead of rows.
    gain : float, default=0.02
        The search ends when it is shown that another model would lower the disparity by less than
        this amount. It also ends if no number of models could show this because the noise of the
        evaluation rows is larger. In this case, more rows are needed, not more models.
    max_loss : float, default=0.01
        Largest loss of accuracy that is allowed for an alternative.
    chance : float, default=0.05
        Probability, which is allowed, that another model nevertheless gains more.
    max_models : int, default=400
        Number of models after which the search ends. It may end earlier, after 87 models or after
        fewer if ``chance`` is larger.
    cv : int, default=2
        Number of folds. Each candidate is fitted once for each fold, on the rows of all other
        folds, and evaluated on the rows of this fold. More folds leave more rows for fitting and
        take more time.
    metric : str, default="demographic_parity_difference"
        Name of the metric of disparity, which must be a difference of rates of
        :mod:`skfair.metrics`.
    pos_label : label, default=None
        The positive class. If None, it is usually the second class.
    confidence : float, default=0.95
        Confidence level at which the intervals of all candidates, and the bound on the further
        gain, hold.
    n_bootstrap : int, default=1000
        Number of resamples.
    title : str, default="Less discriminatory alternatives"
        Title of the page.
    n_jobs : int, default=None
        Number of models that are fitted in parallel.
    random_state : int, RandomState instance or None, default=0
        Seed of settings, models and resamples.

    Returns
    -------
    found : Alternatives
        The result, whose last sentences state the possible gain of further retraining
        (``further_gain``), and the number of rows that would show that it is at most ``gain``
        (``n_rows_needed``). The baseline and ``estimator`` are fitted on all rows.

    See Also
    --------
    alternatives : Compares candidates that exist.

    Notes
    -----
    The disparity of a candidate is the disparity of the decisions that its models of all folds make
    on rows of the population. The bound accounts for two sources of randomness, each with half of
    the error probability: the settings and seeds of the models, and the evaluation rows, which are
    a sample of the population. It does not cover other kinds of models or other training rows, and
    models that are fitted on all rows may differ from the models of the folds.

    Few rows cannot show that the possible gain is small. With 1,500 rows and 86 trees,
    ``further_gain`` was 0.11 on loans and 0.15 on COMPAS, on average. ``n_rows_needed`` assumes
    that the bound decreases with the square root of the number of rows. This is too optimistic if
    models with much less disparity lose about ``max_loss``, and the bound was then up to 2.5 times
    ``gain``.

    Examples
    --------
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from skfair.datasets import make_loans
    >>> from skfair.report import search_alternatives
    >>> loans = make_loans(3000, random_state=0)
    >>> X, y = loans.data[["income", "age"]].fillna(0), loans.target
    >>> sex = loans.sensitive_features["sex"]
    >>> settings = {"max_depth": [2, 3, 4], "max_features": [1, 2]}
    >>> found = search_alternatives(
    ...     DecisionTreeClassifier(max_depth=3), settings, X, y, sensitive_features=sex, gain=0.1)
    >>> len(found.models), bool(found.further_gain < 0.1)
    (87, True)
    """
    check_options(title, max_loss, confidence, n_bootstrap, metric)
    fewest = _fewest_models(gain, chance, confidence, max_models)
    check_number(cv, "cv", 2)
    rows = read_judging_rows(X, y, sensitive_features, units)
    labels, codes, together = rows.values, rows.groups.cells.codes[0], rows.units
    rng = check_random_state(random_state)
    beside, parts, order = _split_folds(estimator, X, labels, sensitive_features, together, cv, rng)
    fitted: list[tuple[Any, Any]] = []  # a model and its predictions; the baseline comes first
    for size in sorted({fewest, max_models}):  # the bound is computed twice at most
        seeds = rng.randint(2**31 - 1, size=1 + size - len(fitted))
        fitted += Parallel(n_jobs=n_jobs)(
            delayed(_fit_candidate)(estimator, settings if fitted or k else None, seed, parts)
            for k, seed in enumerate(seeds.tolist())
        )
        models, predictions = zip(*fitted, strict=True)
        if size == fewest:
            models[0].fit(X, labels, **beside)
            positive = positive_of(models[0], pos_label)
        decided = [(own == positive)[order] for own in predictions]
        resampled = paired_resamples(
            labels == positive, decided, codes, metric, n_bootstrap,
            np.random.RandomState(seeds[0]), together,
        )  # fmt: skip
        names = ["before", *(f"candidate {k}" for k in range(1, len(models)))]
        table = changes_table(names, resampled, 0, confidence, max_loss)
        selected = best_within_loss(table, 0)
        level = (1 - confidence) / len({fewest, max_models})
        could_gain, of_rows, times = _further_gain(
            resampled, selected, level, max_loss, chance, gain
        )
        # The search ends if the bound is below ``gain``, or if more models cannot bring it there.
        if could_gain < gain or of_rows >= gain:
            break
    if selected:
        models[selected].fit(X, labels, **beside)
    results = (metric, float(max_loss), confidence, labels.size, title, could_gain, chance)
    n_units = getattr(together, "n_units", None)
    needed = int(np.ceil(times * labels.size)) if np.isfinite(times) else None
    return Alternatives(table, list(models), 0, selected, *results, n_units, gain, needed)


def _split_folds(
    estimator: Any,
    X: MatrixLike,
    labels: Any,
    sensitive_features: ColumnsLike,
    together: RowUnits | None,
    cv: int,
    rng: np.random.RandomState,
) -> tuple[dict[str, Any], list[Any], IntArray]:
    """Split the rows into folds, and return the metadata of ``fit``, the folds, and an order.

    The metadata are the groups and units, as far as ``estimator.fit`` accepts them. A fold has two
    parts: (X, y, metadata) of the rows that its models are fitted on, and (X, groups) of the rows
    that judge these models. Predictions of all folds that were joined and are then indexed by the
    order are in the order of the rows.
    """
    owners = getattr(together, "codes", None)  # the unit of each row
    beside: dict[str, Any] = {"sensitive_features": sensitive_features, "units": owners}
    beside = {k: v for k, v in beside.items() if v is not None and has_fit_parameter(estimator, k)}
    splitter = StratifiedKFold if owners is None else StratifiedGroupKFold
    folds = list(splitter(cv, shuffle=True, random_state=rng).split(labels, labels, owners))
    parts = [
        (
            (_safe_indexing(X, fit), labels[fit], take_rows(beside, fit)),
            (_safe_indexing(X, test), take_rows(sensitive_features, test)),
        )
        for fit, test in folds
    ]
    return beside, parts, np.argsort(np.concatenate([test for _, test in folds]))


def _fit_candidate(
    estimator: Any,
    settings: Mapping[str, Any] | None,  # None for the baseline, which keeps its own settings
    seed: int,
    parts: list[Any],  # the folds from _split_folds
) -> tuple[Any, Any]:
    """Return a model that is not fitted yet, and the predictions of its copies, fold by fold.

    A candidate has settings and seeds that are drawn at random. The baseline keeps the seeds that
    the user set. A seed that is None is drawn for it too, so that all folds have the same one.
    """
    model, own = clone(estimator), np.random.RandomState(seed)
    if settings is not None:
        model.set_params(**next(iter(ParameterSampler(settings, 1, random_state=own))))
    for name, value in sorted(model.get_params().items(), key=lambda pair: pair[0]):
        if name.endswith("random_state") and (settings is not None or value is None):
            model.set_params(**{name: own.randint(2**31 - 1)})
    predictions = [
        get_response(clone(model).fit(*xy, **beside), rows, "predict", sensitive_features=groups)
        for (*xy, beside), (rows, groups) in parts
    ]
    return model, np.concatenate(predictions)


def _fewest_models(gain: float, chance: float, confidence: float, max_models: int) -> int:
    """Check the options of the search, and return how many candidates it needs at least.

    With n candidates, none is among the best models with probability (1 - chance)^n. This must be
    at most (1 - confidence) / 4: the bound is computed twice at most, and half of the error
    probability of each time is for the draw of the models (see :func:`_further_gain`).
    """
    check_number(gain, "gain", 0, 1)
    check_probability(chance, "chance")
    fewest = int(np.ceil(np.log((1 - confidence) / 4) / np.log1p(-chance)))
    if max_models < fewest:
        raise ValueError(
            f"max_models={max_models} is too few for chance={chance:g}: of fewer than {fewest} "
            f"models nothing can be said. Pass max_models={fewest} or more, or a larger chance."
        )
    return fewest


def _further_gain(
    resampled: tuple[FloatArray, FloatArray],  # result of paired_resamples, baseline first
    selected: int,
    level: float,  # error probability: half is for the draw of models, and half for the rows
    max_loss: float,
    chance: float,
    gain: float,
) -> tuple[float, float, float]:
    """Bound how far the disparity of another model may be below the disparity of the selected one.

    Returns three numbers:

    - ``could_gain``: the bound,
    - ``of_rows``: what the bound would be with infinitely many models on the same rows, which is
      due to the noise of the rows,
    - how many times as many rows would bring the bound to ``gain``, or NaN if it is there already.

    The bound is the k-th smallest lower end in the docstring of this file, with b = ``n_best`` and
    a = ``miss``. Models that surely lose more accuracy than ``max_loss`` do not count. Which model
    is selected depends on the rows that judge it, so the interval of a model must hold for its
    differences from all other models together. An ideal model is added as the last column, with the
    accuracy of the baseline and no disparity: no model can gain more than it.
    """
    (disparities, errors), (accuracies, lost) = (
        (drawn[0], drawn[1:] - drawn[0])
        for drawn in (
            np.column_stack([resampled[0], np.zeros(len(resampled[0]))]),
            np.column_stack([resampled[1], resampled[1][:, 0]]),
        )
    )
    n_models = errors.shape[1] - 2
    # At least n_best of the models are among the best ones, with an error of at most level / 2.
    n_best = int(stats.binom.ppf(level / 2, n_models, chance))
    k = n_best // 2 + 1
    # The intervals may err with level / 2: by Markov's inequality the best models do with
    # probability miss * n_best / (n_best - k + 1), and the ideal model does with probability miss.
    miss = level / 2 / (n_best / (n_best - k + 1) + 1)
    loss_margin, scaled = by_spread(lost[:, [0]] - lost)
    margin = np.empty_like(loss_margin)
    for number, own in enumerate(errors.T):
        # The interval of this model has to hold simultaneously for the differences of its disparity
        # from all others and for its loss of accuracy. Each of these intervals reaches ``width``
        # standard deviations to both sides.
        spread, apart = by_spread(own[:, None] - errors[:, :-1])
        width = np.quantile(np.maximum(apart.max(axis=1), scaled[:, number]), 1 - miss)
        margin[number] = width * spread[selected]
        loss_margin[number] *= width
    may_be_kept = accuracies - accuracies[0] + loss_margin >= -max_loss - ROUNDING
    lowest = disparities - disparities[selected] - margin  # lower ends of the differences
    lowest, most = lowest[:-1], -lowest[-1]
    lowest = np.sort(np.where(may_be_kept[:-1], lowest, np.inf)[1:])
    # With infinitely many models, n_best is the share ``chance`` of them, and k is half of n_best.
    places = [k - 1, max(k - 1, int(chance / 2 * n_models))]
    # Adding 0.0 turns -0.0 into 0.0.
    could_gain, of_rows = (np.clip(-lowest[places], 0.0, most) + 0.0).tolist()
    if not could_gain > gain > 0:
        return could_gain, of_rows, np.nan
    # The bound is the smaller one of two numbers, so it is at ``gain`` as soon as one of them is.
    # The k-th lower end is mostly error, which shrinks with the square root of the number of rows.
    # The gain of the ideal model is the disparity of the selected model, which stays, plus an
    # error.
    own = disparities[selected]
    to_ideal = (margin[-1] / (gain - own)) ** 2 if gain > own else np.inf
    return could_gain, of_rows, min((lowest[k - 1] / gain) ** 2, to_ideal)
