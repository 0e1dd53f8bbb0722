"""Signatures of classes show their arguments, with types that a person reads."""

import inspect
import pydoc

import pytest
from sklearn.base import BaseEstimator

from skfair.solvers import ALM
from skfair.utils.signatures import ReadableSignature
from tests.public import option_objects, public_objects

CLASSES = {
    name: thing
    for name, thing in [*public_objects(), *option_objects()]
    if isinstance(vars(thing).get("__init__") if inspect.isclass(thing) else None, type(lambda: 0))
    and not issubclass(thing, Exception)
}


@pytest.mark.parametrize("name", CLASSES)
def test_the_signature_of_a_class_is_that_of_its_constructor(name):
    thing = CLASSES[name]
    shown, own = inspect.signature(thing), inspect.signature(thing.__init__)
    assert list(shown.parameters) == list(own.parameters)[1:]
    for parameter in shown.parameters.values():
        assert parameter.default is own.parameters[parameter.name].default
        assert parameter.kind is own.parameters[parameter.name].kind


def test_sphinx_shows_the_same():
    sphinx = pytest.importorskip("sphinx.util.inspect", reason="sphinx is not installed")
    for thing in CLASSES.values():
        text = sphinx.stringify_signature(sphinx.signature(thing), show_annotation=False)
        names = list(inspect.signature(thing).parameters)
        assert all(name in text for name in names)


def test_help_shows_types_without_their_ranges():
    shown = pydoc.render_doc(ALM, renderer=pydoc.plaintext).split("\n |  \n")[0]
    assert "n_loss: int = 128" in shown
    assert "averaging: float | None = 3.0" in shown
    assert "optimizer: Literal['adam', 'sgd'] = 'adam'" in shown
    assert "output: str = 'best'" in shown
    assert "Annotated" not in shown
    assert '"' not in shown


def test_classes_of_others_and_instances_have_signatures_as_usual():
    class Plain:
        __signature__ = ReadableSignature()

    class Own(ALM):
        def __init__(self, size: "int" = 2, **options):
            self.size, self.options = size, options

    assert str(inspect.signature(Plain)) == "()"
    assert str(inspect.signature(Own)) == "(size: int = 2, **options)"
    assert not hasattr(Plain(), "__signature__")

    class Model(Plain, BaseEstimator):
        def __init__(self, depth: "float" = 1.0):
            self.depth = depth

    assert Model(2.0).get_params() == {"depth": 2.0}
