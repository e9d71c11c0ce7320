"""What a person reads of a queue and of a job."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from cli.explain.queue_text import job_text, queue_text, shortage_text, waiting_text
from model.decision import Decision, Unit
from model.estimates.start_estimate import EstimateBasis, ExpectedEnd, StartEstimate
from model.queue import (
    CellStanding,
    JobAccount,
    JobProgress,
    Loan,
    Queue,
    QueueAccount,
    QueueAdmission,
    QueuedJob,
    QueuePreemption,
    QueueStanding,
    QuotaCell,
    QuotaShortage,
)
from model.reason import Reason

AT = 1_800_000_000.0
GPU = ("", "nvidia.com/gpu")
QUEUE = Queue("train", "ml", 10, {GPU: QuotaCell(4, None, 16)}, source="Queue/train")
STANDING = QueueStanding(
    QUEUE,
    cells={GPU: CellStanding(4, None, 16, 8, 8, 12, 0, 20, 4, 0, None)},
    dominant_share=0.5,
    dominant_resource="nvidia.com/gpu",
    weighted_share=0.05,
    running_jobs=3,
    position=2,
)
WAITS = QueuedJob(
    "gang/ml/big", "train", 1, "quota", "QuotaExhausted", "no more than 4 more", {"nvidia.com/gpu": 8}, {}
)
SHORT = QuotaShortage(GPU, "ml", "maximum", 8, 4)


def test_a_queue() -> None:
    """What it may have and has, its loans, its rules, and who waits in it and why."""
    loans = (Loan("web", "train", GPU, 3), Loan("", "train", GPU, 1), Loan("train", "batch", ("a100", "cpu"), 1500))
    assert queue_text(QueueAccount(STANDING, loans, (WAITS,), 2)).splitlines() == [
        "queue train  Open, weight 10, below ml  (Queue/train)",
        "  number 2 in the order in which queues were served last",
        "  dominant share 50.0% of the cluster's nvidia.com/gpu, 5.0% by weight",
        "",
        "resource        guaranteed  nominal  maximum  fair share  used  nominated  borrowed  lent  headroom",
        "nvidia.com/gpu           4        -       16           8    12          0         4     0         -",
        "",
        "borrows 3 nvidia.com/gpu from web",
        "borrows 1 nvidia.com/gpu from what is nobody's own",
        "lends 1500m cpu of a100 to batch",
        "",
        "rule: order Backfill",
        "",
        "2 jobs waiting, 3 running",
        "  1. gang/ml/big  asks 8 nvidia.com/gpu",
        "    waits in stage quota: QuotaExhausted, its queue may have no more at this moment",
        "    no more than 4 more",
        "  … and 1 more",
    ]


@pytest.mark.parametrize(
    ("standing", "told"),
    [
        (QueueStanding(Queue()), "queue default  Open, weight 1  (nobody wrote it)"),
        (QueueStanding(Queue()), "it has no quota and uses nothing"),
        (replace(STANDING, problem="its parent is missing"), "  its parent is missing"),
        (replace(STANDING, children=("a", "b")), "  takes no work itself: above a, b"),
        (QueueStanding(Queue(lenders=("a", "b"))), "rule: borrows from a, b alone"),
        (
            QueueStanding(Queue(preemption=QueuePreemption(False))),
            "rule: what it borrowed is not taken back by eviction",
        ),
        (
            QueueStanding(Queue(preemption=QueuePreemption(True, ("boss",), 30.0))),
            "rule: only boss may take back what it borrowed",
        ),
        (QueueStanding(Queue(preemption=QueuePreemption(grace_seconds=30.0))), "rule: its victims have 30 s to end"),
        (QueueStanding(Queue(admission=QueueAdmission(5))), "rule: at most 5 jobs, waiting and running"),
        (QueueStanding(Queue(admission=QueueAdmission(None, 8))), "rule: at most 8 GPUs a job"),
        (QueueStanding(Queue(admission=QueueAdmission(max_priority=9))), "rule: priority - to 9"),
        (QueueStanding(Queue(admission=QueueAdmission(namespaces=("x", "y")))), "rule: only for namespaces x, y"),
    ],
)
def test_what_a_queue_says(standing: QueueStanding, told: str) -> None:
    """A line each."""
    assert told in queue_text(QueueAccount(standing)).splitlines()


def test_a_job_that_waits() -> None:
    """The stage with its quantities, and who is ahead with what they hold."""
    ahead = QueuedJob("pod/web/a", "web", 1, asked={"cpu": 500}, held={"cpu": 1000})
    decision = Decision("gang/ml/big", "queue quota", 0, Unit.NUMBER, Reason.QUOTA_EXHAUSTED, (), at_seconds=AT - 5)
    job = replace(WAITS, position=3, held={"nvidia.com/gpu": 2})
    account = JobAccount(
        "ml", "big", job, ("train", "ml"), 4, 1, 4, "m", "node n1: 2 cpu more", decision, None, (SHORT,), (ahead,), 2
    )
    assert job_text(account, AT).splitlines()[:14] == [
        "gang/ml/big  1 of 4 members have a node, 4 needed at once",
        "  queue train below ml",
        "  number 3 in the order, behind 2 jobs",
        "  asks 8 nvidia.com/gpu; holds 2 nvidia.com/gpu",
        "  waits in stage quota: QuotaExhausted, its queue may have no more at this moment",
        "  no more than 4 more",
        "    nvidia.com/gpu: asks 8, queue ml has room for 4 (maximum)",
        "  m",
        "  nearest fit: node n1: 2 cpu more",
        "",
        "ahead of it",
        "  1. pod/web/a  in queue web, asks 500m cpu, holds 1 cpu",
        "  … and 1 more",
        "",
    ]


def test_when_a_job_is_expected_to_start() -> None:
    """With its range and what ends before; else why that is not known."""
    end = ExpectedEnd("gang/ml/other", AT + 600, EstimateBasis.DEADLINE)
    found = StartEstimate(AT + 600, AT + 300, AT + 900, EstimateBasis.DEADLINE, (end,), made_seconds=AT)
    lines = job_text(JobAccount("ml", "big", WAITS, start=found), AT).splitlines()
    assert lines[-3:] == [
        "  expected to start about 2027-01-15 08:10 UTC, after gang/ml/other ends (by its deadline)",
        "    between 2027-01-15 08:05 UTC and 2027-01-15 08:15 UTC",
        "    gang/ml/other ends about 2027-01-15 08:10 UTC, by its deadline",
    ]
    unknown = JobAccount("ml", "big", WAITS, start=StartEstimate(why="nothing tells"))
    assert "  start not known: nothing tells" in job_text(unknown, AT).splitlines()


def test_a_job_that_runs() -> None:
    """Neither a place nor a stage; its decision stands below."""
    job = QueuedJob("pod/ml/p", "train", 0, "placed", "Scheduled", "1 of 1 waiting pods to n1")
    told = job_text(JobAccount("ml", "p", job, ("train",), 1, 1), AT)
    assert told.splitlines() == [
        "pod/ml/p  1 of 1 member have a node, 0 needed at once",
        "  queue train",
        "  1 of 1 waiting pods to n1",
    ]


def test_a_job_that_no_queue_governs() -> None:
    """It says why; so does one ahead of another."""
    told = job_text(JobAccount("ml", "p", QueuedJob("pod/ml/p", "")), AT)
    assert "  in no queue: online work that names none is governed by none" in told.splitlines()
    ahead = (QueuedJob("pod/web/a", "", 1),)
    told = job_text(JobAccount("ml", "p", WAITS, ("train",), ahead=ahead, ahead_count=1), AT)
    assert "  1. pod/web/a  in no queue, asks nothing, holds nothing" in told.splitlines()


def test_a_job_before_its_first_decision() -> None:
    """It says so."""
    assert "  not decided on yet" in job_text(JobAccount("ml", "p", QueuedJob("pod/ml/p", "train", 1)), AT).splitlines()


def test_a_reason_of_another_version() -> None:
    """Its code is told all the same."""
    told = job_text(JobAccount("ml", "p", replace(WAITS, reason="Cosmic")), AT)
    assert "waits in stage quota: Cosmic, decided by a program of another version" in told


@pytest.mark.parametrize(
    ("shortage", "told"),
    [
        (SHORT, "nvidia.com/gpu: asks 8, queue ml has room for 4 (maximum)"),
        (
            QuotaShortage(("a100", "cpu"), "", "capacity", 1500, -500),
            "cpu of a100: asks 1500m, the cluster has room for 0 (capacity), 500m too much is in use",
        ),
    ],
)
def test_a_shortage(shortage: QuotaShortage, told: str) -> None:
    """What is asked and what is left; more in use than may be is told as such."""
    assert shortage_text(shortage) == told


@pytest.mark.parametrize(
    ("queue", "stage", "told"),
    [
        ("train", "quota", ["queue train, waits in stage quota"]),
        ("train", "placed", ["queue train"]),
        ("train", "", ["queue train"]),
        ("", "", []),
    ],
)
def test_of_a_pod(queue: str, stage: str, told: list[str]) -> None:
    """An older scheduler says nothing about queues."""
    assert list(waiting_text(queue, stage, ())) == told


def test_work_that_is_saved_and_lost() -> None:
    """And how long pods that were told that they go may stay."""
    job = QueuedJob("pod/ml/p", "train", 0, "placed", "Scheduled", "1 of 1 waiting pods to n1")
    account = JobAccount("ml", "p", job, ("train",), 1, 1)
    account = replace(account, lost_seconds=84.2, saved_seconds=AT - 12.0, told_until_seconds=AT + 25.0)
    assert job_text(account, AT).splitlines()[-3:] == [
        "  told that it goes: within 25 s, earlier once all have saved",
        "  saved: the state of 12 s ago",
        "  lost by evictions: 84 s of work, all pods together",
    ]
    over = replace(account, told_until_seconds=AT - 1.0, members=0, progress=JobProgress("TrainingJob", "Queued"))
    assert "told that it goes" not in job_text(over, AT) and "84 s of work" in job_text(over, AT)
