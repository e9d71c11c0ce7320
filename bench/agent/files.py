"""The control files of one observation and what is wanted from each: one list, the same for every reader."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

import msgspec

from agent.core.observe.files import FILES, Cadence, FileKind, FilePart, Role, cadence
from bench.hierarchies import Hierarchies

COMPARED = (FilePart.CPU, FilePart.LEVEL, FilePart.MEMORY, FilePart.THROTTLING, FilePart.CPU_PRESSURE)
"""What every reader reads: the files a Koordinator agent collects for a pod, and CPU pressure."""


class Form(StrEnum):
    """How a file's text is built: one number, `key value` lines, or the two lines of a pressure file."""

    NUMBER = "number"
    KEYED = "keyed"
    PRESSURE = "pressure"


class FileGroup(msgspec.Struct, frozen=True):
    """Files of one kind. Of a keyed file the sum of `keys` is wanted, of a pressure file everything."""

    name: str
    form: Form
    paths: tuple[str, ...]
    keys: tuple[str, ...] = ()


class ReadPlan(msgspec.Struct, frozen=True):
    """What to read: `groups` for readers that open paths, cgroups and their roles for the agent's own reader."""

    version: int
    root: str
    roles: Mapping[str, Role]
    groups: tuple[FileGroup, ...]


_LRU = ("inactive_anon", "active_anon", "inactive_file", "active_file", "unevictable")
_KEYS = {
    (1, "memory.stat"): tuple(f"total_{key}" for key in _LRU),
    # Without throttled_time: the agent rounds it to microseconds, so that sums differ.
    (1, "cpu.stat"): ("nr_periods", "nr_throttled"),
    (2, "memory.stat"): _LRU,
    (2, "cpu.stat"): ("usage_usec", "nr_periods", "nr_throttled", "throttled_usec"),
}


def observation_plan(hierarchies: Hierarchies, roles: Mapping[str, Role]) -> ReadPlan:
    """Every compared file that the agent reads of these cgroups at all."""
    kinds = [kind for kind in FILES[hierarchies.version] if kind.part in COMPARED]
    groups = [_group(kind, hierarchies, roles) for kind in kinds if kind.controller in hierarchies.mounts]
    return ReadPlan(hierarchies.version, str(hierarchies.root), roles, tuple(groups))


def _group(kind: FileKind, hierarchies: Hierarchies, roles: Mapping[str, Role]) -> FileGroup:
    cgroups = [cgroup for cgroup, role in roles.items() if cadence(kind.part, role) is not Cadence.NEVER]
    keys = _KEYS.get((hierarchies.version, kind.file), ())
    form = Form.PRESSURE if kind.part is FilePart.CPU_PRESSURE else Form.KEYED if keys else Form.NUMBER
    mount = hierarchies.mounts[kind.controller]
    return FileGroup(kind.file, form, tuple(f"{mount}{cgroup}/{kind.file}" for cgroup in cgroups), keys)
