"""A made day of one node as the agent's journal: `python examples/replay/day.py FILE`.

A node of 16 CPUs and 64 GiB. Its services reserve 12 CPUs and 40 GiB for their worst hour; they use a fraction of
that at night, more in the afternoon, and nearly all of it in a surge from 19:30 to 21:00. The use is made here, the
same each time; every decision is the agent's own, from its own tick.
"""

from __future__ import annotations

import math
import random
import sys
from pathlib import Path

import msgspec

from agent.core.evict.eviction_request import EvictionOutcome, EvictionRecord, EvictionRequest
from agent.core.limit.brake import Cut
from agent.core.limit.plan import Write
from agent.core.limit.release import KnobClaims
from agent.core.limit.shrink import ReclaimOrder
from agent.core.limit.watch import Kill, Watch
from agent.core.observe.files import NO_MORE, Watched
from agent.core.observe.layout import Layout
from agent.core.observe.observation import CgroupSample, Knob, KnobReading, NodeSample, Observation, Places
from agent.ports import ClusterFacts, KnobReadings, TickPorts, WriteOutcome
from agent.report.journal import JournalHead, LineWriter
from agent.settings import AgentSettings
from agent.tick import Tick
from model.node import Node
from model.pod.colocation import Colocation
from model.pod.pod import Pod
from model.pod.spec import PodSpec
from model.pod.status import PodPhase, PodStatus
from model.qos import QoSClass
from model.resources import CPU, MEMORY, ResourceVector

GIB = 1 << 30
HOUR, DAY = 3600.0, 86400.0
START = 1_767_225_600.0
"""2026-01-01T00:00:00Z."""
STEP_SECONDS = 20.0
CPUS, MEMORY_BYTES = 16, 64 * GIB
LAYOUT = Layout("/kubepods")
# The longest tick there is: further apart, passes would count as a silence.
SETTINGS = AgentSettings(tick_seconds=3.0)


def service(name: str, cpus: int, gib: int) -> Pod:
    """An online service that reserves `cpus` and `gib`."""
    requests = ResourceVector({CPU: cpus * 1000, MEMORY: gib * GIB})
    return Pod(
        "shop", name, name, PodSpec(requests), PodStatus(PodPhase.RUNNING), Colocation(QoSClass.LS), cgroup_uid=name
    )


SERVICES = (service("web", 8, 24), service("search", 4, 16))


def busy(hour: float) -> float:
    """The services' load at an hour of the day, 1 is all that they reserve."""
    daily = 0.26 - 0.14 * math.cos((hour - 4) / 12 * math.pi)
    surge = 0.5 * max(0.0, math.sin((hour - 19.5) / 1.5 * math.pi)) ** 0.3 if 19.5 < hour < 21 else 0.0
    return daily + surge


class Day:
    """Every port of the agent's tick, playing the day one step at a time."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._noise = random.Random(20260101)
        self._drift = 0.0
        self._used_ns = dict.fromkeys(("system", *(pod.uid for pod in SERVICES)), 0)
        amounts = ResourceVector({CPU: CPUS * 1000, MEMORY: MEMORY_BYTES})
        self._facts = ClusterFacts(Node("worker-1", amounts, amounts), SERVICES)

    def observe(self, facts: ClusterFacts, knobs: KnobReadings, watched: Watched = NO_MORE) -> Observation:
        self.seconds += STEP_SECONDS
        self._drift = 0.95 * self._drift + self._noise.gauss(0, 0.008)
        load = max(busy(self.seconds / HOUR % 24) + self._drift, 0.02)
        self._use("system", 0.4)
        for pod in SERVICES:
            self._use(pod.uid, pod.spec.requests[CPU] / 1000 * load)
        memory = {pod.uid: round(pod.spec.requests[MEMORY] * (0.45 + 0.3 * load)) for pod in SERVICES}
        pods = {uid: CgroupSample(self._used_ns[uid], held) for uid, held in memory.items()}
        online = CgroupSample(sum(self._used_ns[uid] for uid in pods), sum(memory.values()))
        return Observation(
            at_seconds=START + self.seconds,
            monotonic_seconds=self.seconds,
            node_sample=NodeSample(sum(self._used_ns.values()), online.memory_bytes + 2 * GIB, CPUS),
            kubepods=online,
            best_effort=CgroupSample(0, 0),
            pods=pods,
            knobs=knobs.readings,
            node=facts.node,
            listed=facts.pods,
        )

    def _use(self, name: str, cpus: float) -> None:
        self._used_ns[name] += round(cpus * STEP_SECONDS * 1e9)

    def facts(self) -> ClusterFacts:
        return self._facts

    def readings(self, knobs: tuple[Knob, ...], claims: KnobClaims | None = None) -> KnobReadings:
        return KnobReadings(dict.fromkeys(knobs, KnobReading(-1)), 0, None)

    def places(self, facts: ClusterFacts) -> Places:
        return Places()

    def kills(self) -> tuple[Kill, ...]:
        return ()

    def drain(self) -> tuple[Cut, ...]:
        return ()

    def submit(self, orders: tuple[ReclaimOrder, ...]) -> None:
        """Nor is anybody's memory reclaimed."""

    def arm(self, watch: Watch) -> None:
        """No batch work runs in this day, so nothing is watched."""

    def apply(self, writes: tuple[Write, ...], seen_cuts: int) -> tuple[WriteOutcome, ...]:
        return tuple(WriteOutcome(write) for write in writes)


class Nobody:
    """The evictor of a node without batch pods."""

    def submit(self, requests: tuple[EvictionRequest, ...], record: EvictionRecord) -> None:
        """Nobody to evict."""

    def drain(self) -> tuple[EvictionOutcome, ...]:
        return ()


def journal() -> bytes:
    """The whole day, a line each 20 s."""
    day = Day()
    tick = Tick(LAYOUT, SETTINGS, TickPorts(day, day, day, day, Nobody(), day), ())
    writer = LineWriter()
    lines = [msgspec.json.encode(JournalHead(LAYOUT, SETTINGS, tick.state))]
    while day.seconds < DAY:
        lines.append(writer.line(tick.run()))
    return b"".join(line + b"\n" for line in lines)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python examples/replay/day.py FILE")
    Path(sys.argv[1]).write_bytes(journal())
