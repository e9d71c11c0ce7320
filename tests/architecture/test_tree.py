"""The tree: few enough modules in a folder to look through, and for each module a test of its name.

tested_elsewhere.toml lists the modules that have none, with the test that covers them.
"""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from tests.architecture.tree import GENERATED, MODULES, PACKAGES, ROOT, holds_values_alone, mirror, reached

MOST_MODULES = 30
FOLDERS = sorted(
    {
        str(path.parent.relative_to(ROOT))
        for package in (*PACKAGES, "bench", "tests")
        for path in (ROOT / package).rglob("*.py")
        if GENERATED not in path.parents
    }
)
ELSEWHERE: dict[str, str] = {
    module: test
    for group in tomllib.loads((Path(__file__).parent / "tested_elsewhere.toml").read_text()).values()
    for module, test in group.items()
}
GENERATORS = [module for module in MODULES if module.endswith("/generate.py")]
"""Run by a person; what they write is committed, and tested."""


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_folder_holds_few_enough_modules(folder: str) -> None:
    """More have folders of their own, by subject."""
    modules = [path.name for path in (ROOT / folder).glob("*.py") if path.name != "__init__.py"]
    assert len(modules) <= MOST_MODULES, f"{folder} holds {len(modules)} modules, at most {MOST_MODULES}: make folders"


def test_each_module_has_a_test_of_its_name() -> None:
    """But for generators, for modules of values alone, and for those of which a line says which test covers them."""
    known = {*ELSEWHERE, *GENERATORS}
    missing = [
        f"{module}: write {mirror(path).relative_to(ROOT)}"
        for module, path in MODULES.items()
        if module not in known and not mirror(path).exists() and not holds_values_alone(path)
    ]
    assert missing == []


def test_no_exception_is_needless() -> None:
    """A module that is gone, has a test of its name by now, or holds values alone has no line."""
    needless = [
        module
        for module in ELSEWHERE
        if module not in MODULES or mirror(MODULES[module]).exists() or holds_values_alone(MODULES[module])
    ]
    assert needless == []


@pytest.mark.parametrize("module", ELSEWHERE)
def test_what_is_tested_elsewhere_is(module: str) -> None:
    """The test that is named exists, and comes to the module: through imports, or through a program it starts."""
    test = ROOT / ELSEWHERE[module]
    assert test.exists(), f"{module}: there is no {ELSEWHERE[module]}"
    assert ROOT / module in reached(test), f"{module}: {ELSEWHERE[module]} does not come to it"
