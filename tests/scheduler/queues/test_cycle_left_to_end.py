"""Victims that are expected to end within their grace period are left to end, for work of queues."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from kueue_world import cluster_queue, flavor, gpu_node, gpu_pod, local_queue, namespace
from scheduler_fakes import World

from kube import objects
from scheduler.core.estimates.durations import ENOUGH_RUNS
from scheduler.core.preemption.policy import PreemptionPolicySettings
from scheduler.settings import SchedulerSettings

RULES = {"withinClusterQueue": "LowerPriority"}


def running(name: str, started: float, queue: str = "one", **spec: Any) -> objects.Pod:
    pod = gpu_pod(name, queue, 4, node="a0", created=started, **spec)
    since = datetime.fromtimestamp(started, UTC)
    return msgspec.structs.replace(pod, status=msgspec.structs.replace(pod.status, start_time=since))


def ended(pod: objects.Pod) -> objects.Pod:
    return msgspec.structs.replace(pod, status=msgspec.structs.replace(pod.status, phase="Succeeded"))


def learned(ran: float = 100.0, settings: SchedulerSettings | None = None) -> World:
    """One queue of 8 GPUs on one node; runs of its jobs took so long each."""
    world = World(settings or SchedulerSettings())
    world.see(namespace(), flavor(), gpu_node("a0"))
    world.see(cluster_queue("one", preemption=RULES), local_queue("one", "one"))
    world.turn()
    for number in range(ENOUGH_RUNS):
        pod = running(f"past-{number}", world.clock.now)
        world.see(pod).turn()
        world.see(ended(pod)).turn(after=ran)
        world.gone(pod).turn()
    return world


def asked(world: World, age: float, **spec: Any) -> tuple[World, list[objects.Pod]]:
    """Two run for so long when one of higher priority comes, which needs the room of both."""
    pods = [running(f"now-{number}", world.clock.now, **spec) for number in range(2)]
    world.see(*pods).turn()
    world.see(gpu_pod("new", "one", 8, priority=10, created=world.clock.now + age)).turn(after=age)
    return world, pods


def test_who_ends_soon_is_left_to_end_and_its_room_kept() -> None:
    world, pods = asked(learned(), 80.0)
    assert world.evictor.evicted == {} and world.writer.nominated == {"new": "a0"}
    told = "preemption: 2 pods of lower priority go to make room, unless they end by themselves first."
    assert world.writer.conditions["new"].endswith(told) and sum(world.meter.plans) == 0
    world.see(gpu_pod("small", "one", 4, created=1.0)).see(ended(pods[0])).turn(after=10.0)
    assert world.binder.assigned == {}
    world.see(ended(pods[1])).turn(after=5.0)
    assert world.binder.assigned == {"new": "a0"} and world.evictor.evicted == {}


def test_who_has_not_ended_by_the_end_of_its_grace_period_goes() -> None:
    """A turn comes then by itself; it counts as preempted from then on."""
    world, _ = asked(learned(), 80.0)
    assert world.cycle.next_due() == world.clock.now + 30.0
    world.turn(after=29.0)
    assert world.evictor.evicted == {}
    world.turn(after=1.0)
    assert set(world.evictor.evicted) == {"now-0", "now-1"} and sum(world.meter.plans) == 2


GOES: dict[str, tuple[float, float, dict[str, Any], PreemptionPolicySettings]] = {
    "long before its end": (100.0, 60.0, {}, PreemptionPolicySettings()),
    "longer than any other ran": (100.0, 120.0, {}, PreemptionPolicySettings()),
    "of a short grace period": (100.0, 80.0, {"termination_grace_period_seconds": 10}, PreemptionPolicySettings()),
    "after a deadline that nobody kept": (1000.0, 80.0, {"active_deadline_seconds": 40}, PreemptionPolicySettings()),
    "as in Kueue": (100.0, 80.0, {}, PreemptionPolicySettings(leave_ending=False)),
}


@pytest.mark.parametrize(("ran", "age", "spec", "policy"), GOES.values(), ids=GOES)
def test_who_goes_at_once(ran: float, age: float, spec: dict[str, Any], policy: PreemptionPolicySettings) -> None:
    world, _ = asked(learned(ran, SchedulerSettings(preemption=policy)), age, **spec)
    assert set(world.evictor.evicted) == {"now-0", "now-1"}


def test_a_deadline_tells_the_end_as_well() -> None:
    world, _ = asked(learned(1000.0), 80.0, active_deadline_seconds=100)
    assert world.evictor.evicted == {}


def test_a_deadline_that_just_passed_tells_it_too() -> None:
    """Whoever is to keep it may be about to."""
    world, _ = asked(learned(1000.0), 80.0, active_deadline_seconds=60)
    assert world.evictor.evicted == {}


def test_an_online_pod_of_a_queue_does_not_wait() -> None:
    """Past runs and deadlines are the word of those who have to go, and it is a service that would wait for them."""
    world = learned()
    pods = [running(f"now-{number}", world.clock.now) for number in range(2)]
    world.see(*pods).turn()
    world.see(gpu_pod("new", "one", 8, priority=9000, created=world.clock.now)).turn(after=80.0)
    assert set(world.evictor.evicted) == {"now-0", "now-1"}


def test_work_of_no_queue_does_not_wait() -> None:
    world = learned()
    pods = [running(f"now-{number}", world.clock.now) for number in range(2)]
    world.see(*pods).turn()
    tolerates = [objects.Toleration("nvidia.com/gpu", operator="Exists")]
    service = gpu_pod("new", "one", 8, priority=10, created=world.clock.now, tolerations=tolerates)
    service = msgspec.structs.replace(service, metadata=msgspec.structs.replace(service.metadata, labels={}))
    world.see(service).turn(after=80.0)
    assert set(world.evictor.evicted) == {"now-0", "now-1"}
