"""Statuses of queues' objects: what each of the APIs says of a queue's use, made from how it stands.

Source: volcano.sh/apis pkg/apis/scheduling/v1beta1 QueueStatus; scheduler-plugins ElasticQuotaStatus.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from kube.dialects.queues.dialect import QueueDialect
from kube.dialects.queues.kueue import COHORT
from kube.dialects.queues.kueue_statuses import active, cluster_queue_status
from kube.dialects.queues.quota import GPU
from kube.dialects.queues.reading import QueueObject
from model.condition import ConditionStatus
from model.queue import CellStanding, QueueStanding, QueueState
from model.resources import CPU, MEMORY, amount_text

ACTIVE = "Active"
_SHORT = {GPU: "gpu", CPU: "cpu", MEMORY: "memory"}
_WHY = {
    QueueState.CLOSED: ("Closed", "it takes no work"),
    QueueState.HOLD: ("OnHold", "what waits is not placed"),
    QueueState.DRAIN: ("OnHold", "what waits is not placed, and what runs is evicted"),
}


def wanted(source: QueueObject, standing: QueueStanding, now: str) -> dict[str, Any]:
    """The part of the object's status that is the scheduler's to say; `now` is an RFC 3339 time."""
    if source.dialect is QueueDialect.SUBLET:
        return _ours(source, standing, now)
    if source.dialect is QueueDialect.KUEUE:
        return _kueues(source, standing, now)
    if source.dialect is QueueDialect.ELASTIC_QUOTA:
        return {"used": _amounts(standing, lambda cell: cell.used)}
    said = source.status.get("state") if isinstance(source.status, dict) else None
    return {
        "state": said or "Open",
        "pending": standing.pending_jobs,
        "running": standing.running_jobs,
        "allocated": _amounts(standing, lambda cell: cell.used),
    }


def patch(source: QueueObject, wanted: Mapping[str, Any]) -> dict[str, Any] | None:
    """A merge patch of the status, None where it says all that already. Amounts that are no more are taken out."""
    changed = merge(source.status, wanted)
    return {"status": changed} if changed else None


def merge(told: Any, wanted: Mapping[str, Any]) -> dict[str, Any]:
    """What a merge patch has to say, for a status to say all that is wanted."""
    said = told if isinstance(told, dict) else {}
    return {name: _merge(said.get(name), value) for name, value in wanted.items() if said.get(name) != value}


def _kueues(source: QueueObject, standing: QueueStanding, now: str) -> dict[str, Any]:
    if source.kind == COHORT:
        return {}
    found = cluster_queue_status(standing, fair=source.fair)
    condition = active(standing)
    return found | {"conditions": with_active(source.status, condition, source.metadata.generation, now)}


def _ours(source: QueueObject, standing: QueueStanding, now: str) -> dict[str, Any]:
    return {
        "used": _by_short_name(_amounts(standing, lambda cell: cell.used)),
        "borrowed": _by_short_name(_amounts(standing, lambda cell: cell.borrowed)),
        "lent": _by_short_name(_amounts(standing, lambda cell: cell.lent)),
        "fairShare": _by_short_name(_amounts(standing, lambda cell: cell.share)),
        "pendingJobs": standing.pending_jobs,
        "runningJobs": standing.running_jobs,
        "conditions": _conditions(source, standing, now),
    }


def _conditions(source: QueueObject, standing: QueueStanding, now: str) -> list[dict[str, Any]]:
    """Whether the queue takes work, beside what others say."""
    return with_active(source.status, _active(standing), None, now)


def with_active(
    status_told: Any, condition: tuple[bool, str, str], generation: int | None, now: str
) -> list[dict[str, Any]]:
    """The conditions that a status tells of, with Active (status, reason, message) as it is now; its time stays while
    its status does.
    """
    told = status_told.get("conditions") if isinstance(status_told, dict) else None
    known = [each for each in told or () if isinstance(each, dict)]
    before = next((each for each in known if each.get("type") == ACTIVE), {})
    met, reason, message = condition
    status = ConditionStatus.TRUE if met else ConditionStatus.FALSE
    since = before.get("lastTransitionTime") if before.get("status") == status.value else now
    own = {"type": ACTIVE, "status": status.value, "reason": reason, "message": message, "lastTransitionTime": since}
    if generation is not None:
        own["observedGeneration"] = generation
    return [*(each for each in known if each.get("type") != ACTIVE), own]


def _active(standing: QueueStanding) -> tuple[bool, str, str]:
    if standing.problem:
        return False, "Invalid", standing.problem
    if standing.queue.state in _WHY:
        return False, *_WHY[standing.queue.state]
    if standing.children:
        return True, "HasChildren", f"work goes to the queues below it: {', '.join(standing.children[:5])}"
    return True, "Ready", "it takes work"


def _amounts(standing: QueueStanding, of: Callable[[CellStanding], int]) -> dict[str, str]:
    """By resource, of all flavours; those that the queue names, and those of which there is any."""
    total: dict[str, int] = {}
    for cell, found in standing.cells.items():
        if of(found) or cell in standing.queue.cells:
            total[cell[1]] = total.get(cell[1], 0) + of(found)
    return {name: amount_text(amount, name) for name, amount in sorted(total.items())}


def _by_short_name(amounts: Mapping[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = {
        short: int(amounts[name]) if short == "gpu" else amounts[name]
        for name, short in _SHORT.items()
        if name in amounts
    }
    others = {name: amount for name, amount in amounts.items() if name not in _SHORT}
    return {**found, "resources": others} if others else found


def _merge(before: Any, after: Any) -> Any:
    """`after` as a merge patch over `before`."""
    if not isinstance(before, dict) or not isinstance(after, dict):
        return after
    gone: Iterable[str] = before.keys() - after.keys()
    return {**dict.fromkeys(sorted(gone)), **{name: _merge(before.get(name), value) for name, value in after.items()}}
