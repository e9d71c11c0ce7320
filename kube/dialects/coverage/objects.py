"""Koordinator's other objects: profiles, what it reads of a Node, its scheduler's configuration, kinds of its own.

Source: Koordinator apis/config, apis/extension, apis/scheduling, pkg/scheduler/apis/config/v1/types.go.
"""

from __future__ import annotations

from typing import Any

from kube.dialects.coverage.rows import Area, CoverageRow, Standing, Surface

_NODE = "node.koordinator.sh/"
_PROFILES = "apis/config/v1alpha1/cluster_colocation_profile_types.go"


def _profile(field: str, told: str, example: Any) -> CoverageRow:
    return CoverageRow(
        Surface.PROFILE,
        Area.PROFILES,
        f"spec.{field}",
        Standing.HONOURED,
        told,
        source=_PROFILES,
        reader="kube/dialects/koordinator/profiles.py",
        example=example,
    )


_PROFILE = (
    _profile("namespaceSelector", "whom it means, by labels of the namespace", {"matchLabels": {"a": "b"}}),
    _profile("selector", "whom it means, by labels of the pod", {"matchLabels": {"a": "b"}}),
    _profile("probability", "percent of those", "30%"),
    _profile("qosClass", "label koordinator.sh/qosClass", "BE"),
    _profile("priorityClassName", "with the class's value and preemption policy", "koord-batch"),
    _profile("koordinatorPriority", "label koordinator.sh/priority", 5),
    _profile("labels", "written", {"a": "b"}),
    _profile("annotations", "written", {"a": "b"}),
    _profile("labelKeysMapping", "the value of one label written into another", {"a": "b"}),
    _profile("annotationKeysMapping", "the value of one annotation written into another", {"a": "b"}),
    _profile("labelSuffixes", "appended to a label's value", {"a": "-b"}),
    _profile("schedulerName", "who places the pod", "koord-scheduler"),
    _profile("patch", "a strategic merge patch of the pod", {"spec": {"hostNetwork": True}}),
    CoverageRow(
        Surface.PROFILE,
        Area.PROFILES,
        "metadata.annotations[config.koordinator.sh/skip-update-resources]",
        Standing.HONOURED,
        "cpu and memory stay cpu and memory",
        source=_PROFILES,
        reader="kube/dialects/koordinator/profiles.py",
        example="",
    ),
    CoverageRow(
        Surface.PROFILE,
        Area.PROFILES,
        "metadata.labels[config.koordinator.sh/controller-managed]",
        Standing.NOT_YET,
        "pods are changed when they are created, never afterwards",
        source=_PROFILES,
        example="true",
    ),
)


def _node(area: Area, name: str, standing: Standing, told: str, example: str = "", reader: str = "") -> CoverageRow:
    field = name if "/" in name else _NODE + name
    return CoverageRow(
        Surface.NODE, area, field, standing, told, source="apis/extension", reader=reader, example=example or "true"
    )


_SETTINGS = "kube/dialects/koordinator/nodesettings.py"
_NODES = (
    _node(
        Area.LENDING,
        "colocation-strategy",
        Standing.HONOURED,
        "annotation: the node's own colocation-config",
        '{"cpuReclaimThresholdPercent": 30}',
        _SETTINGS,
    ),
    _node(
        Area.LENDING,
        "cpu-reclaim-ratio",
        Standing.HONOURED,
        "label: CPU that may be in use, lending included",
        "0.3",
        _SETTINGS,
    ),
    _node(Area.LENDING, "memory-reclaim-ratio", Standing.HONOURED, "label: the same of memory", "0.3", _SETTINGS),
    _node(
        Area.LENDING,
        "mid-static-cpu-reserved-ratio",
        Standing.HONOURED,
        "label: mid-cpu in static mode",
        "0.3",
        _SETTINGS,
    ),
    _node(
        Area.LENDING,
        "mid-static-memory-reserved-ratio",
        Standing.HONOURED,
        "label: mid-memory in static mode",
        "0.3",
        _SETTINGS,
    ),
    _node(
        Area.LENDING,
        "thirdPartyAllocations",
        Standing.HONOURED,
        "annotation: what other schedulers gave away is not lent twice",
        '{"allocations": [{"priority": "koord-batch", "resources": {"kubernetes.io/batch-cpu": "1"}}]}',
        "kube/dialects/koordinator/labels.py",
    ),
    _node(
        Area.LENDING,
        "originExtendedAllocatable",
        Standing.HONOURED,
        "annotation: written beside the lent amounts",
        "{}",
        "kube/dialects/koordinator/labels.py",
    ),
    _node(
        Area.LENDING,
        "reservation",
        Standing.PARTLY,
        "annotation: kept out of what is lent and from best effort; the scheduler still gives it to others",
        '{"resources": {"cpu": "1"}}',
        "kube/dialects/koordinator/reservation.py",
    ),
    _node(
        Area.CPU_BINDING,
        "system-qos-resource",
        Standing.PARTLY,
        "annotation: best effort keeps off these CPUs; system pods are not bound to them",
        '{"cpuset": "0-1"}',
        "kube/dialects/koordinator/systemqos.py",
    ),
    _node(
        Area.CPU_RATIOS,
        "cpu-normalization-ratio",
        Standing.HONOURED,
        "annotation: written, and read as far as `largest_annotated_ratio` allows",
        "1.20",
        "kube/dialects/koordinator/labels.py",
    ),
    _node(
        Area.CPU_RATIOS,
        "cpu-normalization-enabled",
        Standing.HONOURED,
        "label: CPU normalization of this node on or off",
        "true",
        "model/nodecolocation.py",
    ),
    _node(
        Area.CPU_RATIOS,
        "raw-allocatable",
        Standing.HONOURED,
        "annotation: what was allocatable before somebody amplified it counts for lending",
        '{"cpu": "2"}',
        "kube/dialects/koordinator/labels.py",
    ),
    _node(
        Area.CPU_RATIOS,
        "resource-amplification-ratio",
        Standing.NOT_YET,
        "annotation: no allocatable is amplified",
        '{"cpu": 1.5}',
    ),
    _node(
        Area.LENDING,
        "enable-numa-reservation",
        Standing.HONOURED,
        "label: what the kubelet reserves counts in NUMA nodes",
        "true",
        "agent/edge/cluster.py",
    ),
    _node(Area.CPU_BINDING, "cpu-bind-policy", Standing.NOT_YET, "label: the scheduler binds no CPUs", "FullPCPUsOnly"),
    _node(
        Area.CPU_BINDING,
        "numa-allocate-strategy",
        Standing.NOT_YET,
        "label: the scheduler chooses no NUMA node",
        "MostAllocated",
    ),
    _node(
        Area.CPU_BINDING,
        "numa-topology-policy",
        Standing.NOT_YET,
        "label: the scheduler chooses no NUMA node",
        "SingleNUMANode",
    ),
    _node(
        Area.LOAD,
        "limit-to-allocatable",
        Standing.NOT_YET,
        "annotation: limits of pods are not compared with what is allocatable",
        '{"cpu": "200%"}',
    ),
    _node(Area.DEVICES, "gpu-partition-policy", Standing.NOT_YET, "label: no device is chosen", "Honor"),
    _node(Area.OTHER_QOS, "network-bandwidth", Standing.NOT_YET, "annotation: network bandwidth is not divided", "10G"),
    _node(
        Area.LOAD,
        "scheduling.koordinator.sh/usage-thresholds",
        Standing.HONOURED,
        "annotation: the node's own limits of load",
        '{"usageThresholds": {"cpu": 40}}',
        "kube/dialects/koordinator/usagethresholds.py",
    ),
)


def _scheduler(
    area: Area, field: str, standing: Standing, told: str, example: Any, values: tuple[str, ...] = ()
) -> CoverageRow:
    return CoverageRow(
        Surface.SCHEDULER,
        area,
        field,
        standing,
        told,
        source="pkg/scheduler/apis/config/v1/types.go",
        reader="kube/dialects/koordinator/schedulerconfig.py" if standing is Standing.HONOURED else "",
        example=example,
        values=values,
    )


def _measured(field: str, told: str, example: Any) -> CoverageRow:
    return _scheduler(Area.LOAD, f"LoadAwareScheduling.{field}", Standing.HONOURED, told, example)


_OWN_SETTINGS = "see the scheduler's own settings (docs/settings.md)"
_SCHEDULER = (
    _scheduler(
        Area.PREEMPTION, "Coscheduling.enablePreemption", Standing.HONOURED, "job-level preemption on or off", False
    ),
    _scheduler(
        Area.GANGS, "Coscheduling.defaultTimeout", Standing.HONOURED, "of gangs that say none themselves", "90s"
    ),
    _scheduler(
        Area.GANGS,
        "Coscheduling.defaultMatchPolicy",
        Standing.HONOURED,
        "of gangs that say none themselves",
        "only-waiting",
    ),
    _scheduler(
        Area.GANGS,
        "Coscheduling.awareNetworkTopology",
        Standing.HONOURED,
        "the topology that a gang asks for is heeded",
        True,
        ("true",),
    ),
    _scheduler(
        Area.GANGS,
        "Coscheduling.*",
        Standing.NEVER,
        "gangs are placed whole, and topology is heeded wherever a gang asks for it",
        1,
    ),
    _measured("nodeMetricExpirationSeconds", "an older usage counts as unknown", 180),
    _measured("filterExpiredNodeMetrics", "no pod where the usage is unknown", True),
    _measured("enableScheduleWhenNodeMetricsExpired", "but without limits there", True),
    _measured("resourceWeights", "of cpu and memory in the score", {"cpu": 2}),
    _measured("dominantResourceWeight", "of the scarcer of them in the score", 1),
    _measured("usageThresholds", "no pod where cpu or memory would be used more", {"cpu": 65}),
    _measured("prodUsageThresholds", "the same of production pods", {"cpu": 55}),
    _measured("prodUsageIncludeSys", "the node's own use counts as theirs", True),
    _measured("scoreAccordingProdUsage", "production pods are scored by what production pods use", True),
    _measured("estimatedScalingFactors", "what of its request a pod is taken to use", {"cpu": 80}),
    _measured("estimatedSecondsAfterPodScheduled", "so long at least", 60),
    _measured("estimatedSecondsAfterInitialized", "so long at least", 60),
    _measured("allowCustomizeEstimation", "pods may say their own", True),
    _measured("aggregated", "a percentile in place of the newest usage", {"usageAggregationType": "p95"}),
    _scheduler(Area.LOAD, "LoadAwareScheduling.*", Standing.NEVER, "use is estimated from estimatedScalingFactors", 1),
    _scheduler(
        Area.LOAD,
        "NodeResourcesFit.scoringStrategy",
        Standing.HONOURED,
        "type, resources and shape",
        {"type": "MostAllocated"},
    ),
    _scheduler(
        Area.LOAD,
        "NodeResourcesBalancedAllocation.resources",
        Standing.HONOURED,
        "what is to be used evenly",
        [{"name": "cpu"}],
    ),
    _scheduler(
        Area.LOAD, "InterPodAffinity.hardPodAffinityWeight", Standing.HONOURED, "of residents' required affinity", 5
    ),
    _scheduler(
        Area.CPU_BINDING, "NodeNUMAResource.*", Standing.NOT_YET, "the scheduler binds no CPUs", "LeastAllocated"
    ),
    _scheduler(Area.QUOTA, "ElasticQuota.*", Standing.NOT_YET, "no quota is counted", True),
    _scheduler(Area.RESERVATION, "Reservation.*", Standing.NOT_YET, "there are no reservations", True),
    _scheduler(Area.DEVICES, "DeviceShare.*", Standing.NOT_YET, "no device is chosen", "LeastAllocated"),
    _scheduler(
        Area.LOAD, "*.*", Standing.NEVER, f"filters and scores are Kubernetes' own: {_OWN_SETTINGS}", "MostAllocated"
    ),
)


def _kind(area: Area, name: str, standing: Standing, told: str, reader: str = "") -> CoverageRow:
    return CoverageRow(
        Surface.KIND, area, name, standing, told, source="apis/scheduling, apis/slo, apis/quota", reader=reader
    )


_NOT_INSTALLED = "its definition is not installed, so kubectl says `no matches for kind`"
_KINDS = (
    _kind(
        Area.PROFILES,
        "ClusterColocationProfile",
        Standing.HONOURED,
        "applied by admission",
        "deploy/crds/clustercolocationprofiles.yaml",
    ),
    _kind(
        Area.LENDING,
        "NodeMetric",
        Standing.HONOURED,
        "made for every node, written by its agent",
        "deploy/crds/nodemetrics.yaml",
    ),
    _kind(
        Area.SUPPRESS,
        "NodeSLO",
        Standing.HONOURED,
        "made for every node from slo-controller-config",
        "deploy/crds/nodeslos.yaml",
    ),
    _kind(Area.GANGS, "PodGroup", Standing.HONOURED, "a gang", "deploy/crds/podgroups.yaml"),
    _kind(
        Area.GANGS,
        "ClusterNetworkTopology",
        Standing.HONOURED,
        "layers of the network",
        "deploy/crds/clusternetworktopologies.yaml",
    ),
    _kind(
        Area.CPU_BINDING,
        "NodeResourceTopology",
        Standing.HONOURED,
        "written by each agent: CPUs, share pools, NUMA nodes and what is lent of them",
        "deploy/crds/noderesourcetopologies.yaml",
    ),
    _kind(Area.QUOTA, "ElasticQuota", Standing.NOT_YET, _NOT_INSTALLED),
    _kind(Area.QUOTA, "ElasticQuotaProfile", Standing.NOT_YET, _NOT_INSTALLED),
    _kind(Area.RESERVATION, "Reservation", Standing.NOT_YET, _NOT_INSTALLED),
    _kind(Area.DEVICES, "Device", Standing.NOT_YET, _NOT_INSTALLED),
    _kind(Area.OTHER_QOS, "ContainerCgroupOverride", Standing.NOT_YET, _NOT_INSTALLED),
    _kind(Area.LENDING, "Recommendation", Standing.NEVER, _NOT_INSTALLED),
    _kind(Area.DESCHEDULING, "PodMigrationJob", Standing.NEVER, _NOT_INSTALLED),
    _kind(
        Area.DESCHEDULING,
        "ConfigMap koord-descheduler-config",
        Standing.NEVER,
        "there is no descheduler; Kubernetes' own may run beside Sublet",
    ),
)

ROWS = (*_PROFILE, *_NODES, *_SCHEDULER, *_KINDS)
