"""deploy/chart without Helm: it is what deploy/ says today, and its values, their schema and their defaults agree."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parent.parent.parent
CHART = ROOT / "deploy" / "chart"
PROGRAMS = ("agent", "scheduler", "admission")
GROUPS = ("image", "fleet", "certManager")
"""Values that are a group of values; everything else is one, whatever is in it."""
Object = dict[str, Any]
KUBECTL = shutil.which("kubectl", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
needs_kubectl = pytest.mark.skipif(KUBECTL is None, reason="needs kubectl: make dev installs one")


def loaded() -> ModuleType:
    """The script as a module."""
    spec = importlib.util.spec_from_file_location("generate_chart", CHART / "generate.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


GENERATE = loaded()


def values() -> Object:
    found: Object = yaml.safe_load((CHART / "values.yaml").read_text())
    return found


def chosen(found: Object, before: str = "") -> Iterator[str]:
    """The values by their paths."""
    for name, value in found.items():
        path = f"{before}{name}"
        if name in GROUPS or path in PROGRAMS:
            yield from chosen(value, f"{path}.")
        else:
            yield path


def properties(schema: Object) -> Object:
    """Schema → its names, with those of groups and programs in place of references."""

    def of(each: Object) -> Any:
        each = schema["definitions"][each["$ref"].rpartition("/")[2]] if "$ref" in each else each
        return {name: of(inner) for name, inner in each.get("properties", {}).items()}

    found: Object = of(schema)
    del found["global"]  # Helm's own
    return found


def resolved(text: str, issued: bool) -> str:
    """What Helm makes of a text whose only templates are conditions on cert-manager."""
    lines, takes = [], True
    for line in text.splitlines(keepends=True):
        if line.startswith("{{- if"):
            takes = issued is not ("not " in line)
        elif line.startswith("{{- else"):
            takes = not takes
        elif line.startswith("{{- end"):
            takes = True
        elif takes:
            lines.append(line)
    return "".join(lines)


@needs_kubectl
def test_the_chart_is_generated_from_deploy() -> None:
    """To the letter: `make chart` makes it so again. A definition that deploy/crds has no more is gone."""
    written = GENERATE.files()
    stale = [str(path.relative_to(ROOT)) for path, text in written.items() if path.read_text() != text]
    assert not stale, f"run `make chart`: {stale}"
    assert set((CHART / "crds").iterdir()) == {path for path in written if path.parent.name == "crds"}


@needs_kubectl
def test_the_namespace_is_the_releases() -> None:
    """Everywhere, in expressions and arguments too."""
    for path, text in GENERATE.files().items():
        assert "sublet-system" not in text, path
    assert "sublet-system" not in (CHART / "templates" / "NOTES.txt").read_text()


def test_a_definition_has_a_file_of_its_own() -> None:
    """Helm passes over a whole file of which one definition is there already."""
    for path in (CHART / "crds").iterdir():
        assert len(list(yaml.safe_load_all(path.read_text()))) == 1, path


def test_the_chart_is_of_this_version() -> None:
    """The chart, and the images it means by default."""
    told = yaml.safe_load((CHART / "Chart.yaml").read_text())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert (told["version"], told["appVersion"]) == (project["version"], project["version"])
    assert told["annotations"]["artifacthub.io/license"] == project["license"]


def test_the_schema_knows_each_value_and_no_other() -> None:
    """A name that is misspelt is refused, at every level."""
    schema = json.loads((CHART / "values.schema.json").read_text())
    assert set(chosen(properties(schema))) == set(chosen(values()))
    groups = [
        schema,
        *(schema["properties"][name] for name in (*GROUPS, *PROGRAMS)),
        schema["definitions"]["programImage"],
    ]
    assert all(group["additionalProperties"] is False for group in groups)


def test_a_default_that_is_not_deploys_is_a_fault() -> None:
    """Two sources that differ are found where they are made one."""
    same, other = (
        GENERATE.TemplatePlaces({"agent": {"replicas": 2}}),
        GENERATE.TemplatePlaces({"agent": {"replicas": 3}}),
    )
    holder = {"replicas": 2}
    with pytest.raises(GENERATE.ChartFault, match=r"values\.yaml: agent\.replicas is 3, but deploy/ says 2"):
        other.value(holder, "replicas", "agent.replicas")
    same.value(holder, "replicas", "agent.replicas")
    assert same.fill(yaml.dump(holder)) == "replicas: {{ .Values.agent.replicas }}\n"


BOTH = {
    "the same": ("a\nb\n", "a\nb\n"),
    "one line is another": ("a\nb\nc\n", "a\nx\nc\n"),
    "more lines": ("a\nc\n", "a\nb\nb\nc\n"),
    "fewer lines": ("a\nb\nc\n", "a\n"),
    "at both ends": ("x\na\ny\n", "z\na\n"),
    "only with cert-manager": ("", "a\n"),
    "nothing in common": ("a\nb\n", "c\n"),
}


@pytest.mark.parametrize("name", BOTH)
def test_a_difference_becomes_a_condition(name: str) -> None:
    """Each side of it is one of the two texts."""
    plain, issued = BOTH[name]
    text = GENERATE.either(plain, issued)
    assert (resolved(text, issued=False), resolved(text, issued=True)) == (plain, issued)
