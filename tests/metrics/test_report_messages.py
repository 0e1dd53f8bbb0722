"""What reports, tests of disparities, floors and scorers say of wrong calls."""

from functools import partial

import dask.array as da
import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import confusion_matrix, f1_score, roc_auc_score, zero_one_loss
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from skfair import Certificate, GroupProbabilities, metrics
from skfair.constraints import DemographicParity
from skfair.exceptions import LooseLimitWarning
from tests.messages import messages, of_calls

GAP = "neg_demographic_parity_difference"
SEX = np.tile(["f", "m"], 50)
AGE = np.repeat(["old", "young"], 50)
Y = np.tile([0, 0, 1, 1], 25)
PRED = np.tile([0, 1, 1, 0, 1], 20)
SCORE = np.linspace(0.05, 0.95, 100)
BOTH = pd.DataFrame({"sex": SEX, "age": AGE})
LAZY = {"y": da.from_array(Y), "p": da.from_array(PRED), "sex": da.from_array(SEX == "f")}
MANY = {name: np.tile([0, 1], 2000) for name in ("y", "p", "sensitive_features")}
LOOSE = "80 percentage points.*use min_ratio=0.8"
NO_RATIO = "comparison='ratio' is not what"


def report(y=Y, p=PRED, sex=SEX, **options):
    metrics.group_report(y, p, sensitive_features=sex, **options)


def gaps(y=Y, p=PRED, **options):
    metrics.fairness_report(y, p, sensitive_features=SEX, **options)


def own(metric=f1_score, y=Y, p=PRED, compare="difference"):
    metrics.make_group_metric(metric, compare=compare)(y, p, sensitive_features=SEX)


def apart(reference, metric=metrics.demographic_parity_difference, by=BOTH, p=PRED):
    metric(None, p, sensitive_features=by, reference=reference)


def floor(metric=metrics.group_auc_gap, y=None, s=SCORE, by=SEX, **options):
    metrics.noise_floor(metric, y, s, sensitive_features=by, **options)


def compared(selected, n_rows):
    metrics.selection_tests(selected, n_rows, [1], [2])


TEXT = np.array(["no", "yes"])
COUNTS = [
    ("selected must be from 0 to n_rows", {"selected": [3], "n_rows": [2]}),
    ("no group may be empty", {"selected": [0], "n_rows": [0]}),
    ("whole number", {"selected": [0.5], "n_rows": [2]}),
    ("2 groups, but n_rows has 1", {"selected": [1, 2], "n_rows": [3]}),
]
test_reports_say_what_is_wrong = messages(
    *of_calls(
        report,
        ("group_report needs y_true", {"y": None, "rates": False}),
        ("needs y_true for metrics=", {"y": None, "metrics": {"error": zero_one_loss}}),
        ("method must be 'wilson'", {"method": "exact"}),
        ("confidence must be between 0 and 1", {"confidence": 95}),
        ("y_score has 1 value", {"y_score": np.append(SCORE[1:], np.nan)}),
        ("'raw' or 'pooled'", {"sex": BOTH, "estimate": "mean"}),
        ("of its own", {"sex": BOTH, "estimate": "pooled", "method": "bootstrap"}),
        ("crossed groups", {"sex": BOTH, "estimate": "pooled", "intersectional": False}),
        (r"y_pred has numbers such as 0\.\d+, not labels", {"p": SCORE}),
        (r"y_pred has numbers such as 0\.\d+, not labels", {"p": SCORE, "pos_label": 0}),
        ("numbers such as .* skfair.report.audit, .*rates=False", {"y": 3 * SCORE}),
        ("has the labels 0, 1, .* none in common", {"y": TEXT[Y], "pos_label": "yes"}),
        ("has the labels 'no', 'yes', which do not", {"y": TEXT[Y], "p": TEXT[PRED]}),
        ("Pass metrics= to have others", {"y": SCORE, "p": SCORE, "rates": False}),
        ("'auc' is computed from scores. Pass y_score", {"metrics": {"auc": roc_auc_score}}),
        ("a column 'accuracy' already", {"metrics": {"accuracy": f1_score}}),
        ("units has 3 rows", {"units": [1, 2, 2]}),
    ),
    *of_calls(
        report,
        ("metrics must be a dict of functions", {"metrics": f1_score}),
        ("metrics must be a dict of functions", {"metrics": [f1_score]}),
        ("metrics must be a dict of functions", {"metrics": {"f1": "f1"}}),
        (
            r"counted where they are, in Dask or in an engine. Pass rows in memory",
            LAZY | {"metrics": {"f1": f1_score}},
        ),
        ("compute", LAZY | {"units": Y}),
        error=TypeError,
    ),
    *of_calls(
        gaps,
        ("needs y_pred, y_score or both", {"p": None}),
        ("confidence must be between", {"confidence": 0}),
        ("units has 3 rows", {"units": [1, 2, 2]}),
    ),
    *of_calls(gaps, ("compute", {"p": da.from_array(PRED), "units": Y}), error=TypeError),
    *of_calls(
        own,
        ("metric must be a function", {"metric": "f1"}),
        ("compute", {"y": da.from_array(Y)}),
        ("one number for each group, but confusion_matrix", {"metric": confusion_matrix}),
        error=TypeError,
    ),
    *of_calls(
        own,
        ("compare must be one of 'difference', .*'biggest'", {"compare": "biggest"}),
        ("inconsistent numbers of samples", {"y": Y[:-1]}),
    ),
    *of_calls(
        apart,
        ("must have a level of each of", {"reference": {"sex": "m"}}),
        ("There is no group 'm'", {"reference": "m"}),
        (
            "is 0 in both groups of a pair",
            {
                "reference": "m",
                "metric": metrics.demographic_parity_ratio,
                "by": SEX,
                "p": 0 * PRED,
            },
        ),
    ),
    *of_calls(
        floor,
        ("n_permutations must be an integer from 1", {"n_permutations": 0}),
        ("rows", {"by": {"sex": SEX[:9]}}),
        ("a different order", {"s": pd.Series(SCORE), "by": pd.Series(SEX)[::-1]}),
    ),
    *of_calls(
        floor,
        ("return a number, got Report", {"metric": metrics.group_report, "y": Y, "s": PRED}),
        error=TypeError,
    ),
    *of_calls(metrics.impact_ratios, *COUNTS),
    *of_calls(compared, *COUNTS),
    *of_calls(
        metrics.impact_ratios,
        ("from 0 to 1", {"selected": [1, 2], "n_rows": [5, 9], "reference": 2}),
    ),
    *of_calls(
        compared,
        ("selected must hold numbers", {"selected": ["a"], "n_rows": [3]}),
        error=TypeError,
    ),
)


# --- tests of disparities, sample sizes, bounds by proxies ---


def examined(metric="demographic_parity", y=Y, p=PRED, **changes):
    metrics.disparity_test(
        metric, y, p, **{"sensitive_features": SEX, "max_disparity": 0.1} | changes
    )


def bounded(metric="demographic_parity", y=Y, p=PRED, **changes):
    metrics.disparity_upper_bound(metric, y, p, **{"sensitive_features": SEX} | changes)


def guessed(metric="demographic_parity", p=PRED, **changes):
    metrics.disparity_bounds(metric, None, p, **{"sensitive_features": GUESSES} | changes)


GUESSES = GroupProbabilities({"0": SCORE, "1": 1 - SCORE})
AUC = {"metric": "group_auc_gap", "p": SCORE}
MEANS = {"metric": "mean_score_difference", "p": SCORE}
RATIO = {"comparison": "ratio"}
WRONG_TESTS = [
    ("confidence must be between 0 and 1", {"confidence": 1}),
    ("There is no test", {"metric": "treatment_equality"}),
    ("There is no test", {"metric": max}),
    ("There is no test", {"metric": partial(max, 1)}),
    ("There is no test of metric='auc'.*'demographic_parity'", {"metric": "auc"}),
    ("There is no test of metric='auc'.*'group_auc_gap'", {"metric": "auc"}),
    ("There is no test of metric='auc'.*'largest_selection_rate'", {"metric": "auc"}),
    ("y_pred", AUC | {"p": "abc"}),
    ("y_pred", AUC | {"p": [[0.1, 0.2]]}),
    ("y_pred", AUC | {"p": np.append(SCORE[1:], np.nan)}),
    ("method must be", {"method": "nonsense"}),
    ("comparison must be", {"comparison": "nonsense"}),
    ("no test here", {"reference": "overall"} | RATIO),
    ("has no test here", MEANS | {"reference": "m"}),
    ("needs interval", {"metric": "partial_statistical_parity_gap"}),
    ("needs interval", {"metric": "partial_demographic_parity_gap"}),
    ("counts independent rows", {"method": "exact", "sample_weight": np.full(100, 2.0)}),
    ("Use method='melded'", MANY | {"method": "exact"}),
    ("differences of rates", AUC | {"shift": 0.1}),
    ("nothing to compare", {"sensitive_features": ["a"] * 100}),
    ("nothing to compare", {"control_features": SEX}),
    ("nothing to compare", MEANS | {"control_features": SEX}),
    (NO_RATIO, RATIO | {"metric": "demographic_parity_difference"}),
    (NO_RATIO, RATIO | {"metric": metrics.demographic_parity_difference}),
    (NO_RATIO, RATIO | {"metric": DemographicParity(0.2)}),
    (NO_RATIO, RATIO | {"metric": "largest_selection_rate"}),
    (NO_RATIO, RATIO | {"metric": "statistical_parity_gap"}),
]
LIMITS_NOTHING = r"=5 limits nothing.*0\.05 for 5%"
test_tests_say_what_is_wrong = messages(
    *of_calls(examined, *WRONG_TESTS),
    *of_calls(bounded, *WRONG_TESTS),
    *of_calls(
        examined,
        ("There is no limit: pass max_disparity=, min_ratio=", {"max_disparity": None}),
        ("max_disparity", {"max_disparity": -0.1}),
        (LIMITS_NOTHING, {"max_disparity": 5}),
        (LIMITS_NOTHING, {"max_disparity": 5, "metric": "largest_selection_rate"}),
        (LIMITS_NOTHING, {"max_disparity": 5} | AUC),
    ),
    *of_calls(
        examined,
        (r"confidence=0.05 is a level of.*Did you mean 0.95\?", {"confidence": 0.05}),
        error=UserWarning,
    ),
    (UserWarning, "confidence=0.1 is a level of", lambda: Certificate(0.1)),
    (LooseLimitWarning, LOOSE, lambda: examined(max_disparity=0.8)),
    (LooseLimitWarning, LOOSE, lambda: metrics.sample_size(0.8)),
    *of_calls(
        partial(metrics.sample_size, 0.05),
        ("no number of people", {"rates": (0.3, 0.4)}),
        ("one of each of 2 groups", {"rates": (0.3, 0.4, 0.5)}),
        ("shares must be positive", {"shares": (1.0,)}),
        ("shares must be positive", {"shares": (0.5, 0.5, 0.0)}),
        ("correlation", {"correlation": 2}),
        ("rows_per_unit", {"rows_per_unit": 0.5}),
        (
            "same groups, got 'f', 'm' and 'f', 'x'",
            {"rates": {"f": 0.3, "m": 0.3}, "shares": {"f": 0.5, "x": 0.5}},
        ),
    ),
    *of_calls(
        guessed,
        ("differences of rates of labels", {"metric": "largest_selection_rate"}),
        ("need y_true", {"metric": "equal_opportunity"}),
        ("probabilities already", {"accuracy": 0.9}),
        ("accuracy= or known_groups=", {"sensitive_features": SEX}),
        ("group 'a' only", {"sensitive_features": ["a"] * 100, "accuracy": 0.9}),
        ("is for two groups", {"sensitive_features": [*"abca"] * 25, "accuracy": 0.9}),
        ("accuracy", {"sensitive_features": SEX, "accuracy": 1.5}),
        ("a row and a column for each", {"sensitive_features": SEX, "accuracy": np.eye(3)}),
        ("known_groups has 'x'", {"known_groups": ["x"] * 100}),
        ("has the group of 20 rows", {"known_groups": ["0"] * 20 + [None] * 80}),
        ("100 rows but the other data have 2", {"p": [0, 1]}),
        ("Proxy 'proxies' has 50 missing values", {"proxies": ["u", None] * 50}),
        ("n_bootstrap", {"n_bootstrap": 3}),
        ("confidence", {"confidence": 1.0}),
    ),
    *of_calls(guessed, ("in memory", {"p": da.ones(100, chunks=50)}), error=TypeError),
    *of_calls(
        partial(metrics.demographic_parity_difference, None, da.ones(100, chunks=50)),
        ("in memory", {"sensitive_features": GUESSES}),
        error=TypeError,
    ),
)


# --- scorers ---

X = pd.DataFrame({"a": SCORE, "b": Y + SCORE, "sex": SEX, "job": AGE})
CLASSES = {"two": Y, "three": Y + (SCORE > 0.5), "0 and 2": 2 * Y}


def score(name=GAP, model=LogisticRegression, classes="two", given=None, **options):
    """Score a model of the columns a and b; the others are read by scorers."""
    scorer, y = metrics.get_scorer(name, **options), CLASSES[classes]
    keep = make_column_transformer(("passthrough", ["a", "b"]), verbose_feature_names_out=False)
    given = {"sensitive_features": SEX} if given is None else given
    scorer(make_pipeline(keep, model()).fit(X, y), X, y, **given)


def own_scorer(metric=metrics.demographic_parity_difference, **options):
    metrics.make_fairness_scorer(metric, **options)


test_scorers_say_what_is_wrong = messages(
    *of_calls(
        score,
        ("got no sensitive_features.*sensitive=", {"given": {}}),
        ("Use one of the two", {"sensitive": "sex"}),
        ("X has no column 'gender'", {"sensitive": "gender", "given": {}}),
        (
            "got control_features and reads control_columns",
            {"sensitive": "sex", "control_columns": "job", "given": {"control_features": AGE}},
        ),
        ("has the labels 0, 1, 2, which do not show", {"classes": "three"}),
        ("pos_label=1 is not one of the labels .*: 0, 2", {"classes": "0 and 2", "pos_label": 1}),
    ),
    *of_calls(
        score,
        (
            "none of the methods predict_proba",
            {"name": "neg_wasserstein_gap", "model": LinearSVC, "response_method": "predict_proba"},
        ),
        (
            "none of the methods decision_function",
            {"name": "neg_largest_group_loss", "model": RandomForestClassifier, "loss": "hinge"},
        ),
        error=AttributeError,
    ),
    *of_calls(
        metrics.get_scorer,
        (f"Did you mean '{GAP}'", {"name": "demographic_parity_difference"}),
        (f"Did you mean '{GAP}'", {"name": "neg_demographic_parity_diference"}),
        ("is not a fairness scorer", {"name": "f1"}),
        ("takes control_features", {"name": "balance_score", "control_columns": "job"}),
        ("metric of labels with a pos_label", {"name": "neg_group_auc_gap", "worst_class": True}),
        ("Do not pass pos_label", {"name": GAP, "worst_class": True, "pos_label": "high"}),
    ),
    *of_calls(
        metrics.get_scorer,
        ("takes no argument 'attribute'", {"name": GAP, "attribute": "sex"}),
        error=TypeError,
    ),
    *of_calls(own_scorer, ("get_scorer", {"metric": GAP}), error=TypeError),
    *of_calls(
        own_scorer,
        ("greater_is_better must be given", {"metric": lambda y_pred, *, sensitive_features: 0.0}),
        (
            "must name exactly one prediction",
            {"metric": lambda a, *, sensitive_features: 0.0, "greater_is_better": True},
        ),
        ("makes a signed value", {"reference": "m"}),
    ),
)
