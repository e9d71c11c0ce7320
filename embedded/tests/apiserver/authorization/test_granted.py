"""Roles held against what was really asked for."""

import pytest

from embedded.apiserver.authorization.granted import usage
from embedded.apiserver.http.access import AdmittedRequest
from embedded.apiserver.http.audit import event_of
from embedded.apiserver.request.attributes import Decision
from embedded.apiserver.request.messages import Request, Response
from embedded.tests.apiserver.secured import GROUP, rule, user

ROBOT = user("system:serviceaccount:shop:robot")
PODS = "/api/v1/namespaces/shop/pods"
ACCOUNT = {"kind": "ServiceAccount", "name": "robot", "namespace": "shop"}


def role(*rules, namespace=""):
    kind = "Role" if namespace else "ClusterRole"
    return {"kind": kind, "metadata": {"name": "r", "namespace": namespace}, "rules": list(rules)}


def binding(subject=ACCOUNT, namespace="", kind="ClusterRole"):
    reference = {"apiGroup": GROUP, "kind": kind, "name": "r"}
    bound = {"name": "b", "namespace": namespace}
    made = "RoleBinding" if namespace else "ClusterRoleBinding"
    return {"kind": made, "metadata": bound, "roleRef": reference, "subjects": [subject]}


def call(method="GET", path=f"{PODS}/p", code=200, allowed=True, who=ROBOT, **query):
    visit = AdmittedRequest.of(Request(method, path, query, user=who), 0.0)
    visit.decision = Decision(allowed)
    return event_of(visit, Response(code, b"{}"), 0.0)


READ = rule("get list", "pods")
PATHS = {"verbs": ["get"], "nonResourceURLs": ["/metrics"]}
UNUSED = {
    "nothing was used": ([role(READ), binding()], [], ["get pods", "list pods"]),
    "one verb was": ([role(READ), binding()], [call()], ["list pods"]),
    "both were": ([role(READ), binding()], [call(), call(path=PODS)], []),
    "what failed for another reason was used": ([role(rule("get", "pods")), binding()], [call(code=404)], []),
    "what another used": ([role(rule("get", "pods")), binding()], [call(who=user("anne"))], ["get pods"]),
    "what was denied was not used": (
        [role(rule("get", "pods")), binding()],
        [call(code=403, allowed=False)],
        ["get pods"],
    ),
    "a named object": ([role(rule("get", "pods", names="p q")), binding()], [call()], ["get pods q"]),
    "a sub-resource": (
        [role(rule("patch", "pods pods/status")), binding()],
        [call("PATCH", f"{PODS}/p/status")],
        ["patch pods"],
    ),
    "another group": ([role(rule("get", "jobs", "batch")), binding()], [call()], ["get jobs.batch"]),
    "a wildcard that something used": ([role(rule("*", "*", "*")), binding()], [call()], []),
    "a path": ([role(PATHS), binding()], [], ["get /metrics"]),
    "a path that was read": ([role(PATHS), binding()], [call(path="/metrics", a="b")], []),
    "in another namespace": (
        [role(rule("get", "pods"), namespace="mill"), binding(namespace="mill", kind="Role")],
        [call()],
        ["get pods in mill"],
    ),
    "in the namespace": (
        [role(rule("get", "pods"), namespace="shop"), binding(namespace="shop", kind="Role")],
        [call()],
        [],
    ),
    "a ClusterRole in a namespace": ([role(READ), binding(namespace="shop")], [call()], ["list pods in shop"]),
    "another's role": ([role(READ), binding({"kind": "User", "name": "anne"})], [], []),
    "other objects": (
        [role(READ), binding(), {"kind": "ServiceAccount", "metadata": {"name": "robot"}}],
        [],
        ["get pods", "list pods"],
    ),
}


@pytest.mark.parametrize(("objects", "events", "unused"), UNUSED.values(), ids=UNUSED)
def test_what_was_granted_and_never_used(objects, events, unused):
    """Each verb on each resource by itself."""
    found = usage(ROBOT.name, objects, events)
    assert [str(each) for each in found.unused] == unused


def test_what_was_denied():
    """By roles or by whatever else says 403, each once; what failed otherwise was not."""
    events = [
        *(call(code=403, allowed=False) for _ in range(2)),
        call("POST", f"{PODS}/p/eviction", 403),
        call(path="/metrics", code=403, allowed=False),
        call(code=409),
        call(path="/api/v1/nodes", code=403, allowed=False, who=user("anne")),
    ]
    denied = usage(ROBOT.name, [], events).denied
    assert [str(each) for each in denied] == ["create pods/eviction p in shop", "get /metrics", "get pods p in shop"]


def test_the_user_who_is_acted_as_counts():
    """And not who acts."""
    acting = call(code=403, allowed=False, who=user("root")) | {"impersonatedUser": {"username": ROBOT.name}}
    assert len(usage(ROBOT.name, [], [acting]).denied) == 1
    assert not usage("root", [], [acting]).denied
