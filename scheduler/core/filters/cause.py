"""The one cause that keeps a pod waiting, as a stable code: what an alert or a person asks first.

The text beside it counts nodes per filter; here only the nearest obstacle counts: the one left on the nodes that every
filter before it lets through.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from model.reason import Reason
from model.resources import BATCH_CPU, BATCH_MEMORY, CPU, MEMORY, MID_CPU, MID_MEMORY
from scheduler.core.cpus import free_cpus
from scheduler.core.filters import podaffinity, spread, static, volumes
from scheduler.core.filters.fit import Refused, after_room, before_room
from scheduler.core.filters.obstacles import Obstacles
from scheduler.core.filters.ports import PORTS
from scheduler.core.snapshot.podclass import PodClass
from scheduler.core.snapshot.snapshot import Amounts, ClusterSnapshot, Mask

CAUSES = (
    Reason.NODE_SELECTOR_MISMATCH,
    Reason.TAINT_UNTOLERATED,
    Reason.PORT_IN_USE,
    Reason.REQUEST_TOO_LARGE,
    Reason.NO_BATCH_OFFERED,
    Reason.INSUFFICIENT_BATCH,
    Reason.CLAIM_NOT_BOUND,
    Reason.VOLUME_UNREACHABLE,
    Reason.SPREAD_UNSATISFIED,
    Reason.AFFINITY_UNSATISFIED,
    Reason.CPUS_NOT_BOUND,
    Reason.NODE_TOO_BUSY,
    Reason.UNSCHEDULABLE,
)
_CODES = {
    static.SELECTOR: Reason.NODE_SELECTOR_MISMATCH,
    PORTS: Reason.PORT_IN_USE,
    volumes.CONFLICT: Reason.VOLUME_UNREACHABLE,
    volumes.NO_VOLUME: Reason.VOLUME_UNREACHABLE,
    spread.SPREAD: Reason.SPREAD_UNSATISFIED,
    spread.UNLABELLED: Reason.SPREAD_UNSATISFIED,
    podaffinity.AFFINITY: Reason.AFFINITY_UNSATISFIED,
    podaffinity.ANTI_AFFINITY: Reason.AFFINITY_UNSATISFIED,
    podaffinity.EXISTING: Reason.AFFINITY_UNSATISFIED,
    **dict.fromkeys(free_cpus.REASONS, Reason.CPUS_NOT_BOUND),
}
_LENT_FROM = {BATCH_CPU: CPU, MID_CPU: CPU, BATCH_MEMORY: MEMORY, MID_MEMORY: MEMORY}


def cause(
    snapshot: ClusterSnapshot,
    free: Amounts,
    pod_class: PodClass,
    obstacles: Obstacles | None = None,
    extra: Iterable[Refused] = (),
) -> Reason:
    """Why no node of `free` (node × resource) takes one more pod; Unschedulable where no cause stands out.

    `extra` are refusals asked last; whatever is no word of kube-scheduler's filters is taken for one by measured load.
    """
    if volumes.missing(snapshot.traits.related, pod_class.tolerance.claims):
        return Reason.CLAIM_NOT_BOUND
    before = before_room(snapshot, pod_class, obstacles)
    left = ~_any(len(snapshot.names), before)
    if not left.any():
        return _ahead_of_room(len(snapshot.names), before)
    roomy = left & _holds(snapshot, free, pod_class)
    if not roomy.any():
        return _of_room(snapshot, free, pod_class, left)
    codes = _CODES if pod_class.cpus is None else {**_CODES, pod_class.cpus.problem: Reason.CPUS_NOT_BOUND}
    last = ((rows, codes.get(reason, Reason.NODE_TOO_BUSY)) for rows, reason in extra)
    after = ((rows, _code(reason)) for rows, reason in after_room(snapshot, pod_class, obstacles))
    return _emptied_by(roomy, (*after, *last))


def _ahead_of_room(size: int, refusals: list[Refused]) -> Reason:
    """Ports, where they alone keep the pod from nodes it may go to; else the one thing wrong with all nodes."""
    if not _any(size, [refused for refused in refusals if refused[1] != PORTS]).all():
        return Reason.PORT_IN_USE
    codes = {_code(reason) for rows, reason in refusals if reason != PORTS and rows.any()}
    return codes.pop() if len(codes) == 1 else Reason.UNSCHEDULABLE


def _of_room(snapshot: ClusterSnapshot, free: Amounts, pod_class: PodClass, rows: Mask) -> Reason:
    """What is short on these rows."""
    if not _holds(snapshot, snapshot.allocatable, _at_most(snapshot, pod_class))[rows].any():
        return Reason.REQUEST_TOO_LARGE
    lent = PodClass(tuple(item for item in pod_class.request if item[0] in _LENT_FROM))
    own = PodClass(tuple(item for item in pod_class.request if item[0] not in _LENT_FROM))
    if not lent.request or not _holds(snapshot, free, own)[rows].any():
        return Reason.UNSCHEDULABLE
    offered = all((_column(snapshot, snapshot.allocatable, name)[rows] > 0).any() for name, _ in lent.request)
    return Reason.INSUFFICIENT_BATCH if offered else Reason.NO_BATCH_OFFERED


def _emptied_by(left: Mask, refusals: Iterable[tuple[Mask, Reason]]) -> Reason:
    """The first that leaves no row."""
    for rows, code in refusals:
        left = left & ~rows
        if not left.any():
            return code
    return Reason.UNSCHEDULABLE


def _code(reason: str) -> Reason:
    if reason.startswith(static.UNTOLERATED):
        return Reason.TAINT_UNTOLERATED
    return _CODES.get(reason, Reason.UNSCHEDULABLE)


def _any(size: int, refusals: Iterable[Refused]) -> Mask:
    return np.asarray(np.logical_or.reduce([np.zeros(size, bool), *(rows for rows, _ in refusals)]))


def _at_most(snapshot: ClusterSnapshot, pod_class: PodClass) -> PodClass:
    """What is lent is measured by what it is lent from: no node ever lends more than it has."""
    sources = ((_LENT_FROM.get(name, name), amount) for name, amount in pod_class.request)
    return PodClass(tuple((name, amount) for name, amount in sources if name in snapshot.resources))


def _holds(snapshot: ClusterSnapshot, amounts: Amounts, pod_class: PodClass) -> Mask:
    """Per node, whether `amounts` cover one pod."""
    enough = np.ones(len(snapshot.names), bool)
    for name, amount in pod_class.request:
        enough &= _column(snapshot, amounts, name) >= amount
    return enough


def _column(snapshot: ClusterSnapshot, amounts: Amounts, name: str) -> Amounts:
    if name not in snapshot.resources:
        return np.zeros(len(snapshot.names), np.int64)
    return np.asarray(amounts[:, snapshot.resources.index(name)])
