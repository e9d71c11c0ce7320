"""The label on the leader's own pod, by which the Service of the link finds it."""

from __future__ import annotations

import asyncio

import structlog

from kube.client import KubeClient, PatchKind, path_of
from model.fault import KubernetesFault

log = structlog.get_logger()

LEADER_LABEL = "sublet.dev/leader"
_FIRST_DELAY_SECONDS = 0.5
_LONGEST_DELAY_SECONDS = 10.0
_LAST_SECONDS = 1.0


class LeaderLabel:
    """`pod` is `namespace/name`, empty where this process is not a pod: then there is nothing to label."""

    def __init__(self, client: KubeClient, pod: str) -> None:
        self._client = client
        namespace, _, name = pod.partition("/")
        self._path = path_of("v1/pods", namespace=namespace, name=name) if name else ""

    async def put(self, leading: bool) -> None:
        """Until it stands; a container that restarted may carry the label of its former life."""
        delay = _FIRST_DELAY_SECONDS
        while self._path:
            try:
                await self._write(leading)
                return
            except KubernetesFault as fault:
                log.warning("leader label not written", pod=self._path, error=str(fault), retry_seconds=delay)
            await asyncio.sleep(delay)
            delay = min(delay * 2, _LONGEST_DELAY_SECONDS)

    async def remove(self) -> None:
        """Once, and not for long: the process is about to end, and its pod's readiness with it."""
        if not self._path:
            return
        try:
            await asyncio.wait_for(self._write(False), _LAST_SECONDS)
        except (KubernetesFault, TimeoutError) as error:
            log.warning("leader label not removed", pod=self._path, error=str(error))

    async def _write(self, leading: bool) -> None:
        labels = {LEADER_LABEL: "true" if leading else None}
        await self._client.patch(self._path, {"metadata": {"labels": labels}}, PatchKind.MERGE)
