"""Plans that make room, turn by turn, and what becomes of them where something comes in between."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import msgspec
import pytest
from scheduler_builders import raw_group, raw_node, raw_pod
from scheduler_fakes import World

from kube import objects
from model.fault import KubernetesFault
from model.workload import WorkloadId
from scheduler.core.queueing.backoff import BackoffPolicy
from scheduler.settings import SchedulerSettings

YEAR = 365 * 86_400
LOUD = {"sublet.dev/preemption-notice-seconds": "120"}


def victim(name: str = "v", node: str = "n1", **more: object) -> objects.Pod:
    return raw_pod(name, node_name=node, phase="Running", **{"batch_cpu": "1000", "priority": 0, **more})  # type: ignore[arg-type]


def high(name: str = "hp", **more: object) -> objects.Pod:
    return raw_pod(name, **{"batch_cpu": "1000", "priority": 100, **more})  # type: ignore[arg-type]


def disrupted(pod: objects.Pod) -> objects.Pod:
    """As it is once its eviction has begun."""
    told = [objects.Condition("DisruptionTarget", "True", "PreemptionByScheduler")]
    metadata = msgspec.structs.replace(pod.metadata, deletion_timestamp=pod.metadata.creation_timestamp)
    status = msgspec.structs.replace(pod.status, conditions=told)
    return msgspec.structs.replace(pod, metadata=metadata, status=status)


def tainted(name: str = "n1") -> objects.Node:
    return raw_node(name, taints=[objects.Taint("node.kubernetes.io/unreachable", "", "NoSchedule")])


def kept(world: World) -> list[str]:
    """Subjects that have room kept for them."""
    return [held.subject for held in world.cycle.preempting.as_nominated(world.cache.snapshot())]


def test_from_the_plan_to_the_binding() -> None:
    """Nominated and evicted in one turn, bound once the victim is gone; nothing is left behind."""
    world = World().see(raw_node(), victim(), high())
    world.turn()
    assert (world.writer.nominated, list(world.evictor.evicted)) == ({"hp": "n1"}, ["v"])
    world.see(disrupted(victim())).turn(after=1.0)
    world.gone(victim()).turn(after=1.0)
    assert world.binder.assigned == {"hp": "n1"}
    world.turn()
    assert (kept(world), world.cycle.preempting.nominated) == ([], frozenset())


def test_time_alone_asks_for_no_turn_while_victims_end() -> None:
    """A plan without notices has no deadline: the loop sleeps until the victims' end is news."""
    world = World().see(raw_node(), victim(), high())
    world.turn()
    world.see(disrupted(victim())).turn()
    due = world.cycle.next_due()
    assert due is not None and due > world.clock.now


def test_a_notice_brings_a_turn_at_its_deadline_and_no_sooner() -> None:
    world = World().see(raw_node(), victim(annotations=LOUD), high())
    world.turn()
    assert (world.courier.told, world.evictor.evicted) == ({("n1", "uid-v"): 1120.0}, {})
    assert world.cycle.next_due() == 1120.0
    world.turn(after=120.0)
    assert list(world.evictor.evicted) == ["v"]
    due = world.cycle.next_due()
    assert due is not None and due > world.clock.now


def test_a_lost_node_frees_the_preemptor_from_its_plan() -> None:
    """Its victim cannot end, since the kubelet is silent: others go on another node."""
    world = World().see(raw_node(), victim(), high())
    world.turn()
    world.see(disrupted(victim()), raw_node("n2"), victim("w", "n2")).turn()
    world.see(tainted()).turn(after=1.0)
    world.turn(after=10.0)
    assert (list(world.evictor.evicted), world.writer.nominated) == (["v", "w"], {"hp": "n2"})


def test_like_pods_are_not_refused_for_the_sake_of_one_whose_plan_ends() -> None:
    """A plan that is not over yet is one pod's own affair."""
    world = World().see(raw_node(), victim(), high())
    world.turn()
    world.see(tainted(), raw_node("n2"), victim("w", "n2"), high("like", created=5.0)).turn()
    world.turn(after=10.0)
    assert list(world.evictor.evicted) == ["v", "w"]


def test_a_preemptor_that_goes_spares_whom_nobody_could_evict_yet() -> None:
    """The eviction is refused, the preemptor is deleted: it is not tried on for ever."""
    world = World(SchedulerSettings(backoff=BackoffPolicy(0.001, 0.001))).see(raw_node(), victim(), high())

    async def story() -> None:
        async with asyncio.TaskGroup() as group:
            world.evictor.failures["v"] = KubernetesFault("DELETE", "403 forbidden", status=403)
            world.loop.step(group)
            while world.evictor.failures:
                await asyncio.sleep(0)
            world.gone(high())
            world.loop.step(group)

    asyncio.run(asyncio.wait_for(story(), 10))
    assert world.evictor.evicted == {}


def test_one_victim_of_two_plans_is_evicted_once_and_spared_by_neither_alone() -> None:
    """Both need the room; the first preemptor goes, the second still gets it."""
    world = World(SchedulerSettings(backoff=BackoffPolicy(0.001, 0.001)))
    world.see(raw_node(), victim(), high("a", batch_cpu="400"), high("b", batch_cpu="400", created=1.0))

    async def story() -> None:
        async with asyncio.TaskGroup() as group:
            world.evictor.failures["v"] = KubernetesFault("DELETE", "403 forbidden", status=403)
            world.loop.step(group)
            while world.evictor.failures:
                await asyncio.sleep(0)
            world.gone(high("a"))
            world.loop.step(group)

    asyncio.run(asyncio.wait_for(story(), 10))
    assert list(world.evictor.evicted) == ["v"]
    assert [event[:2] for event in world.announcer.events if event[0] == "Preempted"] == [("Preempted", "v")]


def test_no_surplus_member_holds_room_or_evicts() -> None:
    """A gang of two or more finds room elsewhere for other members than those nominated: the plan is over."""
    pods = [high(f"g{i}", group="train", created=float(i)) for i in range(3)]
    world = World().see(raw_node(), raw_node("n2"), raw_group(minimum=2), *pods)
    world.see(victim(annotations=LOUD), victim("w", "n2", annotations=LOUD)).turn()
    assert len(world.courier.told) == 2
    world.see(raw_node("n3"), raw_node("n4")).turn(after=11.0)
    assert len(world.binder.assigned) == 2
    world.turn(after=200.0)
    assert (kept(world), world.courier.told, world.evictor.evicted) == ([], {}, {})


def test_room_kept_elsewhere_is_news_to_those_behind() -> None:
    """A preemptor that finds room elsewhere gives up what is kept: whoever waited for it goes at once."""
    world = World().see(raw_node(), victim(batch_cpu="600"), high(), raw_pod("small", batch_cpu="300", priority=0))
    world.turn()
    assert world.binder.assigned == {}
    world.see(raw_node("n2")).turn(after=11.0)
    world.turn(after=1.0)
    assert world.binder.assigned == {"hp": "n2", "small": "n1"}


def test_a_nomination_that_helps_no_longer_is_given_up() -> None:
    """Others took the room, and no pod may be evicted for it: nothing is held, and the pod's status says so."""
    world = World().see(raw_node(), victim(), high())
    world.turn()
    taken = raw_pod("theirs", batch_cpu="1000", node_name="n1", priority=500, scheduler_name="default-scheduler")
    world.gone(victim()).see(taken).turn(after=11.0)
    world.turn(after=11.0)
    assert (kept(world), world.writer.nominated) == ([], {"hp": ""})


def test_a_gang_is_patient_with_victims_that_were_told() -> None:
    """Its timeout is shorter than their notice: it counts from the end of the notice, else nobody ever goes."""
    pods = [high(f"g{i}", group="train", batch_cpu="500") for i in range(2)]
    world = World().see(raw_node(), raw_group(minimum=2, schedule_timeout_seconds=30), *pods, victim(annotations=LOUD))
    world.turn()
    for _ in range(13):
        world.turn(after=10.0)
    assert list(world.evictor.evicted) == ["v"]


def test_a_changed_group_is_one_job_to_preemption() -> None:
    """A PodGroup joins a group while its pods run: the group goes whole, and nothing of its old self is left."""
    a, b = (victim(f"{g}0", f"n{g}", group=g) for g in "ab")
    groups = {"gang.scheduling.koordinator.sh/groups": '["default/a","default/b"]'}
    world = World().see(raw_node("na"), raw_node("nb"), raw_group("a", 1), raw_group("b", 1), a, b)
    world.turn()
    world.see(raw_group("a", 1, annotations=groups), raw_group("b", 1, annotations=groups)).turn()
    assert {charge.job for charge in world.cache.ledger.charges()} == {WorkloadId.gang("default/a", "default/b")}
    assert list(world.cycle.preempting.gangs) == [WorkloadId.gang("default/a", "default/b")]
    world.see(raw_group("a", 1), raw_group("b", 1)).turn()
    assert {charge.job for charge in world.cache.ledger.charges()} == {
        WorkloadId.gang("default/a"),
        WorkloadId.gang("default/b"),
    }
    assert sorted(world.cycle.preempting.gangs) == [WorkloadId.gang("default/a"), WorkloadId.gang("default/b")]


def test_restart_with_nominated_pods_and_half_of_the_victims_on_their_way() -> None:
    """Room is kept again, nobody else goes while they end, and the one not asked yet goes after them."""
    pods = [high(f"g{i}", group="train", batch_cpu="500", nominated="n1") for i in range(2)]
    halves = [victim(name, batch_cpu="500") for name in "vw"]
    world = World().see(
        raw_node(), raw_node("n2"), victim("x", "n2", batch_cpu="800", priority=50), raw_group(minimum=2)
    )
    world.see(*pods, disrupted(halves[0]), halves[1]).turn()
    assert (kept(world), world.evictor.evicted) == ([WorkloadId.gang("default/train")], {})
    world.gone(halves[0]).turn(after=1.0)
    assert list(world.evictor.evicted) == ["w"]
    world.gone(halves[1]).turn(after=1.0)
    assert world.binder.assigned == {"g0": "n1", "g1": "n1"}


def test_a_failed_nomination_write_is_made_good() -> None:
    world = World().see(raw_node(), victim(annotations=LOUD), high())
    world.writer.failing = True
    world.turn()
    world.turn()
    assert world.writer.nominated == {}
    world.see(raw_node(batch_cpu="1100")).turn(after=11.0)
    assert world.writer.nominated == {"hp": "n1"}


def test_classes_of_long_ago_are_forgotten() -> None:
    """Each pod of a long stream is a class of its own: none is remembered for longer than its pods and their room."""
    world = World()
    for number in range(10_000):
        pod = victim(f"p{number}", "n1" if number % 2 else "", batch_cpu=str(number + 1))
        world.see(pod)
        world.gone(pod)
    world.turn()
    assert len(world.cache._classes) <= 5000


def test_a_reservation_takes_no_room_that_was_made_for_others() -> None:
    """A head of higher priority may not preempt and waits for two nodes; one that is freed for another is not for it."""
    head = [high(f"g{i}", group="train", priority=200, policy="Never") for i in range(2)]
    important = [victim(f"w{i}", f"n{i}", priority=150) for i in (1, 2)]
    world = World().see(*(raw_node(f"n{i}") for i in (1, 2, 3)), *important, raw_group(minimum=2), *head)
    important.append(victim("v", "n3", priority=150))
    world.see(important[-1]).turn(after=11.0)
    (held,) = world.cycle.working.nominated if world.cycle.working else ()
    taken = {world.cache.snapshot().names[assignment.row] for assignment in held.assignments}
    (spot,) = {"n1", "n2", "n3"} - taken
    own = next(pod for pod in important if pod.spec.node_name == spot)
    cheap = msgspec.structs.replace(own, spec=msgspec.structs.replace(own.spec, priority=0))
    world.see(cheap, high()).turn()
    assert world.writer.nominated == {"hp": spot}
    world.see(disrupted(cheap)).turn(after=1.0)
    world.gone(cheap).turn(after=1.0)
    assert world.binder.assigned == {"hp": spot}


def ending(pod: objects.Pod, at: float) -> objects.Pod:
    """Evicted, and to be gone at that Unix time."""
    gone = disrupted(pod)
    deletion = datetime.fromtimestamp(at, UTC)
    return msgspec.structs.replace(gone, metadata=msgspec.structs.replace(gone.metadata, deletion_timestamp=deletion))


def slow(pod: objects.Pod) -> objects.Pod:
    """With a grace period of a year."""
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, termination_grace_period_seconds=YEAR))


def test_room_that_does_not_come_within_five_minutes_is_given_up() -> None:
    """The victim asks for a year: others take the room beside it, and the next victim is one that ends in time."""
    world = World().see(raw_node(), slow(victim(batch_cpu="600")), high())
    world.turn()
    world.see(ending(slow(victim(batch_cpu="600")), 1000.0 + YEAR), raw_node("n2"), raw_node("n3"))
    world.see(slow(victim("v2", "n2")), victim("v3", "n3", priority=10)).turn()
    world.see(raw_pod("small", batch_cpu="400")).turn(after=200.0)
    assert (list(world.evictor.evicted), world.binder.assigned, world.cycle.next_due()) == (["v"], {}, 1300.0)
    world.turn(after=100.0)
    assert (world.binder.assigned, world.writer.nominated) == ({"small": "n1"}, {"hp": ""})
    world.turn(after=10.0)
    assert (list(world.evictor.evicted), world.writer.nominated) == (["v", "v3"], {"hp": "n3"})


def test_slow_victims_go_where_nothing_else_helps() -> None:
    world = World().see(raw_node(), slow(victim()), high())
    world.turn()
    world.see(ending(slow(victim()), 1000.0 + YEAR), raw_node("n2"), slow(victim("w", "n2"))).turn()
    world.turn(after=300.0)
    world.turn(after=10.0)
    assert (list(world.evictor.evicted), world.writer.nominated) == (["v", "w"], {"hp": "n2"})


@pytest.mark.parametrize(
    ("ends", "nominated"), [(1299.0, "n1"), (1301.0, ""), (701.0, "n1"), (699.0, ""), (1000.0 + YEAR, "")]
)
def test_room_of_pods_that_end_too_late_is_not_waited_for(ends: float, nominated: str) -> None:
    """Or that were to be gone long ago: a finalizer, or a node that is silent."""
    world = World().see(raw_node(), ending(victim(), ends), high())
    told = [term.name for insight in world.turn().insights.values() for term in insight.terms]
    assert world.writer.nominated.get("hp", "") == nominated
    assert ("being deleted, but not gone in time" in told) is (nominated == "")


def test_room_that_comes_by_itself_is_not_waited_for_again_and_again() -> None:
    """Each attempt finds it again; what is kept lasts five minutes from the first."""
    world = World().see(raw_node(), ending(victim(priority=100), 1290.0), high())
    for _ in range(4):
        world.see(raw_node("n2", batch_cpu=f"{world.clock.now // 100:.0f}")).turn(after=60.0)
    assert kept(world) == [WorkloadId.pod("default/hp")]
    assert world.cycle.next_due() == 1360.0
