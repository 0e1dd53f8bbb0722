"""The rules that hold the house up, as functions that list every breach in a folder of sources.

They read the sources as text, so each can be shown a planted breach.
"""

import ast
import functools
import importlib
import inspect
import pkgutil
import pydoc
import re
from pathlib import Path

GROUND = {"_version", "exceptions", "_typing", "_kernels", "utils"}
READING = GROUND | {"groups"}
CONSTRAINT_NAMES = READING | {"losses", "models", "constraints"}
ENFORCEMENT = CONSTRAINT_NAMES | {
    "metrics",
    "problems",
    "problems.erm",
    "problems.partial",
    "solvers",
    "solvers.erm",
}
CLUSTERING = GROUND | {"problems", "problems.clustering", "solvers", "solvers.clustering"}
# What each room of the package may import besides itself. Arrows point down only. A room that is
# named "family.room" stands beside the others of its family and sees those that it names.
MAY_IMPORT = {
    "_version": set(),
    "exceptions": set(),
    "_typing": set(),
    "_kernels": {"_kernels.declaring"},
    "_kernels.declaring": {"utils"},  # it warns
    "utils": {"_version", "exceptions", "_typing"},
    "groups": GROUND,
    "losses": GROUND,
    "models": GROUND,
    "constraints": GROUND | {"groups", "losses"},
    "problems": GROUND,
    "problems.erm": CONSTRAINT_NAMES | {"problems"},
    "problems.partial": CONSTRAINT_NAMES | {"problems"},
    "problems.clustering": READING | {"problems"},
    "problems.cut": READING | {"problems"},
    "solvers": GROUND | {"problems"},
    "solvers.erm": GROUND | {"problems", "problems.erm", "solvers"},
    "solvers.clustering": GROUND | {"problems", "problems.clustering", "problems.cut", "solvers"},
    "solvers.eigen": GROUND | {"problems", "problems.cut", "solvers"},
    # Nothing outside imports the rooms of papers: registries find them by name.
    "papers": GROUND | {"problems", "solvers"},
    "papers._kernels": {"_kernels.declaring"},
    "papers.safairkm": CLUSTERING | {"papers._kernels"},
    "papers.vfairkm": CLUSTERING,
    "papers.fair_spectral_dc": GROUND
    | {"problems", "problems.cut", "solvers", "solvers.eigen", "papers._kernels"},
    "papers.plada": GROUND | {"problems", "problems.erm", "solvers", "solvers.erm", "papers"},
    "papers.benchmark": GROUND | {"problems", "problems.erm", "solvers", "solvers.erm", "papers"},
    "papers.idca": ENFORCEMENT | {"enforcement", "papers"},
    "metrics": READING,  # never constraints: a model is not measured by the code that enforced it
    "datasets": GROUND,
    "model_selection": READING | {"metrics", "constraints", "report"},
    "monitoring": READING | {"metrics", "constraints"},
    "inspection": READING | {"metrics"},
    "report": READING | {"metrics", "inspection"},
    "enforcement": ENFORCEMENT,
    "read": READING | {"base"},
    "base": READING,
    "estimators": ENFORCEMENT | {"base", "read", "enforcement"},
    "cluster": READING
    | {"base", "read", "metrics", "problems.clustering", "problems.cut"}
    | {"solvers", "solvers.clustering", "solvers.eigen"},
    "classification": ENFORCEMENT | {"base", "read", "enforcement", "estimators"},
    "regression": ENFORCEMENT | {"base", "read", "enforcement", "estimators"},
    "preprocessing": READING | {"base", "read", "estimators"},
    "ranking": ENFORCEMENT | {"base", "read", "enforcement"},
    "export": GROUND | {"classification", "cluster", "estimators", "ranking", "regression"},
    "warm": GROUND
    | {"metrics", "cluster", "classification", "constraints"}
    | {"solvers.clustering", "solvers.eigen"},
    "choose": GROUND | {"groups", "classification", "model_selection", "report"},
    "__main__": GROUND | {"report", "datasets", "choose", "warm"},
}


# Files of packages that hand on the names of others.
HAND_NAMES_ON = ("__init__.py", "_all.py")


@functools.cache
def parsed(text):
    """Parse the text of a file, once for all constraints."""
    return ast.parse(text)


def room_of(module):
    """Return the room of a module such as ``skfair.papers.plada.plada``: here ``solvers.erm``."""
    names = module.split(".")[1:]
    rooms = [".".join(names[:depth]) for depth in (2, 1)]
    return next((room for room in rooms if room in MAY_IMPORT), None)


def imported_modules(tree):
    """Every absolute module name that a file imports, wherever the import stands."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative imports hide the layer"
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def layer_breaches(root):
    """List the imports that point upwards or sideways."""
    breaches = []
    for path in sorted(Path(root).rglob("*.py")):
        place = path.relative_to(root)
        if place.name in HAND_NAMES_ON:
            continue  # the root is lazy, and checked by its own test
        room = room_of(".".join(("skfair", *place.with_suffix("").parts)))
        for module in sorted(set(imported_modules(parsed(path.read_text())))):
            target = room_of(module) if module.startswith("skfair.") else None
            if target not in (None, room) and target not in MAY_IMPORT[room]:
                breaches.append(f"{place} imports {module}")
    return breaches


def without_types(tree):
    """Return a module without the imports that only annotations need."""
    body = [node for node in tree.body if not ast.unparse(node).startswith("if TYPE_CHECKING:")]
    return ast.Module(body, [])


def circles(root):
    """List files that import each other, directly or through others."""
    files = {
        ".".join(("skfair", *path.relative_to(root).with_suffix("").parts)): path
        for path in Path(root).rglob("*.py")
        if path.name != "__init__.py"
    }
    imports = {
        name: set(imported_modules(without_types(parsed(path.read_text())))) & set(files)
        for name, path in files.items()
    }
    while True:  # whoever imports nothing that is left is in no circle
        free = {name for name, below in imports.items() if not below & set(imports)}
        if not free:
            return sorted(imports)
        imports = {name: below for name, below in imports.items() if name not in free}


# Where njit comes from: numba's own finds no place for compiled code where nothing can be written.
_DECLARING = "skfair._kernels.declaring"


def kernel_breaches(root):
    """List what makes a compiled kernel stale, uncached or open to other files."""
    breaches = []
    for path in sorted(Path(root).rglob("*.py")):
        name = str(path.relative_to(root))
        if name == "_kernels/declaring.py":
            continue  # no kernel is there
        tree = parsed(path.read_text())
        is_kernel_file = path.parent.name == "_kernels"
        for module in imported_modules(tree):
            top = module.split(".")[0]
            is_open = top not in ("numpy", "math", "typing") and not module.startswith(_DECLARING)
            if is_kernel_file and is_open:
                breaches.append(f"{name} imports {module}: kernel files are closed")
            if not is_kernel_file and top == "numba":
                breaches.append(f"{name} imports numba: kernels live in _kernels")
        if not is_kernel_file:
            continue
        for node in ast.walk(tree):
            if not isinstance(node, ast.FunctionDef):
                continue
            decorators = [ast.unparse(decorator) for decorator in node.decorator_list]
            if decorators != ["njit(cache=True)"]:
                breaches.append(f"{name}: {node.name} must be decorated with @njit(cache=True)")
            if not ast.get_docstring(node):
                breaches.append(f"{name}: {node.name} has no docstring")
            if any(isinstance(inner, ast.Raise | ast.Try) for inner in ast.walk(node)):
                breaches.append(f"{name}: {node.name} raises")
    return breaches


# What parts hand to each other. Array-likes of users may be Any; these are contracts.
CONTRACTS = {"problem", "evaluation", "at", "solver", "model", "callback", "random_state", "rng"}


def any_breaches(root):
    """List arguments that are contracts between parts and are annotated as Any."""
    return [
        f"{path.relative_to(root)}: {node.name}({argument.arg}: Any)"
        for path in sorted(Path(root).rglob("*.py"))
        for node in ast.walk(parsed(path.read_text()))
        if isinstance(node, ast.FunctionDef)
        for argument in [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        if argument.arg in CONTRACTS
        and argument.annotation is not None
        and ast.unparse(argument.annotation) == "Any"
    ]


# Names that do not say what is in them.
EMPTY_WORDS = {"one", "found", "given", "there", "here", "told", "lacks"}
EMPTY_NAMES = EMPTY_WORDS | {"of_one", "the_one", "each_one", "is_one", "n_found"}
EMPTY_NAMES |= {f"{verb}_{word}" for verb in ("is", "are") for word in ("there", "here", "told")}


def names_made(tree):
    """List the names that a file gives to variables, arguments, attributes, functions, classes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name | ast.Attribute) and not isinstance(node.ctx, ast.Load):
            yield node.lineno, node.id if isinstance(node, ast.Name) else node.attr
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.lineno, node.name


def name_breaches(root):
    """List names that say nothing of what is in them."""
    return [
        f"{path.relative_to(root)}:{line} is called {name}"
        for path in sorted(Path(root).rglob("*.py"))
        for line, name in names_made(parsed(path.read_text()))
        if name.strip("_").lower() in EMPTY_NAMES
    ]


def print_breaches(root):
    """List calls of print in the package."""
    return [
        f"{path.relative_to(root)}:{node.lineno} prints"
        for path in sorted(Path(root).rglob("*.py"))
        for node in ast.walk(parsed(path.read_text()))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "print"
        and path.relative_to(root) != Path("__init__.py")  # show_versions
    ]


# Who may look at the clock: the seconds of a history and of a command are only shown.
CLOCKS = {"utils/history.py", "warm.py"}
# Standard output is the whole process's; integer programmes of HiGHS print there and do not stop.
NOBODYS = {"dup2", "milp", "time_limit", "timelimit"}


def process_breaches(root):
    """List what looks at the clock, turns standard output away or cannot be interrupted."""
    breaches = []
    for path in sorted(Path(root).rglob("*.py")):
        name = path.relative_to(root).as_posix()
        for node in ast.walk(parsed(path.read_text())):
            words = {
                getattr(node, field, None) for field in ("id", "attr", "value", "arg", "module")
            }
            if isinstance(node, ast.alias):
                words.add(node.name)
            words = {word for word in words if isinstance(word, str)}
            found = words & NOBODYS | (words & {"time"} if is_import(node) else set())
            if found and not (name in CLOCKS and found == {"time"}):
                breaches.append(f"{name}:{node.lineno} uses {found.pop()}")
    return breaches


def is_import(node):
    """Whether a node names a module."""
    return isinstance(node, ast.alias | ast.ImportFrom)


def public_packages():
    """The names of the public sub-packages; the algorithms of papers may be missing."""
    import skfair

    has_papers = (Path(skfair.__file__).parent / "papers").exists()
    return [*skfair._SUBPACKAGES, *["papers"] * has_papers]


def names_in(registry, *, of_papers):
    """The names of a registry that are those of papers, or the others."""
    return [name for name in registry if (".papers." in registry[name].__module__) == of_papers]


def public_objects():
    """Every (qualified name, object) that the public sub-packages list in ``__all__``."""
    import skfair

    for name in ("show_versions", *skfair._OBJECTS):
        yield f"skfair.{name}", getattr(skfair, name)
    for name in public_packages():
        module = importlib.import_module(f"skfair.{name}")
        for attribute in getattr(module, "__all__", ()):
            yield f"skfair.{name}.{attribute}", getattr(module, attribute)


def option_objects():
    """Every other (qualified name, object) that parameters of estimators are said to take."""
    public = dict(public_objects())
    for estimator in discover_estimators().values():
        parameters = (inspect.getdoc(estimator) or "").partition("\nAttributes\n")[0]
        for name in re.findall(r"skfair\.[a-z_]+\.\w+(?:\.\w+)*", parameters):
            if name in public or name.startswith("skfair.papers."):  # which may be missing
                continue
            thing = pydoc.locate(name)
            if inspect.ismodule(thing):
                yield from ((f"{name}.{entry}", getattr(thing, entry)) for entry in thing.__all__)
            else:
                yield name, thing


def documented_parameters(doc, section):
    """Names listed in a section of a numpydoc docstring."""
    match = re.search(rf"^{section}\n-+\n(.*?)(?=^\S[^\n]*\n---|\Z)", doc, re.M | re.S)
    if match is None:
        return []
    heads = [line for line in match[1].splitlines() if line and not line[0].isspace()]
    names = []
    for head in heads:
        if ":" in head or head.startswith("*"):
            names += [part.strip().lstrip("*") for part in head.split(":")[0].split(",")]
    return names


def doc_breaches(name, thing):
    """List what the docstring of a public object lacks."""
    if not callable(thing) or inspect.ismodule(thing):
        return []
    doc = inspect.getdoc(thing) or ""
    breaches = [] if ">>>" in doc else [f"{name} has no example"]
    is_warning = inspect.isclass(thing) and issubclass(thing, Exception)
    is_tuple = inspect.isclass(thing) and issubclass(thing, tuple)
    if is_warning or is_tuple or name.endswith((".Report", ".FairnessScorer", ".BestWithin")):
        return breaches if not is_tuple else []
    signature = [
        parameter.name
        for parameter in inspect.signature(thing).parameters.values()
        # A protocol is not called: what would be its parameters are those of any class.
        if parameter.name != "self" and not getattr(thing, "_is_protocol", False)
    ]
    documented = documented_parameters(doc, "Parameters")
    if documented != signature:
        breaches.append(f"{name} documents {documented} but takes {signature}")
    if inspect.isclass(thing):
        for member, method in inspect.getmembers(thing, inspect.isfunction):
            if not member.startswith("_") and method.__module__.startswith("skfair"):
                taken = list(inspect.signature(method).parameters)[1:]
                listed = documented_parameters(inspect.getdoc(method) or "", "Parameters")
                if listed != taken:
                    breaches.append(f"{name}.{member} documents {listed} but takes {taken}")
    return breaches


def discover_estimators():
    """Every public estimator class of the package, found through ``__all__``."""
    from sklearn.base import BaseEstimator

    found = {}
    for package in ("cluster", "classification", "preprocessing", "ranking", "regression"):
        module = importlib.import_module(f"skfair.{package}")
        for name in getattr(module, "__all__", ()):
            thing = getattr(module, name)
            if inspect.isclass(thing) and issubclass(thing, BaseEstimator):
                found[name] = thing
    return found


def package_modules(but=None):
    """Import every module of the package, ``but`` those of a folder, and return their names."""
    import skfair

    walked = [module.name for module in pkgutil.walk_packages(skfair.__path__, "skfair.")]
    names = [name for name in walked if not name.startswith(f"skfair.{but}")]
    return [importlib.import_module(name).__name__ for name in names]
