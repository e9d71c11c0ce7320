"""The tick's part in what is offered, for tests that hand results to those who write them."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from agent.core.lend.offer import OfferMemory, admitted_requests, decide_offer
from agent.ports import TickResult
from model.reason import Reason
from model.resources import ResourceVector


class Offering:
    """Decides the offer of one result after the other, as a tick does; `acknowledged` is what was taken of them."""

    def __init__(self) -> None:
        self._memory = OfferMemory()

    def decided(
        self,
        result: TickResult,
        acknowledged: Mapping[str, int] | None = None,
        zones_on_node: Mapping[int, ResourceVector] | None = None,
        reason: Reason | None = None,
    ) -> TickResult:
        facts = msgspec.structs.replace(
            result.facts, acknowledged=dict(acknowledged or {}), zones_on_node=zones_on_node
        )
        admitted = admitted_requests(facts.pods or (), result.observation.measured)
        about = facts.for_offer(result.usage, admitted, result.observation.monotonic_seconds, reason)
        self._memory, offer = decide_offer(self._memory, result.lending, about)
        return msgspec.structs.replace(result, facts=facts, offered=offer)
