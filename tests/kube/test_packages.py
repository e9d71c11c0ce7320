"""A package whose `__init__` waits until it is needed, and one that is hidden for a while."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kube.packages import defer_init, hidden

NAMES = ("deferredpackage", "deferredpackage.part", "deferredpackage.part.leaf", "deferredpackage.other")


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A package that says so when its `__init__` runs, with a subpackage and a module each."""
    root = tmp_path / NAMES[0]
    (root / "part").mkdir(parents=True)
    (root / "__init__.py").write_text("from . import other, part\nOWN = 'init ran'\n")
    (root / "other.py").write_text("VALUE = 1\n")
    (root / "part/__init__.py").write_text("raise ImportError('must not run')\n")
    (root / "part/leaf.py").write_text("VALUE = 2\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    yield NAMES[0]
    for name in NAMES:
        sys.modules.pop(name, None)


def test_a_submodule_is_imported_alone(package: str) -> None:
    """Neither `__init__` runs, nor is anything else loaded."""
    defer_init(package, f"{package}.part")
    leaf = importlib.import_module(f"{package}.part.leaf")
    assert leaf.VALUE == 2 and f"{package}.other" not in sys.modules
    assert importlib.import_module(package).part.leaf is leaf


def test_a_submodule_that_is_asked_for_is_imported(package: str) -> None:
    """`from package import module` and `package.module` find it, and nothing beside it."""
    defer_init(package)
    assert importlib.import_module(package).other.VALUE == 1
    assert f"{package}.part" not in sys.modules


def test_a_name_of_its_own_makes_init_run(package: str) -> None:
    """Once; a name that even then is not there is missing as everywhere."""
    defer_init(package, f"{package}.part")
    found = importlib.import_module(package)
    assert found.OWN == "init ran" and found.other.VALUE == 1
    with pytest.raises(AttributeError, match=package):
        _ = found.nothing


def test_what_is_loaded_or_missing_is_left_alone() -> None:
    """A package that somebody uses already keeps what it has."""
    loaded = importlib.import_module("json")
    defer_init("json", "no_such_package_anywhere")
    assert sys.modules["json"] is loaded and "no_such_package_anywhere" not in sys.modules


def test_hidden(package: str) -> None:
    """Within it is not installed; afterwards it is, and what was loaded before was never hidden."""
    with hidden(package), pytest.raises(ImportError):
        importlib.import_module(package)
    assert package not in sys.modules
    loaded = importlib.import_module("json")
    with hidden("json"):
        assert importlib.import_module("json") is loaded
