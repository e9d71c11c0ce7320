"""Writes docs/settings.md, metrics.md, koordinator.md, nodeslo.md and the README's short table: `make docs`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from msgspec import inspect

from admission.settings import AdmissionSettings
from agent.settings import AgentSettings
from docs import nodeslo
from kube.dialects.coverage.asking_settings import NODE_SLO_FIELDS
from kube.dialects.coverage.rows import Area, CoverageRow, Support, Surface
from kube.dialects.coverage.table import ROWS as API
from kube.dialects.koordinator.configkey import ConfigKey
from model.metrics import TABLES
from scheduler.settings import SchedulerSettings

FOLDER = Path(__file__).parent
README = FOLDER.parent / "README.md"
COMMAND = "make docs"
_NOTE = f"Generated from the code by `{COMMAND}`; edits here are lost.\n"
BEGIN, END = "<!-- honoured:begin -->", "<!-- honoured:end -->"
_INTRO = """\
Koordinator is the source of the API that Sublet speaks. This page says field by field how far it is acted on:

| | |
|---|---|
| honoured | done; Sublet's file that reads it stands in the last column |
| partly | done as far as the sentence says |
| not yet | accepted, and nothing acts on it yet |
| never | accepted, and nothing will act on it; the sentence says why |

Whoever writes a document that asks for something of the lower three gets a warning of admission
(`Warning: ... nothing acts on ...`). For `slo-controller-config`, NodeSLOs and Nodes the condition `ColocationReady`
of each node and the metric `sublet_agent_settings_not_acted_on` say it too, for the ConfigMap an Event `NotActedOn` on
it. A section that is off (`enable: false`, `policy: none`) asks for nothing. Pods are looked at when they are created
and when their labels change, templates of Deployments, StatefulSets, DaemonSets, Jobs and CronJobs when they are
written. Koordinator's defaults are not Sublet's everywhere: [settings](settings.md) has ours,
[ADR 8](adr/0008-defaults-without-documents.md) says which document wins. [nodeslo.md](nodeslo.md) has every field of a
NodeSLO with the control files that it moves and the tests of that.
"""
_MOST_NAMES = 4
_FIRST_TOLD = (Support.NOT_YET, Support.PARTLY, Support.NEVER)
_ANY = {
    "Coscheduling.*": "other arguments of Coscheduling",
    "LoadAwareScheduling.*": "other arguments of LoadAwareScheduling",
    "*.*": "arguments of other plugins",
}
_SECTIONS = (ConfigKey.QOS, ConfigKey.SYSTEM, ConfigKey.COLOCATION, ConfigKey.HOST_APPLICATIONS)
_PLAIN = {inspect.BoolType: "true or false", inspect.StrType: "text", inspect.NoneType: "`null`"}
_NUMBERS = {inspect.IntType: "whole number", inspect.FloatType: "number"}


class SettingRow(NamedTuple):
    """One setting; `meaning` is empty where the code does not say."""

    path: str
    kind: str
    default: str
    meaning: str


def settings() -> Mapping[str, list[SettingRow]]:
    """Every setting, by program."""
    found = {"agent": AgentSettings, "scheduler": SchedulerSettings, "admission": AdmissionSettings}
    return {program: list(_fields(kind, "")) for program, kind in found.items()}


def pages() -> Mapping[str, str]:
    """File name → content of every generated page."""
    return {
        "settings.md": _settings_page(),
        "metrics.md": _metrics_page(),
        "koordinator.md": _koordinator_page(),
        "nodeslo.md": nodeslo.page(_NOTE),
    }


def readme(text: str) -> str:
    """The README with the short table between its marks; unchanged where it has none."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    return f"{before}{begin}\n{short_table()}\n{end}{after}" if begin and end else text


def _settings_page() -> str:
    parts = ["# Settings\n", _NOTE]
    for program, rows in settings().items():
        parts.append(f"## `sublet {program} --settings FILE`\n")
        parts.append(
            "YAML or JSON; every field may be left out. A wrong field or value ends the start with one line.\n"
        )
        parts += ["| field | type | default | meaning |", "|---|---|---|---|"]
        parts += [f"| `{row.path}` | {row.kind} | {row.default} | {row.meaning} |" for row in rows]
        parts.append("")
    return "\n".join(parts)


def _metrics_page() -> str:
    parts = ["# Metrics\n", _NOTE]
    for table in TABLES:
        parts.append(f"## The {table.program}'s `/metrics`\n")
        parts.append("The process itself is described by the usual `process_*` metrics.\n")
        parts += ["| metric | type | unit | labels | meaning |", "|---|---|---|---|---|"]
        parts += [
            f"| `{table.full_name(row)}` | {row.type.value} | {row.unit.value} | {', '.join(row.labels)} | {row.help} |"
            for row in table.rows
        ]
        parts.append("")
    return "\n".join(parts)


def _koordinator_page() -> str:
    parts = ["# Koordinator's API\n", _NOTE, _INTRO]
    for surface in Surface:
        parts += [f"## {surface.value}\n", *_notes(surface)]
        parts += ["| field | | what is done, or not | Koordinator's source | read by |", "|---|---|---|---|---|"]
        parts += [_api_line(row) for row in API if row.surface is surface]
        parts.append("")
    return "\n".join(parts)


def _notes(surface: Surface) -> Iterator[str]:
    if surface is Surface.SETTINGS:
        named = ", ".join(f"`{key}` is `{field}`" for key, field in NODE_SLO_FIELDS.items() if key != field)
        yield f"In a NodeSLO {named} and `host-application-config` is `hostApplications`. `*Class` is `lsrClass`,"
        yield "`lsClass`, `beClass` and `systemClass`. Fields hold for the cluster and in node entries alike.\n"


def _api_line(row: CoverageRow) -> str:
    reader = f"`{row.reader}`" if row.reader else ""
    return f"| `{row.name}` | {row.support.value} | {row.consequence} | {row.source} | {reader} |"


def short_table() -> str:
    """One line for each thing that Koordinator's API is about."""
    lines = ["| Koordinator's API for | acted on | what is not |", "|---|---|---|"]
    lines += [_summed(area, [row for row in API if row.area is area]) for area in Area]
    return "\n".join(lines)


def _summed(area: Area, rows: list[CoverageRow]) -> str:
    done = [row for row in rows if row.support is Support.HONOURED]
    part = [row for row in rows if row.support is Support.PARTLY]
    word = "yes" if len(done) == len(rows) else "not yet" if not done and not part else "partly"
    if word == "not yet" and all(row.support is Support.NEVER for row in rows):
        word = "no"
    rest = sorted((row for row in rows if row not in done), key=lambda row: _FIRST_TOLD.index(row.support))
    return f"| {area.value} | {word} | {_names(rest)} |"


def _names(rows: Iterable[CoverageRow]) -> str:
    names = list(dict.fromkeys(_short_name(row) for row in rows))
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return ", ".join(name if name in _ANY.values() else f"`{name}`" for name in names[:_MOST_NAMES]) + more


def _short_name(row: CoverageRow) -> str:
    """A field without its section; of a key without its domain."""
    if row.surface is Surface.POD_RESOURCE:
        return row.field
    if row.surface is Surface.SCHEDULER and row.field in _ANY:
        return _ANY[row.field]
    last = row.field.rpartition("/")[2] if "/" in row.field else row.field
    last = last if last.endswith("[]") else last.removesuffix("]")
    for section in _SECTIONS:
        last = last.removeprefix(f"{section}.")
    if row.values:
        return f"{last}: {'/'.join(row.values)}"
    return last if row.surface is not Surface.POD_LABEL or last != "*" else row.field


def _fields(kind: type, prefix: str, about: str = "") -> Iterator[SettingRow]:
    """Fields of nested structs by their path, `about` what is said of the struct as a whole.

    NAME stands for the keys of a map of structs, [] for the items of a list.
    """
    for field in msgspec.structs.fields(kind):
        path = f"{prefix}{field.encode_name}"
        shape = inspect.type_info(field.type)
        meaning, shape = _described(shape)
        if isinstance(shape, inspect.StructType):
            yield from _fields(shape.cls, f"{path}.", meaning)
            continue
        yield SettingRow(path, _kind(shape), _default(field), f"{about} {meaning}".strip())
        if isinstance(shape, inspect.DictType) and isinstance(shape.value_type, inspect.StructType):
            yield from _fields(shape.value_type.cls, f"{path}.NAME.")
        if isinstance(shape, inspect.VarTupleType) and isinstance(shape.item_type, inspect.StructType):
            yield from _fields(shape.item_type.cls, f"{path}[].")


def _described(shape: inspect.Type) -> tuple[str, inspect.Type]:
    if not isinstance(shape, inspect.Metadata):
        return "", shape
    return str((shape.extra_json_schema or {}).get("description", "")), shape.type


def _kind(shape: inspect.Type) -> str:
    """A type in words, with its range."""
    match shape:
        case inspect.Metadata():
            return _kind(shape.type)
        case inspect.IntType() | inspect.FloatType():
            return f"{_NUMBERS[type(shape)]}{_span(shape.ge, shape.le)}"
        case inspect.EnumType():
            return "one of " + ", ".join(_shown(member.value) for member in shape.cls)
        case inspect.UnionType():
            return ", or ".join(_kind(part) for part in shape.types)
        case inspect.VarTupleType():
            most = "" if shape.max_length is None else f" of at most {shape.max_length}"
            return f"list{most}, each: {_kind(shape.item_type)}"
        case inspect.DictType() | inspect.StructType():
            return "object"
    return _PLAIN[type(shape)]


def _span(low: float | None, high: float | None) -> str:
    if low is not None and high is not None:
        return f" {_number(low)} to {_number(high)}"
    return f" of {_number(low)} or more" if low is not None else f" up to {_number(high)}" if high is not None else ""


def _default(field: msgspec.structs.FieldInfo) -> str:
    if field.required:
        return "required"
    value = field.default_factory() if field.default is msgspec.NODEFAULT else field.default
    if isinstance(value, tuple | dict):
        return ", ".join(map(_shown, value)) or "empty"
    return _shown(value)


def _shown(value: Any) -> str:
    """One value as it is written in YAML."""
    if value == "":
        return "empty"
    plain = msgspec.to_builtins(_written(value))
    if isinstance(plain, float):
        return f"`{_number(plain)}`"
    return f"`{plain}`" if isinstance(plain, str) else f"`{msgspec.json.encode(plain).decode()}`"


def _written(value: Any) -> Any:
    """Of an object what somebody has to write: fields that say something else than their default."""
    if not isinstance(value, msgspec.Struct):
        return value
    fields = ((field, getattr(value, field.name)) for field in msgspec.structs.fields(value))
    return {field.encode_name: _written(told) for field, told in fields if field.required or told != field.default}


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else str(value)


if __name__ == "__main__":
    for name, text in pages().items():
        (FOLDER / name).write_text(text)
    README.write_text(readme(README.read_text()))
