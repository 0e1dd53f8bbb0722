"""Fits within intervals, for the tests that go over all families (:mod:`tests.families`)."""

from functools import partial

from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skfair import Sensitive
from skfair.classification import PartialParityCalibrator, PartialParityClassifier
from skfair.constraints.partial import StatisticalParity
from skfair.losses import LogLoss
from skfair.metrics import (
    partial_equal_opportunity_gap,
    partial_equalized_odds_gap,
    partial_statistical_parity_gap,
)
from skfair.partial_parity.strict_rounds import INTERVAL_SOLVERS
from tests.seeds import generator

CLASSIFIER, CALIBRATOR = BOTH = PartialParityClassifier, PartialParityCalibrator
APART = {"sensitive": Sensitive(intersectional=False)}
HALF = (0.0, 0.5)
rng = generator(0)
SEX = rng.choice(["f", "m"], 240)
X = rng.normal(size=(240, 3)) + 2 * (SEX == "m")[:, None] * [1, 0, 0]
Y = (X[:, 0] + rng.normal(size=240) > 1).astype(int)
W = rng.random(240) + 0.5
BY_SEX, ALONE = {"sensitive_features": SEX}, {"sensitive_features": ["all"] * 240}
TO_STEP = {"sample_weight": W, "sensitive_features": SEX}
TO_STEP = {f"partialparitycalibrator__{name}": value for name, value in TO_STEP.items()}


def neighbours():
    return CALIBRATOR(KNeighborsClassifier(), max_disparity=0.2, cv=2)


def fit_around(model, X, y, sex):
    """Fit maps to the scores of a model of two columns, which knows other rows."""
    frozen = FrozenEstimator(LogisticRegression().fit(model, Y))
    return CALIBRATOR(frozen, (0.1, 0.9)).fit(X, y, sensitive_features=sex)


TRAINED, CALIBRATORS = [CLASSIFIER], [CALIBRATOR]
gap_of_half = partial(partial_statistical_parity_gap, interval=HALF)
CONTRACTS_OF_SCORES = {
    "PartialParityClassifier": (partial(CLASSIFIER, HALF), gap_of_half, 0.2),
    "PartialParityClassifier+": (partial(CLASSIFIER, HALF, group_aware=True), gap_of_half, 0.2),
    "PartialParityCalibrator": (partial(CALIBRATOR, interval=HALF, cv=None), gap_of_half, 0.2),
}
AROUND_FITTED_MODELS = ["PartialParityCalibrator"]
REGISTRIES = {"INTERVAL_SOLVERS": INTERVAL_SOLVERS}
SOLVER_KINDS = [INTERVAL_SOLVERS[name] for name in INTERVAL_SOLVERS]
SOLVER_TESTS = {"PartialParityClassifier": "test_shares_of_an_interval_keep_the_limit"}
WITHIN_CLASSES = [
    (partial_equal_opportunity_gap, {"interval": (0.0, 0.6)}),
    (partial_equalized_odds_gap, {"interval": (0.0, 0.6)}),
]
AROUND_MODELS = {"calibrated": (CALIBRATOR, LogisticRegression, {"interval": HALF})}
OUT_OF_FOLD = [CALIBRATOR]
MISSPELT = [
    (CLASSIFIER, "constraint", "equal_oportunity", "equal_opportunity"),
    (CLASSIFIER, "solver", "al_newtn", "al_newton"),
]
SUMMARIES = [
    *(
        (kind(max_disparity=0.25), {"statistical_parity": 0.25})
        for kind in (CLASSIFIER, CALIBRATOR)
    ),
    (
        CLASSIFIER(max_disparity={"sex": 0.2, "age": 0.3}, **APART),
        {"statistical_parity of sex": 0.2, "statistical_parity of age": 0.3},
    ),
]
CHANGES = [
    *((CLASSIFIER(max_disparity=0.2, group_aware=aware), 1.0) for aware in (False, True)),
    (CALIBRATOR(constraint="demographic_parity", cv=None), None),
]
CERTIFIED = [
    CLASSIFIER((0, 0.9), "group_auc", 0.4, certificate=0.5),
    CALIBRATOR(None, (0, 0.9), "demographic_parity", 0.5, certificate=0.5),
]
CERTIFIED_BY_HALVES = {
    "partial": CLASSIFIER(
        (0.0, 0.8), max_disparity=0.9, group_aware=True, certificate=0.9, max_iter=5, random_state=0
    ),
    "partial odds": CLASSIFIER(
        (0.0, 0.8), "equalized_odds", max_disparity=0.9, certificate=0.9, max_iter=5, random_state=0
    ),
    "calibrated": CALIBRATOR(interval=(0.0, 0.8), max_disparity=0.9, certificate=0.9),
}
WITHOUT_PAGES = [CLASSIFIER((0.1, 0.6), "demographic_parity")]
OWN_LIMITS = [(CLASSIFIER((0.1, 0.5)), StatisticalParity(0.2))]
LIMITED = [partial(CLASSIFIER, group_aware=True), partial(CALIBRATOR, cv=2)]
BY_POSITIVE_CLASS = [
    CLASSIFIER((0.1, 0.5), max_disparity=0.3),
    CLASSIFIER((0, 1), "equal_opportunity", 0.3),
    CALIBRATOR(None, (0.0, 0.5), max_disparity=0.3),
]
BY_BOTH_CLASSES = [
    CLASSIFIER((0, 1), max_disparity=0.3),
    CALIBRATOR(None, [[0, 1]], "demographic_parity", 0.3),
]
BLIND = {"partial": CLASSIFIER((0.0, 0.8), max_disparity=0.9)}
AWARE = {"calibrated": CALIBRATOR(max_disparity=0.9)}
ALIGNED = {
    "calibrator": CALIBRATOR(LogisticRegression(), (0.1, 0.9)),
    "shortlist": CLASSIFIER((0.1, 0.9), max_disparity=0.5),
}
FITS_OF_PARTITIONS = {"bins": partial(fit_around, X[:, :2])}
WRAPPED = {
    "partial": CLASSIFIER(max_disparity=0.4),
    "partial aware": CLASSIFIER(max_disparity=0.4, group_aware=True),
    "calibrator": CALIBRATOR(max_disparity=0.4),
}
ONNX_SCORES = {
    "``PartialParityClassifier(group_aware=False)``": CLASSIFIER((0.1, 0.5), max_disparity=0.2)
}
THREADS = {"partial": (CLASSIFIER(max_disparity=0.3), 600)}
ON_ONE_THREAD = [(CLASSIFIER(max_disparity=0.3, max_iter=20, loss=LogLoss()), LogLoss, "parts")]
ROWS, SEEDED = {"X": X, "y": Y, **BY_SEX}, {"random_state": 0}
ENDINGS = {
    CLASSIFIER: {
        "converged": (CLASSIFIER(max_disparity=0.3, group_aware=True), ROWS),
        "max_iter": (CLASSIFIER(enforce="surrogate", max_iter=1), ROWS),
        "infeasible": (CLASSIFIER((0.1, 0.6), max_iter=1), ROWS),
        "certified": (CLASSIFIER((0, 0.9), "group_auc", 0.95, certificate=0.5, **SEEDED), ROWS),
        "no_solution": (CLASSIFIER(max_disparity=0.0, certificate=0.9, max_iter=5), ROWS),
    },
    CALIBRATOR: {
        "converged": (CALIBRATOR(max_disparity=0.3), ROWS),
        "certified": (
            CALIBRATOR(None, (0, 0.9), "demographic_parity", 0.95, certificate=0.5),
            ROWS,
        ),
        "no_solution": (CALIBRATOR(max_disparity=0.01, certificate=0.9), ROWS),
    },
}
BY_ROUNDING = [(CALIBRATOR, "infeasible")]
WARNINGS = [
    ("PartialParityClassifier was fitted without", lambda: CLASSIFIER((0.1, 0.6)).fit(X, Y)),
    ("PartialParityCalibrator was fitted without", lambda: CALIBRATOR().fit(X, Y)),
    (
        "single group, 'all', so there is nothing",
        lambda: CLASSIFIER((0.1, 0.6)).fit(X, Y, **ALONE),
    ),
    ("smallest reached is", lambda: CLASSIFIER((0.1, 0.6), max_iter=1).fit(X, Y, **BY_SEX)),
    (
        "is less than one row",
        lambda: CLASSIFIER((0.1, 0.6), max_disparity=1e-4).fit(X, Y, **BY_SEX),
    ),
    ("takes no sample_weight", lambda: neighbours().fit(X, Y, sample_weight=W, **BY_SEX)),
    (
        "takes no sample_weight",
        lambda: make_pipeline(StandardScaler(), neighbours()).fit(X, Y, **TO_STEP),
    ),
]
FIRST_FITS = {"PartialParityClassifier(max_iter=3).fit(X, y, sensitive_features=g)": (8, 3)}
