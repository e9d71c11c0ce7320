"""Step 6 of the cycle: bindings, conditions, statuses and Events, all at once; each failure comes back as a fact.

The API has no binding of several pods, so a gang can be bound part-way. Then what is not bound yet is released and
the gang comes back with its bound members counting towards the minimum.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import structlog

from model.fault import KubernetesFault
from scheduler import facts
from scheduler.ports import Announcer, Binder, Clock, Meter, StatusWriter
from scheduler.settings import Settings
from scheduler.turn import Batch, Bind, GangNote, Note, Turn

log = structlog.get_logger()


class Publisher:
    """`tell` takes facts for the next turn; tasks run in `group`."""

    def __init__(
        self,
        binder: Binder,
        writer: StatusWriter,
        announcer: Announcer,
        meter: Meter,
        clock: Clock,
        settings: Settings,
    ) -> None:
        self._binder = binder
        self._writer = writer
        self._announcer = announcer
        self._meter = meter
        self._clock = clock
        self._bind_slots = asyncio.Semaphore(settings.concurrent_binds)
        self._write_slots = asyncio.Semaphore(settings.concurrent_writes)
        self._notes: dict[str, asyncio.Task[None]] = {}
        self._gang_notes: dict[str, asyncio.Task[None]] = {}

    def publish(self, turn: Turn, group: asyncio.TaskGroup, tell: Callable[[facts.Fact], None]) -> None:
        """Start every write of a turn; returns at once."""
        for batch in turn.batches:
            group.create_task(self._bind_batch(batch, tell))
        for note in turn.notes:
            self._announcer.failed(note.pod, note.message)
            before = self._notes.get(note.pod.uid)
            self._notes[note.pod.uid] = group.create_task(self._write_note(note, before, tell))
        for gang_note in turn.gang_notes:
            before = self._gang_notes.get(gang_note.gang.key)
            self._gang_notes[gang_note.gang.key] = group.create_task(self._write_gang(gang_note, before, tell))
        for gang, message in turn.invalid_gangs:
            self._announcer.gang_invalid(gang, message)
        for refusal in turn.refusals:
            self._meter.refused(refusal.kind)
            if refusal.pod is not None:
                self._announcer.failed(refusal.pod, refusal.message)
                note = Note(refusal.pod, refusal.message)
                self._notes[refusal.pod.uid] = group.create_task(self._write_note(note, None, tell))

    async def _bind_batch(self, batch: Batch, tell: Callable[[facts.Fact], None]) -> None:
        failed = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            for bind in batch.binds:
                group.create_task(self._bind(batch, bind, failed, tell))
        tell(facts.BatchDone(batch.subject))

    async def _bind(self, batch: Batch, bind: Bind, failed: asyncio.Event, tell: Callable[[facts.Fact], None]) -> None:
        """A condition still on its way to the pod is waited for: written after the binding it would be untrue."""
        uid = bind.pod.uid
        note = self._notes.pop(uid, None)
        if note is not None:
            await asyncio.wait([note])
        async with self._bind_slots:
            if failed.is_set() and batch.strict:
                tell(facts.BindingReleased(batch.subject, uid))
                return
            began = self._clock()
            try:
                await self._binder.bind(bind.placement)
            except KubernetesFault as fault:
                failed.set()
                self._meter.bound(self._clock() - began, "failed")
                log.warning("binding failed", pod=bind.pod.key, node=bind.placement.node, error=str(fault))
                tell(facts.BindingReleased(batch.subject, uid, str(fault), fault.status))
                return
        self._meter.bound(self._clock() - began, "bound")
        self._meter.waited(self._clock() - bind.created_seconds)
        self._announcer.scheduled(bind.pod, bind.placement.node)

    async def _write_note(
        self, note: Note, before: asyncio.Task[None] | None, tell: Callable[[facts.Fact], None]
    ) -> None:
        """One pod's notes go out one after another, and one that a newer overtook is dropped."""
        if before is not None:
            await asyncio.wait([before])
        mine = asyncio.current_task()
        async with self._write_slots:
            if self._notes.get(note.pod.uid) is not mine:
                return
            try:
                await self._writer.unscheduled(note.pod, note.message, first=note.first)
            except KubernetesFault as fault:
                if fault.status != 404:
                    log.warning("condition not written", pod=note.pod.key, error=str(fault))
                    tell(facts.NoteFailed(note.pod.uid))
            finally:
                if self._notes.get(note.pod.uid) is mine:
                    del self._notes[note.pod.uid]

    async def _write_gang(
        self, note: GangNote, before: asyncio.Task[None] | None, tell: Callable[[facts.Fact], None]
    ) -> None:
        if before is not None:
            await asyncio.wait([before])
        mine = asyncio.current_task()
        async with self._write_slots:
            if self._gang_notes.get(note.gang.key) is not mine:
                return
            try:
                await self._writer.gang_status(note.gang, note.status)
            except KubernetesFault as fault:
                if fault.status != 404:
                    log.warning("PodGroup status not written", gang=note.gang.key, error=str(fault))
                    tell(facts.GangNoteFailed(note.gang.key))
            finally:
                if self._gang_notes.get(note.gang.key) is mine:
                    del self._gang_notes[note.gang.key]
