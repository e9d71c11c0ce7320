"""What the status of a queue's object says of its jobs and of what they have, as the scheduler wrote it last.

Statuses are read leniently: what cannot be read counts as nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from kube.dialects.queues.quota import GPU, Amounts
from kube.dialects.queues.reading import AnyQueue
from kube.objects import ClusterQueue, ElasticQuota, Queue
from model.fault import ConfigurationFault
from model.resources import parse_resources

_MOST = 1 << 31
"""What is beyond an int32 is no count."""


class QueueUse(msgspec.Struct, frozen=True):
    """`running` and `waiting` are jobs, `used` amounts in base units."""

    running: int = 0
    waiting: int = 0
    used: Amounts = {}

    @property
    def jobs(self) -> int:
        return self.running + self.waiting


def use_of(source: AnyQueue) -> QueueUse:
    """An ElasticQuota counts no jobs: one stands for all of them where something is used."""
    status = source.status if isinstance(source.status, dict) else {}
    if isinstance(source, ElasticQuota):
        used = _amounts(status.get("used"))
        return QueueUse(int(any(used.values())), 0, used)
    if isinstance(source, ClusterQueue):
        return QueueUse(_count(status, "admittedWorkloads"), _count(status, "pendingWorkloads"))
    if isinstance(source, Queue):
        return QueueUse(_count(status, "runningJobs"), _count(status, "pendingJobs"), _ours(status.get("used")))
    waiting = _count(status, "pending") + _count(status, "inqueue")
    return QueueUse(_count(status, "running") + _count(status, "unknown"), waiting, _amounts(status.get("allocated")))


def _ours(told: Any) -> Amounts:
    if not isinstance(told, dict):
        return {}
    short = {name: value for name, value in told.items() if name != "resources"}
    found = dict(_amounts(short))
    if "gpu" in found:
        found[GPU] = found.pop("gpu")
    return {**found, **_amounts(told.get("resources"))}


def _amounts(told: Any) -> Amounts:
    try:
        return parse_resources(told, "status").amounts if isinstance(told, dict) else {}
    except ConfigurationFault:
        return {}


def _count(status: Mapping[str, Any], field: str) -> int:
    told = status.get(field)
    return told if isinstance(told, int) and not isinstance(told, bool) and 0 < told < _MOST else 0
