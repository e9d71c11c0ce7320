"""Queues and jobs come over as they were told."""

from __future__ import annotations

import pytest

from model.decision import Decision, Term, Unit
from model.estimates.start_estimate import EstimateBasis, ExpectedEnd, StartEstimate
from model.fault import PeerFault
from model.queue import (
    CellStanding,
    JobAccount,
    JobProgress,
    Loan,
    ProgressEvent,
    Queue,
    QueueAccount,
    QueueAdmission,
    QueuedJob,
    QueueOrder,
    QueuePreemption,
    QueueStanding,
    QueueState,
    QuotaCell,
    QuotaShortage,
)
from model.reason import Reason
from wire import queue_codec
from wire.v1 import scheduler_pb2

GPU = ("a100", "nvidia.com/gpu")
CPU = ("", "cpu")
MEMORY = ("", "memory")
TRAIN = QueueStanding(
    queue=Queue(
        "train",
        "ml",
        7 << 33,
        {GPU: QuotaCell(4, 8, 16, 2, 0, 3)},
        QueueState.HOLD,
        QueueOrder.STRICT_FIFO,
        ("web",),
        QueuePreemption(False, ("boss",), 30.0),
        QueueAdmission(0, 8, -5, 100, ("team-a",)),
        "Queue/train",
    ),
    children=("a", "b"),
    cells={
        GPU: CellStanding(4, 8, 16, 9, 8, 5, 1, 20, 0, 3, 11),
        CPU: CellStanding(share=10, used=3, headroom=-2),
        MEMORY: CellStanding(headroom=None),
    },
    dominant_share=0.5,
    dominant_resource="nvidia.com/gpu",
    weighted_share=0.25,
    pending_jobs=2,
    running_jobs=3,
    position=1,
    problem="none",
)
JOB = QueuedJob("gang/ml/train", "train", 2, "quota", "QuotaExhausted", "waits", {"cpu": 5}, {"cpu": 1})
PROGRESS = JobProgress(
    "TrainingJob",
    "Running",
    "Why",
    "because",
    1.5,
    1.0,
    1.25,
    2.0,
    1,
    (1 << 31) - 1,
    4,
    {"worker": {"running": 2}, "none": {}},
    ("n1",),
    (ProgressEvent("Restarted", "pod failed", 1.5, True),),
)
DECISION = Decision("gang/ml/train", "feasible nodes", 1, Unit.NODES, Reason.UNSCHEDULABLE, (Term("total nodes", 1),))


def test_an_estimate_of_another_version() -> None:
    """A basis that is not known."""
    message = queue_codec.start_to_wire(StartEstimate())
    message.basis = "stars"
    with pytest.raises(PeerFault, match="'stars' is not a valid EstimateBasis"):
        queue_codec.start_from_wire(message)


@pytest.mark.parametrize("standing", [TRAIN, QueueStanding(Queue())])
def test_a_queue(standing: QueueStanding) -> None:
    """What is not said stays apart from 0, and every rule comes over."""
    sent = queue_codec.standing_to_wire(standing).SerializeToString()
    assert queue_codec.standing_from_wire(scheduler_pb2.Queue.FromString(sent)) == standing


def test_the_share_of_older_clients() -> None:
    """Field `dominant_share` stays the share by weight."""
    message = queue_codec.standing_to_wire(TRAIN)
    assert (message.dominant_share, message.unweighted_share) == (0.25, 0.5)


def test_a_state_of_another_version() -> None:
    """The peer is told to run the same."""
    message = queue_codec.standing_to_wire(TRAIN)
    message.state = "Draining"
    with pytest.raises(PeerFault, match="Queue train: 'Draining' is not a valid QueueState"):
        queue_codec.standing_from_wire(message)


def test_an_amount_beyond_64_bits() -> None:
    """It counts as the largest there is."""
    huge = QueueStanding(Queue(), cells={CPU: CellStanding(share=1 << 70, headroom=-(1 << 70))})
    (cell,) = queue_codec.standing_to_wire(huge).cells
    assert (cell.fair_share, cell.headroom) == ((1 << 63) - 1, 1 - (1 << 63))


def test_a_queue_with_its_loans_and_jobs() -> None:
    """Each with all that is told of it."""
    account = QueueAccount(TRAIN, (Loan("train", "web", GPU, 3),), (JOB,), 9)
    sent = queue_codec.queue_to_wire(account).SerializeToString()
    assert queue_codec.queue_from_wire(scheduler_pb2.ExplainQueueResponse.FromString(sent)) == account


@pytest.mark.parametrize(
    "account",
    [
        JobAccount(
            "ml",
            "train",
            JOB,
            ("train", "ml"),
            4,
            1,
            3,
            "m",
            "n1",
            DECISION,
            DECISION,
            (QuotaShortage(GPU, "ml", "maximum", 8, -1),),
            (JOB,),
            12,
            PROGRESS,
            StartEstimate(
                2.0,
                1.0,
                3.0,
                EstimateBasis.HISTORY,
                (ExpectedEnd("pod/ml/a", 2.0, EstimateBasis.HISTORY, 9, "queue ml"),),
                made_seconds=0.5,
            ),
            84.5,
            1e9,
            2e9,
        ),
        JobAccount("ml", "train", JOB, start=StartEstimate(why="nothing tells", made_seconds=1.0)),
        JobAccount("ml", "train", QueuedJob("pod/ml/train", "default")),
    ],
)
def test_a_job(account: JobAccount) -> None:
    """A decision that is not known stays absent."""
    sent = queue_codec.job_to_wire(account).SerializeToString()
    assert queue_codec.job_from_wire(scheduler_pb2.ExplainJobResponse.FromString(sent)) == account


def test_a_group_that_needs_more_than_32_bits_count() -> None:
    """Each of its gangs may have a minimum of nearly as many, whose sum is still told."""
    account = JobAccount("ml", "train", JOB, needed=64 << 31)
    sent = queue_codec.job_to_wire(account).SerializeToString()
    assert queue_codec.job_from_wire(scheduler_pb2.ExplainJobResponse.FromString(sent)).needed == (1 << 31) - 1
