"""The guard keeps the plan of a silent agent, lowers what it left, only lowers, and lets go when the agent is back."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from agent.core.limit.brake import BrakePlan, BrakeSample
from agent.core.limit.last_plan import LARGEST_BYTES, LastPlan
from agent.core.observe.knobs import RootKnobs
from agent.core.observe.layout import Layout
from agent.core.observe.observation import Knob
from agent.edge.executor import KnobExecutor
from agent.files.statefile import StateFile, originals_in
from agent.run.heartbeat_guard import GuardShare, Heartbeat, HeartbeatGuard, last_beat, last_plan
from model.decision import Term

QUOTA = RootKnobs.of(Layout()).quota
SHARE = 40_000
SILENCE = 60.0


class Node:
    """A quota file, the guard, and an agent that beats where the test says so; one turn is one second."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.file = root / "cpu" / QUOTA.cgroup.lstrip("/") / QUOTA.file
        self.file.parent.mkdir(parents=True)
        self.now, self.beat = 100.0, 0
        self.plan: LastPlan | None = None
        self.readable = True
        self.online_ns = self.best_effort_ns = 0
        self.agents: dict[Knob, str] = {}
        self.lowered_at: list[float] = []
        self.state: StateFile | None = None
        self.start()

    def start(self) -> None:
        """A guard from now on, after the one before it was killed."""
        if self.state is not None:
            self.state.close()
        self.state = StateFile(self.root / "guard.json")
        self.limiter = KnobExecutor(self.root, self.state, lambda: self.now, elsewhere=lambda: self.agents)
        self.guard = HeartbeatGuard(
            GuardShare(QUOTA, SHARE, SILENCE), self.limiter, self.state, self.sample, self.now, self.lower_raised
        )

    def lower_raised(self) -> int:
        self.lowered_at.append(self.now)
        return 0

    def fill_disk(self) -> Path:
        """From here on no state can be saved, until what is returned is removed."""
        obstacle = self.root / "guard.json.new"
        obstacle.mkdir()
        return obstacle

    def settle(self) -> None:
        assert self.limiter.idle(10.0)

    def sample(self) -> BrakeSample | None:
        used = self.online_ns + self.best_effort_ns
        return BrakeSample(self.now, used, self.best_effort_ns) if self.readable else None

    def say(self, quota: int) -> None:
        self.file.write_text(f"{quota}\n")

    def said(self) -> int:
        return int(self.file.read_text())

    def turn(self, seconds: int, *, beating: bool) -> None:
        for _ in range(seconds):
            self.now += 1
            self.beat += beating
            self.guard.turn(self.beat or None, lambda: self.plan, self.now)

    def online(self, seconds: float, millis: int) -> None:
        """Silence, while online pods use so much; best effort uses what it may."""
        end = self.now + seconds
        while self.now < end - 1e-9:
            step = self.guard.pause_seconds
            self.now += step
            self.online_ns += int(millis * 1e6 * step)
            self.best_effort_ns += int(1e8 * step)
            self.guard.turn(self.beat or None, lambda: self.plan, self.now)


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    made = Node(tmp_path)
    made.say(190_000)
    yield made
    if made.state is not None:
        made.state.close()


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


def test_what_the_agent_raised_comes_down(node: Node) -> None:
    """Once in each silence, after the set time."""
    node.turn(10, beating=True)
    node.turn(59, beating=False)
    assert node.lowered_at == []
    node.turn(30, beating=False)
    assert node.lowered_at == [170.0]
    node.turn(5, beating=True)
    node.turn(60, beating=False)
    assert node.lowered_at == [170.0, 264.0]


def test_a_disk_without_room(node: Node) -> None:
    """What the agent wrote before is cut all the same, since its file has the original; it is saved once there is room,
    and the agent that is back finds what it had."""
    node.agents = {QUOTA: "-1"}
    obstacle = node.fill_disk()
    node.turn(10, beating=True)
    node.turn(60, beating=False)
    assert node.said() == SHARE
    node.settle()
    assert not originals_in(node.root / "guard.json")
    obstacle.rmdir()
    node.turn(1, beating=False)
    node.settle()
    assert originals_in(node.root / "guard.json") == {QUOTA: "190000"}
    node.turn(61, beating=True)
    assert node.said() == 190_000


def test_a_disk_without_room_and_a_quota_nobody_wrote(node: Node) -> None:
    """Nobody could put it back: it stays, and the log says so."""
    node.fill_disk()
    node.turn(10, beating=True)
    with capture_logs() as logs:
        node.turn(70, beating=False)
    assert node.said() == 190_000
    assert [entry["event"] for entry in logs] == [f"best effort cannot be held at {SHARE} us: 190000"]


def test_an_agent_that_observes_is_not_silent(node: Node) -> None:
    """It says so, and is let be for as long as it likes; one that limits and falls silent is not."""
    beat = Heartbeat(node.root / "heartbeat")
    beat.rest()
    for _ in range(300):
        node.now += 1
        node.guard.turn(last_beat(node.root / "heartbeat"), lambda: None, node.now)
    assert node.said() == 190_000
    beat.beat()
    for _ in range(61):
        node.now += 1
        node.guard.turn(last_beat(node.root / "heartbeat"), lambda: None, node.now)
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


def test_a_guard_that_starts_again_goes_on(node: Node) -> None:
    """It knows what was found before, and gives the agent the full time to beat."""
    node.turn(70, beating=False)
    node.start()
    node.turn(59, beating=False)
    assert node.said() == SHARE
    node.turn(61, beating=True)
    assert node.said() == 190_000


PLAN = BrakePlan(
    knob=QUOTA,
    base_terms=(Term("capacity", 200_000), Term("margin", -10_000)),
    base_us=190_000,
    floor_us=2000,
    ceiling_us=150_000,
    deadband_us=10_000,
    suffering_us=30_000,
)
"""For online pods that use 400 milli-CPU of two CPUs."""


@pytest.fixture
def left(node: Node) -> Node:
    """An agent left a plan, beat once and is silent from now on."""
    node.say(150_000)
    node.plan = LastPlan(PLAN, 3.0)
    node.turn(1, beating=True)
    return node


def test_a_plan_is_kept(left: Node) -> None:
    """From its silence on, not before, and in steps fit for a surge: what online pods use more is taken away at once."""
    left.online(2, 1900)
    assert left.said() == 150_000 and left.guard.pause_seconds == 1.0
    left.online(2, 1900)
    assert left.said() == 2000 and left.guard.pause_seconds < 0.5


CUTS = {
    "as the ceiling assumed": (400, 150_000),
    "less than it assumed": (0, 150_000),
    "a little more": (450, 150_000),
    "more": (900, 100_000),
    "everything": (2000, 2000),
}


@pytest.mark.parametrize(("millis", "quota"), CUTS.values(), ids=CUTS)
def test_what_online_pods_use(left: Node, millis: int, quota: int) -> None:
    """The ceiling follows it down, and never up."""
    left.online(10, millis)
    assert left.said() == quota
    left.online(10, 0)
    assert left.said() == quota


def test_a_ceiling_that_somebody_loosened_is_kept(left: Node) -> None:
    """The agent would have undone it, too."""
    left.say(-1)
    left.online(5, 400)
    assert left.said() == 150_000


def test_use_that_cannot_be_read(left: Node) -> None:
    """After some tries best effort gets what was prepared for online pods in need."""
    left.readable = False
    left.online(4, 400)
    assert left.said() == 150_000
    left.online(4, 400)
    assert left.said() == 30_000


def test_the_share_comes_after_the_plan(left: Node) -> None:
    """Whichever gives less holds."""
    left.online(70, 400)
    assert left.said() == SHARE
    left.online(2, 1800)
    assert left.said() == 10_000


def test_an_agent_that_is_back_has_its_plan_in_hand(left: Node) -> None:
    """It goes on from what the guard wrote, which is on the disk as the guard's; nothing is raised by the guard."""
    left.online(10, 900)
    assert left.said() == 100_000 and originals_in(left.root / "guard.json") == {QUOTA: "150000"}
    left.turn(59, beating=True)
    assert (left.root / "guard.json").exists()
    left.turn(1, beating=True)
    assert left.said() == 100_000 and not (left.root / "guard.json").exists()


@pytest.mark.parametrize("silence", [10, 70], ids=["its plan was kept", "the share was held"])
def test_an_agent_with_a_plan_raises_by_itself(left: Node, silence: int) -> None:
    """Its own ceiling may happen to be the share, and while it knows too little the share is what it holds."""
    left.online(silence, 900)
    left.say(SHARE)
    left.turn(61, beating=True)
    assert left.said() == SHARE and not (left.root / "guard.json").exists()


def test_no_plan_no_cut(node: Node) -> None:
    """Where there is nothing to defend only the long silence counts."""
    node.turn(1, beating=True)
    node.online(50, 2000)
    assert node.said() == 190_000


def test_a_heartbeat_holds_the_plan(tmp_path: Path) -> None:
    """Of the newest beat; one without takes it away, and so does rest."""
    path = tmp_path / "agent.heartbeat"
    heart = Heartbeat(path, tick_seconds=2.0)
    heart.beat(PLAN)
    assert last_plan(path, Layout()) == LastPlan(PLAN, 6.0)
    first = last_beat(path)
    heart.beat(PLAN)
    assert last_plan(path, Layout()) == LastPlan(PLAN, 6.0) and last_beat(path) != first
    heart.beat(PLAN.lowered_to(5000))
    found = last_plan(path, Layout())
    assert found is not None and found.plan.ceiling_us == 5000
    heart.rest()
    assert last_plan(path, Layout()) is None and last_beat(path) == 0
    heart.beat(PLAN)
    heart.beat(None)
    assert last_plan(path, Layout()) is None
    assert sorted(file.name for file in tmp_path.iterdir()) == ["agent.heartbeat"]


def test_a_plan_that_cannot_be_written(tmp_path: Path) -> None:
    """Beats go on, the plan before stays, and it is said once."""
    path = tmp_path / "agent.heartbeat"
    heart: Any = Heartbeat(path)
    heart.beat(PLAN)
    (tmp_path / "agent.heartbeat.new").mkdir()
    before = last_beat(path)
    with capture_logs() as logs:
        heart.beat(PLAN.lowered_to(5000))
        heart.beat(PLAN.lowered_to(6000))
    assert last_beat(path) != before and last_plan(path, Layout()) == LastPlan(PLAN, 3.0)
    assert [entry["log_level"] for entry in logs] == ["error"]


@pytest.mark.parametrize("content", [b"", b"{", b"x" * (LARGEST_BYTES + 9)])
def test_a_heartbeat_of_another_kind(tmp_path: Path, content: bytes) -> None:
    """An older agent's is empty."""
    path = tmp_path / "agent.heartbeat"
    path.write_bytes(content)
    assert last_plan(path, Layout()) is None and last_plan(tmp_path / "none", Layout()) is None


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
    """With its plan, also where that did not change: somebody cleaned /run."""
    path = tmp_path / "agent.heartbeat"
    heart = Heartbeat(path)
    heart.beat(PLAN)
    path.unlink()
    heart.beat(PLAN)
    assert last_plan(path, Layout()) == LastPlan(PLAN, 3.0) and path.stat().st_mode & 0o777 == 0o644


def test_a_heartbeat_that_cannot_be_told(tmp_path: Path) -> None:
    """The agent works on; it is said once."""
    heart: Any = Heartbeat(tmp_path / "none" / "agent.heartbeat")
    with capture_logs() as logs:
        heart.beat()
        heart.beat()
    assert [entry["log_level"] for entry in logs] == ["error"]
