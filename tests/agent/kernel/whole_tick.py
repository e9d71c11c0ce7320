"""The agent's tick on real cgroups of this host's v1: an idle node of two CPUs whose files and disk a test may spoil.

As a program it does so in a mount namespace of its own: `unshare --mount python -m tests.agent.kernel.whole_tick CASE
TREE FOLDER`, where CASE is one of CASES. What it mounts is gone with it.
"""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from agent.core.observe.files import FILES
from agent.core.observe.knobs import RootKnobs
from agent.core.observe.layout import Layout
from agent.edge.cgroupfs import CgroupReader
from agent.edge.discovery import Discovery
from agent.edge.executor import KnobExecutor
from agent.edge.host import HostReader
from agent.files.statefile import StateFile
from agent.observer import NodeObserver, ObserverSources
from agent.ports import ClusterFacts, TickPorts, TickResult
from agent.settings import AgentSettings
from agent.tick import Tick
from cgroup_fixtures.scenarios import FOLDER
from model.node import Node
from model.resources import BATCH_MEMORY, CPU, MEMORY, ResourceVector
from tests.agent.kernel.v1_tree import MOUNT
from tests.agent.playing import FakeBrake, FakeCluster, FakeEvictor, FakeReclaimer

SIZE = ResourceVector({CPU: 2000, MEMORY: 8 << 30})
WARM_TICKS = 12


class WholeNode:
    """`turn` lets a second pass and ticks once; pods it has none. With `services` (their file of CPU pressure) the
    host is this one: /proc and the clock are as real as the load."""

    def __init__(self, layout: Layout, folder: Path, state: Path, services: Path | None = None) -> None:
        self.knobs = RootKnobs.of(layout)
        self._real = services is not None
        self._now = 0.0
        proc = Path("/proc")
        if not self._real:
            proc = folder / "proc"
            shutil.copytree(FOLDER / "v1_surge/00/proc", proc, dirs_exist_ok=True)
        self.executor = KnobExecutor(MOUNT, StateFile(state / "agent.json"), lambda: self._now)
        host = HostReader(proc, services=services)
        sources = ObserverSources(Discovery(MOUNT, layout, None), CgroupReader(MOUNT, FILES[1]), host)
        observer = NodeObserver(layout, sources, lambda: (1000.0 + self._now, self._now))
        cluster = FakeCluster(ClusterFacts(Node("n", SIZE, SIZE), ()))
        ports = TickPorts(cluster, observer, self.executor, FakeBrake(), FakeEvictor(), FakeReclaimer())
        self._tick = Tick(layout, AgentSettings(), ports, ())

    def turn(self) -> TickResult:
        if self._real:
            time.sleep(1)
        self._now = time.monotonic() if self._real else self._now + 1
        result = self._tick.run()
        assert self.executor.idle(20)
        return result

    def turns(self, count: int = WARM_TICKS) -> list[TickResult]:
        return [self.turn() for _ in range(count)]

    @property
    def quota(self) -> str:
        return self.executor.path(self.knobs.quota).read_text().strip()


def reasons(result: TickResult) -> set[str]:
    return {limit.reason.value for limit in result.unenforced}


def lends(result: TickResult) -> bool:
    """An idle node without batch pods lends all but its margin, one whose limits are not in force nothing."""
    amounts = {decision.name: decision.value for decision in result.lending.final}
    assert any(amounts.values()) == (amounts[BATCH_MEMORY] > 0)
    return amounts[BATCH_MEMORY] > 0


def full_at_first_start(layout: Layout, folder: Path) -> None:
    """Neither a ceiling nor anything lent, until there is room."""
    with small_disk(folder) as disk:
        filler = fill(disk)
        node = WholeNode(layout, folder, disk)
        results = node.turns()
        assert node.quota == "-1" and not any(lends(result) for result in results)
        assert all("StateNotSaved" in reasons(result) for result in results[2:])
        filler.unlink()
        recovers(node)


def full_later(layout: Layout, folder: Path) -> None:
    """Ceilings go on; nothing is lent before anything needs the disk."""
    with small_disk(folder) as disk:
        node = WholeNode(layout, folder, disk)
        assert lends(node.turns()[-1])
        filler = fill(disk)
        node.executor.path(node.knobs.quota).write_text("-1")
        results = node.turns(65)
        assert int(node.quota) > 0
        assert not lends(results[-1]) and reasons(results[-1]) == {"StateNotSaved"}
        assert "No space left on device" in results[-1].ready[2]
        filler.unlink()
        recovers(node)


def state_turned_read_only(layout: Layout, folder: Path) -> None:
    """As after an error of the disk."""
    node = WholeNode(layout, folder, folder / "state")
    assert lends(node.turns()[-1])
    with read_only(folder / "state"):
        results = node.turns(65)
        assert not lends(results[-1]) and "Read-only file system" in results[-1].ready[2]
    recovers(node)


def quota_read_only(layout: Layout, folder: Path) -> None:
    """Whatever stands there cannot follow the load."""
    node = WholeNode(layout, folder, folder / "state")
    with read_only(node.executor.path(node.knobs.quota)):
        results = node.turns()
        assert node.quota == "-1" and not any(lends(result) for result in results)
        assert reasons(results[-1]) == {"LimitNotWritten"}
        assert results[-1].ready[0] == "False"
        assert results[-1].ready[2].endswith("cpu.cfs_quota_us: Read-only file system")
    recovers(node)


def quota_read_only_later(layout: Layout, folder: Path) -> None:
    """A ceiling that was written once and lost its file since."""
    node = WholeNode(layout, folder, folder / "state")
    assert lends(node.turns()[-1])
    quota = node.executor.path(node.knobs.quota)
    quota.write_text("-1")
    with read_only(quota):
        assert not any(lends(result) for result in node.turns())
    recovers(node)


def weight_read_only(layout: Layout, folder: Path) -> None:
    """With the weight of anybody else best effort runs as they do."""
    node = WholeNode(layout, folder, folder / "state")
    weight = node.executor.path(node.knobs.fixed[1].knob)
    weight.write_text("1024")
    with read_only(weight):
        results = node.turns()
        assert not any(lends(result) for result in results) and reasons(results[-1]) == {"LimitNotWritten"}
        assert int(node.quota) > 0
    recovers(node)


CASES: dict[str, Callable[[Layout, Path], None]] = {
    case.__name__: case
    for case in (
        full_at_first_start,
        full_later,
        state_turned_read_only,
        quota_read_only,
        quota_read_only_later,
        weight_read_only,
    )
}


def recovers(node: WholeNode) -> None:
    """Within a minute: one loss may have come to two."""
    last = node.turns(65)[-1]
    assert last.unenforced == () and lends(last) and last.ready[0] == "True"
    assert int(node.quota) > 0


def mount(*words: str | Path) -> None:
    subprocess.run(["mount", *words], check=True, timeout=60)


@contextlib.contextmanager
def small_disk(folder: Path) -> Iterator[Path]:
    disk = folder / "state"
    disk.mkdir()
    mount("-t", "tmpfs", "-o", "size=64k,mode=700", "none", disk)
    try:
        yield disk
    finally:
        subprocess.run(["umount", "-l", disk], check=True, timeout=60)


@contextlib.contextmanager
def read_only(place: Path) -> Iterator[None]:
    """A file, or a folder with all in it."""
    mount("--bind", place, place)
    try:
        mount("-o", "remount,bind,ro", place)
        yield
    finally:
        # The agent reads limits of the roots through descriptors that stay open.
        subprocess.run(["umount", "-l", place], check=True, timeout=60)


def fill(disk: Path) -> Path:
    """To the last page."""
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(b"x" * 4096)
    return filler


if __name__ == "__main__":
    CASES[sys.argv[1]](Layout(sys.argv[2]), Path(sys.argv[3]))
