"""One task inside the server that reacts to changes: garbage collection, jobs, stranded pods, budgets, events."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable

from local.apiserver import disruption
from local.apiserver.gc import Collector
from local.apiserver.jobs import JobController
from local.apiserver.recorder import expire_events, trim_events
from local.apiserver.registry import DISRUPTION_BUDGETS, EVENTS, PODS
from local.apiserver.resources import Resources
from local.apiserver.status import StatusError
from local.apiserver.store import Event
from local.apiserver.stranded import end_stranded, warn_of_absent_scheduler

_log = logging.getLogger(__name__)
_SWEEP_SECONDS = 60.0


class Controllers:
    """Sees every change from its creation on. `settle` is synchronous; `start` runs it whenever something changed."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        self._changes = resources.store.listen()
        self._collector = Collector(resources)
        self._jobs = JobController(resources)
        self._task: asyncio.Task[None] | None = None
        self._next_sweep = resources.clock() + _SWEEP_SECONDS

    def settle(self) -> None:
        """React to all changes so far, and to those the reactions make, until nothing is left to do."""
        while self._round():
            pass

    def _round(self) -> bool:
        """React to the changes that wait; whether there is more to do."""
        changes = self._changes.take()
        for type_id, event in changes:
            self._guarded(self._collector.react, type_id, event)
            self._guarded(self._jobs.react, type_id, event)
            self._guarded(end_stranded, self._resources, type_id, event)
            self._guarded(warn_of_absent_scheduler, self._resources, type_id, event)
        for place in self._collector.take_due():
            self._guarded(self._collector.advance, *place)
        self._guarded(self._jobs.work)
        for namespace in _namespaces_of(changes):
            self._guarded(disruption.refresh, self._resources, namespace)
        if any(type_id == EVENTS.id for type_id, _ in changes):
            self._guarded(trim_events, self._resources)
        return not (self._changes.idle and self._collector.idle)

    def sweep(self) -> None:
        """What only time makes due."""
        if self._resources.clock() >= self._next_sweep:
            self._next_sweep = self._resources.clock() + _SWEEP_SECONDS
            self._guarded(expire_events, self._resources)

    def _guarded(self, act: Callable[..., object], *arguments: object) -> None:
        """One object that cannot be handled must not stop the handling of the others."""
        try:
            act(*arguments)
        except StatusError as error:
            _log.warning("controller: %s", error.message)
        except Exception:
            _log.exception("controller failed")

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def _run(self) -> None:
        # A closed queue is always ready: without this test a cancellation that arrives together with the
        # close, which Python 3.11's wait_for swallows, would leave this loop spinning for ever.
        while not self._changes.closed:
            while self._round():
                await asyncio.sleep(0)
            self.sweep()
            await self._changes.ready(self._pause_seconds())

    def _pause_seconds(self) -> float:
        due = self._jobs.next_due()
        left = _SWEEP_SECONDS if due is None else due - self._resources.clock()
        return min(max(left, 0.05), _SWEEP_SECONDS)

    async def stop(self) -> None:
        self._changes.close()
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task


def _namespaces_of(changes: list[tuple[str, Event]]) -> list[str]:
    watched = (PODS.id, DISRUPTION_BUDGETS.id)
    return sorted({event.record.namespace for type_id, event in changes if type_id in watched})
