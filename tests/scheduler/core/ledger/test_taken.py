"""What of a bound pod counts to queues, whatever its author says of node and amounts."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import pytest
from scheduler_builders import node, pod

from model.node import Node
from model.pod.status import PodPhase
from model.resources import BATCH_CPU, ResourceVector
from scheduler.core.ledger.charge import NOTHING, Charge, charge_of
from scheduler.core.ledger.taken import taken_of
from scheduler.core.snapshot.podclass import PodClass

GPU = "nvidia.com/gpu"
ROOMY = node(batch_cpu=1000)
BARE = Node(name="n1", allocatable=ResourceVector({"pods": 110}))


def charge(requests: Mapping[str, int] | None = None, on: str = "n1", **status: object) -> Charge:
    found = charge_of(pod(node_name=on, requests=requests or {BATCH_CPU: 400}, **status))
    assert found is not None
    return found


def uncounted(on: str = "n1") -> Charge:
    return msgspec.structs.replace(charge(on=on), taken=NOTHING)


RUNS: dict[str, object] = {"phase": PodPhase.RUNNING}
BOUND: dict[str, object] = {"scheduled_seconds": 5.0}
STARTED: dict[str, object] = {"started_seconds": 5.0}


@pytest.mark.parametrize(
    ("of", "before", "on", "used", "taken"),
    [
        pytest.param(charge(), None, ROOMY, {}, None, id="all of it"),
        pytest.param(charge(**RUNS), charge(), None, {}, NOTHING, id="no such node"),
        pytest.param(charge(), None, ROOMY, {BATCH_CPU: 600}, None, id="the node has just enough"),
        pytest.param(charge(), None, ROOMY, {BATCH_CPU: 601}, NOTHING, id="more than the node has, no kubelet took it"),
        pytest.param(charge(), None, ROOMY, {"pods": 110}, NOTHING, id="a pod too many"),
        pytest.param(charge(), uncounted(), ROOMY, {BATCH_CPU: 1000}, None, id="once others went"),
        pytest.param(charge(), uncounted(), ROOMY, {BATCH_CPU: 1001}, NOTHING, id="while others are there"),
        pytest.param(charge(), charge(), ROOMY, {BATCH_CPU: 5000}, None, id="placed before others came"),
        pytest.param(charge(), charge(on="n2"), ROOMY, {BATCH_CPU: 601}, NOTHING, id="placed somewhere else before"),
        pytest.param(charge(**RUNS), uncounted(), ROOMY, {BATCH_CPU: 5000}, None, id="it runs"),
        pytest.param(charge(**BOUND), None, ROOMY, {BATCH_CPU: 5000}, None, id="a Binding gave it the node"),
        pytest.param(charge(**STARTED), None, ROOMY, {BATCH_CPU: 5000}, None, id="a kubelet took it in"),
        pytest.param(
            charge({BATCH_CPU: 400, GPU: 1000}, **RUNS),
            None,
            ROOMY,
            {},
            PodClass(((BATCH_CPU, 400), ("pods", 1))),
            id="of what the node does not list nothing, which kubelets run anyway",
        ),
        pytest.param(
            charge(**RUNS), charge(**RUNS), BARE, {}, None, id="what the node lists no more, since it did count"
        ),
        pytest.param(
            charge({GPU: 8}, **RUNS), None, node(amounts={GPU: 0}), {GPU: 8}, None, id="a device that failed meanwhile"
        ),
    ],
)
def test_what_counts(
    of: Charge, before: Charge | None, on: Node | None, used: Mapping[str, int], taken: PodClass | None
) -> None:
    """As far as the node has it, and a kubelet took it in or has room for it."""
    assert taken_of(of, before, on, {"n1": used} if used else {}) == taken
