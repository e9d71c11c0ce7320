"""Rows of queues: what is told of each, how deep it stands, and amounts as a manifest has them."""

from __future__ import annotations

import msgspec
import pytest

from model.queue import CellStanding, Queue, QueueAccount, QueueStanding, QuotaCell
from view.queue_rows import amounts_text, cell_name, queue_report, queue_rows, shown

GPU, PODS = ("", "nvidia.com/gpu"), ("", "pods")


def standing(name: str, parent: str = "", cells: dict[tuple[str, str], CellStanding] | None = None) -> QueueStanding:
    """Open, of weight 1, without a quota."""
    return QueueStanding(Queue(name, parent), cells=cells or {})


def test_how_deep_queues_stand() -> None:
    """By their parents; a parent that is not there is none, and a circle ends."""
    tree = [standing("ml"), standing("train", "ml"), standing("big", "train"), standing("lost", "gone")]
    circle = [standing("a", "b"), standing("b", "a")]
    assert [(row.name, row.depth) for row in queue_rows(tree)] == [("ml", 0), ("train", 1), ("big", 2), ("lost", 0)]
    assert [row.depth for row in queue_rows(circle)] == [1, 1]


@pytest.mark.parametrize(
    ("case", "cell", "found", "written", "told"),
    [
        ("in use", GPU, CellStanding(used=1), None, True),
        ("waited for", GPU, CellStanding(demand=1), None, True),
        ("in the quota", GPU, CellStanding(), QuotaCell(maximum=0), True),
        ("only in the cluster", GPU, CellStanding(share=8, headroom=8), None, False),
        ("the number of pods", PODS, CellStanding(used=3), None, False),
        ("a quota of pods", PODS, CellStanding(used=3), QuotaCell(maximum=5), True),
    ],
)
def test_cells_that_tell_something(
    case: str, cell: tuple[str, str], found: CellStanding, written: QuotaCell | None, told: bool
) -> None:
    """Resources of the cluster that a queue has nothing to do with are left out."""
    queue = Queue("q", cells={cell: written} if written else {})
    (row,) = queue_rows([QueueStanding(queue, cells={cell: found})])
    assert bool(row.cells) is told, case


def test_a_report_is_json() -> None:
    """What a queue says of itself stands beside how it stands."""
    queue = Queue("q", cells={GPU: QuotaCell(maximum=8)}, lenders=("a",))
    account = QueueAccount(QueueStanding(queue, cells={GPU: CellStanding(maximum=8)}), waiting=2)
    found = msgspec.json.decode(msgspec.json.encode(queue_report(account)))
    assert found["queue"]["cells"][0]["maximum"] == 8 and found["says"]["lenders"] == ["a"] and found["waiting"] == 2


def test_amounts() -> None:
    """CPU in CPUs, memory in bytes, devices as they are; a flavour beside its resource."""
    assert [shown("cpu", 1500), shown("memory", 2 << 30), shown("nvidia.com/gpu", 8)] == ["1500m", "2Gi", "8"]
    assert shown("kubernetes.io/batch-cpu", 2000) == "2000"
    assert [cell_name(GPU), cell_name(("a100", "cpu"))] == ["nvidia.com/gpu", "cpu of a100"]
    assert amounts_text({"cpu": 2000, "pods": 3, "memory": 0}) == "2 cpu"
    assert amounts_text({"pods": 3}) == "nothing"
