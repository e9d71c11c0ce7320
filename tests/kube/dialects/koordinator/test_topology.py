"""NodeResourceTopology as Koordinator writes and reads it."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from kube.dialects.koordinator import topology
from kube.dialects.koordinator.topology import NodeResourceTopology
from model.fault import ConfigurationFault
from model.node import Node
from model.resources import BATCH_CPU, BATCH_MEMORY, CPU, MEMORY, MID_CPU, ResourceVector
from model.topology import (
    CpuBasics,
    CpuInfo,
    KubeletCpus,
    NodeTopology,
    NumaNode,
    PodCpus,
    Processor,
    SharePool,
    SharePools,
    Zone,
)

GIB = 1 << 30
NODE = Node("n", uid="u", annotations={"other": "x"})
LENT = {0: ResourceVector({BATCH_CPU: 1500, BATCH_MEMORY: 3 * GIB})}
RESERVATION = '{"reservedCPUs":"0"}'
PODS = (PodCpus("p1", (0,), "ns", "web"),)


def report(**parts: Any) -> NodeTopology:
    resources = ResourceVector({CPU: 2000, MEMORY: 4 * GIB})
    fields: dict[str, Any] = {
        "cpu": CpuInfo(
            CpuBasics("Xeon", "GenuineIntel", hyper_threading=True),
            (Processor(1, 0, 0, 0), Processor(0, 0, 0, 0)),
            (NumaNode(0, (0, 1), 4 * GIB),),
        ),
        "zones": (Zone(0, "node-0", ResourceVector({CPU: 1500, MEMORY: 3 * GIB}), resources),),
        "pools": SharePools((SharePool(0, 0, (1,)),), (SharePool(0, 0, (0, 1)),)),
        "kubelet": KubeletCpus("static", PODS),
    }
    return NodeTopology(**{**fields, **parts})


def stored(body: dict[str, Any], version: str = "7") -> NodeResourceTopology:
    """What the server keeps of a document."""
    body = msgspec.json.decode(msgspec.json.encode(body))
    body["metadata"]["resourceVersion"] = version
    return msgspec.convert(body, NodeResourceTopology)


def merged(current: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    """RFC 7386."""
    result = dict(current)
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, dict):
            result[key] = merged(result.get(key, {}), value)
        else:
            result[key] = value
    return result


def row(name: str, capacity: str, allocatable: str | None = None) -> dict[str, str]:
    amount = allocatable or capacity
    return {"name": name, "capacity": capacity, "allocatable": amount, "available": amount}


def test_document() -> None:
    """Every field, as Koordinator's node agent and controller would fill it."""
    body = topology.document(NODE, report(), LENT)
    annotations = {key: json.loads(text) for key, text in body["metadata"].pop("annotations").items()}
    assert annotations == {
        "node.koordinator.sh/cpu-basic-info": {
            "cpuModel": "Xeon",
            "vendorID": "GenuineIntel",
            "hyperThreadEnabled": True,
        },
        "node.koordinator.sh/cpu-topology": {
            "detail": [{"id": 0, "core": 0, "socket": 0, "node": 0}, {"id": 1, "core": 0, "socket": 0, "node": 0}]
        },
        "node.koordinator.sh/cpu-shared-pools": [{"socket": 0, "node": 0, "cpuset": "1"}],
        "node.koordinator.sh/be-cpu-shared-pools": [{"socket": 0, "node": 0, "cpuset": "0-1"}],
        "node.koordinator.sh/pod-cpu-allocs": [
            {"namespace": "ns", "name": "web", "uid": "p1", "cpuset": "0", "managedByKubelet": True}
        ],
        "kubelet.koordinator.sh/cpu-manager-policy": {"policy": "static"},
    }
    assert body == {
        "apiVersion": "topology.node.k8s.io/v1alpha1",
        "kind": "NodeResourceTopology",
        "metadata": {
            "name": "n",
            "labels": {"app.kubernetes.io/managed-by": "Koordinator", "app.kubernetes.io/part-of": "sublet"},
            "ownerReferences": [
                {
                    "apiVersion": "v1",
                    "kind": "Node",
                    "name": "n",
                    "uid": "u",
                    "controller": True,
                }
            ],
        },
        "topologyPolicies": ["None"],
        "zones": [
            {
                "name": "node-0",
                "type": "Node",
                "resources": [
                    row("cpu", "2", "1500m"),
                    row(BATCH_CPU, "1500"),
                    row(BATCH_MEMORY, str(3 * GIB)),
                    row("memory", "4Gi", "3Gi"),
                ],
            }
        ],
    }


def test_what_the_node_says_of_its_cpus_is_copied() -> None:
    """Reservation and system QoS word for word, nothing else; without a kubelet's file nothing is said of it."""
    node = Node(
        "n", annotations={topology.ANNOTATION_RESERVATION: RESERVATION, topology.ANNOTATION_SYSTEM_QOS: "{}", "x": "y"}
    )
    written = topology.document(node, report(kubelet=None), {})["metadata"]["annotations"]
    assert written[topology.ANNOTATION_RESERVATION] == RESERVATION and written[topology.ANNOTATION_SYSTEM_QOS] == "{}"
    assert not {topology.ANNOTATION_KUBELET, topology.ANNOTATION_POD_CPUS, "x"} & written.keys()


def test_cpus_chosen_for_an_amount_are_told() -> None:
    """Beside all that the Node says itself."""
    text = '{"resources":{"cpu":"1"},"later":[1]}'
    node = Node("n", annotations={topology.ANNOTATION_RESERVATION: text})
    written = topology.document(node, report(), {})["metadata"]["annotations"][topology.ANNOTATION_RESERVATION]
    assert json.loads(written) == {"resources": {"cpu": "1"}, "later": [1], "reservedCPUs": "0"}


def test_what_was_written_is_read_back() -> None:
    """Zones and basics survive the way through the object."""
    read = stored(topology.document(NODE, report(), LENT))
    assert topology.cpu_basics(read) == report().cpu.basics
    (zone,) = topology.zones(read)
    assert (zone.id, zone.name) == (0, "node-0")
    assert zone.allocatable.amounts == {CPU: 1500, MEMORY: 3 * GIB, BATCH_CPU: 1500, BATCH_MEMORY: 3 * GIB}
    assert zone.capacity.amounts == {CPU: 2000, MEMORY: 4 * GIB, BATCH_CPU: 1500, BATCH_MEMORY: 3 * GIB}


def test_zones_of_others() -> None:
    """By number, whatever their order; other types and names are nobody's NUMA node; numbers may be unquoted."""
    found = topology.zones(
        NodeResourceTopology(
            zones=[
                {"name": "node-10", "type": "Node", "resources": [{"name": "cpu", "allocatable": 4, "capacity": 4}]},
                {"name": "node-2", "type": "Node"},
                {"name": "socket-0", "type": "Socket"},
                {"name": "numa-0", "type": "Node"},
            ]
        )
    )
    assert [(zone.id, zone.allocatable[CPU]) for zone in found] == [(2, 0), (10, 4000)]
    assert topology.zones(NodeResourceTopology()) == () and topology.cpu_basics(NodeResourceTopology()) is None


BROKEN: dict[str, tuple[dict[str, Any], str]] = {
    "amount": (
        {"name": "node-0", "type": "Node", "resources": [{"name": "cpu", "allocatable": "many"}]},
        r"NodeResourceTopology n: zones\[0\]\.resources: allocatable\.cpu: 'many' is not a quantity",
    ),
    "negative": (
        {"name": "node-0", "type": "Node", "resources": [{"name": "memory", "allocatable": "-1"}]},
        r"zones\[0\]\.resources: allocatable\.memory: '-1' is negative",
    ),
    "no name": ({"type": "Node"}, r"zones\[0\]: .*`name`"),
    "rows": ({"name": "node-0", "type": "Node", "resources": {}}, r"zones\[0\]\.resources: is an object"),
}


@pytest.mark.parametrize(("zone", "told"), BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_zone_names_object_and_field(zone: dict[str, Any], told: str) -> None:
    """So that one line is enough."""
    source = stored({"metadata": {"name": "n"}, "zones": [zone]})
    with pytest.raises(ConfigurationFault, match=told):
        topology.zones(source)


def test_broken_basics_name_object_and_annotation() -> None:
    """And the field, and what stands there."""
    source = stored({"metadata": {"name": "n", "annotations": {topology.ANNOTATION_BASICS: '{"turboEnabled": 1}'}}})
    with pytest.raises(
        ConfigurationFault, match=r"NodeResourceTopology n: annotation .*cpu-basic-info\.turboEnabled: is 1"
    ):
        topology.cpu_basics(source)


def test_nothing_changed_means_no_patch() -> None:
    """Also when others added annotations, labels, attributes and zones of their own."""
    body = topology.document(NODE, report(), LENT)
    body["metadata"]["annotations"] |= {"theirs": "1"}
    body["zones"][0]["costs"] = [{"name": "node-0", "value": 10}]
    body["zones"][0]["resources"].append(row("z.example/gpu", "1"))
    body["zones"].append({"name": "s", "type": "Socket"})
    body["topologyPolicies"] = ["SingleNUMANodePodLevel"]
    assert topology.changes(stored(body), topology.document(NODE, report(), LENT)) == {}


def test_a_patch_holds_what_differs_and_the_version_it_was_made_from() -> None:
    """Only the annotation that changed; zones stay out where they are the same."""
    old, new = topology.document(NODE, report(), LENT), topology.document(NODE, report(kubelet=KubeletCpus()), LENT)
    assert topology.changes(stored(old, "42"), new) == {
        "metadata": {
            "resourceVersion": "42",
            "annotations": {
                topology.ANNOTATION_KUBELET: '{"policy":"none"}',
                topology.ANNOTATION_POD_CPUS: "[]",
            },
        }
    }


STATIC = '{"policy": "static", "options": {"full-pcpus-only": "true"}, "reservedCPUs": "0-1"}'
KUBELET: dict[str, tuple[str | None, str, Any]] = {
    # what stands, the policy now, what is written (None: nothing)
    "the same, and more": (STATIC, "static", None),
    "another policy": (
        STATIC,
        "none",
        {"policy": "none", "options": {"full-pcpus-only": "true"}, "reservedCPUs": "0-1"},
    ),
    "nothing": (None, "static", {"policy": "static"}),
    "no object": ("[]", "static", {"policy": "static"}),
}


@pytest.mark.parametrize(("standing", "policy", "written"), KUBELET.values(), ids=KUBELET.keys())
def test_what_others_know_of_the_kubelet_stays(standing: str | None, policy: str, written: Any) -> None:
    """Options and reserved CPUs are not in its state file: whoever wrote them knows better."""
    body = topology.document(NODE, report(), LENT)
    del body["metadata"]["annotations"][topology.ANNOTATION_KUBELET]
    if standing is not None:
        body["metadata"]["annotations"][topology.ANNOTATION_KUBELET] = standing
    wanted = topology.document(NODE, report(kubelet=KubeletCpus(policy, PODS)), LENT)
    found = topology.changes(stored(body), wanted).get("metadata", {}).get("annotations", {})
    assert found.keys() == ({topology.ANNOTATION_KUBELET} if written else set())
    assert written is None or json.loads(found[topology.ANNOTATION_KUBELET]) == written


def test_a_copy_goes_with_its_original() -> None:
    """A reservation taken off the node leaves the document; a kubelet that cannot be read leaves what was written."""
    reserved = Node("n", annotations={topology.ANNOTATION_RESERVATION: RESERVATION})
    patch = topology.changes(
        stored(topology.document(reserved, report(), LENT)), topology.document(NODE, report(kubelet=None), LENT)
    )
    assert patch["metadata"]["annotations"] == {topology.ANNOTATION_RESERVATION: None}


def test_zones_keep_what_others_wrote() -> None:
    """Their rows and fields stay, ours are replaced, what is no longer lent and NUMA nodes that are gone go."""
    old = topology.document(NODE, report(), LENT)
    old["zones"][0]["resources"] += [row("example.com/gpu", "1"), row(MID_CPU, "7")]
    old["zones"][0]["attributes"] = [{"name": "a", "value": "b"}]
    old["zones"] += [{"name": "node-9", "type": "Node"}, {"name": "s", "type": "Socket"}]
    patch = topology.changes(stored(old), topology.document(NODE, report(), {}))
    assert patch.keys() == {"metadata", "zones"} and patch["metadata"] == {"resourceVersion": "7"}
    assert patch["zones"] == [
        {
            "name": "node-0",
            "type": "Node",
            "attributes": [{"name": "a", "value": "b"}],
            "resources": [row("cpu", "2", "1500m"), row("example.com/gpu", "1"), row("memory", "4Gi", "3Gi")],
        },
        {"name": "s", "type": "Socket"},
    ]
    assert topology.changes(stored(merged(old, patch)), topology.document(NODE, report(), {})) == {}


UNUSABLE: dict[str, tuple[dict[str, str], tuple[int, ...]]] = {
    "nothing said": ({}, ()),
    "reserved": ({topology.ANNOTATION_RESERVATION: '{"reservedCPUs":"0-1","resources":{"cpu":"8"}}'}, (0, 1)),
    "an amount takes the lowest core": ({topology.ANNOTATION_RESERVATION: '{"resources":{"cpu":"2"}}'}, (0, 2)),
    "system QoS is exclusive by default": ({topology.ANNOTATION_SYSTEM_QOS: '{"cpuset":"3,2"}'}, (2, 3)),
    "system QoS shares": ({topology.ANNOTATION_SYSTEM_QOS: '{"cpuset":"2","cpusetExclusive":false}'}, ()),
    "both": (
        {topology.ANNOTATION_RESERVATION: RESERVATION, topology.ANNOTATION_SYSTEM_QOS: '{"cpuset":"0-1"}'},
        (0, 1),
    ),
}


@pytest.mark.parametrize(("annotations", "cpus"), UNUSABLE.values(), ids=UNUSABLE.keys())
def test_unusable_cpus(annotations: dict[str, str], cpus: tuple[int, ...]) -> None:
    """What no share pool may have."""
    processors = tuple(Processor(cpu, core=cpu % 2, socket=0, node=0) for cpu in range(4))
    assert topology.unusable_cpus(Node("n", annotations=annotations), processors) == cpus


@pytest.mark.parametrize(
    ("key", "text", "told"),
    [
        (topology.ANNOTATION_RESERVATION, "[", r"Node n: annotation node\.koordinator\.sh/reservation: "),
        (topology.ANNOTATION_RESERVATION, '{"reservedCPUs":"x"}', r"reservation\.reservedCPUs: 'x' is not a CPU list"),
        (topology.ANNOTATION_SYSTEM_QOS, '{"cpuset":"x"}', r"system-qos-resource\.cpuset: 'x' is not a CPU list"),
    ],
)
def test_annotations_that_cannot_be_read(key: str, text: str, told: str) -> None:
    """The node, the annotation and what a list looks like."""
    with pytest.raises(ConfigurationFault, match=told):
        topology.unusable_cpus(Node("n", annotations={key: text}), ())
