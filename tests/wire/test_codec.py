"""What is sent is what was meant, and a peer that sends nonsense is told so."""

from __future__ import annotations

import math
from typing import Any

import pytest
from msgspec.structs import replace

from model.decision import Decision, Term, Unit
from model.fault import PeerFault
from model.reason import Reason
from model.report import (
    AgentHello,
    BestEffortPodUsage,
    CheckpointSaved,
    EvictionCost,
    NodeReport,
    PreemptionNotice,
    Pressure,
    Usage,
)
from wire import codec
from wire.v1 import decision_pb2, link_pb2

DECISION = Decision(
    subject="cgroup/kubepods/besteffort",
    name="cpu.cfs_quota_us",
    value=-5,
    unit=Unit.MICROSECONDS,
    reason=Reason.BRAKE,
    terms=(Term("capacity", 10, "2000m"), Term("online used", -15)),
    policy="adaptive",
    at_seconds=1.5,
    detail="cut from 7 us",
)
REPORT = NodeReport(
    observed_at_seconds=12.25,
    node=Usage(1500, 1 << 33),
    system=Usage(100, 2),
    online=Usage(400, 3),
    best_effort=Usage(1000, 4),
    reclaimable=(DECISION,),
    pods=(BestEffortPodUsage("ns", "p", "uid", Usage(1, 2), 0.5),),
    pressure=Pressure(1.5, 0.5, 0.25),
    degraded_reason="PodsStale",
)


def test_decision_round_trip() -> None:
    """Every field survives, and words travel beside the numbers."""
    message = codec.decision_to_wire(DECISION)
    assert codec.decision_from_wire(decision_pb2.Decision.FromString(message.SerializeToString())) == DECISION
    assert "capacity 10 - online used 15" in message.text


@pytest.mark.parametrize("report", [REPORT, NodeReport(1.0, Usage(), Usage(), Usage(), Usage())])
def test_report_round_trip(report: NodeReport) -> None:
    """Absent pressure stays absent, zero pressure stays zero."""
    sent = codec.report_to_wire(report).SerializeToString()
    assert codec.report_from_wire(link_pb2.Report.FromString(sent)) == report


def test_small_messages_round_trip() -> None:
    """Hello, checkpoint, cost (known and unknown age) and notice."""
    hello = AgentHello("n", "0.1", "boot")
    saved = CheckpointSaved("ns", "p", "uid", 3.5, 7, 2.5, "1-a", 9)
    costs = [EvictionCost("u", "ns/g", 2, 0.0), EvictionCost("u")]
    notice = PreemptionNotice("u", 9.5, "why")
    assert codec.hello_from_wire(codec.hello_to_wire(hello)) == hello
    assert codec.checkpoint_from_wire(codec.checkpoint_to_wire(saved)) == saved
    assert [codec.cost_from_wire(codec.cost_to_wire(cost)) for cost in costs] == costs
    assert codec.notice_from_wire(codec.notice_to_wire(notice)) == notice


def test_a_checkpoint_by_a_clock_that_is_wrong() -> None:
    """Its times are as long ago as the node said, whatever its clock shows; an older agent does not say."""
    saved = CheckpointSaved("ns", "p", "uid", 1000.0, begun_seconds=990.0)
    found = codec.checkpoint_from_wire(codec.checkpoint_to_wire(saved, 1005.0), 5005.0)
    assert (found.saved_at_seconds, found.begun_seconds, found.state_seconds) == (5000.0, 4990.0, 4990.0)
    unsaid = codec.checkpoint_from_wire(link_pb2.CheckpointReport(pod_uid="u", saved_at_seconds=7.0), 5005.0)
    assert (unsaid.saved_at_seconds, unsaid.begun_seconds, unsaid.state_seconds) == (7.0, 0.0, 7.0)


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"pod_uid": ""}, "pod_uid"),
        ({"saved_at_seconds": 0.0}, "saved_at_seconds"),
        ({"saved_at_seconds": math.inf}, "saved_at_seconds"),
        ({"begun_at_seconds": 6.0}, "begun_at_seconds"),
        ({"begun_at_seconds": math.nan}, "begun_at_seconds"),
        ({"sent_at_seconds": math.nan}, "sent_at_seconds"),
    ],
)
def test_a_malformed_checkpoint_is_a_peer_fault(fields: dict[str, Any], told: str) -> None:
    with pytest.raises(PeerFault, match=told):
        codec.checkpoint_from_wire(link_pb2.CheckpointReport(**{"pod_uid": "u", "saved_at_seconds": 5.0, **fields}))


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"unit": "parsec"}, "parsec"),
        ({"value": 99}, "terms sum to -5, value is 99"),
    ],
)
def test_a_malformed_decision_is_a_peer_fault(change: dict[str, object], told: str) -> None:
    """Unknown units and sums that do not add up are never taken in."""
    message = codec.decision_to_wire(DECISION)
    for field, value in change.items():
        setattr(message, field, value)
    with pytest.raises(PeerFault, match=told):
        codec.decision_from_wire(message)


@pytest.mark.parametrize(("detail", "told"), [("", "BrandNew"), ("as of 2.0", "BrandNew: as of 2.0")])
def test_a_reason_of_another_version(detail: str, told: str) -> None:
    """An agent that was upgraded before the scheduler keeps its link; nothing else of the decision is lost."""
    message = codec.decision_to_wire(replace(DECISION, detail=detail))
    message.reason = "BrandNew"
    expected = replace(DECISION, reason=Reason.REASON_OF_ANOTHER_VERSION, detail=told)
    assert codec.decision_from_wire(message) == expected


def test_empty_identities_are_refused() -> None:
    """A hello without node and a checkpoint without pod or time name the field."""
    with pytest.raises(PeerFault, match=r"Hello\.node: is empty"):
        codec.hello_from_wire(link_pb2.Hello())
    with pytest.raises(PeerFault, match="pod_uid: is empty"):
        codec.checkpoint_from_wire(link_pb2.CheckpointReport(saved_at_seconds=1))
    with pytest.raises(PeerFault, match="saved_at_seconds: is not a time"):
        codec.checkpoint_from_wire(link_pb2.CheckpointReport(pod_uid="u", saved_at_seconds=float("nan")))
    with pytest.raises(PeerFault, match="saved_at_seconds: is not a time"):
        codec.checkpoint_from_wire(link_pb2.CheckpointReport(pod_uid="u", saved_at_seconds=float("inf")))
    with pytest.raises(PeerFault, match="observed_at_seconds: is not a time"):
        codec.report_from_wire(link_pb2.Report(observed_at_seconds=float("nan")))
