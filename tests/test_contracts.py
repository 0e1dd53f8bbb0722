"""The table of features and estimators is true: each entry is tried on a few hundred rows."""

import re
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import is_regressor
from sklearn.cluster import KMeans
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from skfair import GroupProbabilities, Sensitive, metrics
from skfair.classification import (
    ConstrainedERMClassifier,
    FairDecisionClassifier,
)
from skfair.cluster import FairAssignment
from skfair.constraints import ConditionalOn, DemographicParity
from skfair.exceptions import MissingGroupsWarning, PositiveClassWarning
from skfair.preprocessing import Reweighing
from skfair.regression import ConstrainedERMRegressor, FairDecisionRegressor
from tests.contracts import COLUMNS, REFUSALS, SUPPORTED, TABLE
from tests.families import by_families, rows_of_families
from tests.older import ScoringMonitor
from tests.prototypes import QuietCallback
from tests.public import discover_estimators
from tests.seeds import generator

# Limits on small samples are tight here. tests/estimators/test_explained.py is about the warning.
pytestmark = pytest.mark.filterwarnings("ignore:The limits lower R2")

RNG = generator(0)
N = 240
SEX, AGE = RNG.choice(["f", "m"], N), RNG.choice(["old", "young"], N)
X = RNG.normal(size=(N, 6))
X[:, 0] += SEX == "m"
X[:, 1] += 0.8 * (AGE == "old")
NUMBERS = X[:, 0] + X[:, 1] + RNG.normal(size=N)
CLASSES = (NUMBERS > 0.8).astype(int)
QUERY = np.arange(N) // 120
WEIGHTS = RNG.integers(1, 4, N) * (np.arange(N) % 12 > 0)
STRATA = RNG.choice(["law", "arts"], N)
BOTH = pd.DataFrame({"sex": SEX, "age": AGE})
FRAME = pd.DataFrame(X, columns=list("abcdef"))
APART = Sensitive(intersectional=False)
PROBABILITIES = LogisticRegression().fit(X, SEX).predict_proba(X)


class Family(NamedTuple):
    """An estimator with settings that make its fits short, and how its limit is counted."""

    make: Callable[..., Any]
    metric: Callable[..., float]
    outcome: str  # of the training rows: an attribute or a method
    tight: float  # a limit that binds, and one that does not
    free: float
    limit: str = "max_disparity"
    y: np.ndarray = CLASSES

    def unfitted(self, settings=None):
        model = self.make(**({self.limit: self.tight} if self.limit else {}) | (settings or {}))
        has_seed = "random_state" in model.get_params(deep=False)
        return model.set_params(random_state=0) if has_seed else model

    def fit(self, X=X, y=None, settings=None, **given):
        """Fit within the limit, to the groups of people if no others are given."""
        own = {"query_id": QUERY} if self.metric is ranked else {}
        given = own | {"sensitive_features": SEX} | given
        given = {name: value for name, value in given.items() if value is not None}
        return self.unfitted(settings).fit(X, self.y if y is None else y, **given)

    def found(self, model, X=X, **given):
        """Labels, decisions, predictions, scores or weights of the training rows."""
        if self.outcome == "select":
            return model.select(min_balance=self.tight).labels_
        if self.outcome.endswith("_"):
            return getattr(model, self.outcome)
        is_aware = getattr(model, "is_group_aware_", False)
        given = {"sensitive_features": SEX} | given if is_aware else {}
        return getattr(model, self.outcome)(X, **given)

    def keeps(self, found, limit=None, y=None, **given):
        """Whether the limit holds, as the metric counts it."""
        limit = self.tight if limit is None else limit
        given = {"sensitive_features": SEX} | given
        measured = self.metric(self.y if y is None else y, found, **given)
        return measured >= limit - 1e-9 if self.metric is relative else measured <= limit + 1e-9


def relative(_, labels, **given):
    return metrics.balance_score(labels, relative=True, **given)


def reweighed(y, weights, *, sample_weight=None, **given):
    """What the classes of the groups differ by under the weights."""
    return metrics.demographic_parity_difference(None, y, sample_weight=weights, **given)


def ranked(y, scores, **given):
    return metrics.pair_error_gap(y, scores, query_id=QUERY, agg="worst", **given)


def relevant(make):
    """Draw relevances for which limits bind and can be kept: 120 rows of a query are few."""
    fits = (1.0, SEX, None), (0.1, SEX, None), (0.2, BOTH, None), (0.1, BOTH, APART)
    while True:
        y = (X[:, 1] + X[:, 2] + 2 * (SEX == "m") + RNG.normal(size=N) > 0.8).astype(int)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            free, *kept = (
                make(limit, sensitive=sensitive, random_state=0)
                .fit(X, y, QUERY, sensitive_features=groups)
                .train_disparity_
                for limit, groups, sensitive in fits
            )
        if free > 0.12 and max(kept) <= 0.2 and max(kept[0], kept[2]) <= 0.1:
            return y


rates = metrics.demographic_parity_difference, "train_predictions_", 0.05, 1
distances = metrics.wasserstein_gap, "train_predictions_", 0.1, 9, "max_disparity", NUMBERS
balances = relative, "labels_", 0.8, 0, "min_balance"
in_threes, logistic = KMeans(3, n_init=1, random_state=0), LogisticRegression()
decisions = partial(FairDecisionClassifier, cv=3, group_estimator=logistic)
predictions = partial(FairDecisionRegressor, group_estimator=logistic)
FAMILIES = {
    "FairAssignment": Family(partial(FairAssignment, clusterer=in_threes), *balances),
    **{
        name: Family(make, relative, outcome, 0.8, 0, limit)
        for name, (make, outcome, limit) in by_families("CONTRACTS").items()
    },
    "ConstrainedERMClassifier": Family(ConstrainedERMClassifier, rates[0], "predict", 0.05, 1),
    "FairDecisionClassifier": Family(decisions, *rates),
    "FairDecisionClassifier+": Family(partial(decisions, group_aware=True), *rates),
    **{
        name: Family(make, metric, "decision_function", tight, 1)
        for name, (make, metric, tight) in by_families("CONTRACTS_OF_SCORES").items()
    },
    "Reweighing": Family(Reweighing, reweighed, "train_weights_", 0, 1, ""),
    "ConstrainedERMRegressor": Family(
        ConstrainedERMRegressor, metrics.mean_score_difference, "predict", *distances[2:]
    ),
    "FairDecisionRegressor": Family(predictions, *distances),
    "FairDecisionRegressor+": Family(partial(predictions, group_aware=True), *distances),
    **{
        name: Family(make, ranked, "predict", 0.12, 1, y=relevant(make))
        for name, make in by_families("CONTRACTS_OF_RANKINGS").items()
    },
}
FEATURES: dict[str, Callable[[Family], None]] = {}


def feature(function):
    """Add what an estimator must do: it is named like its row of the table."""
    FEATURES[function.__name__.replace("_", " ")] = function


def same(found, expected, tolerance=1e-5):
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


def alike(found, expected):
    """Solvers of problems that are not convex end beside each other; unrelated scores give 1.1."""
    assert np.abs(found - expected).mean() <= 0.6 * np.std(expected) + 1e-6


def mostly_same(found, expected, tolerance=0.02):
    """Searches of labels may end beside each other: one row of ten may differ."""
    is_same = np.isclose(found, expected, rtol=tolerance, atol=tolerance)
    assert np.mean(is_same) >= 0.9


# --- groups -------------------------------------------------------------------------------------


@feature
def attributes_crossed(f):
    limit, given = f.tight if f.metric is relative else 2 * f.tight, {"sensitive_features": BOTH}
    model = f.fit(settings={f.limit: limit} if f.limit else {}, **given)
    assert f.keeps(f.found(model, **given), limit, **given)


@feature
def attributes_apart(f):
    given = {"sensitive_features": BOTH}
    found = f.found(f.fit(settings={"sensitive": APART}, **given), **given)
    assert all(f.keeps(found, sensitive_features=BOTH[name]) for name in BOTH)


@feature
def a_limit_for_each_attribute(f):
    limits, given = {"sex": f.tight, "age": 2 * f.tight}, {"sensitive_features": BOTH}
    model = f.fit(settings={"sensitive": APART, f.limit or "max_disparity": limits}, **given)
    found = f.found(model, **given)
    assert all(f.keeps(found, limits[name], sensitive_features=BOTH[name]) for name in BOTH)
    model = f.fit(settings={"sensitive": APART, f.limit: {"sex": f.tight, "age": None}}, **given)
    assert f.keeps(f.found(model, **given))


@feature
def attributes_in_columns(f):
    frame, settings = FRAME.assign(sex=SEX), {"sensitive": "sex"}
    model = f.fit(frame, settings=settings, sensitive_features=None)
    same(f.found(model, frame, sensitive_features=None), f.found(f.fit(FRAME), FRAME))
    assert model.model_features_.tolist() == list("abcdef")
    position = f.fit(np.c_[X, SEX == "m"], settings={"sensitive": 6}, sensitive_features=None)
    same(f.found(position, np.c_[X, SEX == "m"], sensitive_features=None), f.found(f.fit()), 1e-4)
    kept = f.fit(
        frame.assign(sex=1.0 * (SEX == "m")),
        settings={"sensitive": Sensitive("sex", keep=True)},
        sensitive_features=None,
    )
    assert kept.model_features_.tolist()[-1] == "sex"


@feature
def probabilities_of_groups(f):
    given = {"sensitive_features": GroupProbabilities(PROBABILITIES, ["f", "m"])}
    expected = f.found(f.fit(**given), **given)
    assert f.keeps(expected, **given)
    frame = FRAME.assign(woman=PROBABILITIES[:, 0], man=PROBABILITIES[:, 1])
    settings = {"sensitive": Sensitive(["woman", "man"], probabilities=True)}
    same(f.found(f.fit(frame, settings=settings, sensitive_features=None), frame), expected, 1e-3)


@feature
def rows_without_a_group(f):
    """The model learns from them, and the limit holds for the others."""
    known = np.arange(N) % 10 > 0
    given = {"sensitive_features": np.where(known, SEX, None)}
    settings = {"sensitive": Sensitive(missing="loss")}
    found = f.found(f.fit(settings=settings, **given), **given)
    assert f.keeps(found[known], y=f.y[known], sensitive_features=SEX[known])
    free = f.fit(settings={**settings, f.limit: f.free}, **given)
    if not getattr(free, "cv", None):  # others have folds by group
        same(f.found(free, **given), f.found(f.fit(settings={f.limit: f.free})))
    with pytest.raises(ValueError, match="24 missing values in 240 rows.*missing='loss'"):
        f.fit(**given)


@feature
def control_features(f):
    name = "mean_score_parity" if f.y is NUMBERS else "demographic_parity"
    settings, given = {"constraint": ConditionalOn(name)}, {"control_features": STRATA}
    expected = f.found(f.fit(settings=settings, **given), **given)
    assert f.keeps(expected, **given)
    frame = FRAME.assign(law=(STRATA == "law") * 1.0)
    settings["sensitive"] = Sensitive(control_features="law")
    assert f.keeps(f.found(f.fit(frame, settings=settings), frame), **given)
    settings["sensitive"] = None
    with pytest.raises(ValueError, match="needs control_features in fit"):
        f.fit(settings=settings)
    with pytest.warns(UserWarning, match="no constraint uses|change nothing"):
        same(f.found(f.fit(**given)), f.found(f.fit()))


@feature
def no_groups(f):
    with pytest.warns(MissingGroupsWarning):
        model = f.fit(sensitive_features=None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of a single group
        one = f.fit(sensitive_features=np.full(N, "a"))
    given = {"sensitive_features": np.full(N, "a")}
    same(f.found(model, sensitive_features=None), f.found(one, **given))


@feature
def predictions_without_the_group(f):
    assert len(f.fit().predict(X[:5])) == 5


@feature
def groups_that_are_new(f):
    assert len(f.fit().predict(X[:2], sensitive_features=["f", "x"])) == 2


# --- limits -------------------------------------------------------------------------------------


@feature
def min_rate(f):
    found = f.found(f.fit(settings={"min_rate": 0.5}))
    assert min(found[g == SEX].mean() for g in "fm") >= 0.5 - 1e-9
    kept = f.found(f.fit(settings={"min_rate": "as before"}))
    free = f.found(f.fit(settings={f.limit: f.free}))
    assert all(kept[g == SEX].mean() >= free[g == SEX].mean() - 1e-6 for g in "fm")
    assert f.keeps(found)
    assert f.keeps(kept)


@feature
def selection_rate(f):
    wanted = 0.25, "as before", (0.6, 0.7)
    with warnings.catch_warnings():  # a linear model may miss one of them by a row, and says so
        warnings.filterwarnings("ignore", "No model was found that keeps the")
        found, kept, some = (f.found(f.fit(settings={"selection_rate": rate})) for rate in wanted)
    assert abs(found.sum() - 60) <= 1
    assert abs(kept.sum() - f.found(f.fit(settings={f.limit: f.free})).sum()) <= 1
    assert 0.6 - 1 / N <= some.mean() <= 0.7 + 1 / N
    assert all(map(f.keeps, (found, kept, some)))
    for wrong in ("half", (0.7, 0.6)):
        with pytest.raises(ValueError, match="selection_rate"):
            f.fit(settings={"selection_rate": wrong})


@feature
def ratios(f):
    settings = {"constraint": DemographicParity(min_ratio=0.8), f.limit: None}
    found = f.found(f.fit(settings=settings))
    assert metrics.demographic_parity_ratio(None, found, sensitive_features=SEX) >= 0.8 - 1e-9


@feature
def predictive_parity(f):
    found = f.found(f.fit(settings={"constraint": "predictive_parity"}))
    gap = metrics.predictive_parity_difference(CLASSES, found, sensitive_features=SEX)
    assert gap <= f.tight + 1e-9


@feature
def confidence(f):
    model = f.fit(settings={"certificate": 0.6, f.limit: 0.8 * f.free})
    assert model.status_ == "certified"
    assert model.p_value_ <= 0.4


@feature
def a_group_without_positives(f):
    f.fit(y=np.where(SEX == "f", 0, f.y), settings={"constraint": "equal_opportunity"})


# --- rows ---------------------------------------------------------------------------------------


@feature
def sample_weight(f):
    """Weights count in the limit."""
    assert f.keeps(f.found(f.fit(sample_weight=WEIGHTS)), sample_weight=WEIGHTS)
    with pytest.raises(ValueError, match="negative"):
        f.fit(sample_weight=-WEIGHTS)


@feature
def rows_of_weight_0(f):
    """They may be anybody."""
    one, others, y = f.fit(sample_weight=WEIGHTS), X.copy(), f.y.copy()
    others[WEIGHTS == 0], y[WEIGHTS == 0] = 3.0, 1 - y[WEIGHTS == 0]
    found = f.found(f.fit(others, y, sample_weight=WEIGHTS), others)
    same(found[WEIGHTS > 0], f.found(one)[WEIGHTS > 0], 1e-3)


@feature
def weights_as_copies(f):
    expected, copies = f.found(f.fit(sample_weight=WEIGHTS)), np.repeat(np.arange(N), WEIGHTS)
    other = f.fit(X[copies], f.y[copies], sensitive_features=SEX[copies])
    alike(f.found(other, X[copies], sensitive_features=SEX[copies]), expected[copies])


@feature
def groups_of_rows(f):
    """Rows of a person stay in one fold."""
    person, whole = generator(2).permutation(N) // 3, GroupKFold(4)
    found = f.found(f.fit(settings={"cv": whole}, units=person))
    folds = list(whole.split(X, groups=person))
    same(found, f.found(f.fit(settings={"cv": folds})))


@feature
def partial_fit(f):
    model = f.unfitted()
    for part in 8 * [slice(0, 120), slice(120, N)]:
        own = {} if f.metric is relative else {"y": f.y[part]}
        model.partial_fit(X[part], **own, sensitive_features=SEX[part])
    is_aware = {"sensitive_features": SEX} if f.metric is relative else {}
    assert f.keeps(model.predict(X, **is_aware), (f.tight + f.free) / 2 if is_aware else 0.15)


@feature
def the_order_of_rows(f):
    """It changes nothing."""
    order = generator(1).permutation(N)
    own = {"query_id": QUERY[order]} if f.metric is ranked else {}
    other = f.fit(X[order], f.y[order], sensitive_features=SEX[order], **own)
    found = f.found(other, X[order], sensitive_features=SEX[order])
    same(found, f.found(f.fit())[order], 5e-3)


@feature
def sparse_X(f):
    rows = sparse.csr_array(X)
    found, expected = f.found(f.fit(rows), rows), f.found(f.fit())
    alike(found, expected) if f.outcome == "decision_function" else mostly_same(found, expected)


@feature
def float32(f):
    rows = X.astype(np.float32)
    found = f.found(f.fit(rows), rows)
    expected = f.found(f.fit(rows.astype(float)), rows.astype(float))
    alike(found, expected) if f.outcome == "decision_function" else mostly_same(found, expected)


@feature
def columns_of_text(f):
    frame = FRAME.assign(town=np.where(X[:, 2] > 0, "york", "bath"))
    encoder = make_column_transformer((OneHotEncoder(), ["town"]), remainder="passthrough")
    last = LinearRegression() if is_regressor(f.unfitted()) else logistic
    assert f.keeps(f.found(f.fit(frame, settings=around(f, last, encoder)), frame))


@feature
def missing_values(f):
    rows = np.where(generator(1).random(X.shape) < 0.1, np.nan, X)
    last = LinearRegression() if is_regressor(f.unfitted()) else LogisticRegression()
    steps = () if f.metric is reweighed else [SimpleImputer()]  # trees give rows the same score
    last = last if steps else HistGradientBoostingClassifier(max_iter=30, min_samples_leaf=5)
    assert f.keeps(f.found(f.fit(rows, settings=around(f, last, *steps)), rows))


def around(f, last, *steps):
    """Settings with another model inside, where there is one."""
    known = f.unfitted().get_params(deep=False)
    last = make_pipeline(*steps, last) if steps else last
    inner = {"clusterer": make_pipeline(*steps, in_threes), "estimator": last}
    inner["group_estimator"] = None
    return {name: one for name, one in inner.items() if name in known}


@feature
def several_classes(f):
    y = np.digitize(NUMBERS, [0.3, 1.5])
    found = f.found(f.fit(y=y))
    for label in range(3):
        mine = found if f.metric is reweighed else found == label
        assert f.keeps(mine, y=y == label)


@feature
def labels_of_text(f):
    names, known = np.array(["no", "yes"]), f.unfitted().get_params()
    settings = {"pos_label": "yes"} if "pos_label" in known else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PositiveClassWarning)
        found = f.found(f.fit(y=names[CLASSES], settings=settings))
    same(found == "yes" if found.dtype.kind in "UO" else found, f.found(f.fit()))


@feature
def networks(f):
    assert f.keeps(f.found(f.fit(settings={"model": (4,), "max_iter": 300})))


@feature
def dask(f):
    """Collections are read; post-processing of classifiers does so around a fitted model."""
    da = pytest.importorskip("dask.array")
    rows = da.from_array(X, chunks=(80, -1))
    fitted = FrozenEstimator(LogisticRegression().fit(X, CLASSES))
    names = ["FairDecisionClassifier+", *rows_of_families("AROUND_FITTED_MODELS")]
    around = [FAMILIES[name].make for name in names]
    settings = {"estimator": fitted} if f.make in around else {}
    model = f.fit(rows, da.from_array(f.y, chunks=80), settings=settings)
    assert f.keeps(np.asarray(f.found(model)))


# --- scikit-learn -------------------------------------------------------------------------------


class Counting(QuietCallback):
    n_iterations = 0

    def on_fit_task_end(self, estimator, context, **_):
        Counting.n_iterations += context.task_name == "iteration"


@feature
def callbacks(f):
    if ScoringMonitor is None:
        pytest.skip("scikit-learn has callbacks from 1.9 on")
    Counting.n_iterations = 0
    model = f.unfitted().set_callbacks(Counting())
    own = {"query_id": QUERY} if f.metric is ranked else {}
    model.fit(X, f.y, sensitive_features=SEX, **own)
    assert Counting.n_iterations > 0


# --- the table ----------------------------------------------------------------------------------

CASES = [(name, estimator) for name, row in TABLE.items() for estimator in row]


@pytest.mark.filterwarnings("ignore:The crossed groups keep")
@pytest.mark.parametrize(("name", "estimator"), CASES)
def test_every_entry_is_true(name, estimator):
    entry, family = TABLE[name][estimator], FAMILIES[estimator]
    if entry == SUPPORTED:
        FEATURES[name](family)
    elif entry in REFUSALS:
        with pytest.raises((TypeError, ValueError, AttributeError), match=REFUSALS[entry]):
            FEATURES[name](family)


def test_every_estimator_and_every_feature_is_in_the_table():
    assert {name.rstrip("+") for name in COLUMNS} == set(discover_estimators())
    assert list(FEATURES) == list(TABLE)
    assert set(FAMILIES) == set(COLUMNS)
    assert {entry for row in TABLE.values() for entry in row.values()} <= {*REFUSALS, *"+-"}


@pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)
def test_limits_bind_here(family):
    """Or no test of this file could fail."""
    if family.limit:
        free = family.found(family.fit(settings={family.limit: family.free}))
    else:
        free = np.ones(N) if family.metric is reweighed else family.fit().labels_[0]
    # By chance, clusters without a limit may be fairly balanced.
    assert not family.keeps(free, limit=0.97 if family.metric is relative else None)


PAGE = Path(__file__).parent.parent / "doc" / "how_to" / "big_data.rst"


def test_the_page_on_big_data_says_the_same():
    table, _, _ = PAGE.read_text().partition("\nDecisions in a database\n")
    rows = re.findall(r"^   \* - (.*(?:\n     [- ].*)*)", table, re.M)
    (_, *columns), *rows = (re.split(r"\n     - ", row) for row in rows)
    assert len(rows) > 5
    for name, *cells in rows:
        estimator = name.split(".")[-1].rstrip("`")
        for column, cell in zip(columns, cells, strict=True):
            entry = TABLE[column.strip("`").replace("_", " ").replace("Dask", "dask")][estimator]
            assert (entry == SUPPORTED) == (cell not in ("no", "``predict``")), (name, column)
