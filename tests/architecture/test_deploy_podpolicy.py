"""deploy/admission/podpolicy.yaml: what is settled when a pod is made stays as it is, whoever edits the pod, and how."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from admission.core.podfields import QUEUE_ANNOTATIONS, QUEUE_LABELS
from embedded.apiserver.request.user_info import ANONYMOUS, UserInfo
from embedded.tests.apiserver.conftest import Api
from kube.dialects.gangs import membership as gangs
from kube.dialects.queues import membership
from kube.dialects.queues.elastic_quota import LABEL_NAME
from model.suspended.job import WORKLOAD

DEPLOY = Path(__file__).parent.parent.parent / "deploy"
Object = dict[str, Any]
PODS = "/api/v1/namespaces/default/pods"
SPEC = "node.koordinator.sh/extended-resource-spec"
MIRROR, HASH = "kubernetes.io/config.mirror", "kubernetes.io/config.hash"
QOS, CLASS = "koordinator.sh/qosClass", "koordinator.sh/priority-class"
EDITOR = UserInfo("ann", "", ("system:authenticated",), {})
ADMISSION = UserInfo("system:serviceaccount:sublet-system:sublet-admission", "", ("system:serviceaccounts",), {})
ADMIN = UserInfo("kubernetes-admin", "", ("system:masters",), {})
NODE = UserInfo("system:node:one", "", (), {})
"""Without the group of nodes, whose own restriction would answer first: not every cluster has it switched on."""


def pod(name: str, **metadata: Any) -> Object:
    spec = {"containers": [{"name": "main", "image": "image"}], **metadata.pop("spec", {})}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, **metadata}, "spec": spec}


@pytest.fixture(scope="module")
def api() -> Api:
    """A batch pod, an online one, and the policy; everything else is allowed."""
    made = Api()
    for document in yaml.safe_load_all((DEPLOY / "admission/podpolicy.yaml").read_text()):
        plural = "validatingadmissionpolic" + ("ybindings" if document["kind"].endswith("Binding") else "ies")
        made.post(f"/apis/admissionregistration.k8s.io/v1/{plural}", document)
    made.post(PODS, pod("batch", labels={QOS: "BE", CLASS: "koord-batch"}, annotations={SPEC: "{}"}))
    made.post(PODS, pod("web", labels={"app": "web"}))
    return made


class Change(NamedTuple):
    """A merge patch of a pod, or of a part of it."""

    pod: str
    metadata: Object
    part: str = ""


REFUSED = {
    "the annotation is changed": (Change("batch", {"annotations": {SPEC: "x"}}), SPEC),
    "the annotation is emptied": (Change("batch", {"annotations": {SPEC: ""}}), SPEC),
    "the annotation is removed": (Change("batch", {"annotations": {SPEC: None}}), SPEC),
    "all annotations are removed": (Change("batch", {"annotations": None}), SPEC),
    "the annotation is added": (Change("web", {"annotations": {SPEC: "{}"}}), SPEC),
    "the annotation is added empty": (Change("web", {"annotations": {SPEC: ""}}), SPEC),
    "by the status": (Change("web", {"annotations": {SPEC: "{}"}}, "/status"), SPEC),
    "the class is added": (Change("web", {"labels": {QOS: "BE"}}), QOS),
    "the class is changed": (Change("batch", {"labels": {QOS: "LS"}}), QOS),
    "the class is removed": (Change("batch", {"labels": {QOS: None}}), QOS),
    "all labels are removed": (Change("batch", {"labels": None}), QOS),
    "the class is changed by the status": (Change("batch", {"labels": {QOS: "LS"}}, "/status"), QOS),
    "the priority class is changed": (Change("batch", {"labels": {CLASS: "koord-prod"}}), CLASS),
    "the priority class is added": (Change("web", {"labels": {CLASS: "koord-batch"}}), CLASS),
    "it becomes a static pod": (Change("web", {"annotations": {HASH: "0af9"}}), HASH),
}


def patched(api: Api, user: UserInfo, change: Change) -> tuple[int, str]:
    api.user = user
    code, answer = api.patch(f"{PODS}/{change.pod}{change.part}?dryRun=All", {"metadata": change.metadata}, "merge")
    api.user = ANONYMOUS
    return code, answer.get("message", "")


@pytest.mark.parametrize("user", [EDITOR, ADMISSION, ADMIN], ids=lambda user: user.name)
@pytest.mark.parametrize(("change", "key"), REFUSED.values(), ids=REFUSED)
def test_what_is_settled(api: Api, change: Change, key: str, user: UserInfo) -> None:
    """The sentence names the key and says what to do instead; nobody is excepted."""
    code, message = patched(api, user, change)
    assert code == 422 and f"[{key}] is settled when the pod is created; delete the pod and create it" in message


ALLOWED = {
    "another annotation": Change("batch", {"annotations": {"sublet.dev/eviction": "because"}}),
    "another label": Change("batch", {"labels": {"koordinator.sh/eviction-enabled": "true"}}),
    "the same once more": Change("batch", {"annotations": {SPEC: "{}"}, "labels": {QOS: "BE"}}),
    "labels of a pod without any of ours": Change("web", {"labels": None}),
    "a status": Change("batch", {"annotations": {"a": "b"}}, "/status"),
}


@pytest.mark.parametrize("change", ALLOWED.values(), ids=ALLOWED)
def test_what_is_not(api: Api, change: Change) -> None:
    """Nothing else is anybody's business here."""
    assert patched(api, EDITOR, change)[0] == 200


def test_a_binding_brings_none_of_it(api: Api) -> None:
    """The API server puts a Binding's annotations on the pod."""
    target = {"apiVersion": "v1", "kind": "Node", "name": "one"}
    for brought, expected in (({SPEC: "{}"}, 422), ({"a": "b"}, 201)):
        metadata = {"name": "web", "annotations": brought}
        body = {"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": target}
        code, answer = api.call("POST", f"{PODS}/web/binding?dryRun=All", body)
        assert code == expected, answer


CREATED = {
    "an ordinary pod": (EDITOR, pod("new"), 201),
    "a batch pod": (EDITOR, pod("new", labels={QOS: "BE"}, annotations={SPEC: "{}"}), 201),
    "a mirror by a person": (EDITOR, pod("new", annotations={MIRROR: "x", HASH: "y"}, spec={"nodeName": "one"}), 422),
    "a mirror by admission": (ADMISSION, pod("new", annotations={MIRROR: "x"}, spec={"nodeName": "one"}), 422),
    "a mirror of another node": (NODE, pod("new", annotations={MIRROR: "x"}, spec={"nodeName": "two"}), 422),
    "a mirror of no node": (NODE, pod("new", annotations={MIRROR: "x"}), 422),
    "a mirror by its node": (NODE, pod("new", annotations={MIRROR: "x"}, spec={"nodeName": "one"}), 201),
}


@pytest.mark.parametrize(("user", "body", "expected"), CREATED.values(), ids=CREATED)
def test_who_makes_mirrors(api: Api, user: UserInfo, body: Object, expected: int) -> None:
    """The kubelet of the node alone: a mirror says which cgroup it stands for."""
    api.user = user
    code, answer = api.call("POST", f"{PODS}?dryRun=All", body)
    api.user = ANONYMOUS
    assert code == expected, answer


CHARGED = "sublet.dev/charged-queue"
STATUS = "scheduling.koordinator.sh/resource-status"
SCHEDULER = UserInfo("system:serviceaccount:sublet-system:sublet-scheduler", "", (), {})
KOORDINATOR = UserInfo("system:serviceaccount:koordinator-system:koord-scheduler", "", (), {})
PINNED = {STATUS: '{"cpuset":"0-3"}'}
TARGET = {"apiVersion": "v1", "kind": "Node", "name": "one"}
WRITES = {
    "made with a pod": ("POST", PODS, pod("own", annotations=PINNED)),
    "added": ("PATCH", f"{PODS}/web", {"metadata": {"annotations": PINNED}}),
    "added with a status": ("PATCH", f"{PODS}/web/status", {"metadata": {"annotations": PINNED}}),
    "changed": ("PATCH", f"{PODS}/pinned", {"metadata": {"annotations": {STATUS: "{}"}}}),
    "removed": ("PATCH", f"{PODS}/pinned", {"metadata": {"annotations": {STATUS: None}}}),
    "brought by a Binding": (
        "POST",
        f"{PODS}/web/binding",
        {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": "web", "annotations": PINNED},
            "target": TARGET,
        },
    ),
}


@pytest.mark.parametrize("key", [STATUS, CHARGED])
@pytest.mark.parametrize("user", [EDITOR, ADMISSION, ADMIN, NODE, SCHEDULER, KOORDINATOR], ids=lambda user: user.name)
@pytest.mark.parametrize("name", WRITES)
def test_whose_word_on_a_placed_pod_counts(api: Api, user: UserInfo, name: str, key: str) -> None:
    """Schedulers alone say which CPUs a pod has, and by which queue it was placed; and they too make no pod that says
    so: they make those of jobs, by templates of others.
    """
    verb, path, body = json.loads(json.dumps(WRITES[name]).replace(STATUS, key))
    pinned = {STATUS: PINNED[STATUS], CHARGED: PINNED[STATUS]}
    api.user = KOORDINATOR
    if api.call("POST", PODS, pod("pinned"))[0] == 201:
        assert api.patch(f"{PODS}/pinned", {"metadata": {"annotations": pinned}}, "merge")[0] == 200
    api.user = user
    if verb == "PATCH":
        code, answer = api.patch(f"{path}?dryRun=All", body, "merge")
    else:
        code, answer = api.call(verb, f"{path}?dryRun=All", body)
    api.user = ANONYMOUS
    if user in (SCHEDULER, KOORDINATOR) and name != "made with a pod":
        assert code in (200, 201), answer
    else:
        assert code == 422 and f"annotations[{key}] is what the scheduler says" in answer["message"]


QUEUE = "sublet.dev/queue"
NAMES = [("labels", key) for key in QUEUE_LABELS] + [("annotations", key) for key in QUEUE_ANNOTATIONS]
SETTLED = "is settled once the pod has a node"


@pytest.fixture(scope="module")
def placed(api: Api) -> Api:
    """A pod that waits in a queue, and one that has a node."""
    words = {"labels": dict.fromkeys(QUEUE_LABELS, "a"), "annotations": dict.fromkeys(QUEUE_ANNOTATIONS, "a")}
    for name, spec in (("waits", {}), ("runs", {"nodeName": "one"})):
        api.post(PODS, pod(name, **words, spec=spec))
    return api


@pytest.mark.parametrize("part", ["", "/status"])
@pytest.mark.parametrize(("place", "key"), NAMES, ids=lambda text: text)
def test_the_queue_of_a_pod_that_has_a_node(placed: Api, place: str, key: str, part: str) -> None:
    """By whatever it is known: another, none, or one where there was none; who waits may choose."""
    for value in ("b", None):
        code, message = patched(placed, ADMIN, Change("runs", {place: {key: value}}, part))
        assert code == 422 and f"metadata.{place}[{key}] {SETTLED}" in message
        assert patched(placed, EDITOR, Change("waits", {place: {key: value}}, part))[0] == 200
    assert patched(placed, EDITOR, Change("runs", {place: {key: "a"}}, part))[0] == 200


def test_a_binding_names_no_queue(placed: Api) -> None:
    """Its annotations are put on the pod as it gets its node."""
    metadata = {"name": "waits", "annotations": {QUEUE_ANNOTATIONS[0]: "b"}}
    body = {"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": TARGET}
    code, answer = placed.call("POST", f"{PODS}/waits/binding?dryRun=All", body)
    assert code == 422 and SETTLED in answer["message"]


def test_the_names_are_those_that_are_read() -> None:
    """Of queues and of gangs; the policy's tests above go through the webhook's."""
    queues = {
        membership.ANNOTATION_VOLCANO,
        membership.VOLCANO_JOB,
        membership.KUEUE,
        membership.LABEL_OURS,
        LABEL_NAME,
    }
    of_gangs = {gangs.LABEL_POD_GROUP, gangs.LABEL_LIGHTWEIGHT_NAME, gangs.ANNOTATION_NAME, *gangs.VOLCANO_NAMES}
    assert {*QUEUE_LABELS, *QUEUE_ANNOTATIONS} == queues | of_gangs | {WORKLOAD}


GROUPS = "/apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups"


@pytest.mark.parametrize(("phase", "expected"), [("", 200), ("Inqueue", 200), ("Running", 422), ("Unknown", 422)])
def test_the_queue_of_a_podgroup_that_runs(api: Api, phase: str, expected: int) -> None:
    """Its pods are charged by it."""
    definition = yaml.safe_load((DEPLOY / "crds/optional/volcano/podgroups.yaml").read_text())
    api.call("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)
    name = f"g{phase.lower()}"
    group = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", "metadata": {"name": name}}
    api.post(GROUPS, {**group, "spec": {"minMember": 1, "queue": "a"}})
    told, answer = api.patch(f"{GROUPS}/{name}/status", {"status": {"phase": phase}}, "merge") if phase else (200, {})
    assert told == 200, answer
    code, answer = api.patch(f"{GROUPS}/{name}", {"spec": {"queue": "b"}}, "merge")
    assert code == expected, answer
    assert api.patch(f"{GROUPS}/{name}", {"spec": {"minMember": 2}}, "merge")[0] == 200
