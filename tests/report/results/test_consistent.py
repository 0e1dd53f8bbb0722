"""Generated audits: no verdict contradicts another number that was computed from the same rates."""

import numpy as np
import pandas as pd
import pytest

from skfair.report import audit
from skfair.report.results.sentences import MOST_LINES, verdicts_of
from tests.report.results.test_verdicts import SENTENCE, check_rates
from tests.seeds import generator

DIFFERENCE, RATIO = "demographic_parity_difference", "demographic_parity_ratio"


def people(rng):
    """Attributes, decisions and weights: tiny groups, rates of 0 and 1, exact four fifths."""
    kind = rng.choice(["tiny", "zeros", "ties", "many", "weights", "plain", "large"])
    n_groups = {"many": 6, "ties": 2}.get(kind, int(rng.integers(2, 5)))
    scale = {"tiny": 6, "large": 3000}.get(kind, 120)
    sizes = rng.integers(1, scale, n_groups)
    rates = rng.choice(
        [0.0, 0.1, 0.3, 0.4, 0.5, 1.0] if kind == "zeros" else [0.2, 0.3, 0.4], n_groups
    )
    hits = np.round(sizes * rates + rng.normal(size=n_groups) * np.sqrt(sizes) * 0.6)
    hits = np.clip(hits, 0, sizes).astype(int)
    if kind == "ties":  # a ratio of exactly .8, which floats miss by the last digit
        k = int(rng.integers(1, 40))
        sizes = np.array([k * int(rng.integers(10, 30)), 0])
        sizes[1] = sizes[0]
        hits = np.array([4 * k, 5 * k])
    sex = np.repeat([f"g{i}" for i in range(n_groups)], sizes)
    chosen = np.concatenate([np.arange(n) < h for n, h in zip(sizes, hits, strict=True)])
    frame = pd.DataFrame({"sex": sex, "chosen": chosen.astype(int)})
    if rng.random() < 0.5:
        frame["age"] = rng.choice(["old", "young", "mid"][: rng.integers(2, 4)], len(frame))
    weights = rng.choice([1.0, 2.0, 0.5], len(frame)) if kind == "weights" else None
    return frame, weights


def generated(seed):
    rng = generator(seed)
    frame, weights = people(rng)
    names = [one for one in ("sex", "age") if one in frame]
    options = {"sample_weight": weights, "n_simulations": 99, "random_state": seed}
    options |= {"min_group_size": 1, "suppress_below": 1}
    if weights is None and rng.random() < 0.4:
        options["preset"] = rng.choice(["ugesp", "ll144"])
    if rng.random() < 0.4:
        options["reference"] = {"sex": rng.choice(frame["sex"].unique())}
    if rng.random() < 0.3:
        options["min_group_size"] = int(rng.integers(2, 30))
    if rng.random() < 0.2:
        options["confidence"] = 0.9
    with np.errstate(invalid="raise", divide="raise"):
        found = audit(None, frame["chosen"].to_numpy(), sensitive_features=frame[names], **options)
    return found, frame, weights, options


def rates_of(frame, weights, view):
    """Weighted rates by plain sums, by the names of the groups."""
    parts = view.split(" x ")
    names = (
        frame[view]
        if view in frame
        else frame[parts].apply(
            lambda row: ", ".join(f"{name}={row[name]}" for name in parts), axis=1
        )
    )
    weights = np.ones(len(frame)) if weights is None else weights
    sums = pd.DataFrame({"w": weights, "h": weights * frame["chosen"]}).groupby(names).sum()
    return sums["h"] / sums["w"]


@pytest.mark.parametrize(
    "seeds",
    [range(12), pytest.param(range(12, 50), marks=pytest.mark.slow)],
    ids=["few", "many"],
)
def test_no_number_contradicts_another(seeds):
    for seed in seeds:
        found, frame, weights, options = generated(seed)
        level = 1 - found.confidence + 1e-9
        gaps = found.gaps
        if not len(gaps):
            continue
        wide = gaps.set_index(["view", "metric"])
        lines = verdicts_of(found)
        assert len(lines) <= MOST_LINES
        said = [one for one in map(SENTENCE.fullmatch, lines) if one]
        for one in said:
            check_sentence(one, found, rates_of(frame, weights, one["view"]), level, wide, options)
        for view in gaps["view"].unique():
            check_gaps(wide.loc[view], found, view, level)
        check_signed(found, wide)
        # The largest difference beyond chance is always named.
        beyond = gaps[(gaps["metric"] == DIFFERENCE) & gaps["is_beyond_chance"]]
        assert not len(beyond) or any(one["not"] is None for one in said), (seed, lines)


def check_sentence(said, found, rates, level, wide, options):
    """Direction, size, significance and ratio are those of plain sums and of the tables."""
    found_ratio = check_rates(said, rates)
    assert said["apart"] is not None or said["not"]
    p = float(said["p"])
    assert (said["not"] is None) == (p <= level + 5e-3 * p)
    gap = wide.loc[(said["view"], DIFFERENCE)]
    if "reference" not in options or said[0].startswith("Largest"):
        assert (said["not"] is None) == gap["is_beyond_chance"]
    elif said["not"] is None:
        assert gap["is_beyond_chance"]
    if found_ratio is None:
        return
    side, ratio = found_ratio
    assert ratio == pytest.approx(wide.loc[(said["view"], RATIO), "value"])
    if "is_below_four_fifths" in found.impact:
        own = found.impact[found.impact["view"] == said["view"]]
        assert own["is_below_four_fifths"].any() == (side == "below")
    check = found.check(f"{said['view']}: {RATIO} < 0.8")
    assert not (check.outcome == "fail" and side != "below")
    assert not (check.outcome == "pass" and side == "below")


def check_gaps(gaps, found, view, level):
    """The difference and the ratio of the same rates have one verdict."""
    difference, ratio = gaps.loc[DIFFERENCE], gaps.loc[RATIO]
    assert difference["is_beyond_chance"] == ratio["is_beyond_chance"]
    assert difference["p_value"] == ratio["p_value"]
    assert difference["is_beyond_chance"] == (difference["p_value"] <= level)
    for gap, parity in ((difference, 0.0), (ratio, 1.0)):
        if np.isnan(gap["value"]) or np.isnan(
            gap["noise_upper"]
        ):  # one group is compared with none
            continue
        assert gap["value_low"] <= gap["value"] <= gap["value_high"]
        # The interval is of this difference alone, and the p-value of the whole audit. So they may
        # disagree near the level, but not far below it.
        is_open = gap["value_low"] <= parity <= gap["value_high"]
        assert not (is_open and gap["p_value"] <= level / 4), (view, gap)
    outcome = found.check(f"{view}: {DIFFERENCE} > 0").outcome
    is_open = not difference["value_low"] > 0  # a check is about one difference, as an interval is
    assert (outcome == "fail") == (not is_open)
    if np.isnan(difference["value"]):  # one group, or one decision for everybody
        assert found.check(f"{view}: {DIFFERENCE} > 0.2").outcome == "inconclusive"
        return
    for limit in (0.05, 0.2, float(difference["value"])):
        check = found.check(f"{view}: {DIFFERENCE} > {limit!r}")
        assert not (check.outcome == "fail" and difference["value"] <= limit)
        assert not (check.outcome == "pass" and difference["value"] > limit)
        if check.n_rows_needed is not None:
            assert check.n_rows_needed >= found.n_rows


def check_signed(found, wide):
    """A signed difference beyond chance is a gap beyond chance, and lies within its interval."""
    rows = found.signed
    for row in rows[rows["measure"] == "selection_rate"].itertuples() if len(rows) else []:
        assert row.difference == pytest.approx(row.value - row.reference_value)
        assert row.difference_low <= row.difference <= row.difference_high
        assert row.p_value >= wide.loc[(row.view, DIFFERENCE), "p_value"] - 1e-12
