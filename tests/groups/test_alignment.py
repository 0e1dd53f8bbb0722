"""Rows are matched by position; labels of an index that say otherwise are never ignored."""

import functools
from functools import partial
from inspect import signature

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.model_selection import permutation_test_score

from skfair import metrics
from skfair.classification import (
    ConstrainedERMClassifier,
    FairDecisionClassifier,
)
from skfair.cluster import FairAssignment
from skfair.metrics import demographic_parity_difference, get_scorer, outcome_bounds
from skfair.model_selection import StratifiedSensitiveKFold
from skfair.preprocessing import Reweighing
from skfair.regression import ConstrainedERMRegressor, FairDecisionRegressor
from tests.families import by_families, rows_of_families
from tests.messages import messages
from tests.seeds import generator

RNG = generator(0)
N = 240
X = pd.DataFrame(RNG.normal(size=(N, 2)), columns=["a", "b"])
Y = (X.a + RNG.normal(size=N) > 0).astype(int)
SEX = pd.Series(RNG.choice(["f", "m"], N))
SCORE = pd.Series(RNG.uniform(size=N))
QUERY = pd.Series(np.arange(N) // 20)
OTHER_ORDER = "same index labels in a different order"
FAST = Reweighing()
AWARE = FairDecisionClassifier(group_aware=True).fit(X, Y, sensitive_features=SEX)


def mixed(column):
    return column.sample(frac=1, random_state=0)


@functools.cache
def fitted(kind):
    return kind().fit(X, Y, sensitive_features=SEX)


MIXED = {"sample_weight": mixed(SCORE)}
OUTCOMES = "equal_opportunity", Y, Y[::-1].set_axis(Y.index)
test_columns_in_another_order = messages(
    (ValueError, OTHER_ORDER, lambda: outcome_bounds(*OUTCOMES, sensitive_features=mixed(SEX))),
    (
        *(ValueError, OTHER_ORDER),
        lambda: outcome_bounds(*OUTCOMES[:2], mixed(Y), sensitive_features=SEX),
    ),
    (ValueError, OTHER_ORDER, lambda: outcome_bounds(*OUTCOMES, sensitive_features=SEX, **MIXED)),
    (
        *(ValueError, OTHER_ORDER),
        lambda: next(StratifiedSensitiveKFold().split(X, Y, sensitive_features=mixed(SEX))),
    ),
    (ValueError, OTHER_ORDER, lambda: fitted(ConstrainedERMClassifier).score(X, Y, **MIXED)),
    *(
        (ValueError, OTHER_ORDER, lambda use=use: use(X, SEX, MIXED))
        for use in rows_of_families("MISALIGNED")
    ),
)

COMPARING = [
    name
    for name in metrics.__all__
    if {"y_true", "sensitive_features"} <= signature(getattr(metrics, name)).parameters.keys()
    and not name.startswith(("partial", "noise", "disparity", "ndcg", "outcome"))
    and not name.endswith("report")
]


@pytest.mark.parametrize("name", COMPARING)
def test_a_metric_of_columns_in_another_order(name):
    """Groups are compared with the labels, and if these have no index with the predictions."""
    metric, index = getattr(metrics, name), RNG.permutation(N)
    predicted = pd.Series(RNG.integers(0, 2, N))
    y, p, sex, query = (column.set_axis(index) for column in (Y, predicted, SEX, QUERY))
    has_queries = "query_id" in signature(metric).parameters
    measure = partial(metric, **{"query_id": query} if has_queries else {})
    assert measure(y, p, sensitive_features=sex) >= 0
    wrong = [(y, p.to_numpy(), mixed(sex)), (y.to_numpy(), p, mixed(sex)), (y, p, mixed(sex))]
    if not has_queries:
        wrong += [(y, mixed(p), sex), (y, mixed(p), sex.to_numpy())]
        with pytest.raises(ValueError, match="sample_weight and the data .* different order"):
            measure(y, p, sensitive_features=sex.to_numpy(), sample_weight=mixed(y + 1.0))
    for labels, predictions, groups in wrong:
        with pytest.raises(ValueError, match="different order"):
            measure(labels, predictions, sensitive_features=groups)


@pytest.mark.parametrize("name", ["group_report", "fairness_report", "disparity_test"])
def test_units_in_another_order(name):
    options = {"metric": "demographic_parity_difference", "max_disparity": 0.2}
    limit = options if name == "disparity_test" else {}
    measure = partial(getattr(metrics, name), y_true=Y, y_pred=Y, sensitive_features=SEX, **limit)
    measure(units=QUERY)
    with pytest.raises(ValueError, match="units and the data .* different order"):
        measure(units=mixed(QUERY))


GIVEN = {
    "y": Y,
    "sample_weight": SCORE + 1,
    "sensitive_features": SEX,
    "control_features": SEX.where(SCORE < 0.5, "other"),
    "groups": QUERY,
    "query_id": QUERY,
}
MODELS = {
    "erm": ConstrainedERMClassifier(),
    "regressor": ConstrainedERMRegressor(),
    "decisions": FairDecisionClassifier(),
    "numbers": FairDecisionRegressor(),
    **by_families("ALIGNED"),
    "clusters": FairAssignment(KMeans(2, n_init=1)),
    "reweighing": Reweighing(),
}


@pytest.mark.parametrize("form", [pd.DataFrame, np.asarray])
@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_every_argument_of_fit_in_another_order(model, form):
    """Also where X is an array, as behind a transformer: the others are compared with each other"""
    given = {name: GIVEN[name] for name in GIVEN if name in signature(model.fit).parameters}
    for name in given.keys() - {"y"}:
        with pytest.raises(ValueError, match=OTHER_ORDER):
            model.fit(form(X), **(given | {name: mixed(GIVEN[name])}))


# --- a shuffled y --------------------------------------------------------------------------------

TABLE = X.assign(sex=SEX, query=QUERY)
SHUFFLED = {
    "permuted": lambda y: y.sample(frac=1, random_state=0),
    "drawn with repeats": lambda y: y.sample(frac=1, replace=True, random_state=0),
    "of other rows": lambda y: y.set_axis(range(5, N + 5)),
}
# They find the groups, and the queries, among the columns of X.
SUPERVISED = {
    name: clone(model).set_params(
        sensitive="sex", **({"query_column": "query"} if name == "ranker" else {})
    )
    for name, model in MODELS.items()
    if name != "clusters"
}
each = pytest.mark.parametrize("model", SUPERVISED.values(), ids=SUPERVISED)
# The limits of a fit to a random target are of no interest here.
random_target = pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.ConvergenceWarning",
    "ignore:The predictions that satisfy max_disparity:UserWarning",
)


@random_target
@each
@pytest.mark.parametrize("shuffle", SHUFFLED.values(), ids=SHUFFLED)
def test_a_target_goes_by_position_whatever_its_index(shuffle, model):
    """As in scikit-learn, whose permutation tests shuffle y with its index."""
    by_series, by_array = (clone(model).fit(TABLE, y) for y in (shuffle(Y), shuffle(Y).to_numpy()))
    assert np.array_equal(by_series.predict(TABLE), by_array.predict(TABLE))
    assert by_series.score(TABLE, shuffle(Y)) == by_array.score(TABLE, shuffle(Y).to_numpy())


@random_target
@each
def test_a_target_beside_groups_goes_by_position(model):
    """Also where X is an array, as behind a transformer."""
    model = clone(model).set_params(sensitive=None)
    given = {"sensitive_features": SEX}
    if hasattr(model, "query_column"):
        model.set_params(query_column=None)
        given["query_id"] = QUERY
    for rows in (X, X.to_numpy()):
        model.fit(rows, mixed(Y), **given)


@random_target
@pytest.mark.filterwarnings("ignore:The value says nothing about groups")  # all decisions alike
@pytest.mark.parametrize(
    "name", ["neg_equalized_odds_difference", None, *["ndcg"] * ("ranker" in SUPERVISED)]
)
def test_scikit_learns_permutation_test(name):
    model = SUPERVISED["ranker" if name == "ndcg" else "erm"]
    columns = {"query_column": "query"} if name == "ndcg" else {"sensitive": "sex"}
    scoring = None if name is None else get_scorer(name, **columns)
    given = {"scoring": scoring, "cv": 2, "n_permutations": 2}
    found = [
        permutation_test_score(model, TABLE, target, **given)[:2]
        for target in (Y.to_numpy(), Y, Y.astype("Int64"))
    ]
    for score, permuted in found[1:]:
        assert score == found[0][0]
        assert np.array_equal(permuted, found[0][1])


def test_parts_and_splits_of_a_shuffled_target():
    given = {"sensitive_features": SEX}
    targets = mixed(Y), mixed(Y).to_numpy()
    parts = [ConstrainedERMClassifier().partial_fit(X, y, classes=[0, 1], **given) for y in targets]
    assert np.array_equal(parts[0].coef_, parts[1].coef_)
    splits = [next(StratifiedSensitiveKFold().split(X, y, **given)) for y in targets]
    assert np.array_equal(splits[0][1], splits[1][1])


# --- labels of other rows ------------------------------------------------------------------------

AUDITS = {read.__name__: read for read, _ in rows_of_families("READERS_OF_DECISIONS")}
# Labels of the rows, those of their groups, and what is said of them.
LABELS = {
    "both are parts of a table": (range(N, 2 * N), range(2 * N, 3 * N), "only 0 of 240 index"),
    "parts that overlap": (
        range(N, 2 * N),
        range(N + 7, 2 * N + 7),
        "only 233 of 240 index",
    ),
    "a part, the first row twice": (
        [*range(N, 2 * N)],
        [*range(N, 2 * N - 1), N],
        "only 239 of 240",
    ),
    "the first part": (range(2 * N, 3 * N), range(N), None),
    "every second row": (range(N), range(0, 2 * N, 2), None),
    "a fresh column beside a random part": (RNG.permutation(3 * N)[:N], range(N), ""),
    "a fresh table beside a random part": (range(N), RNG.permutation(3 * N)[:N], ""),
    "names and numbers": ([f"p{i}" for i in range(N)], range(3 * N, 2 * N, -1), ""),
    "dates and a count": (pd.date_range("2020", periods=N), range(N), ""),
}


@pytest.mark.parametrize(("labels", "of_groups", "said"), LABELS.values(), ids=LABELS)
@pytest.mark.parametrize("use", ["fit", "metric", "predict", *AUDITS])
def test_labels_of_other_rows(use, labels, of_groups, said):
    """A limit was satisfied for other people. An index that counts rows says nothing by itself."""
    sex, rows, y = SEX.set_axis(of_groups), X.set_axis(labels), Y.set_axis(labels)
    calls = {
        "fit": lambda: FAST.fit(rows, y, sensitive_features=sex),
        "metric": lambda: demographic_parity_difference(y, y, sensitive_features=sex),
        **{name: partial(read, y, sensitive_features=sex) for name, read in AUDITS.items()},
        "predict": lambda: AWARE.predict(rows, sensitive_features=sex),
    }
    if said == "":
        calls[use]()
    elif said is None:
        with pytest.warns(UserWarning, match="may be of different rows.*loc.*to_numpy"):
            calls[use]()
    else:
        with pytest.raises(ValueError, match=f"{said}.*loc.*to_numpy"):
            calls[use]()


# --- rows in blocks ----------------------------------------------------------------------------


def lazy(column):
    return dd.from_pandas(column, npartitions=3)


def parts_reversed(column):
    """Return the same rows with their labels, the last partition first."""
    parts = lazy(column).partitions
    return dd.concat([parts[k] for k in (2, 1, 0)])


def rows_reversed(column):
    """Return the rows of each partition in the opposite order."""
    return lazy(column).map_partitions(lambda part: part.iloc[::-1], meta=column.iloc[:0])


USES = {
    "fit": lambda X, y, sex: ConstrainedERMClassifier().fit(X, y, sensitive_features=sex),
    **by_families("FITS_OF_PARTITIONS"),
    "metric": lambda X, y, sex: demographic_parity_difference(
        X["a"] > 0, y, sensitive_features=sex
    ),
}


@pytest.mark.parametrize("reorder", [parts_reversed, rows_reversed])
@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_partitions_with_labels_in_another_order(use, reorder):
    """A disparity of .04 was reported in place of .52."""
    for y, sex in ((reorder(Y), lazy(SEX)), (lazy(Y), reorder(SEX))):
        with pytest.raises(ValueError, match=r"Partition \d: the index labels of .* differ"):
            use(lazy(X), y, sex)


def test_rows_without_an_index_are_matched_by_position():
    values = [da.from_array(one.to_numpy(), chunks=80) for one in (X, Y)]
    sex = lazy(SEX)
    by_position = ConstrainedERMClassifier().fit(*values, sensitive_features=sex)
    by_label = ConstrainedERMClassifier().fit(lazy(X), lazy(Y), sensitive_features=sex)
    assert by_position.train_disparity_ == by_label.train_disparity_


def without_a_row(use, lacks):
    sex = (SEX == "m").to_numpy()
    columns = {"X": X.to_numpy(), "y": Y.to_numpy(), "sensitive_features": sex}
    columns[lacks] = columns[lacks][:-1]
    USES[use](*(da.from_array(one, chunks=80) for one in columns.values()))


test_the_column_that_lacks_a_row_is_named = messages(
    *(
        (ValueError, f"^{wrong} has {n} rows but X has", partial(without_a_row, use, lacks))
        for use in ("fit", "bins")
        if use in USES
        for lacks, wrong, n in (
            *(("X", "y", N), ("y", "y", N - 1)),
            ("sensitive_features", "sensitive_features", N - 1),
        )
    )
)
