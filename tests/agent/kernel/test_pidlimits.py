"""A real fork bomb on this host's cgroup v1: the kernel stops it at its pod's share, and others go on."""

from __future__ import annotations

import platform
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent.core.limit.number_limits.process_limits import pods_pids, root_pids
from agent.core.limit.plan import plan
from agent.core.limit.release import released
from agent.core.limit.wanted_limit import Limit
from agent.core.observe.files import V1_FILES, Role
from agent.core.observe.observation import Knob, PidCounts, Places, PodPlace
from agent.edge.cgroupfs import CgroupReader
from agent.edge.executor import KnobExecutor
from agent.edge.host import HostReader
from agent.files.statefile import StateFile, originals_in
from model.strategy import SuppressStrategy
from tests.agent.kernel.bomb import BOMB, defused
from tests.agent.kernel.v1_tree import MOUNT, V1Tree, needs_v1

pytestmark = [pytest.mark.kernel, needs_v1]
SAFETY = 1000
"""Around everything this test makes, whatever is wrong with what it tests."""
THERE = PidCounts(node=100, node_most=800, best_effort=0)
"""As if the node had 800: 400 for best effort, 100 for each pod."""
NUMBERS = 400
KEEPERS = """
import os, signal, sys
open("/proc/sys/kernel/pid_max", "w").write(sys.argv[1])

def child(work):
    made = os.fork()
    if made == 0:
        try:
            work()
        except OSError:
            os._exit(1)
        os._exit(0)
    return made

def in_a_session():
    os.setsid()
    os._exit(os.waitpid(child(in_a_group), 0)[1] != 0)

def in_a_group():
    os.setpgid(0, 0)
    child(signal.pause)

kept = 0
try:
    while os.waitpid(child(in_a_session), 0)[1] == 0:
        kept += 1
except OSError:
    pass
print(kept, flush=True)
"""
"""Processes whose session and group have lost their leaders, until there is no number for another one."""
OWN_NUMBERS = tuple(map(int, re.findall(r"\d+", platform.release())[:2])) >= (6, 14)
"""Since then each namespace has a pid_max of its own; before, this would be the machine's."""


@pytest.fixture
def tree() -> Iterator[V1Tree]:
    made = V1Tree()
    (MOUNT / "pids" / made.name / "pids.max").write_text(str(SAFETY))
    for pod in ("podbomb", "podcalm"):
        made.make(pod)
    yield made
    defused(folder(made, "podbomb"))
    made.remove()


def folder(tree: V1Tree, below: str) -> Path:
    return MOUNT / "pids" / tree.cgroup(below).lstrip("/")


class Agent:
    """What a tick does about processes, of a node of 800."""

    def __init__(self, tree: V1Tree, state: Path, build: Any) -> None:
        self.tree, self.build = tree, build
        self.executor = KnobExecutor(MOUNT, StateFile(state / "agent.json"))
        names = ("podbomb", "podcalm")
        self.pods = tuple(build.batch(name) for name in names)
        self.places = Places({f"uid-{name}": PodPlace(tree.cgroup(name)) for name in names})
        self.root = tree.pids()
        self.knobs = (self.root, *map(tree.pids, names))

    def turn(self, strategy: SuppressStrategy) -> dict[Knob, Limit]:
        read = self.executor.readings(self.knobs)
        seen = self.build.seen(places=self.places, knobs=read.readings, pids=THERE)
        limits = pods_pids(self.tree.layout, seen, self.pods, strategy)
        root = root_pids(self.root, read.readings[self.root], seen, strategy)
        limits |= {self.root: root} if root else {}
        left = (released(knob, reading, 0.0) for knob, reading in read.readings.items() if knob not in limits)
        limits |= {limit.knob: limit for limit in left if limit}
        outcomes = self.executor.apply(plan(limits, read.readings), read.brake_cuts)
        assert [outcome.error for outcome in outcomes if outcome.error] == []
        return limits


def eventually(check: Any, seconds: float = 20.0) -> bool:
    end = time.monotonic() + seconds
    while not check() and time.monotonic() < end:
        time.sleep(0.05)
    return bool(check())


def test_a_bomb_stops_at_its_pods_share(tree: V1Tree, tmp_path: Path, build: Any) -> None:
    """It fills its pod's hundred and no more, while a pod beside it starts what it needs."""
    agent = Agent(tree, tmp_path, build)
    tree.say({tree.pids("podcalm"): 70})
    agent.turn(SuppressStrategy())
    assert tree.said(*agent.knobs) == ["400", "100", "70"], "what was tighter before stays"
    tree.run("podbomb", BOMB)
    current = folder(tree, "podbomb") / "pids.current"
    assert eventually(lambda: int(current.read_text()) == 100)
    for _ in range(10):
        assert int(current.read_text()) <= 100
        calm = tree.run("podcalm", "import subprocess; subprocess.run(['true'], check=True)")
        assert calm.wait(20) == 0
    refused = (folder(tree, "podbomb") / "pids.events").read_text().split()
    assert refused[0] == "max" and int(refused[1]) > 0


def test_what_the_reader_counts(tree: V1Tree) -> None:
    """The kernel's own figures, of the roots alone; the machine's are larger."""
    reader, host = CgroupReader(MOUNT, V1_FILES), HostReader(Path("/proc"))
    try:
        reader.place({tree.root: Role.ROOT, tree.cgroup("podcalm"): Role.BEST_EFFORT_POD})
        tree.run("podcalm", "import time; time.sleep(20)")
        reader.read()
        assert reader.pids(tree.root) == (1, None) and reader.pids(tree.cgroup("podcalm")) == (None, None)
        (folder(tree, "") / "pids.max").write_text("77")
        reader.read()
        assert reader.pids(tree.root) == (1, 77)
        there = host.pids()
        assert there is not None and 1 < there[0] < there[1]
    finally:
        reader.close()
        host.close()


def test_what_was_there_comes_back(tree: V1Tree, tmp_path: Path, build: Any) -> None:
    """By the switch, and by restoring; a limit below what runs ends nobody."""
    agent = Agent(tree, tmp_path, build)
    tree.say({tree.pids("podbomb"): 300})
    before = tree.said(*agent.knobs)
    process = tree.run("podbomb", "import time; time.sleep(20)")
    agent.turn(SuppressStrategy(pids_pct=1))
    assert tree.said(*agent.knobs) == ["8", "2", "2"], "a hundredth of 800 for all, a quarter of it for each"
    agent.turn(SuppressStrategy(enable=False))
    agent.executor.idle(20)
    assert tree.said(*agent.knobs) == before
    assert not originals_in(tmp_path / "agent.json"), "what was given back is forgotten"
    agent.turn(SuppressStrategy())
    assert agent.executor.restore().changed == 3 and tree.said(*agent.knobs) == before == ["max", "300", "max"]
    assert process.poll() is None


@pytest.mark.skipif(not OWN_NUMBERS, reason="needs a pid_max of its own; run on Linux 6.14 or newer")
def test_a_process_keeps_three_numbers() -> None:
    """Its own, and those of a session and a group that nobody leads any more; a third as many find one."""
    enter = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc")
    run = (*enter, sys.executable, "-c", KEEPERS, str(NUMBERS))
    found = subprocess.run(run, capture_output=True, text=True, timeout=60, check=False)
    assert NUMBERS // 4 < int(found.stdout) <= NUMBERS // 3, found.stderr
