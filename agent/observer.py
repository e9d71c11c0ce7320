"""One pass over the node: every file once, one timestamp, absences as values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from agent.core.layout import KubepodsLayout
from agent.core.observation import CgroupSample, Missing, NodeSample, Observation
from agent.ports import ClusterFacts, KnobReadings
from model.pod import Pod
from model.report import Pressure


class Cgroups(Protocol):
    """Reads cgroups; paths are below the controllers' mounts."""

    def sample(self, cgroup: str, *, throttling: bool = False) -> CgroupSample | Missing: ...

    def forget(self, cgroups: set[str]) -> None: ...


class Host(Protocol):
    """Reads facts of the whole node."""

    def sample(self) -> NodeSample | Missing: ...

    def pressure(self) -> Pressure | None: ...


class NodeObserver:
    """`clock` gives (Unix seconds, monotonic seconds)."""

    def __init__(
        self, layout: KubepodsLayout, cgroups: Cgroups, host: Host, clock: Callable[[], tuple[float, float]]
    ) -> None:
        self._layout = layout
        self._cgroups = cgroups
        self._host = host
        self._clock = clock

    def observe(self, facts: ClusterFacts, knobs: KnobReadings) -> Observation:
        """The node's counters as close together as one thread can read them."""
        running = [pod for pod in facts.pods or () if not pod.terminal]
        places = {pod.uid: self._layout.pod(pod.kubernetes_qos, pod.uid) for pod in running}
        now, monotonic = self._clock()
        node_sample = self._host.sample()
        kubepods = self._cgroups.sample(self._layout.root)
        best_effort = self._cgroups.sample(self._layout.best_effort)
        pods = {pod.uid: self._sample(pod, places[pod.uid]) for pod in running}
        self._cgroups.forget({self._layout.root, self._layout.best_effort, *places.values()})
        return Observation(
            at_seconds=now,
            monotonic_seconds=monotonic,
            node_sample=node_sample,
            kubepods=kubepods,
            best_effort=best_effort,
            pods=pods,
            knobs=knobs.readings,
            pressure=self._host.pressure(),
            node=facts.node,
            listed=facts.pods,
            brake_cuts=knobs.brake_cuts,
            last_cut_monotonic=knobs.last_cut_monotonic,
        )

    def _sample(self, pod: Pod, place: str) -> CgroupSample | Missing:
        return self._cgroups.sample(place, throttling=pod.best_effort)
