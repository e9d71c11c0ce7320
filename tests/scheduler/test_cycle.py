"""The loop with fakes and a clock that is told the time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec
import pytest
from scheduler_builders import raw_group, raw_node, raw_pod
from scheduler_fakes import World

from kube import objects
from model.fault import KubernetesFault
from model.reason import Reason
from scheduler.core.gangs.assembly import Candidate
from scheduler.core.placement.working_snapshot import WorkingSnapshot
from scheduler.core.queueing.backoff import BackoffPolicy
from scheduler.core.queueing.order import Ranking
from scheduler.settings import SchedulerSettings
from scheduler.steps.capacity_holds import CapacityHolds

GANG = [raw_pod(f"w{i}", group="train", created=float(i)) for i in range(3)]
SHORT = "0/1 nodes are available: 1 Insufficient kubernetes.io/batch-cpu."


def bound(name: str, node: str = "n1", **more: object) -> objects.Pod:
    return raw_pod(name, group="train", node_name=node, **more)  # type: ignore[arg-type]


def test_a_lone_pod_is_bound() -> None:
    """Bound to the node with room, said with an Event, decided with terms that sum up."""
    world = World().see(raw_node(), raw_pod())
    turn = world.turn()
    assert world.binder.assigned == {"p1": "n1"}
    assert world.announcer.events == [("Scheduled", "p1", "n1")]
    assert [(d.subject, d.reason, d.value) for d in turn.decisions] == [("pod/default/p1", Reason.SCHEDULED, 1)]


def test_pods_of_others_are_left_alone_but_counted() -> None:
    """Another scheduler's pending pod is not touched, its bound pod takes room."""
    other = raw_pod("theirs", scheduler_name="default-scheduler")
    taken = raw_pod("taken", scheduler_name="default-scheduler", node_name="n1", batch_cpu="800")
    world = World().see(raw_node(), other, taken, raw_pod())
    world.turn()
    assert world.binder.assigned == {}
    assert world.writer.conditions == {"p1": SHORT}


def test_a_gang_binds_whole_or_not_at_all() -> None:
    """Short of one member nobody binds and each says the same; when batch-cpu grows all bind."""
    world = World().see(raw_node(batch_cpu="1000"), raw_group(), *GANG)
    world.turn()
    message = f"gang default/train: 2 of 3 members fit; {SHORT}"
    assert world.binder.assigned == {}
    assert world.writer.conditions == {"w0": message, "w1": message, "w2": message}
    world.see(raw_node(batch_cpu="1500")).turn(after=1.0)
    assert world.binder.assigned == {"w0": "n1", "w1": "n1", "w2": "n1"}


def test_nothing_is_tried_without_news() -> None:
    """News of what is lacking ends the back-off; without any a workload is tried again after five minutes."""
    world = World().see(raw_node(batch_cpu="100"), raw_pod())
    world.turn()
    assert world.turn(after=100.0).decisions == []
    assert world.cycle.backlog.next_due() == world.clock.now + 200.0
    assert len(world.turn(after=200.0).decisions) == 1
    assert world.turn(after=1.0).decisions == []
    world.see(raw_node(batch_cpu="200"))
    assert world.turn(after=1.0).decisions == []
    world.see(raw_node(batch_cpu="500"))
    assert len(world.turn(after=1.0).decisions) == 1


def test_a_shrinking_node_wakes_nobody() -> None:
    """Only what may have made room does."""
    world = World().see(raw_node(batch_cpu="100"), raw_pod())
    world.turn()
    world.see(raw_node(batch_cpu="50"))
    assert world.turn(after=50.0).decisions == []


def test_identical_messages_are_written_once() -> None:
    """A retry with the same outcome writes no condition and no event; neither does a restart that reads it."""
    world = World().see(raw_node(batch_cpu="100"), raw_pod())
    world.turn()
    world.see(raw_node(batch_cpu="200")).turn(after=2.0)
    assert (world.writer.writes, len(world.told("p1"))) == (1, 1)
    fresh = World().see(raw_node(batch_cpu="100"), raw_pod(condition=SHORT))
    fresh.turn()
    assert (fresh.writer.writes, fresh.told("p1")) == (0, [])


def test_a_failed_condition_write_is_made_good() -> None:
    """What could not be written is written with the next attempt."""
    world = World().see(raw_node(batch_cpu="100"), raw_pod())
    world.writer.failing = True
    world.turn()
    assert world.writer.conditions == {}
    world.see(raw_node(batch_cpu="200")).turn(after=2.0)
    assert world.writer.conditions == {"p1": SHORT}


def test_a_failed_write_about_pods_that_are_held_is_made_good() -> None:
    """Nothing else would ever try them again."""
    world = World().see(raw_node(), raw_group(), *GANG[:2])
    world.turn()
    world.writer.failing = True
    world.turn(after=1.0)
    assert len(world.writer.conditions) == 1
    for _ in range(3):
        world.turn(after=1.0)
    assert world.writer.conditions.keys() == {"w0", "w1"}


def test_bind_failure_in_mid_gang_releases_the_rest() -> None:
    """With one binding at a time the second fails: the third is not tried, both are tried together later."""
    world = World(SchedulerSettings(concurrent_binds=1)).see(raw_node(batch_cpu="2000"), raw_group(), *GANG)
    world.binder.failures["w1"] = KubernetesFault("POST", "403 forbidden", status=403)
    world.turn()
    assert world.binder.assigned == {"w0": "n1"}
    world.see(bound("w0"))
    turn = world.turn()
    assert [decision.reason for decision in turn.decisions] == [Reason.BIND_FAILED]
    assert world.writer.conditions.keys() == {"w1", "w2"}
    assert world.cache.ledger.nodes["n1"]["pods"] == 1
    world.turn(after=0.5)
    assert world.binder.assigned == {"w0": "n1"}
    world.turn(after=0.6)
    assert world.binder.assigned == {"w0": "n1", "w1": "n1", "w2": "n1"}


def test_repeated_bind_failures_back_off() -> None:
    """The delay doubles with each failed binding."""
    world = World().see(raw_node(), raw_pod())
    delays = []
    for _ in range(3):
        world.binder.failures["p1"] = KubernetesFault("POST", "403 forbidden", status=403)
        world.turn()
        world.turn()
        due = world.cycle.backlog.next_due()
        assert due is not None
        delays.append(due - world.clock.now)
        world.clock.now = due
    assert delays == [1.0, 2.0, 4.0]


@pytest.mark.parametrize("status", [404, 409])
def test_ordinary_refusals_are_not_told(status: int) -> None:
    """A pod that is gone or bound by somebody else gets no condition; its next change settles it."""
    world = World().see(raw_node(), raw_pod())
    world.binder.failures["p1"] = KubernetesFault("POST", f"{status}", status=status)
    world.turn()
    world.turn()
    assert world.writer.conditions == {}
    world.see(raw_pod(node_name="n2")).turn(after=2.0)
    assert world.binder.assigned == {}
    assert world.cache.ledger.nodes == {"n2": {"kubernetes.io/batch-cpu": 500, "pods": 1}}


def test_restart_in_mid_gang_completes_it() -> None:
    """Two of three are bound already: the third goes alone; with less room than it needs it waits."""
    start = [raw_group(), bound("w0"), bound("w1"), GANG[2]]
    world = World().see(raw_node(batch_cpu="1500"), *start)
    world.turn()
    assert world.binder.assigned == {"w2": "n1"}
    tight = World().see(raw_node(batch_cpu="1200"), *start)
    tight.turn()
    assert tight.writer.conditions["w2"] == f"gang default/train: 2 of 3 members fit (2 placed before); {SHORT}"


def test_rejected_member_is_replaced() -> None:
    """A member that the kubelet turned away frees its room, and a new pod in its place completes the gang."""
    world = World().see(raw_node(batch_cpu="1500"), raw_group(), *GANG)
    world.turn()
    world.see(bound("w0"), bound("w1"), bound("w2", phase="Failed")).turn()
    assert world.cache.ledger.nodes["n1"]["pods"] == 2
    world.see(raw_pod("w3", group="train", created=9.0)).turn()
    assert world.binder.assigned["w3"] == "n1"


def test_pod_deleted_while_assumed() -> None:
    """Its room is free again, and nothing is left behind."""
    world = World().see(raw_node(batch_cpu="500"), raw_pod())
    world.turn()
    world.gone(raw_pod()).see(raw_pod("p2")).turn()
    assert world.binder.assigned == {"p1": "n1", "p2": "n1"}


def test_deleting_pod_counts_until_it_is_gone() -> None:
    """Room comes back when the pod is gone, not when its deletion begins."""
    world = World().see(raw_node(batch_cpu="500"), raw_pod("old", node_name="n1", deleting=True), raw_pod())
    world.turn()
    assert world.binder.assigned == {}
    world.gone(raw_pod("old")).turn(after=1.0)
    assert world.binder.assigned == {"p1": "n1"}


def test_node_lost() -> None:
    """A node that is gone takes nothing any more; pods wait and say why."""
    world = World().see(raw_node(), raw_node("n2"))
    world.turn()
    world.gone(raw_node()).see(raw_pod()).turn()
    assert world.binder.assigned == {"p1": "n2"}
    world.gone(raw_node("n2")).see(raw_pod("p3")).turn()
    assert world.writer.conditions == {"p3": "no nodes available to schedule pods"}


def test_unreadable_pod_costs_one_message() -> None:
    """It is named once, on itself; everything else goes on."""
    bad = raw_pod("bad", batch_cpu="many")
    world = World().see(raw_node(), bad, raw_pod())
    world.turn()
    world.see(bad).turn(after=5.0)
    assert world.binder.assigned == {"p1": "n1"}
    assert len(world.told("bad")) == 1
    assert "'many' is not a quantity" in world.writer.conditions["bad"]
    assert world.meter.refusals == ["Pod"]


def test_an_unreadable_pod_closes_its_node() -> None:
    """What another scheduler's pod takes is not known: nothing new goes there while it is there, said once."""
    theirs = raw_pod("theirs", batch_cpu="many", node_name="n1", scheduler_name="other")
    world = World().see(raw_node(), theirs, raw_pod())
    refusals = world.turn().refusals
    assert len(refusals) == 1
    assert refusals[0].message.endswith("node n1 gets no new pods while this one is there")
    assert world.writer.conditions == {
        "p1": "0/1 nodes are available: 1 node(s) held a pod whose resources cannot be read."
    }
    assert world.see(theirs).turn(after=5.0).refusals == []
    assert world.binder.assigned == {}
    world.gone(theirs).turn()
    assert world.binder.assigned == {"p1": "n1"}


@pytest.mark.parametrize("change", [{"phase": "Succeeded"}, {"batch_cpu": "500"}])
def test_a_closed_node_opens(change: dict[str, str]) -> None:
    """Once the unreadable pod has ended, or can be read."""
    world = World().see(raw_node(), raw_pod("theirs", batch_cpu="many", node_name="n1"), raw_pod())
    world.turn()
    fields = {"batch_cpu": "many"} | change
    world.see(raw_pod("theirs", node_name="n1", **fields)).turn(after=5.0)  # type: ignore[arg-type]
    assert world.binder.assigned == {"p1": "n1"}


@pytest.mark.parametrize(("node", "batch_cpu"), [("n2", "500"), ("n1", "100")])
def test_room_given_up_by_an_assumed_pod_wakes(node: str, batch_cpu: str) -> None:
    """A pod that landed elsewhere than assumed, or asks for less, makes room that somebody waits for."""
    world = World().see(raw_node(batch_cpu="600"), raw_pod("first"), raw_pod("second", created=1.0))
    world.turn()
    assert world.binder.assigned == {"first": "n1"}
    world.see(raw_pod("first", node_name=node, batch_cpu=batch_cpu)).turn(after=5.0)
    assert world.binder.assigned == {"first": "n1", "second": "n1"}


def test_a_phase_survives_a_failed_write() -> None:
    """The status that is written in the end is the one that was decided, with the phase it had reached."""
    world = World(SchedulerSettings(backoff=BackoffPolicy(0.0, 0.0))).see(raw_node(batch_cpu="2000"), raw_group())
    world.see(*(bound(f"w{i}", phase="Running") for i in range(3))).turn()
    assert world.writer.statuses["train"].phase == "Running"
    world.writer.failing = True
    world.see(bound("w2", phase="Pending")).turn()
    world.turn()
    assert (world.writer.statuses["train"].phase, world.writer.statuses["train"].running) == ("Scheduled", 2)


def test_a_lost_answer_keeps_the_room() -> None:
    """A binding that was made although its answer got lost is charged, and no second pod goes to its room."""
    world = World(SchedulerSettings(backoff=BackoffPolicy(0.0, 0.0))).see(raw_node(batch_cpu="500"), raw_pod())
    world.binder.lost, world.binder.silent = {"p1"}, 2
    world.turn()
    world.see(raw_pod("p2")).turn()
    assert world.binder.assigned == {"p1": "n1"}


def test_an_unsupported_members_decision_goes_with_it() -> None:
    """Nothing is remembered of a pod that is gone, whatever gang it was in."""
    member = raw_pod("w0", group="train")
    claim = [{"name": "gpu", "resourceClaimName": "gpu"}]
    member = msgspec.structs.replace(member, spec=msgspec.structs.replace(member.spec, resource_claims=claim))
    world = World().see(raw_node(), raw_group(), member)
    world.turn()
    assert world.history.newest("pod/default/w0") is not None
    world.gone(member).turn()
    assert world.history.newest("pod/default/w0") is None


def test_unreadable_node_lends_nothing() -> None:
    """It is left out until it can be read again."""
    world = World().see(raw_node(batch_cpu="?"), raw_pod())
    world.turn()
    assert world.binder.assigned == {}
    world.see(raw_node()).turn(after=1.0)
    assert world.binder.assigned == {"p1": "n1"}


def test_gang_without_pod_group_then_with_it() -> None:
    """Said only once it lasts; the gang goes as soon as its PodGroup exists."""
    world = World().see(raw_node(batch_cpu="2000"), *GANG)
    world.turn()
    assert world.writer.conditions == {}
    world.turn(after=1.0)
    assert "PodGroup default/train does not exist" in world.writer.conditions["w0"]
    world.see(raw_group()).turn()
    assert len(world.binder.assigned) == 3


def test_invalid_pod_group() -> None:
    """One warning on the PodGroup, one message on its pod, and all well once it is mended."""
    world = World().see(raw_node(), raw_group(minimum=0), raw_pod("w0", group="train"))
    world.turn()
    problem = "PodGroup default/train: spec.minMember is 0; write a whole number of 1 or more"
    assert [event for event in world.announcer.events if event[0] == "GangInvalid"] == [
        ("GangInvalid", "train", problem)
    ]
    assert world.writer.conditions == {"w0": f"gang default/train: {problem}"}
    world.see(raw_group(minimum=1)).turn()
    assert world.binder.assigned == {"w0": "n1"}


def test_members_being_created_cost_no_writes() -> None:
    """A gang that fills up within a second is never told that it waits."""
    world = World().see(raw_node(batch_cpu="2000"), raw_group())
    for pod in GANG:
        world.see(pod).turn(after=0.5)
    assert (world.writer.writes, len(world.binder.assigned)) == (0, 3)


def test_a_large_head_does_not_block_others() -> None:
    """What fits behind it goes."""
    world = World().see(raw_node(batch_cpu="1000"), raw_group(), *GANG, raw_pod("small", created=99.0))
    world.turn()
    assert world.binder.assigned == {"small": "n1"}


def test_budget_leaves_the_rest_for_the_next_turn() -> None:
    """A turn stops after its budget, in order, and says that there is more."""
    world = World(SchedulerSettings(workloads_per_cycle=1)).see(
        raw_node(), raw_pod("b", created=2.0), raw_pod("a", created=1.0)
    )
    assert world.turn().more
    assert world.binder.assigned == {"a": "n1"}
    assert not world.turn().more
    assert world.binder.assigned == {"a": "n1", "b": "n1"}


def test_who_is_not_tried_is_not_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """The order of thousands costs as much as their decisions, though one that was passed over stands last of them."""
    world = World(SchedulerSettings(workloads_per_cycle=4)).see(raw_node(batch_cpu="100000"))
    world.see(raw_pod("last", created=99.0), *(raw_pod(f"p{i:02}", created=float(i)) for i in range(40)))
    order, asked = world.cycle.quotas.ordered, list[str]()

    def ordered(candidates: Iterable[Candidate], ranking: Ranking) -> Iterator[Candidate]:
        for candidate in order(candidates, ranking):
            asked.append(candidate.subject.name)
            yield candidate

    monkeypatch.setattr(world.cycle.quotas, "ordered", ordered)
    world.turn()
    asked.clear()
    world.turn()
    assert "last" in world.binder.assigned and len(asked) < 8


def test_gangs_of_unlike_members_take_turns() -> None:
    """One of twenty classes is as much as ten lone pods; it is placed whole, and those behind it in later turns."""
    world = World(SchedulerSettings(workloads_per_cycle=8)).see(raw_node(batch_cpu="100000"))
    for name in "abcd":
        world.see(raw_group(name, 20))
        world.see(*(raw_pod(f"{name}{i}", batch_cpu=f"{100 + i}", group=name, created=ord(name)) for i in range(20)))
    bound = []
    while world.turn().more:
        bound.append(len(world.binder.assigned))
    assert (bound, len(world.binder.assigned)) == ([20, 60], 80)


def test_gangs_whose_members_keep_apart_take_turns() -> None:
    """Where one is decides where the next may be, so each is asked for by itself, though they are alike."""
    world = World(SchedulerSettings(workloads_per_cycle=8))
    world.see(*(raw_node(f"n{i:02}") for i in range(20)))
    for name in "abcd":
        world.see(raw_group(name, 20))
        world.see(*(apart(raw_pod(f"{name}{i}", batch_cpu="1", group=name, created=ord(name))) for i in range(20)))
    bound = []
    while world.turn().more:
        bound.append(len(world.binder.assigned))
    assert (bound, len(world.binder.assigned)) == ([20, 60], 80)


def apart(pod: objects.Pod) -> objects.Pod:
    """With a term that keeps its like out of its topology domain, which no node here is in."""
    term = {"labelSelector": {"matchLabels": {"no": "pod"}}, "topologyKey": "rack"}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, affinity=affinity))


def test_many_that_fit_nowhere_keep_nobody_from_being_tried() -> None:
    """Each pod that changes wakes all of them, and they stand before the online pod in the order."""
    world = World(SchedulerSettings(workloads_per_cycle=4)).see(raw_node(batch_cpu="2000"))
    world.see(*(lonely(f"b{i}", created=float(i)) for i in range(6))).turn()
    world.see(raw_pod("web", created=99.0))
    for moment in range(6):
        other = raw_pod("other", batch_cpu="1", node_name="n1", phase="Running", labels={"moment": f"{moment}"})
        assert world.see(other).turn(after=0.1).more
    assert world.binder.assigned == {"web": "n1"}


def test_many_of_one_namespace_take_no_attempts_of_others() -> None:
    """Those that were passed over are tried by namespaces in turn."""
    world = World(SchedulerSettings(workloads_per_cycle=4)).see(raw_node(batch_cpu="2000"))
    world.see(*(lonely(f"b{i}", created=float(i)) for i in range(30))).turn()
    shop = raw_pod("shop", created=99.0, priority=5000)
    world.see(msgspec.structs.replace(shop, metadata=msgspec.structs.replace(shop.metadata, namespace="shop")))
    for moment in range(3):
        other = raw_pod("other", batch_cpu="1", node_name="n1", phase="Running", labels={"moment": f"{moment}"})
        world.see(other).turn(after=0.1)
    assert world.binder.assigned == {"shop": "n1"}


def test_who_waits_for_a_pod_that_ends_uses_up_no_plan() -> None:
    """What ends by itself is enough for them, so nobody is evicted, however often news wakes them."""
    world = World(SchedulerSettings(preemptions_per_cycle=2)).see(raw_node(), raw_node("n2", batch_cpu="10"))
    world.see(raw_pod("old", batch_cpu="1000", node_name="n1", phase="Running", deleting=True, priority=5000))
    world.see(*(raw_pod(f"b{i}", batch_cpu=f"{100 + i}", created=float(i), priority=5000) for i in range(3))).turn()
    turn = world.see(raw_node("n3", batch_cpu="1"), raw_pod("web", batch_cpu="5", created=99.0)).turn(after=0.1)
    assert ([len(plan.victims) for plan in turn.plans], turn.more, world.binder.assigned) == (
        [0, 0, 0],
        False,
        {"web": "n2"},
    )


def test_an_online_pod_waits_for_no_plans_of_batch_work_before_it() -> None:
    """Whoever makes preemptors as fast as turns make plans would keep it waiting for ever."""
    world = World(SchedulerSettings(preemptions_per_cycle=1)).see(raw_node("free", batch_cpu="5"))
    for i in range(3):
        world.see(raw_node(f"n{i}"), raw_pod(f"v{i}", batch_cpu="1000", node_name=f"n{i}", priority=5000))
        world.see(raw_pod(f"b{i}", batch_cpu=f"{900 + i}", priority=5500))
    world.see(raw_pod("small", batch_cpu="1", priority=5100), raw_pod("web", batch_cpu="5", created=99.0))
    turn = world.turn()
    assert ([len(plan.victims) for plan in turn.plans], turn.more, world.binder.assigned) == (
        [1],
        True,
        {"web": "free"},
    )


def lonely(name: str, created: float) -> objects.Pod:
    """Of the batch band, beside pods that do not exist; no two are alike."""
    pod = raw_pod(name, batch_cpu="1", created=created, priority=5000)
    term = {"labelSelector": {"matchLabels": {"beside": name}}, "topologyKey": "kubernetes.io/hostname"}
    affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, affinity=affinity))


def test_pod_group_status_follows() -> None:
    """Phase and counts are written as they change."""
    world = World().see(raw_node(batch_cpu="2000"), raw_group(), *GANG)
    world.turn()
    assert world.writer.statuses["train"].phase == "Scheduling"
    world.see(bound("w0"), bound("w1"), bound("w2", phase="Running")).turn()
    status = world.writer.statuses["train"]
    assert (status.phase, status.scheduled, status.running) == ("Scheduled", 3, 1)


def test_decisions_are_kept_until_the_pod_is_gone() -> None:
    """The newest decision about a pod can be asked for as long as the pod exists."""
    world = World().see(raw_node(), raw_pod())
    world.turn()
    assert world.history.newest("pod/default/p1") is not None
    world.gone(raw_pod()).turn()
    assert world.history.newest("pod/default/p1") is None


def test_thousands_alike_are_judged_once() -> None:
    """News that does not help them costs one decision, however many wait; the one it helps is placed."""
    world = World().see(raw_node(batch_cpu="100"), *(raw_pod(f"p{i}", created=float(i)) for i in range(300)))
    while world.turn().more:
        pass
    assert world.writer.writes == 300
    world.see(raw_node(batch_cpu="200"))
    assert world.turn(after=1.0).decisions == []
    assert len(world.turn(after=300.0).decisions) == 1
    world.see(raw_node(batch_cpu="500"))
    turn = world.turn(after=1.0)
    assert ([decision.reason for decision in turn.decisions], turn.more) == (
        [Reason.SCHEDULED, Reason.INSUFFICIENT_BATCH],
        False,
    )
    assert world.binder.assigned == {"p0": "n1"}
    assert world.writer.writes == 300


def test_of_thousands_bound_in_part_a_turn_looks_at_some(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether there is room to keep for the rest of each takes a look at all nodes; attempts do not count it."""
    looked: list[str] = []
    hold = CapacityHolds.hold

    def noted(holds: CapacityHolds, working: WorkingSnapshot, candidate: Candidate, now: float) -> None:
        looked.append(candidate.subject.name)
        hold(holds, working, candidate, now)

    monkeypatch.setattr(CapacityHolds, "hold", noted)
    world = World().see(raw_node(batch_cpu="1000"))
    for index in range(100):
        told = f"g{index}"
        world.see(raw_group(told, 2), raw_pod(f"a{index}", group=told, phase="Succeeded", node_name="n1"))
        world.see(raw_pod(f"b{index}", group=told, batch_cpu="5000"))
    turns = []
    for _ in range(4):
        world.turn(after=0.1)
        turns.append(len(looked))
    assert (turns[0] < 50, len(set(looked))) == (True, 100)
