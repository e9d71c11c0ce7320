"""Roles and bindings: what they grant, what stays refused, and who may write them."""

from __future__ import annotations

from typing import Any

from embedded.tests.conformance import pages
from embedded.tests.conformance import resources as r
from embedded.tests.conformance.behaviour import Via, behaviour
from embedded.tests.conformance.case import Case
from embedded.tests.conformance.resources import CONFIG_MAPS, Object, Resource

_RBAC = "https://kubernetes.io/docs/reference/access-authn-authz/rbac/"
_GROUP = "rbac.authorization.k8s.io"
_ROLES = Resource(_GROUP, "v1", "roles", "Role")
_ROLE_BINDINGS = Resource(_GROUP, "v1", "rolebindings", "RoleBinding")
_CLUSTER_ROLES = Resource(_GROUP, "v1", "clusterroles", "ClusterRole", False)


def _rule(verbs: str, resources: str = "configmaps", group: str = "", names: str = "") -> Object:
    found: Object = {"verbs": verbs.split(), "apiGroups": [group], "resources": resources.split()}
    return found | ({"resourceNames": names.split()} if names else {})


def _user(t: Case) -> str:
    """Somebody nothing else speaks of."""
    return f"user-of-{t.ns}"


def _as(t: Case) -> dict[str, str]:
    return {"Impersonate-User": _user(t)}


def _binding(t: Case, name: str = "b", role: str = "r", kind: str = "Role") -> Object:
    reference = {"apiGroup": _GROUP, "kind": kind, "name": role}
    subjects = [{"apiGroup": _GROUP, "kind": "User", "name": _user(t)}]
    return _ROLE_BINDINGS.object(name, roleRef=reference, subjects=subjects)


def _granted(t: Case, *rules: Object) -> None:
    """Give the user a role with these rules, by the client under test."""
    t.create(_ROLES, _ROLES.object("r", rules=list(rules)))
    t.create(_ROLE_BINDINGS, _binding(t))


def _code(t: Case, method: str, path: str, **more: Any) -> int:
    """What the server answers the user."""
    return t.raw.answer(method, path, headers=_as(t) | more.pop("headers", {}), **more).code


def _allowed(t: Case, method: str, path: str, **more: Any) -> None:
    """As soon as the authorizer has seen the role."""
    t.eventually(lambda: _code(t, method, path, **more) < 300, f"{method} {path} allowed")


@behaviour(_RBAC + "#role-example")
def a_role_grants_its_verbs_in_its_namespace(t: Case) -> None:
    t.given(CONFIG_MAPS, r.config_map("m"))
    assert _code(t, "GET", t.path(CONFIG_MAPS, "m")) == 403
    _granted(t, _rule("get"))
    _allowed(t, "GET", t.path(CONFIG_MAPS, "m"))
    assert _code(t, "GET", t.path(CONFIG_MAPS)) == 403
    assert _code(t, "DELETE", t.path(CONFIG_MAPS, "m")) == 403
    assert _code(t, "GET", CONFIG_MAPS.path("kube-system", "m")) == 403


@behaviour(_RBAC + "#referring-to-resources", Via.CODE)
def a_role_may_name_its_objects(t: Case) -> None:
    for name in ("one", "two"):
        t.given(CONFIG_MAPS, r.config_map(name))
    _granted(t, _rule("get list", names="one"))
    _allowed(t, "GET", t.path(CONFIG_MAPS, "one"))
    assert _code(t, "GET", t.path(CONFIG_MAPS, "two")) == 403
    assert _code(t, "GET", t.path(CONFIG_MAPS), query={"fieldSelector": "metadata.name=one"}) == 200
    assert _code(t, "GET", t.path(CONFIG_MAPS), query={"fieldSelector": "metadata.name=two"}) == 403
    assert _code(t, "GET", t.path(CONFIG_MAPS)) == 403


@behaviour(_RBAC + "#referring-to-resources", Via.CODE)
def a_sub_resource_is_granted_by_itself(t: Case) -> None:
    t.given(r.PODS, r.pod("p"))
    _granted(t, _rule("patch", "pods/status"))
    merge = {"body": {"status": {"message": "hello"}}, "headers": {"Content-Type": "application/merge-patch+json"}}
    _allowed(t, "PATCH", t.path(r.PODS, "p", "status"), **merge)
    assert _code(t, "PATCH", t.path(r.PODS, "p"), **merge) == 403


@behaviour(_RBAC + "#rolebinding-and-clusterrolebinding", Via.RAW | Via.KUBECTL)
def a_refusal_says_who_may_not_do_what(t: Case) -> None:
    words = (
        f'configmaps is forbidden: User "{_user(t)}" cannot list resource "configmaps" in API group "" in the '
        f'namespace "{t.ns}"'
    )
    if t.by_kubectl:
        told = t.kubectl("get", "configmaps", f"--as={_user(t)}", code=1).err
        assert told.strip() == f"Error from server (Forbidden): {words}"
        return
    answer = t.raw.answer("GET", t.path(CONFIG_MAPS), headers=_as(t))
    assert (answer.code, answer.json["reason"], answer.json["message"]) == (403, "Forbidden", words)
    assert answer.json["details"] == {"kind": "configmaps"}


@behaviour(pages.AUTHORIZATION, Via.RAW | Via.KUBECTL)
def one_may_ask_for_somebody_else(t: Case) -> None:
    _granted(t, _rule("list"))
    _allowed(t, "GET", t.path(CONFIG_MAPS))
    for verb, expected in (("list", True), ("delete", False)):
        if t.by_kubectl:
            arguments = ("auth", "can-i", verb, "configmaps", f"--as={_user(t)}")
            assert t.kubectl(*arguments, code=0 if expected else 1).out.strip() == ("yes" if expected else "no")
            continue
        wanted = {"verb": verb, "resource": "configmaps", "namespace": t.ns}
        spec = {"user": _user(t), "resourceAttributes": wanted}
        body = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
        found = t.raw.call("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", body=body)
        assert found["status"]["allowed"] is expected


@behaviour(pages.AUTHORIZATION, Via.RAW)
def one_may_list_what_one_may_do(t: Case) -> None:
    _granted(t, _rule("list"))
    _allowed(t, "GET", t.path(CONFIG_MAPS))
    body = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview", "spec": {"namespace": t.ns}}
    path = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews"
    found = t.raw.call("POST", path, body=body, headers=_as(t))["status"]
    assert _rule("list") in found["resourceRules"] and found["nonResourceRules"]


@behaviour(_RBAC + "#restrictions-on-role-creation-or-update", Via.RAW)
def nobody_writes_a_role_beyond_their_own(t: Case) -> None:
    _granted(t, _rule("create", "roles", _GROUP), _rule("get"))
    narrow, wide = _ROLES.object("narrow", rules=[_rule("get")]), _ROLES.object("wide", rules=[_rule("get delete")])
    _allowed(t, "POST", t.path(_ROLES), body=narrow)
    answer = t.raw.answer("POST", t.path(_ROLES), body=wide, headers=_as(t))
    assert answer.code == 403
    assert "is attempting to grant RBAC permissions not currently held:" in answer.json["message"]
    assert '{APIGroups:[""], Resources:["configmaps"], Verbs:["delete"]}' in answer.json["message"]


@behaviour(_RBAC + "#restrictions-on-role-binding-creation-or-update", Via.RAW)
def nobody_binds_a_role_beyond_their_own(t: Case) -> None:
    _granted(t, _rule("create", "rolebindings", _GROUP), _rule("get"))
    t.given(_ROLES, _ROLES.object("narrow", rules=[_rule("get")]))
    t.given(_ROLES, _ROLES.object("wide", rules=[_rule("*", "*", "*")]))
    _allowed(t, "POST", t.path(_ROLE_BINDINGS), body=_binding(t, "narrow", "narrow"))
    assert _code(t, "POST", t.path(_ROLE_BINDINGS), body=_binding(t, "wide", "wide")) == 403


@behaviour(_RBAC + "#clusterrole-example")
def a_binding_keeps_its_role(t: Case) -> None:
    t.given(_ROLE_BINDINGS, _binding(t))
    with t.refused("Invalid", "cannot change roleRef"):
        t.replace(_ROLE_BINDINGS, _binding(t, role="another"))


@behaviour(_RBAC + "#aggregated-clusterroles", Via.ALL, needs="controllers")
def a_cluster_role_gathers_those_with_its_label(t: Case) -> None:
    label = {f"example.com/part-of-{t.ns}": "true"}
    whole = _CLUSTER_ROLES.object(f"whole-{t.ns}", aggregationRule={"clusterRoleSelectors": [{"matchLabels": label}]})
    t.given(_CLUSTER_ROLES, whole)
    t.create(_CLUSTER_ROLES, _CLUSTER_ROLES.object(f"part-{t.ns}", label, rules=[_rule("get")]))
    found = f"whole-{t.ns}"
    t.eventually(lambda: t.now(_CLUSTER_ROLES, found).get("rules") == [_rule("get")], "the rule gathered")
    t.delete(_CLUSTER_ROLES, f"part-{t.ns}")
    t.eventually(lambda: not t.now(_CLUSTER_ROLES, found).get("rules"), "the rule gone")
    t.delete(_CLUSTER_ROLES, found)


@behaviour(pages.AUTHENTICATION + "#user-impersonation", Via.RAW | Via.KUBECTL)
def one_acts_as_somebody_of_groups(t: Case) -> None:
    groups = ["painters", "sinkers"]
    if t.by_kubectl:
        arguments = (f"--as={_user(t)}", *(f"--as-group={group}" for group in groups), "-o", "json")
        found = t.kubectl("auth", "whoami", *arguments).json["status"]["userInfo"]
    else:
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
        headers = _as(t) | {"Impersonate-Group": "painters", "Impersonate-Extra-Scopes": "all"}
        path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
        found = t.raw.call("POST", path, body=body, headers=headers)["status"]["userInfo"]
        assert found.pop("extra") == {"scopes": ["all"]}
        groups = groups[:1]
    assert found == {"username": _user(t), "groups": [*groups, "system:authenticated"]}


def _node(t: Case, **fields: Any) -> tuple[str, dict[str, str]]:
    """A node of the case's own, registered by itself, and who asks for it."""
    name = t.unique("node")
    headers = {"Impersonate-User": f"system:node:{name}", "Impersonate-Group": "system:nodes"}
    body = r.NODES.object(name, spec={"taints": [{"key": "example.com/a", "effect": "NoSchedule"}]}, **fields)
    t.removed_later(r.NODES, name)
    t.raw.call("POST", r.NODES.path(), body=body, headers=headers)
    return name, headers


def _patched_by(t: Case, name: str, headers: dict[str, str], body: Object, subresource: str = "") -> tuple[int, str]:
    merge = {"Content-Type": "application/merge-patch+json"}
    answer = t.raw.answer("PATCH", r.NODES.path("", name, subresource), body=body, headers=headers | merge)
    return answer.code, answer.json.get("message", "")


@behaviour(pages.ADMISSION + "#noderestriction", Via.RAW)
def a_node_does_not_change_its_own_taints(t: Case) -> None:
    name, itself = _node(t)
    for subresource in ("", "status"):
        code, words = _patched_by(t, name, itself, {"spec": {"taints": None}}, subresource)
        assert (code, f'node "{name}" is not allowed to modify taints' in words) == (403, True)
    assert _patched_by(t, name, itself, {"metadata": {"annotations": {"a": "b"}}})[0] == 200
    assert "example.com/a" in [taint["key"] for taint in t.now(r.NODES, name)["spec"]["taints"]]


@behaviour(pages.ADMISSION + "#noderestriction", Via.RAW)
def a_node_does_not_set_the_labels_that_isolate_it(t: Case) -> None:
    name, itself = _node(t, labels={"kubernetes.io/arch": "amd64"})
    for label in ("node-restriction.kubernetes.io/x", "foo.k8s.io/x", "node-role.kubernetes.io/x"):
        code, words = _patched_by(t, name, itself, {"metadata": {"labels": {label: "1"}}})
        assert (code, f"is not allowed to modify labels: {label}" in words) == (403, True)
    for label in ("topology.kubernetes.io/zone", "x.kubelet.kubernetes.io/x", "example.com/x"):
        assert _patched_by(t, name, itself, {"metadata": {"labels": {label: "1"}}})[0] == 200
    other = r.NODES.object(t.unique("node"), {"node-restriction.kubernetes.io/x": "1"})
    headers = itself | {"Impersonate-User": f"system:node:{other['metadata']['name']}"}
    assert t.raw.answer("POST", r.NODES.path(), body=other, headers=headers).code == 403
