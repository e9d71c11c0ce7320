"""The baselines of the scheduler's benchmark do their work, its targets follow from figures, and a small run holds."""

from __future__ import annotations

import csv
import gzip
import io
from pathlib import Path

import msgspec
import numpy as np
import pytest
from rich.console import Console

from bench.figures import ClaimVerdict
from bench.machine import Machine
from bench.schedule.baselines import Bare, Greedy, bare_requests
from bench.schedule.benchmark import Schedule, measure_schedule
from bench.schedule.brute import fewest_victims
from bench.schedule.cluster import openb_pods, philly_gangs, pod, synthetic_gangs, synthetic_nodes, workload
from bench.schedule.decider import Decider
from bench.schedule.effort import QUICK, SchedulingEffort
from bench.schedule.greedy_preemption import GreedyPreemption
from bench.schedule.preemption import measure_quality
from bench.schedule.report import save, show, targets
from bench.schedule.speed import SYNTHETIC, Speed, rank_us
from model.node import Node
from model.resources import CPU, MEMORY, PODS, ResourceVector

MACHINE = Machine(2, "some CPU", "6.1", "3.11.7", 0.1, {})
GIB = 1 << 30


def test_all_place_the_same_number_where_all_fit() -> None:
    """Ours, the greedy one and the bare pass, on an empty cluster."""
    nodes, gangs = synthetic_nodes(10), synthetic_gangs(4, 8, 1)
    free = np.array([[64_000, 256 * GIB, 110]] * 10, np.int64)
    ours = Decider(nodes).run(gangs)
    greedy = Greedy(nodes).run(gangs, 60.0)
    bare = Bare(free).run(bare_requests(gangs, (CPU, MEMORY, PODS)))
    assert ours.pods == greedy.pods == bare.pods == 32


def test_none_places_a_gang_in_part() -> None:
    """Nine of ten nodes are open, each for 64 members of a CPU."""
    nodes, gang = synthetic_nodes(10), workload("large", 9 * 64 + 1, {CPU: 1000, MEMORY: GIB})
    free = np.array([[64_000, 256 * GIB, 110]] * 9, np.int64)
    assert Decider(nodes).run([gang]).pods == 0
    assert Greedy(nodes).run([gang], 60.0).pods == 0
    assert Bare(free).run(bare_requests([gang], (CPU, MEMORY, PODS))).pods == 0


def test_the_greedy_one_gives_back_what_a_gang_held() -> None:
    """What follows a gang that does not fit finds the room."""
    nodes = synthetic_nodes(1)
    jobs = [workload("large", 65, {CPU: 1000}), workload("right", 64, {CPU: 1000})]
    assert Greedy(nodes).run(jobs, 60.0).pods == 64


def test_a_bare_pass_takes_what_it_places() -> None:
    """A second gang does not find the room of the first."""
    free = np.array([[4, 4], [2, 2]], np.int64)
    bare = Bare(free)
    request = np.array([1, 1], np.int64)
    assert [bare.run([(request, 5)]).pods, bare.run([(request, 2)]).pods, bare.run([(request, 1)]).pods] == [5, 0, 1]


@pytest.mark.parametrize(
    ("members", "millis", "expected"), [(1, 2000, 0), (1, 3000, 1), (2, 3000, 1), (3, 2300, 2), (5, 2000, None)]
)
def test_the_fewest_victims(members: int, millis: int, expected: int | None) -> None:
    """Two CPUs of eight are free; lower pods hold 1 and 4, a higher one holds 1 and stays."""
    amounts = ResourceVector({CPU: 8000, PODS: 110})
    node = Node(name="n", capacity=amounts, allocatable=amounts)
    there = [("a", 1000, 1), ("b", 4000, 1), ("c", 1000, 9)]
    pods = [pod(name, {CPU: cpu}, node="n", priority=priority) for name, cpu, priority in there]
    assert fewest_victims([node], pods, ({CPU: millis, PODS: 1}, members), 5) == expected


def test_two_of_low_priority_go_before_one_of_higher() -> None:
    """As for kube-scheduler: the highest priority among the victims counts first."""
    amounts = ResourceVector({CPU: 4000, PODS: 110})
    nodes = [Node(name=name, capacity=amounts, allocatable=amounts) for name in ("n", "m")]
    low = [pod(f"low{i}", {CPU: 2000}, node="n", priority=1) for i in range(2)]
    middle = pod("middle", {CPU: 4000}, node="m", priority=3)
    assert fewest_victims(nodes, [*low, middle], ({CPU: 4000, PODS: 1}, 1), 5) == 2


def test_greedy_preemption_puts_back_whom_it_can() -> None:
    """One of two small pods is enough; the less important goes."""
    nodes = synthetic_nodes(1)
    pods = [
        pod("a", {CPU: 32_000}, node=nodes[0].name, priority=2),
        pod("b", {CPU: 32_000}, node=nodes[0].name, priority=1),
    ]
    assert GreedyPreemption(nodes, pods).preempt({CPU: 32_000, MEMORY: GIB}, 1, 9) == 1
    assert GreedyPreemption(nodes, pods).preempt({CPU: 64_000, MEMORY: GIB}, 1, 9) == 2
    assert GreedyPreemption(nodes, pods).preempt({CPU: 64_000, MEMORY: GIB}, 1, 1) == 0


def test_no_eviction_is_in_vain() -> None:
    """In small cases whoever is refused could not have been placed, and whoever is evicted made room."""
    quality = measure_quality(msgspec.structs.replace(QUICK, quality_cases=60))
    assert (quality.missed, quality.useless) == (0, 0)
    assert quality.possible > 10 and quality.equal <= quality.possible


def speed(nodes: int, members: int, ours: float, bare: float) -> Speed:
    return Speed(SYNTHETIC, nodes, members, 10, (ours, ours), (bare, bare), (100.0,), 10.0, 20.0, 640)


def test_targets_follow_from_figures() -> None:
    """Rates, the ratio to a bare pass, growth with the cluster; what was not measured is not known."""
    measured = Schedule(
        MACHINE,
        SchedulingEffort(),
        (speed(5_000, 64, 150_000, 450_000), speed(1_000, 64, 200_000, 1.0), speed(10_000, 64, 10_000, 1.0)),
    )
    verdicts = {
        target.name: (target.measured.middle if target.measured else None, target.verdict)
        for target in targets(measured)
    }
    assert verdicts["5,000 nodes, gangs of 64: pods/s"] == (150_000, ClaimVerdict.MET)
    assert verdicts["5,000 nodes, gangs of 64: time / a bare NumPy pass"] == (3.0, ClaimVerdict.MET)
    assert verdicts["gangs of 64: cost at 10,000 / at 1,000 nodes, / 10"] == (2.0, ClaimVerdict.MISSED)
    assert verdicts["5,000 nodes, lone pods: pods/s"] == (None, ClaimVerdict.UNKNOWN)


@pytest.mark.parametrize(("pct", "expected"), [(50, 0.002), (99, 0.004), (1, 0.001)])
def test_ranks(pct: int, expected: float) -> None:
    """The nearest one, in microseconds."""
    assert rank_us([1, 2, 3, 4], pct) == expected


def write(path: Path, *rows: dict[str, object]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(path, "wt", newline="") as stream:
        writer = csv.DictWriter(stream, rows[0].keys())
        writer.writeheader()
        writer.writerows(rows)


def traces(folder: Path) -> Path:
    """A few lines in the traces' own form."""
    nodes = [
        {"node": f"n{i}", "cpu_milli": 96_000, "memory_mib": 393_216, "gpu": 8 * (i % 2), "gpu_model": "T4"}
        for i in range(8)
    ]
    shapes = [(0, 0), (1, 500), (1, 1000), (2, 1000), (8, 1000)]
    pods = [
        {"pod": f"p{i}", "cpu_milli": 4000, "memory_mib": 8192, "num_gpu": g, "gpu_milli": m}
        for i, (g, m) in enumerate(shapes * 4)
    ]
    write(folder / "openb" / "nodes.csv.gz", *nodes)
    write(folder / "openb" / "pods.csv.gz", *pods)
    write(folder / "gangs" / "philly_jobs.csv.gz", *({"gpus": g} for g in (1, 8, 12, 16, 2)))
    return folder


def test_traces_are_read_by_the_rule(tmp_path: Path) -> None:
    """Pods that share a GPU are left out; a job of 12 GPUs is two pods of 8."""
    data = traces(tmp_path)
    assert [each.gpus for each in openb_pods(data)[:4]] == [0, 1, 2, 8]
    assert [each.pending for each in philly_gangs(data, 5)] == [1, 1, 2, 2, 1]


def test_a_small_run_without_processes(tmp_path: Path) -> None:
    """Every figure is there, every decision right, and tables and file are made of them."""
    parts = ("speed", "traces", "preemption", "quality", "packing", "cold")
    result, text = measure_schedule(QUICK, traces(tmp_path), parts), io.StringIO()
    assert len(result.speed) == 6 and all(rate > 0 for each in result.speed for rate in each.ours)
    assert result.cold is not None and result.cold.correct
    assert [each.policy for each in result.packing] == ["random fit", "best fit", "ours", "ours, binpack"]
    assert sum(each.useless for each in result.preemption) == 0
    show(result, Console(file=text, width=140))
    assert "Philly on openb" in text.getvalue() and "evictions without a placement" in text.getvalue()
    save(result, tmp_path / "schedule.json")
    assert '"targets"' in (tmp_path / "schedule.json").read_text()


def test_without_traces_their_parts_are_skipped(tmp_path: Path) -> None:
    """With a word on how to have them."""
    result = measure_schedule(QUICK, tmp_path, ("traces", "packing"))
    assert result.skipped == ("openb and Philly: no traces; give --data DIR or SUBLET_BENCH_DATA",)
    assert (result.speed, result.packing) == ((), ())


@pytest.mark.slow
def test_a_small_run_end_to_end() -> None:
    """Through the API server and the scheduler as processes."""
    result = measure_schedule(QUICK, None, ("end", "binds"))
    rows = (*result.end, *result.binds)
    assert [(each.pods, each.qps) for each in result.end] == [(20, 0), (20, 100), (40, 0)]
    assert [(each.pods, each.binds) for each in result.binds] == [(40, 1), (40, 8)]
    figures = ("per_second", "p50_ms", "p99_ms")
    assert all(value > 0 for each in rows for figure in figures for side in each.pair(figure) for value in side)
