"""A scenario of cgroup_fixtures played to the whole tick: real edges on files, a fake cluster, brake and clock."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

from agent.core.evict.eviction_request import EvictionOutcome, EvictionRecord, EvictionRequest
from agent.core.limit.brake import BrakePlan, Cut
from agent.core.limit.plan import Write
from agent.core.limit.release import KnobClaims
from agent.core.limit.shrink import ReclaimAnswer, ReclaimOrder
from agent.core.limit.watch import Kill, Watch
from agent.core.observe.files import FILES
from agent.core.observe.knobs import RootKnobs
from agent.core.observe.observation import Knob
from agent.core.observe.recording import ScenarioPod
from agent.edge.cgroupfs import CgroupReader
from agent.edge.discovery import Discovery, find_layout
from agent.edge.executor import KnobExecutor
from agent.edge.host import HostReader
from agent.files.oomscores import ProcessScores
from agent.files.statefile import StateFile
from agent.observer import NodeObserver, ObserverSources
from agent.ports import ClusterFacts, KnobReadings, Sink, TickPorts, TickResult, WriteOutcome
from agent.settings import AgentSettings
from agent.tick import Tick
from cgroup_fixtures.scenarios import FOLDER, Playback, open_scenario, pread
from model.nodesettings import NodeSettings
from model.pod.pod import Pod
from model.qos import QoSClass
from model.reason import Reason
from tests.pods import with_fields

_SETTLED_SECONDS = 20


class FakeCluster:
    """Facts a test sets."""

    def __init__(self, facts: ClusterFacts) -> None:
        self.now = facts

    def facts(self) -> ClusterFacts:
        return self.now


class FakeBrake:
    """Remembers how it was armed; cuts are given by the test."""

    def __init__(self) -> None:
        self.watch = Watch()
        self.cuts: tuple[Cut, ...] = ()
        self.killed: tuple[Kill, ...] = ()

    @property
    def plan(self) -> BrakePlan | None:
        return self.watch.cpu

    def arm(self, watch: Watch) -> None:
        self.watch = watch

    def drain(self) -> tuple[Cut, ...]:
        taken, self.cuts = self.cuts, ()
        return taken

    def kills(self) -> tuple[Kill, ...]:
        taken, self.killed = self.killed, ()
        return taken


class FakeEvictor:
    """Remembers what was asked for; outcomes are given by the test."""

    def __init__(self) -> None:
        self.requests: list[EvictionRequest] = []
        self.record = EvictionRecord()
        self.outcomes: tuple[EvictionOutcome, ...] = ()

    def submit(self, requests: tuple[EvictionRequest, ...], record: EvictionRecord) -> None:
        self.requests.extend(requests)
        self.record = record

    def drain(self) -> tuple[EvictionOutcome, ...]:
        taken, self.outcomes = self.outcomes, ()
        return taken


class FakeReclaimer:
    """Remembers what was asked for; answers are given by the test."""

    def __init__(self) -> None:
        self.orders: list[ReclaimOrder] = []
        self.answers: tuple[ReclaimAnswer, ...] = ()

    def submit(self, orders: tuple[ReclaimOrder, ...]) -> None:
        self.orders.extend(orders)

    def drain(self) -> tuple[ReclaimAnswer, ...]:
        taken, self.answers = self.answers, ()
        return taken


class KilledError(Exception):
    """The agent ended at once, between two writes."""


class Refusing:
    """The executor with files that refuse every write of ours, by knob, in the kernel's words.

    With `writes_left` the agent dies where it would make one more; `planned` is the plan under way.
    """

    def __init__(self, executor: KnobExecutor) -> None:
        self._executor = executor
        self.refused: dict[Knob, str] = {}
        self.writes_left: int | None = None
        self.planned: tuple[Write, ...] = ()

    def readings(self, knobs: tuple[Knob, ...], claims: KnobClaims | None = None) -> KnobReadings:
        return self._executor.readings(knobs, claims)

    def apply(self, writes: tuple[Write, ...], seen_cuts: int) -> tuple[WriteOutcome, ...]:
        taken = tuple(write for write in writes if write.knob not in self.refused)
        refused = (write for write in writes if write.knob in self.refused)
        errors = (WriteOutcome(w, self.refused[w.knob], cause=Reason.LIMIT_NOT_WRITTEN) for w in refused)
        self.planned = taken
        if self.writes_left is not None and self.writes_left < len(taken):
            self._executor.apply(taken[: self.writes_left], seen_cuts)
            self._executor.idle(_SETTLED_SECONDS)
            raise KilledError
        self.writes_left = None if self.writes_left is None else self.writes_left - len(taken)
        return (*self._executor.apply(taken, seen_cuts), *errors)


class SizedHost(HostReader):
    """The scenario's files, and as many CPUs as its node has, whatever machine plays it."""

    def __init__(self, proc: Path, cpus: int) -> None:
        super().__init__(proc)
        self._cpus = cpus

    @property
    def cpus(self) -> int:
        """How many are online."""
        return self._cpus

    @cpus.setter
    def cpus(self, online: int) -> None:
        self._cpus = online


class Scenario:
    """One node played back: `play` lays the next frame over the tree and runs a tick.

    Each opens a hundred files: `tests/agent/conftest.py` closes those of a test with it.
    """

    opened: ClassVar[list[Scenario]] = []

    def __init__(
        self, name: str, root: Path, build: Any, settings: AgentSettings | None = None, made: Path | None = None
    ) -> None:
        Scenario.opened.append(self)
        self.playback = Playback(FOLDER / name) if made is None else open_scenario(name, made)
        self.told = self.playback.scenario
        self.root = root
        self.settings = settings or AgentSettings()
        self._next = 0
        self._now = 0.0
        self.lay()
        self._next = 0
        shape = self.told.node
        self.layout = find_layout(self.cgroups)
        pods = tuple(self._pod(build, pod) for pod in self.told.pods)
        force = NodeSettings(
            self.settings.colocation,
            self.settings.suppress,
            self.settings.normalization,
            self.settings.eviction,
            burst=self.settings.burst,
        )
        self.cluster = FakeCluster(ClusterFacts(build.node(shape.cpu_millis, shape.memory_bytes), pods, force))
        self.brake = FakeBrake()
        self.evictor = FakeEvictor()
        self.reclaimer = FakeReclaimer()
        self.sinks: tuple[Sink, ...] = ()
        self.originals: StateFile | None = None
        self._opened: list[CgroupReader | HostReader] = []
        self.start()

    def start(self) -> None:
        """A new agent on the tree as it is; the state file survives."""
        if self.originals:
            self.originals.close()
        self.originals = StateFile(self.root / "state" / "agent.json")
        scores = ProcessScores(self.root / "proc")
        self.executor = KnobExecutor(self.cgroups, self.originals, lambda: self._now, scores=scores)
        reader = CgroupReader(self.cgroups, FILES[self.layout.version], slow_passes=1, pread=pread)
        self.host = host = SizedHost(self.root / "proc", self.told.node.cpu_millis // 1000)
        self._opened += [reader, host]
        sources = ObserverSources(Discovery(self.cgroups, self.layout, None), reader, host)
        observer = NodeObserver(self.layout, sources, lambda: (1000.0 + self._now, self._now))
        self.results: list[TickResult] = []
        self.refusing = Refusing(self.executor)
        ports = TickPorts(self.cluster, observer, self.refusing, self.brake, self.evictor, self.reclaimer)
        self.tick = Tick(self.layout, self.settings, ports, (self,))

    def close(self) -> None:
        """The node may not be played any more."""
        for opened in self._opened:
            opened.close()
        if self.originals:
            self.originals.close()

    def take(self, result: TickResult) -> None:
        assert result.limits.refused == (), "two strategies ask for one control file"
        self.results.append(result)
        for sink in self.sinks:
            sink.take(result)

    def play(self) -> TickResult:
        self.lay()
        return self.tick.run()

    def play_all(self) -> list[TickResult]:
        return [self.play() for _ in self.playback.frames]

    def wait(self, seconds: float = 1.0) -> TickResult:
        """A tick some time later on the same files; nothing is on its way to them afterwards."""
        self._now += seconds
        result = self.tick.run()
        assert self.executor.idle(_SETTLED_SECONDS)
        return result

    def linger(self, seconds: float, web: int, job: int = 0) -> TickResult:
        """A tick of v1_surge some time later, its pods at so many milli-CPU, the system at 200."""
        self._now += seconds
        used = {"": web + job, "/burstable/poduid-web": web, "/besteffort": job, "/besteffort/poduid-job": job}
        for cgroup, millis in used.items():
            file = self.file(f"cpuacct/kubepods{cgroup}/cpuacct.usage")
            file.write_text(f"{int(file.read_text()) + round(millis * seconds * 1_000_000)}\n")
        stat = self.root / "proc/stat"
        label, busy, rest = stat.read_text().split(maxsplit=2)
        stat.write_text(f"{label}  {int(busy) + round((web + job + 200) * seconds / 10)} {rest}")
        return self.tick.run()

    def lay(self) -> None:
        self._now = self.playback.lay(self._next, self.root)
        self._next += 1

    @property
    def cgroups(self) -> Path:
        return self.root / "sys/fs/cgroup"

    def file(self, name: str) -> Path:
        return self.cgroups / name

    @property
    def knobs(self) -> RootKnobs:
        return RootKnobs.of(self.layout)

    @property
    def knob(self) -> Knob:
        return self.knobs.quota

    @property
    def quota(self) -> int:
        return int(self.file("cpu/kubepods/besteffort/cpu.cfs_quota_us").read_text())

    @staticmethod
    def _pod(build: Any, told: ScenarioPod) -> Pod:
        make = build.batch if told.qos is QoSClass.BE else build.pod
        pod: Pod = make(told.name, cpu=told.cpu_millis, batch_cpu=told.batch_cpu_millis, kubernetes=told.kubernetes_qos)
        ids = {container.name: container.id for container in told.containers}
        return with_fields(pod, cgroup_uid=told.uid, container_ids=ids)
