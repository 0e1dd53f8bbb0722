import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skfair.classification import ConstrainedERMClassifier
from skfair.constraints import DemographicParity
from skfair.export import trusted_types
from tests.seeds import generator
from tests.test_release import DISCOVERED, fitted, predicted

sio = pytest.importorskip("skops.io", reason="skops is not installed")


@pytest.mark.parametrize("name", DISCOVERED)
def test_skops_loads_what_has_the_trusted_types(name, tmp_path):
    model, file = fitted(name), tmp_path / "model.skops"
    sio.dump(model, file)
    listed = trusted_types(model)
    assert f".{name}" in "".join(listed)
    for one in listed:  # none too many
        with pytest.raises(sio.exceptions.UntrustedTypesFoundException):
            sio.load(file, trusted=[other for other in listed if other != one])
    assert (predicted(sio.load(file, trusted=listed)) == predicted(model)).all()


def test_constraints_and_pipelines_are_read_too():
    rng = generator(0)
    X, sex = rng.normal(size=(100, 3)), rng.choice(["f", "m"], 100)
    constraint = DemographicParity(min_ratio=0.8)
    model = make_pipeline(StandardScaler(), ConstrainedERMClassifier(constraint))
    model.fit(X, (X[:, 0] > 0).astype(int), constrainedermclassifier__sensitive_features=sex)
    listed = trusted_types(model)
    assert f"{DemographicParity.__module__}.DemographicParity" in listed
    loaded = sio.loads(sio.dumps(model), trusted=listed)
    assert np.array_equal(loaded.predict(X), model.predict(X))
