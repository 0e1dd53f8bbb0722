"""What clusterers say of wrong calls, and of results to be careful with."""

from functools import cache

import numpy as np
import pandas as pd
import pytest
from sklearn.cluster import HDBSCAN, KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skfair import Sensitive
from skfair.cluster import FairAssignment, FairKMeans, ParetoFairKMeans
from skfair.cluster.kmeans.solver import CLUSTERING_SOLVERS
from skfair.exceptions import SmallGroupWarning
from tests.messages import later, messages
from tests.seeds import generator

pytestmark = pytest.mark.filterwarnings("ignore::skfair.exceptions.SmallGroupWarning")
X = generator().normal(size=(240, 2))
GROUPS = np.tile(["f", "m"], 120)
UNEVEN = pd.DataFrame({"even": GROUPS == "f", "rare": np.arange(240) % 5 == 0})
APART = {
    "sensitive": Sensitive(intersectional=False),
    "min_balance": 0.5,
    "relative_balance": False,
}
ALONE = KMeans(3, n_init=1)


@later
def fit(model=FairKMeans, n_clusters=4, rows=X, groups=GROUPS, weights=None, **options):
    model = model(n_clusters, **options)
    return model.fit(rows, sensitive_features=groups, sample_weight=weights)


@later
def assigned(clusterer=ALONE, weights=None, **options):
    model = FairAssignment(clusterer, **options)
    return model.fit(X, sensitive_features=GROUPS, sample_weight=weights)


def shares(bounds):
    return fit(min_balance=None, share_bounds=bounds)


def sizes(*bounds):
    return fit(size_bounds=bounds)


def balances(*values):
    return fit(ParetoFairKMeans, balances=list(values))


@cache
def fitted(**options):
    return fit(random_state=0, **options)()


@later
def assign(model=fitted, groups=GROUPS[:8], **given):
    return model().assign(X[:8], sensitive_features=groups, **given)


@cache
def front():
    return fit(ParetoFairKMeans, 3, balances=3, n_init=1, random_state=0)()


@later
def select(**point):
    return front().select(**point)


def in_another_order():
    frame, column = pd.DataFrame(X, columns=["a", "b"]), pd.Series(GROUPS)
    model = FairAssignment(KMeans(2, n_init=1)).fit(frame, sensitive_features=column)
    return model.assign(frame, sensitive_features=column[::-1])


def with_costs_of_all_rows():
    model = assigned(costs=lambda clusterer, _: clusterer.transform(X))()
    return model.predict(X[:5])


def front_without_cost():
    rows = {"rows": np.ones((240, 2)), "size_bounds": (0.0, 1.0)}
    return fit(ParetoFairKMeans, balances=2, **rows)().hypervolume()


def costs_beside_rows():
    return FairAssignment().fit(X, sensitive_features=GROUPS, costs=X)


HALF = GROUPS == "f"
NO_GROUP = "assign needs sensitive_features"
WRONG = [
    # FairKMeans
    ("n_clusters", fit(n_clusters=0)),
    ("min_balance", fit(min_balance=1.5)),
    ("no clustering solver 'magic'", fit(solver="magic")),
    ("n_samples=240 should be >= n_clusters=500", fit(n_clusters=500, min_balance=0)),
    (r"init has the shape \(3, 2\), expected \(4, 2\)", fit(init=X[:3])),
    ("All rows of some groups have weight 0", fit(weights=1.0 * HALF)),
    ("Pass min_balance=None", fit(share_bounds=0.8)),
    (r"factor f in \(0, 1\]", shares(1.5)),
    (r"factor f in \(0, 1\]", shares(0.0)),
    ("must be a pair", shares({"f": 0.3})),
    ("no group 'x'", shares({"x": (0, 1)})),
    ("lower <= upper", shares({"f": (0.6, 0.2)})),
    ("share of the sample", shares({"f": (0.9, 1.0)})),
    (r"whole sample is 0\.25", fit(groups=UNEVEN["rare"], **APART | {"min_balance": 0.26})),
    (r"whole sample is 0\.25", fit(groups=UNEVEN, **APART)),
    (r"whole sample is 0\.25", fit(groups=UNEVEN[["rare", "even"]], **APART)),
    # a batch
    (NO_GROUP, assign(groups=None)),
    (NO_GROUP, assign(assigned(), groups=None)),
    ("min_balance must be", assign(min_balance=1.5)),
    ("min_balance must be", assign(min_balance=-0.1)),
    ("min_balance must be", assign(min_balance="0.8")),
    ("before must be 'fit', counts or None, got 'yes", assign(before="yesterday")),
    (r"2 groups in each of 4 clusters; got the shape \(3, 2", assign(before=np.ones((3, 2)))),
    ("ask for 40 at least", assign(fit(size_bounds=(10, 240)))),
    ("different order", in_another_order),
    # sizes
    (r"ask for 288 at least.*got \(0.3, 0.5\) for 4 clusters.*fewer clusters", sizes(0.3, 0.5)),
    ("allow 200 at most.*less than the weight of all rows.*240. Raise the second", sizes(0, 50)),
    ("allow cluster 0 no size: at least 70 and at most 50", sizes(70, 50)),
    ("allow cluster 1 no size", sizes([1, 9, 1, 1], [200, 8, 200, 200])),
    ("min_balance contradict.*each of 2 groups.*holds 1", sizes([0] * 4, [1, 200, 200, 200])),
    (r"must be a pair \(low, high\).*got \(0.2, 1.5\)", sizes(0.2, 1.5)),
    ("must be a pair", sizes(-1, 100)),
    ("must be a pair", sizes(np.nan, 1.0)),
    ("must be a pair", sizes(True, 100)),
    ("must be a pair", sizes(0.1, 0.2, 0.3)),
    ("for each of 4 clusters", sizes([1, 2], 200)),
    ("at least 35 and at most 34 in whole rows", fit(n_clusters=7, size_bounds=(1 / 7, 1 / 7))),
    ("one row weighs 200", assigned(weights=np.r_[200.0, np.ones(239)], size_bounds=(0, 190))),
    # FairAssignment
    ("finite numbers of shape", assigned(costs=lambda clusterer, X: np.ones(len(X)))),
    (r"240, n_clusters\), got .* \(5, 2\)", assigned(costs=lambda clusterer, X: np.ones((5, 2)))),
    (r"5, n_clusters\), got the shape \(240, 3\)", with_costs_of_all_rows),
    ("X holds the cost of each row.*Leave one of the two", assigned(costs="precomputed")),
    # ParetoFairKMeans
    ("balances", fit(ParetoFairKMeans, balances=1)),
    (r"balances must lie in \[0, 1\]", balances(0.5, 1.5)),
    (r"balances must lie in \[0, 1\]", balances(np.nan)),
    ("no clustering solver 'magic'", fit(ParetoFairKMeans, solver="magic")),
    ("should be >= n_clusters", fit(ParetoFairKMeans, 500)),
    ("All rows of some groups have weight 0", fit(ParetoFairKMeans, weights=1.0 * HALF)),
    ("smallest cost of the front is 0", front_without_cost),
    ("either min_balance or index", select()),
    ("either min_balance or index", select(min_balance=0, index=1)),
]
test_errors = messages(
    *((ValueError, *row) for row in WRONG),
    (TypeError, "Pass costs=", assigned(HDBSCAN(copy=True))),
    (TypeError, r"costs='precomputed'\).*pass the costs as X", costs_beside_rows),
)
FITTED = KMeans(3, n_init=1).fit(X)
TWO, SPOTS = {"n_clusters": 3, "min_balance": None}, np.repeat([[0.0], [1]], 120, axis=0)
BEHIND = {
    "clusterer": make_pipeline(StandardScaler(), FITTED),
    "costs": lambda clusterer, X: clusterer.transform(X),
}
test_warnings = messages(
    (RuntimeWarning, "one run is made instead of n_init=10", fit(init=X[:4], n_init=10)),
    (ConvergenceWarning, "centres still move after max_iter=1", fit(init=9 + X[:4], max_iter=1)),
    (ConvergenceWarning, "1 of 3 clusters are empty", fit(rows=SPOTS, **TWO)),
    (ConvergenceWarning, "1 of 3 clusters are empty", fit(rows=SPOTS, **TWO, share_bounds=0.5)),
    (UserWarning, "KMeans is fitted already.*FrozenEstimator.*clone", assigned(FITTED)),
    (UserWarning, "Pipeline is fitted already", assigned(**BEHIND)),
)
FRONTS = [name for name in CLUSTERING_SOLVERS if CLUSTERING_SOLVERS[name].has_front]


@pytest.mark.parametrize("solver", FRONTS)
def test_groups_smaller_than_the_number_of_clusters_have_no_front(solver):
    """No clustering has a positive balance."""
    groups = np.r_[["rare"] * 3, ["usual"] * 237]
    for call in (fit(ParetoFairKMeans, groups=groups, solver=solver), fit(groups=groups)):
        with pytest.raises(ValueError, match=r"some groups are smaller: 'rare' \(3 rows\)"):
            call()
    with pytest.warns(SmallGroupWarning, match="fewer than 30 rows"):
        assert fit(rows=X[2:], groups=groups[2:], min_balance=0)().balance_ == 0
