"""What is published when: batch resources of the node, NodeMetric, the report to the scheduler.

Shrinking is told at once, growth with hysteresis, and unchanged facts at a slow heartbeat (DESIGN: report and publish
rules; Koordinator: resourceDiffThreshold, updateTimeThresholdSeconds).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import msgspec

from agent.core.reclaimable import Lending
from agent.core.usage import NodeUsage
from model.decision import Decision, TermSum
from model.pod import Pod, PodPhase
from model.reason import Reason, words
from model.report import BestEffortPodUsage, NodeReport, Pressure
from model.strategy import ColocationStrategy

_GROWTH_REST_SECONDS = 10.0
_BLIND_SECONDS = 15.0
_BLIND = (Reason.NODE_METRICS_MISSING, Reason.PODS_UNKNOWN, Reason.SETTINGS_UNREAD)
_REASSERT_SECONDS = 5.0
"""Time for our own patch to come back with the Node object."""
_REPORT_HEARTBEAT_SECONDS = 10.0
_REPORT_REST_SECONDS = 1.0
_REPORT_CHANGE_RATIO = 0.02


class Published(msgspec.Struct, frozen=True):
    """What the node's status said last, why, and since when (monotonic seconds)."""

    decisions: tuple[Decision, ...]
    monotonic_seconds: float

    @property
    def amounts(self) -> dict[str, int]:
        return {decision.name: decision.value for decision in self.decisions}


def offered(
    lent: Lending,
    listed: Iterable[Pod],
    seen: Collection[str],
    standing: Mapping[str, int],
    *,
    may_grow: bool,
) -> tuple[Decision, ...]:
    """What belongs into the node's status: what may be lent, but never below what running pods request already.

    A kubelet that restarts admits its running pods again; with less than they request it would fail them
    (docs/adr/0004). A pod that is merely bound here is not admitted yet, and must not make its own room: `seen` are
    uids of pods that have a cgroup. Without `may_grow` (a just started agent) nothing exceeds what is `standing`.
    A resource that is not in the answer is to be removed from the node, as Koordinator does when it may not lend.
    """
    admitted = [pod for pod in listed if not pod.terminal and (pod.phase is PodPhase.RUNNING or pod.uid in seen)]
    found = []
    for ready in lent.final:
        terms = TermSum().add("reclaimable", ready.value, "may be lent now")
        if not may_grow:
            terms.at_most("held: a new agent raises nothing yet", standing.get(ready.name, 0))
        requested = sum(pod.requests[ready.name] for pod in admitted)
        terms.at_least("already requested by running pods", requested, "kubelet must be able to admit them again")
        if terms.value or lent.prepared:
            found.append(msgspec.structs.replace(ready, value=terms.value, terms=terms.terms, policy="published"))
    return tuple(found)


def settled(decisions: Iterable[Decision], age_seconds: float) -> bool:
    """A just started agent that has not measured yet keeps what is published; one that stays blind withdraws it."""
    blind = any(d.reason in _BLIND for d in decisions)
    return not blind or age_seconds > _BLIND_SECONDS


def due(
    before: Mapping[str, int], after: Mapping[str, int], elapsed_seconds: float, strategy: ColocationStrategy
) -> bool:
    """Whether amounts must be published again, `elapsed_seconds` after `before` was."""
    if set(before) != set(after):
        return True
    changes = [(before[name], amount) for name, amount in after.items()]
    if elapsed_seconds >= strategy.update_interval_seconds:
        return any(old != new for old, new in changes)
    if any(old - new > old * strategy.resource_diff_ratio for old, new in changes):
        return True
    rested = elapsed_seconds >= _GROWTH_REST_SECONDS
    return rested and any(new - old > old * strategy.resource_diff_ratio for old, new in changes)


def due_for_node(
    last: Published | None,
    amounts: Mapping[str, int],
    standing: Mapping[str, int],
    strategy: ColocationStrategy,
    monotonic_seconds: float,
) -> bool:
    """Whether the node's status must be patched now; `standing` is what the Node object says of our resources."""
    if last is None:
        return True
    before = last.amounts
    elapsed = monotonic_seconds - last.monotonic_seconds
    return due(before, amounts, elapsed, strategy) or (elapsed >= _REASSERT_SECONDS and dict(standing) != before)


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


def condition(degraded_reason: str, problem: str, errors: Collection[str]) -> tuple[str, str, str]:
    """(status, reason, message) of the node's ColocationReady.

    An invalid document (`problem`) or a refused limit (one of `errors`) leaves lending at work; anything else does not.
    """
    if not degraded_reason:
        return "True", "LendingActive", "idle CPU and memory of online services are lent to batch pods"
    if degraded_reason == problem:
        return "True", "ConfigurationInvalid", f"{degraded_reason}; the last good settings stay in force"
    if degraded_reason in errors:
        return "True", "LimitNotApplied", degraded_reason
    return "False", degraded_reason, words(Reason(degraded_reason))
