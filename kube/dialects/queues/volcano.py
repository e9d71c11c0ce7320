"""Volcano's Queue (scheduling.volcano.sh/v1beta1).

A missing `deserved` counts as the queue's share by weight, at least what is guaranteed: Volcano's own webhook refuses
such a queue (volcano#6016), though its plugin proportion never reads the field.
Source: volcano.sh/apis pkg/apis/scheduling/v1beta1/types.go; volcano pkg/scheduler/plugins/capacity.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import Any

import msgspec

from kube.dialects.documents.document import checked
from kube.dialects.queues.quota import cells_of, require_order, whole, written
from kube.objects import VolcanoQueue
from model.queue import ROOT_QUEUE, Cell, Queue, QueueOrder, QueuePreemption, QueueState, QuotaCell

KIND = "Queue"
GROUP = "scheduling.volcano.sh"
ROOT = "root"
"""Volcano's name of the whole cluster."""
_CLOSED = ("Closed", "Closing")


class _Dequeue(StrEnum):
    """Whether one that does not fit holds up those behind it."""

    FIFO = "fifo"
    TRAVERSE = "traverse"


class _Guarantee(msgspec.Struct, frozen=True):
    resource: Any = None


class _Spec(msgspec.Struct, frozen=True, rename="camel"):
    weight: Any = None
    capability: Any = None
    deserved: Any = None
    guarantee: _Guarantee | None = None
    reclaimable: bool | None = None
    parent: str | None = None
    dequeue_strategy: _Dequeue | None = None
    priority: Any = None
    affinity: Any = None
    extend_clusters: Any = None


def queue(source: VolcanoQueue) -> Queue | None:
    """None for Volcano's `root`, which is the whole cluster. Raises ConfigurationFault naming queue and field."""
    name = source.metadata.name
    where = where_of(source)
    spec = _spec(source)
    cells = _cells(spec, where)
    if name == ROOT:
        return None
    return Queue(
        name=name,
        parent=ROOT_QUEUE if spec.parent in (None, "", ROOT) else str(spec.parent),
        weight=whole(spec.weight, 1, 1, "spec.weight", where),
        cells=cells,
        state=_state(source.status),
        order=QueueOrder.STRICT_FIFO if spec.dequeue_strategy is _Dequeue.FIFO else QueueOrder.BEST_EFFORT_FIFO,
        preemption=QueuePreemption(reclaimable=spec.reclaimable is not False),
        source=f"{KIND}.{GROUP}/{name}",
    )


def _state(status: Any) -> QueueState:
    """A status that cannot be read says nothing: only controllers write it."""
    told = status.get("state") if isinstance(status, dict) else None
    return QueueState.CLOSED if told in _CLOSED else QueueState.OPEN


def where_of(source: VolcanoQueue) -> str:
    """What messages call it, beside our own Queue."""
    return f"{KIND}.{GROUP} {source.metadata.name}"


def unmet(source: VolcanoQueue) -> Iterator[str]:
    """Fields that are set and not acted on, each with what follows. Raises ConfigurationFault."""
    spec = _spec(source)
    if spec.priority:
        yield f"spec.priority {spec.priority}: queues are ordered by their shares"
    if spec.affinity:
        yield "spec.affinity: its pods may go to every node"
    if spec.extend_clusters:
        yield "spec.extendClusters: nothing is sent to another cluster"


def _spec(source: VolcanoQueue) -> _Spec:
    return checked({} if source.spec is None else source.spec, _Spec, f"{where_of(source)}: spec")


def _cells(spec: _Spec, where: str) -> dict[Cell, QuotaCell]:
    guaranteed = written(spec.guarantee.resource if spec.guarantee else None, "spec.guarantee.resource", where)
    deserved = written(spec.deserved, "spec.deserved", where)
    capability = written(spec.capability, "spec.capability", where)
    require_order(where, guaranteed, deserved, capability)
    names = {*guaranteed.amounts, *deserved.amounts, *capability.amounts}
    cells = {
        name: QuotaCell(guaranteed.amounts.get(name, 0), deserved.amounts.get(name), capability.amounts.get(name))
        for name in names
    }
    return dict(cells_of(names, cells))
