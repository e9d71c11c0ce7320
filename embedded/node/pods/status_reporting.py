"""A pod's status on its way to the API server: the newest one, once it changed, until the server has it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import structlog

from embedded.fault import KubernetesFault
from embedded.node.objects.pod import PodObject
from embedded.node.ports import ApiPort

log = structlog.get_logger()

_FIRST_DELAY_SECONDS = 0.2
_LONGEST_DELAY_SECONDS = 5.0


class PodReporter:
    """`offer` never waits; `run` sends for ever; `settled` waits until the newest offer has been sent."""

    def __init__(self, api: ApiPort, pod: PodObject) -> None:
        self._api = api
        self._pod = pod
        self._wanted: dict[str, Any] | None = None
        self._sent: dict[str, Any] | None = None
        self._dirty = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()

    def offer(self, status: dict[str, Any]) -> None:
        if status != self._wanted:
            self._wanted = status
            self._idle.clear()
            self._dirty.set()

    def seen(self, ready: str | None) -> None:
        """What the server holds as Ready: a node that was thought dead had it taken away, and is to say it again."""
        if self._sent is not None and self._sent == self._wanted and ready != ready_of(self._sent):
            self._sent = None
            self._idle.clear()
            self._dirty.set()

    async def settled(self) -> None:
        await self._idle.wait()

    async def run(self) -> None:
        while True:
            await self._dirty.wait()
            self._dirty.clear()
            await self._send()

    async def _send(self) -> None:
        delay = _FIRST_DELAY_SECONDS
        while self._wanted is not None and self._wanted != self._sent:
            status = self._wanted
            try:
                await self._api.patch_pod_status(self._pod, status)
            except KubernetesFault as fault:
                if not _worth_repeating(fault):
                    log.warning("pod status refused", pod=self._pod.full_name, error=str(fault))
                    self._sent = status
                    continue
                log.warning("pod status waits", pod=self._pod.full_name, error=str(fault))
                await asyncio.sleep(delay)
                delay = min(delay * 2, _LONGEST_DELAY_SECONDS)
            else:
                self._sent = status
        self._idle.set()


def ready_of(status: dict[str, Any]) -> str | None:
    """The status of condition Ready in a patch of ours."""
    return next((each["status"] for each in status.get("conditions") or () if each["type"] == "Ready"), None)


async def until_gone(attempt: Callable[[], Awaitable[None]], what: str) -> None:
    """Repeat a deletion until the server has done it or has nothing to delete."""
    delay = _FIRST_DELAY_SECONDS
    while True:
        try:
            await attempt()
            return
        except KubernetesFault as fault:
            if fault.status in (404, 409):
                return
            log.warning("pod deletion waits", pod=what, error=str(fault))
        await asyncio.sleep(delay)
        delay = min(delay * 2, _LONGEST_DELAY_SECONDS)


def _worth_repeating(fault: KubernetesFault) -> bool:
    """The server is away or overloaded; any other refusal will be the same next time."""
    return fault.status in (0, 401, 403, 408, 429) or fault.status >= 500
