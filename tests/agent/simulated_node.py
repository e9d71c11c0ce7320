"""A node that exists only here, behind every port of the tick: pods that come and go, gaps, resets, a brake that cuts."""

from __future__ import annotations

import math
import random

from agent.core.limit.brake import BrakePlan, Cut
from agent.core.limit.plan import Write
from agent.core.limit.release import KnobClaims
from agent.core.limit.watch import Kill, Watch
from agent.core.observe.files import NO_MORE, Watched
from agent.core.observe.knobs import RootKnobs
from agent.core.observe.layout import Layout
from agent.core.observe.observation import (
    Absence,
    CgroupPressure,
    CgroupSample,
    CpuThrottling,
    DiskBytes,
    Knob,
    KnobReading,
    MemoryEvents,
    Missing,
    NetworkBytes,
    NodeSample,
    Observation,
    Places,
    Stall,
)
from agent.ports import ClusterFacts, KnobReadings, TickPorts, WriteOutcome
from model.node import Node
from model.pod.status import PodPhase
from model.qos import KubernetesQoS, PriorityBand, QoSClass
from model.resources import BATCH_CPU, CPU, MEMORY, ResourceVector
from tests.agent.playing import FakeEvictor, FakeReclaimer
from tests.pods import make_pod

GIB = 1 << 30
LAYOUT = Layout()
KNOBS = RootKnobs.of(LAYOUT)
_CPUS = 32
_LIFE_TICKS = 200
_EPOCH = 1_795_000_000.0


class Cgroup:
    """Counters of one cgroup, and the load it makes."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._ns = self._periods = self._memory = 0

    def advance(self, seconds: float, wave: float) -> int:
        """CPU time used meanwhile; now and then the counters start again, as after a re-created cgroup."""
        used = int(seconds * 1e9 * self._rng.random() * wave)
        self._ns = 0 if self._rng.random() < 0.001 else self._ns + used
        self._periods += int(seconds * 10)
        self._memory = int(GIB * self._rng.random())
        return used

    def sample(self) -> CgroupSample | Missing:
        if self._rng.random() < 0.01:
            return Missing("/x", Absence.UNREADABLE)
        stall = Stall(1.0, 1.0, 1.0, self._ns // 1000)
        return CgroupSample(
            cpu_ns=self._ns,
            memory_bytes=self._memory,
            page_cache_bytes=self._memory // 4,
            throttling=CpuThrottling(self._periods, self._periods // 3, self._periods * 10),
            pressure=CgroupPressure(stall, stall, stall, stall, stall, stall),
            events=MemoryEvents(oom_kill=self._periods // 1000),
            disk=DiskBytes(self._ns, self._ns),
        )

    @property
    def memory_bytes(self) -> int:
        return self._memory


class LivingPod:
    """One pod with two containers."""

    def __init__(self, rng: random.Random, number: int, born_seconds: float) -> None:
        batch = number % 3 == 0
        self.pod = make_pod(
            namespace="default",
            name=f"pod-{number}",
            uid=f"5d3b8a54-0f0e-4f53-9a3d-{number:012}",
            requests=ResourceVector({BATCH_CPU: 1000} if batch else {CPU: 1000, MEMORY: GIB}),
            qos=QoSClass.BE if batch else QoSClass.LS,
            qos_label=QoSClass.BE if batch else QoSClass.LS,
            kubernetes_qos=KubernetesQoS.BEST_EFFORT if batch else KubernetesQoS.BURSTABLE,
            band=PriorityBand.BATCH if batch else PriorityBand.PROD,
            phase=PodPhase.RUNNING,
            created_seconds=born_seconds,
        )
        self.whole, self.parts = Cgroup(rng), {"app": Cgroup(rng), "proxy": Cgroup(rng)}

    def advance(self, seconds: float, wave: float) -> int:
        for part in self.parts.values():
            part.advance(seconds, wave / 2)
        return self.whole.advance(seconds, wave)


class SimulatedNode:
    """Every port of the tick. Each pod lives 200 ticks; at the end of its life another takes its place."""

    def __init__(self, seed: int, pods: int) -> None:
        self._rng = random.Random(seed)
        self._seconds = 0.0
        self._ticks = self._born = self._cuts = 0
        self._pods = [self._new_pod() for _ in range(pods)]
        self._roots = dict.fromkeys(("node", "kubepods", "besteffort"), 0)
        self._host = Cgroup(self._rng)
        self._kernel = dict.fromkeys(KNOBS.all, -1)
        self._ours: dict[Knob, int] = {}
        self._cut: tuple[Cut, ...] = ()
        self._plan: BrakePlan | None = None

    def advance(self) -> None:
        """A second passes, now and then up to twenty; a pod may come for one that goes."""
        rng = self._rng
        self._ticks += 1
        seconds = rng.uniform(2, 20) if rng.random() < 0.005 else rng.uniform(0.95, 1.05)
        self._seconds += seconds
        if self._ticks % (_LIFE_TICKS // len(self._pods)) == 0:
            self._pods.pop(0)
            self._pods.append(self._new_pod())
        wave = 1 + math.sin(self._seconds / 500)
        for pod in self._pods:
            used = pod.advance(seconds, wave / 2)
            self._roots["kubepods"] += used
            self._roots["besteffort"] += used if pod.pod.best_effort else 0
            self._roots["node"] += used
        self._roots["node"] += self._host.advance(seconds, wave / 2)
        self._cut = self._brake() if rng.random() < 0.01 else ()

    def facts(self) -> ClusterFacts:
        size = ResourceVector({CPU: _CPUS * 1000, MEMORY: 64 * GIB})
        return ClusterFacts(Node("n", size, size), tuple(living.pod for living in self._pods))

    def readings(self, knobs: tuple[Knob, ...], claims: KnobClaims | None = None) -> KnobReadings:
        found = {knob: KnobReading(self._kernel[knob], self._ours.get(knob)) for knob in knobs}
        return KnobReadings(found, self._cuts, self._seconds if self._cut else None)

    def observe(self, facts: ClusterFacts, knobs: KnobReadings, watched: Watched = NO_MORE) -> Observation:
        used = sum(living.whole.memory_bytes for living in self._pods)
        stall = Stall(1.0, 1.0, 1.0, self._ticks)
        return Observation(
            at_seconds=_EPOCH + self._seconds,
            monotonic_seconds=self._seconds,
            node_sample=NodeSample(self._roots["node"], used + GIB, _CPUS),
            kubepods=CgroupSample(self._roots["kubepods"], used),
            best_effort=CgroupSample(self._roots["besteffort"], used // 3),
            burstable=CgroupSample(self._roots["kubepods"] - self._roots["besteffort"], used // 2),
            pods={living.pod.uid: living.whole.sample() for living in self._pods},
            containers={
                living.pod.uid: {name: part.sample() for name, part in living.parts.items()} for living in self._pods
            },
            host_applications={"nginx": self._host.sample()},
            unlisted_pods=(f"/kubepods/pod-{self._ticks // 50}",),
            network={living.pod.uid: NetworkBytes(self._ticks, self._ticks) for living in self._pods},
            best_effort_cpus=_CPUS,
            knobs=knobs.readings,
            node_pressure=CgroupPressure(stall, stall, stall, stall, stall, stall),
            node=facts.node,
            listed=facts.pods,
            brake_cuts=knobs.brake_cuts,
            last_cut_monotonic=knobs.last_cut_monotonic,
        )

    def apply(self, writes: tuple[Write, ...], seen_cuts: int) -> tuple[WriteOutcome, ...]:
        refused = self._rng.random() < 0.01
        if not refused:
            self._kernel |= {write.knob: write.value for write in writes}
            self._ours |= {write.knob: write.value for write in writes}
        return tuple(WriteOutcome(write, "Invalid argument" if refused else "") for write in writes)

    def places(self, facts: ClusterFacts) -> Places:
        return Places()

    def arm(self, watch: Watch) -> None:
        self._plan = watch.cpu

    def drain(self) -> tuple[Cut, ...]:
        return self._cut

    def kills(self) -> tuple[Kill, ...]:
        return ()

    def ports(self) -> TickPorts:
        return TickPorts(self, self, self, self, FakeEvictor(), FakeReclaimer())

    def _brake(self) -> tuple[Cut, ...]:
        plan = self._plan
        if plan is None or plan.ceiling_us <= plan.floor_us:
            return ()
        self._cuts += 1
        value = (plan.ceiling_us + plan.floor_us) // 2
        self._kernel[plan.knob] = self._ours[plan.knob] = value
        return (Cut(plan, _EPOCH + self._seconds, self._seconds, plan.ceiling_us, value, 0),)

    def _new_pod(self) -> LivingPod:
        self._born += 1
        return LivingPod(self._rng, self._born, _EPOCH + self._seconds)
