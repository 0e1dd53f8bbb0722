"""What audits, searches and pages say of wrong calls."""

from functools import cache

import numpy as np
import pandas as pd
import pytest
from sklearn.base import is_classifier
from sklearn.linear_model import LogisticRegression

from skfair.classification import FairDecisionClassifier
from skfair.constraints import ConditionalOn, DemographicParity
from skfair.model_selection import FairnessPath
from skfair.regression import ConstrainedERMRegressor
from skfair.report import (
    Audit,
    alternatives,
    audit,
    audit_data,
    find_subgroups,
    search_alternatives,
)
from skfair.report.results.checks import read_condition
from tests.families import rows_of_families
from tests.messages import messages

NAME = "demographic_parity_difference"
TURNS = np.arange(60) % 2
SEX = ["f", "m", "m"] * 20
WORDS = np.repeat(["a", "b"], 30)
X = pd.DataFrame({"score": np.linspace(0, 1, 60), "year": TURNS, "job": list("abc") * 20})


def judge(y_true=TURNS, y_pred=TURNS, y_score=None, **options):
    options = {"sensitive_features": SEX, "n_simulations": 5, **options}
    return audit(y_true, y_pred, y_score=y_score, **options)


def table(preset="ugesp", **options):
    return judge(None, sensitive_features={"race": SEX}, preset=preset, **options)


@cache
def judged():
    return judge(sensitive_features=WORDS, min_group_size=1)


def scored(**options):
    return judge(None, None, X["score"], **options)


def numbers(**options):
    return judge(None, X["score"], task="numbers", **options)


def read(**change):
    return Audit.from_dict({**judged().to_dict(), **change})


RESIDUALS = "mean_residual_difference"
test_audits = messages(
    (TypeError, "Pass the groups as sensitive_features=", lambda: audit(TURNS, TURNS, SEX)),
    (ValueError, "by these as y_pred", lambda: scored(threshold={"f": 0.4, "m": 0.5})),
    (ValueError, "neither", lambda: judge(y_pred=None)),
    (ValueError, "look like scores", lambda: judge(y_pred=X["score"])),
    (ValueError, "pass task='numbers'", lambda: judge(np.arange(60), X["score"])),
    (ValueError, "y_pred has the labels .* none in", lambda: judge(y_pred=TURNS.astype(str))),
    (ValueError, "before has the labels", lambda: judge(before=WORDS)),
    (ValueError, "59 rows", lambda: judge(y_pred=np.zeros(59, int))),
    (ValueError, "pos_label", lambda: judge(WORDS, WORDS)),
    (ValueError, "this audit knows", lambda: judge(metrics=["nonsense"])),
    (ValueError, r"make_group_metric", lambda: judge(metrics=[max])),
    (ValueError, "need 'mean_score'", lambda: judge(metrics=["mean_score_difference"])),
    (ValueError, "which need 'mean_residual'", lambda: numbers(metrics=[RESIDUALS])),
    (ValueError, "task must be", lambda: judge(task="nonsense")),
    (ValueError, "audited as y_pred=", lambda: judge(TURNS, None, X["score"], task="numbers")),
    (ValueError, "threshold turns", lambda: judge(threshold=0.5)),
    (ValueError, "y_true, or a threshold", lambda: scored()),
    (ValueError, "Leave out task", lambda: scored(threshold=0.5, task="classes")),
    (ValueError, "confidence", lambda: judge(confidence=2)),
    (ValueError, "continuous", lambda: judge(sensitive_features=X["score"])),
    (
        *(ValueError, "different order"),
        lambda: scored(threshold=0.5, sensitive_features=X["job"][::-1]),
    ),
    (ValueError, "min_group_size", lambda: judge(min_group_size=0)),
    (ValueError, "suppress_below=1", lambda: audit(None, [0, 1] * 4, sensitive_features=SEX[:8])),
    (ValueError, "units has 3 rows", lambda: judge(units=[1, 2, 3])),
    (TypeError, "units must be array-like .* got 'person'", lambda: judge(units="person")),
    (ValueError, "counts people, each once", lambda: table(sample_weight=np.arange(60) + 1)),
    (ValueError, "with several values of 'race'", lambda: table(units=np.arange(60) // 30)),
    (ValueError, "schema version 9", lambda: read(schema_version="9.0")),
)

test_tables_of_law = messages(
    (ValueError, "preset must be 'll144', 'ugesp', 'ecoa', 'uk' or None", lambda: table("eeoc")),
    (ValueError, "compares each group with a control group", lambda: table("ecoa")),
    (ValueError, "that no attribute has.*'race': 'f'", lambda: table(reference="Martian")),
    (ValueError, "reference has 'race': 'y'", lambda: table(reference={"race": "y"})),
    (ValueError, "counts people", lambda: table(sample_weight=np.r_[0.5, 1.5, np.ones(58)])),
    (ValueError, "needs y_pred, y_score or both", lambda: judge(y_pred=None, preset="ll144")),
    (ValueError, "compares selection rates", lambda: judge(None, X["job"], preset="ugesp")),
)


def check(text):
    return judged().check(text)


test_conditions = messages(
    *(
        (ValueError, "must look like", lambda text=text, own=own: own(text))
        for text in ("parity", f"{NAME} > -0.1", f"{NAME} > x", f"{NAME} > nan", f"{NAME} = 1")
        for own in (check, read_condition)
    ),
    (ValueError, "must look like", lambda: check(None)),
    (ValueError, "no metric", lambda: check("predictive_equality_difference > 0.1")),
    (ValueError, "no view 'age'", lambda: check(f"age: {NAME} > 0.1")),
)


@cache
def fitted():
    return [LogisticRegression().fit(X[["score"]], TURNS)]


def compare(candidates=None, rows=X[["score"]], **options):
    options = {"sensitive_features": SEX, "n_bootstrap": 5, **options}
    return alternatives(fitted() if candidates is None else candidates, rows, TURNS, **options)


def search(**options):
    options = {"sensitive_features": SEX, "n_bootstrap": 5, **options}
    return search_alternatives(LogisticRegression(), {}, X[["score"]], TURNS, **options)


def find(y_pred=TURNS, columns=X[["job"]], **options):
    return find_subgroups(TURNS, y_pred, columns=columns, **options)


test_searches = messages(
    (ValueError, "Did you mean", lambda: compare(metric="demographic_parity")),
    (ValueError, "max_loss", lambda: compare(max_loss=2)),
    (TypeError, "candidates must be", lambda: compare([])),
    (TypeError, "candidates must be", lambda: compare("path")),
    (ValueError, "pos_label", lambda: compare(pos_label=7)),
    (ValueError, "n_bootstrap", lambda: compare(n_bootstrap=0)),
    (ValueError, "units", lambda: compare(units=X["year"][::-1])),
    (ValueError, "max_models=50 is too few for chance=0.05", lambda: search(max_models=50)),
    (ValueError, "chance", lambda: search(chance=0.0)),
    (ValueError, "gain", lambda: search(gain=-0.1)),
    (ValueError, "metric must be one of", lambda: search(metric="accuracy")),
    (ValueError, "columns", lambda: find(columns={})),
    (ValueError, "59 rows", lambda: find(columns={"a": np.zeros(59)})),
    (ValueError, "depth", lambda: find(depth=0)),
    (ValueError, "n_bins", lambda: find(n_bins=1)),
    (ValueError, "neither", lambda: find(None)),
)

GROUPS = pd.DataFrame({"sex": SEX, "race": WORDS})


def describe(shares=None, groups=GROUPS, y=TURNS, **options):
    return audit_data(X, sensitive_features=groups, y=y, reference_shares=shares, **options)


EARLIER = {"X": X[["year"]], "sensitive_features": GROUPS[["sex"]]}
VIEWS = "names 'age', but the attributes are 'sex', 'race'"

test_audits_of_data = messages(
    (
        ValueError,
        "names 'age', but the attributes are 'sex', 'race'",
        lambda: describe({"age": {}}),
    ),
    (ValueError, "lacks 'm'. Give each group a share", lambda: describe({"sex": {"f": 1}})),
    (ValueError, "a share or a number of people", lambda: describe({"sex": {"f": "many", "m": 1}})),
    (ValueError, "a share or a number of people", lambda: describe({"sex": {"f": -1, "m": 2}})),
    (
        *(ValueError, r"\['sex'\] adds up to 1.2. Pass shares that add up to 1, or numbers"),
        lambda: describe({"sex": {"f": 0.6, "m": 0.6}}),
    ),
    (ValueError, "adds up to 0.9. Pass", lambda: describe({"sex": {"f": 0.6, "m": 0.3}})),
    (TypeError, "must be a dict such as", lambda: describe(0.5)),
    (ValueError, "y has 59", lambda: describe(y=np.arange(59))),
    (ValueError, "y has 60 different labels", lambda: describe(y=[f"name {i}" for i in range(60)])),
    (ValueError, "pos_label=7 is no label of y: 0, 1", lambda: describe(pos_label=7)),
    (ValueError, "earlier must be a dict with X and", lambda: describe(earlier={"X": [[1]]})),
    (ValueError, "lack 'score', 'job', 'race'", lambda: describe(earlier=EARLIER)),
    (ValueError, "sensitive_features has 7 rows", lambda: describe(groups=np.zeros(7))),
    (ValueError, "confidence", lambda: describe(confidence=2)),
    (ValueError, "No group has 2000 rows", lambda: describe(suppress_below=2000)),
)


def page(model):
    """Write the page of choices among models that are fitted only in name."""
    model.classes_ = [0, 1] if is_classifier(model) else []
    path = FairnessPath(np.array([0.1]), [model], np.zeros(1), np.zeros(1))
    return path.to_html(X=X[["score"]], y=TURNS, sensitive_features=SEX)


def limited(constraint):
    return page(FairDecisionClassifier(constraint=constraint))


ON_DIFFERENCES = "limits on differences and ratios"
test_pages_of_choices = messages(
    (ValueError, "between two classes", lambda: page(ConstrainedERMRegressor())),
    *(
        (ValueError, ON_DIFFERENCES, lambda own=own: limited(own))
        for own in (
            "bounded_selection_rate",
            DemographicParity(reference="overall"),
            DemographicParity(0.1),
            ConditionalOn("demographic_parity", "job"),
            None,
        )
    ),
    *(
        (ValueError, ON_DIFFERENCES, lambda own=own: page(own))
        for own in rows_of_families("WITHOUT_PAGES")
    ),
)


def of_blocks(units=None, **change):
    dd = pytest.importorskip("dask.dataframe")
    lazy = dd.from_pandas(X.assign(sex=SEX, weight=0.0), npartitions=2)
    given = {name: lazy[column] for name, column in change.items()}
    units = lazy["year"] if isinstance(units, str) else units
    return audit(lazy["year"], lazy["year"], sensitive_features=lazy["sex"], units=units, **given)


test_audits_of_blocks = messages(
    (TypeError, "units= are counted in memory", lambda: of_blocks(X["year"])),
    (TypeError, "units= are counted in memory", lambda: of_blocks("lazy")),
    (ValueError, "zero for every row", lambda: of_blocks(sample_weight="weight")),
)
