"""Statuses of Kueue's ClusterQueues and LocalQueues, made from how their queues stand.

Source: kueue apis/kueue/{v1beta1,v1beta2}, ClusterQueueStatus and LocalQueueStatus. `flavorUsage` is v1beta1's word for
a LocalQueue's `flavorsUsage`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from kube.objects import Quantities, Time, unix_seconds
from model.fault import ConfigurationFault
from model.flavor.resource_flavor import SubmissionStanding
from model.queue import Cell, CellStanding, FlavorGroup, Queue, QueueStanding, QueueState
from model.resources import amount_text, parse_resources

_CONSUMED_SECONDS = 300.0
"""How often use over time is written (Kueue's usageSamplingInterval): it differs at every look."""


class _Consumed(msgspec.Struct, frozen=True):
    consumed: Quantities = msgspec.field(name="consumedResources", default={})
    at: Time | None = msgspec.field(name="lastUpdate", default=None)


class _Shares(msgspec.Struct, frozen=True):
    own: _Consumed = msgspec.field(name="admissionFairSharingStatus", default=_Consumed())


class _LocalStatus(msgspec.Struct, frozen=True):
    fair_sharing: _Shares = msgspec.field(name="fairSharing", default=_Shares())


_STOPPED = (QueueState.HOLD, QueueState.DRAIN)
_Condition = tuple[bool, str, str]


def cluster_queue_status(standing: QueueStanding, *, fair: bool) -> dict[str, Any]:
    """All but the conditions; `fair`: with the share that Kueue's fair sharing compares."""
    groups, cells = standing.queue.flavor_groups, standing.cells
    found: dict[str, Any] = {
        "pendingWorkloads": max(0, standing.pending_jobs - standing.nominated_jobs),
        "reservingWorkloads": standing.running_jobs + standing.nominated_jobs,
        "admittedWorkloads": standing.running_jobs,
        "flavorsReservation": _flavors(groups, cells, lambda cell: cell.used + cell.nominated),
        "flavorsUsage": _flavors(groups, cells, lambda cell: cell.used),
    }
    return found | ({"fairSharing": {"weightedShare": standing.borrowed_share}} if fair else {})


def active(standing: QueueStanding) -> _Condition:
    """Whether the ClusterQueue takes work: status, reason and message of its condition."""
    queue = standing.queue
    if standing.problem:
        return False, "Unknown", standing.problem
    if queue.state in _STOPPED:
        return False, "Stopped", "it is stopped: spec.stopPolicy says so"
    if queue.inactive:
        return False, "FlavorNotFound", queue.inactive
    return True, "Ready", "it takes work"


def local_queue_status(standing: SubmissionStanding, groups: Iterable[FlavorGroup]) -> dict[str, Any]:
    """All but the conditions; `groups` are those of its ClusterQueue."""
    groups = tuple(groups)
    used = _totals(groups, standing.used)
    return {
        "pendingWorkloads": standing.pending_jobs,
        "reservingWorkloads": standing.running_jobs + standing.nominated_jobs,
        "admittedWorkloads": standing.running_jobs,
        "flavorsReservation": _totals(groups, standing.reserved),
        "flavorsUsage": used,
        "flavorUsage": used,
    }


def consumed_status(told: object, consumed: Mapping[str, int], now: float, stamp: str) -> dict[str, Any]:
    """What a LocalQueue used over time, as its `fairSharing`; what was written a short while ago (`told`) stays.

    `stamp` is now as it is written.
    """
    known, at = read_consumed(told)
    if 0 <= now - at < _CONSUMED_SECONDS:
        return {}
    amounts = {name: amount_text(consumed.get(name, 0), name) for name in sorted({*known, *consumed})}
    own = {"consumedResources": amounts, "lastUpdate": stamp}
    return {"fairSharing": {"weightedShare": 0, "admissionFairSharingStatus": own}}


def read_consumed(told: object) -> tuple[Mapping[str, int], float]:
    """What a LocalQueue's status says of that, and when it was written; nothing where it cannot be read."""
    try:
        own = msgspec.convert(told or {}, _LocalStatus, strict=False).fair_sharing.own
        return dict(parse_resources(own.consumed, "consumedResources").amounts), unix_seconds(own.at)
    except (msgspec.ValidationError, ConfigurationFault, RecursionError):
        return {}, 0.0


def local_active(standing: SubmissionStanding, queue: Queue | None, taken: bool) -> _Condition:
    """Whether work may come in by the LocalQueue; `taken`: whether its ClusterQueue (None: there is none) takes it."""
    if standing.queue.state in _STOPPED:
        return False, "Stopped", "it is stopped: spec.stopPolicy says so"
    if queue is None:
        return False, "ClusterQueueDoesNotExist", f"ClusterQueue {standing.queue.queue} does not exist"
    if not taken:
        return False, "ClusterQueueIsInactive", f"ClusterQueue {standing.queue.queue} takes no work"
    return True, "Ready", "work may come in"


def _flavors(
    groups: Iterable[FlavorGroup], cells: Mapping[Cell, CellStanding], total: Callable[[CellStanding], int]
) -> list[dict[str, Any]]:
    def resource(flavor: str, name: str) -> dict[str, str]:
        cell = cells.get((flavor, name), CellStanding())
        borrowed = max(0, total(cell) - (cell.nominal or 0))
        return {"name": name, "total": amount_text(total(cell), name), "borrowed": amount_text(borrowed, name)}

    return _listed(groups, resource)


def _totals(groups: Iterable[FlavorGroup], used: Mapping[Cell, int]) -> list[dict[str, Any]]:
    return _listed(groups, lambda flavor, name: {"name": name, "total": amount_text(used.get((flavor, name), 0), name)})


def _listed(groups: Iterable[FlavorGroup], resource: Callable[[str, str], dict[str, str]]) -> list[dict[str, Any]]:
    return [
        {"name": flavor, "resources": [resource(flavor, name) for name in group.resources]}
        for group in groups
        for flavor in group.flavors
    ]
