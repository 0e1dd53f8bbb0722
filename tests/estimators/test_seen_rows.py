"""Fitted models and the rows that they were fitted to: named in fits, refused in certificates."""

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor
from sklearn.decomposition import PCA
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, TunedThresholdClassifierCV
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from skfair.classification import FairDecisionClassifier
from skfair.exceptions import SeenRowsWarning
from skfair.regression import FairDecisionRegressor
from tests.families import rows_of_families
from tests.seeds import generator

BOOSTER = HistGradientBoostingClassifier(max_iter=150, early_stopping=False)
REMEMBERING = {
    "forest": RandomForestClassifier(20),
    "neighbour": KNeighborsClassifier(1),
    "booster": BOOSTER,
    "pipeline": make_pipeline(StandardScaler(), KNeighborsClassifier(1)),
    "search": GridSearchCV(KNeighborsClassifier(), {"n_neighbors": [1]}),
}
LINEAR = make_pipeline(StandardScaler(), LogisticRegression())


def people(n, seed, noise=1.0):
    rng = generator(seed)
    sex = rng.choice(["f", "m"], n)
    X = rng.normal(size=(n, 4)) + 0.5 * (sex == "m")[:, None]
    return X, (X[:, 0] + X[:, 1] + noise * rng.logistic(size=n) > 0.5).astype(int), sex


def is_seen(outer, X, y, sex, recwarn, **options):
    recwarn.clear()
    outer.fit(X, y, sensitive_features=sex, **options)
    return any(warning.category is SeenRowsWarning for warning in recwarn)


@pytest.mark.parametrize("name", REMEMBERING)
def test_rows_that_a_model_remembers_are_found_and_new_ones_are_not(name, recwarn):
    own, new = people(800, 0), people(800, 10)
    model = clone(REMEMBERING[name]).fit(*own[:2])
    for outer in (
        FairDecisionClassifier(model, max_disparity=0.5, group_aware=True, cv="prefit"),
        *(
            kind(FrozenEstimator(model), max_disparity=0.5)
            for kind in rows_of_families("CALIBRATORS")
        ),
    ):
        assert is_seen(outer, *own, recwarn)
        assert not is_seen(outer, *new, recwarn)
        with pytest.raises(ValueError, match="fitted to these rows before.*Nothing can be certi"):
            outer.set_params(certificate=0.9).fit(*own[:2], sensitive_features=own[2])


@pytest.mark.parametrize("n_trained", [800, 8000])
def test_new_rows_of_a_model_of_more_rows_are_not_taken_for_seen_ones(n_trained, recwarn):
    for noise in (1.0, 0.0):  # the classes of the second are separable
        X, y, sex = people(n_trained + 600, 3, noise)
        model = RandomForestClassifier(20).fit(X[600:], y[600:])
        outer = FairDecisionClassifier(model, max_disparity=0.5, group_aware=True, cv="prefit")
        assert not is_seen(outer, X[:600], y[:600], sex[:600], recwarn)


def test_a_part_of_the_rows_that_a_model_remembers_is_found(recwarn):
    X, y, sex = people(4000, 0)
    model = RandomForestClassifier(20).fit(X, y)
    outer = FairDecisionClassifier(model, max_disparity=0.5, group_aware=True, cv="prefit")
    assert is_seen(outer, X[:800], y[:800], sex[:800], recwarn)


def test_linear_models_of_many_rows_pass(recwarn):
    X, y, sex = people(1500, 0)
    outer = FairDecisionClassifier(
        LINEAR.fit(X, y), max_disparity=0.3, group_aware=True, cv="prefit", certificate=0.9
    )
    assert not is_seen(outer, X, y, sex, recwarn)


@pytest.mark.parametrize("inner", [RandomForestRegressor(20), KNeighborsRegressor(1)])
def test_regressors_are_warned_of_in_the_same_way(inner, recwarn):
    (X, y, sex), new = people(800, 0), people(800, 1)
    numbers, new_numbers = X[:, 0] + y, new[0][:, 0] + new[1]
    model = clone(inner).fit(X, numbers)
    outer = FairDecisionRegressor(model, max_disparity=5.0, group_aware=True, cv="prefit")
    assert is_seen(outer, X, numbers, sex, recwarn)
    assert not is_seen(outer, new[0], new_numbers, new[2], recwarn)


def test_the_answer_is_always_the_same(recwarn):
    """Whatever the seed of the model: copies have one of their own."""
    X, y, sex = people(800, 0)
    model = RandomForestClassifier(20).fit(X, y)
    outer = FairDecisionClassifier(model, max_disparity=0.5, group_aware=True, cv="prefit")
    said = set()
    for _ in range(2):
        assert is_seen(outer, X, y, sex, recwarn)
        said |= {str(w.message) for w in recwarn if w.category is SeenRowsWarning}
    assert len(said) == 1


def test_rows_of_a_person_count_once_and_rows_without_weight_not_at_all(recwarn):
    X, y, sex = people(300, 0)
    model = RandomForestClassifier(20).fit(X, y)
    own = np.repeat(np.arange(300), 3)
    # Copies that know a person's other rows would be as sure of them as the model is.
    outer = FairDecisionClassifier(model, max_disparity=0.5, cv="prefit")
    visits = X[own] + 0.01 * generator(0).normal(size=(900, 4))
    assert is_seen(outer, visits, y[own], sex[own], recwarn, units=own)
    new = people(600, 1)
    both = [np.concatenate(pair) for pair in zip((X, y, sex), new, strict=True)]
    aware = FairDecisionClassifier(model, max_disparity=0.5, group_aware=True, cv="prefit")
    for weighs_seen in (True, False):
        weights = np.repeat([weighs_seen, not weighs_seen], [300, 600]).astype(float)
        assert is_seen(aware, *both, recwarn, sample_weight=weights) == weighs_seen


class Service(ClassifierMixin, BaseEstimator):
    """A model whose fit is not code of a package that only fits."""

    def __init__(self, forest=None):
        self.forest = forest

    def fit(self, X, y):
        raise AssertionError("the service was asked to train")

    def __sklearn_is_fitted__(self):
        return True

    @property
    def classes_(self):
        return self.forest.classes_

    def predict(self, X):
        return self.forest.predict(X)

    def predict_proba(self, X):
        return self.forest.predict_proba(X)


def test_nothing_is_fitted_that_may_be_more_than_a_fit(recwarn):
    X, y, sex = people(800, 0)
    forest = RandomForestClassifier(20).fit(X, y)
    for inner in (Service(forest), make_pipeline(StandardScaler(with_std=False), Service(forest))):
        outer = FairDecisionClassifier(inner, max_disparity=0.5, group_aware=True, cv="prefit")
        if hasattr(inner, "steps"):
            inner.steps[0][1].fit(X).mean_[:] = 0
        assert not is_seen(outer, X, y, sex, recwarn)


def test_tables_are_read_as_the_model_reads_them(recwarn):
    X, y, sex = people(800, 0)
    table = pd.DataFrame(X, columns=list("abcd"))
    model = RandomForestClassifier(20).fit(table, y)
    outer = FairDecisionClassifier(
        model, max_disparity=0.5, sensitive="sex", group_aware=True, cv="prefit"
    )
    recwarn.clear()
    outer.fit(table.assign(sex=sex), y)
    assert [w.category for w in recwarn] == [SeenRowsWarning]


# --- a fitted model inside another estimator ----------------------------------------------------


def voting(*models):
    return VotingClassifier([(str(k), model) for k, model in enumerate(models)], voting="soft")


def stacked(model, **options):
    return StackingClassifier([("base", model)], LogisticRegression(), **options)


FOREST = RandomForestClassifier(20)
# Estimators around a frozen model, which are fitted on folds.
AROUND = {
    "pipeline": lambda model: make_pipeline(FunctionTransformer(), model),
    "scaled": lambda model: make_pipeline(StandardScaler(with_std=False), model),
    "voting": lambda model: voting(model, model),
    "sigmoid": CalibratedClassifierCV,
    "isotonic": lambda model: CalibratedClassifierCV(model, method="isotonic"),
    "calibrated in folds": lambda model: CalibratedClassifierCV(model, ensemble=True, cv=3),
    "stacking": lambda model: stacked(model, cv=3),
    "pipeline in voting": lambda model: voting(make_pipeline(FunctionTransformer(), model), LINEAR),
    "search": lambda model: GridSearchCV(
        CalibratedClassifierCV(model, cv=2), {"method": ["isotonic"]}, cv=2
    ),
    "choice": lambda model: GridSearchCV(
        make_pipeline(FunctionTransformer(), LINEAR), {"pipeline": [model]}, cv=2
    ),
    "frozen twice": lambda model: FrozenEstimator(make_pipeline(FunctionTransformer(), model)),
}
# Estimators around a fitted model, which are passed fitted themselves.
FITTED_AROUND = {
    "sigmoid": lambda model: CalibratedClassifierCV(FrozenEstimator(model), cv=2),
    "stacking": lambda model: stacked(model, cv="prefit"),
    "threshold": lambda model: TunedThresholdClassifierCV(model, cv="prefit", refit=False),
}


def check_inside(outer, own, new, recwarn):
    assert is_seen(outer, *own, recwarn)
    assert not is_seen(outer, *new, recwarn)
    with pytest.raises(ValueError, match="fitted to these rows before.*Nothing can be certi"):
        clone(outer).set_params(certificate=0.9).fit(*own[:2], sensitive_features=own[2])


@pytest.mark.parametrize("name", AROUND)
def test_a_model_inside_another_is_found_if_it_remembers_the_rows(name, recwarn):
    own, new = people(700, 0), people(700, 10)
    if name == "scaled":  # the frozen model reads what the scaler returns
        own[0][:] -= own[0].mean(axis=0)
    model = AROUND[name](FrozenEstimator(clone(FOREST).fit(*own[:2])))
    for outer in (
        FairDecisionClassifier(model, max_disparity=0.5, group_aware=True),
        *(kind(model, max_disparity=0.5, cv=2) for kind in rows_of_families("CALIBRATORS")),
    ):
        check_inside(outer, own, new, recwarn)


@pytest.mark.parametrize("name", FITTED_AROUND)
@pytest.mark.parametrize("outermost", [FrozenEstimator, AROUND["frozen twice"], AROUND["pipeline"]])
def test_a_model_inside_a_fitted_one_is_found_too(name, outermost, recwarn):
    own, new = people(600, 0), people(600, 10)
    for rows in (own, people(600, 20)):
        inner = FITTED_AROUND[name](clone(FOREST).fit(*rows[:2])).fit(*rows[:2])
        inner = outermost(inner if outermost is FrozenEstimator else FrozenEstimator(inner))
        outer = FairDecisionClassifier(inner, max_disparity=0.5, group_aware=True)
        if rows is own:
            check_inside(outer, own, new, recwarn)
        else:
            assert not is_seen(outer, *new, recwarn)


@pytest.mark.parametrize("around", [CalibratedClassifierCV, AROUND["pipeline"]])
def test_a_model_of_more_other_rows_and_transformers_of_the_same_rows_pass(around, recwarn):
    X, y, sex = people(5600, 3)
    new = X[:600], y[:600], sex[:600]
    forest = FrozenEstimator(clone(FOREST).fit(X[600:], y[600:]))
    turned = make_pipeline(FrozenEstimator(PCA(3).fit(new[0])), LINEAR)
    for model in (around(forest), around(turned)):
        outer = FairDecisionClassifier(model, max_disparity=0.5, group_aware=True)
        assert not is_seen(outer, *new, recwarn)


def as_frame(X):
    return pd.DataFrame(X, columns=list("abcd"))


@pytest.mark.parametrize("form", [np.asarray, csr_array, as_frame, lambda X: 1e6 * X])
@pytest.mark.parametrize("knows_names", [True, False])  # the voting numbers the classes itself
def test_forms_of_rows_and_classes_change_nothing(form, knows_names, recwarn):
    (X, y, sex), new = people(800, 0), people(800, 10)
    order, names = np.lexsort((X[:, 0], y)), np.array(["no", "yes"])
    forest = FrozenEstimator(clone(FOREST).fit(form(X), names[y] if knows_names else y))
    outer = FairDecisionClassifier(voting(forest, forest), max_disparity=0.5, group_aware=True)
    weights = {"sample_weight": generator(1).exponential(size=y.size)}
    assert is_seen(outer, form(X[order]), names[y[order]], sex[order], recwarn, **weights)
    assert not is_seen(outer, form(new[0]), names[new[1]], new[2], recwarn, **weights)


def test_a_regressor_whose_targets_another_transforms_is_found(recwarn):
    (X, y, sex), new = people(800, 0), people(800, 10)
    numbers, new_numbers = np.exp(X[:, 0] + y), np.exp(new[0][:, 0] + new[1])
    forest = FrozenEstimator(RandomForestRegressor(20).fit(X, np.log(numbers)))
    model = TransformedTargetRegressor(forest, func=np.log, inverse_func=np.exp)
    for inner in (model, GridSearchCV(model, {"check_inverse": [True]}, cv=2)):
        outer = FairDecisionRegressor(inner, max_disparity=50.0, group_aware=True)
        assert is_seen(outer, X, numbers, sex, recwarn)
        assert not is_seen(outer, new[0], new_numbers, new[2], recwarn)


def test_a_fitted_model_of_groups_is_found(recwarn):
    def telling(seed):
        X, _, sex = people(1500, seed)
        X[:, 0] += 1.5 * (sex == "m")
        return X, (X[:, 0] + generator(seed).logistic(size=1500) > 1).astype(int), sex

    own, new = telling(0), telling(10)
    pairs = 2 * (own[2] == "m") + own[1]
    model = FairDecisionClassifier(
        LINEAR, max_disparity=0.1, group_estimator=FrozenEstimator(clone(FOREST).fit(own[0], pairs))
    )
    assert is_seen(model, *own, recwarn)
    assert not is_seen(model, *new, recwarn)
    with pytest.raises(ValueError, match="of group_estimator seems to have been fitted to these"):
        model.set_params(certificate=0.9).fit(*own[:2], sensitive_features=own[2])


@pytest.mark.filterwarnings("ignore")  # a certificate may not be found
def test_what_the_error_tells_to_do_is_accepted():
    own, new = people(800, 0), people(800, 10)
    forest = clone(FOREST).fit(*own[:2])
    settings = {"max_disparity": 0.9, "group_aware": True, "certificate": 0.9, "random_state": 0}

    def fit(model, rows):
        outer = FairDecisionClassifier(AROUND["pipeline"](model), **settings)
        return outer.fit(*rows[:2], sensitive_features=rows[2])

    message = (
        "Classifier inside Pipeline seems .*Pass rows that it has not seen, or the estimator w"
    )
    with pytest.raises(ValueError, match=message):
        fit(FrozenEstimator(forest), own)
    fit(FrozenEstimator(forest), new)
    fit(forest, own)
    fit(FrozenEstimator(Service(forest)), own)  # a class around it whose fit does not train
