"""Standing: how every queue stands at one moment, as people, status and metrics are told."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from model.queue import ROOT_QUEUE, Queue, QueueStanding
from scheduler.core.queues.borrowed_share import borrowed_share
from scheduler.core.queues.headroom import Quota
from scheduler.core.queues.shares import Amounts, Use, known_cells, subtree_demand


class QueueCounts(msgspec.Struct, frozen=True):
    """By queue, that of queues below included: workloads that wait and that run, and of those that wait the ones for
    which room is kept; `position` is of queues themselves.
    """

    pending_jobs: Mapping[str, int] = {}
    running_jobs: Mapping[str, int] = {}
    position: Mapping[str, int] = {}
    nominated_jobs: Mapping[str, int] = {}


NOT_COUNTED = QueueCounts()
_PLAIN = Queue()


def standings(
    quota: Quota, nominated: Use, demand: Use, counts: QueueCounts = NOT_COUNTED
) -> Mapping[str, QueueStanding]:
    """Every queue of the tree, each after its parent, and the root first, as `ROOT_QUEUE`.

    `nominated` is the part of the quota's use that is kept for work that waits; `demand` is of each queue's own work,
    as for `fair_shares`.
    """
    wanted = _inclusive(quota, demand)
    return {
        name: standing_of(quota, name, nominated.get(name, {}), wanted.get(name, {}), counts)
        for name in (ROOT_QUEUE, *quota.tree.top_down)
    }


def standing_of(
    quota: Quota, name: str, nominated: Amounts, demand: Amounts, counts: QueueCounts = NOT_COUNTED
) -> QueueStanding:
    """One queue; `nominated` and `demand` are of it and all below it."""
    tree, share = quota.tree, quota.dominant_share(name)
    return QueueStanding(
        queue=tree.queues.get(name, Queue(name)),
        children=tree.children.get(name, ()),
        cells=quota.standing(name, nominated, demand),
        dominant_share=float(share.value),
        dominant_resource=share.resource,
        weighted_share=float(share.value / max(1, tree.weight(name))),
        pending_jobs=counts.pending_jobs.get(name, 0),
        running_jobs=counts.running_jobs.get(name, 0),
        position=counts.position.get(name, 0),
        problem=tree.problems.get(name, ""),
        nominated_jobs=counts.nominated_jobs.get(name, 0),
        borrowed_share=borrowed_share(quota, name) if tree.queues.get(name, _PLAIN).flavor_groups else 0,
    )


def _inclusive(quota: Quota, demand: Use) -> dict[str, dict[tuple[str, str], int]]:
    found: dict[str, dict[tuple[str, str], int]] = {}
    for cell in known_cells(quota.tree, {}, demand.values()):
        for name, amount in subtree_demand(quota.tree, demand, cell, quota.rules).items():
            found.setdefault(name, {})[cell] = amount
    return found
