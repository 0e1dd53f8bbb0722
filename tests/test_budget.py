"""The package only becomes smaller, and the test of it can fail."""

import pytest

from tests import budget, features

SOURCE = '''"""A module.

With a blank line.
"""
# A comment.

A, B = 1, (2.5, True)


class Pair(NamedTuple):
    """Two."""

    x: int


def f(x):
    """Pass on."""
    return g(
        x,
    )


def h(x):
    y = x
    return g(y)
'''


def test_the_budget_is_held():
    """A number that is too large is paid with a deletion, one that is too small is lowered."""
    mine = budget.settings((budget.ROOT / "pyproject.toml").read_text())["budget"]
    assert budget.breaches(budget.counted(), mine) == []
    for earlier in budget.earlier_settings():
        assert budget.raises(mine, earlier["budget"]) == []


def test_features_are_known_by_few_functions_below_the_border():
    """A feature that enters one more function is compiled away, one that left lowers its number."""
    mine = budget.settings((budget.ROOT / "pyproject.toml").read_text())["features"]
    found = features.functions_below()
    assert features.breaches(mine, found) == []
    for earlier in budget.earlier_settings():
        assert features.raises(mine, earlier.get("features", {}), found) == []


def test_what_is_counted(tmp_path):
    for name in ("skfair/room/a.py", "skfair/a.py", "tests/test_a.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(SOURCE)
    assert budget.counted(tmp_path) == {
        **{"room": 10, "top": 10, "tests": len(SOURCE.splitlines()), "files": 2},
        **{"numbers in constants": 4, "functions that pass on": 2, "named tuples": 2},
    }


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        ({"room": 101}, "room: 101 where the budget is 100; delete something"),
        ({"room": 97}, "room: 97 where the budget is 100; lower it"),
        ({"room": 100, "new": 1}, "new: 1 where the budget is 0; delete something"),
        ({}, "room: 0 where the budget is 100; lower it"),
        ({"room": 98}, None),
    ],
)
def test_a_count_off_its_number_is_named(counts, message):
    assert budget.breaches(counts, {"room": 100}) == ([message] if message else [])


def test_folders_may_trade_but_their_sum_may_not_rise():
    earlier = {"a": 10, "b": 10, "tests": 5}
    assert budget.raises({"a": 14, "b": 6, "tests": 5}, earlier) == []
    assert budget.raises({"a": 14, "b": 7, "tests": 6}, earlier) == [
        "tests rose from 5 to 6",
        "lines of code rose from 20 to 21",
    ]


FEATURES = {"strata": {"functions": 1, "names": ["strata", "within"]}}


def test_a_function_knows_a_feature_by_any_name_in_it(tmp_path):
    path = tmp_path / "skfair/solvers/erm/a.py"
    path.parent.mkdir(parents=True)
    path.write_text(
        'def f(x):\n    """Of strata."""\n    return x.within\n\n\n'
        "def g(x):\n    return f(strata=x)\n\n\n"
        "def h(x):\n    return x, 'strata'  # strata\n"
    )
    found = features.functions_below(tmp_path)
    known = features.known_by(FEATURES, found)["strata"]
    assert known == ["solvers/erm/a.py:1 f", "solvers/erm/a.py:6 g"]
    message = "strata: 2 functions below the border name it, 1 may"
    assert features.breaches(FEATURES, found) == [message]


def test_features_may_not_rise_nor_lose_a_name_that_is_still_used():
    now = {"strata": {"functions": 2, "names": ["strata"]}}
    assert features.raises(now, FEATURES, {"f": {"strata"}}) == ["strata rose from 1 to 2"]
    found = {"f": {"strata", "within"}}
    assert features.raises(now, FEATURES, found)[1:] == ["strata no longer counts within"]
