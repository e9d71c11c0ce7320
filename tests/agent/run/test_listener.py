"""A port that somebody else holds: told of once, tried for ever at growing pauses, served once it is free."""

from __future__ import annotations

import asyncio

import pytest
from structlog.testing import capture_logs

from agent.run.listener import PortListener, RetryPace
from model.fault import CannotListen, ConfigurationFault
from model.reason import Reason


class Port:
    """Refused until `free_after` attempts were made."""

    def __init__(self, free_after: int) -> None:
        self.free_after = free_after
        self.attempts = 0
        self.asked = 0
        self.events: list[tuple[str, str, bool]] = []

    async def serve(self) -> str:
        self.attempts += 1
        if self.attempts <= self.free_after:
            raise CannotListen("--http-listen 10.0.0.1:10316", "cannot be listened on: Address already in use")
        return "10.0.0.1:10316"

    async def holder(self) -> str:
        self.asked += 1
        return "; a process of user 1000 listens there"

    def record(self, reason: str, message: str, *, warning: bool) -> None:
        self.events.append((reason, message, warning))

    def listener(self) -> PortListener:
        return PortListener("http", self.serve, self.holder, self.record, RetryPace(0.0, 0.0))


def test_a_port_that_is_taken_is_told_of_once() -> None:
    """By whom, in the log and in an Event, and again when it is served."""
    port = Port(free_after=3)
    listener = port.listener()

    async def story() -> None:
        await listener.attempt()
        assert listener.address == ""
        await listener.run()

    with capture_logs() as logs:
        asyncio.run(story())
    assert (listener.address, listener.failures, port.attempts, port.asked) == ("10.0.0.1:10316", 3, 4, 1)
    assert [(reason, warning) for reason, _, warning in port.events] == [
        (Reason.NOT_LISTENING, True),
        (Reason.LISTENING, False),
    ]
    assert "10.0.0.1:10316: cannot be listened on" in port.events[0][1] and "user 1000" in port.events[0][1]
    assert len(logs) == 2


def test_a_port_that_is_free_is_no_news() -> None:
    port = Port(free_after=0)
    listener = port.listener()

    async def story() -> None:
        await listener.attempt()
        await listener.run()

    asyncio.run(story())
    assert (listener.address, listener.failures, port.attempts, port.events) == ("10.0.0.1:10316", 0, 1, [])


def test_an_address_that_must_not_be_served_ends_it() -> None:
    """Plain text off loopback is a mistake of whoever started the agent."""

    async def refused() -> str:
        raise ConfigurationFault("--http-listen 0.0.0.0:1", "is not 127.0.0.1")

    port = Port(0)
    with pytest.raises(ConfigurationFault):
        asyncio.run(PortListener("http", refused, port.holder, port.record).attempt())
    assert not port.events
