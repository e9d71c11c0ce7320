"""Targets and claims of bench/colocate from made runs."""

from __future__ import annotations

import io
from pathlib import Path

import msgspec
import pytest
from rich.console import Console

from bench.colocate.benchmark import ColocationEffort, ColocationResult
from bench.colocate.report import load, save, show
from bench.colocate.rows import (
    ADAPTIVE,
    ALL_ROWS,
    ALONE,
    CFS_QUOTA,
    CPUSET,
    LOCK,
    LOCK_ADAPTIVE,
    LOCK_NO_AGENT,
    MEMORY_AGENT,
    MEMORY_ALONE,
    MEMORY_COLD,
    MEMORY_COLD_NO_SHRINK,
    MEMORY_PLENTY,
    NO_AGENT,
    at_rate,
    chosen,
    chosen_for_servers,
    kinds_of,
    spinners,
    with_other_agent,
)
from bench.colocate.targets import RatioClaim, claims, targets
from bench.figures import ClaimVerdict, ColocationRun, Interval, MemoryOutcome
from bench.machine import Machine
from bench.plot import available, plot_colocation, points

MACHINE = Machine(2, "some CPU", "6.1", "3.11.7", 0.1, {})
SURVIVED, KILLED = MemoryOutcome(True, 0, 3, 1, 1, 1000), MemoryOutcome(False, 1, 0, 0, 0, 1024)


def run(row: str, p99_us: float | None = 4000.0, kind: str = "long", **more: object) -> ColocationRun:
    made = ColocationRun(row, kind, 0, 100, 0, 1000.0, p99_us, 9000.0, 50.0, 98.0, 1.2, 700.0, 1.0)
    return msgspec.structs.replace(made, **more)


def good() -> list[ColocationRun]:
    """A run of each that meets every target with long requests."""
    return [
        run(ALONE),
        run(NO_AGENT, 4200.0),
        run(CPUSET, batch_mrounds=400.0),
        run(CFS_QUOTA, batch_mrounds=350.0),
        run(ADAPTIVE, 4100.0),
    ]


def test_rows_with_the_other_agent_are_asked_what_theirs_are_and_set_beside_them() -> None:
    main, cold = (
        with_other_agent([ALL_ROWS[NO_AGENT], ALL_ROWS[ADAPTIVE]], Path("/old")),
        with_other_agent([ALL_ROWS[MEMORY_COLD]], Path("/old")),
    )
    assert [(row.name, row.agent_folder) for row in main] == [
        (NO_AGENT, None),
        (ADAPTIVE, None),
        ("adaptive-other", Path("/old")),
    ]
    assert kinds_of(main[1]) == kinds_of(main[2])
    assert kinds_of(cold[0]) == kinds_of(cold[1])
    kinds = kinds_of(main[1])
    assert at_rate(None, kinds) == kinds
    assert [(kind.name, kind.per_second_and_cpu) for kind in at_rate(20, kinds)] == [("long", 20), ("short", 20)]
    found = {
        target.name: target.verdict
        for target in targets([run(ADAPTIVE), run("adaptive-other", 3900.0, batch_mrounds=600.0)])
    }
    assert found["long: p99 adaptive / adaptive-other"] is ClaimVerdict.MISSED
    assert found["long: batch work adaptive / adaptive-other"] is ClaimVerdict.MET
    assert not [name for name in found if "lost" in name]
    keeps = [run(MEMORY_COLD, memory=MemoryOutcome(True, 0, 0, 0, 0, 900))]
    loses = [run("memory-cold-other", memory=SURVIVED)]
    by_name = {target.name: target.verdict for target in targets(keeps + loses)}
    assert by_name["batch pods lost, memory-cold / memory-cold-other"] is ClaimVerdict.MET


def verdicts(runs: list[ColocationRun]) -> dict[str, ClaimVerdict]:
    return {target.name: target.verdict for target in targets(runs) if not target.name.startswith("short")}


def test_all_that_is_wanted_of_adaptive() -> None:
    """Latency against alone and against no agent, utilisation, and work against both of Koordinator's policies."""
    assert verdicts(good()) == {
        "long: p99 adaptive / alone": ClaimVerdict.MET,
        "long: p99 adaptive / no-agent": ClaimVerdict.MET,
        "long: utilisation with adaptive, %": ClaimVerdict.MET,
        "long: batch work adaptive / cpuset": ClaimVerdict.MET,
        "long: batch work adaptive / cfsQuota": ClaimVerdict.MET,
    }


@pytest.mark.parametrize(
    ("change", "missed"),
    [
        (run(ADAPTIVE, 4201.0), ["long: p99 adaptive / alone", "long: p99 adaptive / no-agent"]),
        (run(ADAPTIVE, 4100.0, utilisation_pct=94.9), ["long: utilisation with adaptive, %"]),
        (run(ADAPTIVE, 4100.0, batch_mrounds=679.0), ["long: batch work adaptive / cpuset"]),
    ],
    ids=["slower", "idle CPUs", "little batch work"],
)
def test_a_miss_is_called_so(change: ColocationRun, missed: list[str]) -> None:
    """Each target by itself."""
    found = verdicts([*good()[:-1], change])
    assert [name for name, verdict in found.items() if verdict is ClaimVerdict.MISSED] == missed


def test_without_clean_runs_nothing_is_met() -> None:
    """Dirty runs decide nothing."""
    dirty = [msgspec.structs.replace(each, foreign_pct=8.0) for each in good()]
    assert set(verdicts(dirty).values()) == {ClaimVerdict.UNKNOWN}


@pytest.mark.parametrize(
    ("outcomes", "verdict"),
    [((SURVIVED, SURVIVED), ClaimVerdict.MET), ((SURVIVED, KILLED), ClaimVerdict.MISSED)],
    ids=["never", "once"],
)
def test_a_service_killed_once_is_one_too_many(outcomes: tuple[MemoryOutcome, ...], verdict: ClaimVerdict) -> None:
    """Even in a dirty run."""
    runs = [run(MEMORY_ALONE), *(run(MEMORY_AGENT, memory=each, foreign_pct=60.0) for each in outcomes)]
    assert verdicts(runs)["memory: runs in which the service was killed"] is verdict


def test_batch_pods_lost_are_counted_beside_an_agent_that_reclaims_nothing() -> None:
    """Whoever ended them: two of five are few enough, three of five are not."""
    name = "memory: batch pods lost, memory-cold / memory-cold-no-shrink"
    lost = run(MEMORY_COLD_NO_SHRINK, memory=SURVIVED)
    for count, verdict in ((2, ClaimVerdict.MET), (3, ClaimVerdict.MISSED)):
        outcome = MemoryOutcome(True, 0, 0, count, 0, 1000)
        runs = [run(MEMORY_AGENT, memory=SURVIVED), run(MEMORY_COLD, memory=outcome), lost]
        assert verdicts(runs)[name] is verdict
    assert name not in verdicts([run(MEMORY_AGENT, memory=SURVIVED)])


def test_a_service_short_of_memory_is_as_fast_as_beside_the_same_batch_with_memory_for_all() -> None:
    """Which is what the batch work costs it where nobody need act."""
    name = "memory: p99 with the agent / the same with memory for all"
    for p99_ms, verdict in ((20.0, ClaimVerdict.MET), (21.0, ClaimVerdict.MISSED)):
        runs = [run(MEMORY_AGENT, p99_ms, memory=SURVIVED), run(MEMORY_PLENTY, 20.0, memory=SURVIVED)]
        assert verdicts(runs)[name] is verdict


def test_a_lock_held_by_best_effort_is_waited_for_no_longer_than_without_an_agent() -> None:
    """Of the writes that wait for it."""
    runs = [run(LOCK_NO_AGENT, 20.0, "lock"), run(LOCK_ADAPTIVE, 21.0, "lock")]
    assert verdicts(runs) == {"lock: p99 lock-adaptive / lock-no-agent": ClaimVerdict.MISSED}


@pytest.mark.parametrize(
    ("ratio", "smaller", "words"),
    [
        (Interval(0.7, 0.8, 0.99), True, "better"),
        (Interval(0.7, 0.8, 1.0), True, "no difference shown"),
        (Interval(1.01, 1.2, None), True, "worse"),
        (Interval(None, None, None), True, "worse"),
        (Interval(1.1, 1.2, 1.3), False, "better"),
        (Interval(0.8, 0.9, 0.95), False, "worse"),
    ],
)
def test_only_what_every_run_shows_is_claimed(ratio: Interval, smaller: bool, words: str) -> None:
    """A median alone claims nothing."""
    assert RatioClaim("x", ratio, smaller).words == words


def test_claims_are_against_no_agent() -> None:
    """Adaptive was faster and did as much."""
    assert [(claim.name, claim.words) for claim in claims(good())] == [
        ("long: p99 adaptive / no-agent", "better"),
        ("long: batch work adaptive / no-agent", "no difference shown"),
    ]


def test_rows_are_chosen_by_name_and_group() -> None:
    """Always in the order they are listed."""
    assert [row.name for row in chosen(["adaptive", "alone"])] == ["alone", "adaptive"]
    assert len(chosen(["main"])) == 6 and len(chosen(None)) == len(ALL_ROWS) == 21
    assert [kinds_of(row) for row in chosen(["lock"])] == [(LOCK,)] * 6
    assert {row.agent["threshold_pct"] for row in chosen([CPUSET, CFS_QUOTA]) if row.agent} == {65}


def test_rows_for_servers_have_each_number_of_batch_processes() -> None:
    """The server alone is run once; the candidates are not among the rows of our own service."""
    found = chosen_for_servers(["alone", "adaptive", "long-slices"], (1, 4))
    assert [row.name for row in found] == ["alone", "adaptive 1", "long-slices 1", "adaptive 4", "long-slices 4"]
    assert [spinners(row, 2) for row in found] == [0, 1, 1, 4, 4]
    assert len(chosen_for_servers(None, (4,))) == 6 and not {"adaptive 4", "long-slices"} & set(ALL_ROWS)


def test_a_server_is_compared_by_the_number_of_batch_processes() -> None:
    """Against alone and against no agent beside as many; a row that was not run is not measured."""
    runs = [
        run(ALONE, 2000.0, "nginx"),
        run("no-agent 4", 3000.0, "nginx"),
        run("adaptive 4", 2300.0, "nginx"),
        run("adaptive 8", 3500.0, "nginx"),
    ]
    assert {target.name: target.verdict for target in targets(runs)} == {
        "nginx: p99 adaptive 4 / alone": ClaimVerdict.MET,
        "nginx: p99 adaptive 4 / no-agent 4": ClaimVerdict.MET,
        "nginx: p99 adaptive 8 / alone": ClaimVerdict.MISSED,
        "nginx: p99 adaptive 8 / no-agent 8": ClaimVerdict.UNKNOWN,
    }


def test_tables_files_and_pictures(tmp_path: Path) -> None:
    """What was saved reads back; what was missed is said; endless figures leave the picture alone."""
    names = (ALONE, NO_AGENT, CPUSET, CFS_QUOTA, ADAPTIVE)
    runs = (*good(), run(NO_AGENT, None, kind="short"), run(ADAPTIVE, 9000.0, foreign_pct=30.0))
    measured, text = ColocationResult(MACHINE, ColocationEffort(), names, runs, {ALONE: "by itself"}), io.StringIO()
    show(measured, Console(file=text, width=150))
    shown = text.getvalue()
    assert (
        "by itself" in shown
        and "1/2" in shown
        and "inf" in shown
        and "hyper-threads" in shown
        and "at most 7 %" in shown
    )
    save(measured, tmp_path / "made" / "colocate.json")
    assert load(tmp_path / "made" / "colocate.json") == measured
    assert points(measured, "short", lambda each: each.p99_us) == []
    assert len(points(measured, "long", lambda each: each.p99_us)) == 5
    if available():
        plot_colocation(measured, tmp_path / "colocate.svg")
        assert (tmp_path / "colocate.svg").read_text().startswith("<?xml")
