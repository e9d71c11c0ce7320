"""Defaulting, canonical quantities, validation and admission, as clients meet them."""

import pytest

PODS = "/api/v1/namespaces/default/pods"
NODES = "/api/v1/nodes"
CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
BATCH_CPU = "kubernetes.io/batch-cpu"


def pod(name="p", limits=None, requests=None, meta=None, **spec):
    resources = {key: value for key, value in (("limits", limits), ("requests", requests)) if value is not None}
    containers = [{"name": "c", "image": "busybox", "resources": resources}]
    return {"metadata": {"name": name} | (meta or {}), "spec": {"containers": containers} | spec}


def priority_class(name="high", value=1000, **more):
    return {"metadata": {"name": name}, "value": value} | more


def resources_of(obj):
    return obj["spec"]["containers"][0]["resources"]


# -- quantities and defaults -----------------------------------------------------------------------------------

QUANTITIES = {
    "fraction": ({"cpu": 0.5}, {"cpu": "500m"}),
    "number": ({"cpu": 2}, {"cpu": "2"}),
    "binary": ({"memory": "1024Mi"}, {"memory": "1Gi"}),
    "thousands": ({BATCH_CPU: 8000}, {BATCH_CPU: "8k"}),
}


@pytest.mark.parametrize(("sent", "stored"), QUANTITIES.values(), ids=QUANTITIES)
def test_quantities_are_stored_in_canonical_form(api, sent, stored):
    """Numbers become text, and every client sees one spelling."""
    assert resources_of(api.post(PODS, pod(limits=sent)))["limits"] == stored


def test_limits_fill_missing_requests_of_pods_only(api):
    """A request that is given stays; templates of jobs stay as written."""
    found = resources_of(api.post(PODS, pod(limits={"cpu": "1", "memory": "1Gi"}, requests={"cpu": "500m"})))
    assert found["requests"] == {"cpu": "500m", "memory": "1Gi"}
    template = {"spec": pod(limits={"cpu": "1"})["spec"] | {"restartPolicy": "Never"}}
    job = api.post(
        "/apis/batch/v1/namespaces/default/jobs", {"metadata": {"name": "j"}, "spec": {"template": template}}
    )
    assert "requests" not in resources_of(job["spec"]["template"])


def test_allocatable_defaults_to_capacity(api):
    """A node that reports only its capacity offers all of it."""
    node = api.post(NODES, {"metadata": {"name": "n"}, "status": {"capacity": {"cpu": 4}}})
    assert node["status"]["allocatable"] == {"cpu": "4"}


@pytest.mark.parametrize("amount", ["lots", "1.2.3", "1KB", True, ""])
def test_an_unparsable_quantity_is_refused_with_its_place(api, amount):
    """400, as on a real server, and naming the field, which a real server does not."""
    code, status = api.call("POST", PODS, pod(limits={"cpu": amount}))
    assert code == 400
    assert "spec.containers[0].resources.limits" in status["message"]


def test_pod_defaults(api):
    """The defaults that schedulers and node agents rely on."""
    created = api.post(PODS, pod())
    spec, container = created["spec"], created["spec"]["containers"][0]
    assert (spec["restartPolicy"], spec["schedulerName"]) == ("Always", "default-scheduler")
    assert (spec["terminationGracePeriodSeconds"], spec["priority"]) == (30, 0)
    assert (container["imagePullPolicy"], container["resources"]) == ("Always", {})
    keys = [toleration["key"] for toleration in spec["tolerations"]]
    assert keys == ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"]
    assert created["status"] == {"phase": "Pending", "qosClass": "BestEffort"}


QOS = {
    "nothing asked": (None, None, "BestEffort"),
    "only batch resources": ({BATCH_CPU: "1k"}, None, "BestEffort"),
    "equal": ({"cpu": "1", "memory": "1Gi"}, None, "Guaranteed"),
    "no memory limit": ({"cpu": "1"}, None, "Burstable"),
    "request below limit": ({"cpu": "1", "memory": "1Gi"}, {"cpu": "500m"}, "Burstable"),
    "requests only": (None, {"cpu": "1"}, "Burstable"),
}


@pytest.mark.parametrize(("limits", "requests", "qos"), QOS.values(), ids=QOS)
def test_kubernetes_qos_class(api, limits, requests, qos):
    """Only cpu and memory count."""
    assert api.post(PODS, pod(limits=limits, requests=requests))["status"]["qosClass"] == qos


def test_empty_lists_and_maps_vanish_and_empty_structs_stay(api):
    """As Go's omitempty does, because clients compare what they read with what they wrote."""
    sent = pod(meta={"labels": {}, "finalizers": []}, volumes=[{"name": "v", "emptyDir": {}}], tolerations=None)
    sent["spec"]["automountServiceAccountToken"] = False
    created = api.post(PODS, sent)
    assert "labels" not in created["metadata"] and "finalizers" not in created["metadata"]
    assert created["spec"]["volumes"] == [{"name": "v", "emptyDir": {}}]


def test_a_status_sent_at_creation_is_ignored_for_pods_and_kept_for_nodes(api):
    """A pod is born pending; a node reports what it is when it registers."""
    assert api.post(PODS, pod() | {"status": {"phase": "Running"}})["status"]["phase"] == "Pending"
    node = api.post(NODES, {"metadata": {"name": "n"}, "status": {"nodeInfo": {"kubeletVersion": "v1"}}})
    assert node["status"]["nodeInfo"]["kubeletVersion"] == "v1"


# -- validation ------------------------------------------------------------------------------------------------

INVALID_PODS = {
    "name": (pod("Upper"), "metadata.name"),
    "no containers": (pod(containers=[]), "spec.containers"),
    "label value": (pod(meta={"labels": {"a": "b c"}}), "metadata.labels"),
    "label key": (pod(meta={"labels": {"-a": "b"}}), "metadata.labels"),
    "annotation key": (pod(meta={"annotations": {"a b": ""}}), "metadata.annotations"),
    "restart policy": (pod(restartPolicy="Sometimes"), "spec.restartPolicy"),
    "request above limit": (pod(limits={"cpu": "1"}, requests={"cpu": "2"}), "spec.containers[0].resources.requests"),
    "negative amount": (pod(requests={"cpu": "-1"}), "spec.containers[0].resources.requests[cpu]"),
    "unknown plain resource": (pod(requests={"gpus": "1"}), "spec.containers[0].resources.requests[gpus]"),
    "extended without limit": (pod(requests={"example.com/gpu": "1"}), "spec.containers[0].resources.limits"),
    "extended below limit": (
        pod(limits={"example.com/gpu": "2"}, requests={"example.com/gpu": "1"}),
        "spec.containers[0].resources.requests",
    ),
    "extended fraction": (
        pod(limits={"example.com/gpu": "500m"}),
        "spec.containers[0].resources.limits[example.com/gpu]",
    ),
    "same volume twice": (pod(volumes=[{"name": "v"}, {"name": "v"}]), "spec.volumes[1].name"),
    "toleration": (pod(tolerations=[{"operator": "Equal"}]), "spec.tolerations[0].operator"),
}


@pytest.mark.parametrize(("body", "field"), INVALID_PODS.values(), ids=INVALID_PODS)
def test_invalid_pods_are_refused_with_the_field(api, body, field):
    """422 with a cause whose field is the wrong one."""
    code, status = api.call("POST", PODS, body)
    assert (code, status["reason"]) == (422, "Invalid")
    assert field in {cause["field"] for cause in status["details"]["causes"]}


def test_batch_resources_are_not_extended_resources(api):
    """Names under kubernetes.io are native: a request may be below its limit, and a fraction is fine."""
    sent = pod(limits={BATCH_CPU: "2k"}, requests={BATCH_CPU: "1500m"})
    assert resources_of(api.post(PODS, sent))["requests"] == {BATCH_CPU: "1500m"}


MALFORMED = {
    "containers is text": (PODS, {"metadata": {"name": "p"}, "spec": {"containers": "x"}}),
    "spec is a list": (PODS, {"metadata": {"name": "p"}, "spec": [1]}),
    "container is text": (PODS, {"metadata": {"name": "p"}, "spec": {"containers": ["x"]}}),
    "label is a number": (PODS, pod(meta={"labels": {"a": 1}})),
    "metadata.name is a number": (PODS, {"metadata": {"name": 5}, "spec": {}}),
    "taints is a map": (NODES, {"metadata": {"name": "n"}, "spec": {"taints": {}}}),
    "owner is a list": (PODS, pod(meta={"ownerReferences": [[]]})),
    "class value is text": (CLASSES, priority_class(value="x")),
    "number beyond 64 bits": (CLASSES, priority_class(value=2**70)),
    "not JSON": (PODS, b"{nonsense"),
    "not a number": (PODS, b'{"metadata":{"name":"p"},"spec":{"priority":NaN}}'),
    "not an object": (PODS, b"[]"),
    "not text": (PODS, b"\xff\xfe"),
    "deep": (PODS, b'{"a":' * 5000 + b"1" + b"}" * 5000),
    "another kind": (PODS, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}),
}


@pytest.mark.parametrize(("url", "body"), MALFORMED.values(), ids=MALFORMED)
def test_malformed_bodies_are_the_callers_fault(api, url, body):
    """400, never 500."""
    code, status = api.call("POST", url, body)
    assert (code, status["kind"]) == (400, "Status"), status


OTHER_INVALID = {
    "taint effect": (
        NODES,
        {"metadata": {"name": "n"}, "spec": {"taints": [{"key": "a", "effect": "Never"}]}},
        "metadata.taints[0].effect",
    ),
    "budget with both": (
        BUDGETS,
        {"metadata": {"name": "b"}, "spec": {"minAvailable": 1, "maxUnavailable": 1}},
        "spec",
    ),
    "budget percentage": (BUDGETS, {"metadata": {"name": "b"}, "spec": {"minAvailable": "120%"}}, "spec.minAvailable"),
    "lease duration": (
        LEASES,
        {"metadata": {"name": "l"}, "spec": {"leaseDurationSeconds": 0}},
        "spec.leaseDurationSeconds",
    ),
    "class too high": (CLASSES, priority_class(value=1_000_000_001), "value"),
    "system class": (CLASSES, priority_class("system-mine"), "metadata.name"),
    "job restart policy": (
        "/apis/batch/v1/namespaces/default/jobs",
        {"metadata": {"name": "j"}, "spec": {"template": {"spec": pod()["spec"]}}},
        "spec.template.spec.restartPolicy",
    ),
    "namespace name": ("/api/v1/namespaces", {"metadata": {"name": "a.b"}}, "metadata.name"),
    "config map key": (
        "/api/v1/namespaces/default/configmaps",
        {"metadata": {"name": "c"}, "data": {"a b": ""}},
        "data[a b]",
    ),
}


@pytest.mark.parametrize(("url", "body", "field"), OTHER_INVALID.values(), ids=OTHER_INVALID)
def test_other_invalid_objects_are_refused_with_the_field(api, url, body, field):
    """422 with the field, for every built-in type."""
    code, status = api.call("POST", url, body)
    assert code == 422, status
    assert field in {cause["field"] for cause in status["details"]["causes"]}


def test_a_pod_specification_is_settled_but_for_a_few_fields(api):
    """An image may change and tolerations may be added; nothing else may."""
    api.post(PODS, pod(tolerations=[{"key": "a", "operator": "Exists"}]))
    assert api.patch(f"{PODS}/p", {"spec": {"containers": [{"name": "c", "image": "other"}]}}, "strategic")[0] == 200
    code, status = api.patch(f"{PODS}/p", {"spec": {"nodeName": "n1"}})
    assert code == 422 and "pod updates may not change fields" in status["message"]
    assert api.patch(f"{PODS}/p", {"spec": {"tolerations": []}})[0] == 422


def test_the_value_of_a_priority_class_is_settled(api):
    """Pods carry a copy of it."""
    api.post(CLASSES, priority_class())
    assert api.patch(f"{CLASSES}/high", {"value": 5})[0] == 422
    assert api.patch(f"{CLASSES}/high", {"description": "x"})[0] == 200


# -- admission -------------------------------------------------------------------------------------------------


def test_priority_and_preemption_policy_come_from_the_class(api):
    """The built-in classes are there from the start."""
    api.post(CLASSES, priority_class(preemptionPolicy="Never"))
    mine = api.post(PODS, pod("a", priorityClassName="high"))["spec"]
    assert (mine["priority"], mine["preemptionPolicy"]) == (1000, "Never")
    assert api.post(PODS, pod("b", priorityClassName="system-node-critical"))["spec"]["priority"] == 2_000_001_000
    assert api.post(PODS, pod("c"))["spec"]["priority"] == 0


def test_the_global_default_class_applies_and_is_unique(api):
    """Pods without a class get the default one's name and value."""
    api.post(CLASSES, priority_class("usual", 7, globalDefault=True))
    spec = api.post(PODS, pod())["spec"]
    assert (spec["priorityClassName"], spec["priority"]) == ("usual", 7)
    code, status = api.call("POST", CLASSES, priority_class("other", 8, globalDefault=True))
    assert code == 403 and "usual is already marked as default" in status["message"]


FORBIDDEN = {
    "missing class": (pod(priorityClassName="nope"), "no PriorityClass with name nope was found"),
    "own priority": (pod(priority=5), "the integer value of priority (5) must not be provided"),
    "own policy": (pod(preemptionPolicy="Never"), "the string value of PreemptionPolicy (Never)"),
}


@pytest.mark.parametrize(("body", "text"), FORBIDDEN.values(), ids=FORBIDDEN)
def test_priorities_a_pod_may_not_have_are_forbidden(api, body, text):
    """403 with the words of a real server."""
    code, status = api.call("POST", PODS, body)
    assert (code, status["reason"]) == (403, "Forbidden")
    assert text in status["message"] and status["message"].startswith('pods "p" is forbidden: ')


def test_a_missing_namespace_is_not_found_and_a_terminating_one_forbidden(api):
    """The life cycle of a namespace governs what is created in it."""
    code, status = api.call("POST", "/api/v1/namespaces/nope/pods", pod())
    assert (code, status["message"]) == (404, 'namespaces "nope" not found')
    api.post("/api/v1/namespaces", {"metadata": {"name": "going"}})
    api.call("DELETE", "/api/v1/namespaces/going")
    code, status = api.call("POST", "/api/v1/namespaces/going/pods", pod())
    assert (code, status["details"]["causes"][0]["reason"]) == (403, "NamespaceTerminating")


def test_a_namespace_is_born_active_with_its_label_and_finalizer(api):
    """Selectors on namespaces rely on the name label."""
    namespace = api.post("/api/v1/namespaces", {"metadata": {"name": "a"}})
    assert namespace["metadata"]["labels"] == {"kubernetes.io/metadata.name": "a"}
    assert (namespace["spec"]["finalizers"], namespace["status"]["phase"]) == (["kubernetes"], "Active")


@pytest.mark.parametrize("name", ["default", "kube-system"])
def test_system_namespaces_cannot_be_deleted(api, name):
    """403, as on a real server."""
    code, status = api.call("DELETE", f"/api/v1/namespaces/{name}")
    assert code == 403 and "this namespace may not be deleted" in status["message"]
