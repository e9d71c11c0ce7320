"""One row, once: its pods and cgroups, the batch work, the agent where there is one, then each kind of requests."""

from __future__ import annotations

import asyncio
import mmap
import os
import struct
import subprocess
import sys
import time
from array import array
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path

import msgspec
import psutil

from bench.colocate.cluster import Agent, BenchCluster, BenchPod
from bench.colocate.loads import LoadProgram, Programs, started
from bench.colocate.lock import COUNTERS, LATENCIES, LockSetting, busy, holder, waiter
from bench.colocate.memory import HungryBatch, hog_specs
from bench.colocate.node import Home, NodeTree
from bench.colocate.rows import (
    SERVICE_MEMORY_MIB,
    BatchKind,
    ColocationRow,
    RequestKind,
    service_millis,
    spinners,
)
from bench.colocate.servers import CONNECTIONS, SERVERS, serving
from bench.colocate.threads import set_idle, set_slice, threads_of
from bench.figures import UNANSWERED, ColocationRun, MemoryOutcome, percentile_us
from bench.hierarchies import Hierarchies

_BATCH_MILLIS = 150
"""What each batch pod requests: all of them together fit into what is lent beside this service."""
_STEP_ROUNDS = 1000
_WARM_SECONDS = 1.5
_GENERATOR_BOUND_SECONDS = 60.0
_PREPARED_SECONDS = 0.2
_SERVICE, _BATCH, _AGENT = "service", "batch-", "agent"
_AGENT_MILLIS = 50
"""What its DaemonSet requests."""
_STAND_IN = """
import sys, time
seconds = float(sys.argv[1])
print("ready", flush=True)
sys.stdin.readline()
while True:
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass
    time.sleep(1 - seconds)
"""


class ColocationSetup(msgspec.Struct, frozen=True):
    """What stays the same over all runs; `settle_seconds` is how long an agent sees the load before it counts."""

    hierarchies: Hierarchies
    programs: Programs
    cluster: BenchCluster
    folder: Path
    cpus: int
    rounds_per_ms: float
    seconds: float
    settle_seconds: float


class Reading(msgspec.Struct, frozen=True):
    """Counters at one moment, in seconds of CPU time; `steps` of batch work, `wait` of the service in the run queue."""

    at: float
    machine: float
    pods: float
    batch: float
    ours: float
    agent: float
    stolen: float
    steps: int
    wait: float

    @property
    def foreign(self) -> float:
        """Of anybody else, other guests of the machine included."""
        return self.machine - self.pods - self.ours + self.stolen


class ColocationScene(msgspec.Struct, frozen=True):
    """One row at work: its cgroups, who lives where, the agent; `batch` are pods' cgroups, `counters` their steps."""

    stage: ColocationSetup
    row: ColocationRow
    number: int
    tree: NodeTree
    home: Home
    agent: Agent | None
    batch: tuple[str, ...]
    counters: mmap.mmap
    hungry: HungryBatch | None

    @property
    def service_directories(self) -> list[Path]:
        """Of the service's container, one a hierarchy."""
        return self.tree.directories(self.tree.container(self.home))

    def read(self, generator_pid: int) -> Reading:
        own = [os.getpid(), self.stage.cluster.server_pid, generator_pid]
        agent = _cpu_seconds(self.agent.pid) if self.agent else 0.0
        return Reading(
            at=time.monotonic(),
            machine=self.tree.cpu_seconds(),
            pods=self.tree.cpu_seconds(self.tree.kubepods),
            batch=sum(self.tree.cpu_seconds(cgroup) for cgroup in self.batch),
            ours=sum(map(_cpu_seconds, own)),
            agent=agent,
            stolen=psutil.cpu_times().steal,
            steps=sum(struct.unpack_from(f"{len(self.batch)}Q", self.counters)),
            wait=_wait_seconds(threads_of(self.service_directories[0])),
        )


class SentRequests(msgspec.Struct, frozen=True):
    """What the generator brought back: latencies (ns) in rising order, and the share of requests that left late."""

    ranked_ns: Sequence[int]
    late_ratio: float


async def attempt(
    stage: ColocationSetup, row: ColocationRow, kinds: Sequence[RequestKind], number: int
) -> list[ColocationRun]:
    """A run of each kind of requests. Raises a Fault where something does not come up."""
    async with AsyncExitStack() as stack:
        scene = await _scene(stage, row, number, stack)
        # An agent begins cautiously: its own start is load too.
        warm = [stage.settle_seconds if scene.agent else _WARM_SECONDS, *[_WARM_SECONDS] * len(kinds)]
        return [await _run(scene, kind, seconds) for kind, seconds in zip(kinds, warm, strict=False)]


async def _scene(stage: ColocationSetup, row: ColocationRow, number: int, stack: AsyncExitStack) -> ColocationScene:
    homes = await _homes(stage, stack, row)
    tree = stack.enter_context(NodeTree(stage.hierarchies, stage.cpus))
    tree.add(homes)
    agent = None
    if row.agent:
        agent = await stack.enter_async_context(stage.cluster.agent(tree, settings_of(row), row.agent_folder))
        place = next(home for home in homes if home.name == _AGENT)
        tree.enter(place, agent.pid)
        if row.kernel.agent_slice_us is not None:
            set_slice(threads_of(tree.directories(tree.container(place))[0]), row.kernel.agent_slice_us)
    counters = stack.enter_context(_counters(stage.folder / COUNTERS))
    batch = [home for home in homes if home.name.startswith(_BATCH)]
    for slot, home in enumerate(batch):
        load = stack.enter_context(started(_batch_command(stage, row, slot), tree.directories(tree.container(home))))
        _tell_kernel_of_batch(row, load.pid)
    if row.stand_in_ms:
        place = next(home for home in homes if home.name == _AGENT)
        words = [sys.executable, "-c", _STAND_IN, str(row.stand_in_ms / 1000)]
        stack.enter_context(started(words, tree.directories(tree.container(place))))
    if row.kernel.idle_root:
        tree.file(tree.besteffort, "cpu", "cpu.idle").write_text("1")
    hungry = HungryBatch(stage.programs, stage.cluster, tree, homes, row) if row.memory else None
    if hungry is not None:
        stack.enter_context(hungry)
    places = tuple(tree.pod(home) for home in batch)
    return ColocationScene(stage, row, number, tree, homes[0], agent, places, counters, hungry)


def _batch_command(stage: ColocationSetup, row: ColocationRow, slot: int) -> list[str | Path]:
    if row.lock:
        return holder(stage.programs, stage.folder, slot)
    return [stage.programs.path("spinner"), stage.folder / COUNTERS, str(slot)]


def _tell_kernel_of_batch(row: ColocationRow, pid: int) -> None:
    if row.kernel.idle_tasks:
        set_idle([pid])
    if row.kernel.batch_slice_us is not None:
        set_slice([pid], row.kernel.batch_slice_us)


def settings_of(row: ColocationRow) -> dict[str, object]:
    return {"suppress": dict(row.agent or {}), "eviction": dict(row.eviction)}


async def _homes(stage: ColocationSetup, stack: AsyncExitStack, row: ColocationRow) -> list[Home]:
    """The pods of the row, the service's first; the API server forgets them afterwards."""
    memory = SERVICE_MEMORY_MIB if row.memory else 64
    specs = [BenchPod(_SERVICE, service_millis(row, stage.cpus), memory), *_batch_specs(row, stage.cpus)]
    if row.memory and row.batch is not BatchKind.NONE:
        specs += hog_specs()
    if row.agent is not None or row.stand_in_ms:
        specs.append(BenchPod(_AGENT, _AGENT_MILLIS))
    found = []
    for spec in specs:
        found.append(await stage.cluster.add(spec))
        stack.push_async_callback(stage.cluster.forget, spec.name)
    return found


def _batch_specs(row: ColocationRow, cpus: int) -> list[BenchPod]:
    count = spinners(row, cpus)
    native = row.batch is BatchKind.BURSTABLE
    share = {"cpu_millis": cpus * 500 // max(count, 1)} if native else {"batch_millis": _BATCH_MILLIS}
    return [BenchPod(f"{_BATCH}{slot}", **share) for slot in range(count)]


@contextmanager
def _counters(path: Path) -> Iterator[mmap.mmap]:
    path.write_bytes(bytes(4096))
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 4096) as mapped:
        yield mapped


async def _run(scene: ColocationScene, kind: RequestKind, warm: float) -> ColocationRun:
    answering = _busy if scene.row.lock else _server if kind.name in SERVERS else _service
    with answering(scene, kind) as (service, port):
        begin = time.monotonic() + warm + _PREPARED_SECONDS
        generator = _generator(scene, kind, port, begin, warm)
        await asyncio.sleep(begin - time.monotonic())
        before = scene.read(generator.pid)
        outcome = await _through(scene, begin + scene.stage.seconds, service)
        after = scene.read(generator.pid)
        late, _ = await asyncio.to_thread(generator.communicate, timeout=_GENERATOR_BOUND_SECONDS)
    latencies = array("Q")
    latencies.frombytes((scene.stage.folder / LATENCIES).read_bytes())
    return _figures(scene, kind, SentRequests(sorted(latencies), float(late or 0)), (before, after), outcome)


async def _through(scene: ColocationScene, end: float, service: LoadProgram | None) -> MemoryOutcome | None:
    outcome = await scene.hungry.feed(end, service) if scene.hungry and service else None
    await asyncio.sleep(max(end - time.monotonic(), 0))
    return outcome


@contextmanager
def _service(scene: ColocationScene, kind: RequestKind) -> Iterator[tuple[LoadProgram, int]]:
    stage, hungry = scene.stage, scene.row.memory
    threads, rounds = 2 * stage.cpus, round(kind.cpu_ms * stage.rounds_per_ms)
    words = [threads, rounds, SERVICE_MEMORY_MIB if hungry else 0]
    with LoadProgram([stage.programs.path("service"), *map(str, words)]) as service:
        port = int(service.line())
        service.into(scene.service_directories)
        if hungry:
            service.oom_score(SERVICE_MEMORY_MIB << 20)
        service.say("go")
        service.line()
        yield service, port


@contextmanager
def _server(scene: ColocationScene, kind: RequestKind) -> Iterator[tuple[None, int]]:
    with serving(
        SERVERS[kind.name], scene.stage.folder / kind.name, scene.stage.cpus, scene.service_directories
    ) as port:
        if scene.row.kernel.server_slice_us is not None:
            set_slice(threads_of(scene.service_directories[0]), scene.row.kernel.server_slice_us)
        yield None, port


@contextmanager
def _busy(scene: ColocationScene, kind: RequestKind) -> Iterator[tuple[None, int]]:
    batch = len(scene.batch)
    with busy(_lock_setting(scene), range(batch, batch + 2 * scene.stage.cpus)):
        yield None, 0


def _lock_setting(scene: ColocationScene) -> LockSetting:
    return LockSetting(scene.stage.programs, scene.stage.folder, scene.service_directories)


def _generator(scene: ColocationScene, kind: RequestKind, port: int, begin: float, warm: float) -> psutil.Popen:
    stage = scene.stage
    rate = kind.per_second_and_cpu * stage.cpus
    times = [str(round(value * 1e9)) for value in (begin, warm, stage.seconds)]
    if scene.row.lock:
        return waiter(_lock_setting(scene), rate, times)
    # The same arrivals for every row of a round, others in the next.
    words = [str(port), str(rate), *times, str(scene.number), str(stage.folder / LATENCIES)]
    if kind.name in SERVERS:
        words += [str(CONNECTIONS), SERVERS[kind.name].request]
    program = str(stage.programs.path("generator"))
    return psutil.Popen([program, *words], stdout=subprocess.PIPE, start_new_session=True)


def _figures(
    scene: ColocationScene,
    kind: RequestKind,
    sent: SentRequests,
    readings: tuple[Reading, Reading],
    outcome: MemoryOutcome | None,
) -> ColocationRun:
    before, after = readings
    took, ranked = after.at - before.at, sent.ranked_ns
    share = 100 / (took * scene.stage.cpus)
    # Threads that are gone took their counters with them.
    waited = after.wait - before.wait
    return ColocationRun(
        row=scene.row.name,
        kind=kind.name,
        attempt=scene.number,
        requests=len(ranked),
        unanswered=sum(1 for latency in ranked if latency == UNANSWERED),
        p50_us=percentile_us(ranked, 50),
        p99_us=percentile_us(ranked, 99),
        p999_us=percentile_us(ranked, 99.9),
        wait_us=waited * 1e6 / max(len(ranked), 1) if waited >= 0 else None,
        utilisation_pct=share * (after.machine - before.machine),
        batch_cpus=(after.batch - before.batch) / took,
        batch_mrounds=(after.steps - before.steps) * _STEP_ROUNDS / took / 1e6,
        foreign_pct=share * max(after.foreign - before.foreign, 0),
        agent_pct=100 * (after.agent - before.agent) / took,
        late_sends_pct=100 * sent.late_ratio,
        memory=outcome,
    )


def _cpu_seconds(pid: int) -> float:
    """0 for a process that is gone."""
    try:
        used = psutil.Process(pid).cpu_times()
    except psutil.Error:
        return 0.0
    return float(used.user + used.system)


def _wait_seconds(threads: Sequence[int]) -> float:
    """Time these threads stood in the run queue: the second number of their schedstat."""
    total = 0
    for thread in threads:
        try:
            total += int(Path(f"/proc/{thread}/schedstat").read_text().split()[1])
        except OSError:
            continue
    return total / 1e9
