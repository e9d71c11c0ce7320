"""What a pod is charged with, at which priority, and as part of which job."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from scheduler_builders import annotated, in_group, pod

from model.placement import PlacementState
from model.pod.status import PodPhase
from model.priority import SYSTEM_PRIORITY
from model.workload import WorkloadId
from scheduler.core.ledger.charge import Charge, charge_of
from scheduler.core.snapshot.podclass import PodClass, class_of, pod_traits_of


@pytest.mark.parametrize(
    ("fields", "charged"),
    [
        ({}, False),
        ({"node_name": "n1"}, True),
        ({"node_name": "n1", "phase": PodPhase.RUNNING}, True),
        ({"node_name": "n1", "phase": PodPhase.RUNNING, "deleting": True}, True),
        ({"node_name": "n1", "phase": PodPhase.SUCCEEDED}, False),
        ({"node_name": "n1", "phase": PodPhase.FAILED}, False),
    ],
)
def test_who_uses_a_node(fields: dict[str, Any], charged: bool) -> None:
    """Who has one, until it is terminal; also while it is being deleted."""
    source = pod(**fields)
    found = charge_of(source)
    assert (found is not None) is charged
    if found is not None:
        assert (found.uid, found.node, found.state) == (source.uid, "n1", PlacementState.BOUND)
        assert (found.pod_class, found.pod_traits) == (class_of(source), pod_traits_of(source))


@pytest.mark.parametrize(
    ("own", "of_gang", "counts"),
    [
        (5, None, 5),
        (5, 3, 3),
        (5, 9, 9),
        (SYSTEM_PRIORITY, 3, SYSTEM_PRIORITY),
        (SYSTEM_PRIORITY - 1, 3, 3),
    ],
)
def test_priority(own: int, of_gang: int | None, counts: int) -> None:
    """The gang's word counts, but makes less of no system-critical pod."""
    found = charge_of(pod(node_name="n1", priority=own))
    assert found is not None
    assert msgspec.structs.replace(found, gang_priority=of_gang).priority == counts


def test_without_a_pod_only_amounts_are_known() -> None:
    """Priority 0, a job of its own, and nobody says that it leaves."""
    bare = Charge("u", "n1", PodClass(), state=PlacementState.BOUND)
    assert (bare.priority, bare.evicting, bare.job) == (0, False, WorkloadId.pod("u"))


@pytest.mark.parametrize(
    ("state", "deleting", "evicting"),
    [
        (PlacementState.BOUND, True, True),
        (PlacementState.BOUND, False, False),
        (PlacementState.ASSUMED, True, False),
    ],
)
def test_evicting(state: PlacementState, deleting: bool, evicting: bool) -> None:
    """On its way out of its node; one that is only assumed is not there yet."""
    found = charge_of(pod(node_name="n1", deleting=deleting))
    assert found is not None
    assert msgspec.structs.replace(found, state=state).evicting is evicting


def test_the_job() -> None:
    """The gang group where it is in one, else its own gang, else the pod alone."""
    lone, member = charge_of(pod("a", node_name="n1")), charge_of(pod("b", node_name="n1", gang=in_group()))
    noted = charge_of(pod("c", node_name="n1", gang=annotated("other")))
    group = WorkloadId.gang("default/train", "default/other")
    assert lone is not None and member is not None and noted is not None
    assert lone.job == WorkloadId.pod("default/a")
    assert (member.job, noted.job) == (WorkloadId.gang("default/train"), WorkloadId.gang("default/other"))
    assert msgspec.structs.replace(member, subject=group).job == group
