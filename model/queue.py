"""Queues: who shares the cluster with whom, and with how much.

Amounts are in base units of the resource (milli-CPU, bytes, devices, batch-cpu in milli-CPU). A cell is a resource of
a flavour; where an API has no flavours, all is of the flavour `""`.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import TypeAlias

import msgspec

DEFAULT_QUEUE = "default"
ROOT_QUEUE = ""
"""The parent of all queues that name none: the whole cluster."""
NO_FLAVOR = ""

Cell: TypeAlias = tuple[str, str]
"""Flavour and resource."""


class QueueState(StrEnum):
    """OPEN takes and places work; HOLD takes it and places none; CLOSED takes none, what runs goes on."""

    OPEN = "Open"
    HOLD = "Hold"
    CLOSED = "Closed"


class QueueOrder(StrEnum):
    """What a head that does not fit means to those behind it in its queue.

    STRICT_FIFO: they wait. BEST_EFFORT_FIFO: they are tried. BACKFILL: they are tried, around the room that is reserved
    for the head.
    """

    STRICT_FIFO = "StrictFIFO"
    BEST_EFFORT_FIFO = "BestEffortFIFO"
    BACKFILL = "Backfill"


class QuotaCell(msgspec.Struct, frozen=True):
    """What a queue may have of one resource of one flavour.

    `guaranteed` is never lent. Up to `nominal` the queue uses its own, above it borrows; None: its share by weight of
    what its parent has, at least `guaranteed` and at most `maximum`. `maximum` is never passed; None: the parent's.
    `borrowing_limit` is how much above nominal, `lending_limit` how much of nominal others may have meanwhile; None: no
    bound of its own.
    """

    guaranteed: int = 0
    nominal: int | None = None
    maximum: int | None = None
    borrowing_limit: int | None = None
    lending_limit: int | None = None


class QueuePreemption(msgspec.Struct, frozen=True):
    """Whether the queue's work may be reclaimed, by whom (queue names; empty: anybody), and how long a victim may take
    to end (None: as its pods say).
    """

    reclaimable: bool = True
    preemptors: tuple[str, ...] = ()
    grace_seconds: float | None = None


class QueueAdmission(msgspec.Struct, frozen=True):
    """Rules for whole workloads; None and empty: none.

    `max_jobs` counts those that wait and those that run, of all queues below; `namespaces` are those that may use it.
    """

    max_jobs: int | None = None
    max_gpus_per_job: int | None = None
    min_priority: int | None = None
    max_priority: int | None = None
    namespaces: tuple[str, ...] = ()


class Queue(msgspec.Struct, frozen=True):
    """A node of the tree; only leaves take workloads. `weight` is its share against its siblings.

    `lenders` are the queues it may borrow from; empty: all relatives. `source` is the object it comes from, as
    `Kind/name`, empty for a queue that nobody wrote.
    """

    name: str = DEFAULT_QUEUE
    parent: str = ROOT_QUEUE
    weight: int = 1
    cells: Mapping[Cell, QuotaCell] = {}
    state: QueueState = QueueState.OPEN
    order: QueueOrder = QueueOrder.BACKFILL
    lenders: tuple[str, ...] = ()
    preemption: QueuePreemption = QueuePreemption()
    admission: QueueAdmission = QueueAdmission()
    source: str = ""


class CellStanding(msgspec.Struct, frozen=True):
    """How a queue stands in one cell; amounts include those of all queues below it.

    `nominal` and `maximum` are what the queue says, None: nothing. `share` is its fair share, which has room for what
    it demands alone; `entitled` is what nobody may take back. `used` is what its pods have until they are gone,
    `nominated` what is kept for those that wait for victims, `demand` both and what waits. `borrowed` is the part of
    used and nominated above nominal (the share, where it has none), `lent` what others have of its own, `headroom` how
    much more it may have now.
    """

    guaranteed: int = 0
    nominal: int | None = None
    maximum: int | None = None
    share: int = 0
    entitled: int = 0
    used: int = 0
    nominated: int = 0
    demand: int = 0
    borrowed: int = 0
    lent: int = 0
    headroom: int = 0


class QueueStanding(msgspec.Struct, frozen=True):
    """How a queue stands in the cells that it or the cluster knows.

    `dominant_share` is of used and nominated, 0 to 1, of `dominant_resource`; `weighted_share` is it by weight.
    `position` is its place in the order in which queues were served in the last turn, 0: nothing of it waits.
    `problem` says why the queue takes no work, empty where it does.
    """

    queue: Queue
    children: tuple[str, ...] = ()
    cells: Mapping[Cell, CellStanding] = {}
    dominant_share: float = 0.0
    dominant_resource: str = ""
    weighted_share: float = 0.0
    pending_jobs: int = 0
    running_jobs: int = 0
    position: int = 0
    problem: str = ""
