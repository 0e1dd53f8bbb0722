"""Cases: for every public name a function that draws one call of it.

Most are found by their signature: a metric, a generator or a display is called with arguments that
:mod:`tests.fuzz.parameters` knows by name; a parameter of an estimator gets values on both sides of
its ``_parameter_constraints``. Solvers and constraints are used as by a user: in an estimator.
"""

import importlib
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st
from sklearn.base import is_regressor
from sklearn.utils._param_validation import (
    generate_invalid_param_val,
    generate_valid_param,
    make_constraint,
)

from skfair import metrics, model_selection
from skfair.classification import ConstrainedERMClassifier
from skfair.metrics.reports import Report
from skfair.regression import ConstrainedERMRegressor
from tests.families import by_families
from tests.fuzz import parameters
from tests.fuzz.values import JUNK, samples
from tests.public import discover_estimators, public_packages

CHEAP = {
    "n_samples": 40,
    **dict.fromkeys(["n_simulations", "n_bootstrap", "n_permutations"], 5),
    **dict.fromkeys(["n_clusters", "n_groups"], 2),
}
SCORER = type(metrics.get_scorer("balance_score"))
# Public names that cannot be called with data, and why.
EXEMPT = {
    "skfair.show_versions": "takes nothing",
    "skfair.model_selection.FairnessPath": "made and used by fairness_path",
    "skfair.constraints.Constraint": "abstract; its subclasses are covered",
    "skfair.export.to_onnx": "reads fitted models only",
    "skfair.report.Audit": "made and used by audit",
    "skfair.report.DataAudit": "made and used by audit_data",
    "skfair.models.ScoreFunction": "a protocol; tests/models has models of users",
    "skfair.models.TorchScore": "takes modules of PyTorch only",
    "skfair.models.check_score_model": "takes models of users; its answer is an AssertionError",
}


@dataclass
class Case:
    """One call: what it is, the arguments that an error may name, how to run it."""

    title: str
    names: set[str]
    arrays: list[Any]
    run: Callable[[], Any]
    allows_nan: bool = False
    n_calls: int = 1  # so many times the seconds of one call


@dataclass
class Arguments:
    """Drawn arguments of one call, and a description in which only odd ones are shown."""

    function: str
    names: set[str]
    values: dict[str, Any]
    told: list[str]

    @property
    def title(self):
        return f"{self.function}({', '.join(self.told)})"


def draw_arguments(draw, name: str, function: Callable, sample, n_odd: int, skip=()) -> Arguments:
    """Draw values for the parameters of a function; ``n_odd`` of them are odd."""
    wanted = [
        parameter
        for parameter in inspect.signature(function).parameters.values()
        if parameter.kind not in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL)
        and parameter.name not in ("self", "cls", *skip)
    ]
    odd = set()
    for _ in range(n_odd if wanted else 0):
        odd.add(draw(st.sampled_from([parameter.name for parameter in wanted])))
    made = Arguments(name, {parameter.name for parameter in wanted}, {}, [])
    for parameter in wanted:
        is_needed = parameter.default is parameter.empty or parameter.name == "sensitive_features"
        if parameter.name in CHEAP and parameter.name not in odd:
            made.values[parameter.name] = CHEAP[parameter.name]
        elif is_needed or parameter.name in odd or draw(st.integers(0, 3)) == 0:
            is_odd = parameter.name in odd
            kind, value = parameters.value(draw, name, parameter.name, sample, is_odd)
            made.values[parameter.name] = value
            if kind or not is_needed:
                made.told.append(f"{parameter.name}={kind + ' ' if kind else ''}{shown(value)}")
    return made


def shown(value) -> str:
    """A short description of a value."""
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple) and shape:
        return f"<{type(value).__name__} {shape} {getattr(value, 'dtype', '')}>"
    text = repr(value)
    return text if len(text) < 60 else f"{text[:57]}..."


def n_odd(draw) -> int:
    return draw(st.sampled_from([0, 1, 1, 1, 1, 2, 2, 3]))


def plain_case(draw, name: str, function: Callable) -> Case:
    """One call of a function; a class that comes out is used as well."""
    sample = draw(samples())
    made = draw_arguments(draw, name, function, sample, n_odd(draw))
    zero = made.values.get("zero_division")
    return Case(
        f"{made.title} [{sample.n} rows, {sample.pattern}]",
        made.names,
        list(made.values.values()),
        lambda: used(function(**made.values), sample),
        allows_nan=isinstance(zero, float) and zero != zero,
    )


def used(result, sample):
    """What is public of a result is called too."""
    if isinstance(result, Report):
        result.compact()
        result.to_html()
    elif isinstance(result, SCORER):
        model = parameters.fitted(sample)
        return result(model, np.clip(sample.X, -9, 9), sample.y, sensitive_features=sample.groups)
    elif type(result).__name__ == "BestWithin":
        return result({"mean_test_accuracy": [0.9, 0.8], "mean_test_gap": [-0.2, -0.04]})
    elif isinstance(result, model_selection.FairnessPath):
        return result.select(max_disparity=0.1)
    use = by_families("USES", "fuzz_cases").get(type(result))
    return result if use is None else use(result, sample)


def display_case(draw, name: str, display: type) -> Case:
    """A display is made from arrays and plotted, or made by one of its class methods."""
    makers = [one for one in dir(display) if one.startswith("from_")]
    maker = draw(st.sampled_from([*makers, "plot"]))
    if maker != "plot":
        case = plain_case(draw, f"{name}.{maker}", getattr(display, maker))
        case.names |= {"response"}
        return closing(case)
    sample = draw(samples())
    made = draw_arguments(draw, name, display, sample, n_odd(draw))
    plot = draw_arguments(draw, f"{name}.plot", display.plot, sample, draw(st.integers(0, 1)))
    return closing(
        Case(
            f"{made.title}.{plot.title.removeprefix(name + '.')}",
            made.names | plot.names,
            [*made.values.values(), *plot.values.values()],
            lambda: display(**made.values).plot(**plot.values),
        )
    )


def closing(case: Case) -> Case:
    """Figures are drawn and closed: an error may come as late as that."""

    def run():
        from matplotlib import pyplot

        try:
            display = inner()
            display.figure_.canvas.draw()
        finally:
            pyplot.close("all")

    inner, case.run = case.run, run
    return case


def method_names(estimator_class) -> list[str]:
    """Public methods other than ``fit``, without request setters and what only solvers can feed."""
    return [
        name
        for name, method in inspect.getmembers(estimator_class, callable)
        if name[0] != "_"
        and name != "fit"
        and not name.startswith(("set_", "get_metadata", "get_params", "from_"))
    ]


def odd_parameter(draw, name: str, parameter: str, constraints):
    """Draw an odd or valid value of a constructor's parameter."""
    kind = draw(st.sampled_from(["valid", "invalid", "special", "special", "junk"]))
    entry = parameters.known(name, parameter)
    if kind == "special" and entry is not None and isinstance(entry[1], list):
        pool = [*(entry[0] if isinstance(entry[0], list) else []), *entry[1]]
        return draw(st.sampled_from(pool))
    if isinstance(constraints, list) and kind in ("valid", "invalid"):
        one = make_constraint(draw(st.sampled_from(constraints)))
        options = sorted(getattr(one, "options", ()), key=str)
        if kind == "valid" and options:
            return draw(st.sampled_from(options))
        try:
            return (generate_valid_param if kind == "valid" else generate_invalid_param_val)(one)
        except (NotImplementedError, TypeError):  # every value is valid, or an abstract class
            pass
    return draw(st.sampled_from(JUNK))


def estimator_case(draw, name: str, estimator_class: type, preset=None, told: str = "") -> Case:
    """Fit and, if that works, methods of the fitted estimator."""
    sample = draw(samples())
    settings = by_families("SETTINGS", "fuzz_cases").get(name, {}) | (preset or {})
    odd = n_odd(draw)
    n_settings = draw(st.integers(0, odd)) if preset is None else 0
    known = estimator_class._parameter_constraints
    for parameter in [draw(st.sampled_from(sorted(known))) for _ in range(n_settings)]:
        settings[parameter] = odd_parameter(draw, name, parameter, known[parameter])
    if is_regressor(estimator_class()):
        sample.y = sample.y + sample.scores
    fit = draw_arguments(draw, "fit", estimator_class.fit, sample, odd - n_settings)
    if settings.get("affinity") == "precomputed" and draw(st.booleans()):
        fit.values["X"] = sample.affinity
    names = method_names(estimator_class)
    methods = [draw(st.sampled_from(names)) for _ in range(draw(st.integers(0, 2)))]
    later = [
        draw_arguments(draw, one, getattr(estimator_class, one), sample, draw(st.integers(0, 1)))
        for one in methods
    ]
    skips_fit = draw(st.integers(0, 24)) == 24
    titles = [] if skips_fit else [fit.title]
    arguments = ", ".join(f"{key}={shown(one)}" for key, one in settings.items())
    case = Case(
        ".".join([f"{name}({told or arguments})", *titles, *(call.title for call in later)])
        + f" [{sample.n} rows, {sample.pattern}]",
        {*known, *fit.names, *(key for call in later for key in call.names)},
        [*fit.values.values(), *(one for call in later for one in call.values.values())],
        lambda: None,
    )

    def run(late=None):
        model = estimator_class(**settings | (late or {}))
        if not skips_fit:
            model.fit(**fit.values)
        result = None
        for call in later:
            result = getattr(model, call.function)(**call.values)
        return result

    case.run = run
    return case


def component_case(draw, name: str, component: type) -> Case:
    """A solver or a constraint with odd parameters, inside the estimator that takes it."""
    odd = [0, -1, 0.3, 1e9, 1e-9, float("nan"), float("inf"), "nonsense", None, 2, [1], True]
    names = list(inspect.signature(component).parameters)
    n_drawn = n_odd(draw) if names else 0
    drawn = {draw(st.sampled_from(names)): draw(st.sampled_from(odd)) for _ in range(n_drawn)}
    told = f"{name}({', '.join(f'{key}={one!r}' for key, one in drawn.items())})"
    owner = owner_of(component)
    argument = "constraint" if hasattr(component, "tasks") else "solver"
    case = estimator_case(draw, owner.__name__, owner, {argument: None}, f"{argument}={told}")
    inner = case.run
    case.names |= set(names)
    # Made inside the run: a constructor may reject its arguments.
    case.run = lambda: inner({argument: component(**drawn)})
    return case


def owner_of(component: type) -> type:
    """The estimator that takes a solver or a constraint."""
    for owner, registry in by_families("OWNERS", "fuzz_cases").items():
        if component in [registry[name] for name in registry]:
            return owner
    tasks = getattr(component, "tasks", ["classification"])
    if isinstance(tasks, property):  # they follow from a parameter
        tasks = component().tasks
    return ConstrainedERMClassifier if "classification" in tasks else ConstrainedERMRegressor


def splitter_case(draw, name: str, splitter: type) -> Case:
    sample = draw(samples())
    odd = n_odd(draw)
    made = draw_arguments(draw, name, splitter, sample, odd // 2)
    split = draw_arguments(draw, "split", splitter.split, sample, odd - odd // 2)
    return Case(
        f"{made.title}.{split.title} [{sample.n} rows, {sample.pattern}]",
        made.names | split.names,
        list(split.values.values()),
        lambda: list(splitter(**made.values).split(**split.values)),
    )


def registry_case(draw, name: str, registry) -> Case:
    wanted = draw(st.sampled_from([*registry, "nonsense", "", 3, None]))
    return Case(f"{name}[{wanted!r}]", {"solver", "constraint"}, [], lambda: registry[wanted])


def is_display(thing: Any) -> bool:
    return inspect.isclass(thing) and thing.__module__.startswith("skfair.inspection.")


def find_builder(name: str, thing: Any) -> Callable | None:
    """Return the function that draws cases of a public object."""
    short = name.rpartition(".")[2]
    if short in discover_estimators():
        return estimator_case
    if not callable(thing):
        return registry_case
    if inspect.isclass(thing):
        if is_display(thing):
            return display_case
        if hasattr(thing, "split"):
            return splitter_case
        if any(hasattr(thing, name) for name in ("solve", "cluster", "tasks")):
            return component_case
    return None if unknown_arguments(short, thing) else plain_case


def unknown_arguments(name: str, function: Callable) -> list[str]:
    """Arguments for which :mod:`tests.fuzz.parameters` has no values."""
    return [
        parameter.name
        for parameter in inspect.signature(function).parameters.values()
        if parameter.kind not in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL)
        and parameter.name != "self"
        and not parameters.known(name, parameter.name)
    ]


def public_objects() -> dict[str, Any]:
    """Every public object that has to have cases, by its qualified name."""
    found = {}
    for package in public_packages():
        module = importlib.import_module(f"skfair.{package}")
        for attribute in module.__all__:
            thing = getattr(module, attribute)
            name = f"skfair.{package}.{attribute}"
            is_warning = inspect.isclass(thing) and issubclass(thing, Exception)
            if not is_warning and name not in EXEMPT:
                found[name] = thing
    return found


def uncovered() -> list[str]:
    """Public names, and arguments of displays and estimators, without a strategy."""
    found = []
    for name, thing in public_objects().items():
        short = name.rpartition(".")[2]
        callables = [(short, thing)]
        if short in discover_estimators():
            callables = [(one, getattr(thing, one)) for one in ["fit", *method_names(thing)]]
        elif find_builder(name, thing) is None:
            found.append(name)
        elif is_display(thing):
            methods = [one for one in dir(thing) if one.startswith("from_") or one == "plot"]
            callables += [(f"{short}.{one}", getattr(thing, one)) for one in methods]
        else:
            continue
        found += [
            f"{name}: {called}({argument})"
            for called, function in callables
            for argument in unknown_arguments(called, function)
        ]
    return found


def draw_case(draw, name: str) -> Case:
    """Draw one case of a public name."""
    thing = public_objects()[name]
    return find_builder(name, thing)(draw, name.rpartition(".")[2], thing)
