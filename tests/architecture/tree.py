"""Modules of the packages, the test that bears each one's name, and what a test comes to through imports."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
PACKAGES = (
    "model",
    "view",
    "kube",
    "wire",
    "jobs",
    "agent",
    "scheduler",
    "admission",
    "local",
    "cli",
    "embedded",
    "sdk/sublet_sdk",
)
GENERATED = ROOT / "wire/v1"
_IMPORT = re.compile(r"^\s*from ([\w.]+) import (?:\(([^)]*)\)|([^\n#]+))", re.MULTILINE)
_BESIDE = re.compile(r"^\s*import (\w+)", re.MULTILINE)
_PATH = re.compile(r"[\"']([a-z_0-9/]+\.py)[\"']")
_PROGRAM = re.compile(r"[\"'](?:python -m )?([a-z_]+(?:\.[a-z_0-9]+)*)[\"']")


def sources(package: str) -> list[Path]:
    """Modules of a package, neither tests nor generated code."""
    found = (path for path in sorted((ROOT / package).rglob("*.py")) if path.name != "__init__.py")
    return [path for path in found if GENERATED not in path.parents and ROOT / "embedded/tests" not in path.parents]


MODULES = {str(path.relative_to(ROOT)): path for package in PACKAGES for path in sources(package)}
_BY_NAME = {module.removesuffix(".py").removeprefix("sdk/").replace("/", "."): path for module, path in MODULES.items()}
_HELPERS = {
    path.stem: path
    for folder in ("tests", "embedded/tests", "sdk/tests")
    for path in (ROOT / folder).rglob("*.py")
    if not path.name.startswith("test_") and path.name != "conftest.py"
}


def mirror(module: Path) -> Path:
    """tests/X/test_y.py of X/y.py, embedded/ and sdk/ have their own tests/; a program's test is test_main.py."""
    path = module.relative_to(ROOT)
    name = f"test_{'main' if path.stem == '__main__' else path.stem}.py"
    if path.parts[0] == "embedded":
        return ROOT / "embedded/tests" / path.parent.relative_to("embedded") / name
    if path.parts[0] == "sdk":
        return ROOT / "sdk/tests" / path.parent.relative_to("sdk/sublet_sdk") / name
    return ROOT / "tests" / path.parent / name


def holds_values_alone(module: Path) -> bool:
    """Whether a module says nothing that can go wrong by itself: values, and functions without a body (protocols)."""
    functions = (
        node
        for node in ast.walk(ast.parse(module.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )
    return not any(_does_something(node) for node in functions)


def _does_something(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Not where all of it is a docstring or `...`."""
    return not all(isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) for node in function.body)


@cache
def _known_to(path: Path) -> frozenset[Path]:
    """Modules and test helpers that a file imports, or starts as programs."""
    text, names = path.read_text(), set[str]()
    for package, listed, line in _IMPORT.findall(text):
        names.update((package, *(f"{package}.{each}" for each in re.findall(r"(\w+)(?: as \w+)?", listed or line))))
    names.update(_PROGRAM.findall(text))
    found = [_BY_NAME.get(name) or _BY_NAME.get(f"{name}.__main__") for name in names]
    found += [MODULES.get(each) for each in _PATH.findall(text)]
    # Beside a file that is run by its path: `import name`.
    beside = [path.with_name(f"{name}.py") for name in _BESIDE.findall(text)]
    found += [each for each in beside if each.exists()]
    if "tests" in path.parts:
        found += [_HELPERS.get(name.rpartition(".")[2]) for name in names]
    return frozenset(each for each in found if each is not None and each != path)


def reached(test: Path) -> frozenset[Path]:
    """What a test comes to: by its own imports, its conftest's, those of its helpers, and of all these in turn."""
    todo = [test, *(folder / "conftest.py" for folder in test.parents if (folder / "conftest.py").exists())]
    seen: set[Path] = set(todo)
    while todo:
        new = _known_to(todo.pop()) - seen
        seen |= new
        todo.extend(new)
    return frozenset(seen)
