"""Post-processing of a fitted model on Dask collections: the same as in memory."""

import warnings

import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

from skfair import Sensitive
from skfair.classification import (
    PartialParityCalibrator,
    PartialParityClassifier,
)
from skfair.exceptions import MissingGroupsWarning
from tests.classification.test_prefit_on_dask import COLUMNS, frozen, people  # noqa: F401
from tests.groups import test_alignment as alignment

pytestmark = pytest.mark.filterwarnings("ignore::skfair.exceptions.PositiveClassWarning")

da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")

INTERVAL = (0.1, 0.5)


@pytest.mark.parametrize("is_weighted", [False, True])
@pytest.mark.parametrize("constraint", ["statistical_parity", "equal_opportunity"])
def test_equal_to_memory(constraint, is_weighted, frozen):  # noqa: F811
    frame = people()
    lazy = dd.from_pandas(frame, npartitions=5)

    def fit(of):
        model = PartialParityCalibrator(frozen, INTERVAL, constraint, 0.05)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "FrozenEstimator takes no sample_weight")
            return model.fit(
                of[COLUMNS],
                of.y,
                sample_weight=of.w if is_weighted else None,
                sensitive_features=of.sex,
            )

    found, expected = fit(lazy), fit(frame)
    assert found.n_features_in_ == expected.n_features_in_
    for name in ("classes_", "groups_", "feature_names_in_", "model_features_"):
        assert_array_equal(getattr(found, name), getattr(expected, name))
    for name in ("thresholds_", "rates_", "train_disparity_", "effective_disparity_"):
        assert_allclose(getattr(found, name), getattr(expected, name), atol=1e-12)
    assert found.summary_ == expected.summary_
    scores, wanted = (
        one.decision_function(frame[COLUMNS], sensitive_features=frame.sex)
        for one in (found, expected)
    )
    assert_allclose(scores, wanted, atol=1e-12)
    assert found.noise_floor_ == pytest.approx(expected.noise_floor_)


def test_predictions_are_lazy_and_equal(frozen):  # noqa: F811
    frame = people()
    lazy = dd.from_pandas(frame, npartitions=3)
    model = PartialParityCalibrator(frozen, INTERVAL).fit(
        lazy[COLUMNS], lazy.y, sensitive_features=lazy.sex
    )
    for name in ("predict", "decision_function", "predict_proba"):
        method = getattr(model, name)
        found = method(lazy[COLUMNS], sensitive_features=lazy.sex)
        assert isinstance(found, da.Array)
        expected = method(frame[COLUMNS], sensitive_features=frame.sex)
        assert found.dtype == expected.dtype
        assert_array_equal(found.compute(), expected)
    assert model.score(lazy[COLUMNS], lazy.y, sensitive_features=lazy.sex) == pytest.approx(
        model.score(frame[COLUMNS], frame.y, sensitive_features=frame.sex)
    )
    assert model.score(
        lazy[COLUMNS], lazy.y, sample_weight=lazy.w, sensitive_features=lazy.sex
    ) == pytest.approx(model.score(frame[COLUMNS], frame.y, frame.w, sensitive_features=frame.sex))
    with pytest.raises(TypeError, match="Pass a random sample"):
        model.disparity_upper_bound(lazy[COLUMNS], sensitive_features=lazy.sex)


@pytest.mark.parametrize("kind", ["frame", "array"])
@pytest.mark.parametrize("drop", [False, True])
def test_named_columns(kind, drop):
    frame = people()
    table = frame[["a", "b"]].assign(g=(frame.sex == "m").astype(float))
    lazy, columns, y = dd.from_pandas(table, npartitions=3), "g", frame.y
    if kind == "array":
        table, columns = table.to_numpy(), [2]
        lazy = da.from_array(table, chunks=(1100, 2))
        y = da.from_array(frame.y.to_numpy().astype("U3"), chunks=700)
    inner = LogisticRegression().fit(table if not drop else _without_last(table), frame.y)
    model = PartialParityCalibrator(
        FrozenEstimator(inner), INTERVAL, sensitive=Sensitive(columns, keep=not drop)
    )
    found = model.fit(lazy, y).decision_function(lazy).compute()
    expected = model.fit(table, frame.y).decision_function(table)
    assert_allclose(found, expected, atol=1e-12)


def test_only_X_is_lazy(frozen):  # noqa: F811
    frame = people()
    X = dd.from_pandas(frame[COLUMNS], npartitions=3)
    model = PartialParityCalibrator(frozen, INTERVAL)
    found = model.fit(X, frame.y, sensitive_features=frame.sex).thresholds_
    expected = model.fit(frame[COLUMNS], frame.y, sensitive_features=frame.sex).thresholds_
    assert_allclose(found, expected, atol=1e-12)


def test_a_classifier_that_was_fitted_in_memory_predicts_lazily():
    frame = people()
    lazy = dd.from_pandas(frame, npartitions=3)
    model = PartialParityClassifier(INTERVAL, max_disparity=0.3)
    model.fit(frame[["a", "b"]], frame.y, sensitive_features=frame.sex)
    found = model.predict(lazy[["a", "b"]], sensitive_features=lazy.sex)
    assert_array_equal(
        found.compute(), model.predict(frame[["a", "b"]], sensitive_features=frame.sex)
    )


def _without_last(table):
    return table[["a", "b"]] if hasattr(table, "columns") else table[:, :2]


def test_what_is_refused(frozen):  # noqa: F811
    frame = people()
    lazy = dd.from_pandas(frame, npartitions=3)
    rows = {"X": lazy[COLUMNS], "y": lazy.y, "sensitive_features": lazy.sex}
    with pytest.raises(ValueError, match="pass it as sklearn.frozen.FrozenEstimator"):
        PartialParityCalibrator(HistGradientBoostingClassifier()).fit(**rows)
    with pytest.raises(ValueError, match="LogisticRegression does not read Dask collections"):
        PartialParityCalibrator(cv=None).fit(**rows)
    with pytest.raises(ValueError, match="units= is not read here, because Dask collections"):
        PartialParityCalibrator(frozen).fit(**rows, units=frame.town)
    with pytest.raises(TypeError, match="X is a DataFrame, but y"):
        PartialParityCalibrator(frozen).fit(**rows | {"X": frame[COLUMNS]})
    with pytest.raises(ValueError, match="keeps 2 attributes apart"):
        PartialParityCalibrator(frozen, sensitive=Sensitive(intersectional=False)).fit(
            **rows | {"sensitive_features": lazy[["sex", "town"]]}
        )
    broken = frame.y.astype(object)
    broken[1500] = None
    broken = dd.from_pandas(broken, npartitions=3)
    with pytest.raises(ValueError, match=r"Partition \d: y has 1 missing value"):
        PartialParityCalibrator(frozen).fit(**rows | {"y": broken})
    with pytest.raises(ValueError, match="Only binary classification"):
        PartialParityCalibrator(frozen).fit(**rows | {"y": lazy.w.astype(str)})
    with pytest.raises(NotFittedError):
        PartialParityCalibrator(frozen).predict(lazy[COLUMNS], sensitive_features=lazy.sex)
    model = PartialParityCalibrator(frozen, INTERVAL)
    with pytest.warns(MissingGroupsWarning):
        model.fit(lazy[COLUMNS], lazy.y)
    assert model.train_disparity_ == 0
    model.fit(**rows)
    strangers = lazy.sex.where(lazy.sex != "x", "z")
    with pytest.raises(ValueError, match=r"Partition \d: .*did not occur at fit: 'z'"):
        model.predict(lazy[COLUMNS], sensitive_features=strangers).compute()


@pytest.mark.slow
def test_workers_of_a_cluster_learn_the_same_maps(cluster, frozen):  # noqa: F811
    frame = people()
    lazy = dd.from_pandas(frame, npartitions=3)
    model = PartialParityCalibrator(frozen, INTERVAL)
    with cluster.as_current():
        model.fit(lazy[COLUMNS], lazy.y, sensitive_features=lazy.sex)
    expected = PartialParityCalibrator(frozen, INTERVAL)
    expected.fit(frame[COLUMNS], frame.y, sensitive_features=frame.sex)
    assert_allclose(model.thresholds_, expected.thresholds_, atol=1e-12)


def test_the_score_of_partitions_with_labels_in_another_order():
    X, y, sex, lazy = alignment.X, alignment.Y, alignment.SEX, alignment.lazy
    model = PartialParityCalibrator(FrozenEstimator(LogisticRegression().fit(X, y)), (0.1, 0.9))
    model.fit(lazy(X), lazy(y), sensitive_features=lazy(sex))
    here = model.score(X, y, sensitive_features=sex)
    assert model.score(lazy(X), lazy(y), sensitive_features=lazy(sex)) == pytest.approx(here)
    with pytest.raises(ValueError, match="labels of .* differ"):
        model.score(lazy(X), alignment.parts_reversed(y), sensitive_features=lazy(sex))
