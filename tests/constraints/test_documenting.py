"""Docstrings of constraints name the estimators that take them."""

import inspect
import pydoc
import re

import numpy as np
import pytest

from tests.registries import CONSTRAINTS
from tests.seeds import generator

NAMED = re.compile(r"^(skfair\.(?:classification|regression)\.\w+) : ", re.MULTILINE)


@pytest.mark.parametrize(
    "name",
    [name for name in CONSTRAINTS if CONSTRAINTS[name].__module__.startswith("skfair.constraints")],
)
def test_the_estimators_that_are_named_take_the_constraint(name):
    rng, sex = generator(name), np.tile(["f", "m"], 200)
    X = rng.normal(size=(400, 2))
    y = 0.4 * (X[:, 0] + rng.normal(size=400))
    named = NAMED.findall(inspect.getdoc(CONSTRAINTS[name]))
    assert named
    for path in named:
        target = y if path.endswith("Regressor") else y > 0
        model = pydoc.locate(path)(constraint=name, max_disparity=0.95)
        model.fit(X, target, sensitive_features=sex)
