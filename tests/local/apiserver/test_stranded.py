"""Deleted pods whose node does not exist are finished; new pods for the scheduler that is not here are told so."""

import pytest

PODS = "/api/v1/namespaces/default/pods"
EVENTS = "/api/v1/namespaces/default/events"
KOORD = "koord-scheduler"


def pod(name="p", **spec):
    return {"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i"}]} | spec}


def exists(api, name="p"):
    return api.call("GET", f"{PODS}/{name}")[0] == 200


def test_a_deleted_pod_of_a_node_that_does_not_exist_goes_at_once(api):
    """Nobody else would ever finish it; one that is not deleted stays."""
    api.post(PODS, pod(nodeName="nowhere"))
    api.post(PODS, pod("kept", nodeName="nowhere"))
    api.call("DELETE", f"{PODS}/p")
    api.settle()
    assert not exists(api) and exists(api, "kept")


def test_a_terminating_pod_goes_with_its_node(api):
    """While the node exists the pod waits for it."""
    for node in ("n1", "n2"):
        api.post("/api/v1/nodes", {"metadata": {"name": node}})
        api.post(PODS, pod(node, nodeName=node))
        api.call("DELETE", f"{PODS}/{node}")
    api.settle()
    assert exists(api, "n1") and exists(api, "n2")
    api.call("DELETE", "/api/v1/nodes/n1")
    api.settle()
    assert not exists(api, "n1") and exists(api, "n2")


def test_a_finalizer_still_holds_it(api):
    """It goes when the last finalizer does."""
    held = pod(nodeName="nowhere")
    held["metadata"]["finalizers"] = ["example.com/a"]
    api.post(PODS, held)
    api.call("DELETE", f"{PODS}/p")
    api.settle()
    assert exists(api)
    api.patch(f"{PODS}/p", {"metadata": {"finalizers": None}})
    api.settle()
    assert not exists(api)


@pytest.mark.parametrize(
    ("case", "spec", "told"),
    [
        ("no scheduler named", {}, 1),
        ("another scheduler", {"schedulerName": KOORD}, 0),
        ("one of the user's own", {"schedulerName": "mine"}, 0),
        ("placed by its author", {"nodeName": "n1"}, 0),
    ],
)
def test_a_pod_for_the_absent_scheduler_is_told_once(api, case, spec, told):
    """However often it changes; the message says what to do."""
    api.post(PODS, pod(**spec))
    api.settle()
    api.patch(f"{PODS}/p", {"metadata": {"labels": {"a": "b"}}})
    api.settle()
    events = api.get(EVENTS)["items"]
    expected = (
        'no scheduler named "default-scheduler" runs in the embedded cluster; set spec.schedulerName to koord-scheduler'
    )
    assert [(found["reason"], found["type"], found["message"]) for found in events] == [
        ("FailedScheduling", "Warning", expected)
    ] * told
