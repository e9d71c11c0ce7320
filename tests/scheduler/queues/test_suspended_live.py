"""Suspended Jobs in a LocalQueue, on a real API server with its Job controller: they wait whole, and are admitted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from scheduler_processes import POD_GROUP_CRD, Cluster, SchedulerProcess, until

from cli.main import main

pytestmark = pytest.mark.e2e

ROOT = Path(__file__).parents[3]
DEFINITIONS = sorted((ROOT / "deploy" / "crds" / "optional" / "kueue").glob("*s.yaml"))
KUEUE = "/apis/kueue.x-k8s.io/v1beta1"
JOBS = "/apis/batch/v1/namespaces/default/jobs"
PODS = "/api/v1/namespaces/default/pods"
WORKLOADS = f"{KUEUE}/namespaces/default/workloads"
MERGE = "application/merge-patch+json"


def install(cluster: Cluster, cpu: str = "4") -> None:
    """The definitions, and a queue whose quota is so much CPU of one flavour."""
    for path in DEFINITIONS:
        body = yaml.safe_load(path.read_text())
        cluster.request("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", body)
    flavor = {"nodeLabels": {"pool": "batch"}, "tolerations": [{"key": "batch", "operator": "Exists"}]}
    quota = {"name": "batch", "resources": [{"name": "cpu", "nominalQuota": cpu}]}
    group = {"coveredResources": ["cpu"], "flavors": [quota]}
    spec = {"namespaceSelector": {}, "resourceGroups": [group]}
    for kind, plural, where, body in (
        ("ResourceFlavor", "resourceflavors", "", {"metadata": {"name": "batch"}, "spec": flavor}),
        ("ClusterQueue", "clusterqueues", "", {"metadata": {"name": "team"}, "spec": spec}),
        (
            "LocalQueue",
            "localqueues",
            "/namespaces/default",
            {"metadata": {"name": "a"}, "spec": {"clusterQueue": "team"}},
        ),
    ):
        told = {"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": kind, **body}
        cluster.request("POST", f"{KUEUE}{where}/{plural}", told)


def add_node(cluster: Cluster, name: str, cpu: str = "4") -> None:
    body = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {"pool": "batch"}}}
    cluster.request("POST", "/api/v1/nodes", body)
    amounts = {"cpu": cpu, "memory": "64Gi", "pods": "110"}
    status = {"status": {"capacity": amounts, "allocatable": amounts}}
    cluster.request("PATCH", f"/api/v1/nodes/{name}/status", status, "application/strategic-merge-patch+json")


def add_job(
    cluster: Cluster, name: str, pods: int = 2, cpu: str = "1", suspend: bool = True, priority: str = ""
) -> None:
    container = {"name": "main", "image": "busybox", "resources": {"requests": {"cpu": cpu}}}
    inner: dict[str, Any] = {"schedulerName": "koord-scheduler", "restartPolicy": "Never", "containers": [container]}
    inner["terminationGracePeriodSeconds"] = 0  # no kubelet ends them
    spec = {"parallelism": pods, "completions": pods, "suspend": suspend, "template": {"spec": inner}}
    labels = {"kueue.x-k8s.io/queue-name": "a"} | ({"kueue.x-k8s.io/priority-class": priority} if priority else {})
    metadata = {"name": name, "labels": labels}
    cluster.request("POST", JOBS, {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec})


def job(cluster: Cluster, name: str) -> Any:
    return cluster.request("GET", f"{JOBS}/{name}")


def pods(cluster: Cluster, name: str) -> list[Any]:
    return list(cluster.request("GET", f"{PODS}?labelSelector=job-name%3D{name}")["items"])


def bound(cluster: Cluster, name: str) -> int:
    return sum(bool(each["spec"].get("nodeName")) for each in pods(cluster, name))


def workload(cluster: Cluster, name: str) -> Any:
    found: list[Any] = cluster.request("GET", WORKLOADS)["items"]
    return next((each for each in found if each["metadata"]["ownerReferences"][0]["name"] == name), {})


def condition(cluster: Cluster, name: str, kind: str) -> tuple[str, str, str]:
    told = workload(cluster, name).get("status", {}).get("conditions") or []
    found = next((each for each in told if each["type"] == kind), {})
    return found.get("status", ""), found.get("reason", ""), found.get("message", "")


@pytest.fixture
def scheduler(cluster: Cluster) -> Iterator[list[SchedulerProcess]]:
    """Those that are started; all are stopped afterwards."""
    started: list[SchedulerProcess] = []
    yield started
    for each in started:
        each.process.kill()
        each.process.wait(10)


def end_pods(cluster: Cluster, name: str) -> None:
    for each in pods(cluster, name):
        path = f"{PODS}/{each['metadata']['name']}/status"
        cluster.request("PATCH", path, {"status": {"phase": "Succeeded"}}, MERGE)


def test_one_runs_and_another_waits_whole(
    cluster: Cluster, scheduler: list[SchedulerProcess], capsys: pytest.CaptureFixture[str]
) -> None:
    """The second is admitted without ever having had a pod before, once the first is through."""
    install(cluster)
    add_node(cluster, "n0")
    scheduler.append(SchedulerProcess(cluster))
    log = scheduler[0].log
    add_job(cluster, "one", pods=2, cpu="2")
    until(lambda: bound(cluster, "one") == 2, "the first runs", log)
    template = job(cluster, "one")["spec"]["template"]
    assert template["spec"]["nodeSelector"] == {"pool": "batch"}
    assert template["spec"]["tolerations"] == [{"key": "batch", "operator": "Exists"}]
    admission = workload(cluster, "one")["status"]["admission"]
    seats = {"levels": ["kubernetes.io/hostname"], "domains": [{"values": ["n0"], "count": 2}]}
    own = {"name": "main", "count": 2, "flavors": {"cpu": "batch"}, "resourceUsage": {"cpu": "4"}}
    assert admission == {"clusterQueue": "team", "podSetAssignments": [own | {"topologyAssignment": seats}]}
    add_job(cluster, "two")
    waits = 'queue "team" may have 0 more of cpu now'
    until(lambda: waits in condition(cluster, "two", "QuotaReserved")[2], "the second says what it waits for", log)
    assert pods(cluster, "two") == []
    assert main(["explain", "job", "default/two", "--scheduler", scheduler[0].ports["grpc"]]) == 0
    told = capsys.readouterr().out
    assert "waits in stage quota: QuotaExhausted" in told and waits in told
    end_pods(cluster, "one")
    until(lambda: condition(cluster, "one", "Finished")[:2] == ("True", "Succeeded"), "the first is through", log)
    until(lambda: bound(cluster, "two") == 2, "the second runs", log)


def test_an_eviction_suspends_again(cluster: Cluster, scheduler: list[SchedulerProcess]) -> None:
    """Its pods go, its template is as it was, its quota is free for the next; activated again it comes back."""
    install(cluster)
    add_node(cluster, "n0")
    scheduler.append(SchedulerProcess(cluster))
    log = scheduler[0].log
    add_job(cluster, "one", pods=2, cpu="2")
    until(lambda: bound(cluster, "one") == 2, "the first runs", log)
    add_job(cluster, "two", suspend=False)
    until(lambda: job(cluster, "two")["spec"]["suspend"], "one that is not suspended is, until it is admitted", log)
    name = workload(cluster, "one")["metadata"]["name"]
    original = workload(cluster, "one")["spec"]["podSets"][0]["template"]
    cluster.request("PATCH", f"{WORKLOADS}/{name}", {"spec": {"active": False}}, MERGE)
    until(lambda: bound(cluster, "two") == 2, "the second has its quota", log)
    assert condition(cluster, "one", "Evicted")[:2] == ("True", "Deactivated")
    assert condition(cluster, "one", "Admitted")[:2] == ("False", "NoReservation")
    assert "admission" not in workload(cluster, "one")["status"]
    assert pods(cluster, "one") == []
    found = job(cluster, "one")["spec"]
    assert (found["suspend"], found["template"]) == (True, original)
    cluster.request("PATCH", f"{WORKLOADS}/{name}", {"spec": {"active": True}}, MERGE)
    end_pods(cluster, "two")
    until(lambda: bound(cluster, "one") == 2, "it runs again", log)


def test_a_stopped_queue_drains(cluster: Cluster, scheduler: list[SchedulerProcess]) -> None:
    """HoldAndDrain evicts the whole job, which waits until the queue goes on."""
    install(cluster)
    add_node(cluster, "n0")
    scheduler.append(SchedulerProcess(cluster))
    log = scheduler[0].log
    add_job(cluster, "one")
    until(lambda: bound(cluster, "one") == 2, "it runs", log)
    cluster.request("PATCH", f"{KUEUE}/clusterqueues/team", {"spec": {"stopPolicy": "HoldAndDrain"}}, MERGE)
    until(lambda: job(cluster, "one")["spec"]["suspend"] and not pods(cluster, "one"), "it is suspended", log)
    until(lambda: condition(cluster, "one", "Requeued")[0] == "True", "it waits again", log)
    assert condition(cluster, "one", "Evicted")[:2] == ("True", "ClusterQueueStopped")
    cluster.request("PATCH", f"{KUEUE}/clusterqueues/team", {"spec": {"stopPolicy": "None"}}, MERGE)
    until(lambda: bound(cluster, "one") == 2, "it runs again", log)


def test_seats_and_quota_outlive_the_scheduler(cluster: Cluster, scheduler: list[SchedulerProcess]) -> None:
    """Killed while a job is admitted and its pods have ended in part, the next one counts what it may still have."""
    install(cluster)
    add_node(cluster, "n0", cpu="16")
    scheduler.append(SchedulerProcess(cluster))
    log = scheduler[0].log
    add_job(cluster, "one", pods=2, cpu="2")
    until(lambda: bound(cluster, "one") == 2, "it runs", log)
    until(lambda: condition(cluster, "one", "PodsReady")[0] == "False", "it is looked at", log)
    scheduler[0].process.kill()
    scheduler[0].process.wait(10)
    path = f"{PODS}/{pods(cluster, 'one')[0]['metadata']['name']}/status"
    cluster.request("PATCH", path, {"status": {"phase": "Failed"}}, MERGE)
    add_job(cluster, "two", pods=1, cpu="1")
    scheduler.append(SchedulerProcess(cluster))
    log = scheduler[1].log
    waits = 'queue "team" may have 0 more of cpu now'
    until(lambda: waits in condition(cluster, "two", "QuotaReserved")[2], "the quota counts still", log, seconds=30.0)
    assert pods(cluster, "two") == []


def test_a_higher_priority_preempts_the_whole_job(cluster: Cluster, scheduler: list[SchedulerProcess]) -> None:
    """By WorkloadPriorityClass: the lower one is suspended whole, and runs again afterwards."""
    install(cluster)
    rules = {"spec": {"preemption": {"withinClusterQueue": "LowerPriority"}}}
    cluster.request("PATCH", f"{KUEUE}/clusterqueues/team", rules, MERGE)
    high = {"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "WorkloadPriorityClass", "metadata": {"name": "high"}}
    cluster.request("POST", f"{KUEUE}/workloadpriorityclasses", high | {"value": 1000})
    add_node(cluster, "n0")
    scheduler.append(SchedulerProcess(cluster))
    log = scheduler[0].log
    add_job(cluster, "low", pods=2, cpu="2")
    until(lambda: bound(cluster, "low") == 2, "the lower one runs", log)
    add_job(cluster, "urgent", pods=1, cpu="2", priority="high")
    until(lambda: bound(cluster, "urgent") == 1, "the higher one runs", log)
    assert workload(cluster, "urgent")["spec"]["priority"] == 1000
    until(lambda: not pods(cluster, "low") and job(cluster, "low")["spec"]["suspend"], "the lower one waits", log)
    until(lambda: condition(cluster, "low", "Requeued")[:2] == ("True", "Preempted"), "it is queued again", log)
    assert condition(cluster, "low", "Evicted")[:2] == ("True", "Preempted")
    assert job(cluster, "low").get("status", {}).get("failed", 0) == 0
    end_pods(cluster, "urgent")
    until(lambda: bound(cluster, "low") == 2, "it runs again", log)


def test_what_holds_for_pods_holds_for_a_job_without_any(cluster: Cluster, scheduler: list[SchedulerProcess]) -> None:
    """A policy withholds a priority from the namespace: nobody goes for a job that would never have a pod."""
    install(cluster)
    add_node(cluster, "n0")
    policies = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolic"
    rules = [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["CREATE"]}]
    expression = "!has(object.spec.priorityClassName) || !object.spec.priorityClassName.startsWith('system-')"
    validations = [{"expression": expression, "message": "no system priority here"}]
    spec = {"matchConstraints": {"resourceRules": rules}, "validations": validations}
    cluster.request("POST", f"{policies}ies", {"metadata": {"name": "plain"}, "spec": spec})
    binding = {"metadata": {"name": "plain"}, "spec": {"policyName": "plain", "validationActions": ["Deny"]}}
    cluster.request("POST", f"{policies}ybindings", binding)
    scheduler.append(SchedulerProcess(cluster))
    log = scheduler[0].log
    container = {"name": "c", "image": "busybox", "resources": {"requests": {"cpu": "4"}}}
    service = {"schedulerName": "koord-scheduler", "containers": [container], "terminationGracePeriodSeconds": 0}
    cluster.request("POST", PODS, {"metadata": {"name": "service"}, "spec": service})
    until(lambda: cluster.request("GET", f"{PODS}/service")["spec"].get("nodeName"), "the service runs", log)
    inner = {**service, "priorityClassName": "system-cluster-critical", "restartPolicy": "Never"}
    body = {"parallelism": 1, "completions": 1, "suspend": True, "template": {"spec": inner}}
    metadata = {"name": "evil", "labels": {"kueue.x-k8s.io/queue-name": "a"}}
    cluster.request("POST", JOBS, {"metadata": metadata, "spec": body})
    events = "/api/v1/namespaces/default/events?fieldSelector=involvedObject.name%3Devil"
    told = lambda: " ".join(each["message"] for each in cluster.request("GET", events)["items"])  # noqa: E731
    until(lambda: "no system priority here" in told(), "its author is told", log)
    assert cluster.request("GET", WORKLOADS)["items"] == []
    assert "deletionTimestamp" not in cluster.request("GET", f"{PODS}/service")["metadata"]


def test_killed_again_and_again(cluster: Cluster, scheduler: list[SchedulerProcess]) -> None:
    """Two jobs share quota for one, and whoever decides is killed twice a job: each runs once, one after the other."""
    install(cluster)
    add_node(cluster, "n0", cpu="16")
    names, seen = ["one", "two"], dict[str, set[str]]()
    for name in names:
        add_job(cluster, name, pods=2, cpu="2")
    scheduler.append(SchedulerProcess(cluster))

    def look() -> list[str]:
        """Jobs that have pods with nodes; there is quota for one."""
        for name in names:
            found = seen.setdefault(name, set())
            found.update(each["metadata"]["uid"] for each in pods(cluster, name))
        running = [name for name in names if any(_runs(each) for each in pods(cluster, name))]
        assert len(running) <= 1, running
        return running

    def killed() -> None:
        scheduler[-1].process.kill()
        scheduler[-1].process.wait(10)
        scheduler.append(SchedulerProcess(cluster))

    through: set[str] = set()
    while len(through) < len(names):
        admitted = lambda: [n for n in names if condition(cluster, n, "Admitted")[0] == "True" and n not in through]  # noqa: E731
        until(admitted, "the next is admitted", scheduler[-1].log, seconds=60.0)
        killed()
        until(lambda: look() and bound(cluster, look()[0]) == 2, "it runs", scheduler[-1].log, seconds=60.0)
        (name,) = look()
        killed()
        look()
        end_pods(cluster, name)
        through.add(name)
        until(
            lambda n=name: condition(cluster, n, "Finished")[0] == "True",
            "it is through",
            scheduler[-1].log,
            seconds=60.0,
        )
    assert {name: len(found) for name, found in seen.items()} == dict.fromkeys(names, 2)


def _runs(pod: Any) -> bool:
    return bool(pod["spec"].get("nodeName")) and pod.get("status", {}).get("phase") not in ("Succeeded", "Failed")


def test_a_training_job_waits_whole(cluster: Cluster, scheduler: list[SchedulerProcess]) -> None:
    """Written to go on at once: it makes no pod before its LocalQueue admits it, nor after it was evicted."""
    install(cluster)
    path = ROOT / "deploy" / "crds" / "optional" / "sublet" / "trainingjobs.yaml"
    for definition in (yaml.safe_load(path.read_text()), POD_GROUP_CRD):
        cluster.request("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)
    add_node(cluster, "n0")
    scheduler.append(SchedulerProcess(cluster))
    log = scheduler[0].log
    add_job(cluster, "before", pods=1, cpu="4")
    until(lambda: bound(cluster, "before") == 1, "the first runs", log)
    jobs = "/apis/sublet.dev/v1alpha1/namespaces/default/trainingjobs"
    container = {"name": "main", "image": "train"}
    spec = {
        "jobType": "PyTorchJob",
        "resources": {"minReplicas": 2, "replicaResources": {"cpu": "2"}},
        "template": {"spec": {"terminationGracePeriodSeconds": 0, "containers": [container]}},
    }
    metadata = {"name": "bert", "labels": {"kueue.x-k8s.io/queue-name": "a"}}
    body = {"apiVersion": "sublet.dev/v1alpha1", "kind": "TrainingJob", "metadata": metadata, "spec": spec}
    cluster.request("POST", jobs, body)
    own = lambda: cluster.request("GET", f"{PODS}?labelSelector=sublet.dev/job-name%3Dbert")["items"]  # noqa: E731
    waits = 'queue "team" may have 0 more of cpu now'
    until(lambda: waits in condition(cluster, "bert", "QuotaReserved")[2], "it waits", log)
    assert own() == [] and cluster.request("GET", f"{jobs}/bert")["spec"]["suspend"] is True
    end_pods(cluster, "before")
    until(lambda: sum(bool(each["spec"].get("nodeName")) for each in own()) == 2, "it runs", log)
    assert own()[0]["spec"]["nodeSelector"] == {"pool": "batch"}
    name = workload(cluster, "bert")["metadata"]["name"]
    cluster.request("PATCH", f"{WORKLOADS}/{name}", {"spec": {"active": False}}, MERGE)
    until(lambda: condition(cluster, "bert", "Admitted")[0] == "False" and own() == [], "it is evicted", log)
    assert "nodeSelector" not in cluster.request("GET", f"{jobs}/bert")["spec"]["template"]["spec"]
