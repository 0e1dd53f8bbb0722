"""What :class:`skfair.models.TorchScore` costs: solvers on it against loops written by hand.

A network of hidden layers of 64 and 32 units on batches of 64 rows (64 of each group under a
constraint). Both make the same steps from the same start on the same rows: Adam on the loss, and
Adam on an augmented Lagrangian of loss parity with a multiplier. How far the parameters are apart
in the end shows that they do.

A linear module ends where linear scores do, which the tests show to 1e-6.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks._drawing import name_rows, small
from benchmarks.harness import Table, alternate, lacks
from skfair.constraints.base import TrainingRows, make_constraints
from skfair.groups.encoding import encode_groups
from skfair.losses import make_loss
from skfair.models.plug_in import PlugInScore
from skfair.problems.erm.in_memory import ConstrainedERM
from skfair.solvers.base import SOLVERS

N_ROWS, N_FEATURES, BOUND, BATCH, RATE = 10_000, 9, 0.01, 64, 0.01
OPTIONS: dict[str, Any] = {
    "averaging": None, "output": "last", "n_loss": BATCH, "n_per_cell": BATCH,
    "decay_steps": np.inf, "learning_rate": RATE,
}  # fmt: skip


def network() -> Any:
    """Return the module."""
    from torch import nn

    return nn.Sequential(
        nn.Linear(N_FEATURES, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 1)
    )


def problem_of(module: Any, rule: bool) -> ConstrainedERM:
    """Return the problem of a network that starts at the module's parameters."""
    from skfair.models import TorchScore

    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_ROWS, N_FEATURES)).astype(np.float32)
    groups = rng.integers(2, size=N_ROWS)
    y = np.where(X[:, 0] + groups * X[:, 1] + rng.normal(size=N_ROWS) > 0, 1.0, -1.0)
    loss = make_loss("log_loss", "classification")
    rows = TrainingRows(encode_groups(groups), y, None, loss, (0, 1))
    constraints = make_constraints("loss_parity", "classification") if rule else []
    model = PlugInScore(TorchScore(module, start="module"), X)
    return ConstrainedERM(model, loss, y, [one.prepare(rows, BOUND) for one in constraints])


def by_solver(name: str, problem: ConstrainedERM, n_steps: int) -> Any:
    """Train with a solver; return the parameters."""
    rng = np.random.RandomState(1)
    solver: Any = SOLVERS[name](**OPTIONS)
    state = solver.begin(problem, problem.start(rng))
    solver.advance(problem, state, n_steps, rng)
    return state.theta


def by_hand(name: str, module: Any, problem: ConstrainedERM, n_steps: int) -> Any:
    """Train with a loop as one writes it in PyTorch; return the parameters."""
    from copy import deepcopy

    import torch
    from torch.nn.functional import softplus

    net, rng = deepcopy(module), np.random.RandomState(1)
    optimizer = torch.optim.Adam(net.parameters(), lr=RATE)
    X, y = torch.from_numpy(problem.model.X), torch.from_numpy(problem.targets).float()
    solver: Any = SOLVERS[name](**OPTIONS)
    multiplier = value = 0.0
    if problem.rules:
        value = float(problem.evaluate(problem.start(rng)).constraints[0])
        cells = torch.from_numpy(problem.rules[0].cells)
        masses = torch.from_numpy(np.bincount(cells) / N_ROWS).float()
    for _ in range(n_steps):
        rows = torch.from_numpy(problem.draw(rng, BATCH, BATCH).rows)
        losses = softplus(-y[rows] * net(X[rows])[:, 0])
        if problem.rules:
            means = losses.view(2, BATCH).mean(1)
            gap = means[1] - means[0]
            shifted = value + multiplier / solver.rho
            nu = solver.rho * (shifted - min(max(shifted, -BOUND), BOUND))
            target = masses @ means + nu * gap
            multiplier += solver.eta / solver.rho * (nu - multiplier)
            value = float(gap.detach())
        else:
            target = losses.mean()
        optimizer.zero_grad()
        target.backward()
        optimizer.step()
    return torch.nn.utils.parameters_to_vector(net.parameters()).detach().numpy()


def main(*, quick: bool = False) -> dict[str, Any]:
    """Time both."""
    if lacks("torch"):
        return {"skipped": "PyTorch is not installed"}
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(0)
    module, n_steps = network(), 100 if quick else 1000
    results: dict[str, Any] = {}
    for name, rule in (("sgd", False), ("alm", True)):
        problem = problem_of(module, rule)
        ways: dict[str, Callable[[], Any]] = {
            "solver": lambda name=name, problem=problem: by_solver(name, problem, n_steps),
            "by hand": lambda name=name, problem=problem: by_hand(name, module, problem, n_steps),
        }
        few = 50  # rounding grows along a course in single precision
        apart = by_solver(name, problem, few) - by_hand(name, module, problem, few)
        moved = by_solver(name, problem, few) - problem.start(np.random.RandomState(0))
        results[name] = {
            way: {**row, "per step": 1e6 * row["cpu"] / n_steps}
            for way, row in alternate(ways, 2 if quick else 5).items()
        }
        results[name]["apart"] = float(np.abs(apart).max() / np.abs(moved).max())
    return results


def tables(results: dict[str, Any]) -> dict[str, Table]:
    """Show microseconds per step and their ratio."""
    if "skipped" in results:
        return {}
    rows = [
        [
            name,
            *(one[way]["per step"] for way in ("solver", "by hand")),
            one["solver"]["cpu"] / one["by hand"]["cpu"],
            one["apart"],
        ]
        for name, one in results.items()
    ]
    columns = ["steps", "TorchScore, us a step", "by hand, us a step", "ratio", "apart"]
    return {"steps": Table("TorchScore against a loop by hand", columns, rows)}


def pictures(results: dict[str, Any]) -> dict[str, Any]:
    """Draw microseconds per step."""
    if "skipped" in results:
        return {}
    names = {"solver": "TorchScore", "by hand": "loop by hand"}
    bars = {
        f"{name}, {names[way]}": one[way]["per step"]
        for name, one in results.items()
        for way in names
    }
    figure, (axes,) = small(height=1.8)
    axes.barh(range(len(bars)), list(bars.values()), color=["C0", "C1"] * len(results), height=0.6)
    name_rows(axes, list(bars))
    axes.set_xlabel("Microseconds of a step")
    return {"picture": figure}
