"""A resize changes resources and nothing else, by whatever it comes.

https://kubernetes.io/docs/tasks/configure-pod-container/resize-container-resources/
"""

import copy

import pytest

PODS = "/api/v1/namespaces/default/pods"
RESIZE = f"{PODS}/p/resize"
MORE = {"requests": {"cpu": "200m"}, "limits": {"cpu": "500m"}}
PATCHES = {
    "strategic": {"spec": {"containers": [{"name": "c", "resources": MORE}]}},
    "json": [{"op": "add", "path": "/spec/containers/0/resources", "value": MORE}],
    "merge": {"spec": {"containers": [{"name": "c", "resources": MORE}]}},
}


def made(api):
    containers = [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "100m"}}}]
    return api.post(PODS, {"metadata": {"name": "p", "labels": {"a": "1"}}, "spec": {"containers": containers}})


@pytest.mark.parametrize(("kind", "body"), PATCHES.items(), ids=PATCHES)
def test_patches_of_every_kind(api, kind, body):
    """The stored pod asks for what it is to get, and so does the answer."""
    before = made(api)
    code, answer = api.patch(RESIZE, body, kind)
    assert code == 200, answer
    assert answer == api.get(f"{PODS}/p") == api.get(RESIZE)
    assert answer["spec"]["containers"] == [before["spec"]["containers"][0] | {"resources": MORE}]


def test_everything_else_stays(api):
    """Of labels, images and the status that come along nothing is taken."""
    body = copy.deepcopy(before := made(api))
    body["metadata"]["labels"]["a"] = "2"
    body["spec"]["containers"][0] |= {"resources": MORE, "image": "other"}
    body["spec"] |= {"nodeName": "elsewhere", "tolerations": []}
    body["status"] = {"phase": "Running"}
    code, answer = api.call("PUT", RESIZE, body)
    assert code == 200, answer
    expected = copy.deepcopy(before)
    expected["spec"]["containers"][0]["resources"] = MORE
    expected["metadata"]["resourceVersion"] = answer["metadata"]["resourceVersion"]
    assert answer == expected


def test_the_pod_itself_changes_by_no_other_path(api):
    """As it was."""
    made(api)
    code, status = api.patch(f"{PODS}/p", PATCHES["strategic"], "strategic")
    assert code == 422 and "pod updates may not change fields other than" in status["message"]


def test_discovery_announces_it(api):
    """`kubectl patch --subresource resize` asks there first."""
    found = {each["name"]: each for each in api.get("/api/v1")["resources"]}
    assert (found["pods/resize"]["kind"], found["pods/resize"]["verbs"]) == ("Pod", ["get", "patch", "update"])
