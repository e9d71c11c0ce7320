"""CPU binding in Koordinator's words, there and back."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kube import objects
from kube.dialects.koordinator.cpubinding import (
    ANNOTATION_RESOURCE_SPEC,
    NOT_WHOLE,
    cpu_request,
    cpu_rules,
    node_cpus,
    resource_status,
)
from model.cpubinding import (
    BindPolicy,
    CpuLayout,
    CpuRequest,
    CpuRules,
    ExclusivePolicy,
    NodeCpus,
    NumaStrategy,
    layout_of,
)
from model.fault import ConfigurationFault
from model.qos import PriorityBand, QoSClass
from model.topology import Processor

PROD, LSE, LSR = PriorityBand.PROD, QoSClass.LSE, QoSClass.LSR
FULL, SPREAD = BindPolicy.FULL_PCPUS, BindPolicy.SPREAD_BY_PCPUS
REQUESTS: dict[str, tuple[QoSClass, PriorityBand, int, dict[str, str], CpuRequest | None]] = {
    "an LSE pod": (LSE, PROD, 2000, {}, CpuRequest(2)),
    "an LSR pod": (LSR, PROD, 4000, {}, CpuRequest(4)),
    "an LS pod": (QoSClass.LS, PROD, 2000, {}, None),
    "no label": (QoSClass.NONE, PROD, 2000, {}, None),
    "another band": (LSE, PriorityBand.BATCH, 2000, {}, None),
    "no CPU asked for": (LSE, PROD, 0, {}, None),
    "half a CPU": (LSE, PROD, 1500, {}, CpuRequest(1, problem=NOT_WHOLE)),
    "Default": (LSE, PROD, 2000, {"preferredCPUBindPolicy": "Default"}, CpuRequest(2)),
    "preferred": (LSE, PROD, 2000, {"preferredCPUBindPolicy": "SpreadByPCPUs"}, CpuRequest(2, SPREAD)),
    "required": (LSE, PROD, 2000, {"requiredCPUBindPolicy": "SpreadByPCPUs"}, CpuRequest(2, SPREAD, True)),
    "required comes first": (
        LSE,
        PROD,
        2000,
        {"requiredCPUBindPolicy": "FullPCPUs", "preferredCPUBindPolicy": "SpreadByPCPUs"},
        CpuRequest(2, FULL, True),
    ),
    "constrained burst binds none": (LSE, PROD, 2000, {"preferredCPUBindPolicy": "ConstrainedBurst"}, None),
    "exclusive": (
        LSE,
        PROD,
        2000,
        {"preferredCPUExclusivePolicy": "NUMANodeLevel"},
        CpuRequest(2, exclusive=ExclusivePolicy.NUMA_NODE_LEVEL),
    ),
}


@pytest.mark.parametrize(("label", "band", "millis", "spec", "expected"), REQUESTS.values(), ids=REQUESTS)
def test_request(
    label: QoSClass, band: PriorityBand, millis: int, spec: dict[str, str], expected: CpuRequest | None
) -> None:
    """Only LSE and LSR pods of band prod have CPUs of their own."""
    annotations = {ANNOTATION_RESOURCE_SPEC: json.dumps(spec)} if spec else {}
    assert cpu_request(annotations, label, band, millis) == expected


@pytest.mark.parametrize("text", ["{", "[]", '{"requiredCPUBindPolicy": "FullCPUs"}', '{"preferredCPUBindPolicy": 1}'])
def test_a_spec_that_cannot_be_read(text: str) -> None:
    """The pod waits, and the reason names the annotation."""
    found = cpu_request({ANNOTATION_RESOURCE_SPEC: text}, LSE, PROD, 1000)
    assert found is not None and ANNOTATION_RESOURCE_SPEC in found.problem


def test_status() -> None:
    """The list, and of each NUMA node how many."""
    layout = layout_of(Processor(cpu, cpu, 0, cpu // 2) for cpu in range(4))
    assert json.loads(resource_status(layout, 0b0111)) == {
        "cpuset": "0-2",
        "numaNodeResources": [
            {"node": 0, "resources": {"cpu": "2"}},
            {"node": 1, "resources": {"cpu": "1"}},
        ],
    }


def test_rules() -> None:
    """Of labels that are not there, or not known, Koordinator's defaults hold; how many CPUs there are says the Node."""
    policy, strategy = "node.koordinator.sh/cpu-bind-policy", "node.koordinator.sh/numa-allocate-strategy"
    least = CpuRules(None, NumaStrategy.LEAST_ALLOCATED, 0)
    assert cpu_rules({}, 0) == cpu_rules({policy: "x", strategy: "x"}, 0) == least
    assert cpu_rules({policy: "FullPCPUsOnly", strategy: "MostAllocated"}, 3500) == CpuRules(
        FULL, NumaStrategy.MOST_ALLOCATED, 4
    )
    assert cpu_rules({policy: "SpreadByPCPUs"}, 0).policy is SPREAD


DETAIL = [{"id": cpu, "core": cpu % 2, "socket": 0, "node": 0} for cpu in range(4)]
TOPOLOGY = "node.koordinator.sh/cpu-topology"
LAYOUT = CpuLayout((0b0101, 0b1010), ((0, 0b1111),), ((0, 0b1111),))
KUBELET = "kubelet.koordinator.sh/cpu-manager-policy"
ALLOCATIONS = "node.koordinator.sh/pod-cpu-allocs"


def told(**annotations: Any) -> objects.NodeResourceTopology:
    """Annotations by the last part of their names."""
    prefix = {"policy": KUBELET, "allocations": ALLOCATIONS, "topology": TOPOLOGY}
    named = {prefix.get(k, f"node.koordinator.sh/{k.replace('_', '-')}"): v for k, v in annotations.items()}
    return objects.NodeResourceTopology(
        objects.Metadata(
            name="n1", annotations={k: v if isinstance(v, str) else json.dumps(v) for k, v in named.items()}
        )
    )


NODES: dict[str, tuple[objects.NodeResourceTopology, NodeCpus]] = {
    "nothing told": (told(), NodeCpus()),
    "CPUs": (told(topology={"detail": DETAIL}), NodeCpus(LAYOUT)),
    "reserved": (told(reservation={"reservedCPUs": "0"}), NodeCpus(kept=1)),
    "the system's own": (told(system_qos_resource={"cpuset": "1"}), NodeCpus(kept=2)),
    "the system shares": (told(system_qos_resource={"cpuset": "1", "cpusetExclusive": False}), NodeCpus()),
    "reserved by the kubelet": (told(policy={"policy": "static", "reservedCPUs": "2"}), NodeCpus(kept=4)),
    "given by the kubelet": (told(allocations=[{"cpuset": "3", "managedByKubelet": True}]), NodeCpus(kept=8)),
    "given by a scheduler, which its pod says": (told(allocations=[{"cpuset": "3"}]), NodeCpus()),
    "a kubelet that gives whole cores": (
        told(policy={"policy": "static", "options": {"full-pcpus-only": "true"}}),
        NodeCpus(policy=FULL),
    ),
    "an option without the policy": (
        told(policy={"policy": "none", "options": {"full-pcpus-only": "true"}}),
        NodeCpus(),
    ),
}


@pytest.mark.parametrize(("source", "expected"), NODES.values(), ids=NODES)
def test_node(source: objects.NodeResourceTopology, expected: NodeCpus) -> None:
    """What is kept by others, and how CPUs lie."""
    assert node_cpus(source) == expected


def test_cores_are_told_apart_by_socket() -> None:
    """A machine may number the cores of each socket from 0."""
    detail = [{"id": cpu, "core": 0, "socket": cpu, "node": 0} for cpu in range(2)]
    assert node_cpus(told(topology={"detail": detail})).layout.cores == (1, 2)


@pytest.mark.parametrize(
    "annotations",
    [
        {"topology": "{"},
        {"topology": {"detail": [{"id": -1}]}},
        {"topology": {"detail": [{"id": 8192}]}},
        {"topology": {"detail": [{"id": 1}, {"id": 1}]}},
        {"topology": {"detail": [{"core": 1}]}},
        {"topology": {"detail": [{"id": 0, "core": 0, "node": 0}, {"id": 1, "core": 0, "node": 1}]}},
        {"reservation": {"reservedCPUs": "x"}},
        {"policy": {"reservedCPUs": "x"}},
        {"allocations": "{"},
        {"allocations": {}},
        {"allocations": [{"cpuset": "x", "managedByKubelet": True}]},
    ],
)
def test_what_cannot_be_read(annotations: dict[str, Any]) -> None:
    """One error that names the object and the annotation."""
    with pytest.raises(ConfigurationFault, match=r"NodeResourceTopology n1.*(kubelet|node)\.koordinator\.sh/"):
        node_cpus(told(**annotations))
