"""Control files by name, for both cgroup versions, and their text as one value each, in the form the table says.

On cgroup v2 `cpu.max` holds quota and period in one file; its number here is the quota counted per 100 ms, so that one
ceiling serves both versions. Source: kernel Documentation/admin-guide/cgroup-v2.rst, cgroup-v1/cpusets and sched-bwc.
"""

from __future__ import annotations

import msgspec

from agent.core.observe.knob_table import OOM_SCORE_FILE as OOM_SCORE_FILE
from agent.core.observe.knob_table import UNLIMITED as UNLIMITED
from agent.core.observe.knob_table import Form, row_of
from agent.core.observe.layout import Layout
from agent.core.observe.observation import Knob, Value
from agent.core.observe.parse import counter, whole_number, whole_percent
from model.topology import format_cpus, parse_cpus

PERIOD_US = 100_000
"""The period kubelet leaves in force; one milli-CPU is 100 us of quota."""
_US_PER_MILLI = 100
SMALLEST_QUOTA_US = 1000
"""The kernel refuses less (kernel/sched/core.c: min_cfs_quota_period)."""
_SHORTEST_PERIOD_US = 1000
LARGEST_QUOTA_US = (1 << 44) - 1
"""Bounds of the kernel's own (kernel/sched/core.c: min_cfs_quota_period, max_cfs_runtime)."""
_LARGEST_PAGE_BYTES = 1 << 16
_UNLIMITED_MEMORY_BYTES = (1 << 63) - _LARGEST_PAGE_BYTES
"""cgroup v1 has no word for it: it says the largest whole number of pages."""
CPUSET_FILE = "cpuset.cpus"
IDLE_FILE = "cpu.idle"
PIDS_FILE = "pids.max"
CGROUPS_FILE = "cgroup.max.descendants"
PERIOD_FILE = "cpu.cfs_period_us"
_BYTES = (Form.BYTES_V1, Form.BYTES)
_SAYS_MAX = (Form.COUNT, Form.BYTES, Form.QUOTA)
V1_QUOTA_FILE = "cpu.cfs_quota_us"
V2_QUOTA_FILE = "cpu.max"
V1_BURST_FILE = "cpu.cfs_burst_us"
V2_BURST_FILE = "cpu.max.burst"
MEMORY_MIN_FILE, MEMORY_LOW_FILE, MEMORY_HIGH_FILE = "memory.min", "memory.low", "memory.high"
OOM_GROUP_FILE = "memory.oom.group"
PRIORITY_FILE, USE_PRIORITY_FILE = "memory.priority", "memory.use_priority_oom"
WMARK_RATIO_FILE, WMARK_SCALE_FILE = "memory.wmark_ratio", "memory.wmark_scale_factor"
WMARK_ADJ_FILE = "memory.wmark_min_adj"
VENDOR_MEMORY_FILES = frozenset((PRIORITY_FILE, USE_PRIORITY_FILE, WMARK_RATIO_FILE, WMARK_SCALE_FILE, WMARK_ADJ_FILE))
"""What Anolis' kernel has, of both versions, and mainline has not."""
MEMORY_QOS_FILES = frozenset((MEMORY_MIN_FILE, MEMORY_LOW_FILE, MEMORY_HIGH_FILE, OOM_GROUP_FILE, *VENDOR_MEMORY_FILES))
IDENTITY_FILE = "cpu.bvt_warp_ns"
CLAMP_MIN_FILE, CLAMP_MAX_FILE = "cpu.uclamp.min", "cpu.uclamp.max"
CPU_QOS_FILES = frozenset((IDENTITY_FILE, CLAMP_MIN_FILE, CLAMP_MAX_FILE))
"""What CPU QoS and utilization clamps alone write: Anolis' kernels have the first, those with
CONFIG_UCLAMP_TASK_GROUP the others, of both versions."""


class FixedKnob(msgspec.Struct, frozen=True):
    """A knob with one right value, verified each tick."""

    knob: Knob
    value: int


class RootKnobs(msgspec.Struct, frozen=True):
    """The best-effort root's CPU ceiling, the knobs that are held at one value, and those some policies use.

    `memory_high` is None on v1, which has no such limit.
    """

    quota: Knob
    fixed: tuple[FixedKnob, ...]
    cpuset: Knob
    idle: Knob
    pids: Knob
    memory_high: Knob | None

    @classmethod
    def of(cls, layout: Layout) -> RootKnobs:
        """The kernel's smallest weight (kubelet's choice for best effort), and on v1 the period the quota counts on."""
        root = layout.best_effort
        cpuset, pids = cpuset_knob(layout, root), pids_knob(layout, root)
        if layout.version == 2:
            weight = FixedKnob(shares_knob(layout, root), 1)
            idle, high = Knob(root, "", IDLE_FILE), Knob(root, "", "memory.high")
            return cls(quota_knob(layout, root), (weight,), cpuset, idle, pids, high)
        period = FixedKnob(Knob(root, "cpu", PERIOD_FILE), PERIOD_US)
        weight = FixedKnob(shares_knob(layout, root), 2)
        return cls(quota_knob(layout, root), (period, weight), cpuset, Knob(root, "cpu", IDLE_FILE), pids, None)

    @property
    def always(self) -> tuple[Knob, ...]:
        """What holds a value of ours under every policy."""
        return (self.quota, *(fixed.knob for fixed in self.fixed), self.pids)

    @property
    def all(self) -> tuple[Knob, ...]:
        """What is read each tick."""
        high = () if self.memory_high is None else (self.memory_high,)
        return (self.quota, *(fixed.knob for fixed in self.fixed), self.cpuset, self.idle, self.pids, *high)


def quota_knob(layout: Layout, cgroup: str) -> Knob:
    """CPU time per period."""
    return Knob(cgroup, "", V2_QUOTA_FILE) if layout.version == 2 else Knob(cgroup, "cpu", V1_QUOTA_FILE)


def burst_knob(layout: Layout, cgroup: str) -> Knob:
    """CPU time of earlier periods that may be spent in one, on top of its quota."""
    return Knob(cgroup, "", V2_BURST_FILE) if layout.version == 2 else Knob(cgroup, "cpu", V1_BURST_FILE)


def quota_of(burst: Knob) -> Knob:
    """The quota that a burst is bounded by."""
    return Knob(burst.cgroup, burst.controller, V2_QUOTA_FILE if burst.file == V2_BURST_FILE else V1_QUOTA_FILE)


def shares_knob(layout: Layout, cgroup: str) -> Knob:
    """What a cgroup gets against its siblings."""
    return Knob(cgroup, "", "cpu.weight") if layout.version == 2 else Knob(cgroup, "cpu", "cpu.shares")


def memory_knob(layout: Layout, cgroup: str) -> Knob:
    """The most a cgroup may be charged with before the kernel kills in it."""
    return Knob(cgroup, "", "memory.max") if layout.version == 2 else Knob(cgroup, "memory", "memory.limit_in_bytes")


def memory_qos_knob(layout: Layout, cgroup: str, file: str) -> Knob:
    """One of MEMORY_QOS_FILES."""
    return Knob(cgroup, "" if layout.version == 2 else "memory", file)


def cpu_qos_knob(layout: Layout, cgroup: str, file: str) -> Knob:
    """One of CPU_QOS_FILES, or `cpu.idle`."""
    return Knob(cgroup, "" if layout.version == 2 else "cpu", file)


def oom_score_knob(layout: Layout, cgroup: str) -> Knob:
    """Whom the kernel kills first: the highest of a cgroup's processes, all of them once it is written."""
    return Knob(cgroup, "" if layout.version == 2 else "memory", OOM_SCORE_FILE)


def cpuset_knob(layout: Layout, cgroup: str) -> Knob:
    """The CPUs a cgroup's processes may run on."""
    return Knob(cgroup, "" if layout.version == 2 else "cpuset", CPUSET_FILE)


def cgroups_knob(cgroup: str) -> Knob:
    """How many cgroups there may be below one, at all depths; v2 alone."""
    return Knob(cgroup, "", CGROUPS_FILE)


def pids_knob(layout: Layout, cgroup: str) -> Knob:
    """How many processes and threads a cgroup may have."""
    return Knob(cgroup, "" if layout.version == 2 else "pids", PIDS_FILE)


def is_quota(knob: Knob) -> bool:
    """Of either version."""
    return knob.file in (V1_QUOTA_FILE, V2_QUOTA_FILE)


def is_granted(quota_us: int) -> bool:
    """Whole milli-CPU in a period, as the kubelet writes an online pod's quota; one that we raised never is."""
    return quota_us % _US_PER_MILLI == 0


def is_online_quota(knob: Knob) -> bool:
    """Of a pod or container outside best effort's root, by the names that kubelets give."""
    of_pod = any(part.startswith("pod") or "-pod" in part for part in knob.cgroup.split("/"))
    return is_quota(knob) and of_pod and not is_below_best_effort(knob)


def is_below_best_effort(knob: Knob) -> bool:
    """Of the best-effort root or of what is below it, by the names that kubelets give."""
    return any(part == "besteffort" or part.endswith("-besteffort.slice") for part in knob.cgroup.split("/"))


def is_of_kubelet(knob: Knob, value: Value) -> bool:
    """An online pod's quota as the kubelet wrote it, whoever wrote it before."""
    return is_online_quota(knob) and isinstance(value, int) and is_granted(value)


def is_burst(knob: Knob) -> bool:
    """Of either version."""
    return knob.file in (V1_BURST_FILE, V2_BURST_FILE)


def is_v1_quota(knob: Knob) -> bool:
    """No quota may exceed the one above it; -1 stands for what is above."""
    return knob.file == V1_QUOTA_FILE


def is_v1_cpuset(knob: Knob) -> bool:
    """A cgroup holds every CPU of its children, always."""
    return knob.file == CPUSET_FILE and knob.controller != ""


def is_memory_limit(knob: Knob) -> bool:
    """Lowering it may take as long as reclaiming does."""
    return row_of(knob).reclaims


def may_take_long(knob: Knob) -> bool:
    """To write it takes as long as reclaiming does, or as whoever changes the tree of cgroups has that locked: a batch
    pod that may write cgroups of its own, and has no CPU meanwhile, has it for seconds."""
    return is_memory_limit(knob) or knob.file == CGROUPS_FILE


def value_of(knob: Knob, text: bytes) -> Value:
    """What the file says: a CPU list as the kernel prints it, else a number. Raises ValueError saying what is wrong."""
    form = row_of(knob).form
    if form is Form.CPUS:
        return format_cpus(parse_cpus(text.decode(errors="replace")))
    if form is Form.QUOTA:
        return quota_per_period(text)
    if form in (Form.NUMBER, Form.SIGNED):
        return whole_number(text)
    if form is Form.PERCENT:
        return whole_percent(text)
    number = UNLIMITED if text.strip() == b"max" else counter(text)
    return UNLIMITED if form in _BYTES and number >= _UNLIMITED_MEMORY_BYTES else number


def quota_per_period(text: bytes) -> int:
    """The quota of a `cpu.max`, counted per 100 ms. Raises ValueError."""
    quota, _, period = text.partition(b" ")
    length = whole_number(period)
    amount = UNLIMITED if quota == b"max" else whole_number(quota)
    if length < _SHORTEST_PERIOD_US or not UNLIMITED <= amount <= LARGEST_QUOTA_US:
        raise ValueError(f"{text[:60]!r} is not a quota and a period")
    return amount if amount == UNLIMITED else amount * PERIOD_US // length


def text_of(knob: Knob, value: Value) -> str:
    """What to write so that the kernel holds `value`."""
    form = row_of(knob).form
    text = "max" if value == UNLIMITED and form in _SAYS_MAX else str(value)
    return f"{text} {PERIOD_US}" if form is Form.QUOTA else text


def same(knob: Knob, held: Value, wanted: Value) -> bool:
    """The kernel holds what was wanted; of bytes it keeps whole pages."""
    if held == wanted or isinstance(held, str) or isinstance(wanted, str) or row_of(knob).form not in _BYTES:
        return held == wanted
    return UNLIMITED not in (held, wanted) and 0 <= wanted - held < _LARGEST_PAGE_BYTES
