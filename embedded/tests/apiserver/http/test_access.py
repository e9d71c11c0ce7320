"""Requests of users whose rights are enforced, from the door to the answer."""

import pytest

from embedded.apiserver.request.user_info import ANONYMOUS
from embedded.tests.apiserver.secured import Secured, rule, user

MAPS = "/api/v1/namespaces/default/configmaps"
ANNE = user("anne")


def config(name="m", **data):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


@pytest.fixture
def server(clock):
    return Secured(clock)


OPEN = {
    "health to everybody": (ANONYMOUS, "/healthz", 200),
    "the version to everybody": (ANONYMOUS, "/version", 200),
    "no discovery for strangers": (ANONYMOUS, "/apis", 403),
    "discovery for users": (ANNE, "/apis", 200),
    "schemas for users": (ANNE, "/openapi/v3", 200),
    "no objects for users": (ANNE, MAPS, 403),
    "nothing by a path that only looks like discovery": (ANNE, "/api/v1/namespaces/default//configmaps", 403),
    "what is not there is not told": (ANNE, "/apis/nowhere/v1/things", 403),
    "it is to whoever may look": (user("root", "system:masters"), "/apis/nowhere/v1/things", 404),
}


@pytest.mark.parametrize(("who", "path", "code"), OPEN.values(), ids=OPEN)
def test_the_default_roles_let_in(server, who, path, code):
    """Everybody sees that the server lives, users what it serves, and nobody more than that."""
    assert server.call("GET", path, who=who)[0] == code


VERBS = {
    "get": ("GET", f"{MAPS}/m", None, {}),
    "list": ("GET", MAPS, None, {}),
    "create": ("POST", MAPS, config("new"), {}),
    "update": ("PUT", f"{MAPS}/m", config(a="1"), {}),
    "patch": ("PATCH", f"{MAPS}/m", {"data": {"a": "1"}}, {"content_type": "application/merge-patch+json"}),
    "delete": ("DELETE", f"{MAPS}/m", None, {}),
    "deletecollection": ("DELETE", MAPS, None, {}),
}


@pytest.mark.parametrize("verb", VERBS)
def test_each_verb_is_granted_by_itself(server, verb):
    """All others stay refused, in the words of kube-apiserver."""
    server.make(MAPS, config())
    server.grant("anne", rule(verb, "configmaps"), namespace="default")
    for other, (method, path, body, headers) in VERBS.items():
        code, answer = server.call(method, path, body, ANNE, **headers)
        assert (code < 300) is (other == verb), answer
        if other != verb:
            cannot = f'User "anne" cannot {other} resource "configmaps" in API group "" in the namespace "default"'
            assert answer["reason"] == "Forbidden" and cannot in answer["message"]


def test_watching_is_a_verb_of_its_own(server):
    server.grant("anne", rule("list", "configmaps"))
    assert server.call("GET", MAPS, who=ANNE)[0] == 200
    assert server.call("GET", f"{MAPS}?watch=1", who=ANNE)[0] == 403
    server.grant("anne", rule("watch", "configmaps"), name="watcher")
    assert server.call("GET", f"{MAPS}?watch=1", who=ANNE)[0] == 200


def test_a_named_object_can_be_listed_by_its_name(server):
    """Which is how kubectl and informers look at one object."""
    server.make(MAPS, config("m"))
    server.make(MAPS, config("secret"))
    server.grant("anne", rule("get list watch", "configmaps", names="m"), namespace="default")
    code, found = server.call("GET", f"{MAPS}?fieldSelector=metadata.name%3Dm", who=ANNE)
    assert code == 200 and [item["metadata"]["name"] for item in found["items"]] == ["m"]
    for refused in ("", "?fieldSelector=metadata.name%3Dsecret", "?fieldSelector=metadata.name!%3Dm"):
        assert server.call("GET", MAPS + refused, who=ANNE)[0] == 403


def test_an_apply_that_creates_needs_both_verbs(server):
    """One that changes what is there needs patch alone."""
    server.grant("anne", rule("patch", "configmaps"))
    apply = {"content_type": "application/apply-patch+yaml"}
    code, answer = server.call("PATCH", f"{MAPS}/m?fieldManager=me", config("m"), ANNE, **apply)
    assert code == 403 and 'cannot create resource "configmaps"' in answer["message"]
    server.make(MAPS, config("m"))
    assert server.call("PATCH", f"{MAPS}/m?fieldManager=me", config("m", a="1"), ANNE, **apply)[0] == 200
    server.grant("anne", rule("create", "configmaps"), name="creator")
    assert server.call("PATCH", f"{MAPS}/n?fieldManager=me", config("n"), ANNE, **apply)[0] == 201


def test_a_refused_write_changes_nothing(server):
    """The refusal comes before anything is looked at."""
    before = server.core.store.revision
    assert server.call("POST", MAPS, config(), ANNE)[0] == 403
    assert server.core.store.revision == before
