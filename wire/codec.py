"""Between messages of proto/wire/v1 and values of model; the only translation there is, both ways.

Decoding never trusts a peer: an unknown unit, or terms that do not sum to their value, is a PeerFault. A reason
that only another version knows is told as such: programs of one fleet are upgraded one after the other.
"""

from __future__ import annotations

import math

from model.decision import Decision, Term, Unit
from model.explain import sentence
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
from wire.v1 import decision_pb2, link_pb2


def decision_to_wire(decision: Decision) -> decision_pb2.Decision:
    """The record with its words beside it."""
    return decision_pb2.Decision(
        subject=decision.subject,
        name=decision.name,
        value=decision.value,
        unit=decision.unit.value,
        reason=decision.reason.value,
        terms=[decision_pb2.Term(name=t.name, value=t.value, note=t.note) for t in decision.terms],
        policy=decision.policy,
        at_seconds=decision.at_seconds,
        detail=decision.detail,
        text=sentence(decision),
    )


def decision_from_wire(message: decision_pb2.Decision) -> Decision:
    """Raises PeerFault where the message is not a decision we know."""
    reason, detail = _reason_from_wire(message)
    try:
        return Decision(
            subject=message.subject,
            name=message.name,
            value=message.value,
            unit=Unit(message.unit),
            reason=reason,
            terms=tuple(Term(t.name, t.value, t.note) for t in message.terms),
            policy=message.policy,
            at_seconds=message.at_seconds,
            detail=detail,
        )
    except ValueError as error:
        raise PeerFault("Decision", str(error), "run the same version on both sides") from error


def _reason_from_wire(message: decision_pb2.Decision) -> tuple[Reason, str]:
    """The reason and the detail, which begins with the code where this version does not know it."""
    try:
        return Reason(message.reason), message.detail
    except ValueError:
        told = f"{message.reason}: {message.detail}" if message.detail else message.reason
        return Reason.REASON_OF_ANOTHER_VERSION, told


def usage_to_wire(usage: Usage) -> link_pb2.Usage:
    return link_pb2.Usage(cpu_millis=usage.cpu_millis, memory_bytes=usage.memory_bytes)


def usage_from_wire(message: link_pb2.Usage) -> Usage:
    return Usage(message.cpu_millis, message.memory_bytes)


def report_to_wire(report: NodeReport) -> link_pb2.Report:
    message = link_pb2.Report(
        observed_at_seconds=report.observed_at_seconds,
        node=usage_to_wire(report.node),
        system=usage_to_wire(report.system),
        online=usage_to_wire(report.online),
        best_effort=usage_to_wire(report.best_effort),
        reclaimable=[decision_to_wire(decision) for decision in report.reclaimable],
        pods=[_pod_to_wire(pod) for pod in report.pods],
        degraded_reason=report.degraded_reason,
    )
    if report.pressure is not None:
        message.pressure.CopyFrom(pressure_to_wire(report.pressure))
    return message


def pressure_to_wire(pressure: Pressure) -> link_pb2.Pressure:
    return link_pb2.Pressure(
        cpu_some_avg10_pct=pressure.cpu_some_avg10_pct,
        memory_some_avg10_pct=pressure.memory_some_avg10_pct,
        memory_full_avg10_pct=pressure.memory_full_avg10_pct,
    )


def report_from_wire(message: link_pb2.Report) -> NodeReport:
    """Raises PeerFault where a decision inside is malformed, or the time is none."""
    if not math.isfinite(message.observed_at_seconds):
        raise PeerFault("Report.observed_at_seconds", "is not a time", "send Unix seconds")
    pressure = None
    if message.HasField("pressure"):
        pressure = Pressure(
            message.pressure.cpu_some_avg10_pct,
            message.pressure.memory_some_avg10_pct,
            message.pressure.memory_full_avg10_pct,
        )
    return NodeReport(
        observed_at_seconds=message.observed_at_seconds,
        node=usage_from_wire(message.node),
        system=usage_from_wire(message.system),
        online=usage_from_wire(message.online),
        best_effort=usage_from_wire(message.best_effort),
        reclaimable=tuple(decision_from_wire(decision) for decision in message.reclaimable),
        pods=tuple(_pod_from_wire(pod) for pod in message.pods),
        pressure=pressure,
        degraded_reason=message.degraded_reason,
    )


def _pod_to_wire(pod: BestEffortPodUsage) -> link_pb2.BestEffortPod:
    return link_pb2.BestEffortPod(
        namespace=pod.namespace,
        name=pod.name,
        uid=pod.uid,
        usage=usage_to_wire(pod.usage),
        throttled_ratio=pod.throttled_ratio,
    )


def _pod_from_wire(message: link_pb2.BestEffortPod) -> BestEffortPodUsage:
    return BestEffortPodUsage(
        message.namespace, message.name, message.uid, usage_from_wire(message.usage), message.throttled_ratio
    )


def hello_to_wire(hello: AgentHello) -> link_pb2.Hello:
    return link_pb2.Hello(node=hello.node, agent_version=hello.agent_version, boot_id=hello.boot_id)


def hello_from_wire(message: link_pb2.Hello) -> AgentHello:
    """Raises PeerFault where the node's name is missing."""
    if not message.node:
        raise PeerFault("Hello.node", "is empty", "start the agent with its node's name")
    return AgentHello(message.node, message.agent_version, message.boot_id)


def checkpoint_to_wire(saved: CheckpointSaved, now: float = 0.0) -> link_pb2.CheckpointReport:
    """`now` is Unix time by the clock that the checkpoint's times are of."""
    return link_pb2.CheckpointReport(
        namespace=saved.namespace,
        pod=saved.pod,
        pod_uid=saved.pod_uid,
        saved_at_seconds=saved.saved_at_seconds,
        step=saved.step,
        begun_at_seconds=saved.begun_seconds,
        checkpoint=saved.checkpoint,
        size_bytes=saved.size_bytes,
        sent_at_seconds=now,
    )


def checkpoint_from_wire(message: link_pb2.CheckpointReport, now: float = 0.0) -> CheckpointSaved:
    """Times by the clock of `now` (Unix time), where the peer said what its own was.

    Raises PeerFault where the pod's uid is missing, or the times are none in order.
    """
    if not message.pod_uid:
        raise PeerFault("CheckpointReport.pod_uid", "is empty", "send the pod's metadata.uid")
    if not 0 < message.saved_at_seconds < math.inf:
        raise PeerFault("CheckpointReport.saved_at_seconds", "is not a time", "send Unix seconds")
    if not 0 <= message.begun_at_seconds <= message.saved_at_seconds:
        raise PeerFault("CheckpointReport.begun_at_seconds", "is not before saved_at_seconds", "send Unix seconds")
    if not 0 <= message.sent_at_seconds < math.inf:
        raise PeerFault("CheckpointReport.sent_at_seconds", "is not a time", "send Unix seconds")
    ahead = message.sent_at_seconds - now if message.sent_at_seconds and now else 0.0
    return CheckpointSaved(
        message.namespace,
        message.pod,
        message.pod_uid,
        message.saved_at_seconds - ahead,
        message.step,
        message.begun_at_seconds and message.begun_at_seconds - ahead,
        message.checkpoint,
        message.size_bytes,
    )


def cost_to_wire(cost: EvictionCost) -> link_pb2.EvictionCost:
    return link_pb2.EvictionCost(
        pod_uid=cost.pod_uid,
        gang=cost.gang,
        members_above_minimum=cost.members_above_minimum,
        checkpoint_age_seconds=cost.checkpoint_age_seconds,
    )


def cost_from_wire(message: link_pb2.EvictionCost) -> EvictionCost:
    age = message.checkpoint_age_seconds if message.HasField("checkpoint_age_seconds") else None
    return EvictionCost(message.pod_uid, message.gang, message.members_above_minimum, age)


def notice_to_wire(notice: PreemptionNotice) -> link_pb2.PreemptionNotice:
    return link_pb2.PreemptionNotice(
        pod_uid=notice.pod_uid, deadline_seconds=notice.deadline_seconds, reason=notice.reason
    )


def notice_from_wire(message: link_pb2.PreemptionNotice) -> PreemptionNotice:
    return PreemptionNotice(message.pod_uid, message.deadline_seconds, message.reason)
