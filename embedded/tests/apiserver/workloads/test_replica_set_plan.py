"""Which pods a ReplicaSet makes and which it lets go."""

import msgspec
import pytest

from embedded.apiserver.apimachinery.objects import rfc3339
from embedded.apiserver.workloads.pods import WorkloadPod
from embedded.apiserver.workloads.replica_set_plan import plan_replica_set, replica_set_status
from embedded.tests.apiserver.conftest import NOON
from embedded.tests.apiserver.workload_objects import workload


def pod(name, node="n", phase="Running", ready=600, age=900, cost=None, restarts=0, deleting=False):
    """`ready` and `age` are seconds before now; ready None is a pod that is not."""
    meta = {"name": name, "uid": name, "creationTimestamp": rfc3339(NOON - age), "labels": {"app": "web"}}
    if cost is not None:
        meta["annotations"] = {"controller.kubernetes.io/pod-deletion-cost": str(cost)}
    if deleting:
        meta["deletionTimestamp"] = rfc3339(NOON)
    status = {"phase": phase, "containerStatuses": [{"name": "c", "restartCount": restarts}]}
    if ready is not None:
        status["conditions"] = [{"type": "Ready", "status": "True", "lastTransitionTime": rfc3339(NOON - ready)}]
    return msgspec.convert({"metadata": meta, "spec": {"nodeName": node}, "status": status}, WorkloadPod)


def replica_set(replicas, **spec):
    found = workload(replicas=replicas, **spec)
    found["metadata"]["generation"] = 2
    return found


FIRST = {
    "one without a node": [pod("x"), pod("go", node="", phase="Pending", ready=None)],
    "one that waits": [pod("x"), pod("go", phase="Pending", ready=None)],
    "one that is not ready": [pod("x"), pod("go", ready=None)],
    "the cheaper one": [pod("x", cost=10), pod("go", cost=-5)],
    "one that shares its node": [pod("x", node="m"), pod("go", cost=-1), pod("z", cost=1)],
    "the lately ready": [pod("x", ready=6000), pod("go", ready=60)],
    "the often restarted": [pod("x"), pod("go", restarts=4)],
    "the younger": [pod("x", age=9000), pod("go", age=700)],
    "of equals the first by its id": [pod("go"), pod("x")],
}


@pytest.mark.parametrize("pods", FIRST.values(), ids=FIRST)
def test_who_goes_first(pods):
    """https://kubernetes.io/docs/concepts/workloads/controllers/replicaset/#scaling-a-replicaset"""
    assert plan_replica_set(replica_set(len(pods) - 1), pods, pods, NOON).delete == ("go",)


NUMBERS = {
    "too few": (3, [pod("a")], (2, ())),
    "as many as wanted": (1, [pod("a")], (0, ())),
    "ended and leaving ones do not count": (1, [pod("a", phase="Failed"), pod("b", deleting=True)], (1, ())),
    "none are wanted": (0, [pod("a"), pod("b")], (0, ("a", "b"))),
    "never too many at once": (900, [], (500, ())),
}


@pytest.mark.parametrize(("wanted", "pods", "expected"), NUMBERS.values(), ids=NUMBERS)
def test_active_pods_come_to_the_wanted_number(wanted, pods, expected):
    """Neither more nor fewer."""
    plan = plan_replica_set(replica_set(wanted), pods, pods, NOON)
    assert (plan.create, plan.delete) == expected


def test_the_status_counts_what_is_there():
    """minReadySeconds makes the difference between ready and available, and tells when to look again."""
    pods = [pod("a"), pod("b", ready=5), pod("c", ready=None), pod("d", deleting=True), pod("e", phase="Succeeded")]
    wanted = replica_set(3, minReadySeconds=30)
    assert replica_set_status(wanted, pods, None, NOON) == {
        "replicas": 3,
        "fullyLabeledReplicas": 3,
        "readyReplicas": 2,
        "availableReplicas": 1,
        "observedGeneration": 2,
        "terminatingReplicas": 1,
    }
    assert plan_replica_set(wanted, pods, pods, NOON).look_again == NOON + 25


def test_a_failure_stays_as_it_was_told_until_it_is_over():
    """One condition, whatever the next refusal says."""
    wanted = replica_set(2)
    first = replica_set_status(wanted, [], "no quota", NOON)
    (told,) = first["conditions"]
    assert (told["type"], told["reason"], told["message"]) == ("ReplicaFailure", "FailedCreate", "no quota")
    wanted["status"] = first
    assert replica_set_status(wanted, [], "still none", NOON + 9)["conditions"] == [told]
    assert "conditions" not in replica_set_status(wanted, [], None, NOON)
