"""One name for one thing: few public class names are defined more than once."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
MOST = 20
"""Names that two or more modules define; what they mean must then be plain from their packages."""
SUBLET = (
    *("model", "view", "kube", "wire", "agent", "scheduler", "admission", "local", "cli", "bench"),
    *("cgroup_fixtures", "deploy", "docs"),
)
PARTS = {"sublet": SUBLET, "embedded": ("embedded",)}
GENERATED_OR_RAW = ("wire/v1/", "embedded/tests/", "kube/objects.py")
"""Generated code, tests, and Kubernetes' own objects as they stand on the wire, which have Kubernetes' names."""


def defined(packages: tuple[str, ...]) -> dict[str, list[str]]:
    """Name → the modules that define a public class of it at their top level."""
    found = defaultdict(list)
    for path in sorted(path for package in packages for path in (ROOT / package).rglob("*.py")):
        where = str(path.relative_to(ROOT))
        if not where.startswith(GENERATED_OR_RAW):
            for node in ast.parse(path.read_text()).body:
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    found[node.name].append(where)
    return found


@pytest.mark.parametrize("part", PARTS)
def test_few_class_names_mean_two_things(part: str) -> None:
    """A newcomer who searches for a class finds one."""
    found = defined(PARTS[part])
    again = {name: modules for name, modules in sorted(found.items()) if len(modules) > 1}
    assert len(found) > 300
    assert len(again) <= MOST, "\n".join(f"{name}: {', '.join(modules)}" for name, modules in again.items())
