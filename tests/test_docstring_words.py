"""Public docstrings are sentences that a data scientist reads at once."""

import functools
import itertools
from pathlib import Path

import pytest

import skfair
from tests import house, words


@functools.cache
def checked_docstrings():
    """The docstring of each public object and method."""
    return {
        name + method: doc
        for name, thing in itertools.chain(house.public_objects(), house.option_objects())
        if callable(thing)
        for method, doc in words.docstrings(thing)
    }


def breaches_of(check):
    docs = checked_docstrings().items()
    return [f"{name}: {breach}" for name, doc in docs for breach in check(doc)]


def test_entries_are_sentences():
    assert breaches_of(words.entry_breaches) == []


def test_words_that_style_gives_up_stay_away():
    assert breaches_of(words.habit_breaches) == []


def test_the_account_in_words_comes_before_the_formula():
    assert breaches_of(words.formula_breaches) == []


def test_docstrings_of_files_are_as_plain():
    """Their first sentence says what the file offers; the words are those of public docstrings."""
    docs = words.module_docstrings(Path(skfair.__file__).parent)
    assert len(docs) > 300
    assert [(path, b) for path, doc in docs.items() for b in words.habit_breaches(doc)] == []
    assert frequent(docs.values()) == {}


def test_numpydoc_reads_every_docstring():
    numpydoc = pytest.importorskip("numpydoc.docscrape")
    for name, doc in checked_docstrings().items():
        try:
            numpydoc.NumpyDocString(doc)
        except ValueError as error:
            pytest.fail(f"{name}: {error}")


def frequent(docs):
    """Return the habits that are in more than a few of 1,000 words."""
    most = {habit: limit for habit, (_, limit) in words.RATES.items()}
    return {habit: rate for habit, rate in words.rates(docs).items() if rate > most[habit]}


def test_habits_are_rare():
    assert frequent(checked_docstrings().values()) == {}


def test_every_room_is_read():
    rooms = {name.split(".")[1] for name in checked_docstrings()}
    assert {"classification", "cluster", "metrics", "report", "solvers"} <= rooms


def doc_of(entry, section="Parameters"):
    return f"Do it.\n\n{section}\n{'-' * len(section)}\n{entry}\n"


@pytest.mark.parametrize(
    "entry",
    [
        "n : int\n    Number of clusters.",
        "n : int\n    Number of clusters. If None, the data decide.",
        "n : int\n    The limit. A dict sets one limit for each attribute.",
        "n : int\n    Seed. Pass an int for reproducible results.",
        "n : int\n    The rows are read once; they are not copied.",
        'n : str\n    The solver.\n\n    - "a": a fast method.\n    - "b": it is exact.',
        "n : int\n    Share of positives, which ``fit`` counts. Small ones cost a lot.",
    ],
)
def test_a_sentence_is_none_of_the_breaches(entry):
    assert words.entry_breaches(doc_of(entry)) == []
    assert words.habit_breaches(doc_of(entry)) == []


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("a, b : int\n    Both numbers.", "several names"),
        ("a : int", "no description"),
        ("a : int\n    The classes; the second is the positive one.", "chain"),
        ("a : int\n    It is read; it is kept; it is shown.", "chain"),
        ("a : int\n    Multipliers of the constraint; what each limits.", "chain"),
        ("a : int\n    Name of a solver. Or an object.", "no verb"),
        ("a : int\n    Steps of a run. Mostly 100 of them.", "no verb"),
        ('a : str\n    It is one of these.\n\n    - "b": fast. Mostly exact.', "no verb"),
    ],
)
def test_an_entry_without_a_sentence_is_caught(entry, message):
    [breach] = words.entry_breaches(doc_of(entry, "Attributes"))
    assert breach.startswith("a")
    assert message in breach


@pytest.mark.parametrize(
    "text",
    [
        # The style guide shows these as they were.
        "Their objective; what limits cost of it.",
        "The L are thresholds of two classes; of several, each class is compared with the rest.",
        "Limits hold exactly, by models that have not seen these rows.",
        "New rows may miss them in either direction by about one standard error.",
        "The limit. None finds the smallest one at which the objective is reached.",
        "Whether decisions use the group, which may be unlawful; if not, it is estimated.",
        "How sure the limits are to hold for the population.",
        "Two similar people may be decided differently.",
        "The answer is sure: of all samples at most a share of 0.05 misleads.",
        "Women are selected in 37.4% of cases.",
        "A gap of 18.2 percentage points, more than chance explains.",
        # And these are habits that it names.
        "Weight of the penalty; None is the default of Ridge.",
        "The limits hold, and how likely such data are is told.",
        "Of 0 and 1 the positive class is 1.",
        "The groups are treated alike.",
        "Whatever the fit takes besides.",
        "The limits of the paper are larger than ours.",
        "Each attribute is compared for itself.",
    ],
)
def test_words_that_style_gives_up_are_caught(text):
    assert words.habit_breaches(f"Do it.\n\n{text}\n")
    assert words.habit_breaches(doc_of(f"a : int\n    {text}"))


def test_code_and_formulas_are_not_prose():
    doc = (
        'Say "None is" and ``a; b``.\n\n.. math:: a; b; c\n\nExamples\n--------\n>>> a = 1; b = 2\n'
    )
    assert words.habit_breaches(doc) == []
    assert words.rates([doc])["semicolons"] == 0
    assert words.rates(["It is one; what it does."])["semicolons"] == pytest.approx(1000 / 6)
    assert words.rates(["It is that of X."])["'that of'"] == pytest.approx(200)
    assert words.rates(["What it does is shown."])["'What ...'"] == pytest.approx(200)


def test_a_formula_without_an_account_is_caught():
    formula = ".. math:: y = x\n"
    assert words.formula_breaches(f"Do it.\n\n{formula}")
    assert words.formula_breaches(f"Do it.\n\nIt is done like this: {formula}") == []
    assert words.formula_breaches(f"Do it.\n\nThe result is\n\n{formula}") == []
