"""Ranges beside the fields of solvers: defaults and presets pass, everything else is named."""

from dataclasses import dataclass, fields, is_dataclass
from typing import Literal

import numpy as np
import pytest

from skfair.solvers.base import Solver
from skfair.solvers.parameters import CountOrZero, Positive, ShareOrZero, check_parameters
from tests.families import rows_of_families
from tests.registries import SOLVERS

ALL = [*(SOLVERS[name] for name in SOLVERS), *rows_of_families("SOLVER_KINDS")]
PRESETS = [kind for kind in ALL if "paper" in vars(kind)]


@dataclass
class Momentum(Solver):
    """A newcomer whose parameters nobody has listed anywhere."""

    momentum: float = 0.0
    rate: Positive = 0.1
    n_warm: CountOrZero = 0
    share: ShareOrZero | None = None
    kind: Literal["heavy", "light"] = "heavy"
    anything: object = "?"

    def solve(self, *arguments, **options):
        raise NotImplementedError


@pytest.mark.parametrize("kind", ALL)
def test_every_solver_takes_its_own_defaults(kind):
    assert is_dataclass(kind)
    check_parameters(kind())


@pytest.mark.parametrize("kind", PRESETS)
def test_every_solver_takes_the_values_of_its_paper(kind):
    check_parameters(kind.paper())


def test_a_new_solver_needs_no_list_of_names():
    check_parameters(Momentum())
    for values in ({"momentum": -1.5}, {"share": 0}, {"share": 1}, {"n_warm": np.int64(3)}):
        check_parameters(Momentum(**values))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"momentum": "much"}, r"Momentum\(momentum='much'\): momentum must be a number\."),
        ({"momentum": float("nan")}, "momentum must be a number"),
        ({"momentum": True}, "momentum must be a number"),
        ({"rate": 0}, r"Momentum\(rate=0\): rate must be a number above 0\."),
        ({"rate": np.inf}, "rate must be finite"),
        ({"n_warm": 1.0}, "n_warm must be an integer at least 0"),
        ({"share": 1.1}, "share must be a number at least 0 and at most 1"),
        ({"kind": "medium"}, "kind must be one of 'heavy', 'light'"),
    ],
)
def test_what_cannot_be_used_is_named(values, message):
    with pytest.raises(ValueError, match=message):
        check_parameters(Momentum(**values))


@pytest.mark.parametrize("kind", [SOLVERS[name] for name in SOLVERS])
def test_every_number_has_a_range(kind):
    """A plain ``float`` would let through what the docstring excludes."""
    for field in fields(kind):
        assert field.type not in ("float", "int", "float | None", "int | None"), field.name
