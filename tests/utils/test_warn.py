"""Every warning of the package points at the line of the user, however the estimator is called."""

import inspect
import re
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from sklearn import config_context
from sklearn.cluster import KMeans
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import skfair
from skfair.classification import (
    ConstrainedERMClassifier,
)
from skfair.cluster import FairAssignment
from skfair.groups.encoding import encode_groups
from skfair.metrics import demographic_parity_difference, make_fairness_scorer
from skfair.model_selection import best_within
from skfair.regression import ConstrainedERMRegressor
from skfair.utils.warn import hidden, unwanted, warn_user
from tests.families import rows_of_families
from tests.prototypes import CentroidClassifier
from tests.seeds import generator

N = 240
rng = generator(0)
SEX = rng.choice(["f", "m"], N)
FEW = np.where(np.arange(N) % 12, "many", "few")
X = rng.normal(size=(N, 3)) + 2 * (SEX == "m")[:, None] * [1, 0, 0]
Y = (X[:, 0] + rng.normal(size=N) > 1).astype(int)
W = rng.random(N) + 0.5
BY_SEX, BY_FEW, ALONE = ({"sensitive_features": groups} for groups in (SEX, FEW, ["all"] * N))
TWO, MIXED = np.array(["a", "b"] * 40), np.isin(np.arange(80) % 8, [1, 3, 5]).astype(int)
ONLY_GROUP = np.array([[0.0], [1.0]] * 40)  # the one feature is the group
SCORES = {
    "accuracy": "accuracy",
    "gap": make_fairness_scorer(demographic_parity_difference, greater_is_better=False),
}

BEST = best_within(score="accuracy", limit={"gap": 0.0})
STEP = "constrainedermclassifier"
ERM, REGRESSOR = ConstrainedERMClassifier, ConstrainedERMRegressor


def search(estimator, **options):
    return GridSearchCV(estimator, {}, cv=2, error_score="raise", **options)


def pipeline(estimator):
    return make_pipeline(StandardScaler(), estimator)


def routed(call):
    with config_context(enable_metadata_routing=True):
        return call()  # the line in the table is further in, so it is the one that counts


# What is said, and a call that makes it said.
CALLS = [
    ("ConstrainedERMClassifier was fitted without", lambda: ERM().fit(X, Y)),
    ("ConstrainedERMRegressor was fitted without", lambda: REGRESSOR().fit(X, X[:, 0])),
    *rows_of_families("WARNINGS"),
    ("was fitted without", lambda: pipeline(ERM()).fit(X, Y)),
    ("was fitted without", lambda: search(ERM()).fit(X, Y)),
    ("was fitted without", lambda: cross_validate(ERM(), X, Y, cv=2, error_score="raise")),
    ("was fitted without", lambda: routed(lambda: search(pipeline(ERM())).fit(X, Y))),
    ("was fitted without", lambda: CentroidClassifier().fit(X, Y)),  # its fit is not ours
    ("was fitted without", lambda: search(pipeline(CentroidClassifier())).fit(X, Y)),
    ("1 group of fewer than 30 rows", lambda: ERM().fit(X, Y, **BY_FEW)),
    ("of fewer than 30", lambda: pipeline(ERM()).fit(X, Y, **{f"{STEP}__sensitive_features": FEW})),
    ("of fewer than 30", lambda: search(ERM()).fit(X, Y, **BY_FEW)),
    ("of fewer than 30", lambda: routed(lambda: search(pipeline(ERM())).fit(X, Y, **BY_FEW))),
    ("of fewer than 30", lambda: ERM().partial_fit(X, Y, **BY_FEW)),
    ("of fewer than 30", lambda: encode_groups(FEW).warn_small()),
    ("single group, 'all', so there is nothing", lambda: ERM().fit(X, Y, **ALONE)),
    (
        "single group, 'all', so there is nothing",
        lambda: pipeline(ERM()).fit(X, Y, **{f"{STEP}__sensitive_features": ["all"] * N}),
    ),
    ("smallest reached is", lambda: ERM("bounded_group_loss", 0.01).fit(X, Y, **BY_SEX)),
    ("smallest reached is", lambda: search(ERM("bounded_group_loss", 0.01)).fit(X, Y, **BY_SEX)),
    ("the KKT residual is", lambda: ERM(enforce="surrogate", max_iter=1).fit(X, Y, **BY_SEX)),
    (
        "get the same decision",
        lambda: ERM(max_disparity=0.1).fit(ONLY_GROUP, MIXED, sensitive_features=TWO),
    ),
    (
        "is within the limits",
        lambda: routed(lambda: search(ERM(), scoring=SCORES, refit=BEST).fit(X, Y, **BY_SEX)),
    ),
]


def lines_of(code):
    """Every line of a function and of those inside it."""
    inside = [part for part in code.co_consts if inspect.iscode(part)]
    return {line for *_, line in code.co_lines()}.union(*map(lines_of, inside))


@pytest.mark.parametrize(("said", "call"), CALLS)
def test_warnings_point_at_the_line_of_the_user(said, call):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    ours = [one for one in caught if re.search(said, str(one.message))]
    assert ours
    places = {(one.filename, one.lineno) for one in ours}
    assert places <= {(call.__code__.co_filename, line) for line in lines_of(call.__code__)}


def test_a_warning_is_raised_in_one_way_only():
    """A number of frames is wrong as soon as somebody calls from elsewhere."""
    for path in Path(skfair.__file__).parent.rglob("*.py"):
        if path.name != "warn.py":
            source = path.read_text()
            assert "stacklevel" not in source, path
            assert "warnings.warn(" not in source, path


def test_fits_in_threads_leave_the_filters_of_warnings(monkeypatch):
    """The first fit ends while the second one is in the middle of its starts."""
    of_first, of_second, first_is_done = (threading.Event() for _ in range(3))
    fit, order = KMeans.fit, []

    def in_step(self, *args, **kwargs):
        if threading.get_ident() not in order:
            order.append(threading.get_ident())
            is_first = len(order) == 1
            (of_first if is_first else of_second).set()
            (of_second if is_first else first_is_done).wait(10)
        return fit(self, *args, **kwargs)

    monkeypatch.setattr(KMeans, "fit", in_step)
    before = list(warnings.filters)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(FairAssignment(KMeans(2)).fit, X, **BY_SEX)
        of_first.wait(10)
        second = pool.submit(FairAssignment(KMeans(2)).fit, X, **BY_SEX)
        first.result()
        first_is_done.set()
        second.result()
    assert list(warnings.filters) == before


@pytest.mark.parametrize("is_ours_first", [True, False])
def test_hiding_leaves_no_filter_behind(is_ours_first):
    """Other code, such as scikit-learn's, sets filters aside between, and puts them back after."""
    before = list(warnings.filters)
    contexts = [hidden("Number of", UserWarning), warnings.catch_warnings()]
    for one in contexts if is_ours_first else contexts[::-1]:
        one.__enter__()
    for one in contexts if is_ours_first else contexts[::-1]:
        one.__exit__(None, None, None)
    assert list(warnings.filters) == before


def test_what_the_user_hides_stays_hidden():
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Number of", UserWarning)
        before = list(warnings.filters)
        with hidden("Number of", UserWarning), hidden("Number of", UserWarning):
            pass
        assert list(warnings.filters) == before


def test_what_is_unwanted_in_a_thread_is_not_so_in_others():
    with warnings.catch_warnings(record=True) as caught, ThreadPoolExecutor(1) as pool:
        warnings.simplefilter("always")
        with unwanted(UserWarning):
            warn_user("here")
            pool.submit(warn_user, "there").result()
        warn_user("later")
    assert [str(one.message) for one in caught] == ["there", "later"]


def test_filters_are_changed_in_one_way_only():
    """``catch_warnings`` in a fit changes what other threads are warned of."""
    package = Path(skfair.__file__).parent
    found = [file for file in package.rglob("*.py") if "catch_warnings()" in file.read_text()]
    assert [file.name for file in found] == ["warm.py"]  # a command: no other threads
