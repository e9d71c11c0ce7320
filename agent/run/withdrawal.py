"""Leftover offer: an agent that observes withdraws what one before it still offers on the node.

It may have ended without a last word: it crashed, was killed, or the API server did not take it. Nobody limits or
evicts for that offer any more, and the leading scheduler withdraws it only after degradeTimeMinutes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

import structlog

from agent.ports import TickResult
from kube.objects import Condition
from model.fault import KubernetesFault
from model.reason import Reason
from model.resources import BATCH_CPU, BATCH_MEMORY, MID_CPU, MID_MEMORY

log = structlog.get_logger()

_LENT = (BATCH_CPU, BATCH_MEMORY, MID_CPU, MID_MEMORY)
_REST_SECONDS = 5.0


class OfferWriter(Protocol):
    """Writes to the node's status, by the newest tick."""

    def take(self, result: TickResult) -> None: ...

    async def withdraw(self, reason: Reason) -> None: ...


class LeftoverOffer:
    """A sink of the tick; `run` withdraws. `condition` is the Node's own word of ours, None where there is none.

    Amounts without a word of ours are somebody else's, and so are those that came after our last word.
    """

    def __init__(self, node: OfferWriter, condition: Callable[[], Condition | None]) -> None:
        self._node = node
        self._condition = condition
        self._newest: TickResult | None = None
        self._fresh = asyncio.Event()
        self._at_it = False

    def take(self, result: TickResult) -> None:
        self._newest = result
        self._node.take(result)
        self._fresh.set()

    async def run(self) -> None:
        """Never returns."""
        told = ""
        while True:
            await self._fresh.wait()
            self._fresh.clear()
            if not self._stands():
                continue
            try:
                await self._node.withdraw(Reason.OBSERVING)
            except KubernetesFault as fault:
                if told != str(fault):
                    log.warning("an offer of before was not withdrawn", error=str(fault), retry_seconds=_REST_SECONDS)
                told = str(fault)
                await asyncio.sleep(_REST_SECONDS)

    def _stands(self) -> bool:
        """Begun once, it goes on until nothing stands: running pods hold their amounts until they end."""
        result, told = self._newest, self._condition()
        if result is None or result.facts.node is None or result.facts.pods is None or told is None:
            return False
        offered = any(result.facts.node.allocatable[name] for name in _LENT)
        self._at_it = offered and (self._at_it or told.reason != Reason.OBSERVING.value)
        return self._at_it
