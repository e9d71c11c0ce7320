"""Tables of bench/colocate for a person, one JSON file for the next program."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
from rich.console import Console

from bench.colocate.benchmark import ColocationResult
from bench.colocate.rows import KUBEPODS_MEMORY_MIB, SERVICE_MEMORY_MIB
from bench.colocate.targets import claims, targets
from bench.figures import CLEAN_PCT, ColocationRun, ColocationTarget, Interval, clean_runs, interval
from bench.tables import block

NOTES = (
    f"A run is clean where anything but this benchmark used at most {CLEAN_PCT:g} % of the machine, time stolen by "
    "other guests included. Dirty runs are repeated, counted and left out.",
    "Figures are medians of clean runs with the lowest and highest: of five, these hold the true median with 94 %.",
    "Latency counts from the moment a request was due. Wait is the time the service's threads stood in the run queue "
    "for a request: what others on the CPUs cost it.",
    "Alone is inflated on a virtual machine: CPUs nobody else uses fall asleep and wake slowly; batch work keeps them "
    "awake. A ratio below 1 to alone is that, and no merit of any policy.",
    "The batch work spins in registers, so nothing here shows rivalry for caches, memory bandwidth or hyper-threads, "
    "where a ceiling or a cpuset may do more than weight.",
    "More batch requested than fits is not run here: who is placed follows from what is offered, not from speed, and "
    "is for an end-to-end test with the real scheduler.",
)
WIDTH = 150


class ColocationResults(msgspec.Struct, frozen=True):
    """What is written: everything measured, and what follows from it."""

    measured: ColocationResult
    targets: tuple[tuple[str, float, Interval | None, str], ...]
    claims: tuple[tuple[str, Interval, str], ...]
    notes: tuple[str, ...] = NOTES


def save(measured: ColocationResult, path: Path) -> None:
    wanted = tuple((t.name, t.limit, t.measured, t.verdict.value) for t in targets(measured.runs))
    told = tuple((claim.name, claim.ratio, claim.words) for claim in claims(measured.runs))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(
        msgspec.json.format(msgspec.json.encode(ColocationResults(measured, wanted, told)), indent=2) + b"\n"
    )


def load(path: Path) -> ColocationResult:
    """What save wrote."""
    return msgspec.json.decode(path.read_bytes(), type=ColocationResults).measured


def show(measured: ColocationResult, console: Console) -> None:
    """A table for each kind of requests and one for memory, targets, claims, and what this cannot show."""
    machine, effort = measured.machine, measured.effort
    console.print(f"{machine.cpus} CPUs {machine.cpu}, kernel {machine.kernel}, load {machine.load_1m:.2f} before")
    console.print(f"{effort.runs} clean runs of {effort.seconds:g} s wanted of each row")
    for kind in dict.fromkeys(run.kind for run in measured.runs):
        _show_kind(measured, kind, console)
    _show_memory(measured, console)
    _show_targets(targets(measured.runs), console)
    block(
        console,
        "against the same without an agent",
        ("", "ratio", ""),
        [[claim.name, spread(claim.ratio, 1, ".2f"), claim.words] for claim in claims(measured.runs)],
    )
    console.print()
    for note in NOTES:
        console.print(f"- {note}")


def _show_kind(measured: ColocationResult, kind: str, console: Console) -> None:
    listed = measured.rows_with(kind)
    columns = (
        "row",
        "clean/all",
        "p50 ms",
        "p99 ms",
        "p99.9 ms",
        "wait us",
        "used %",
        "batch CPUs",
        "batch Mrounds/s",
        "agent %",
    )
    block(console, f"{kind} requests", columns, [_row(measured, name, kind) for name in listed])


def _row(measured: ColocationResult, name: str, kind: str) -> list[str]:
    clean = clean_runs(measured.runs, name, kind)
    made = sum((run.row, run.kind) == (name, kind) for run in measured.runs)

    def told(figure: Callable[[ColocationRun], float | None], scale: float, form: str) -> str:
        return spread(interval([figure(run) for run in clean]), scale, form)

    return [
        measured.title(name),
        f"{len(clean)}/{made}",
        told(lambda run: run.p50_us, 1000, ".2f"),
        told(lambda run: run.p99_us, 1000, ".2f"),
        told(lambda run: run.p999_us, 1000, ".1f"),
        told(lambda run: run.wait_us, 1, ".0f"),
        told(lambda run: run.utilisation_pct, 1, ".1f"),
        told(lambda run: run.batch_cpus, 1, ".2f"),
        told(lambda run: run.batch_mrounds, 1, ".0f"),
        told(lambda run: run.agent_pct, 1, ".1f"),
    ]


def _show_memory(measured: ColocationResult, console: Console) -> None:
    title = f"memory: {KUBEPODS_MEMORY_MIB} MiB for all pods, the service holds {SERVICE_MEMORY_MIB} (dirty runs too)"
    columns = (
        "row",
        "runs",
        "service killed",
        "unanswered",
        "p99 ms",
        "batch killed by the kernel",
        "evicted",
        "killed by the agent",
        "peak MiB",
    )
    found = []
    for row in measured.rows:
        runs = [run for run in measured.runs if run.row == row and run.memory]
        outcomes = [run.memory for run in runs if run.memory]
        if not outcomes:
            continue
        figures = (
            len(runs),
            sum(not each.service_survived for each in outcomes),
            sum(run.unanswered for run in runs),
            spread(interval([run.p99_us for run in runs]), 1000, ".2f"),
            sum(each.kernel_kills_batch for each in outcomes),
            sum(each.evicted for each in outcomes),
            sum(each.killed_by_agent for each in outcomes),
            max(each.peak_mib for each in outcomes),
        )
        found.append([measured.title(row), *map(str, figures)])
    block(console, title, columns, found)


def _show_targets(found: Sequence[ColocationTarget], console: Console) -> None:
    listed = []
    for target in found:
        bound = f"{'<=' if target.at_most else '>='} {target.limit:g}"
        listed.append([target.name, spread(target.measured, 1, ".2f"), bound, target.verdict.value])
    block(console, "targets (undecided: the median misses, the interval does not)", ("", "measured", "", ""), listed)


def spread(found: Interval | None, scale: float, form: str) -> str:
    """`1.20 (1.10-1.31)`; `inf` where a request was never answered, or the service did not live to tell."""
    if found is None:
        return "-"
    low, middle, high = (
        "inf" if value is None else format(value / scale, form) for value in (found.lowest, found.middle, found.highest)
    )
    return middle if low == high else f"{middle} ({low}-{high})"
