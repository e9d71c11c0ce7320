"""CPU files of online pods as the kernel keeps them: it refuses a burst above its quota, and a quota below its burst."""

from __future__ import annotations

from typing import Any

from agent.core.limit.decide import LimitFacts, LimitMemory, NodeLimits, claims_due, decide_limits, knobs_to_read
from agent.core.limit.plan import plan
from agent.core.observe.knobs import UNLIMITED, RootKnobs, burst_knob, is_burst, quota_knob, quota_of
from agent.core.observe.layout import Layout
from agent.core.observe.observation import (
    Absence,
    CgroupSample,
    CpuThrottling,
    Knob,
    KnobReading,
    Missing,
    Places,
    PodPlace,
)
from model.pod.pod import Pod
from model.pod.spec import Container
from model.resources import CPU, ResourceVector
from model.strategy import BurstStrategy, EvictionStrategy, SuppressStrategy
from tests.pods import with_fields


class RefusedError(Exception):
    """As EINVAL."""


class OnlineKernel:
    """What the files of one node hold, and an agent that ticks on it; `written` are the agent's writes in order."""

    def __init__(self, build: Any, layout: Layout, *, bursts: bool = True) -> None:
        self.build, self.layout, self.bursts = build, layout, bursts
        self.held: dict[Knob, int] = {}
        self.ours: dict[Knob, int] = {}
        self.originals: dict[Knob, int] = {}
        self.written: list[tuple[Knob, int]] = []
        self.read: tuple[Knob, ...] = ()
        self.memory, self.at = LimitMemory(), 0.0
        self.roots = RootKnobs.of(layout)
        self.samples: dict[str, dict[str, CgroupSample]] = {}
        self.cpus, self.used_millis = 4, 0
        self.pods_quota_millis: int | None = None

    def put(self, knob: Knob, value: int) -> None:
        """Somebody writes. Raises RefusedError."""
        quota = value if not is_burst(knob) else self.held[quota_of(knob)]
        burst = value if is_burst(knob) else self.held.get(burst_knob(self.layout, knob.cgroup), 0)
        if quota != UNLIMITED and burst > quota:
            raise RefusedError(f"{knob}: {value}")
        self.held[knob] = value

    def restart(self) -> None:
        """A new agent: what it finds in the files with an original counts as ours."""
        self.memory = LimitMemory()
        self.ours = {knob: self.held[knob] for knob, before in self.originals.items() if self.held[knob] != before}

    def load(self, uid: str, name: str, millis: int, throttled: bool = False) -> None:
        """The container uses so much for the second before the next tick, and is throttled or not."""
        before = self.samples.get(uid, {}).get(name, CgroupSample(0, 0, throttling=CpuThrottling(0, 0)))
        was = before.throttling or CpuThrottling(0, 0)
        counters = CpuThrottling(was.periods + 10, was.throttled + throttled)
        sample = CgroupSample(before.cpu_ns + millis * 1_000_000, 0, throttling=counters)
        self.samples.setdefault(uid, {})[name] = sample

    def make(self, cgroup: str, quota_us: int) -> None:
        """As the runtime makes it: no burst."""
        self.held[quota_knob(self.layout, cgroup)] = quota_us
        if self.bursts:
            self.held[burst_knob(self.layout, cgroup)] = 0

    def tick(self, strategy: BurstStrategy, pods: tuple[Pod, ...], places: Places) -> NodeLimits:
        """Read, decide, write."""
        self.at += 1.0
        facts = LimitFacts(SuppressStrategy(), EvictionStrategy(), pods, burst=strategy)
        about = (self.memory, self.layout, places, facts)
        claims = claims_due(*about)
        left = [knob for knob in self.originals if claims.leave(knob)] if claims else []
        left += [quota_of(knob) for knob in left if is_burst(knob)]
        self.read = (*knobs_to_read(*about), *left)
        readings = {knob: self._reading(knob) for knob in self.read}
        seen = self.build.seen(
            self.at,
            knobs=readings,
            places=places,
            containers=self.samples,
            node=self.build.node(cpu=self.cpus * 1000),
            pods_quota_millis=self.pods_quota_millis,
        )
        usage = self.build.usage(node=self.build.averages(self.used_millis), best_effort=self.build.averages(0))
        self.memory, limits = decide_limits(self.memory, self.layout, seen, usage, facts)
        assert limits.refused == (), "two strategies ask for one control file"
        for write in plan(limits.limits, readings):
            if write.knob in self.held and isinstance(write.value, int):
                self.originals.setdefault(write.knob, self.held[write.knob])
                self.put(write.knob, write.value)
                self.ours[write.knob] = write.value
                self.written.append((write.knob, write.value))
                if write.gives_back:
                    del self.originals[write.knob], self.ours[write.knob]
        return limits

    def _reading(self, knob: Knob) -> KnobReading:
        held = self.held.get(knob)
        root = knob.cgroup == self.layout.best_effort and not is_burst(knob)
        kernel = held if held is not None else -1 if root else Missing(knob.file, Absence.GONE)
        if knob.cgroup == self.layout.best_effort and is_burst(knob) and self.bursts:
            kernel = 0
        return KnobReading(kernel, self.ours.get(knob), self.originals.get(knob))


def online(build: Any, name: str = "web", **limits: int) -> Pod:
    """A burstable pod whose containers have these CPU limits in milli-CPU."""
    containers = tuple(Container(c, limits=ResourceVector({CPU: m} if m else {})) for c, m in limits.items())
    pod: Pod = with_fields(build.pod(name), containers=containers)
    return pod


def placed(layout: Layout, *pods: Pod) -> Places:
    """Where the kubelet made their cgroups."""
    found = {}
    for pod in pods:
        path = layout.pod(pod.status.kubernetes_qos, pod.uid)
        found[pod.uid] = PodPlace(path, {c.name: f"{path}/{c.name}" for c in pod.spec.containers})
    return Places(found)


def made(kernel: OnlineKernel, places: Places, *pods: Pod) -> None:
    """Their quotas as the kubelet writes them: the pod's where all containers have one."""
    for pod in pods:
        place, limits = places.pods[pod.uid], [c.limits[CPU] * 100 for c in pod.spec.containers]
        kernel.make(place.path, sum(limits) if all(limits) else UNLIMITED)
        for container, limit in zip(pod.spec.containers, limits, strict=True):
            kernel.make(place.containers[container.name], limit or UNLIMITED)
