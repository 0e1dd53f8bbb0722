"""The example of a web service, as a real server with two workers under load."""

import json
import os
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path

import joblib
import numpy as np
import pytest

from skfair.datasets import make_loans

EXAMPLE = Path(__file__).parent.parent / "examples" / "serve_fastapi.py"
pytest.importorskip("fastapi", reason="fastapi is not installed")
pytest.importorskip("uvicorn", reason="uvicorn is not installed")
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    """Return the port of the server, and what it serves."""
    path = tmp_path_factory.mktemp("service") / "loans.joblib"
    subprocess.run([sys.executable, EXAMPLE, path], check=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = ["-m", "uvicorn", "serve_fastapi:app", "--workers", "2", "--log-level", "warning"]
    server = subprocess.Popen(
        [sys.executable, *command, "--host", "127.0.0.1", "--port", str(port)],
        cwd=EXAMPLE.parent,
        env={**os.environ, "LOANS_MODEL": str(path)},
    )
    try:
        for _ in range(600):
            try:
                ask(port, [])
                break
            except OSError:
                time.sleep(0.1)
        yield port, joblib.load(path)
    finally:
        server.terminate()
        server.wait(timeout=30)


def ask(port, people):
    """Send a request; return the status and the answer."""
    headers = {"Content-Type": "application/json"}
    with closing(HTTPConnection("127.0.0.1", port, timeout=60)) as connection:
        connection.request("POST", "/decide", json.dumps(people), headers)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())


def test_a_thousand_requests_get_the_decisions_of_the_model(service):
    port, served = service
    names = list(served["types"])
    people = make_loans(1000, bias=2.0, random_state=7).data[names]
    rows = json.loads(people.to_json(orient="records"))
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda row: ask(port, [row]), rows))
    assert {status for status, _ in answers} == {200}
    expected = served["model"].predict(people)
    assert [answer[0]["decision"] for _, answer in answers] == expected.tolist()
    assert 0 < np.mean(expected) < 1


def test_other_orders_and_further_columns_are_served_and_missing_ones_are_named(service):
    port, served = service
    names = list(served["types"])
    people = make_loans(20, bias=2.0, random_state=8).data[names]
    rows = json.loads(people.to_json(orient="records"))
    turned = [{"name": "Ada", **dict(reversed(row.items()))} for row in rows]
    assert ask(port, turned) == ask(port, rows)
    status, answer = ask(port, [{"income": 2.0}])
    assert status == 422
    assert "Each person needs age, credit_history, housing, loan_amount" in answer["detail"]
