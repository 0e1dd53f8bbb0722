"""Audits, for the tests that go over all families (:mod:`tests.families`)."""

from skfair.report import Audit, DataAudit, audit, audit_data


def audited(decisions, **given):
    return audit(None, decisions, n_simulations=5, **given)


def data_audited(decisions, **given):
    return audit_data(decisions.to_frame("p"), n_simulations=5, **given)


def rates_of(y, p, **options):
    return audit(y, p, n_simulations=20, **options).to_dict()["rates"]


RESULTS = [Audit, DataAudit]
READERS_OF_DECISIONS = [(audited, True), (data_audited, False)]  # whether they read Dask
READERS_OF_LABELS = {"audit": rates_of}
ASKING = {
    "audit": lambda X, y, A: audit(
        y, y, y_score=X[:, 0], sensitive_features={"a": A, "b": y}, control_features=X[:, 1] > 0,
        n_simulations=5,
    ),
    "audit_data": lambda X, y, A: audit_data(X, sensitive_features=A, y=y, n_simulations=5),
}  # fmt: skip
