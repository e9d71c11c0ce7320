"""What is remembered of one workload holds for others like it, and only as long as nothing else decides."""

from __future__ import annotations

from typing import Any

import pytest
from filter_builders import HOST, apart, term
from scheduler_builders import candidate, gang, in_group, members, node, pod, snapshot

from model.priority import PreemptionPolicy
from model.reason import Reason
from scheduler.core.filters.fit import FitReport
from scheduler.core.gangs.assembly import Candidate
from scheduler.core.placement.attempt import Misfit
from scheduler.core.placement.working_snapshot import Assignment, Nominated, WorkingSnapshot
from scheduler.core.preemption.facts import NoPreemption
from scheduler.core.queueing.queue_refusal import QueueRefusal
from scheduler.core.snapshot.podclass import class_of
from scheduler.steps.memo import Lacking, Memo
from scheduler.steps.preempting import UNDER_WAY

MISFIT = Misfit(0, FitReport(1, 0))


def memo(*nominated: Nominated) -> Memo:
    return Memo(WorkingSnapshot(snapshot(node()), nominated))


def lone(name: str = "p", **more: Any) -> Candidate:
    return candidate([pod(name, **more)])


def train(number: int = 3, minimum: int = 3, name: str = "train", **more: Any) -> Candidate:
    return candidate(members(number, group=name, name=name, **more), gang(minimum, name))


LIKE: dict[str, tuple[Candidate, Candidate]] = {
    "two lone pods": (lone("a"), lone("b")),
    "two gangs": (train(name="x"), train(name="y")),
    "pods of another age": (lone("a", created_seconds=1.0), lone("b", created_seconds=2.0)),
}
UNLIKE: dict[str, tuple[Candidate, Candidate]] = {
    "requests": (lone("a"), lone("b", batch_cpu=7)),
    "priorities": (lone("a"), lone("b", priority=5)),
    "online and not": (lone("a"), lone("b", below_prod=True)),
    "who may preempt equals, and its age": (
        lone("a", preemption_policy=PreemptionPolicy.ALWAYS, created_seconds=1.0),
        lone("b", preemption_policy=PreemptionPolicy.ALWAYS, created_seconds=2.0),
    ),
    "numbers of members": (train(3), train(4)),
    "minimums": (train(4, 3), train(4, 4)),
    "a pod and a gang of one": (lone("a"), train(1, 1)),
}


@pytest.mark.parametrize(("one", "other"), LIKE.values(), ids=LIKE)
def test_like_ones_share_it(one: Candidate, other: Candidate) -> None:
    """Names do not matter."""
    known = memo()
    known.remember(one, MISFIT)
    assert known.misfit(other) is MISFIT


@pytest.mark.parametrize(("one", "other"), UNLIKE.values(), ids=UNLIKE)
def test_others_do_not(one: Candidate, other: Candidate) -> None:
    """What decides differs."""
    known = memo()
    known.remember(one, MISFIT)
    assert known.misfit(one) is MISFIT
    assert known.misfit(other) is None


def test_terms_about_pods_make_every_case_its_own() -> None:
    """Nothing is remembered of it."""
    known, shy = memo(), lone(affinity=apart(term(HOST, app="a")))
    known.remember(shy, MISFIT)
    assert known.misfit(shy) is None


def test_room_kept_for_it_makes_it_another_case() -> None:
    """One like it fails, for which none is kept."""
    kept, other = lone("a"), lone("b")
    held = Nominated(kept.subject, 0, (Assignment("uid-a", 0, class_of(pod("a"))),))
    known = memo(held)
    known.remember(other, MISFIT)
    assert known.misfit(other) is MISFIT
    assert known.misfit(kept) is None


def test_a_gang_that_has_members_already_is_its_own_case() -> None:
    """Where they are may decide."""
    pods = [*members(2), pod("there", gang=in_group(), node_name="n1", scheduled_seconds=1.0)]
    known, partial = memo(), candidate(pods, gang(3))
    known.remember(partial, MISFIT)
    assert known.misfit(partial) is None


def test_refusals_are_remembered_unless_something_is_under_way() -> None:
    """Who waits for a plan that is carried out is asked again."""
    known, one = memo(), lone("a")
    for reason in UNDER_WAY:
        known.remember(one, NoPreemption(reason))
        assert known.refusal(one) is None
    lasting = NoPreemption(next(reason for reason in Reason if reason not in UNDER_WAY))
    known.remember(one, lasting)
    assert known.refusal(lone("b")) is lasting


def test_a_message_counts_once_both_are_known() -> None:
    """That it does not fit and that no pod is evicted for it; of lone pods alone."""
    known, lasting = memo(), NoPreemption(next(reason for reason in Reason if reason not in UNDER_WAY))
    one, both = lone("a"), train()
    known.remember_message(one, "early")
    assert known.message_for(one) == ""
    known.remember(one, MISFIT)
    known.remember_message(one, "still early")
    assert known.message_for(one) == ""
    known.remember(one, lasting)
    known.remember_message(one, "0/1 nodes")
    assert known.message_for(lone("b")) == "0/1 nodes"
    known.remember(both, MISFIT)
    known.remember(both, lasting)
    known.remember_message(both, "gang")
    assert known.message_for(both) == ""


def test_room_that_is_given_up_ends_it_all() -> None:
    """What did not fit may fit now."""
    known, one = memo(), lone("a")
    lasting = NoPreemption(next(reason for reason in Reason if reason not in UNDER_WAY))
    known.remember(one, MISFIT)
    known.remember(one, lasting)
    known.remember_message(one, "0/1 nodes")
    known.forget()
    assert (known.misfit(one), known.refusal(one), known.message_for(one)) == (None, None, "")


NO_MORE = QueueRefusal(Reason.QUOTA_EXHAUSTED, "no more")
LACKING = Lacking(NO_MORE, None, "told", NO_MORE.need)


def test_a_queue_without_quota_refuses_others_alike() -> None:
    """Lone pods of the same LocalQueue, until room is given up."""
    known = memo()
    known.remember_lacking(lone("a"), "team", LACKING)
    assert known.lacking(lone("b"), "team") is LACKING
    assert known.lacking(lone("b"), "other") is None and known.lacking(lone("b", batch_cpu=7), "team") is None
    known.forget()
    assert known.lacking(lone("b"), "team") is None


@pytest.mark.parametrize(
    ("asker", "refusal"),
    [
        (train(), NO_MORE),
        (lone(), QueueRefusal(Reason.QUEUE_ORDER, "behind another")),
        (lone(), QueueRefusal(Reason.QUEUE_HELD, "on hold")),
    ],
)
def test_other_refusals_are_found_out_each_time(asker: Candidate, refusal: QueueRefusal) -> None:
    """Where more than amounts decides."""
    known = memo()
    known.remember_lacking(asker, "team", Lacking(refusal, None, "told", refusal.need))
    assert known.lacking(asker, "team") is None
