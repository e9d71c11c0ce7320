"""bench/schedule: how fast the scheduler decides and how well, each figure beside a baseline of the same run."""

from __future__ import annotations

from pathlib import Path

import msgspec

from bench.machine import Machine, this_machine
from bench.schedule.cold import Cold, measure_cold
from bench.schedule.effort import SchedulingEffort
from bench.schedule.end import EndToEnd, measure_binds, measure_end_to_end
from bench.schedule.jobs import JobsEndToEnd, measure_jobs
from bench.schedule.packing import Packing, measure_packing
from bench.schedule.preemption import Preemption, Quality, measure_preemption, measure_quality
from bench.schedule.queued_turns import measure_turns
from bench.schedule.queues import Ordering, QueuedSpeed, measure_order, measure_queued
from bench.schedule.speed import Speed, measure_speed, measure_traces
from scheduler.__main__ import keep_memory

PARTS = ("speed", "traces", "preemption", "quality", "packing", "cold", "end", "binds", "order", "queues", "jobs")


class Schedule(msgspec.Struct, frozen=True):
    """Everything that was measured; `skipped` says why a part was not."""

    machine: Machine
    effort: SchedulingEffort
    speed: tuple[Speed, ...] = ()
    preemption: tuple[Preemption, ...] = ()
    quality: Quality | None = None
    packing: tuple[Packing, ...] = ()
    cold: Cold | None = None
    end: tuple[EndToEnd, ...] = ()
    binds: tuple[EndToEnd, ...] = ()
    order: tuple[Ordering, ...] = ()
    queues: tuple[QueuedSpeed, ...] = ()
    jobs: JobsEndToEnd | None = None
    skipped: tuple[str, ...] = ()


def measure_schedule(effort: SchedulingEffort, data: Path | None, parts: tuple[str, ...] = PARTS) -> Schedule:
    """Raises a Fault where a process does not come up. `data` is the folder of traces, None without them."""
    keep_memory()
    machine, skipped = this_machine(), []
    real = data if data is not None and (data / "openb" / "nodes.csv.gz").exists() else None
    if real is None and {"traces", "packing"} & set(parts):
        skipped.append("openb and Philly: no traces; give --data DIR or SUBLET_BENCH_DATA")
    speed = list(measure_speed(effort)) if "speed" in parts else []
    if real is not None and "traces" in parts:
        speed += measure_traces(effort, real)
    return Schedule(
        machine,
        effort,
        tuple(speed),
        tuple(measure_preemption(effort)) if "preemption" in parts else (),
        measure_quality(effort) if "quality" in parts else None,
        tuple(measure_packing(effort, real)) if real is not None and "packing" in parts else (),
        measure_cold(effort) if "cold" in parts else None,
        tuple(measure_end_to_end(effort)) if "end" in parts else (),
        tuple(measure_binds(effort)) if "binds" in parts else (),
        tuple(measure_order(effort)) if "order" in parts else (),
        (*measure_turns(effort), *measure_queued(effort)) if "queues" in parts else (),
        measure_jobs(effort) if "jobs" in parts else None,
        tuple(skipped),
    )
