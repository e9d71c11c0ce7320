"""Queues: who shares the cluster with whom, and with how much.

Amounts are in base units of the resource (milli-CPU, bytes, devices, batch-cpu in milli-CPU). A cell is a resource of
a flavour; where an API has no flavours, all is of the flavour `""`. A job is whatever queues and is placed as one: a
gang, a group of gangs, a lone pod, or the pods of one controller.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import TypeAlias

import msgspec

from model.decision import Decision
from model.estimates.start_estimate import StartEstimate
from model.selector import Selector

DEFAULT_QUEUE = "default"
ROOT_QUEUE = ""
"""The parent of all queues that name none: the whole cluster."""
NO_FLAVOR = ""

Cell: TypeAlias = tuple[str, str]
"""Flavour and resource."""


class QueueState(StrEnum):
    """OPEN takes and places work; HOLD takes it and places none; CLOSED takes none, what runs goes on. DRAIN is HOLD
    where what runs is evicted as well.
    """

    OPEN = "Open"
    HOLD = "Hold"
    CLOSED = "Closed"
    DRAIN = "HoldAndDrain"


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
    bound of its own. `weight` is its share of this resource beside its siblings; None: the queue's own.
    """

    guaranteed: int = 0
    nominal: int | None = None
    maximum: int | None = None
    borrowing_limit: int | None = None
    lending_limit: int | None = None
    weight: int | None = None


class VictimPolicy(StrEnum):
    """Whose work may go for a workload, by priority: nobody's, that of lower, of lower or of equal and newer, any.

    Words of Kueue's ClusterQueue `preemption`.
    """

    NEVER = "Never"
    LOWER = "LowerPriority"
    LOWER_OR_NEWER_EQUAL = "LowerOrNewerEqualPriority"
    ANY = "Any"


class QueuePreemption(msgspec.Struct, frozen=True):
    """Whether the queue's work may be reclaimed, by whom (queue names; empty: anybody), and how long a victim may take
    to end (None: as its pods say).

    Whom its own workloads may evict: `within` the queue, and, for what is its own, of relatives that borrow
    (`reclaim`); None where the queue has no word on it. While it would borrow itself, `borrowing` says whom of other
    queues, up to priority `borrowing_most` (None: any below its own).
    """

    reclaimable: bool = True
    preemptors: tuple[str, ...] = ()
    grace_seconds: float | None = None
    within: VictimPolicy | None = None
    reclaim: VictimPolicy | None = None
    borrowing: VictimPolicy = VictimPolicy.NEVER
    borrowing_most: int | None = None


class FlavorGroup(msgspec.Struct, frozen=True):
    """Resources that a pod set takes from one flavour, and the flavours in the order in which they are tried."""

    resources: tuple[str, ...]
    flavors: tuple[str, ...]


class FlavorStop(StrEnum):
    """Whether a flavour that would do ends the search, or the next one is looked at for something better."""

    STOP = "MayStopSearch"
    NEXT = "TryNextFlavor"


class FlavorPreference(StrEnum):
    """Which of two flavours that are not free is better: one that is borrowed, or one that needs an eviction."""

    BORROWING = "BorrowingOverPreemption"
    PREEMPTION = "PreemptionOverBorrowing"


class Fungibility(msgspec.Struct, frozen=True):
    """When the search for a flavour goes on: past one that would be borrowed, past one that needs an eviction."""

    when_can_borrow: FlavorStop = FlavorStop.STOP
    when_can_preempt: FlavorStop = FlavorStop.NEXT
    preference: FlavorPreference = FlavorPreference.BORROWING


class QueueAdmission(msgspec.Struct, frozen=True):
    """Rules for whole workloads; None and empty: none.

    `max_jobs` counts those that wait and those that run, of all queues below; `namespaces` are those that may use it,
    also where a `namespace_selector` names them by their labels; "" among them is none at all.
    """

    max_jobs: int | None = None
    max_gpus_per_job: int | None = None
    min_priority: int | None = None
    max_priority: int | None = None
    namespaces: tuple[str, ...] = ()
    namespace_selector: Selector | None = None


class Queue(msgspec.Struct, frozen=True):
    """A node of the tree; only leaves take workloads. `weight` is its share against its siblings.

    `lenders` are the queues it may borrow from; empty: all relatives. `source` is the object it comes from, as
    `Kind/name`, empty for a queue that nobody wrote. A queue with `flavor_groups` takes work whose resources these
    cover, each from a flavour; one without counts all as of no flavour. `by_submission`: of what waits those go first
    whose LocalQueue used least over time. `inactive` says why nothing can start in it
    although it can be read, empty where something can.
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
    flavor_groups: tuple[FlavorGroup, ...] = ()
    fungibility: Fungibility = Fungibility()
    by_submission: bool = False
    inactive: str = ""


def governing(queue: str, *, online: bool) -> str:
    """The queue that governs work: its own, but the root for online pods that name none.

    Whoever wrote a service without a word about queues is not made to wait by anybody's quota.
    """
    return ROOT_QUEUE if online and queue == DEFAULT_QUEUE else queue


class CellStanding(msgspec.Struct, frozen=True):
    """How a queue stands in one cell; amounts include those of all queues below it.

    `nominal` and `maximum` are what the queue says, None: nothing. `share` is its fair share, which has room for what
    it demands alone; `entitled` is what nobody may take back. `used` is what its pods have until they are gone,
    `nominated` what is kept for those that wait for victims, `demand` both and what waits. `borrowed` is the part of
    used and nominated above nominal (what it is entitled to, where it has none), `lent` what others have of its own,
    `headroom` how much more it may have now, None where nothing bounds it.
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
    headroom: int | None = 0


class QueueStanding(msgspec.Struct, frozen=True):
    """How a queue stands in the cells that it or the cluster knows.

    `dominant_share` is of used and nominated, 0 to 1, of `dominant_resource`; `weighted_share` is it by weight.
    `position` is its place in the order in which queues were served in the last turn, 0: nothing of it waits.
    `problem` says why the queue takes no work, empty where it does. `nominated_jobs` are those for which room is kept
    until their victims are gone; `borrowed_share` is Kueue's number of a queue that counts by flavours.
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
    nominated_jobs: int = 0
    borrowed_share: int = 0


class Loan(msgspec.Struct, frozen=True):
    """What a queue has of another's own."""

    lender: str
    borrower: str
    cell: Cell
    amount: int


class QuotaShortage(msgspec.Struct, frozen=True):
    """A cell in which a job does not fit: `queue` is where its path is tightest, `bound` what binds there.

    `room` is what the job might have at most; below 0 more is in use than may be.
    """

    cell: Cell
    queue: str
    bound: str
    asked: int
    room: int


class QueuedJob(msgspec.Struct, frozen=True):
    """A job: `name` is `gang/…`, `pod/…` or `job/…` with namespace and name.

    `position` is its place in the order, 1 is next, 0 where nothing of it waits; `stage` and `reason` are of the newest
    decision about it, empty before the first. `asked` is what its waiting members request, `held` what its members on
    nodes have and what is kept for it, both by resource.
    """

    name: str
    queue: str
    position: int = 0
    stage: str = ""
    reason: str = ""
    detail: str = ""
    asked: Mapping[str, int] = {}
    held: Mapping[str, int] = {}


class QueueAccount(msgspec.Struct, frozen=True):
    """A queue with its loans, both ways, and the first jobs that wait in it or below it; `waiting` counts all."""

    standing: QueueStanding
    loans: tuple[Loan, ...] = ()
    jobs: tuple[QueuedJob, ...] = ()
    waiting: int = 0


class ProgressEvent(msgspec.Struct, frozen=True):
    """One thing that happened, at Unix seconds."""

    reason: str
    message: str
    at_seconds: float = 0.0
    warning: bool = False


class JobProgress(msgspec.Struct, frozen=True):
    """How a job goes whose controller runs here. Words are those of its kind; times are Unix seconds, 0 for none.

    `reason` and `message` say why it is in its phase, or cannot be run. It fails with failure number `most_failures`;
    `evictions` are restarts that count for nothing. `tasks` are pods by task and by what they do, such as running.
    """

    kind: str
    phase: str
    reason: str = ""
    message: str = ""
    since_seconds: float = 0.0
    created_seconds: float = 0.0
    began_seconds: float = 0.0
    ended_seconds: float = 0.0
    failures: int = 0
    most_failures: int = 0
    evictions: int = 0
    tasks: Mapping[str, Mapping[str, int]] = {}
    nodes: tuple[str, ...] = ()
    events: tuple[ProgressEvent, ...] = ()


class JobAccount(msgspec.Struct, frozen=True):
    """A job and what it waits for; `path` is its queue and those above it, without the root.

    `members` are its pods that count, `scheduled` those with a node, `needed` how many must be placed at once.
    `shortages` are those of the quota now, `ahead` the first before it in the order, `ahead_count` how many there are.
    `progress` is that of a job whose controller runs here, None for any other. `start` is when it is expected to start,
    None where it does not wait or was not looked at yet. `lost_seconds` is work of its pods that evictions cost since
    the scheduler leads, `saved_seconds` (Unix time) the moment of the state that is saved of all, `told_until_seconds`
    until when pods that were told that they go may stay; 0 for none.
    """

    namespace: str
    name: str
    job: QueuedJob
    path: tuple[str, ...] = ()
    members: int = 0
    scheduled: int = 0
    needed: int = 0
    message: str = ""
    nearest: str = ""
    decision: Decision | None = None
    preemption: Decision | None = None
    shortages: tuple[QuotaShortage, ...] = ()
    ahead: tuple[QueuedJob, ...] = ()
    ahead_count: int = 0
    progress: JobProgress | None = None
    start: StartEstimate | None = None
    lost_seconds: float = 0.0
    saved_seconds: float = 0.0
    told_until_seconds: float = 0.0
