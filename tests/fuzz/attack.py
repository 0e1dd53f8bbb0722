"""The attack: what must hold after every fit, whatever the rows, on hard but valid cases.

Nothing is silent: limits are kept or a warning and ``status_`` say that they are not, and what is
reported is what one counts. Nothing is lost: predictions do not depend on the batch, equal fits are
equal to the bit whatever the clock says, rows are never matched in a wrong order, a fit that fails
leaves the estimator as it was, and the process is afterwards what it was before.
"""

import inspect
import os
import pickle
import sys
import threading
import time
import warnings
import zlib
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import ThreadpoolController, threadpool_info, threadpool_limits

from tests.fuzz.cases import Case
from tests.fuzz.hard_fits import EXACT, Fit, fits
from tests.fuzz.hard_rows import pick
from tests.fuzz.verdict import OURS, Breach

# Fits of one case; those of group-blind models within intervals take seconds.
N_FITS = 4
# One case in so many is fitted in several threads at once, too.
IN_THREADS = 10
N_THREADS, N_STEPS = 3, 100
# What every estimator refuses.
WRONG = {"sensitive": 0.5}
Fault = tuple[str, str]  # its kind, and what was seen


def attack_case(name: str, seed: int, number: int) -> Case:
    """The case with a number: the fit of an estimator, and all checks of it."""
    rng = np.random.default_rng([zlib.crc32(name.encode()), seed, number])
    with warnings.catch_warnings():  # of models that are fitted beforehand
        warnings.simplefilter("ignore")
        fit = fits()[name](rng)
    arrays = [fit.rows.X, fit.y, fit.rows.weights]
    names = {*fit.estimator.get_params(), *fit.given, "X", "y", "predict_proba"}
    return Case(fit.title, names, arrays, lambda: attack(fit, rng), n_calls=N_FITS)


def attack(fit: Fit, rng: np.random.Generator) -> None:
    """Fit, check everything, and raise what is wrong, all of it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        faults = list(check_process(lambda: faults_of(fit, rng)))
    if faults:
        raise Breach([kind for kind, _ in faults], "; ".join(seen for _, seen in faults))


def faults_of(fit: Fit, rng: np.random.Generator) -> Iterator[Fault]:
    """Fit, and yield what is wrong with the fitted estimator."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = fitted(fit)
    yield from check_count(fit, model, caught)
    yield from check_batches(fit, model)
    n_calls = yield from check_equal_fits(fit, model)
    yield from check_order(fit, model, rng)
    yield from check_failures(fit, model, n_calls, rng)
    if rng.integers(IN_THREADS) == 0:
        yield from check_threads(fit, model)


def fitted(fit: Fit, model: Any = None, X: Any = None, **others: Any) -> Any:
    """Fit a new estimator, or a given one; ``others`` stand in for y and what else is passed."""
    model = clone(fit.estimator) if model is None else model
    given: dict[str, Any] = {**fit.given, **({} if fit.y is None else {"y": fit.y}), **others}
    return model.fit(fit.rows.X if X is None else X, **given)


# --- limits and reports -------------------------------------------------------------------------


def check_count(fit: Fit, model: Any, caught: list[warnings.WarningMessage]) -> Iterator[Fault]:
    """A limit is kept, or a warning and the status say that it is not; reports are right."""
    count = fit.count(model)
    is_said = any(issubclass(one.category, ConvergenceWarning) for one in caught)
    if count.missed > 0 and not (is_said and says_so(model)):
        status = getattr(model, "status_", None)
        yield "silent breach", f"missed by {count.missed:.3g}, {status=}, warned={is_said}"
    for name, reported, counted, slack in count.pairs:
        if not abs(reported - counted) <= max(slack, EXACT * abs(counted)):
            yield "reported is not counted", f"{name}={reported:.10g}, counted {counted:.10g}"
    used = getattr(model, "effective_disparity_", 0.0)
    if used and used > model.max_disparity + EXACT and not caught:
        yield "silent breach", f"effective_disparity_={used:.4g} without a warning"


def says_so(model: Any) -> bool:
    """Whether a fitted estimator says that it misses a limit."""
    if getattr(model, "status_", None) == "infeasible":
        return True
    return getattr(model, "is_within_limit_", True) is False and not hasattr(model, "status_")


# --- predictions --------------------------------------------------------------------------------


def check_batches(fit: Fit, model: Any) -> Iterator[Fault]:
    """Predictions are those of a batch, row by row, in another order and after pickling."""
    every = np.arange(fit.rows.n)
    for said, answer in answers(fit, model):
        expected = answer(model, every)
        alone = np.concatenate([answer(model, [i]) for i in every])
        backwards = answer(model, every[::-1])[::-1]
        copied = answer(pickle.loads(pickle.dumps(model)), every)
        for how, other in (("row by row", alone), ("backwards", backwards), ("pickled", copied)):
            if n_other := count_different(expected, other):
                yield f"{how}: other predictions", f"{n_other} of {fit.rows.n} in {said}"


def answers(fit: Fit, model: Any) -> Iterator[tuple[str, Callable[[Any, Any], np.ndarray]]]:
    """Yield every way to ask for predictions of rows."""
    if hasattr(model, "select"):  # a front of models
        for index in sorted({0, model.knee_, len(model.costs_) - 1}):
            for said, answer in answers(fit, model.select(index=index)):
                yield f"select({index}).{said}", partial(of_selected, index, answer)
    if not hasattr(model, "predict"):
        return
    taken = used_to_predict(fit, model)
    if not taken or hasattr(model, "cluster_balances_"):
        yield "predict(X)", lambda model, rows: model.predict(fit.rows.X[rows])
    if taken:
        yield (
            f"predict(X, {', '.join(taken)})",
            lambda model, rows: model.predict(
                fit.rows.X[rows], **{name: part(one, rows) for name, one in taken.items()}
            ),
        )


def of_selected(index: int, answer: Callable[..., np.ndarray], front: Any, rows: Any) -> np.ndarray:
    return answer(front.select(index=index), rows)


def used_to_predict(fit: Fit, model: Any) -> dict[str, Any]:
    """What predictions look at besides X: a group-blind model ignores the groups."""
    known = inspect.signature(model.predict).parameters if hasattr(model, "predict") else ()
    is_blind = not getattr(model, "is_group_aware_", True)
    taken = [name for name in known if not (is_blind and name == "sensitive_features")]
    return {name: fit.given[name] for name in taken if name in fit.given}


def part(values: Any, rows: Any) -> Any:
    """Some rows of an array or a table."""
    return values.iloc[rows] if hasattr(values, "iloc") else values[rows]


def count_different(one: np.ndarray, other: np.ndarray) -> int:
    """How many predictions differ; numbers may do so by rounding."""
    if one.dtype.kind != "f":
        return int(np.sum(one != other))
    return int(np.sum(~np.isclose(one, other, rtol=1e-9, atol=1e-9 * np.abs(one).max(initial=0.0))))


# --- equal fits ---------------------------------------------------------------------------------


def check_equal_fits(fit: Fit, model: Any) -> Generator[Fault, None, int]:
    """The same fit gives the same bits, also when the clock jumps; return its number of calls."""
    with lying_clock(), counted_calls() as calls:
        other = fitted(fit)
    if found := differences(model, other):
        kind = "equal fits differ" if differences(model, fitted(fit)) else "the clock changes a fit"
        yield kind, ", ".join(found)
    return len(calls)


def differences(one: Any, other: Any) -> list[str]:
    """Names of the fitted attributes that differ."""
    names = [name for name in vars(one) if name.endswith("_") and name[0] != "_"]
    known = vars(other)
    return [name for name in names if name not in known or unlike(vars(one)[name], known[name])]


def unlike(one: Any, other: Any) -> bool:
    """Whether two values differ in a bit; times and what cannot be compared do not count."""
    if isinstance(one, np.ndarray) and one.dtype.kind != "O":
        return one.shape != np.shape(other) or one.tobytes() != np.asarray(other).tobytes()
    if isinstance(one, dict):
        named, others = (
            [name for name in own if "second" not in str(name)] for own in (one, other)
        )
        return named != others or any(unlike(one[name], other[name]) for name in named)
    if isinstance(one, list | tuple | np.ndarray):
        return len(one) != len(other) or any(map(unlike, one, other))
    if hasattr(one, "__dict__"):
        return bool(differences(one, other))
    return bool(one != other) and pickle.dumps(one) != pickle.dumps(other)


@contextmanager
def lying_clock() -> Iterator[None]:
    """Let every clock of Python jump by an hour at each look, and the seconds of HiGHS run out."""
    with ExitStack() as stack:
        for name in ("time", "monotonic", "perf_counter", "process_time", "thread_time"):
            stack.enter_context(mock.patch.object(time, name, jumping(getattr(time, name))))
        for module in ("scipy.optimize._milp", "scipy.optimize._linprog_highs"):
            if hasattr(sys.modules.get(module), "_highs_wrapper"):
                real = sys.modules[module]._highs_wrapper
                stack.enter_context(mock.patch(f"{module}._highs_wrapper", hurried(real)))
        yield


def jumping(clock: Callable[[], float]) -> Callable[[], float]:
    n_looks = 0

    def look() -> float:
        nonlocal n_looks
        n_looks += 1
        return clock() + 3600.0 * n_looks

    return look


def hurried(solve: Callable[..., Any]) -> Callable[..., Any]:
    """A thousandth of the seconds that an integer programme is given, as on a slow machine."""

    def hurriedly(*args: Any) -> Any:
        *data, options = args
        if options.get("time_limit") is not None:
            options = {**options, "time_limit": 1e-3 * options["time_limit"]}
        return solve(*data, options)

    return hurriedly


# --- order of rows ------------------------------------------------------------------------------


def check_order(fit: Fit, model: Any, rng: np.random.Generator) -> Iterator[Fault]:
    """What belongs to rows has their index in their order, or is refused; y goes by position."""
    index = rng.permutation(fit.rows.n) + 100
    shuffled = np.roll(index, 1)
    X = pd.DataFrame(fit.rows.X, index=index).add_prefix("x")
    for name, values in fit.given.items():
        moved = {name: indexed(values, shuffled)}
        if not raises(ValueError, partial(fitted, fit, X=X, **moved)):
            yield "takes another order of rows", f"{name} in fit"
    taken, frame = used_to_predict(fit, model), pd.DataFrame(fit.rows.X, index=index)
    for name, values in taken.items():
        moved = taken | {name: indexed(values, shuffled)}
        if not raises(ValueError, partial(model.predict, frame, **moved)):
            yield "takes another order of rows", f"{name} in predict"


def indexed(values: Any, index: np.ndarray) -> Any:
    """Return a series or a table with an index."""
    make = pd.Series if np.ndim(values) == 1 else pd.DataFrame
    return make(np.asarray(values), index=index)


def raises(expected: type[Exception], action: Callable[[], Any]) -> bool:
    try:
        action()
    except expected:
        return True
    return False


def same_things(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether two sets of attributes are the very same objects."""
    return one.keys() == other.keys() and all(one[name] is other[name] for name in one)


# --- failures -----------------------------------------------------------------------------------


class Injected(Exception):
    """Raised in the middle of a fit."""


class InjectedAsInterrupt(BaseException):
    """The same, past every handler of ``Exception``."""


def check_failures(fit: Fit, model: Any, n_calls: int, rng: np.random.Generator) -> Iterator[Fault]:
    """A fit with a wrong parameter, or with an error anywhere in it, leaves things as they were."""
    before, bits = vars(model).copy(), pickle.dumps(model)
    model.set_params(**WRONG)
    if not raises(ValueError, lambda: fitted(fit, model)):
        yield "takes a wrong parameter", str(WRONG)
    model.set_params(**{name: before[name] for name in WRONG})
    if not same_things(vars(model), before):
        yield "a failed fit changes the estimator", f"with {WRONG}"
    kind, number = pick(rng, [Injected, InjectedAsInterrupt]), int(rng.integers(max(n_calls, 1)))
    # The error may strike where limits and filters are put back, as an interrupt may.
    with threadpool_limits(), np.errstate(), warnings.catch_warnings():
        try:
            with raising_at(number, kind) as place:
                fitted(fit, model)
            place, before, bits = ["the end"], vars(model).copy(), pickle.dumps(model)
        except (Injected, InjectedAsInterrupt):
            pass
        except Exception as error:
            yield "an error becomes another one", f"{kind.__name__} at {place}: {error!r}"
    if not same_things(vars(model), before) or pickle.dumps(model) != bits:
        yield "a failed fit changes the estimator", f"{kind.__name__} at {place}"


@contextmanager
def watched_calls(hear: Callable[[Any], None]) -> Iterator[None]:
    """Hear of every call of a function of the package, in this thread."""

    def look(frame: Any, event: str, _: Any) -> None:
        # An error in a generator that is thrown away is lost.
        is_ours = frame.f_code.co_filename.startswith(f"{OURS}{os.sep}")
        if event == "call" and is_ours and frame.f_code.co_name != "<genexpr>":
            hear(frame)

    before = sys.getprofile()
    sys.setprofile(look)
    try:
        yield
    finally:
        sys.setprofile(before)


@contextmanager
def counted_calls() -> Iterator[list[None]]:
    calls: list[None] = []

    def hear(frame: Any) -> None:
        if not frame.f_code.co_flags & inspect.CO_GENERATOR:
            calls.append(None)

    with watched_calls(hear):
        yield calls


@contextmanager
def raising_at(number: int, error: type[BaseException]) -> Iterator[list[str]]:
    """Raise at the call with a number, and say where that was."""
    calls, place = [], []

    def hear(frame: Any) -> None:
        if frame.f_code.co_flags & inspect.CO_GENERATOR:
            return  # one that is thrown away can only print what is raised in it
        calls.append(None)
        if len(calls) == number + 1:
            file = Path(frame.f_code.co_filename).relative_to(OURS).as_posix()
            place.append(f"{file}:{frame.f_lineno}")
            raise error

    with watched_calls(hear):
        yield place


# --- the process --------------------------------------------------------------------------------


def check_threads(fit: Fit, model: Any) -> Iterator[Fault]:
    """Fits in threads are like fits in turn, and the linear algebra has its threads back."""
    with threads_of_libraries(2):
        before = state_of_process()
        with ThreadPoolExecutor(N_THREADS) as pool:
            others = list(pool.map(partial(fitted_in_steps, fit), range(N_THREADS)))
        yield from changes(before, "after threads ")
    if found := {name for other in others for name in differences(model, other)}:
        yield "fits in threads differ", ", ".join(sorted(found))


@contextmanager
def threads_of_libraries(number: int) -> Iterator[None]:
    """Let the linear algebra have some threads, whatever the tests have set.

    A thread that has ended sets it: threadpoolctl lets none but the one that has set a number set
    another, as long as it lives.
    """
    libraries = ThreadpoolController().lib_controllers
    numbers = [library.num_threads for library in libraries]

    def set_all(wanted: list[int]) -> None:
        for library, one in zip(libraries, wanted, strict=True):
            library.set_num_threads(one)

    def in_a_thread(wanted: list[int]) -> None:
        thread = threading.Thread(target=set_all, args=(wanted,))
        thread.start()
        thread.join()

    in_a_thread([number] * len(libraries))
    try:
        yield
    finally:
        in_a_thread(numbers)


def fitted_in_steps(fit: Fit, number: int) -> Any:
    """Fit, and let the other threads go on at each of the first calls: fits are short."""
    left = [N_STEPS + 20 * number]

    def rest(frame: Any) -> None:
        left[0] -= 1
        if left[0] >= 0:
            time.sleep(1e-4)

    with watched_calls(rest):
        return fitted(fit)


def check_process(action: Callable[[], Iterator[Fault]]) -> Iterator[Fault]:
    """Do something, and compare the process with what it was before."""
    before = state_of_process()
    yield from action()
    yield from changes(before)


def changes(before: dict[str, Any], when: str = "") -> Iterator[Fault]:
    """Yield what the process is not any more."""
    for thread in set(threading.enumerate()) - set(before["threads"]):
        thread.join(1.0)  # one that has been dismissed needs a moment to end
    after = state_of_process()
    for name, value in before.items():
        is_closed = name == "open files" and after[name] < value  # by an earlier test
        if value != after[name] and not is_closed:
            yield "the process is changed", f"{when}{name}: {changed(value, after[name])}"


def changed(before: Any, after: Any) -> str:
    """What differs between two values: of lists the entries that are not in the other."""
    if not isinstance(before, list):
        return f"{before}, now {after}"
    gone, new = ([x for x in a if x not in b] for a, b in ((before, after), (after, before)))
    return f"{gone}, now {new}, {len(before)} and {len(after)} in all"


def state_of_process() -> dict[str, Any]:
    """What a fit may use, but must not leave changed."""
    files = Path("/proc/self/fd")
    return {
        "threads of libraries": [
            (one["filepath"], one["num_threads"]) for one in threadpool_info()
        ],
        "threads": threading.enumerate(),
        "open files": len(list(files.iterdir())) if files.exists() else 0,
        "errors of numpy": np.geterr(),
        "filters of warnings": [(one[0], one[2]) for one in warnings.filters],
        "random numbers": zlib.crc32(pickle.dumps(np.random.get_state())),  # noqa: NPY002
        "environment": dict(os.environ),
    }
