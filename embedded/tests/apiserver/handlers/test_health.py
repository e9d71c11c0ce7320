"""What the server tells of itself: health by its checks, and /metrics.

https://kubernetes.io/docs/reference/using-api/health-checks/ and
https://kubernetes.io/docs/reference/instrumentation/metrics/
"""

import pytest
from prometheus_client.parser import text_string_to_metric_families

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
MAPS = "/api/v1/namespaces/default/configmaps"


def samples(api, name):
    """Labels → value of a metric's samples."""
    answer = api.raw("GET", "/metrics")
    assert answer.status == 200 and answer.content_type.startswith("text/plain; version=")
    families = text_string_to_metric_families(answer.body.decode())
    return [(dict(s.labels), s.value) for family in families for s in family.samples if s.name == name]


@pytest.mark.parametrize("root", ["healthz", "livez", "readyz"])
def test_health_has_one_check(api, root):
    """Which can be asked alone, as monitoring does."""
    assert api.raw("GET", f"/{root}/ping").body == b"ok"
    assert api.raw("GET", f"/{root}?verbose").body == f"[+]ping ok\n{root} check passed\n".encode()
    assert api.raw("GET", f"/{root}/nothing").status == 404


def test_requests_are_counted_by_what_they_did(api):
    """With the labels of kube-apiserver."""
    api.post(MAPS, {"metadata": {"name": "a"}})
    api.call("POST", MAPS, {"metadata": {"name": "a"}})
    api.get(f"{MAPS}/a")
    wanted = {"group": "", "version": "v1", "resource": "configmaps", "subresource": "", "component": "apiserver"}
    found = samples(api, "apiserver_request_total")
    for verb, scope, code in (
        ("POST", "namespace", "201"),
        ("POST", "namespace", "409"),
        ("GET", "resource", "200"),
    ):
        assert ({**wanted, "verb": verb, "scope": scope, "code": code}, 1.0) in found


def test_a_request_for_nothing_makes_no_label(api):
    """Whoever asks for many paths fills no memory."""
    for number in range(3):
        api.raw("GET", f"/apis/example.com/v1/things{number}")
        api.raw("GET", f"/api/v1/namespaces/default/pods/a/sub{number}")
    told = [labels for labels, _ in samples(api, "apiserver_request_total")]
    assert not any("example.com" in labels.values() or labels["subresource"] for labels in told)
    assert len([labels for labels in told if labels["code"] == "404"]) == 2


def test_types_that_come_and_go_leave_no_counts(api):
    """Those of the types that are there stay."""
    names = {"plural": "widgets", "kind": "Widget"}
    schema = {"openAPIV3Schema": {"type": "object"}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    spec = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]}
    api.post(DEFINITIONS, {"metadata": {"name": "widgets.example.com"}, "spec": spec})
    for path in ("widgets", "widgets/a", "widgets?labelSelector=)"):
        api.raw("GET", f"/apis/example.com/v1/namespaces/default/{path}")
    assert any(labels["group"] == "example.com" for labels, _ in samples(api, "apiserver_request_total"))
    api.call("DELETE", f"{DEFINITIONS}/widgets.example.com")
    api.settle()
    for name in ("apiserver_request_total", "apiserver_request_duration_seconds_count"):
        assert not any(labels["group"] == "example.com" for labels, _ in samples(api, name))
    assert any(labels["resource"].startswith("customres") for labels, _ in samples(api, "apiserver_request_total"))


def test_the_time_of_requests_is_told_but_of_watches(api):
    """Which last as long as their clients like."""
    api.get(MAPS)
    api.watch(f"{MAPS}?watch=1")
    seconds = {labels["verb"]: value for labels, value in samples(api, "apiserver_request_duration_seconds_count")}
    assert seconds["LIST"] == 1 and "WATCH" not in seconds
    assert any(labels["verb"] == "WATCH" for labels, _ in samples(api, "apiserver_request_total"))


def test_what_is_stored_is_told(api):
    """Of every type that is kept."""
    api.post(MAPS, {"metadata": {"name": "a"}})
    found = {labels["resource"]: value for labels, value in samples(api, "apiserver_storage_objects")}
    kept = len(api.get("/api/v1/configmaps")["items"])
    assert found["configmaps"] == kept and found["deployments.apps"] == 0
    assert "nodes.metrics.k8s.io" not in found and "tokenreviews.authentication.k8s.io" not in found
    ((build, _),) = samples(api, "kubernetes_build_info")
    assert build["git_version"] == api.get("/version")["gitVersion"]
