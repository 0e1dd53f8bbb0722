"""Figure 12 of partial_fairness_idca (section G.9): networks under (15), by IDCA on batches.

The paper fine-tunes a ResNet-18 on CelebA, which is neither here nor trainable on a processor. The
form of the figure is kept: a convolution net (PyTorch) on the digits of scikit-learn with a made
group, and a network of our own (no PyTorch) on a9a; intervals [20%, 40%] with 10 and 50
percentiles and [0%, 100%] with 50; steps on 64 rows; several kappa each.

Each digit is shown several times, half of them with strokes of noise. Noisy pictures are rarer
among the digits from 5 on, which are to be recognised, so that a net learns to use the noise.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from benchmarks._partial_data import Part, a9a
from benchmarks.harness import Table, lacks, measure_parts, timed
from skfair.classification import PartialParityClassifier
from skfair.constraints.partial import IntervalConstraint
from skfair.metrics import partial_ccdf_gap, partial_statistical_parity_gap
from skfair.models import MLPScore
from skfair.papers import IDCAStochastic

INTERVAL = (0.2, 0.4)  # where fairness is measured, whatever was asked for
SETTINGS = {
    "20-40 %, 10 percentiles": (INTERVAL, 10),
    "0-100 %, 50 percentiles": ((0.0, 1.0), 50),
    "20-40 %, 50 percentiles": (INTERVAL, 50),
}
KAPPAS = (0.01, 0.05, 0.1, 0.2, 0.4)
SEEDS = (3601, 3602)
N_COPIES = 4  # of each digit
# Share of noisy copies among digits below 5, and of others.
NOISY = (0.7, 0.3)
# V and alpha of the inner steps: longer steps switch units
# off for good, and shorter ones do not get far in so few.
STEPS = {"digits, convolutions": (14.0, 40.0), "a9a, 16 hidden units": (6.0, 40.0)}
LEVELS = (0.8, 0.85, 0.9, 0.95)  # of fairness, in the table


class Size(NamedTuple):
    """Lengths of runs."""

    n_kappas: int
    n_seeds: int
    n_inner: int
    n_outer: int
    n_a9a: int


FULL, QUICK = Size(len(KAPPAS), len(SEEDS), 200, 12, 6000), Size(2, 1, 20, 2, 800)


def digits(seed: int) -> tuple[Part, Part]:
    """Return training and test pictures; copies of a digit are all in one of them."""
    from sklearn.datasets import load_digits

    X, number = load_digits(return_X_y=True)
    rng = np.random.default_rng(seed)
    order = rng.permutation(number.size)
    parts = []
    for rows in np.split(order, [1200]):
        images = np.repeat(X[rows] / 16, N_COPIES, axis=0)
        y = np.repeat(number[rows] >= 5, N_COPIES)
        is_noisy = rng.random(y.size) < np.where(y, NOISY[1], NOISY[0])
        strokes = stroke(rng, y.size) * is_noisy[:, None]
        shown = np.clip(images + strokes + 0.1 * rng.normal(size=images.shape), 0, 1)
        parts.append(Part(shown, y.astype(int), is_noisy.astype(int)))
    return parts[0], parts[1]


def stroke(rng: np.random.Generator, n: int) -> Any:
    """Return pictures with one bright row or column each."""
    pictures = np.zeros((n, 8, 8))
    pictures[np.arange(n), rng.integers(8, size=n)] = 0.8
    is_column = rng.random(n) < 0.5
    pictures[is_column] = pictures[is_column].transpose(0, 2, 1)
    return pictures.reshape(n, 64)


def convolutions() -> Any:
    """Return a small convolution net as a score model."""
    from torch import nn

    from skfair.models import TorchScore

    return TorchScore(
        nn.Sequential(
            nn.Unflatten(1, (1, 8, 8)),
            nn.Conv2d(1, 8, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(8 * 16, 16),
            nn.ReLU(),
            nn.Linear(16, 1),
        ).double()
    )


class OwnNetwork:
    """A network of this package as a model that keeps no rows."""

    def __init__(self, n_features: int, layers: tuple[int, ...]) -> None:
        self._layers = layers
        some = np.random.RandomState(0).normal(size=(2, n_features))  # no column is constant
        self._first = MLPScore(some, layers)
        self._units = self._first.units._replace(
            mean=np.zeros(n_features), scale=np.ones(n_features)
        )
        self.n_parameters = self._first.n_parameters

    def start(self, rng: np.random.RandomState) -> Any:
        """Return parameters to start from."""
        return self._first.start(rng)

    def forward(self, theta: Any, X: Any) -> tuple[Any, Any]:
        """Return scores of rows."""
        model = MLPScore(X, self._layers)
        model.use_units(self._units)
        scores, tape = model.forward(theta)
        return scores, (model, tape)

    def pullback(self, tape: Any, slopes: Any) -> Any:
        """Return the gradient."""
        model, inner = tape
        return model.pullback(inner, slopes)


def fit(
    train: Part,
    test: Part,
    model: Any,
    setting: str,
    kappa: float,
    seed: int,
    size: Size,
    steps: tuple[float, float],
) -> dict[str, Any]:
    """Train a network and measure it on test rows."""
    interval, n_percentiles = SETTINGS[setting]
    classifier = PartialParityClassifier(
        interval,
        IntervalConstraint(surrogate="ramp", n_percentiles=n_percentiles),
        max_disparity=kappa,
        scale="ccdf",
        model=model,
        solver=IDCAStochastic(
            n_inner=size.n_inner, n_outer=size.n_outer, objective_weight=steps[0], damping=steps[1]
        ),
        enforce="surrogate",
        alpha=1e-5,
        random_state=seed,
    )
    seconds, _ = timed(lambda: classifier.fit(train.X, train.y, sensitive_features=train.groups))
    scores = classifier.decision_function(test.X)
    return {
        "setting": setting,
        "kappa": kappa,
        "accuracy": float(np.mean((scores > 0) == (test.y > 0))),
        "ccdf": fairness(partial_ccdf_gap, scores, test.groups),
        "conditional": fairness(partial_statistical_parity_gap, scores, test.groups),
        "violation": float(classifier.history_["max_violation"][-1]),
        "seconds": round(seconds, 2),
    }


def fairness(gap: Callable[..., float], scores: Any, groups: Any) -> float:
    """Return 1 minus a disparity; nan if so many scores tie that no rank is in the interval."""
    try:
        return 1 - gap(None, scores, sensitive_features=groups, interval=INTERVAL)
    except ValueError:
        return float("nan")


def runs(
    name: str, load: Callable[[int], tuple[Part, Part]], make: Callable[[int], Any], size: Size
) -> list[dict[str, Any]]:
    """Train with every setting, kappa and seed; means over seeds."""
    rows = []
    parts = {seed: load(seed) for seed in SEEDS[: size.n_seeds]}
    for setting in SETTINGS:
        for kappa in KAPPAS[-size.n_kappas :]:
            found = [
                fit(train, test, make(train.X.shape[1]), setting, kappa, seed, size, STEPS[name])
                for seed, (train, test) in parts.items()
            ]
            numbers = [key for key in found[0] if key not in ("setting", "kappa")]
            means = {key: round(float(np.mean([r[key] for r in found])), 5) for key in numbers}
            rows.append({"setting": setting, "kappa": kappa, **means})
        print(f"      {setting}", flush=True)
    return rows


def main(*, quick: bool = False, only: str | None = None) -> dict[str, Any]:
    """Train the networks."""
    size = QUICK if quick else FULL

    def some_rows(seed: int) -> tuple[Part, Part]:
        train, test = a9a(seed, is_blind=True)
        return Part(*(part[: size.n_a9a] for part in train)), test

    networks: dict[str, tuple[Any, Any]] = {
        "digits, convolutions": (digits, lambda _: convolutions()),
        "a9a, 16 hidden units": (some_rows, lambda d: OwnNetwork(d, (16,))),
    }
    if lacks("torch"):
        del networks["digits, convolutions"]
    return measure_parts(
        {name: partial(runs, name, *network, size) for name, network in networks.items()}, only
    )


def canary() -> dict[str, Any]:
    """Return the results of a small cell."""
    return main(quick=True, only="a9a, 16 hidden units")


def tables(results: dict[str, Any]) -> dict[str, Table]:
    """Return the points of figure 12, and the best accuracy at levels of fairness."""
    points = [
        [data, row["setting"], row["kappa"]]
        + [row[key] for key in ("accuracy", "ccdf", "conditional", "violation", "seconds")]
        for data, rows in results.items()
        for row in rows
    ]
    columns = ["data", "constraint", "kappa", "accuracy", "pSP fairness, shares of groups"]
    columns += ["/ Definition 4.2", "violation on training rows", "CPU seconds"]
    levels = [
        [data, setting, *(best(rows, setting, level) for level in LEVELS)]
        for data, rows in results.items()
        for setting in SETTINGS
    ]
    heads = ["data", "constraint", *(f"fairness >= {level}" for level in LEVELS)]
    return {
        "points": Table("Figure 12: test rows, fairness within 20-40 %", columns, points),
        "levels": Table("Figure 12: best accuracy at a level of fairness", heads, levels),
    }


def best(rows: list[dict[str, Any]], setting: str, level: float) -> Any:
    """Return the best accuracy of a model where fairness in shares of groups reaches a level."""
    fair = [r["accuracy"] for r in rows if r["setting"] == setting and r["ccdf"] >= level]
    return max(fair) if fair else "not reached"


def pictures(results: dict[str, Any]) -> dict[str, Any]:
    """Return figure 12 in both readings of fairness."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.2 * len(results) + 1, 6.4), layout="constrained")
    axes = figure.subplots(2, len(results), squeeze=False)
    for column, (data, rows) in enumerate(results.items()):
        for row, (key, name) in enumerate(
            (("ccdf", "shares of groups"), ("conditional", "Definition 4.2"))
        ):
            ax = axes[row, column]
            for marker, setting in zip("osD", SETTINGS, strict=True):
                line = sorted(
                    (one[key], one["accuracy"]) for one in rows if one["setting"] == setting
                )
                ax.plot(*zip(*line, strict=True), marker=marker, lw=1, ms=5, label=setting)
            ax.set(xlabel=f"pSP fairness within 20-40 %, {name}", title="" if row else data)
        axes[0, column].set_ylabel("Accuracy on test rows")
        axes[1, column].set_ylabel("Accuracy on test rows")
    axes[0, 0].legend(fontsize=8)
    return {"figure12": figure}
