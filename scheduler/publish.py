"""Step 6 of the cycle: bindings, conditions, statuses and Events, all at once; each failure comes back as a fact.

The API has no binding of several pods, so a gang can be bound part-way. Then what is not bound yet is released and
the gang comes back with its bound members counting towards the minimum.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator, Callable, Hashable

import msgspec
import structlog

from model.fault import KubernetesFault
from model.report import PreemptionNotice
from model.workload import GangTimes, WorkloadId
from scheduler.cache import facts
from scheduler.cache.suspended_cache import gang_key
from scheduler.core.queueing.backoff import delay_seconds
from scheduler.ports import (
    Announcer,
    Binder,
    Clock,
    Meter,
    NamedObject,
    NoticeSender,
    NoticeWriter,
    PodDeleter,
    StatusWriter,
)
from scheduler.settings import SchedulerSettings
from scheduler.steps.turn import (
    Bind,
    BindingBatch,
    Eviction,
    GangCondition,
    GangStatusWrite,
    Notice,
    PodConditionWrite,
    Turn,
    WorkloadAdmissionWrite,
)

log = structlog.get_logger()

_BINDINGS_FIRST_SECONDS = 0.25
"""How long deciding waits for bindings: much less than anything else that happens by the clock."""


FENCE_SECONDS = 0.05
"""Rest between two looks at a lease that is not renewed in time."""

_REPEATS = 8
"""Attempts at a binding of which it is not known whether it was made: with back-off a minute, the longest that an API
server of Kubernetes works on a request (--request-timeout)."""


_CONDITION_ATTEMPTS = 3
"""Attempts at an eviction that tell the pod why. Whoever made it may have left no room for a condition: an object of
1.5 MB takes none, and must not stay for that."""

_DRAIN_SECONDS = 5.0
"""How long a stop waits for bindings that were begun: with Events and lease within the 30 s that a pod has."""

_NAMED_PODS = 10


class _Course(msgspec.Struct):
    """How far a batch has come: whether a binding of it was asked for, and whether one failed."""

    begun: bool = False
    failed: bool = False


class Outlets(msgspec.Struct, frozen=True):
    """Where decisions go. `leading` is asked before each write: without it writes wait, and bindings come back."""

    binder: Binder
    writer: StatusWriter
    evictor: PodDeleter
    announcer: Announcer
    courier: NoticeSender | None = None
    notices: NoticeWriter | None = None
    leading: Callable[[], bool] = lambda: True


class FairSlots:
    """`number` writes at once. Lanes have their turn one after the other, so that thousands of one hold up nobody else;
    in each who came first goes first.
    """

    def __init__(self, number: int) -> None:
        self._free = number
        self._waiting: dict[Hashable, deque[asyncio.Future[None]]] = {}

    @contextlib.asynccontextmanager
    async def taken(self, lane: Hashable) -> AsyncIterator[None]:
        """A slot from the turn of this lane until the block ends."""
        await self._take(lane)
        try:
            yield
        finally:
            self._give_back()

    async def _take(self, lane: Hashable) -> None:
        if self._free:
            self._free -= 1
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(lane, deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._give_back()
            raise

    def _give_back(self) -> None:
        """To the next lane, which is the last of all then."""
        while self._waiting:
            lane = next(iter(self._waiting))
            line = self._waiting.pop(lane)
            turn = line.popleft()
            if line:
                self._waiting[lane] = line
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1


class Publisher:
    """`enqueue` takes facts for the next turn; tasks run in `group`."""

    def __init__(self, outlets: Outlets, meter: Meter, clock: Clock, settings: SchedulerSettings) -> None:
        self._binder = outlets.binder
        self._writer = outlets.writer
        self._evictor = outlets.evictor
        self._announcer = outlets.announcer
        self._courier = outlets.courier
        self._shown = outlets.notices
        self.leading = outlets.leading
        self._meter = meter
        self._clock = clock
        self._backoff = settings.backoff
        self._bind_slots = FairSlots(settings.concurrent_binds)
        self._most_bindings, self._bindings, self._fewer = settings.concurrent_binds, 0, asyncio.Event()
        self._draining, self._drained, self._uncertain = False, asyncio.Event(), set[str]()
        self._write_slots = FairSlots(settings.concurrent_writes)
        self._evict_slots = FairSlots(settings.concurrent_writes)
        self._writing: dict[str, asyncio.Task[None]] = {}
        self._condition_tasks: dict[str, asyncio.Task[None]] = {}
        self._undated: set[str] = set()
        self._nominated: dict[str, str] = {}
        self._statuses: dict[str, GangStatusWrite] = {}
        self._conditions: dict[tuple[str, str], GangCondition] = {}
        self._evictions: dict[str, Eviction] = {}
        self._notices: dict[str, Notice] = {}

    @property
    def binding(self) -> bool:
        """Whether bindings wait or are under way."""
        return self._bindings > 0

    async def bindings_first(self) -> None:
        """Return once no decided binding waits for its turn; soon in any case, since some may hang."""
        self._fewer.clear()
        if self._bindings > self._most_bindings:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._fewer.wait(), _BINDINGS_FIRST_SECONDS)

    async def drain(self) -> None:
        """Return once no binding is under way, soon in any case, and log what is uncertain by then.

        Batches of which a binding was asked for are bound to their end, since a gang is whole or nothing; others come
        back untried.
        """
        self._draining = True
        if not self.binding:
            return
        self._drained.clear()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._drained.wait(), _DRAIN_SECONDS)
        if self.binding:
            pods, untried = sorted(self._uncertain), self._bindings - len(self._uncertain)
            log.warning(
                "stopping before all bindings are answered",
                uncertain=len(pods),
                untried=untried,
                pods=pods[:_NAMED_PODS],
                waited_seconds=_DRAIN_SECONDS,
            )

    def publish(self, turn: Turn, group: asyncio.TaskGroup, enqueue: Callable[[facts.Fact], None]) -> None:
        """Start every write of a turn; returns at once."""
        for batch in turn.batches:
            self._bindings += len(batch.binds)
            group.create_task(self._bind_batch(batch, enqueue))
        for admission in turn.admissions:
            group.create_task(self._admit(admission, enqueue))
        for write in turn.pod_conditions:
            self._queue_condition(write, group, enqueue)
        for status in turn.gang_statuses:
            self._queue_status(status, group)
        for condition in turn.conditions:
            self._conditions[condition.key] = condition
            group.create_task(self._write_condition(condition))
        for notice in turn.notices:
            self._give_notice(notice, group)
        for uid in turn.spared:
            self._evictions.pop(uid, None)
        for eviction in turn.evictions:
            if self._evictions.setdefault(eviction.pod.uid, eviction) is eviction:
                group.create_task(self._evict(eviction))
        for event in turn.gang_events:
            self._announcer.gang(event.gang, event.reason, event.message, warning=event.warning)
        for applied in turn.config_events:
            self._announcer.configuration(applied.config_map, applied.reason, applied.message, warning=applied.warning)
        for gang, message in turn.invalid_gangs:
            self._announcer.gang(gang, "GangInvalid", message, warning=True)
        for pod, message in turn.unserved:
            self._announcer.unserved(pod, message)
        for refusal in turn.refusals:
            if not refusal.counts:
                self._meter.refused(refusal.kind)
            if refusal.pod is not None:
                self._queue_condition(PodConditionWrite(refusal.pod, refusal.message), group, enqueue)

    async def _admit(self, write: WorkloadAdmissionWrite, enqueue: Callable[[facts.Fact], None]) -> None:
        """Its own status is the durable word; where that is not written, or it is not known, it waits again."""
        try:
            async with self._write_slots.taken(("job", write.workload.namespace)):
                await self.led()
                await self._writer.admit(write.workload, write.admission)
        except KubernetesFault as fault:
            log.warning("job not admitted", workload=write.workload.key, error=str(fault))
            subject = WorkloadId.gang(gang_key(write.workload.key))
            enqueue(facts.AdmissionFailed(write.workload.key, subject, str(fault)))

    def _queue_status(self, write: GangStatusWrite, group: asyncio.TaskGroup) -> None:
        """The newest status counts, and the newest times, whichever write holds them."""
        before = self._statuses.get(write.gang.key)
        if before is None:
            group.create_task(self._write_status(write.gang.key))
        elif write.times is None and before.gang == write.gang:
            write = msgspec.structs.replace(write, times=before.times)
        self._statuses[write.gang.key] = write

    async def led(self) -> None:
        """Return once writes may go out; at once where they may."""
        while not self.leading():
            await asyncio.sleep(FENCE_SECONDS)

    def _give_notice(self, notice: Notice, group: asyncio.TaskGroup) -> None:
        """By the node's agent at once, and on the pod, where the newest word of each pod counts."""
        uid = notice.pod.uid
        if self._courier is not None:
            if notice.withdrawn:
                self._courier.withdraw(notice.node, uid)
            else:
                sent = PreemptionNotice(uid, notice.told.deadline_seconds, notice.told.reason)
                self._courier.notify(notice.node, sent)
        if self._shown is not None and notice.shown:
            if uid not in self._notices:
                group.create_task(self._write_notices(uid, self._shown))
            self._notices[uid] = notice

    async def _write_notices(self, uid: str, writer: NoticeWriter) -> None:
        """Until the newest word about a pod stands on it, or its time is over: then its end says all."""
        failures, written = 0, None
        while (notice := self._notices[uid]) is not written:
            if not notice.withdrawn and self._clock() >= notice.told.deadline_seconds:
                break
            try:
                async with self._write_slots.taken(("notice", notice.told.by)):
                    await self.led()
                    if notice.withdrawn:
                        await writer.hide(notice.pod, notice.told)
                    else:
                        await writer.show(notice.pod, notice.told)
                written = notice
            except KubernetesFault as fault:
                failures += 1
                if failures == 1:
                    log.warning("notice not written on the pod yet", pod=notice.pod.key, error=str(fault))
                if _is_refusal(fault) and fault.status not in (409, 429):
                    break
                await asyncio.sleep(delay_seconds(failures, self._backoff))
        del self._notices[uid]

    async def _evict(self, eviction: Eviction) -> None:
        """Again until it is done or the pod is spared: room is kept for the preemptor until then."""
        failures, uid = 0, eviction.pod.uid
        while self._evictions.get(uid) is eviction:
            try:
                async with self._evict_slots.taken(eviction.message):
                    await self.led()
                    required = failures < _CONDITION_ATTEMPTS
                    await self._evictor.evict(
                        eviction.pod, eviction.reason, eviction.message, require_condition=required
                    )
            except KubernetesFault as fault:
                failures += 1
                if failures == 1:
                    log.warning("victim not evicted yet", pod=eviction.pod.key, error=str(fault))
                    self._meter.evicted("failed")
                await asyncio.sleep(delay_seconds(failures, self._backoff))
                continue
            if self._evictions.get(uid) is eviction:
                del self._evictions[uid]
            self._meter.evicted("done")
            self._announcer.preempted(eviction.pod, eviction.note)
            return

    def _queue_condition(
        self, write: PodConditionWrite, group: asyncio.TaskGroup, enqueue: Callable[[facts.Fact], None]
    ) -> None:
        uid = write.pod.uid
        if write.event:
            self._announcer.failed(write.pod, write.message)
        if write.nominated is not None:
            self._nominated[uid] = write.nominated
        if write.first:
            self._undated.add(uid)
        self._condition_tasks[uid] = group.create_task(
            self._write_pod_condition(write, self._condition_tasks.get(uid), enqueue)
        )

    async def _bind_batch(self, batch: BindingBatch, enqueue: Callable[[facts.Fact], None]) -> None:
        course = _Course()
        async with asyncio.TaskGroup() as group:
            for bind in batch.binds:
                bound = group.create_task(self._bind(batch, bind, course, enqueue))
                bound.add_done_callback(self._count_binding)
        enqueue(facts.BatchDone(batch.subject))

    def _count_binding(self, done: asyncio.Task[None]) -> None:
        self._bindings -= 1
        if self._bindings <= self._most_bindings:
            self._fewer.set()
        if not self._bindings:
            self._drained.set()

    def _comes_back(self, batch: BindingBatch, course: _Course) -> bool:
        """Whether a binding that was not asked for yet is given up."""
        given_up = (course.failed and batch.strict) or (self._draining and not course.begun)
        return given_up or not self.leading()

    async def _bind(
        self, batch: BindingBatch, bind: Bind, course: _Course, enqueue: Callable[[facts.Fact], None]
    ) -> None:
        """A condition on its way to the pod is waited for: written after the binding it would be untrue. One that still
        waits for its turn, behind thousands maybe, is dropped.
        """
        uid = bind.pod.uid
        if self._condition_tasks.pop(uid, None) is not None:
            write = self._writing.get(uid)
            if write is not None:
                await asyncio.wait([write])
            self._undated.discard(uid)
            self._nominated.pop(uid, None)
        try:
            async with self._bind_slots.taken(bind.pod.namespace):
                if self._comes_back(batch, course):
                    enqueue(facts.BindingReleased(batch.subject, uid))
                    return
                course.begun, began = True, self._clock()
                self._uncertain.add(bind.pod.key)
                await self._binder.bind(bind.placement)
        except KubernetesFault as fault:
            log.warning("binding failed", pod=bind.pod.key, node=bind.placement.node, error=str(fault))
            if not await self._bound_after_all(bind, fault):
                course.failed = True
                self._meter.bound(self._clock() - began, "failed")
                enqueue(facts.BindingReleased(batch.subject, uid, str(fault), fault.status))
                return
        finally:
            self._uncertain.discard(bind.pod.key)
        self._meter.bound(self._clock() - began, "bound")
        self._meter.waited(self._clock() - bind.created_seconds)
        self._announcer.scheduled(bind.pod, bind.placement.node)

    async def _bound_after_all(self, bind: Bind, fault: KubernetesFault) -> bool:
        """Whether the pod is bound as placed, once that is certain: room given back earlier could be lent twice.

        A write without an answer may be carried out after the pod was read, so the very same is asked for again until
        it is made or refused. Nothing else of this pod's is asked for meanwhile.
        """
        if _is_refusal(fault):
            return False
        for attempt in range(1, _REPEATS + 1):
            if await self._is_bound(bind):
                return True
            await asyncio.sleep(delay_seconds(attempt, self._backoff))
            again = await self._repeated(bind)
            if again is None:
                return True
            if _is_refusal(again):
                break
        return await self._is_bound(bind)

    async def _repeated(self, bind: Bind) -> KubernetesFault | None:
        """What became of one more attempt, None where it was made."""
        try:
            async with self._bind_slots.taken(bind.pod.namespace):
                await self.led()
                await self._binder.bind(bind.placement)
        except KubernetesFault as fault:
            return fault
        return None

    async def _is_bound(self, bind: Bind) -> bool:
        """Asked until there is an answer."""
        attempts = 0
        while True:
            try:
                return await self._binder.bound(bind.placement)
            except KubernetesFault as unknown:
                attempts += 1
                if attempts == 1:
                    log.warning("not known whether the pod is bound", pod=bind.pod.key, error=str(unknown))
                await asyncio.sleep(delay_seconds(attempts, self._backoff))

    async def _write_pod_condition(
        self, write: PodConditionWrite, before: asyncio.Task[None] | None, enqueue: Callable[[facts.Fact], None]
    ) -> None:
        """One pod's conditions go out one after another, and one that a newer overtook is dropped."""
        if before is not None:
            await asyncio.wait([before])
        mine = asyncio.current_task()
        async with self._write_slots.taken(("pod", write.pod.namespace)):
            await self.led()
            if mine is None or self._condition_tasks.get(write.pod.uid) is not mine:
                return
            self._writing[write.pod.uid] = mine
            try:
                first, nominated = write.pod.uid in self._undated, self._nominated.get(write.pod.uid)
                await self._writer.unscheduled(write.pod, write.message, first=first, nominated=nominated)
                self._undated.discard(write.pod.uid)
            except KubernetesFault as fault:
                if fault.status != 404:
                    log.warning("condition not written", pod=write.pod.key, error=str(fault))
                    enqueue(facts.PodConditionFailed(write.pod.uid))
            finally:
                del self._writing[write.pod.uid]
                if self._condition_tasks.get(write.pod.uid) is mine:
                    del self._condition_tasks[write.pod.uid]
                    self._undated.discard(write.pod.uid)
                    self._nominated.pop(write.pod.uid, None)

    async def _write_status(self, key: str) -> None:
        """A PodGroup's newest status, again until it stands; one that a newer overtook is never sent."""
        failures, logged = 0, ""
        while key in self._statuses:
            async with self._write_slots.taken(("gang", key.partition("/")[0])):
                await self.led()
                write = self._statuses[key]
                problem = await self._status_problem(write)
            if problem:
                failures += 1
                if problem != logged:
                    log.warning("PodGroup status not written", gang=key, error=problem)
                logged = problem
                await asyncio.sleep(delay_seconds(failures, self._backoff))
            elif self._statuses[key] == write:
                del self._statuses[key]

    async def _write_condition(self, condition: GangCondition) -> None:
        """Again until it stands or a newer overtakes it: what is told once and for all must not get lost."""
        failures = 0
        while self._conditions.get(condition.key) is condition:
            try:
                async with self._write_slots.taken(("gang", condition.gang.namespace)):
                    await self.led()
                    await self._writer.group_condition(condition.gang, condition.condition)
                break
            except KubernetesFault as fault:
                if fault.status in (404, 409):
                    break
                failures += 1
                if failures == 1:
                    log.warning("PodGroup condition not written", gang=condition.gang.key, error=str(fault))
                await asyncio.sleep(delay_seconds(failures, self._backoff))
        if self._conditions.get(condition.key) is condition:
            del self._conditions[condition.key]

    async def _status_problem(self, write: GangStatusWrite) -> str:
        """Write; empty where that is done, or where the PodGroup is gone or another one has its name now."""
        try:
            if write.times is not None:
                await self._write_times(write.gang, write.times)
            await self._writer.gang_status(write.gang, write.status)
        except KubernetesFault as fault:
            return "" if fault.status in (404, 409) else str(fault)
        return ""

    async def _write_times(self, gang: NamedObject, times: GangTimes) -> None:
        """A refusal, for want of the right or by somebody's webhook, holds up no status: pods tell most of it."""
        try:
            await self._writer.gang_times(gang, times)
        except KubernetesFault as fault:
            if not _is_refusal(fault) or fault.status in (404, 409, 429):
                raise
            log.warning("times not written to the PodGroup", gang=gang.key, error=str(fault))


def _is_refusal(fault: KubernetesFault) -> bool:
    """Whether the API server said no; where it does not answer, or fails, the write may be made all the same."""
    return 400 <= fault.status < 500
