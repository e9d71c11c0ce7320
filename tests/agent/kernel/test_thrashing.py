"""Real refaults on this host: pods at their common limit thrash, a pod within a limit of its own hurts nobody else."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agent.core.evict.thrashing import Activities, remembered, thrashing
from agent.core.observe.files import V1_FILES, Role
from agent.core.observe.layout import Layout
from agent.core.observe.observation import MemoryActivity, Observation
from agent.edge.cgroupfs import CgroupReader
from agent.edge.host import HostReader
from cgroup_fixtures.live import MOUNT, LiveTree
from model.decision import Decision
from model.node import Node
from model.reason import Reason
from model.resources import MEMORY, ResourceVector
from model.strategy import EvictionStrategy

MIB = 1 << 20
LIMIT = 64 * MIB
FILE = 128 * MIB
READ = """
import os, sys
file = os.open(sys.argv[1], os.O_RDONLY)
while True:
    for offset in range(0, os.fstat(file).st_size, 1 << 20):
        os.pread(file, 1 << 20, offset)
"""
"""Over and over, so that what was taken is wanted again."""

pytestmark = [
    pytest.mark.kernel,
    pytest.mark.skipif(
        os.geteuid() != 0 or not os.access(MOUNT / "memory" / "cgroup.event_control", os.W_OK),
        reason="needs root and writable cgroup v1; run as root on a v1 host",
    ),
]


class Pods:
    """An online pod, a best-effort one, and what a tick reads of them."""

    def __init__(self, data: Path) -> None:
        self.tree = LiveTree(f"sublet-test-{secrets.token_hex(4)}")
        self.layout = Layout(f"/{self.tree.top}/kubepods")
        self.online, self.job = f"{self.layout.burstable}/poda", f"{self.layout.best_effort}/podb"
        for cgroup in (self.online, self.job):
            self.tree.make(cgroup)
        self.data = data
        self.reader, self.host = CgroupReader(MOUNT, V1_FILES), HostReader(Path("/proc"))
        self.reader.place(dict.fromkeys((self.layout.root, self.layout.best_effort), Role.ROOT))
        self.activities = Activities()

    def limit(self, cgroup: str) -> None:
        (self.tree.folder(cgroup, "memory") / "memory.limit_in_bytes").write_text(str(LIMIT))

    def look(self) -> Decision | None:
        samples, taken = self.reader.read(), self.host.reclaimed_pages()
        assert taken is not None
        root, best_effort = self.layout.root, self.layout.best_effort
        counted = MemoryActivity(
            taken[0],
            self.reader.refaulted(root),
            self.reader.refaulted(best_effort),
            self.reader.limit_hits(root),
            taken[1],
        )
        seen = Observation(
            at_seconds=time.time(),
            monotonic_seconds=time.monotonic(),
            node_sample=self.host.sample(),
            kubepods=samples[root],
            best_effort=samples[best_effort],
            kubepods_memory_limit_bytes=self.reader.memory_limit(root),
            memory_activity=counted,
        )
        self.activities = remembered(self.activities, seen)
        node = Node("n", ResourceVector({MEMORY: 64 << 30}), ResourceVector())
        return thrashing(self.activities, seen, node, EvictionStrategy())

    def read_back(self, cgroup: str) -> int:
        return self.reader.refaulted(cgroup) or 0

    def close(self) -> None:
        self.reader.close()
        self.host.close()
        self.tree.remove()


@pytest.fixture
def pods(tmp_path: Path) -> Iterator[Pods]:
    data = tmp_path / "data"
    data.write_bytes(os.urandom(MIB) * (FILE // MIB))
    with data.open("rb") as file:
        os.fsync(file.fileno())
        # A page is charged to whoever brings it in: that must not be us.
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    made = Pods(data)
    yield made
    made.close()


def eventually(check: Callable[[], bool], seconds: float = 30.0) -> bool:
    end = time.monotonic() + seconds
    while not check() and time.monotonic() < end:
        time.sleep(0.25)
    return check()


def thrashes(pods: Pods) -> bool:
    found = pods.look()
    return found is not None and found.reason is Reason.THRASHING


def test_online_pods_at_the_common_limit(pods: Pods) -> None:
    """What the limit took from them comes back from the disk."""
    pods.limit(pods.layout.root)
    pods.tree.run(pods.online, READ, str(pods.data))
    assert eventually(lambda: thrashes(pods))
    assert (pods.reader.limit_hits(pods.layout.root) or 0) > 0


def test_best_effort_that_reads_back_is_not_online(pods: Pods) -> None:
    """However much it reads, at the very same limit."""
    pods.limit(pods.layout.root)
    pods.tree.run(pods.job, READ, str(pods.data))
    pods.look()
    assert eventually(lambda: not thrashes(pods) and pods.read_back(pods.layout.best_effort) * 4096 > 4 * LIMIT)
    found = pods.look()
    assert found is not None and found.value < LIMIT // 2


def test_a_pod_within_a_limit_of_its_own(pods: Pods) -> None:
    """It thrashes by itself: neither kubepods nor the node took anything from it."""
    pods.limit(pods.online)
    pods.tree.run(pods.online, READ, str(pods.data))
    pods.look()
    assert eventually(lambda: not thrashes(pods) and pods.read_back(pods.layout.root) * 4096 > 4 * LIMIT)
    assert pods.reader.limit_hits(pods.layout.root) == 0
