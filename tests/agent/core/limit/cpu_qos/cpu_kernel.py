"""CPU files of one node as the kernel keeps them: no weight while `cpu.idle` is set, and another one afterwards."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from agent.core.limit.decide import LimitFacts, LimitMemory, NodeLimits, claims_due, decide_limits, knobs_to_read
from agent.core.limit.plan import plan
from agent.core.observe.knob_table import Strategy, owner_of
from agent.core.observe.knobs import CPU_QOS_FILES, IDLE_FILE, cpu_qos_knob, is_quota, shares_knob
from agent.core.observe.layout import Layout
from agent.core.observe.observation import Absence, Knob, KnobReading, Missing, Places, PodPlace, Value
from model.pod.pod import Pod
from model.strategy import EvictionStrategy, SuppressStrategy

_NEUTRAL: dict[str, Value] = {"cpu.uclamp.max": 100, "cpuset.cpus": "", "cpu.cfs_period_us": 100_000, "pids.max": -1}


class RefusedError(Exception):
    """As EINVAL."""


class CpuKernel:
    """Files that keep what is planned, those that are `absent` apart, and an agent that ticks on them.

    A cgroup has no more than its parent's `born` files say when it is made.
    """

    def __init__(self, build: Any, layout: Layout, absent: Collection[str] = ()) -> None:
        self.build, self.layout, self.absent = build, layout, frozenset(absent)
        self.held: dict[Knob, Value] = {}
        self.ours: dict[Knob, Value] = {}
        self.originals: dict[Knob, Value] = {}
        self.read: tuple[Knob, ...] = ()
        self.state = LimitMemory()
        self.at = 0.0

    @property
    def kubelets_weight(self) -> int:
        return 1 if self.layout.version == 2 else 2

    def value(self, knob: Knob) -> Value:
        if knob.file in ("cpu.shares", "cpu.weight"):
            if self.held.get(self.idle(knob.cgroup)) == 1:
                return 0 if self.layout.version == 2 else 3
            return self.held.get(knob, self.kubelets_weight)
        unlimited = is_quota(knob) or knob.file.startswith(("memory.max", "memory.high", "memory.limit"))
        return self.held.get(knob, -1 if unlimited else _NEUTRAL.get(knob.file, 0))

    def idle(self, cgroup: str) -> Knob:
        return cpu_qos_knob(self.layout, cgroup, IDLE_FILE)

    def weight(self, cgroup: str) -> Knob:
        return shares_knob(self.layout, cgroup)

    def put(self, knob: Knob, value: Value) -> None:
        """Somebody writes. Raises RefusedError."""
        if knob.file in ("cpu.shares", "cpu.weight") and self.held.get(self.idle(knob.cgroup)) == 1:
            raise RefusedError(f"{knob}: {value}")
        if knob.file == IDLE_FILE and value == 0 and self.held.get(knob) == 1:
            self.held[self.weight(knob.cgroup)] = 100 if self.layout.version == 2 else 1024
        self.held[knob] = value

    def restart(self) -> None:
        """A new agent: what it finds in files with an original counts as ours."""
        self.state = LimitMemory()
        self.ours = {knob: self.value(knob) for knob, text in self.originals.items() if self.value(knob) != text}

    def run(self, ticks: int, pods: tuple[Pod, ...], **facts: Any) -> NodeLimits:
        """So many ticks; the last limits."""
        where = {pod.uid: self.place(pod) for pod in pods}
        limits = NodeLimits({}, None)
        for _ in range(ticks):
            limits = self._tick(LimitFacts(SuppressStrategy(), EvictionStrategy(), pods, **facts), Places(where))
        return limits

    def _tick(self, facts: LimitFacts, places: Places) -> NodeLimits:
        self.at += 1.0
        claims = claims_due(self.state, self.layout, places, facts)
        left = [knob for knob in self.originals if claims.leave(knob)] if claims else []
        self.read = (*knobs_to_read(self.state, self.layout, places, facts), *left)
        readings = {knob: self._reading(knob) for knob in self.read}
        seen = self.build.seen(self.at, knobs=readings, places=places, listed=facts.pods)
        self.state, limits = decide_limits(self.state, self.layout, seen, self.build.usage(), facts)
        assert limits.refused == (), "two strategies ask for one control file"
        for write in plan(limits.limits, readings):
            self.originals.setdefault(write.knob, write.previous if write.original is None else write.original)
            self.put(write.knob, write.value)
            self.ours[write.knob] = self.value(write.knob)
            if write.gives_back:
                del self.originals[write.knob], self.ours[write.knob]
        return limits

    def _reading(self, knob: Knob) -> KnobReading:
        if knob.file in self.absent:
            return KnobReading(Missing(knob.file, Absence.GONE))
        return KnobReading(self.value(knob), self.ours.get(knob), self.originals.get(knob))

    def place(self, pod: Pod) -> PodPlace:
        path = self.layout.pod(pod.status.kubernetes_qos, pod.uid)
        return PodPlace(path, {container.name: f"{path}/{container.name}" for container in pod.spec.containers})

    def changed(self, *strategies: Strategy) -> dict[tuple[str, str], Value]:
        """What these strategies hold now, by cgroup and file."""
        own = [knob for knob in self.originals if owner_of(self.layout, knob) in strategies]
        return {(knob.cgroup, knob.file): self.value(knob) for knob in own}

    def looked_at(self) -> int:
        """How many files of CPU QoS the last tick read, of pods and tiers."""
        root = self.layout.best_effort
        return sum(knob.file in CPU_QOS_FILES or (knob.file == IDLE_FILE and knob.cgroup != root) for knob in self.read)
