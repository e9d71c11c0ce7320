"""Probes: alive while ticks go on, ready once measured and the API server was read."""

from __future__ import annotations

from typing import Any

from agent.core.limits import Limits
from agent.ports import ClusterFacts, TickResult
from agent.status import AgentStatus
from model.strategy import ColocationStrategy, SuppressStrategy


def test_alive_and_ready(build: Any) -> None:
    """Silence of ten seconds is death; a tick without usage or pods is not ready."""
    now = [0.0]
    status = AgentStatus(1.0, lambda: now[0])
    assert status.alive and not status.ready
    for usage, pods, ready in ((None, (), False), (build.usage(), None, False), (build.usage(), (), True)):
        facts = ClusterFacts(build.node(), pods, ColocationStrategy(), SuppressStrategy())
        status.take(TickResult(build.seen(), facts, usage, (), Limits({}, None), (), (), None, ""))
        assert status.ready is ready
    now[0] = 9.9
    assert status.alive and status.ticks == 3
    now[0] = 10.1
    assert not status.alive
