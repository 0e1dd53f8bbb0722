"""Rows are matched by position; labels of an index that say otherwise are never ignored."""

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

from skfair.classification import (
    ConstrainedERMClassifier,
    FairDecisionClassifier,
    PartialParityCalibrator,
    PartialParityClassifier,
)
from skfair.cluster import FairKMeans
from skfair.metrics import demographic_parity_difference, ndcg
from skfair.ranking import FairRanker
from skfair.report import Audit, audit

RNG = np.random.default_rng(0)
N = 240
X = pd.DataFrame(RNG.normal(size=(N, 2)), columns=["a", "b"])
Y = (X.a + RNG.normal(size=N) > 0).astype(int)
SEX = pd.Series(RNG.choice(["f", "m"], N))
SCORE = pd.Series(RNG.uniform(size=N))
QUERY = pd.Series(np.arange(N) // 20)
OTHER_ORDER = "same index labels in a different order"


def mixed(column):
    return column.sample(frac=1, random_state=0)


@pytest.mark.parametrize(
    "model",
    [
        ConstrainedERMClassifier(),
        FairDecisionClassifier(),
        PartialParityCalibrator(LogisticRegression(), (0.1, 0.9)),
        PartialParityClassifier((0.1, 0.9)),
    ],
)
def test_labels_and_weights_of_fit_in_another_order(model):
    weights = SCORE + 1
    with pytest.raises(ValueError, match=f"^y and the data have the {OTHER_ORDER}"):
        model.fit(X, mixed(Y), sensitive_features=SEX)
    with pytest.raises(ValueError, match=f"^sample_weight and the data have the {OTHER_ORDER}"):
        model.fit(X, Y, mixed(weights), sensitive_features=SEX)


def test_labels_of_a_part_and_of_a_score_in_another_order():
    model = ConstrainedERMClassifier()
    with pytest.raises(ValueError, match=OTHER_ORDER):
        model.partial_fit(X, mixed(Y), classes=[0, 1], sensitive_features=SEX)
    decisions = FairDecisionClassifier().fit(X, Y, sensitive_features=SEX)
    with pytest.raises(ValueError, match=OTHER_ORDER):
        decisions.score(X, mixed(Y))


def test_queries_in_another_order():
    query = f"^query_id and the data have the {OTHER_ORDER}"
    ranker = FairRanker(1.0)
    with pytest.raises(ValueError, match=query):
        ranker.fit(X, Y, mixed(QUERY), sensitive_features=SEX)
    ranker.fit(X, Y, QUERY, sensitive_features=SEX)
    for read in (ranker.rank, lambda X, query_id: ranker.score(X, Y, query_id)):
        with pytest.raises(ValueError, match=query):
            read(X, mixed(QUERY))
    with pytest.raises(ValueError, match=f"^y and the data have the {OTHER_ORDER}"):
        ranker.score(X, mixed(Y), QUERY)
    with pytest.raises(ValueError, match=f"^query_id and the data have the {OTHER_ORDER}"):
        ndcg(Y, SCORE, query_id=mixed(QUERY))


@pytest.mark.parametrize("name", ["y_pred", "y_score", "before", "sample_weight"])
def test_a_column_of_an_audit_in_another_order(name):
    given = {"y_pred": Y, "y_score": SCORE, "before": Y, "sample_weight": SCORE}
    given[name] = mixed(given[name])
    with pytest.raises(ValueError, match=f"^{name} and the data have the {OTHER_ORDER}"):
        audit(Y, **given, sensitive_features=SEX)


def test_what_a_model_is_audited_on_in_another_order():
    model = LogisticRegression().fit(X, Y)
    for y, sex in ((mixed(Y), SEX), (Y.to_numpy(), mixed(SEX))):
        with pytest.raises(ValueError, match=OTHER_ORDER):
            Audit.from_estimator(model, X, y, sensitive_features=sex)


@pytest.mark.parametrize("start", [0, N])
def test_labels_of_other_rows(start):
    """Of a split: a fit satisfied its limit for other people. Counted rows say nothing."""
    sex = SEX.set_axis(np.arange(start, start + N))
    there, Y2 = X.set_axis(np.arange(2 * N, 3 * N)), Y.set_axis(np.arange(2 * N, 3 * N))
    for use in (
        lambda: ConstrainedERMClassifier().fit(there, Y2, sensitive_features=sex),
        lambda: demographic_parity_difference(Y2, Y2, sensitive_features=sex),
        lambda: audit(Y2, Y2, sensitive_features=sex, n_simulations=5),
    ):
        if not start:
            use()
            continue
        with pytest.raises(ValueError, match="no index label in common.*to_numpy"):
            use()


def test_a_list_hides_nothing():
    """Lists have a method ``index``."""
    with pytest.raises(ValueError, match=OTHER_ORDER):
        audit(Y.tolist(), Y, sensitive_features=mixed(SEX))


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


FROZEN = FrozenEstimator(LogisticRegression().fit(X, Y))
USES = {
    "fit": lambda X, y, sex: ConstrainedERMClassifier().fit(X, y, sensitive_features=sex),
    "bins": lambda X, y, sex: PartialParityCalibrator(FROZEN, (0.1, 0.9)).fit(
        X, y, sensitive_features=sex
    ),
    "clusters": lambda X, y, sex: FairKMeans(2, random_state=0).fit(
        X, sensitive_features=sex, sample_weight=y + 1
    ),
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


def test_the_score_of_partitions_with_labels_in_another_order():
    model = PartialParityCalibrator(FROZEN, (0.1, 0.9), sensitive=None)
    model.fit(lazy(X), lazy(Y), sensitive_features=lazy(SEX))
    here = model.score(X, Y, sensitive_features=SEX)
    assert model.score(lazy(X), lazy(Y), sensitive_features=lazy(SEX)) == pytest.approx(here)
    with pytest.raises(ValueError, match="labels of .* differ"):
        model.score(lazy(X), parts_reversed(Y), sensitive_features=lazy(SEX))


def test_rows_without_an_index_are_matched_by_position():
    values = [da.from_array(one.to_numpy(), chunks=80) for one in (X, Y)]
    sex = lazy(SEX)
    by_position = ConstrainedERMClassifier().fit(*values, sensitive_features=sex)
    by_label = ConstrainedERMClassifier().fit(lazy(X), lazy(Y), sensitive_features=sex)
    assert by_position.train_disparity_ == by_label.train_disparity_


@pytest.mark.parametrize("lacks", ["X", "y", "sensitive_features"])
@pytest.mark.parametrize("use", ["fit", "bins"])
def test_the_column_that_lacks_a_row_is_named(use, lacks):
    sex = (SEX == "m").to_numpy()
    columns = {"X": X.to_numpy(), "y": Y.to_numpy(), "sensitive_features": sex}
    columns[lacks] = columns[lacks][:-1]
    wrong = "y" if lacks == "X" else lacks
    with pytest.raises(ValueError, match=f"^{wrong} has {len(columns[wrong])} rows but X has"):
        USES[use](*(da.from_array(one, chunks=80) for one in columns.values()))
