"""Rules for whole workloads."""

from __future__ import annotations

import pytest
from queue_builders import queue

from model.queue import Queue, QueueAdmission, QueueState
from model.reason import Reason
from scheduler.core.queues.admission_rules import JobFacts, Refusal, Replicas, counts_to, gpus_of, is_gpu, refusal
from scheduler.core.queues.tree import tree_of

JOB = JobFacts("team", priority=100, gpus=16)
HUGE = 2**31


def q(name: str = "a", parent: str = "", **rules: object) -> Queue:
    return queue(name, parent, admission=QueueAdmission(**rules))  # type: ignore[arg-type]


CASES: dict[str, tuple[tuple[Queue, ...], dict[str, int], Refusal | None]] = {
    "no rule": ((q(),), {"a": 10_000}, None),
    "as many GPUs as it may have": ((q(max_gpus_per_job=16),), {}, None),
    "too many GPUs": (
        (q(max_gpus_per_job=15),),
        {},
        Refusal(Reason.QUEUE_REFUSES_JOB, "a", 'queue "a" takes at most 15 GPUs a job, and the job asks for 16'),
    ),
    "no GPUs at all": (
        (q(max_gpus_per_job=0),),
        {},
        Refusal(Reason.QUEUE_REFUSES_JOB, "a", 'queue "a" takes at most 0 GPUs a job, and the job asks for 16'),
    ),
    "both ends of the range are in it": ((q(min_priority=100, max_priority=100),), {}, None),
    "below the range": (
        (q(min_priority=101, max_priority=200),),
        {},
        Refusal(Reason.QUEUE_REFUSES_JOB, "a", 'queue "a" takes priorities from 101 to 200, and the job\'s is 100'),
    ),
    "above the range": (
        (q(max_priority=99),),
        {},
        Refusal(Reason.QUEUE_REFUSES_JOB, "a", 'queue "a" takes priorities up to 99, and the job\'s is 100'),
    ),
    "no upper end": (
        (q(min_priority=101),),
        {},
        Refusal(Reason.QUEUE_REFUSES_JOB, "a", 'queue "a" takes priorities from 101, and the job\'s is 100'),
    ),
    "one job less": ((q(max_jobs=3),), {"a": 2}, None),
    "full": (
        (q(max_jobs=3),),
        {"a": 3},
        Refusal(Reason.QUEUE_FULL, "a", 'queue "a" has 3 jobs that wait or run, and may have 3'),
    ),
    "the parent is full": (
        (q("org", max_jobs=3), q("a", "org", max_jobs=3), q("b", "org")),
        {"a": 1, "b": 2, "org": 3},
        Refusal(Reason.QUEUE_FULL, "org", 'queue "org" has 3 jobs that wait or run, and may have 3'),
    ),
    "the parent refuses before its child is full": (
        (q("org", max_gpus_per_job=8), q("a", "org", max_jobs=0)),
        {},
        Refusal(Reason.QUEUE_REFUSES_JOB, "org", 'queue "org" takes at most 8 GPUs a job, and the job asks for 16'),
    ),
    "its namespace": ((q(namespaces=("other", "team")),), {}, None),
    "not its namespace": (
        (q(namespaces=("other", "third")),),
        {},
        Refusal(Reason.QUEUE_REFUSES_JOB, "a", 'queue "a" is for namespaces other, third, and the job is in team'),
    ),
    "missing": ((q("b"),), {}, Refusal(Reason.QUEUE_NOT_FOUND, "a", 'queue "a" does not exist')),
    "inner": (
        (q(), q("c", "a"), q("b", "a")),
        {},
        Refusal(Reason.QUEUE_HAS_CHILDREN, "a", 'queue "a" has queues below it (b, c); name one of these'),
    ),
    "closed": (
        (queue("a", state=QueueState.CLOSED),),
        {},
        Refusal(Reason.QUEUE_CLOSED, "a", 'queue "a" is closed: it takes no work'),
    ),
    "below a queue on hold": (
        (queue("org", state=QueueState.HOLD), q("a", "org")),
        {},
        Refusal(Reason.QUEUE_HELD, "org", 'queue "org" is on hold: what waits there is not placed'),
    ),
    "below a broken queue": (
        (q("org", "nowhere"), q("a", "org")),
        {},
        Refusal(
            Reason.QUEUE_INVALID,
            "org",
            'queue "org": its parent "nowhere" does not exist; create it, or name another in spec.parent',
        ),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_stands_against_a_job(name: str) -> None:
    """Every rule of every queue on the path, with its numbers."""
    queues, jobs, expected = CASES[name]
    assert refusal(tree_of(queues), "a", JOB, jobs) == expected


TERMINAL = {
    Reason.QUEUE_REFUSES_JOB: True,
    Reason.QUEUE_FULL: False,
    Reason.QUEUE_HELD: False,
    Reason.QUEUE_CLOSED: False,
}


@pytest.mark.parametrize("reason", TERMINAL)
def test_what_waits_is_told_apart_from_what_never_comes(reason: Reason) -> None:
    assert Refusal(reason, "a", "").terminal is TERMINAL[reason]


GPUS: dict[str, tuple[list[Replicas], int]] = {
    "none": ([Replicas({"cpu": 4000}, 10)], 0),
    "the most there may be": ([Replicas({"nvidia.com/gpu": 8}, 2, 4)], 32),
    "no most": ([Replicas({"nvidia.com/gpu": 8}, 2, 0)], 16),
    "a most below the least": ([Replicas({"nvidia.com/gpu": 8}, 3, 2)], 24),
    "several shapes": ([Replicas({"nvidia.com/gpu": 8}), Replicas({"amd.com/gpu": 4, "cpu": 1}, 3)], 20),
    "beyond 32 bits": ([Replicas({"nvidia.com/gpu": 8}, 1, HUGE)], 8 * HUGE),
}


@pytest.mark.parametrize("name", GPUS)
def test_gpus_of_a_job(name: str) -> None:
    """With as many replicas as it may come to have (S58)."""
    shapes, expected = GPUS[name]
    assert gpus_of(shapes) == expected


COUNTED = {
    "nvidia.com/gpu": True,
    "amd.com/gpu": True,
    "nvidia.com/gpu.shared": True,
    "nvidia.com/mig-1g.5gb": True,
    "cpu": False,
    "example.com/gpu-memory": False,
    "nvidia.com/gpumem": False,
}


@pytest.mark.parametrize("resource", COUNTED)
def test_which_resources_are_gpus(resource: str) -> None:
    assert is_gpu(resource) is COUNTED[resource]


def only(*namespaces: str) -> QueueAdmission:
    return QueueAdmission(namespaces=namespaces)


COMPANY = tree_of(
    [
        Queue("company", admission=only("one", "two", "three")),
        Queue("open", parent="company"),
        Queue("team", parent="company", admission=only("one", "other")),
        Queue("free"),
        Queue("inner"),
        Queue("below", parent="inner", admission=only("one")),
        Queue("lost", parent="none", admission=only("one")),
    ]
)


@pytest.mark.parametrize(
    ("queue", "namespaces"),
    [
        pytest.param("free", {"one", "two", "other"}, id="no rule"),
        pytest.param("open", {"one", "two"}, id="the rule of one above"),
        pytest.param("team", {"one"}, id="two rules"),
        pytest.param("company", {"one"}, id="rules of those below, too"),
        pytest.param("inner", {"one"}, id="rules of those below alone"),
        pytest.param("lost", {"one"}, id="a queue that is invalid"),
        pytest.param("unknown", {"one", "two", "other"}, id="a queue that nobody wrote"),
        pytest.param("default", {"one", "two", "other"}, id="the default queue"),
    ],
)
def test_whose_pods_count_to_a_queue(queue: str, namespaces: set[str]) -> None:
    """Those of namespaces that all rules on the path, and of an inner queue below it, name."""
    assert {each for each in ("one", "two", "other") if counts_to(COMPANY, queue, each)} == namespaces
