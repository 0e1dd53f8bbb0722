"""Intervals and tests of metrics of one's own, against scipy's bootstrap and by simulation."""

from functools import partial

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import (
    balanced_accuracy_score,
    f1_score,
    fbeta_score,
    mean_absolute_error,
    recall_score,
    roc_auc_score,
)

from skfair.metrics import disparity_test, disparity_upper_bound, group_report, make_group_metric
from skfair.metrics.own_draws import resampled
from skfair.metrics.own_metrics import OwnRows, with_positive
from tests.seeds import generator, seed_of


def people(n, key=0, classes=(0, 1)):
    rng = generator(key)
    group, y = rng.choice(["a", "b"], n, p=[0.6, 0.4]), rng.integers(0, 2, n)
    score = y + (0.6 + 0.5 * (group == "b")) * rng.normal(size=n)
    labels = np.array(classes)
    return group, labels[y], score, labels[(score > 0.5).astype(int)]


def mean_error(y_true, y_score):
    return np.abs(y_true - y_score).mean()  # has no sample_weight


def scipys(statistic, n, seed, n_resamples, **options):
    """Bootstrap the numbers of the units with scipy."""
    given = {"vectorized": False, "method": "percentile", "n_resamples": n_resamples} | options
    return stats.bootstrap(
        (np.arange(n),), statistic, random_state=np.random.RandomState(seed), **given
    )


@pytest.mark.parametrize("metric", [mean_error, roc_auc_score, mean_absolute_error])
def test_intervals_are_those_of_scipy_from_the_same_resamples(metric):
    (group, y, score, _), seed = people(300), seed_of() % 2**32
    report = group_report(
        y, score > 0, y_score=score, sensitive_features=group, metrics={"own": metric},
        n_bootstrap=99, random_state=seed,
    ) if metric is not mean_absolute_error else group_report(
        y, score, sensitive_features=group, metrics={"own": metric}, rates=False,
        n_bootstrap=99, random_state=seed,
    )  # fmt: skip
    for name, own in {"a": group == "a", "b": group == "b", "overall": group != ""}.items():

        def statistic(rows, own=own):
            rows = rows.astype(int)[own[rows.astype(int)]]
            return metric(y[rows], score[rows])

        found = scipys(statistic, 300, seed, 99).confidence_interval
        ends = report.loc[name, ["own_low", "own_high"]].to_numpy(float)
        assert ends == pytest.approx([found.low, found.high], rel=1e-12)


@pytest.mark.parametrize("has_units", [False, True])
@pytest.mark.parametrize("compare", ["difference", "ratio", "largest"])
def test_bounds_are_percentiles_of_scipy(compare, has_units):
    """The p-value of a limit is the share of scipy's resamples that reach it."""
    group, y, score, _ = people(240)
    units = np.arange(240) // 2 if has_units else None

    def error(y_true, y_score):
        return np.abs(y_true - y_score).mean()

    metric, given = make_group_metric(error, compare=compare), {"sensitive_features": group}
    signs = {name: error(y[group == name], score[group == name]) for name in "ab"}
    high, low = sorted(signs, key=signs.__getitem__)[::-1]

    def statistic(drawn):
        rows = drawn.astype(int)
        rows = rows if units is None else np.concatenate([2 * rows, 2 * rows + 1])
        of = {
            name: error(y[own], score[own]) for name in "ab" for own in [rows[group[rows] == name]]
        }
        ends = of[high], of[low]
        return {"difference": ends[0] - ends[1], "ratio": 1 - ends[1] / ends[0]}.get(
            compare, ends[0]
        )

    bound = disparity_upper_bound(metric, y, score, units=units, **given)
    found = scipys(statistic, 240 if units is None else 120, 0, 1000)
    drawn = found.bootstrap_distribution
    if units is None:
        assert (1 + (drawn >= bound + 1e-6).sum()) / 1001 <= 0.05
        assert (1 + (drawn >= bound - 1e-6).sum()) / 1001 > 0.05
    else:  # with few units, fewer are drawn than there are, so the bound is a little higher
        assert np.quantile(drawn, 0.9) < bound < np.quantile(drawn, 0.99)
    for limit in (0.9 * bound, 1.1 * bound):
        test = disparity_test(metric, y, score, units=units, max_disparity=limit, **given)
        assert test.is_within == (limit > bound)
        assert test.method == "bootstrap"


@pytest.mark.parametrize("kind", ["rows", "weights", "units"])
@pytest.mark.parametrize(
    "metric",
    [
        f1_score,
        pytest.param(balanced_accuracy_score, marks=pytest.mark.slow),
        pytest.param(partial(fbeta_score, beta=2), marks=pytest.mark.slow),
    ],
)
def test_tables_vary_as_resampled_rows_do(metric, kind):
    """A resample as a table of weights varies as much as one that draws rows.

    Tables add half a row to some cells, which hardly matters among 2,000 rows. Further differences
    are errors of the simulation.
    """
    from skfair.groups.row_units import read_units

    n, n_draws = 2000, 400
    group, y, _, predicted = people(n)
    rng = generator(1)
    weights = rng.uniform(0.5, 2, n) if kind == "weights" else None
    units = read_units(np.sort(rng.integers(0, n // 3, n)), n) if kind == "units" else None
    rows = OwnRows(y, predicted, None, weights)
    cells = [np.flatnonzero(group == name) for name in "ab"]
    own = with_positive(metric, None, y)

    def without_tables(y_true, y_pred, **weight):  # hides sample_weight
        return own(y_true, y_pred, **weight)

    def value(cell):
        return own(
            y[cell], predicted[cell], sample_weight=None if weights is None else weights[cell]
        )

    values = np.array([value(cell) for cell in cells])
    drawn = [
        resampled(each, rows, predicted, cells, values, units, n_draws, np.random.RandomState(seed))
        for each, seed in ((own, seed_of(2)), (without_tables, seed_of(3)))
    ]
    spreads = [own.std(axis=0) for own in drawn]
    assert spreads[0] == pytest.approx(spreads[1], rel=6 / np.sqrt(n_draws))
    error = 6 * spreads[0] * np.sqrt(2 / n_draws) + 2 / n
    assert (np.abs(drawn[0].mean(axis=0) - drawn[1].mean(axis=0)) < error).all()


def test_copies_of_people_are_no_new_people():
    group, y, _, predicted = people(1000)
    metric, copies = make_group_metric(f1_score), np.repeat(np.arange(1000), 4)

    def margin(rows, units=None):
        given = {"sensitive_features": group[rows], "units": units}
        value = metric(y[rows], predicted[rows], sensitive_features=group[rows])
        return disparity_upper_bound(metric, y[rows], predicted[rows], **given) - value

    single, whole, split = margin(np.arange(1000)), margin(copies, copies), margin(copies)
    assert whole == pytest.approx(single, rel=0.35)  # two percentiles of 1,000 resamples
    assert split < 0.75 * single


def test_people_in_both_groups_are_drawn_for_both():
    """What the two rows of a person have in common says nothing of the difference."""
    rng, n = generator(), 400
    y, error = rng.normal(size=n), rng.normal(size=n)
    rows, group = np.tile(np.arange(n), 2), np.repeat(["a", "b"], n)
    metric, given = make_group_metric(mean_absolute_error), {"sensitive_features": group}
    predicted = (y + error)[rows] + 0.01 * (group == "b")
    together = disparity_upper_bound(metric, y[rows], predicted, units=rows, **given)
    apart = disparity_upper_bound(metric, y[rows], predicted, **given)
    assert together <= 0.0101 < 0.05 < apart


def test_few_rows_without_an_error_show_little():
    metric = make_group_metric(f1_score)

    def bound(n):
        y = np.arange(2 * n) % 2
        return disparity_upper_bound(metric, y, y, sensitive_features=np.arange(2 * n) // n)

    assert bound(10) > 0.15
    assert bound(2000) < 0.01


def test_no_interval_is_known_if_nothing_varies():
    group, y, _, _ = people(300)
    metric, given = make_group_metric(roc_auc_score), {"sensitive_features": group}
    with pytest.warns(UserWarning, match=r"No interval is known of .*roc_auc.* in group 'a'"):
        test = disparity_test(metric, y, y.astype(float), max_disparity=0.5, **given)
    assert (test.is_within, test.p_value, test.statistic) == (False, 1.0, 0.0)
    with pytest.warns(UserWarning, match="No interval is known"):
        assert disparity_upper_bound(metric, y, y.astype(float), **given) == np.inf


def test_references_strata_and_several_attributes():
    group, y, _, predicted = people(900)
    metric, other = make_group_metric(f1_score), np.arange(900) % 3
    given = {"max_disparity": 0.2, "sensitive_features": group}
    pairs = disparity_test(metric, y, predicted, reference="overall", **given).pairs
    of = {name: f1_score(y[own], predicted[own]) for name in "ab" for own in [group == name]}
    whole = f1_score(y, predicted)
    assert pairs["disparity"].tolist() == pytest.approx([abs(of[name] - whole) for name in "ab"])
    assert set(pairs["second"]) == {"rest"}
    pairs = disparity_test(metric, y, predicted, reference="b", control_features=other, **given)
    assert len(pairs.pairs) == 3
    both = {"sex": group, "region": other}
    crossed = {"sensitive_features": both, "intersectional": False, "max_disparity": 0.2}
    assert len(disparity_test(metric, y, predicted, **crossed).pairs) == 1 + 3


def test_what_cannot_be_tested_says_so():
    group, y, score, predicted = people(200)
    given = {"sensitive_features": group, "max_disparity": 0.1}
    with pytest.raises(ValueError, match="make_group_metric"):
        disparity_test(f1_score, y, predicted, **given)
    with pytest.raises(ValueError, match="a limit of a test is an upper one"):
        disparity_test(make_group_metric(f1_score, compare="smallest"), y, predicted, **given)
    ratio = {"sensitive_features": group, "min_ratio": 0.8}
    with pytest.raises(ValueError, match="compare='ratio'"):
        disparity_test(make_group_metric(f1_score), y, predicted, **ratio)
    single = np.where(group == "a", 1, y)
    with pytest.raises(ValueError, match="not defined for group 'a'.*one class only"):
        disparity_test(make_group_metric(roc_auc_score), single, score, **given)
    none = np.where(group == "a", 0, y)
    with pytest.raises(ValueError, match="not defined for group 'a'"):
        make_group_metric(recall_score)(none, predicted, sensitive_features=group)
    zero = make_group_metric(partial(recall_score, zero_division=0))
    rest = group == "b"
    expected = recall_score(y[rest], predicted[rest])
    assert zero(none, predicted, sensitive_features=group) == expected

    def picky(y_true, y_pred):
        if y_true.size < 150:
            raise ValueError("too few")
        return 0.0

    with pytest.raises(ValueError, match="picky cannot be computed of group 'a': too few"):
        disparity_test(make_group_metric(picky), y, predicted, **given)


def drawn_tables(rng, n_samples, sizes):
    """Yield samples of two groups with F1 scores of 0.89 and 0.81, and both true scores."""
    kinds = np.array([[0.63, 0.03, 0.04, 0.3], [0.6, 0.05, 0.08, 0.27]])
    true = 2 * kinds[:, 3] / (2 * kinds[:, 3] + kinds[:, 1] + kinds[:, 2])
    group = np.repeat([0, 1], sizes)
    for _ in range(n_samples):
        kind = np.concatenate([rng.choice(4, n, p=p) for n, p in zip(sizes, kinds, strict=True)])
        yield group, kind // 2, kind % 2, true


@pytest.mark.slow
@pytest.mark.parametrize("sizes", [(300, 1000), (60, 400)], ids=["usual", "few"])
def test_coverage(sizes):
    """Intervals of F1 hold 93 to 97% of the time, and bounds on differences as often."""
    n_samples, held, shown = 3000, np.zeros(2), 0
    seeds = np.random.RandomState(seed_of() % 2**32)
    metric = make_group_metric(f1_score)
    for group, y, predicted, true in drawn_tables(generator(sizes[0]), n_samples, sizes):
        given = {"sensitive_features": group}
        # One seed for all samples would make all intervals too short, or all too long.
        options = {"metrics": {"f1": f1_score}, "rates": False, "random_state": seeds}
        report = group_report(y, predicted, **options, **given)
        low, high = report[["f1_low", "f1_high"]].to_numpy()[:2].T
        held += (low <= true) & (true <= high)
        shown += disparity_upper_bound(metric, y, predicted, **given) >= true[0] - true[1]
    most = 0.97 if min(sizes) > 100 else 0.985
    assert (held / n_samples > 0.93).all()
    assert (held / n_samples < most).all()
    # The bound on the size of a difference is careful if the difference is about as large as chance
    # makes it, since the groups may then differ in the other direction.
    assert shown / n_samples > 0.93
    assert shown / n_samples < 0.98 or min(sizes) < 100
