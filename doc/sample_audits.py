"""Pages of every kind that the site shows as samples and ``make doc-look`` looks at."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from skfair.classification import FairDecisionClassifier
from skfair.datasets import make_loans
from skfair.model_selection import fairness_path
from skfair.report import Audit, audit, search_alternatives


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
            y_score=scores,
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
            y_score=scores,
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


def alternatives(file: Path) -> None:
    """Write the page of a search for less discriminatory alternatives."""
    loans = make_loans(8000, bias=2.0, missing_rate=0.0, random_state=0)
    search_alternatives(
        DecisionTreeClassifier(max_depth=6, min_samples_leaf=20, random_state=0),
        {"max_depth": [4, 6, 8], "max_features": [2, 3, 4], "min_samples_leaf": [20, 50, 100]},
        loans.data.select_dtypes("number"),
        loans.target,
        sensitive_features=loans.sensitive_features["sex"],
        title="Loans: would another model have been fairer?",
    ).to_html(file)


def choice(file: Path) -> None:
    """Write the page on which a committee chooses one of eight limits, or none."""
    loans = make_loans(8000, bias=2.0, missing_rate=0.0, random_state=0)
    X, y, groups = loans.data.select_dtypes("number"), loans.target, loans.sensitive_features
    train, rest = slice(0, 4000), slice(4000, 8000)
    today = make_pipeline(StandardScaler(), LogisticRegression())
    model = FairDecisionClassifier(today, cv=3, random_state=0)
    limits = [0.25, 0.2, 0.15, 0.1, 0.07, 0.05, 0.03, 0.02]
    path, held = (
        fairness_path(
            clone(model).set_params(selection_rate=rate),
            X[train],
            y[train],
            sensitive_features=groups["sex"][train],
            max_disparities=limits,
        )
        for rate in (None, "as before")
    )
    path.to_html(
        file,
        X=X[rest],
        y=y[rest],
        sensitive_features=groups[rest],
        before=today.fit(X[train], y[train]),
        rate_held=held,
        decided="granted a loan",
        title="Loans: which difference do we accept?",
    )
