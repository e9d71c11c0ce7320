"""One pass over the node: every file once, one timestamp, absences as values."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Protocol

import msgspec

from agent.core.observe.files import NO_MORE, Role, Watched
from agent.core.observe.layout import Layout, PodDirectory
from agent.core.observe.observation import (
    Absence,
    CgroupPressure,
    CgroupSample,
    MemoryActivity,
    Missing,
    NetworkBytes,
    NodeSample,
    NumaSample,
    Observation,
    PidCounts,
    Places,
    PodPlace,
)
from agent.ports import ClusterFacts, KnobReadings
from model.pod.pod import Pod
from model.report import Pressure

Found = CgroupSample | Missing


class Directories(Protocol):
    """Which pods have a cgroup, by cgroup uid; the same mapping as long as nothing changed."""

    def pods(self) -> Mapping[str, PodDirectory]: ...


class CgroupSource(Protocol):
    """Reads the cgroups it was given; paths are below the controllers' mounts."""

    def place(self, roster: Mapping[str, Role]) -> None: ...

    def read(self, watched: Watched = NO_MORE) -> Mapping[str, Found]: ...

    def cpus(self, cgroup: str) -> int | None: ...

    def quota_millis(self, cgroup: str) -> int | None: ...

    def memory_limit(self, cgroup: str) -> int | None: ...

    def pids(self, cgroup: str) -> tuple[int | None, int | None]: ...

    def refaulted(self, cgroup: str) -> int | None: ...

    def limit_hits(self, cgroup: str) -> int | None: ...


class HostSource(Protocol):
    """Reads facts of the whole node."""

    def sample(self) -> NodeSample | Missing: ...

    def pressure(self) -> CgroupPressure | None: ...

    def services_waited_us(self) -> int | None: ...

    def pids(self) -> tuple[int, int, int] | None: ...

    def reclaimed_pages(self) -> tuple[int, int] | None: ...


class ObserverSources(msgspec.Struct, frozen=True):
    """What the observer sees with; `network` (by pod uid) and `numa` give the newest of what is read elsewhere."""

    directories: Directories
    cgroups: CgroupSource
    host: HostSource
    network: Callable[[], Mapping[str, NetworkBytes]] = dict
    numa: Callable[[], tuple[NumaSample, ...]] = tuple


class _Place(msgspec.Struct, frozen=True):
    """Where one listed pod is; containers by name. A directory that does not exist stands under its usual path."""

    uid: str
    path: str
    role: Role
    containers: Mapping[str, str]


class NodeObserver:
    """`clock` gives (Unix seconds, monotonic seconds)."""

    def __init__(self, layout: Layout, sources: ObserverSources, clock: Callable[[], tuple[float, float]]) -> None:
        self._layout = layout
        self._sources = sources
        self._clock = clock
        self._known: tuple[object, ...] = ()
        self._placed: tuple[_Place, ...] = ()
        self._unlisted_pods: tuple[str, ...] = ()
        self._unlisted_best_effort: tuple[str, ...] = ()
        self._places = Places()

    def places(self, facts: ClusterFacts) -> Places:
        """Which cgroups exist now; the same object as long as nothing changed."""
        self._update_places(facts)
        return self._places

    def observe(self, facts: ClusterFacts, knobs: KnobReadings, watched: Watched = NO_MORE) -> Observation:
        """The node's counters as close together as one thread can read them, of the places as they were told last."""
        layout, cgroups, host = self._layout, self._sources.cgroups, self._sources.host
        now, monotonic = self._clock()
        samples = cgroups.read(watched)
        # Memory that is given back in between is then held by a cgroup at most, never by the node alone.
        node_sample = host.sample()
        pressure = host.pressure()
        return Observation(
            at_seconds=now,
            monotonic_seconds=monotonic,
            node_sample=node_sample,
            kubepods=samples[layout.root],
            best_effort=samples[layout.best_effort],
            burstable=samples[layout.burstable],
            pods={place.uid: _of(samples, place.path) for place in self._placed},
            containers={place.uid: _each(samples, place.containers) for place in self._placed if place.containers},
            host_applications=_each(samples, {a.name: a.cgroup for a in facts.settings.host_applications}),
            unlisted_pods=self._unlisted_pods,
            network=self._sources.network(),
            numa=self._sources.numa(),
            best_effort_cpus=cgroups.cpus(layout.best_effort),
            pods_cpus=cgroups.cpus(layout.root),
            knobs=knobs.readings,
            pressure=_brief(pressure),
            node_pressure=pressure,
            node=facts.node,
            listed=facts.pods,
            brake_cuts=knobs.brake_cuts,
            last_cut_monotonic=knobs.last_cut_monotonic,
            unsaved=knobs.unsaved,
            places=self._places,
            pods_quota_millis=_least(cgroups.quota_millis, layout),
            kubepods_memory_limit_bytes=_least(cgroups.memory_limit, layout),
            pids=self._pids(),
            memory_activity=self._memory_activity(),
            services_waited_us=host.services_waited_us(),
            unlisted_best_effort={path: _of(samples, path) for path in self._unlisted_best_effort},
        )

    def _memory_activity(self) -> MemoryActivity | None:
        reclaimed, cgroups, layout = self._sources.host.reclaimed_pages(), self._sources.cgroups, self._layout
        if reclaimed is None:
            return None
        return MemoryActivity(
            reclaimed_pages=reclaimed[0],
            pods_refaulted=cgroups.refaulted(layout.root),
            best_effort_refaulted=cgroups.refaulted(layout.best_effort),
            pods_limit_hits=cgroups.limit_hits(layout.root),
            page_bytes=reclaimed[1],
        )

    def _pids(self) -> PidCounts | None:
        node, cgroups, layout = self._sources.host.pids(), self._sources.cgroups, self._layout
        if node is None:
            return None
        (there, node_most, numbers), (kubepods, most) = node, cgroups.pids(layout.root)
        return PidCounts(there, node_most, kubepods, most, cgroups.pids(layout.best_effort)[0], numbers)

    def _update_places(self, facts: ClusterFacts) -> None:
        """Match pods and directories, when either changed, and have the cgroups read that follow from it."""
        found = self._sources.directories.pods()
        known = (found, facts.pods, facts.settings.host_applications)
        if len(self._known) == len(known) and all(a is b for a, b in zip(self._known, known, strict=True)):
            return
        self._known = known
        running = [pod for pod in facts.pods or () if not pod.terminal]
        self._placed = tuple(self._place(pod, found.get(_cgroup_uid(pod))) for pod in running)
        owned = {_cgroup_uid(pod) for pod in running}
        self._unlisted_pods = tuple(sorted(found.keys() - owned)) if facts.pods is not None else ()
        unlisted = (found[uid].path for uid in self._unlisted_pods)
        self._unlisted_best_effort = tuple(path for path in unlisted if _is_below(path, self._layout.best_effort))
        exists = _existing(found)
        self._places = Places(
            {place.uid: _existing_part(place, exists) for place in self._placed if place.path in exists},
            tuple(sorted((path for path in exists if _is_below(path, self._layout.best_effort)), key=_depth_first)),
        )
        self._sources.cgroups.place(self._roster(exists, facts))

    def _place(self, pod: Pod, directory: PodDirectory | None) -> _Place:
        role = Role.BEST_EFFORT_POD if pod.best_effort else Role.POD
        path = directory.path if directory else self._layout.pod(pod.status.kubernetes_qos, _cgroup_uid(pod))
        found = directory.containers if directory else {}
        containers = {name: found.get(id_, f"{path}/{id_}") for name, id_ in pod.status.container_ids.items()}
        return _Place(pod.uid, path, role, containers)

    def _roster(self, exists: Collection[str], facts: ClusterFacts) -> dict[str, Role]:
        """Only what exists is placed: looking for the rest in vain would cost more each pass than reading it."""
        roster = {application.cgroup: Role.POD for application in facts.settings.host_applications}
        roster |= {place.path: place.role for place in self._placed if place.path in exists}
        roster |= dict.fromkeys(self._unlisted_best_effort, Role.BEST_EFFORT_POD)
        paths = (path for place in self._placed for path in place.containers.values())
        roster |= {path: Role.CONTAINER for path in paths if path in exists}
        return roster | dict.fromkeys(
            (*self._layout.above_pods, self._layout.burstable, self._layout.best_effort), Role.ROOT
        )


def _least(limit: Callable[[str], int | None], layout: Layout) -> int | None:
    """The tightest limit that all pods share."""
    return min((amount for cgroup in layout.above_pods if (amount := limit(cgroup)) is not None), default=None)


def _existing(found: Mapping[str, PodDirectory]) -> set[str]:
    exists = {directory.path for directory in found.values()}
    exists.update(path for directory in found.values() for path in directory.containers.values())
    return exists


def _existing_part(place: _Place, exists: Collection[str]) -> PodPlace:
    return PodPlace(place.path, {name: path for name, path in place.containers.items() if path in exists})


def _is_below(path: str, root: str) -> bool:
    return path.startswith(f"{root}/")


def _depth_first(path: str) -> tuple[int, str]:
    return path.count("/"), path


def _cgroup_uid(pod: Pod) -> str:
    return pod.cgroup_uid or pod.uid


def _of(samples: Mapping[str, Found], path: str) -> Found:
    return samples.get(path) or Missing(path, Absence.GONE, "no such cgroup")


def _each(samples: Mapping[str, Found], paths: Mapping[str, str]) -> dict[str, Found]:
    return {name: _of(samples, path) for name, path in paths.items()}


def _brief(pressure: CgroupPressure | None) -> Pressure | None:
    """The 10 s averages that the scheduler is told; None where CPU or memory has none."""
    if pressure is None or pressure.cpu_some is None or pressure.memory_some is None:
        return None
    full = pressure.memory_full.avg10_pct if pressure.memory_full else 0.0
    return Pressure(pressure.cpu_some.avg10_pct, pressure.memory_some.avg10_pct, full)
