"""One path for all evictions: victims are told on the pod and by the link, spared, found again after a restart."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import msgspec
import pytest
from kueue_world import cluster_queue, flavor, gpu_node, gpu_pod, local_queue, namespace
from scheduler_builders import raw_group, raw_node, raw_pod
from scheduler_fakes import World
from suspended_world import SuspendedWorld

from kube import objects
from kube.dialects.sublet.preemption_notice import ANNOTATION_STANDING_NOTICE, notice_text
from model.fault import KubernetesFault
from model.placement import EvictionPlan, Victim
from model.pod.colocation import StandingNotice
from model.workload import WorkloadId
from scheduler.core.preemption.policy import PreemptionPolicySettings
from scheduler.core.queueing.backoff import BackoffPolicy
from scheduler.settings import SchedulerSettings
from scheduler.steps.evicting import Evictions, EvictionWords
from scheduler.steps.turn import Turn

ASKS = {"sublet.dev/preemption-notice-seconds": "120"}


def member(number: int, told: StandingNotice | None = None, **more: object) -> objects.Pod:
    """Of a gang of two on nodes of their own; the first alone asks for notice."""
    annotations = ({ANNOTATION_STANDING_NOTICE: notice_text(told)} if told else {}) | (ASKS if number == 0 else {})
    terms = {"batch_cpu": "1000", "priority": 0, "phase": "Running", "group": "train", "node_name": f"n{number}"}
    return raw_pod(f"t{number}", annotations=annotations, **{**terms, **more})  # type: ignore[arg-type]


def big(number: int, **more: object) -> objects.Pod:
    return raw_pod(f"b{number}", batch_cpu="1000", priority=100, group="big", **more)  # type: ignore[arg-type]


def cluster(world: World, *victims: objects.Pod) -> World:
    """Two nodes with a gang of low priority, and one of two that asks for both."""
    world.see(raw_node("n0"), raw_node("n1"), raw_group("train", 2), raw_group("big", 2))
    return world.see(*(victims or (member(0), member(1))), big(0), big(1))


def shown(world: World) -> dict[str, tuple[float, float, str]]:
    return {name: (each.since_seconds, each.deadline_seconds, each.by) for name, each in world.notices.shown.items()}


def test_every_member_is_told_at_once_and_all_end_together() -> None:
    """Also the one that does not ask: on the pod and by the link."""
    world = cluster(World())
    world.turn()
    assert shown(world) == dict.fromkeys(("t0", "t1"), (1000.0, 1120.0, "gang/default/big"))
    assert {each.reason for each in world.notices.shown.values()} == {"PreemptionByScheduler"}
    assert world.courier.told == {("n0", "uid-t0"): 1120.0, ("n1", "uid-t1"): 1120.0}
    world.turn(after=119.0)
    assert world.evictor.evicted == {}
    world.turn(after=1.0)
    assert set(world.evictor.evicted) == {"t0", "t1"}


def test_saved_members_go_before_the_deadline() -> None:
    world = cluster(World())
    world.turn()
    world.cache.saved.update({"uid-t0": 1005.0, "uid-t1": 999.0})
    world.turn(after=10.0)
    assert world.evictor.evicted == {}
    world.cache.saved["uid-t1"] = 1005.0
    world.turn(after=1.0)
    assert set(world.evictor.evicted) == {"t0", "t1"}


def test_a_preemptor_that_leaves_takes_the_notices_with_it() -> None:
    world = cluster(World())
    world.turn()
    told = dict(world.notices.shown)
    world.see(member(0, told["t0"]), member(1, told["t1"])).turn()
    world.gone(big(0), big(1)).turn(after=5.0)
    assert (world.notices.shown, world.courier.told, world.evictor.evicted) == ({}, {}, {})


def test_room_that_comes_otherwise_ends_the_wait_before_anybody_goes() -> None:
    world = cluster(World())
    world.turn()
    world.see(raw_node("n2"), raw_node("n3"))
    world.turn(after=120.0)
    assert world.evictor.evicted == {} and set(world.binder.assigned.values()) == {"n2", "n3"}
    world.turn()
    assert world.notices.shown == {}


def test_the_preemptor_is_tried_once_more_before_anybody_goes() -> None:
    """At the deadline, though nothing happened that may help it."""
    world = cluster(World())
    world.turn()
    before = len(world.meter.considerations)
    world.turn(after=60.0)
    assert len(world.meter.considerations) == before
    world.turn(after=60.0)
    assert len(world.meter.considerations) == before + 1 and len(world.evictor.evicted) == 2


TOLD = StandingNotice(940.0, 1060.0, "PreemptionByScheduler", "gang/default/big")
NOMINATED = (big(0, nominated="n0"), big(1, nominated="n1"))


def test_a_restart_within_the_wait_goes_on_with_the_deadline_on_the_pods() -> None:
    world = cluster(World(), member(0, TOLD), member(1, TOLD)).see(*NOMINATED)
    world.turn()
    assert world.evictor.evicted == {} and world.courier.told == {("n0", "uid-t0"): 1060.0, ("n1", "uid-t1"): 1060.0}
    assert world.cycle.next_due() == 1060.0
    world.turn(after=60.0)
    assert set(world.evictor.evicted) == {"t0", "t1"}


def test_a_restart_keeps_to_the_victims_that_were_told() -> None:
    """Others would be cheaper by now."""
    world = cluster(World(), member(0, TOLD), member(1, TOLD)).see(*NOMINATED)
    world.see(raw_node("n2"), raw_node("n3"))
    fresh = [raw_pod(f"f{n}", batch_cpu="1000", priority=-5, phase="Running", node_name=f"n{n + 2}") for n in range(2)]
    world.see(*fresh).turn()
    world.turn(after=60.0)
    assert set(world.evictor.evicted) == {"t0", "t1"}


BATCH = {"koordinator.sh/qosClass": "BE"}


@pytest.mark.parametrize(
    ("service", "preemptors"),
    [({"priority": 0}, {"labels": BATCH}), ({"priority": 101}, {}), ({"priority": 9000}, {"labels": BATCH})],
    ids=["online", "more important", "both"],
)
def test_after_a_restart_a_notice_makes_nobody_a_victim(service: dict[str, int], preemptors: dict[str, object]) -> None:
    """Whoever may annotate a pod may write that it was told: an online one, or one of higher priority, stays."""
    pods = [
        raw_pod(
            "web",
            annotations={ANNOTATION_STANDING_NOTICE: notice_text(TOLD)},
            phase="Running",
            node_name="n2",
            batch_cpu="1000",
            **service,
        )
    ]  # type: ignore[arg-type]
    victims = [member(n, TOLD, labels=BATCH) for n in range(2)]
    waiting = [
        raw_pod(f"b{n}", batch_cpu="1000", priority=100, group="big", nominated=f"n{n}", **preemptors)  # type: ignore[arg-type]
        for n in range(2)
    ]
    world = World().see(raw_node("n0"), raw_node("n1"), raw_node("n2"), raw_group("train", 2), raw_group("big", 2))
    world.notices.shown.update(t0=TOLD, t1=TOLD, web=TOLD)
    world.see(*pods, *victims, *waiting).turn()
    assert "web" not in world.notices.shown
    world.turn(after=60.0)
    assert set(world.evictor.evicted) == {"t0", "t1"}


def test_after_a_restart_notices_for_nobody_are_taken_back() -> None:
    """Their preemptor is gone; another's, such as an agent's, stays."""
    agents = StandingNotice(940.0, 1060.0, "BEMemoryEvict", "agent of node n1")
    world = World().see(raw_node("n0"), raw_node("n1"), raw_group("train", 2), member(0, TOLD), member(1, agents))
    world.notices.shown.update(t0=TOLD, t1=agents)
    world.turn()
    assert world.notices.shown == {"t1": agents}


def test_a_notice_that_somebody_took_off_the_pod_is_written_again() -> None:
    world = cluster(World())
    world.turn()
    told = world.notices.shown.pop("t0")
    world.see(member(0, told)).turn(after=1.0)
    assert "t0" not in world.notices.shown
    world.see(member(0)).turn(after=1.0)
    assert world.notices.shown["t0"] == told


@pytest.mark.parametrize(("deadline", "stays"), [(1010.0, True), (1500.0, False)], ids=["sooner", "later"])
def test_an_agents_notice_that_is_sooner_is_left_on_the_pod(deadline: float, stays: bool) -> None:
    agents = StandingNotice(990.0, deadline, "BEMemoryEvict", "agent of node n0")
    world = cluster(World(), member(0, agents), member(1))
    world.turn()
    assert ("t0" not in world.notices.shown) is stays and "t1" in world.notices.shown
    assert ("n0", "uid-t0") in world.courier.told


def test_a_notice_is_written_until_it_stands() -> None:
    """An API server that fails for a moment; one that refuses is not asked again."""
    world = cluster(World(SchedulerSettings(backoff=BackoffPolicy(0.001, 0.001))))
    world.notices.failures.update(
        t0=KubernetesFault("PATCH", "500 failed", status=500), t1=KubernetesFault("PATCH", "403 denied", status=403)
    )
    world.turn()
    assert set(world.notices.shown) == {"t0"}


def running(number: int, started: float) -> objects.Pod:
    pod = member(number)
    status = msgspec.structs.replace(pod.status, start_time=datetime.fromtimestamp(started, UTC))
    return msgspec.structs.replace(pod, status=status)


def test_lost_work_is_told_and_counted() -> None:
    """Since the newest checkpoint, or since the start where none is known."""
    world = cluster(World(), running(0, 500.0), running(1, 500.0))
    world.cache.saved["uid-t0"] = 900.0
    world.turn()
    turn = world.turn(after=120.0)
    assert sorted(each.seconds for each in turn.lost) == [220.0, 620.0]
    assert sum(seconds for _, seconds in world.meter.work) == 840.0
    assert world.meter.saves == [("default/train", "notice", "missed")]
    assert world.cache.work.lost_seconds("default/train") == 840.0
    notes = {name: note for reason, name, note in world.announcer.events if reason == "Preempted"}
    assert notes["t0"].endswith("; 220 s of work since its checkpoint are lost")
    assert notes["t1"].endswith("; 620 s of work without a checkpoint are lost")


def test_who_ends_by_itself_once_told_is_counted_too() -> None:
    world = cluster(World(), running(0, 500.0), running(1, 500.0))
    world.turn()
    world.cache.saved.update({"uid-t0": 1001.0, "uid-t1": 1001.0})
    ended = [
        msgspec.structs.replace(each, status=msgspec.structs.replace(each.status, phase="Failed"))
        for each in (running(0, 500.0), running(1, 500.0))
    ]
    turn = world.see(*ended).turn(after=3.0)
    assert [each.seconds for each in turn.lost] == [2.0, 2.0] and world.evictor.evicted == {}
    assert world.meter.saves == []


def test_a_checkpoint_of_the_very_time_of_the_notice_is_none_that_was_missed() -> None:
    world = cluster(World(), running(0, 500.0), running(1, 500.0))
    world.turn()
    world.cache.saved.update({"uid-t0": 1000.0, "uid-t1": 1000.0})
    turn = world.turn(after=3.0)
    assert set(world.evictor.evicted) == {"t0", "t1"} and not any(each.unsaved for each in turn.lost)


def drained(stop: str = "HoldAndDrain") -> World:
    """A pod in a queue that is stopped; it asks for notice."""
    pod = gpu_pod("p", "one", 2, node="a0", annotations=ASKS)
    world = World().see(namespace(), flavor(), gpu_node("a0"), cluster_queue("one", "org"), local_queue("one", "one"))
    world.see(pod).turn()
    world.see(cluster_queue("one", "org", stopPolicy=stop)).turn()
    return world


def test_a_drained_queue_tells_its_pods_first() -> None:
    world = drained()
    assert shown(world) == {"p": (1000.0, 1120.0, "queue one")} and world.evictor.evicted == {}
    assert world.cycle.next_due() == 1120.0
    world.turn(after=120.0)
    assert list(world.evictor.evicted) == ["p"]


JOB = WorkloadId.gang("default/train")
VICTIM = Victim("default/t0", "uid-t0", "n0", JOB, 120.0)
PLAN = EvictionPlan(WorkloadId.gang("default/big"), "default/b0", (VICTIM,), ())
POLICY = PreemptionPolicySettings()


def wanted_twice(world: World) -> tuple[Evictions, Evictions]:
    """By two that know of each other; the second tells it last."""
    world.see(raw_node("n0"), raw_group("train", 1), running(0, 500.0)).turn()
    first = Evictions(world.cache)
    second = Evictions(world.cache, first.under_way)
    for number, each in enumerate((first, second)):
        words = EvictionWords("PreemptionByScheduler", f"number {number}", lambda victim: "", lambda victim: "")
        each.begin(JOB, PLAN, words)
        assert not each.step(JOB, True, POLICY, Turn(), 1000.0 + number)
    return first, second


@pytest.mark.parametrize("gone", [0, 1], ids=["the first", "the last"])
def test_who_gives_up_leaves_the_notice_of_who_does_not(gone: int) -> None:
    both, turn = wanted_twice(World()), Turn()
    assert both[gone].step(JOB, False, POLICY, turn, 1005.0)
    (notice,) = turn.notices
    assert (notice.withdrawn, notice.told.by, notice.told.deadline_seconds) == (
        False,
        f"number {1 - gone}",
        1121.0 - gone,
    )
    last = Turn()
    assert both[1 - gone].step(JOB, False, POLICY, last, 1006.0)
    assert [each.withdrawn for each in last.notices] == [True]


def test_work_is_lost_once_whoever_wants_the_pod_gone() -> None:
    world = World()
    both, turn = wanted_twice(world), Turn()
    pod = running(0, 500.0)
    world.see(msgspec.structs.replace(pod, status=msgspec.structs.replace(pod.status, phase="Failed"))).turn()
    assert all(each.step(JOB, True, POLICY, turn, 1010.0) for each in both)
    assert [each.seconds for each in turn.lost] == [510.0]


def test_a_notice_that_was_taken_back_gives_the_next_plan_no_deadline() -> None:
    """It stands on the pod until the withdrawal is seen."""
    world = World()
    world.see(raw_node("n0"), raw_group("train", 1), running(0, 500.0)).turn()
    evictions, words = Evictions(world.cache), EvictionWords("PreemptionByScheduler", "by", str, str)
    evictions.begin(JOB, PLAN, words)
    evictions.step(JOB, True, POLICY, first := Turn(), 1000.0)
    standing = member(0, first.notices[0].told)
    world.see(msgspec.structs.replace(standing, status=running(0, 500.0).status)).turn()
    assert evictions.step(JOB, False, POLICY, Turn(), 1100.0)
    evictions.begin(JOB, PLAN, words)
    evictions.step(JOB, True, POLICY, second := Turn(), 1101.0)
    assert [(each.told.since_seconds, each.told.deadline_seconds) for each in second.notices] == [(1101.0, 1221.0)]


def test_an_admitted_job_whose_eviction_nobody_needs_any_more_is_spared() -> None:
    """As the Workload that was to be evicted in place of its pods: a write that failed is not made again."""
    world = SuspendedWorld()
    world.job("train")
    world.settle()
    charges = list(world.world.cache.ledger.charges())
    victims = tuple(Victim(f"default/{each.uid}", each.uid, each.node, JOB) for each in charges)
    plan = msgspec.structs.replace(PLAN, victims=victims)
    evictions, first, last = Evictions(world.world.cache), Turn(), Turn()
    evictions.begin(JOB, plan, EvictionWords("PreemptionByScheduler", "by", lambda victim: "", lambda victim: ""))
    assert not evictions.step(JOB, True, POLICY, first, 2000.0)
    whole = world.workload("train").uid
    assert len(victims) == 2 and {each.pod.uid for each in first.evictions} == {whole}
    assert evictions.step(JOB, False, POLICY, last, 2001.0)
    assert last.spared == [whole]


def test_a_queue_that_is_opened_again_keeps_its_pods() -> None:
    world = drained()
    world.see(cluster_queue("one", "org")).turn(after=10.0)
    assert (world.notices.shown, world.courier.told) == ({}, {})
    world.turn(after=200.0)
    assert world.evictor.evicted == {}


class Counted(tuple[Victim, ...]):
    """Counts how often somebody begins to go through it."""

    begun = 0

    def __iter__(self) -> Iterator[Victim]:
        Counted.begun += 1
        return super().__iter__()


def test_all_victims_are_gone_through_a_few_times_however_many_they_are() -> None:
    """A gang of thousands that asks for no notice: once for each of them would take seconds."""
    world, number = World(), 50
    pods = [raw_pod(f"v{index}", group="many", node_name="n0", phase="Running") for index in range(number)]
    world.see(raw_node("n0", batch_cpu="100000"), raw_group("many", number), *pods)
    world.turn()
    gang = WorkloadId.gang("default/many")
    victims = Counted(Victim(f"default/v{index}", f"uid-v{index}", "n0", gang) for index in range(number))
    evictions, key, turn = Evictions(world.cache), WorkloadId.pod("default/p"), Turn()
    evictions.begin(key, EvictionPlan(key, "", victims, ()), EvictionWords("P", "p", lambda _: "", lambda _: ""))
    Counted.begun = 0
    evictions.step(key, True, PreemptionPolicySettings(), turn, world.clock())
    assert (len(turn.evictions), Counted.begun < 20) == (number, True)
