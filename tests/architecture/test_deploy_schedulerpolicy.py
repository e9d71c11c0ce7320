"""deploy/scheduler/policy.yaml: with the scheduler's token nobody changes what a pod of sublet-system runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from embedded.apiserver.request.user_info import ANONYMOUS, UserInfo
from embedded.tests.apiserver.conftest import Api

POLICY = Path(__file__).parent.parent.parent / "deploy/scheduler/policy.yaml"
Object = dict[str, Any]
SCHEDULER = "system:serviceaccount:sublet-system:sublet-scheduler"
LEADER: Object = {"metadata": {"labels": {"sublet.dev/leader": "true"}}}
IMAGE: Object = {"spec": {"containers": [{"name": "main", "image": "another"}]}}
OWN, AGENT, ELSEWHERE = "sublet-system/own", "sublet-system/agent", "default/own"
NOTICE: Object = {"metadata": {"annotations": {"sublet.dev/preemption-notice": "{}"}}}
OTHERS, ALONE = "no pod but its own", "the label sublet.dev/leader of its pod and nothing else"
CASES: dict[str, tuple[str, Object, str]] = {
    "it leads": (OWN, LEADER, ""),
    "it does not lead": (OWN, {"metadata": {"labels": {"sublet.dev/leader": None}}}, ""),
    "the image of an agent": (AGENT, IMAGE, OTHERS),
    "the label of an agent": (AGENT, LEADER, OTHERS),
    "a pod of its name elsewhere": (ELSEWHERE, LEADER, OTHERS),
    "its own image": (OWN, IMAGE, ALONE),
    "another label": (OWN, {"metadata": {"labels": {"app": "mine"}}}, ALONE),
    "another label away": (OWN, {"metadata": {"labels": {"kept": None}}}, ALONE),
    "an annotation": (OWN, {"metadata": {"annotations": {"a": "b"}}}, ALONE),
    "why a pod waits": ("default/own/status", {"status": {"conditions": [{"type": "A", "status": "True"}]}}, ""),
    "a label with its status": ("default/own/status", LEADER, ALONE),
    "an annotation with its status": ("default/own/status", {"metadata": {"annotations": {"a": "b"}}}, ALONE),
    "a notice with its status": ("default/own/status", NOTICE, ""),
    "a notice of an agent's pod, with its status": ("sublet-system/agent/status", NOTICE, ""),
    "a notice": (OWN, NOTICE, ALONE),
    "a notice of another pod": (AGENT, NOTICE, OTHERS),
    "a very long notice": (
        "default/own/status",
        {"metadata": {"annotations": {"sublet.dev/preemption-notice": "x" * 2049}}},
        ALONE,
    ),
    "a notice and another annotation": (
        "default/own/status",
        {"metadata": {"annotations": {**NOTICE["metadata"]["annotations"], "a": "b"}}},
        ALONE,
    ),
    "a finalizer": (OWN, {"metadata": {"finalizers": ["example.com/mine"]}}, ALONE),
}


@pytest.fixture(scope="module")
def api() -> Api:
    """Three pods and the policy; everything else is allowed."""
    made = Api()
    for document in yaml.safe_load_all(POLICY.read_text()):
        plural = "validatingadmissionpolic" + ("ybindings" if document["kind"].endswith("Binding") else "ies")
        made.post(f"/apis/admissionregistration.k8s.io/v1/{plural}", document)
    made.post("/api/v1/namespaces", {"metadata": {"name": "sublet-system"}})
    for place in (OWN, AGENT, ELSEWHERE):
        namespace, _, name = place.partition("/")
        metadata = {"name": name, "labels": {"kept": "yes", "sublet.dev/leader": "false"}}
        spec = {"nodeName": "one", "containers": [{"name": "main", "image": "image"}]}
        made.post(f"/api/v1/namespaces/{namespace}/pods", {"metadata": metadata, "spec": spec})
    return made


def patched(api: Api, user: str, bound_to: str, place: str, body: Object) -> tuple[int, str]:
    """What came of it; nothing is stored."""
    namespace, _, path = place.partition("/")
    extra = {"authentication.kubernetes.io/pod-name": (bound_to,)} if bound_to else {}
    api.user = UserInfo(user, "", ("system:authenticated",), extra)
    code, answer = api.patch(f"/api/v1/namespaces/{namespace}/pods/{path}?dryRun=All", body, "strategic")
    api.user = ANONYMOUS
    return code, answer.get("message", "")


@pytest.mark.parametrize(("place", "body", "told"), CASES.values(), ids=CASES)
def test_what_the_scheduler_may_change(api: Api, place: str, body: Object, told: str) -> None:
    """The label by which the Service of the link finds the leader."""
    code, message = patched(api, SCHEDULER, "own", place, body)
    assert (code == 422 and told in message) if told else code == 200, message


def test_very_many_labels_keep_no_status_from_being_written(api: Api) -> None:
    """Going through 30,000 of them takes an API server longer than a request may, and here more than its budget."""
    metadata = {"name": "full", "labels": {f"label-{number}": "" for number in range(30_000)}}
    spec = {"nodeName": "one", "containers": [{"name": "main", "image": "image"}]}
    api.post("/api/v1/namespaces/default/pods", {"metadata": metadata, "spec": spec})
    place = "default/full/status"
    assert (
        patched(api, SCHEDULER, "own", place, {"status": {"conditions": [{"type": "A", "status": "True"}]}})[0] == 200
    )
    code, message = patched(api, SCHEDULER, "own", place, {"metadata": {"labels": {"label-7": "mine"}}})
    assert (code, ALONE in message) == (422, True), message


def test_a_token_of_no_pod_changes_none(api: Api) -> None:
    """One that was made for the account alone."""
    assert patched(api, SCHEDULER, "", OWN, LEADER)[0] == 422


@pytest.mark.parametrize(("place", "body", "told"), CASES.values(), ids=CASES)
def test_nobody_else_is_concerned(api: Api, place: str, body: Object, told: str) -> None:
    """An administrator changes what Kubernetes lets be changed."""
    assert patched(api, "ann", "", place, body)[0] == 200


def owned(kind: str, version: str, *, controller: bool = True) -> list[Object]:
    return [{"apiVersion": version, "kind": kind, "name": "train", "uid": "u1", "controller": controller}]


MADE: dict[str, tuple[str, list[Object], bool]] = {
    "of a TrainingJob": ("default", owned("TrainingJob", "sublet.dev/v1alpha1"), True),
    "of a Volcano Job": ("default", owned("Job", "batch.volcano.sh/v1alpha1"), True),
    "of Kubernetes' Job": ("default", owned("Job", "batch/v1"), False),
    "of nobody": ("default", [], False),
    "beside a job": ("default", owned("TrainingJob", "sublet.dev/v1alpha1", controller=False), False),
    "of a kind of that name": ("default", owned("TrainingJob", "example.com/v1"), False),
    "beside Sublet": ("sublet-system", owned("TrainingJob", "sublet.dev/v1alpha1"), False),
    "beside Kubernetes": ("kube-system", owned("TrainingJob", "sublet.dev/v1alpha1"), False),
}


@pytest.mark.parametrize(("namespace", "owners", "taken"), MADE.values(), ids=MADE)
def test_what_the_scheduler_may_make(api: Api, namespace: str, owners: list[Object], taken: bool) -> None:
    """Pods of jobs, as any controller of jobs does, and none where whoever runs a pod is as good as root."""
    extra = {"authentication.kubernetes.io/pod-name": ("own",)}
    body = {
        "metadata": {"generateName": "made-", "ownerReferences": owners},
        "spec": {"containers": [{"name": "main", "image": "image"}]},
    }
    api.user = UserInfo(SCHEDULER, "", ("system:authenticated",), extra)
    code, answer = api.call("POST", f"/api/v1/namespaces/{namespace}/pods", body)
    api.user = ANONYMOUS
    assert code == 201 if taken else (code == 422 and OTHERS in answer["message"]), answer


def test_a_pod_that_is_only_tried(api: Api) -> None:
    """Of a job that waits whole the scheduler asks whether its pods would be let in, and makes none."""
    metadata = {"generateName": "train-"}
    body = {"metadata": metadata, "spec": {"containers": [{"name": "main", "image": "image"}]}}
    api.user = UserInfo(SCHEDULER, "", ("system:authenticated",), {})
    tried = api.call("POST", "/api/v1/namespaces/default/pods?dryRun=All", body)
    made = api.call("POST", "/api/v1/namespaces/default/pods", body)
    api.user = ANONYMOUS
    assert tried[0] == 201, tried
    assert made[0] == 422 and OTHERS in made[1]["message"], made
