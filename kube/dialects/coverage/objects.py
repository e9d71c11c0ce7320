"""Koordinator's other objects: profiles, what it reads of a Node, its scheduler's configuration, kinds of its own.

Source: Koordinator apis/config, apis/extension, apis/scheduling, pkg/scheduler/apis/config/v1/types.go.
"""

from __future__ import annotations

from typing import Any

from kube.dialects.coverage.rows import Area, CoverageRow, Support, Surface

_NODE = "node.koordinator.sh/"
_PROFILES = "apis/config/v1alpha1/cluster_colocation_profile_types.go"


def _profile(field: str, consequence: str, example: Any) -> CoverageRow:
    return CoverageRow(
        Surface.PROFILE,
        Area.PROFILES,
        f"spec.{field}",
        Support.HONOURED,
        consequence,
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
        Support.HONOURED,
        "cpu and memory stay cpu and memory",
        source=_PROFILES,
        reader="kube/dialects/koordinator/profiles.py",
        example="",
    ),
    CoverageRow(
        Surface.PROFILE,
        Area.PROFILES,
        "metadata.labels[config.koordinator.sh/controller-managed]",
        Support.NOT_YET,
        "pods are changed when they are created, never afterwards",
        source=_PROFILES,
        example="true",
    ),
)


def _node(
    area: Area, name: str, support: Support, consequence: str, example: str = "", reader: str = ""
) -> CoverageRow:
    field = name if "/" in name else _NODE + name
    return CoverageRow(
        Surface.NODE,
        area,
        field,
        support,
        consequence,
        source="apis/extension",
        reader=reader,
        example=example or "true",
    )


_SETTINGS = "kube/dialects/koordinator/nodesettings.py"
_NODES = (
    _node(
        Area.LENDING,
        "colocation-strategy",
        Support.HONOURED,
        "annotation: the node's own colocation-config",
        '{"cpuReclaimThresholdPercent": 30}',
        _SETTINGS,
    ),
    _node(
        Area.LENDING,
        "cpu-reclaim-ratio",
        Support.HONOURED,
        "label: CPU that may be in use, lending included",
        "0.3",
        _SETTINGS,
    ),
    _node(Area.LENDING, "memory-reclaim-ratio", Support.HONOURED, "label: the same of memory", "0.3", _SETTINGS),
    _node(
        Area.LENDING,
        "mid-static-cpu-reserved-ratio",
        Support.HONOURED,
        "label: mid-cpu in static mode",
        "0.3",
        _SETTINGS,
    ),
    _node(
        Area.LENDING,
        "mid-static-memory-reserved-ratio",
        Support.HONOURED,
        "label: mid-memory in static mode",
        "0.3",
        _SETTINGS,
    ),
    _node(
        Area.LENDING,
        "thirdPartyAllocations",
        Support.HONOURED,
        "annotation: what other schedulers gave away is not lent twice",
        '{"allocations": [{"priority": "koord-batch", "resources": {"kubernetes.io/batch-cpu": "1"}}]}',
        "kube/dialects/koordinator/labels.py",
    ),
    _node(
        Area.LENDING,
        "originExtendedAllocatable",
        Support.HONOURED,
        "annotation: written beside the lent amounts",
        "{}",
        "kube/dialects/koordinator/labels.py",
    ),
    _node(
        Area.LENDING,
        "reservation",
        Support.PARTLY,
        "annotation: kept out of what is lent and from best effort; the scheduler still gives it to others",
        '{"resources": {"cpu": "1"}}',
        "kube/dialects/koordinator/reservation.py",
    ),
    _node(
        Area.CPU_BINDING,
        "system-qos-resource",
        Support.PARTLY,
        "annotation: best effort keeps off these CPUs; system pods are not bound to them",
        '{"cpuset": "0-1"}',
        "kube/dialects/koordinator/systemqos.py",
    ),
    _node(
        Area.CPU_RATIOS,
        "cpu-normalization-ratio",
        Support.HONOURED,
        "annotation: written, and read as far as `largest_annotated_ratio` allows",
        "1.20",
        "kube/dialects/koordinator/labels.py",
    ),
    _node(
        Area.CPU_RATIOS,
        "cpu-normalization-enabled",
        Support.HONOURED,
        "label: CPU normalization of this node on or off",
        "true",
        "model/nodecolocation.py",
    ),
    _node(
        Area.CPU_RATIOS,
        "raw-allocatable",
        Support.HONOURED,
        "annotation: what was allocatable before somebody amplified it counts for lending",
        '{"cpu": "2"}',
        "kube/dialects/koordinator/labels.py",
    ),
    _node(
        Area.CPU_RATIOS,
        "resource-amplification-ratio",
        Support.NOT_YET,
        "annotation: no allocatable is amplified",
        '{"cpu": 1.5}',
    ),
    _node(
        Area.LENDING,
        "enable-numa-reservation",
        Support.HONOURED,
        "label: what the kubelet reserves counts in NUMA nodes",
        "true",
        "agent/edge/cluster.py",
    ),
    _node(
        Area.CPU_BINDING,
        "cpu-bind-policy",
        Support.PARTLY,
        "label: required of LSE and LSR pods; other pods get no CPUs of their own by it",
        "FullPCPUsOnly",
        "kube/dialects/koordinator/cpubinding.py",
    ),
    _node(
        Area.CPU_BINDING,
        "numa-allocate-strategy",
        Support.HONOURED,
        "label: from which NUMA node CPUs are taken first",
        "MostAllocated",
        "kube/dialects/koordinator/cpubinding.py",
    ),
    _node(
        Area.CPU_BINDING,
        "numa-topology-policy",
        Support.NOT_YET,
        "label: the scheduler chooses no NUMA node",
        "SingleNUMANode",
    ),
    _node(
        Area.LOAD,
        "limit-to-allocatable",
        Support.NOT_YET,
        "annotation: limits of pods are not compared with what is allocatable",
        '{"cpu": "200%"}',
    ),
    _node(Area.DEVICES, "gpu-partition-policy", Support.NOT_YET, "label: no device is chosen", "Honor"),
    _node(Area.OTHER_QOS, "network-bandwidth", Support.NOT_YET, "annotation: network bandwidth is not divided", "10G"),
    _node(
        Area.LOAD,
        "scheduling.koordinator.sh/usage-thresholds",
        Support.HONOURED,
        "annotation: the node's own limits of load",
        '{"usageThresholds": {"cpu": 40}}',
        "kube/dialects/koordinator/usagethresholds.py",
    ),
)


def _scheduler(
    area: Area, field: str, support: Support, consequence: str, example: Any, values: tuple[str, ...] = ()
) -> CoverageRow:
    return CoverageRow(
        Surface.SCHEDULER,
        area,
        field,
        support,
        consequence,
        source="pkg/scheduler/apis/config/v1/types.go",
        reader="kube/dialects/koordinator/schedulerconfig.py" if support is Support.HONOURED else "",
        example=example,
        values=values,
    )


def _measured(field: str, consequence: str, example: Any) -> CoverageRow:
    return _scheduler(Area.LOAD, f"LoadAwareScheduling.{field}", Support.HONOURED, consequence, example)


_OWN_SETTINGS = "see the scheduler's own settings (docs/settings.md)"
_SCHEDULER = (
    _scheduler(
        Area.PREEMPTION, "Coscheduling.enablePreemption", Support.HONOURED, "job-level preemption on or off", False
    ),
    _scheduler(Area.GANGS, "Coscheduling.defaultTimeout", Support.HONOURED, "of gangs that say none themselves", "90s"),
    _scheduler(
        Area.GANGS,
        "Coscheduling.defaultMatchPolicy",
        Support.HONOURED,
        "of gangs that say none themselves",
        "only-waiting",
    ),
    _scheduler(
        Area.GANGS,
        "Coscheduling.awareNetworkTopology",
        Support.HONOURED,
        "the topology that a gang asks for is acted on",
        True,
        ("true",),
    ),
    _scheduler(
        Area.GANGS,
        "Coscheduling.*",
        Support.NEVER,
        "gangs are placed whole, and topology is acted on wherever a gang asks for it",
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
    _scheduler(Area.LOAD, "LoadAwareScheduling.*", Support.NEVER, "use is estimated from estimatedScalingFactors", 1),
    _scheduler(
        Area.LOAD,
        "NodeResourcesFit.scoringStrategy",
        Support.HONOURED,
        "type, resources and shape",
        {"type": "MostAllocated"},
    ),
    _scheduler(
        Area.LOAD,
        "NodeResourcesBalancedAllocation.resources",
        Support.HONOURED,
        "what is to be used evenly",
        [{"name": "cpu"}],
    ),
    _scheduler(
        Area.LOAD, "InterPodAffinity.hardPodAffinityWeight", Support.HONOURED, "of residents' required affinity", 5
    ),
    _scheduler(
        Area.CPU_BINDING, "NodeNUMAResource.*", Support.NOT_YET, "Koordinator's defaults hold", "LeastAllocated"
    ),
    _scheduler(
        Area.QUOTA, "ElasticQuota.*", Support.NOT_YET, "quotas count by settings `queues` of the scheduler", True
    ),
    _scheduler(Area.RESERVATION, "Reservation.*", Support.NOT_YET, "there are no reservations", True),
    _scheduler(Area.DEVICES, "DeviceShare.*", Support.NOT_YET, "no device is chosen", "LeastAllocated"),
    _scheduler(
        Area.LOAD, "*.*", Support.NEVER, f"filters and scores are Kubernetes' own: {_OWN_SETTINGS}", "MostAllocated"
    ),
)


def _kind(area: Area, name: str, support: Support, consequence: str, reader: str = "") -> CoverageRow:
    return CoverageRow(
        Surface.KIND, area, name, support, consequence, source="apis/scheduling, apis/slo, apis/quota", reader=reader
    )


_NOT_INSTALLED = "its definition is not installed, so kubectl says `no matches for kind`"
_KINDS = (
    _kind(
        Area.PROFILES,
        "ClusterColocationProfile",
        Support.HONOURED,
        "applied by admission",
        "deploy/crds/clustercolocationprofiles.yaml",
    ),
    _kind(
        Area.LENDING,
        "NodeMetric",
        Support.HONOURED,
        "made for every node, written by its agent",
        "deploy/crds/nodemetrics.yaml",
    ),
    _kind(
        Area.SUPPRESS,
        "NodeSLO",
        Support.HONOURED,
        "made for every node from slo-controller-config",
        "deploy/crds/nodeslos.yaml",
    ),
    _kind(Area.GANGS, "PodGroup", Support.HONOURED, "a gang", "deploy/crds/podgroups.yaml"),
    _kind(
        Area.GANGS,
        "ClusterNetworkTopology",
        Support.HONOURED,
        "layers of the network",
        "deploy/crds/clusternetworktopologies.yaml",
    ),
    _kind(
        Area.CPU_BINDING,
        "NodeResourceTopology",
        Support.HONOURED,
        "written by each agent: CPUs, share pools, NUMA nodes and what is lent of them",
        "deploy/crds/noderesourcetopologies.yaml",
    ),
    _kind(
        Area.QUOTA,
        "ElasticQuota",
        Support.HONOURED,
        "a queue",
        "deploy/crds/optional/koordinator/elasticquotas.yaml",
    ),
    _kind(
        Area.QUOTA,
        "ElasticQuotaProfile",
        Support.HONOURED,
        "its ElasticQuota is made, and kept at what its nodes have",
        "deploy/crds/optional/koordinator/elasticquotaprofiles.yaml",
    ),
    _kind(Area.RESERVATION, "Reservation", Support.NOT_YET, _NOT_INSTALLED),
    _kind(Area.DEVICES, "Device", Support.NOT_YET, _NOT_INSTALLED),
    _kind(Area.OTHER_QOS, "ContainerCgroupOverride", Support.NOT_YET, _NOT_INSTALLED),
    _kind(Area.LENDING, "Recommendation", Support.NEVER, _NOT_INSTALLED),
    _kind(Area.DESCHEDULING, "PodMigrationJob", Support.NEVER, _NOT_INSTALLED),
    _kind(
        Area.DESCHEDULING,
        "ConfigMap koord-descheduler-config",
        Support.NEVER,
        "there is no descheduler; Kubernetes' own may run beside Sublet",
    ),
)

ROWS = (*_PROFILE, *_NODES, *_SCHEDULER, *_KINDS)
