"""Sinks that only pass on."""

from __future__ import annotations

from typing import Any

from agent.core.limit.watch import Kill, PreparedVictim
from agent.run.sinks import KillSink, LinkSink

KILL = Kill(PreparedVictim("u", "n", "p", "/kubepods/besteffort/podu", 1), 1.0, 1.0, 0, 2)


class Recorder:
    """Remembers what it is told."""

    def __init__(self) -> None:
        self.kills: list[Kill] = []
        self.results: list[Any] = []

    def record_kill(self, kill: Kill) -> None:
        self.kills.append(kill)

    def take(self, result: Any) -> None:
        self.results.append(result)


def test_kills_are_recorded(build: Any) -> None:
    """Each, in order."""
    recorder = Recorder()
    KillSink(recorder).take(build.result(kills=(KILL, KILL)))
    assert recorder.kills == [KILL, KILL]


def test_nothing_waits_for_a_link(build: Any) -> None:
    """What a tick says before there is one is not kept: the newest report follows hello anyway."""
    links: list[Recorder] = []
    sink = LinkSink(lambda: links[0] if links else None)
    sink.take(build.result())
    links.append(Recorder())
    result = build.result()
    sink.take(result)
    assert links[0].results == [result]
