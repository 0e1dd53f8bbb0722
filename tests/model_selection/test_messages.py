"""What paths, searches and splits say of wrong calls; a path says it before the first fit."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skfair import Sensitive
from skfair.classification import ConstrainedERMClassifier
from skfair.constraints import ConditionalOn, FalsePositiveParity
from skfair.constraints.rates import RateParity
from skfair.exceptions import LooseLimitWarning
from skfair.model_selection import (
    FairnessPath,
    StratifiedSensitiveKFold,
    StratifiedSensitiveShuffleSplit,
    best_within,
    fairness_path,
)
from tests.messages import messages, of_calls
from tests.model_selection.test_path import Blind
from tests.model_selection.test_search import RESULTS

X = np.column_stack([np.arange(80), np.arange(80) % 2])
Y, GROUPS = np.arange(80) // 2 % 2, np.array([["f", "old"], ["m", "young"]] * 40)
ROWS = {"X_test": X, "y_test": Y, "sensitive_features_test": GROUPS[:, 0]}


class Unfitted(Blind):
    """What is wrong is said before it is fitted."""

    def fit(self, X, y, **rows):
        pytest.fail("fitted first")


class OwnConstraint(RateParity):
    """Nothing says what measures it."""


def path(estimator=None, groups=GROUPS[:, 0], **options):
    given = {"max_disparities": (0.3, 0.1), "sensitive_features": groups} | ROWS
    fairness_path(Unfitted() if estimator is None else estimator, X, Y, **given | options)


def limited(constraint):
    path(Unfitted(constraint=constraint))


def by_attribute(sex, age=0.1):
    limits, apart = {"sex": sex, "age": age}, Sensitive(intersectional=False)
    model = ConstrainedERMClassifier(max_disparity=limits, sensitive=apart)
    groups = {"sex": GROUPS[:, 0], "age": GROUPS[:, 1]}
    path(model, groups, sensitive_features_test=groups, max_disparities=[4])


def select(max_disparity, limits=None):
    numbers = np.array([0.2, 0.1])
    made = FairnessPath(numbers, ["a", "b"], numbers, numbers, limits=limits)
    made.select(max_disparity=max_disparity)


test_wrong_paths_say_what_to_do = messages(
    *of_calls(
        path,
        ("the parameter max_disparity.*Logistic", {"estimator": LogisticRegression()}),
        ("a pipeline that ends", {"estimator": make_pipeline(StandardScaler(), Ridge())}),
        ("got 'Blind'", {"estimator": "Blind"}),
        ("metric must be a metric of skfair.metrics", {"metric": "demographic_parity_difference"}),
        error=TypeError,
    ),
    *of_calls(
        path,
        ("must be at least 0, got -0.1", {"max_disparities": [0.1, -0.1]}),
        ("max_disparities is empty", {"max_disparities": []}),
        ("max_disparities has 1 value", {"max_disparities": [0.1, np.nan]}),
        ("max_disparities must be numeric", {"max_disparities": ["a"]}),
        ("one limit for all.*set_params", {"max_disparities": [{"sex": 0.1}]}),
        ("one limit for all.*set_params", {"max_disparities": {"sex": 0.1}}),
        ("A test sample needs X_test, y_test and sens.*'y_test' is", {"y_test": None}),
        ("'X_test', 'y_test' is missing", {"X_test": None, "y_test": None}),
        ("'sensitive_features_test' is missing", {"sensitive_features_test": None}),
        ("n_splits and X_test were both given", {"n_splits": 3}),
        ("accuracies", {"scoring": "accuracies"}),
        ("limit in one place", {"estimator": ConstrainedERMClassifier(FalsePositiveParity(0.5))}),
    ),
    *of_calls(
        limited,
        ("no default metric.*'parity'", {"constraint": "parity"}),
        ("no default metric.*Pass metric=", {"constraint": None}),
        (r"no default.*OwnConstraint\(\)", {"constraint": OwnConstraint()}),
        ("no default.*ConditionalOn", {"constraint": ConditionalOn("equal_opportunity")}),
        ("Pass metric=", {"constraint": ["demographic_parity", OwnConstraint()]}),
    ),
    *of_calls(
        by_attribute,
        ("must be above 0", {"sex": 0.0}),
        ("must be above 0", {"sex": None, "age": None}),
        ("must be a number from 0", {"sex": "5 %"}),
    ),
    *of_calls(
        select,
        ("must be a number", {"max_disparity": "5 %"}),
        ("a number. For a limit of each attribute", {"max_disparity": {"sex": 0.1}}),
        ("attributes 'sex', 'age'", {"max_disparity": {"sex": 1}, "limits": {"sex": 1, "age": 1}}),
    ),
)


def within(score="accuracy", results=RESULTS, **limit):
    best_within(score=score, limit=limit)(results)


test_wrong_limits_of_searches_say_what_to_do = messages(
    *of_calls(
        within,
        ("no score 'auc'. Its scores are 'accuracy', 'gap', 'ratio'", {"score": "auc"}),
        ("no score 'odds'", {"odds": 0.1}),
        ("must be a number or a pair", {"gap": "5 %"}),
        ("must be a number or a pair", {"gap": (0, 1, 2)}),
        ("must be a number or a pair", {"gap": True}),
        ("can be met by no candidate", {"gap": -0.06}),
        ("can be met by no candidate", {"neg_demographic_parity_difference": -0.06}),
        ("can be met by no candidate", {"ratio": (0.9, 0.8)}),
        ("limits nothing.*0.05 for 5%", {"neg_equalized_odds_difference": 5}),
        (r"Pass the smallest.* \(0.8, None\)", {"demographic_parity_ratio": 0.8}),
        ("limits nothing", {"demographic_parity_ratio": (80, None)}),
        ("Score each attribute", {"gap": {"sex": 0.1, "age": 0.1}}),
        ("undefined", {"gap": 0.05, "results": RESULTS | {"mean_test_gap": np.full(4, np.nan)}}),
    ),
    *of_calls(
        lambda name: best_within(score="accuracy", limit={name: 0.8}),
        (r"equalized_odds_ratio': \(0.8, None\)", {"name": "equalized_odds_difference"}),
        (r"equalized_odds_ratio': \(0.8, None\)", {"name": "neg_equalized_odds_difference"}),
        error=LooseLimitWarning,
    ),
)


def split(kind=StratifiedSensitiveKFold, groups=("a", "a", "b", "b"), **options):
    rows = np.zeros((4, 1)), [0, 1, 0, 1]
    list(kind(**options).split(*rows, sensitive_features=groups))


def shuffled(**options):
    split(StratifiedSensitiveShuffleSplit, **options)


test_wrong_splits_say_what_to_do = messages(
    *of_calls(
        split,
        ("n_splits must be an integer of at least 2", {"n_splits": 1}),
        ("n_splits must be an integer", {"n_splits": 2.5}),
        ("no effect without shuffle", {"random_state": 0}),
        ("Cannot split 4 rows into 50 folds", {"n_splits": 50}),
        ("Use one of the two", {"n_splits": 2, "sensitive": [0]}),
        ("got no sensitive_features.*sensitive", {"n_splits": 2, "groups": None}),
    ),
    *of_calls(
        shuffled,
        ("test_size must be", {"test_size": 0.0}),
        ("test_size must be", {"test_size": 4}),
        ("leave 1 of 4 rows for training, 2 are wanted", {"test_size": 3, "train_size": 2}),
    ),
)
