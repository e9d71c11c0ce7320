"""Four distributions: the one that production installs has neither embedded/ nor local/ nor sdk/."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent.parent
PRODUCTION = {"model", "view", "kube", "wire", "agent", "scheduler", "admission", "cli"}
CONTENTS = {".": PRODUCTION, "local": {"local"}, "embedded": {"embedded"}, "sdk": {"sublet_sdk"}}
"""The project's folder → the packages in its wheel."""


def project(folder: str) -> dict[str, Any]:
    return tomllib.loads((ROOT / folder / "pyproject.toml").read_text())


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy: setuptools writes beside what it builds."""
    copy = tmp_path_factory.mktemp("source")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy / name)
    for package in (set[str]().union(*CONTENTS.values()) - {"sublet_sdk"}) | {"sdk"}:
        shutil.copytree(
            ROOT / package, copy / package, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info", "build")
        )
    return copy


@pytest.mark.parametrize("folder", CONTENTS)
def test_what_a_wheel_holds(source: Path, tmp_path: Path, folder: str) -> None:
    """Packages with their data files, and no tests."""
    if importlib.util.find_spec("setuptools") is None:
        pytest.skip("building a wheel without the network needs setuptools in this environment: pip install setuptools")
    place = source / "sdk" if folder == "sdk" else source
    there = (path for top in CONTENTS[folder] for end in ("py", "z") for path in (place / top).rglob(f"*.{end}"))
    wanted = {str(path.relative_to(place)) for path in there if "tests" not in path.parts[len(source.parts) :]}
    options = ["--no-deps", "--no-build-isolation", "--no-index", "--disable-pip-version-check", "-q"]
    command = [sys.executable, "-m", "pip", "wheel", *options, "--wheel-dir", str(tmp_path), str(source / folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=110)
    assert done.returncode == 0, done.stderr
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.partition("/")[0] for name in names if ".dist-info/" not in name} == CONTENTS[folder]
    assert [name for name in names if "/tests/" in name] == []
    kept = {name for name in names if name.endswith((".py", ".z"))}
    assert kept == wanted


def test_a_production_installation_asks_for_no_part_of_the_embedded_cluster() -> None:
    """Neither by its dependencies nor by the extras that images are made of; and what only that cluster needs is its own."""
    told = project(".")["project"]
    asked = [
        *told["dependencies"],
        *(each for name in ("agent", "scheduler", "admission") for each in told["optional-dependencies"][name]),
    ]
    names = {re.split(r"[^A-Za-z0-9-]", each)[0].lower() for each in asked}
    assert not names & {
        "sublet-local",
        "sublet-embedded",
        "sublet-sdk",
        "fsspec",
        "cel-expr-python",
        "cronsim",
        "pyjwt",
        "psutil",
    }


def test_all_have_one_version() -> None:
    """They are released together, and each pins the others."""
    version = project(".")["project"]["version"]
    assert {project(folder)["project"]["version"] for folder in CONTENTS} == {version}
    pins = [
        *(each for each in project(".")["project"]["optional-dependencies"]["local"] if "[" not in each),
        *(each for each in project("local")["project"]["dependencies"] if each.startswith("sublet")),
    ]
    assert len(pins) == 4 and all(pin.endswith(f"=={version}") for pin in pins)
