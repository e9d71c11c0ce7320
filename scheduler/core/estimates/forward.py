"""The forward pass: from what runs now, through its expected ends, to the start of each workload that waits.

One pass is one possible course of things: every run ends at a quantile of the past runs of its kind that ran as long
already, and no later than its deadline. The quantiles of one pass are spread evenly over what runs, so that as many
runs end early and late in it as is likely; other passes give each run another one. Work that waits starts in the
order of its queue, as soon as its quota and the nodes have room for all of it at once; what stands behind fills in.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec
import numpy as np

from model.estimates.start_estimate import EstimateBasis, ExpectedEnd
from model.queue import Cell
from scheduler.core.estimates.durations import PastRuns
from scheduler.core.filters import fit
from scheduler.core.queues.headroom import Quota
from scheduler.core.snapshot.podclass import PodClass
from scheduler.core.snapshot.snapshot import Amounts, ClusterSnapshot

_GOLDEN = 0.6180339887498949
"""Multiples of it, without their whole part, spread evenly over 0 to 1, however many there are."""
_GRAIN_SECONDS = 1.0
_GRAIN_RATIO = 0.01
"""Ends as close together as this part of the way to them are one step."""


class RunningWork(msgspec.Struct, frozen=True):
    """Work on nodes: since when (Unix seconds), by when it must end (None: no deadline), what it takes.

    `runs` are past runs of its kind, None where too few are known. `rows` are its pods' nodes (−1: on none) with their
    class, `queue` and `cells` what it counts to.
    """

    name: str
    started_seconds: float
    deadline_seconds: float | None
    runs: PastRuns | None
    rows: tuple[tuple[int, PodClass], ...]
    queue: str
    cells: Mapping[Cell, int]

    @property
    def known(self) -> bool:
        """Whether anything tells when it ends."""
        return self.runs is not None or self.deadline_seconds is not None


class WaitingWork(msgspec.Struct, frozen=True):
    """Work that waits, in order: how many pods of each class it needs at once, and how long it may run.

    `limit_seconds` is how long it may run at most, None where it has no deadline. `strict`: what stands behind it in
    its queue does not pass it.
    """

    name: str
    pods: tuple[tuple[PodClass, int], ...]
    queue: str
    cells: Mapping[Cell, int]
    runs: PastRuns | None = None
    limit_seconds: float | None = None
    strict: bool = False


class Picture(msgspec.Struct, frozen=True, eq=False):
    """What is known at `now`. `free` is node × resource as `snapshot` has it; `quota` makes a copy of the books to be
    charged, None where there are no queues. `waiting` stands in order; with `fair` a queue that has less goes first.
    """

    now: float
    snapshot: ClusterSnapshot
    free: Amounts
    running: tuple[RunningWork, ...]
    waiting: tuple[WaitingWork, ...]
    quota: Callable[[], Quota] | None = None
    fair: bool = False


class Start(msgspec.Struct, frozen=True):
    """When a workload starts in one pass, and after which end; None where there was room at once."""

    at_seconds: float
    after: ExpectedEnd | None


class _End(msgspec.Struct, order=True, gc=False):
    at: float
    number: int


def forward(picture: Picture, turn: int, turns: int, horizon_seconds: float) -> Iterator[dict[int, Start] | None]:
    """Pass `turn` of `turns`, step by step: None after each step, at last the starts by place in `waiting`.

    Whoever has no start there does not start within `horizon_seconds`, or only after something of which nothing tells
    when it ends.
    """
    course = _Course(picture, turn, turns)
    course.start_all(None)
    yield None
    while course.ends and course.left and course.ends[0].at <= picture.now + horizon_seconds:
        course.start_all(course.step())
        yield None
    yield course.starts


class _Course:
    """The state of one pass."""

    def __init__(self, picture: Picture, turn: int, turns: int) -> None:
        self.starts: dict[int, Start] = {}
        self.left = dict.fromkeys(range(len(picture.waiting)))
        self.ends: list[_End] = []
        self._picture = picture
        self._free: Amounts = np.array(picture.free)
        self._quota = picture.quota() if picture.quota is not None else None
        self._now = picture.now
        self._offset = (turn + 0.5) / turns
        self._count = 0
        self._work: list[tuple[str, tuple[tuple[int, PodClass], ...], str, Mapping[Cell, int], ExpectedEnd]] = []
        self._seats: dict[PodClass, Amounts] = {}
        for work in picture.running:
            self._run(work.name, work.started_seconds, work.deadline_seconds, work.runs, work.rows, work)

    def step(self) -> ExpectedEnd:
        """The next ends that are close together; returns the last of them."""
        first = self.ends[0].at
        until = first + max(_GRAIN_SECONDS, (first - self._picture.now) * _GRAIN_RATIO)
        last = None
        while self.ends and self.ends[0].at <= until:
            end = heapq.heappop(self.ends)
            _, rows, queue, cells, last = self._work[end.number]
            self._now = max(self._now, end.at)
            self._move(rows, 1)
            if self._quota is not None and queue:
                self._quota.charge(queue, cells, -1)
        assert last is not None
        return last

    def start_all(self, after: ExpectedEnd | None) -> None:
        """All that there is room for now, in order."""
        if self._quota is None or not self._picture.fair:
            blocked = _Blocked()
            for place in tuple(self.left):
                self._try(place, after, blocked)
            return
        self._start_by_share(self._quota, after)

    def _start_by_share(self, quota: Quota, after: ExpectedEnd | None) -> None:
        """The first of the queue that has least, and so on."""
        lines: dict[str, list[int]] = {}
        for place in self.left:
            lines.setdefault(self._picture.waiting[place].queue, []).append(place)
        heads = [(_share(quota, queue), line[0], queue) for queue, line in lines.items()]
        heapq.heapify(heads)
        at, blocked = dict.fromkeys(lines, 0), _Blocked()
        while heads:
            _, place, queue = heapq.heappop(heads)
            self._try(place, after, blocked)
            at[queue] += 1
            if at[queue] < len(lines[queue]) and queue not in blocked.queues:
                heapq.heappush(heads, (_share(quota, queue), lines[queue][at[queue]], queue))

    def _try(self, place: int, after: ExpectedEnd | None, blocked: _Blocked) -> None:
        work = self._picture.waiting[place]
        shape = (work.queue, work.pods)
        if work.queue in blocked.queues or shape in blocked.shapes:
            return
        rows = self._rows(work)
        if rows is None:
            blocked.shapes.add(shape)
            if work.strict:
                blocked.queues.add(work.queue)
            return
        del self.left[place]
        self.starts[place] = Start(self._now, after)
        self._move(rows, -1)
        if self._quota is not None and work.queue:
            self._quota.charge(work.queue, work.cells)
        deadline = None if work.limit_seconds is None else self._now + work.limit_seconds
        self._run(work.name, self._now, deadline, work.runs, rows, work)

    def _rows(self, work: WaitingWork) -> tuple[tuple[int, PodClass], ...] | None:
        """Where it fits, on the fullest nodes; None where its quota or the nodes have no room for all of it."""
        if self._quota is not None and work.queue and self._quota.short(work.queue, work.cells):
            return None
        found: list[tuple[int, PodClass]] = []
        for pod_class, count in work.pods:
            taken = self._seated(pod_class, count)
            if taken is None:
                self._move(found, 1)
                return None
            self._move(taken, -1)
            found += taken
        self._move(found, 1)
        return tuple(found)

    def _seated(self, pod_class: PodClass, count: int) -> list[tuple[int, PodClass]] | None:
        seats = self._seats.get(pod_class)
        if seats is None:
            seats = self._seats[pod_class] = fit.counts(self._picture.snapshot, self._free, pod_class)
        rows = np.flatnonzero(seats)
        if int(seats[rows].sum()) < count:
            return None
        order = rows[np.argsort(seats[rows], kind="stable")]
        if count == 1:
            return [(int(order[0]), pod_class)]
        enough = rows[seats[rows] >= count]
        if len(enough):
            best = int(enough[np.argmin(seats[enough])])
            return [(best, pod_class)] * count
        found: list[tuple[int, PodClass]] = []
        for row in order[::-1].tolist():
            found += [(row, pod_class)] * min(int(seats[row]), count - len(found))
            if len(found) == count:
                break
        return found

    def _move(self, rows: Sequence[tuple[int, PodClass]], sign: int) -> None:
        for row, pod_class in rows:
            if row >= 0:
                self._free[row] += sign * fit.use(self._picture.snapshot, pod_class)
        if rows:
            self._seats.clear()

    def _run(
        self,
        name: str,
        started: float,
        deadline: float | None,
        runs: PastRuns | None,
        rows: tuple[tuple[int, PodClass], ...],
        work: RunningWork | WaitingWork,
    ) -> None:
        """It runs from `started` on, and comes to its end where anything tells when."""
        self._count += 1
        if runs is None and deadline is None:
            return
        quantile = (self._count * _GOLDEN + self._offset) % 1.0
        end = started + runs.end_after(self._now - started, quantile) if runs is not None else float("inf")
        basis, number, of = EstimateBasis.HISTORY, len(runs.seconds) if runs else 0, " ".join(runs.kind) if runs else ""
        if deadline is not None and deadline <= end:
            end, basis, number, of = deadline, EstimateBasis.DEADLINE, 0, ""
        end = max(end, self._now + _GRAIN_SECONDS)
        told = ExpectedEnd(name, end, basis, number, of)
        self._work.append((name, rows, work.queue, work.cells, told))
        heapq.heappush(self.ends, _End(end, len(self._work) - 1))


class _Blocked:
    """What found no room since the last end: shapes, and queues that go strictly one after the other."""

    def __init__(self) -> None:
        self.shapes: set[tuple[str, tuple[tuple[PodClass, int], ...]]] = set()
        self.queues: set[str] = set()


def _share(quota: Quota, queue: str) -> tuple[object, ...]:
    """What orders queues by their shares: those of the widest node that holds the queue first."""
    return tuple(quota.share_key(node) for node in reversed(quota.tree.path(queue)[:-1]))
