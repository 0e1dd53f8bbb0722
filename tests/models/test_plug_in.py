"""Score models of users: the contract, its check, and fits that are those of our own models."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from skfair.classification import ConstrainedERMClassifier
from skfair.metrics import demographic_parity_difference
from skfair.models import check_score_model
from tests.seeds import generator


class Affine:
    """Linear scores with an intercept, as a user would write them."""

    def __init__(self, n_features):
        self.n_parameters = n_features + 1

    def start(self, rng):
        return np.zeros(self.n_parameters)

    def forward(self, theta, X):
        return X @ theta[:-1] + theta[-1], X

    def pullback(self, tape, slopes):
        return np.append(tape.T @ slopes, slopes.sum())


class Waves(Affine):
    """Scores that are not linear in the parameters: a sine per column."""

    def start(self, rng):
        return rng.normal(size=self.n_parameters)

    def forward(self, theta, X):
        return np.sin(X * theta[:-1]).sum(axis=1) + theta[-1], (theta, X)

    def pullback(self, tape, slopes):
        theta, X = tape
        return np.append(slopes @ (np.cos(X * theta[:-1]) * X), slopes.sum())


def people(n=400, seed=0):
    """Columns of mean 0 and deviation 1, so that our linear scores have the user's coordinates."""
    rng = generator(seed)
    sex = rng.choice(["f", "m"], n)
    X = rng.normal(size=(n, 3)) + (sex == "m")[:, None] * [1.0, 0, 0]
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    y = X[:, 0] + X[:, 1] + rng.normal(size=n) > 0.3
    return X, y, sex


@pytest.mark.parametrize("model", [Affine(3), Waves(3)])
def test_sound_models_pass(model):
    check_score_model(model, people(30)[0])
    check_score_model(model, people(30)[0].astype(np.float32))


class Single(Waves):
    """Scores and slopes of single precision."""

    def forward(self, theta, X):
        scores, tape = super().forward(theta.astype(np.float32), X.astype(np.float32))
        return scores.astype(np.float32), tape


class One(Affine):
    """One parameter."""

    def __init__(self):
        super().__init__(0)

    def forward(self, theta, X):
        return super().forward(theta, X[:, :0])


def test_models_of_single_precision_or_one_parameter():
    X = people(30)[0]
    check_score_model(Single(3), X)
    check_score_model(One(), X)
    twice = type("Twice", (Single,), {"pullback": lambda *args: 2 * Single.pullback(*args)})
    with pytest.raises(AssertionError, match="not the derivative"):
        check_score_model(twice(3), X)


def changed(**methods):
    return type("Changed", (Waves,), methods)(3)


def spoil(self, theta, X):
    theta[0] += 1
    return Affine.forward(self, theta, X)


@pytest.mark.parametrize(
    ("methods", "message"),
    [
        ({"start": lambda self, rng: np.zeros(2)}, "n_parameters says"),
        ({"start": lambda self, rng: [0.0] * 4}, "must return an array"),
        ({"start": lambda self, rng: np.random.default_rng().random(4)}, "for the same seed"),
        ({"start": lambda self, rng: np.full(4, np.nan)}, "not finite"),
        ({"forward": lambda self, t, X: (X, X)}, "scores of shape"),
        ({"forward": lambda self, t, X: (X[:, 0] - X[:, 0].mean() + t[0], 0)}, "rows beside"),
        ({"forward": spoil}, "changes the parameters"),
        ({"pullback": lambda self, tape, s: np.zeros(4)}, "not the derivative"),
        ({"pullback": lambda self, tape, s: np.zeros(3)}, "pullback has the shape"),
        ({"pullback": lambda self, tape, s: np.ones(4)}, "twice the slopes"),
    ],
)
def test_unsound_models_are_caught(methods, message):
    with pytest.raises(AssertionError, match=message):
        check_score_model(changed(**methods), people(30)[0])


def test_a_tape_that_does_not_last_is_caught():
    class Forgetful(Waves):
        def forward(self, theta, X):
            scores, self.tape = super().forward(theta, X)
            return scores, None

        def pullback(self, tape, slopes):
            return super().pullback(self.tape, slopes[: len(self.tape[1])])

    with pytest.raises(AssertionError):
        check_score_model(Forgetful(3), people(30)[0])


def test_wrong_number_of_parameters():
    class Wrong(Waves):
        n_parameters = 0

        def __init__(self): ...

    with pytest.raises(AssertionError, match="at least 1"):
        check_score_model(Wrong(), people(30)[0])


@pytest.mark.parametrize("solver", ["alm", "al_lbfgs"])
@pytest.mark.parametrize("constraint", ["demographic_parity", "loss_parity"])
def test_linear_scores_of_a_user_are_our_own(solver, constraint):
    X, y, sex = people()
    params = {
        "constraint": constraint,
        "solver": solver,
        "alpha": 0.0,
        "max_iter": 60,
        "enforce": "surrogate",
        "random_state": 0,
    }
    own = ConstrainedERMClassifier(**params)
    user = ConstrainedERMClassifier(model=Affine(3), **params)
    for model in (own, user):
        model.fit(X, y, sensitive_features=sex)
    expected = np.append(own.coef_[0], own.intercept_)
    assert_allclose(user.parameters_, expected, atol=1e-6)
    assert_allclose(user.decision_function(X), own.decision_function(X), atol=1e-6)
    assert user.objective_ == pytest.approx(own.objective_, abs=1e-8)


def test_strict_bounds_hold_for_predictions():
    X, y, sex = people()
    model = ConstrainedERMClassifier(
        "demographic_parity", 0.03, model=Waves(3), max_iter=300, random_state=0
    )
    model.fit(X, y, sensitive_features=sex)
    predicted = model.predict(X)
    gap = demographic_parity_difference(y, predicted, sensitive_features=sex)
    assert gap <= 0.03
    assert model.train_disparity_ == pytest.approx(gap)
    assert np.mean(predicted == y) > 0.6
    scores = model.score_scale_ * Waves(3).forward(model.parameters_, X)[0] + model.score_shift_
    assert_allclose(model.decision_function(X), scores)
    for other in (
        pickle.loads(pickle.dumps(model)),
        clone(model).fit(X, y, sensitive_features=sex),
    ):
        assert_array_equal(other.decision_function(X), model.decision_function(X))


def test_streams_go_on():
    X, y, sex = people()
    stream = ConstrainedERMClassifier(model=Affine(3), random_state=0)
    for part in np.split(np.arange(400), 4):
        stream.partial_fit(X[part], y[part], classes=[False, True], sensitive_features=sex[part])
    assert stream.score(X, y) > 0.6


def test_mistakes():
    X, y, sex = people()
    with pytest.raises(ValueError, match="'model' parameter"):
        ConstrainedERMClassifier(model="mlp").fit(X, y, sensitive_features=sex)
    many = Affine(3)
    many.n_parameters = "many"
    with pytest.raises(TypeError, match="attribute n_parameters of model="):
        ConstrainedERMClassifier(model=many).fit(X, y, sensitive_features=sex)
    flat = type("Flat", (Affine,), {"forward": lambda self, t, X: (np.zeros(3), X)})(3)
    with pytest.raises(ValueError, match=r"scores of shape \(3,\)"):
        ConstrainedERMClassifier(model=flat).fit(X, y, sensitive_features=sex)
