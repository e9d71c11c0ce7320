"""Victims of each preemptor, case by case."""

from __future__ import annotations

from typing import Any

import pytest
from preemption_builders import NOW, Arena, members, node, queue_rules, resident, victims, waiting
from scheduler_builders import candidate, gang, in_group

from model.budget import DisruptionBudget
from model.node import Taint
from model.pod.affinity import Affinity, HostPort, PodTerm
from model.pod.colocation import EvictionTerms
from model.priority import PreemptionPolicy
from model.reason import Reason
from model.selector import Operator, Requirement, Selector
from model.workload import TopologyLevel, WorkloadId
from scheduler.core.placement.place import Placed, place
from scheduler.core.placement.working_snapshot import Assignment, Nominated
from scheduler.core.preemption.facts import GangFacts, NoPreemption, PreemptionPlan
from scheduler.core.preemption.plan import message
from scheduler.core.preemption.policy import PreemptionPolicySettings
from tests.pods import with_fields

TWO = (node("n1"), node("n2"))
WEB = Selector((Requirement("app", Operator.IN, ("web",)),))


def lone(name: str, **more: Any) -> Any:
    """One pod that fills n1."""
    return resident(name, "n1", 4, **more)


CHOICES: dict[str, tuple[Arena, Any, list[str]]] = {
    "the lower priority goes": (Arena(TWO, [lone("a", priority=2), resident("b", "n2", priority=1)]), {}, ["b"]),
    "one large pod rather than two small": (
        Arena(TWO, [resident("a", "n1", 2), resident("b", "n1", 2), resident("c", "n2", 4)]),
        {},
        ["c"],
    ),
    "two of low priority rather than one of higher": (
        Arena(TWO, [resident("a", "n1", 2), resident("b", "n1", 2), resident("c", "n2", 4, priority=1)]),
        {},
        ["a", "b"],
    ),
    "only as many as needed": (Arena([node()], [resident(name, cpu=1) for name in "dcba"]), {"cpu": 1}, ["a"]),
    "the youngest of equals": (
        Arena([node()], [resident("a", cpu=2, started_seconds=9e3), resident("b", cpu=2)]),
        {"cpu": 2},
        ["a"],
    ),
    "who loses least since its checkpoint": (
        Arena([node()], [resident("a", cpu=2, started_seconds=9e3), resident("b", cpu=2)]),
        {"cpu": 2, "saved": {"uid-b": NOW - 5}},
        ["b"],
    ),
    "who breaks no budget": (
        Arena(TWO, [lone("a", labels={"app": "web"}, started_seconds=9e3), resident("b", "n2")]),
        {"budgets": (DisruptionBudget("default", "web", WEB),)},
        ["b"],
    ),
    "a budget that allows one is no obstacle": (
        Arena(TWO, [lone("a", labels={"app": "web"}, started_seconds=9e3), resident("b", "n2")]),
        {"budgets": (DisruptionBudget("default", "web", WEB, allowed=1),)},
        ["a"],
    ),
    "a budget is broken where nobody else helps": (
        Arena([node()], [lone("a", labels={"app": "web"})]),
        {"budgets": (DisruptionBudget("default", "web", WEB),)},
        ["a"],
    ),
    "a budget without a selector covers nobody": (
        Arena(TWO, [lone("a", started_seconds=9e3), resident("b", "n2")]),
        {"budgets": (DisruptionBudget("default", "all", Selector()),)},
        ["a"],
    ),
    "a lone pod rather than half a gang": (
        Arena(TWO, [lone("a", group="g"), resident("b", "n2"), resident("c", "n2", 0, group="g")]),
        {},
        ["b"],
    ),
    "a gang at its minimum goes whole": (
        Arena(TWO, [lone("a", group="g"), resident("b", "n2", group="g")]),
        {},
        ["a", "b"],
    ),
    "a surplus member goes alone": (
        Arena(TWO, [lone("a", group="g"), resident("b", "n2", group="g", started_seconds=9e3)]),
        {"gangs": {WorkloadId.gang("default/g"): GangFacts(1, 2)}},
        ["b"],
    ),
    "a whole gang has no surplus": (
        Arena(TWO, [lone("a", group="g"), resident("b", "n2", group="g")]),
        {"gangs": {WorkloadId.gang("default/g"): GangFacts(1, 2, whole=True)}},
        ["a", "b"],
    ),
    "a protected pod stays": (Arena(TWO, [lone("a", preemptible=False), resident("b", "n2", priority=9)]), {}, ["b"]),
    "a pod that is only assumed stays": (
        Arena(TWO, [lone("a"), resident("b", "n2", priority=9)], assumed=["uid-a"]),
        {},
        ["b"],
    ),
    "a pod that started a moment ago stays": (
        Arena(TWO, [lone("a", started_seconds=NOW - 9), resident("b", "n2", priority=9)]),
        {"policy": PreemptionPolicySettings(minimum_runtime_seconds=10)},
        ["b"],
    ),
    "a pod bound a moment ago that has not started stays": (
        Arena(TWO, [lone("a", started_seconds=0.0, scheduled_seconds=NOW - 9), resident("b", "n2", priority=9)]),
        {"policy": PreemptionPolicySettings(minimum_runtime_seconds=10)},
        ["b"],
    ),
    "too small a difference of priority": (
        Arena(TWO, [lone("a", priority=95), resident("b", "n2", 4, priority=90, started_seconds=10.0)]),
        {"policy": PreemptionPolicySettings(minimum_priority_difference=10)},
        ["b"],
    ),
    "a job that lost a pod lately stays": (
        Arena(TWO, [lone("a"), resident("b", "n2", priority=9)]),
        {
            "policy": PreemptionPolicySettings(victim_cooldown_seconds=60),
            "evicted": {WorkloadId.pod("default/a"): NOW - 9},
        },
        ["b"],
    ),
    "work of a queue that borrows, whatever its priority": (
        Arena([node()], [lone("a", priority=1000)]),
        {"queues": queue_rules("p", {"p": 3000, "q": 1000}, used=4000, asks=3000)},
        ["a"],
    ),
    "for quota, though a node has room": (
        Arena([node(), node("n2")], [lone("a")]),
        {"queues": queue_rules("p", {"p": 3000, "q": 1000}, used=4000, asks=3000)},
        ["a"],
    ),
    "equal and newer under PreemptAlways": (
        Arena(TWO, [lone("a", priority=100, created_seconds=6e3, below_prod=True), resident("b", "n2", priority=100)]),
        {"pod": {"preemption_policy": PreemptionPolicy.ALWAYS}},
        ["a"],
    ),
    "a node it may not go to is left alone": (
        Arena([node("n1", taints=(Taint("gpu"),)), node("n2")], [lone("a"), resident("b", "n2", priority=9)]),
        {},
        ["b"],
    ),
    "a host port in use": (
        Arena(TWO, [resident("a", "n1", 1, host_ports=(HostPort(80),)), resident("b", "n2", 4, priority=9)]),
        {"cpu": 1, "pod": {"host_ports": (HostPort(80),)}},
        ["a"],
    ),
}


@pytest.mark.parametrize("name", CHOICES)
def test_choice(name: str) -> None:
    """For a lone pod of priority 100 that asks for 3 CPUs unless the case says otherwise."""
    arena, more, expected = CHOICES[name]
    more = dict(more)
    pod = waiting(cpu=more.pop("cpu", 3), **more.pop("pod", {}))
    assert victims(arena.ask([pod], **more)) == expected


REFUSALS: dict[str, tuple[Arena, Any, Reason]] = {
    "switched off": (
        Arena([node()], [lone("a")]),
        {"policy": PreemptionPolicySettings(enable=False)},
        Reason.PREEMPTION_DISABLED,
    ),
    "policy Never": (
        Arena([node()], [lone("a")]),
        {"pod": {"preemption_policy": PreemptionPolicy.NEVER}},
        Reason.PREEMPTION_POLICY_NEVER,
    ),
    "a plan is on its way": (
        Arena([node()], [lone("a")]),
        {"in_flight": frozenset({WorkloadId.pod("default/hp")})},
        Reason.PREEMPTION_IN_FLIGHT,
    ),
    "nobody there": (Arena([node(cpu=1)]), {}, Reason.PREEMPTION_NO_VICTIMS),
    "equal priority": (Arena([node()], [lone("a", priority=100)]), {}, Reason.PREEMPTION_NO_VICTIMS),
    "equal and older under PreemptAlways": (
        Arena([node()], [lone("a", priority=100, created_seconds=4e3)]),
        {"pod": {"preemption_policy": PreemptionPolicy.ALWAYS}},
        Reason.PREEMPTION_NO_VICTIMS,
    ),
    "equal and newer, but online, under PreemptAlways": (
        Arena([node()], [lone("a", priority=100, created_seconds=6e3)]),
        {"pod": {"preemption_policy": PreemptionPolicy.ALWAYS}},
        Reason.PREEMPTION_NO_VICTIMS,
    ),
    "system-critical pods": (
        Arena([node()], [lone("a", priority=2_000_000_000)]),
        {"pod": {"priority": 2_000_001_000}},
        Reason.PREEMPTION_NO_VICTIMS,
    ),
    "a queue keeps its own": (
        Arena([node()], [lone("a")]),
        {"queues": queue_rules("p", {"p": 3000, "q": 4000}, used=4000, asks=3000)},
        Reason.PREEMPTION_NO_VICTIMS,
    ),
    "its queue would lack quota even without them": (
        Arena([node(), node("n2")], [resident("a", cpu=1), resident("b", cpu=3, preemptible=False)]),
        {"queues": queue_rules("p", {"p": 3000, "q": 1000}, used=4000, asks=3000)},
        Reason.PREEMPTION_NOT_HELPFUL,
    ),
    "a gang of which one member stays": (
        Arena(TWO, [lone("a", group="g"), resident("b", "n2", group="g", preemptible=False)]),
        {},
        Reason.PREEMPTION_NO_VICTIMS,
    ),
    "still too large": (Arena([node()], [lone("a")]), {"cpu": 5}, Reason.PREEMPTION_NOT_HELPFUL),
    "the way is barred by something else": (
        Arena([node("n1", unschedulable=True)], [lone("a")]),
        {},
        Reason.PREEMPTION_NOT_HELPFUL,
    ),
    "too many": (
        Arena([node()], [resident(name, cpu=1) for name in "abcd"]),
        {"policy": PreemptionPolicySettings(most_victims=2)},
        Reason.PREEMPTION_TOO_MANY,
    ),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_refusal(name: str) -> None:
    """No pod is evicted, and the reason says why."""
    arena, more, expected = REFUSALS[name]
    more = dict(more)
    cpu, fields = more.pop("cpu", 3), more.pop("pod", {})
    outcome = arena.ask([waiting(cpu=cpu, **fields)], **more)
    assert isinstance(outcome, NoPreemption) and outcome.reason is expected


def test_a_lone_pod_in_vain() -> None:
    """Said of one pod, and of one victim, as of one."""
    outcome = Arena([node()], [lone("a")]).ask([waiting(cpu=5)])
    assert isinstance(outcome, NoPreemption)
    assert outcome.detail == "it would not fit even without the one pod that may be evicted"


def test_whole_job_as_in_the_guide() -> None:
    """Both pods go, both members are nominated, and the message names job and first member (S8–S10)."""
    arena = Arena([node("cn-1"), node("cn-2")], [resident("lp-1", "cn-1"), resident("lp-2", "cn-2")])
    outcome = arena.ask(members(2), gang(2))
    assert victims(outcome) == ["lp-1", "lp-2"]
    assert isinstance(outcome, PreemptionPlan)
    assert {(p.pod_key, p.node) for p in outcome.eviction.placements} == {
        ("default/w0", "cn-1"),
        ("default/w1", "cn-2"),
    }
    assert message(outcome.eviction, outcome.eviction.victims[0], "koord-scheduler") == (
        "koord-scheduler: preempting to accommodate higher priority pods, "
        "preemptor: default/train, triggerPod: default/w0"
    )


def test_room_for_one_member_only_evicts_nobody() -> None:
    """S12: members count each other's room, so no pod is evicted for a gang that still does not fit."""
    arena = Arena(TWO, [resident("a", "n1"), resident("b", "n2", priority=100)])
    outcome = arena.ask(members(2), gang(2))
    assert isinstance(outcome, NoPreemption) and outcome.reason is Reason.PREEMPTION_NOT_HELPFUL
    assert outcome.detail == "2 members would not fit together even without the one pod that may be evicted"


def test_one_member_with_never_holds_the_gang_back() -> None:
    """S20: the most restrictive policy among the waiting members counts."""
    pods = members(2)
    pods[1] = with_fields(pods[1], preemption_policy=PreemptionPolicy.NEVER)
    outcome = Arena(TWO, [resident("a", "n1"), resident("b", "n2")]).ask(pods, gang(2))
    assert isinstance(outcome, NoPreemption) and outcome.reason is Reason.PREEMPTION_POLICY_NEVER


def test_surplus_members_evict_nobody() -> None:
    """An elastic gang gets room for its minimum."""
    arena = Arena(TWO, [resident("a", "n1"), resident("b", "n2")])
    outcome = arena.ask(members(2), gang(1))
    assert (
        isinstance(outcome, PreemptionPlan) and len(outcome.eviction.victims) == len(outcome.eviction.placements) == 1
    )


def test_members_of_two_sizes() -> None:
    """Each size is looked at with the room the others leave."""
    pods = [*members(2, 2), waiting("big", 4, gang=in_group())]
    arena = Arena([node("n1"), node("n2"), node("n3")], [resident(name, f"n{i}") for i, name in enumerate("abc", 1)])
    outcome = arena.ask(pods, gang(3))
    assert isinstance(outcome, PreemptionPlan) and len(outcome.eviction.victims) == 2


def test_of_a_gang_those_go_first_whose_room_is_wanted() -> None:
    """The others of thousands take the API server seconds."""
    gang_of_four = [resident(name, f"n{number}", group="g") for number, name in enumerate("abcd")]
    arena = Arena([node(f"n{number}", labels={"host": f"n{number}"}) for number in range(4)], gang_of_four)
    outcome = arena.ask([waiting(node_selector={"host": "n2"})])
    assert isinstance(outcome, PreemptionPlan)
    first = outcome.eviction.victims[0]
    assert (first.pod_key, first.node, len(outcome.eviction.victims)) == ("default/c", "n2", 4)


def test_what_is_on_its_way_out_is_waited_for() -> None:
    """A deleting pod's room is coming: nominated, and nobody evicted."""
    arena = Arena(TWO, [resident("a", "n1", deleting=True), resident("b", "n2")])
    outcome = arena.ask([waiting()])
    assert victims(outcome) == []
    assert isinstance(outcome, PreemptionPlan) and outcome.eviction.placements[0].node == "n1"


@pytest.mark.parametrize(
    ("left", "grace", "below_prod", "goes"),
    [
        (20, 30, False, []),
        (250, 30, False, ["b"]),
        (250, 280, False, []),
        (250, 30, True, []),
    ],
    ids=["it ends soon", "it takes long", "the other one would take longer", "batch work waits"],
)
def test_an_online_pod_waits_for_nobody_who_takes_long_to_end(
    left: float, grace: float, below_prod: bool, goes: list[str]
) -> None:
    """How long a pod takes to end is the word of whoever made it, and deletes it."""
    bands = {"below_prod": below_prod}
    ending = resident("a", "n1", deleting=True, ends_seconds=NOW + left, **bands)
    arena = Arena(TWO, [ending, resident("b", "n2", grace_seconds=grace, **bands)])
    assert victims(arena.ask([waiting(**bands)])) == goes


def test_an_online_pod_waits_where_nobody_else_may_go() -> None:
    ending = resident("a", "n1", deleting=True, ends_seconds=NOW + 250)
    outcome = Arena(TWO, [ending, resident("b", "n2", priority=200)]).ask([waiting()])
    assert isinstance(outcome, PreemptionPlan) and outcome.eviction.placements[0].node == "n1"


def test_no_second_round_while_victims_terminate() -> None:
    """Somebody evicted for it is still there, on the node that is kept for it."""
    arena = Arena(TWO, [resident("a", "n1", deleting=True, disrupted=True), resident("b", "n2")])
    found = candidate([waiting()])
    held = Nominated(found.subject, 100, (Assignment("uid-hp", 0, found.classes[0]),))
    outcome = arena.ask([waiting()], None, held)
    assert isinstance(outcome, NoPreemption) and outcome.reason is Reason.VICTIMS_TERMINATING


def test_room_kept_for_an_equal_is_not_taken() -> None:
    """The nominated room of another counts as used."""
    arena = Arena(TWO, [resident("b", "n2")])
    held = Nominated(
        WorkloadId.pod("default/other"), 100, (Assignment("x", 0, candidate([waiting(cpu=4)]).classes[0]),)
    )
    assert victims(arena.ask([waiting()], None, held)) == ["b"]


def test_the_domain_with_the_least_to_lose() -> None:
    """All members in one rack, so not the two cheapest nodes."""
    racks = [node(f"n{i}", labels={"rack": "ab"[i % 2]}) for i in range(4)]
    priorities = [1, 2, 9, 2]
    arena = Arena(racks, [resident(f"p{i}", f"n{i}", priority=priorities[i]) for i in range(4)])
    spec = {"topology": (TopologyLevel("rack", required=True),)}
    assert victims(arena.ask(members(2), gang(2, **spec))) == ["p1", "p3"]


def test_anti_affinity_of_a_resident() -> None:
    """Who keeps it away goes, though there is room beside it."""
    away = PodTerm("kubernetes.io/hostname", Selector((Requirement("app", Operator.IN, ("hp",)),)))
    nodes = [node(name, labels={"kubernetes.io/hostname": name}) for name in ("n1", "n2")]
    shy = resident("a", "n1", 1, affinity=Affinity(anti_pods=(away,)))
    arena = Arena(nodes, [shy, resident("b", "n1", 1), resident("c", "n2", 4, priority=9)])
    assert victims(arena.ask([waiting(cpu=1, labels={"app": "hp"})])) == ["a"]


def test_victims_carry_their_notice() -> None:
    """Who asks to be told says how long before."""
    arena = Arena([node()], [lone("a", eviction=EvictionTerms(notice_seconds=30.0))])
    outcome = arena.ask([waiting()])
    assert isinstance(outcome, PreemptionPlan) and outcome.eviction.victims[0].notice_seconds == 30.0


def test_after_the_plan_everybody_fits() -> None:
    """The nominated assignments are room once the victims are gone; without one of them they are not."""
    arena = Arena(TWO, [resident(f"p{i}", f"n{1 + i % 2}", 1, priority=i) for i in range(8)])
    pods = members(3, 2)
    outcome = arena.ask(pods, gang(3))
    gone = set(victims(outcome))
    for spared in (None, *sorted(gone)):
        left = Arena(TWO, [pod for pod in arena.pods if pod.name not in gone or pod.name == spared])
        assert isinstance(place(left.working(), candidate(pods, gang(3))), Placed) == (spared is None)


def test_nobody_goes_for_a_member_above_the_minimum() -> None:
    """The gang has what it needs; its surplus waits for room."""
    pods = members(2)
    pods[0] = with_fields(pods[0], node_name="n2")
    outcome = Arena(TWO, [resident("a", "n1")]).ask(pods, gang(1))
    assert isinstance(outcome, NoPreemption) and outcome.reason is Reason.PREEMPTION_NOT_NEEDED


def full_nodes(count: int, each: int, seconds: float) -> Arena:
    """Nodes full of pods of 1 CPU that started within so many seconds, the younger the later in the alphabet."""
    number = count * each
    step = seconds / number
    pods = [resident(f"p{i:03}", f"n{i % count:02}", 1, started_seconds=6000 + i * step) for i in range(number)]
    return Arena([node(f"n{i:02}", each) for i in range(count)], pods)


PACKED: dict[str, tuple[int, int, float, list[Any], int]] = {
    "a gang of four": (8, 4, 5.0, members(4, 1), 1),
    "a gang of 64": (48, 4, 60.0, members(64, 1), 16),
    "a gang of 64, some minutes apart": (48, 4, 600.0, members(64, 1), 16),
    "a gang of larger pods": (16, 4, 30.0, members(6, 2), 3),
    "pods of two sizes": (8, 4, 5.0, [*members(2, 1), waiting("x", 2, gang=in_group())], 1),
}


@pytest.mark.parametrize("name", PACKED)
def test_pods_of_about_one_age_go_from_few_nodes(name: str) -> None:
    """No more nodes lose pods, and no more get members, than have to, though the youngest are spread over all."""
    count, each, seconds, pods, expected = PACKED[name]
    outcome = full_nodes(count, each, seconds).ask(pods, gang(len(pods)))
    assert isinstance(outcome, PreemptionPlan)
    assert len(outcome.eviction.victims) == sum(pod.spec.requests["cpu"] for pod in pods) // 1000
    assert len({victim.node for victim in outcome.eviction.victims}) == expected
    assert len({placement.node for placement in outcome.eviction.placements}) == expected


@pytest.mark.parametrize(
    ("older", "younger", "saved", "expected"),
    [
        (700, 600, (), ["a", "b"]),
        (1000, 600, (), ["c", "e"]),
        (9000, 8500, (), ["a", "b"]),
        (9000, 600, (), ["c", "e"]),
        (9000, 600, ("a", "b"), ["a", "b"]),
        (20, 1, (), ["a", "b"]),
        (90, 1, (), ["c", "e"]),
    ],
)
def test_one_node_or_the_younger_pods_of_two(
    older: float, younger: float, saved: tuple[str, ...], expected: list[str]
) -> None:
    """The pods a and b of one node against c and e, a node each: two doublings of lost work weigh more than a node."""
    ages = {"a": older, "b": older, "c": younger, "d": 9900, "e": younger, "f": 9900}
    nodes = dict(zip("abcdef", ("n1", "n1", "n2", "n2", "n3", "n3"), strict=True))
    pods = [resident(name, nodes[name], 2, started_seconds=NOW - age) for name, age in ages.items()]
    arena = Arena([node("n1"), node("n2"), node("n3")], pods)
    kept = {f"uid-{name}": NOW for name in saved}
    assert victims(arena.ask(members(2, 2), gang(2), saved=kept)) == expected


def test_work_below_prod_is_told_whom_it_may_not_evict() -> None:
    """The count of pods outside the bands is in the refusal."""
    outcome = Arena([node()], [lone("a"), lone("b", below_prod=True, priority=200)]).ask([waiting(below_prod=True)])
    assert isinstance(outcome, NoPreemption) and outcome.reason is Reason.PREEMPTION_NO_VICTIMS
    assert outcome.detail == "of 2 pods: 1 same or higher priority, 1 outside the mid, batch and free bands"


def test_a_gang_that_reaches_outside_the_bands_is_not_inside() -> None:
    """A gang of which one member is outside goes after a lone pod of the bands, though its others are inside."""
    gang_of_two = [lone("a", group="g", below_prod=True), resident("b", "n2", 1, group="g")]
    arena = Arena([*TWO, node("n3")], [*gang_of_two, resident("c", "n3", below_prod=True, priority=9)])
    assert victims(arena.ask([waiting(cpu=4)])) == ["c"]


def test_a_gang_of_which_some_are_illegal_loses_no_more_than_its_surplus() -> None:
    """Where only more of it would help, and a member may not be evicted, no pod is."""
    own = {"group": "g", "below_prod": True}
    pods = [resident("a", "n1", 2, **own), resident("b", "n1", 2, **own), resident("c", "n2", 4, group="g")]
    facts = {"gangs": {WorkloadId.gang("default/g"): GangFacts(2, 3)}}
    outcome = Arena(TWO, pods).ask([waiting(cpu=4, below_prod=True)], **facts)
    assert isinstance(outcome, NoPreemption) and outcome.reason is Reason.PREEMPTION_NOT_HELPFUL


def test_bands_count_where_affinity_decides() -> None:
    """Of two who keep it away the one inside the bands goes, though its number is higher; so does the one no budget keeps."""
    away = PodTerm("kubernetes.io/hostname", Selector((Requirement("app", Operator.IN, ("hp",)),)))
    nodes = [node(name, labels={"kubernetes.io/hostname": name}) for name in ("n1", "n2")]
    shy = {"affinity": Affinity(anti_pods=(away,))}
    asking = waiting(cpu=1, labels={"app": "hp"})
    inside = Arena(nodes, [resident("a", "n1", 1, **shy), resident("b", "n2", 1, priority=9, below_prod=True, **shy)])
    assert victims(inside.ask([asking])) == ["b"]
    web = {"labels": {"app": "web"}} | shy
    kept = Arena(nodes, [resident("a", "n1", 1, **web), resident("b", "n2", 1, priority=9, **shy)])
    assert victims(kept.ask([asking], budgets=(DisruptionBudget("default", "web", WEB),))) == ["b"]
