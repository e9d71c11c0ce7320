"""Kinds that are kept for commands that go through every kind of a cluster, and that nobody acts on."""

import pytest

TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
SELECTOR = {"matchLabels": {"a": "b"}}
STATEFUL_SETS = "/apis/apps/v1/namespaces/default/statefulsets"
CONTROLLERS = "/api/v1/namespaces/default/replicationcontrollers"
INGRESSES = "/apis/networking.k8s.io/v1/namespaces/default/ingresses"
KINDS = {
    "StatefulSet": (STATEFUL_SETS, {"serviceName": "s", "selector": SELECTOR, "template": TEMPLATE}),
    "ReplicationController": (CONTROLLERS, {"template": TEMPLATE}),
    "Ingress": (INGRESSES, {"defaultBackend": {"service": {"name": "s", "port": {"number": 80}}}}),
}


@pytest.mark.parametrize("kind", KINDS)
def test_it_says_that_nobody_acts_on_it(api, kind):
    """When it is made, and once."""
    url, spec = KINDS[kind]
    answer = api.raw("POST", url, {"metadata": {"name": "x"}, "spec": spec})
    assert answer.status == 201, answer.body
    (told,) = answer.warnings
    assert told.startswith(f"nothing acts on a {kind} in the embedded cluster: it is stored, and ")
    api.settle()
    assert api.get("/api/v1/namespaces/default/pods")["items"] == []
    again = api.raw("PUT", f"{url}/x", api.get(f"{url}/x"))
    assert (again.status, again.warnings) == (200, ())


def test_it_has_the_defaults_that_clients_rely_on(api):
    """kubectl describe crashes without a number of replicas."""
    for kind in ("StatefulSet", "ReplicationController"):
        url, spec = KINDS[kind]
        assert api.post(url, {"metadata": {"name": "x"}, "spec": spec})["spec"]["replicas"] == 1
    found = api.get(f"{STATEFUL_SETS}/x")["spec"]
    assert found["updateStrategy"] == {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}
    assert api.get(f"{CONTROLLERS}/x")["spec"]["selector"] == {"a": "b"}


def test_it_is_refused_where_a_real_cluster_refuses_it(api):
    """A manifest that is stored here is one that means something elsewhere."""
    for kind in ("StatefulSet", "ReplicationController"):
        url, spec = KINDS[kind]
        code, status = api.call("POST", url, {"metadata": {"name": "x"}, "spec": {**spec, "replicas": -1}})
        assert code == 422 and "spec.replicas" in status["message"]
