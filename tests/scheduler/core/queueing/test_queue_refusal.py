"""What a queue's refusal says, what it weighs, and what ends it."""

from __future__ import annotations

import pytest
from scheduler_builders import candidate, gang, in_group, pod

from model.decision import Unit
from model.reason import Reason
from model.resources import BATCH_CPU
from scheduler.core.queueing.news import News, NewsKind, freed
from scheduler.core.queueing.queue_refusal import QueueRefusal, amounts_of, lacking, unit_of, verdict
from scheduler.core.queues.headroom import BORROWING_LIMIT, CAPACITY, GUARANTEES_OF_OTHERS, LENDERS, MAXIMUM, Shortage

CPU = ("", "cpu")


def short(bound: str, node: str = "team", cell: tuple[str, str] = CPU, asked: int = 4000, room: int = 1500) -> Shortage:
    return Shortage(cell, node, bound, asked, room)


SENTENCES = {
    MAXIMUM: 'that is the maximum of queue "team"',
    BORROWING_LIMIT: 'that is the borrowing limit of queue "team"',
    LENDERS: 'that is what there is to borrow from the lenders of queue "team"',
    GUARANTEES_OF_OTHERS: "the rest is kept for other queues",
    CAPACITY: "that is what the cluster has for queues",
}


@pytest.mark.parametrize("bound", SENTENCES)
def test_the_bound_has_its_sentence(bound: str) -> None:
    """With amounts as a manifest has them."""
    found = lacking("job", (short(bound),))
    assert found.reason is Reason.QUOTA_EXHAUSTED
    assert found.detail == f'queue "job" may have 1500m more of cpu now, and 4 is asked for: {SENTENCES[bound]}'


def test_what_can_never_be() -> None:
    """And other resources that are short, too; room that is negative after a cut is told as none."""
    memory = short(MAXIMUM, cell=("", "memory"), asked=1 << 30, room=-5)
    found = lacking("job", (memory, short(MAXIMUM)), ever=True)
    assert found.reason is Reason.QUOTA_TOO_SMALL
    assert found.detail == (
        'queue "job" can never have 1Gi of memory, only 0: that is the maximum of queue "team"; nor is there enough cpu'
    )


def test_the_verdict_weighs_what_is_short() -> None:
    """Terms sum to the room there is, in the resource's unit; what came of preemption comes last."""
    found = verdict(candidate([pod("a")]), lacking("job", (short(MAXIMUM),)), 7.0, "preemption: it would not fit.")
    decision = found.decision
    assert (decision.value, decision.unit, decision.reason) == (1500, Unit.MILLI_CPU, Reason.QUOTA_EXHAUSTED)
    assert [(term.name, term.value) for term in decision.terms] == [("cpu asked for", 4000), ("lacking", -2500)]
    assert found.message.endswith('of queue "team". preemption: it would not fit.')
    plain = verdict(candidate([pod("a")]), QueueRefusal(Reason.QUEUE_CLOSED, "closed"), 7.0)
    assert (plain.decision.value, plain.decision.terms, plain.message) == (0, (), "closed")


def test_all_members_count() -> None:
    """Of a gang what all its waiting pods ask for together."""
    members = [pod(f"w{i}", batch_cpu=300, gang=in_group()) for i in range(3)]
    assert amounts_of(candidate(members, gang(3))) == {("", BATCH_CPU): 900, ("", "pods"): 3}


@pytest.mark.parametrize(
    ("reason", "news", "served"),
    [
        (Reason.QUOTA_EXHAUSTED, freed(["cpu"]), True),
        (Reason.QUOTA_EXHAUSTED, freed(["memory"]), False),
        (Reason.QUOTA_EXHAUSTED, News(NewsKind.NODE_ADDED), True),
        (Reason.QUEUE_CLOSED, News(NewsKind.QUEUES), True),
        (Reason.QUEUE_CLOSED, News(NewsKind.PODS), False),
        (Reason.QUEUE_FULL, News(NewsKind.PODS), True),
        (Reason.QUEUE_ORDER, News(NewsKind.PLACED), True),
        (Reason.QUEUE_ORDER, News(NewsKind.JOBS), True),
        (Reason.QUOTA_EXHAUSTED, News(NewsKind.JOBS), False),
    ],
)
def test_what_ends_it(reason: Reason, news: News, served: bool) -> None:
    """News of what is short, of queues, or of jobs."""
    assert QueueRefusal(reason, "", (short(MAXIMUM),)).need.served_by(news) is served


@pytest.mark.parametrize(
    ("resource", "unit"),
    [("cpu", Unit.MILLI_CPU), ("memory", Unit.BYTES), (BATCH_CPU, Unit.NUMBER), ("hugepages-2Mi", Unit.BYTES)],
)
def test_units(resource: str, unit: Unit) -> None:
    """Batch CPU is counted in thousandths, and told as written."""
    assert unit_of(("", resource)) is unit
