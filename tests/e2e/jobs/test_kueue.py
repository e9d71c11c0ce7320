"""Kueue's manifests as they are published, by real kubectl, on nodes of both kinds of GPU: they govern Jobs end to end.

Each reading of these manifests is a test: (a) both LocalQueues share one quota, (b) alone in its cohort the queue borrows
nothing, (c) in company it borrows GPUs to the limit, (d) all resources of a pod come from one flavour, (e) flavours are
tried in order, (f) eight whole nodes fill the first.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.conftest import RunningCluster, StartCluster, until

pytestmark = pytest.mark.slow

A100, V100 = "NVIDIA-A100-SXM4-80GB", "Tesla-V100-SXM2-32GB"
MANIFESTS = "examples/kueue/training.yaml"
NODES = ("--resource", "nvidia.com/gpu=8", "--resource", "cpu=96", "--resource", "memory=1Ti")
OPTIONS = ["--no-process-node", "--simulated-nodes", "20", *NODES, "--label", f"nvidia.com/gpu.product={A100},{V100}"]
TEAMS = {"research": "ml-research", "production": "ml-production"}
HIGH = "{apiVersion: kueue.x-k8s.io/v1beta1, kind: WorkloadPriorityClass, metadata: {name: urgent}, value: 1000}"
PARTNER = """
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: partner}
spec:
  cohortName: ai-platform
  namespaceSelector: {}
  resourceGroups:
    - coveredResources: [cpu, memory, nvidia.com/gpu]
      flavors:
        - name: gpu-a100
          resources:
            - {name: cpu, nominalQuota: 1000}
            - {name: memory, nominalQuota: 8Ti}
            - {name: nvidia.com/gpu, nominalQuota: 64}
"""


class Kueue:
    """Jobs of two teams; each pod takes a whole node of 8 GPUs, unless it asks for less."""

    def __init__(self, cluster: RunningCluster) -> None:
        self.cluster = cluster
        nodes = json.loads(cluster.kubectl("get", "nodes", "-o", "json"))["items"]
        self.kinds = {each["metadata"]["name"]: each["metadata"]["labels"]["nvidia.com/gpu.product"] for each in nodes}

    def submit(self, team: str, name: str, pods: int = 1, gpus: int = 8, priority: str = "", **spec: Any) -> None:
        request = {"nvidia.com/gpu": gpus, "cpu": 4 * gpus, "memory": f"{32 * gpus}Gi"}
        container = {"name": "main", "image": "train", "resources": {"requests": request, "limits": request}}
        template = {"schedulerName": "sublet-scheduler", "restartPolicy": "Never", "containers": [container], **spec}
        labels = {"kueue.x-k8s.io/queue-name": f"ml-{team}-queue"}
        labels |= {"kueue.x-k8s.io/priority-class": priority} if priority else {}
        body = {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": name, "namespace": TEAMS[team], "labels": labels},
            "spec": {"parallelism": pods, "completions": pods, "suspend": True, "template": {"spec": template}},
        }
        self.cluster.apply(json.dumps(body))

    def get(self, team: str, kind: str) -> list[Any]:
        return list(json.loads(self.cluster.kubectl("get", kind, "-n", TEAMS[team], "-o", "json"))["items"])

    def pods(self, team: str, name: str) -> list[Any]:
        return [each for each in self.get(team, "pods") if each["metadata"]["labels"].get("job-name") == name]

    def on(self, team: str, name: str) -> list[str]:
        """Kinds of GPU that its pods run on."""
        found = (each["spec"].get("nodeName") for each in self.pods(team, name))
        return sorted(self.kinds[node] for node in found if node)

    def runs(self, team: str, name: str, *kinds: str) -> None:
        wanted = sorted(kinds)
        assert until(lambda: self.on(team, name) == wanted), (self.on(team, name), self.told(team, name))

    def told(self, team: str, name: str) -> dict[str, tuple[str, str, str]]:
        """Conditions of its Workload."""
        for each in self.get(team, "workloads.kueue.x-k8s.io"):
            if each["metadata"]["ownerReferences"][0]["name"] == name:
                conditions = each.get("status", {}).get("conditions") or []
                return {each["type"]: (each["status"], each["reason"], each["message"]) for each in conditions}
        return {}

    def waits(self, team: str, name: str) -> str:
        """Until it says that it waits, without a pod; what for."""
        found = lambda: self.told(team, name).get("QuotaReserved", ("", "", ""))  # noqa: E731
        assert until(lambda: found()[0] == "False"), found()
        assert self.pods(team, name) == []
        return found()[2]

    def used(self, flavor: str = "gpu-a100", queue: str = "training-cluster-queue") -> dict[str, str]:
        status = json.loads(self.cluster.kubectl("get", "clusterqueues", queue, "-o", "json")).get("status", {})
        own = next((each for each in status.get("flavorsUsage") or () if each["name"] == flavor), {"resources": []})
        return {each["name"]: each["total"] for each in own["resources"]}


@pytest.fixture(scope="module")
def kueue(start_cluster: StartCluster) -> Kueue:
    cluster = start_cluster(options=OPTIONS)
    cluster.kubectl("create", "-k", "deploy/crds/optional/kueue")
    for namespace in TEAMS.values():
        cluster.kubectl("create", "namespace", namespace)
    applied = ("apply", "-f", MANIFESTS)
    assert until(lambda: cluster.run(*applied).returncode == 0), cluster.run(*applied).stderr
    cluster.apply(HIGH)
    active = ("get", "clusterqueues", "training-cluster-queue", "-o", "jsonpath={.status.conditions[0].status}")
    assert until(lambda: cluster.kubectl(*active) == "True")
    return Kueue(cluster)


@pytest.fixture
def clean(kueue: Kueue) -> Iterator[Kueue]:
    """Without a job afterwards, and without another queue."""
    yield kueue
    for namespace in TEAMS.values():
        kueue.cluster.kubectl("delete", "jobs", "--all", "-n", namespace, "--wait=false")
    kueue.cluster.kubectl("delete", "clusterqueues", "partner", "--ignore-not-found", "--wait=false")
    for team in TEAMS:
        assert until(lambda team=team: not kueue.get(team, "pods"))
        assert until(lambda team=team: not kueue.get(team, "workloads.kueue.x-k8s.io"))


def test_both_local_queues_share_one_quota(clean: Kueue) -> None:
    """(a) What research has is lacking to production, which waits whole, without a pod; priority alone separates them."""
    clean.submit("research", "pretrain", 8)
    clean.runs("research", "pretrain", *[A100] * 8)
    clean.submit("research", "sweep", 4)
    clean.runs("research", "sweep", *[V100] * 4)
    clean.submit("production", "serve", 4)
    told = clean.waits("production", "serve")
    assert 'queue "cohort/ai-platform"' in told and "nvidia.com/gpu" in told, told
    clean.submit("production", "urgent", 4, priority="urgent")
    # The first flavour that evictions would make room in; a job is evicted whole, and the other is left alone.
    clean.runs("production", "urgent", *[A100] * 4)
    assert until(lambda: clean.pods("research", "pretrain") == [])
    assert clean.told("research", "pretrain")["Evicted"][:2] == ("True", "Preempted")
    assert len(clean.on("research", "sweep")) == 4
    standing = ("get", "localqueues", "ml-research-queue", "-n", "ml-research", "-o", "jsonpath={.status}")
    until(lambda: json.loads(clean.cluster.kubectl(*standing)).get("pendingWorkloads") == 1)
    status = json.loads(clean.cluster.kubectl(*standing))
    assert (status["pendingWorkloads"], status["admittedWorkloads"]) == (1, 1), status


def test_alone_in_its_cohort_it_borrows_nothing(clean: Kueue) -> None:
    """(b) Ten nodes of A100 are there, and borrowingLimit 16 has no effect: the ninth job goes to V100."""
    for number in range(9):
        clean.submit("research", f"job-{number}")
    kinds = lambda: sorted(kind for n in range(9) for kind in clean.on("research", f"job-{n}"))  # noqa: E731
    assert until(lambda: kinds() == sorted([A100] * 8 + [V100]), 60.0), kinds()


def test_in_company_it_borrows_to_the_limit(clean: Kueue) -> None:
    """(c) 16 GPUs more, not 24, once another queue of the cohort is there; CPU and memory have no limit and follow."""
    clean.cluster.apply(PARTNER)
    clean.submit("research", "large", 10, nodeSelector={"nvidia.com/gpu.product": A100})
    clean.runs("research", "large", *[A100] * 10)
    assert until(lambda: clean.used().get("nvidia.com/gpu") == "80"), clean.used()
    assert clean.used()["cpu"] == "320"
    clean.submit("research", "more", 1, gpus=1, nodeSelector={"nvidia.com/gpu.product": A100})
    assert "that is the borrowing limit" in clean.waits("research", "more")


def test_all_resources_of_a_pod_come_from_one_flavour(clean: Kueue) -> None:
    """(d) 60 GPUs of A100 are used; CPUs for 8 more would be there, and the pod goes to V100 with all it asks for."""
    clean.submit("research", "small", 15, gpus=4)
    clean.runs("research", "small", *[A100] * 15)
    clean.submit("research", "big")
    clean.runs("research", "big", V100)
    assert until(lambda: clean.used("gpu-v100").get("cpu") == "32"), clean.used("gpu-v100")
    assert clean.used()["cpu"] == "240"


def test_flavours_are_tried_in_order(clean: Kueue) -> None:
    """(e) A100 first; one that selects V100 itself goes there. Its pods get labels and tolerations of their flavour."""
    clean.submit("research", "any")
    clean.submit("production", "chosen", nodeSelector={"nvidia.com/gpu.product": V100})
    clean.runs("research", "any", A100)
    clean.runs("production", "chosen", V100)
    (pod,) = clean.pods("research", "any")
    assert pod["spec"]["nodeSelector"] == {"nvidia.com/gpu.product": A100}
    assert {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"} in pod["spec"]["tolerations"]


def test_eight_whole_nodes_fill_the_first(clean: Kueue) -> None:
    """(f) 64 GPUs, 256 CPUs and 2 TiB of A100, exactly; the next goes to V100."""
    clean.submit("research", "pretrain", 8)
    clean.runs("research", "pretrain", *[A100] * 8)
    wanted = {"nvidia.com/gpu": "64", "cpu": "256", "memory": "2Ti"}
    assert until(lambda: clean.used() == wanted), clean.used()
    clean.submit("production", "next")
    clean.runs("production", "next", V100)
