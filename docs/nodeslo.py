"""docs/nodeslo.md: every field of a NodeSLO, how far it is acted on, by which control files, and the tests of that.

Derived from the types that documents are decoded into, from the table of Koordinator's API and from that of control
files.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import yaml
from msgspec import inspect

from agent.core.observe.knob_table import TABLE, KnobRow, Strategy
from kube.dialects.coverage.asking_settings import NODE_SLO_FIELDS
from kube.dialects.coverage.rows import CoverageRow, Support, Surface
from kube.dialects.coverage.settings import ROWS
from kube.dialects.koordinator.configkey import ConfigKey
from kube.dialects.koordinator.cpuburst import BurstFields
from kube.dialects.koordinator.nodeslo import EvictionFields, HostApplicationFields, SuppressFields, SwitchFields
from kube.dialects.koordinator.slosections import QosFields, SystemFields

TESTS = Path(__file__).parents[1] / "tests"
_EFFECTS = TESTS / "kube/dialects/coverage/effects.yaml"
_SECTIONS: Mapping[ConfigKey, tuple[type[msgspec.Struct], ...]] = {
    ConfigKey.THRESHOLD: (SwitchFields, SuppressFields, EvictionFields),
    ConfigKey.QOS: (QosFields,),
    ConfigKey.CPU_BURST: (BurstFields,),
    ConfigKey.SYSTEM: (SystemFields,),
    ConfigKey.HOST_APPLICATIONS: (HostApplicationFields,),
}
_CLASSES = ("lsrClass", "lsClass", "beClass", "systemClass")
_EACH_CLASS = "*Class"
BY_FIELD: Mapping[str, tuple[Strategy, ...]] = {
    f"{ConfigKey.THRESHOLD}.enable": (
        Strategy.CPU_SUPPRESS,
        Strategy.CPU_IDLE,
        Strategy.MEMORY_HEADROOM,
        Strategy.PROCESS_LIMITS,
    ),
    f"{ConfigKey.THRESHOLD}.cpuSuppress": (Strategy.CPU_SUPPRESS,),
    f"{ConfigKey.THRESHOLD}.memoryEvictThresholdPercent": (Strategy.MEMORY_HEADROOM,),
    f"{ConfigKey.CPU_BURST}.": (Strategy.CPU_BURST,),
    f"{ConfigKey.QOS}.*Class.memoryQOS": (Strategy.MEMORY_QOS,),
    f"{ConfigKey.QOS}.*Class.cpuQOS": (Strategy.CPU_QOS,),
}
"""By how a field begins, the strategies that write control files by it."""
OWN: Mapping[Strategy, str] = {
    Strategy.CPU_WEIGHT: "always; the agent protects online pods by it whatever documents say",
    Strategy.CPU_IDLE: "the agent's setting `suppress.cpu_idle`",
    Strategy.PROCESS_LIMITS: (
        "the agent's settings `suppress.pids_pct`, `suppress.pod_pids_pct` and `suppress.pod_cgroups`"
    ),
    Strategy.BATCH_RESOURCES: "the pod's own batch and mid resources",
    Strategy.MEMORY_QOS: "the pod's annotation `koordinator.sh/memoryQOS`",
    Strategy.CPU_QOS: "the pod's annotation `koordinator.sh/cpuQOS`",
    Strategy.UCLAMP: "the agent's settings `uclamp`",
    Strategy.OOM_SCORES: "the agent's setting `oom_scores`; annotations `koordinator.sh/oom-score-adj`, `-spec`",
    Strategy.OWN_CPUS: "the CPUs that the scheduler gave an LSE or LSR pod",
}
"""What else a strategy follows."""
REAL: Mapping[Strategy, tuple[str, ...]] = {
    Strategy.CPU_SUPPRESS: ("agent/kernel/test_executor.py", "guest/inside/test_executor2.py"),
    Strategy.CPU_WEIGHT: ("agent/kernel/test_executor.py", "guest/inside/test_executor2.py"),
    Strategy.CPU_IDLE: ("agent/kernel/test_executor.py", "guest/inside/test_executor2.py"),
    Strategy.MEMORY_HEADROOM: ("guest/inside/test_executor2.py", "guest/inside/test_watch.py"),
    Strategy.PROCESS_LIMITS: ("agent/kernel/test_pidlimits.py", "guest/inside/test_pidlimits.py"),
    Strategy.BATCH_RESOURCES: ("agent/kernel/test_real_cgroups.py", "agent/kernel/test_crash.py"),
    Strategy.MEMORY_QOS: ("guest/inside/test_memory_qos.py",),
    Strategy.CPU_QOS: ("agent/kernel/test_cpu_qos.py", "guest/inside/test_cpu_qos.py"),
    Strategy.UCLAMP: ("agent/kernel/test_cpu_qos.py", "guest/inside/test_cpu_qos.py"),
    Strategy.OOM_SCORES: ("agent/kernel/test_oom_scores.py",),
    Strategy.OWN_CPUS: ("agent/kernel/test_owncpus.py",),
    Strategy.CPU_BURST: ("agent/kernel/test_cpuburst.py", "guest/inside/test_cpuburst.py"),
}
"""Tests on real kernels: cgroup v1 on the host, v2 in a guest."""
_INTRO = """\
The leading scheduler makes each node's NodeSLO from ConfigMap `slo-controller-config`; the agent of that node follows
it. Here is every field that is read, how far it is acted on (as in [koordinator.md](koordinator.md)), by which control
files, and a test that shows it. `*Class` stands for `lsrClass`, `lsClass`, `beClass` and `systemClass`.
`sublet explain limit` says on a node which strategy owns each file, what was decided with its terms, and what the
kernel holds, or that it has no such file.
"""
_STRATEGIES = """\
A control file has one owner in each place, by one table ([ADR 40](adr/0040-one-table-of-knobs.md)). Where a strategy
is switched off its files get the text back that they had before the agent; best effort's ceilings stay until
`sublet agent --restore`.
"""


class Field(NamedTuple):
    """One leaf of a NodeSLO: its path in the ConfigMap's words, and the rows of the table that speak of it."""

    path: str
    rows: tuple[CoverageRow, ...]

    @property
    def in_spec(self) -> str:
        """Its path in a NodeSLO's spec."""
        key, _, rest = self.path.partition(".")
        if key == ConfigKey.HOST_APPLICATIONS:
            return f"hostApplications{rest.removeprefix('applications')}"
        return f"{NODE_SLO_FIELDS[key]}.{rest}" if rest else NODE_SLO_FIELDS[key]


def fields() -> tuple[Field, ...]:
    """Every field of the types that a NodeSLO's sections are decoded into."""
    paths = [
        path for key, kinds in _SECTIONS.items() for kind in kinds for path in _leaves(inspect.type_info(kind), key)
    ]
    paths.append("extensions")
    return tuple(Field(path, _rows_of(path)) for path in dict.fromkeys(paths))


def page(note: str) -> str:
    """The whole page, with the `note` that it is generated."""
    effects: Mapping[str, str] = yaml.safe_load(_EFFECTS.read_text())[Surface.SETTINGS.value]
    lines = ["# NodeSLO, field by field\n", note, _INTRO]
    lines += ["| field | | what is done, or not | control files | shown by |", "|---|---|---|---|---|"]
    lines += [_field_line(field, row, effects) for field in fields() for row in field.rows]
    lines += ["", "## Strategies and their control files\n", _STRATEGIES]
    lines += ["| strategy | cgroup v1 | cgroup v2 | places | it ends with | follows | on real kernels |"]
    lines += ["|---|---|---|---|---|---|---|", *(_strategy_line(strategy) for strategy in Strategy), ""]
    return "\n".join(lines)


def files_of(strategy: Strategy, version: int) -> tuple[KnobRow, ...]:
    """The rows in which it owns something."""
    return tuple(row for row in TABLE if row.version == version and strategy in row.owners.values())


def by_field(path: str) -> tuple[Strategy, ...]:
    """The strategies that write files by this field."""
    return next((found for start, found in BY_FIELD.items() if path.startswith(start)), ())


def _leaves(shape: inspect.Type, path: str) -> Iterator[str]:
    match shape:
        case inspect.Metadata():
            yield from _leaves(shape.type, path)
        case inspect.UnionType():
            parts = [part for part in shape.types if not isinstance(part, inspect.NoneType)]
            yield from _leaves(parts[0], path)
        case inspect.ListType() | inspect.VarTupleType():
            yield from _leaves(shape.item_type, f"{path}[]")
        case inspect.StructType():
            for field in shape.fields:
                name = _EACH_CLASS if field.encode_name in _CLASSES else field.encode_name
                yield from _leaves(field.type, f"{path}.{name}")
        case _:
            yield path


def _rows_of(path: str) -> tuple[CoverageRow, ...]:
    """The most telling ones: of the field itself, else of the object that it is in, else of the policy beside it."""
    settings = [row for row in ROWS if row.surface is Surface.SETTINGS]
    above = [row for row in settings if path == row.field or path.startswith((f"{row.field}.", f"{row.field}[]"))]
    policy = f"{path.rpartition('.')[0]}.policy"
    above = above or [row for row in settings if row.field == policy and row.warns]
    longest = max((len(row.field) for row in above), default=0)
    return tuple(row for row in above if len(row.field) == longest)


def _field_line(field: Field, row: CoverageRow, effects: Mapping[str, Any]) -> str:
    values = f": {', '.join(row.values)}" if row.values and row.field == field.path else ""
    acted = row.support in (Support.HONOURED, Support.PARTLY)
    written = ", ".join(_files(by_field(field.path))) if acted else ""
    shown = f"`{str(effects[row.name]).split('::')[0]}`" if row.name in effects else ""
    return f"| `{field.in_spec}`{values} | {row.support.value} | {row.consequence} | {written} | {shown} |"


def _files(strategies: tuple[Strategy, ...]) -> Iterator[str]:
    rows = (row for strategy in strategies for version in (1, 2) for row in files_of(strategy, version))
    yield from dict.fromkeys(f"`{row.file}`" for row in rows)


def _strategy_line(strategy: Strategy) -> str:
    rows = [row for version in (1, 2) for row in files_of(strategy, version)]
    places = dict.fromkeys(place.value for row in rows for place, owner in row.owners.items() if owner is strategy)
    named = [f"`{start.rstrip('.')}`" for start, strategies in BY_FIELD.items() if strategy in strategies]
    follows = [*named, *([OWN[strategy]] if strategy in OWN else [])]
    cells = (
        f"`{strategy.value}`",
        ", ".join(_file(row) for row in files_of(strategy, 1)),
        ", ".join(_file(row) for row in files_of(strategy, 2)),
        ", ".join(places),
        "`--restore`" if strategy.stays else "itself",
        "; ".join(follows),
        ", ".join(f"`{test}`" for test in REAL[strategy]),
    )
    return f"| {' | '.join(cells)} |"


def _file(row: KnobRow) -> str:
    since = f" (Linux {row.since} and newer)" if row.since else ""
    return f"`{row.file}`{since}"
