"""Reviews in, answers out, as API servers speak."""

from __future__ import annotations

from base64 import b64decode
from typing import Any

import msgspec
import pytest
from admission_builders import BATCH, Cluster, profile, raw_container, raw_pod

from admission.core.mutate import MutationPolicy
from admission.core.queue_rules import KnownQueue
from admission.core.validate import PodRules
from admission.reviewer import Malformed, Path, Reviewer, read
from embedded.apiserver.admission.review import verdict
from embedded.apiserver.apimachinery.json_patch import json_patch
from model.queue import Queue
from model.resources import BATCH_CPU

POD = {"group": "", "version": "v1", "kind": "Pod"}


def review(obj: Any, **request: Any) -> bytes:
    """Of a pod that is created in namespace batch."""
    asked = {"uid": "u1", "kind": POD, "operation": "CREATE", "namespace": "batch", "object": obj, **request}
    return msgspec.json.encode({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": asked})


def ask(path: Path, obj: Any, cluster: Cluster | None = None, **request: Any) -> dict[str, Any]:
    reviewer = Reviewer(cluster or Cluster(BATCH), MutationPolicy(), PodRules(), draw=lambda: 50)
    body = reviewer.answer(path, read(review(obj, **request))).encoded()
    verdict(body, "u1", mutating=path is Path.MUTATE_POD)  # what an API server makes of it: raises where it cannot
    answer: dict[str, Any] = msgspec.json.decode(body)["response"]
    return answer


def test_a_mutation_is_a_patch_with_its_reasons() -> None:
    """The patch makes the pod batch; the audit annotation says which profile did it, and what was renamed."""
    answer = ask(Path.MUTATE_POD, raw_pod())
    pod = json_patch(raw_pod(), msgspec.json.decode(b64decode(answer["patch"])))
    assert pod["spec"]["containers"][0]["resources"]["requests"][BATCH_CPU] == "2000"
    assert answer["auditAnnotations"]["steps"].startswith("batch: ProfileApplied; ResourcesLent (container main: ")
    assert answer["allowed"] is True


def test_what_needs_no_change_gets_no_patch() -> None:
    """An empty patch would cost the API server a round for nothing."""
    answer = ask(Path.MUTATE_POD, raw_pod(labels={}))
    assert answer == {"uid": "u1", "allowed": True}


def test_a_refusal_has_a_status() -> None:
    """Forbidden, with the sentence that kubectl shows."""
    answer = ask(Path.MUTATE_POD, raw_pod(), Cluster(profile(priorityClassName="gone")))
    assert answer["allowed"] is False
    assert (answer["status"]["code"], answer["status"]["reason"]) == (403, "Forbidden")
    assert "create PriorityClass gone" in answer["status"]["message"] and "patch" not in answer


def test_an_unreadable_profile_is_a_warning() -> None:
    """The person who creates the pod learns why nothing happened."""
    answer = ask(Path.MUTATE_POD, raw_pod(), Cluster(profile(probability="often")))
    assert answer["allowed"] is True and "spec.probability: is 'often'" in answer["warnings"][0]


EXEMPT: dict[str, dict[str, Any]] = {
    "a namespace of the system": {"namespace": "kube-system"},
    "our own": {"namespace": "sublet-system"},
    "a mirror": {"obj": raw_pod(annotations={"kubernetes.io/config.mirror": "x"})},
    "a status": {"sub_resource": "status"},
    "a deletion": {"operation": "DELETE", "obj": None},
}


@pytest.mark.parametrize("asked", EXEMPT.values(), ids=EXEMPT)
@pytest.mark.parametrize("path", [Path.MUTATE_POD, Path.VALIDATE_POD])
def test_exempt_pods(asked: dict[str, Any], path: Path) -> None:
    """Neither changed nor refused, whatever they say."""
    request = {"obj": raw_pod(labels={"koordinator.sh/qosClass": "BE", "app-type": "batch"}), **asked}
    request["subResource"] = request.pop("sub_resource", "")
    assert ask(path, request.pop("obj"), **request) == {"uid": "u1", "allowed": True}


def test_a_pod_is_validated_with_its_effective_request() -> None:
    """Init containers and overhead count: LSR needs whole CPUs of all that together."""
    labels = {"koordinator.sh/qosClass": "LSR"}
    whole = raw_pod(raw_container(requests={"cpu": "1"}), labels=labels, priority=9000)
    assert ask(Path.VALIDATE_POD, whole)["allowed"] is True
    more = raw_pod(raw_container(requests={"cpu": "1"}), labels=labels, priority=9000, overhead={"cpu": "100m"})
    assert "asks for 1100m" in ask(Path.VALIDATE_POD, more)["status"]["message"]


def test_a_resize_is_validated_as_the_pod_was() -> None:
    """LSR pods keep whole CPUs; nothing is changed in a resize."""
    labels = {"koordinator.sh/qosClass": "LSR"}
    old = raw_pod(raw_container(requests={"cpu": "1"}), labels=labels, priority=9000)
    new = raw_pod(raw_container(requests={"cpu": "1500m"}), labels=labels, priority=9000)
    asked = {"operation": "UPDATE", "subResource": "resize", "oldObject": old}
    assert "asks for 1500m" in ask(Path.VALIDATE_POD, new, **asked)["status"]["message"]
    assert ask(Path.MUTATE_POD, new, **asked) == {"uid": "u1", "allowed": True}


def test_a_change_is_compared_with_what_was() -> None:
    """An update that changes the class is refused; creating the same pod is not."""
    old = raw_pod(labels={"koordinator.sh/qosClass": "LS"})
    new = raw_pod(labels={})
    assert (
        "cannot change from LS to none"
        in ask(Path.VALIDATE_POD, new, operation="UPDATE", oldObject=old)["status"]["message"]
    )
    assert ask(Path.VALIDATE_POD, new, oldObject=None)["allowed"] is True


def test_an_update_changes_nothing() -> None:
    """What admission made of a pod stands: also where a configuration of before still sends updates."""
    old = raw_pod(raw_container(requests={"kubernetes.io/batch-cpu": "2k"}))
    assert ask(Path.MUTATE_POD, old, operation="UPDATE", oldObject=old) == {"uid": "u1", "allowed": True}


SPEC = "node.koordinator.sh/extended-resource-spec"


@pytest.mark.parametrize(
    ("before", "after"), [({}, {SPEC: "{}"}), ({SPEC: "{}"}, {}), ({SPEC: "{}"}, {SPEC: "x"}), ({}, {SPEC: ""})]
)
def test_what_admission_wrote_cannot_change(before: dict[str, str], after: dict[str, str]) -> None:
    """Nor be added or removed afterwards; when the pod is created it is admission's to correct."""
    old, new = raw_pod(annotations=before), raw_pod(annotations=after)
    told = ask(Path.VALIDATE_POD, new, operation="UPDATE", oldObject=old)["status"]["message"]
    assert told.startswith(f"metadata.annotations[{SPEC}] says what admission lent the pod and cannot change")
    assert ask(Path.VALIDATE_POD, new)["allowed"] is True


def test_amounts_that_cannot_be_read_are_refused() -> None:
    """A fault of the pod, not of ours."""
    answer = ask(Path.VALIDATE_POD, raw_pod(raw_container(requests={"cpu": "lots"})))
    assert "container main.resources.requests.cpu" in answer["status"]["message"]


def test_documents_are_checked() -> None:
    """By their kind; several sentences are one message."""
    kind = {"group": "", "version": "v1", "kind": "ConfigMap"}
    data = {"colocation-config": "{", "system-config": "{"}
    answer = ask(Path.VALIDATE_OBJECT, {"metadata": {"name": "slo-controller-config"}, "data": data}, kind=kind)
    assert answer["status"]["message"].count("; ") >= 1 and answer["allowed"] is False


@pytest.mark.parametrize("path", [each for each in Path if each is not Path.VALIDATE_EVICTION])
def test_unknown_kinds_are_let_in_with_a_warning(path: Path) -> None:
    """A webhook configuration that sends too much must not stop anybody."""
    answer = ask(path, {}, kind={"group": "x", "version": "v1", "kind": "Thing"})
    assert answer["allowed"] is True and answer["warnings"] == ["sublet-admission does not check Thing"]


def test_long_warnings_are_cut() -> None:
    """The API server takes 256 characters each."""
    kind = {"group": "", "version": "v1", "kind": "ConfigMap"}
    data = {f"{'x' * 300}{n}": "" for n in range(20)}
    answer = ask(Path.VALIDATE_OBJECT, {"metadata": {"name": "slo-controller-config"}, "data": data}, kind=kind)
    assert len(answer["warnings"]) == 16 and {len(text) for text in answer["warnings"]} == {256}


MALFORMED = {
    "nothing": b"",
    "no JSON": b"{",
    "no UTF-8": b'{"kind":"\xff"}',
    "a list": b"[]",
    "another kind": b'{"apiVersion":"v1","kind":"Pod"}',
    "another version": review({}).replace(b"k8s.io/v1", b"k8s.io/v1beta1"),
    "no request": b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}',
    "no uid": review({}, uid=""),
    "a uid of the wrong type": review({}, uid=5),
}


@pytest.mark.parametrize("body", MALFORMED.values(), ids=MALFORMED)
def test_malformed_reviews(body: bytes) -> None:
    """They are told from refusals: nobody can say what was meant."""
    with pytest.raises(Malformed):
        read(body)


@pytest.mark.parametrize("obj", [None, [], "x", {"metadata": []}, {"spec": {"containers": 5}}], ids=str)
@pytest.mark.parametrize("path", [Path.MUTATE_POD, Path.VALIDATE_POD])
def test_objects_that_are_no_pods(path: Path, obj: Any) -> None:
    """Malformed as well: an API server never sends such."""
    with pytest.raises(Malformed):
        ask(path, obj)


def test_what_nobody_acts_on_is_a_warning() -> None:
    """Of a pod that is let in; a refusal is enough by itself."""
    pod = raw_pod(labels={}, annotations={"koordinator.sh/blkioQOS": '{"blocks": []}'})
    (told,) = ask(Path.VALIDATE_POD, pod)["warnings"]
    assert told.startswith(
        "Pod batch/job-: nothing acts on metadata.annotations[koordinator.sh/blkioQOS] yet: its disk I/O"
    )
    pod["metadata"]["labels"] = {"koordinator.sh/qosClass": "BE"}
    assert "warnings" not in ask(Path.VALIDATE_POD, pod)


def test_a_change_warns_of_what_is_new() -> None:
    """Whoever labels a pod is not told again of what stands there since it was created."""
    old = raw_pod(labels={"quota.scheduling.koordinator.sh/tree-id": "a"})
    new = raw_pod(labels={"quota.scheduling.koordinator.sh/tree-id": "b", "koordinator.sh/core-sched-group-id": "g"})
    (told,) = ask(Path.VALIDATE_POD, new, operation="UPDATE", oldObject=old)["warnings"]
    assert "metadata.labels[koordinator.sh/core-sched-group-id]" in told


def test_a_queue_that_is_not_there() -> None:
    """Told of a pod and of a template, once queues are known; Kueue's word is served by a queue of that name."""
    known = Cluster()
    known.known = {"team-a": KnownQueue(Queue("team-a"), "Queue team-a")}
    named = {"sublet.dev/queue": "team-b", "kueue.x-k8s.io/queue-name": "team-c"}
    (unserved, absent) = ask(Path.VALIDATE_POD, raw_pod(labels=named), known)["warnings"]
    assert "metadata.labels[kueue.x-k8s.io/queue-name]=team-c yet" in unserved
    assert absent == (
        "Pod batch/job-: metadata.labels[sublet.dev/queue] is team-b, and there is no queue of that name: "
        "pods wait until there is"
    )
    served = {"sublet.dev/queue": "team-b", "kueue.x-k8s.io/queue-name": "team-a"}
    for labels in (served, {"sublet.dev/queue": "default"}, {"sublet.dev/queue": "team-a"}):
        assert "warnings" not in ask(Path.VALIDATE_POD, raw_pod(labels=labels), known)
    known.known = None
    assert "warnings" not in ask(Path.VALIDATE_POD, raw_pod(labels={"sublet.dev/queue": "team-b"}), known)


def test_a_queue_that_is_deleted() -> None:
    """The old object is judged, since there is no new one; the deletion of other kinds passes."""
    known = Cluster()
    known.known = {"a": KnownQueue(Queue("a"), "Queue a", running=1)}
    old = {"metadata": {"name": "a"}}
    asked = {"operation": "DELETE", "oldObject": old, "kind": {"group": "sublet.dev", "kind": "Queue"}}
    answer = ask(Path.VALIDATE_OBJECT, None, known, **asked)
    assert not answer["allowed"] and answer["status"]["message"].startswith("Queue a: 1 job that runs in it")
    assert ask(Path.VALIDATE_OBJECT, None, Cluster(), **asked)["allowed"]
    other = {**asked, "kind": {"group": "", "kind": "ConfigMap"}}
    assert ask(Path.VALIDATE_OBJECT, None, known, **other)["allowed"]
    assert ask(Path.VALIDATE_POD, None, known, **asked)["allowed"]


def test_an_lsr_pod_is_told_that_no_cpus_are_bound() -> None:
    """With whole CPUs it is accepted."""
    both = {"cpu": "2", "memory": "4Gi"}
    labels = {"koordinator.sh/qosClass": "LSR"}
    pod = raw_pod(
        raw_container(requests=both, limits=both), labels=labels, priorityClassName="koord-prod", priority=9000
    )
    (told,) = ask(Path.VALIDATE_POD, pod)["warnings"]
    assert "metadata.labels[koordinator.sh/qosClass]=LSR is acted on in part" in told and "LS pods may use them" in told


BATCH_LABELS = {"koordinator.sh/qosClass": "BE"}


def test_a_batch_pod_that_does_not_say_what_it_uses_is_warned() -> None:
    """When it is made, and not again."""
    pod = raw_pod(raw_container(), labels=BATCH_LABELS, priorityClassName="koord-batch", priority=5500)
    told = ask(Path.VALIDATE_POD, pod)["warnings"]
    assert [text.partition(":")[0] for text in told] == ["Pod batch/job-"] * 2
    assert "requests no kubernetes.io/batch-cpu (and 1 more)" in told[0] and "limits no" in told[1]
    assert "warnings" not in ask(Path.VALIDATE_POD, pod, operation="UPDATE", oldObject=pod)


def test_a_queue_nobody_serves_is_warned_of() -> None:
    """Of a change, where it is new."""
    plain, queued = raw_pod(labels={"a": "b"}), raw_pod(labels={"kueue.x-k8s.io/queue-name": "team-a"})
    (told,) = ask(Path.VALIDATE_POD, queued)["warnings"]
    assert told.startswith(
        "Pod batch/job-: nothing acts on metadata.labels[kueue.x-k8s.io/queue-name]=team-a yet: where Kueue does not run"
    )
    assert ask(Path.VALIDATE_POD, queued, operation="UPDATE", oldObject=plain)["warnings"] == [told]
    assert "warnings" not in ask(Path.VALIDATE_POD, queued, operation="UPDATE", oldObject=queued)


def test_an_annotation_that_cannot_be_read_is_warned_of() -> None:
    """Of a change, where the text is new: what holds in its stead would be silent."""
    key = "koordinator.sh/eviction-policy"
    plain, garbled = raw_pod(labels={"a": "b"}), raw_pod(annotations={key: "[["})
    (told,) = ask(Path.VALIDATE_POD, garbled)["warnings"]
    assert told.startswith(
        f"Pod batch/job-: metadata.annotations[{key}] is '[[', which cannot be read: no rule may evict"
    )
    assert ask(Path.VALIDATE_POD, garbled, operation="UPDATE", oldObject=plain)["warnings"] == [told]
    assert "warnings" not in ask(Path.VALIDATE_POD, garbled, operation="UPDATE", oldObject=garbled)
