"""The report to the scheduler, when it is due, and the condition of the Node."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from agent.core.lend.unenforced import UnenforcedLimit
from agent.core.observe.usage import NodeUsage
from model.condition import ConditionStatus
from model.decision import Decision
from model.pod.pod import Pod
from model.reason import Reason, words
from model.report import BestEffortPodUsage, NodeReport, Pressure

_FOR_A_DOCUMENT = {
    Reason.LENDING_DISABLED.value: Reason.CONFIGURATION_INVALID,
    Reason.SETTINGS_UNREAD.value: Reason.SETTINGS_UNREAD,
    Reason.SETTINGS_DELETED.value: Reason.SETTINGS_DELETED,
}
"""Why nothing is lent, where a document is what must be mended for that."""
_REPORT_HEARTBEAT_SECONDS = 10.0
_REPORT_REST_SECONDS = 1.0
_REPORT_CHANGE_RATIO = 0.02
_MOST_UNMET = 5
"""Fields named in the condition."""


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
) -> tuple[ConditionStatus, str, str]:
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
) -> tuple[ConditionStatus, str, str]:
    if not degraded_reason:
        return ConditionStatus.TRUE, Reason.LENDING_ACTIVE.value, words(Reason.LENDING_ACTIVE)
    if degraded_reason == problem:
        return (
            ConditionStatus.TRUE,
            Reason.CONFIGURATION_INVALID.value,
            f"{degraded_reason}; the last good settings stay in force",
        )
    if degraded_reason in errors:
        return ConditionStatus.TRUE, Reason.LIMIT_NOT_APPLIED.value, degraded_reason
    if problem and degraded_reason in _FOR_A_DOCUMENT:
        return ConditionStatus.FALSE, _FOR_A_DOCUMENT[degraded_reason].value, problem
    limit = next((limit for limit in unenforced if limit.reason.value == degraded_reason), None)
    return ConditionStatus.FALSE, degraded_reason, limit.text if limit else words(Reason(degraded_reason))
