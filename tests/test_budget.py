"""The package only becomes smaller, and the test of it can fail."""

import pytest

from tests import budget

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
    mine = budget.budget_of((budget.ROOT / "pyproject.toml").read_text())
    assert budget.breaches(budget.counted(), mine) == []
    for earlier in budget.earlier_budgets():
        assert budget.raises(mine, earlier) == []


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
