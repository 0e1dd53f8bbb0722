"""The loop of strict enforcement, with rounds and a solver that do as they are told."""

import numpy as np
import pytest

from skfair.enforcement.rounds import Place, Rounds
from skfair.solvers.base import SolverResult


class Diary(Rounds):
    """Writes down what happens; bounds are the number of the round."""

    def __init__(self, unsound=(), last=99):
        self.unsound, self.last, self.moves, self.kept = unsound, last, 0, []

    def bounded(self):
        return self.moves

    def keep(self, problem, result):
        self.kept.append(problem)
        return problem not in self.unsound

    def move(self, problem, result):
        self.moves += 1
        return self.moves < self.last


class Adder:
    """Adds one to where it starts."""

    def __init__(self, stops_at=None):
        self.stops_at, self.starts, self.params = stops_at, [], []

    def solve(self, problem, theta, multipliers, **params):
        self.starts.append((float(theta[0]), multipliers))
        self.params.append(params)
        status = "stopped" if problem == self.stops_at else "converged"
        return SolverResult(theta + 1, np.array([problem]), 1, status, {})


START = Place(np.zeros(1), None)


def test_each_round_starts_where_the_last_one_ended():
    rounds, solver = Diary(), Adder()
    end = rounds.run(solver, START, 3, {"tol": 0.5})
    assert [theta for theta, _ in solver.starts] == [0, 1, 2]
    assert solver.starts[0][1] is None
    assert [int(lam[0]) for _, lam in solver.starts[1:]] == [0, 1]
    assert rounds.kept == [0, 1, 2]
    assert end.theta[0] == 3
    assert solver.params == [{"tol": 0.5}] * 3


@pytest.mark.parametrize("rounds", [Diary(last=2), Diary(unsound=(2,))])
def test_it_ends_when_nothing_is_left_to_do_or_a_solution_is_no_use(rounds):
    end = rounds.run(Adder(), START, 9, {})
    assert end.theta[0] == 2
    assert rounds.moves == 2


def test_a_stopped_solve_is_kept_and_not_gone_on_from():
    rounds, solver = Diary(), Adder(stops_at=1)
    end = rounds.run(solver, START, 9, {})
    assert rounds.kept == [0, 1]
    assert end.theta[0] == 1
