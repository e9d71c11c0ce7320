"""After `--restore` the tree is byte for byte what it was before the agent, whatever happened in between."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from agent.edge.executor import KnobExecutor
from agent.files.statefile import StateFile
from tests.agent.kernel.life import Life
from tests.agent.kernel.v1_tree import MOUNT, V1Tree, needs_two_cpus, needs_v1

pytestmark = [pytest.mark.kernel, needs_v1, needs_two_cpus]


@pytest.fixture
def tree() -> Iterator[V1Tree]:
    made = V1Tree()
    for container in ("podp/c", "podq/c"):
        made.make(container)
    yield made
    made.remove()


def restored(state: Path) -> str:
    command = [sys.executable, "-m", "agent", "--restore", "--state-file", str(state)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


FOUND = {
    "as kubelet leaves it": {},
    "somebody else's odd values": {
        "cpu.cfs_period_us": "50000",
        "cpu.cfs_quota_us": "70000",
        "cpu.shares": "512",
        "cpuset.cpus": "1",
    },
}


@pytest.mark.parametrize("found", FOUND.values(), ids=FOUND.keys())
def test_byte_for_byte(tree: V1Tree, tmp_path: Path, found: dict[str, str]) -> None:
    """Surges, brake cuts, policies that switch, restarts, other writers, pods that end: nothing of it stays.

    A pod that is born meanwhile never was without the agent; its CPU list becomes what it would have been born with.
    """
    cpus = found.get("cpuset.cpus", "0-1")
    tree.say({tree.cpus(group): cpus for group in ("podp/c", "podq/c", "podp", "podq", "")})
    tree.say({knob: found[knob.file] for knob in reversed(tree.knobs.all) if knob.file in found})
    before = tree.snapshot()
    life = Life(tree, tmp_path / "agent.json")
    life.turn(200_000, "0-1")
    life.turn(120_000, "0")
    life.executor.lower(tree.quota(), 20_000)
    life.turn(60_000, "1")
    life.restart()
    tree.make("podnew/c")
    life.pods["podnew"] = 200
    life.turn(100_000, "0")
    tree.say({tree.quota(): -1, tree.shares(): 1024, tree.memory("podp"): -1})
    life.turn(50_000, "0-1")
    life.turn(90_000, "0")
    tree.rmdir("podq")
    del life.pods["podq"]
    life.turn(150_000, "0")
    life.state.close()
    assert tree.snapshot() != before
    told = restored(tmp_path / "agent.json")
    assert "gone with their cgroups" in told and not (tmp_path / "agent.json").exists()
    after = tree.snapshot()
    gone = {path for path in before if "/podq" in path}
    assert {path: content for path, content in after.items() if "/podnew" not in path} == {
        path: content for path, content in before.items() if path not in gone
    }
    assert tree.said(tree.cpus("podnew"), tree.cpus("podnew/c")) == [cpus, cpus]


def test_an_agent_that_did_nothing_changes_nothing(tree: V1Tree, tmp_path: Path) -> None:
    """Observing leaves no trace in the tree, and nothing to restore."""
    before = tree.snapshot()
    life = Life(tree, tmp_path / "agent.json")
    life.executor = KnobExecutor(MOUNT, life.state, dry=True)
    life.executor.readings(tree.knobs.all)
    life.executor.lower(tree.quota(), 5000)
    assert tree.snapshot() == before and not (tmp_path / "agent.json").exists()


def test_a_container_that_made_itself_idle(tree: V1Tree, tmp_path: Path) -> None:
    """The kernel takes no weight of it then; root in a container may write its own cgroup's files on v1."""
    executor = KnobExecutor(MOUNT, StateFile(tmp_path / "agent.json"))
    shares = tree.shares("podp/c")
    executor.remember(shares)
    tree.say({shares: 77, replace(shares, file="cpu.idle"): 1})
    with pytest.raises(OSError, match="Invalid argument"):
        tree.say({shares: 2})
    executor.restore()
    assert tree.said(shares) == ["1024"]


def test_a_child_that_nobody_knows_of(tree: V1Tree, tmp_path: Path) -> None:
    """Born under a wider list than the original, after the agent's last tick: it does not keep the rest back."""
    tree.say({tree.cpus(group): "1" for group in ("podp/c", "podq/c", "podp", "podq", "")})
    life = Life(tree, tmp_path / "agent.json")
    life.turn(100_000, "0-1")
    tree.make("podnew/c")
    life.state.close()
    restored(tmp_path / "agent.json")
    assert set(tree.said(*map(tree.cpus, ("", "podp", "podp/c", "podnew", "podnew/c")))) == {"1"}
