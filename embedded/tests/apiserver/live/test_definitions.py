"""kubectl against a real server process: admission webhooks and custom resource definitions as a person uses them."""

import asyncio
import shutil
import threading

import pytest

from embedded.tests.apiserver.webhook_server import WebhookServer, adding, allowed, denied

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not on PATH; install it to run these"),
]
REGISTRATION = "admissionregistration.k8s.io/v1"
RULE = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}


@pytest.fixture
def webhook(credentials):
    """A webhook server in a thread of its own, as the API server is another process."""
    server, ready, loop = WebhookServer(credentials), threading.Event(), asyncio.new_event_loop()
    stop = asyncio.Event()

    async def serve():
        async with server.serving():
            ready.set()
            await stop.wait()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()))
    thread.start()
    assert ready.wait(10)
    yield server
    loop.call_soon_threadsafe(stop.set)
    thread.join(10)
    loop.close()


def configuration(kind, name, *hooks):
    return {"apiVersion": REGISTRATION, "kind": kind, "metadata": {"name": name}, "webhooks": list(hooks)}


def hook(server, path, **more):
    client = {"url": server.url + path, "caBundle": server.ca}
    found = {"name": f"{path.strip('/')}.example.com", "clientConfig": client, "rules": [RULE]}
    return found | {"sideEffects": "None", "admissionReviewVersions": ["v1"]} | more


def test_webhooks_patch_warn_and_deny_what_kubectl_sends(live, webhook):
    """In the words that `kubectl` prints for a real server; a dry run is told to the webhook."""
    webhook.answers = {
        "/patch": adding("/data/added", "yes"),
        "/warn": allowed(warnings=["mind the gap"]),
        "/deny": denied(message="no maps today", code=403, reason="Forbidden"),
    }
    only = {"objectSelector": {"matchLabels": {"deny": "yes"}}}
    live.kubectl("apply", "-f", "-", stdin=configuration("MutatingWebhookConfiguration", "m", hook(webhook, "/patch")))
    validating = configuration(
        "ValidatingWebhookConfiguration", "v", hook(webhook, "/warn"), hook(webhook, "/deny", **only)
    )
    live.kubectl("apply", "-f", "-", stdin=validating)
    try:
        printed = live.kubectl("create", "configmap", "hooked", "--from-literal=a=b")
        assert "Warning: mind the gap" in printed
        assert live.kubectl("get", "configmap", "hooked", "-o", "jsonpath={.data}") == '{"a":"b","added":"yes"}'
        live.kubectl("create", "configmap", "dry", "--from-literal=a=b", "--dry-run=server")
        assert webhook.requests("/patch")[-1]["dryRun"] is True
        refused = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b"}}
        refused |= {"metadata": {"name": "x", "labels": {"deny": "yes"}}}
        told = live.kubectl("create", "-f", "-", stdin=refused, code=1)
        assert 'Error from server (Forbidden): error when creating "STDIN": admission webhook "deny' in told
        assert webhook.requests("/deny")[0]["userInfo"]["username"] == "admin"
        rows = live.kubectl("get", "validatingwebhookconfigurations", "--no-headers").split()
        assert rows[:2] == ["v", "2"]
    finally:
        live.kubectl("delete", "mutatingwebhookconfiguration/m", "validatingwebhookconfiguration/v")
        live.kubectl("delete", "configmap", "hooked", "--ignore-not-found")


def test_a_custom_resource_is_listed_explained_and_scaled(live):
    """The example of the Kubernetes documentation."""
    schema = {
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "properties": {"cronSpec": {"type": "string", "description": "when"}, "replicas": {"type": "integer"}},
            },
            "status": {"type": "object", "properties": {"replicas": {"type": "integer"}}},
        },
    }
    columns = [
        {"name": "Spec", "type": "string", "jsonPath": ".spec.cronSpec"},
        {"name": "Replicas", "type": "integer", "jsonPath": ".spec.replicas", "priority": 1},
        {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
    ]
    scale = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"scale": scale},
        "additionalPrinterColumns": columns,
        "selectableFields": [{"jsonPath": ".spec.cronSpec"}],
    }
    names = {
        "plural": "crontabs",
        "singular": "crontab",
        "kind": "CronTab",
        "shortNames": ["ct"],
        "categories": ["all"],
    }
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "crontabs.stable.example.com"},
        "spec": {"group": "stable.example.com", "scope": "Namespaced", "names": names, "versions": [version]},
    }
    live.kubectl("apply", "-f", "-", stdin=definition)
    live.kubectl("wait", "--for=condition=Established", "crd/crontabs.stable.example.com", "--timeout=10s")
    spec = {"cronSpec": "* * * * */5", "replicas": 3}
    tab = {"apiVersion": "stable.example.com/v1", "kind": "CronTab", "metadata": {"name": "my"}, "spec": spec}
    live.kubectl("create", "-f", "-", stdin=tab)
    assert live.kubectl("get", "ct").splitlines()[0].split() == ["NAME", "SPEC", "AGE"]
    assert live.kubectl("get", "ct", "-o", "wide").splitlines()[0].split() == ["NAME", "SPEC", "REPLICAS", "AGE"]
    assert "crontab.stable.example.com/my" in live.kubectl("get", "all", "-o", "name")
    assert live.kubectl("get", "ct", "--field-selector", "spec.cronSpec=x", "-o", "name") == ""
    assert live.kubectl("scale", "--replicas=5", "ct/my") == "crontab.stable.example.com/my scaled\n"
    assert live.kubectl("get", "ct", "my", "-o", "jsonpath={.spec.replicas}") == "5"
    assert "cronSpec" in live.kubectl("explain", "ct.spec") and "when" in live.kubectl("explain", "ct.spec.cronSpec")
    wrong = live.kubectl("patch", "ct", "my", "--type=merge", "-p", '{"spec":{"replicas":"x"}}', code=1)
    assert 'spec.replicas: Invalid value: "string": spec.replicas in body must be of type integer: "string"' in wrong
    live.kubectl("delete", "crd", "crontabs.stable.example.com")
    live.kubectl("get", "ct", code=1)


def test_a_policy_is_applied_listed_and_heeded(live):
    """By kubectl, which tells the first denial."""
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
    match = {"resourceRules": [rule], "objectSelector": {"matchLabels": {"policy": "heeded"}}}
    validation = {"expression": "variables.size < 2", "messageExpression": "'%d are too many'.format([variables.size])"}
    spec = {"matchConstraints": match, "validations": [validation]}
    spec |= {"variables": [{"name": "size", "expression": "object.data.size()"}]}
    head = {"apiVersion": "admissionregistration.k8s.io/v1", "metadata": {"name": "small"}}
    live.kubectl("apply", "-f", "-", stdin=head | {"kind": "ValidatingAdmissionPolicy", "spec": spec})
    bound = {"policyName": "small", "validationActions": ["Deny"]}
    live.kubectl("apply", "-f", "-", stdin=head | {"kind": "ValidatingAdmissionPolicyBinding", "spec": bound})
    try:
        rows = live.kubectl("get", "validatingadmissionpolicies", "--no-headers").split()
        assert rows[:3] == ["small", "1", "<unset>"]
        rows = live.kubectl("get", "validatingadmissionpolicybinding", "--no-headers").split()
        assert rows[:3] == ["small", "small", "<unset>"]
        big = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b", "c": "d"}}
        big |= {"metadata": {"name": "big", "labels": {"policy": "heeded"}}}
        told = live.kubectl("create", "-f", "-", stdin=big, code=1)
        denied = "ValidatingAdmissionPolicy 'small' with binding 'small' denied request: 2 are too many"
        assert told.startswith(f'The configmaps "big" is invalid: : {denied}')
    finally:
        live.kubectl("delete", "validatingadmissionpolicy/small", "validatingadmissionpolicybinding/small")
