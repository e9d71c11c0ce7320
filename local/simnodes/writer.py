"""Sends writes to the API server: few at a time, in order for one key, the newest only, again after a failure."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Protocol

import msgspec
import structlog

from local.simnodes.requests import ApiRequest, QueuedWrite
from model.fault import KubernetesFault

log = structlog.get_logger()

AT_ONCE = 24
_LONGEST_DELAY_SECONDS = 5.0
_NO_ANSWER, _MISSING, _TAKEN, _TOO_MANY, _SERVER = 0, 404, 409, 429, 500


class Client(Protocol):
    """See kube.client.KubeClient."""

    async def request(
        self, method: str, path: str, *, body: bytes | None = None, content_type: str = "application/json"
    ) -> bytes: ...


class Writer:
    """`run` works until it is cancelled; `done` waits until nothing is left to write.

    After a failure it waits for `first_delay_seconds`, then twice as long, and so on.
    """

    def __init__(self, client: Client, first_delay_seconds: float = 0.2) -> None:
        self._client = client
        self._first_delay = first_delay_seconds
        self._waiting: dict[str, QueuedWrite] = {}
        self._busy: set[str] = set()
        self._queue: asyncio.Queue[str] = asyncio.Queue()
        self.refused = 0

    def put(self, writes: Iterable[QueuedWrite]) -> None:
        for write in writes:
            self._waiting[write.key] = write
            if write.key not in self._busy:
                self._busy.add(write.key)
                self._queue.put_nowait(write.key)

    async def done(self) -> None:
        await self._queue.join()

    async def run(self) -> None:
        """Never returns."""
        async with asyncio.TaskGroup() as tasks:
            for _ in range(AT_ONCE):
                tasks.create_task(self._work())

    async def _work(self) -> None:
        delay = self._first_delay
        while True:
            key = await self._queue.get()
            write = self._waiting.pop(key)
            try:
                await self._send(write)
                delay = self._first_delay
            except KubernetesFault as fault:
                if _may_pass(fault):
                    self._waiting.setdefault(key, write)
                    await asyncio.sleep(max(delay, fault.retry_after_seconds))
                    delay = min(delay * 2, _LONGEST_DELAY_SECONDS)
                else:
                    self.refused += 1
                    log.warning("not written", what=key, error=str(fault))
            self._release(key)
            self._queue.task_done()

    def _release(self, key: str) -> None:
        if key in self._waiting:
            self._queue.put_nowait(key)
        else:
            self._busy.discard(key)

    async def _send(self, write: QueuedWrite) -> None:
        for request in write.requests:
            await self._send_one(request)

    async def _send_one(self, request: ApiRequest) -> None:
        try:
            body = msgspec.json.encode(request.body)
            await self._client.request(request.method, request.path, body=body, content_type=request.content_type)
        except KubernetesFault as fault:
            instead = {_MISSING: request.missing, _TAKEN: request.taken}.get(fault.status, ())
            for other in instead:
                await self._send_one(other)
            if not instead and fault.status not in request.settled:
                raise


def _may_pass(fault: KubernetesFault) -> bool:
    return fault.status in (_NO_ANSWER, _TOO_MANY) or fault.status >= _SERVER
