"""Kinds that are kept for commands that go through every kind of a cluster, and that nobody acts on."""

import pytest

TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
SELECTOR = {"matchLabels": {"a": "b"}}
STATEFUL_SETS = "/apis/apps/v1/namespaces/default/statefulsets"
CONTROLLERS = "/api/v1/namespaces/default/replicationcontrollers"
INGRESSES = "/apis/networking.k8s.io/v1/namespaces/default/ingresses"
PARTITION = "spec.updateStrategy.rollingUpdate.partition"
RETENTION = "spec.persistentVolumeClaimRetentionPolicy.whenScaled"
CLAIM, CLAIMED = {"resources": {"requests": {"storage": "1Gi"}}}, "spec.volumeClaimTemplates[0].spec"
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
    assert told.startswith(f"{kind} objects are only stored in the embedded cluster: ")
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


def test_a_stateful_set_may_mount_what_it_claims(api):
    """Its volumes come from claim templates, and nothing else does."""
    url, spec = KINDS["StatefulSet"]
    container = {"name": "c", "image": "i", "volumeMounts": [{"name": "data", "mountPath": "/data"}]}
    template = TEMPLATE | {"spec": {"containers": [container]}}
    claim = {
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    whole = {**spec, "template": template, "volumeClaimTemplates": [claim]}
    assert api.post(url, {"metadata": {"name": "x"}, "spec": whole})["spec"]["volumeClaimTemplates"]
    code, status = api.call("POST", url, {"metadata": {"name": "y"}, "spec": whole | {"volumeClaimTemplates": []}})
    assert code == 422 and "volumeMounts[0].name: Not found" in status["message"]


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"podManagementPolicy": "q"}, "spec.podManagementPolicy"),
        ({"updateStrategy": {"type": "q"}}, "spec.updateStrategy"),
        ({"ordinals": {"start": -1}}, "spec.ordinals.start"),
        ({"minReadySeconds": -1}, "spec.minReadySeconds"),
        ({"serviceName": "A_"}, "spec.serviceName"),
        ({"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": -1}}}, PARTITION),
        ({"persistentVolumeClaimRetentionPolicy": {"whenScaled": "q"}}, RETENTION),
        ({"volumeClaimTemplates": [{"metadata": {"name": "d"}, "spec": CLAIM}]}, f"{CLAIMED}.accessModes"),
    ],
)
def test_a_stateful_set_is_one(api, change, field):
    """Of the values there are."""
    url, spec = KINDS["StatefulSet"]
    code, status = api.call("POST", url, {"metadata": {"name": "x"}, "spec": spec | change})
    assert code == 422 and [cause["field"] for cause in status["details"]["causes"]] == [field]


def test_controllers_are_selected_by_their_pods(api):
    """As kubectl's users do."""
    url, spec = KINDS["ReplicationController"]
    api.post(url, {"metadata": {"name": "x"}, "spec": spec})
    found = [len(api.get(f"{url}?fieldSelector=status.replicas={count}")["items"]) for count in (0, 4)]
    assert found == [1, 0]


def test_a_stateful_set_keeps_what_it_claims(api):
    """And how many it has, and of what, may change."""
    url, spec = KINDS["StatefulSet"]
    api.post(url, {"metadata": {"name": "x"}, "spec": spec})
    assert api.patch(f"{url}/x", {"spec": {"replicas": 3, "minReadySeconds": 1}})[0] == 200
    code, status = api.patch(f"{url}/x", {"spec": {"serviceName": "other"}})
    assert (
        code == 422 and "updates to statefulset spec for fields other than 'replicas', 'ordinals'" in status["message"]
    )
