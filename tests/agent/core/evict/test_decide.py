"""Evictions tick after tick: needs, orders, what is credited, rests, notices, urgency, restarts."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.core.evict.decide import EvictionFacts, EvictionMemory, decide_evictions
from agent.core.evict.eviction_request import (
    USED_MEMORY,
    EvictionOutcome,
    EvictionRecord,
    EvictionRequestKind,
    OutcomeKind,
    PendingVictim,
)
from agent.core.evict.request_queue import LONGEST_SECONDS
from agent.core.limit.shrink import Shrinking
from agent.core.limit.watch import Kill, PreparedVictim
from agent.core.observe.observation import Absence, CgroupPressure, CgroupSample, Missing, Stall
from model.decision import Decision, Term, Unit
from model.pod.colocation import EvictionTerms
from model.pod.spec import Container
from model.reason import Reason
from model.report import EvictionCost
from model.resources import BATCH_CPU, BATCH_MEMORY, ResourceVector
from model.strategy import EvictionStrategy
from tests.agent.core.evict.evicting import (
    GIB,
    MIB,
    NOW,
    Holding,
    Play,
    batch,
    by_rule,
    costs,
    names,
    node,
    online,
    seen,
    terms,
    usage,
)

FULL = 7680
"""MiB in use: 75 % of 10 GiB, which is 717 MiB above 68 %."""
FINE = 5000


def outcome(uid: str, kind: OutcomeKind, at: float, retry: float = 0.0) -> EvictionOutcome:
    return EvictionOutcome(uid, kind, NOW + at, "", retry)


def reason(play: Play, used: int, at: float, **more: Any) -> Reason:
    return play.tick(used, at, **more).needs[0].reason


def test_nothing_is_wrong() -> None:
    """One record a rule that is on, no order."""
    found = Play(batch("a"), online("b")).tick(FINE)
    assert names(found) == []
    (need,) = found.needs
    assert (need.subject, need.name, need.value, need.reason) == (
        "node/n",
        "memory to free",
        0,
        Reason.WITHIN_THRESHOLD,
    )
    assert terms(need) == {"used": FINE * MIB, "threshold": -7168 * MIB, "within it": 2168 * MIB}


def test_memory_is_short() -> None:
    """The need says what is missing, the order whom it takes, what that frees and why; both are whole records."""
    told = costs(EvictionCost("a", "d/g", 1, 30.0))
    found = Play(batch("a", 1024), batch("b", 512), online("web", 4096)).tick(FULL, costs=told)
    need, (order,) = found.needs[0], found.requests
    missing = FULL * MIB - 10 * GIB * 68 // 100
    assert (need.value, need.reason, need.unit, need.policy) == (
        missing,
        Reason.BE_MEMORY_EVICT,
        Unit.BYTES,
        "BEMemoryEvict",
    )
    assert terms(need) == {"used": FULL * MIB, "lower threshold": -(10 * GIB * 68 // 100), "terminating": 0}
    assert (order.kind, order.uid, order.namespace, order.name) == (EvictionRequestKind.EVICT, "a", "d", "a")
    assert (order.resource, order.grace_seconds, order.deadline_seconds) == (USED_MEMORY, None, None)
    decision = order.decision
    assert (decision.subject, decision.name, decision.value) == ("pod/d/a", "evict", GIB)
    assert (decision.unit, decision.reason, decision.terms) == (
        Unit.BYTES,
        Reason.BE_MEMORY_EVICT,
        (Term("in use", GIB),),
    )
    assert decision.detail == "~0.70Gi of used memory missing; priority 5000; gang d/g can spare 1, checkpoint 30 s ago"
    assert decision.at_seconds == need.at_seconds == NOW


def test_what_leaves_is_credited_until_it_should_be_gone() -> None:
    """Grace, a second, and 0.11 s for each GB; then it counts as not freed and the next one goes."""
    play = Play(batch("a", 1024), batch("b", 1024))
    assert names(play.tick(FULL)) == ["evict a"]
    play.tick(FULL, 0.1, outcomes=(outcome("a", OutcomeKind.EVICTED, 0.0),))
    for at in (1.0, 10.0, 31.0):
        assert reason(play, FULL, at) is Reason.EVICTION_PENDING
    play.change("a", deleting=True)
    assert names(play.tick(FULL, 31.2)) == ["evict b"]


def test_credit_is_what_it_still_holds() -> None:
    """Half of its memory is given back already and counts once."""
    play = Play(batch("a", 1024), batch("b", 900))
    play.tick(FULL)
    play.holdings[0] = Holding(play.holdings[0].pod, 100, 400)
    found = play.tick(FULL, 5.0)
    assert terms(found.needs[0])["terminating"] == -400 * MIB and names(found) == ["evict b"]


def test_a_pods_own_grace_counts() -> None:
    """And the grace of the order, where it has one."""
    play = Play(batch("a", 1024, grace_seconds=300.0), batch("b", 1024))
    play.tick(FULL)
    play.tick(FULL, 0.1, outcomes=(outcome("a", OutcomeKind.EVICTED, 0.0),))
    assert reason(play, FULL, 300.0) is Reason.EVICTION_PENDING
    assert play.tick(FULL, 302.0).requests


YEAR = 365 * 86_400.0


def test_no_grace_is_believed_in_for_ever() -> None:
    """A pod may write a year into its spec: it gets five minutes, and then somebody else goes."""
    play = Play(batch("a", 1024, grace_seconds=YEAR), batch("b", 1024))
    (order,) = play.tick(FULL).requests
    assert (order.name, order.grace_seconds) == ("a", 300)
    play.tick(FULL, 0.1, outcomes=(outcome("a", OutcomeKind.EVICTED, 0.0),))
    play.change("a", deleting=True)
    assert reason(play, FULL, 300.0) is Reason.EVICTION_PENDING
    assert names(play.tick(FULL, 302.0)) == ["evict b"]


def test_a_notice_ends_with_no_longer_grace() -> None:
    play = Play(batch("a", 1024, grace_seconds=YEAR, eviction=notified(10.0)), batch("b", 1024))
    assert names(play.tick(FULL)) == ["notify a"]
    (order,) = play.tick(FULL, 10.0).requests
    assert (order.kind, order.grace_seconds) == (EvictionRequestKind.EVICT, 300)


def test_who_somebody_else_deletes_for_a_year_frees_nothing() -> None:
    """Its credit ends; and it does not outlive what is urgent."""
    play = Play(batch("a", 1024, grace_seconds=YEAR, deleting=True), batch("b", 1024))
    assert reason(play, FULL, 300.0) is Reason.EVICTION_PENDING
    assert names(play.tick(FULL, 602.0)) == ["evict b"]


def test_an_online_pod_that_its_owner_deletes_slowly() -> None:
    """It chose the grace, and nobody of us may shorten it: it is believed for Kubernetes' own, and while memory hurries
    for no longer than giving it back takes."""
    play = Play(online("slow", 3072, grace_seconds=YEAR, deleting=True), batch("b", 1024))
    assert reason(play, FULL, 0.0) is reason(play, FULL, 31.0) is Reason.EVICTION_PENDING
    assert names(play.tick(FULL, 32.0)) == ["evict b"]
    play = Play(online("slow", 3072, grace_seconds=YEAR, deleting=True), batch("b", 1024))
    urgent = {"node_pressure": THRASHING}
    assert names(play.tick(FULL, 0.0, look=urgent)) == []
    assert names(play.tick(FULL, 2.0, look=urgent)) == ["evict b"]


HURRIED: dict[str, tuple[Holding, EvictionStrategy, list[str]]] = {
    "of best effort": (batch("a", 1024, deleting=True), EvictionStrategy(), ["evict a"]),
    "online": (online("a", 1024, deleting=True), EvictionStrategy(), []),
    "a static pod": (batch("a", 1024, deleting=True, cgroup_uid="hash"), EvictionStrategy(), []),
    "one that holds nothing any more": (batch("a", None, deleting=True), EvictionStrategy(), []),
    "evictions are off": (batch("a", 1024, deleting=True), EvictionStrategy(enable=False), []),
    "nobody deletes it": (batch("a", 1024), EvictionStrategy(), []),
}


@pytest.mark.parametrize(("holding", "strategy", "expected"), HURRIED.values(), ids=HURRIED)
def test_urgency_hurries_whom_somebody_else_deletes(
    holding: Holding, strategy: EvictionStrategy, expected: list[str]
) -> None:
    """Once, with a second of grace: whoever deleted it may have given it any time (kubectl delete --grace-period)."""
    play = Play(holding, strategy=strategy)
    urgent = {"node_pressure": THRASHING}
    found = play.tick(FINE, look=urgent)
    assert names(found) == expected and all(order.grace_seconds == 1 for order in found.requests)
    assert names(play.tick(FINE, 1.0, look=urgent)) == []


def test_who_somebody_else_deletes_is_credited_too() -> None:
    """For its grace; a pod that hangs in deletion does not count for ever."""
    play = Play(batch("a", 1024, deleting=True), batch("b", 1024))
    assert reason(play, FULL, 0.0) is Reason.EVICTION_PENDING
    assert reason(play, FULL, 30.0) is Reason.EVICTION_PENDING
    assert names(play.tick(FULL, 32.0)) == ["evict b"]


def test_rest_after_an_eviction() -> None:
    """4 s of memory, unless memory cannot wait; then the next."""
    play = Play(batch("a", 200), batch("b", 100))
    play.holdings.append(batch("c", 600))
    assert names(play.tick(7168)) == ["evict c"]
    found = play.tick(FULL, 3.0)
    assert (found.needs[0].reason, found.needs[0].detail, names(found)) == (Reason.COOLDOWN, "1 s are left", [])
    assert found.needs[0].value == FULL * MIB - 10 * GIB * 68 // 100 - 600 * MIB
    assert names(play.tick(FULL, 4.0)) == ["evict a"]


def test_cpu_and_memory_rest_apart() -> None:
    """20 s of CPU do not hold memory back; no victim goes twice."""
    strategy = EvictionStrategy(cpu_threshold_pct=80, priority_threshold=5999)
    play = Play(
        batch("a", 1024, cpu=300, eviction=EvictionTerms(True)),
        batch("b", 900, cpu=300, eviction=EvictionTerms(True)),
        strategy=strategy,
    )
    busy = usage(
        *play.holdings,
        node=msgspec.convert({"last": {"cpu_millis": 1600}, "live": {}, "aggregate": {}}, type(usage().node)),
    )
    found = play.tick(FINE, usage=busy)
    assert by_rule(found.needs)["CPUEvict"].value == 40 and names(found) == ["evict a"]
    assert play.memory.record == EvictionRecord(NOW, None, play.memory.record.pending)
    assert names(play.tick(8500, 1.0, usage=busy)) == ["evict b"]
    assert play.memory.record.memory_at_seconds == NOW + 1


def test_a_budget_blocks() -> None:
    """The next candidate is taken at once; the blocked one is left alone as long as the API server says, or longer."""
    play = Play(batch("a", 1024), batch("b", 1000))
    assert names(play.tick(FULL)) == ["evict a"]
    assert names(play.tick(FULL, 1.0, outcomes=(outcome("a", OutcomeKind.BLOCKED, 0.5, retry=7.0),))) == ["evict b"]
    assert names(play.tick(FULL, 2.0, outcomes=(outcome("b", OutcomeKind.BLOCKED, 1.5),))) == []
    assert reason(play, FULL, 3.0) is Reason.NO_VICTIM
    assert names(play.tick(FULL, 7.6)) == ["evict a"]


REFUSALS: dict[str, tuple[OutcomeKind, list[float]]] = {
    "blocked": (OutcomeKind.BLOCKED, [10.0, 20.0, 40.0, 80.0, 160.0, 300.0, 300.0]),
    "failed": (OutcomeKind.FAILED, [1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0]),
}


@pytest.mark.parametrize(("kind", "waits"), REFUSALS.values(), ids=REFUSALS.keys())
def test_back_off(kind: OutcomeKind, waits: list[float]) -> None:
    """It doubles, within its bound."""
    play, at = Play(batch("a", 1024)), 0.0
    for wait in waits:
        assert names(play.tick(FULL, at)) == ["evict a"]
        assert names(play.tick(FULL, at + 0.5, outcomes=(outcome("a", kind, at + 0.5),))) == []
        assert names(play.tick(FULL, at + 0.4 + wait)) == []
        at += 0.5 + wait


def test_a_pod_that_was_gone_already() -> None:
    """It is neither credited nor blocked."""
    play = Play(batch("a", 1024), batch("b", 1000))
    play.tick(FULL)
    play.remove("a")
    found = play.tick(FULL, 5.0, outcomes=(outcome("a", OutcomeKind.GONE, 1.0),))
    assert names(found) == ["evict b"] and set(play.memory.record.pending) == {"b"}


def test_an_accepted_eviction_ends_later() -> None:
    """The time counts from when the API server took it."""
    play = Play(batch("a", 1024), batch("b", 1024))
    play.tick(FULL)
    play.tick(FULL, 21.0, outcomes=(outcome("a", OutcomeKind.EVICTED, 20.0),))
    assert reason(play, FULL, 50.0) is Reason.EVICTION_PENDING
    assert reason(play, FULL, 52.0) is Reason.BE_MEMORY_EVICT


def test_an_outcome_of_a_stranger_changes_nothing() -> None:
    """Late answers about pods that are forgotten."""
    play = Play(batch("a", 1024))
    for kind in OutcomeKind:
        play.tick(FINE, outcomes=(outcome("x", kind, 0.0),))
    assert play.memory.record == EvictionRecord() and not play.memory.refused


def notified(seconds: float) -> EvictionTerms:
    return EvictionTerms(notice_seconds=seconds)


def test_notice_first() -> None:
    """The pod has its time, is credited meanwhile, and goes at the deadline; never sooner, never twice."""
    play = Play(batch("a", 1024, eviction=notified(20.0)), batch("b", 1000))
    (told,) = play.tick(FULL).requests
    assert (told.kind, told.deadline_seconds, told.grace_seconds) == (EvictionRequestKind.NOTIFY, NOW + 20, None)
    assert told.decision.value == GIB
    assert play.memory.record.pending["a"].until_seconds > NOW + 50
    notified_outcome = (outcome("a", OutcomeKind.NOTIFIED, 1.0),)
    assert names(play.tick(FULL, 19.0, outcomes=notified_outcome)) == []
    (order,) = play.tick(FULL, 20.0).requests
    assert (order.kind, order.name, order.grace_seconds) == (EvictionRequestKind.EVICT, "a", None)
    assert (order.decision.reason, order.decision.value) == (Reason.BE_MEMORY_EVICT, GIB)
    assert names(play.tick(FULL, 21.0)) == []
    assert play.memory.record.pending["a"].until_seconds == pytest.approx(NOW + 20 + 60 + 31 + 0.11 * GIB / 1e9)


NOTICES: dict[str, tuple[float, float, str]] = {
    "no longer than the node gives": (600.0, 60.0, "notify a"),
    "the node gives none": (20.0, 0.0, "evict a"),
    "the pod asks for none": (0.0, 60.0, "evict a"),
}


@pytest.mark.parametrize(("asked", "longest", "expected"), NOTICES.values(), ids=NOTICES.keys())
def test_how_long_a_notice_is(asked: float, longest: float, expected: str) -> None:
    """The smaller of both."""
    play = Play(batch("a", 1024, eviction=notified(asked)), strategy=EvictionStrategy(longest_notice_seconds=longest))
    found = play.tick(FULL)
    assert names(found) == [expected]
    assert found.requests[0].deadline_seconds == (NOW + longest if expected == "notify a" else None)


def test_a_checkpoint_ends_the_notice() -> None:
    """Nothing is left to wait for."""
    play = Play(batch("a", 1024, eviction=notified(60.0)))
    play.tick(FULL)
    assert names(play.tick(FULL, 5.0, outcomes=(outcome("a", OutcomeKind.CHECKPOINTED, 4.0),))) == ["evict a"]
    later = play.tick(FULL, 6.0, outcomes=(outcome("a", OutcomeKind.CHECKPOINTED, 5.5),))
    assert names(later) == [], "a checkpoint of a pod that was asked to go already changes nothing"


def test_who_could_not_be_told() -> None:
    """Nobody evicts it at a deadline it does not know of: it is decided again."""
    play = Play(batch("a", 1024, eviction=notified(20.0)))
    play.tick(FULL)
    assert names(play.tick(FULL, 1.0, outcomes=(outcome("a", OutcomeKind.FAILED, 0.5),))) == []
    assert names(play.tick(FULL, 2.0)) == ["notify a"]


def test_an_order_that_waits_for_the_api_server_takes_nobody_else() -> None:
    """More victims would not go any sooner; once it was given up the next tick decides again."""
    play = Play(batch("a", 1024), batch("b", 1000))
    play.tick(FULL)
    for at in (10.0, 40.0, 60.0):
        assert reason(play, FULL, at) is Reason.EVICTION_PENDING
    assert names(play.tick(FULL, 60.5, outcomes=(outcome("a", OutcomeKind.FAILED, 60.0),))) == ["evict b"]


def test_who_was_told_stays_where_evictions_are_switched_off() -> None:
    """And no rule is left to explain."""
    play = Play(batch("a", 1024, eviction=notified(20.0)))
    play.tick(FULL)
    play.strategy = EvictionStrategy(enable=False)
    found = play.tick(FULL, 20.0)
    assert (found.needs, found.last_resort) == ((), None) and not play.memory.record.pending
    assert [each.kind for each in found.requests] == [EvictionRequestKind.SPARE]


def test_who_was_told_stays_where_memory_is_free_again_by_then() -> None:
    """The need is looked at once more at the deadline; before it nothing is said."""
    play = Play(batch("a", 1024, eviction=notified(20.0)), batch("b", 1024))
    (notice,) = play.tick(FULL).requests
    assert notice.kind is EvictionRequestKind.NOTIFY
    assert play.tick(FULL // 2, 10.0).requests == ()
    (spared,) = play.tick(FULL // 2, 20.0).requests
    assert (spared.kind, spared.uid, play.memory.record.pending) == (EvictionRequestKind.SPARE, "a", {})


THRASHING = CgroupPressure(memory_full=Stall(avg10_pct=10.0))
URGENT: dict[str, tuple[int, dict[str, Any]]] = {
    "every task of the node waits": (FULL, {"node_pressure": THRASHING}),
    "every task of a pod waits": (FULL, {"kubepods": CgroupSample(0, 0, pressure=THRASHING)}),
    "the node is at its last resort": (9933, {}),
    "the pods are at theirs": (
        FULL,
        {"kubepods": CgroupSample(0, 970 * MIB), "kubepods_memory_limit_bytes": 1000 * MIB},
    ),
}


@pytest.mark.parametrize(("used", "look"), URGENT.values(), ids=URGENT.keys())
def test_memory_cannot_wait(used: int, look: dict[str, Any]) -> None:
    """A second of grace, no notice, no rest; and it is said why."""
    play = Play(*(batch(name, 200, eviction=notified(30.0)) for name in "ab"))
    play.memory = EvictionMemory(EvictionRecord(memory_at_seconds=NOW - 1))
    found = play.tick(used, look=look)
    assert names(found) == ["evict a", "evict b"] and {order.grace_seconds for order in found.requests} == {1}
    assert "memory" in found.requests[0].decision.detail.rpartition(";")[2]


HOLDS = Shrinking(
    decisions=(Decision("node/n", "memory to reclaim", 0, Unit.BYTES, Reason.SHRINKING, ()),), holds_evictions=True
)


def test_evictions_for_memory_wait_for_what_is_reclaimed() -> None:
    """Nobody goes while it may help; both rules by use wait, and `explain evictions` has it."""
    play = Play(batch("a"), strategy=EvictionStrategy(priority_threshold=9999))
    found = play.tick(FULL, shrinking=HOLDS)
    assert names(found) == [] and {need.reason for need in found.needs} == {Reason.SHRINKING}
    assert found.decisions[-1] is HOLDS.decisions[0]
    assert names(play.tick(FULL, 1, shrinking=Shrinking())) == ["evict a"]


def test_what_cannot_wait_does_not() -> None:
    """The last resort is near; and evictions by request wait for no memory in use."""
    assert names(Play(batch("a")).tick(10_000, shrinking=HOLDS)) == ["evict a"]
    by_request = EvictionStrategy(
        memory_threshold_pct=None,
        memory_allocatable_threshold_pct=90,
        memory_allocatable_lower_pct=80,
        allocatable_priority_threshold=7000,
    )
    amounts = ResourceVector({BATCH_MEMORY: 10 * GIB})
    play = Play(batch("a", requests=amounts, eviction=EvictionTerms(True)), strategy=by_request)
    assert names(play.tick(FINE, node=node(batch_memory=GIB), shrinking=HOLDS)) == ["evict a"]


def test_below_the_marks_it_can_wait() -> None:
    """Nine percent of waiting is not ten."""
    play = Play(batch("a", 1024))
    calm = CgroupPressure(memory_full=Stall(avg10_pct=9.9))
    assert play.tick(FULL, look={"node_pressure": calm}).requests[0].grace_seconds is None


def test_urgency_hurries_who_is_on_the_way_out() -> None:
    """Once; whether it was told only or asked already. CPU does not hurry anybody new."""
    play = Play(batch("a", 300, eviction=notified(60.0)), batch("b", 500))
    assert names(play.tick(FULL)) == ["evict b", "notify a"]
    urgent = {"node_pressure": THRASHING}
    found = play.tick(FULL, 1.0, look=urgent)
    assert names(found) == ["evict a", "evict b"] and {order.grace_seconds for order in found.requests} == {1}
    assert names(play.tick(FULL, 2.0, look=urgent)) == []


def test_urgency_without_a_need_takes_nobody() -> None:
    """A best-effort pod that thrashes within its own limit hurts nobody."""
    play = Play(batch("a", 1024))
    assert names(play.tick(FINE, look={"node_pressure": THRASHING})) == []


def kill(name: str, mib: int = 1024, processes: int = 3) -> Kill:
    victim = PreparedVictim(name, "d", name, f"/kubepods/besteffort/pod{name}", mib * MIB)
    return Kill(victim, NOW - 0.3, 99.7, 100 * MIB, processes)


def test_who_was_killed_is_evicted() -> None:
    """So that it does not start again here; memory rests, and what it still holds is credited."""
    play = Play(batch("a", 1024), batch("b", 1000))
    found = play.tick(FULL, kills=(kill("a"),))
    (order,) = found.requests
    assert (order.name, order.grace_seconds, order.decision.reason) == ("a", 1, Reason.MEMORY_LAST_RESORT)
    assert (order.decision.value, order.resource) == (GIB, USED_MEMORY)
    assert order.decision.detail == "100Mi were left, 3 processes killed"
    assert found.needs[0].reason is Reason.EVICTION_PENDING
    assert play.memory.record.memory_at_seconds == NOW


def test_a_kill_that_hit_nobody() -> None:
    """No order where the pod was gone."""
    play = Play(batch("a", 1024))
    assert names(play.tick(FINE, kills=(kill("a", processes=0), kill("x")))) == []


UNKNOWN: dict[str, tuple[dict[str, Any], Reason]] = {
    "no pods": ({"pods": None}, Reason.PODS_UNKNOWN),
    "no node": ({"node": None}, Reason.NODE_METRICS_MISSING),
    "no usage": ({"usage": None}, Reason.NODE_METRICS_MISSING),
    "usage of a pass before": ({"usage": usage(held=True)}, Reason.NODE_METRICS_STALE),
}


@pytest.mark.parametrize(("facts", "why"), UNKNOWN.values(), ids=UNKNOWN.keys())
def test_unknown_facts_evict_nobody(facts: dict[str, Any], why: Reason) -> None:
    """Each rule says so; the brake keeps the victims that were prepared."""
    play = Play(batch("a", 1024))
    before = play.tick(FINE).last_resort
    found = play.tick(9999, 1.0, **facts)
    assert [(need.value, need.reason) for need in found.needs] == [(0, why)] and names(found) == []
    assert found.last_resort == before and before is not None


def test_who_was_told_goes_without_usage_too() -> None:
    """A promise with a deadline; its time does not stand still."""
    play = Play(batch("a", 1024, eviction=notified(20.0)))
    play.tick(FULL)
    assert names(play.tick(FULL, 20.0, usage=None)) == ["evict a"]


def test_nobody_that_may_go() -> None:
    """The need stays and says so."""
    found = Play(online("a", 4096)).tick(FULL)
    assert (found.needs[0].reason, found.needs[0].value > 0, names(found)) == (Reason.NO_VICTIM, True, [])


def test_too_little_to_free() -> None:
    """All go that help, and what is left is told."""
    found = Play(batch("a", 100), batch("b", 117)).tick(FULL)
    assert names(found) == ["evict b", "evict a"]
    assert (found.needs[0].reason, found.needs[0].detail) == (Reason.BE_MEMORY_EVICT, "~0.49Gi of it cannot be freed")


# node MiB in use, pods (MiB) -> victims, why none
HELP: dict[str, tuple[int, tuple[int, ...], list[str], Reason | None]] = {
    "a thousandth of what is missing": (9000, (1, 1), [], Reason.EVICTION_NOT_HELPFUL),
    "a twentieth": (9000, (102,), ["evict p0"], None),
    "a hundredth of what is missing, and a twentieth of what is left": (9700, (27,), ["evict p0"], None),
    "less than a twentieth of what is left": (9700, (26,), [], Reason.EVICTION_NOT_HELPFUL),
    "when memory runs out each MiB counts": (10_220, (1,), ["evict p0"], None),
    "nobody holds anything": (10_240, (0,), [], Reason.NO_VICTIM),
}


@pytest.mark.parametrize(("used", "sizes", "expected", "why"), HELP.values(), ids=HELP.keys())
def test_who_goes_helps(used: int, sizes: tuple[int, ...], expected: list[str], why: Reason | None) -> None:
    """A twentieth of what is missing, or of what is left where that is less; the need says why no pod is evicted."""
    found = Play(*(batch(f"p{number}", size) for number, size in enumerate(sizes))).tick(used)
    assert names(found) == expected
    assert found.needs[0].reason is (why or Reason.BE_MEMORY_EVICT)
    if why is Reason.EVICTION_NOT_HELPFUL:
        assert found.needs[0].detail.startswith("all possible victims free ")


def test_the_help_of_those_on_their_way_out_counts_first() -> None:
    """What is left to free after them is small, and a small pod is a large part of it."""
    play = Play(batch("a", 600), batch("b", 5))
    assert names(play.tick(FULL)) == ["evict a"], "what b adds is too little of what is missing then"
    assert play.tick(FULL, 5.0).needs[0].reason is Reason.EVICTION_NOT_HELPFUL
    assert names(play.tick(FULL - 60, 6.0)) == ["evict b"]


def test_a_restart_remembers() -> None:
    """The record alone is enough: credit, rest and notice go on."""
    play = Play(batch("a", 1024, eviction=notified(20.0)), batch("b", 1000))
    play.tick(FULL)
    saved = msgspec.json.decode(msgspec.json.encode(play.memory.record), type=EvictionRecord)
    assert saved == play.memory.record
    play.memory = EvictionMemory(saved)
    assert reason(play, FULL, 2.0) is Reason.EVICTION_PENDING
    assert names(play.tick(FULL, 21.0)) == ["evict a"]


ANSWERS: dict[str, tuple[bool, list[str]]] = {
    "it was accepted, so its end is waited for": (True, []),
    "it may never have been sent, so it is sent again": (False, ["evict a"]),
}


@pytest.mark.parametrize(("accepted", "expected"), ANSWERS.values(), ids=ANSWERS.keys())
def test_a_restart_in_the_middle_of_an_eviction(accepted: bool, expected: list[str]) -> None:
    """Nothing is lost, whenever the agent died."""
    play = Play(batch("a", 1024), batch("b", 1000))
    play.tick(FULL)
    if accepted:
        play.tick(FULL, 1.0, outcomes=(outcome("a", OutcomeKind.EVICTED, 0.5),))
    play.memory = EvictionMemory(play.memory.record)
    assert names(play.tick(FULL, 5.0)) == expected


def test_the_memory_can_be_written_down() -> None:
    """A replay starts from it."""
    play = Play(batch("a", 1024), batch("b", 1000), batch("c", 900, deleting=True))
    play.tick(FULL + 1024)
    play.tick(FULL + 1024, 1.0, outcomes=(outcome("a", OutcomeKind.BLOCKED, 1.0),))
    written = msgspec.json.encode(play.memory)
    assert play.memory.refused and play.memory.ending and play.memory.last_resort
    assert msgspec.json.decode(written, type=EvictionMemory) == play.memory


def test_a_clock_that_was_set_back() -> None:
    """Times ahead count as now: rest and credit last no longer than they should."""
    play = Play(batch("a", 300), batch("b", 1024))
    ahead = NOW + 86_400
    victim = PendingVictim({}, ahead, ahead + 31, None, USED_MEMORY, Reason.BE_MEMORY_EVICT, accepted=True)
    play.memory = EvictionMemory(EvictionRecord(ahead, ahead, {"a": victim}))
    found = play.tick(FULL)
    assert (found.needs[0].reason, found.needs[0].detail) == (Reason.COOLDOWN, "4 s are left")
    assert play.memory.record.cpu_at_seconds == play.memory.record.memory_at_seconds == NOW
    assert play.memory.record.pending["a"].until_seconds == NOW + 31
    assert names(play.tick(FULL, 4.0)) == ["evict b"]


@pytest.mark.parametrize("step", [86_400.0, -86_400.0], ids=["forward", "back"])
def test_a_clock_that_is_set_while_we_run(step: float) -> None:
    """A terminating pod is credited as before: no second round of victims, and the rest lasts as long."""
    play = Play(batch("a", 1024), batch("b", 1000), batch("c", 900))
    assert names(play.tick(FULL + 1024)) == ["evict a", "evict b"]
    play.tick(FULL + 1024, 1.0, outcomes=(outcome("b", OutcomeKind.BLOCKED, 1.0),))
    before = play.memory
    look = {"monotonic_seconds": NOW + 2}
    answered = (outcome("a", OutcomeKind.EVICTED, 2.0 + step),)
    assert names(play.tick(FULL + 1024, 2.0 + step, look=look, outcomes=answered)) == []
    after = play.memory
    assert after.record.pending["a"].until_seconds == pytest.approx(
        before.record.pending["a"].until_seconds + step + 2 - LONGEST_SECONDS
    )
    assert after.refused["b"].until_seconds == before.refused["b"].until_seconds + step
    assert before.record.memory_at_seconds is not None
    assert after.record.memory_at_seconds == before.record.memory_at_seconds + step


def test_observing_remembers_no_orders() -> None:
    """Nobody sends them: who would go is said each time, and nothing is believed to leave."""
    play = Play(batch("a", 1024), batch("b", 1000))
    for at in (0.0, 1.0):
        play.memory, found = decide_evictions(
            play.memory,
            seen(*play.holdings, used=FULL, at=NOW + at),
            usage(*play.holdings),
            EvictionFacts(node(), tuple(each.pod for each in play.holdings), play.strategy),
            sends=False,
        )
        assert names(found) == ["evict a"] and play.memory.record == EvictionRecord()


def test_pods_that_ended_are_forgotten() -> None:
    """Nothing grows with the pods that were ever here."""
    play = Play(batch("a", 1024), batch("b", 1000), batch("c", 900))
    play.tick(FULL + 1024)
    play.tick(FULL + 1024, 1.0, outcomes=(outcome("b", OutcomeKind.BLOCKED, 1.0),))
    play.change("c", deleting=True)
    play.remove("a", "b", "c")
    play.tick(FINE, 2.0)
    assert (play.memory.record.pending, play.memory.refused, play.memory.ending) == ({}, {}, {})


def test_what_a_pending_pod_frees_is_told() -> None:
    """By resource, for whoever reads the record."""
    asked = ResourceVector({BATCH_CPU: 500})
    pod = batch("a", 1024, cpu=250, requests=asked, containers=(Container("main", asked),))
    play = Play(pod)
    play.tick(FULL)
    frees = play.memory.record.pending["a"].frees
    assert frees == {"used memory": GIB, "used cpu": 250, "running kubernetes.io/batch-cpu": 500, BATCH_CPU: 500}


def test_by_request() -> None:
    """The order is in the resource's own unit and name."""
    strategy = EvictionStrategy(
        memory_threshold_pct=None,
        cpu_allocatable_threshold_pct=100,
        cpu_allocatable_lower_pct=100,
        allocatable_priority_threshold=5999,
    )
    pods = [batch(name, requests=ResourceVector({BATCH_CPU: 600}), eviction=EvictionTerms(True)) for name in "ab"]
    found = Play(*pods, strategy=strategy, node=node(batch_cpu=1000)).tick(FINE)
    assert [need.name for need in found.needs] == [
        "kubernetes.io/batch-cpu to free",
        "kubernetes.io/mid-cpu to free",
        "cpu to free",
    ]
    (order,) = found.requests
    assert (order.resource, order.decision.value, order.decision.unit) == (BATCH_CPU, 600, Unit.MILLI_CPU)
    assert order.decision.terms == (Term("requested", 600),)


def test_a_pod_whose_memory_was_not_read_frees_nothing() -> None:
    """It may be gone; somebody else goes."""
    play = Play(batch("a", 1024), batch("b", 900))
    look = {"pods": {"a": Missing("/a", Absence.GONE), "b": CgroupSample(0, 900 * MIB)}}
    assert names(play.tick(FULL, look=look)) == ["evict b"]


def test_the_order_of_the_pod_list_does_not_matter() -> None:
    """Same facts, same orders."""
    pods = [batch(name, 300) for name in "abcdef"]
    orders = [
        decide_evictions(
            EvictionMemory(),
            seen(*listed, used=FULL),
            usage(*listed),
            EvictionFacts(node(), tuple(each.pod for each in listed), EvictionStrategy()),
        )[1].requests
        for listed in (pods, pods[::-1])
    ]
    assert orders[0] == orders[1] and len(orders[0]) == 3


STEPS = st.lists(
    st.tuples(
        st.integers(0, 11_000),
        st.sampled_from([0.0, 0.5, 1.0, 5.0, 40.0, -3000.0]),
        st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from(list(OutcomeKind))), max_size=3),
        st.sets(st.sampled_from("abcd"), max_size=2),
        st.sampled_from([{}, {"usage": None}, {"pods": None}, {"node": None}]),
    ),
    max_size=12,
)


@given(steps=STEPS)
@settings(max_examples=60)
def test_whatever_happens(steps: list[Any]) -> None:
    """No sequence of levels, clock steps, answers, deletions and missing facts evicts an online pod, one pod twice in
    one tick, or somebody while nothing is missing; each record sums to its value, and the memory can be written down.
    """
    strategy = EvictionStrategy(cpu_threshold_pct=40, priority_threshold=9999)
    play = Play(
        batch("a", 900, eviction=EvictionTerms(True)),
        batch("b", 300, eviction=notified(20.0)),
        batch("c", 500, priority=4000),
        batch("d", 100, deleting=True),
        online("web", 2000),
        strategy=strategy,
    )
    at = 0.0
    for used, later, answers, deleted, unknown in steps:
        at += later
        for name in deleted:
            play.change(name, deleting=True)
        told = tuple(outcome(name, kind, at) for name, kind in answers)
        found = play.tick(used, at, outcomes=told, **unknown)
        went = [order.uid for order in found.requests]
        assert len(went) == len(set(went)) and "web" not in went
        assert all(need.value >= 0 for need in found.needs)
        assert msgspec.json.decode(msgspec.json.encode(play.memory), type=EvictionMemory) == play.memory
        if unknown:
            assert {order.decision.detail for order in found.requests} <= {"its notice is over"} | HURRIES
        elif all(need.value == 0 for need in found.needs):
            assert all("missing" not in order.decision.detail for order in found.requests)


HURRIES = {"memory is about to run out"}
