"""What is published when: batch resources of the node, NodeMetric, the report to the scheduler.

Shrinking is told at once, growth with hysteresis, and unchanged facts at a slow heartbeat (as Koordinator's
resourceDiffThreshold and updateTimeThresholdSeconds).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

import msgspec

from agent.core.lend.prepare import PREPARED
from agent.core.lend.reclaimable import NodeLending, ZoneLending
from agent.core.lend.unenforced import UnenforcedLimit
from agent.core.observe.usage import NodeUsage
from model.decision import Decision, Term, TermSum
from model.pod import Pod, PodPhase
from model.reason import Reason, words
from model.report import BestEffortPodUsage, NodeReport, Pressure
from model.resources import ResourceVector
from model.strategy import ColocationStrategy

BLIND_SECONDS = 15.0
"""For so long what is published stands without facts: a restart is over by then."""
_BLIND = (Reason.NODE_METRICS_MISSING, Reason.PODS_UNKNOWN, Reason.SETTINGS_UNREAD)
_FOR_A_DOCUMENT = {
    Reason.LENDING_DISABLED.value: Reason.CONFIGURATION_INVALID,
    Reason.SETTINGS_UNREAD.value: Reason.SETTINGS_UNREAD,
    Reason.SETTINGS_DELETED.value: Reason.SETTINGS_DELETED,
}
"""Why nothing is lent, where a document is what must be mended for that."""
_GROWTH_REST_SECONDS = 10.0
_REASSERT_SECONDS = 5.0
"""Time for our own patch to come back with the Node object."""
_REPORT_HEARTBEAT_SECONDS = 10.0
_REPORT_REST_SECONDS = 1.0
_REPORT_CHANGE_RATIO = 0.02
_MOST_UNMET = 5
"""Fields named in the condition."""


class Published(msgspec.Struct, frozen=True):
    """What the node's status said last, why, and since when (monotonic seconds)."""

    decisions: tuple[Decision, ...]
    monotonic_seconds: float

    @property
    def amounts(self) -> dict[str, int]:
        return {decision.name: decision.value for decision in self.decisions}


def withheld(lent: NodeLending, reason: Reason) -> NodeLending:
    """Nothing of it any more, for that reason."""
    return NodeLending(
        reclaimable=tuple(
            msgspec.structs.replace(decision, value=0, terms=(), reason=reason) for decision in lent.reclaimable
        ),
        normalization_ratio=lent.normalization_ratio,
        degraded=reason,
    )


def may_raise(usage: NodeUsage | None) -> bool:
    """Whether enough was seen to offer more than what stands; not by a just started agent."""
    return usage is not None and usage.live_window_full


def offered(
    lent: NodeLending,
    listed: Iterable[Pod] | None,
    seen: Collection[str],
    standing: Mapping[str, int],
    *,
    may_grow: bool,
) -> tuple[Decision, ...]:
    """What belongs into the node's status: what may be lent, but never below what running pods request already.

    A kubelet that restarts admits its running pods again; with less than they request it would fail them
    (docs/adr/0004). A pod that is merely bound here is not admitted yet, and must not make its own room: `seen` are
    uids of pods that have a cgroup. But what is `standing` does not shrink under it: a gang that was just placed must
    not be refused one by one. While nobody knows the pods (`listed` is None) what is `standing` is what they may
    request. A resource that is not in the answer is to be removed from the node, as Koordinator does when it may not
    lend.
    """
    bound = [pod for pod in listed or () if not pod.terminal]
    requested = admitted_requests(bound, seen)
    found = []
    for ready in lent.final:
        terms = _held_back(ready, standing, may_grow=may_grow)
        if listed is None:
            terms.at_least("held: the running pods are not known", standing.get(ready.name, 0), "they may request it")
        admitted = requested[ready.name]
        terms.at_least("already requested by running pods", admitted, "kubelet must be able to admit them again")
        placed = min(sum(pod.requests[ready.name] for pod in bound), standing.get(ready.name, 0))
        terms.at_least("held for pods just placed", placed, "no more than what stands")
        if terms.value or lent.prepared:
            found.append(_published(ready, terms))
    return tuple(found)


def admitted_requests(listed: Iterable[Pod], seen: Collection[str]) -> ResourceVector:
    """What pods of this node request that its kubelet has let in: they run, or have a cgroup (`seen`)."""
    admitted = (pod for pod in listed if not pod.terminal and (pod.phase is PodPhase.RUNNING or pod.uid in seen))
    return sum((pod.requests for pod in admitted), ResourceVector())


def offered_in_zone(zone: ZoneLending, standing: Mapping[str, int], *, may_grow: bool) -> tuple[Decision, ...]:
    """What belongs into the rows of one zone; no kubelet admits by them, so that running pods hold nothing up."""
    ready = zone.prepared or zone.decisions
    return tuple(_published(one, _held_back(one, standing, may_grow=may_grow)) for one in ready)


def _held_back(ready: Decision, standing: Mapping[str, int], *, may_grow: bool) -> TermSum:
    """Without `may_grow` nothing exceeds what is `standing`."""
    terms = TermSum()
    known = ready.terms if ready.policy == PREPARED else ()
    for term in known or (Term("reclaimable", ready.value, "may be lent now"),):
        terms.add(term.name, term.value, term.note)
    return terms if may_grow else terms.at_most("held: too early to raise", standing.get(ready.name, 0))


def _published(ready: Decision, terms: TermSum) -> Decision:
    return msgspec.structs.replace(ready, value=terms.value, terms=terms.terms, policy="published")


def settled(decisions: Iterable[Decision], age_seconds: float) -> bool:
    """A just started agent that has not measured yet keeps what is published; one that stays blind withdraws it."""
    blind = any(d.reason in _BLIND for d in decisions)
    return not blind or age_seconds > BLIND_SECONDS


def due(
    before: Mapping[str, int], after: Mapping[str, int], elapsed_seconds: float, strategy: ColocationStrategy
) -> bool:
    """Whether amounts must be published again, `elapsed_seconds` after `before` was.

    A resource that goes is told at once; one that appears is growth from nothing.
    """
    if before.keys() - after.keys():
        return True
    changes = [(before.get(name, 0), amount) for name, amount in after.items()]
    if any(old - new > old * strategy.resource_diff_ratio for old, new in changes):
        return True
    appears = bool(after.keys() - before.keys())
    if elapsed_seconds >= strategy.update_interval_seconds:
        return appears or any(old != new for old, new in changes)
    rested = elapsed_seconds >= _GROWTH_REST_SECONDS
    return rested and (appears or any(new - old > old * strategy.resource_diff_ratio for old, new in changes))


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


def condition(
    degraded_reason: str,
    problem: str,
    errors: Collection[str],
    unenforced: Iterable[UnenforcedLimit] = (),
    unmet: Sequence[str] = (),
) -> tuple[str, str, str]:
    """(status, reason, message) of the node's ColocationReady.

    An invalid document (`problem`) or a refused limit of a pod (one of `errors`) leaves lending at work; anything else
    does not. Where a document or a control file (one of `unenforced`) is to blame for that, the message names it.
    Fields of documents that are not acted on, or in part (`unmet`), are told after that.
    """
    status, reason, message = _verdict(degraded_reason, problem, errors, unenforced)
    return status, reason, message + _told(unmet)


def _told(unmet: Sequence[str]) -> str:
    if not unmet:
        return ""
    more = f" and {len(unmet) - _MOST_UNMET} more" if len(unmet) > _MOST_UNMET else ""
    return f"; {words(Reason.NOT_ACTED_ON)}: {', '.join(unmet[:_MOST_UNMET])}{more}"


def _verdict(
    degraded_reason: str, problem: str, errors: Collection[str], unenforced: Iterable[UnenforcedLimit]
) -> tuple[str, str, str]:
    if not degraded_reason:
        return "True", "LendingActive", "idle CPU and memory of online services are lent to batch pods"
    if degraded_reason == problem:
        return "True", "ConfigurationInvalid", f"{degraded_reason}; the last good settings stay in force"
    if degraded_reason in errors:
        return "True", "LimitNotApplied", degraded_reason
    if problem and degraded_reason in _FOR_A_DOCUMENT:
        return "False", _FOR_A_DOCUMENT[degraded_reason].value, problem
    limit = next((limit for limit in unenforced if limit.reason.value == degraded_reason), None)
    return "False", degraded_reason, limit.text if limit else words(Reason(degraded_reason))
