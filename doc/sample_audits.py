"""Audits of every kind, whose pages the site shows as samples and ``make doc-look`` looks at."""

from collections.abc import Iterator

import numpy as np
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skfair.datasets import make_loans
from skfair.report import Audit, audit


def samples() -> Iterator[tuple[str, Audit]]:
    """Yield the audits by name: that of the user guide, scores, classes, numbers, two laws."""
    loans = make_loans(4000, random_state=0)
    X = loans.data.select_dtypes("number").fillna(0)
    y, groups = loans.target, loans.sensitive_features
    scores = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y).predict_proba(X)[:, 1]
    approved = (loans.data["income"] > 40).astype(int).rename("approved")
    yield "decisions", audit(y, approved, sensitive_features=groups, title="Loans")
    yield (
        "scores",
        audit(
            y,
            None,
            scores,
            sensitive_features=groups,
            threshold=0.5,
            before=approved,
            title="Loans: a new model against the rule before",
        ),
    )
    classes = np.digitize(scores, [0.4, 0.7])
    yield (
        "classes",
        audit((classes + y) % 3, classes, sensitive_features=groups, title="Three classes"),
    )
    numbers = LinearRegression().fit(X, scores).predict(X)
    yield "numbers", audit(scores, numbers, sensitive_features=groups, title="Numbers")
    yield (
        "ll144",
        audit(
            None,
            None,
            scores,
            sensitive_features=groups,
            preset="ll144",
            title="Impact ratios (New York City Local Law 144)",
        ),
    )
    reference = {name: str(groups[name].iloc[0]) for name in groups}
    yield (
        "ugesp",
        audit(
            y,
            approved,
            sensitive_features=groups,
            preset="ugesp",
            reference=reference,
            title="Adverse impact (four-fifths rule)",
        ),
    )
