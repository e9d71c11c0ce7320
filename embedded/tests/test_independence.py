"""The embedded cluster and its tests import only their own, the standard library, and what is installed with them."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from pathlib import Path

HERE = Path(__file__).parent.parent
PROVIDED_BY = {
    "jwt": "pyjwt",
    "yaml": "pyyaml",
    "cel_expr_python": "cel-expr-python",
    "google": "protobuf",
    "prometheus_client": "prometheus-client",
    "grpc": "grpcio",
    "grpc_health": "grpcio-health-checking",
}
"""Module → distribution, where their names differ."""


def imported() -> dict[str, str]:
    """Top-level module → a file that imports it."""
    found: dict[str, str] = {}
    for path in sorted(HERE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [each.name for each in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names = [node.module]
            found |= {name.partition(".")[0]: str(path) for name in names}
    return found


def test_what_is_imported_is_installed_with_it() -> None:
    """By the dependencies of its own pyproject.toml."""
    project = tomllib.loads((HERE / "pyproject.toml").read_text())["project"]
    told = [*project["dependencies"], *(each for extra in project["optional-dependencies"].values() for each in extra)]
    installed = {re.split(r"[^A-Za-z0-9_.-]", each)[0].lower() for each in told}
    # Scripts that begin a container import what lies beside them.
    beside = {path.stem for path in (HERE / "node" / "processes").glob("*.py")}
    found = {
        name: file for name, file in imported().items() if name not in sys.stdlib_module_names | {"embedded"} | beside
    }
    assert len(found) > 10
    assert {name: file for name, file in found.items() if PROVIDED_BY.get(name, name) not in installed} == {}


def test_a_folder_tells_its_story() -> None:
    """At most 25 modules by one subject each, with a sentence that says which."""
    folders = {path.parent for path in HERE.rglob("*.py") if "tests" not in path.relative_to(HERE).parts}
    assert len(folders) > 30
    assert [str(folder) for folder in folders if len(list(folder.glob("*.py"))) > 26] == []  # with __init__.py
    assert [str(folder) for folder in folders if not (folder / "__init__.py").read_text().startswith('"""')] == []
