"""What pods/resize refuses, in the words of kube-apiserver 1.35."""

import copy

import pytest

PODS = "/api/v1/namespaces/default/pods"
RESIZE = f"{PODS}/p/resize"
SMALL = {"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"cpu": "1", "memory": "128Mi"}}
ONLY = "Forbidden: only cpu and memory resources are mutable"


def pod(resources=SMALL, **spec):
    containers = [{"name": "c", "image": "i", "resources": resources}, {"name": "d", "image": "i"}]
    init = [
        {"name": "step", "image": "i", "resources": SMALL},
        {"name": "side", "image": "i", "resources": SMALL, "restartPolicy": "Always"},
    ]
    return {"metadata": {"name": "p"}, "spec": {"containers": containers, "initContainers": init, **spec}}


def changed(change, **made):
    """The pod after a change of it, as the body of a PUT."""

    def body(api):
        found = copy.deepcopy(api.post(PODS, pod(**made)))
        change(found["spec"])
        return found

    return body


def amount(kind, name, value, group="containers", index=0):
    def change(spec):
        resources = spec[group][index].setdefault("resources", {})
        resources.setdefault(kind, {})[name] = value

    return change


def without(kind, name):
    return lambda spec: spec["containers"][0]["resources"][kind].pop(name)


EQUAL = {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "1", "memory": "1Gi"}}
REFUSED = {
    "a class changes": (
        {"resources": {}, "initContainers": []},
        amount("requests", "cpu", "1"),
        "spec",
        'Invalid value: "BestEffort": Pod QOS Class may not change as a result of resizing',
    ),
    "a request goes": (
        {"resources": {"requests": SMALL["requests"]}},
        without("requests", "memory"),
        "spec.containers[0].resources.requests",
        "Forbidden: resource requests cannot be removed",
    ),
    "a limit goes": (
        {},
        without("limits", "cpu"),
        "spec.containers[0].resources.limits",
        "Forbidden: resource limits cannot be removed",
    ),
    "a request beyond its limit": (
        {},
        amount("requests", "cpu", "2"),
        "spec.containers[0].resources.requests",
        "must be less than or equal to cpu limit of 1",
    ),
    "another resource": ({}, amount("requests", "ephemeral-storage", "1Gi"), "spec", ONLY),
    "another resource of a container that asked for none": (
        {},
        amount("requests", "kubernetes.io/batch-cpu", "1k", index=1),
        "spec",
        ONLY,
    ),
    "the policy": (
        {},
        lambda spec: spec["containers"][0].update(
            resizePolicy=[{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]
        ),
        "spec",
        ONLY,
    ),
    "a step's resources": (
        {},
        amount("requests", "cpu", "200m", "initContainers"),
        "spec",
        "Forbidden: resources for non-sidecar init containers are immutable",
    ),
    "another resource of a sidecar": (
        {},
        amount("requests", "ephemeral-storage", "1Gi", "initContainers", 1),
        "spec",
        "Forbidden: only cpu and memory resources for sidecar containers are mutable",
    ),
    "a container more": (
        {},
        lambda spec: spec["containers"].append({"name": "e", "image": "i"}),
        "spec.containers",
        "Forbidden: containers may not be added or removed on resize",
    ),
    "an init container less": (
        {},
        lambda spec: spec["initContainers"].pop(),
        "spec.initContainers",
        "Forbidden: initContainers may not be added or removed on resize",
    ),
    "another order": (
        {},
        lambda spec: spec["containers"].reverse(),
        "spec.containers[0].name",
        "Forbidden: containers may not be renamed or reordered on resize",
    ),
}


@pytest.mark.parametrize(("made", "change", "field", "words"), REFUSED.values(), ids=REFUSED)
def test_refused(api, made, change, field, words):
    """With the field and upstream's words, and the pod stays as it is."""
    body = changed(change, **made)(api)
    before = api.get(f"{PODS}/p")
    code, status = api.call("PUT", RESIZE, body)
    assert code == 422, status
    assert (field, True) in [(each["field"], words in each["message"]) for each in status["details"]["causes"]]
    assert api.get(f"{PODS}/p") == before


def refused_as_a_whole(api, why):
    code, status = api.patch(RESIZE, {"spec": {"containers": [{"name": "c", "resources": EQUAL}]}}, "strategic")
    assert code == 422 and why in status["message"], status


def test_no_resize_of_pods_that_have_amounts_as_a_whole(api):
    """The embedded node has no cgroup values for these."""
    api.post(
        PODS, pod(resources={}, initContainers=[]) | {"spec": pod()["spec"] | {"resources": {"limits": {"cpu": 2}}}}
    )
    refused_as_a_whole(api, "pods with pod-level resources cannot be resized")


def test_no_resize_of_static_pods(api):
    """Their node would never see it."""
    mirror = {"name": "p", "annotations": {"kubernetes.io/config.mirror": "x"}}
    api.post(PODS, {"metadata": mirror, "spec": pod()["spec"] | {"nodeName": "n"}})
    refused_as_a_whole(api, "static pods cannot be resized")


def test_no_resize_for_windows(api):
    """As upstream."""
    api.post(PODS, pod(os={"name": "windows"}))
    refused_as_a_whole(api, "windows pods cannot be resized")


SUPPORT = {"resources told": ({}, 200), "nothing told": (None, 422)}


@pytest.mark.parametrize(("told", "code"), SUPPORT.values(), ids=SUPPORT)
def test_only_a_node_that_says_what_a_container_has_is_asked(api, told, code):
    """Others would never act."""
    api.post(PODS, pod(nodeName="n"))
    state = {"name": "c", "image": "i", "imageID": "", "ready": True, "restartCount": 0, "state": {"running": {}}}
    api.set_pod_status("p", {"containerStatuses": [state | ({} if told is None else {"resources": told})]})
    found, answer = api.patch(RESIZE, {"spec": {"containers": [{"name": "c", "resources": _more()}]}}, "strategic")
    assert found == code
    assert code == 200 or "Pod running on node without support for resize" in answer["message"]


def _more():
    return {"requests": {"cpu": "200m"}}
