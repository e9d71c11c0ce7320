"""The roles every cluster starts with."""

import pytest

from embedded.apiserver.apimachinery.resource_types import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES
from embedded.apiserver.authorization.bootstrap_roles import create_default_roles, default_bindings, default_roles
from embedded.tests.apiserver.secured import GROUP, RBAC, Secured, rule, user

ANNE = user("anne")
SHOP = "/api/v1/namespaces/default"


@pytest.fixture
def server(clock):
    return Secured(clock)


def role(server, name):
    return server.resources.get(CLUSTER_ROLES, "", name)


def bind(server, name):
    """Anne gets one of the roles that people are given, in the namespace `default`."""
    reference = {"apiGroup": GROUP, "kind": "ClusterRole", "name": name}
    binding = {"metadata": {"name": "b"}, "roleRef": reference, "subjects": [{"kind": "User", "name": "anne"}]}
    server.make(f"{RBAC}/namespaces/default/rolebindings", binding)


PEOPLE = {
    "view": {"pods": 200, "secrets": 403, "new configmap": 403, "new role": 403, "nodes": 403},
    "edit": {"pods": 200, "secrets": 200, "new configmap": 201, "new role": 403, "nodes": 403},
    "admin": {"pods": 200, "secrets": 200, "new configmap": 201, "new role": 201, "nodes": 403},
    "cluster-admin": {"pods": 200, "secrets": 200, "new configmap": 201, "new role": 201, "nodes": 403},
}
NAMED = {"metadata": {"name": "new"}}
CALLS = {
    "pods": ("GET", f"{SHOP}/pods", None),
    "secrets": ("GET", f"{SHOP}/secrets", None),
    "new configmap": ("POST", f"{SHOP}/configmaps", NAMED),
    "new role": ("POST", f"{RBAC}/namespaces/default/roles", NAMED),
    "nodes": ("GET", "/api/v1/nodes", None),
}


@pytest.mark.parametrize("name", PEOPLE)
def test_people_get_what_their_role_promises(server, name):
    """https://kubernetes.io/docs/reference/access-authn-authz/rbac/#user-facing-roles"""
    bind(server, name)
    found = {what: server.call(*call, who=ANNE)[0] for what, call in CALLS.items()}
    assert found == PEOPLE[name]


def test_roles_gather_those_below_them(server):
    """admin holds edit, edit holds view, each rule once."""
    rules = {name: role(server, name)["rules"] for name in ("view", "edit", "admin")}
    assert all(each in rules["edit"] for each in rules["view"])
    assert all(each in rules["admin"] for each in rules["edit"])
    assert len(rules["view"]) < len(rules["edit"]) < len(rules["admin"])
    assert all(rules["admin"].count(each) == 1 for each in rules["admin"])


def test_a_role_of_ones_own_joins_by_its_label(api):
    """As soon as the controllers have seen it, at every level above; it leaves with its label."""
    create_default_roles(api.resources)
    rules = [rule("get list watch", "trainingjobs", "sublet.dev")]
    label = "rbac.authorization.k8s.io/aggregate-to-view"
    api.post(f"{RBAC}/clusterroles", {"metadata": {"name": "mine", "labels": {label: "true"}}, "rules": rules})
    api.settle()
    assert all(rules[0] in api.get(f"{RBAC}/clusterroles/{name}")["rules"] for name in ("view", "edit", "admin"))
    api.patch(f"{RBAC}/clusterroles/mine", {"metadata": {"labels": {label: None}}})
    api.settle()
    assert not any(rules[0] in api.get(f"{RBAC}/clusterroles/{name}")["rules"] for name in ("view", "edit", "admin"))


def test_every_binding_has_its_role():
    names = {each["metadata"]["name"] for each in default_roles()}
    assert {each["roleRef"]["name"] for each in default_bindings()} <= names


def test_a_later_start_completes_what_lacks(server):
    """And leaves alone what somebody keeps as it is, or added."""

    def edit(name, **change):
        server.resources.update(CLUSTER_ROLES, "", name, lambda live: {**live, **change})

    extra = rule("get", "nodes")
    edit("system:auth-delegator", rules=[extra])
    frozen = {**role(server, "system:monitoring")["metadata"]}
    frozen["annotations"] = {"rbac.authorization.kubernetes.io/autoupdate": "false"}
    edit("system:monitoring", rules=[], metadata=frozen)
    server.resources.delete(CLUSTER_ROLE_BINDINGS, "", "system:discovery")
    create_default_roles(server.resources)
    completed = role(server, "system:auth-delegator")["rules"]
    assert completed[0] == extra and len(completed) == 3
    assert not role(server, "system:monitoring").get("rules")
    assert server.call("GET", "/apis", who=ANNE)[0] == 200


def test_a_later_start_changes_nothing_without_need(server):
    before = server.core.store.revision
    create_default_roles(server.resources)
    assert server.core.store.revision == before
