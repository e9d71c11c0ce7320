"""Tables and targets of bench/schedule, and its JSON file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import mean

import msgspec
from rich.console import Console

from bench.figures import ColocationTarget, Interval, interval, ratios, told
from bench.schedule.benchmark import Schedule
from bench.schedule.end import CAPPED, EndToEnd
from bench.schedule.speed import SYNTHETIC, Speed
from bench.tables import block

GANG_PODS_PER_SECOND, BARE_TIMES, LONE_PODS_PER_SECOND = 100_000.0, 4.0, 5_000.0
PREEMPTION_P99_MS, COLD_SECONDS, ALONE_SHARE = 50.0, 20.0, 0.6
LINEAR = 1.0
ORDER_MS, SORT_TIMES, WITH_QUEUES_SHARE = 50.0, 3.0, 0.8
KOORDINATOR_PODS_PER_SECOND, KOORDINATOR_P99_SECONDS = 45.57, 13.0
"""koord-scheduler at client QPS 100: test/perf/baselines/basic-1k.json of Koordinator, 100 nodes and 1,000 pods."""
WIDTH = 132


class SchedulingResults(msgspec.Struct, frozen=True):
    """What is written: every figure, and what follows from them."""

    measured: Schedule
    targets: tuple[tuple[str, float, float | None, str], ...]


def targets(measured: Schedule) -> list[ColocationTarget]:
    """Every target of the issue; those of parts that were left out are unknown."""
    return [*_speed_targets(measured), *_other_targets(measured), *_queue_targets(measured)]


def _speed_targets(measured: Schedule) -> Iterator[ColocationTarget]:
    gangs, lone = _synthetic(measured, 5_000, 64), _synthetic(measured, 5_000, 1)
    yield ColocationTarget("5,000 nodes, gangs of 64: pods/s", _rates(gangs), GANG_PODS_PER_SECOND, False)
    yield ColocationTarget("5,000 nodes, gangs of 64: time / a bare NumPy pass", _times_bare(gangs), BARE_TIMES)
    yield ColocationTarget("5,000 nodes, lone pods: pods/s", _rates(lone), LONE_PODS_PER_SECOND, False)
    for members in (1, 64):
        small, large = (_synthetic(measured, count, members) for count in (1_000, 10_000))
        growth = ratios(small.ours, large.ours) if small and large else None
        scaled = None if growth is None else Interval(*(each and each / 10 for each in msgspec.structs.astuple(growth)))
        yield ColocationTarget(f"gangs of {members}: cost at 10,000 / at 1,000 nodes, / 10", scaled, LINEAR)


def _other_targets(measured: Schedule) -> Iterator[ColocationTarget]:
    for each in measured.preemption:
        if each.nodes == 5_000:
            name = f"preemption, 5,000 nodes x 30 pods, {each.in_gangs:.0%} in gangs, for {each.members}: p99 ms"
            yield ColocationTarget(name, interval([each.p99_ms]), PREEMPTION_P99_MS)
    if measured.preemption:
        yield ColocationTarget(
            "evictions without a placement", interval([sum(one.useless for one in measured.preemption)]), 0.0
        )
    if measured.quality is not None:
        quality = measured.quality
        share = quality.equal / quality.possible if quality.possible else 1.0
        yield ColocationTarget("as few victims as the optimum, share of small cases", interval([share]), 1.0, False)
        yield ColocationTarget("evictions without a placement, small cases", interval([float(quality.useless)]), 0.0)
    if measured.cold is not None:
        yield ColocationTarget("cold start: s to the first decision", interval([measured.cold.seconds]), COLD_SECONDS)
    for one in measured.end:
        name = f"end to end, {one.pods} pods, QPS {one.qps or 'unlimited'}"
        yield ColocationTarget(f"{name}: / no scheduler", ratios(*one.pair("per_second")), ALONE_SHARE, False)
        if one.qps == CAPPED:
            ours, _ = one.pair("per_second")
            yield ColocationTarget("end to end, QPS 100: pods/s", interval(ours), KOORDINATOR_PODS_PER_SECOND, False)
            slowest = interval([one_round.p99_ms / 1000 for one_round in one.ours])
            yield ColocationTarget("end to end, QPS 100: p99 s", slowest, KOORDINATOR_P99_SECONDS)


def _queue_targets(measured: Schedule) -> Iterator[ColocationTarget]:
    for one in measured.order:
        name = f"{one.jobs} jobs in {one.queues} queues ordered, {one.shares} shares"
        yield ColocationTarget(f"{name}: ms", interval(one.ours_ms), ORDER_MS)
        yield ColocationTarget(f"{name}: / a plain sort", ratios(one.ours_ms, one.sort_ms), SORT_TIMES)
    for each in measured.queues:
        name = f"{each.what}, {each.nodes} nodes, gangs of {each.members}, {each.queues} queues: pods/s / without"
        yield ColocationTarget(name, ratios(each.with_queues, each.without), WITH_QUEUES_SHARE, False)


def show(measured: Schedule, console: Console) -> None:
    machine = measured.machine
    console.print(f"{machine.cpus} CPUs {machine.cpu}, kernel {machine.kernel}, load {machine.load_1m:.2f} before")
    for line in measured.skipped:
        console.print(f"skipped: {line}")
    heads = ("", "nodes", "members", "pods/s", "time / bare", "x greedy", "p50 us", "p99 us")
    block(console, "decisions: filters, scores, bookkeeping and explanation included", heads, _speeds(measured))
    _show_preemption(measured, console)
    block(
        console, "openb packed, mean of the seeds", ("", "GPUs allocated %", "nodes at half load"), _packings(measured)
    )
    _show_cold(measured, console)
    ends = ("pods, QPS, binds", "pods/s", "/ alone", "p50 ms", "alone", "/ alone", "p99 ms", "alone", "/ alone")
    title = "end to end, created to bound; alone: the client binds by itself"
    block(console, title, ends, _ends((*measured.end, *measured.binds)))
    _show_queues(measured, console)
    _show_jobs(measured, console)
    listed = [
        [t.name, told(t.measured), f"{'<=' if t.at_most else '>='} {t.limit:g}", t.verdict.value]
        for t in targets(measured)
    ]
    block(console, "targets", ("", "measured", "", ""), listed)


def save(measured: Schedule, path: Path) -> None:
    listed = tuple(
        (t.name, t.limit, t.measured.middle if t.measured else None, t.verdict.value) for t in targets(measured)
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(msgspec.json.format(msgspec.json.encode(SchedulingResults(measured, listed)), indent=2) + b"\n")


def _synthetic(measured: Schedule, nodes: int, members: int) -> Speed | None:
    wanted = (SYNTHETIC, nodes, members)
    return next((one for one in measured.speed if (one.cluster, one.nodes, one.members) == wanted), None)


def _rates(speed: Speed | None) -> Interval | None:
    return interval(speed.ours) if speed else None


def _times_bare(speed: Speed | None) -> Interval | None:
    return ratios(speed.bare, speed.ours) if speed else None


def _speeds(measured: Schedule) -> list[list[str]]:
    return [
        [
            one.cluster,
            f"{one.nodes}",
            f"{one.members or 'mixed'}",
            told(interval(one.ours), 0),
            told(ratios(one.bare, one.ours), 1),
            told(ratios(one.ours, one.greedy), 0),
            f"{one.p50_us:.0f}",
            f"{one.p99_us:.0f}",
        ]
        for one in measured.speed
    ]


def _preemptions(measured: Schedule) -> list[list[str]]:
    return [
        [
            *(f"{one.nodes}", f"{one.pods}", f"{one.in_gangs:.0%}", f"{one.members}"),
            *(f"{ms:.1f}" for ms in (one.first_ms, one.p50_ms, one.p99_ms, one.greedy_ms)),
            *(str(number) for number in (one.planned, one.refused, one.victims, one.useless)),
        ]
        for one in measured.preemption
    ]


def _packings(measured: Schedule) -> list[list[str]]:
    return [
        [one.policy, f"{mean(one.allocated_pct):.2f}", f"{mean(one.nodes_at_half):.0f}"] for one in measured.packing
    ]


def _show_preemption(measured: Schedule, console: Console) -> None:
    heads = (
        "nodes",
        "pods",
        "in gangs",
        "members",
        "p50 ms",
        "p99 ms",
        "greedy ms",
        "plans",
        "refused",
        "victims",
        "useless",
    )
    block(console, "preemption by one job", heads, _preemptions(measured))
    quality = measured.quality
    if quality is not None:
        console.print(
            f"\nvictims against every set of them: {quality.equal} of {quality.possible} as few as can be, "
            f"{quality.more} too many in the others, {quality.missed} missed"
        )


def _show_queues(measured: Schedule, console: Console) -> None:
    orders = [
        [
            *(f"{one.jobs}", f"{one.queues}", one.shares),
            *(told(interval(one.ours_ms), 1), told(interval(one.sort_ms), 1), told(ratios(one.ours_ms, one.sort_ms))),
        ]
        for one in measured.order
    ]
    block(console, "order of jobs in queues", ("jobs", "queues", "shares", "ms", "sort ms", "/ sort"), orders)
    speeds = [
        [
            *(one.what, f"{one.nodes}", f"{one.members}", f"{one.queues}"),
            *(told(interval(one.with_queues), 0), told(interval(one.without), 0)),
            told(ratios(one.with_queues, one.without)),
        ]
        for one in measured.queues
    ]
    heads = ("", "nodes", "members", "queues", "pods/s", "without queues", "/ without")
    block(console, "decisions in queues, order included", heads, speeds)


def _show_cold(measured: Schedule, console: Console) -> None:
    cold = measured.cold
    if cold is not None:
        console.print(
            f"\ncold start, {cold.nodes} nodes and {cold.pods} pods ({cold.bytes_listed >> 20} MiB): decoded in "
            f"{cold.decode:.1f} s, decided in {cold.turn:.1f} s, {'right' if cold.correct else 'WRONG'}; json.loads of "
            f"the same {cold.plain:.1f} s"
        )


def _show_jobs(measured: Schedule, console: Console) -> None:
    jobs = measured.jobs
    if jobs is not None:
        ours, alone, share = interval(jobs.ours), interval(jobs.alone), ratios(jobs.ours, jobs.alone)
        row = [f"{jobs.jobs} of {jobs.members}", str(jobs.nodes), told(ours, 0), told(alone, 0), told(share)]
        heads = ("jobs", "nodes", "pods/s", "alone", "/ alone")
        block(console, "jobs end to end; alone: the client makes the same pods and PodGroups", heads, [row])


def _ends(measured: Sequence[EndToEnd]) -> list[list[str]]:
    return [
        [
            f"{one.pods}, {one.qps or 'unlimited'}, {one.binds}",
            told(interval(one.pair("per_second")[0]), 0),
            told(ratios(*one.pair("per_second"))),
            *(cell for figure in ("p50_ms", "p99_ms") for cell in _waits(one, figure)),
        ]
        for one in measured
    ]


def _waits(one: EndToEnd, figure: str) -> list[str]:
    ours, alone = one.pair(figure)
    return [told(interval(ours), 0), told(interval(alone), 0), told(ratios(ours, alone), 1)]
