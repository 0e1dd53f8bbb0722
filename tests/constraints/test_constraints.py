"""The contract of every constraint in the registry: what it counts, of whom, what it refuses."""

import numpy as np
import pytest

import skfair.constraints
import skfair.metrics
from skfair._kernels import row_parts
from skfair.classification import ConstrainedERMClassifier, FairDecisionClassifier
from skfair.constraints import ConditionalOn, Constraint, DemographicParity
from skfair.constraints.bound import sums_by_cell
from skfair.constraints.moments import Rate
from skfair.losses import MANY_SCORES
from skfair.metrics import demographic_parity_ratio
from skfair.solvers import ALNewton
from tests.naive import erm as naive
from tests.python_kernels import compiled_and_python
from tests.registries import CONSTRAINT_KINDS
from tests.seeds import generator
from tests.small_problems import build, make_constraint, people, references_of, trained_constraints

kernel = compiled_and_python(row_parts)
CONSTRAINT_NAMES = trained_constraints()
RATES = [
    name
    for name in CONSTRAINT_NAMES
    if naive.CONSTRAINT_NAMES[name][1] in ("selected", "rejected", "right")
]
SIDES = [(name, reference) for name in CONSTRAINT_NAMES for reference in references_of(name)]
each_constraint = pytest.mark.parametrize("name", CONSTRAINT_NAMES)
KINDS = {"two groups": (2,), "five groups": (5,), "overlapping attributes": (3, 2)}


@pytest.fixture(params=KINDS)
def who(request):
    return people(seed=1, n=90, n_levels=KINDS[request.param])


@pytest.fixture
def weighted(who):
    return who._replace(weights=generator(2).uniform(0.1, 3, who.signs.size))


def scores_of(who, seed=3):
    """Scores with ties and zeros: a score of 0 is a negative prediction."""
    scores = generator(seed).normal(size=who.signs.size)
    scores[::7] = 0.0
    scores[1::7] = 0.5
    return scores


def prepare(who, name, reference="pairwise", bound=0.1, loss="log_loss"):
    return make_constraint(name, reference).prepare(who.training_rows(loss), bound)


def disparity(who, name, reference, scores, loss="log_loss"):
    return prepare(who, name, reference, loss=loss).disparity(scores)


def test_every_constraint_has_a_naive_twin_and_is_public():
    assert set(CONSTRAINT_NAMES) == set(naive.CONSTRAINT_NAMES)
    for name in CONSTRAINT_NAMES:
        assert type(CONSTRAINT_KINDS[name]()).__name__ in skfair.constraints.__all__


@each_constraint
def test_differences_are_listed_by_group_and_class(weighted, name):
    bound = prepare(weighted, name)
    scores = scores_of(weighted)
    given, what = naive.CONSTRAINT_NAMES[name]
    values = naive.strict_values(what, scores, weighted.signs, "log_loss")
    classes = {"all": [None], "positive": [1], "negative": [-1], "class": [-1, 1]}[given]
    labels = iter(label for label in classes for _ in weighted.columns)
    expected, names = [], []
    parts = naive.rates_of(name, values, weighted.signs, weighted.columns, weighted.weights)
    for k, (of_groups, overall) in enumerate(parts):
        label, a = next(labels), k % len(weighted.columns)
        for level, rate in of_groups.items():
            expected.append(rate if name in naive.BOUNDED else rate - overall)
            many = len(weighted.columns) > 1
            name_of_group = f"sensitive_feature_{a}={level}" if many else level
            suffix = "" if label is None else f", y={'yes' if label > 0 else 'no'}"
            names.append(name_of_group + suffix)
    differences = bound.differences_of_means(bound.means(bound.moment.strict(scores)))
    assert differences == pytest.approx(np.array(expected), abs=1e-12)
    assert list(bound.rate_names) == names


@pytest.mark.parametrize("name", RATES)
def test_smooth_rates_tend_to_strict_ones(weighted, name):
    bound = prepare(weighted, name)
    scores = np.where(scores_of(weighted) == 0, -0.2, scores_of(weighted))
    strict = bound.moment.strict(scores)
    last = np.inf
    for temperature in (1.0, 4.0, 16.0, 64.0, 1e5):
        smooth = bound.moment.parts(scores, temperature)[0]
        distance = np.abs(smooth - strict)
        # A sigmoid is off by exp(-T |z|) at most.
        assert (distance <= np.exp(-temperature * np.abs(scores)) + 1e-15).all()
        assert distance.max() <= last
        last = distance.max()
    means = bound.means(smooth)
    assert bound.disparity_of_means(means) == pytest.approx(bound.disparity(scores), abs=1e-12)


@each_constraint
def test_large_scores_do_not_overflow(weighted, name):
    moment = prepare(weighted, name).moment
    with np.errstate(all="raise", under="ignore"):
        for scores in (np.full(weighted.signs.size, 1e4), np.full(weighted.signs.size, -1e4)):
            assert all(np.isfinite(part).all() for part in moment.parts(scores, 64.0))


def test_an_atom_without_weight_is_no_fault():
    """Overlapping attributes: an intersection may be empty while each of its groups is not."""
    who = people(seed=1, n=90, n_levels=(3, 2))
    atom = (who.columns[0] == "a") & (who.columns[1] == "b")
    rows = who._replace(weights=np.where(atom, 0.0, 1.0))
    scores = scores_of(who)
    for name, reference in SIDES:
        found = disparity(rows, name, reference, scores)
        twin = naive.disparity(name, reference, scores, rows.signs, rows.columns, rows.weights)
        assert found == pytest.approx(twin, abs=1e-12)


# A constraint of one's own


class RejectionParity(Constraint):
    """Parity of rejection rates among negatives; not registered, passed as an object."""

    subset = "negative"

    def moment(self, rows):
        return Rate(np.full(rows.targets.size, -1.0))


@pytest.mark.parametrize("reference", ["pairwise", "overall"])
def test_a_constraint_of_ones_own_works_end_to_end(who, reference):
    """Rejections are one minus selections, so the answer is that of false positive parity."""
    free = build(who, RejectionParity(reference=reference), 1.0)
    unlimited = ALNewton().solve(free, free.start(np.random.RandomState(0)), tol=1e-9)
    table = naive.comparisons("negative", reference, who.signs, who.columns)

    def largest(scores):
        return (table @ (1 / (1 + np.exp(scores)))).max()

    bound = 0.5 * largest(free.scores(unlimited.theta))  # the constraint is what holds the solution
    solutions = []
    for constraint in (
        RejectionParity(reference=reference),
        make_constraint("false_positive_parity", reference),
    ):
        problem = build(who, constraint, bound)
        start = problem.start(np.random.RandomState(0))
        solutions.append(ALNewton().solve(problem, start, tol=1e-9))
        assert solutions[-1].status == "converged"
        assert problem.violation(problem.evaluate(solutions[-1].theta)) <= 1e-8
    p = problem.model.n_parameters
    assert solutions[0].theta[:p] == pytest.approx(solutions[1].theta[:p], abs=1e-6)

    scores = problem.scores(solutions[0].theta)
    rows = who.training_rows()
    found = RejectionParity(reference=reference).prepare(rows, bound).disparity(scores)
    assert found == pytest.approx((table @ (scores <= 0)).max(), abs=1e-12)
    assert largest(scores) == pytest.approx(bound, abs=1e-7)


@pytest.mark.parametrize("model", [ConstrainedERMClassifier, FairDecisionClassifier])
@pytest.mark.parametrize("wrap", [lambda constraint: constraint, ConditionalOn])
def test_the_four_fifths_rule_is_written_as_people_say_it(model, wrap):
    rng = generator(0)
    sex, job = rng.choice(["f", "m"], 900), rng.choice(["x", "y"], 900)
    X = rng.normal(size=(900, 2)) + (sex == "m")[:, None]
    y = (X[:, 0] + rng.normal(size=900) > 0.5).astype(int)
    given = {"sensitive_features": sex}
    given |= {"control_features": job} if wrap is ConditionalOn else {}
    said, meant = DemographicParity(min_ratio=0.8), DemographicParity(0.2, comparison="ratio")
    found = [model(constraint=wrap(one)).fit(X, y, **given) for one in (said, meant)]
    decided = [
        one.train_predictions_ if hasattr(one, "offsets_") else one.predict(X) for one in found
    ]
    assert np.array_equal(*decided)
    assert demographic_parity_ratio(y, decided[0], **given) >= 0.8 - 1e-9
    assert found[0].train_disparity_ <= 0.2 + 1e-9
    [(name, disparity)] = found[0].train_disparities_.items()
    assert name.startswith("DemographicParity (1 - ratio)")
    assert disparity == pytest.approx(1 - demographic_parity_ratio(y, decided[0], **given))


def test_a_ratio_that_cannot_be_is_named():
    X, y = np.zeros((80, 1)), [0, 1] * 40
    for constraint, said in (
        (DemographicParity(min_ratio=1.2), "min_ratio must be"),
        (DemographicParity(0.1, min_ratio=0.8), "say the same"),
    ):
        with pytest.raises(ValueError, match=said):
            ConstrainedERMClassifier(constraint).fit(X, y, sensitive_features=list("aabb") * 20)


@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.uint8])
def test_sums_of_many_rows_by_cell_are_those_of_bincount(kernel, monkeypatch, dtype):
    monkeypatch.setattr(row_parts, "cell_sums", kernel("cell_sums"))
    rng, n = generator(4), MANY_SCORES + 3
    cells, weights = rng.integers(0, 5, n).astype(dtype), rng.uniform(0, 2, n)
    for values in (rng.normal(size=n), rng.integers(0, 2, n)):
        found = sums_by_cell(cells, weights, values, 7)
        assert found == pytest.approx(np.bincount(cells, weights * values, 7), abs=1e-9)
        assert found.size == 7
