"""The scale sub-resource of custom resources.

https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#scale-subresource
"""

import pytest

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WIDGETS = "/apis/example.com/v1/namespaces/default/widgets"
SCHEMA = {
    "type": "object",
    "properties": {
        "spec": {"type": "object", "properties": {"replicas": {"type": "integer", "maximum": 9}}},
        "status": {
            "type": "object",
            "properties": {"replicas": {"type": "integer"}, "selector": {"type": "string"}},
        },
    },
}
PATHS = {
    "specReplicasPath": ".spec.replicas",
    "statusReplicasPath": ".status.replicas",
    "labelSelectorPath": ".status.selector",
}


@pytest.fixture
def widgets(api):
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": SCHEMA}}
    spec = {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "kind": "Widget"},
        "versions": [version | {"subresources": {"status": {}, "scale": PATHS}}],
    }
    api.post(DEFINITIONS, {"metadata": {"name": "widgets.example.com"}, "spec": spec})
    return api


def post(api, **spec):
    return api.post(
        WIDGETS, {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": spec}
    )


def test_a_scale_shows_what_the_paths_point_at(widgets):
    """Wanted and actual count, and the selector."""
    created = post(widgets, replicas=3)
    widgets.patch(f"{WIDGETS}/w/status", {"status": {"replicas": 2, "selector": "a=b"}})
    scale = widgets.get(f"{WIDGETS}/w/scale")
    assert (scale["kind"], scale["apiVersion"]) == ("Scale", "autoscaling/v1")
    assert (scale["spec"], scale["status"]) == ({"replicas": 3}, {"replicas": 2, "selector": "a=b"})
    assert (scale["metadata"]["name"], scale["metadata"]["uid"]) == ("w", created["metadata"]["uid"])


@pytest.mark.parametrize("kind", ["merge", "json"])
def test_patching_it_changes_the_object_and_its_generation(widgets, kind):
    """What `kubectl scale` and an autoscaler send."""
    post(widgets, replicas=3)
    operations = [{"op": "replace", "path": "/spec/replicas", "value": 5}]
    code, scale = widgets.patch(f"{WIDGETS}/w/scale", operations if kind == "json" else {"spec": {"replicas": 5}}, kind)
    assert (code, scale["spec"]["replicas"]) == (200, 5)
    held = widgets.get(f"{WIDGETS}/w")
    assert (held["spec"]["replicas"], held["metadata"]["generation"]) == (5, 2)
    assert scale["metadata"]["resourceVersion"] == held["metadata"]["resourceVersion"]


def test_a_scale_takes_the_patches_that_its_object_takes(widgets, api):
    """A strategic one of a Deployment, and none of a custom object."""
    post(widgets, replicas=3)
    wanted = {"spec": {"replicas": 5}}
    code, refused = widgets.patch(f"{WIDGETS}/w/scale", wanted, "strategic")
    assert (code, "application/merge-patch+json" in refused["message"]) == (415, True)
    assert widgets.get(f"{WIDGETS}/w")["spec"]["replicas"] == 3
    labels = {"app": "d"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    deployment = {"metadata": {"name": "d"}, "spec": {"selector": {"matchLabels": labels}, "template": template}}
    api.post("/apis/apps/v1/namespaces/default/deployments", deployment)
    code, scale = api.patch("/apis/apps/v1/namespaces/default/deployments/d/scale", wanted, "strategic")
    assert (code, scale["spec"]["replicas"]) == (200, 5)


def test_replacing_it_heeds_its_resource_version(widgets):
    """A stale Scale is a conflict; one without a version always counts."""
    post(widgets, replicas=3)
    scale = widgets.get(f"{WIDGETS}/w/scale")
    widgets.patch(f"{WIDGETS}/w", {"metadata": {"labels": {"a": "b"}}})
    assert widgets.call("PUT", f"{WIDGETS}/w/scale", scale | {"spec": {"replicas": 4}})[0] == 409
    del scale["metadata"]["resourceVersion"]
    code, scale = widgets.call("PUT", f"{WIDGETS}/w/scale", scale | {"spec": {}})
    assert (code, scale["spec"]) == (200, {}), "Go leaves zeros out"


def test_a_count_that_was_never_set_can_be_set_but_not_read(widgets):
    """500, as a real server has it."""
    post(widgets)
    code, status = widgets.call("GET", f"{WIDGETS}/w/scale")
    assert code == 500 and 'the spec replicas field ".spec.replicas" does not exist' in status["message"]
    assert widgets.patch(f"{WIDGETS}/w/scale", {"spec": {"replicas": 1}})[0] == 200
    assert widgets.get(f"{WIDGETS}/w/scale")["spec"] == {"replicas": 1}


BAD = {
    "negative": ({"spec": {"replicas": -1}}, 422, "must be greater than or equal to 0"),
    "text": ({"spec": {"replicas": "3"}}, 400, "cannot be handled as a Scale"),
    "another kind": ({"kind": "Widget"}, 400, "wrong object passed to Scale update"),
    "another name": ({"metadata": {"name": "x"}}, 400, "does not match the name on the URL"),
    "beyond the schema": ({"spec": {"replicas": 10}}, 422, "less than or equal to 9"),
}


@pytest.mark.parametrize(("patch", "code", "text"), BAD.values(), ids=BAD)
def test_a_bad_scale_is_refused(widgets, patch, code, text):
    """And leaves the object alone."""
    post(widgets, replicas=3)
    found, status = widgets.patch(f"{WIDGETS}/w/scale", patch)
    assert found == code and text in status["message"]
    assert widgets.get(f"{WIDGETS}/w")["spec"]["replicas"] == 3


def test_a_scale_is_decoded_strictly(widgets):
    """As fieldValidation asks."""
    post(widgets, replicas=3)
    code, status = widgets.patch(f"{WIDGETS}/w/scale?fieldValidation=Strict", {"spec": {"replica": 5}})
    assert (code, 'unknown field "spec.replica"' in status["message"]) == (400, True)


def test_a_dry_run_changes_nothing(widgets):
    """Its answer shows what would be."""
    post(widgets, replicas=3)
    code, scale = widgets.patch(f"{WIDGETS}/w/scale?dryRun=All", {"spec": {"replicas": 5}})
    assert (code, scale["spec"]["replicas"], widgets.get(f"{WIDGETS}/w")["spec"]["replicas"]) == (200, 5, 3)


def test_it_cannot_be_deleted_nor_posted_and_is_absent_without_paths(widgets):
    """405, 405 and 404."""
    post(widgets, replicas=3)
    assert widgets.call("DELETE", f"{WIDGETS}/w/scale")[0] == 405
    assert widgets.call("POST", f"{WIDGETS}/w/scale", {})[0] == 405
    assert widgets.call("GET", "/api/v1/namespaces/default/scale")[0] == 404
    assert widgets.call("GET", f"{WIDGETS}/none/scale")[0] == 404


def test_discovery_says_that_it_speaks_scale(widgets):
    """kubectl looks there for what it can scale."""
    found = widgets.get("/apis/example.com/v1")["resources"]
    [scale] = [entry for entry in found if entry["name"] == "widgets/scale"]
    assert (scale["kind"], scale["group"], scale["version"]) == ("Scale", "autoscaling", "v1")
    assert sorted(scale["verbs"]) == ["get", "patch", "update"]


def test_it_can_be_shown_as_a_table(widgets):
    """`kubectl get --subresource=scale`."""
    post(widgets, replicas=3)
    _, table = widgets.call("GET", f"{WIDGETS}/w/scale", accept="application/json;as=Table;v=v1;g=meta.k8s.io")
    assert [row["cells"][0] for row in table["rows"]] == ["w"]
