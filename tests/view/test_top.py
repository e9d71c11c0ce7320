"""What `sublet top` counts: online and lent apart, and nothing that nobody measured."""

from __future__ import annotations

from typing import Any

import pytest

from model.nodemetric import NodeMetric, PodMetric
from model.pod.pod import Pod
from model.pod.status import PodPhase
from model.qos import PriorityBand
from model.report import Usage
from model.resources import BATCH_CPU, BATCH_MEMORY, CPU, MEMORY, ResourceVector
from model.workload import GangMembership, GangSource
from tests.pods import make_pod
from view.top import (
    Amounts,
    ConditionState,
    Facts,
    NodeRow,
    NodeState,
    PodRow,
    Sort,
    node_rows,
    pod_rows,
    sorted_nodes,
    sorted_pods,
    state_of,
    total,
)


def node(*conditions: tuple[str, str, str], unschedulable: bool = False) -> NodeState:
    held = {kind: ConditionState(status, reason) for kind, status, reason in conditions or (("Ready", "True", ""),)}
    allocatable = ResourceVector({CPU: 4000, MEMORY: 8 << 30, BATCH_CPU: 1500, BATCH_MEMORY: 2 << 30})
    return NodeState(allocatable, held, unschedulable)


def pod(name: str, band: PriorityBand = PriorityBand.PROD, **fields: Any) -> Pod:
    lent = band is not PriorityBand.PROD
    cpu, memory = (BATCH_CPU, BATCH_MEMORY) if lent else (CPU, MEMORY)
    requests = ResourceVector({cpu: 1000, memory: 1 << 30})
    return make_pod("d", name, name, requests, band=band, **{"node_name": "n", "phase": PodPhase.RUNNING, **fields})


BATCH = PriorityBand.BATCH
METRIC = NodeMetric(
    updated_seconds=5.0,
    node=Usage(2000, 3 << 30),
    system=Usage(),
    pods=(PodMetric("d", "online", Usage(700, 2 << 30)), PodMetric("d", "batch", Usage(300, 1 << 29))),
)
FACTS = Facts(
    {"n": node()},
    (
        pod("online"),
        pod("batch", BATCH),
        pod("ended", BATCH, phase=PodPhase.SUCCEEDED),
        pod("elsewhere", BATCH, node_name="x"),
        pod("free", PriorityBand.FREE, gang=GangMembership("d", "g", GangSource.POD_GROUP)),
    ),
    {"n": METRIC},
    limits_millis={"n": 800},
)


def test_a_node() -> None:
    """Online requests are native, lent ones batch; use is NodeMetric's."""
    assert node_rows(FACTS) == [
        NodeRow(
            "n",
            "Ready",
            Amounts(4000, 1000, 2000, 1500, 2000, 300),
            Amounts(8 << 30, 1 << 30, 3 << 30, 2 << 30, 2 << 30, 1 << 29),
            2,
            800,
            5.0,
        )
    ]


def test_a_node_without_a_nodemetric() -> None:
    """What metrics.k8s.io says; of lent use nothing is known, which is not 0."""
    row = node_rows(Facts({"n": node()}, (pod("batch", BATCH),), {}, {"n": Usage(7, 9)}))[0]
    assert (row.cpu.used, row.memory.used, row.cpu.lent_used) == (7, 9, None)
    unknown = node_rows(Facts({"n": node()}, (), {}))[0]
    assert unknown.cpu.used is None and total([unknown]).cpu.used is None


def test_pods_that_live_on_lent_resources() -> None:
    """Those alone, on nodes that are shown, as long as they hold anything."""
    asked = Usage(1000, 1 << 30)
    assert pod_rows(FACTS) == [
        PodRow("d", "batch", "n", "Running", asked, Usage(300, 1 << 29)),
        PodRow("d", "free", "n", "Running", asked, None, "d/g"),
    ]


def test_the_sum() -> None:
    """Of everything measured."""
    rows = [NodeRow("a", "Ready", Amounts(1, 2, 3, 4, 5, 6)), NodeRow("b", "NotReady", Amounts(1, 2, None, 4, 5, None))]
    whole = total(rows)
    assert (whole.name, whole.state) == ("2 nodes", "1 Ready")
    assert whole.cpu == Amounts(2, 4, 3, 8, 10, 6) and whole.limit_millis is None


@pytest.mark.parametrize(
    ("state", "source"),
    [
        ("Ready", node()),
        ("NotReady", node(("Ready", "Unknown", ""))),
        ("NotReady", node(("MemoryPressure", "False", ""))),
        ("Ready,MemoryPressure", node(("Ready", "True", ""), ("MemoryPressure", "True", ""))),
        ("Ready,NodeMetricsStale", node(("Ready", "True", ""), ("ColocationReady", "False", "NodeMetricsStale"))),
        ("Ready,SchedulingDisabled", node(unschedulable=True)),
    ],
)
def test_state(state: str, source: NodeState) -> None:
    """Ready or not, then what is wrong."""
    assert state_of(source) == state


ROWS = [
    NodeRow("n-10", "Ready", Amounts(used=5, lent=1), Amounts(used=1), 0),
    NodeRow("n-2", "Ready", Amounts(used=None, lent=3), Amounts(used=2), 1),
    NodeRow("n-1", "Ready", Amounts(used=5, lent=2), Amounts(used=3), 2),
]


@pytest.mark.parametrize(
    ("by", "names"),
    [
        (Sort.NAME, "1 2 10"),
        (Sort.CPU, "1 10 2"),
        (Sort.MEMORY, "1 2 10"),
        (Sort.LENT, "2 1 10"),
        (Sort.PODS, "1 2 10"),
    ],
)
def test_order_of_nodes(by: Sort, names: str) -> None:
    """Names by number; else what is most first, unknown last, equals by name."""
    assert [row.name for row in sorted_nodes(ROWS, by)] == [f"n-{number}" for number in names.split()]


@pytest.mark.parametrize(
    ("by", "names"), [(Sort.NAME, "a b c"), (Sort.CPU, "b a c"), (Sort.MEMORY, "a b c"), (Sort.LENT, "c a b")]
)
def test_order_of_pods(by: Sort, names: str) -> None:
    """By use, or by what they took."""
    rows = [
        PodRow("d", "c", "n", "Running", Usage(9, 9)),
        PodRow("d", "b", "n", "Running", Usage(1, 1), Usage(5, 1)),
        PodRow("d", "a", "n", "Running", Usage(1, 1), Usage(3, 2)),
    ]
    assert [row.name for row in sorted_pods(rows, by)] == names.split()
