"""What requests want, and the words in which they are refused."""

import pytest

from embedded.apiserver.request.attributes import AllowAll, Attributes, attributes_of, forbidden
from embedded.apiserver.request.messages import Request
from embedded.apiserver.request.user_info import UserInfo

ANNE = UserInfo("anne")
PODS = "/api/v1/namespaces/shop/pods"


def wanted(method, path, **query):
    found = attributes_of(Request(method, path, query, user=ANNE))
    words = (found.verb, found.group, found.version, found.combined_resource, found.namespace, found.name)
    return " ".join(word or "-" for word in words)


REQUESTS = {
    "read one": ("GET", f"{PODS}/p", {}, "get - v1 pods shop p"),
    "head is read": ("HEAD", f"{PODS}/p", {}, "get - v1 pods shop p"),
    "list": ("GET", PODS, {}, "list - v1 pods shop -"),
    "list everywhere": ("GET", "/api/v1/pods", {}, "list - v1 pods - -"),
    "watch": ("GET", PODS, {"watch": "true"}, "watch - v1 pods shop -"),
    "watch in Go's way": ("GET", PODS, {"watch": ""}, "watch - v1 pods shop -"),
    "no watch": ("GET", PODS, {"watch": "0"}, "list - v1 pods shop -"),
    "create": ("POST", PODS, {}, "create - v1 pods shop -"),
    "replace": ("PUT", f"{PODS}/p", {}, "update - v1 pods shop p"),
    "patch": ("PATCH", f"{PODS}/p/status", {}, "patch - v1 pods/status shop p"),
    "delete": ("DELETE", f"{PODS}/p", {}, "delete - v1 pods shop p"),
    "delete many": ("DELETE", PODS, {}, "deletecollection - v1 pods shop -"),
    "evict": ("POST", f"{PODS}/p/eviction", {}, "create - v1 pods/eviction shop p"),
    "a group": ("GET", "/apis/batch/v1/namespaces/shop/jobs/j", {}, "get batch v1 jobs shop j"),
    "cluster-wide": ("GET", "/apis/storage.k8s.io/v1/storageclasses/s", {}, "get storage.k8s.io v1 storageclasses - s"),
    "a namespace is within itself": ("GET", "/api/v1/namespaces/shop", {}, "get - v1 namespaces shop shop"),
    "its status": ("PUT", "/api/v1/namespaces/shop/status", {}, "update - v1 namespaces/status shop shop"),
    "its end": ("PUT", "/api/v1/namespaces/shop/finalize", {}, "update - v1 namespaces/finalize shop shop"),
    "all namespaces": ("GET", "/api/v1/namespaces", {}, "list - v1 namespaces - -"),
    "one by its name": ("GET", PODS, {"fieldSelector": "metadata.name=p"}, "list - v1 pods shop p"),
    "by name and more": (
        *("GET", PODS, {"watch": "1", "fieldSelector": "status.phase!=Failed,metadata.name==p"}),
        "watch - v1 pods shop p",
    ),
    "not by its name": ("GET", PODS, {"fieldSelector": "metadata.name!=p"}, "list - v1 pods shop -"),
    "a name inside a value": ("GET", PODS, {"fieldSelector": r"type!=a\,metadata.name=p"}, "list - v1 pods shop -"),
    "an escaped name": ("GET", PODS, {"fieldSelector": r"metadata.name=p\,q"}, "list - v1 pods shop -"),
    "a path": ("GET", "/version", {}, "get - - - - -"),
    "discovery": ("GET", "/apis/batch/v1", {}, "get - - - - -"),
    "the root": ("GET", "/", {}, "get - - - - -"),
}


@pytest.mark.parametrize(("method", "path", "query", "expected"), REQUESTS.values(), ids=REQUESTS)
def test_a_request_says_what_it_wants(method, path, query, expected):
    """By method, path and query alone, as RequestInfo of kube-apiserver reads them."""
    assert wanted(method, path, **query) == expected


def test_a_path_is_kept_as_it_is():
    """Rules for paths match what was asked for."""
    assert attributes_of(Request("GET", "/healthz/ping", user=ANNE)).path == "/healthz/ping"


MESSAGES = {
    "in a namespace": (
        Attributes(ANNE, "list", "", "v1", "pods", namespace="default"),
        'pods is forbidden: User "anne" cannot list resource "pods" in API group "" in the namespace "default"',
        {"kind": "pods"},
    ),
    "at the cluster scope": (
        Attributes(ANNE, "get", "storage.k8s.io", "v1", "storageclasses", name="fast"),
        'storageclasses.storage.k8s.io "fast" is forbidden: User "anne" cannot get resource "storageclasses" in API '
        'group "storage.k8s.io" at the cluster scope',
        {"name": "fast", "group": "storage.k8s.io", "kind": "storageclasses"},
    ),
    "a sub-resource": (
        Attributes(ANNE, "patch", "", "v1", "pods", "status", "shop", "p"),
        'pods "p" is forbidden: User "anne" cannot patch resource "pods/status" in API group "" in the namespace "shop"',
        {"name": "p", "kind": "pods"},
    ),
    "a path": (Attributes(ANNE, "get", path="/metrics"), 'forbidden: User "anne" cannot get path "/metrics"', {}),
}


@pytest.mark.parametrize(("attributes", "message", "details"), MESSAGES.values(), ids=MESSAGES)
def test_a_refusal_is_worded_as_upstream(attributes, message, details):
    """kubectl and people's searches know these words."""
    error = forbidden(attributes)
    assert (error.code, error.reason, error.message, error.details) == (403, "Forbidden", message, details)


def test_a_reason_is_told():
    """Such as a role that is not there."""
    error = forbidden(Attributes(ANNE, "get", path="/x"), 'RBAC: clusterrole "x" not found')
    assert error.message.endswith('path "/x": RBAC: clusterrole "x" not found')


def test_everything_can_be_allowed():
    assert AllowAll().decide(Attributes(ANNE, "delete", "", "v1", "nodes")).allowed
