"""Queues of a simulated cluster in a manifest's numbers."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from model.queue import CellStanding, Queue, QueueStanding, QuotaCell
from view.simulated_queues import PARTS, number, queue_outs, queue_table, rounded

CPU, GPU, PODS = ("", "cpu"), ("", "nvidia.com/gpu"), ("", "pods")


def standing(name: str = "q", quota: QuotaCell | None = None, **cell: Any) -> QueueStanding:
    """A written queue with some CPU, in milli-CPU."""
    cell = {key: PARTS * amount for key, amount in cell.items()}
    if quota is not None and quota.lending_limit is not None:
        quota = replace(quota, lending_limit=PARTS * quota.lending_limit)
    queue = Queue(name, cells={CPU: quota} if quota else {}, source=f"Queue/{name}")
    return QueueStanding(queue, cells={CPU: CellStanding(**cell)}, dominant_share=1 / 3, weighted_share=0.5)


def test_numbers() -> None:
    """CPUs, not thousandths; whole ones are integers, others end at a millionth."""
    assert [number("cpu", 1500 * PARTS), number("cpu", 2000 * PARTS), number("memory", 5 * PARTS)] == [1.5, 2, 5]
    assert isinstance(number("cpu", 2000 * PARTS), int) and rounded(1 / 3) == 0.333333


def test_a_queue() -> None:
    """What is kept for those that wait for victims stands apart; what waits may be more than it may have."""
    cell = {"guaranteed": 1000, "nominal": 4000, "share": 6000, "used": 4500, "nominated": 500, "borrowed": 1000}
    (out,) = queue_outs([standing(**cell)], {"q": {CPU: 4000}})
    assert (out.guaranteed, out.nominal, out.fair_share) == ({"cpu": 1}, {"cpu": 4}, {"cpu": 6})
    assert (out.used, out.allocated, out.nominated) == ({"cpu": 4.5}, {"cpu": 4.5}, {"cpu": 0.5})
    assert (out.pending, out.borrowed) == ({"cpu": 4}, {"cpu": 1})
    assert (out.dominant_share, out.weighted_share) == (0.333333, 0.5)


@pytest.mark.parametrize(
    ("case", "quota", "cell", "proportion", "nominal", "lendable"),
    [
        ("half of it is idle", QuotaCell(), {"nominal": 4000, "used": 2000}, False, 4, 2),
        ("its guarantee stays", QuotaCell(3000), {"nominal": 4000, "guaranteed": 3000, "used": 1000}, False, 4, 1),
        ("a lending limit", QuotaCell(lending_limit=500), {"nominal": 4000, "used": 1000}, False, 4, 0.5),
        ("more is used than its own", QuotaCell(), {"nominal": 1000, "used": 2000}, False, 1, 0),
        ("its share where it says nothing", QuotaCell(), {"share": 3000, "used": 1000}, False, 3, 2),
        ("its share by weight alone", QuotaCell(), {"nominal": 4000, "share": 3000, "used": 1000}, True, 3, 2),
    ],
)
def test_what_is_lendable(
    case: str, quota: QuotaCell, cell: dict[str, int], proportion: bool, nominal: float, lendable: float
) -> None:
    """Of its own, without what it uses and what it never lends."""
    (out,) = queue_outs([standing("q", quota, **cell)], proportion=proportion)
    assert (out.nominal["cpu"], out.lendable["cpu"]) == (nominal, lendable), case


def test_which_queues_and_resources() -> None:
    """All tell the same resources; the root only where it lends, one that nobody wrote only with work."""
    root = QueueStanding(Queue(""), cells={CPU: CellStanding(lent=1000)})
    default = QueueStanding(Queue(), cells={CPU: CellStanding()})
    busy = QueueStanding(Queue("busy"), cells={GPU: CellStanding(used=1), PODS: CellStanding(used=1)}, running_jobs=1)
    found = queue_outs([root, default, standing(used=1), busy])
    assert [(out.name, list(out.used)) for out in found] == [
        ("", ["cpu", "nvidia.com/gpu"]),
        ("q", ["cpu", "nvidia.com/gpu"]),
        ("busy", ["cpu", "nvidia.com/gpu"]),
    ]
    assert [out.name for out in queue_outs([QueueStanding(Queue("")), default])] == []


def test_a_resource_of_a_flavour() -> None:
    """Both are its name."""
    queue = Queue("q", cells={("a100", "cpu"): QuotaCell(nominal=8)}, source="Queue/q")
    (out,) = queue_outs([QueueStanding(queue, cells={("a100", "cpu"): CellStanding(nominal=8)})])
    assert list(out.nominal) == ["a100/cpu"]


def test_the_table() -> None:
    """A row a resource; the root is the cluster."""
    (out,) = queue_outs([QueueStanding(Queue(""), cells={CPU: CellStanding(lent=1500 * PARTS)})])
    assert queue_table([out]).rows == (("(cluster)", "cpu", "0", "0", "0", "0", "0", "1.5", "0"),)
