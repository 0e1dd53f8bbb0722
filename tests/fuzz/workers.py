"""Cases in a process of their own, so that a crash of the interpreter is seen and reported.

A *chunk* is some cases of one public name from one seed; it is the unit that can be replayed.
"""

import faulthandler
import multiprocessing
import os
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from tests.fuzz.cases import Case
from tests.fuzz.verdict import SECONDS, Verdict

CHUNK = 50


@dataclass
class Record:
    """A case and its verdict."""

    name: str
    seed: int
    size: int  # of the chunk: what is drawn depends on it
    number: int
    title: str
    verdict: Verdict

    @property
    def replay(self):
        return f"{self.name}:{self.seed}:{self.size}:{self.number}"


def run_chunk(name: str, seed: int, n_cases: int, tell, only: int | None = None) -> None:
    """Draw and run the cases of a chunk; ``tell`` hears of each before and after it."""
    from tests.fuzz.attack import PREFIX

    draw = attacks if name.startswith(PREFIX) else calls
    draw(name, seed, n_cases, partial(run_case, tell, only))


def run_case(tell, only: int | None, number: int, draw: Callable[[], Case]) -> None:
    """Run a case if it is wanted, and tell of it."""
    from tests.fuzz.verdict import judge

    case = draw()
    if only is None or number == only:
        tell(number, case, None)
        start = time.process_time()
        verdict = judge(case)
        verdict.seconds = time.process_time() - start
        tell(number, case, verdict)


def attacks(name: str, seed: int, n_cases: int, run) -> None:
    """Cases of the attack: a seed and a number are all that they depend on."""
    from tests.fuzz.attack import attack_case

    for number in range(n_cases):
        run(number, partial(attack_case, name, seed, number))


def calls(name: str, seed: int, n_cases: int, run) -> None:
    """Calls of a public name, drawn by hypothesis."""
    from hypothesis import HealthCheck, Phase, given, settings, strategies
    from hypothesis import seed as seeded

    from tests.fuzz.cases import draw_case

    number = 0

    @seeded(seed)
    @settings(
        max_examples=n_cases,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(strategies.data())
    def one_case(data):
        nonlocal number
        run(number, partial(draw_case, data.draw, name))
        number += 1

    one_case()


def work(connection) -> None:
    """Run chunks for the parent until it stops this process."""
    from tests.fuzz.verdict import prepare_process

    def tell(number, case, verdict):
        connection.send((number, case.title, verdict))

    faulthandler.enable()
    prepare_process()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)  # what a data_home of "nowhere" creates is created here
        while True:
            chunk = connection.recv()
            try:
                run_chunk(*chunk, tell)
            except Exception as error:  # the fuzzer's own fault
                told = f"{type(error).__name__}: {error} at {traceback.format_exc(limit=-2)}"
                connection.send((-1, "no case", Verdict("the fuzzer fails", told)))
            connection.send(None)


def crash(connection) -> None:
    """Break down in the second case; a test watches how that is reported."""
    connection.recv()
    connection.send((0, "harmless", Verdict("accepted")))
    connection.send((1, "fatal", None))
    os.abort()


class Worker:
    """One process at a time; after a crash or a hang in compiled code the next one takes over."""

    def __init__(self, work=work) -> None:
        self._work = work
        self._process = None

    def start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=self._work, args=(theirs,), daemon=True)
        self._process.start()
        theirs.close()

    def records(self, name: str, seed: int, n_cases: int) -> Iterator[Record]:
        """Run a chunk; cases after a crash are lost."""
        if self._process is None:
            self.start()
        self._connection.send((name, seed, n_cases))
        number, title = -1, "before the first case"
        patience = 60.0  # a new process imports and compiles first
        while True:
            try:
                heard = self._connection.poll(patience)
                message = self._connection.recv() if heard else ()
            except (EOFError, OSError):
                self._process.join()
                died = f"the interpreter died with exit code {self._process.exitcode}"
                self._process = None
                yield Record(name, seed, n_cases, number, title, Verdict("crash", died))
                return
            if message == ():
                self._process.kill()
                self._process.join()
                self._process = None
                stuck = f"no answer for {patience:.0f} s, and the timer could not interrupt it"
                yield Record(name, seed, n_cases, number, title, Verdict("hang", stuck))
                return
            if message is None:
                return
            number, title, verdict = message
            patience = 20.0 * SECONDS  # of the clock: for waiting and for compiled code
            if verdict is not None:
                yield Record(name, seed, n_cases, number, title, verdict)

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()  # it may be in the middle of a case
            self._process.join()
            self._process = None
