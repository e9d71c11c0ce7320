"""Bodies that are almost right: any one value of a valid object replaced by something else."""

import copy
import random

import pytest

JUNK = [
    None,
    [],
    {},
    "",
    "x",
    5,
    -1,
    True,
    1.5,
    [None],
    [{}],
    [[]],
    {"a": None},
    {"": {}},
    ["a"],
    [1],
    "-1",
    {"a": [1]},
]
CONTAINER = {
    "name": "c",
    "image": "i",
    "resources": {"limits": {"cpu": "1"}, "requests": {"cpu": "1"}},
    "env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
    "ports": [{"containerPort": 1}],
    "volumeMounts": [{"name": "v", "mountPath": "/v"}],
    "readinessProbe": {"exec": {"command": ["x"]}},
}
POD_SPEC = {
    "containers": [CONTAINER],
    "initContainers": [CONTAINER | {"name": "i", "restartPolicy": "Always"}],
    "volumes": [{"name": "v", "emptyDir": {"sizeLimit": "1Gi"}}, {"name": "s", "secret": {"secretName": "s"}}],
    "tolerations": [{"key": "a", "operator": "Exists"}],
    "nodeSelector": {"a": "b"},
    "restartPolicy": "Never",
    "terminationGracePeriodSeconds": 5,
    "schedulingGates": [{"name": "example.com/g"}],
}
POD_STATUS = {
    "phase": "Running",
    "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}],
    "containerStatuses": [{"name": "c", "ready": True, "restartCount": 1, "state": {"running": {}}, "lastState": {}}],
}
META = {
    "name": "x",
    "labels": {"a": "b"},
    "annotations": {"a": "b"},
    "finalizers": ["example.com/f"],
    "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u", "controller": True}],
}
SCHEMA = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"n": {"type": "integer"}}}}}
VERSION = {
    "name": "v1",
    "served": True,
    "storage": True,
    "schema": {"openAPIV3Schema": SCHEMA},
    "subresources": {"status": {}},
    "additionalPrinterColumns": [{"name": "N", "type": "integer", "jsonPath": ".spec.n"}],
}
NAMESPACED = "/namespaces/default"
VALID = {
    f"/api/v1{NAMESPACED}/pods": {"metadata": META, "spec": POD_SPEC, "status": POD_STATUS},
    "/api/v1/nodes": {
        "metadata": META,
        "spec": {"taints": [{"key": "a", "effect": "NoSchedule"}], "unschedulable": True},
        "status": {
            "capacity": {"cpu": "1"},
            "conditions": [{"type": "Ready", "status": "True"}],
            "addresses": [{"type": "InternalIP", "address": "1"}],
            "nodeInfo": {"kubeletVersion": "1"},
        },
    },
    "/api/v1/namespaces": {"metadata": META, "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"}},
    f"/api/v1{NAMESPACED}/configmaps": {"metadata": META, "data": {"a": "b"}, "binaryData": {"b": "AA=="}},
    f"/api/v1{NAMESPACED}/secrets": {
        "metadata": META,
        "type": "Opaque",
        "data": {"a": "YQ=="},
        "stringData": {"b": "c"},
    },
    f"/api/v1{NAMESPACED}/services": {
        "metadata": META,
        "spec": {"selector": {"a": "b"}, "ports": [{"name": "p", "port": 80, "targetPort": "http", "protocol": "TCP"}]},
    },
    f"/api/v1{NAMESPACED}/podtemplates": {"metadata": META, "template": {"spec": POD_SPEC}},
    f"/api/v1{NAMESPACED}/resourcequotas": {
        "metadata": META,
        "spec": {
            "hard": {"pods": "1", "requests.cpu": "2"},
            "scopes": ["Terminating"],
            "scopeSelector": {"matchExpressions": [{"scopeName": "PriorityClass", "operator": "In", "values": ["a"]}]},
        },
    },
    f"/api/v1{NAMESPACED}/events": {
        "metadata": META,
        "involvedObject": {"kind": "Pod", "name": "p", "namespace": "default"},
        "source": {"component": "c"},
        "series": {"count": 2, "lastObservedTime": "2026-01-01T00:00:00.000000Z"},
        "lastTimestamp": "2026-01-01T00:00:00Z",
        "message": "m",
    },
    f"/apis/batch/v1{NAMESPACED}/jobs": {
        "metadata": META,
        "spec": {
            "parallelism": 1,
            "completions": 1,
            "template": {"metadata": {"labels": {"a": "b"}}, "spec": POD_SPEC},
        },
    },
    f"/apis/coordination.k8s.io/v1{NAMESPACED}/leases": {
        "metadata": META,
        "spec": {"holderIdentity": "a", "leaseDurationSeconds": 1, "renewTime": "2026-01-01T00:00:00.000000Z"},
    },
    f"/apis/policy/v1{NAMESPACED}/poddisruptionbudgets": {
        "metadata": META,
        "spec": {
            "minAvailable": "50%",
            "selector": {
                "matchLabels": {"a": "b"},
                "matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}],
            },
        },
    },
    "/apis/scheduling.k8s.io/v1/priorityclasses": {"metadata": META, "value": 5, "globalDefault": True},
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions": {
        "metadata": {"name": "fs.example.com"},
        "spec": {
            "group": "example.com",
            "names": {"plural": "fs", "kind": "F", "shortNames": ["ff"], "categories": ["all"]},
            "scope": "Namespaced",
            "versions": [VERSION],
        },
    },
}
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"


def places(value, path=()):
    """Every path into a value."""
    if path:
        yield path
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in children:
        yield from places(child, (*path, key))


def spoiled(body, path, junk):
    changed = copy.deepcopy(body)
    holder = changed
    for step in path[:-1]:
        holder = holder[step]
    holder[path[-1]] = copy.deepcopy(junk)
    return changed


@pytest.mark.parametrize("url", VALID, ids=lambda url: url.rpartition("/")[2])
def test_nothing_a_client_sends_is_a_failure_of_the_server(api, url, caplog):
    """Create, list as a table, change and delete: every answer but 500, and nothing in the log."""
    choose = random.Random(7)
    for path in places(VALID[url]):
        for junk in choose.sample(JUNK, 4):
            body = spoiled(VALID[url], path, junk)
            code, answer = api.call("POST", url, body)
            assert code < 500, (path, junk, answer)
            if code == 201:
                name = answer["metadata"]["name"]
                api.settle()
                assert api.call("GET", url, accept=TABLE)[0] == 200
                api.patch(f"{url}/{name}", {"metadata": {"finalizers": None}})
                api.call("DELETE", f"{url}/{name}", {"gracePeriodSeconds": 0})
                api.settle()
            for suffix in ("", "/status"):
                code, answer = api.patch(f"{url}/x{suffix}", body)
                assert code < 500, (path, junk, answer)
    assert not [record for record in caplog.records if record.exc_info], caplog.text


@pytest.mark.parametrize("url", VALID, ids=lambda url: url.rpartition("/")[2])
def test_no_change_of_a_live_object_is_a_failure_of_the_server(api, url, caplog):
    """Each way of patching a stored object, with status, ends in an answer."""
    choose = random.Random(7)
    created = api.post(url, copy.deepcopy(VALID[url]))
    here = f"{url}/{created['metadata']['name']}"
    for path in places(VALID[url]):
        for junk in choose.sample(JUNK, 2):
            for suffix in ("", "/status"):
                for kind in ("merge", "strategic"):
                    code, answer = api.patch(here + suffix, spoiled(VALID[url], path, junk), kind)
                    assert code < 500, (path, junk, kind, answer)
    assert api.call("GET", url, accept=TABLE)[0] == 200
    assert not [record for record in caplog.records if record.exc_info], caplog.text
