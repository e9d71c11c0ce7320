"""Results of the demonstration, and the text and table made of them; nothing is claimed that was not measured."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from local.demo.load import ANSWER_BOUND_SECONDS, LoadRequest, LoadResult, percentile
from local.demo.measure import QuotaCut

ALONE, TODAY, SUBLET = "alone", "today", "sublet"
# Less batch CPU than this in a whole phase is none to speak of.
_SOME_WORK_SECONDS = 0.5
BUSY_PCT = 15.0
"""Other work that keeps more of all CPUs than this busy spoils the numbers."""
SPEED_PCT = 20.0
"""A request that costs so much more or less CPU time than at the start: the load is another share of the machine."""
CALM_SECONDS = 60.0
"""How long the demonstration waits at most for other work to end."""
TITLES = {
    ALONE: "service alone",
    TODAY: "+ Burstable batch",
    SUBLET: "+ batch by Sublet",
}


class Inconclusive(Exception):
    """Other work keeps the machine so busy, or its CPUs change their speed so much, that nothing can be shown."""


class Latency(msgspec.Struct, frozen=True):
    """Milliseconds; None without requests. An unanswered request, counted apart too, stands with the whole bound."""

    p50_ms: float | None
    p99_ms: float | None
    requests: int
    unanswered: int


class PhaseResult(msgspec.Struct, frozen=True):
    """One phase; batch fields are None where no batch work ran. `offered` is milli-CPU, one value a second.

    `other_work_pct` is how much of all CPUs was busy with what is no part of the demonstration.
    """

    name: str
    cpu_pct: float
    all: Latency
    surge: Latency
    generator_priority: str
    batch_cpu_seconds: float | None = None
    batch_units: int | None = None
    offered: tuple[int | None, ...] = ()
    cut: QuotaCut | None = None
    other_work_pct: float = 0.0
    request_cost_ms: float = 0.0
    """CPU time of a request right after the phase."""


class Checks(msgspec.Struct, frozen=True):
    """What must be true for the demonstration to have worked; each text says what was seen."""

    gang_whole: bool
    gang_told: str
    service_spared: bool
    spared_told: str
    nothing_left: bool
    left_told: str

    @property
    def passed(self) -> bool:
        return self.gang_whole and self.service_spared and self.nothing_left


class DemoResult(msgspec.Struct, frozen=True):
    """Everything, as `--json` writes it."""

    machine: str
    kernel: str
    base_per_second: float
    surge_per_second: float
    phase_seconds: float
    request_cost_ms: float
    other_work_pct: float
    settings: str
    phases: tuple[PhaseResult, ...]
    checks: Checks
    start_seconds: float
    took_seconds: float
    passed: bool


def latency(requests: Iterable[LoadRequest]) -> Latency:
    """Percentiles over all requests: leaving out those without an answer would flatter a service that drops them."""
    seen = list(requests)
    unanswered = sum(1 for request in seen if request.latency_seconds is None)
    bound = ANSWER_BOUND_SECONDS
    ms = [1000 * (bound if r.latency_seconds is None else r.latency_seconds) for r in seen]
    return Latency(percentile(ms, 50), percentile(ms, 99), len(seen), unanswered)


def latencies(result: LoadResult, surge_seconds: float) -> tuple[Latency, Latency]:
    """(the whole phase, from the surge on)."""
    return latency(result.requests), latency(r for r in result.requests if r.due_seconds >= surge_seconds)


def table(phases: Sequence[PhaseResult]) -> list[list[str]]:
    """The header and one row a phase."""
    header = ["phase", "node %", "p50 ms", "p99 ms", "surge p99 ms", "batch CPU s", "batch units", "BE cut ms"]
    return [header, *(_row(phase) for phase in phases)]


def _row(phase: PhaseResult) -> list[str]:
    return [
        TITLES[phase.name],
        f"{phase.cpu_pct:.0f}",
        _number(phase.all.p50_ms),
        _number(phase.all.p99_ms),
        _number(phase.surge.p99_ms),
        _number(phase.batch_cpu_seconds),
        "-" if phase.batch_units is None else str(phase.batch_units),
        "-" if phase.cut is None else f"{phase.cut.after_seconds * 1000:.0f}",
    ]


def offered_lines(phases: Sequence[PhaseResult]) -> list[str]:
    """batch-cpu that the Node offered, second by second."""
    return [
        f"batch-cpu offered each second, {TITLES[phase.name]:<17} "
        + " ".join("-" if value is None else str(value) for value in phase.offered)
        for phase in phases
        if phase.offered
    ]


def verdict(phases: Sequence[PhaseResult]) -> str:
    """A paragraph made of the numbers: what each way of running batch work cost the service, and got done."""
    by_name = {phase.name: phase for phase in phases}
    if not {ALONE, TODAY, SUBLET} <= by_name.keys():
        return "The demonstration did not get through its phases, so there is nothing to compare."
    alone, today, sublet = by_name[ALONE], by_name[TODAY], by_name[SUBLET]
    sentences = [
        _cost("ordinary Burstable pods", alone, today),
        _cost("Sublet", alone, sublet),
        _comparison(today, sublet),
        f"The node was {alone.cpu_pct:.0f} % busy with the service alone, {today.cpu_pct:.0f} % with Burstable batch "
        f"pods and {sublet.cpu_pct:.0f} % under Sublet.",
        _unanswered(phases),
    ]
    return " ".join(sentence for sentence in sentences if sentence)


def spoiled(others_pct: float, seconds: float, whole_seconds: float) -> bool:
    """Whether a stretch of `whole_seconds` is spoiled whatever comes, others having used `others_pct` for `seconds`."""
    return others_pct * seconds > BUSY_PCT * whole_seconds


def speed_changed(before_seconds: float, after_seconds: float) -> bool:
    """Whether a request's CPU time differs from what the load was chosen by, so that it no longer is the same load."""
    return abs(after_seconds / before_seconds - 1.0) > SPEED_PCT / 100


def others_told(phases: Sequence[PhaseResult]) -> str:
    """Whether other work spoiled the numbers, and in which phases; empty where none did."""
    spoiled = [phase for phase in phases if phase.other_work_pct > BUSY_PCT]
    if not spoiled:
        return ""
    where = ", ".join(f'{phase.other_work_pct:.0f} % in "{TITLES[phase.name]}"' for phase in spoiled)
    return f"OTHER WORK kept this machine's CPUs busy ({where}): the numbers show that too. Run it again without."


def kernel_told(kernel: str) -> str:
    """What may be concluded from numbers taken on this kernel."""
    if kernel != "simulated":
        return ""
    return (
        "simulated kernel: quotas were imitated by stopping and starting processes, some 25 ms late and in "
        "steps of 10 ms of CPU time. The run shows how lending, the gang and the cut work together; latencies on a "
        "real kernel are others. Run it as root for those."
    )


def _cost(how: str, alone: PhaseResult, beside: PhaseResult) -> str:
    before, after = alone.surge.p99_ms, beside.surge.p99_ms
    if not before or after is None:
        return f"Beside {how} the service's p99 in the surge could not be compared."
    ratio = after / before
    return f"Beside {how} the service's p99 in the surge was {after:.0f} ms, {ratio:.1f} times that of running alone."


def _comparison(today: PhaseResult, sublet: PhaseResult) -> str:
    old, new = today.surge.p99_ms, sublet.surge.p99_ms
    if not old or new is None:
        return ""
    work_old, work_new = today.batch_cpu_seconds or 0.0, sublet.batch_cpu_seconds or 0.0
    if min(work_old, work_new) < _SOME_WORK_SECONDS:
        return "In one of the two hardly any batch work ran, so they cannot be compared."
    share = f"{work_new:.1f} s of CPU against {work_old:.1f} s"
    if new < old:
        return f"Under Sublet it was {old / new:.1f} times shorter than beside Burstable pods; batch work got {share}."
    return f"Sublet was NOT better here: its p99 was not shorter than beside Burstable pods; batch work got {share}."


def _unanswered(phases: Sequence[PhaseResult]) -> str:
    lost = sum(phase.all.unanswered for phase in phases)
    return f"{lost} requests had no answer and count as {ANSWER_BOUND_SECONDS:.0f} s." if lost else ""


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}"


def spared(phases: Sequence[PhaseResult]) -> tuple[bool, str]:
    """Whether the service answered sooner in the surge than beside Burstable pods, and its p99 in all phases."""
    p99 = {phase.name: phase.surge.p99_ms for phase in phases}
    told = [f"{TITLES[name]} {_number(p99.get(name))} ms" for name in (SUBLET, TODAY, ALONE)]
    ours, todays = p99.get(SUBLET), p99.get(TODAY)
    return bool(ours and todays and ours < todays), "p99 in the surge: " + ", ".join(told)


def cut_told(phases: Sequence[PhaseResult]) -> str:
    """How long after the surge the best-effort ceiling fell, from what to what."""
    cut = next((phase.cut for phase in phases if phase.cut is not None), None)
    if cut is None:
        return "not cut in the surge: it yielded by its weight"
    start = "no limit" if cut.from_us < 0 else f"{cut.from_us}"
    return (
        f"cut {cut.after_seconds * 1000:.0f} ms after the surge, from {start} to {cut.to_us} us per period of 100 ms "
        f"(lowest in the surge: {cut.lowest_us})"
    )
