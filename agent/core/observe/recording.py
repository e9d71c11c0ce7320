"""A recorded node: which kernel files a frame keeps, what changed between two passes, and the text of scenario.toml.

The format is that of cgroup_fixtures/: frame 00 is whole, a later frame holds only the files that changed, and
`removed` names what is no longer there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any

import msgspec

from agent.core.observe.files import FILES
from agent.core.observe.layout import CgroupDriver
from model.qos import KubernetesQoS, QoSClass

CGROUPS = "sys/fs/cgroup"
# Weights, limits and states that a person reading a scenario wants to see, beside what the agent samples.
_SHOWN: Mapping[int, tuple[tuple[str, str], ...]] = {
    1: (
        ("cpu", "cpu.shares"),
        ("cpu", "cpu.cfs_quota_us"),
        ("cpu", "cpu.cfs_period_us"),
        ("memory", "memory.limit_in_bytes"),
    ),
    2: (("", "cpu.weight"), ("", "cpu.max"), ("", "memory.max"), ("", "cgroup.events")),
}
PROC_FILES = (
    "stat",
    "uptime",
    "meminfo",
    "vmstat",
    "loadavg",
    "sys/fs/dentry-state",
    "net/dev",
    "pressure/cpu",
    "pressure/memory",
    "pressure/io",
)
SYS_FILES = ("kernel/slab/radix_tree_node/total_objects",)
# Patterns of files that stay as they are while a node runs: in frame 00 alone.
PROC_ONCE = ("cpuinfo", "sys/kernel/pid_max", "sys/kernel/threads-max")
SYS_ONCE = (
    "devices/system/cpu/online",
    "devices/system/cpu/present",
    "devices/system/cpu/isolated",
    "devices/system/cpu/smt/active",
    "devices/system/cpu/cpufreq/boost",
    "devices/system/cpu/intel_pstate/no_turbo",
    "devices/system/cpu/cpu*/topology/core_id",
    "devices/system/cpu/cpu*/topology/physical_package_id",
    "devices/system/node/node*/cpulist",
    "devices/system/node/node*/meminfo",
    "fs/resctrl/info/L3/cbm_mask",
)
# kubepods, QoS class, pod, container.
CGROUP_DEPTH = 3
_ARRAY = (list, tuple)
_RUNTIMES = (("cri-containerd-", "containerd"), ("crio-", "cri-o"), ("docker-", "docker"))


class Origin(StrEnum):
    """Where a scenario's files come from."""

    MADE = "made"
    RECORDED = "recorded"


class NodeShape(msgspec.Struct, frozen=True):
    """The machine."""

    cpu_millis: int
    memory_bytes: int
    name: str = "node"


class CgroupShape(msgspec.Struct, frozen=True):
    """How cgroups are laid out; `root` is the kubepods directory below the mount, `runtime` is "" where unknown."""

    version: int
    driver: CgroupDriver
    root: str
    runtime: str = ""


class ScenarioContainer(msgspec.Struct, frozen=True):
    """`id` without the runtime's scheme."""

    name: str
    id: str


class ScenarioPod(msgspec.Struct, frozen=True, omit_defaults=True):
    """A pod of the node: `class` is Kubernetes' QoS class, `qos` Koordinator's label; requests are effective ones.

    `uid` is what its cgroup is named after: for a static pod its configuration's hash.
    """

    name: str
    uid: str
    kubernetes_qos: KubernetesQoS = msgspec.field(name="class")
    qos: QoSClass = QoSClass.NONE
    cpu_millis: int = 0
    memory_bytes: int = 0
    batch_cpu_millis: int = 0
    batch_memory_bytes: int = 0
    containers: tuple[ScenarioContainer, ...] = ()


class Scenario(msgspec.Struct, frozen=True, omit_defaults=True):
    """scenario.toml. Frames are at `frames_seconds` after the first; `removed` names what left the tree, by frame."""

    origin: Origin
    about: str
    frames_seconds: tuple[float, ...]
    node: NodeShape
    layout: CgroupShape
    kernel: str = ""
    pods: tuple[ScenarioPod, ...] = ()
    removed: Mapping[str, tuple[str, ...]] = {}


class Frame(msgspec.Struct, frozen=True):
    """What one frame writes and takes away; paths are below the scenario's root."""

    files: Mapping[str, bytes]
    removed: tuple[str, ...] = ()


def cgroup_files(version: int) -> dict[str, tuple[str, ...]]:
    """By controller's mount ("" on v2), the files of each cgroup that a frame keeps."""
    sampled = [(kind.controller, name) for kind in FILES[version] for name in (kind.file, kind.leaf_file) if name]
    found: dict[str, tuple[str, ...]] = {}
    for controller, name in (*sampled, *_SHOWN[version]):
        found[controller] = (*found.get(controller, ()), name)
    return found


def difference(before: Mapping[str, bytes], after: Mapping[str, bytes]) -> Frame:
    """From one pass to the next; a directory that is gone is named once, not file by file."""
    changed = {path: text for path, text in after.items() if before.get(path) != text}
    existing = {parent for path in after for parent in _parents(path)}
    gone = {_top(path, existing) for path in before if path not in after}
    return Frame(changed, tuple(sorted(gone)))


def runtime_of(paths: Iterable[str], container_ids: Iterable[str] = ()) -> str:
    """The container runtime by the scheme of a container id, else by a directory's prefix; "" if neither tells."""
    for scheme, separator, _ in (text.partition("://") for text in container_ids):
        if separator:
            return scheme
    folders = {parent.rsplit("/", 1)[-1] for path in paths for parent in _parents(path)}
    return next((name for prefix, name in _RUNTIMES if any(f.startswith(prefix) for f in folders)), "")


def shape_of(name: str, stat: bytes, meminfo: bytes) -> NodeShape:
    """CPUs that /proc/stat lists and MemTotal. Raises ValueError where the files do not hold them."""
    cpus = sum(line[:3] == b"cpu" and line[3:4].isdigit() for line in stat.splitlines())
    total = next((line.split() for line in meminfo.splitlines() if line.startswith(b"MemTotal:")), [])
    if not cpus or len(total) != 3 or not total[1].isdigit():
        raise ValueError("neither CPUs nor memory can be read from stat and meminfo")
    return NodeShape(cpus * 1000, int(total[1]) * 1024, name)


def scenario_text(scenario: Scenario) -> str:
    """scenario.toml: plain values first, then the tables, an array of tables an entry at a time."""
    plain: list[str] = []
    tables: list[str] = []
    for key, value in msgspec.to_builtins(scenario).items():
        if isinstance(value, dict):
            tables.append(_table(f"[{_key(key)}]", value))
        elif isinstance(value, _ARRAY) and value and isinstance(value[0], dict):
            tables.extend(_table(f"[[{_key(key)}]]", entry) for entry in value)
        else:
            plain.append(f"{_key(key)} = {_value(value)}\n")
    return "".join(plain) + "".join(f"\n{table}" for table in tables)


def _table(header: str, entries: Mapping[str, Any]) -> str:
    return f"{header}\n" + "".join(f"{_key(key)} = {_value(value)}\n" for key, value in entries.items())


def _key(key: str) -> str:
    return key if key.replace("_", "").isalpha() else _value(key)


def _value(value: Any) -> str:
    """JSON's strings and numbers are TOML's too; its objects are not."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_key(key)} = {_value(item)}" for key, item in value.items()) + " }"
    if isinstance(value, _ARRAY):
        return "[" + ", ".join(_value(item) for item in value) + "]"
    return msgspec.json.encode(value).decode()


def _parents(path: str) -> list[str]:
    parts = path.split("/")
    return ["/".join(parts[:count]) for count in range(1, len(parts))]


def _top(path: str, existing: set[str]) -> str:
    """The uppermost directory of `path` that is gone, else the file."""
    return next((parent for parent in _parents(path) if parent not in existing), path)
