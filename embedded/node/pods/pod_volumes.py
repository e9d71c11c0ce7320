"""What a pod's volumes are made of, gathered when the pod begins and looked at again while it runs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import msgspec
import structlog

from embedded.fault import KubernetesFault
from embedded.node.objects.pod import PodObject
from embedded.node.objects.sources import Sources, VolumeNotReady, gather, of_volumes
from embedded.node.objects.tokens import PodTokens
from embedded.node.ports import Services
from embedded.node.volumes.volumes import written

log = structlog.get_logger()


class PodVolumes:
    """`record` takes reason and message of an event, and whether it is a warning."""

    def __init__(self, services: Services, record: Callable[[str, str, bool], None]) -> None:
        self._services = services
        self._record = record
        self._tokens = PodTokens(services.api.request_token, services.now)
        self._changed = asyncio.Event()

    async def make(self, pod: PodObject, unless: Callable[[], bool]) -> bool:
        """Everything of the pod but its containers; False where by then it need not be. Raises as the ports do."""
        sources = await self._sources(pod)
        if unless():
            return False
        self._services.runtime.make_pod(pod, sources)
        return True

    def changed(self) -> None:
        """Labels or annotations of the pod: its files are looked at now, as the kubelet syncs a pod that changes."""
        self._changed.set()

    async def keep_fresh(self, pod: Callable[[], PodObject]) -> None:
        """Files follow their ConfigMaps, Secrets, labels and the time of tokens; `pod` is the object as it is then."""
        while written(pod()):
            await self._rest()
            try:
                sources = await self._sources(pod())
                self._services.runtime.write_files(pod(), sources)
            except VolumeNotReady as reason:
                self._record("FailedMount", str(reason), True)
            except KubernetesFault as fault:
                log.warning("volumes not looked after", pod=pod().full_name, error=str(fault))

    async def _rest(self) -> None:
        waits = asyncio.ensure_future(self._services.sleep(self._services.volume_seconds))
        changed = asyncio.create_task(self._changed.wait())
        try:
            await asyncio.wait({waits, changed}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            waits.cancel()
            changed.cancel()
        self._changed.clear()

    async def _sources(self, pod: PodObject) -> Sources:
        """Raises VolumeNotReady, KubernetesFault."""
        tokens = await self._tokens.of(pod)
        read, namespace = self._services.api.read_source, pod.metadata.namespace
        found = await gather(of_volumes(pod), lambda ref: read(namespace, ref))
        return msgspec.structs.replace(found, tokens=tokens)
