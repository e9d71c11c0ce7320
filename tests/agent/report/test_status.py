"""Probes: alive while ticks go on, ready once measured and the API server was read."""

from __future__ import annotations

from typing import Any

from agent.report.status import AgentStatus


def test_alive_and_ready(build: Any) -> None:
    """Silence of ten seconds is death; a tick without usage or pods is not ready."""
    now = [0.0]
    status = AgentStatus(1.0, lambda: now[0])
    assert status.alive and not status.ready
    for usage, pods, ready in ((None, (), False), (build.usage(), None, False), (build.usage(), (), True)):
        status.take(build.result(usage=usage, facts=build.facts(pods=pods)))
        assert status.ready is ready
    now[0] = 9.9
    assert status.alive and status.ticks == 3
    now[0] = 10.1
    assert not status.alive


def test_a_slow_tick_is_given_five_periods() -> None:
    """With a period of 3 s, death is 15 s of silence."""
    now = [0.0]
    status = AgentStatus(3.0, lambda: now[0])
    now[0] = 14.9
    assert status.alive
    now[0] = 15.0
    assert not status.alive
