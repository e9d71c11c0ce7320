"""The controllers inside the server: what reacts to changes and to time, as kube-controller-manager does."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from typing import Protocol

from embedded.apiserver.admission.admitted_writes import AdmittedWrites
from embedded.apiserver.apimachinery.resource_types import EVENTS
from embedded.apiserver.apimachinery.selectors import EVERYTHING
from embedded.apiserver.apimachinery.status import StatusError
from embedded.apiserver.authorization.role_aggregation import RoleAggregation
from embedded.apiserver.controllers.disruption_budgets import Budgets
from embedded.apiserver.controllers.endpoints import EndpointController
from embedded.apiserver.controllers.garbage_collector import Collector
from embedded.apiserver.controllers.node_lifecycle import NodeLife
from embedded.apiserver.controllers.orphaned_pods import OrphanedPods
from embedded.apiserver.controllers.pod_garbage_collector import PodCollector
from embedded.apiserver.controllers.service_accounts import NamespaceDefaults
from embedded.apiserver.controllers.taint_eviction import TaintEviction
from embedded.apiserver.controllers.volume_binder import VolumeBinder
from embedded.apiserver.jobs.cron_jobs import CronJobController
from embedded.apiserver.jobs.jobs import JobController
from embedded.apiserver.reconciling.event_recorder import EventExpiry, trim_events
from embedded.apiserver.reconciling.pods_by_node import PodsByNode
from embedded.apiserver.reconciling.work_queue import Key, WorkQueue
from embedded.apiserver.registry.resources import Resources
from embedded.apiserver.storage.records import Change, Event
from embedded.apiserver.workloads.daemon_sets import DaemonSetController
from embedded.apiserver.workloads.deployments import DeploymentController
from embedded.apiserver.workloads.replica_sets import ReplicaSetController

_log = logging.getLogger(__name__)
_SWEEP_SECONDS = 20.0
_CHANGES_AT_ONCE = 500  # requests are answered between one portion and the next
_STEPS_AT_ONCE = 20
_RETRY_SECONDS = 1.0
_SHORTEST_PAUSE_SECONDS = 0.05


class CreatingController(Protocol):
    """A controller that creates objects, and so may have to wait for admission by others."""

    waiting: WorkQueue

    def react(self, type_id: str, event: Event) -> None: ...

    async def advance(self, key: Key) -> None: ...


class Controllers:
    """Sees every change from its creation on, and all there is at that moment.

    `settle` reacts until nothing is left to do; `start` does so whenever something changed or becomes due.
    `authority` is the PEM certificate that every namespace is told of; empty when there is none to tell.
    """

    def __init__(self, resources: Resources, writes: AdmittedWrites, authority: str = "") -> None:
        self._resources = resources
        self._changes = resources.store.listen()
        self._backlog = deque(_everything(resources))
        self._pods = PodsByNode()
        self._collector = Collector(resources)
        self._nodes = NodeLife(resources, self._pods)
        self._evictions = TaintEviction(resources, self._nodes, self._pods)
        self._orphans = PodCollector(resources, self._pods)
        self._budgets = Budgets(resources)
        self._volumes = VolumeBinder(resources)
        self._expiry = EventExpiry(resources)
        self._jobs = JobController(resources, writes)
        self._creators: tuple[CreatingController, ...] = (
            self._jobs,
            CronJobController(resources, writes),
            DeploymentController(resources, writes),
            ReplicaSetController(resources, writes),
            DaemonSetController(resources, writes),
            EndpointController(resources),
        )
        self._reactors = self._all_reactors(authority)
        self._tasks: list[asyncio.Task[None]] = []
        self._creators_wake = asyncio.Event()
        self._next_sweep = resources.clock() + _SWEEP_SECONDS
        self._failed: dict[Key, Callable[[], object]] = {}
        self._retries = WorkQueue()

    def _all_reactors(self, authority: str) -> tuple[Callable[[str, Event], None], ...]:
        """Those others ask about come before those who ask."""
        return (
            self._pods.react,
            self._nodes.react,
            self._collector.react,
            *(creator.react for creator in self._creators),
            self._budgets.react,
            self._volumes.react,
            OrphanedPods(self._resources, self._pods).react,
            self._orphans.react,
            self._evictions.react,
            self._expiry.react,
            NamespaceDefaults(self._resources, authority).react,
            RoleAggregation(self._resources).react,
        )

    # -- one turn ------------------------------------------------------------------------------------------

    async def settle(self) -> None:
        """React to all changes so far, and to those the reactions make, until nothing is left to do."""
        while self._round() or await self._create():
            pass

    def _round(self) -> bool:
        """React to some of the changes that wait; whether there is more to do."""
        self._backlog.extend(self._changes.take())
        changes = [self._backlog.popleft() for _ in range(min(len(self._backlog), _CHANGES_AT_ONCE))]
        for type_id, event in changes:
            for react in self._reactors:
                self._guarded(react, type_id, event)
        for key in self._retries.take(self._resources.clock()):
            self._again(key)
        for place in self._collector.take_due():
            self._guarded(self._collector.advance, *place)
        now = self._resources.clock()
        self._advance_nodes()
        self._advance(self._nodes.lost_pods.take(now), self._nodes.advance_pod, self._nodes.lost_pods)
        self._advance(self._evictions.take_due(), self._evictions.advance, self._evictions.waiting)
        self._advance(self._orphans.waiting.take(now), self._orphans.advance, self._orphans.waiting)
        for key in self._budgets.take_due():
            self._guarded(self._budgets.advance, key)
        for key in self._volumes.take_due():
            self._guarded(self._volumes.advance, key)
        if any(type_id == EVENTS.id for type_id, _ in changes):
            self._guarded(trim_events, self._resources)
        return not self._idle

    @property
    def _idle(self) -> bool:
        waiting = (self._nodes.lost_pods, self._evictions.waiting, self._orphans.waiting)
        parts = (self._changes, self._collector, self._nodes, self._budgets, self._volumes, *waiting)
        return not self._backlog and all(part.idle for part in parts)

    def _advance_nodes(self) -> None:
        due = self._nodes.take_due()
        for name in due[:_STEPS_AT_ONCE]:
            self._guarded(self._nodes.advance, name)
        self._nodes.again(due[_STEPS_AT_ONCE:])

    def _advance(self, due: list[Key], step: Callable[[Key], None], waiting: WorkQueue) -> None:
        for key in due[:_STEPS_AT_ONCE]:
            self._guarded(step, key)
        for key in due[_STEPS_AT_ONCE:]:
            waiting.now(key)

    async def _create(self) -> bool:
        """Let the creating controllers work on what is due; whether there was anything."""
        worked = False
        for creator in self._creators:
            for key in creator.waiting.take(self._resources.clock()):
                worked = True
                if not await self._tried(creator.advance(key)):
                    creator.waiting.at(key, self._resources.clock() + _RETRY_SECONDS)
        return worked

    def sweep(self) -> None:
        """What only time makes due."""
        if self._resources.clock() >= self._next_sweep:
            self._next_sweep = self._resources.clock() + _SWEEP_SECONDS
            self._guarded(self._expiry.expire)
            self._guarded(self._orphans.trim)

    def _guarded(self, act: Callable[..., object], *arguments: object) -> None:
        """One object that cannot be handled must not stop the handling of the others; it is tried again later."""
        try:
            act(*arguments)
        except StatusError as error:
            _log.warning("controller: %s", error.message)
            again = error.code >= 500  # any other refusal stands until the object changes, and so comes here again
        except Exception:
            _log.exception("controller failed")
            again = True
        else:
            again = False
        if again or self._failed:
            self._settle_failure((act.__qualname__, " ".join(map(_named, arguments))), again, act, *arguments)

    def _settle_failure(self, key: Key, again: bool, act: Callable[..., object], *arguments: object) -> None:
        if again:
            self._failed[key] = lambda: self._guarded(act, *arguments)
            self._retries.refused(key, self._resources.clock())
        elif self._failed.pop(key, None) is not None:
            self._retries.forget(key)

    def _again(self, key: Key) -> None:
        if (work := self._failed.get(key)) is not None:
            work()

    async def _tried(self, work: Awaitable[None]) -> bool:
        try:
            await work
        except StatusError as error:
            _log.warning("controller: %s", error.message)
        except Exception:
            _log.exception("controller failed")
        else:
            return True
        return False

    # -- for ever ------------------------------------------------------------------------------------------

    def start(self) -> None:
        loop = asyncio.get_running_loop()
        self._tasks = [loop.create_task(self._react_for_ever()), loop.create_task(self._create_for_ever())]

    async def _react_for_ever(self) -> None:
        # A closed queue is always ready: without this test a cancellation that arrives together with the
        # close, which Python 3.11's wait_for swallows, would leave this loop spinning for ever.
        while not self._changes.closed:
            while self._round():
                self._wake_creators()
                await asyncio.sleep(0)
            self._wake_creators()
            self.sweep()
            waiting = (self._evictions.waiting, self._orphans.waiting, self._retries)
            waits = (self._nodes.next_due(), *(part.next_due() for part in waiting))
            await self._changes.ready(self._pause_seconds(waits))

    async def _create_for_ever(self) -> None:
        """Apart from the reactions, because an admission webhook may take its time."""
        while not self._changes.closed:
            await self._create()
            self._creators_wake.clear()
            pause = self._pause_seconds(creator.waiting.next_due() for creator in self._creators)
            if all(creator.waiting.idle for creator in self._creators):
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(pause):
                        await self._creators_wake.wait()

    def _wake_creators(self) -> None:
        if not all(creator.waiting.idle for creator in self._creators):
            self._creators_wake.set()

    def _pause_seconds(self, due: Iterable[float | None]) -> float:
        now = self._resources.clock()
        left = min((moment - now for moment in due if moment is not None), default=_SWEEP_SECONDS)
        return min(max(left, _SHORTEST_PAUSE_SECONDS), _SWEEP_SECONDS)

    async def stop(self) -> None:
        self._changes.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


def _named(argument: object) -> str:
    """What tells one piece of work from another: a change by its revision, which it has alone."""
    return str(argument.record.revision if isinstance(argument, Event) else argument)


def _everything(resources: Resources) -> Iterable[tuple[str, Event]]:
    """What is there already, as if it had just come."""
    for rtype in list(resources.registry.stored()):
        for record in list(resources.store.select(rtype.id, EVERYTHING)):
            yield rtype.id, Event(Change.ADDED, record, None)
