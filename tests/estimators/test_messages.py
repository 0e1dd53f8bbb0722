"""What estimators say of limits, folds, strata and groups that they cannot use."""

import warnings
from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import LinearSVC

from skfair import GroupProbabilities, Sensitive
from skfair.classification import (
    ConstrainedERMClassifier,
    FairDecisionClassifier,
)
from skfair.constraints import ConditionalOn, DemographicParity
from skfair.model_selection import StratifiedSensitiveKFold
from tests.families import rows_of_families
from tests.messages import messages
from tests.seeds import generator

N = 240
X = generator().normal(size=(N, 3))
Y = np.arange(N) // 2 % 2
SEX, AGE = np.tile(["f", "m"], N // 2), np.repeat(["new", "old"], N // 2)
BOTH = pd.DataFrame({"sex": SEX, "age": AGE})
LAW = np.where(X[:, 0] > 0, "law", "art")
PERSON = np.arange(N) % 40
WOMAN = expit(2 * X[:, 0])
CHANCES = GroupProbabilities(np.column_stack([WOMAN, 1 - WOMAN]), ["f", "m"])
STRATA = ConditionalOn("demographic_parity")
HIGH = np.where(X[:, 0] > 0.5, "f", "m")
TWO_LIMITS = ConditionalOn(DemographicParity(0.05), max_disparity=0.3)


def fit(
    model=ConstrainedERMClassifier, rows=X, y=Y, groups=SEX, *, within=None, people=None, **own
):
    """Fit; ``within`` are strata, and ``people`` the persons of the rows."""
    given = {"sensitive_features": groups, "control_features": within, "units": people}
    return model(**own).fit(
        rows, y, **{name: one for name, one in given.items() if one is not None}
    )


def decisions(estimator=None, **own):
    return fit(FairDecisionClassifier, estimator=estimator, **own)


def apart(**limits):
    return fit(groups=BOTH, max_disparity=limits, sensitive=Sensitive(intersectional=False))


def parted():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # that the splitter ignores people
        return decisions(cv=KFold(4), people=PERSON)


def few(n_rows, model, **own):
    """Fit to a class of few rows."""
    return fit(model, y=(np.arange(N) < n_rows).astype(int), **own)


def svm():
    return FairDecisionClassifier(LinearSVC())


def by_column(columns=None, **own):
    table, sensitive = pd.DataFrame(X, columns=list("abc")), Sensitive(control_features=columns)
    return fit(rows=table, constraint=STRATA, sensitive=sensitive, **own)


def probable(model=FairDecisionClassifier, **own):
    """Fit to groups that are known by probability, from classes that differ between them."""
    return fit(model, y=1 * (X[:, 0] > 0), groups=CHANCES, **own)


def of_columns(columns):
    return fit(groups=None, sensitive=Sensitive(columns, probabilities=True))


def lazily_without_a_stratum():
    da = pytest.importorskip("dask.array")
    law = LAW.astype(object)
    law[70] = None
    rows, y, sex, law = (da.from_array(one, chunks=100) for one in (X, Y, SEX, law))
    return fit(rows=rows, y=y, groups=sex, within=law, constraint=STRATA)


def predict_with_probabilities():
    model = decisions(LinearSVC(), group_aware=True, max_disparity=1.0)
    return model.predict(X, sensitive_features=CHANCES)


class Cubes(LogisticRegression):
    """Reads arrays of three dimensions."""

    def fit(self, X, y, sample_weight=None):
        return super().fit(X.reshape(len(X), -1), y, sample_weight)

    def decision_function(self, X):
        return super().decision_function(X.reshape(len(X), -1))


def stream():
    return ConstrainedERMClassifier().partial_fit(X, Y, sensitive_features=CHANCES)


def cubes():
    return decisions(Cubes(), rows=X[:, :, None], y=1 * (X[:, 0] > 0), groups=HIGH)


TWICE, PASS = "has two limits. Pass max_disparity in one", "Pass another group_estimator="
NEEDS, SPREAD = "needs the group of each", "of class 1.*spreads it"

test_limits_that_cannot_be_are_named = messages(
    (ValueError, "attributes 'sex', 'age'|attributes sex, age", lambda: apart(sex=0.1)),
    (ValueError, r"max_disparity\['sex'\]", lambda: apart(sex=-1, age=None)),
    (ValueError, "'as before'", lambda: fit(min_rate="as ever")),
    (ConvergenceWarning, "it is missed", lambda: fit(min_rate=0.5, selection_rate=0.2)),
    (ValueError, TWICE, lambda: fit(constraint=TWO_LIMITS, within=LAW)),
    (ValueError, TWICE, lambda: decisions(constraint=TWO_LIMITS, within=LAW)),
)

test_folds_that_cannot_be_are_named = messages(
    (ValueError, "puts rows of the same units= into several folds", parted),
    (UserWarning, "ignored", lambda: decisions(cv=KFold(6), people=np.repeat(range(6), 40))),
    (ValueError, "got 3 different values of units", lambda: decisions(cv=5, people=PERSON % 3)),
    (ValueError, f"y has 1 row {SPREAD}", lambda: few(1, FairDecisionClassifier)),
    (ValueError, f"y has 2 rows {SPREAD}", lambda: few(2, svm)),
    *(
        (ValueError, f"y has {n} rows? {SPREAD}", partial(few, n, kind, **own))
        for kind in rows_of_families("CALIBRATORS")
        for n, own in ((1, {}), (20, {"cv": KFold(3)}))
    ),
)

test_strata_that_cannot_be_are_named = messages(
    (ValueError, "was passed to fit although", lambda: by_column("c", within=LAW)),
    (ValueError, "control_features has the position 9", lambda: by_column(9)),
    (TypeError, "control_features='law' is a name", lambda: by_column(within="law")),
    (ValueError, "Control attribute 'control_feature' has 1", lazily_without_a_stratum),
)

test_what_needs_the_group_of_each_row_says_so = messages(
    (ValueError, f"group_aware=True .* {NEEDS}", lambda: probable(group_aware=True)),
    (ValueError, f"certificate=0.9 .* {NEEDS}", lambda: probable(certificate=0.9)),
    (ValueError, "splits by group", lambda: probable(cv=StratifiedSensitiveKFold(3))),
    *(
        (TypeError, f"{kind.__name__} {NEEDS} row", lambda kind=kind: probable(kind))
        for kind in rows_of_families("KINDS") + rows_of_families("TRAINED")
    ),
    (ValueError, PASS, lambda: probable(group_estimator=KNeighborsClassifier(15))),
    (ValueError, "at least 0", lambda: of_columns([0, 1])),
    (ValueError, "'0' alone", lambda: of_columns(2)),
    (TypeError, f"partial_fit {NEEDS} row", stream),
    (ValueError, "5 rows but the other data have 240", lambda: fit(groups=CHANCES[:5])),
    (TypeError, "each row must have one group", predict_with_probabilities),
    (ValueError, "reads are no table.*Pass group_estimator=", cubes),
)
