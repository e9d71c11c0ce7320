"""`--restore` and `--guard` as a person runs them, on a tree of plain files."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agent.core.limit.brake import BrakePlan
from agent.core.observe.knobs import PERIOD_US, RootKnobs
from agent.core.observe.layout import Layout
from agent.core.observe.observation import Knob
from agent.edge.nodelock import LockRole, NodeLock
from agent.files.controlfiles import ControlFiles
from agent.files.statefile import StateFile
from agent.run.heartbeat_guard import Heartbeat
from model.decision import Term

KNOBS = RootKnobs.of(Layout())
FOUND = {KNOBS.quota: "-1", KNOBS.fixed[1].knob: "1024", KNOBS.cpuset: "0-1"}
OURS = {KNOBS.quota: "50000", KNOBS.fixed[1].knob: "2", KNOBS.cpuset: "0-1"}
PATIENCE_SECONDS = 60


class Node:
    """Control files as an agent found them, and what it keeps beside them."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.state, self.guarded = root / "state/agent.json", root / "state/guard.json"
        self.heartbeat = root / "agent.heartbeat"
        self.files = ControlFiles(root, lambda _knob, _texts: None)
        (root / "cpuacct/kubepods/besteffort").mkdir(parents=True)
        for knob in FOUND:
            self.files.path(knob).parent.mkdir(parents=True, exist_ok=True)
        self.say(FOUND)

    def say(self, texts: dict[Knob, str]) -> None:
        for knob, text in texts.items():
            self.files.path(knob).write_text(f"{text}\n")

    def said(self) -> dict[Knob, str]:
        return {knob: self.files.path(knob).read_text().strip() for knob in FOUND}

    def acted(self, path: Path, originals: dict[Knob, str]) -> None:
        """What an agent, or a guard, that has ended left in its state file."""
        state = StateFile(path)
        state.remember(originals)
        state.close()

    def command(self, *more: str) -> list[str]:
        where = ("--state-file", str(self.state), "--cgroup-root", str(self.root), "--heartbeat", str(self.heartbeat))
        return [sys.executable, "-m", "agent", *where, *more]

    def restore(self) -> tuple[int, str]:
        """Exit code and the last line a person sees."""
        done = subprocess.run(self.command("--restore"), capture_output=True, text=True, timeout=PATIENCE_SECONDS)
        return done.returncode, (done.stdout or done.stderr).strip().splitlines()[-1]


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def eventually(condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline and not condition():
        time.sleep(0.05)
    return condition()


def test_restore(node: Node) -> None:
    """Everything is as before, the counts are told, and a second time there is nothing to do."""
    node.acted(node.state, FOUND)
    node.say(OURS)
    told = "2 control files restored, 1 held the original already, 0 gone with their cgroups"
    assert node.restore() == (0, told) and node.said() == FOUND
    code, line = node.restore()
    assert code == 2 and line.startswith(f"error: {node.state}: no such file (nothing was changed")


def test_restore_after_the_guard(node: Node) -> None:
    """Where both changed a knob the guard found the agent's value, which is no original."""
    node.acted(node.state, {KNOBS.quota: "-1"})
    node.acted(node.guarded, {KNOBS.quota: "50000", KNOBS.cpuset: "0-1"})
    node.say({KNOBS.quota: "40000", KNOBS.cpuset: "0"})
    assert node.restore()[0] == 0 and node.said() == FOUND
    assert not node.state.exists() and not node.guarded.exists()


KILLED = """
import os, runpy, sys
def hook(event, args):
    if event == "os.remove" and str(args[0]).endswith(".json"):
        removed.append(args[0])
        if len(removed) == 2:
            os._exit(9)
removed = []
sys.addaudithook(hook)
runpy.run_module("agent", run_name="__main__", alter_sys=True)
"""
"""`python -m agent` that is killed as it removes the second of two state files."""


def test_restore_that_is_killed_as_it_forgets(node: Node) -> None:
    """Whichever of the two files is left, what it says is no value of ours."""
    node.acted(node.state, {KNOBS.quota: "-1"})
    node.acted(node.guarded, {KNOBS.quota: "50000"})
    node.say({KNOBS.quota: "40000"})
    command = [sys.executable, "-c", KILLED, *node.command("--restore")[3:]]
    assert subprocess.run(command, capture_output=True, timeout=PATIENCE_SECONDS).returncode == 9
    assert node.said() == FOUND and node.state.exists() != node.guarded.exists()
    assert node.restore()[0] == 0 and node.said() == FOUND


@pytest.mark.parametrize("which", ["agent", "guard", "agent with another state file", "guard with another state file"])
def test_restore_refuses_while_somebody_acts(node: Node, which: str) -> None:
    """They would write their limits again at once; nothing is changed and nothing forgotten."""
    node.acted(node.state, FOUND)
    node.say(OURS)
    held: StateFile | NodeLock
    if which.endswith("with another state file"):
        held = NodeLock(node.files.path(KNOBS.quota).parent, LockRole(which.split()[0]))
    else:
        held = StateFile(node.state if which == "agent" else node.guarded)
    code, line = node.restore()
    assert code == 2 and line.startswith("error: ") and line.endswith("(stop it first)")
    assert node.said() == OURS and node.state.exists()
    held.close()
    assert node.restore()[0] == 0 and node.said() == FOUND


@pytest.fixture
def guard(node: Node) -> Iterator[subprocess.Popen[str]]:
    command = node.command("--guard", "--guard-silence", "5", "--guard-share", "10")
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    yield process
    process.kill()
    process.communicate()


def test_guard(node: Node, guard: subprocess.Popen[str]) -> None:
    """No agent beats: a tenth of the CPUs; stopping the guard leaves that, restoring does not."""
    share = (os.cpu_count() or 1) * PERIOD_US // 10
    assert eventually(lambda: node.said()[KNOBS.quota] == str(share))
    code, line = node.restore()
    assert code == 2 and "guard.json: another agent uses this state file" in line
    guard.send_signal(signal.SIGTERM)
    assert guard.wait(PATIENCE_SECONDS) == 0 and node.said()[KNOBS.quota] == str(share)
    assert node.restore()[0] == 0 and node.said() == FOUND


def test_guard_keeps_the_plan(node: Node) -> None:
    """Of an agent that was killed a moment ago, long before the share is due: what online pods use is left to them."""
    node.say({KNOBS.quota: "150000"})
    Heartbeat(node.heartbeat).beat(BrakePlan(KNOBS.quota, (Term("capacity", 140_000),), 140_000, 2000, 150_000, 10_000))
    counters = node.root / "cpuacct/kubepods"
    (counters / "besteffort/cpuacct.usage").write_text("0")

    def cut() -> bool:
        (counters / "cpuacct.usage").write_text(str(time.monotonic_ns()))
        # A file that is no kernel's is empty while it is written.
        said = node.said()[KNOBS.quota]
        return said != "" and int(said) <= 100_000

    process = subprocess.Popen(node.command("--guard", "--guard-silence", "3600"), stderr=subprocess.PIPE, text=True)
    try:
        assert eventually(cut)
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("who", [("--guard",), ("--node-name", "n")], ids=["guard", "agent"])
def test_a_node_where_it_would_not_work_is_refused(node: Node, who: tuple[str, ...]) -> None:
    """One line that names what is wrong, each check in the log, and no control file touched; restoring goes all the
    same."""
    process = node.root / "proc/7"
    process.mkdir(parents=True)
    (process / "comm").write_text("koordlet\n")
    (process / "cgroup").write_text("0::/kubepods\n")
    seen = ("--preflight", "--proc", str(node.root / "proc"))
    done = subprocess.run(node.command(*seen, *who), capture_output=True, text=True, timeout=PATIENCE_SECONDS)
    *lines, last = done.stderr.strip().splitlines()
    assert done.returncode == 2 and last.startswith("error: this node: Sublet would not work here: ")
    assert "controllers: without memory" in last and "koordlet" not in last, "a name alone forbids nothing"
    found = {entry["check"]: entry["verdict"] for entry in map(json.loads, lines) if entry["event"] == "preflight"}
    assert found["controllers"] == "refused" and found["state"] == "ok"
    assert node.said() == FOUND
    node.acted(node.state, FOUND)
    done = subprocess.run(node.command(*seen, "--restore"), capture_output=True, text=True, timeout=PATIENCE_SECONDS)
    assert done.returncode == 0


def test_guard_needs_no_cluster_code() -> None:
    """It is small, and starts where the agent cannot."""
    code = "import sys, agent.run.offline; print(*(m for m in ('grpc', 'kubernetes', 'aiohttp', 'kube') if m in sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "\n"
