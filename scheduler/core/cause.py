"""The one cause that keeps a pod waiting, as a stable code: what an alert or a person asks first.

The text beside it counts nodes per filter; here only the nearest obstacle counts: the one left on the nodes that every
filter before it lets through.
"""

from __future__ import annotations

import numpy as np

from model.reason import Reason
from model.resources import BATCH_CPU, BATCH_MEMORY, CPU, MEMORY, MID_CPU, MID_MEMORY
from scheduler.core.fit import SELECTOR, verdicts
from scheduler.core.podclass import PodClass
from scheduler.core.snapshot import Amounts, ClusterSnapshot, Mask

CAUSES = (
    Reason.NODE_SELECTOR_MISMATCH,
    Reason.REQUEST_TOO_LARGE,
    Reason.NO_BATCH_OFFERED,
    Reason.INSUFFICIENT_BATCH,
    Reason.UNSCHEDULABLE,
)
_LENT_FROM = {BATCH_CPU: CPU, MID_CPU: CPU, BATCH_MEMORY: MEMORY, MID_MEMORY: MEMORY}


def cause(snapshot: ClusterSnapshot, free: Amounts, pod_class: PodClass) -> Reason:
    """Why no node of `free` (node × resource) takes one more pod; Unschedulable where no cause stands out."""
    verdict = verdicts(snapshot.traits, pod_class.tolerance)
    admissible = verdict.admissible
    if not admissible.any():
        named = set(verdict.reasons) == {SELECTOR}
        return Reason.NODE_SELECTOR_MISMATCH if named else Reason.UNSCHEDULABLE
    if not _holds(snapshot, snapshot.allocatable, _at_most(snapshot, pod_class))[admissible].any():
        return Reason.REQUEST_TOO_LARGE
    lent = PodClass(tuple(item for item in pod_class.request if item[0] in _LENT_FROM))
    own = PodClass(tuple(item for item in pod_class.request if item[0] not in _LENT_FROM))
    if not lent.request or not _holds(snapshot, free, own)[admissible].any():
        return Reason.UNSCHEDULABLE
    offered = all((_column(snapshot, snapshot.allocatable, name)[admissible] > 0).any() for name, _ in lent.request)
    return Reason.INSUFFICIENT_BATCH if offered else Reason.NO_BATCH_OFFERED


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
