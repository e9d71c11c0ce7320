"""The forward pass: from the expected ends of what runs to the starts of what waits, in order, by quota and nodes."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest
from scheduler_builders import node, snapshot

from model.estimates.start_estimate import EstimateBasis
from model.queue import Queue, QuotaCell
from scheduler.core.estimates.durations import PastRuns
from scheduler.core.estimates.forward import Picture, RunningWork, Start, WaitingWork, forward
from scheduler.core.queues.headroom import Quota
from scheduler.core.queues.tree import tree_of
from scheduler.core.snapshot.podclass import PodClass

GPU = "nvidia.com/gpu"
CELL = ("", GPU)
NOW = 1000.0
LONG = 1e9


def gpus(number: int) -> PodClass:
    return PodClass(((GPU, number), ("pods", 1)))


def runs(name: str, number: int, ends: float | None, row: int = 0, queue: str = "", past: Any = None) -> RunningWork:
    """Since second 900, until its deadline."""
    rows = ((row, gpus(number)),)
    return RunningWork(name, 900.0, ends, past, rows, queue, {CELL: number})


def waits(name: str, number: int, pods: int = 1, queue: str = "", **more: Any) -> WaitingWork:
    """For so many GPUs a pod; it runs for 100 s."""
    asked = {"limit_seconds": 100.0} | more
    return WaitingWork(name, ((gpus(number), pods),), queue, {CELL: number * pods}, **asked)


def picture(running: list[RunningWork], waiting: list[WaitingWork], *sizes: int, **more: Any) -> Picture:
    """Nodes with so many GPUs, of which what runs has its part."""
    names = [f"n{number}" for number in range(len(sizes))]
    found = snapshot(*(node(name, amounts={GPU: size}) for name, size in zip(names, sizes, strict=True)))
    free = np.array(found.free)
    column = found.resources.index(GPU)
    for work in running:
        for row, pod_class in work.rows:
            free[row, column] -= dict(pod_class.request)[GPU]
    return Picture(NOW, found, free, tuple(running), tuple(waiting), **more)


def starts(of: Picture, turn: int = 0, turns: int = 1, horizon: float = LONG) -> dict[str, float]:
    """By name."""
    return {of.waiting[place].name: each.at_seconds for place, each in course(of, turn, turns, horizon).items()}


def course(of: Picture, turn: int = 0, turns: int = 1, horizon: float = LONG) -> dict[int, Start]:
    for found in forward(of, turn, turns, horizon):
        if found is not None:
            return found
    raise AssertionError("the pass said nothing")


def quota(*queues: Queue, used: dict[str, int], capacity: int = 16) -> Quota:
    total = {"": {CELL: sum(used.values())}}
    own = {name: {CELL: amount} for name, amount in used.items()}
    return Quota(tree_of(queues), {CELL: capacity}, total | own, {})


@pytest.mark.parametrize(
    ("running", "waiting", "sizes", "told"),
    [
        pytest.param([], [waits("a", 4)], (8,), {"a": 1000.0}, id="room now"),
        pytest.param([runs("x", 8, 1500.0)], [waits("a", 4)], (8,), {"a": 1500.0}, id="after the one that runs"),
        pytest.param(
            [runs("x", 4, 1300.0), runs("y", 4, 1500.0)], [waits("a", 8)], (8,), {"a": 1500.0}, id="after both"
        ),
        pytest.param(
            [runs("x", 8, 1500.0)], [waits("a", 8), waits("b", 8)], (8,), {"a": 1500.0, "b": 1600.0}, id="one by one"
        ),
        pytest.param(
            [runs("x", 4, 1500.0)], [waits("a", 8), waits("b", 4)], (8,), {"a": 1500.0, "b": 1000.0}, id="fills in"
        ),
        pytest.param(
            [runs("x", 4, 1200.0, 0), runs("y", 4, 1500.0, 1)],
            [waits("a", 8, pods=2)],
            (8, 8),
            {"a": 1500.0},
            id="a gang of whole nodes",
        ),
        pytest.param([runs("x", 4, 1500.0, 0), runs("y", 4, 1700.0, 1)], [waits("a", 8)], (8, 8), {"a": 1500.0},
                     id="scattered room is none"),
        pytest.param([runs("x", 8, None)], [waits("a", 8)], (8,), {}, id="nothing tells"),
        pytest.param([runs("x", 8, 800.0)], [waits("a", 8)], (8,), {"a": 1001.0}, id="past its deadline"),
        pytest.param([], [waits("a", 16)], (8,), {}, id="too large for a node"),
    ],
)  # fmt: skip
def test_starts(running: list[RunningWork], waiting: list[WaitingWork], sizes: tuple[int, ...], told: Any) -> None:
    assert starts(picture(running, waiting, *sizes)) == pytest.approx(told)


def test_the_end_that_it_follows_is_named() -> None:
    """With what tells it."""
    found = course(picture([runs("x", 4, 1300.0), runs("y", 4, 1500.0)], [waits("a", 8)], 8))[0]
    assert found.after is not None and (found.after.name, found.after.basis) == ("y", EstimateBasis.DEADLINE)
    past = PastRuns(("queue ml", "8 gpu"), (300.0,) * 8)
    found = course(picture([runs("x", 8, 1500.0, past=past)], [waits("a", 8)], 8))[0]
    assert found.at_seconds == pytest.approx(1200.0) and found.after is not None
    assert (found.after.basis, found.after.runs, found.after.of) == (EstimateBasis.HISTORY, 8, "queue ml 8 gpu")


def test_a_deadline_ends_what_the_past_lets_run_longer() -> None:
    past = PastRuns(("queue ml",), (5000.0,) * 8)
    found = course(picture([runs("x", 8, 1500.0, past=past)], [waits("a", 8)], 8))[0]
    assert (found.at_seconds, found.after and found.after.basis) == (1500.0, EstimateBasis.DEADLINE)


def test_ends_are_spread_over_what_is_likely() -> None:
    """Of many runs alike the first end soon, whatever the middle of the past: the first start is no late one."""
    past = PastRuns(("all",), tuple(float(n) for n in range(150, 1150, 10)))
    running = [runs(f"x{n}", 1, None, past=past) for n in range(50)]
    found = starts(picture(running, [waits(f"a{n}", 1, limit_seconds=1e6) for n in range(50)], 50))
    times = sorted(found.values())
    assert times[0] < 1100.0 and times[-1] > 1900.0
    assert times[25] == pytest.approx(1550.0, abs=60.0)


def test_passes_differ() -> None:
    past = PastRuns(("all",), tuple(float(n) for n in range(150, 1150, 10)))
    of = picture([runs("x", 8, None, past=past)], [waits("a", 8)], 8)
    assert len({starts(of, turn, 5)["a"] for turn in range(5)}) == 5


def test_the_horizon_bounds_a_pass() -> None:
    of = picture([runs("x", 8, 5000.0)], [waits("a", 8)], 8)
    assert starts(of, horizon=3000.0) == {} and starts(of, horizon=5000.0) == {"a": 5000.0}


def test_quota_keeps_it_back_though_nodes_have_room() -> None:
    """Until work of its own queue ends; that of the other queue does not help."""
    cells = {CELL: QuotaCell(0, 8, 8)}
    queues = (Queue("ml", cells=cells), Queue("web", cells=cells))
    running = [runs("x", 8, 1500.0, 0, "ml"), runs("y", 4, 1200.0, 1, "web")]
    of = picture(
        running, [waits("a", 8, queue="ml")], 8, 16, quota=lambda: quota(*queues, used={"ml": 8, "web": 4}, capacity=24)
    )
    assert starts(of) == {"a": 1500.0}


def test_nobody_passes_in_a_queue_that_goes_strictly_one_after_the_other() -> None:
    queues = (Queue("ml"),)
    running = [runs("x", 4, 1500.0, 0, "ml")]
    waiting = [waits("a", 8, queue="ml", strict=True), waits("b", 4, queue="ml", strict=True)]
    of = picture(running, waiting, 8, quota=lambda: quota(*queues, used={"ml": 4}, capacity=8))
    assert starts(of) == {"a": 1500.0, "b": 1600.0}


def test_the_queue_that_has_less_goes_first_where_shares_count() -> None:
    """Whatever the order at this moment, which has one queue's work before all of another's."""
    queues = (Queue("ml"), Queue("web"))
    running = [runs("x", 4, 1500.0, 0, "ml"), runs("y", 4, 1500.0, 0, "web")]
    waiting = [waits(f"{queue}{n}", 4, queue=queue) for queue in ("ml", "web") for n in range(2)]
    of = picture(running, waiting, 8, quota=lambda: quota(*queues, used={"ml": 4, "web": 4}, capacity=8))
    first = {name for name, at in starts(of).items() if at == 1500.0}
    shared = {name for name, at in starts(msgspec.structs.replace(of, fair=True)).items() if at == 1500.0}
    assert (first, shared) == ({"ml0", "ml1"}, {"ml0", "web0"})


def test_the_books_are_copied() -> None:
    """A pass charges its own."""
    books = quota(Queue("ml"), used={"ml": 8}, capacity=8)
    of = picture([runs("x", 8, 1500.0, 0, "ml")], [waits("a", 8, queue="ml")], 8, quota=books.copy)
    assert [starts(of) for _ in range(2)] == [{"a": 1500.0}] * 2
    assert books.used("ml", CELL) == books.used("", CELL) == 8
