"""Leader election on a coordination.k8s.io Lease.

Rules of client-go's leaderelection: whoever holds the lease renews it; a lease that was not seen to change for its
duration, measured on our own monotonic clock and never by comparing wall clocks, may be taken. A holder that could not
renew in time must stop acting before the others may start.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Annotated

import msgspec
import structlog
from msgspec import Meta

from kube.client import KubeClient, path_of
from kube.objects import Lease
from model.fault import KubernetesFault

log = structlog.get_logger()

LINK_ADDRESS = "sublet.dev/link-address"
"""Annotation of the Lease: HOST:PORT where its holder serves agents."""


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


class Holder(msgspec.Struct, frozen=True):
    """Who holds a lease, by its own word; `address` is empty where it does not say where it serves."""

    identity: str = ""
    address: str = ""


class LeaseElector:
    """`acquire` waits for leadership; `hold` renews and returns once it is lost; `release` hands it on at once.

    `address` is written beside the lease while it is held. `on_holder` hears of each holder, ourselves included.
    """

    def __init__(
        self,
        client: KubeClient,
        settings: LeaseSettings,
        identity: str,
        *,
        address: str = "",
        on_holder: Callable[[Holder], None] = lambda holder: None,
    ) -> None:
        self._client = client
        self._settings = settings
        self._identity = identity
        self._address = address
        self._on_holder = on_holder
        self._path = path_of("coordination.k8s.io/v1/leases", namespace=settings.namespace, name=settings.name)
        self._holder = Holder()
        self._told = False
        self._seen_version = ""
        self._seen_at = 0.0
        self._led_until = 0.0

    @property
    def leading(self) -> bool:
        """Whether writes are ours to make at this moment; any thread may ask, however long the loop was busy."""
        return time.monotonic() < self._led_until

    async def acquire(self) -> None:
        """Return once this process is the leader."""
        while not await self._attempt():
            if self._holder.identity and not self._told:
                self._told = True
                log.info("waiting for the leader to go", lease=self._settings.name, leader=self._holder.identity)
            await asyncio.sleep(self._settings.retry_seconds)
        log.info("became leader", lease=self._settings.name, identity=self._identity)

    async def hold(self) -> None:
        """Renew until a renewal has not succeeded for `renew_deadline_seconds`, or somebody else holds the lease."""
        try:
            while self._holder.identity == self._identity:
                # One slow answer must not carry the leader past its lease.
                async with asyncio.timeout(self._led_until - time.monotonic()):
                    await asyncio.sleep(self._settings.retry_seconds)
                    await self._attempt()
        except TimeoutError:
            pass
        self._led_until = 0.0
        log.error("leadership lost", lease=self._settings.name, identity=self._identity, holder=self._holder.identity)

    async def release(self) -> None:
        """Give the lease up so that a successor need not wait; best effort."""
        self._led_until = 0.0
        try:
            lease = await self._client.get(self._path, Lease)
            if lease.spec.holder_identity == self._identity:
                await self._client.replace(self._path, self._body(lease, holder=""))
        except KubernetesFault as fault:
            log.warning("lease not released", error=str(fault))

    async def _attempt(self) -> bool:
        """Take or renew; a renewal counts from when it was asked for."""
        asked = time.monotonic()
        try:
            # A connection that died without a word leaves time for a second one.
            async with asyncio.timeout(self._settings.renew_deadline_seconds / 3):
                taken = await self._take_or_renew()
        except (KubernetesFault, TimeoutError) as error:
            if not isinstance(error, KubernetesFault) or error.status != 409:
                log.warning("lease not reached", lease=self._settings.name, error=str(error) or "no answer in time")
            return False
        if taken:
            self._led_until = asked + self._settings.renew_deadline_seconds
            self._notice(Holder(self._identity, self._address))
        return taken

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
        if lease.spec.holder_identity in (None, "", self._identity):
            return True
        annotations = lease.metadata.annotations or {}
        self._notice(Holder(lease.spec.holder_identity or "", annotations.get(LINK_ADDRESS, "")))
        if lease.metadata.resource_version != self._seen_version:
            self._seen_version, self._seen_at = lease.metadata.resource_version, time.monotonic()
        duration = lease.spec.lease_duration_seconds or self._settings.duration_seconds
        return time.monotonic() - self._seen_at > duration

    def _notice(self, holder: Holder) -> None:
        if holder != self._holder:
            self._holder = holder
            self._on_holder(holder)

    def _body(self, current: Lease | None, holder: str) -> dict[str, object]:
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        spec = current.spec if current else None
        renewal = spec is not None and spec.holder_identity == holder
        return {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": self._metadata(current, self._address if holder else ""),
            "spec": {
                "holderIdentity": holder,
                "leaseDurationSeconds": int(self._settings.duration_seconds) if holder else 1,
                "acquireTime": (spec.acquire_time if spec and renewal else None) or now,
                "renewTime": now,
                "leaseTransitions": (spec.lease_transitions or 0) + (0 if renewal else 1) if spec else 0,
            },
        }

    def _metadata(self, current: Lease | None, address: str) -> dict[str, object]:
        """A replaced object loses what is not sent again, so labels and annotations of others are."""
        metadata: dict[str, object] = {"name": self._settings.name, "namespace": self._settings.namespace}
        kept: Mapping[str, str] = (current.metadata.annotations if current else None) or {}
        annotations = {key: text for key, text in kept.items() if key != LINK_ADDRESS}
        metadata["annotations"] = annotations | ({LINK_ADDRESS: address} if address else {})
        if current:
            metadata["resourceVersion"] = current.metadata.resource_version
            metadata["labels"] = current.metadata.labels or {}
        return metadata
