"""Gangs through real kubectl: every way to write one, whole or not at all, together in one domain, and told why not."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.e2e.conftest import until
from tests.e2e.scheduling.conftest import Scene
from tests.e2e.scheduling.manifests import GANG, GANG_LABEL, Manifest, gang, listed, members, pod, required

pytestmark = pytest.mark.slow

HERE = {"pool": "gangs"}
IN_R1 = {"rack": "r1"}
MUST = {f"{GANG}network-topology-spec": '{"gatherStrategy":[{"layer":"rack","strategy":"MustGather"}]}'}
RACK = {"kueue.x-k8s.io/podset-required-topology": "rack"}
NEAR = {"kueue.x-k8s.io/podset-preferred-topology": "rack"}
UPSTREAM = {
    "apiVersion": "scheduling.k8s.io/v1beta1",
    "kind": "PodGroup",
    "metadata": {"name": "pair"},
    "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}},
}
LIGHT = {f"{GANG_LABEL}/name": "pair", f"{GANG_LABEL}/min-available": "2"}
ANNOTATED = {f"{GANG}name": "pair", f"{GANG}min-available": "2"}
BROKEN = {"sublet.dev/simulated-usage": "lots"}
"""A simulated kubelet refuses what it cannot read."""


def pair(**pod_: Any) -> list[Manifest]:
    return [pod(f"pair-{index}", nodeSelector=HERE, **pod_) for index in range(2)]


WRITTEN = {
    "PodGroup and label": [gang("pair", 2), *members("pair", 2, nodeSelector=HERE)],
    "annotations": pair(annotations=ANNOTATED),
    "lightweight labels": pair(labels=LIGHT),
    "Kubernetes' own": [UPSTREAM, *pair(schedulingGroup={"podGroupName": "pair"})],
}


@pytest.mark.parametrize("manifests", WRITTEN.values(), ids=WRITTEN.keys())
def test_written(scene: Scene, manifests: list[Manifest]) -> None:
    """One of two waits for the other; then both have nodes."""
    if UPSTREAM in manifests and not scene.upstream:
        pytest.skip("this API server has no pod groups of its own")
    scene.apply(listed(manifests[:-1]))
    assert scene.waits("pair-0", "1 of 2 members exist") and not scene.places("pair-")
    scene.apply(listed(manifests[-1:]))
    assert len(scene.placed("pair-", 2)) == 2
    rows = scene.cluster.sublet("top", "gangs", "--once").stdout.splitlines()
    assert ["default", "pair", "-", "2", "2", "2"] in [row.split() for row in rows]


def job(name: str, pods: int, cpu: str, queue: str = "") -> Manifest:
    """Of batch/v1."""
    metadata = {"name": name, "labels": {"app": name, **({"sublet.dev/queue": queue} if queue else {})}}
    spec = pod(name, cpu=cpu, nodeSelector=HERE, restartPolicy="Never")["spec"]
    told = {"parallelism": pods, "completions": pods, "template": {"spec": spec}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": told}


@pytest.mark.parametrize("queue", ["", "default"])
def test_a_job_with_a_queue_starts_whole(scene: Scene, queue: str) -> None:
    """Eight nodes of 32 CPUs: of nine pods that take a whole one each none is placed, or eight of a Job without one."""
    scene.apply(listed(job("sweep", 9, "31", queue)))
    try:
        if not queue:
            assert len(scene.placed("sweep-", 8)) == 8
            return
        assert until(lambda: len(scene.pods()) == 9)
        scene.waits(sorted(scene.pods())[0], "8 of 9 members fit")
        assert not scene.places("sweep-")
        told = scene.cluster.sublet("explain", "job", "sweep").stdout
        assert "gang/default/job:sweep  0 of 9 members have a node, 9 needed at once" in told
    finally:
        scene.cluster.kubectl("delete", "job", "sweep")


JOB_SETS = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: jobsets.jobset.x-k8s.io}
spec:
  group: jobset.x-k8s.io
  scope: Namespaced
  names: {kind: JobSet, plural: jobsets, singular: jobset}
  versions:
    - name: v1alpha2
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
"""
JOB_SET = """
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: pair}
spec: {replicatedJobs: [{name: workers, template: {spec: {parallelism: 2, completions: 2}}}]}
"""


def test_a_job_set_that_comes_to_be_known(scene: Scene) -> None:
    """Without the kind its pods wait, and say what they wait for; with it they start together."""
    labels = {
        f"jobset.sigs.k8s.io/{name}": text
        for name, text in (("jobset-name", "pair"), ("replicatedjob-name", "workers"))
    }
    scene.apply(listed(pair(labels=labels)))
    scene.waits(
        "pair-0", "JobSet default/pair is not known: it is gone, or the scheduler may not list and watch jobsets"
    )
    assert not scene.places("pair-")
    scene.apply(JOB_SETS)
    try:
        assert until(lambda: not scene.cluster.apply(JOB_SET, check=False).returncode)
        assert len(scene.placed("pair-", 2)) == 2
    finally:
        scene.cluster.kubectl("delete", "crd", "jobsets.jobset.x-k8s.io")


LWS = "leaderworkerset.sigs.k8s.io/"
MADE: dict[str, tuple[Manifest, str, list[dict[str, Any]]]] = {
    "LeaderWorkerSet": (
        {"apiVersion": "leaderworkerset.x-k8s.io/v1", "spec": {"replicas": 1, "leaderWorkerTemplate": {"size": 2}}},
        "leaderworkersets",
        [
            {
                "labels": {f"{LWS}name": "pair", f"{LWS}group-index": "0", f"{LWS}worker-index": str(index)},
                "annotations": {f"{LWS}size": "2"},
            }
            for index in range(2)
        ],
    ),
    "PyTorchJob": (
        {
            "apiVersion": "kubeflow.org/v1",
            "spec": {"pytorchReplicaSpecs": {"Master": {"replicas": 1}, "Worker": {"replicas": 1}}},
        },
        "pytorchjobs",
        [{"labels": {"training.kubeflow.org/job-name": "pair"}} for _ in range(2)],
    ),
}


def definition(kind: str, plural: str, version: str) -> Manifest:
    """One that keeps whatever is written."""
    group, _, name = version.partition("/")
    anything = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    names = {"kind": kind, "plural": plural, "singular": kind.lower()}
    versions = [{"name": name, "served": True, "storage": True, "schema": anything}]
    spec = {"group": group, "scope": "Namespaced", "names": names, "versions": versions}
    metadata = {"name": f"{plural}.{group}"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": metadata,
        "spec": spec,
    }


@pytest.mark.parametrize("kind", MADE)
def test_pods_of_another_controller(scene: Scene, kind: str) -> None:
    """Its object says how many there are: one of two waits for the other."""
    maker, plural, metadata = MADE[kind]
    known = definition(kind, plural, maker["apiVersion"])
    scene.apply(json.dumps(known))
    try:
        maker = {**maker, "kind": kind, "metadata": {"name": "pair"}}
        assert until(lambda: not scene.cluster.apply(json.dumps(maker), check=False).returncode)
        uid = scene.cluster.kubectl("get", known["metadata"]["name"], "pair", "-o", "jsonpath={.metadata.uid}")
        owner = {"apiVersion": maker["apiVersion"], "kind": kind, "name": "pair", "uid": uid, "controller": True}
        pods = [pod(f"pair-{index}", nodeSelector=HERE, **told) for index, told in enumerate(metadata)]
        for each in pods:
            each["metadata"]["ownerReferences"] = [owner]
        scene.apply(listed(pods[:1]))
        scene.waits("pair-0", "1 of 2 members exist")
        assert not scene.places("pair-")
        scene.apply(listed(pods[1:]))
        assert len(scene.placed("pair-", 2)) == 2
    finally:
        scene.cluster.kubectl("delete", "crd", known["metadata"]["name"])


@pytest.mark.parametrize("mode", ["Strict", "NonStrict"])
def test_whole_or_not_at_all(scene: Scene, mode: str) -> None:
    """Room for four of five: none is bound, all say so, the PodGroup waits; with a smaller one it goes."""
    scene.apply(listed(gang("five", 5, {f"{GANG}mode": mode}), members("five", 5, cpu="20", nodeSelector=IN_R1)))
    for index in range(5):
        scene.waits(f"five-{index}", "gang default/five: 4 of 5 members fit; 0/20 nodes are available: ")
    assert not scene.places("five-")
    said = scene.cluster.sublet("explain", "gang", "five").stdout
    assert "0 of 5 members have a node, 5 are needed at once" in said and "number 1 in the queue" in said, said
    scene.cluster.kubectl("patch", "podgroups.scheduling.sigs.k8s.io", "five", "--type=merge", "-p", MINIMUM_4)
    assert len(scene.placed("five-", 4)) == 4
    scene.waits("five-4" if "five-4" not in scene.places("five-") else "five-0", "its minimum of 4 is met")


MINIMUM_4 = json.dumps({"spec": {"minMember": 4}})


def test_members_above_the_minimum(scene: Scene) -> None:
    """As many as there is room for."""
    scene.apply(listed(gang("elastic", 2), members("elastic", 6, cpu="20", nodeSelector=IN_R1)))
    assert len(scene.placed("elastic-", 4)) == 4


def test_groups_of_gangs_go_together(scene: Scene) -> None:
    """Half of a group has room, and waits for the other half."""
    both = {f"{GANG}groups": '["default/left","default/right"]'}
    halves = [gang("left", 1, both), gang("right", 2, both), *members("left", 1, nodeSelector=HERE)]
    scene.apply(listed(halves, members("right", 1, nodeSelector=HERE)))
    scene.waits("left-0", "default/right")
    assert not scene.places("left-") and not scene.places("right-")
    scene.apply(listed(members("right", 2, nodeSelector=HERE)[1:]))
    assert len(scene.placed("left-", 1) | scene.placed("right-", 2)) == 3


@pytest.mark.parametrize("topology", [MUST, RACK], ids=["Koordinator", "Kueue"])
def test_the_smallest_domain_that_holds_it(scene: Scene, topology: dict[str, str]) -> None:
    """Of a rack of four nodes and two of two: a small one, all of it. Labelled as plainly as `rack`."""
    scene.apply(listed(gang("near", 2, topology), members("near", 2, cpu="20", nodeSelector=HERE)))
    assert set(scene.placed("near-", 2).values()) in ({"sim-12", "sim-13"}, {"sim-14", "sim-15"})


def test_no_domain_holds_it(scene: Scene) -> None:
    """Five members in eight nodes, of which no rack has five; preferred, they are spread."""
    scene.apply(listed(gang("near", 5, MUST), members("near", 5, cpu="20", nodeSelector=HERE)))
    scene.waits("near-0", "4 of 5 members fit")
    scene.waits("near-0", "node(s) were outside the domain that holds most of the gang")
    assert not scene.places("near-")
    scene.apply(listed(gang("far", 5, NEAR), members("far", 5, cpu="20", nodeSelector=HERE)))
    placed = scene.placed("far-", 5)
    assert len(placed) == 5 and {"sim-8", "sim-9", "sim-10", "sim-11"} < set(placed.values())


def test_time_runs_out(scene: Scene) -> None:
    """On the pods and on the PodGroup, with the time in words; later it goes all the same."""
    scene.apply(listed(gang("late", 5, scheduleTimeoutSeconds=2), members("late", 5, cpu="20", nodeSelector=IN_R1)))
    scene.waits("late-0", "SchedulingTimeout: not placed within 2s of its first attempt")
    assert until(lambda: "PodGroup/late" in scene.events("GangTimeout"))
    scene.cluster.kubectl("patch", "podgroups.scheduling.sigs.k8s.io", "late", "--type=merge", "-p", MINIMUM_4)
    assert len(scene.placed("late-", 4)) == 4


def test_a_kubelet_refuses_a_member(scene: Scene) -> None:
    """The gang failed, not the pod alone: the PodGroup says which; a pod in its place makes it whole."""
    good = members("refused", 2, nodeSelector=HERE)
    bad = pod("refused-2", labels={GANG_LABEL: "refused"}, annotations=BROKEN, nodeSelector=HERE)
    scene.apply(listed(gang("refused", 3), good, bad))
    told = until(lambda: (found := scene.events("MemberRejected")) and found["PodGroup/refused"])
    assert "the kubelet rejected default/refused-2: UnexpectedAdmissionError" in told
    scene.cluster.kubectl("delete", "pod", "refused-2")
    scene.apply(listed(members("refused", 3, nodeSelector=HERE)[2:]))
    assert len(scene.placed("refused-", 3)) == 3


def test_what_cannot_be_read_is_named(scene: Scene) -> None:
    """The PodGroup and the annotation, also of a group that does not exist; nobody is placed by guesswork."""
    broken = {f"{GANG}network-topology-spec": "{nope"}
    orphan = pod("orphan", labels={GANG_LABEL: "missing"}, affinity=required("pool", "In", "gangs"))
    scene.apply(listed(gang("broken", 1, broken), members("broken", 1, nodeSelector=HERE), orphan))
    scene.waits("broken-0", "network-topology-spec: cannot be read: JSON is malformed")
    assert until(lambda: "PodGroup/broken" in scene.events("GangInvalid"))
    scene.waits("orphan", "PodGroup default/missing does not exist")
