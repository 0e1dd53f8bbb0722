"""What fits with certificate= say of certificates that cannot be."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

from skfair import Certificate
from skfair.classification import (
    ConstrainedERMClassifier,
    FairDecisionClassifier,
)
from skfair.constraints import DemographicParity, MeanScoreParity
from skfair.regression import ConstrainedERMRegressor
from tests.messages import messages
from tests.seeds import generator

N = 600
SEX = np.tile(["f", "m"], N // 2)
X = generator().normal(size=(N, 2)) + 0.5 * (SEX == "m")[:, None]
Y = np.arange(N) // 2 % 2
SCORED = FrozenEstimator(LogisticRegression().fit(X, Y))
PERSON = np.repeat(np.arange(N // 5), 5)
FEW = "With 120 people \\(600 rows\\)"


def fit(kind, constraint=None, *, by="cross", level=0.95, share=0.5, shift=0.0, y=Y, **options):
    """Fit with a certificate of some kind to two groups that have rows of both classes."""
    given = {name: options.pop(name) for name in ("units", "sample_weight") if name in options}
    options = {"certificate": Certificate(level, by=by, share=share, shift=shift)} | options
    if constraint is not None:
        options["constraint"] = constraint
    sex = options.pop("sex", SEX)
    return kind(**options).fit(X, y, sensitive_features=sex, **given)


def erm(constraint=None, **options):
    return fit(ConstrainedERMClassifier, constraint, **options)


def means(constraint=None, **options):
    return fit(ConstrainedERMRegressor, constraint, y=X[:, 0] + Y, **options)


def decisions(**options):
    return fit(FairDecisionClassifier, estimator=LogisticRegression(), cv=3, **options)


def lazily(model):
    da = pytest.importorskip("dask.array")
    X_, y, sex = (da.from_array(one, chunks=200) for one in (X, Y, SEX))
    return model.fit(X_, y, sensitive_features=sex)


def few(make, **own):
    """Fit to several rows of each person, within a small limit or without a certificate."""
    return make(units=PERSON, **{"max_disparity": 0.01} | own)


def of_one_group(make, constraint):
    return make(constraint=constraint, sex=np.repeat("a", N))


TO_ALL = DemographicParity(comparison="ratio", reference="overall")
UNREAD = "units= is not read here, because certificate is None"
RATES, LOSSES = "bounded_selection_rate", "bounded_group_loss"

test_what_has_no_certificate_is_named = messages(
    # shares and shifts
    (ValueError, "one side only", lambda: means(by="split", share=1e-4)),
    (ValueError, r"Use Certificate\(by='split'\)", lambda: means(model=(3,))),
    (ValueError, "certificate", lambda: erm(certificate=1.0)),
    (ValueError, "certificate", lambda: erm(certificate=0.0)),
    (ValueError, "certificate", lambda: erm(certificate=2.0)),
    (ValueError, "certificate", lambda: means(certificate=1)),
    # limits
    (ValueError, "min_rate", lambda: erm(min_rate=0.1)),
    (ValueError, "selection_rate", lambda: erm(selection_rate=0.1, by="split")),
    (ValueError, "not on rates", lambda: erm("loss_parity")),
    (ValueError, "not on rates", lambda: erm("loss_parity", by="split")),
    (ValueError, "ratios to the overall", lambda: erm(TO_ALL, max_disparity=0.2)),
    (ValueError, "has no test of", lambda: means("loss_parity")),
    (ValueError, "has no test", lambda: means(MeanScoreParity(reference="overall"))),
    (ValueError, "has no test", lambda: of_one_group(erm, RATES)),
    (ValueError, "has no test", lambda: of_one_group(decisions, RATES)),
    (ValueError, "has no test", lambda: of_one_group(means, LOSSES)),
    # rows
    (ValueError, "weighted rows", lambda: means(sample_weight=np.ones(N))),
    (ValueError, "rows in memory", lambda: lazily(ConstrainedERMClassifier(certificate=0.9))),
    (ConvergenceWarning, FEW, lambda: few(erm, by="split")),
    (ConvergenceWarning, FEW, lambda: few(means)),
    (ConvergenceWarning, FEW, lambda: few(decisions)),
    (ValueError, UNREAD, lambda: few(erm, certificate=None)),
    (ValueError, UNREAD, lambda: few(means, certificate=None)),
)
