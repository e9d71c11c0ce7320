"""Questions about permissions, as kubectl auth can-i and other servers ask them."""

import pytest

from embedded.tests.apiserver.secured import ROOT, Secured, rule, user

ANNE = user("anne")
BASE = "/apis/authorization.k8s.io/v1"
PODS = {"verb": "get", "resource": "pods", "namespace": "default"}


@pytest.fixture
def server(clock):
    """Anne reads pods of `default`, the pod `one` elsewhere, and metrics."""
    found = Secured(clock)
    found.grant("anne", rule("get", "pods"), namespace="default")
    found.grant("anne", {"verbs": ["get"], "nonResourceURLs": ["/metrics"]}, rule("get", "pods", names="one"))
    return found


def review(server, plural="selfsubjectaccessreviews", who=ANNE, scope="", **body):
    return server.call("POST", f"{BASE}{scope}/{plural}", body, who)


def resource(**change):
    return {"resourceAttributes": PODS | change}


ASKED = {
    "what is granted": (resource(), True),
    "another verb": (resource(verb="list"), False),
    "another namespace": (resource(namespace="shop"), False),
    "everywhere": (resource(namespace=""), False),
    "a named object": (resource(namespace="shop", name="one"), True),
    "a sub-resource": (resource(subresource="log"), False),
    "a path": ({"nonResourceAttributes": {"verb": "get", "path": "/metrics"}}, True),
    "another path": ({"nonResourceAttributes": {"verb": "get", "path": "/healthz/x"}}, False),
}


@pytest.mark.parametrize(("spec", "allowed"), ASKED.values(), ids=ASKED)
def test_anybody_may_ask_about_themselves(server, spec, allowed):
    code, found = review(server, spec=spec)
    assert code == 201 and found["status"]["allowed"] is allowed
    assert found["spec"] == spec  # the question comes back with its answer


def test_the_answer_says_why(server):
    found = review(server, spec=resource())[1]
    assert found["status"]["reason"] == 'RBAC: allowed by RoleBinding "test/default" of Role "test" to User "anne"'


def test_who_may_ask_about_others_does(server):
    """With groups, and what else is known of them."""
    assert review(server, "subjectaccessreviews", spec=resource() | {"user": "bert"})[0] == 403
    server.grant("carl", rule("create", "subjectaccessreviews", "authorization.k8s.io"), name="reviewer")
    for who, groups, allowed in (("anne", [], True), ("bert", [], False), ("bert", ["system:masters"], True)):
        spec = resource() | {"user": who, "groups": groups}
        assert review(server, "subjectaccessreviews", user("carl"), spec=spec)[1]["status"]["allowed"] is allowed


def test_a_review_of_one_namespace(server):
    """For admins of one, who may not ask about others."""
    local, within = "localsubjectaccessreviews", {"metadata": {"namespace": "default"}}
    scope = "/namespaces/default"
    spec = resource() | {"user": "anne"}
    assert review(server, local, ROOT, scope, spec=spec, **within)[1]["status"]["allowed"]
    assert review(server, local, ROOT, "/namespaces/shop", spec=spec, **within)[0] == 400
    other = resource(namespace="shop") | {"user": "anne"}
    code, answer = review(server, local, ROOT, scope, spec=other, **within)
    assert code == 422 and "must match metadata.namespace" in answer["message"]
    assert review(server, local, ROOT, spec=spec)[0] == 405


REFUSED = {
    "nothing": ({}, "exactly one of nonResourceAttributes or resourceAttributes must be specified"),
    "both": (
        resource() | {"nonResourceAttributes": {"verb": "get", "path": "/x"}},
        "cannot be specified in combination with resourceAttributes",
    ),
    "about nobody": (resource() | {"user": ""}, "at least one of user or group must be specified"),
}


@pytest.mark.parametrize(("spec", "why"), REFUSED.values(), ids=REFUSED)
def test_a_question_must_make_sense(server, spec, why):
    code, answer = review(server, "subjectaccessreviews", ROOT, spec=spec)
    assert code == 422 and why in answer["message"]


def test_all_rules_of_a_user_are_listed(server):
    """Those of the namespace and those of the whole cluster."""
    found = review(server, "selfsubjectrulesreviews", spec={"namespace": "default"})[1]["status"]
    assert rule("get", "pods") in found["resourceRules"] and rule("get", "pods", names="one") in found["resourceRules"]
    assert {"verbs": ["get"], "nonResourceURLs": ["/metrics"]} in found["nonResourceRules"]
    assert found["incomplete"] is False
    elsewhere = review(server, "selfsubjectrulesreviews", spec={"namespace": "shop"})[1]["status"]
    assert rule("get", "pods") not in elsewhere["resourceRules"]
    assert review(server, "selfsubjectrulesreviews", spec={})[0] == 400


def test_a_node_is_told_that_the_list_is_not_all(server):
    """What it may read depends on the object."""
    found = review(server, "selfsubjectrulesreviews", user("system:node:n"), spec={"namespace": "default"})[1]
    assert found["status"]["incomplete"] is True
    assert "node authorizer does not support user rule resolution" in found["status"]["evaluationError"]


def test_reviews_are_neither_kept_nor_read(server):
    assert server.call("GET", f"{BASE}/subjectaccessreviews")[0] == 405
    assert server.call("GET", f"{BASE}/subjectaccessreviews/x")[0] == 404


def test_a_question_has_no_metadata(server):
    """It is no object that is kept; one about a namespace may name that."""
    code, answer = review(server, spec=resource(), metadata={"labels": {"a": "b"}})
    assert code == 422 and answer["message"].endswith('metadata: Invalid value: {"labels":{"a":"b"}}: must be empty')
    local = {"plural": "localsubjectaccessreviews", "who": ROOT, "scope": "/namespaces/default"}
    spec = resource() | {"user": "anne"}
    for metadata, wanted in (({}, 201), ({"namespace": "default"}, 201), ({"name": "x"}, 422)):
        assert review(server, **local, spec=spec, metadata=metadata)[0] == wanted
