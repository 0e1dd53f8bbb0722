"""Columns of an audit in another order than its rows."""

from functools import partial

from sklearn.linear_model import LogisticRegression

from skfair.report import Audit, audit
from tests.groups.test_alignment import OTHER_ORDER, SCORE, SEX, X, Y, mixed
from tests.messages import messages


def audited(name):
    given = {"y_pred": Y, "y_score": SCORE, "before": Y, "sample_weight": SCORE}
    audit(Y, **given | {name: mixed(given[name])}, sensitive_features=SEX)


def audited_model(y, sex):
    Audit.from_estimator(LogisticRegression().fit(X, Y), X, y, sensitive_features=sex)


test_columns_in_another_order = messages(
    *(
        (ValueError, f"^{name} and the data have the {OTHER_ORDER}", partial(audited, name))
        for name in ("y_pred", "y_score", "before", "sample_weight")
    ),
    (ValueError, OTHER_ORDER, lambda: audited_model(mixed(Y), SEX)),
    (ValueError, OTHER_ORDER, lambda: audited_model(Y.to_numpy(), mixed(SEX))),
    # Lists have a method ``index``, and hide nothing.
    (ValueError, OTHER_ORDER, lambda: audit(Y.tolist(), Y, sensitive_features=mixed(SEX))),
)
