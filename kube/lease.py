"""Leader election on a coordination.k8s.io Lease.

Rules of client-go's leaderelection: whoever holds the lease renews it; a lease that was not seen to change for its
duration, measured on our own monotonic clock and never by comparing wall clocks, may be taken. A holder that could not
renew in time must stop acting before the others may start.
"""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime
from typing import Annotated

import msgspec
import structlog
from msgspec import Meta

from kube.client import KubeClient, path_of
from kube.objects import Lease
from model.fault import KubernetesFault

log = structlog.get_logger()


class LeaseSettings(msgspec.Struct, frozen=True):
    """Seconds; the defaults are kube-scheduler's."""

    namespace: Annotated[str, Meta(description="Where the Lease lives.")] = "kube-system"
    name: Annotated[str, Meta(description="Its name.")] = "sublet-scheduler"
    duration_seconds: Annotated[
        float, Meta(gt=0, le=3600, description="Others wait this long after the last renewal.")
    ] = 15.0
    renew_deadline_seconds: Annotated[
        float, Meta(gt=0, le=3600, description="A leader that could not renew for so long stops.")
    ] = 10.0
    retry_seconds: Annotated[float, Meta(gt=0, le=3600, description="Time between two attempts.")] = 2.0


class LeaseElector:
    """`acquire` waits for leadership; `hold` renews and returns once it is lost; `release` hands it on at once."""

    def __init__(self, client: KubeClient, settings: LeaseSettings, identity: str) -> None:
        self._client = client
        self._settings = settings
        self._identity = identity
        self._path = path_of("coordination.k8s.io/v1/leases", namespace=settings.namespace, name=settings.name)
        self._holder = ""
        self._told = False
        self._seen_version = ""
        self._seen_at = 0.0

    async def acquire(self) -> None:
        """Return once this process is the leader."""
        while not await self._attempt():
            if self._holder and not self._told:
                self._told = True
                log.info("waiting for the leader to go", lease=self._settings.name, leader=self._holder)
            await asyncio.sleep(self._settings.retry_seconds)
        log.info("became leader", lease=self._settings.name, identity=self._identity)

    async def hold(self) -> None:
        """Renew until a renewal has not succeeded for `renew_deadline_seconds`, or somebody else holds the lease."""
        renewed = time.monotonic()
        try:
            while True:
                # One slow answer must not carry the leader past its lease; a renewal counts from when it was asked for.
                async with asyncio.timeout(renewed + self._settings.renew_deadline_seconds - time.monotonic()):
                    await asyncio.sleep(self._settings.retry_seconds)
                    asked = time.monotonic()
                    if await self._attempt():
                        renewed = asked
        except TimeoutError:
            pass
        log.error("leadership lost", lease=self._settings.name, identity=self._identity)

    async def release(self) -> None:
        """Give the lease up so that a successor need not wait; best effort."""
        try:
            lease = await self._client.get(self._path, Lease)
            if lease.spec.holder_identity == self._identity:
                await self._client.replace(self._path, self._body(lease, holder=""))
        except KubernetesFault as fault:
            log.warning("lease not released", error=str(fault))

    async def _attempt(self) -> bool:
        try:
            return await self._take_or_renew()
        except KubernetesFault as fault:
            if fault.status != 409:
                log.warning("lease not reached", lease=self._settings.name, error=str(fault))
            return False

    async def _take_or_renew(self) -> bool:
        try:
            lease = await self._client.get(self._path, Lease)
        except KubernetesFault as fault:
            if fault.status != 404:
                raise
            collection = path_of("coordination.k8s.io/v1/leases", namespace=self._settings.namespace)
            await self._client.create(collection, self._body(None, holder=self._identity))
            return True
        if not self._mine_or_expired(lease):
            return False
        await self._client.replace(self._path, self._body(lease, holder=self._identity))
        return True

    def _mine_or_expired(self, lease: Lease) -> bool:
        self._holder = lease.spec.holder_identity or ""
        if lease.spec.holder_identity in (None, "", self._identity):
            return True
        if lease.metadata.resource_version != self._seen_version:
            self._seen_version, self._seen_at = lease.metadata.resource_version, time.monotonic()
        duration = lease.spec.lease_duration_seconds or self._settings.duration_seconds
        return time.monotonic() - self._seen_at > duration

    def _body(self, current: Lease | None, holder: str) -> dict[str, object]:
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        spec = current.spec if current else None
        renewal = spec is not None and spec.holder_identity == holder
        metadata: dict[str, object] = {"name": self._settings.name, "namespace": self._settings.namespace}
        if current:
            metadata["resourceVersion"] = current.metadata.resource_version
        return {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": metadata,
            "spec": {
                "holderIdentity": holder,
                "leaseDurationSeconds": int(self._settings.duration_seconds) if holder else 1,
                "acquireTime": (spec.acquire_time if spec and renewal else None) or now,
                "renewTime": now,
                "leaseTransitions": (spec.lease_transitions or 0) + (0 if renewal else 1) if spec else 0,
            },
        }
