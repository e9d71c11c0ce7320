"""deploy/daemonset/policy.yaml: with an agent's token another node, and another node's pods, are out of reach."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from admission.core.evictions import StoredPod, refusal
from embedded.apiserver.request.user_info import ANONYMOUS, UserInfo
from embedded.tests.apiserver.conftest import Api
from kube.dialects.sublet.preemption_notice import notice_text
from model.pod.colocation import StandingNotice

DEPLOY = Path(__file__).parent.parent.parent / "deploy"
Object = dict[str, Any]
RATIO = "node.koordinator.sh/cpu-normalization-ratio"
AGENT = "system:serviceaccount:sublet-system:sublet-agent"
NODE, POD = "/api/v1/nodes/one", "/api/v1/namespaces/default/pods/victim"
METRIC = "/apis/slo.koordinator.sh/v1alpha1/nodemetrics"
TOPOLOGY = "/apis/topology.node.k8s.io/v1alpha1/noderesourcetopologies"
CPU_TOPOLOGY, KUBELET = "node.koordinator.sh/cpu-topology", "kubelet.koordinator.sh/cpu-manager-policy"
PRIORITIES = "/apis/scheduling.k8s.io/v1/priorityclasses"
EVENTS = "/api/v1/namespaces/default/events"
EVICTION: Object = {
    "apiVersion": "policy/v1",
    "kind": "Eviction",
    "metadata": {"name": "victim", "namespace": "default"},
}


def eviction(grace_seconds: int) -> Object:
    """Of whatever pod has that uid."""
    return {**EVICTION, "deleteOptions": {"preconditions": {"uid": "u"}, "gracePeriodSeconds": grace_seconds}}


BATCH_CPU, BATCH_MEMORY = "kubernetes.io/batch-cpu", "kubernetes.io/batch-memory"
MID_CPU, MID_MEMORY = "kubernetes.io/mid-cpu", "kubernetes.io/mid-memory"
LENT: Object = {"kubernetes.io/batch-cpu": "1000", "kubernetes.io/batch-memory": "1073741824"}


class Write(NamedTuple):
    """One request; `method` is also merge or strategic, for a patch."""

    method: str
    url: str
    body: Any = None


def status(**of: Any) -> Object:
    return {"status": of}


def annotated(key: str) -> Object:
    return {"metadata": {"annotations": {key: "1.20"}}}


def managed(names: int) -> Object:
    """managedFields that name so many annotations, of 200 characters each."""
    fields = {"f:metadata": {"f:annotations": {f"f:{number:0200}": {} for number in range(names)}}}
    entry = {"manager": "mine", "operation": "Update", "apiVersion": "v1", "time": "2026-01-01T00:00:00Z"}
    return {"metadata": {"managedFields": [{**entry, "fieldsType": "FieldsV1", "fieldsV1": fields}]}}


def metric(name: str) -> Object:
    return {"apiVersion": "slo.koordinator.sh/v1alpha1", "kind": "NodeMetric", "metadata": {"name": name}, "spec": {}}


def topology(name: str, annotations: Object | None = None, **metadata: Any) -> Object:
    kind, version = "NodeResourceTopology", "topology.node.k8s.io/v1alpha1"
    metadata |= {"name": name, "annotations": annotations or {}}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, "topologyPolicies": ["None"], "zones": []}


def event(host: str) -> Object:
    about = {"kind": "Node", "name": "one"}
    told = {"type": "Normal", "reason": "R", "message": "m", "source": {"component": "sublet-agent", "host": host}}
    return {"apiVersion": "v1", "kind": "Event", "metadata": {"name": f"of-{host}"}, "involvedObject": about, **told}


OWN = {
    "lends": Write("strategic", f"{NODE}/status", status(capacity=LENT, allocatable=LENT)),
    "leaves some notes": Write("merge", NODE, managed(300)),
    "empties the notes": Write("merge", NODE, {"metadata": {"managedFields": [{}]}}),
    "takes back": Write("strategic", f"{NODE}/status", status(capacity=dict.fromkeys(LENT))),
    "says how it is": Write(
        "strategic", f"{NODE}/status", status(conditions=[{"type": "ColocationReady", "status": "True"}])
    ),
    "annotates its node": Write("merge", NODE, annotated("node.koordinator.sh/cpu-normalization-ratio")),
    "creates its NodeMetric": Write("POST", METRIC, metric("one")),
    "creates its topology": Write("POST", TOPOLOGY, topology("one")),
    "tells of its CPUs": Write("POST", TOPOLOGY, topology("one", {CPU_TOPOLOGY: "{}", KUBELET: "{}"})),
    "tells why a pod goes": Write("merge", POD, annotated("sublet.dev/eviction")),
    "evicts a pod": Write("POST", f"{POD}/eviction", EVICTION),
    "records an event": Write("POST", EVENTS, event("one")),
}
"""What the agent of node `one` does; no other agent may."""
NOBODY = {
    "a pod gone at once": (Write("POST", f"{POD}/eviction", eviction(0)), "1 to 86400 seconds"),
    "a pod that ends in decades": (Write("POST", f"{POD}/eviction", eviction(2_147_483_647)), "1 to 86400 seconds"),
    "a pod that ends later than it wants to": (
        Write("POST", f"{POD}/eviction", eviction(31)),
        "no longer than its own terminationGracePeriodSeconds",
    ),
    "a label of a node": (Write("merge", NODE, {"metadata": {"labels": {"pool": "mine"}}}), "neither labels nor spec"),
    "a cordon": (Write("merge", NODE, {"spec": {"unschedulable": True}}), "neither labels nor spec"),
    "a foreign annotation": (Write("merge", NODE, annotated("example.com/x")), "its own annotations only"),
    "a foreign annotation away": (
        Write("merge", NODE, {"metadata": {"annotations": {"kept": None}}}),
        "its own annotations only",
    ),
    "a node's cpu": (Write("strategic", f"{NODE}/status", status(capacity={"cpu": "64"})), "batch and mid resources"),
    "a node's cpu away": (
        Write("strategic", f"{NODE}/status", status(allocatable={"cpu": None})),
        "batch and mid resources",
    ),
    "another condition": (
        Write("strategic", f"{NODE}/status", status(conditions=[{"type": "Ready", "status": "False"}])),
        "the condition ColocationReady only",
    ),
    "an address": (
        Write("strategic", f"{NODE}/status", status(addresses=[{"type": "InternalIP", "address": "192.0.2.1"}])),
        "neither addresses nor",
    ),
    "a feature of its kubelet": (
        Write("strategic", f"{NODE}/status", status(features={"supplementalGroupsPolicy": True})),
        "nor anything else that the kubelet tells",
    ),
    "a handler of its runtime": (
        Write("strategic", f"{NODE}/status", status(runtimeHandlers=[{"name": "mine"}])),
        "nor anything else that the kubelet tells",
    ),
    "the kubelet's word away": (
        Write("merge", f"{NODE}/status", status(addresses=None)),
        "nor anything else that the kubelet tells",
    ),
    "a condition of the kubelet's twice": (
        Write(
            "merge",
            f"{NODE}/status",
            status(conditions=[{"type": "Ready", "status": "True"}] * 2),
        ),
        "may change the condition ColocationReady only",
    ),
    "many conditions of one kind": (
        Write(
            "merge",
            f"{NODE}/status",
            status(conditions=[{"type": kind, "status": "True"} for kind in ("Ready", *["ColocationReady"] * 2)]),
        ),
        "one condition ColocationReady",
    ),
    "an annotation that leaves no room": (
        Write(
            "merge", NODE, {"metadata": {"annotations": {"node.koordinator.sh/originExtendedAllocatable": "x" * 16385}}}
        ),
        "an annotation of an agent has at most 16384 characters",
    ),
    "the same on a pod": (
        Write("merge", POD, {"metadata": {"annotations": {"sublet.dev/eviction": "x" * 16385}}}),
        "an annotation of an agent has at most 16384 characters",
    ),
    "a message that leaves no room": (
        Write(
            "strategic",
            f"{NODE}/status",
            status(conditions=[{"type": "ColocationReady", "status": "True", "message": "x" * 16385}]),
        ),
        "ColocationReady has at most 16384 characters",
    ),
    "a status that leaves no room": (
        Write("strategic", f"{NODE}/status", status(conditions=[{"type": "ColocationReady", "status": "x" * 17}])),
        "is True, False or Unknown",
    ),
    "an Event that leaves no room": (
        Write("POST", EVENTS, {**event("one"), "metadata": {"name": "large"}, "message": "x" * 16_384}),
        "an Event of an agent has at most 16384 characters",
    ),
    # By its status an API server takes it at any length, and refuses every later change of the Node: no cordon, no taint.
    "a beginning of its name": (
        Write("merge", f"{NODE}/status", {"metadata": {"generateName": "another-"}}),
        "finalizers or generateName",
    ),
    "notes on fields that leave no room": (
        Write("merge", NODE, managed(700)),
        "at most 131072 characters in metadata.managedFields",
    ),
    "the same of a pod": (Write("merge", POD, managed(700)), "at most 131072 characters in metadata.managedFields"),
    "an eviction by name": (Write("POST", f"{POD}/eviction", {**EVICTION, "deleteOptions": {}}), "write its uid"),
    "an eviction by no uid": (
        Write("POST", f"{POD}/eviction", {**EVICTION, "deleteOptions": {"preconditions": {"uid": ""}}}),
        "write its uid",
    ),
    "an eviction by name of a pod to come": (
        Write(
            "POST",
            "/api/v1/namespaces/kube-node-lease/pods/later/eviction",
            {**EVICTION, "metadata": {"name": "later", "namespace": "kube-node-lease"}, "deleteOptions": {}},
        ),
        "write its uid",
    ),
    # The webhook could not read it, and would be passed over.
    "an eviction that says more than it has to": (
        Write(
            "POST",
            f"{POD}/eviction",
            {**EVICTION, "metadata": {**EVICTION["metadata"], "annotations": {"a": "x" * 16384}}},
        ),
        "at most 16384 characters",
    ),
    "a node's deletion": (Write("DELETE", NODE), "deletes nothing"),
    "a pod's deletion": (Write("DELETE", POD), "deletes nothing"),
    "a pod's label": (Write("merge", POD, {"metadata": {"labels": {"a": "b"}}}), "neither labels nor spec"),
    "a pod's foreign annotation": (Write("merge", POD, annotated("example.com/x")), "its own annotations only"),
    "a pod's status": (Write("merge", f"{POD}/status", status(phase="Failed")), "nor the status of pods"),
    "a NodeSLO": (
        Write("POST", "/apis/slo.koordinator.sh/v1alpha1/nodeslos", {**metric("one"), "kind": "NodeSLO"}),
        "writes neither NodeSLOs",
    ),
    "a new node": (
        Write("POST", "/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "three"}}),
        "may not touch",
    ),
}
"""What no agent may, not even that of the node."""
HALF = {"kubernetes.io/batch-memory": "4Gi"}
OFFERS: dict[str, tuple[Object, str]] = {
    "all of it": ({BATCH_CPU: "4000", MID_CPU: "4k", "kubernetes.io/batch-memory": "8Gi", MID_MEMORY: "8Gi"}, ""),
    "nothing": ({BATCH_CPU: "0"}, ""),
    "a little more CPU": ({BATCH_CPU: "4001", **HALF}, BATCH_CPU),
    "a million": ({BATCH_CPU: "1000000"}, BATCH_CPU),
    "1e30": ({BATCH_CPU: "1e30"}, BATCH_CPU),
    "in Ei": ({BATCH_CPU: "9Ei"}, BATCH_CPU),
    "a little more memory": ({**HALF, BATCH_MEMORY: "8589934593"}, BATCH_MEMORY),
    "mid CPU": ({MID_CPU: "4001"}, MID_CPU),
    "mid memory": ({MID_MEMORY: "9Gi"}, MID_MEMORY),
}
"""What the agent of a node of 4 CPUs and 8Gi offers, and which of it is refused."""


QOS, CLASS, WILLING = "koordinator.sh/qosClass", "koordinator.sh/priority-class", "koordinator.sh/eviction-enabled"
EVICTABLE: dict[str, tuple[Object, int | None]] = {
    "best-effort": ({QOS: "BE"}, None),
    "best-effort-of-high-priority": ({QOS: "BE"}, 9000),
    "batch-by-label": ({CLASS: "koord-batch"}, None),
    "free-by-label": ({CLASS: "koord-free"}, 9000),
    "batch-by-number": ({}, 5999),
    "lowest-batch": ({}, 5000),
    "highest-free": ({}, 3999),
    "free-by-number": ({CLASS: "unknown"}, 3000),
    "willing": ({QOS: "LS", WILLING: "true"}, 9000),
}
"""Labels and priority of pods that an agent may evict."""
SPARED: dict[str, tuple[Object, int | None]] = {
    "plain": ({}, None),
    "service": ({QOS: "LS"}, 9000),
    "mid": ({}, 7500),
    "mid-by-label": ({CLASS: "koord-mid"}, 5500),
    "prod-by-label": ({CLASS: "koord-prod"}, 5500),
    "between": ({}, 6000),
    "between-free-and-batch": ({}, 4000),
    "just-below-batch": ({}, 4999),
    "below": ({}, 2999),
    "unwilling": ({WILLING: "false"}, None),
    "another-spelling": ({QOS: "be"}, None),
}
"""Those it may not: online services, and what says nothing of itself."""


@pytest.fixture(scope="module")
def api() -> Api:
    """Two nodes, pods on the first, the policies, and everything else allowed: the policies alone say no."""
    made = Api()
    files = ("crds/nodemetrics", "crds/nodeslos", "crds/noderesourcetopologies", "daemonset/policy")
    for document in (each for name in files for each in yaml.safe_load_all((DEPLOY / f"{name}.yaml").read_text())):
        group, kind = document["apiVersion"].partition("/")[0], document["kind"].lower()
        plural = f"{kind[:-1]}ies" if kind.endswith("y") else f"{kind}s"
        made.post(f"/apis/{group}/v1/{plural}", document)
    for name in ("one", "two"):
        amounts = {"cpu": "4", "memory": "8Gi"}
        ready = [{"type": "Ready", "status": "True"}]
        metadata = {"name": name, "annotations": {"kept": "yes"}}
        addresses = [{"type": "Hostname", "address": name}]
        status = {"capacity": amounts, "allocatable": amounts, "conditions": ready, "addresses": addresses}
        made.post("/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": status})
    spec = {"nodeName": "one", "containers": [{"name": "main", "image": "image"}]}
    for name, (labels, priority) in {"victim": ({QOS: "BE"}, None), **SPARED, **EVICTABLE}.items():
        own = spec
        if priority is not None:
            made.post(PRIORITIES, {"metadata": {"name": f"of-{name}"}, "value": priority})
            own = {**spec, "priorityClassName": f"of-{name}"}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels}, "spec": own}
        made.post("/api/v1/namespaces/default/pods", pod)
    return made


def agent_of(node: str) -> UserInfo:
    """As TokenReview tells of a token bound to a pod on this node; without a node as before Kubernetes 1.30."""
    extra = {"authentication.kubernetes.io/node-name": (node,)} if node else {}
    return UserInfo(AGENT, "uid", ("system:serviceaccounts", "system:authenticated"), extra)


def uid_of(api: Api, eviction: str) -> str:
    """Of the pod that is to be evicted."""
    code, found = api.call("GET", eviction.removesuffix("/eviction"))
    return str(found["metadata"]["uid"]) if code == 200 else "of-one-that-is-gone"


def send(api: Api, user: UserInfo, write: Write) -> tuple[int, str]:
    """What came of it; nothing is stored. An Eviction that has no deleteOptions gets the uid of the pod."""
    if write.url.endswith("/eviction") and "deleteOptions" not in write.body:
        write = write._replace(body={**write.body, "deleteOptions": {"preconditions": {"uid": uid_of(api, write.url)}}})
    api.user, url = user, f"{write.url}?dryRun=All"
    patches = write.method in ("merge", "strategic")
    code, answer = api.patch(url, write.body, write.method) if patches else api.call(write.method, url, write.body)
    api.user = ANONYMOUS
    return code, answer.get("message", "") if code >= 400 else ""


@pytest.mark.parametrize("write", OWN.values(), ids=OWN)
def test_an_agent_does_its_work_on_its_node(api: Api, write: Write) -> None:
    """Nothing of what it has to do is refused."""
    assert send(api, agent_of("one"), write) in ((200, ""), (201, ""))


@pytest.mark.parametrize("grace_seconds", [1, 30])
def test_an_agent_hurries_a_pod(api: Api, grace_seconds: int) -> None:
    """Up to the time that it wants to end."""
    evicted = {**EVICTION, "deleteOptions": {"preconditions": {"uid": uid_of(api, f"{POD}/eviction")}}}
    evicted["deleteOptions"]["gracePeriodSeconds"] = grace_seconds
    assert send(api, agent_of("one"), Write("POST", f"{POD}/eviction", evicted)) == (201, "")


@pytest.mark.parametrize("write", OWN.values(), ids=OWN)
def test_the_same_from_another_node_is_refused(api: Api, write: Write) -> None:
    """With a sentence that names the caller's node."""
    code, message = send(api, agent_of("two"), write)
    assert code == 422 and "the agent of node two may not" in message, message


@pytest.mark.parametrize("write", OWN.values(), ids=OWN)
def test_a_token_without_a_node_may_nothing(api: Api, write: Write) -> None:
    """One that was requested for the account alone, and any before Kubernetes 1.30."""
    code, message = send(api, agent_of(""), write)
    assert code == 422 and "bound to no node" in message, message


@pytest.mark.parametrize(("write", "told"), NOBODY.values(), ids=NOBODY)
def test_what_no_agent_may(api: Api, write: Write, told: str) -> None:
    """Also on its own node."""
    code, message = send(api, agent_of("one"), write)
    assert code == 422 and told in message, message


def test_very_many_annotations_are_not_gone_through(api: Api) -> None:
    """Their author is anybody, and CEL's time grows with the square of them; the agent evicts without writing why."""
    metadata = {"name": "full", "annotations": {f"a-{number}": "" for number in range(1001)}}
    spec = {"nodeName": "one", "containers": [{"name": "main", "image": "image"}]}
    api.post("/api/v1/namespaces/default/pods", {"metadata": metadata, "spec": spec})
    write = Write("merge", "/api/v1/namespaces/default/pods/full", annotated("sublet.dev/eviction"))
    code, message = send(api, agent_of("one"), write)
    assert (code, "at most 1000 of them" in message) == (422, True), message


@pytest.mark.parametrize("part", ["capacity", "allocatable"])
@pytest.mark.parametrize(("amounts", "refused"), OFFERS.values(), ids=OFFERS)
def test_a_node_lends_at_most_what_it_has(api: Api, amounts: Object, refused: str, part: str) -> None:
    """The sentence names what is too much."""
    code, message = send(api, agent_of("one"), Write("strategic", f"{NODE}/status", status(**{part: amounts})))
    assert (code == 422 and f"and {refused} is more than that" in message) if refused else code == 200, message


@pytest.mark.parametrize(("ratio", "millis", "expected"), [("1.20", "4800", 200), ("1.20", "4802", 422)])
def test_faster_cpus_lend_more(api: Api, ratio: str, millis: str, expected: int) -> None:
    """By the ratio that stands on the Node, which CPU normalization multiplies by."""
    body = {**status(allocatable={BATCH_CPU: millis}), "metadata": {"annotations": {RATIO: ratio}}}
    assert send(api, agent_of("one"), Write("strategic", f"{NODE}/status", body))[0] == expected


@pytest.mark.parametrize("ratio", ["5.01", "0.9", "9", "1e9", "x", "", "-1", "NaN"])
def test_a_ratio_has_bounds(api: Api, ratio: str) -> None:
    """Else it would lift those of the offer."""
    code, message = send(api, agent_of("one"), Write("merge", NODE, {"metadata": {"annotations": {RATIO: ratio}}}))
    assert code == 422 and "write a number from 1.00 to 5.00" in message


def test_an_offer_that_stands_may_stay_and_be_lowered(api: Api) -> None:
    """A node that shrank: its agent says how it is, and takes back, before anything else."""
    absurd = status(capacity={BATCH_CPU: "9000"}, allocatable={BATCH_CPU: "9000"})
    assert api.patch("/api/v1/nodes/two/status", absurd, "strategic")[0] == 200
    ready = status(conditions=[{"type": "ColocationReady", "status": "False"}])
    lower = status(capacity={BATCH_CPU: "100"}, allocatable={BATCH_CPU: "100"})
    higher = status(allocatable={BATCH_CPU: "9001"})
    found = [
        send(api, agent_of("two"), Write("strategic", "/api/v1/nodes/two/status", b)) for b in (ready, lower, higher)
    ]
    assert [code for code, _ in found] == [200, 200, 422], found


def test_the_condition_that_tells_of_silence_stays(api: Api) -> None:
    """Without it the scheduler would never withdraw what a token offered and nobody stands by; its content may change."""
    url, ready = "/api/v1/nodes/silent/status", {"type": "Ready", "status": "True"}
    own = {"type": "ColocationReady", "status": "True"}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "silent"}, **status(conditions=[ready, own])}
    api.post("/api/v1/nodes", node)
    for conditions, expected in (([ready], 422), ([ready, {**own, "status": "False"}], 200)):
        code, message = send(api, agent_of("silent"), Write("merge", url, status(conditions=conditions)))
        assert code == expected and ("may not remove the condition" in message) == (expected == 422), message


@pytest.mark.parametrize("write", OWN.values(), ids=OWN)
def test_nobody_else_is_concerned(api: Api, write: Write) -> None:
    """Somebody who is no agent, without a node in the token."""
    assert send(api, UserInfo("kubernetes-admin", "", ("system:masters",), {}), write)[0] in (200, 201)


def test_an_event_of_others_cannot_be_taken_over(api: Api) -> None:
    """Neither as it is nor by signing it again; one of its own it counts on."""
    for host in ("one", "two"):
        about = {"involvedObject": {"kind": "Pod", "name": "victim", "namespace": "default"}}
        api.post(EVENTS, {**event(host), "metadata": {"name": f"kept-{host}"}, **about})
    signed = {"message": "nothing happened", "source": {"component": "sublet-agent", "host": "one"}}
    for body in ({"message": "nothing happened"}, signed):
        code, message = send(api, agent_of("one"), Write("merge", f"{EVENTS}/kept-two", body))
        assert code == 422 and "the agent of node one may not speak for another node" in message
    assert send(api, agent_of("one"), Write("merge", f"{EVENTS}/kept-one", {"count": 2})) == (200, "")


OF_TOPOLOGIES: dict[str, tuple[Object, str]] = {
    "what it has to say": ({"annotations": {CPU_TOPOLOGY: "{}", KUBELET: "{}"}}, ""),
    "something of its own away": ({"annotations": {CPU_TOPOLOGY: None}}, ""),
    "something else": ({"annotations": {"node.koordinator.sh/x": "x" * 200_000}}, "its own annotations of a"),
    "what others wrote": ({"annotations": {"kept": "no"}}, "its own annotations of a"),
    "a kubelet's policy that leaves no room": ({"annotations": {KUBELET: "x" * 16_385}}, "at most 16384 characters"),
    "notes on fields that leave no room": (managed(700)["metadata"], "at most 131072 characters"),
    "that nobody can delete it": ({"finalizers": ["example.com/mine"]}, "changes no finalizers"),
}
"""What is written into the metadata of a node's NodeResourceTopology, and why it is refused."""


@pytest.mark.parametrize(("metadata", "told"), OF_TOPOLOGIES.values(), ids=OF_TOPOLOGIES)
def test_what_a_token_leaves_in_a_topology(api: Api, metadata: Object, told: str) -> None:
    """The true agent can write it again, and people can delete it."""
    if api.call("GET", f"{TOPOLOGY}/three")[0] == 404:
        api.post(TOPOLOGY, topology("three", {"kept": "yes", CPU_TOPOLOGY: '{"detail": []}'}))
    code, message = send(api, agent_of("three"), Write("merge", f"{TOPOLOGY}/three", {"metadata": metadata}))
    assert (code == 422 and told in message) if told else code == 200, message


LARGE: dict[str, Object] = {
    "attributes": {"attributes": [{"name": f"a{i}", "value": "x" * 1000} for i in range(100)]},
    "policies": {"topologyPolicies": ["None", "x" * 100_000]},
    "zones": {"zones": [{"name": f"x{i}", "type": "X" * 100} for i in range(2000)]},
    "the beginning of a name": {"metadata": {"generateName": "x" * 200}},
    "labels": {"metadata": {"labels": {f"l{i}": "x" * 60 for i in range(500)}}},
    "owners": {
        "metadata": {
            "ownerReferences": [
                {"apiVersion": "v1", "kind": "Node", "name": f"n{i}", "uid": f"u{i}"} for i in range(500)
            ]
        }
    },
}


@pytest.mark.parametrize("body", LARGE.values(), ids=LARGE)
def test_what_is_filled_up_in_a_topology(api: Api, body: Object) -> None:
    """The true agent would not write it again: neither as it is made nor later."""
    if api.call("GET", f"{TOPOLOGY}/four")[0] == 404:
        api.post(TOPOLOGY, topology("four"))
    code, message = send(api, agent_of("four"), Write("merge", f"{TOPOLOGY}/four", body))
    assert code == 422 and "NodeResourceTopology" in message, message
    made = {**topology("five"), **body, "metadata": {"name": "five", **body.get("metadata", {})}}
    code, message = send(api, agent_of("five"), Write("POST", TOPOLOGY, made))
    assert code == 422 and "NodeResourceTopology" in message, message


OF_METRICS: dict[str, tuple[Object, bool]] = {
    "what it has to say": ({"status": {"updateTime": "2026-01-01T00:00:00Z", "podsMetric": []}}, True),
    "what nobody reads": ({"status": {"zzz": "x"}}, False),
    "much of what is read": ({"status": {"podsMetric": [{"name": "x" * 1000} for _ in range(800)]}}, False),
    "notes on fields that leave no room": (managed(700), False),
}


@pytest.mark.parametrize(("body", "allowed"), OF_METRICS.values(), ids=OF_METRICS)
def test_what_is_filled_into_a_metric(api: Api, body: Object, allowed: bool) -> None:
    """The true agent would have no room left, and removes nothing that it does not write."""
    if api.call("GET", f"{METRIC}/four")[0] == 404:
        api.post(METRIC, metric("four"))
    path = f"{METRIC}/four/status" if "status" in body else f"{METRIC}/four"
    code, message = send(api, agent_of("four"), Write("merge", path, body))
    assert code == 200 if allowed else (code == 422 and "at most" in message), message


@pytest.mark.parametrize("metadata", [{"annotations": {"x": "y"}}, {"finalizers": ["example.com/mine"]}])
def test_a_topology_that_is_made_so(api: Api, metadata: Object) -> None:
    """Nor is one made that way."""
    code, message = send(api, agent_of("one"), Write("POST", TOPOLOGY, topology("one", **metadata)))
    assert code == 422 and "NodeResourceTopology" in message, message


def evicts(api: Api, pod: str) -> tuple[int, str]:
    body = {**EVICTION, "metadata": {"name": pod, "namespace": "default"}}
    return send(api, agent_of("one"), Write("POST", f"/api/v1/namespaces/default/pods/{pod}/eviction", body))


@pytest.mark.parametrize("pod", SPARED)
def test_an_online_pod_is_not_an_agents_to_evict(api: Api, pod: str) -> None:
    """Not even on its own node; the sentence says which pods are. The webhook says the same of the stored pod."""
    labels, priority = SPARED[pod]
    assert refusal(StoredPod("default", pod, "", "one", labels, priority), "one")
    code, message = evicts(api, pod)
    assert code == 422 and "an agent may evict pods of class BE" in message and f"{pod} is none of them" in message


@pytest.mark.parametrize("pod", EVICTABLE)
def test_whom_an_agent_may_evict(api: Api, pod: str) -> None:
    """Best effort, the classes batch and free, and who wants it so: policy and webhook alike."""
    labels, priority = EVICTABLE[pod]
    assert refusal(StoredPod("default", pod, "", "one", labels, priority), "one") == ""
    assert evicts(api, pod) == (201, "")


NOTICE, REASON = "sublet.dev/preemption-notice", "sublet.dev/eviction"


def tells(api: Api, pod: str, key: str, text: str | None) -> tuple[int, str]:
    write = Write("merge", f"/api/v1/namespaces/default/pods/{pod}", {"metadata": {"annotations": {key: text}}})
    return send(api, agent_of("one"), write)


@pytest.mark.parametrize("key", [NOTICE, REASON])
@pytest.mark.parametrize("pod", SPARED)
def test_an_online_pod_is_not_an_agents_to_tell(api: Api, pod: str, key: str) -> None:
    """A program that hears that it goes ends by itself."""
    code, message = tells(api, pod, key, "{}")
    assert code == 422 and "an agent tells pods of class BE" in message, message


@pytest.mark.parametrize("key", [NOTICE, REASON])
@pytest.mark.parametrize("pod", EVICTABLE)
def test_whom_an_agent_may_tell(api: Api, pod: str, key: str) -> None:
    """Those that it may evict."""
    assert tells(api, pod, key, "{}") == (200, "")


OTHERS_WORDS = {"the scheduler": "pod a/b", "another agent": "agent of node other", "its agent": "agent of node one"}


@pytest.mark.parametrize(("who", "by"), OTHERS_WORDS.items(), ids=OTHERS_WORDS)
def test_a_notice_of_others_stays_on_an_online_pod(api: Api, who: str, by: str) -> None:
    """What its agent wrote while the pod was to be evicted it takes back, and changes not."""
    name = who.replace(" ", "-")
    notice = notice_text(StandingNotice(1e9, 2e9, "x", by))
    spec = {"nodeName": "one", "containers": [{"name": "main", "image": "image"}]}
    api.post(
        "/api/v1/namespaces/default/pods", {"metadata": {"name": name, "annotations": {NOTICE: notice}}, "spec": spec}
    )
    assert tells(api, name, NOTICE, notice.replace("x", "y"))[0] == 422
    assert tells(api, name, NOTICE, None)[0] == (200 if who == "its agent" else 422)
    assert tells(api, name, NOTICE, notice) == (200, "")


def test_a_pod_that_is_gone_is_not_found(api: Api) -> None:
    """The agent tells it from a refusal: among other pods, and in a namespace with none."""
    for namespace in ("default", "kube-node-lease"):
        body = {**EVICTION, "metadata": {"name": "gone", "namespace": namespace}}
        code, _ = send(api, agent_of("one"), Write("POST", f"/api/v1/namespaces/{namespace}/pods/gone/eviction", body))
        assert code == 404


def test_a_pod_of_the_same_name_elsewhere_does_not_count(api: Api) -> None:
    """The policy looks at the pods of the request's namespace alone."""
    spec = {"nodeName": "two", "containers": [{"name": "main", "image": "image"}]}
    metadata = {"name": "victim", "labels": {QOS: "BE"}}
    twin = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
    api.post("/api/v1/namespaces/kube-public/pods", twin)
    assert send(api, agent_of("one"), OWN["evicts a pod"])[0] == 201
    body = {**EVICTION, "metadata": {"name": "victim", "namespace": "kube-public"}}
    elsewhere = Write("POST", "/api/v1/namespaces/kube-public/pods/victim/eviction", body)
    assert send(api, agent_of("one"), elsewhere)[0] == 422
