"""The contract of every constraint in the registry: what it counts, of whom, what it refuses."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import skfair.constraints
import skfair.metrics
from skfair.classification import ConstrainedERMClassifier, FairDecisionClassifier
from skfair.constraints import ConditionalOn, Constraint, DemographicParity
from skfair.constraints.base import CONSTRAINTS
from skfair.constraints.moments import Rate
from skfair.metrics import demographic_parity_ratio
from skfair.solvers import ALNewton
from tests.naive import erm as naive
from tests.small_problems import build, make_constraint, people, references_of, trained_constraints

CONSTRAINT_NAMES = trained_constraints()
RATES = [
    name
    for name in CONSTRAINT_NAMES
    if naive.CONSTRAINT_NAMES[name][1] in ("selected", "rejected", "right")
]
SIDES = [(name, reference) for name in CONSTRAINT_NAMES for reference in references_of(name)]
each_constraint = pytest.mark.parametrize("name", CONSTRAINT_NAMES)
PLAIN = people(seed=1, n=90)
KINDS = {"two groups": (2,), "five groups": (5,), "overlapping attributes": (3, 2)}


@pytest.fixture(params=KINDS)
def who(request):
    return people(seed=1, n=90, n_levels=KINDS[request.param])


@pytest.fixture
def weighted(who):
    return who._replace(weights=np.random.default_rng(2).uniform(0.1, 3, who.signs.size))


def scores_of(who, seed=3):
    """Scores with ties and zeros: a score of 0 is a negative prediction."""
    scores = np.random.default_rng(seed).normal(size=who.signs.size)
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
        assert CONSTRAINTS[name].__name__ in skfair.constraints.__all__


@each_constraint
@pytest.mark.parametrize("loss", ["log_loss", "hinge"])
def test_strict_disparity_is_what_one_counts(who, weighted, name, loss):
    for reference in references_of(name):
        for rows in (who, weighted):
            scores = scores_of(rows)
            found = disparity(rows, name, reference, scores, loss)
            twin = naive.disparity(
                name, reference, scores, rows.signs, rows.columns, rows.weights, loss
            )
            assert found == pytest.approx(twin, abs=1e-12)
            # Groups of equal size have no mean excess.
            assert found > 1e-3 or name == "mean_excess_loss"


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


@each_constraint
def test_cells_are_a_partition_of_the_rows_that_count(weighted, name):
    bound = prepare(weighted, name)
    sums = np.bincount(bound.cells, bound.row_weights, bound.n_cells)
    assert sums == pytest.approx(np.ones(bound.n_cells))
    given = naive.CONSTRAINT_NAMES[name][0]
    outside = {"positive": weighted.signs < 0, "negative": weighted.signs > 0}.get(given)
    if outside is not None:
        assert (bound.row_weights[outside] == 0).all()
    by_class = [weighted.signs] if given == "class" or name in naive.PRECISE else []
    key = zip(*weighted.columns, *by_class, strict=True)
    counted = bound.row_weights > 0
    assert counted.sum() == (counted.size if outside is None else (~outside).sum())
    in_cell = {(k, c) for k, c, used in zip(key, bound.cells, counted, strict=True) if used}
    assert len(in_cell) == bound.n_cells == len({k for k, _ in in_cell})


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


@pytest.mark.parametrize("name", sorted(set(CONSTRAINT_NAMES) - set(RATES)))
@pytest.mark.parametrize("loss", ["log_loss", "hinge"])
def test_other_moments_know_no_temperature(name, loss):
    bound = prepare(PLAIN, name, loss=loss)
    assert not bound.moment.is_rate
    scores = scores_of(PLAIN)
    one, other = (bound.moment.parts(scores, temperature) for temperature in (1.0, 16.0))
    for a, b in zip(one, other, strict=True):
        assert (a == b).all()
    assert bound.moment.strict(scores) == pytest.approx(one[0], abs=0.1 + 1e-9)  # half the width


@pytest.mark.parametrize("name", RATES)
def test_rates_depend_on_the_sign_of_the_score_only(name):
    moment = prepare(PLAIN, name).moment
    scores = scores_of(PLAIN)
    strict = moment.strict(scores)
    assert moment.is_rate
    assert moment.unit == "rate"
    assert set(strict) == {0.0, 1.0}
    assert (
        moment.strict(scores * np.random.default_rng(0).uniform(0.1, 9, scores.size)) == strict
    ).all()


@each_constraint
def test_moments_of_some_rows_are_those_rows(name):
    moment, scores = prepare(PLAIN, name).moment, scores_of(PLAIN)
    rows = np.array([5, 0, 5, 17])
    for some, every in zip(
        moment.parts(scores[rows], 2.0, rows), moment.parts(scores, 2.0), strict=True
    ):
        assert some == pytest.approx(every[rows])


@each_constraint
def test_large_scores_do_not_overflow(name):
    moment = prepare(PLAIN, name).moment
    with np.errstate(all="raise", under="ignore"):
        for scores in (np.full(PLAIN.signs.size, 1e4), np.full(PLAIN.signs.size, -1e4)):
            assert all(np.isfinite(part).all() for part in moment.parts(scores, 64.0))


@pytest.mark.parametrize(
    "name",
    [n for n in CONSTRAINT_NAMES if naive.CONSTRAINT_NAMES[n][0] in ("positive", "negative")],
)
@pytest.mark.parametrize("reference", ["pairwise", "overall"])
def test_rows_outside_the_class_never_matter(weighted, name, reference):
    label = 1 if naive.CONSTRAINT_NAMES[name][0] == "positive" else -1
    outside = weighted.signs != label
    rng, scores = np.random.default_rng(5), scores_of(weighted)
    other_scores, other_weights = scores.copy(), weighted.weights.copy()
    other_scores[outside] = 5 * rng.normal(size=outside.sum())
    other_weights[outside] *= rng.uniform(0.5, 2, outside.sum())
    changed = weighted._replace(weights=other_weights)
    one, other = prepare(weighted, name, reference), prepare(changed, name, reference)
    assert other.disparity(other_scores) == pytest.approx(one.disparity(scores), abs=1e-12)
    alone = weighted.take(np.flatnonzero(~outside))  # others may as well not be there
    assert disparity(alone, name, reference, scores[~outside]) == pytest.approx(
        one.disparity(scores), abs=1e-12
    )


@each_constraint
@settings(deadline=None, max_examples=6)
@given(seed=st.integers(0, 2**31))
def test_invariances(name, seed):
    """Names of groups and the order of rows change nothing."""
    rng = np.random.default_rng(seed)
    reference = references_of(name)[seed % len(references_of(name))]
    rows = people(seed, n=48, n_levels=(3, 2))
    scores = scores_of(rows, seed)
    value = disparity(rows, name, reference, scores)

    renamed = [{"a": "z", "b": "é", "c": "m"}, {"a": "2", "b": "1"}]
    columns = [
        np.array([names[g] for g in groups])
        for names, groups in zip(renamed, rows.columns, strict=True)
    ]
    other = disparity(rows._replace(columns=columns), name, reference, scores)
    assert other == pytest.approx(value, abs=1e-12)

    order = rng.permutation(scores.size)
    other = disparity(rows.take(order), name, reference, scores[order])
    assert other == pytest.approx(value, abs=1e-12)


@pytest.mark.parametrize("reference", ["pairwise", "overall"])
def test_one_group_is_compared_with_nobody(reference):
    rows = people(n=20, n_levels=(1,))
    for name in CONSTRAINT_NAMES:
        bound = prepare(rows, name, reference)
        if name in naive.BOUNDED:
            assert bound.upper.size == 1
            continue
        assert bound.upper.size == bound.lower.size == bound.n_centers == 0
        assert bound.disparity(scores_of(rows)) == pytest.approx(0, abs=1e-12)


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
    bound = 0.03
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
    table = naive.comparisons("negative", reference, who.signs, who.columns)
    assert found == pytest.approx((table @ (scores <= 0)).max(), abs=1e-12)
    smooth = table @ (1 / (1 + np.exp(scores)))
    assert smooth.max() == pytest.approx(
        bound, abs=1e-7
    )  # the constraint is what holds the solution


@pytest.mark.parametrize("model", [ConstrainedERMClassifier, FairDecisionClassifier])
@pytest.mark.parametrize("wrap", [lambda constraint: constraint, ConditionalOn])
def test_the_four_fifths_rule_is_written_as_people_say_it(model, wrap):
    rng = np.random.default_rng(0)
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
