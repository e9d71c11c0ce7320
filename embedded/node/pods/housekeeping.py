"""What a node does all the time beside its pods: look at logs, take samples, and make room when it is short of it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

import msgspec
import psutil
import structlog

from embedded.fault import KubernetesFault
from embedded.node.logs.files import LOOK_SECONDS
from embedded.node.objects.pod import PodObject
from embedded.node.objects.pod_resources import effective_requests, requests
from embedded.node.pods import pressure
from embedded.node.pods.kubelet import Kubelet
from embedded.node.pods.pressure import Candidate, Crossed, Level, Limits, Signal
from embedded.node.pods.statistics import SAMPLE_SECONDS, ResourceUsage, Statistics
from embedded.node.pods.worker import PodWorker
from embedded.resources import MEMORY

log = structlog.get_logger()

_PRESSURE_SECONDS = 10.0


class Runtime(ResourceUsage, Protocol):
    """See processes.runtime.ProcessRuntime."""

    def look_at_logs(self) -> None: ...
    def processes(self, pod: PodObject) -> int: ...
    def disk_bytes(self, pod: PodObject) -> int: ...


class Signals(Protocol):
    """What is left of what; see Levels."""

    def read(self) -> Mapping[Signal, Level]: ...


class NodeReporter(msgspec.Struct, frozen=True):
    """How the node speaks about itself: its conditions (raises KubernetesFault), and events about the Node."""

    show_pressures: Callable[[frozenset[str]], Awaitable[None]]
    record: Callable[[str, str], None]


class Housekeeping:
    """`loops` run for ever, side by side."""

    def __init__(
        self, runtime: Runtime, kubelet: Kubelet, statistics: Statistics, levels: Signals, limits: Limits
    ) -> None:
        self._runtime = runtime
        self._kubelet = kubelet
        self._statistics = statistics
        self._levels = levels
        self._limits = limits
        self._last_met: dict[str, datetime] = {}
        self._shown: frozenset[str] = frozenset()

    def loops(
        self, voice: NodeReporter, now: Callable[[], datetime], pause_seconds: float = _PRESSURE_SECONDS
    ) -> list[Coroutine[Any, Any, None]]:
        """`pause_seconds` lies between two looks at the signals."""
        return [self._look_at_logs(), self._sample(), self._relieve(voice, now, pause_seconds)]

    async def _look_at_logs(self) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            self._runtime.look_at_logs()

    async def _sample(self) -> None:
        while True:
            self._statistics.sample()
            await asyncio.sleep(SAMPLE_SECONDS)

    async def _relieve(self, voice: NodeReporter, now: Callable[[], datetime], pause_seconds: float) -> None:
        while True:
            await asyncio.sleep(pause_seconds)
            try:
                await self.relieve(voice, now())
            except (KubernetesFault, OSError) as fault:
                # The next look is soon; a file system may refuse one.
                log.warning("pressure not looked after", error=str(fault))

    async def relieve(self, voice: NodeReporter, now: datetime) -> None:
        """One look at the signals: conditions, and one victim where a threshold is met. Raises KubernetesFault."""
        met = pressure.crossed(self._limits.thresholds, self._levels.read())
        self._last_met = pressure.observed(self._last_met, met, now, self._limits.transition_seconds)
        shown = self._kubelet.pressures = frozenset(self._last_met)
        if met:
            voice.record("EvictionThresholdMet", f"Attempting to reclaim {met[0].resource}")
            await self._make_room(met[0])
        if shown != self._shown:
            await voice.show_pressures(shown)
            self._shown = shown

    async def _make_room(self, cause: Crossed) -> None:
        """Nobody goes while somebody is going: the agent's evictions and deletions come first."""
        workers = self._kubelet.workers
        if any(each.leaving for each in workers):
            return
        candidates = [await self._candidate(cause.signal, each) for each in workers]
        for victim in pressure.ranked(cause.signal, candidates)[:1]:
            worker = next(each for each in workers if each.pod.uid == victim.uid)
            worker.evict(pressure.message(cause, victim))

    async def _candidate(self, signal: Signal, worker: PodWorker) -> Candidate:
        pod = worker.pod
        asked = 0
        containers: tuple[tuple[str, int, int], ...] = ()
        if signal is Signal.MEMORY:
            used, asked = self._statistics.working_set_bytes(pod), effective_requests(pod)[MEMORY]
            containers = self._memory_of_containers(worker)
        elif signal is Signal.PIDS:
            used = self._runtime.processes(pod)
        else:
            used = await asyncio.to_thread(self._runtime.disk_bytes, pod)
            asked = effective_requests(pod)["ephemeral-storage"]
        return Candidate(pod.uid, pod.metadata.name, pod.spec.priority or 0, used, asked, containers)

    def _memory_of_containers(self, worker: PodWorker) -> tuple[tuple[str, int, int], ...]:
        held = {each.name: each.container_id for each in worker.views if each.running}
        uses = {name: self._runtime.use(worker.pod, container_id) for name, container_id in held.items()}
        return tuple(
            (each.name, use.working_set_bytes, requests(each)[MEMORY])
            for each in worker.pod.spec.containers
            if (use := uses.get(each.name))
        )


class MachineSignals:
    """The signals of this machine. A node that has only a part of it is short when its own part is used up."""

    def __init__(self, uses: ResourceUsage, memory_bytes: int, storage: Path) -> None:
        self._uses = uses
        self._memory_bytes = memory_bytes
        self._storage = storage

    def read(self) -> dict[Signal, Level]:
        disk = os.statvfs(self._storage)
        use = self._uses.use_of_all()
        unused = self._memory_bytes - (use.working_set_bytes if use else 0)
        levels = {
            Signal.MEMORY: Level(min(psutil.virtual_memory().available, unused), self._memory_bytes),
            Signal.DISK: Level(disk.f_bavail * disk.f_frsize, disk.f_blocks * disk.f_frsize),
        }
        if disk.f_files:
            levels[Signal.INODES] = Level(disk.f_favail, disk.f_files)
        threads = _threads()
        return levels | ({Signal.PIDS: threads} if threads else {})


def _threads() -> Level | None:
    """Threads count, as they do for the kernel."""
    try:
        most = min(int(Path(f"/proc/sys/kernel/{name}").read_text()) for name in ("pid_max", "threads-max"))
        running = int(Path("/proc/loadavg").read_text().split()[3].partition("/")[2])
    except (OSError, ValueError, IndexError):
        return None
    return Level(max(most - running, 0), most)
