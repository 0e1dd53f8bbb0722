"""Good and odd values of each argument, found by the argument's name.

An entry of :data:`ARGUMENTS` is (good, odd): a function of the sample or a list to choose from,
and the odd values that are tried besides :data:`~tests.fuzz.values.JUNK` (a dict spoils the good
value instead). ``"function.argument"`` goes before ``"argument"``. Those of a family are in its
file in :mod:`tests.fuzz.families`. A public function with an argument that is nowhere has no
strategy, and ``test_fuzz.py`` fails.
"""

import numpy as np
import pandas as pd
from hypothesis import strategies as st
from sklearn.cluster import KMeans
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score, roc_auc_score
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skfair import Cohort, metrics
from skfair.classification import ConstrainedERMClassifier, FairDecisionClassifier
from skfair.constraints import DemographicParity
from skfair.model_selection import FairnessPath, StratifiedSensitiveKFold
from tests.families import by_families
from tests.fuzz.values import JUNK, ODD_MATRICES, ODD_VECTORS, spoil
from tests.registries import CONSTRAINTS, LOSSES, SOLVERS

REPORT = metrics.group_report([1, 0], [1, 0], sensitive_features=["a", "b"])
BOOLEAN = ([True, False], [2, "yes", np.True_])
NUMBER = ([0.5, 0.1, 1.0], [-0.5, 7, 1e9])
COUNT = ([1, 2, 3, 5], [-3, 0, 2.0, np.int8(2), 40])
WORD = ([None, "a name"], ["", "$x_1$"])
SEED = ([0, 1], [None, -1, np.random.RandomState(0), np.random.default_rng(0), 2**40])
ROUTE = ([None], ["sex", 0, [0], [0, 1], 99, -1, ["zz"], [[0]], 1.5, [True, False, True], "0"])


def labels_of(sample):
    return sample.clusters


def fitted(sample):
    """A model that knows only half of what a case may show it."""
    X = np.nan_to_num(np.clip(sample.X, -9, 9))
    y = np.arange(sample.n) % 2
    return LogisticRegression().fit(X, y) if sample.n > 1 else LogisticRegression()


def certified(sample):
    """A classifier with a path, made of few rows."""
    rng = np.random.default_rng(0)
    X, sex = rng.normal(size=(300, 2)), np.arange(300) % 2
    model = FairDecisionClassifier(max_disparity=0.5, certificate=0.5, cv=3, group_aware=True)
    return model.fit(X, X[:, 0] > 0, sensitive_features=sex)


def path_of(sample):
    models = [DummyClassifier(strategy="prior").fit(sample.X, sample.y) for _ in range(2)]
    return FairnessPath(np.array([0.2, 0.1]), models, np.array([0.1, 0.05]), np.array([0.8, 0.7]))


MODELS = [
    LogisticRegression(),
    LogisticRegression,
    KMeans(2),
    DummyClassifier(),
    make_pipeline(StandardScaler(), LogisticRegression()),
    ConstrainedERMClassifier(max_iter=5),
]
SHARES = [{"g0": 0.5, "g1": 0.5}, {"g0": -1}, {"zz": 1}, {"g0": float("nan")}, [0.2, 0.8], [0, 0]]
PEOPLE = [{"g0": (0.0, 1.0), "g1": (1.0, 1.0)}, {"g0": (0, -1)}, {"g0": 3}, {}, {1: (0, 0)}]


def options(*good):
    return list(good), ["nonsense", good[0].upper()]


def pairs(shape):
    """Numbers between 0 and 1 of a shape that may depend on nothing."""
    return lambda sample: sample.rng.random(shape)


def cohort_of(sample):
    """A cohort of the rows of a sample."""
    given = {"y_score": sample.X[:, 0], "sensitive_features": sample.groups}
    return Cohort(sample.y, sample.y, **given)


ARGUMENTS = {
    # rows
    "X": (lambda s: s.X, ODD_MATRICES),
    "X_test": (lambda s: s.X[::-1], ODD_MATRICES),
    "y": (lambda s: s.y, ODD_VECTORS),
    "y_test": (lambda s: s.y[::-1], ODD_VECTORS),
    "y_true": (lambda s: s.y, ODD_VECTORS),
    "y_pred": (lambda s: s.predicted, ODD_VECTORS),
    "y_score": (lambda s: s.scores, ODD_VECTORS),
    "labels": (labels_of, ODD_VECTORS),
    "sensitive_features": (lambda s: s.groups, ODD_VECTORS),
    "sensitive_features_test": (lambda s: s.groups[::-1], ODD_VECTORS),
    "control_features": ([None], ODD_VECTORS),
    "sample_weight": (lambda s: s.weights, ODD_VECTORS),
    "affinity": (lambda s: s.affinity, ODD_MATRICES),
    "centers": (lambda s: s.X[:3].repeat(3, axis=0)[:3], ODD_MATRICES),
    "groups": ([None], []),
    "units": (lambda s: s.rng.integers(0, 1 + s.n // 2, s.n), ODD_VECTORS),
    "classes": ([None, [0, 1]], [[0], [0, 0], [[0, 1]], ["a", "b"], [2, 3], [0, float("nan")]]),
    # metrics
    "intersectional": BOOLEAN,
    "pos_label_true": ([None], [0, 1, "w1"]),
    "group_report.rates": ([True], [False, "zz"]),
    "group_report.estimate": options("raw", "pooled"),
    "pos_label": ([1], [0, 2, "w1", None, True, 1.0, np.int8(1)]),
    "reference": options("pairwise", "overall"),
    "agg": options("worst", "mean"),
    "zero_division": (["raise", float("nan")], [0.0, 2.0, "warn"]),
    "ties": options("half", "ignore"),
    "loss": (sorted(LOSSES), ["nonsense", LOSSES["log_loss"](), LOSSES["log_loss"]]),
    "task": options("classification", "regression"),
    "sum_classes": ([True, False, "absolute"], [2, "yes", np.True_]),
    "subset": options("all", "positive", "negative", "class"),
    "threshold": ([0.0, 0.5, -1], [1e300]),
    "relative": BOOLEAN,
    "mean": BOOLEAN,
    "cost": ([2.0], [0.0]),
    "reference_cost": ([1.0], [0.0]),
    "ref_cost": ([2.0], [0.0]),
    **dict.fromkeys(["ref_balance", "ideal_cost", "ideal_balance"], ([None, 0.0, 1.0], [3.0])),
    "costs": (lambda s: 1 + s.rng.random(4), ODD_VECTORS),
    "balances": (pairs(4), ODD_VECTORS),
    "metric": (
        [metrics.statistical_parity_gap, metrics.wasserstein_gap],
        [metrics.demographic_parity_difference, metrics.group_report, metrics.kmeans_cost, max],
    ),
    "disparity_bounds.metric": (
        ["demographic_parity_difference", metrics.equal_opportunity_difference],
        ["nonsense", metrics.statistical_parity_gap, max, 3],
    ),
    "outcome_bounds.metric": (
        ["equal_opportunity_difference", metrics.equalized_odds_difference],
        ["nonsense", metrics.statistical_parity_gap, max, 3],
    ),
    "disparity_bounds.accuracy": ([None, 0.9, 0.75], [-0.1, 0.0, 1.5]),
    "disparity_bounds.known_groups": ([None], ODD_VECTORS),
    "disparity_bounds.proxies": ([None], ODD_VECTORS),
    # audits
    "before": (lambda s: s.predicted, ODD_VECTORS),
    "group_report.metrics": ([None, {"f1": f1_score}], ["nonsense", ["zz"], [], 3, {"f1": 1}]),
    "metrics": ([None, ["demographic_parity_difference"]], ["nonsense", ["zz"], [], 3]),
    "audit.task": options("auto", "binary", "numbers"),
    "audit.threshold": ([None], [0.5, "zz"]),
    "preset": ([None, "ugesp", "ll144"], ["nonsense", "UGESP", 3]),
    "audit.lead": ([None, "demographic_parity_difference"], ["nonsense", 3]),
    "audit.units_rule": (["any"], ["last", "nonsense", 3]),
    "audit.reference": ([None], ["nobody", {"zz": 1}, 3]),
    "unknown": ([None, "w1", ["w1", "w2"]], [3, {}]),
    **dict.fromkeys(
        ["impact_ratios.selected", "selection_tests.selected"],
        ([[3, 4], [0, 9]], [[-1, 2], ["a", 1], [0.5, 2], 3, [], [1e300, 1]]),
    ),
    "n_rows": ([[10, 20]], [[1, 2], [0, 9], ["a", 1], 3, []]),
    "reference_selected": ([[3, 4], 5], [[-1, 2], ["a", 1], [1, 2, 3]]),
    "reference_n_rows": ([[10, 20]], [[1, 2], [0, 9], ["a", 1], []]),
    "impact_ratios.against": ([None, 0, 1], [2, -1, "a", 0.5]),
    "depth": COUNT,
    **dict.fromkeys(["min_group_size", "suppress_below"], COUNT),
    "about": ([None, {"period": "May"}], [3, "a", {"zz": "a"}, {"period": 3}]),
    "min_ratio": ([None, 0.8], [-1, 2, "a"]),
    "candidates": ([[LogisticRegression()]], [None, 3, []]),
    "max_loss": ([0.0, 0.01], [-1, "a"]),
    "search_alternatives.settings": ([{"C": [0.1, 1.0]}], [{}, {"zz": [1]}, {"C": []}, 3]),
    "gain": ([1.0], [-1, "a"]),
    "chance": ([0.5], [0, 2, "a"]),
    "max_models": ([3], COUNT[1]),
    "reference_shares": ([None], [{}, {"zz": 1}, 3, "a"]),
    "earlier": ([None], [{}, {"zz": 1}, 3]),
    "certify": ([True, False], ["a"]),
    "n_bins": ([2, 3], [0, -1, "a"]),
    "n_simulations": COUNT,
    "title": WORD,
    "make_fairness_scorer.metric": (
        [metrics.demographic_parity_difference, metrics.group_auc_gap, "wasserstein_gap"],
        [metrics.group_report, "nonsense", max],
    ),
    "make_group_metric.metric": ([f1_score, roc_auc_score], ["nonsense", max, 3]),
    "compare": options("difference", "ratio", "smallest", "largest"),
    "fairness_path.metric": ([None, metrics.demographic_parity_difference], [max]),
    "n_permutations": COUNT,
    "n_bootstrap": ([5, 10], [0, -1, 2.5]),
    **dict.fromkeys(["certificate", "confidence"], ([0.95, 0.5], [0, 1, 1 - 1e-12])),
    # tests of disparities and monitors
    **{
        f"{name}.metric": (
            [
                *("demographic_parity", metrics.equalized_odds_difference, "group_auc_gap"),
                metrics.make_group_metric(f1_score),
            ],
            ["nonsense", max, DemographicParity(0.1), DemographicParity, 3],
        )
        for name in ("disparity_test", "disparity_upper_bound")
    },
    **{
        f"{name}.method": options("melded", "score", "exact", "auto")
        for name in ("disparity_test", "disparity_upper_bound")
    },
    "comparison": options("difference", "ratio"),
    "shift": ([0.0, 0.02], [-1, 1, 2, "a"]),
    "power": ([0.8, 0.5], [0, 1, -1]),
    "rows_per_unit": ([1.0, 3.5], [0.5, -1, "a", float("nan"), float("inf")]),
    "correlation": ([1.0, 0.3, 0], [-0.1, 2, "a", float("nan")]),
    "sample_size.pair_correlation": ([0.5, 0.0], [1.5, -1, "a", float("nan")]),
    "sample_size.rates": ([0.5, (0.3, 0.31)], [(0.1, 0.9), (2, 0), [], "a", float("nan")]),
    "sample_size.shares": ([(0.5, 0.5)], [(1,), (0, 1), "ab", [], (-1, 2)]),
    "CertificateDisplay.bounds": (pairs(4), ODD_VECTORS),
    "n_certified": ([2, 0], [-1, 99]),
    "CertificateDisplay.from_estimator.estimator": (certified, MODELS),
    "standard_errors": (pairs(4), ODD_VECTORS),
    "random_state": SEED,
    "greater_is_better": ([None, True, False], ["yes"]),
    "response_method": (["predict"], ["predict_proba", ["decision_function"], "auto", ["zz"]]),
    "sensitive": ROUTE,
    "control_columns": ROUTE,
    "group_report.method": (["wilson", "bootstrap", None], ["normal"]),
    "GroupRatesDisplay.from_predictions.method": (["wilson", "bootstrap", None], ["normal"]),
    "worst_class": BOOLEAN,
    "get_scorer.name": (metrics.get_scorer_names(), ["nonsense", "neg_accuracy"]),
    # estimators; the other parameters come from their constraints
    "constraint": (
        sorted(CONSTRAINTS),
        [["demographic_parity", "equal_opportunity"], DemographicParity(0.1), DemographicParity],
    ),
    "max_disparity": ([0.05, 0.2], [0.0, 1e-9, 1e9, {"sex": 0.1, "age": None}, {}]),
    "solver": (["auto"], [*SOLVERS, SOLVERS["al_lbfgs"], SOLVERS["alm"]()]),
    "model": (["linear", (2,)], [(0,), (-1,), (1.5,), [[2]], (2, 2), (), "ab"]),
    "class_weight": ([None, "balanced"], [{0: 1, 1: 2}, {0: -1, 1: 1}, {5: 1}, {0: 0, 1: 0}]),
    "estimator": ([LogisticRegression()], MODELS),
    "cv": ([2, 3], ["auto", "prefit", KFold(2), StratifiedSensitiveKFold(2), [([0], [1])], 100]),
    "n_jobs": ([None, 1], [0, 2.5]),
    # model selection
    "score": (["accuracy"], ["gap", "nonsense"]),
    "limit": ([{"gap": 0.05}], [{"gap": (0.1, None)}, {"gap": (1,)}, {"zz": 1}, {"gap": "a"}]),
    "slack": NUMBER,
    "min_rate": ([None, 0.1], [-1, 2.0, "as before", [0.1], {1: 0.1}, float("nan")]),
    "selection_rate": (
        [None, (0.1, 0.9)],
        [0.5, -1, (0.9, 0.1), (0.1,), {0: 0.2}, "as before", "all"],
    ),
    "max_disparities": ([(0.2, 0.05)], [[], [0.05, 0.2], [-1.0], [[0.1]], (float("nan"),)]),
    "scoring": (["accuracy"], ["neg_log_loss", "nonsense", metrics.get_scorer_names()[0], len]),
    "n_splits": ([2, 3], [1, 0, 100, 2.0]),
    "shuffle": BOOLEAN,
    **dict.fromkeys(["test_size", "train_size"], ([0.3, 0.5], [0, 5, 1.0, 100, -1, 1e-9])),
    # data sets
    "variant": options("equal", "unequal"),
    "n_samples": ([40, 60], [1, 2, 3, 7, 10, -5, 20.0]),
    "n_clusters": ([2, 3], [5, 10, 50]),
    "n_groups": ([2, 3], [1, 5, 50]),
    **dict.fromkeys(["scale", "missing_rate", "bias"], NUMBER),
    "probabilities": ([(1.5, 0.6, 0.8, 0.1)], [(1, 2), (0, 0, 0, 0), (-1, 1, 1, 1), (9, 9, 9, 9)]),
    **dict.fromkeys(["sparse_output", "return_X_y", "cache"], BOOLEAN),
    "dtype": ([np.float64, np.float32], ["int8", "nonsense", complex]),
    "group_shares": ([None], [{"sex": {"f": 0.5, "m": 0.5}}, *SHARES]),
    "distributions": ([None, {"a": (2, 3), "b": (3, 2)}], PEOPLE),
    "data_home": ([None], ["nowhere", 3]),
    "folder": ([None], ["nowhere", 3, "/dev/null"]),
    "load_local.name": (["adult", "compas"], ["nonsense", "../adult"]),
    "n_documents": ([4, 10], [1, 2, -1]),
    "n_features": ([4, 6], [1, 2, 0]),
    "n_informative": ([1, 2], [0, 50, 1.5]),
    "n_levels": ([2, 5], [1, 31]),
    "noise": NUMBER,
    # displays
    "gaps": (pairs(4), ODD_VECTORS),
    "ax": ([None], []),
    "name": WORD,
    "kind": options("density", "hist"),
    "rates": ([None, "selection_rate"], ["nonsense", ["selection_rate", "selection_rate"], []]),
    "layout": options("overlay", "rows"),
    "bins": ([5, "auto"], [0, -1, [0, 1, 2]]),
    "FairDecisionClassifier.objective": (
        ["accuracy", "balanced_accuracy", [[0, 1], [2, 0]]],
        ["f2", [[0, 1]], [[0, float("nan")], [1, 0]], "precision_at_recall"],
    ),
    "bw_method": (["scott", 0.5], [0.0, -1.0]),
    "bounds": ([None, (0, 1)], [(1, 0), (0,), (float("nan"), 1), (-1e9, 1e9)]),
    "GroupRatesDisplay.reference": ([None, "g0"], []),
    "report": (
        [REPORT],
        [None, [1, 2], 3.0],
    ),
    "GroupRatesDisplay.from_predictions.reference": ([None, "g0"], ["zz", {"zz": 1}, ["g0"]]),
    "CCDFCurveDisplay.from_predictions.against": ([None, "g0"], ["zz"]),
    **dict.fromkeys(["show_knee", "larger_is_fairer"], BOOLEAN),
    "columns": ([None, "objective"], [["objective", "zz"], []]),
    "ConvergenceDisplay.plot.x": options("iteration", "passes", "seconds"),
    "history": (
        lambda s: {"objective": s.rng.random(5)},
        [{}, {"a": [1], "b": [1, 2]}, {"a": "b"}],
    ),
    **dict.fromkeys(["x", "accuracies", "disparities"], (pairs(4), ODD_VECTORS)),
    "FairnessFrontDisplay.y": (pairs(4), ODD_VECTORS),
    **dict.fromkeys(["x_label", "y_label", "score_name"], (["a name"], [""])),
    **dict.fromkeys(["x_better", "y_better"], options("lower", "higher")),
    "FairnessPathDisplay.limits": ([None, {"sex": 0.05, "age": None}], [{}]),
    "FairnessPathDisplay.reports": ([[REPORT] * 3], [[REPORT], [], [REPORT, None]]),
    "FairnessPathDisplay.max_disparities": ([None, [0.2, 0.1]], ODD_VECTORS),
    "FairnessPathDisplay.plot.rate": (["selection_rate", "accuracy"], ["base", 0.3]),
    "point_names": ([None, list("abcd")], [["a"], [1, 2, 3, 4]]),
    "selected": ([None, 0, 3], [4, -1, "zz"]),
    "values": (pairs((1, 2)), ODD_MATRICES),
    "GroupRatesDisplay.rates": ([["selection_rate"]], [["a", "b"], []]),
    "overall": (pairs(1), ODD_VECTORS),
    "group_names": ([["a", "b"]], [["a"], [], "ab", [1, 2]]),
    "CCDFCurveDisplay.group_names": ([["b"]], [["a", "b"], []]),
    **dict.fromkeys(["low", "high"], (lambda s: np.array([[0.1, 0.2]]), ODD_MATRICES)),
    **dict.fromkeys(["overall_low", "overall_high"], ([None, [0.1]], [[0.1, 0.2]])),
    "GroupRatesDisplay.n_samples": ([None, [3, 4]], [[3]]),
    "n_overall": ([None, 7], [-1]),
    "scores": (lambda s: [s.rng.normal(size=9), s.rng.normal(size=5)], [[[]], [[1.0], [np.nan]]]),
    "weights": ([None], [[np.ones(9), np.ones(5)], [np.ones(9)], [np.zeros(9), -np.ones(5)]]),
    "GroupScoreDisplay.interval": ([None], [[[(0, 0.3)]], [[(0, 0.3)], [(0.5, 2)]]]),
    "reference_rates": ([[[0.0, 0.5, 1.0]]], [[], [[0.5]], [[0, np.nan]]]),
    "group_rates": ([[[0.0, 0.2, 1.0]]], [[], [[0.5]], [[0, 2.0]]]),
    "reference_name": (["a"], [""]),
    "reference_interval": ([None, [(0.0, 0.3)]], [(0.0, 0.3), [(2, 3)]]),
    "group_interval": ([None, [[(0.0, 0.3)]]], [[], [(0, 1)]]),
    "shares": (lambda s: np.full((2, 3), 0.5), ODD_MATRICES),
    **dict.fromkeys(
        [f"GroupCalibrationDisplay.{name}" for name in ("mean_scores", "shares", "low", "high")],
        ([[[0.1, 0.5], [0.2]]], [[[0.1]], [["x"], [1.0]], [], 3]),
    ),
    "y_preds": (lambda s: {"a": s.predicted, "b": 0 * s.predicted}, [{}, [0, 1], {"a": [0]}, 3]),
    "overall_shares": ([[0.5, 0.5]], [[0.5], [np.nan, 1]]),
    "cluster_names": ([["0", "1", "2"]], [["0"], [0, 1, 2]]),
    "sizes": ([[3, 4, 5]], [[3], [0, 0, 0], [-1, 1, 2]]),
    "attribute_of_group": ([None, [0, 0]], [[0, 1], [0], [5, 7]]),
    "path": (path_of, []),
    "cohort": (cohort_of, [None, "rows", []]),
    **{
        f"{name}.from_estimator.estimator": (fitted, MODELS)
        for name in (
            "GroupRatesDisplay",
            "GroupScoreDisplay",
            "CCDFCurveDisplay",
            "GroupCalibrationDisplay",
            "ConvergenceDisplay",
            "RankingGapDisplay",
        )
    },
    # solvers
    **dict.fromkeys(["grad_a", "grad_b"], ([lambda x, rng: x - 1, lambda x, rng: 0 * x], [0.5])),
    "x0": ([[5.0], [[1.0, 2.0]]], [[], 3.0, [np.nan]]),
    **dict.fromkeys(["n_a", "n_b"], COUNT),
    "alternating_gradient.step": (["harmonic", 0.1, lambda t: 0.1], ["slow", -0.1]),
    **dict.fromkeys(["strong_convexity", "lipschitz", "tol"], ([1.0, 0.1], [None])),
    "max_iter": ([3, 8], [0, 40]),
    "average": BOOLEAN,
    "callback": ([None], [lambda theta: True]),
    # methods
    "index": ([None], [0, 1, -1, 99]),
    "input_features": ([None], [["a", "b", "c"], ["a"]]),
}


def known(function: str, argument: str):
    """The entry of an argument, or None."""
    entries = ARGUMENTS | by_families("ARGUMENTS", "fuzz_cases")
    return entries.get(f"{function}.{argument}", entries.get(argument))


def value(draw, function: str, argument: str, sample, is_odd: bool):
    """Draw (what it is, value) of one argument.

    The constructor of a display gets what its class methods have computed: no junk there.
    """
    good, odd = known(function, argument)
    made = good(sample) if callable(good) else draw(st.sampled_from(good))
    if not is_odd:
        return "", made
    if argument == "sensitive_features" and draw(st.booleans()):
        made = sample.two_attributes if draw(st.booleans()) else pd.Series(sample.groups)
    if isinstance(odd, dict) and draw(st.integers(0, 5)):
        try:
            return spoil(draw, made, odd)
        except AttributeError:
            return "", made
    is_display = function.endswith("Display")
    if not isinstance(odd, dict) and odd and (is_display or draw(st.booleans())):
        return "odd", draw(st.sampled_from(odd))
    if is_display:
        return "", made
    return "junk", draw(st.sampled_from(JUNK))
