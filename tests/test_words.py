"""One word for one thing: public arguments and the options of the shell keep the table of words."""

import inspect
import re
from pathlib import Path

import pytest

from skfair import __main__ as shell
from skfair.model_selection import FairnessPath
from tests.families import rows_of_families
from tests.public import option_objects, public_objects

PAGE = Path(__file__).parent.parent / "doc" / "developer" / "words.rst"
if not PAGE.exists():
    pytest.skip("The table of words is not installed with the package.", allow_module_level=True)


def table(title):
    """Return the rows of the list table below a title of the page, as lists of cells."""
    text = PAGE.read_text().partition(f"\n{title}\n---")[2].partition("\n\n   * - ")[2]
    rows = re.split(r"\n   \* - ", text.partition("\n\n")[0])[1:]
    return [re.split(r"\n     -(?: |$|(?=\n))", row) for row in rows]


# The defaults and the option of each word, in the order in which arguments stand.
WORDS = {}
for word, _, default, option in table("Words"):
    required = [inspect.Parameter.empty] * ("required" in default)
    defaults = [*required, *map(eval, re.findall(r"``(.+?)``", default))]
    WORDS[word.strip("`")] = (defaults, option.strip("`"))
NEVER = {word for words, _ in table("Other words") for word in re.findall(r"``(\w+)``", words)}


def calls():
    """Yield public functions, classes and their methods, with the arguments that they take."""
    for name, thing in {**dict(public_objects()), **dict(option_objects())}.items():
        if not callable(thing) or name.startswith(("skfair.papers.", "skfair.exceptions.")):
            continue
        # Displays are made by from_..., and an estimate by a cohort
        called = {} if name.endswith(("Display", "Estimate")) else {name: thing}
        if inspect.isclass(thing):
            called |= {
                f"{name}.{key}": own
                for key, own in inspect.getmembers(thing, callable)
                if not key.startswith("_") and not hasattr(object, key)
            }
        for key, own in called.items():
            if (getattr(own, "__module__", None) or "").startswith("skfair."):
                yield key, inspect.signature(own).parameters


def attributes():
    """Yield public classes, and those of results, with the attributes that they document."""
    things = [*dict(public_objects()).values(), *dict(option_objects()).values()]
    for thing in [*filter(inspect.isclass, things), FairnessPath, *rows_of_families("RESULTS")]:
        said = (inspect.getdoc(thing) or "").partition("\nAttributes\n")[2]
        yield thing.__name__, set(re.findall(r"^(\w+?)_? : ", said, re.M))


CALLS = dict(calls())
each_call = pytest.mark.parametrize("name", CALLS)


@each_call
def test_arguments_have_the_defaults_of_the_table(name):
    for word, argument in CALLS[name].items():
        if word in WORDS and word != "title" and argument.kind is not argument.VAR_KEYWORD:
            assert argument.default in WORDS[word][0], word


@each_call
def test_arguments_stand_in_the_order_of_the_table(name):
    named = [w for w, own in CALLS[name].items() if w in WORDS and own.kind is own.KEYWORD_ONLY]
    assert named == sorted(named, key=[*WORDS].index)


@each_call
def test_arguments_have_no_other_words(name):
    of_scikit_learn = {"groups"} if "Stratified" in name else set()  # of its splitters
    assert not NEVER & {*CALLS[name]} - of_scikit_learn


def test_attributes_have_no_other_words():
    of_results = {"groups", "strata", "within"}  # demographic groups, levels of control features
    found = dict(attributes())
    assert {"groups", "n_rows"} <= set().union(*found.values())
    assert {name: NEVER & own for name, own in found.items() if NEVER & own - of_results} == {}


def test_options_of_the_shell_are_arguments_or_words():
    options = {
        name
        for command in shell.commands().values()
        for of_title in command.options.values()
        for name in of_title
    }
    known = {option for _, option in WORDS.values()}
    assert options >= known - {""}
    said = {"--" + word.replace("_", "-") for word in WORDS}
    assert not {option for option in options & said if option not in known}
    never = {"--" + word.replace("_", "-") for word in NEVER}
    assert options & never <= known
