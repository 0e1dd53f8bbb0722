"""Results of libraries for wrong or odd inputs: a number, or an error that names the mistake.

Twenty inputs that people have by mistake are given to the metric that each library has for the
difference of selection rates, or of true positive rates where labels matter. An input has one right
number, counted by hand, or none: then only an error, a warning or NaN is right. An error or warning
names the mistake if it has a word of it.
"""

import re
import subprocess
import tarfile
import warnings
from collections.abc import Callable, Sequence
from io import BytesIO
from shutil import copytree, ignore_patterns
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from benchmarks._drawing import small
from benchmarks.harness import HERE, Table, in_new_process

SEED = 6700
BEFORE = "0fe0d68d"  # skfair at the start of the round in which this page was made
# What a cell says, from best to worst.
KINDS = {
    "right": "right number",
    "said": "mistake reported",
    "unclear": "error about something else",
    "wrong": "wrong number without a warning",
    "none": "input not accepted",
}
ORDER = "index|order|align"
LABELS = r"pos_label|positive|label|class|binary|0 and 1|\[0, ?1\]"
ROWS = "length|row|sample|inconsistent|shape|size|empty"
MISSING = r"nan|missing|null|none|finite|binar|\bna\b"
COLUMNS = "column|1d|1-d|dimension|shape|continuous|multi"
UNDEFINED = "undefined|ill-defined|empty|zero|without|divi|no (true|positive)|weight"
Rows = dict[str, Any]


class Trap(NamedTuple):
    """An input, its right number or None, and the words of which an error has one."""

    name: str
    change: Rows  # columns in place of those of the plain input
    right: float | None
    words: str
    rate: str = "selection"


class NotTaken(Exception):
    """A library has no argument for an input."""


def plain(rng: np.random.Generator, n: int = 600) -> Rows:
    """Return labels, predictions and two groups, on one index."""
    groups = rng.choice(["f", "m"], n, p=[0.4, 0.6])
    y = rng.random(n) < np.where(groups == "f", 0.4, 0.55)
    pred = rng.random(n) < np.where(groups == "f", 0.3, 0.5) + 0.2 * y
    index = pd.RangeIndex(n)
    columns = {"y": y.astype(int), "pred": pred.astype(int), "groups": groups}
    return {name: pd.Series(values, index) for name, values in columns.items()}


def counted(rows: Rows, rate: str = "selection", weights: Any = None) -> float:
    """Return the difference of the two groups' rates, counted by hand."""
    y, pred, groups = (rows[name].to_numpy() for name in ("y", "pred", "groups"))
    w = np.ones(len(y)) if weights is None else weights
    cells = [(groups == name) & ((y == 1) | (rate == "selection")) for name in ("f", "m")]
    first, second = (np.average(pred[cell], weights=w[cell]) for cell in cells)
    return abs(float(first - second))


def traps(rows: Rows, rng: np.random.Generator) -> list[Trap]:
    """Return the twenty inputs."""
    return [*of_rows(rows, rng), *of_labels(rows, rng), *of_groups(rows, rng)]


def of_rows(rows: Rows, rng: np.random.Generator) -> list[Trap]:
    """Return columns that do not belong together, and weights that cannot be."""
    y, pred, groups = rows["y"], rows["pred"], rows["groups"]
    weights = pd.Series(np.linspace(0.1, 2, len(y)), y.index)
    mixed = {"weights": weights.sample(frac=1, random_state=1)}
    weighted = counted(rows, weights=weights.to_numpy())
    shuffled = {"groups": groups.sample(frac=1, random_state=1)}
    more = {"pred": pd.concat([pred, pred[:1]], ignore_index=True)}
    nothing = {name: column[:0] for name, column in rows.items()}
    minus = {"weights": weights.where(weights > weights.iloc[0], -5.0)}
    no_women = {"weights": weights.where(groups == "m", 0.0)}
    return [
        Trap("groups, index shuffled", shuffled, counted(rows), ORDER),
        Trap("groups of other rows", {"groups": groups.set_axis(y.index + len(y))}, None, ORDER),
        Trap("weights, index shuffled", mixed, weighted, ORDER),
        Trap("a prediction too many", more, None, f"{ROWS}|{ORDER}"),
        Trap("no rows", nothing, None, ROWS),
        Trap("a negative weight", minus, None, "negative|weight"),
        Trap("women weigh nothing", no_women, None, UNDEFINED),
    ]


def of_labels(rows: Rows, rng: np.random.Generator) -> list[Trap]:
    """Return labels and predictions that are not 0 and 1."""
    right, y, pred = counted(rows, "tpr"), rows["y"], rows["pred"]

    def named(*names: Any) -> Rows:
        return {name: rows[name].map(dict(enumerate(names))) for name in ("y", "pred")}

    three = {name: rows[name].where(y.index % 3 > 0, 2) for name in ("y", "pred")}
    scores = 0.1 + 0.5 * pred + 0.3 * rng.random(len(y))
    both = np.stack([1 - scores, scores], axis=1)
    unknown = pred.astype(float).where((rows["groups"] == "m") | (y.index % 5 > 0))
    return [
        Trap("labels 1 and 2", named(1, 2), right, LABELS, "tpr"),
        Trap("labels -1 and 1", named(-1, 1), right, LABELS, "tpr"),
        Trap("labels no and yes", named("no", "yes"), right, LABELS, "tpr"),
        Trap("three classes", three, None, LABELS + "|multi"),
        Trap("scores as predictions", {"pred": scores}, None, LABELS + "|continuous|score|probab"),
        Trap("two columns of scores", {"pred": both}, None, f"{COLUMNS}|{LABELS}"),
        Trap("missing predictions", {"pred": unknown}, None, MISSING),
    ]


def of_groups(rows: Rows, rng: np.random.Generator) -> list[Trap]:
    """Return groups that are missing, too few, too small or too many, and an empty cell."""
    y, groups = rows["y"], rows["groups"]
    first = groups.index == groups.index[groups == "f"][0]
    alone = {"groups": pd.Series(np.where(first, "f", "m"))}
    unknown = groups.where((groups == "m") | (y.index % 5 > 0), None)
    unused = pd.Series(pd.Categorical(groups, ["f", "m", "x"]))
    ages = pd.Series(rng.normal(40, 12, len(y)))
    no_positives = {"y": y.where(groups == "m", 0)}
    return [
        Trap("missing groups", {"groups": unknown}, None, MISSING),
        Trap("a category without rows", {"groups": unused}, counted(rows), "categor|empty|row"),
        Trap("women without positives", no_positives, None, UNDEFINED, "tpr"),
        Trap("only one group", {"groups": pd.Series("f", y.index)}, None, "group"),
        Trap("a group of one person", alone, counted(rows | alone), "small|group|row"),
        Trap("ages as groups", {"groups": ages}, None, "group|continuous|value|bin|row"),
    ]


def two_groups(rows: Rows) -> None:
    """Stop where a library compares two named groups, and these are many."""
    if rows["groups"].nunique() > 2:
        raise NotTaken


def no_weights(rows: Rows) -> None:
    """Stop where a library takes no weights."""
    if "weights" in rows:
        raise NotTaken


def of_fairlearn(rows: Rows, rate: str) -> float:
    from fairlearn.metrics import demographic_parity_difference, equal_opportunity_difference

    metric = equal_opportunity_difference if rate == "tpr" else demographic_parity_difference
    more = {"sensitive_features": rows["groups"], "sample_weight": rows.get("weights")}
    return float(metric(rows["y"], rows["pred"], **more))


def of_aif360(rows: Rows, rate: str) -> float:
    from aif360.sklearn.metrics import equal_opportunity_difference, statistical_parity_difference

    two_groups(rows)
    metric = equal_opportunity_difference if rate == "tpr" else statistical_parity_difference
    more = {"prot_attr": rows["groups"], "sample_weight": rows.get("weights")}
    return abs(float(metric(rows["y"], rows["pred"], priv_group="m", **more)))


def of_aequitas(rows: Rows, rate: str) -> float:
    from aequitas.group import Group

    no_weights(rows)
    columns = {"score": rows["pred"], "label_value": rows["y"], "group": rows["groups"]}
    frame = pd.DataFrame(columns)
    if isinstance(frame["group"].dtype, pd.StringDtype):  # of pandas 3, which aequitas refuses
        frame["group"] = frame["group"].astype(object)
    table, _ = Group().get_crosstabs(frame, attr_cols=["group"])
    rates = table["tpr" if rate == "tpr" else "pprev"]
    return float(rates.max() - rates.min()) if rates.notna().all() else float("nan")


def of_oxonfair(rows: Rows, rate: str) -> float:
    from oxonfair.utils.group_metrics import demographic_parity, equal_opportunity

    no_weights(rows)
    metric = equal_opportunity if rate == "tpr" else demographic_parity
    return float(np.squeeze(metric(rows["y"], rows["pred"], rows["groups"])))


def of_holisticai(rows: Rows, rate: str) -> float:
    from holisticai.bias.metrics import equal_opportunity_diff, statistical_parity

    no_weights(rows)
    two_groups(rows)
    masks = [rows["groups"] == name for name in ("f", "m")]
    if rate == "tpr":
        return abs(float(equal_opportunity_diff(*masks, rows["pred"], rows["y"])))
    return abs(float(statistical_parity(*masks, rows["pred"])))


def of_skfair(rows: Rows, rate: str) -> float:
    from skfair.metrics import demographic_parity_difference, equal_opportunity_difference

    metric = equal_opportunity_difference if rate == "tpr" else demographic_parity_difference
    more = {"sensitive_features": rows["groups"], "sample_weight": rows.get("weights")}
    return float(metric(rows["y"], rows["pred"], **more))


CALLS = {
    "fairlearn": of_fairlearn,
    "AIF360": of_aif360,
    "aequitas": of_aequitas,
    "OxonFair": of_oxonfair,
    "holisticai": of_holisticai,
    "skfair": of_skfair,
}


def outcome(call: Callable[[Rows, str], float], rows: Rows, trap: Trap) -> dict[str, Any]:
    """Return what a library does with an input: the kind, the number, and its words."""
    said = re.compile(trap.words, re.IGNORECASE)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            value = call(rows | trap.change, trap.rate)
        except NotTaken:
            return {"kind": "none"}
        except Exception as error:  # what a library raises is what is asked
            text = f"{type(error).__name__}: {error}"
            return {"kind": "said" if said.search(str(error)) else "unclear", "text": text[:300]}
    words = " ".join(str(one.message) for one in caught)
    found = {"value": None if np.isnan(value) else round(value, 6), "text": words[:300]}
    if trap.right is not None and abs(value - trap.right) < 1e-9:
        return {"kind": "right", **found}
    return {"kind": "said" if np.isnan(value) or said.search(words) else "wrong", **found}


def outcomes(library: str) -> dict[str, Any]:
    """Return what a library does with each input, or why it cannot be asked."""
    rng = np.random.default_rng(SEED)
    rows, call = plain(rng), CALLS[library]
    for rate in ("selection", "tpr"):
        try:
            found = call(rows, rate)
        except ImportError as error:
            return {"skipped": f"cannot be imported: {error}"}
        if abs(found - counted(rows, rate)) > 1e-9:
            raise AssertionError(f"{library} is called in a wrong way: {found}")
    return {trap.name: outcome(call, rows, trap) for trap in traps(rows, rng)}


def before() -> dict[str, Any]:
    """Return what skfair did at an earlier commit, in a process of its own."""
    asked = ["git", "-C", str(HERE.parent), "archive", BEFORE, "skfair"]
    done = subprocess.run(asked, capture_output=True)
    if done.returncode:
        return {"skipped": f"there is no commit {BEFORE}"}
    with TemporaryDirectory() as folder:
        with tarfile.open(fileobj=BytesIO(done.stdout)) as archive:
            archive.extractall(folder, filter="data")
        copytree(HERE, f"{folder}/benchmarks", ignore=ignore_patterns("records", "output"))
        return in_new_process(outcomes, folder=folder, library="skfair")


def main(*, quick: bool = False) -> dict[str, Any]:
    """Ask each library, in a process of its own: some change the warnings of others."""
    found = {name: in_new_process(outcomes, library=name) for name in CALLS}
    return {"libraries": found, "before": {} if quick else before()}


def canary() -> dict[str, Any]:
    """Return what skfair does with each input, without its words."""
    return {
        name: {key: value for key, value in found.items() if key != "text"}
        for name, found in outcomes("skfair").items()
    }


def cell(found: dict[str, Any]) -> str:
    """Return what a cell says."""
    kind = found["kind"]
    if kind in ("none", "unclear", "right"):
        return {"none": "-", "unclear": "unrelated error", "right": "right"}[kind]
    if kind == "wrong":
        return f"wrong: {found['value']:.3g}"
    if "value" not in found:
        return "error"
    return "NaN" if found["value"] is None else "warning"


def tables(results: dict[str, Any]) -> dict[str, Table]:
    """Return the inputs by library, the sums, and what has changed in skfair."""
    asked = {k: v for k, v in results["libraries"].items() if "skipped" not in v}
    rows = [[name, *(cell(own[name]) for own in asked.values())] for name in asked["skfair"]]
    sums = [
        [name, *(sum(one["kind"] == kind for one in own.values()) for kind in KINDS)]
        for name, own in asked.items()
    ]
    now, old = asked["skfair"], results["before"]
    changed = [
        [name, cell(old[name]), cell(now[name])]
        for name in old
        if cell(old[name]) != cell(now[name])
    ]
    return {
        "inputs": Table("What each library returns", ["input", *asked], rows),
        "sums": Table("Numbers of inputs", ["library", *KINDS.values()], sums),
        "before": Table(
            "Results of skfair", ["input", f"before (commit {BEFORE})", "now"], changed
        ),
    }


def numbers(results: dict[str, Any]) -> dict[str, Any]:
    """Return how many inputs give wrong numbers in each library, and which of them in skfair.

    Libraries that could not be imported are named; the bullets of the page name all others.
    """
    asked = {k: v for k, v in results["libraries"].items() if "skipped" not in v}
    absent = [name for name in results["libraries"] if name not in asked]
    own = [f'"{name}"' for name, one in asked["skfair"].items() if one["kind"] == "wrong"]
    shuffled, unknown = (
        {kind: [k for k, v in asked.items() if v[name]["kind"] == kind] for kind in KINDS}
        for name in ("groups, index shuffled", "missing groups")
    )
    # The people without a group are women: if they join the women, the number is the plain one.
    right = round(counted(plain(np.random.default_rng(SEED))), 6)
    dropped = [k for k in unknown["wrong"] if asked[k]["missing groups"]["value"] != right]
    return {
        "inputs": len(asked["skfair"]),
        "others": joined([f"{wrong_of(v)} in {k}" for k, v in asked.items() if k != "skfair"]),
        "skfair": wrong_of(asked["skfair"]) + (f" ({joined(own)})" if own else ""),
        "by_position": joined(shuffled["wrong"]),
        "by_index": joined(shuffled["right"]),
        "dropped": joined(dropped),
        "joining": joined([name for name in unknown["wrong"] if name not in dropped]),
        "absent": f"Left out, because the import failed: {joined(absent)}." if absent else "",
    }


def wrong_of(own: dict[str, Any]) -> str:
    """Return how many of the inputs that a library accepts give a wrong number."""
    kinds = [one["kind"] for one in own.values()]
    return f"{kinds.count('wrong')} of {len(kinds) - kinds.count('none')}"


def joined(names: Sequence[str]) -> str:
    """Return names as part of a sentence."""
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]])) or "no library"


def pictures(results: dict[str, Any]) -> dict[str, Any]:
    """Draw how many inputs end in what, a bar for each library."""
    figure, (axes,) = small(height=2.4, width=8.0)
    rows = tables(results)["sums"].rows[::-1]
    start = np.zeros(len(rows))
    colors = ("#2a78b5", "#8fbfe0", "#c9c9c9", "#c8412f", "#f2f2f2")
    for k, (label, color) in enumerate(zip(KINDS.values(), colors, strict=True), start=1):
        sums = np.array([row[k] for row in rows], dtype=float)
        axes.barh([row[0] for row in rows], sums, left=start, color=color, label=label)
        start += sums
    axes.set(xlabel="inputs", xticks=range(0, 21, 5))
    figure.legend(loc="outside right center", frameon=False)
    return {"picture": figure}
