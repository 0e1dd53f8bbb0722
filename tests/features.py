"""How many functions below the border know a feature that should be compiled away above it.

Above the border are the users' words: attributes, strata, floors, certificates, Dask. Below it
(``FOLDERS``) are rows, scores, moments and bounds. ``[tool.skfair.features]`` in ``pyproject.toml``
says for each feature by which identifiers it is known, and how many functions below the border may
name one of them. The numbers only fall: a new feature is compiled away above the border, or brings
a deletion of equal size. ``python -m tests.features`` prints today's numbers and the functions.
"""

import ast

from tests.budget import ROOT, settings

FOLDERS = ("enforcement", "problems", "solvers", "models")


def identifiers(function):
    """Return the names in a function, those of functions inside it included."""
    names = set()
    for node in ast.walk(function):
        if isinstance(node, ast.Name):
            names.add(node.id)
        elif isinstance(node, ast.Attribute):
            names.add(node.attr)
        elif isinstance(node, ast.arg | ast.keyword):
            names.add(node.arg)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
    return names


def functions_below(root=ROOT):
    """Return the names in each function and method below the border."""
    found = {}
    for folder in FOLDERS:
        for path in sorted((root / "skfair" / folder).rglob("*.py")):
            name = path.relative_to(root / "skfair")
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.FunctionDef):
                    found[f"{name}:{node.lineno} {node.name}"] = identifiers(node)
    return found


def known_by(features, found):
    """Return the functions that name each feature."""
    return {
        name: [function for function, names in found.items() if names & set(feature["names"])]
        for name, feature in features.items()
    }


def breaches(features, found):
    """List the features that more functions name than may, or fewer, so that the number falls."""
    counts = {name: len(functions) for name, functions in known_by(features, found).items()}
    return [
        f"{name}: {counts[name]} functions below the border name it, {feature['functions']} may"
        for name, feature in features.items()
        if counts[name] != feature["functions"]
    ]


def raises(features, earlier, found):
    """List the numbers that rose, and dropped identifiers that functions still name."""
    known = set().union(*found.values())
    listed = []
    for name, was in earlier.items():
        now = features.get(name, {"names": [], "functions": 0})
        if now["functions"] > was["functions"]:
            listed.append(f"{name} rose from {was['functions']} to {now['functions']}")
        dropped = known.intersection(was["names"]).difference(now["names"])
        listed += [f"{name} no longer counts {identifier}" for identifier in sorted(dropped)]
    return listed


if __name__ == "__main__":
    features = settings((ROOT / "pyproject.toml").read_text())["features"]
    for name, functions in known_by(features, functions_below()).items():
        print(f"{name}: {len(functions)}", *functions, sep="\n    ")
