"""Strategies of lending and taking back: the settings of Koordinator's API, with our defaults.

Names follow Koordinator's ConfigMap `slo-controller-config` and NodeSLO; percentages are 0 to 100. Ranges stand in the
field's type: msgspec checks them on decoding and names the field, and docs/settings.md is generated from them.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import msgspec
from msgspec import Meta


class CalculatePolicy(StrEnum):
    """What of the higher-priority pods is kept free (Koordinator cpuCalculatePolicy, memoryCalculatePolicy)."""

    USAGE = "usage"
    REQUEST = "request"
    MAX_USAGE_REQUEST = "maxUsageRequest"


class MemoryCollectPolicy(StrEnum):
    """Which memory counts as used (Koordinator nodeMemoryCollectPolicy)."""

    WITHOUT_PAGE_CACHE = "usageWithoutPageCache"
    WITH_HOT_PAGE_CACHE = "usageWithHotPageCache"
    WITH_PAGE_CACHE = "usageWithPageCache"


class MidMode(StrEnum):
    """Where mid resources come from: the prediction of production peaks, or a fixed share of the node."""

    PREDICTION = ""
    STATIC = "static"


_Share = Annotated[int, Meta(ge=0, le=100)]


class ColocationStrategy(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What may be lent (Koordinator ColocationStrategy; defaults of pkg/util/sloconfig)."""

    enable: Annotated[bool, Meta(description="Lend at all; off removes the batch and mid resources.")] = True
    cpu_reclaim_threshold_pct: Annotated[
        int, Meta(ge=0, le=1000, description="Share of CPU capacity that may be in use, lending included.")
    ] = 60
    memory_reclaim_threshold_pct: Annotated[
        int, Meta(ge=0, le=1000, description="Share of memory capacity that may be in use, lending included.")
    ] = 65
    cpu_policy: Annotated[
        CalculatePolicy, Meta(description="What of higher-priority pods' CPU is kept free: usage or maxUsageRequest.")
    ] = CalculatePolicy.USAGE
    memory_policy: Annotated[
        CalculatePolicy, Meta(description="What of higher-priority pods' memory is kept free.")
    ] = CalculatePolicy.USAGE
    batch_cpu_threshold_pct: Annotated[
        Annotated[int, Meta(ge=0)] | None, Meta(description="Cap of batch-cpu as a share of capacity; none: no cap.")
    ] = None
    batch_memory_threshold_pct: Annotated[
        Annotated[int, Meta(ge=0)] | None, Meta(description="Cap of batch-memory as a share of capacity; none: no cap.")
    ] = None
    mid_mode: Annotated[MidMode, Meta(description="Empty: from predicted peaks; static: a fixed share.")] = (
        MidMode.PREDICTION
    )
    mid_cpu_threshold_pct: Annotated[_Share, Meta(description="Cap of mid-cpu as a share of capacity.")] = 100
    mid_memory_threshold_pct: Annotated[_Share, Meta(description="Cap of mid-memory as a share of capacity.")] = 100
    mid_unallocated_pct: Annotated[_Share, Meta(description="Share of what nobody requested that is lent as mid.")] = 0
    mid_static_cpu_reserved_pct: Annotated[_Share, Meta(description="mid-cpu in static mode.")] = 0
    mid_static_memory_reserved_pct: Annotated[_Share, Meta(description="mid-memory in static mode.")] = 0
    memory_collect_policy: Annotated[MemoryCollectPolicy, Meta(description="Which memory counts as used.")] = (
        MemoryCollectPolicy.WITHOUT_PAGE_CACHE
    )
    aggregate_seconds: Annotated[float, Meta(ge=10, le=3600, description="Window of NodeMetric's averages.")] = 300.0
    aggregate_durations_seconds: Annotated[
        tuple[Annotated[float, Meta(ge=10, le=3600)], ...],
        Meta(max_length=6, description="Windows of the percentiles in NodeMetric."),
    ] = (300.0, 600.0, 1800.0)
    report_seconds: Annotated[float, Meta(ge=1, le=3600, description="How often NodeMetric is written.")] = 60.0
    live_window_seconds: Annotated[
        float, Meta(ge=5, le=600, description="Window by which lending shrinks; growing follows the aggregate window.")
    ] = 10.0
    degrade_seconds: Annotated[
        float, Meta(ge=60, le=86_400, description="Older facts lend nothing (Koordinator degradeTimeMinutes).")
    ] = 900.0
    update_interval_seconds: Annotated[
        float, Meta(ge=10, le=3600, description="Even small changes are published this often.")
    ] = 300.0
    resource_diff_ratio: Annotated[
        float,
        Meta(
            ge=0,
            le=1,
            description="Growth beyond this is published soon; shrinking beyond this, or beyond 0.1 where that is "
            "less, at once.",
        ),
    ] = 0.1

    def __post_init__(self) -> None:
        if self.live_window_seconds > self.aggregate_seconds:
            raise ValueError("live_window_seconds must not exceed aggregate_seconds")


class SuppressPolicy(StrEnum):
    """How best effort's CPU is held: Koordinator's two, and ours, a quota near the whole node that counts by cgroups.

    CPUSET alone limits CPUs instead of time.
    """

    ADAPTIVE = "adaptive"
    CFS_QUOTA = "cfsQuota"
    CPUSET = "cpuset"


class SuppressStrategy(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How far best-effort CPU may go (NodeSLO resourceUsedThresholdWithBE).

    The default is a cap that best effort does not meet while online use stays within requests, since the weight already
    protects that (docs/adr/0003, docs/adr/0047); Koordinator's own default is 65.
    """

    enable: Annotated[bool, Meta(description="Hold a CPU ceiling on best effort.")] = True
    threshold_pct: Annotated[
        _Share | None,
        Meta(
            description="Share of the node online, system and best-effort CPU may use together; "
            "none: 65 with cfsQuota and cpuset; with adaptive online use counts only beyond requests then."
        ),
    ] = None
    min_pct: Annotated[
        _Share | None, Meta(description="Best effort's floor, as a share of the node; none: 0.02 CPU.")
    ] = None
    policy: Annotated[
        SuppressPolicy,
        Meta(description="adaptive: weight first, quota near the whole node; cfsQuota and cpuset: as Koordinator."),
    ] = SuppressPolicy.ADAPTIVE
    cpu_idle: Annotated[
        bool,
        Meta(
            description="Set cpu.idle on the best-effort root. Only where nobody else writes its weight: "
            "every write of it then fails, and the kubelet's does each minute."
        ),
    ] = False
    online_stall_pct: Annotated[
        _Share | None,
        Meta(
            description="Online pods, or the node's services, waiting for CPU this share of the time are suffering: "
            "cut at once; none: never."
        ),
    ] = 60
    online_throttled_pct: Annotated[
        _Share | None,
        Meta(description="Online pods throttled in this share of their periods are suffering; none: never."),
    ] = 50

    pids_pct: Annotated[
        Annotated[int, Meta(ge=1, le=100)] | None,
        Meta(
            description="Best effort's share of the processes and threads there may be (the least of kernel.pid_max, "
            "kernel.threads-max and kubepods' pids.max); no more than with three numbers each leave others theirs of "
            "kernel.pid_max; none: no limit."
        ),
    ] = 50
    pod_pids_pct: Annotated[
        Annotated[int, Meta(ge=1, le=100)] | None,
        Meta(description="Each batch pod's share of best effort's; none: no limit of single pods."),
    ] = 25
    pod_cgroups: Annotated[
        Annotated[int, Meta(ge=16, le=1_000_000)] | None,
        Meta(description="Cgroups that a batch pod may have below its own, on cgroup v2; none: no limit."),
    ] = 1000

    @property
    def weight_first(self) -> bool:
        """Online use within requests is left to weights: without a threshold of its own."""
        return self.policy is SuppressPolicy.ADAPTIVE and self.threshold_pct is None

    @property
    def ceiling_pct(self) -> int:
        """The threshold with its default (Koordinator cpuSuppressThresholdPercent: 65)."""
        if self.threshold_pct is not None:
            return self.threshold_pct
        return 99 if self.policy is SuppressPolicy.ADAPTIVE else 65


class CpuLimitPolicy(StrEnum):
    """What best effort's satisfaction is measured against (Koordinator cpuEvictPolicy)."""

    REAL_LIMIT = "evictByRealLimit"
    ALLOCATABLE = "evictByAllocatable"


class EvictionStrategy(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """When best-effort pods are evicted (NodeSLO resourceUsedThresholdWithBE; docs/adr/0010 for our own defaults).

    A rule whose percentages are none is off. A lower percentage of none is two below its threshold where that has one.
    """

    enable: Annotated[
        bool, Meta(description="Evict best-effort pods at all; off here is off, whatever documents say.")
    ] = True
    memory_threshold_pct: Annotated[
        _Share | None, Meta(description="Node memory in use that starts evicting; none: never.")
    ] = 70
    memory_lower_pct: Annotated[_Share | None, Meta(description="Evict until this much is in use.")] = None
    memory_allocatable_threshold_pct: Annotated[
        Annotated[int, Meta(ge=0)] | None, Meta(description="Requests of evictable pods as a share of what is lent.")
    ] = None
    memory_allocatable_lower_pct: Annotated[
        Annotated[int, Meta(ge=0)] | None, Meta(description="Evict until their requests are this share.")
    ] = None
    cpu_satisfaction_lower_pct: Annotated[
        Annotated[int, Meta(gt=0, le=60)] | None,
        Meta(description="Best effort gets no more than this share of the CPU it asked for: evict."),
    ] = None
    cpu_satisfaction_upper_pct: Annotated[
        Annotated[int, Meta(gt=0, lt=100)] | None, Meta(description="Evict until it gets this share.")
    ] = None
    cpu_be_usage_threshold_pct: Annotated[
        _Share, Meta(description="Only while best effort uses this share of what it may.")
    ] = 90
    cpu_window_seconds: Annotated[
        Annotated[float, Meta(gt=0, le=3600)] | None, Meta(description="Averages of the CPU rules; none: one tick.")
    ] = None
    cpu_threshold_pct: Annotated[_Share | None, Meta(description="Node CPU in use that starts evicting.")] = None
    cpu_lower_pct: Annotated[_Share | None, Meta(description="Evict until this much is in use.")] = None
    cpu_allocatable_threshold_pct: Annotated[
        Annotated[int, Meta(ge=0)] | None, Meta(description="Requests of evictable pods as a share of what is lent.")
    ] = None
    cpu_allocatable_lower_pct: Annotated[
        Annotated[int, Meta(ge=0)] | None, Meta(description="Evict until their requests are this share.")
    ] = None
    cpu_limit_policy: Annotated[CpuLimitPolicy, Meta(description="What satisfaction is measured against.")] = (
        CpuLimitPolicy.REAL_LIMIT
    )
    priority_threshold: Annotated[
        int | None, Meta(description="CPUEvict and MemoryEvict touch pods of this priority and below; none: off.")
    ] = None
    allocatable_priority_threshold: Annotated[
        Annotated[int, Meta(le=7999)] | None, Meta(description="The same for the rules by requests; none: off.")
    ] = None
    cpu_cooldown_seconds: Annotated[float, Meta(ge=0, le=3600, description="Rest after an eviction for CPU.")] = 20.0
    memory_cooldown_seconds: Annotated[float, Meta(ge=0, le=3600, description="Rest after an eviction for memory.")] = (
        4.0
    )
    thrash_full_pct: Annotated[
        _Share | None,
        Meta(description="All tasks waiting for memory this share of the time is thrashing: evict without grace."),
    ] = 10
    thrash_refault_pct: Annotated[
        Annotated[int, Meta(ge=1, le=1000)] | None,
        Meta(
            description="Online pods reading back, within 10 s, this share of what memory is left, after it was taken "
            "from them, is thrashing too; none: not watched."
        ),
    ] = 50
    last_resort_pct: Annotated[
        _Share | None,
        Meta(
            description="Less memory available than this share (100 MiB at least, 4 GiB at most): "
            "kill a best-effort pod on the spot; none: never."
        ),
    ] = 3
    least_help_pct: Annotated[
        _Share,
        Meta(
            description="Nobody is evicted or killed where all possible victims free less than this share of what is "
            "missing, or of what is left of memory where that is less; 0: whoever frees anything goes."
        ),
    ] = 5
    shrink_margin_pct: Annotated[
        _Share | None,
        Meta(
            description="Cold memory of best-effort pods is reclaimed from so many percent of the node below "
            "memory_threshold_pct on (cgroup v2 with swap); none: never."
        ),
    ] = 3
    longest_shrink_seconds: Annotated[
        float,
        Meta(ge=0, le=600, description="Evictions for memory in use wait at most this long while that frees memory."),
    ] = 30.0
    longest_notice_seconds: Annotated[
        float, Meta(ge=0, le=600, description="A pod that asks for notice gets at most this long.")
    ] = 60.0
    longest_grace_seconds: Annotated[
        float,
        Meta(
            ge=1,
            le=86_400,
            description="An evicted pod gets at most this long to end, whatever its terminationGracePeriodSeconds; "
            "nobody's end is believed in for longer.",
        ),
    ] = 300.0

    def grace_seconds(self, wanted: float) -> float:
        """What a pod that wants so long to end gets of it."""
        return min(wanted, self.longest_grace_seconds)


class BurstPolicy(StrEnum):
    """What online containers with a CPU limit may do beyond it (Koordinator cpuBurstStrategy.policy)."""

    NONE = "none"
    CPU_BURST = "cpuBurstOnly"
    QUOTA_BURST = "cfsQuotaBurstOnly"
    AUTO = "auto"

    @property
    def saves_up(self) -> bool:
        """The kernel lets them spend later what they left of their quota: cpu.max.burst."""
        return self in (BurstPolicy.CPU_BURST, BurstPolicy.AUTO)

    @property
    def raises(self) -> bool:
        """Throttled ones get a larger quota for a while: cpu.max."""
        return self in (BurstPolicy.QUOTA_BURST, BurstPolicy.AUTO)


class BurstStrategy(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """CPU bursts of online containers (NodeSLO cpuBurstStrategy; defaults of Koordinator's pkg/util/sloconfig)."""

    policy: Annotated[
        BurstPolicy,
        Meta(
            description="cpuBurstOnly: online containers spend later what they left of their CPU limit; "
            "cfsQuotaBurstOnly: throttled ones get more while shared CPUs are idle; auto: both; none."
        ),
    ] = BurstPolicy.NONE
    cpu_pct: Annotated[
        int, Meta(ge=1, le=10_000, description="What may be saved up for a burst, as a share of one period's limit.")
    ] = 1000
    quota_pct: Annotated[
        int, Meta(ge=100, le=100_000, description="How far a quota may be raised, as a share of the limit.")
    ] = 300
    quota_seconds: Annotated[
        int,
        Meta(
            ge=-1,
            le=86_400,
            description="For so long a container that saved all it may can use quota_pct; 0: not at all, -1: no end.",
        ),
    ] = -1
    pool_pct: Annotated[
        _Share,
        Meta(description="Use of the shared CPUs from which on raised quotas come down; from 90 % of it none rises."),
    ] = 50


class HostApplication(msgspec.Struct, frozen=True):
    """A program of the host that is measured apart (NodeSLO hostApplications).

    `cgroup` is its path below the controllers' mounts; `below_best_effort` tells whether that lies in the best-effort
    root, which is when its CPU is suppressed with the pods there.
    """

    name: str
    cgroup: str
    qos: str = "LS"
    priority: str = ""
    below_best_effort: bool = False


_Ratio = Annotated[float, Meta(ge=1, le=5)]


class RatioModel(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How much faster a CPU model is than the reference machine, by what is switched on (Koordinator ratioModel)."""

    base: Annotated[_Ratio | None, Meta(description="Ratio with neither hyper-threading nor turbo.")] = None
    hyper_threading: Annotated[_Ratio | None, Meta(description="Ratio with hyper-threading only.")] = None
    turbo: Annotated[_Ratio | None, Meta(description="Ratio with turbo only.")] = None
    hyper_threading_turbo: Annotated[_Ratio | None, Meta(description="Ratio with both.")] = None


class NormalizationStrategy(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Koordinator's cpu-normalization-config: batch-cpu is multiplied by the ratio of the node's CPU model."""

    enable: Annotated[bool, Meta(description="Multiply batch-cpu by the ratio of the node's CPU model.")] = False
    default_ratio: Annotated[
        _Ratio | None, Meta(description="Ratio of a CPU model that is not listed; none: such a node has no ratio.")
    ] = None
    models: Annotated[
        dict[str, RatioModel], Meta(description="Ratios by CPU model, as `model name` in /proc/cpuinfo says it.")
    ] = {}
    largest_annotated_ratio: Annotated[
        _Ratio,
        Meta(
            description="Without any of the above and without slo-controller-config, the ratio of the Node's "
            "annotation multiplies batch-cpu up to this: an agent's token can write that annotation, and what it wrote "
            "stays."
        ),
    ] = 1.0

    @property
    def is_set(self) -> bool:
        """Whether anything is said of ratios; else somebody else may keep one in the Node's annotation."""
        return (self.enable, self.default_ratio, self.models) != (False, None, {})
