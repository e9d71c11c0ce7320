"""Port listener: tries again for as long as the agent runs a port that somebody else may hold.

Any user of the node may listen above port 1023 while no agent does. That must not keep the node's limits and evictions
from whoever needs them, so a port that is taken is told of, and ends nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import msgspec
import structlog

from agent.report.sources import NodeEvent
from model.fault import CannotListen
from model.reason import Reason, words

log = structlog.get_logger()


class RetryPace(msgspec.Struct, frozen=True):
    """Pauses between attempts: the first, doubled each time up to the longest; seconds."""

    first_seconds: float = 1.0
    longest_seconds: float = 60.0


_PACE = RetryPace()


class PortListener:
    """One server on one port, in use at `address` ("" while it is not).

    `serve` begins to and gives that address, or raises CannotListen; `holder` says who has the port, in words.
    """

    def __init__(
        self,
        name: str,
        serve: Callable[[], Awaitable[str]],
        holder: Callable[[], Awaitable[str]],
        record: NodeEvent,
        pace: RetryPace = _PACE,
    ) -> None:
        self.name = name
        self.address = ""
        self.failures = 0
        self._serve = serve
        self._holder = holder
        self._record = record
        self._pace = pace

    async def attempt(self) -> None:
        """Try once. Raises ConfigurationFault for an address that must not be served."""
        try:
            self.address = await self._serve()
        except CannotListen as fault:
            self.failures += 1
            if self.failures == 1:
                why = f"{fault}{await self._holder()}"
                log.error(words(Reason.NOT_LISTENING), port=self.name, why=why)
                self._tell(Reason.NOT_LISTENING, why, warning=True)
            return
        if self.failures:
            log.info(words(Reason.LISTENING), port=self.name, address=self.address, attempts=self.failures + 1)
            self._tell(Reason.LISTENING, self.address, warning=False)

    async def run(self) -> None:
        """Returns once it listens."""
        pause = self._pace.first_seconds
        while not self.address:
            await asyncio.sleep(pause)
            pause = min(pause * 2, self._pace.longest_seconds)
            await self.attempt()

    def _tell(self, reason: Reason, detail: str, *, warning: bool) -> None:
        self._record(reason.value, f"{words(reason)}: {detail}", warning=warning)
