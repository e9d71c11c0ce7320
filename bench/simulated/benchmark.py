"""bench/simulated: Kueue's published scenario, a cohort of many queues, and estimates on a trace, in simulated time."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from statistics import mean

import msgspec

from bench.machine import Machine, this_machine
from bench.simulated.kueue_scenarios import BASELINE, Scenario, WorkloadSet, node
from bench.simulated.philly_estimates import TraceEstimates, Window, runs
from bench.simulated.world import Simulation, Speed, waits
from scheduler.core.preemption.policy import PreemptionPolicySettings
from scheduler.settings import SchedulerSettings

QPS = 50.0
"""Of Kueue's client in its published runs."""


class SimulatedEffort(msgspec.Struct, frozen=True):
    """Windows of the trace, in each a round of estimates each `every_seconds`. Of Kueue's workloads one in `part`."""

    cohorts: int = 5
    part: int = 1
    hot_queues: int = 1_000
    windows: tuple[Window, ...] = (
        Window(2_600, 3_800, 4),
        Window(3_200, 3_800, 4),
        Window(18_200, 18_800, 16),
    )
    every_seconds: float = 900.0


QUICK = SimulatedEffort(cohorts=1, part=25, hot_queues=30, windows=(Window(3_200, 3_500, 4),))


class ScenarioRun(msgspec.Struct, frozen=True):
    """How long all workloads took, beside the bound; `writes_per_second` is the cap, None without. `lost_seconds` is
    the CPU time of what was evicted, `turn_ms` the mean turn, `cpu_seconds` all of them.
    """

    name: str
    workloads: int
    queues: int
    bound_seconds: float
    seconds: float
    writes_per_second: float | None
    turns_take_time: bool
    evictions: int
    lost_seconds: float
    mean_wait_seconds: dict[str, float]
    turns: int
    turn_ms: float
    longest_turn_ms: float
    cpu_seconds: float

    @property
    def ratio(self) -> float:
        """To the bound."""
        return self.seconds / self.bound_seconds


class Simulated(msgspec.Struct, frozen=True):
    """Everything that was measured; `skipped` says why a part was not."""

    machine: Machine
    effort: SimulatedEffort
    scenarios: tuple[ScenarioRun, ...] = ()
    estimates: tuple[TraceEstimates, ...] = ()
    skipped: tuple[str, ...] = ()


def measure_scenarios(effort: SimulatedEffort) -> Simulated:
    """The baseline without a cap and with Kueue's, and the hot cohort."""
    return Simulated(this_machine(), effort, tuple(_scenarios(effort)))


def measure_estimates(effort: SimulatedEffort, data: Path | None) -> Simulated:
    """`data` is the folder of traces, None without them."""
    machine = this_machine()
    if data is None or not (data / "gangs" / "philly_jobs.csv.gz").exists():
        return Simulated(machine, effort, skipped=("Philly: no trace; give --data DIR or SUBLET_BENCH_DATA",))
    found = runs(data, effort.windows, effort.every_seconds)
    return Simulated(machine, effort, estimates=tuple(found))


def hot_cohort(queues: int) -> Scenario:
    """One cohort, whose queues have 2 CPUs each and borrow; they all come at once."""
    small = WorkloadSet("small", 10, 0.5, 0.5, 50, 1)
    large = WorkloadSet("large", 2, 2.0, 1.0, 50, 4)
    return Scenario(f"a cohort of {queues:,} queues", 1, queues, (small, large), nominal=2, borrowing=100)


def run(scenario: Scenario, speed: Speed, settings: SchedulerSettings | None = None) -> ScenarioRun:
    """All workloads of a scenario, to the end of the last."""
    simulation = Simulation([node()], scenario.objects(), settings, speed)
    begun = time.process_time()
    end = simulation.run(scenario.jobs())
    effort, times = simulation.effort, simulation.times.values()
    by_size = {each.name: [t for t in times if f"-{each.name}-" in t.job.name] for each in scenario.sets}
    return ScenarioRun(
        scenario.name,
        scenario.workloads,
        scenario.cohorts * scenario.queues,
        scenario.bound_seconds,
        end,
        speed.writes_per_second,
        speed.turns_take_time,
        effort.evictions,
        simulation.lost_seconds,
        {name: mean(waits(found)) for name, found in by_size.items()},
        effort.turns,
        1000 * effort.seconds / max(1, effort.turns),
        1000 * effort.longest_seconds,
        time.process_time() - begun,
    )


def _scenarios(effort: SimulatedEffort) -> Iterator[ScenarioRun]:
    sets = tuple(msgspec.structs.replace(each, count=each.count // effort.part) for each in BASELINE)
    baseline = Scenario("Kueue's baseline", effort.cohorts, 6, sets)
    yield run(baseline, Speed())
    at_once = SchedulerSettings(preemption=PreemptionPolicySettings(leave_ending=False))
    yield run(msgspec.structs.replace(baseline, name=f"{baseline.name}, evicting at once"), Speed(), at_once)
    name = f"{baseline.name} without preemption"
    yield run(msgspec.structs.replace(baseline, name=name, preempts=False), Speed())
    yield run(baseline, Speed(QPS))
    yield run(hot_cohort(effort.hot_queues), Speed())
