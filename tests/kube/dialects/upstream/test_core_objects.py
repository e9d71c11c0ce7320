"""Pods and Nodes of Kubernetes as the model sees them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from kube import objects
from kube.dialects.upstream import core_objects
from model.budget import DisruptionBudget
from model.fault import ConfigurationFault
from model.node import TaintEffect
from model.pod.affinity import HostPort
from model.pod.spec import Container, TolerationOperator
from model.pod.status import PodPhase
from model.priority import PreemptionPolicy, PriorityClass
from model.qos import KubernetesQoS, PriorityBand, QoSClass
from model.resources import BATCH_CPU, CPU, MEMORY
from model.selector import Operator, Requirement, Selector
from model.workload import GangSource


def container(name: str = "c", *, requests: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    return {"name": name, "resources": {"requests": requests or {}}, **more}


def pod(spec: dict[str, Any] | None = None, status: dict[str, Any] | None = None, **metadata: Any) -> objects.Pod:
    body = {
        "metadata": {
            "name": "p",
            "namespace": "ns",
            "uid": "u",
            "creationTimestamp": "2026-01-01T00:00:10Z",
            **metadata,
        },
        "spec": {"containers": [container()], **(spec or {})},
        "status": status or {},
    }
    return msgspec.json.decode(msgspec.json.encode(body), type=objects.Pod)


EFFECTIVE: dict[str, tuple[dict[str, Any], int]] = {
    "containers add up": (
        {"containers": [container(requests={"cpu": "1"}), container("d", requests={"cpu": "500m"})]},
        1500,
    ),
    "a larger init container decides": (
        {"containers": [container(requests={"cpu": "1"})], "initContainers": [container("i", requests={"cpu": "3"})]},
        3000,
    ),
    "a sidecar adds to the containers": (
        {
            "containers": [container(requests={"cpu": "1"})],
            "initContainers": [container("s", requests={"cpu": "1"}, restartPolicy="Always")],
        },
        2000,
    ),
    "init after a sidecar counts with it": (
        {
            "containers": [container(requests={"cpu": "1"})],
            "initContainers": [
                container("s", requests={"cpu": "1"}, restartPolicy="Always"),
                container("i", requests={"cpu": "2"}),
            ],
        },
        3000,
    ),
    "what the pod asks for as a whole replaces that": (
        {
            "containers": [container(requests={"cpu": "1"})],
            "initContainers": [container("i", requests={"cpu": "3"})],
            "resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "4"}},
            "overhead": {"cpu": "250m"},
        },
        2250,
    ),
    "of the resource it names": (
        {"containers": [container(requests={"cpu": "1"})], "resources": {"requests": {"memory": "1Gi"}}},
        1000,
    ),
    "its limit stands in where nobody requests": ({"resources": {"limits": {"cpu": "4"}}}, 4000),
    "a container's request comes before its limit": (
        {"containers": [container(requests={"cpu": "1"})], "resources": {"limits": {"cpu": "4"}}},
        1000,
    ),
    "overhead comes on top": ({"containers": [container(requests={"cpu": "1"})], "overhead": {"cpu": "250m"}}, 1250),
}


@pytest.mark.parametrize(("spec", "millis"), EFFECTIVE.values(), ids=EFFECTIVE.keys())
def test_effective_request(spec: dict[str, Any], millis: int) -> None:
    """max(containers + sidecars, init peak) + overhead."""
    assert core_objects.pod(pod(spec)).spec.requests[CPU] == millis


def test_batch_pod() -> None:
    """A pod of the quick start: label BE, band batch, batch resources, BestEffort to Kubernetes."""
    spec = {
        "containers": [container(requests={BATCH_CPU: "1000", "kubernetes.io/batch-memory": "2Gi"})],
        "priority": 5000,
    }
    found = core_objects.pod(pod(spec, {"phase": "Running"}, labels={"koordinator.sh/qosClass": "BE"}))
    assert (found.colocation.qos, found.colocation.band, found.status.kubernetes_qos) == (
        QoSClass.BE,
        PriorityBand.BATCH,
        KubernetesQoS.BEST_EFFORT,
    )
    assert found.spec.requests[BATCH_CPU] == 1000 and found.best_effort and found.status.phase is PodPhase.RUNNING
    assert found.created_seconds == 1767225610.0


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        ({}, KubernetesQoS.BEST_EFFORT),
        ({"requests": {"cpu": "1"}}, KubernetesQoS.BURSTABLE),
        (
            {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "1", "memory": "1Gi"}},
            KubernetesQoS.GUARANTEED,
        ),
        ({"limits": {"cpu": "1"}, "requests": {"cpu": "1"}}, KubernetesQoS.BURSTABLE),
        ({"requests": {BATCH_CPU: "1"}}, KubernetesQoS.BEST_EFFORT),
    ],
)
def test_kubernetes_qos_before_the_server_says(resources: dict[str, Any], expected: KubernetesQoS) -> None:
    """Computed by Kubernetes' rule; status.qosClass wins once it is there."""
    source = pod({"containers": [{"name": "c", "resources": resources}]})
    assert core_objects.pod(source).status.kubernetes_qos is expected
    told = pod({"containers": [{"name": "c", "resources": resources}]}, {"qosClass": "Guaranteed"})
    assert core_objects.pod(told).status.kubernetes_qos is KubernetesQoS.GUARANTEED


FULL = {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "1", "memory": "1Gi"}}
WHOLE_POD: dict[str, tuple[dict[str, Any], KubernetesQoS]] = {
    "only an init container asks": (
        {"initContainers": [container("i", requests={"cpu": "4"})]},
        KubernetesQoS.BURSTABLE,
    ),
    "an init container without limits": (
        {"containers": [{"name": "c", "resources": FULL}], "initContainers": [container("i")]},
        KubernetesQoS.BURSTABLE,
    ),
    "every container is limited": (
        {"containers": [{"name": "c", "resources": FULL}], "initContainers": [{"name": "i", "resources": FULL}]},
        KubernetesQoS.GUARANTEED,
    ),
    "the pod as a whole asks": ({"resources": {"requests": {"cpu": "1"}}}, KubernetesQoS.BURSTABLE),
    "the pod as a whole is limited": ({"resources": FULL}, KubernetesQoS.GUARANTEED),
    "the pod as a whole decides": (
        {"containers": [{"name": "c", "resources": FULL}], "resources": {"limits": {"cpu": "1"}}},
        KubernetesQoS.BURSTABLE,
    ),
}


@pytest.mark.parametrize(("spec", "expected"), WHOLE_POD.values(), ids=WHOLE_POD.keys())
def test_kubernetes_qos_of_the_whole_pod(spec: dict[str, Any], expected: KubernetesQoS) -> None:
    """Init containers count as containers do; what the pod asks for as a whole comes before both."""
    assert core_objects.pod(pod(spec)).status.kubernetes_qos is expected


def test_an_unreadable_amount_of_the_whole_pod_is_named() -> None:
    """Pod and field."""
    with pytest.raises(ConfigurationFault, match=r"Pod ns/p: spec\.resources\.requests\.cpu: 'x'"):
        core_objects.pod(pod({"resources": {"requests": {"cpu": "x"}}}))


def test_an_unreadable_quantity_names_pod_container_and_resource() -> None:
    """One line is enough to mend it."""
    with pytest.raises(ConfigurationFault, match=r"Pod ns/p: container c\.resources\.requests\.memory: '4Gib'"):
        core_objects.pod(pod({"containers": [container(requests={"memory": "4Gib"})]}))


def test_claims_for_devices_are_told_as_not_supported() -> None:
    """Nothing else a pod may ask of its node is."""
    assert core_objects.pod(pod({"resourceClaims": [{"name": "gpu"}]})).spec.unsupported == ("spec.resourceClaims",)
    spec = {
        "affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone"}]}},
        "topologySpreadConstraints": [{"topologyKey": "zone", "maxSkew": 1}],
        "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "x"}}],
        "containers": [container(ports=[{"containerPort": 8080, "hostPort": 80}])],
    }
    found = core_objects.pod(pod(spec))
    assert found.spec.unsupported == ()
    assert (len(found.spec.affinity.pods), len(found.spec.spread), found.spec.claims) == (1, 1, ("x",))


def test_an_unreadable_constraint_is_never_ignored() -> None:
    """Pod, field and fix."""
    spec = {"topologySpreadConstraints": [{"topologyKey": "zone", "maxSkew": 1, "whenUnsatisfiable": "Maybe"}]}
    with pytest.raises(
        ConfigurationFault,
        match=r"Pod ns/p: spec\.topologySpreadConstraints\[0\]\.whenUnsatisfiable: is 'Maybe' "
        r"\(write one of DoNotSchedule, ScheduleAnyway\)",
    ):
        core_objects.pod(pod(spec))


_NO_NUMBER = {"weight": 1, "preference": {"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["abc"]}]}}
NO_NUMBER = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [_NO_NUMBER]}}


def test_what_a_pod_that_has_its_node_asked_of_nodes_need_not_be_readable() -> None:
    """API servers admit it, and whoever may make a pod may name its node: an agent must know of it all the same."""
    terms = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone"}]}}
    with pytest.raises(ConfigurationFault, match="Gt and Lt need one whole number"):
        core_objects.pod(pod({"affinity": NO_NUMBER | terms}))
    found = core_objects.pod(pod({"affinity": NO_NUMBER | terms, "nodeName": "n1", "containers": [container()]}))
    assert (found.spec.node_name, len(found.spec.affinity.anti_pods), found.spec.affinity.preferred_nodes) == (
        "n1",
        1,
        (),
    )
    with pytest.raises(ConfigurationFault, match="write a topologyKey"):
        broken = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": ""}]}}
        core_objects.pod(pod({"affinity": NO_NUMBER | broken, "nodeName": "n1"}))


PORTS: dict[str, tuple[dict[str, Any], tuple[HostPort, ...]]] = {
    "none": ({"containers": [container(ports=[{"containerPort": 80}])]}, ()),
    "of a container": (
        {"containers": [container(ports=[{"containerPort": 80, "hostPort": 8080, "protocol": "UDP"}])]},
        (HostPort(8080, "UDP"),),
    ),
    "of one address": (
        {"containers": [container(ports=[{"hostPort": 53, "hostIP": "127.0.0.1"}])]},
        (HostPort(53, "TCP", "127.0.0.1"),),
    ),
    "of a sidecar, not of an init container": (
        {
            "initContainers": [
                container("s", ports=[{"hostPort": 1}], restartPolicy="Always"),
                container("i", ports=[{"hostPort": 2}]),
            ]
        },
        (HostPort(1),),
    ),
    "on the host's network": (
        {"hostNetwork": True, "containers": [container(ports=[{"containerPort": 80}])]},
        (HostPort(80),),
    ),
}


@pytest.mark.parametrize(("spec", "expected"), PORTS.values(), ids=PORTS.keys())
def test_host_ports(spec: dict[str, Any], expected: tuple[HostPort, ...]) -> None:
    """Protocol TCP and every address where nothing else is said."""
    assert core_objects.pod(pod(spec)).spec.host_ports == expected


def test_an_ephemeral_volumes_claim_is_named_after_pod_and_volume() -> None:
    """Beside claims that are named; volumes of other kinds need none."""
    volumes = [
        {"name": "v", "persistentVolumeClaim": {"claimName": "data"}},
        {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {}}},
        {"name": "c", "configMap": {"name": "x"}},
    ]
    assert core_objects.pod(pod({"volumes": volumes})).spec.claims == ("data", "p-scratch")


def test_who_would_replace_it() -> None:
    """Only an owner that controls it counts."""
    owners = [{"kind": "Node", "name": "n"}, {"kind": "DaemonSet", "name": "d", "controller": True}]
    found = core_objects.pod(pod(ownerReferences=owners))
    assert (found.owned, found.daemon) == (True, True)
    found = core_objects.pod(pod(ownerReferences=owners[:1]))
    assert (found.owned, found.daemon) == (False, False)


def test_the_name_of_an_owner_is_bounded() -> None:
    """The API server takes any: what is remembered of pods that are gone would grow by it."""
    owner = {"kind": "X" * 1_000_000, "name": "x" * 1_000_000, "controller": True}
    found = core_objects.pod(pod(ownerReferences=[owner]))
    assert found.owned and found.owner == f"{found.namespace}/{'x' * 253}" and len(found.owner_kind) == 253


def test_times_and_nomination() -> None:
    """Of status; what is not told is 0."""
    at = "2026-01-01T00:00:20Z"
    status = {
        "nominatedNodeName": "n",
        "startTime": at,
        "conditions": [
            {"type": "PodScheduled", "status": "True", "lastTransitionTime": at},
            {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"},
        ],
    }
    found = core_objects.pod(pod(None, status))
    assert (found.status.scheduled_seconds, found.status.started_seconds, found.status.initialized_seconds) == (
        1767225620.0,
    ) * 2 + (0.0,)
    assert (found.status.nominated_node, found.status.disrupted) == ("n", True)


def test_labels_amounts_and_words_about_preemption() -> None:
    """What filters, scores and preemption read of a pod."""
    resources = {"requests": {"cpu": "1"}, "limits": {"cpu": "2"}}
    found = core_objects.pod(
        pod(
            {"containers": [{"name": "c", "resources": resources}], "preemptionPolicy": "Never"},
            labels={"app": "x", "volcano.sh/preemptable": "false", "batch.kubernetes.io/job-completion-index": "4"},
        )
    )
    assert (found.labels["app"], found.spec.limits[CPU], found.spec.scored[CPU], found.spec.scored[MEMORY]) == (
        "x",
        2000,
        1000,
        200 << 20,
    )
    assert (found.spec.preemption_policy, found.colocation.preemptible, found.spec.rank) == (
        PreemptionPolicy.NEVER,
        False,
        4,
    )


def test_a_group_of_the_spec() -> None:
    """spec.schedulingGroup."""
    gang = core_objects.pod(pod({"schedulingGroup": {"podGroupName": "g"}})).spec.gang
    assert gang is not None and (gang.key, gang.source) == ("ns/g", GangSource.UPSTREAM)


def test_node() -> None:
    """Capacity, allocatable, taints; a null list is an empty one."""
    body = {
        "metadata": {"name": "n", "labels": {"a": "b"}},
        "spec": {"taints": [{"key": "k", "effect": "NoSchedule"}], "unschedulable": True},
        "status": {"capacity": {"cpu": 2, "memory": "4Gi"}, "allocatable": {"cpu": "1900m"}},
    }
    found = core_objects.node(msgspec.convert(body, objects.Node))
    assert (found.capacity[CPU], found.capacity[MEMORY], found.allocatable[CPU]) == (2000, 4 << 30, 1900)
    assert found.unschedulable and found.taints[0].key == "k"
    bare = msgspec.json.decode(b'{"metadata":{"name":"n","labels":null},"spec":{"taints":null}}', type=objects.Node)
    assert core_objects.node(bare).taints == ()


@pytest.mark.parametrize(
    ("word", "effect"),
    [(each.value, each) for each in TaintEffect] + [("", TaintEffect.UNKNOWN), ("Odd", TaintEffect.UNKNOWN)],
)
def test_an_effect_that_nobody_knows_is_none_of_the_others(word: str, effect: TaintEffect) -> None:
    """A later Kubernetes may have more effects: such a taint keeps no pod away, and its toleration tolerates no other."""
    body = {"spec": {"taints": [{"key": "k", "effect": word}]}}
    assert core_objects.node(msgspec.convert(body, objects.Node)).taints[0].effect is effect
    (found,) = core_objects.pod(pod({"tolerations": [{"key": "k", "effect": word}]})).spec.tolerations
    assert found.effect is (effect if word else None)


@pytest.mark.parametrize(
    ("word", "operator"),
    [
        ("", TolerationOperator.EQUAL),
        ("Equal", TolerationOperator.EQUAL),
        ("Exists", TolerationOperator.EXISTS),
        ("Gt", TolerationOperator.EQUAL),
    ],
)
def test_only_exists_tolerates_every_value(word: str, operator: TolerationOperator) -> None:
    """An operator that nobody here knows tolerates as little as it can: the very same value."""
    (found,) = core_objects.pod(pod({"tolerations": [{"key": "k", "operator": word, "value": "5"}]})).spec.tolerations
    assert (found.operator, found.value) == (operator, "5")


def test_containers_are_known_by_the_runtimes_ids() -> None:
    """Init containers and sidecars too, also when they have ended; one that never started has no id."""
    status = {
        "containerStatuses": [{"name": "c", "containerID": "containerd://abc"}, {"name": "waiting", "containerID": ""}],
        "initContainerStatuses": [{"name": "i", "containerID": "cri-o://def"}, {"name": "bare", "containerID": "123"}],
    }
    assert core_objects.pod(pod(None, status)).status.container_ids == {"c": "abc", "i": "def", "bare": "123"}
    assert core_objects.pod(pod()).status.container_ids == {}


HASH, MIRROR = "kubernetes.io/config.hash", "kubernetes.io/config.mirror"
CGROUP_UIDS: dict[str, tuple[dict[str, str] | None, str]] = {
    "an ordinary pod": (None, "u"),
    "a mirror": ({HASH: "0aF9", MIRROR: "0aF9"}, "0aF9"),
    "a static pod as the kubelet tells it": ({HASH: "0aF9"}, "u"),
    "a mirror without a hash": ({MIRROR: "0aF9"}, "u"),
    "a hash that leads elsewhere": ({HASH: "../../x", MIRROR: ""}, "u"),
}


@pytest.mark.parametrize(("annotations", "expected"), CGROUP_UIDS.values(), ids=CGROUP_UIDS.keys())
def test_which_cgroup_is_the_pods(annotations: dict[str, str] | None, expected: str) -> None:
    """The uid, but for the mirror of a static pod."""
    assert core_objects.pod(pod(annotations=annotations)).cgroup_uid == expected


def test_what_the_scheduler_pinned() -> None:
    """CPUs and NUMA nodes; the host's network is a fact of the spec."""
    status = '{"cpuset": "2-3", "numaNodeResources": [{"node": 1}]}'
    found = core_objects.pod(
        pod({"hostNetwork": True}, annotations={"scheduling.koordinator.sh/resource-status": status})
    )
    assert (found.colocation.cpuset, found.colocation.numa_zones, found.spec.host_network) == ("2-3", (1,), True)
    assert (
        core_objects.pod(pod()).colocation.cpuset,
        core_objects.pod(pod()).colocation.numa_zones,
        core_objects.pod(pod()).spec.host_network,
    ) == (
        "",
        (),
        False,
    )


# label, status.qosClass, spec.priority -> label as written, class, band
CLASSES: dict[str, tuple[str | None, str, int | None, QoSClass, QoSClass, PriorityBand]] = {
    "SYSTEM": ("SYSTEM", "Burstable", None, QoSClass.SYSTEM, QoSClass.SYSTEM, PriorityBand.PROD),
    "LSE": ("LSE", "Guaranteed", 9000, QoSClass.LSE, QoSClass.LSE, PriorityBand.PROD),
    "LSR": ("LSR", "Guaranteed", 9999, QoSClass.LSR, QoSClass.LSR, PriorityBand.PROD),
    "LS": ("LS", "Burstable", 7000, QoSClass.LS, QoSClass.LS, PriorityBand.MID),
    "BE": ("BE", "BestEffort", 5000, QoSClass.BE, QoSClass.BE, PriorityBand.BATCH),
    "BE of a free priority": ("BE", "BestEffort", 3999, QoSClass.BE, QoSClass.BE, PriorityBand.FREE),
    "BE without a priority": ("BE", "BestEffort", None, QoSClass.BE, QoSClass.BE, PriorityBand.BATCH),
    "Guaranteed counts as LSR": (None, "Guaranteed", None, QoSClass.NONE, QoSClass.LSR, PriorityBand.PROD),
    "Burstable counts as LS": (None, "Burstable", 0, QoSClass.NONE, QoSClass.LS, PriorityBand.PROD),
    "BestEffort counts as BE": (None, "BestEffort", None, QoSClass.NONE, QoSClass.BE, PriorityBand.BATCH),
    "an unknown label is none": ("ls", "Guaranteed", 8000, QoSClass.NONE, QoSClass.LSR, PriorityBand.PROD),
}


@pytest.mark.parametrize(
    ("label", "kubernetes", "priority", "written", "qos", "band"), CLASSES.values(), ids=CLASSES.keys()
)
def test_classes_and_bands(
    label: str | None,
    kubernetes: str,
    priority: int | None,
    written: QoSClass,
    qos: QoSClass,
    band: PriorityBand,
) -> None:
    """The label as written, the class with its default by Kubernetes' class, the band by number or by class."""
    labels = {"koordinator.sh/qosClass": label} if label else None
    found = core_objects.pod(pod({"priority": priority}, {"qosClass": kubernetes}, labels=labels))
    assert (found.colocation.qos_label, found.colocation.qos, found.colocation.band) == (written, qos, band)


def test_init_containers_and_sidecars() -> None:
    """An init container that is always restarted is a sidecar; a regular container never is."""
    spec = {
        "containers": [container("c", restartPolicy="Always")],
        "initContainers": [container("i", requests={BATCH_CPU: 5}), container("s", restartPolicy="Always")],
    }
    found = core_objects.pod(pod(spec))
    assert [(each.name, each.sidecar) for each in found.spec.containers] == [("c", False)]
    assert [(each.name, each.sidecar, each.requests[BATCH_CPU]) for each in found.spec.init_containers] == [
        ("i", False, 5),
        ("s", True, 0),
    ]


def test_the_annotation_about_lent_resources_is_not_believed() -> None:
    """Who may annotate a pod may write it, and no spec ever follows it; the pod's own resources cannot be changed."""
    text = '{"containers": {"c": {"limits": {"kubernetes.io/batch-cpu": 500}}}}'
    found = core_objects.pod(pod(annotations={"node.koordinator.sh/extended-resource-spec": text}))
    assert found.spec.containers == (Container("c"),) and not found.spec.requests


@pytest.mark.parametrize(
    ("told", "expected"), [(None, 30.0), (0, 0.0), (300, 300.0), (-5, 1.0), (1 << 60, 31_536_000.0)]
)
def test_grace(told: int | None, expected: float) -> None:
    """Kubernetes' default, and what it makes of a negative one."""
    assert core_objects.pod(pod({"terminationGracePeriodSeconds": told})).spec.grace_seconds == expected


def test_what_a_pod_says_of_its_eviction() -> None:
    """Label and annotations, ours among them."""
    found = core_objects.pod(
        pod(
            labels={"koordinator.sh/eviction-enabled": "true"},
            annotations={"sublet.dev/preemption-notice-seconds": "90"},
        )
    )
    assert (found.colocation.eviction.enabled, found.colocation.eviction.notice_seconds) == (True, 90.0)


def test_disruption_budget() -> None:
    """Selector, allowance and pods that go already; without a status nothing is allowed."""
    body: dict[str, Any] = {
        "metadata": {"namespace": "ns", "name": "b"},
        "spec": {"selector": {"matchLabels": {"app": "x"}}},
    }
    selector = Selector((Requirement("app", Operator.IN, ("x",)),))
    read = core_objects.budget(msgspec.convert(body, objects.PodDisruptionBudget))
    assert read == DisruptionBudget("ns", "b", selector)
    body["status"] = {"disruptionsAllowed": 2, "disruptedPods": {"p": "2026-01-01T00:00:20Z"}}
    read = core_objects.budget(msgspec.convert(body, objects.PodDisruptionBudget))
    assert (read.allowed, read.disrupted) == (2, frozenset({"p"}))
    body["spec"] = {"selector": {"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["1"]}]}}
    with pytest.raises(ConfigurationFault, match=r"PodDisruptionBudget ns/b: spec.selector.matchExpressions\[0\]"):
        core_objects.budget(msgspec.convert(body, objects.PodDisruptionBudget))


@pytest.mark.parametrize(
    "selector",
    [
        {"matchLabels": {f"k{number}": "v" for number in range(1_001)}},
        {"matchExpressions": [{"key": "a", "operator": "In", "values": [str(number) for number in range(1_000)]}]},
    ],
    ids=["labels", "values"],
)
def test_a_budget_of_thousands_of_keys_or_values_is_refused(selector: dict[str, Any]) -> None:
    """It is read at each change of two bytes, by whoever may write it."""
    body = {"metadata": {"namespace": "ns", "name": "b"}, "spec": {"selector": selector}}
    with pytest.raises(ConfigurationFault, match=r"names 1001 keys and values .name at most 1000;"):
        core_objects.budget(msgspec.convert(body, objects.PodDisruptionBudget))


@pytest.mark.parametrize(
    ("told", "policy"),
    [({}, PreemptionPolicy.LOWER), ({"preemptionPolicy": "Never"}, PreemptionPolicy.NEVER)],
)
def test_priority_class(told: dict[str, Any], policy: PreemptionPolicy) -> None:
    """Value, policy and whether it is everybody's."""
    body = {"metadata": {"name": "high"}, "value": 9000, "globalDefault": True, **told}
    assert core_objects.priority_class(msgspec.convert(body, objects.PriorityClass)) == PriorityClass(
        "high", 9000, policy, True
    )


def test_namespace_labels() -> None:
    """None are none."""
    assert core_objects.namespace_labels(objects.Namespace(objects.Metadata(labels={"team": "a"}))) == {"team": "a"}
    assert core_objects.namespace_labels(objects.Namespace()) == {}
