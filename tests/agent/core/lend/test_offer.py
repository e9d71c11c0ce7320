"""What is offered, and when it must be written: shrinking at once, growth with a rest."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.core.lend.offer import (
    NodeOffer,
    OfferFacts,
    OfferMemory,
    Published,
    admitted_requests,
    decide_offer,
    due,
    due_for_node,
    may_publish,
    may_raise,
    offered,
    offered_in_zone,
    withheld,
)
from agent.core.lend.prepare import prepared
from agent.core.lend.reclaimable import ZoneLending
from model.decision import Decision, Term, Unit
from model.pod.status import PodPhase
from model.reason import Reason
from model.resources import BATCH_CPU, BATCH_MEMORY, MID_CPU, MID_MEMORY, ResourceVector
from model.strategy import ColocationStrategy
from tests.agent.conftest import Build
from tests.pods import with_fields

STRATEGY = ColocationStrategy()


def lent(cpu: int, memory: int = 0, reason: Reason = Reason.COMPUTED) -> tuple[Decision, ...]:
    return (
        Decision("node/n", BATCH_CPU, cpu, Unit.MILLI_CPU, reason, (Term("x", cpu),)),
        Decision("node/n", BATCH_MEMORY, memory, Unit.BYTES, reason, (Term("x", memory),)),
    )


def amounts(decisions: tuple[Decision, ...]) -> dict[str, int]:
    return {decision.name: decision.value for decision in decisions}


def all_four(cpu: int = 0, memory: int = 0, mid_cpu: int = 0, mid_memory: int = 0) -> dict[str, int]:
    return {BATCH_CPU: cpu, BATCH_MEMORY: memory, MID_CPU: mid_cpu, MID_MEMORY: mid_memory}


def test_admitted_requests_are_never_undercut(build: Any, terms: Any) -> None:
    """A kubelet that restarts must be able to admit its running pods again; finished ones do not count."""
    pods = (
        build.batch("a", batch_cpu=400),
        build.batch("b", batch_cpu=300),
        build.batch("c", batch_cpu=900, phase=PodPhase.FAILED),
    )
    found = offered(build.lending(500, 9), pods, (), {}, may_grow=True)
    assert amounts(found) == all_four(700, 9)
    assert terms(found[0]) == {"reclaimable": 500, "already requested by running pods": 200}
    assert {decision.policy for decision in found} == {"published"}
    assert amounts(offered(build.lending(800, 9), pods, (), {}, may_grow=True))[BATCH_CPU] == 800


def test_mid_resources_are_offered_too(build: Any) -> None:
    """With the floor of running mid pods, as batch."""
    pod = with_fields(build.pod("m"), requests=ResourceVector({MID_CPU: 300, MID_MEMORY: 7}))
    found = offered(build.lending(1, 2, mid=(200, 9)), (pod,), (), {}, may_grow=True)
    assert amounts(found) == all_four(1, 2, 300, 9)


def test_what_is_prepared_is_what_counts(build: Any, terms: Any) -> None:
    """After normalization and third parties, not what was computed before."""
    computed = build.lending(1000, 50)
    prepared = (build.decision(BATCH_CPU, 1500), *build.lending(1000, 40).prepared[1:])
    found = offered(msgspec.structs.replace(computed, prepared=prepared), (), (), {}, may_grow=True)
    assert amounts(found) == all_four(1500, 40) and terms(found[0]) == {"reclaimable": 1500}


WITHHELD: dict[str, tuple[int, bool, dict[str, int]]] = {
    # batch-cpu requested by a running pod, may grow, what stays on the node
    "nobody runs": (0, True, {}),
    "a pod runs": (300, True, {BATCH_CPU: 300}),
    "a pod runs and the agent is new": (300, False, {BATCH_CPU: 300}),
}


@pytest.mark.parametrize(("requested", "may_grow", "expected"), WITHHELD.values(), ids=WITHHELD.keys())
@pytest.mark.parametrize("reason", [Reason.LENDING_DISABLED, Reason.NODE_METRICS_STALE, Reason.PODS_STALE])
def test_withheld_resources_leave_the_node(
    build: Any, reason: Reason, requested: int, may_grow: bool, expected: dict[str, int]
) -> None:
    """Switched off or too old: the keys go, except what running pods could not be admitted without."""
    pods = (build.batch("a", batch_cpu=requested),) if requested else ()
    standing = {BATCH_CPU: 900, BATCH_MEMORY: 5}
    found = offered(build.lending(reason=reason), pods, (), standing, may_grow=may_grow)
    assert amounts(found) == expected and {decision.reason for decision in found} <= {reason}


UNKNOWN_PODS: dict[str, tuple[Reason, dict[str, int]]] = {
    # why nothing may be lent, what stands on the node and stays
    "blind": (Reason.PODS_UNKNOWN, {BATCH_CPU: 900, MID_CPU: 7}),
    "switched off": (Reason.LENDING_DISABLED, {BATCH_CPU: 900}),
    "nothing stands": (Reason.PODS_UNKNOWN, {}),
}


@pytest.mark.parametrize(("reason", "standing"), UNKNOWN_PODS.values(), ids=UNKNOWN_PODS.keys())
@pytest.mark.parametrize("may_grow", [True, False])
def test_what_stands_is_kept_while_pods_are_unknown(
    build: Any, terms: Any, reason: Reason, standing: dict[str, int], may_grow: bool
) -> None:
    """They may request all of it, and a kubelet must be able to admit them again; known, they count as they are."""
    found = offered(build.lending(reason=reason), None, (), standing, may_grow=may_grow)
    assert amounts(found) == standing
    assert all(terms(one)["held: the running pods are not known"] == one.value for one in found)
    assert offered(build.lending(reason=reason), (), (), standing, may_grow=may_grow) == ()


def test_zones_do_not_grow_early_either(build: Any) -> None:
    """As the node's amounts; no floor of running pods, and zeroes for a reset."""
    lent, zero = build.lending(500, 9).prepared[:2], build.lending(reason=Reason.PODS_UNKNOWN).reclaimable[:2]
    zone = ZoneLending(0, "node-0", lent, lent)
    standing = {BATCH_CPU: 300, BATCH_MEMORY: 20}
    assert amounts(offered_in_zone(zone, standing, may_grow=False)) == {BATCH_CPU: 300, BATCH_MEMORY: 9}
    assert amounts(offered_in_zone(zone, standing, may_grow=True)) == {BATCH_CPU: 500, BATCH_MEMORY: 9}
    reset = ZoneLending(0, "node-0", zero)
    assert amounts(offered_in_zone(reset, standing, may_grow=False)) == {BATCH_CPU: 0, BATCH_MEMORY: 0}


@pytest.mark.parametrize(
    ("seconds", "held", "expected"), [(10.0, False, True), (8.0, False, False), (10.0, True, False)]
)
def test_more_is_offered_only_by_a_full_window_up_to_now(
    build: Any, seconds: float, held: bool, expected: bool
) -> None:
    """Not by a young agent, not by figures of a pass before, not by none at all."""
    assert may_raise(build.usage(live_seconds=seconds, held=held)) is expected
    assert not may_raise(None)


def test_withheld(build: Any) -> None:
    """All four are zero for the reason, and their keys are to go; the CPU's ratio is still true."""
    lent = msgspec.structs.replace(build.lending(500, 9), normalization_ratio=1.2)
    found = withheld(lent, Reason.NODE_METRICS_STALE)
    assert amounts(found.final) == all_four() and found.degraded is Reason.NODE_METRICS_STALE
    assert {decision.reason for decision in found.final} == {Reason.NODE_METRICS_STALE}
    assert (found.prepared, found.normalization_ratio) == ((), 1.2)


def test_a_pod_that_is_merely_bound_makes_no_room_for_itself(build: Any) -> None:
    """Anybody can create a pod with spec.nodeName; it counts once it runs or the kubelet gave it a cgroup."""
    pod = build.batch("huge", batch_cpu=64_000, phase=PodPhase.PENDING)
    assert amounts(offered(build.lending(500), (pod,), (), {}, may_grow=True))[BATCH_CPU] == 500
    assert amounts(offered(build.lending(500), (pod,), {pod.uid}, {}, may_grow=True))[BATCH_CPU] == 64_000


def test_what_stands_is_kept_for_pods_just_placed(build: Any, terms: Any) -> None:
    """A new online pod takes the room a gang was placed in: its members, bound already, must not be refused."""
    gang = [build.batch(f"m{n}", batch_cpu=75, phase=PodPhase.PENDING) for n in range(3)]
    found = offered(build.lending(0), gang, (), {BATCH_CPU: 300}, may_grow=True)
    assert amounts(found)[BATCH_CPU] == 225 and terms(found[0])["held for pods just placed"] == 225
    assert amounts(offered(build.lending(0), gang, (), {BATCH_CPU: 100}, may_grow=True))[BATCH_CPU] == 100
    assert amounts(offered(build.lending(0), gang, (), {}, may_grow=True))[BATCH_CPU] == 0


def test_what_was_done_to_the_amount_before_is_among_its_terms(build: Any, terms: Any) -> None:
    """1000 lent, half as much again by CPU normalization, 50 given away: 1450, every step of it."""
    lent = build.lending(1000)
    ready = prepared(lent.reclaimable, 1.5, ResourceVector({BATCH_CPU: 50}))
    found = offered(msgspec.structs.replace(lent, prepared=ready), (), (), {}, may_grow=True)
    assert terms(found[0]) == {"reclaimable": 1000, "CPU normalization": 500, "third-party allocations": -50}
    assert found[0].value == 1450


def test_a_new_agent_does_not_grow_what_stands(build: Any, terms: Any) -> None:
    """Shrinking is at once; growth over its predecessor's number waits for a full live window."""
    pods = (build.batch("a", batch_cpu=100),)
    found = offered(build.lending(500, 9), pods, (), {BATCH_CPU: 300, BATCH_MEMORY: 20}, may_grow=False)
    assert amounts(found) == all_four(300, 9)
    assert terms(found[0])["held: too early to raise"] == -200
    assert amounts(offered(build.lending(500, 9), pods, (), {}, may_grow=False)) == all_four(100, 0)


NODE_CASES: dict[str, tuple[int | None, int, float, bool]] = {
    # published before, now, seconds since, due
    "never published": (None, 0, 0, True),
    "unchanged": (1000, 1000, 299, False),
    "small shrink waits": (1000, 901, 1, False),
    "shrink over 10 % is told at once": (1000, 899, 0.1, True),
    "growth rests": (1000, 1200, 5, False),
    "growth after the rest": (1000, 1200, 10, True),
    "small growth waits": (1000, 1050, 60, False),
    "small change after five minutes": (1000, 1001, 300, True),
    "no change after five minutes": (1000, 1000, 300, False),
    "from zero": (0, 1, 10, True),
    "from zero rests too": (0, 1, 9, False),
    "shrink to zero": (1000, 0, 0.1, True),
    "growth of exactly 10 % waits": (1000, 1100, 10, False),
}


@pytest.mark.parametrize(("before", "now", "since", "expected"), NODE_CASES.values(), ids=NODE_CASES.keys())
def test_due_for_node(before: int | None, now: int, since: float, expected: bool) -> None:
    """resourceDiffThreshold 10 %, updateTimeThreshold 300 s."""
    last = None if before is None else Published(lent(before)[:1], 1000.0)
    standing = {} if before is None else {BATCH_CPU: before}
    assert due_for_node(last, {BATCH_CPU: now}, standing, STRATEGY, 1000.0 + since) is expected


def test_a_strategy_s_own_thresholds() -> None:
    """resourceDiffThreshold 50 % and updateTimeThreshold 20 s."""
    strategy = ColocationStrategy(resource_diff_ratio=0.5, update_interval_seconds=20.0)
    last = Published(lent(1000)[:1], 0.0)
    told = [
        due_for_node(last, {BATCH_CPU: now}, last.amounts, strategy, at)
        for now, at in ((1499, 19), (1501, 19), (999, 19), (999, 20))
    ]
    assert told == [False, True, False, True]


@pytest.mark.parametrize("ratio", [0.1, 0.5, 1.0])
def test_no_threshold_keeps_what_is_not_there_on_offer(ratio: float) -> None:
    """However large a resourceDiffThreshold is: more than a tenth less is told at once, and a smaller one still counts."""
    strategy = ColocationStrategy(resource_diff_ratio=ratio, update_interval_seconds=3600.0)
    assert not due({BATCH_CPU: 1000}, {BATCH_CPU: 900}, 60.0, strategy)
    assert due({BATCH_CPU: 1000}, {BATCH_CPU: 899}, 0.1, strategy)
    finer = ColocationStrategy(resource_diff_ratio=0.01)
    assert due({BATCH_CPU: 1000}, {BATCH_CPU: 989}, 0.1, finer)


SETS: dict[str, tuple[set[str], set[str]]] = {
    "withdrawn": ({BATCH_CPU, BATCH_MEMORY}, set()),
    "one of two is withdrawn": ({BATCH_CPU, BATCH_MEMORY}, {BATCH_CPU}),
    "one goes while another comes": ({BATCH_MEMORY}, {BATCH_CPU}),
}


@pytest.mark.parametrize(("before", "now"), SETS.values(), ids=SETS.keys())
def test_what_goes_is_due_at_once(before: set[str], now: set[str]) -> None:
    """A resource that is no longer offered waits for nothing."""
    last = Published(tuple(d for d in lent(0) if d.name in before), 1000.0)
    assert due_for_node(last, dict.fromkeys(now, 0), dict.fromkeys(before, 0), STRATEGY, 1000.1)


@pytest.mark.parametrize("amount", [0, 5])
@pytest.mark.parametrize(("since", "expected"), [(0.1, False), (9.9, False), (10.0, True), (300.0, True)])
def test_what_comes_back_is_growth(amount: int, since: float, expected: bool) -> None:
    """One failed read withdraws at once; what is lent again after it has a rest, as all growth, even with nothing in it."""
    assert due({}, {BATCH_CPU: amount}, since, STRATEGY) is expected


@pytest.mark.parametrize(
    ("published", "standing", "since", "expected"),
    [
        (1000, {}, 6, True),
        (1000, {BATCH_CPU: 9000}, 6, True),
        (1000, {BATCH_CPU: 9000}, 4, False),
        (1000, {BATCH_CPU: 1000}, 6, False),
        (None, {BATCH_CPU: 9000}, 6, True),
        (None, {}, 6, False),
    ],
)
def test_what_others_wrote_is_put_right(
    published: int | None, standing: dict[str, int], since: float, expected: bool
) -> None:
    """A re-created Node, a foreign amount, keys that came back after they were removed; once our patch had time."""
    last = Published(() if published is None else lent(published)[:1], 1000.0)
    assert due_for_node(last, last.amounts, standing, STRATEGY, 1000.0 + since) is expected


@pytest.mark.parametrize("reason", [Reason.NODE_METRICS_MISSING, Reason.PODS_UNKNOWN, Reason.SETTINGS_UNREAD])
def test_a_young_blind_agent_keeps_what_is_published(reason: Reason) -> None:
    """A restart does not withdraw what is lent; staying blind does."""
    blind = lent(0, 0, reason)
    assert not may_publish(blind, 1.0) and not may_publish(blind, 15.0)
    assert may_publish(blind, 15.1)


@pytest.mark.parametrize(
    "reason", [Reason.COMPUTED, Reason.LENDING_DISABLED, Reason.NODE_METRICS_STALE, Reason.PODS_STALE]
)
def test_what_is_known_takes_effect_at_once(reason: Reason) -> None:
    """Switched off, or lending: a young agent knows that as well as an old one."""
    assert may_publish(lent(0, 0, reason), 0.0)


FIRST = OfferMemory()


def decide(build: Any, memory: OfferMemory = FIRST, lending: Any = None, **parts: Any) -> tuple[Any, NodeOffer]:
    """The offer of a node that offers 300m already, whose window is full."""
    pods, node = parts.get("pods", ()), build.node()
    told = ResourceVector({**node.allocatable.amounts, BATCH_CPU: 300, BATCH_MEMORY: 4})
    facts = {
        "node": msgspec.structs.replace(node, allocatable=told),
        "pods": pods,
        "admitted": admitted_requests(pods or (), ()),
        "acknowledged": {},
        "zones_on_node": None,
        "may_grow": True,
        "monotonic_seconds": 100.0,
    }
    return decide_offer(memory, build.lending(500, 9) if lending is None else lending, OfferFacts(**{**facts, **parts}))


def test_the_offer_of_a_tick(build: Any) -> None:
    """What may be lent; beside it what it is without growth, and what stays once nothing is lent."""
    _, offer = decide(build, pods=(build.batch("a", batch_cpu=200),))
    assert offer.amounts == all_four(500, 9) and offer.on_node == {BATCH_CPU: 300, BATCH_MEMORY: 4}
    assert amounts(offer.without_growth) == all_four(300, 4)
    assert amounts(offer.least) == {BATCH_CPU: 200}


def test_without_a_node_object_what_was_acknowledged_stands(build: Any) -> None:
    """Growth is measured by it, and it does not shrink under a pod that was just placed."""
    gang = (build.batch("a", batch_cpu=900, phase=PodPhase.PENDING),)
    _, offer = decide(build, node=None, acknowledged={BATCH_CPU: 250}, may_grow=False)
    assert offer.amounts == all_four(250, 0)
    _, offer = decide(build, lending=build.lending(0), node=None, acknowledged={BATCH_CPU: 250}, pods=gang)
    assert offer.amounts[BATCH_CPU] == 250


def test_without_node_and_pods_nothing_is_decided(build: Any) -> None:
    """Neither what stands nor what its pods need is known: no key is touched, not even to withdraw it."""
    _, offer = decide(build, node=None, pods=None)
    assert offer.decisions is None and offer.amounts == {}
    assert offer.withdrawn(Reason.OBSERVING).decisions is None


def test_an_offer_that_is_withdrawn(build: Any) -> None:
    """Only what running pods request stays, for the reason given; it is told also where nothing was told before."""
    blind = build.lending(reason=Reason.NODE_METRICS_MISSING)
    _, offer = decide(build, lending=blind, pods=(build.batch("a", batch_cpu=200),))
    assert not offer.may_publish
    gone = offer.withdrawn(Reason.OBSERVING)
    assert gone.may_publish and gone.amounts == {BATCH_CPU: 200}
    assert {decision.reason for decision in gone.decisions or ()} == {Reason.OBSERVING}


def test_a_blind_start_is_settled_after_a_while(build: Any) -> None:
    """Counted from the first tick; once something is known it is settled at once."""
    blind, memory, told = build.lending(reason=Reason.PODS_UNKNOWN), OfferMemory(), {}
    for at in (100.0, 115.0, 115.1):
        memory, offer = decide(build, memory, blind, pods=None, monotonic_seconds=at)
        told[at] = offer.may_publish
    assert told == {100.0: False, 115.0: False, 115.1: True}
    assert decide(build)[1].may_publish


def test_an_observer_offers_nothing(build: Any) -> None:
    """Whatever may be lent; what runs on the node keeps what it requests."""
    _, offer = decide(build, withheld=Reason.OBSERVING, pods=(build.batch("a", batch_cpu=200),))
    assert offer.amounts == {BATCH_CPU: 200}
    assert [decision.reason for decision in offer.decisions or ()] == [Reason.OBSERVING]


ZONES: dict[str, tuple[bool, dict[int, ResourceVector] | None, int | None]] = {
    # the window is full, what the zones say, what zone 0 offers of 500
    "a full window asks nobody": (True, None, 500),
    "a young agent must know what the zones say": (False, None, None),
    "and keeps to it": (False, {0: ResourceVector({BATCH_CPU: 200})}, 200),
    "a zone that says nothing offers nothing": (False, {}, 0),
}


@pytest.mark.parametrize(("may_grow", "on_node", "expected"), ZONES.values(), ids=ZONES.keys())
def test_zones_are_offered_with_the_node(
    build: Any, may_grow: bool, on_node: dict[int, ResourceVector] | None, expected: int | None
) -> None:
    """No zone grows early either."""
    lending = build.lending(500, 9)
    zone = ZoneLending(0, "node-0", lending.reclaimable[:2], lending.reclaimable[:2])
    lending = msgspec.structs.replace(lending, zones=(zone,))
    _, offer = decide(build, lending=lending, may_grow=may_grow, zones_on_node=on_node)
    assert (None if offer.zones is None else amounts(offer.zones[0])[BATCH_CPU]) == expected
    assert len(offer.every_decision) == 4 + (2 if expected is not None else 0)


small = st.integers(0, 9)


@given(lent=small, told=small, acknowledged=small, running=small, bound=small, full=st.booleans(), known=st.booleans())
def test_losing_something_never_offers_more(
    lent: int, told: int, acknowledged: int, running: int, bound: int, full: bool, known: bool
) -> None:
    """Neither the usage, nor the right to lend, nor the last tick; and none offers less than what running pods ask."""
    build = Build()
    pods = (build.batch("a", batch_cpu=running), build.batch("b", batch_cpu=bound, phase=PodPhase.PENDING))
    node = msgspec.structs.replace(build.node(), allocatable=ResourceVector({BATCH_CPU: told}))
    parts: dict[str, Any] = {
        "lending": build.lending(lent, 0),
        "pods": pods,
        "node": node if known else None,
        "acknowledged": {BATCH_CPU: acknowledged},
    }
    _, offer = decide(build, may_grow=full, **parts)
    _, young = decide(build, may_grow=False, **parts)
    _, observer = decide(build, may_grow=full, withheld=Reason.OBSERVING, **parts)
    stands = told if known else acknowledged
    for less in (young.amounts, observer.amounts, amounts(offer.without_growth), amounts(offer.least)):
        assert running <= less.get(BATCH_CPU, 0) <= offer.amounts.get(BATCH_CPU, 0)
    assert amounts(offer.without_growth).get(BATCH_CPU, 0) <= max(stands, running)
    assert offer.amounts.get(BATCH_CPU, 0) <= max(lent, running, min(stands, running + bound))
