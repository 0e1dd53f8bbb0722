"""How fits end: each word of ``status_`` is reached, documented, and said by the same sentence."""

import ast
import pickle
import re
import warnings
from importlib import import_module
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.exceptions import NotFittedError

import skfair
from skfair import Objective
from skfair.classification import ConstrainedERMClassifier, FairDecisionClassifier
from skfair.cluster import FairAssignment
from skfair.regression import ConstrainedERMRegressor, FairDecisionRegressor
from skfair.utils.endings import ENDINGS, Ending, Status, as_clause
from tests.families import by_families, rows_of_families
from tests.older import needs_callbacks
from tests.prototypes import QuietCallback
from tests.public import discover_estimators
from tests.seeds import generator

ROOT = Path(__file__).parents[2]
rng = generator(0)
SEX = rng.choice(["f", "m"], 400)
X = rng.normal(size=(400, 3)) + (SEX == "m")[:, None] * [1, 0, 0]
NUMBERS = X.sum(axis=1) + rng.logistic(size=400)
CLASSES = {"X": X, "y": NUMBERS > 1, "sensitive_features": SEX}
AMOUNTS = CLASSES | {"y": NUMBERS}
HEAVY = np.r_[np.full(3, 500.0), np.ones(397)]  # of four clusters, one has no heavy row
ERM, ERM_OF_NUMBERS = ConstrainedERMClassifier, ConstrainedERMRegressor
# For each estimator and each word, a model and what it is fitted to.
FITS = {
    ERM: {
        "converged": (ERM(), CLASSES),
        "stopped": (ERM(enforce="surrogate"), CLASSES),
        "max_iter": (ERM(max_iter=1), CLASSES),
        "infeasible": (ERM("bounded_group_loss", 0.01), CLASSES),
        "certified": (ERM(max_disparity=0.7, certificate=0.6, random_state=0), CLASSES),
        "no_solution": (ERM(max_disparity=1e-4, certificate=0.99, random_state=0), CLASSES),
    },
    ERM_OF_NUMBERS: {
        "converged": (ERM_OF_NUMBERS(max_disparity=0.3), AMOUNTS),
        "stopped": (ERM_OF_NUMBERS(enforce="surrogate"), AMOUNTS),
        "max_iter": (ERM_OF_NUMBERS(enforce="surrogate", max_iter=1), AMOUNTS),
        "infeasible": (ERM_OF_NUMBERS("bounded_group_loss", 0.01), AMOUNTS),
        "certified": (ERM_OF_NUMBERS(max_disparity=3.0, certificate=0.6), AMOUNTS),
        "no_solution": (ERM_OF_NUMBERS(max_disparity=1e-4, certificate=0.99), AMOUNTS),
    },
    FairDecisionClassifier: {
        "converged": (FairDecisionClassifier(), CLASSES),
        "infeasible": (
            FairDecisionClassifier(
                objective=Objective("accuracy", at_least=0.9999),
                max_disparity=None,
                group_aware=True,
            ),
            CLASSES,
        ),
        "certified": (FairDecisionClassifier(max_disparity=0.7, certificate=0.6), CLASSES),
        "no_solution": (FairDecisionClassifier(max_disparity=1e-4, certificate=0.99), CLASSES),
    },
    FairDecisionRegressor: {
        "converged": (FairDecisionRegressor(max_disparity=0.3), AMOUNTS),
        "infeasible": (
            FairDecisionRegressor(constraint="loss_parity", max_disparity=1e-9),
            AMOUNTS | {"y": NUMBERS * np.where(SEX == "m", 5.0, 1.0)},
        ),
    },
    FairAssignment: {
        "converged": (FairAssignment(random_state=0), {"X": X, "sensitive_features": SEX}),
        "infeasible": (
            FairAssignment(KMeans(4), min_balance=None, size_bounds=(0.23, 0.3), random_state=0),
            {"X": X, "sensitive_features": SEX, "sample_weight": HEAVY},
        ),
    },
    **by_families("ENDINGS"),
}
CASES = [(kind, word) for kind, fits in FITS.items() for word in fits if word != "stopped"]
STOPPING = [kind for kind in FITS if "stopped" in kind._endings]


def ended(kind, word):
    # A fit that would converge is stopped, unless there is another one.
    model, rows = FITS[kind][word] if word in FITS[kind] else FITS[kind]["converged"]
    model = clone(model)
    if word == "stopped":
        model.set_callbacks(Stop())
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(**rows)
    return model, [str(one.message) for one in caught]


class Stop(QuietCallback):
    def on_fit_task_end(self, estimator, context):
        return context.task_name == "iteration"


def test_every_estimator_with_a_status_is_tested_here():
    own = {kind for kind in discover_estimators().values() if getattr(kind, "_endings", ())}
    assert own == set(FITS)
    reached = {*CASES, *((kind, "stopped") for kind in STOPPING), *rows_of_families("BY_ROUNDING")}
    assert reached == {(kind, word) for kind in FITS for word in kind._endings}


@pytest.mark.parametrize(("kind", "word"), CASES)
def test_each_ending_is_reached(kind, word):
    model, said = ended(kind, word)
    assert model.status_ == word
    assert type(model.status_) is str
    assert f"status {word}: {as_clause(word)}" in model.summary_
    assert pickle.loads(pickle.dumps(model)).status_ == word
    if word == "no_solution" or (word == "max_iter" and said):
        assert any(ENDINGS[word] in text for text in said)


@needs_callbacks
@pytest.mark.parametrize("kind", STOPPING)
def test_each_fit_that_can_be_stopped_says_so(kind):
    model, _ = ended(kind, "stopped")
    assert model.status_ == "stopped"
    assert as_clause("stopped") in model.summary_


@pytest.mark.parametrize("kind", FITS)
def test_a_docstring_lists_the_endings_of_its_estimator(kind):
    (entry,) = re.findall(r"^status_ : str\n((?:    .*\n|\n)+)", kind.__doc__, re.M)
    listed = dict(re.findall(r'- "(\w+)": ((?:.|\n)+?)(?=\n *- |\n*\Z)', entry))
    assert {word: " ".join(text.split()) for word, text in listed.items()} == {
        word: ENDINGS[word] for word in kind._endings
    }


@pytest.mark.parametrize("kind", FITS)
def test_no_other_word_is_stored(kind):
    model = kind()
    for word in {"done", *ENDINGS} - {*kind._endings}:
        with pytest.raises(RuntimeError, match=rf"status_='{word}', which is not one"):
            model._store({"status_": word})
    with pytest.raises(NotFittedError):
        model.status_  # noqa: B018


def test_words_of_fits_are_stored_by_the_method_that_checks_them():
    for path in Path(skfair.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            is_set = isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
            assert not (is_set and node.attr == "status_"), path


def test_every_word_has_a_sentence():
    solvers, own = get_args(Ending)
    assert {*get_args(solvers), *get_args(own)} == set(ENDINGS)
    assert get_args(Status) == get_args(solvers)
    for sentence in ENDINGS.values():
        assert re.fullmatch(r"[A-Z][^.]+\.", sentence)
    assert len({*ENDINGS.values()}) == len(ENDINGS)


def test_the_page_prints_the_sentences(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "doc")
    text = import_module("ending_table").text()
    assert (
        ".. include:: ../generated/endings.txt"
        in (ROOT / "doc" / "user_guide" / "faq.rst").read_text()
    )
    for word, sentence in ENDINGS.items():
        assert f'   * - ``"{word}"``\n     - {sentence}' in text


def test_a_summary_does_not_say_that_a_missed_limit_is_satisfied():
    """With enforce="surrogate" a fit converges although the counted disparity exceeds the limit."""
    limits = 0.001, 0.01, 0.02, 0.05
    models = [ERM(max_disparity=limit, enforce="surrogate").fit(**CLASSES) for limit in limits]
    missed = [own for own in models if own.train_disparity_ > own.max_disparity]
    assert missed
    for own in missed:
        assert own.status_ == "converged"
        assert "as it enforces them" in own.summary_
        assert "training rows" not in own.summary_


def test_a_missed_objective_is_not_called_a_violated_limit():
    model, given = FITS[FairDecisionClassifier]["infeasible"]
    with pytest.warns(UserWarning, match="objective of at_least"):
        model = clone(model).fit(**given)
    assert "objective" in model.summary_
