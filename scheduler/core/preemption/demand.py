"""Demand of preemption: the needed members and no more, so that nothing is evicted for a gang's surplus.

Kubernetes' group preemption (KEP-5710) takes room up to the member count; evicting work that runs for members that
the job can start without is not worth it here.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from model.resources import PODS
from scheduler.core.gangs.assembly import Candidate
from scheduler.core.snapshot.podclass import PodClass
from scheduler.core.snapshot.snapshot import Amounts, ClusterSnapshot


def needed_only(snapshot: ClusterSnapshot, candidate: Candidate) -> Candidate:
    """The candidate with just the members it needs, in each gang the smallest first and these in their own order."""
    if candidate.needed >= candidate.pending:
        return candidate
    share = [_share(snapshot, pod_class) for pod_class in candidate.classes]
    left = dict(candidate.workload.gangs) or {"": candidate.needed}
    kept = [0] * len(candidate.classes)
    for index in sorted(range(len(kept)), key=lambda i: (share[i], i)):
        pods = candidate.workload.pod_sets[index]
        gang = pods.gang if pods.gang in left else ""
        kept[index] = min(pods.count, max(0, left.get(gang, 0)))
        left[gang] = left.get(gang, 0) - kept[index]
    return cut(candidate, kept)


def cut(candidate: Candidate, kept: Sequence[int]) -> Candidate:
    """The candidate with so many pods of each of its sets, the first ones."""
    chosen = [index for index, number in enumerate(kept) if number]
    sets = candidate.workload.pod_sets
    workload = msgspec.structs.replace(
        candidate.workload,
        pod_sets=tuple(msgspec.structs.replace(sets[i], uids=sets[i].uids[: kept[i]]) for i in chosen),
    )
    return msgspec.structs.replace(
        candidate,
        workload=workload,
        classes=tuple(candidate.classes[i] for i in chosen),
        member_traits=tuple(candidate.member_traits[i][: kept[i]] for i in chosen),
    )


def _share(snapshot: ClusterSnapshot, pod_class: PodClass) -> float:
    """The largest share of the cluster that one pod asks for."""
    totals = snapshot.totals
    asked = (amount / max(totals[name], 1) for name, amount in pod_class.request if name != PODS and name in totals)
    return max(asked, default=0.0)


def columns_of(snapshot: ClusterSnapshot, candidate: Candidate) -> list[int]:
    """The columns that any member asks for, ascending."""
    names = {name for pod_class in candidate.classes for name, _ in pod_class.request}
    return [column for column, name in enumerate(snapshot.resources) if name in names]


def request_of(snapshot: ClusterSnapshot, columns: list[int], pod_class: PodClass) -> Amounts:
    """What one pod of the class takes of those columns; 0 where it does not ask."""
    amounts = dict(pod_class.request)
    return np.array([amounts.get(snapshot.resources[column], 0) for column in columns], np.int64)
