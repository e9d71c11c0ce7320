"""What is published when: batch resources of the node, NodeMetric, the report to the scheduler.

Shrinking is told at once, growth with hysteresis, and unchanged facts at a slow heartbeat (DESIGN: report and publish
rules; Koordinator: resourceDiffThreshold, updateTimeThresholdSeconds).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from agent.core.usage import NodeUsage
from model.decision import Decision
from model.pod import Pod
from model.reason import Reason
from model.report import BestEffortPodUsage, NodeReport, Pressure
from model.strategy import ColocationStrategy

_GROWTH_REST_SECONDS = 10.0
_BLIND_SECONDS = 15.0
_REPORT_HEARTBEAT_SECONDS = 10.0
_REPORT_REST_SECONDS = 1.0
_REPORT_CHANGE_RATIO = 0.02


class Published(msgspec.Struct, frozen=True):
    """What the node's status said last, and since when (Unix seconds)."""

    amounts: Mapping[str, int]
    at_seconds: float


def offered(decisions: Iterable[Decision], listed: Iterable[Pod]) -> dict[str, int]:
    """Amounts for capacity and allocatable: the larger of reclaimable and what admitted pods already request.

    A kubelet that restarts admits its running pods again; with less than they request it would fail them
    (docs/adr/0004).
    """
    admitted = [pod for pod in listed if not pod.terminal]
    return {d.name: max(d.value, sum(pod.requests[d.name] for pod in admitted)) for d in decisions}


def settled(decisions: Iterable[Decision], age_seconds: float) -> bool:
    """A just started agent that has not measured yet keeps what is published; one that stays blind withdraws it."""
    blind = any(d.reason in (Reason.NODE_METRICS_MISSING, Reason.PODS_UNKNOWN) for d in decisions)
    return not blind or age_seconds > _BLIND_SECONDS


def due_for_node(last: Published | None, amounts: Mapping[str, int], strategy: ColocationStrategy, now: float) -> bool:
    """Whether the node's status must be patched now."""
    if last is None or set(last.amounts) != set(amounts):
        return True
    if now - last.at_seconds >= strategy.update_interval_seconds:
        return any(last.amounts[name] != amount for name, amount in amounts.items())
    changes = [(last.amounts[name], amount) for name, amount in amounts.items()]
    if any(before - now_ > before * strategy.resource_diff_ratio for before, now_ in changes):
        return True
    rested = now - last.at_seconds >= _GROWTH_REST_SECONDS
    return rested and any(now_ - before > before * strategy.resource_diff_ratio for before, now_ in changes)


def report(
    usage: NodeUsage | None,
    reclaimable: tuple[Decision, ...],
    listed: Iterable[Pod],
    pressure: Pressure | None,
    degraded_reason: str,
) -> NodeReport | None:
    """The newest facts for the scheduler; None until usage is known."""
    if usage is None:
        return None
    pods = tuple(
        BestEffortPodUsage(
            pod.namespace, pod.name, pod.uid, usage.pods[pod.uid].last, usage.throttled_ratio.get(pod.uid, 0.0)
        )
        for pod in listed
        if pod.best_effort and pod.uid in usage.pods
    )
    return NodeReport(
        observed_at_seconds=usage.at_seconds,
        node=usage.node.last,
        system=usage.system.last,
        online=usage.online.last,
        best_effort=usage.best_effort.last,
        reclaimable=reclaimable,
        pods=pods,
        pressure=pressure,
        degraded_reason=degraded_reason,
    )


def due_for_link(last: NodeReport | None, current: NodeReport) -> bool:
    """On change at most once a second, else every ten seconds."""
    if last is None:
        return True
    elapsed = current.observed_at_seconds - last.observed_at_seconds
    if elapsed >= _REPORT_HEARTBEAT_SECONDS or elapsed < 0:
        return True
    return elapsed >= _REPORT_REST_SECONDS * 0.9 and _changed(last, current)


def _changed(last: NodeReport, current: NodeReport) -> bool:
    if last.degraded_reason != current.degraded_reason or len(last.reclaimable) != len(current.reclaimable):
        return True
    if {pod.uid for pod in last.pods} != {pod.uid for pod in current.pods}:
        return True
    return any(
        abs(now.value - before.value) > abs(before.value) * _REPORT_CHANGE_RATIO or now.reason is not before.reason
        for before, now in zip(last.reclaimable, current.reclaimable, strict=True)
    )


def degraded(reclaimable: Iterable[Decision], problem: str) -> str:
    """Empty when all is well; a Reason code, or what is wrong with a configuration document."""
    withheld = [d.reason.value for d in reclaimable if d.reason is not Reason.COMPUTED]
    return withheld[0] if withheld else problem
