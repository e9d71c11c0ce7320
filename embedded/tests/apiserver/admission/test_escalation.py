"""Nobody gives away what they do not hold."""

import pytest

from embedded.tests.apiserver.secured import GROUP, RBAC, Secured, rule, user

ANNE = user("anne")
ROLES, BINDINGS = f"{RBAC}/namespaces/default/roles", f"{RBAC}/namespaces/default/rolebindings"
CLUSTER_ROLES, CLUSTER_BINDINGS = f"{RBAC}/clusterroles", f"{RBAC}/clusterrolebindings"
MERGE = {"content_type": "application/merge-patch+json"}
WRITE = "create update patch delete get"


@pytest.fixture
def server(clock):
    """Anne may write all four kinds, and reads pods everywhere."""
    found = Secured(clock)
    kinds = "roles rolebindings clusterroles clusterrolebindings"
    found.grant("anne", rule(WRITE, kinds, GROUP), rule("get list", "pods"), name="writer")
    return found


def role(*rules, name="r", **more):
    return {"metadata": {"name": name}, "rules": list(rules)} | more


def binding(name="r", kind="ClusterRole", **more):
    reference = {"apiGroup": GROUP, "kind": kind, "name": name}
    subjects = [{"kind": "User", "apiGroup": GROUP, "name": "bert"}]
    return {"metadata": {"name": "b"}, "roleRef": reference, "subjects": subjects} | more


REFUSAL = (
    'roles.rbac.authorization.k8s.io "r" is forbidden: user "anne" (groups=["system:authenticated"]) is attempting to '
    'grant RBAC permissions not currently held:\n{APIGroups:[""], Resources:["nodes"], Verbs:["get"]}\n'
    '{APIGroups:[""], Resources:["pods"], Verbs:["watch" "delete"]}'
)


def test_the_refusal_names_what_is_lacking(server):
    """Verbs of one resource together, in the words and the form of kube-apiserver."""
    code, answer = server.call("POST", ROLES, role(rule("get watch delete", "pods"), rule("get", "nodes")), ANNE)
    assert (code, answer["reason"], answer["message"]) == (403, "Forbidden", REFUSAL)
    assert answer["details"] == {"name": "r", "group": GROUP, "kind": "roles"}


GIVEN = {
    "what is held": (ROLES, role(rule("get", "pods")), 201),
    "what is held everywhere": (CLUSTER_ROLES, role(rule("list", "pods")), 201),
    "nothing": (ROLES, role(), 201),
    "another verb": (ROLES, role(rule("delete", "pods")), 403),
    "everything": (CLUSTER_ROLES, role(rule("*", "*", "*")), 403),
    "one object": (ROLES, role(rule("get", "pods", names="p")), 201),
    "paths": (CLUSTER_ROLES, role({"verbs": ["get"], "nonResourceURLs": ["/metrics"]}), 403),
    "paths everybody may read": (CLUSTER_ROLES, role({"verbs": ["get"], "nonResourceURLs": ["/api/v1"]}), 201),
    "what selectors will gather": (
        CLUSTER_ROLES,
        role(aggregationRule={"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}),
        403,
    ),
    "a role that is held": (BINDINGS, binding("writer"), 201),
    "a role that is held, everywhere": (CLUSTER_BINDINGS, binding("writer"), 201),
    "a role that is not": (BINDINGS, binding("cluster-admin"), 403),
    "a role that is not there": (BINDINGS, binding("nowhere"), 404),
}


@pytest.mark.parametrize(("path", "body", "code"), GIVEN.values(), ids=GIVEN)
def test_what_is_held_can_be_given(server, path, body, code):
    assert server.call("POST", path, body, ANNE)[0] == code


def test_a_role_cannot_be_widened(server):
    """Whichever way it is written; narrowing it needs no more than the verb."""
    server.make(ROLES, role(rule("get", "pods")))
    wider = role(rule("get", "pods secrets"))
    assert server.call("PATCH", f"{ROLES}/r", {"rules": wider["rules"]}, ANNE, **MERGE)[0] == 403
    assert server.call("PUT", f"{ROLES}/r", wider, ANNE)[0] == 403
    applied = wider | {"apiVersion": f"{GROUP}/v1", "kind": "Role"}
    by_apply = {"content_type": "application/apply-patch+yaml"}
    assert server.call("PATCH", f"{ROLES}/r?fieldManager=x&force=true", applied, ANNE, **by_apply)[0] == 403
    assert server.call("PATCH", f"{ROLES}/r", {"rules": []}, ANNE, **MERGE)[0] == 200


def test_a_role_beyond_ones_own_can_only_be_let_go(server):
    """Finalizers may be taken off it, which garbage collection needs; labels may not change."""
    wide = role(rule("*", "*", "*"))
    wide["metadata"]["finalizers"] = ["example.com/x"]
    server.make(CLUSTER_ROLES, wide)
    where = f"{CLUSTER_ROLES}/r"
    assert server.call("PATCH", where, {"metadata": {"labels": {"a": "b"}}}, ANNE, **MERGE)[0] == 403
    assert server.call("PATCH", where, {"metadata": {"finalizers": None}}, ANNE, **MERGE)[0] == 200
    assert server.call("DELETE", where, None, ANNE)[0] == 200


def test_gathering_needs_everything(server):
    """What a selector will find is not known in advance."""
    gathers = role(aggregationRule={"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]})
    code, answer = server.call("POST", CLUSTER_ROLES, gathers, ANNE)
    assert code == 403
    assert answer["message"].endswith("must have cluster-admin privileges to use the aggregationRule")


VERBS = {
    "escalate": (rule("escalate", "roles", GROUP), ROLES, role(rule("*", "*", "*"))),
    "escalate one": (rule("escalate", "roles", GROUP, names="r"), f"{ROLES}/r", role(rule("*", "*", "*"))),
    "bind": (rule("bind", "clusterroles", GROUP), BINDINGS, binding("cluster-admin")),
    "bind one": (rule("bind", "clusterroles", GROUP, names="cluster-admin"), BINDINGS, binding("cluster-admin")),
}


@pytest.mark.parametrize(("verb", "path", "body"), VERBS.values(), ids=VERBS)
def test_a_verb_of_its_own_lifts_the_rule(server, verb, path, body):
    server.make(ROLES, role())
    method, path = ("PUT", path) if path.endswith("/r") else ("POST", path)
    body = body | {"metadata": {"name": "new"}} if method == "POST" else body
    assert server.call(method, path, body, ANNE)[0] == 403
    server.grant("anne", verb, namespace="default")
    assert server.call(method, path, body, ANNE)[0] in (200, 201)
