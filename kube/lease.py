"""Leader election on a coordination.k8s.io Lease.

Rules of client-go's leaderelection: whoever holds the lease renews it; a lease that was not seen to change for its
duration, measured on our own monotonic clock and never by comparing wall clocks, may be taken. A holder whose last
confirmed renewal is older than the deadline acts no more, since others may start soon after. Unlike client-go's it
does not end then: nobody has replaced it while the lease names it, and it acts again with the next renewal.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from typing import Annotated, TypeVar

import msgspec
import structlog
from msgspec import Meta

from kube.client import KubeClient, decode, path_of
from kube.objects import Lease
from model.fault import KubernetesFault

log = structlog.get_logger()

T = TypeVar("T")

LINK_ADDRESS = "sublet.dev/link-address"
"""Annotation of the Lease: HOST:PORT where its holder serves agents."""

_TRIES = 3
"""Attempts at a renewal that may be under way at a time: one on a connection that died holds up no other."""


class LeaseSettings(msgspec.Struct, frozen=True):
    """Seconds; the defaults are kube-scheduler's."""

    namespace: Annotated[str, Meta(description="Where the Lease lives.")] = "kube-system"
    name: Annotated[str, Meta(description="Its name.")] = "sublet-scheduler"
    duration_seconds: Annotated[
        float, Meta(gt=0, le=3600, description="Others wait this long after the last renewal.")
    ] = 15.0
    renew_deadline_seconds: Annotated[
        float,
        Meta(
            gt=0,
            le=3600,
            description="How long a renewal may take, and how long one lasts: a leader whose last one is older writes "
            "nothing until the next. Shorter than `duration_seconds`.",
        ),
    ] = 10.0
    retry_seconds: Annotated[float, Meta(gt=0, le=3600, description="Time between two attempts.")] = 2.0

    def __post_init__(self) -> None:
        if self.renew_deadline_seconds >= self.duration_seconds:
            raise ValueError(
                f"renew_deadline_seconds {self.renew_deadline_seconds:g} is not below duration_seconds "
                f"{self.duration_seconds:g}: two could lead at a time"
            )


class Holder(msgspec.Struct, frozen=True):
    """The holder of a lease, by its own word; `address` is empty where it does not say where it serves."""

    identity: str = ""
    address: str = ""


class LeaseElector:
    """`acquire` waits for leadership; `hold` renews and returns once somebody else has it; `release` hands it on.

    `address` is written beside the lease while it is held. `on_holder` hears of each holder, ourselves included.
    `clock` is monotonic seconds.
    """

    def __init__(
        self,
        client: KubeClient,
        settings: LeaseSettings,
        identity: str,
        *,
        address: str = "",
        on_holder: Callable[[Holder], None] = lambda holder: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client = client
        self._settings = settings
        self._identity = identity
        self._address = address
        self._on_holder = on_holder
        self._clock = clock
        self._path = path_of("coordination.k8s.io/v1/leases", namespace=settings.namespace, name=settings.name)
        self._holder = Holder()
        self._known: Lease | None = None
        self._stamp = ""
        self._held = False
        self._told = False
        self._trouble = ""
        self._asked = 0.0
        self._seen_version = ""
        self._seen_at = 0.0
        self._led_until = 0.0

    @property
    def leading(self) -> bool:
        """Whether writes are ours to make at this moment; any thread may ask, however long the loop was busy."""
        return self._clock() < self._led_until

    @property
    def held(self) -> bool:
        """Whether the lease names us as far as we know; others may take it all the same while `leading` is false."""
        return self._held

    async def acquire(self) -> None:
        """Return once this process is the leader."""
        self._held, self._known = False, None
        while not await self._campaign():
            if self._holder.identity and not self._told:
                self._told = True
                log.info("waiting for the leader to go", lease=self._settings.name, leader=self._holder.identity)
            await asyncio.sleep(self._settings.retry_seconds)
        log.info("became leader", lease=self._settings.name, identity=self._identity)

    async def hold(self) -> None:
        """Renew until somebody else holds the lease; `leading` is false while renewals do not come through."""
        led = True
        while self._held:
            # From question to question: what is answered slowly is asked again at once.
            await asyncio.sleep(max(0.0, self._asked + self._settings.retry_seconds - self._clock()))
            await self._attempt()
            if self._held and led != self.leading:
                led = self.leading
                told = "leading again: nobody else took the lease" if led else "not leading until the lease is renewed"
                log.warning(told, lease=self._settings.name, identity=self._identity)
        log.error("leadership lost", lease=self._settings.name, identity=self._identity, holder=self._holder.identity)

    async def release(self) -> None:
        """Give the lease up so that a successor need not wait; best effort."""
        known, self._known, self._held, self._led_until = self._known, None, False, 0.0
        try:
            if known is None or not await self._cleared(known):
                lease = await self._read()
                if lease is not None and self._is_ours(lease):
                    await self._cleared(lease)
        except (KubernetesFault, TimeoutError) as error:
            log.warning("lease not released", error=str(error) or "no answer in time")

    async def _cleared(self, known: Lease) -> bool:
        """False where the lease is another by now."""
        try:
            await self._client.replace(self._path, self._body(known, holder=""))
        except KubernetesFault as fault:
            if fault.status == 409:
                return False
            raise
        return True

    async def _campaign(self) -> bool:
        """One attempt to take the lease, dated by itself."""
        self._stamp = _now()
        return await self._attempt()

    async def _attempt(self) -> bool:
        """Take or renew. The first try that is answered counts; one that is late has others beside it."""
        self._asked = self._clock()
        known, self._known = self._known, None
        tries = [asyncio.create_task(self._try(known))]
        waiting = set(tries)
        try:
            while waiting:
                late = self._settings.renew_deadline_seconds / _TRIES if len(tries) < _TRIES else None
                done, waiting = await asyncio.wait(waiting, timeout=late, return_when=asyncio.FIRST_COMPLETED)
                errors = [error for each in done if (error := each.exception()) is not None]
                if len(errors) < len(done):
                    return next(each.result() for each in done if each.exception() is None)
                if not done:
                    tries.append(asyncio.create_task(self._try(None)))
                    waiting.add(tries[-1])
        finally:
            for each in tries:
                each.cancel()
        self._explain(errors[0])
        return False

    def _explain(self, error: BaseException) -> None:
        """A failure of the API server is told once, another's write in between is an ordinary thing."""
        if not isinstance(error, KubernetesFault | TimeoutError):
            raise error
        trouble, self._trouble = self._trouble, str(error) or "no answer in time"
        if trouble != self._trouble and not (isinstance(error, KubernetesFault) and error.status == 409):
            log.warning("lease not reached", lease=self._settings.name, error=self._trouble)

    async def _try(self, known: Lease | None) -> bool:
        """One write where the version is known; else the lease is read first. False: somebody else holds it."""
        if known is not None:
            try:
                return await self._write(known)
            except KubernetesFault as fault:
                if fault.status not in (404, 409):
                    raise
        lease = await self._read()
        return (lease is None or self._may_write(lease)) and await self._write(lease)

    async def _read(self) -> Lease | None:
        """None where there is none."""
        try:
            return await self._in_time(self._client.get(self._path, Lease))
        except KubernetesFault as fault:
            if fault.status != 404:
                raise
            return None

    async def _write(self, current: Lease | None) -> bool:
        """Ours from here on, only if it is as `current` says still. A renewal counts from when it was asked for."""
        asked, body = self._clock(), self._body(current, holder=self._identity)
        if current is None:
            collection = path_of("coordination.k8s.io/v1/leases", namespace=self._settings.namespace)
            answer = await self._in_time(self._client.create(collection, body))
        else:
            answer = await self._in_time(self._client.replace(self._path, body))
        self._known, self._held, self._trouble = decode(answer, Lease, self._path), True, ""
        self._led_until = max(self._led_until, asked + self._settings.renew_deadline_seconds)
        self._notice(Holder(self._identity, self._address))
        return True

    async def _in_time(self, request: Awaitable[T]) -> T:
        """A request has the whole deadline: what is answered later is of no use."""
        async with asyncio.timeout(self._settings.renew_deadline_seconds):
            return await request

    def _may_write(self, lease: Lease) -> bool:
        """Whether the lease is ours to renew or to take. Once held, another's name or another process's is the end."""
        holder = lease.spec.holder_identity
        if not holder or self._is_ours(lease):
            return True
        annotations = lease.metadata.annotations or {}
        self._notice(Holder(holder, annotations.get(LINK_ADDRESS, "")))
        if self._held:
            self._held, self._led_until = False, 0.0
            return False
        if holder == self._identity:
            return True
        if lease.metadata.resource_version != self._seen_version:
            self._seen_version, self._seen_at = lease.metadata.resource_version, self._clock()
        duration = lease.spec.lease_duration_seconds or self._settings.duration_seconds
        return self._clock() - self._seen_at > duration

    def _is_ours(self, lease: Lease) -> bool:
        """Whether it is this very process that the lease names: whoever takes it dates it again."""
        return (lease.spec.holder_identity, lease.spec.acquire_time) == (self._identity, self._stamp)

    def _notice(self, holder: Holder) -> None:
        if holder != self._holder:
            self._holder = holder
            self._on_holder(holder)

    def _body(self, current: Lease | None, holder: str) -> dict[str, object]:
        spec = current.spec if current else None
        changes = spec is not None and not (holder and current is not None and self._is_ours(current))
        return {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": self._metadata(current, self._address if holder else ""),
            "spec": {
                "holderIdentity": holder,
                # Whole seconds, and never fewer than we count on ourselves.
                "leaseDurationSeconds": math.ceil(self._settings.duration_seconds) if holder else 1,
                "acquireTime": self._stamp,
                "renewTime": _now(),
                "leaseTransitions": ((spec.lease_transitions or 0) if spec else 0) + int(changes),
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


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
