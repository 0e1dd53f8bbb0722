"""Print the oldest version of each dependency that pyproject.toml allows, for pip."""

import re
import tomllib
from pathlib import Path

PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
EXTRAS = ("plot", "progress", "report", "distributed", "onnx")  # those that the package imports

for line in sum(
    (PROJECT["optional-dependencies"][name] for name in EXTRAS), PROJECT["dependencies"]
):
    print(re.sub(r"\[.*?\]", "", line).replace(">=", "=="))
