"""A node of two pods on the guest's own cgroups, and the agent's parts over them: all real but the API server."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from agent.core.observe.files import FILES
from agent.core.observe.knobs import RootKnobs
from agent.core.observe.layout import CgroupDriver
from agent.core.observe.observation import CgroupSample, KnobReading, Missing, Observation
from agent.core.observe.usage import NodeUsage, UsageState, measure, windows_of
from agent.edge.brake import BrakeThread
from agent.edge.cgroupfs import CgroupReader
from agent.edge.discovery import Discovery, find_layout
from agent.edge.executor import KnobExecutor
from agent.edge.host import HostReader
from agent.edge.reclaimer import MemoryReclaimer
from agent.files.statefile import StateFile
from agent.observer import NodeObserver, ObserverSources
from agent.ports import ClusterFacts, KnobReadings, TickPorts, TickResult
from agent.settings import AgentSettings
from agent.tick import Tick
from cgroup_fixtures.live import MOUNT, LiveTree
from cgroup_fixtures.names import Place, container_path, pod_path, qos_path
from model.pod.pod import Pod
from model.qos import KubernetesQoS
from tests.agent.conftest import Build
from tests.agent.playing import FakeCluster, FakeEvictor
from tests.pods import with_fields

MIB = 1 << 20
SPIN = "while True: pass"
SLEEP = "import time; time.sleep(600)"
HOLD = f"held = bytearray(b'x' * {32 * MIB})\n{SLEEP}"
_BOUND_SECONDS = 40.0
_PAUSE_SECONDS = 0.1
"""Looking more often would itself be much of what an emulated node uses."""


def eventually(condition: Callable[[], bool]) -> bool:
    """Whether it came true at all; how long that takes in an emulated machine says nothing."""
    deadline = time.monotonic() + _BOUND_SECONDS
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(_PAUSE_SECONDS)
    return condition()


def read(found: CgroupSample | Missing) -> CgroupSample:
    assert isinstance(found, CgroupSample), found
    return found


class LivePod:
    """A listed pod and where its cgroups belong; they need not exist."""

    def __init__(self, place: Place, pod: Pod) -> None:
        self.uid = pod.uid
        self.path = pod_path(place, pod.status.kubernetes_qos, pod.cgroup_uid)
        self.listed = with_fields(pod, container_ids={"app": secrets.token_hex(32)})
        self.container = container_path(place, self.path, self.listed.status.container_ids["app"])


class LiveNode:
    """`web` is Burstable, `job` best effort. Nothing is measured or written before a test asks for it."""

    def __init__(self, state: Path, root: str = "/kubepods") -> None:
        driver = CgroupDriver.SYSTEMD if root.endswith(".slice") else CgroupDriver.CGROUPFS
        self.place = Place(root, driver, "containerd")
        self.tree = LiveTree(root.split("/")[1])
        build = Build()
        self.web = LivePod(self.place, build.pod("web", cpu=400))
        self.job = LivePod(self.place, build.batch("job", batch_cpu=500))
        self.best_effort = qos_path(self.place, KubernetesQoS.BEST_EFFORT)
        for pod in (self.web, self.job):
            self.tree.make(pod.container)
        self.layout = find_layout(MOUNT)
        self.knobs = RootKnobs.of(self.layout)
        self.cgroups = CgroupReader(MOUNT, FILES[self.layout.version], slow_passes=1)
        self.discovery = Discovery.watching(MOUNT, self.layout)
        self.host = HostReader(Path("/proc"))
        senses = ObserverSources(self.discovery, self.cgroups, self.host)
        self.observer = NodeObserver(self.layout, senses, lambda: (time.time(), time.monotonic()))
        self.settings = AgentSettings()
        self.facts = ClusterFacts(build.node(), (self.web.listed, self.job.listed))
        self.originals = StateFile(state / "agent.json")
        self.executor = KnobExecutor(MOUNT, self.originals)
        self.woken = threading.Event()
        self.brake = BrakeThread(MOUNT, self.layout, 0.1, self.executor.lower, self.woken.set)
        self.evictor = FakeEvictor()
        self.cluster = FakeCluster(self.facts)
        self.reclaimer = MemoryReclaimer(MOUNT, self.layout)
        ports = TickPorts(self.cluster, self.observer, self.executor, self.brake, self.evictor, self.reclaimer)
        self.tick = Tick(self.layout, self.settings, ports, ())
        self._used = UsageState()

    def observe(self) -> Observation:
        self.observer.places(self.facts)
        return self.observer.observe(self.facts, KnobReadings({self.knobs.quota: KnobReading(-1)}, 0, None))

    def usage(self) -> NodeUsage | None:
        """After one more pass."""
        windows = windows_of(self.settings.colocation, self.settings.tick_seconds)
        self._used, found = measure(self._used, self.observe(), windows)
        return found

    def tick_until(self, wanted: Callable[[TickResult], bool]) -> TickResult:
        """The first tick of which `wanted` holds."""
        results: list[TickResult] = []

        def reached() -> bool:
            results.append(self.tick.run())
            return wanted(results[-1])

        assert eventually(reached), results[-1].limits
        return results[-1]

    def file(self, cgroup: str, name: str) -> Path:
        return self.tree.folder(cgroup) / name

    def knob(self, name: str) -> str:
        """What best effort's root has in a control file."""
        return self.file(self.best_effort, name).read_text()

    def set_knob(self, name: str, text: str) -> None:
        self.file(self.best_effort, name).write_text(text)

    def rmdir(self, *cgroups: str) -> None:
        """Leaves first. A cgroup is busy for a moment after its last process died."""
        for folder in map(self.tree.folder, cgroups):
            assert eventually(partial(_removed, folder)), folder

    def close(self) -> None:
        self.brake.stop()
        self.reclaimer.close()
        for edge in (self.cgroups, self.discovery, self.host, self.originals):
            edge.close()
        self.tree.remove()


def _removed(folder: Path) -> bool:
    try:
        folder.rmdir()
    except OSError:
        return False
    return True
