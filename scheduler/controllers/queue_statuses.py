"""Statuses of queues' objects, written by the leader where they differ from how the queues stand."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping
from datetime import UTC, datetime
from typing import Protocol

import structlog

from kube.client import KubeClient, PatchKind, path_of
from kube.dialects.queues import statuses
from kube.dialects.queues.dialect import QueueDialect
from kube.dialects.queues.reading import QueueObject
from kube.reconcile import Reconciler
from model.fault import KubernetesFault
from model.queue import QueueStanding
from scheduler.ports import Clock

log = structlog.get_logger()

EVERY_SECONDS = 5.0
"""How often they are compared: shares of hundreds of queues are not free, and nobody decides by a status."""
_GONE = 404
_WHERE = {
    QueueDialect.SUBLET: ("sublet.dev/v1alpha1/queues", "status"),
    QueueDialect.KUEUE: ("kueue.x-k8s.io/v1beta2/clusterqueues", "status"),
    QueueDialect.VOLCANO: ("scheduling.volcano.sh/v1beta1/queues", "status"),
    QueueDialect.ELASTIC_QUOTA: ("scheduling.sigs.k8s.io/v1alpha1/elasticquotas", ""),
}
"""The resource, and the subresource that has the status; ElasticQuota's definition has none."""


class QueueObjects(Protocol):
    """The objects that define queues: the names of these, and the object of a name."""

    @property
    def names(self) -> Collection[str]: ...

    def source(self, name: str) -> QueueObject | None:
        """None for a queue that nobody wrote."""
        ...


class QueueStatuses:
    """`standings` says how queues stand, `queues` has the objects that they come from.

    `keeps` tells of a definition whether the status of its objects is ours to write; that of others is left alone.
    """

    def __init__(
        self,
        client: KubeClient,
        leading: Callable[[], bool],
        standings: Callable[[], tuple[QueueStanding, ...]],
        queues: QueueObjects,
        keeps: Callable[[str], Awaitable[bool]],
        clock: Clock,
    ) -> None:
        self._client = client
        self._leading = leading
        self._standings = standings
        self._queues = queues
        self._keeps = keeps
        self._clock = clock
        self._known: Mapping[str, QueueStanding] = {}
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
        """Look at all queues once; those whose object says something else are written."""
        standings = self._standings() if self._queues.names else ()
        self._known = {standing.queue.name: standing for standing in standings if standing.queue.source}
        for name in self._known:
            if self._patch(name) is not None:
                self._reconciler.add(name)

    def _patch(self, name: str) -> tuple[QueueObject, dict[str, object]] | None:
        source, standing = self._queues.source(name), self._known.get(name)
        if source is None or standing is None:
            return None
        now = datetime.fromtimestamp(self._clock(), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        found = statuses.patch(source, statuses.wanted(source, standing, now))
        return (source, found) if found is not None else None

    async def _reconcile(self, name: str) -> None:
        found = self._patch(name)
        if found is None:
            return
        source, patch = found
        metadata, (resource, subresource) = source.metadata, _WHERE[source.dialect]
        if source.dialect is not QueueDialect.SUBLET and not await self._keeps(_definition(resource)):
            return
        path = path_of(resource, namespace=metadata.namespace, name=metadata.name, subresource=subresource)
        await self._reconciler.led()
        try:
            await self._client.patch(path, patch, PatchKind.MERGE)
        except KubernetesFault as fault:
            if fault.status != _GONE:
                raise

    def _failed(self, name: str, fault: KubernetesFault, seconds: float) -> None:
        """Many queues share one trouble: it is told when it changes."""
        if self._told != str(fault.what):
            self._told = str(fault.what)
            log.warning("status of a queue not written", queue=name, error=str(fault), retry_seconds=seconds)


def _definition(resource: str) -> str:
    """The name of the definition of a resource."""
    group_version, _, plural = resource.rpartition("/")
    return f"{plural}.{group_version.partition('/')[0]}"
