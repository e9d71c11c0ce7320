"""What preemptions cost, from what runs wrote and what was saved."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.preemption.benchmark import Preemption, Run, Saved, checkpoints, costs, run_of, runs

ENDED = "begins after step 40\nstep 50\nstops after step 57: PreemptionByScheduler\nended 48.5\n"


@pytest.mark.parametrize(
    ("text", "run"),
    [(ENDED, Run(1.0, 40, 48.5)), ("begins after step 40\n", Run(1.0, 40)), ("", Run(1.0, 0))],
    ids=["ended", "runs", "starts"],
)
def test_a_run(text: str, run: Run) -> None:
    assert run_of(1.0, text) == run


ASKED = [90.0, 110.0, 121.0]
FIRST, SECOND = Run(100.0, 0, 113.0), Run(120.0, 50)
COSTS: dict[str, tuple[list[Run], list[Saved], Preemption]] = {
    "saved for the notice": ([FIRST, SECOND], [Saved(50, 111.0)], Preemption(2.0, 7.0, on_notice=True)),
    "a save that was under way": ([FIRST, SECOND], [Saved(50, 109.0)], Preemption(4.0, 7.0, on_notice=False)),
    "an older one": (
        [FIRST, Run(120.0, 20)], [Saved(20, 104.0), Saved(50, 111.0)], Preemption(9.0, 7.0, on_notice=False),
    ),
    "nothing": ([FIRST, Run(120.0, 0)], [], Preemption(13.0, 7.0, on_notice=False)),
    "a later run's of the same step": (
        [FIRST, SECOND], [Saved(50, 111.0), Saved(50, 130.0)], Preemption(2.0, 7.0, on_notice=True),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("found", "saved", "cost"), COSTS.values(), ids=COSTS)
def test_what_one_cost(found: list[Run], saved: list[Saved], cost: Preemption) -> None:
    assert list(costs(found, saved, ASKED)) == [cost]


def test_files_of_a_measurement(tmp_path: Path) -> None:
    """The first worker's runs by their time, and complete checkpoints alone."""
    for name, text in (("run-20.5-0", "begins after step 3\n"), ("run-10.5-0", ENDED), ("run-10.6-1", ENDED)):
        (tmp_path / name).write_text(text)
    place = tmp_path / "checkpoints/default/trains"
    for name in ("a", "b"):
        (place / name).mkdir(parents=True)
    (place / "a" / "manifest.json").write_text('{"step": 3, "begun": 12.5}')
    assert [run.began for run in runs(tmp_path)] == [10.5, 20.5]
    assert checkpoints(tmp_path) == [Saved(3, 12.5)]
