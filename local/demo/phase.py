"""One phase: the same requests at the same moments, and everything measured around them."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from embedded.child_process import Child, ProgramFault
from kube.client import KubeClient
from kube.objects import Pod
from local.demo.load import ANSWER_BOUND_SECONDS, LoadResult, Segment
from local.demo.manifests import batch_cpu_offered, units_done
from local.demo.measure import (
    CpuTime,
    OtherWork,
    QuotaTrace,
    besteffort_quota_file,
    first_cut,
    own_cpu_ticks,
    pods_cpu_seconds,
    read_cpu_time,
)
from local.demo.results import SUBLET, Inconclusive, PhaseResult, latencies, speed_changed, spoiled
from local.rundir import NodeEndpoints

_LEAD_SECONDS = 1.0
_LOOK_EVERY = 2
"""Seconds between two looks at other work: each costs the CPUs some milliseconds."""
SEED = 20240229


class PhaseLoad(msgspec.Struct, frozen=True):
    """The load of every phase: `base`, and `surge` from half-way on."""

    port: int
    base: Segment
    surge: Segment

    @property
    def seconds(self) -> float:
        return self.base.seconds + self.surge.seconds


class PhaseContext(msgspec.Struct, frozen=True):
    """What a phase works with; `work_dir` takes the generator's files."""

    client: KubeClient
    node: NodeEndpoints
    work_dir: Path
    load: PhaseLoad
    tell: Callable[[str], None]
    live: Callable[[str], None]
    anyway: bool = False
    """Go on where other work spoils the numbers."""


class _Reading(msgspec.Struct, frozen=True):
    cpu: CpuTime
    own_ticks: float
    batch_seconds: float
    units: int


async def start_generator(bench: PhaseContext, name: str, segments: list[Segment], begin: float) -> Child:
    """The load generator as a process; its result goes to `work_dir`/NAME.json."""
    arguments = [argument for s in segments for argument in ("--segment", f"{s.seconds}:{s.per_second}")]
    argv = [
        *(sys.executable, "-P", "-m", "local.demo.load", "--port", str(bench.load.port), "--seed", str(SEED)),
        *("--begin", str(begin), "--out", str(bench.work_dir / f"{name}.json"), *arguments),
    ]
    return await Child.start(f"load-{name}", argv, bench.work_dir / f"load-{name}.log")


async def run_phase(bench: PhaseContext, name: str, batch: list[Pod]) -> PhaseResult:
    """Run the load and measure; `batch` are the batch pods that run beside it."""
    begin = time.monotonic() + _LEAD_SECONDS
    load, trace = bench.load, QuotaTrace(besteffort_quota_file(bench.node))
    generator = await start_generator(bench, name, [load.base, load.surge], begin)
    try:
        await _sleep_until(begin)
        bench.tell(f"{name}: {load.base.per_second:.0f} requests a second")
        trace.start()
        first = await _read(bench, batch)
        offered = await _watch_offer(bench, begin, name)
        last = await _read(bench, batch)
        changes = trace.stop()
        result = await _result_of(bench, name, generator)
    finally:
        trace.stop()
        await generator.stop(1.0)
    whole, surge = latencies(result, load.base.seconds)
    return PhaseResult(
        name=name,
        cpu_pct=first.cpu.utilisation_pct(last.cpu),
        other_work_pct=first.cpu.others_pct(last.cpu, last.own_ticks - first.own_ticks),
        all=whole,
        surge=surge,
        generator_priority=result.priority,
        batch_cpu_seconds=last.batch_seconds - first.batch_seconds if batch else None,
        batch_units=last.units - first.units if batch else None,
        offered=tuple(offered),
        cut=first_cut(changes, begin + load.base.seconds) if name == SUBLET else None,
    )


async def _watch_offer(bench: PhaseContext, begin: float, name: str) -> list[int | None]:
    """The offer once a second until the load ends.

    Raises Inconclusive as soon as other work has spoiled the phase.
    """
    offered: list[int | None] = []
    others = OtherWork()
    told = False
    for second in range(round(bench.load.seconds)):
        await _sleep_until(begin + second)
        if not told and second >= bench.load.base.seconds:
            bench.tell(f"{name}: surge to {bench.load.surge.per_second:.0f} requests a second")
            told = True
        offered.append(await batch_cpu_offered(bench.client, bench.node.name))
        if second % _LOOK_EVERY == _LOOK_EVERY - 1:
            raise_if_spoiled(bench.anyway, name, others.pct(), second, bench.load.seconds)
        bench.live(f"{name}: second {second + 1} of {bench.load.seconds:.0f}, batch-cpu offered {offered[-1]}")
    await _sleep_until(begin + bench.load.seconds)
    return offered


def raise_if_spoiled(anyway: bool, what: str, others_pct: float, seconds: float, whole_seconds: float) -> None:
    """Raises Inconclusive where other work has spoiled a stretch of `whole_seconds`, `seconds` of which have passed."""
    if not anyway and spoiled(others_pct, seconds, whole_seconds):
        raise Inconclusive(f'in "{what}" other work kept {others_pct:.0f} % of the CPUs busy for {seconds:.0f} s')


def raise_if_speed_changed(anyway: bool, what: str, before_seconds: float, after_seconds: float) -> None:
    """Raises Inconclusive where a request costs other CPU time after a phase than when the load was chosen."""
    if not anyway and speed_changed(before_seconds, after_seconds):
        raise Inconclusive(
            f'after "{what}" this machine needed {after_seconds * 1000:.1f} ms of CPU for a request, '
            f"{before_seconds * 1000:.1f} ms at the start: its CPUs changed their speed"
        )


async def _read(bench: PhaseContext, batch: list[Pod]) -> _Reading:
    uids = [pod.metadata.uid for pod in batch]
    cpu, own, seconds = read_cpu_time(), own_cpu_ticks(), pods_cpu_seconds(bench.node, uids)
    return _Reading(cpu, own, seconds, await units_done(bench.client, batch))


async def _result_of(bench: PhaseContext, name: str, generator: Child) -> LoadResult:
    code = await asyncio.wait_for(generator.wait(), ANSWER_BOUND_SECONDS + 10.0)
    if code != 0:
        raise ProgramFault("load generator", generator.last_words(), exit_code=code)
    return msgspec.json.decode((bench.work_dir / f"{name}.json").read_bytes(), type=LoadResult)


async def _sleep_until(moment: float) -> None:
    await asyncio.sleep(max(0.0, moment - time.monotonic()))
