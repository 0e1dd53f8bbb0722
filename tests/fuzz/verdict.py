"""Run one case and judge it: accepted, rejected as documented, or a fault."""

import math
import re
import signal
import traceback
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import sklearn
from sklearn.exceptions import NotFittedError
from sklearn.utils._param_validation import InvalidParameterError

import skfair
from skfair.exceptions import SolverError
from tests.fuzz.cases import Case

SECONDS = 10
# Where the sources lie. The folder of a checkout may have any name, and an environment in it holds
# the sources of others: only whole folders tell whose a file is.
OURS, THEIRS = (Path(package.__file__).parent for package in (skfair, sklearn))
# Subclasses are not meant: an IndexError or a LinAlgError is an accident.
DOCUMENTED = (ValueError, TypeError, InvalidParameterError, NotFittedError, SolverError)
# Data sets that are not there.
FILES = (FileNotFoundError, ConnectionError)
# An error of the data names what is wrong in them rather than an argument.
IN_THE_DATA = (
    r"keyword|group|class|column|row|label|cluster|sample|point|iteration|attribute|cell|scorer"
)


class Hang(BaseException):
    """The case took too long; no handler of ``Exception`` may swallow it."""


class Breach(AssertionError):
    """What must hold after a fit does not: the kinds of the faults, and what was seen."""

    def __init__(self, kinds: list[str], seen: str) -> None:
        super().__init__(seen)
        self.kind = ", ".join(dict.fromkeys(kinds))


@dataclass
class Verdict:
    """What became of a case; ``place`` and ``message`` group the faults."""

    kind: str  # "accepted", "rejected" or what is wrong
    message: str = ""
    place: str = ""

    @property
    def is_fault(self):
        return self.kind not in ("accepted", "rejected")


def judge(case: Case) -> Verdict:
    """Run a case under a timer of CPU time, which does not depend on what else the machine does."""

    def ring(signum, frame):
        raise Hang

    before = [(one, one.copy()) for one in case.arrays if type(one) is np.ndarray]
    previous = signal.signal(signal.SIGPROF, ring)
    signal.setitimer(signal.ITIMER_PROF, case.n_calls * SECONDS)
    np.random.seed(0)  # noqa: NPY002  random_state=None draws from here, also in a replay
    try:
        result = case.run()
    except Hang as error:
        return Verdict(f"longer than {case.n_calls * SECONDS} s", "", place_of(error))
    except Exception as error:
        return judge_error(case, error)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, previous)
    if any(not same(one, other) for one, other in before):
        return Verdict("changes its input")
    return judge_result(case, result)


def judge_error(case: Case, error: Exception) -> Verdict:
    """Is the exception documented, and does its message name what is wrong?"""
    message = str(error)
    if isinstance(error, Breach):
        return Verdict(error.kind, message)
    found = Verdict("rejected", f"{type(error).__name__}: {message}", place_of(error))
    if is_from_scikit_learn(error) or is_missing_method(error):
        return found
    if type(error) not in DOCUMENTED + FILES:
        found.kind = "undocumented exception"
    elif not names_something(case, message):
        found.kind = "message names nothing"
    return found


def names_something(case: Case, message: str) -> bool:
    """Does it name an argument, show its value or name a part of the data?"""
    if re.search(rf"\b({IN_THE_DATA})(s|es)?\b", message) or "'nonsense'" in message:
        return True
    # Displays call the labels of an estimator y_true; a scorer misses arguments of its metric, and
    # a metric of labels calls what it gets y_pred.
    names = case.names | {"y_true", "y_pred", "interval"}
    return any(re.search(rf"(?<!\w){re.escape(name)}(?!\w)", message) for name in names)


def is_from_scikit_learn(error: Exception) -> bool:
    """scikit-learn's checks of data have messages of their own, as in every estimator of it."""
    files = [frame.filename for frame in traceback.extract_tb(error.__traceback__)]
    ours = [number for number, file in enumerate(files) if lies_in(OURS, file)]
    # A method that an estimator inherits from scikit-learn has no line of ours.
    called = files[ours[-1] + 1 :][:1] if ours else files
    is_theirs = any(lies_in(THEIRS, file) for file in called)
    return is_theirs and isinstance(error, ValueError | TypeError)


def is_missing_method(error: Exception) -> bool:
    """An estimator without the method that a score needs is an AttributeError, as in sklearn."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    return type(error) is AttributeError and (last.line or "").startswith("raise AttributeError")


def judge_result(case: Case, result) -> Verdict:
    """A number must be one, unless NaN was asked for. Sums of huge numbers may be infinite."""
    # The coefficient of determination of one row is NaN, with a warning, as in scikit-learn.
    is_expected = case.allows_nan or ("Regressor" in case.title and "[1 rows" in case.title)
    if isinstance(result, float) and math.isnan(result) and not is_expected:
        return Verdict("returns NaN")
    return Verdict("accepted")


def same(one: np.ndarray, other: np.ndarray) -> bool:
    try:
        return bool(np.array_equal(one, other, equal_nan=one.dtype.kind in "fc"))
    except (TypeError, ValueError):  # objects that do not compare
        return True


def place_of(error: BaseException) -> str:
    """The innermost line of skfair, where a fault has to be mended."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [one for one in frames if lies_in(OURS, one.filename)]
    if not ours:
        return "outside"
    place = Path(ours[-1].filename).relative_to(OURS).as_posix()
    return f"skfair/{place}:{ours[-1].lineno}"


def lies_in(folder: Path, file: str) -> bool:
    return Path(file).is_relative_to(folder)
