"""Knob table: every control file the agent writes, how its text is read, and which strategy owns it where.

A control file of one place has one owner: there is one entry for it (docs/adr/0040). A strategy that begins to write
a file adds a row, or a place to one.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from functools import lru_cache

import msgspec

from agent.core.observe.layout import Layout
from agent.core.observe.observation import Knob, Value
from model.decision import Unit

UNLIMITED = -1
OOM_SCORE_FILE = "oom_score_adj"
"""No file of the kernel's: `agent/files` makes one of what all processes of a cgroup have."""


class Strategy(StrEnum):
    """What decides a control file's value; `stays`: only `--restore` lifts it (best effort's ceiling, own CPUs).

    Knobs of any other get their originals back once nothing wants them any more.
    """

    CPU_SUPPRESS = "cpuSuppress"
    CPU_WEIGHT = "cpuWeight"
    CPU_IDLE = "cpuIdle"
    MEMORY_HEADROOM = "memoryHeadroom"
    PROCESS_LIMITS = "processLimits"
    BATCH_RESOURCES = "batchResources"
    CPU_BURST = "cpuBurst"
    MEMORY_QOS = "memoryQos"
    CPU_QOS = "cpuQos"
    UCLAMP = "uclamp"
    OOM_SCORES = "oomScores"
    OWN_CPUS = "ownCpus"

    @property
    def stays(self) -> bool:
        return self in _STAYING


_STAYING = frozenset((Strategy.CPU_SUPPRESS, Strategy.CPU_WEIGHT, Strategy.BATCH_RESOURCES, Strategy.OWN_CPUS))


class Place(StrEnum):
    """Which cgroup a control file belongs to; `BEST_EFFORT` is the best-effort root."""

    KUBEPODS = "kubepods"
    BURSTABLE = "burstable"
    BEST_EFFORT = "best effort"
    ONLINE_POD = "online pod"
    ONLINE_CONTAINER = "online container"
    BEST_EFFORT_POD = "best-effort pod"
    BEST_EFFORT_CONTAINER = "best-effort container"


class Form(StrEnum):
    """How a control file's text stands for a value.

    A number (`-1`: unlimited); one of which -1 is below 0; percent (`max`: 100); a number or `max`; bytes in whole
    pages, of v1 or v2; quota and period; a CPU list.
    """

    NUMBER = "number"
    SIGNED = "signed number"
    PERCENT = "percent or max"
    COUNT = "number or max"
    BYTES_V1 = "bytes"
    BYTES = "bytes or max"
    QUOTA = "quota and period"
    CPUS = "CPU list"


class More(StrEnum):
    """Which values give best effort more, or take protection away from online pods."""

    HIGHER = "higher"
    LOWER = "lower"


class KnobRow(msgspec.Struct, frozen=True):
    """One file of one cgroup version (`controller` is empty on v2), and its owner by place.

    `unit` is that of a decision on it. `reclaims`: a write may take as long as the kernel reclaims. `neutral` is the
    value that limits and protects nobody, None where there is none. `since` is the first Linux that has the file, where
    that is newer than the cgroup version. A signed number is for all pods, and `more` is of best effort; of online pods
    it is the other direction that takes protection away.
    """

    controller: str
    file: str
    form: Form
    unit: Unit
    owners: Mapping[Place, Strategy]
    more: More = More.HIGHER
    reclaims: bool = False
    neutral: Value | None = None
    since: str = ""

    @property
    def version(self) -> int:
        return 1 if self.controller else 2


_BATCH = {
    Place.BEST_EFFORT_POD: Strategy.BATCH_RESOURCES,
    Place.BEST_EFFORT_CONTAINER: Strategy.BATCH_RESOURCES,
}
_BURST = {Place.ONLINE_POD: Strategy.CPU_BURST, Place.ONLINE_CONTAINER: Strategy.CPU_BURST}
_QUOTA = {Place.BEST_EFFORT: Strategy.CPU_SUPPRESS, **_BATCH, **_BURST}
_WEIGHT = {Place.BEST_EFFORT: Strategy.CPU_WEIGHT, **_BATCH}
_LIST = {Place.BEST_EFFORT: Strategy.CPU_SUPPRESS, Place.ONLINE_CONTAINER: Strategy.OWN_CPUS}
_LISTS = {
    **_LIST,
    Place.BEST_EFFORT_POD: Strategy.CPU_SUPPRESS,
    Place.BEST_EFFORT_CONTAINER: Strategy.CPU_SUPPRESS,
}
_PERIOD = {Place.BEST_EFFORT: Strategy.CPU_WEIGHT}
_IDLE = {Place.BEST_EFFORT: Strategy.CPU_IDLE, Place.BEST_EFFORT_POD: Strategy.CPU_QOS}
_QOS_ONLINE = {Place.ONLINE_POD: Strategy.MEMORY_QOS, Place.ONLINE_CONTAINER: Strategy.MEMORY_QOS}
_QOS_CONTAINERS = {
    Place.ONLINE_CONTAINER: Strategy.MEMORY_QOS,
    Place.BEST_EFFORT_CONTAINER: Strategy.MEMORY_QOS,
}
_QOS = {Place.BEST_EFFORT_POD: Strategy.MEMORY_QOS, **_QOS_ONLINE, **_QOS_CONTAINERS}
_TIERS = {Place.KUBEPODS: Strategy.MEMORY_QOS, Place.BURSTABLE: Strategy.MEMORY_QOS}
_KEPT = {**_TIERS, **_QOS_ONLINE}
_PRIORITIES = {Place.BEST_EFFORT: Strategy.MEMORY_QOS, **_TIERS, **_QOS}
_HIGH = {Place.BEST_EFFORT: Strategy.MEMORY_HEADROOM, **_QOS_CONTAINERS}
_BELOW_KUBEPODS = tuple(place for place in Place if place is not Place.KUBEPODS)
_IDENTITY: Mapping[Place, Strategy] = dict.fromkeys(_BELOW_KUBEPODS, Strategy.CPU_QOS)
_ONLINE = (Place.KUBEPODS, Place.BURSTABLE, Place.ONLINE_POD, Place.ONLINE_CONTAINER)
_CLAMP_MIN: Mapping[Place, Strategy] = dict.fromkeys(_ONLINE, Strategy.UCLAMP)
_CLAMP_MAX = {Place.BEST_EFFORT: Strategy.UCLAMP}
_SCORES = {Place.ONLINE_CONTAINER: Strategy.OOM_SCORES, Place.BEST_EFFORT_CONTAINER: Strategy.OOM_SCORES}
_PIDS = {Place.BEST_EFFORT: Strategy.PROCESS_LIMITS, Place.BEST_EFFORT_POD: Strategy.PROCESS_LIMITS}
_CGROUPS = {Place.BEST_EFFORT: Strategy.PROCESS_LIMITS, Place.BEST_EFFORT_POD: Strategy.PROCESS_LIMITS}

TABLE = (
    KnobRow("cpu", "cpu.cfs_quota_us", Form.NUMBER, Unit.MICROSECONDS, _QUOTA, neutral=UNLIMITED),
    KnobRow("", "cpu.max", Form.QUOTA, Unit.MICROSECONDS, _QUOTA, neutral=UNLIMITED),
    KnobRow("cpu", "cpu.cfs_burst_us", Form.NUMBER, Unit.MICROSECONDS, _BURST, neutral=0, since="5.14"),
    KnobRow("", "cpu.max.burst", Form.NUMBER, Unit.MICROSECONDS, _BURST, neutral=0, since="5.14"),
    KnobRow("cpu", "cpu.cfs_period_us", Form.NUMBER, Unit.MICROSECONDS, _PERIOD, More.LOWER),
    KnobRow("cpu", "cpu.shares", Form.NUMBER, Unit.SHARES, _WEIGHT),
    KnobRow("", "cpu.weight", Form.NUMBER, Unit.WEIGHT, _WEIGHT),
    KnobRow("cpu", "cpu.idle", Form.NUMBER, Unit.WEIGHT, _IDLE, More.LOWER, neutral=0, since="5.15"),
    KnobRow("", "cpu.idle", Form.NUMBER, Unit.WEIGHT, _IDLE, More.LOWER, neutral=0, since="5.15"),
    *(
        row
        for controller in ("cpu", "")
        for row in (
            KnobRow(controller, "cpu.bvt_warp_ns", Form.SIGNED, Unit.NUMBER, _IDENTITY, neutral=0),
            KnobRow(
                controller,
                "cpu.uclamp.min",
                Form.PERCENT,
                Unit.PERCENT,
                _CLAMP_MIN,
                More.LOWER,
                neutral=0,
                since="5.4",
            ),
            KnobRow(controller, "cpu.uclamp.max", Form.PERCENT, Unit.PERCENT, _CLAMP_MAX, neutral=100, since="5.4"),
        )
    ),
    KnobRow("cpuset", "cpuset.cpus", Form.CPUS, Unit.CPUS, _LISTS),
    KnobRow("", "cpuset.cpus", Form.CPUS, Unit.CPUS, _LIST, neutral=""),
    KnobRow("memory", "memory.limit_in_bytes", Form.BYTES_V1, Unit.BYTES, _BATCH, reclaims=True, neutral=UNLIMITED),
    KnobRow("", "memory.max", Form.BYTES, Unit.BYTES, _BATCH, reclaims=True, neutral=UNLIMITED),
    KnobRow("", "memory.high", Form.BYTES, Unit.BYTES, _HIGH, reclaims=True, neutral=UNLIMITED),
    KnobRow("memory", "memory.high", Form.BYTES, Unit.BYTES, _QOS_CONTAINERS, reclaims=True, neutral=UNLIMITED),
    *(
        row
        for controller in ("memory", "")
        for row in (
            KnobRow(controller, "memory.min", Form.BYTES, Unit.BYTES, _KEPT, More.LOWER, neutral=0),
            KnobRow(controller, "memory.low", Form.BYTES, Unit.BYTES, _KEPT, More.LOWER, neutral=0),
            KnobRow(controller, OOM_SCORE_FILE, Form.SIGNED, Unit.NUMBER, _SCORES, More.LOWER),
            KnobRow(controller, "memory.oom.group", Form.NUMBER, Unit.NUMBER, _QOS, neutral=0),
            KnobRow(controller, "memory.wmark_ratio", Form.NUMBER, Unit.NUMBER, _QOS, neutral=0),
            KnobRow(controller, "memory.wmark_scale_factor", Form.NUMBER, Unit.NUMBER, _QOS, neutral=50),
            KnobRow(controller, "memory.wmark_min_adj", Form.NUMBER, Unit.NUMBER, _QOS, neutral=0),
            KnobRow(controller, "memory.priority", Form.NUMBER, Unit.NUMBER, _PRIORITIES, neutral=0),
            KnobRow(controller, "memory.use_priority_oom", Form.NUMBER, Unit.NUMBER, _PRIORITIES, neutral=0),
        )
    ),
    KnobRow("pids", "pids.max", Form.COUNT, Unit.PIDS, _PIDS, neutral=UNLIMITED),
    KnobRow("", "pids.max", Form.COUNT, Unit.PIDS, _PIDS, neutral=UNLIMITED),
    KnobRow("", "cgroup.max.descendants", Form.COUNT, Unit.NUMBER, _CGROUPS, neutral=UNLIMITED, since="4.14"),
)
_ROWS = {(row.controller, row.file): row for row in TABLE}


def row_of(knob: Knob) -> KnobRow:
    """The knob's row. Raises ValueError for a file that no strategy writes."""
    row = _ROWS.get((knob.controller, knob.file))
    if row is None:
        raise ValueError(f"{knob.file!r} is no control file of ours")
    return row


def place_of(layout: Layout, cgroup: str) -> Place | None:
    """Where in the tree of pods a cgroup is; None outside it. What is below a container counts as the container's."""
    path = f"{cgroup}/"
    for root, depth, places in _roots(layout):
        if path.startswith(root):
            return places[min(cgroup.count("/") - depth, 2)]
    return None


@lru_cache(maxsize=4)
def _roots(layout: Layout) -> tuple[tuple[str, int, tuple[Place, Place, Place]], ...]:
    """A node has one layout; thousands of files are looked up."""
    roots = {
        layout.best_effort: (Place.BEST_EFFORT, Place.BEST_EFFORT_POD, Place.BEST_EFFORT_CONTAINER),
        layout.burstable: (Place.BURSTABLE, Place.ONLINE_POD, Place.ONLINE_CONTAINER),
        layout.root: (Place.KUBEPODS, Place.ONLINE_POD, Place.ONLINE_CONTAINER),
    }
    return tuple((f"{root}/", root.count("/"), places) for root, places in roots.items())


def owner_of(layout: Layout, knob: Knob) -> Strategy | None:
    """The strategy whose word the knob holds; None where no strategy may write it."""
    row, place = _ROWS.get((knob.controller, knob.file)), place_of(layout, knob.cgroup)
    return row.owners.get(place) if row is not None and place is not None else None
