"""What displays say of wrong calls."""

from functools import cache

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.cluster import KMeans
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skfair.classification import FairDecisionClassifier
from skfair.inspection import (
    CCDFCurveDisplay,
    CertificateDisplay,
    ClusterCompositionDisplay,
    ConvergenceDisplay,
    FairnessFrontDisplay,
    FairnessPathDisplay,
    GroupCalibrationDisplay,
    GroupRatesDisplay,
    GroupScoreDisplay,
    MonitorDisplay,
)
from skfair.inspection._display import fitted_attribute as attribute
from skfair.metrics import group_report
from skfair.model_selection import FairnessPath
from tests.messages import messages

GROUPS = np.repeat(["a", "b", "c"], 20)
Y = np.arange(60) % 2
SCORES = np.linspace(0, 1, 60)
FRAME = pd.DataFrame({"score": SCORES, "group": GROUPS})
BOTH = {"letter": GROUPS, "sex": np.where(np.arange(60) // 2 % 2, "f", "m")}


class FirstColumn(BaseEstimator):
    """Scores rows by their first column."""

    def decision_function(self, X):
        return np.asarray(X)[:, 0].astype(float)

    predict = decision_function


@cache
def fitted():
    return LogisticRegression().fit(SCORES[:, None], np.where(Y, "yes", "no"))


def calibration(scores=SCORES, **options):
    options = {"sensitive_features": GROUPS, **options}
    return GroupCalibrationDisplay.from_predictions(Y, scores, **options)


test_calibration = messages(
    (ValueError, "sample_weight has 1 rows", lambda: calibration(sample_weight=[1])),
    (ValueError, "from -1 to 1.*predict_proba", lambda: calibration(np.append(-1.0, Y[1:]))),
)


def ccdf(groups=GROUPS, **options):
    return CCDFCurveDisplay.from_predictions(None, SCORES, sensitive_features=groups, **options)


def of_columns(X=FRAME, groups=None, **options):
    return CCDFCurveDisplay.from_estimator(FirstColumn(), X, sensitive_features=groups, **options)


NAME = r"CCDFCurveDisplay\.from_estimator"
test_ccdf = messages(
    (ValueError, "compares groups, but there is only 'a'", lambda: ccdf(["a"] * 60)),
    (ValueError, "no group 'z'. The groups are 'a', 'b', 'c'", lambda: ccdf(reference="z")),
    (
        ValueError,
        "got both sensitive_features and",
        lambda: of_columns(FRAME, GROUPS, sensitive="g"),
    ),
    (ValueError, rf"{NAME} does not know the groups. Pass sensitive_feat", of_columns),
    (ValueError, "got sensitive='group' but no X", lambda: of_columns(None, sensitive="group")),
    (ValueError, "in a different order", lambda: of_columns(groups=FRAME["group"][::-1])),
)


of_model = CertificateDisplay.from_estimator


def certificate(n_certified=1, **options):
    numbers = {"disparities": [0.1], "bounds": [0.2], "accuracies": [0.8]}
    return CertificateDisplay(**numbers, n_certified=n_certified, **options).plot()


def stream(**options):
    numbers = {"disparities": [0.1, 0.2], "standard_errors": [0.1, 0.1]}
    return MonitorDisplay(**numbers, **{"max_disparity": 0.1, **options}).plot()


test_certificates_and_monitors = messages(
    (TypeError, "fitted with confidence", lambda: of_model(FairDecisionClassifier())),
    (ValueError, "n_certified must be an integer from 0 to 1", lambda: certificate(2)),
    (ValueError, "max_disparity must be a number", lambda: stream(max_disparity={"sex": 0.1})),
    (ValueError, "alarm_at must be an integer from 0 to 1", lambda: stream(alarm_at=2)),
    (TypeError, "DisparityMonitor", lambda: MonitorDisplay.from_monitor(3)),
)


def clusters(groups=GROUPS, **options):
    return ClusterCompositionDisplay.from_labels(Y, sensitive_features=groups, **options)


test_compositions = messages(
    (ValueError, "sensitive_features has 59 rows but", lambda: clusters(GROUPS[1:])),
    (ValueError, "axes of its own", lambda: clusters().plot(ax=clusters().ax_)),
)


def drawn(history=None, **options):
    default = {"objective": [2.0, 1.0], "max_violation": [1.0, 0.5]}
    return ConvergenceDisplay(history=default if history is None else history).plot(**options)


@cache
def pipeline():
    return make_pipeline(StandardScaler(), KMeans(2, n_init=1)).fit(SCORES[:, None])


SHORT = {"seconds": [1]}
test_histories = messages(
    (TypeError, "history must be a dict of columns, got list", lambda: drawn([1, 2])),
    (ValueError, "objective has 2, seconds has 1", lambda: drawn({"objective": [1, 2], **SHORT})),
    (ValueError, r"1-dimensional.*got the shape \(0,\)", lambda: drawn({"objective": []})),
    (ValueError, "no column to draw; the history has no columns", lambda: drawn({})),
    (ValueError, "no column 'seconds', only .*Use x='iter", lambda: drawn(x="seconds")),
    (ValueError, "no column 'loss'; the history has 'obj", lambda: drawn(columns=["loss"])),
    (ValueError, "x must be 'iteration', .*, got 'time'", lambda: drawn(x="time")),
    (ValueError, "1 Axes but 2 columns are drawn", lambda: drawn(ax=plt.Figure().subplots())),
    (NotFittedError, "not fitted", lambda: attribute(KMeans(), "labels_", "")),
    (
        AttributeError,
        "'Pipeline', 'KMeans' has no attr",
        lambda: attribute(pipeline(), "h", ""),
    ),
)


def front(costs, balances, names=None, **options):
    options = {"point_names": names, **options}
    return FairnessFrontDisplay.from_clusterings(costs, balances, **options)


def of_points(**options):
    return FairnessFrontDisplay(x=[1], y=[1], x_label="", y_label="", **options)


of_classifiers = FairnessFrontDisplay.from_classifiers
SEXES = {"sensitive_features": GROUPS}
of_models = FairnessFrontDisplay.from_predictions


test_fronts = messages(
    (ValueError, "point_names has 1", lambda: front([1, 2], [0.5, 1], names=["a"])),
    (ValueError, r"costs has negative .*: -2\).*pass -costs", lambda: front([-2, 1], [0.5, 1])),
    (ValueError, "costs has 1 value", lambda: front([np.nan, 1], [0.5, 1])),
    (ValueError, "costs is empty", lambda: front([], [])),
    (ValueError, "'z' is not.*names are 'a'", lambda: front([1], [1], ["a"], selected="z")),
    (ValueError, "'z' is not.*there are no point_names", lambda: front([1], [1], selected="z")),
    (ValueError, "selected must be an integer from -1 to 0", lambda: front([1], [1], selected=1)),
    (ValueError, "negative.*pass -disparities", lambda: of_classifiers([0.5, 1], [-0.2, 0.1])),
    (ValueError, "must be 'lower' or 'higher', got 'max'", lambda: of_points(y_better="max")),
    (
        TypeError,
        r"(?s)y_preds must be a dict.*Pass {'name'",
        lambda: of_models(Y, Y, **SEXES),
    ),
    (TypeError, "Axes or None, got Figure", lambda: front([1], [1]).plot(ax=plt.figure())),
)


class Selects:
    """Selects everybody above a half."""

    classes_ = np.array([0, 1])

    def predict(self, X):
        return (X[:, 0] > 0.5).astype(int)


def path(n_models=1, found=None, **options):
    own = FairnessPath(np.ones(n_models), [Selects()] * n_models, *np.zeros((2, n_models)))
    options = {"sensitive_features": GROUPS, **options}
    return FairnessPathDisplay.from_path(found or own, SCORES[:, None], **options)


@cache
def report(groups=None):
    groups = GROUPS if groups is None else groups == GROUPS
    return group_report(None, Y, sensitive_features=groups)


def reports(*given, **options):
    return FairnessPathDisplay(reports=given, **options)


test_paths = messages(
    (ValueError, "has 1 tables. Pass one of the decisions before", lambda: reports(report())),
    (ValueError, "The reports have different groups", lambda: reports(report(), report("a"))),
    (ValueError, "max_disparities has 2", lambda: reports(*2 * [report()], max_disparities=[1, 2])),
    (TypeError, "report must have rates of groups", lambda: reports(None, report())),
    (TypeError, "path must be a FairnessPath, got 'None'", lambda: path(found="None")),
    (ValueError, "'accuracy'; the rates are selection", lambda: path(rate="accuracy")),
    (ValueError, "ax already shows something else", lambda: path(ax=path().ax_)),
    (ValueError, "1 Axes but 2 models are drawn", lambda: path(2, ax=plt.Figure().subplots())),
)


def rates(y=Y, groups=GROUPS, intersectional=True, **options):
    options = {"sensitive_features": groups, "intersectional": intersectional, **options}
    return GroupRatesDisplay.from_predictions(y, Y, **options)


def of_rates(values, **options):
    names = {"rates": ["accuracy"], "group_names": ["a", "b"]}
    return GroupRatesDisplay(values=values, overall=[0.5], **names, **options)


TWO = {"letter": "b", "sex": "f"}
test_rates = messages(
    (ValueError, "'tpr'; the rates are selection_rate. Others", lambda: rates(None, rates="tpr")),
    (ValueError, "rates has no entry", lambda: rates(None, rates=[])),
    (ValueError, "the rates are .*pass y_true", lambda: rates(None, rates=["accuracy"])),
    (ValueError, r"values must have the shape \(1, 2\).*got", lambda: of_rates([0.1, 0.2])),
    (ValueError, "ax already shows the rows.*but this", lambda: rates(groups=Y, ax=rates().ax_)),
    (ValueError, "'zz' is a group that no attribute has", lambda: rates(reference="zz")),
    (ValueError, "one reference", lambda: rates(groups=BOTH, reference=TWO, intersectional=False)),
)


def scores(groups=GROUPS, **options):
    return GroupScoreDisplay.from_predictions(None, SCORES, sensitive_features=groups, **options)


def labelled(pos_label):
    options = {"sensitive_features": GROUPS, "pos_label": pos_label}
    return GroupScoreDisplay.from_estimator(fitted(), SCORES[:, None], None, **options)


def of_scores(scores, names):
    return GroupScoreDisplay(scores=scores, group_names=names)


ROWS = "layout='rows' needs axes of its own"
test_scores = messages(
    (ValueError, "got kind='bar' and layout='overlay'", lambda: scores(kind="bar")),
    *(
        (ValueError, "bw_method must be 'scott'", lambda odd=odd: scores(bw_method=odd))
        for odd in ("wide", 0, -1.0, np.inf)
    ),
    (ValueError, "0 <= low < high <= 1", lambda: scores(interval=(5, 30))),
    (ValueError, r"outside of bounds=\(0, 0.5\). Pass wider", lambda: scores(bounds=(0, 0.5))),
    (ValueError, r"bounds must be a pair \(low, high\)", lambda: scores(bounds=3)),
    (ValueError, "bins='many' does not fit", lambda: scores(kind="hist", bins="many")),
    (ValueError, "There are no scores of 'b'", lambda: of_scores([[1], []], ["a", "b"])),
    *(
        (ValueError, "pos_label=.* is not a class of Logistic", lambda odd=odd: labelled(odd))
        for odd in ("maybe", [], {}, np.array(["no", "yes"]))
    ),
    (ValueError, ROWS, lambda: scores(layout="rows", ax=scores().ax_)),
    (ValueError, ROWS, lambda: scores(ax=scores(layout="rows").ax_)),
)
