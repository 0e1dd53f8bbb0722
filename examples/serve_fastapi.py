"""Serve fair decisions by FastAPI: fit and store a model, then answer requests.

    python serve_fastapi.py loans.joblib
    LOANS_MODEL=loans.joblib uvicorn serve_fastapi:app --workers 2

A request is a list of people, each with the columns of the fit by name, in any order and perhaps
with others beside them. The answer has the decision about each person, and a sentence for them:

    curl localhost:8000/decide --json '[{"income": 2.1, "loan_amount": 4, "housing": null}]'
"""

import os
import sys
from typing import Any

import joblib
import pandas as pd
from fastapi import FastAPI, HTTPException
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder

from skfair.classification import FairDecisionClassifier
from skfair.datasets import make_loans

NUMBERS, TEXTS = ["income", "loan_amount", "age"], ["housing", "credit_history"]
app = FastAPI()
served: dict[str, Any] = {}


def fit(path: str, n_people: int = 4_000) -> None:
    """Fit one model that serves, and store it with the types of its columns."""
    loans = make_loans(n_people, bias=2.0, random_state=0)
    X = loans.data[NUMBERS + TEXTS]
    codes = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    model = FairDecisionClassifier(
        make_pipeline(
            make_column_transformer((codes, TEXTS), ("passthrough", NUMBERS)),
            HistGradientBoostingClassifier(max_iter=40, random_state=0),
        ),
        max_disparity=0.05,
        ensemble=False,
        random_state=0,
    )
    model.fit(X, loans.target, sensitive_features=loans.sensitive_features["sex"])
    del model.train_predictions_  # a server needs no training rows
    joblib.dump({"model": model, "types": X.dtypes.to_dict()}, path)


@app.post("/decide")
def decide(people: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Decide about people; FastAPI calls this function in one of its threads."""
    if not served:  # each worker reads the file once
        served.update(joblib.load(os.environ["LOANS_MODEL"]))
    table, types = pd.DataFrame(people), served["types"]
    if missing := types.keys() - set(table):
        raise HTTPException(
            422, f"Each person needs {', '.join(sorted(missing))}; null is allowed."
        )
    try:  # without its type, a column of null would be no number
        reasons = served["model"].explain_decision(table.astype(types))
    except ValueError as error:
        raise HTTPException(422, str(error)) from error
    return reasons[["decision", "probability", "threshold", "sentence"]].to_dict("records")


if __name__ == "__main__":
    fit(sys.argv[1])
