"""Rules for whole workloads as the cycle asks them: who came first, what runs, how many GPUs."""

from __future__ import annotations

from typing import Any

import pytest
from scheduler_builders import candidate, gang, in_group, pod

from model.pod.status import PodPhase
from model.queue import Queue, QueueAdmission, QueueState
from model.reason import Reason
from scheduler.core.gangs.assembly import Candidate
from scheduler.core.ledger.charge import charge_of
from scheduler.core.ledger.queue_book import QueueBook
from scheduler.core.queues.shares import ShareRules
from scheduler.core.queues.tree import tree_of
from scheduler.core.queues.turn_quota import TurnQuota
from scheduler.steps.job_rules import JobRules, ruleless

GPU = "nvidia.com/gpu"


def waits(name: str, queue: str = "team", created: float = 0.0, **more: Any) -> Candidate:
    return candidate([pod(name, queue=queue, created_seconds=created, **more)])


def rules(
    waiting: list[Candidate], *queues: Queue, running: tuple[str, ...] = (), admission: QueueAdmission | None = None
) -> JobRules:
    tree = tree_of(queues or (Queue("team", admission=admission or QueueAdmission()),))
    book = QueueBook(TurnQuota(tree, ShareRules()))
    charges = [charge_of(pod(name, node_name="n1", queue="team", phase=PodPhase.RUNNING)) for name in running]
    for charge in charges:
        if charge is not None:
            book.came("team", [charge])
    return JobRules(tree, book, waiting)


def test_the_oldest_get_the_places() -> None:
    """Of three places one is taken by a job that runs, and two go to those who came first."""
    line = [waits("late", created=3.0), waits("early", created=1.0), waits("middle", created=2.0)]
    asked = rules(line, running=("r",), admission=QueueAdmission(max_jobs=3))
    refused = {each.workload.key: asked.refused(each) for each in line}
    assert {key for key, found in refused.items() if found} == {"default/late"}
    found = refused["default/late"]
    assert found is not None and found.reason is Reason.QUEUE_FULL
    assert found.message == 'queue "team" has 3 jobs that wait or run, and may have 3'


def test_a_job_that_runs_has_its_place() -> None:
    """More members of a gang that runs in part are no other job."""
    members = [pod(f"w{i}", queue="team", gang=in_group()) for i in range(2)]
    group = candidate(members, gang(1))
    tree = tree_of([Queue("team", admission=QueueAdmission(max_jobs=1))])
    book = QueueBook(TurnQuota(tree, ShareRules()))
    own = charge_of(pod("w9", node_name="n1", queue="team", gang=in_group(), phase=PodPhase.RUNNING))
    assert own is not None
    book.came("team", [own])
    assert JobRules(tree, book, [group]).refused(group) is None


def test_jobs_of_all_queues_below_count() -> None:
    """Two places of the company, whichever team has them."""
    company = Queue("company", admission=QueueAdmission(max_jobs=2))
    teams = [Queue("team", parent="company"), Queue("other", parent="company")]
    line = [waits("a", created=1.0), waits("b", "other", 2.0), waits("c", created=3.0)]
    asked = rules(line, company, *teams)
    assert [asked.refused(each) is None for each in line] == [True, True, False]


@pytest.mark.parametrize(
    ("admission", "reason"),
    [
        (QueueAdmission(max_gpus_per_job=15), Reason.QUEUE_REFUSES_JOB),
        (QueueAdmission(max_gpus_per_job=16), None),
        (QueueAdmission(min_priority=6), Reason.QUEUE_REFUSES_JOB),
        (QueueAdmission(max_priority=5), None),
        (QueueAdmission(namespaces=("ml",)), Reason.QUEUE_REFUSES_JOB),
    ],
)
def test_one_job(admission: QueueAdmission, reason: Reason | None) -> None:
    """A gang of two pods with 8 GPUs each, of priority 5, in namespace default."""
    members = [pod(f"w{i}", queue="team", requests={GPU: 8}, priority=5, gang=in_group()) for i in range(2)]
    found = rules([], admission=admission).refused(candidate(members, gang(2)))
    assert (found.reason if found else None) is reason


def test_queues_without_rules() -> None:
    """Open leaves below open queues, without a word of admission anywhere on the path."""
    queues = [
        Queue("company", admission=QueueAdmission(max_jobs=2)),
        Queue("team", parent="company"),
        Queue("closed", state=QueueState.CLOSED),
        Queue("plain"),
        Queue("lost", parent="nowhere"),
    ]
    assert ruleless(tree_of(queues)) == {"plain", "default"}
