"""What the author of a job that waits whole may not do by it: it has no pod, and what holds for pods holds for it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from kueue_world import cluster_queue, flavor, local_queue, namespace, settled
from scheduler_builders import SCHEDULER
from scheduler_fakes import World

from kube import objects
from scheduler.cache.stand_in_limit import MOST

QUEUE = "kueue.x-k8s.io/queue-name"
WORKLOAD = "kueue.x-k8s.io/workload"
ADMITTED = {
    "conditions": [{"type": kind, "status": "True"} for kind in ("QuotaReserved", "Admitted")],
    "admission": {"clusterQueue": "team", "podSetAssignments": [{"name": "main", "count": 1}]},
}
OWNER = [objects.OwnerReference("batch/v1", "Job", "evil", "uid-job-evil", True)]


def workload(
    name: str = "evil", count: int = 1, cpu: str = "1", status: Any = None, priority: int = 0, **spec: Any
) -> objects.Workload:
    """Of a Job of the same name, in LocalQueue `a`; `priority` is that of a WorkloadPriorityClass."""
    container = {"name": "c", "resources": {"requests": {"cpu": cpu}}}
    template = {"spec": {"schedulerName": SCHEDULER, "containers": [container], **spec}}
    owner = [objects.OwnerReference("batch/v1", "Job", name, f"uid-job-{name}", True)]
    metadata = objects.Metadata(name, "default", f"uid-{name}", owner_references=owner, resource_version="1")
    sets = [{"name": "main", "count": count, "template": template}]
    return objects.Workload(metadata, {"queueName": "a", "priority": priority, "podSets": sets}, status)


def pod(name: str, cpu: str = "1", priority: int = 0, node: str = "", **metadata: Any) -> objects.Pod:
    request: dict[str, Any] = {"cpu": cpu}
    told = {"namespace": "default", "creation_timestamp": datetime.fromtimestamp(9.0, UTC), **metadata}
    return objects.Pod(
        objects.Metadata(name, uid=f"uid-{name}", **told),
        objects.PodSpec(
            [objects.Container("c", objects.Resources(request, request))],
            scheduler_name=SCHEDULER,
            priority=priority,
            node_name=node,
        ),
        objects.PodStatus(phase="Running" if node else "Pending"),
    )


def _quota(cpu: str) -> dict[str, Any]:
    return {
        "coveredResources": ["cpu"],
        "flavors": [{"name": "f", "resources": [{"name": "cpu", "nominalQuota": cpu}]}],
    }


def world(cpu: str = "4") -> World:
    """One node of 8 CPUs, and a queue of so many."""
    amounts: dict[str, Any] = {"cpu": "8", "memory": "64Gi", "pods": 110}
    node = objects.Node(
        objects.Metadata("n0", uid="uid-n0", resource_version="1"),
        objects.NodeSpec(),
        objects.NodeStatus(amounts, amounts),
    )
    quota = {
        "coveredResources": ["cpu"],
        "flavors": [{"name": "f", "resources": [{"name": "cpu", "nominalQuota": cpu}]}],
    }
    queue = cluster_queue("team", resourceGroups=[quota])
    plain = flavor("f", nodeLabels={}, tolerations=[])
    return World().see(namespace("default"), namespace("online"), plain, queue, local_queue("a", "team"), node)


def test_its_template_takes_nothing_of_a_node() -> None:
    """Whatever it says of a node and of a priority."""
    here = settled(world().see(workload(cpu="1000", nodeName="n0", priority=0)))
    settled(here.see(pod("service", cpu="8", namespace="online", priority=9500)))
    assert here.binder.assigned == {"service": "n0"}


def test_a_pod_that_names_a_workload_is_evicted_itself() -> None:
    """It is not of that job: nobody would end it in its place."""
    here = settled(world("8").see(workload(status=ADMITTED)))
    rider = pod("rider", cpu="8", node="n0", labels={QUEUE: "a"}, annotations={WORKLOAD: "evil"})
    settled(here.see(rider).see(pod("service", cpu="8", namespace="online", priority=9500)))
    assert list(here.evictor.evicted) == ["rider"]


@pytest.mark.parametrize("later", [{}, {WORKLOAD: "other"}])
@pytest.mark.parametrize("gone", [False, True])
def test_a_pod_that_named_a_workload_before_is_not_of_it(later: dict[str, str], gone: bool) -> None:
    """By its newest word, be that all that changed or not; it may be gone by the time the Workload comes."""
    here = world("8").see(pod("own", owner_references=OWNER, annotations={WORKLOAD: "evil"}))
    own = pod("own", owner_references=OWNER, annotations=later, labels={"app": "own"} if gone else {})
    settled(here.see(own), turns=1)
    if gone:
        settled(here.gone(own), turns=1)
    settled(here.see(workload()), turns=1)
    assert here.writer.admitted == ["evil"]
    known = here.cache.pods.find("default", "own")
    assert (known is None) is gone and (known is None or known.workload is None)


def test_a_pod_of_a_job_that_is_not_admitted_any_more_is_evicted_itself() -> None:
    """Its Workload has nothing left that could be taken."""
    here = settled(world("8").see(workload(status=ADMITTED)))
    own = pod("own", cpu="8", node="n0", owner_references=OWNER, annotations={WORKLOAD: "evil"})
    settled(here.see(own).see(workload(status={"conditions": [{"type": "Finished", "status": "True"}]})))
    settled(here.see(pod("service", cpu="8", namespace="online", priority=9500)))
    assert list(here.evictor.evicted) == ["own"]


def test_thousands_of_pods_that_wait_are_bounded() -> None:
    """By namespace; who comes too late is told, and is looked at once the first are gone."""
    here = world("100000")
    jobs = [workload(f"job{number}", count=MOST // 2) for number in range(3)]
    settled(here.see(*jobs), turns=2)
    assert len(here.cache.pods.members("default/workload:job1").pending) == MOST // 2
    assert not here.cache.pods.members("default/workload:job2").pending
    assert "it is looked at once there are fewer" in here.writer.conditions["job2"]
    settled(here.gone(jobs[0]), turns=1)
    assert len(here.cache.pods.members("default/workload:job2").pending) == MOST // 2


def test_a_priority_that_orders_queues_evicts_no_service() -> None:
    """Whoever may make Jobs may name any WorkloadPriorityClass, which no ResourceQuota withholds."""
    here = world("8").see(pod("service", cpu="8", node="n0", namespace="online"))
    settled(here.see(workload(cpu="8", priority=1_000_000)))
    here.turn(after=60.0)
    assert not here.evictor.evicted


def test_a_priority_that_orders_queues_evicts_in_them() -> None:
    """A pod of the same ClusterQueue goes, as Kueue's word on that queue says."""
    within = {"withinClusterQueue": "LowerPriority"}
    here = world("8").see(cluster_queue("team", resourceGroups=[_quota("8")], preemption=within))
    settled(here.see(pod("lower", cpu="8", node="n0", labels={QUEUE: "a"})))
    settled(here.see(workload(cpu="8", priority=1_000_000)))
    assert list(here.evictor.evicted) == ["lower"]


def test_a_priority_that_orders_queues_protects_from_no_service() -> None:
    """Its pods go for an online service by the priority of their own class."""
    here = settled(world("8").see(workload(status=ADMITTED, priority=2_000_000)))
    own = pod("own", cpu="8", node="n0", owner_references=OWNER, annotations={WORKLOAD: "evil"})
    settled(here.see(own).see(pod("service", cpu="8", namespace="online", priority=9500)))
    assert list(here.evictor.evicted) == ["evil"]


def test_a_pod_that_its_job_does_not_end_goes_itself() -> None:
    """Anybody may name an admitted job as a pod's owner, whose controller ends the pods that it made, and starts anew."""
    here = settled(world("8").see(workload(status=ADMITTED)))
    own = pod("own", cpu="8", node="n0", owner_references=OWNER, annotations={WORKLOAD: "evil"})
    settled(here.see(own).see(pod("service", cpu="8", namespace="online", priority=9500)))
    assert list(here.evictor.evicted) == ["evil"]
    here.turn(after=60.0)
    assert list(here.evictor.evicted) == ["evil", "own"]


def test_seats_that_no_pod_takes_are_given_up() -> None:
    """Whatever keeps pods of an admitted job from coming, a service waits for their seats no longer than a minute."""
    here = settled(world("8").see(workload(cpu="8")))
    assert here.writer.admitted == ["evil"]
    place = {"topologyAssignment": {"levels": ["kubernetes.io/hostname"], "domains": [{"values": ["n0"], "count": 1}]}}
    since = datetime.fromtimestamp(here.clock.now, UTC).isoformat()
    conditions = [{**each, "lastTransitionTime": since} for each in ADMITTED["conditions"]]
    given = {"clusterQueue": "team", "podSetAssignments": [{"name": "main", "count": 1, **place}]}
    settled(here.see(workload(cpu="8", status={"conditions": conditions, "admission": given})))
    settled(here.see(pod("service", cpu="8", namespace="online", priority=9500)))
    assert "service" not in here.binder.assigned
    due = here.cycle.next_due()
    assert due is not None and due <= here.clock.now + 61.0
    settled(here, turns=1)
    here.turn(after=due - here.clock.now + 0.1)
    assert here.binder.assigned["service"] == "n0"
    settled(here.see(pod("late", cpu="1", labels={QUEUE: "a"}, namespace="default")))
    assert "late" not in here.binder.assigned, "its quota counts on"


def test_an_orphan_counts_on() -> None:
    """Whoever deletes a job and keeps its pods gives no quota back, not even at a change of leader."""
    here = settled(world("8").see(workload(status=ADMITTED)))
    own = pod("own", cpu="8", owner_references=OWNER, annotations={WORKLOAD: "evil"})
    settled(here.see(own))
    told = here.binder.told["own"]
    assert told["sublet.dev/charged-queue"] == "team"
    after = settled(world("8").see(pod("own", cpu="8", node="n0", annotations={WORKLOAD: "evil", **told})))
    settled(after.see(pod("next", cpu="1", labels={QUEUE: "a"})))
    assert 'queue "team" may have 0 more of cpu now' in after.writer.conditions["next"]


def test_a_job_that_grew_waits_for_quota() -> None:
    """Pods beyond those that were admitted have none of its seats, nor a label by which they would be told apart."""
    conditions = [{**each, "lastTransitionTime": "1970-01-01T00:16:40Z"} for each in ADMITTED["conditions"]]
    here = settled(world("2").see(workload(status={**ADMITTED, "conditions": conditions})))
    pods = [pod(f"p{n}", owner_references=OWNER, annotations={WORKLOAD: "evil"}) for n in range(6)]
    settled(here.see(*pods))
    assert len(here.binder.assigned) <= 2
    assert 'queue "team" may have 0 more of cpu now' in here.writer.conditions["p5"]


def test_a_pod_that_is_larger_than_what_was_admitted_waits_for_quota() -> None:
    """One that names the job as its owner, or the job's own whose template is another by now: its seats are no quota."""
    conditions = [{**each, "lastTransitionTime": "1970-01-01T00:16:40Z"} for each in ADMITTED["conditions"]]
    here = settled(world("2").see(workload(status={**ADMITTED, "conditions": conditions})))
    pods = [pod(f"p{n}", cpu, owner_references=OWNER, annotations={WORKLOAD: "evil"}) for n, cpu in enumerate("81")]
    for each in pods:
        settled(here.see(each))
    assert list(here.binder.assigned) == ["p1"]
    assert "insufficient quota for cpu" in here.writer.conditions["p0"]


@pytest.mark.parametrize("labels", [{}, {"kueue.x-k8s.io/podset": "other"}], ids=["no pod set", "another one"])
def test_pods_that_come_one_after_the_other_use_up_what_was_admitted(labels: dict[str, str]) -> None:
    """Whatever they say of the pod set that they belong to."""
    conditions = [{**each, "lastTransitionTime": "1970-01-01T00:16:40Z"} for each in ADMITTED["conditions"]]
    here = settled(world("2").see(workload(status={**ADMITTED, "conditions": conditions})))
    for number in range(6):
        own = pod(f"p{number}", owner_references=OWNER, annotations={WORKLOAD: "evil"}, labels=labels)
        settled(here.see(own))
        node = here.binder.assigned.get(f"p{number}", "")
        told = {WORKLOAD: "evil", **here.binder.told.get(f"p{number}", {})}
        settled(here.see(pod(f"p{number}", owner_references=OWNER, annotations=told, labels=labels, node=node)))
    assert len(here.binder.assigned) <= 2


@pytest.mark.parametrize("restarts", [False, True])
def test_a_pod_that_loses_its_owner_uses_what_was_admitted_all_the_same(restarts: bool) -> None:
    """Its author may take it away; else as many again had a node without quota. Its Workload stands on it, once bound."""
    conditions = [{**each, "lastTransitionTime": "1970-01-01T00:16:40Z"} for each in ADMITTED["conditions"]]
    status = {**ADMITTED, "conditions": conditions}
    here = settled(world("2").see(workload(status=status)))
    ran, count = list[objects.Pod](), 0
    for number in range(6):
        settled(here.see(pod(f"p{number}", owner_references=OWNER, annotations={WORKLOAD: "evil"})))
        if f"p{number}" not in here.binder.assigned:
            continue
        count += 1
        told = {WORKLOAD: "evil", **here.binder.told[f"p{number}"]}
        ran.append(pod(f"p{number}", annotations=told, node="n0"))
        settled(here.see(ran[-1]))
        if restarts:
            here = settled(world("2").see(workload(status=status), *ran))
    assert count <= 2


SET = "kueue.x-k8s.io/podset"


def _admitted(count: int) -> dict[str, Any]:
    conditions = [{**each, "lastTransitionTime": "1970-01-01T00:16:40Z"} for each in ADMITTED["conditions"]]
    sets = [{"name": "main", "count": count, "flavors": {"cpu": "f"}}]
    return {"conditions": conditions, "admission": {"clusterQueue": "team", "podSetAssignments": sets}}


@pytest.mark.parametrize("labels", [{SET: "main"}, {SET: "none"}, {}])
def test_a_small_pod_on_the_seat_of_a_large_one_gives_no_quota_back(labels: dict[str, str]) -> None:
    """Else whoever deletes it again has both: what was given to others meanwhile, and the pod of the job itself."""
    here = settled(world("4").see(workload(cpu="4", status=_admitted(1))))
    settled(here.see(pod("small", labels=labels, owner_references=OWNER, annotations={WORKLOAD: "evil"})))
    settled(here.see(pod("other", cpu="3", labels={QUEUE: "a"})))
    assert list(here.binder.assigned) == ["small"]
    assert 'queue "team" may have 0 more of cpu now' in here.writer.conditions["other"]


@pytest.mark.parametrize("labels", [{SET: "main"}, {SET: "none"}, {}])
def test_a_large_pod_on_the_seat_of_a_small_one_uses_up_those_of_others(labels: dict[str, str]) -> None:
    """What is kept for the job counts for one of its pods once."""
    here = settled(world("4").see(workload(count=3, status=_admitted(3))))
    own = {"owner_references": OWNER, "annotations": {WORKLOAD: "evil"}}
    settled(here.see(pod("large", cpu="4", labels=labels, **own)))
    settled(here.see(pod("p0", labels={SET: "main"}, **own)))
    assert list(here.binder.assigned) == ["large"]
    assert 'queue "team" may have 0 more of cpu now' in here.writer.conditions["p0"]


@pytest.mark.parametrize("cpu", ["2", "3", "8"])
@pytest.mark.parametrize("pods", [0, 1, 3])
def test_a_pod_that_names_a_job_that_waits_is_no_part_of_it(pods: int, cpu: str) -> None:
    """Left over from before it was evicted, or its author's: the job is admitted for its own pods, whatever waits
    beside them.
    """
    here = world(cpu)
    own = {"owner_references": OWNER, "annotations": {WORKLOAD: "evil"}}
    settled(here.see(workload(count=2), *(pod(f"p{n}", **own) for n in range(pods))))
    assert here.meter.aside == 0 and here.writer.admitted == ["evil"]
    admission = here.cache.suspended.admission("default/evil")
    assert admission is not None and [(each.name, each.count) for each in admission.assignments] == [("main", 2)]


def test_a_workload_without_its_job_holds_nothing() -> None:
    """Its job was deleted and nothing with it: nobody would start one that waits, or end one that is admitted."""
    conditions = [{**each, "lastTransitionTime": "1970-01-01T00:16:40Z"} for each in ADMITTED["conditions"]]
    given = {"clusterQueue": "team", "podSetAssignments": [{"name": "main", "count": 1, "flavors": {"cpu": "f"}}]}
    for status in (None, {"admission": given, "conditions": conditions}):
        whole = workload(cpu="8", status=status)
        orphan = msgspec.structs.replace(whole, metadata=msgspec.structs.replace(whole.metadata, owner_references=None))
        here = settled(world("8").see(orphan))
        settled(here.see(pod("next", cpu="8", labels={QUEUE: "a"})))
        assert here.writer.admitted == [] and here.binder.assigned == {"next": "n0"}
        assert any("no job controls it" in event[2] for event in here.announcer.events)
