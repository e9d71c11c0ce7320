"""Estimates on the Philly trace: how far off the start of waiting jobs is told, while simulated time goes on.

Each round tells an expected start of every job that waits. Its error is |told start − real start| / the job's whole
wait, from its coming to its start: by which part of the time that it waits somebody is misled who asks at that moment.
Only rounds before the start count, of jobs that have started and waited as long as two rounds are apart.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median

import msgspec

from bench.simulated import philly
from bench.simulated.job import EPOCH_SECONDS, SimulatedJob
from bench.simulated.world import JobTimes, Simulation
from scheduler.settings import SchedulerSettings
from scheduler.start_estimates import StartEstimates


class Told(msgspec.Struct, frozen=True):
    """What a round told of a job: when, and its start; seconds since the begin, None where it was not known."""

    job: str
    at_seconds: float
    start_seconds: float | None


class Errors(msgspec.Struct, frozen=True):
    """Of so many answers, and how many said that nothing is known; quartiles of the errors, and the share of those
    within 30 %.
    """

    jobs: int
    answers: int
    unknown: int
    lower: float
    median: float
    upper: float
    within: float


class TraceEstimates(msgspec.Struct, frozen=True):
    """`first` is of each job's first answer, `all` of every round, `constant` of every round if each were told the
    median wait of all jobs that had started by then.
    """

    name: str
    nodes: int
    jobs: int
    waited: int
    median_wait_seconds: float
    rounds: int
    round_ms: float
    first: Errors
    all: Errors
    constant: Errors


class Trace:
    """Runs the jobs, and asks at each moment that `every_seconds` divides time into."""

    def __init__(
        self, jobs: Sequence[SimulatedJob], nodes: int, every_seconds: float, settings: SchedulerSettings | None = None
    ) -> None:
        self.simulation = Simulation(philly.nodes(nodes), philly.queues(list(jobs)), settings)
        self.told: list[Told] = []
        self.constant: list[Told] = []
        self.rounds = 0
        self.seconds = 0.0
        self._jobs = jobs
        self._every = every_seconds
        self._due = 0.0
        self._now = 0.0
        self._estimates = StartEstimates(
            self.simulation.cache, self.simulation.cycle, lambda: EPOCH_SECONDS + self._now
        )
        self.simulation.watch = self._watch

    def run(self) -> Mapping[str, JobTimes]:
        """Until the last job has come."""
        self.simulation.run(self._jobs, until=self._jobs[-1].submit_seconds)
        return self.simulation.times

    def _watch(self, now: float) -> None:
        waiting = self.simulation.cycle.backlog.candidates
        if now < self._due or not waiting:
            return
        self._due, self._now = now + self._every, now
        begun = time.process_time()
        self._estimates.make()
        self.seconds += time.process_time() - begun
        self.rounds += 1
        usual = self._usual_wait()
        for candidate in waiting:
            found = self.simulation.cache.starts.of(candidate.subject)
            name = _job_of(candidate.subject.name, gang=bool(candidate.subject.gangs))
            start = found.start_seconds - EPOCH_SECONDS if found and found.start_seconds is not None else None
            self.told.append(Told(name, now, start))
            come = self.simulation.times[name].job.submit_seconds
            self.constant.append(Told(name, now, None if usual is None else max(now, come + usual)))

    def _usual_wait(self) -> float | None:
        started = (each for each in self.simulation.times.values() if each.started is not None)
        waits = [wait for each in started if (wait := _wait(each)) >= self._every]
        return median(waits) if waits else None


def measure(name: str, jobs: Sequence[SimulatedJob], nodes: int, every_seconds: float) -> TraceEstimates:
    """One run over the jobs."""
    trace = Trace(jobs, nodes, every_seconds)
    times = trace.run()
    waited = [wait for each in times.values() if each.started is not None and (wait := _wait(each)) >= every_seconds]
    return TraceEstimates(
        name,
        nodes,
        len(jobs),
        len(waited),
        median(waited) if waited else 0.0,
        trace.rounds,
        1000 * trace.seconds / max(1, trace.rounds),
        errors(_first(trace.told), times, every_seconds),
        errors(trace.told, times, every_seconds),
        errors(trace.constant, times, every_seconds),
    )


def errors(told: Sequence[Told], times: Mapping[str, JobTimes], shortest_seconds: float) -> Errors:
    """Of what was told of jobs that started later, and waited so long at least."""
    found: list[float] = []
    unknown, jobs = 0, set()
    for each in told:
        of = times[each.job]
        if of.started is None or each.at_seconds > of.started or (wait := _wait(of)) < shortest_seconds:
            continue
        jobs.add(each.job)
        if each.start_seconds is None:
            unknown += 1
        else:
            found.append(abs(each.start_seconds - of.started) / wait)
    found.sort()
    quarter, half, most = (_quantile(found, part) for part in (0.25, 0.5, 0.75))
    within = sum(error <= 0.3 for error in found) / len(found) if found else 0.0
    return Errors(len(jobs), len(found) + unknown, unknown, quarter, half, most, within)


class Window(msgspec.Struct, frozen=True):
    """Jobs of the trace from `first` to before `last`, on so few nodes that they have to wait."""

    first: int
    last: int
    nodes: int


def runs(data: Path, windows: Sequence[Window], every_seconds: float) -> Iterator[TraceEstimates]:
    """Of each window: by past runs alone, as the trace is, and with the deadlines that are made."""
    path = data / "gangs" / "philly_jobs.csv.gz"
    for window in windows:
        for what, limits in (("past runs alone", False), ("with deadlines", True)):
            found = philly.jobs(path, window.first, window.last, limits=limits)
            name = f"jobs {window.first:,} to {window.last:,} on {window.nodes} nodes, {what}"
            yield measure(name, found, window.nodes, every_seconds)


def _first(told: Sequence[Told]) -> list[Told]:
    found: dict[str, Told] = {}
    for each in told:
        found.setdefault(each.job, each)
    return list(found.values())


def _wait(times: JobTimes) -> float:
    return (times.started or 0.0) - times.job.submit_seconds


def _quantile(found: Sequence[float], part: float) -> float:
    return found[min(len(found) - 1, int(len(found) * part))] if found else float("nan")


def _job_of(name: str, *, gang: bool) -> str:
    """A gang is called as its job, a pod has its number besides."""
    return name if gang else name.rpartition("-")[0]
