"""Promises to users beyond one process and one fit; ``test_common.py`` has the rest.

Models travel to other processes, do not depend on the number of threads, do not disturb each other
and leave no memory behind.
"""

import gc
import io
import os
import pickle
import re
import shutil
import subprocess
import sys
import tomllib
import tracemalloc
import warnings
from concurrent.futures import ThreadPoolExecutor
from importlib import metadata
from pathlib import Path

import joblib
import numpy as np
import pytest
from sklearn.base import clone, is_clusterer

import skfair
from skfair import base
from skfair.utils.response import takes_groups
from tests.seeds import generator
from tests.test_common import DISCOVERED, fit, outcome, seeded

ROOT = Path(__file__).parent.parent
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS", "MKL_NUM_THREADS")
N_FITS = 4
CHEAP = {
    "max_iter": 2,
    "n_init": 1,
    "n_clusters": 2,
    "balances": 2,
    "cv": 2,
    "enforce": "surrogate",
}
each = pytest.mark.parametrize("name", DISCOVERED)


def people(n=300):
    rng = generator(12)
    groups = rng.permutation(np.repeat(["f", "m"], n // 2))
    X = rng.normal(size=(n, 3)) + (groups == "m")[:, None] * [1.0, 0, 0]
    y = (X[:, 1] + rng.normal(size=n) > 0).astype(int)
    return X, y, groups


def fitted(name, n=300):
    """Fit an estimator by name: what a worker of any kind is asked to do."""
    X, y, groups = people(n)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # filters are not safe between threads
        return fit(seeded(DISCOVERED[name]), X, y, sensitive_features=groups)


def predicted(model):
    X, _, groups = people()
    return outcome(model, X, groups)


# Another process: it predicts with the models of a folder, and with models that it fits itself.
ELSEWHERE = """
import joblib, numpy, pathlib, pickle, sys
folder, found = pathlib.Path(sys.argv[1]), {}
(X, y, extra), names = joblib.load(folder / "data"), sys.argv[3:]
for name in names:
    (new, fit_args, predict_args) = pickle.loads((folder / name).read_bytes())
    models = {
        "pickle": pickle.loads((folder / f"{name}.pickle").read_bytes()),
        "joblib": joblib.load(folder / f"{name}.joblib"),
        "fit": new.fit(*fit_args, **extra),
    }
    for way, model in models.items():
        has_method = hasattr(model, "predict")
        found[f"{name} {way}"] = model.predict(X, **predict_args) if has_method else model.labels_
numpy.savez(folder / f"{sys.argv[2]}.npz", **found)
"""


@pytest.fixture(scope="module")
def models():
    return {name: fitted(name) for name in DISCOVERED}


@pytest.fixture(scope="module")
def answers(models, tmp_path_factory):
    """Predictions of two other processes, one with one thread and one with two."""
    folder = tmp_path_factory.mktemp("models")
    X, y, groups = people()
    joblib.dump((X, y, {"sensitive_features": groups}), folder / "data")
    for name, model in models.items():
        (folder / f"{name}.pickle").write_bytes(pickle.dumps(model))
        joblib.dump(model, folder / f"{name}.joblib")
        fit_args = (X,) if is_clusterer(model) else (X, y)
        is_aware = hasattr(model, "predict") and takes_groups(model, "predict")
        extra = {"sensitive_features": groups} if is_aware else {}
        (folder / name).write_bytes(pickle.dumps((seeded(type(model)), fit_args, extra)))
    started = [
        subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", ELSEWHERE, str(folder), n_threads, *models],
            env=os.environ | dict.fromkeys(THREADS, n_threads),
            cwd=ROOT,
        )
        for n_threads in ("1", "2")
    ]
    assert [process.wait(300) for process in started] == [0, 0]
    return {n: np.load(folder / f"{n}.npz") for n in ("1", "2")}


@pytest.mark.slow
@each
@pytest.mark.parametrize("n_threads", ["1", "2"])
def test_models_travel_to_another_process(name, n_threads, models, answers):
    expected = predicted(models[name])
    assert np.array_equal(answers[n_threads][f"{name} pickle"], expected)
    assert np.array_equal(answers[n_threads][f"{name} joblib"], expected)


@pytest.mark.slow
@each
def test_one_and_two_threads_agree(name, models, answers):
    assert np.array_equal(answers["1"][f"{name} fit"], answers["2"][f"{name} fit"])
    assert np.array_equal(answers["1"][f"{name} fit"], predicted(models[name]))


class Sizes(pickle.Pickler):
    """Notes how long the arrays of a pickle are."""

    def __init__(self):
        super().__init__(io.BytesIO())
        self.found = []

    def persistent_id(self, one):
        self.found += [*one.shape] if isinstance(one, np.ndarray) else []


# Documented results by row, the scores of a group in order (which repair needs), and what new
# rows are compared with.
BY_ROW = {"labels_", "train_predictions_", "affinity_matrix_", "embedding_"}
BY_ROW |= {"calibration_", "_prediction", "clusterer_", "train_weights_", "steps_"}
LIMITED = {"group_aware": False, "max_disparity": 0.001}
CERTIFIED = {"certificate": 0.9, "max_disparity": 0.3}


@pytest.mark.parametrize(
    ("name", "options"),
    [
        (name, options)
        for name, model in DISCOVERED.items()
        for options in ({}, LIMITED, CERTIFIED)
        if options.keys() <= seeded(model).get_params().keys()
    ],
    ids=str,
)
def test_models_keep_no_row(name, options):
    """A deployed file need not grow with the training rows, or tell what was estimated of them."""
    X, y, groups = people(400)
    model = seeded(DISCOVERED[name])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit(model.set_params(**options), X, y, sensitive_features=groups)
    long = set()
    for attribute, value in vars(getattr(model, "decisions_", model)).items():
        sizes = Sizes()
        sizes.dump(value)
        if max(sizes.found, default=0) > 100:
            long.add(attribute)
    assert long <= BY_ROW


@each
def test_a_model_of_another_version_is_said_to_be_one(name, models, monkeypatch):
    model = models[name]
    assert np.array_equal(predicted(pickle.loads(pickle.dumps(model))), predicted(model))  # silent
    monkeypatch.setattr(base, "__version__", "0.0.7")
    older = pickle.dumps(model)
    monkeypatch.undo()
    with warnings.catch_warnings(record=True) as found:  # models inside warn as well
        warnings.simplefilter("always")
        loaded = pickle.loads(older)
    begin = f"This {name} was saved by skfair 0.0.7, and is read by {skfair.__version__}: "
    assert any(str(one.message).startswith(begin) for one in found)
    assert np.array_equal(predicted(loaded), predicted(model))
    assert vars(loaded).keys() == vars(model).keys()


def test_different_estimators_at_the_same_time(models):
    """Each estimator beside every other one, and predictions beside fits."""
    names = [*models, *reversed(models)]
    with ThreadPoolExecutor(4) as pool:
        fits = [pool.submit(fitted, name) for name in names]
        predictions = [pool.submit(predicted, models[name]) for name in names]
        for name, model, prediction in zip(names, fits, predictions, strict=True):
            assert np.array_equal(predicted(model.result()), predicted(models[name])), name
            assert np.array_equal(prediction.result(), predicted(models[name])), name


@pytest.mark.slow
@each
def test_fits_leave_no_memory_behind(name):
    """Some fits of each estimator, again and again until caches are full; a leak never ends.

    One array with a number per row is 2400 bytes. numpy and Python keep some hundred bytes per fit
    at first, because they do not give small blocks back at once.
    """
    X, y, groups = people()
    estimator = seeded(DISCOVERED[name])
    estimator.set_params(**{k: v for k, v in CHEAP.items() if k in estimator.get_params()})

    def fits(number):
        for _ in range(number):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                fit(clone(estimator), X, y, sensitive_features=groups)
        gc.collect()

    fits(N_FITS)
    gc.freeze()  # what is there now is not searched through again and again
    tracemalloc.start()  # fits are several times slower from here on
    try:
        fits(2)  # what one fit leaves for the next is counted before
        for _ in range(15):
            before = tracemalloc.get_traced_memory()[0]
            fits(N_FITS)
            growth = tracemalloc.get_traced_memory()[0] - before
            if growth < 1800 * N_FITS:
                break
    finally:
        tracemalloc.stop()
    assert growth < 1800 * N_FITS


def test_a_release_is_one_version_and_is_tested_with_each_python():
    citation = (ROOT / "CITATION.cff").read_text()
    assert f"\nversion: {skfair.__version__}\n" in citation
    newest = re.search(r"^## (.*)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)[1]
    assert newest == skfair.__version__
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    pythons = re.findall(r"Python :: (3\.\d+)", " ".join(project["classifiers"]))
    workflow = (ROOT / ".github" / "workflows" / "publish.yml").read_text()
    (tested,) = re.findall(r"python: \[(.*)\]", workflow)
    assert re.findall(r"3\.\d+", tested) == pythons


def test_the_release_script_names_missing_pythons_and_the_tag(tmp_path):
    """A copy of the script runs with a stand-in for Python that does nothing but exist."""
    (tmp_path / ".ci").mkdir()
    (tmp_path / "skfair").mkdir()
    (tmp_path / "skfair" / "_version.py").write_text(f'__version__ = "{skfair.__version__}"\n')
    for part in ("pyproject.toml", ".ci/release"):
        shutil.copy(ROOT / part, tmp_path / part)
    script = tmp_path / ".ci" / "release"
    choosing, rest, _ = script.read_text().partition('echo "== $("$python"')
    assert rest
    script.write_text(choosing + 'echo "$(basename "$python") $dependencies"\n')
    (tmp_path / "bin").mkdir()
    for version in ("3.11", "3.13"):
        stand_in = tmp_path / "bin" / f"python{version}"
        stand_in.write_text("#!/bin/sh\n")
        stand_in.chmod(0o755)
    for version in ("3.12", "3.14"):  # such as shims of versions that are not installed
        stand_in = tmp_path / "bin" / f"python{version}"
        stand_in.write_text("#!/bin/sh\nexit 127\n")
        stand_in.chmod(0o755)
    environment = {"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}", "HOME": str(tmp_path)}
    run = subprocess.run([script], env=environment, capture_output=True, text=True, check=True)
    tested, (said, tag) = (lines := run.stdout.splitlines())[:-2], lines[-2:]
    assert tested == ["python3.11 newest", "python3.13 newest", "python3.11 oldest"]
    assert "not tested with Python 3.12 3.14" in said
    assert f"git tag --annotate v{skfair.__version__} " in tag


def test_a_script_beside_a_clone_imports_the_package(tmp_path):
    # A clone is a folder called skfair without __init__.py: a namespace package to Python.
    (tmp_path / "skfair").symlink_to(ROOT, target_is_directory=True)
    (tmp_path / "script.py").write_text("import skfair\nprint(skfair.__version__)\n")
    outside = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    try:
        metadata.version("skfair-suite")
    except metadata.PackageNotFoundError:
        pytest.skip("needs an environment into which skfair is installed")
    command = [sys.executable, "script.py"]
    run = subprocess.run(command, cwd=tmp_path, env=outside, capture_output=True, text=True)
    assert run.stdout.strip() == skfair.__version__, run.stderr
