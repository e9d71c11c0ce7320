"""The scheduler's cycle over objects from files: what it writes is answered at once."""

from __future__ import annotations

import random

from cli.simulate.cluster_run import scheduled_by_others
from scheduler.settings import SchedulerSettings
from tests.cli.simulate.clusters import decided, given, node, other, pod
from view.cluster_outcome import GangOut, Nomination, Pending, SimulatedPlacement, SimulatedVictim


def test_a_preemption_is_told_from_all_sides() -> None:
    """Who is nominated, which pod is evicted for it and why; nothing is placed yet."""
    low = pod("low", "4", nodeName="n1", priority=1)
    found = decided(node(), low, pod("high", "4", priority=10))
    assert found.nominations == (Nomination("default/high", "n1"),)
    assert found.victims == (SimulatedVictim("default/low", "n1", "default/high", "PreemptionByScheduler"),)
    assert found.placements == ()


def test_until_settled() -> None:
    """The victim is gone, and nobody waits."""
    objects = [node(), pod("low", "4", nodeName="n1", priority=1), pod("high", "4", priority=10)]
    found = decided(*objects, settle=True)
    assert found.placements == (SimulatedPlacement("default/high", "n1"),)
    assert found.pending == found.nominations == ()


def test_a_victim_that_asks_to_be_told_is_told_of_too() -> None:
    """Its eviction comes later; the answer is the same."""
    low = pod("low", "4", nodeName="n1", priority=1)
    low["metadata"]["annotations"] = {"sublet.dev/preemption-notice-seconds": "30"}
    found = decided(node(), low, pod("high", "4", priority=10))
    assert [row.pod for row in found.victims] == ["default/low"]


def test_the_order_of_the_input_does_not_matter() -> None:
    """Same objects, same answer."""
    objects = [node(f"n{i}", "8") for i in range(5)]
    objects += [pod(f"old{i}", "3", nodeName=f"n{i % 5}", priority=i % 3) for i in range(8)]
    objects += [pod(f"new{i}", str(1 + i % 4), priority=2 + i % 2) for i in range(12)]
    first = decided(*objects)
    for seed in range(3):
        random.Random(seed).shuffle(objects)
        assert decided(*objects) == first


def test_a_gang_is_bound_and_told_by_its_status() -> None:
    """Its PodGroup's phase is what the scheduler wrote last."""
    group = other("PodGroup", "scheduling.sigs.k8s.io/v1alpha1", "g", spec={"minMember": 2})
    labels = {"pod-group.scheduling.sigs.k8s.io": "g"}
    found = decided(node(), group, *(pod(name, labels=labels) for name in ("a", "b")))
    assert found.placements == (SimulatedPlacement("default/a", "n1"), SimulatedPlacement("default/b", "n1"))
    assert found.gangs == (GangOut("default/g", "Scheduled", 2, 2),)


def test_a_gated_pod_waits_by_the_api_servers_own_condition() -> None:
    found = decided(node(), pod(schedulingGates=[{"name": "x"}]))
    told = "Scheduling is blocked due to non-empty scheduling gates"
    assert found.pending == (Pending("default/p", "SchedulingGated", told),)


def test_pods_of_other_schedulers() -> None:
    """Only those without a node, of a name that is not served."""
    pods = (pod("ours"), pod("placed", nodeName="n1", schedulerName="x"), pod("theirs", schedulerName="x"))
    assert [one.label for one in scheduled_by_others(given(*pods), SchedulerSettings())] == ["Pod default/theirs"]
