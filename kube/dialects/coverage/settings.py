"""Fields of `slo-controller-config` and of the NodeSLOs and NodeMetrics made of it.

Source: Koordinator apis/configuration/slo_controller_config.go, apis/slo/v1alpha1/nodeslo_types.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kube.dialects.coverage.rows import Area, Asks, CoverageRow, Support, Surface
from kube.dialects.koordinator.configkey import ConfigKey

_CONFIG = "apis/configuration/slo_controller_config.go"
_TYPES = "apis/slo/v1alpha1/nodeslo_types.go"
_LENDING_READER = "kube/dialects/koordinator/sloconfig.py"
_BURST_READER = "kube/dialects/koordinator/cpuburst.py"
_CPU_READER = "kube/dialects/koordinator/cpuqos.py"
_SLO_READER = "kube/dialects/koordinator/nodeslo.py"


def _lends(field: str, consequence: str, example: Any, **more: Any) -> CoverageRow:
    return CoverageRow(
        Surface.SETTINGS,
        Area.LENDING,
        f"{ConfigKey.COLOCATION}.{field}",
        Support.HONOURED,
        consequence,
        source=_CONFIG,
        reader=_LENDING_READER,
        example=example,
        **more,
    )


def _threshold(
    area: Area, field: str, consequence: str, example: Any, beside: Mapping[str, Any] | None = None
) -> CoverageRow:
    return CoverageRow(
        Surface.SETTINGS,
        area,
        f"{ConfigKey.THRESHOLD}.{field}",
        Support.HONOURED,
        consequence,
        source=_TYPES,
        reader=_SLO_READER,
        example=example,
        beside=beside or {},
    )


def _burst(field: str, consequence: str, example: Any) -> CoverageRow:
    return CoverageRow(
        Surface.SETTINGS,
        Area.CPU_QOS,
        f"{ConfigKey.CPU_BURST}.{field}",
        Support.HONOURED,
        consequence,
        source=_TYPES,
        reader=_BURST_READER,
        example=example,
    )


def _not_yet(area: Area, field: str, consequence: str, example: Any, asks: Asks = Asks.ON, **more: Any) -> CoverageRow:
    return CoverageRow(
        Surface.SETTINGS, area, field, Support.NOT_YET, consequence, source=_TYPES, asks=asks, example=example, **more
    )


def _system(field: str, consequence: str, example: Any) -> CoverageRow:
    return _not_yet(Area.SYSTEM, f"{ConfigKey.SYSTEM}.{field}", consequence, example, Asks.VALUE)


_COLOCATION = (
    _lends("enable", "batch and mid resources are lent, or withdrawn", True),
    _lends("cpuReclaimThresholdPercent", "CPU that may be in use, lending included", 70),
    _lends("memoryReclaimThresholdPercent", "memory that may be in use, lending included", 70),
    CoverageRow(
        Surface.SETTINGS,
        Area.LENDING,
        "colocation-config.cpuCalculatePolicy",
        Support.NEVER,
        "it counts as usage, with Koordinator as well: requests reserve memory alone",
        source=_CONFIG,
        values=("request",),
        example="request",
    ),
    _lends(
        "cpuCalculatePolicy",
        "what of online pods' CPU is kept free",
        "maxUsageRequest",
        values=("usage", "maxUsageRequest"),
    ),
    _lends("memoryCalculatePolicy", "what of online pods' memory is kept free", "request"),
    _lends("batchCPUThresholdPercent", "cap of batch-cpu", 50),
    _lends("batchMemoryThresholdPercent", "cap of batch-memory", 50),
    _lends("midReclaimMode", "mid resources by prediction, or a fixed share", "static"),
    _lends("midCPUThresholdPercent", "cap of mid-cpu", 50),
    _lends("midMemoryThresholdPercent", "cap of mid-memory", 50),
    _lends("midUnallocatedPercent", "share of what nobody requested", 50),
    _lends("midStaticCPUReservedPercent", "mid-cpu in static mode", 50),
    _lends("midStaticMemoryReservedPercent", "mid-memory in static mode", 50),
    _lends("degradeTimeMinutes", "older facts lend nothing", 5),
    _lends("updateTimeThresholdSeconds", "small changes are published this often", 60),
    _lends(
        "resourceDiffThreshold",
        "larger changes are published at once, and what shrinks by more than a tenth in any case",
        0.2,
    ),
    _lends("metricAggregateDurationSeconds", "window of NodeMetric's averages, 60 s to an hour", 600),
    _lends("metricReportIntervalSeconds", "how often NodeMetric is written, 30 s to an hour", 120),
    _lends("metricAggregatePolicy.durations", "windows of the percentiles, at most 6", ["5m"]),
    CoverageRow(
        Surface.SETTINGS,
        Area.LENDING,
        "colocation-config.metricMemoryCollectPolicy",
        Support.PARTLY,
        "page cache that was used of late is not told from the rest, and counts as free",
        source=_CONFIG,
        reader=_LENDING_READER,
        values=("usageWithHotPageCache",),
        example="usageWithHotPageCache",
    ),
    _lends(
        "metricMemoryCollectPolicy",
        "whether page cache counts as used",
        "usageWithPageCache",
        values=("usageWithPageCache", "usageWithoutPageCache"),
    ),
    CoverageRow(
        Surface.SETTINGS,
        Area.LENDING,
        "colocation-config.extensions",
        Support.NEVER,
        "they belong to plugins of Koordinator's manager",
        source=_CONFIG,
        asks=Asks.VALUE,
        example={"a": 1},
    ),
)

_SATISFACTION = {"cpuEvictBESatisfactionLowerPercent": 40, "cpuEvictBESatisfactionUpperPercent": 80}

_THRESHOLDS = (
    _threshold(Area.SUPPRESS, "enable", "best effort is suppressed and evicted by thresholds, or not at all", False),
    _threshold(Area.SUPPRESS, "cpuSuppressThresholdPercent", "CPU that online and best-effort pods may use", 50),
    _threshold(Area.SUPPRESS, "cpuSuppressMinPercent", "best effort's floor", 5),
    _threshold(Area.SUPPRESS, "cpuSuppressPolicy", "cfsQuota or cpuset; adaptive where nothing is said", "cfsQuota"),
    _threshold(Area.EVICT, "memoryEvictThresholdPercent", "memory in use that starts evicting", 80),
    _threshold(Area.EVICT, "memoryEvictLowerPercent", "evicts until this much is in use", 60),
    _threshold(Area.EVICT, "memoryAllocatableEvictThresholdPercent", "the same by requests", 120),
    _threshold(
        Area.EVICT,
        "memoryAllocatableEvictLowerPercent",
        "the same by requests",
        90,
        {"memoryAllocatableEvictThresholdPercent": 120},
    ),
    _threshold(
        Area.EVICT,
        "cpuEvictBESatisfactionLowerPercent",
        "CPU that best effort gets of what it asked for, 1 to 60",
        40,
        _SATISFACTION,
    ),
    _threshold(
        Area.EVICT, "cpuEvictBESatisfactionUpperPercent", "evicts until it gets this share, 1 to 99", 80, _SATISFACTION
    ),
    _threshold(Area.EVICT, "cpuEvictBEUsageThresholdPercent", "only while best effort uses so much", 80),
    _threshold(Area.EVICT, "cpuEvictTimeWindowSeconds", "averages of the CPU rules, at most an hour", 30),
    _threshold(Area.EVICT, "cpuEvictThresholdPercent", "CPU in use that starts evicting", 90),
    _threshold(Area.EVICT, "cpuEvictLowerPercent", "evicts until this much is in use", 60),
    _threshold(Area.EVICT, "cpuAllocatableEvictThresholdPercent", "the same by requests", 120),
    _threshold(
        Area.EVICT,
        "cpuAllocatableEvictLowerPercent",
        "the same by requests",
        90,
        {"cpuAllocatableEvictThresholdPercent": 120},
    ),
    _threshold(Area.EVICT, "cpuEvictPolicy", "what satisfaction is measured against", "evictByAllocatable"),
    _threshold(Area.EVICT, "evictEnabledPriorityThreshold", "pods of this priority and below may be evicted", 5999),
    _threshold(Area.EVICT, "allocatableEvictPriorityThreshold", "the same for the rules by requests", 5999),
)

_QOS = (
    CoverageRow(
        Surface.SETTINGS,
        Area.CPU_QOS,
        "resource-qos-config.*Class.cpuQOS",
        Support.HONOURED,
        "cpu.bvt_warp_ns where the kernel has it, by groupIdentity of the class; an Event says where it has not",
        source=_TYPES,
        reader=_CPU_READER,
        asks=Asks.ON,
        example={"enable": True},
    ),
    CoverageRow(
        Surface.SETTINGS,
        Area.CPU_QOS,
        "resource-qos-config.*Class.cpuQOS.schedIdle",
        Support.PARTLY,
        "cpu.idle of batch pods, by beClass, under either policy; online pods are never idle",
        source=_TYPES,
        reader=_CPU_READER,
        asks=Asks.VALUE,
        example=1,
        beside={"enable": True},
    ),
    _not_yet(
        Area.CPU_QOS,
        "resource-qos-config.*Class.cpuQOS.coreExpeller",
        "core scheduling is not used",
        True,
        Asks.VALUE,
    ),
    _not_yet(
        Area.CPU_QOS,
        "resource-qos-config.policies.cpuPolicy",
        "core scheduling is not used, and group identity is off",
        "coreSched",
        Asks.SET,
        values=("coreSched",),
    ),
    CoverageRow(
        Surface.SETTINGS,
        Area.MEMORY_QOS,
        "resource-qos-config.*Class.memoryQOS",
        Support.HONOURED,
        "memory.min, low, high, oom.group (v2), watermarks where the kernel has them; best effort is not protected",
        source=_TYPES,
        reader="kube/dialects/koordinator/memoryqos.py",
        asks=Asks.ON,
        example={"enable": True},
    ),
    *(
        _not_yet(
            Area.MEMORY_QOS,
            f"resource-qos-config.*Class.memoryQOS.pageCache{field}",
            "a limit of one vendor's kernel",
            example,
            Asks.VALUE,
        )
        for field, example in (("Enable", True), ("LimitPercent", 10), ("LimitSize", "1Gi"), ("ReclaimSync", True))
    ),
    _not_yet(
        Area.OTHER_QOS,
        "resource-qos-config.*Class.resctrlQOS",
        "cache ways and memory bandwidth are not divided",
        {"enable": True},
    ),
    _not_yet(
        Area.OTHER_QOS, "resource-qos-config.*Class.blkioQOS", "disk I/O is not limited by class", {"enable": True}
    ),
    _not_yet(Area.OTHER_QOS, "resource-qos-config.cgroupRoot.blkioQOS", "blk-iocost is not set", {"enable": True}),
    *(
        CoverageRow(
            Surface.SETTINGS,
            Area.OTHER_QOS,
            f"resource-qos-config.cgroupRoot.{section}",
            Support.NEVER,
            "of cgroupRoot Koordinator acts on blkioQOS alone, too",
            source=_TYPES,
            asks=Asks.ON,
            example={"enable": True},
        )
        for section in ("cpuQOS", "memoryQOS", "resctrlQOS", "networkQOS")
    ),
    _not_yet(
        Area.OTHER_QOS,
        "resource-qos-config.*Class.networkQOS",
        "network bandwidth is neither divided nor limited",
        {"enable": True},
    ),
    _not_yet(
        Area.OTHER_QOS,
        "resource-qos-config.policies.netQOSPolicy",
        "no files for Terway are written",
        "terway-qos",
        Asks.SET,
        values=("terway-qos",),
    ),
    _burst("policy", "cpu.max.burst and quotas of pods with a CPU limit: LS and unlabelled, bursts also LSR", "auto"),
    _burst("cpuBurstPercent", "how much; the kernel takes no more than one period's limit", 200),
    _burst("cfsQuotaBurstPercent", "how far the quota of a throttled container is raised", 200),
    _burst("cfsQuotaBurstPeriodSeconds", "for how long, by what it left of its limit before", 60),
    _burst("sharePoolThresholdPercent", "use of the shared CPUs that ends it", 70),
)

_NODE_WIDE = (
    _system("minFreeKbytesFactor", "vm.min_free_kbytes stays as it is", 100),
    _system("watermarkScaleFactor", "vm.watermark_scale_factor stays as it is", 150),
    _system("memcgReapBackGround", "a switch of one vendor's kernel", 1),
    _system("schedGroupIdentityEnabled", "a switch of one vendor's kernel", 1),
    _system("schedIdleSaverWmark", "a setting of one vendor's kernel", 1),
    _system("schedFeatures", "scheduler features of the kernel stay as they are", {"ID_ABSOLUTE_EXPEL": True}),
    _system("pageCacheLimitEnabled", "a switch of one vendor's kernel", True),
    _system("totalNetworkBandwidth", "network bandwidth is not divided", "600M"),
)

_OTHERS = (
    CoverageRow(
        Surface.SETTINGS,
        Area.HOST,
        "host-application-config.applications[]",
        Support.PARTLY,
        "measured apart, counted by priority, suppressed where BE; neither CPU QoS nor CPUs are set for them",
        source="apis/slo/v1alpha1/host_application.go",
        reader=_SLO_READER,
        example={"name": "nginx", "priority": "koord-prod", "qos": "LS"},
    ),
    CoverageRow(
        Surface.SETTINGS,
        Area.HOST,
        "host-application-config.applications[].strategy",
        Support.NEVER,
        "Koordinator defines nothing in it either",
        source="apis/slo/v1alpha1/host_application.go",
        asks=Asks.VALUE,
        example={"a": 1},
        beside={"name": "nginx"},
    ),
    CoverageRow(
        Surface.SETTINGS,
        Area.CPU_RATIOS,
        "cpu-normalization-config",
        Support.PARTLY,
        "batch-cpu is multiplied and batch pods' quotas divided by the ratio; quotas of online pods stay",
        source=_CONFIG,
        reader=_LENDING_READER,
        asks=Asks.ON,
        example={"enable": True, "defaultRatio": 1.2},
    ),
    _not_yet(
        Area.CPU_RATIOS,
        "resource-amplification-config",
        "no node's allocatable is amplified",
        {"enable": True, "resourceAmplificationRatio": {"cpu": 1.5}},
    ),
    CoverageRow(
        Surface.SETTINGS,
        Area.SYSTEM,
        "extensions",
        Support.NEVER,
        "they belong to plugins of Koordinator's agent",
        source=_TYPES,
        asks=Asks.VALUE,
        example={"a": 1},
    ),
)

_METRIC = tuple(
    CoverageRow(
        Surface.NODE_METRIC,
        Area.LENDING,
        f"spec.metricCollectPolicy.{field}",
        Support.HONOURED,
        consequence,
        source="apis/slo/v1alpha1/nodemetric_types.go",
        reader=_LENDING_READER,
        example=example,
    )
    for field, consequence, example in (
        ("aggregateDurationSeconds", "window of the averages", 600),
        ("reportIntervalSeconds", "how often it is written", 120),
        ("nodeAggregatePolicy.durations", "windows of the percentiles", ["5m"]),
        ("nodeMemoryCollectPolicy", "whether page cache counts as used", "usageWithPageCache"),
    )
)
_REPORT = CoverageRow(
    Surface.NODE_METRIC,
    Area.LENDING,
    "status",
    Support.HONOURED,
    "use of node, NUMA nodes, pods and host applications, peaks; no devices",
    source="apis/slo/v1alpha1/nodemetric_types.go",
    reader="kube/dialects/koordinator/nodemetric.py",
    example={"updateTime": "2026-01-02T03:04:05Z", "nodeMetric": {}},
)

ROWS = (*_COLOCATION, *_THRESHOLDS, *_QOS, *_NODE_WIDE, *_OTHERS, *_METRIC, _REPORT)
