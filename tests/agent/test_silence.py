"""The guard lowers what a silent agent left, only lowers, and lets go when the agent is back."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from agent.core.knobs import Knobs
from agent.core.layout import Layout
from agent.edge.executor import KnobExecutor
from agent.silence import Guard, Heartbeat, last_beat
from agent.statefile import StateFile, originals_in

QUOTA = Knobs.of(Layout()).quota
SHARE = 40_000
SILENCE = 60.0


class Node:
    """A quota file, the guard, and an agent that beats where the test says so; one turn is one second."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.file = root / "cpu" / QUOTA.cgroup.lstrip("/") / QUOTA.file
        self.file.parent.mkdir(parents=True)
        self.now, self.beat = 100.0, 0
        self.state: StateFile | None = None
        self.start()

    def start(self) -> None:
        """A guard from now on, after the one before it was killed."""
        if self.state is not None:
            self.state.close()
        self.state = StateFile(self.root / "guard.json")
        limiter = KnobExecutor(self.root, self.state)
        self.guard = Guard(QUOTA, SHARE, SILENCE, limiter, self.state, self.now)

    def say(self, quota: int) -> None:
        self.file.write_text(f"{quota}\n")

    def said(self) -> int:
        return int(self.file.read_text())

    def turn(self, seconds: int, *, beating: bool) -> None:
        for _ in range(seconds):
            self.now += 1
            self.beat += beating
            self.guard.turn(self.beat or None, self.now)


@pytest.fixture
def node(tmp_path: Path) -> Node:
    made = Node(tmp_path)
    made.say(190_000)
    return made


def test_a_beating_agent_is_left_alone(node: Node) -> None:
    """Whatever it holds; nothing is recorded."""
    node.turn(300, beating=True)
    assert node.said() == 190_000 and not (node.root / "guard.json").exists()


def test_silence(node: Node) -> None:
    """After the set time, not before; what was found is on the disk."""
    node.turn(10, beating=True)
    node.turn(59, beating=False)
    assert node.said() == 190_000
    node.turn(1, beating=False)
    assert node.said() == SHARE and originals_in(node.root / "guard.json") == {QUOTA: "190000"}


def test_an_agent_that_observes_is_not_silent(node: Node) -> None:
    """It says so, and is let be for as long as it likes; one that limits and falls silent is not."""
    beat = Heartbeat(node.root / "heartbeat")
    beat.rest()
    for _ in range(300):
        node.now += 1
        node.guard.turn(last_beat(node.root / "heartbeat"), node.now)
    assert node.said() == 190_000
    beat.beat()
    for _ in range(61):
        node.now += 1
        node.guard.turn(last_beat(node.root / "heartbeat"), node.now)
    assert node.said() == SHARE


def test_an_agent_that_never_came(node: Node) -> None:
    """No heartbeat at all counts from the guard's own start."""
    node.say(-1)
    node.turn(60, beating=False)
    assert node.said() == SHARE


@pytest.mark.parametrize("found", [SHARE, 10_000])
def test_it_only_lowers(node: Node, found: int) -> None:
    """What gives less stays, and is never raised again by us."""
    node.say(found)
    node.turn(200, beating=False)
    node.turn(200, beating=True)
    assert node.said() == found


def test_it_keeps_holding(node: Node) -> None:
    """What somebody loosens meanwhile is lowered again each second, what somebody tightens is not."""
    node.turn(60, beating=False)
    node.say(-1)
    node.turn(1, beating=False)
    assert node.said() == SHARE
    node.say(5000)
    node.turn(5, beating=False)
    assert node.said() == 5000


def test_the_agent_is_back(node: Node) -> None:
    """It must beat for as long as it was given; then what was found is put back and forgotten."""
    node.turn(70, beating=False)
    node.turn(59, beating=True)
    assert node.said() == SHARE
    node.turn(1, beating=True)
    assert node.said() == 190_000 and not (node.root / "guard.json").exists()


def test_the_agent_took_over(node: Node) -> None:
    """Its own value is not written over, higher or lower."""
    node.turn(70, beating=False)
    node.say(60_000)
    node.turn(100, beating=True)
    assert node.said() == 60_000 and not (node.root / "guard.json").exists()


def test_the_agent_falls_silent_again(node: Node) -> None:
    """A few beats are no comeback."""
    node.turn(70, beating=False)
    node.turn(50, beating=True)
    node.turn(70, beating=False)
    assert node.said() == SHARE
    node.turn(61, beating=True)
    assert node.said() == 190_000


def test_a_guard_that_starts_anew_goes_on(node: Node) -> None:
    """It knows what was found before, and gives the agent the full time to beat."""
    node.turn(70, beating=False)
    node.start()
    node.turn(59, beating=False)
    assert node.said() == SHARE
    node.turn(61, beating=True)
    assert node.said() == 190_000


def test_a_root_that_is_gone_is_told_once(node: Node) -> None:
    """And best effort is held as soon as it is there again."""
    node.file.unlink()
    with capture_logs() as logs:
        node.turn(70, beating=False)
    assert [entry["log_level"] for entry in logs] == ["error"] and "cannot be held" in logs[0]["event"]
    node.say(-1)
    node.turn(1, beating=False)
    assert node.said() == SHARE


def test_a_clock_that_steps_is_no_silence(tmp_path: Path) -> None:
    """Beats are told from one another, not measured."""
    path = tmp_path / "agent.heartbeat"
    assert last_beat(path) is None
    Heartbeat(path).beat()
    first = last_beat(path)
    os.utime(path, (5, 5))
    assert first != last_beat(path) == 5 * 10**9
    Heartbeat(path).beat()
    assert last_beat(path) not in (None, 5 * 10**9)


def test_a_heartbeat_that_was_taken_away_comes_back(tmp_path: Path) -> None:
    """Somebody cleaned /run."""
    path = tmp_path / "agent.heartbeat"
    heart = Heartbeat(path)
    heart.beat()
    path.unlink()
    heart.beat()
    assert path.exists() and path.stat().st_mode & 0o777 == 0o644


def test_a_heartbeat_that_cannot_be_told(tmp_path: Path) -> None:
    """The agent works on; it is said once."""
    heart: Any = Heartbeat(tmp_path / "none" / "agent.heartbeat")
    with capture_logs() as logs:
        heart.beat()
        heart.beat()
    assert [entry["log_level"] for entry in logs] == ["error"]
