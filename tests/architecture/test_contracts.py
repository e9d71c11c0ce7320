"""The packages stay apart: who may import what, and which top-level names exist."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
PACKAGES = (
    "model",
    "view",
    "kube",
    "wire",
    "proto",
    "agent",
    "scheduler",
    "admission",
    "embedded",
    "local",
    "sdk",
    "cli",
    "bench",
    "cgroup_fixtures",
    "deploy",
    "examples",
    "tests",
)
FILES = ("README.md", "LICENSE", "Makefile", "pyproject.toml", ".ci/run")
FORBIDDEN_NAMES = {"util", "utils", "common", "helper", "helpers", "manager", "misc", "types"}


def test_import_contracts_hold() -> None:
    """`lint-imports` keeps every contract of pyproject.toml."""
    lint = Path(sys.executable).parent / "lint-imports"
    if not lint.exists():
        pytest.skip("import-linter is a development dependency: make test installs it")
    done = subprocess.run([lint, "--no-cache", "--no-logo"], cwd=ROOT, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_package_that_exists_is_under_contract() -> None:
    """A new importable package must be added to the contracts in the same change."""
    config = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]
    found = {path.parent.name for path in [*ROOT.glob("*/__init__.py"), *ROOT.glob("sdk/*/__init__.py")]}
    assert found == set(config["importlinter"]["root_packages"])
    assert found == set(config["mypy"]["packages"])


def test_every_package_names_all_its_modules_and_folders() -> None:
    """One exhaustive contract of layers each: a module or folder that it does not name breaks it."""
    config = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    layered = [contract for contract in config["contracts"] if contract["type"] == "layers"]
    whole = {package for contract in layered if contract.get("exhaustive") for package in contract["containers"]}
    assert set(config["root_packages"]) <= whole


@pytest.mark.parametrize("name", [*PACKAGES, *FILES])
def test_top_level_names_exist(name: str) -> None:
    """What documents, images and people's habits refer to."""
    assert (ROOT / name).exists()


def test_no_module_has_a_name_that_says_nothing() -> None:
    """util, common, helper, manager, misc and types attract what belongs elsewhere."""
    sources = [path for package in PACKAGES for path in (ROOT / package).rglob("*.py")]
    assert len(sources) > 50
    assert [str(path) for path in sources if FORBIDDEN_NAMES & {path.stem, path.parent.name}] == []


@pytest.mark.parametrize("target", ["run", "test", "check"])
def test_the_readme_mentions_the_commands_a_newcomer_needs(target: str) -> None:
    """And the Makefile has them."""
    assert f"make {target}" in (ROOT / "README.md").read_text()
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE)


@pytest.mark.parametrize("package", [package for package in PACKAGES if package not in ("examples", "tests")])
def test_the_architecture_mentions_every_package(package: str) -> None:
    """Nobody has to guess what a top-level directory is for."""
    assert f"`{package}/" in (ROOT / "ARCHITECTURE.md").read_text()
