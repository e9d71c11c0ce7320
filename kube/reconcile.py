"""The reconcile loop that controllers share: keys that may differ, workers, and a back-off for those that fail."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from model.fault import KubernetesFault

_FIRST_RETRY_SECONDS, _LONGEST_RETRY_SECONDS = 5.0, 60.0
_FENCE_SECONDS = 1.0
"""Rest between two looks at a lease that is not renewed in time: what differs is written once it is."""


class Reconciler:
    """`work` makes what belongs to a key as it should be, whatever it is now, and raises KubernetesFault.

    One worker at a time has a key; one that is added meanwhile is looked at again. `failed` hears of each fault, and
    after how many seconds the key is looked at again: once, however often it was added and failed before.
    """

    def __init__(
        self,
        work: Callable[[str], Awaitable[None]],
        leading: Callable[[], bool],
        failed: Callable[[str, KubernetesFault, float], None] = lambda key, fault, seconds: None,
        *,
        workers: int = 4,
    ) -> None:
        self._work = work
        self._leading = leading
        self._failed = failed
        self._workers = workers
        self._due: dict[str, None] = {}
        self._busy: set[str] = set()
        self._failures: dict[str, int] = {}
        self._retries: dict[str, asyncio.TimerHandle] = {}
        self._wake = asyncio.Event()

    def add(self, key: str) -> None:
        """What belongs to the key may not be as it should be."""
        self._due[key] = None
        self._wake.set()

    async def led(self) -> None:
        """Returns once this process leads; to be asked before each write."""
        while not self._leading():
            await asyncio.sleep(_FENCE_SECONDS)

    async def run(self) -> None:
        """Never returns."""
        async with asyncio.TaskGroup() as group:
            for _ in range(self._workers):
                group.create_task(self._serve())

    async def _serve(self) -> None:
        while True:
            key = next((key for key in self._due if key not in self._busy), None)
            if key is None:
                self._wake.clear()
                await self._wake.wait()
                continue
            del self._due[key]
            self._busy.add(key)
            try:
                await self.led()
                await self._work(key)
                self._failures.pop(key, None)
                self._rest_no_more(key)
            except KubernetesFault as fault:
                self._later(key, fault)
            finally:
                self._busy.discard(key)
                if key in self._due:
                    self._wake.set()

    def _later(self, key: str, fault: KubernetesFault) -> None:
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        seconds = retry_seconds(fault, failures)
        self._rest_no_more(key)
        self._retries[key] = asyncio.get_running_loop().call_later(seconds, self._retry, key)
        self._failed(key, fault, seconds)

    def _retry(self, key: str) -> None:
        del self._retries[key]
        self.add(key)

    def _rest_no_more(self, key: str) -> None:
        """Whoever may change an object has its key fail as often as he likes: each retry would bring on another."""
        retry = self._retries.pop(key, None)
        if retry is not None:
            retry.cancel()


def retry_seconds(fault: KubernetesFault, failures: int) -> float:
    """How long a key rests after so many failures, 1 or more; a refusal does not end by asking more often."""
    if 400 <= fault.status < 500:
        return _LONGEST_RETRY_SECONDS
    return min(_FIRST_RETRY_SECONDS * 2.0 ** min(failures - 1, 10), _LONGEST_RETRY_SECONDS)
