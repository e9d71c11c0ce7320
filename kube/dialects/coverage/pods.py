"""Koordinator's labels, annotations and resources of pods, and its words about gangs.

Source: Koordinator apis/extension, apis/slo/v1alpha1/pod.go.
"""

from __future__ import annotations

from typing import Any

from kube.dialects.coverage.rows import Area, CoverageRow, Support, Surface

_EXTENSION = "apis/extension/"
_QUOTA = "quota.scheduling.koordinator.sh/"
_SCHEDULING = "scheduling.koordinator.sh/"
_GANG = "gang.scheduling.koordinator.sh/"
_NO_DESCHEDULER = "there is no descheduler; Kubernetes' own may run beside Sublet"


def _label(
    area: Area, field: str, support: Support, consequence: str, example: str = "true", reader: str = "", **more: Any
) -> CoverageRow:
    return CoverageRow(Surface.POD_LABEL, area, field, support, consequence, reader=reader, example=example, **more)


def _annotation(
    area: Area, field: str, support: Support, consequence: str, example: str, reader: str = "", **more: Any
) -> CoverageRow:
    source = _EXTENSION if field.startswith(("scheduling.", "internal.")) else "apis/slo/v1alpha1/pod.go"
    return CoverageRow(
        Surface.POD_ANNOTATION, area, field, support, consequence, source, reader, example=example, **more
    )


_LABELS = (
    _label(
        Area.LENDING,
        "koordinator.sh/qosClass",
        Support.HONOURED,
        "best effort: lives on lent resources, is suppressed and evicted",
        "BE",
        "kube/dialects/koordinator/labels.py",
        source=_EXTENSION + "qos.go",
        values=("BE",),
    ),
    _label(
        Area.LENDING,
        "koordinator.sh/qosClass",
        Support.HONOURED,
        "online: protected from best effort",
        "LS",
        "kube/dialects/koordinator/labels.py",
        source=_EXTENSION + "qos.go",
        values=("LS",),
    ),
    _label(
        Area.CPU_BINDING,
        "koordinator.sh/qosClass",
        Support.PARTLY,
        "has whole CPUs, where it is LSE without best effort; LS pods may use them, and its quota stays",
        "LSR",
        "kube/dialects/koordinator/labels.py",
        source=_EXTENSION + "qos.go",
        values=("LSE", "LSR"),
    ),
    _label(
        Area.CPU_BINDING,
        "koordinator.sh/qosClass",
        Support.PARTLY,
        "counted as online; it is not put on the node's system CPUs",
        "SYSTEM",
        "kube/dialects/koordinator/labels.py",
        source=_EXTENSION + "qos.go",
        values=("SYSTEM",),
    ),
    _label(
        Area.LENDING,
        "koordinator.sh/priority-class",
        Support.HONOURED,
        "the priority band, before the number",
        "koord-batch",
        "kube/dialects/koordinator/labels.py",
        source=_EXTENSION + "priority.go",
    ),
    _label(
        Area.EVICT,
        "koordinator.sh/priority",
        Support.HONOURED,
        "the order in which a node evicts, inside a band",
        "5",
        "kube/dialects/sublet/eviction.py",
        source=_EXTENSION + "priority.go",
    ),
    _label(
        Area.EVICT,
        "koordinator.sh/eviction-enabled",
        Support.HONOURED,
        "the rules by priority may evict it",
        "true",
        "kube/dialects/sublet/eviction.py",
        source=_EXTENSION + "evict.go",
    ),
    _label(
        Area.PREEMPTION,
        _SCHEDULING + "preemption-policy",
        Support.HONOURED,
        "Never: it evicts nobody",
        "Never",
        "kube/dialects/sublet/preemption.py",
        source=_EXTENSION + "preemption.go",
    ),
    _label(
        Area.PREEMPTION,
        _SCHEDULING + "disable-preemptible",
        Support.HONOURED,
        "nobody preempts it",
        "true",
        "kube/dialects/sublet/preemption.py",
        source=_EXTENSION + "preemption.go",
    ),
    _label(
        Area.PREEMPTION,
        _QUOTA + "preemptible",
        Support.HONOURED,
        "false: nobody preempts it",
        "false",
        "kube/dialects/sublet/preemption.py",
        source=_EXTENSION + "elastic_quota.go",
    ),
    _label(
        Area.QUOTA,
        _QUOTA + "name",
        Support.HONOURED,
        "the ElasticQuota, or another queue of that name, that the pod is in",
        "team-a",
        "kube/dialects/queues/membership.py",
        source=_EXTENSION + "elastic_quota.go",
    ),
    _label(
        Area.QUOTA,
        _QUOTA + "*",
        Support.NOT_YET,
        "of a pod only its name and preemptible say anything",
        "team-a",
        source=_EXTENSION + "elastic_quota.go",
    ),
    _label(
        Area.CPU_QOS,
        "koordinator.sh/core-sched-*",
        Support.NOT_YET,
        "core scheduling is not used",
        "group-a",
        source="apis/slo/v1alpha1/pod.go",
    ),
    _label(
        Area.RESERVATION,
        _SCHEDULING + "reservation-ignored",
        Support.NOT_YET,
        "there are no reservations to ignore",
        "true",
        source=_EXTENSION + "reservation.go",
    ),
    _label(
        Area.DEVICES,
        "koordinator.sh/gpu-isolation-provider",
        Support.NOT_YET,
        "GPUs are not shared",
        "HAMi-core",
        source=_EXTENSION + "device_share.go",
    ),
    _label(
        Area.OTHER_QOS,
        "koordinator.sh/netQoSClass",
        Support.NOT_YET,
        "network bandwidth is not divided",
        "mid_class",
        source=_EXTENSION + "constants.go",
    ),
    _label(
        Area.RESERVATION,
        _SCHEDULING + "operating-mode",
        Support.NOT_YET,
        "there are no reservations: it runs as any other pod",
        "Reservation",
        source=_EXTENSION + "operating_pod.go",
        values=("Reservation",),
    ),
    _label(
        Area.RESERVATION,
        _SCHEDULING + "schedule-admission-*",
        Support.NOT_YET,
        "the pod does not wait for it; write spec.schedulingGates",
        "true",
        source=_EXTENSION + "schedule_admission.go",
    ),
    _label(
        Area.RESERVATION,
        _SCHEDULING + "scheduler-name",
        Support.NEVER,
        "spec.schedulerName says who places the pod",
        "koord-scheduler",
        source=_EXTENSION + "multi_scheduler.go",
    ),
    _label(
        Area.RESERVATION,
        "koordinator.sh/sandbox-runtime-class",
        Support.NOT_YET,
        "overhead of a sandbox is what spec.overhead says",
        "gvisor",
        source=_EXTENSION + "sandbox_runtime.go",
    ),
    _label(
        Area.GANGS,
        "pod-group.scheduling.sigs.k8s.io",
        Support.HONOURED,
        "the PodGroup it belongs to",
        "train",
        "kube/dialects/gangs/membership.py",
        source=_EXTENSION + "coscheduling.go",
    ),
    _label(
        Area.GANGS,
        "pod-group.scheduling.sigs.k8s.io/name",
        Support.HONOURED,
        "a gang without a PodGroup",
        "train",
        "kube/dialects/gangs/membership.py",
        source=_EXTENSION + "coscheduling.go",
    ),
    _label(
        Area.GANGS,
        "pod-group.scheduling.sigs.k8s.io/min-available",
        Support.HONOURED,
        "how many members it needs",
        "2",
        "kube/dialects/gangs/membership.py",
        source=_EXTENSION + "coscheduling.go",
        beside={"pod-group.scheduling.sigs.k8s.io/name": "train"},
    ),
)

_QOS_ANNOTATIONS = (
    _annotation(
        Area.CPU_QOS,
        "koordinator.sh/cpuBurst",
        Support.HONOURED,
        "goes before the node's strategy, field by field",
        '{"policy": "auto"}',
        "kube/dialects/koordinator/cpuburst.py",
    ),
    _annotation(
        Area.CPU_QOS,
        "koordinator.sh/cpuQOS",
        Support.HONOURED,
        "an LS pod's own group identity, where its class has one and the kernel knows it",
        '{"groupIdentity": 1}',
        "kube/dialects/koordinator/cpuqos.py",
    ),
    _annotation(
        Area.MEMORY_QOS,
        "koordinator.sh/memoryQOS",
        Support.HONOURED,
        "its own memory QoS over its class's; best effort is not protected",
        '{"policy": "auto"}',
        "kube/dialects/koordinator/memoryqos.py",
    ),
    _annotation(
        Area.OTHER_QOS, "koordinator.sh/blkioQOS", Support.NOT_YET, "its disk I/O is not limited", '{"blocks": []}'
    ),
    _annotation(
        Area.OTHER_QOS,
        "koordinator.sh/networkQOS",
        Support.NOT_YET,
        "its network bandwidth is not limited",
        '{"IngressLimit": "10M", "EgressLimit": "20M"}',
    ),
    _annotation(
        Area.OTHER_QOS,
        "node.koordinator.sh/resctrl",
        Support.NOT_YET,
        "cache ways and memory bandwidth are not divided",
        '{"mb": {"schemata": {"percent": 20}}}',
    ),
    *(
        _annotation(
            Area.MEMORY_QOS,
            f"koordinator.sh/oom-score-adj{which}",
            Support.PARTLY,
            "where the agent's setting oom_scores is on, of processes of root; batch pods are made no safer",
            example,
            "kube/dialects/koordinator/oomscores.py",
        )
        for which, example in (("", "-500"), ("-spec", '{"app": -500}'))
    ),
    _annotation(
        Area.OTHER_QOS,
        "koordinator.sh/cgroup-override*",
        Support.NOT_YET,
        "limits of its containers stay as the kubelet set them",
        '{"memory": {"max": "512Mi"}}',
    ),
    _annotation(
        Area.EVICT,
        "koordinator.sh/eviction-policy",
        Support.HONOURED,
        "which rules may evict it",
        '["BEMemoryEvict"]',
        "kube/dialects/sublet/eviction.py",
    ),
    _annotation(
        Area.EVICT,
        "koordinator.sh/eviction-priority",
        Support.HONOURED,
        "the order of eviction",
        "-5",
        "kube/dialects/sublet/eviction.py",
    ),
    _annotation(
        Area.LENDING,
        "node.koordinator.sh/extended-resource-spec",
        Support.HONOURED,
        "written by admission for other readers; limits come from the pod's spec",
        '{"containers": {}}',
        "admission/core/resourcespec.py",
    ),
)

_SCHEDULING_ANNOTATIONS = (
    _annotation(
        Area.CPU_BINDING,
        _SCHEDULING + "resource-spec",
        Support.HONOURED,
        "which whole CPUs an LSE or LSR pod gets",
        '{"preferredCPUBindPolicy": "FullPCPUs"}',
        "kube/dialects/koordinator/cpubinding.py",
    ),
    _annotation(
        Area.CPU_BINDING,
        _SCHEDULING + "numa-topology-spec",
        Support.NOT_YET,
        "the scheduler chooses no NUMA node",
        '{"numaTopologyPolicy": "SingleNUMANode"}',
    ),
    _annotation(
        Area.CPU_BINDING,
        _SCHEDULING + "resource-status",
        Support.HONOURED,
        "written with the Binding; the cpuset of the containers of an LSE or LSR pod",
        '{"cpuset": "2-3"}',
        "kube/dialects/koordinator/labels.py",
    ),
    _annotation(
        Area.LOAD,
        _SCHEDULING + "load-estimated-scaling-factors",
        Support.HONOURED,
        "how its use is estimated before it is measured",
        '{"cpu": 80}',
        "kube/dialects/koordinator/loadaware.py",
    ),
    _annotation(
        Area.LOAD,
        _SCHEDULING + "load-estimated-seconds-after-pod-scheduled",
        Support.HONOURED,
        "for how long",
        "30",
        "kube/dialects/koordinator/loadaware.py",
    ),
    _annotation(
        Area.LOAD,
        _SCHEDULING + "load-estimated-seconds-after-initialized",
        Support.HONOURED,
        "for how long",
        "30",
        "kube/dialects/koordinator/loadaware.py",
    ),
    _annotation(
        Area.RESERVATION,
        _SCHEDULING + "reservation-affinity",
        Support.NOT_YET,
        "there are no reservations",
        '{"name": "r"}',
    ),
    _annotation(
        Area.RESERVATION,
        _SCHEDULING + "reservation-owners",
        Support.NOT_YET,
        "there are no reservations",
        '[{"labelSelector": {"matchLabels": {"app": "a"}}}]',
    ),
    _annotation(
        Area.RESERVATION,
        _SCHEDULING + "sandbox-*",
        Support.NOT_YET,
        "there are neither reservations nor pools of sandboxes",
        "pipeline",
    ),
    _annotation(
        Area.RESERVATION,
        _SCHEDULING + "exact-match-reservation",
        Support.NOT_YET,
        "there are no reservations",
        '{"resourceNames": ["cpu"]}',
    ),
    _annotation(
        Area.RESERVATION,
        "internal.scheduling.koordinator.sh/scheduling-hint",
        Support.NOT_YET,
        "the scheduler takes no hints; use node affinity",
        '{"preferredNodeNames": ["node-1"]}',
    ),
    _annotation(
        Area.RESERVATION,
        _SCHEDULING + "scheduling-hint",
        Support.NOT_YET,
        "the scheduler takes no hints; use node affinity",
        '{"preferredNodeNames": ["node-1"]}',
    ),
    _annotation(
        Area.DEVICES,
        _SCHEDULING + "device-allocate-hint",
        Support.NOT_YET,
        "no device is chosen",
        '{"rdma": {"vfSelector": {}}}',
    ),
    _annotation(
        Area.DEVICES,
        _SCHEDULING + "device-joint-allocate",
        Support.NOT_YET,
        "no device is chosen",
        '{"deviceTypes": ["gpu", "rdma"]}',
    ),
    _annotation(
        Area.DEVICES,
        _SCHEDULING + "gpu-partition-spec",
        Support.NOT_YET,
        "no device is chosen",
        '{"allocatePolicy": "Restricted"}',
    ),
    _annotation(
        Area.DEVICES,
        _SCHEDULING + "device-allocated",
        Support.NOT_YET,
        "no device is given to a container",
        '{"gpu": [{"minor": 0}]}',
    ),
    _annotation(Area.DESCHEDULING, _SCHEDULING + "eviction-cost", Support.NEVER, _NO_DESCHEDULER, "10"),
    _annotation(Area.DESCHEDULING, _SCHEDULING + "soft-eviction", Support.NEVER, _NO_DESCHEDULER, "{}"),
)


def _gang(name: str, consequence: str, example: str, support: Support = Support.HONOURED) -> CoverageRow:
    reader = "kube/dialects/gangs/membership.py" if support is Support.HONOURED else ""
    return CoverageRow(
        Surface.GANG,
        Area.GANGS,
        name,
        support,
        consequence,
        source=_EXTENSION + "coscheduling.go",
        reader=reader,
        example=example,
    )


_GANG_ANNOTATIONS = (
    _gang(_GANG + "name", "a gang without a PodGroup", "train"),
    _gang(_GANG + "min-available", "how many members it needs", "2"),
    _gang(
        _GANG + "total-number",
        "members above the minimum are placed as there is room; nothing waits for all of them",
        "9",
        Support.NEVER,
    ),
    _gang(_GANG + "mode", "whether a gang bound in part is given back", "NonStrict"),
    _gang(_GANG + "waiting-time", "after that it gives up its room and waits again", "90s"),
    _gang(_GANG + "groups", "gangs that go together", '["default/train", "default/other"]'),
    _gang(_GANG + "match-policy", "which members count towards the minimum", "only-waiting"),
    _gang("pod-group.scheduling.sigs.k8s.io/match-policy", "the same", "only-waiting"),
    CoverageRow(
        Surface.GANG,
        Area.GANGS,
        _GANG + "network-topology-spec",
        Support.HONOURED,
        "domains that hold all members, by layers of the ClusterNetworkTopology",
        source=_EXTENSION + "coscheduling.go",
        reader="kube/dialects/gangs/networktopology.py",
        example='{"gatherStrategy": [{"layer": "RackLayer", "strategy": "MustGather"}]}',
    ),
    _gang(_GANG + "network-topology-index", "the order of members inside a domain", "3"),
    _gang(
        _SCHEDULING + "network-topology-selector",
        "all domains of a layer are looked at",
        '{"matchLabels": {"a": "b"}}',
        Support.NOT_YET,
    ),
    _gang(_GANG + "timeout", "Koordinator writes it nowhere either", "1", Support.NEVER),
)


def _group(name: str, support: Support, consequence: str, example: Any, reader: str = "") -> CoverageRow:
    return CoverageRow(
        Surface.GANG,
        Area.GANGS,
        f"spec.{name}",
        support,
        consequence,
        source="apis/thirdparty/scheduler-plugins/pkg/apis/scheduling/v1alpha1/types.go",
        reader=reader,
        example=example,
    )


_POD_GROUP = (
    _group("minMember", Support.HONOURED, "placed together or not at all", 3, "kube/dialects/gangs/podgroups.py"),
    _group(
        "scheduleTimeoutSeconds",
        Support.HONOURED,
        "after that it gives up its room and waits again",
        100,
        "kube/dialects/gangs/podgroups.py",
    ),
    _group(
        "minResources",
        Support.NEVER,
        "what its pods ask for counts, with Koordinator's scheduler as well",
        {"cpu": "4"},
    ),
)


def _asked_for(area: Area, support: Support, consequence: str, field: str, reader: str = "") -> CoverageRow:
    return CoverageRow(
        Surface.POD_RESOURCE,
        area,
        field,
        support,
        consequence,
        source=_EXTENSION + ("resource.go" if area is Area.LENDING else "device_share.go"),
        reader=reader,
        example="1",
    )


_DEVICE = "counted where a node offers it, and no node does by itself: Sublet neither finds nor hands out devices"
_RESOURCES = (
    *(
        _asked_for(Area.LENDING, Support.HONOURED, consequence, f"kubernetes.io/{name}", "model/resources.py")
        for name, consequence in (
            ("batch-cpu", "lent CPU, 1000 is one CPU"),
            ("batch-memory", "lent memory in bytes"),
            ("mid-cpu", "CPU that production is predicted not to use"),
            ("mid-memory", "memory that production is predicted not to use"),
        )
    ),
    *(
        _asked_for(
            Area.LENDING, Support.NEVER, f"its former name; write kubernetes.io/{name}", f"koordinator.sh/{name}"
        )
        for name in ("batch-cpu", "batch-memory")
    ),
    *(
        _asked_for(Area.DEVICES, Support.PARTLY, _DEVICE, name)
        for name in ("koordinator.sh/*", "kubernetes.io/gpu*", "kubernetes.io/rdma", "kubernetes.io/fpga")
    ),
)

ROWS = (*_LABELS, *_QOS_ANNOTATIONS, *_SCHEDULING_ANNOTATIONS, *_RESOURCES, *_GANG_ANNOTATIONS, *_POD_GROUP)
