"""The node makes room for itself: one pod at a time, and only while nobody is going anyway."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from embedded.cgroups.knobs import Use
from embedded.node.objects.pod import NodeObject, PodObject
from embedded.node.pods.housekeeping import Housekeeping, MachineSignals, NodeReporter
from embedded.node.pods.kubelet import Kubelet
from embedded.node.pods.pressure import Level, Limits, Signal, parse_thresholds
from embedded.node.pods.statistics import Statistics
from embedded.node.ports import Services

MIB = 1 << 20


class Uses:
    """Every pod uses as many MiB as its name says; a container is one run of the fake runtime."""

    def use(self, pod: PodObject, container_id: str = "") -> Use | None:
        size = int(pod.metadata.name) * MIB
        return Use(0, size, size)

    def use_of_all(self) -> Use | None:
        return Use(0, 1 << 30, 1 << 30)

    def processes(self, pod: PodObject) -> int:
        return int(pod.metadata.name)

    def disk_bytes(self, pod: PodObject) -> int:
        return int(pod.metadata.name)

    def look_at_logs(self) -> None: ...


class World:
    """A kubelet with running pods `1`, `2` and `3`, and signals that a test sets."""

    def __init__(self, services: Services, pod: Any, thresholds: str) -> None:
        self.kubelet = Kubelet(services, lambda: NodeObject())
        for name in ("1", "2", "3"):
            built = pod(metadata={"name": name, "uid": name}, containers=[{"resources": {}}])
            self.kubelet.observe(built)
        self.levels: dict[Signal, Level] = {}
        self.shown: list[frozenset[str]] = []
        self.events: list[tuple[str, str]] = []
        statistics = Statistics("n1", Uses(), self.kubelet.living, services.now)
        self.sample = statistics.sample
        limits = Limits(parse_thresholds(thresholds), 300)
        self.keeper = Housekeeping(Uses(), self.kubelet, statistics, self, limits)
        self.voice = NodeReporter(self.show, lambda reason, message: self.events.append((reason, message)))

    def read(self) -> dict[Signal, Level]:
        return self.levels

    async def show(self, pressures: frozenset[str]) -> None:
        self.shown.append(pressures)

    def play(self, script: Callable[[], Coroutine[Any, Any, None]]) -> None:
        async def both() -> None:
            task = asyncio.create_task(self.kubelet.run())
            await script()
            await self.kubelet.stop(20)
            task.cancel()

        asyncio.run(both())


def evicted(api: Any) -> list[str]:
    return [status["message"] for status in api.statuses if status.get("reason") == "Evicted"]


def test_memory(pod: Any, services: Services, api: Any, runtime: Any, clock: Any, eventually: Any) -> None:
    """The largest goes; while it is going nobody else does; the condition outlasts the shortage."""
    world = World(services, pod, "memory.available<100Mi")
    runtime.stubborn = True

    async def script() -> None:
        await eventually(lambda: len(runtime.started) == 3 and len(api.statuses) >= 6)
        world.sample()
        await world.keeper.relieve(world.voice, clock())
        assert (world.shown, world.events) == ([], [])
        world.levels = {Signal.MEMORY: Level(50 * MIB, 1 << 30)}
        for _ in range(3):
            await world.keeper.relieve(world.voice, clock())
        await eventually(lambda: evicted(api))
        world.levels = {}
        clock.advance(299)
        await world.keeper.relieve(world.voice, clock())
        clock.advance(2)
        await world.keeper.relieve(world.voice, clock())
        for each in runtime.started:
            each.kill()

    world.play(script)
    assert evicted(api) == [
        "The node was low on resource: memory. Threshold quantity: 100Mi, available: 50Mi. "
        "Container main was using 3Mi, request is 0, has larger consumption of memory. "
    ]
    assert world.shown == [frozenset({"MemoryPressure"}), frozenset()]
    assert world.events == [("EvictionThresholdMet", "Attempting to reclaim memory")] * 3


def test_other_signals(pod: Any, services: Services, api: Any, runtime: Any, clock: Any, eventually: Any) -> None:
    """Disk and process ids have measures of their own."""
    world = World(services, pod, "nodefs.available<10%,pid.available<10")

    async def script() -> None:
        await eventually(lambda: len(runtime.started) == 3)
        for signal, gone in ((Signal.DISK, 1), (Signal.PIDS, 2)):
            world.levels = {signal: Level(1, 100)}
            await world.keeper.relieve(world.voice, clock())
            await eventually(lambda wanted=gone: len(world.kubelet.workers) == 3 - wanted)

    world.play(script)
    assert [message.split(".")[0] for message in evicted(api)] == [
        "The node was low on resource: ephemeral-storage",
        "The node was low on resource: pids",
    ]
    assert world.shown == [frozenset({"DiskPressure"}), frozenset({"DiskPressure", "PIDPressure"})]


def test_levels(tmp_path: Path) -> None:
    """Every signal of this machine; a node's own part counts when it is used up first."""
    levels = MachineSignals(Uses(), 1 << 30, tmp_path).read()
    assert levels[Signal.MEMORY] == Level(0, 1 << 30)
    assert 0 <= levels[Signal.DISK].available <= levels[Signal.DISK].capacity
    assert 0 < levels[Signal.PIDS].available <= levels[Signal.PIDS].capacity


def test_a_look_that_fails_is_not_the_last(pod: Any, services: Services, clock: Any, eventually: Any) -> None:
    """A file system that refuses one costs that look only."""
    world = World(services, pod, "memory.available<100Mi")
    looks: list[int] = []

    def read() -> dict[Signal, Level]:
        looks.append(1)
        if len(looks) == 1:
            raise OSError("stale file handle")
        return {}

    world.read = read  # type: ignore[method-assign]

    async def script() -> None:
        loops = [asyncio.create_task(each) for each in world.keeper.loops(world.voice, clock, pause_seconds=0)]
        await eventually(lambda: len(looks) > 2)
        for each in loops:
            each.cancel()

    asyncio.run(script())
