"""The pod of a member: what the template says, what the job adds, and that the template wins."""

from __future__ import annotations

from typing import Any

import pytest
from job_cases import job, task

from jobs.core.peers import peers
from jobs.core.pod_body import PodBodies, selector
from kube.dialects.queues.membership import NamedQueues, named_queues
from kube.objects import Metadata
from model.job import labels
from model.job.job import CheckpointPolicy, ElasticPolicy, Framework, GroupTerms, Job, JobDialect, Member
from model.job.status import JobStatus
from model.priority import PreemptionPolicy

SECOND = Member("worker", 1)


def body(of: Job, member: Member = SECOND, priority: str = "", run: int = 2) -> dict[str, Any]:
    members = tuple(Member(each.name, index) for each in of.tasks for index in range(each.replicas))
    return PodBodies(of, JobStatus(run=run), peers(of, members), priority).body(member)


def template(**spec: Any) -> dict[str, Any]:
    return {"spec": {"containers": [{"name": "main", **spec.pop("container", {})}], **spec}}


def env(made: dict[str, Any]) -> dict[str, Any]:
    return {each["name"]: each.get("value", each.get("valueFrom")) for each in made["spec"]["containers"][0]["env"]}


def test_a_pod_of_a_training_job() -> None:
    made = body(job(framework=Framework.PYTORCH))
    meta = made["metadata"]
    assert meta["name"] == "train-worker-1" and meta["ownerReferences"][0]["controller"] is True
    assert meta["labels"] == {
        "sublet.dev/job-uid": "12345678-9abc", "sublet.dev/job-name": "train", "sublet.dev/task": "worker",
        "sublet.dev/task-index": "1", "sublet.dev/job-run": "2", "sublet.dev/queue": "research",
        "sublet.dev/job-type": "PyTorchJob", "pod-group.scheduling.sigs.k8s.io": "train-12345678",
    }  # fmt: skip
    assert made["spec"]["schedulerName"] == "sublet-scheduler" and made["spec"]["restartPolicy"] == "Never"
    assert (made["spec"]["hostname"], made["spec"]["subdomain"]) == ("train-worker-1", "train")
    assert env(made)["RANK"] == "1" and env(made)["MASTER_ADDR"] == "train-worker-0.train"


def test_a_pod_is_told_where_checkpoints_are() -> None:
    """By the variables that sublet_sdk reads; none without `spec.checkpoint`, and the template's own word stays."""
    told = env(body(job(checkpoint=CheckpointPolicy("s3://bucket/path", 300.0, 2))))
    assert {name: value for name, value in told.items() if name.startswith("SUBLET_")} == {
        "SUBLET_CHECKPOINT_URL": "s3://bucket/path", "SUBLET_CHECKPOINT_INTERVAL_SECONDS": "300",
        "SUBLET_CHECKPOINT_MAX": "2", "SUBLET_JOB_NAMESPACE": "ml", "SUBLET_JOB_NAME": "train",
        "SUBLET_NOTICE_FILE": "/etc/sublet/notice/preemption",
    }  # fmt: skip
    assert not [each for each in body(job())["spec"]["containers"][0].get("env", ()) if "SUBLET" in each["name"]]


@pytest.mark.parametrize(("index", "word"), [(0, "true"), (1, None)])
def test_a_pod_of_an_elastic_job(index: int, word: str | None) -> None:
    """Mounts the file of its world, whose name and its own it is told; one of the minimum says that it is."""
    made = body(job(task("worker", 2, 1), elastic=ElasticPolicy("worker", 1, 2)), Member("worker", index))
    told, (container,) = env(made), made["spec"]["containers"]
    assert made["metadata"]["annotations"].get("sublet.dev/minimum-member") == word
    assert told["SUBLET_WORLD_MEMBER"] == made["metadata"]["name"]
    assert container["volumeMounts"] == [{"name": "sublet-world", "mountPath": "/etc/sublet/world"}]
    assert told["SUBLET_WORLD_FILE"].startswith("/etc/sublet/world/")
    assert made["spec"]["volumes"] == [{"name": "sublet-world", "configMap": {"name": "train-world"}}]
    assert "SUBLET_WORLD_FILE" not in str(body(job()))


def test_a_pod_with_checkpoints_asks_for_a_socket() -> None:
    """Unless its template says otherwise."""
    name, kept = "sublet.dev/checkpoint-socket", CheckpointPolicy("s3://bucket/path", 300.0, 2)
    assert body(job(checkpoint=kept))["metadata"]["annotations"][name] == "true"
    assert name not in body(job())["metadata"]["annotations"]
    own = template() | {"metadata": {"annotations": {name: "false"}}}
    assert body(job(task(template=own), checkpoint=kept))["metadata"]["annotations"][name] == "false"


def test_a_pod_that_saves_asks_for_notice_and_has_it_as_a_file() -> None:
    """The file follows the annotation; the template may ask for another time, and without a grace nothing is asked."""
    made = body(job(checkpoint=CheckpointPolicy("s3://b", grace_seconds=90.0)))
    assert made["metadata"]["annotations"]["sublet.dev/preemption-notice-seconds"] == "90"
    field = {"fieldPath": "metadata.annotations['sublet.dev/preemption-notice']"}
    items = [{"path": "preemption", "fieldRef": field}]
    assert {"name": "sublet-notice", "downwardAPI": {"items": items}} in made["spec"]["volumes"]
    mount = {"name": "sublet-notice", "mountPath": "/etc/sublet/notice", "readOnly": True}
    assert mount in made["spec"]["containers"][0]["volumeMounts"]
    own = task(template={**template(), "metadata": {"annotations": {"sublet.dev/preemption-notice-seconds": "5"}}})
    told = body(job(own, checkpoint=CheckpointPolicy("s3://b")))["metadata"]["annotations"]
    assert told["sublet.dev/preemption-notice-seconds"] == "5"
    quiet = body(job(checkpoint=CheckpointPolicy("s3://b", grace_seconds=0.0)))["metadata"]["annotations"]
    assert "sublet.dev/preemption-notice-seconds" not in quiet


def test_a_pod_of_a_volcano_job() -> None:
    of = job(dialect=JobDialect.VOLCANO, plugins={"env": (), "svc": ()}, group=GroupTerms("q", 2, "volcano"))
    made = body(of)
    annotations, told = made["metadata"]["annotations"], made["metadata"]["labels"]
    assert annotations["scheduling.k8s.io/group-name"] == "train-12345678-9abc"
    assert annotations["volcano.sh/job-version"] == "2" and annotations["volcano.sh/task-spec"] == "worker"
    assert selector(of).items() <= told.items() and made["spec"]["schedulerName"] == "volcano"
    metadata = Metadata(labels=told, annotations=annotations)
    assert named_queues(metadata) == NamedQueues("q")
    assert env(made)["VC_TASK_INDEX"] == "1"
    assert env(made)["VC_WORKER_HOSTS"] == {"configMapKeyRef": {"name": "train-svc", "key": "VC_WORKER_HOSTS"}}


def test_the_template_wins() -> None:
    own = template(
        container={"env": [{"name": "RANK", "value": "9"}]}, restartPolicy="OnFailure", schedulerName="other",
        priorityClassName="mine", hostname="fixed",
    )  # fmt: skip
    made = body(job(task(template=own), framework=Framework.PYTORCH), priority="high")
    spec = made["spec"]
    assert (spec["restartPolicy"], spec["schedulerName"], spec["priorityClassName"], spec["hostname"]) == (
        "OnFailure", "other", "mine", "fixed",
    )  # fmt: skip
    assert env(made)["RANK"] == "9" and env(made)["WORLD_SIZE"] == "2"


def test_the_priority_and_its_policy_are_inherited() -> None:
    never = body(job(group=GroupTerms(minimum=2, preemption_policy=PreemptionPolicy.NEVER)), priority="high")
    assert never["spec"]["priorityClassName"] == "high"
    assert never["metadata"]["annotations"][labels.PREEMPTION_POLICY] == "Never"
    assert labels.PREEMPTION_POLICY not in body(job())["metadata"]["annotations"]


def test_a_kind_of_gpus() -> None:
    """Any label that says so is enough, beside each term of the template's own."""
    term = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}
    of = job(task(template=template(affinity=affinity)), group=GroupTerms(minimum=2, gpu_type="A100"))
    required = body(of)["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    found = [[each["key"] for each in term["matchExpressions"]] for term in required["nodeSelectorTerms"]]
    assert ["zone", "nvidia.com/gpu.product"] in found and all(keys[0] == "zone" for keys in found)
    assert all(term["matchExpressions"][-1]["values"] == ["A100"] for term in required["nodeSelectorTerms"])


def test_keys_and_hosts_are_mounted() -> None:
    made = body(job(plugins={"ssh": ("--ssh-key-file-path=/home/.ssh",), "svc": ()}))
    mounts = {each["mountPath"]: each["name"] for each in made["spec"]["containers"][0]["volumeMounts"]}
    assert mounts == {"/etc/volcano": "train-svc", "/home/.ssh": "train-ssh"}
    assert {each["name"] for each in made["spec"]["volumes"]} == {"train-svc", "train-ssh"}


def test_the_job_is_not_changed_by_its_pods() -> None:
    of = job(task(template=template(container={"env": []})), framework=Framework.MPI)
    first = body(of)
    assert of.tasks[0].template == template(container={"env": []}) and body(of) == first
