"""The tree of queues as lines."""

from __future__ import annotations

from msgspec.structs import replace

from cli.top.queue_text import queues_text
from view.queue_rows import QueueCellRow, QueueRow

CPU = QueueCellRow("cpu", "", 4000, None, 8000, 6000, 5000, 0, 1000, 0, 9000, 3000)
GPU = replace(CPU, resource="nvidia.com/gpu", flavor="a100", guaranteed=1, fair_share=2, used=3, borrowed=1)
TRAIN = QueueRow("train", "ml", 1, "Open", 1, 2, 3, 1, 0.5, "cpu", "", (CPU, GPU))
ROWS = (QueueRow("ml", "", 0, "Hold", 1, 2, 3, 1, 0.5, "cpu", "", ()), TRAIN)


def test_queues() -> None:
    """Those below a queue are indented; a line a resource, the first with what is said of the queue as a whole."""
    assert queues_text(ROWS).splitlines() == [
        "QUEUE    STATE  RESOURCE                GUARANTEED  FAIR SHARE  USED  BORROWED  LENT  PENDING  RUNNING",
        "ml       Hold   -                                -           -     -         -     -        2        3",
        "  train  Open   cpu                              4           6     5         1     0        2        3",
        "                nvidia.com/gpu of a100           1           2     3         1     0",
    ]


def test_a_low_screen() -> None:
    """What does not fit is counted."""
    assert queues_text(ROWS, 4).splitlines()[-1] == "… and 1 more lines"


def test_a_queue_that_cannot_be_used() -> None:
    """It is told in the place of its state."""
    assert "Invalid" in queues_text([replace(TRAIN, problem="no parent")])
