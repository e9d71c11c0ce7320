"""Statuses of LocalQueues, written by the leader where they differ from how they stand."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Protocol

import structlog

from kube import objects
from kube.client import KubeClient, PatchKind, path_of
from kube.dialects.queues import kueue_statuses
from kube.dialects.queues.statuses import merge, with_active
from kube.reconcile import Reconciler
from model.fault import KubernetesFault
from model.flavor.resource_flavor import SubmissionStanding
from model.queue import QueueStanding
from scheduler.ports import Clock

log = structlog.get_logger()

EVERY_SECONDS = 5.0
_RESOURCE = "kueue.x-k8s.io/v1beta2/localqueues"
_DEFINITION = "localqueues.kueue.x-k8s.io"
_GONE = 404


class LocalQueues(Protocol):
    """The objects as they were read last."""

    def source(self, key: str) -> tuple[objects.Metadata, Any] | None:
        """Metadata and status, by `namespace/name`; None for one that is gone."""
        ...


class SubmissionStatuses:
    """`standings` says how LocalQueues stand, `queues` how the queues that they lead to do."""

    def __init__(
        self,
        client: KubeClient,
        leading: Callable[[], bool],
        standings: Callable[[], tuple[SubmissionStanding, ...]],
        queues: Callable[[], tuple[QueueStanding, ...]],
        known: LocalQueues,
        keeps: Callable[[str], Awaitable[bool]],
        clock: Clock,
    ) -> None:
        self._client = client
        self._leading = leading
        self._standings = standings
        self._queues = queues
        self._known = known
        self._keeps = keeps
        self._clock = clock
        self._wanted: Mapping[str, tuple[SubmissionStanding, QueueStanding | None]] = {}
        self._told = ""
        self._reconciler = Reconciler(self._reconcile, leading, self._failed)

    async def run(self) -> None:
        """Never returns."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._reconciler.run())
            while True:
                if self._leading():
                    self.compare()
                await asyncio.sleep(EVERY_SECONDS)

    def compare(self) -> None:
        """Look at all once; those whose object says something else are written."""
        standings = self._standings()
        queues = {each.queue.name: each for each in self._queues()} if standings else {}
        self._wanted = {
            f"{each.queue.namespace}/{each.queue.name}": (each, queues.get(each.queue.queue)) for each in standings
        }
        for key in self._wanted:
            if self._patch(key) is not None:
                self._reconciler.add(key)

    def _patch(self, key: str) -> tuple[objects.Metadata, dict[str, object]] | None:
        source, wanted = self._known.source(key), self._wanted.get(key)
        if source is None or wanted is None:
            return None
        metadata, told = source
        standing, queue = wanted
        now = datetime.fromtimestamp(self._clock(), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        taken = queue is not None and kueue_statuses.active(queue)[0]
        found = kueue_statuses.local_queue_status(standing, queue.queue.flavor_groups if queue is not None else ())
        if standing.consumed is not None:
            found |= kueue_statuses.consumed_status(told, standing.consumed, self._clock(), now)
        condition = kueue_statuses.local_active(standing, queue.queue if queue is not None else None, taken)
        found["conditions"] = with_active(told, condition, metadata.generation, now)
        changed = merge(told, found)
        return (metadata, {"status": changed}) if changed else None

    async def _reconcile(self, key: str) -> None:
        found = self._patch(key)
        if found is None or not await self._keeps(_DEFINITION):
            return
        metadata, patch = found
        path = path_of(_RESOURCE, namespace=metadata.namespace, name=metadata.name, subresource="status")
        await self._reconciler.led()
        try:
            await self._client.patch(path, patch, PatchKind.MERGE)
        except KubernetesFault as fault:
            if fault.status != _GONE:
                raise

    def _failed(self, key: str, fault: KubernetesFault, seconds: float) -> None:
        if self._told != str(fault.what):
            self._told = str(fault.what)
            log.warning("status of a LocalQueue not written", queue=key, error=str(fault), retry_seconds=seconds)
