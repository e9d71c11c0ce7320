"""Roles and bindings as clients write them: what is refused, and in which words."""

import pytest

GROUP = "rbac.authorization.k8s.io"
URLS = {"verbs": ["get"], "nonResourceURLs": ["/healthz"]}
RULE = {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}


def path(plural):
    scope = "/namespaces/default" if plural in ("roles", "rolebindings") else ""
    return f"/apis/{GROUP}/v1{scope}/{plural}"


def role(*rules, **more):
    return {"metadata": {"name": "r"}, "rules": list(rules)} | more


def without(rule, key):
    return {name: value for name, value in rule.items() if name != key}


def binding(*subjects, **reference):
    found = {"apiGroup": GROUP, "kind": "ClusterRole", "name": "r"} | reference
    return {"metadata": {"name": "b"}, "roleRef": found, "subjects": list(subjects)}


def subject(kind="User", name="anne", **more):
    return {"kind": kind, "name": name} | more


def named(name):
    return {"metadata": {"name": name}, "rules": []}


SELECTS = {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}
TAKEN = {
    "a rule": ("roles", role(RULE)),
    "paths in a ClusterRole": ("clusterroles", role(URLS)),
    "names with colons": ("clusterroles", named("system:controller:x")),
    "selectors": ("clusterroles", role(aggregationRule=SELECTS)),
    "a user": ("clusterrolebindings", binding(subject())),
    "a group": ("rolebindings", binding(subject("Group", "painters"), kind="Role")),
    "an account of the binding's namespace": ("rolebindings", binding(subject("ServiceAccount"))),
    "nobody": ("clusterrolebindings", binding()),
}


@pytest.mark.parametrize(("plural", "body"), TAKEN.values(), ids=TAKEN)
def test_what_is_right_is_taken(api, plural, body):
    assert api.call("POST", path(plural), body)[0] == 201


REFUSED = {
    "no verbs": (
        *("roles", role(without(RULE, "verbs")), "rules[0].verbs"),
        "Required value: verbs must contain at least one value",
    ),
    "no groups": (
        *("roles", role(without(RULE, "apiGroups")), "rules[0].apiGroups"),
        "Required value: resource rules must supply at least one api group",
    ),
    "no resources": (
        *("clusterroles", role(without(RULE, "resources")), "rules[0].resources"),
        "Required value: resource rules must supply at least one resource",
    ),
    "paths in a Role": (
        *("roles", role(URLS), "rules[0].nonResourceURLs"),
        'Invalid value: ["/healthz"]: namespaced rules cannot apply to non-resource URLs',
    ),
    "paths and resources": (
        *("clusterroles", role(RULE | URLS), "rules[0].nonResourceURLs"),
        'Invalid value: ["/healthz"]: rules cannot apply to both regular resources and non-resource URLs',
    ),
    "no selectors": (
        *("clusterroles", role(aggregationRule={"clusterRoleSelectors": []})),
        "aggregationRule.clusterRoleSelectors",
        "Required value: at least one clusterRoleSelector required if aggregationRule is non-nil",
    ),
    "a name with a slash": ("clusterroles", named("a/b"), "metadata.name", "may not contain '/'"),
    "another group's role": (
        *("rolebindings", binding(apiGroup="x"), "roleRef.apiGroup"),
        f'Unsupported value: "x": supported values: "{GROUP}"',
    ),
    "a Role for the whole cluster": (
        *("clusterrolebindings", binding(kind="Role"), "roleRef.kind"),
        'Unsupported value: "Role": supported values: "ClusterRole"',
    ),
    "no role": ("rolebindings", binding(name=""), "roleRef.name", "Required value"),
    "an unknown subject": (
        *("rolebindings", binding(subject("Robot")), "subjects[0].kind"),
        'Unsupported value: "Robot": supported values: "Group", "ServiceAccount", "User"',
    ),
    "a subject of another group": (
        *("rolebindings", binding(subject(apiGroup="x")), "subjects[0].apiGroup"),
        f'Unsupported value: "x": supported values: "{GROUP}"',
    ),
    "an account in a group": (
        *("rolebindings", binding(subject("ServiceAccount", apiGroup=GROUP)), "subjects[0].apiGroup"),
        f'Unsupported value: "{GROUP}": supported values: ""',
    ),
    "an account of nowhere": (
        *("clusterrolebindings", binding(subject("ServiceAccount")), "subjects[0].namespace"),
        "Required value",
    ),
}


@pytest.mark.parametrize(("plural", "body", "field", "message"), REFUSED.values(), ids=REFUSED)
def test_what_is_wrong_is_refused(api, plural, body, field, message):
    """With the field and the words of kube-apiserver."""
    code, answer = api.call("POST", path(plural), body)
    assert code == 422, answer
    causes = {cause["field"]: cause["message"] for cause in answer["details"]["causes"]}
    assert message in causes[field]


def test_groups_are_filled_in(api):
    """Of the role and of users and groups; accounts have none."""
    bare = {"metadata": {"name": "b"}, "roleRef": {"kind": "ClusterRole", "name": "r"}}
    made = api.post(path("rolebindings"), bare | {"subjects": [subject(), subject("ServiceAccount", "robot")]})
    assert made["roleRef"]["apiGroup"] == GROUP
    assert [found.get("apiGroup") for found in made["subjects"]] == [GROUP, None]


def test_a_binding_keeps_its_role(api):
    """Whom it is for may change."""
    where = path("clusterrolebindings") + "/b"
    api.post(path("clusterrolebindings"), binding(subject()))
    assert api.patch(where, {"subjects": [subject(name="bert", apiGroup=GROUP)]})[0] == 200
    code, answer = api.patch(where, {"roleRef": {"name": "other"}})
    assert code == 422 and answer["message"].endswith("cannot change roleRef")


def test_columns_are_those_of_kubectl(api):
    """Who is bound shows with -o wide."""
    found = binding(subject(), subject("Group", "painters"), subject("ServiceAccount", "robot", namespace="shop"))
    api.post(path("clusterrolebindings"), found)
    api.post(path("clusterroles"), role(RULE))
    table = "application/json;as=Table;v=v1;g=meta.k8s.io"
    rows = {
        plural: api.call("GET", path(plural), accept=table)[1] for plural in ("clusterrolebindings", "clusterroles")
    }
    titles = [column["name"] for column in rows["clusterrolebindings"]["columnDefinitions"]]
    assert titles == ["Name", "Role", "Age", "Users", "Groups", "ServiceAccounts"]
    cells = rows["clusterrolebindings"]["rows"][0]["cells"]
    assert (cells[1], *cells[3:]) == ("ClusterRole/r", "anne", "painters", "shop/robot")
    assert rows["clusterroles"]["rows"][0]["cells"] == ["r", "2026-09-21T14:13:20Z"]
