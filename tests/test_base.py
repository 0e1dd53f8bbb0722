import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn import config_context
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils._param_validation import InvalidParameterError

from skfair.base import fit_method, report_iterations
from skfair.classification import ConstrainedERMClassifier, FairDecisionClassifier
from skfair.exceptions import MissingGroupsWarning, SmallGroupWarning
from skfair.read import read_rows
from skfair.regression import FairDecisionRegressor
from tests.messages import messages
from tests.older import ProgressBar, ScoringMonitor, needs_callbacks
from tests.prototypes import CentroidClassifier, GroupAwareClassifier, QuietCallback, SeedClusterer
from tests.seeds import generator, seed_of


@pytest.fixture
def data():
    rng = generator(0)
    n = 150
    groups = np.repeat(["f", "m"], n // 2)
    X = rng.normal(size=(n, 3))
    y = (X[:, 0] + rng.normal(size=n) > 0).astype(int)
    order = rng.permutation(n)
    return X[order], y[order], groups[order]


@pytest.fixture
def frame(data):
    X, y, groups = data
    table = pd.DataFrame(X, columns=["a", "b", "c"])
    table.insert(1, "sex", groups)
    return table, y


def test_missing_groups_warn_at_the_callers_line(data):
    X, y, _ = data
    with pytest.warns(MissingGroupsWarning, match="compares groups is active") as record:
        model = CentroidClassifier().fit(X, y)
    assert record[0].filename == __file__
    assert model.groups_.tolist() == ["all"]


def test_small_groups_warn_at_the_callers_line(data):
    X, y, groups = data
    groups = np.where(np.arange(150) < 5, "x", groups)
    with pytest.warns(SmallGroupWarning, match=r"'x' \(5\)") as record:
        CentroidClassifier().fit(X, y, sensitive_features=groups)
    assert record[0].filename == __file__


@pytest.mark.parametrize("columns", ["sex", ["sex"], 1, [1], [-3], np.array([1])])
def test_named_columns_by_name_and_position(data, frame, columns):
    X, y, groups = data
    table, _ = frame
    by_metadata = CentroidClassifier().fit(X, y, sensitive_features=groups)
    by_column = CentroidClassifier(sensitive=columns).fit(table, y)
    assert np.array_equal(by_metadata.centers_, by_column.centers_)
    assert np.array_equal(by_metadata.predict(X), by_column.predict(table))
    assert by_column.feature_names_in_.tolist() == ["a", "sex", "b", "c"]
    assert by_column.model_features_.tolist() == ["a", "b", "c"]
    assert by_column.n_features_in_ == 4


def test_named_columns_of_arrays_lists_and_sparse_matrices(data):
    X, y, groups = data
    codes = (groups == "m").astype(float)
    table = np.column_stack((X, codes))
    expected = CentroidClassifier().fit(X, y, sensitive_features=codes)
    for container in (table, table.tolist(), table.astype(object)):
        model = CentroidClassifier(sensitive=3).fit(container, y)
        assert np.allclose(model.centers_, expected.centers_)
        assert model.model_features_.tolist() == [0, 1, 2]
    strings = np.column_stack((X.astype(object), groups))
    model = CentroidClassifier(sensitive=3).fit(strings, y)
    assert np.allclose(model.centers_, expected.centers_)
    with pytest.raises(TypeError, match="[Ss]parse"):  # the prototype takes none; the reader does
        CentroidClassifier(sensitive=3).fit(sparse.csr_array(table), y)


@pytest.mark.parametrize("columns", ["sex", 1])
def test_a_table_without_the_sensitive_column_is_enough_to_predict(frame, columns):
    table, y = frame
    model = CentroidClassifier(sensitive=columns).fit(table, y)
    rest = table.drop(columns="sex")
    assert np.array_equal(model.predict(rest), model.predict(table))
    for other in (rest[["b", "a", "c"]], rest.drop(columns="a")):
        with pytest.raises(ValueError, match="feature names"):
            model.predict(other)
    aware = GroupAwareClassifier(sensitive=columns).fit(table, y)
    with pytest.raises(ValueError, match="X has no column 'sex'"):
        aware.predict(rest)


def test_numbered_columns_of_a_table_are_no_names(frame):
    table, y = frame
    table = table.set_axis([3, 1, 0, 2], axis=1)
    model = CentroidClassifier(sensitive=1).fit(table, y)
    with pytest.raises(ValueError, match="3 features"):
        model.predict(table[model.model_features_.tolist()])


def test_groups_at_prediction(data, frame):
    X, y, groups = data
    table, _ = frame
    model = GroupAwareClassifier().fit(X, y, sensitive_features=groups)
    predicted = model.predict(X, sensitive_features=groups)
    assert (predicted[groups == "f"] == 1).all()
    assert not (predicted[groups == "m"] == 1).all()
    from_columns = GroupAwareClassifier(sensitive="sex").fit(table, y)
    assert np.array_equal(from_columns.predict(table), predicted)


X, GROUPS, Y = np.tile([1.0, 2, 3], (150, 1)), np.array(["f", "m"] * 75), np.arange(150) % 3 % 2
TABLE = pd.DataFrame(X, columns=list("abc"))
TABLE.insert(1, "sex", GROUPS)
BACKWARDS = pd.Series(GROUPS, index=np.arange(150)[::-1])
OF_GROUPS = {"sensitive_features": GROUPS}


def fit(sensitive=None, X=TABLE, *weights, **given):
    """Return a call that fits."""
    return lambda: CentroidClassifier(sensitive=sensitive).fit(X, Y, *weights, **given)


def predict(X, groups=None, fitted_to=TABLE):
    """Return a call that predicts, by a column or else by groups that are passed."""
    model = GroupAwareClassifier(sensitive="sex" if groups is None else None)
    model.fit(fitted_to, Y, **({} if groups is None else OF_GROUPS))
    given = {} if groups is None else {"sensitive_features": groups}
    return lambda: model.predict(X, **given)


test_wrong_groups_and_columns_are_explained = messages(
    (ValueError, "no column 'gender'. Its columns are 'a', 'sex', 'b', 'c'", fit("gender")),
    (ValueError, "position 7, but X has 4 columns", fit([7])),
    (ValueError, "sensitive is empty", fit([])),
    (ValueError, "names a column twice", fit(["sex", 1])),
    (ValueError, "no column True", fit([True])),
    (InvalidParameterError, "sensitive", fit(1.5)),
    (ValueError, "only sensitive columns", fit(["a", "sex", "b", "c"])),
    (ValueError, "Use one of the two", fit("sex", **OF_GROUPS)),
    (ValueError, "without column names.*set_output", fit("sex", X)),
    (ValueError, "must be 2-dimensional", fit(0, Y)),
    (ValueError, "has 149 rows but the other data", fit(None, X, sensitive_features=GROUPS[1:])),
    (ValueError, "different order", fit(None, TABLE[["a"]], sensitive_features=BACKWARDS)),
    (
        ValueError,
        "sample_weight and the data .* different order",
        fit(None, TABLE[["a"]], pd.Series(1.0, BACKWARDS.index), **OF_GROUPS),
    ),
    (ValueError, "feature names should match", predict(TABLE.drop(columns="a"))),
    (ValueError, "NaN", predict(TABLE.assign(a=np.nan))),
    (ValueError, "has 2 rows but the other data have 1", predict([[1.0] * 3], ["f", "m"], X)),
    (
        ValueError,
        "different order",
        predict(TABLE[["a"]][:3], BACKWARDS[-3:], TABLE[["a"]]),
    ),
)


def test_metadata_routing_to_a_clusterer(data):
    X, _, groups = data
    with config_context(enable_metadata_routing=True), warnings.catch_warnings():
        warnings.simplefilter("error")
        clusters = make_pipeline(StandardScaler(), SeedClusterer(3, random_state=seed_of(0)))
        labels = clusters.fit_predict(X, sensitive_features=groups)
        assert np.array_equal(labels, clusters[-1].labels_)
        assert clusters[-1].groups_.tolist() == ["f", "m"]


def test_groups_in_a_column_pass_a_pipeline_without_routing(data, frame):
    _, y, _ = data
    table, _ = frame
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        columns = make_column_transformer(
            (StandardScaler(), ["a", "b", "c"]),
            remainder="passthrough",
            verbose_feature_names_out=False,
        ).set_output(transform="pandas")
        in_columns = make_pipeline(columns, CentroidClassifier(sensitive="sex"))
        assert cross_val_score(in_columns, table, y, cv=2, error_score="raise").shape == (2,)


class Interrupting(QuietCallback):
    """A callback during which the user presses Ctrl-C."""

    def __init__(self):
        self.torn_down = False

    def teardown(self, estimator, context):
        self.torn_down = True

    def on_fit_task_end(self, estimator, context):
        raise KeyboardInterrupt


@needs_callbacks
def test_an_interrupted_fit_leaves_the_estimator_as_it_was(data):
    X, y, groups = data
    interrupt = Interrupting()
    model = CentroidClassifier().fit(X, y, sensitive_features=groups).set_callbacks(interrupt)
    before = vars(model).copy()
    with pytest.raises(KeyboardInterrupt):
        model.fit(2 * X, y, sensitive_features=groups)
    assert interrupt.torn_down
    assert vars(model) == before
    model.set_callbacks().fit(2 * X, y, sensitive_features=groups)


class Recorder(QuietCallback):
    """Counts tasks, keeps the fitted estimators, and asks to stop after some iterations."""

    def __init__(self, stop_after=None):
        self.begun, self.ended, self.scores, self.stop_after = [], [], [], stop_after

    def on_fit_task_begin(self, estimator, context):
        self.begun.append((context.task_name, context.task_id))

    def on_fit_task_end(self, estimator, context, *, X=None, y=None, fitted_estimator=None):
        self.ended.append((context.task_name, context.task_id))
        if fitted_estimator is not None:
            self.scores.append(fitted_estimator.score(X, y))
        iterations = [task for task in self.ended if task[0] == "iteration"]
        return len(iterations) == self.stop_after


@needs_callbacks
def test_callbacks_follow_the_iterations(data, frame):
    X, y, groups = data
    recorder = Recorder()
    model = CentroidClassifier(max_iter=3).set_callbacks(recorder)
    model.fit(X, y, sensitive_features=groups)
    expected = {("fit", 0), ("iteration", 0), ("iteration", 1), ("iteration", 2)}
    assert set(recorder.begun) == set(recorder.ended) == expected
    assert recorder.scores[-1] == model.score(X, y)
    table, _ = frame  # the monitored data are those the user passed, sensitive columns included
    recorder = Recorder()
    CentroidClassifier(sensitive="sex").set_callbacks(recorder).fit(table, y)
    assert len(recorder.scores) == 5


@needs_callbacks
def test_callbacks_may_stop_the_solver(data):
    X, y, groups = data
    recorder = Recorder(stop_after=2)
    model = CentroidClassifier(max_iter=10).set_callbacks(recorder)
    model.fit(X, y, sensitive_features=groups)
    assert model.n_iter_ == 2
    assert sorted(recorder.begun) == sorted(recorder.ended)


class CallingClassifier(CentroidClassifier):
    """Calls back twice, whatever ``max_iter`` announces."""

    @fit_method
    def fit(self, X, y, *, sensitive_features=None):
        self._keep(read_rows(self, X, y, sensitive_features=sensitive_features).reading)
        fitted = {"classes_": np.array([0, 1]), "centers_": np.eye(2, 3)}
        with report_iterations(
            self, X, y, max_iter=self.max_iter, attributes=lambda state: fitted
        ) as callback:
            assert callback(None) is False
            assert callback(None) is False
        return self


@needs_callbacks
@pytest.mark.parametrize(("max_iter", "n_tasks"), [(1, 1), (2, 2), (9, 3)])
def test_every_task_that_is_begun_is_ended(data, max_iter, n_tasks):
    """Also the one begun for an iteration that an early converging solver did not need."""
    X, y, groups = data
    recorder = Recorder()
    model = CallingClassifier(max_iter=max_iter).set_callbacks(recorder)
    model.fit(X, y, sensitive_features=groups)
    assert sorted(recorder.begun) == sorted(recorder.ended)
    assert len([task for task in recorder.ended if task[0] == "iteration"]) == n_tasks


@needs_callbacks
def test_scikit_learns_own_callbacks(data, capsys):
    X, y, groups = data
    monitor = ScoringMonitor(scoring="accuracy")
    model = CentroidClassifier(max_iter=4).set_callbacks(monitor, ProgressBar())
    model.fit(X, y, sensitive_features=groups)
    log = [row for row in monitor.get_logs().data if row["task_name"] == "iteration"]
    assert len(log) == 4
    assert "CentroidClassifier" in capsys.readouterr().out
    for routing in (False, True):
        with config_context(enable_metadata_routing=routing):
            monitor = ScoringMonitor(scoring="accuracy")
            search = GridSearchCV(
                CentroidClassifier(max_iter=2).set_callbacks(monitor), {"max_iter": [1, 2]}, cv=2
            )
            search.set_callbacks(ProgressBar()).fit(X, y, sensitive_features=groups)
    capsys.readouterr()


def test_a_model_in_place_of_a_constraint_is_named():
    X = np.arange(20.0)[:, None]
    y, groups = np.arange(20) % 2, np.arange(20) // 2 % 2
    for given in ((LogisticRegression(),), (LogisticRegression(), "equalized_odds")):
        model = ConstrainedERMClassifier(*given)
        with pytest.raises(ValueError, match="takes no estimator.*FairDecisionClassifier"):
            model.fit(X, y, sensitive_features=groups)
    for given in (("equalized_odds", LogisticRegression()), ("equalized_odds",)):
        misplaced = FairDecisionClassifier(*given)
        with pytest.raises(
            ValueError, match="got estimator='equalized_odds'. Pass the model first"
        ):
            misplaced.fit(X, y, sensitive_features=groups)


def test_arguments_of_fit_and_seeds_of_nothing_say_where_they_belong():
    with pytest.raises(TypeError, match="passed to fit as sensitive_features="):
        ConstrainedERMClassifier(sensitive_features="sex")
    with pytest.raises(TypeError, match="draws no random numbers itself"):
        FairDecisionRegressor(random_state=0)
