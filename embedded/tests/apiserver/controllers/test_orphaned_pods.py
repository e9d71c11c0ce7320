"""Deleted pods whose node does not exist are finished."""

PODS = "/api/v1/namespaces/default/pods"


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
