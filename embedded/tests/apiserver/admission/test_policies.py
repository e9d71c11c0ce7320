"""ValidatingAdmissionPolicies. What must hold is told in
https://kubernetes.io/docs/reference/access-authn-authz/validating-admission-policy/.
"""

import asyncio
import json
from urllib.parse import parse_qsl, urlsplit

import pytest

from embedded.apiserver.bootstrap import create_system_objects
from embedded.apiserver.http.router import Router
from embedded.apiserver.request.attributes import Decision
from embedded.apiserver.request.messages import Request
from embedded.apiserver.request.user_info import AUTHENTICATED, MASTERS, NODE_NAME, UserInfo

REGISTRATION = "/apis/admissionregistration.k8s.io/v1"
POLICIES, BINDINGS = f"{REGISTRATION}/validatingadmissionpolicies", f"{REGISTRATION}/validatingadmissionpolicybindings"
MAPS = "/api/v1/namespaces/default/configmaps"
PODS = "/api/v1/namespaces/default/pods"
NODES = "/api/v1/nodes"
ADMIN = UserInfo("admin", groups=(MASTERS, AUTHENTICATED))
DENIED = "ValidatingAdmissionPolicy 'p' with binding 'b' denied request: "


class Permits:
    """Everybody may do everything but `impersonate`."""

    def decide(self, attributes):
        return Decision(attributes.verb != "impersonate", f"asked about {attributes.user.name}")


class World:
    """A core whose requests come from whom one says."""

    def __init__(self, clock):
        self.core = Router(clock, authorizer=Permits())
        create_system_objects(self.core.resources)

    def raw(self, method, url, body=None, user=ADMIN, kind="application/json"):
        parts = urlsplit(url)
        data = b"" if body is None else json.dumps(body).encode()
        query = dict(parse_qsl(parts.query))
        return asyncio.run(self.core.handle(Request(method, parts.path, query, {"content-type": kind}, data, user)))

    def call(self, method, url, body=None, user=ADMIN, kind="application/json"):
        answer = self.raw(method, url, body, user, kind)
        return answer.status, json.loads(answer.body)

    def post(self, url, body, user=ADMIN):
        code, obj = self.call("POST", url, body, user)
        assert code == 201, obj
        return obj

    def enforce(self, spec, binding=None):
        """Store a policy `p` and a binding `b` of it."""
        self.post(POLICIES, policy(**spec))
        self.post(BINDINGS, bound(**(binding or {})))


@pytest.fixture
def world(clock):
    return World(clock)


def rule(resources=("configmaps",), operations=("*",), groups=("",), **rest):
    found = {"apiGroups": list(groups), "apiVersions": ["*"], "operations": list(operations)}
    return found | {"resources": list(resources)} | rest


def policy(name="p", expression="false", rules=None, match=None, **spec):
    matching = {"resourceRules": rules or [rule()]} | (match or {})
    found = {"matchConstraints": matching, "validations": [{"expression": expression}]}
    return {"metadata": {"name": name}, "spec": found | spec}


def bound(name="b", to="p", actions=("Deny",), **spec):
    return {"metadata": {"name": name}, "spec": {"policyName": to, "validationActions": list(actions)} | spec}


def config_map(name="c", labels=None, **data):
    return {"metadata": {"name": name} | ({"labels": labels} if labels else {}), "data": data}


def pod(name="w", **spec):
    return {"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "busybox"}]} | spec}


# -- what a policy says ---------------------------------------------------------------------------------------

SIZE = {"name": "size", "expression": "object.data.size()"}
TWICE = {"name": "twice", "expression": "variables.size * 2"}
BROKEN = {"name": "broken", "expression": "object.nope"}
SAYINGS = {
    "an expression": ({"expression": "object.data.size() > 5"}, "failed expression: object.data.size() > 5"),
    "that holds": ({"expression": "object.data.a == '1'"}, None),
    "a message": ({"validations": [{"expression": "false", "message": " no "}]}, "no"),
    "a made message": (
        {"validations": [{"expression": "false", "messageExpression": "'no ' + object.data.a", "message": "x"}]},
        "no 1",
    ),
    "a message that cannot be made": (
        {"validations": [{"expression": "false", "messageExpression": "string(object.nope)", "message": "x"}]},
        "x",
    ),
    "the first of several": (
        {"validations": [{"expression": "true"}, {"expression": "1 > 2"}, {"expression": "false"}]},
        "failed expression: 1 > 2",
    ),
    "an error": (
        {"expression": "object.nope == 1"},
        "expression 'object.nope == 1' resulted in error: no such key: nope",
    ),
    "an error that is let pass": ({"expression": "object.nope == 1", "failurePolicy": "Ignore"}, None),
    "false is no failure": ({"failurePolicy": "Ignore"}, "failed expression: false"),
    "variables": (
        {"expression": "variables.twice < 4", "variables": [SIZE, TWICE]},
        "failed expression: variables.twice < 4",
    ),
    "a variable nobody asks for": (
        {"expression": "has(object.x) ? variables.broken == 1 : true", "variables": [BROKEN]},
        None,
    ),
    "a variable in a message": (
        {
            "variables": [SIZE],
            "validations": [{"expression": "false", "messageExpression": "'it has ' + string(variables.size)"}],
        },
        "it has 2",
    ),
    "a variable without a value": (
        {"expression": "variables.broken == 1", "variables": [BROKEN]},
        "expression 'variables.broken == 1' resulted in error: composited variable \"broken\" fails to evaluate: no "
        "such key: nope",
    ),
    "a variable in a text is none": (
        {"expression": "'variables.size' == r'variables.twice' // variables.size", "variables": [SIZE]},
        "failed expression: 'variables.size' == r'variables.twice' // variables.size",
    ),
    "a condition that does not hold": (
        {"matchConditions": [{"name": "m", "expression": "request.operation == 'DELETE'"}]},
        None,
    ),
    "a condition with an error": (
        {"matchConditions": [{"name": "m", "expression": "object.nope == 1"}]},
        "expression 'object.nope == 1' resulted in error: no such key: nope",
    ),
    "one condition is enough": (
        {
            "matchConditions": [
                {"name": "m", "expression": "object.nope == 1"},
                {"name": "n", "expression": "false"},
            ]
        },
        None,
    ),
    "the request": (
        {
            "expression": "request.kind.kind != 'ConfigMap' || request.resource.resource != 'configmaps' || "
            "request.name != 'c' || request.namespace != 'default' || request.userInfo.username != 'admin' || "
            "request.dryRun || has(request.subResource) || request.options.kind != 'CreateOptions'"
        },
        "failed expression: request.kind.kind",
    ),
    "the namespace": (
        {"expression": "namespaceObject.metadata.name != 'default' || namespaceObject.status.phase != 'Active'"},
        "failed expression: namespaceObject",
    ),
    "its age": ({"expression": "namespaceObject.metadata.creationTimestamp > timestamp('2000-01-01T00:00:00Z')"}, None),
    "no old object": ({"expression": "oldObject != null"}, "failed expression: oldObject != null"),
    "an annotation": (
        {"validations": [], "auditAnnotations": [{"key": "k", "valueExpression": "'v' + object.data.a"}]},
        None,
    ),
    "an annotation with an error": (
        {"validations": [], "auditAnnotations": [{"key": "k", "valueExpression": "string(object.nope)"}]},
        "expression 'string(object.nope)' resulted in error: no such key: nope",
    ),
    "somebody may": ({"expression": "authorizer.group('').resource('pods').check('impersonate').allowed()"}, "failed"),
    "the request's own resource": ({"expression": "authorizer.requestResource.check('update').allowed()"}, None),
    "a path": ({"expression": "authorizer.path('/metrics').check('impersonate').allowed()"}, "failed"),
    "a service account": (
        {
            "expression": "authorizer.serviceAccount('a', 'b').path('/x').check('get').reason() != "
            "'asked about system:serviceaccount:a:b'"
        },
        "failed",
    ),
}


@pytest.mark.parametrize(("spec", "why"), SAYINGS.values(), ids=SAYINGS)
def test_a_write_is_denied_in_the_words_of_the_policy(world, spec, why):
    """422 Invalid, its one cause the message."""
    world.enforce(spec)
    code, obj = world.call("POST", MAPS, config_map(a="1", b="2"))
    if why is None:
        assert code == 201, obj
        return
    assert (code, obj["reason"]) == (422, "Invalid")
    assert obj["message"].startswith(f'configmaps "c" is forbidden: {DENIED}{why}')
    [cause] = obj["details"]["causes"]
    assert cause["message"].startswith(DENIED) and (obj["details"]["name"], obj["details"]["kind"]) == (
        "c",
        "configmaps",
    )


REASONS = {"Invalid": 422, "Forbidden": 403, "RequestEntityTooLarge": 413}


@pytest.mark.parametrize("reason", REASONS)
def test_a_reason_has_its_code(world, reason):
    """`reason` of a validation."""
    world.enforce({"validations": [{"expression": "false", "reason": reason}]})
    code, obj = world.call("POST", MAPS, config_map())
    assert (code, obj["code"], obj["reason"]) == (REASONS[reason], REASONS[reason], reason)


ACTIONS = {"Warn": (201, 1), "Audit": (201, 0), "Deny": (422, 0)}


@pytest.mark.parametrize("action", ACTIONS)
def test_a_binding_says_what_follows(world, action):
    """A warning names policy and binding as well."""
    world.enforce({"validations": [{"expression": "false", "message": "no"}]}, {"actions": [action]})
    answer = world.raw("POST", MAPS, config_map())
    text = "Validation failed for ValidatingAdmissionPolicy 'p' with binding 'b': no"
    assert (answer.status, list(answer.warnings)) == (ACTIONS[action][0], [text] * ACTIONS[action][1])


def test_a_policy_without_a_binding_does_nothing(world):
    """And one whose binding is gone does nothing again."""
    world.post(POLICIES, policy())
    world.post(MAPS, config_map("a"))
    world.post(BINDINGS, bound())
    assert world.call("POST", MAPS, config_map("b"))[0] == 422
    assert world.call("DELETE", f"{BINDINGS}/b")[0] == 200
    world.post(MAPS, config_map("b"))


def test_a_changed_policy_is_another(world):
    """From the next write on."""
    world.enforce({})
    change = {"spec": {"validations": [{"expression": "true"}]}}
    code, obj = world.call("PATCH", f"{POLICIES}/p", change, kind="application/merge-patch+json")
    assert (code, obj["metadata"]["generation"]) == (200, 2)
    world.post(MAPS, config_map())


# -- what a policy sees ---------------------------------------------------------------------------------------

SELECTED = {"matchLabels": {"look": "here"}}
MATCHES = {
    "another resource": ({"rules": [rule(["secrets"])]}, {}, False),
    "a name": ({"rules": [rule(resourceNames=["c"])]}, {}, True),
    "another name": ({"rules": [rule(resourceNames=["d"])]}, {}, False),
    "an excluded resource": ({"match": {"excludeResourceRules": [rule()]}}, {}, False),
    "something else excluded": ({"match": {"excludeResourceRules": [rule(operations=["DELETE"])]}}, {}, True),
    "objects": ({"match": {"objectSelector": SELECTED}}, {}, True),
    "other objects": ({"match": {"objectSelector": {"matchLabels": {"look": "there"}}}}, {}, False),
    "other namespaces": ({"match": {"namespaceSelector": SELECTED}}, {}, False),
    "a binding's rules": ({}, {"matchResources": {"resourceRules": [rule(["secrets"])]}}, False),
    "a binding's selector": ({}, {"matchResources": {"objectSelector": SELECTED}}, True),
    "a binding's other selector": ({}, {"matchResources": {"namespaceSelector": SELECTED}}, False),
    "cluster scope": ({"rules": [rule(["*"], scope="Cluster")]}, {}, False),
}


@pytest.mark.parametrize(("spec", "binding", "seen"), MATCHES.values(), ids=MATCHES)
def test_a_policy_is_asked_about_what_it_matches(world, spec, binding, seen):
    """matchConstraints, narrowed by matchResources."""
    world.enforce(spec, binding)
    code, _ = world.call("POST", MAPS, config_map(labels={"look": "here"}))
    assert code == (422 if seen else 201)


def test_changes_and_deletions_have_an_old_object(world):
    """Of a deletion there is no other; a refused one leaves the object."""
    world.enforce({"expression": "oldObject == null || oldObject.data.kind != 'fixed'"})
    world.post(MAPS, config_map(kind="fixed"))
    code, obj = world.call("PATCH", f"{MAPS}/c", {"data": {"kind": "free"}}, kind="application/merge-patch+json")
    assert code == 422, obj
    code, obj = world.call("DELETE", f"{MAPS}/c")
    assert code == 422 and DENIED in obj["message"]
    assert world.call("GET", f"{MAPS}/c")[0] == 200


SUBRESOURCES = {
    "pods/eviction": lambda w: w.call("POST", f"{PODS}/w/eviction", {"metadata": {"name": "w"}}),
    "pods/binding": lambda w: w.call(
        "POST", f"{PODS}/w/binding", {"metadata": {"name": "w"}, "target": {"kind": "Node", "name": "n"}}
    ),
    "pods/status": lambda w: w.call(
        "PATCH", f"{PODS}/w/status", {"status": {"reason": "x"}}, kind="application/merge-patch+json"
    ),
    "nodes/status": lambda w: w.call(
        "PATCH", f"{NODES}/n/status", {"status": {"capacity": {"cpu": "3"}}}, kind="application/merge-patch+json"
    ),
}


@pytest.mark.parametrize("resource", SUBRESOURCES)
def test_subresources_are_seen(world, resource):
    """By rules that name them, and not by those that name the resource alone."""
    world.post(NODES, {"metadata": {"name": "n"}})
    world.post(PODS, pod())
    spec = {
        "rules": [rule([resource])],
        "validations": [{"expression": "false", "messageExpression": "request.subResource"}],
    }
    world.enforce(spec)
    code, obj = world.call("GET", f"{PODS}/w")
    assert code == 200, obj
    code, obj = SUBRESOURCES[resource](world)
    assert code == 422 and obj["message"].endswith(f"denied request: {resource.partition('/')[2]}")


def test_an_agent_may_touch_its_own_node_alone(world):
    """Told by what its bound token proves; others are not concerned."""
    mine = (
        "'authentication.kubernetes.io/node-name' in request.userInfo.extra && "
        "request.userInfo.extra['authentication.kubernetes.io/node-name'][0] == request.name"
    )
    account = "request.userInfo.username == 'system:serviceaccount:sublet-system:sublet-agent'"
    spec = {
        "rules": [rule(["nodes", "nodes/status"], ["UPDATE"])],
        "matchConditions": [{"name": "agent", "expression": account}],
        "validations": [{"expression": f"has(request.userInfo.extra) && {mine}", "message": "not its node"}],
    }
    world.enforce(spec)
    for name in ("one", "two"):
        world.post(NODES, {"metadata": {"name": name}})
    extra = {NODE_NAME: ("one",)}
    agent = UserInfo("system:serviceaccount:sublet-system:sublet-agent", groups=(AUTHENTICATED,), extra=extra)
    unbound = UserInfo(agent.name, groups=(AUTHENTICATED,))

    def label(node, user):
        body, kind = {"metadata": {"labels": {"a": user.name[-3:]}}}, "application/merge-patch+json"
        return world.call("PATCH", f"{NODES}/{node}", body, user, kind)[0]

    assert [label("one", agent), label("two", agent), label("one", unbound), label("two", ADMIN)] == [
        200,
        422,
        422,
        200,
    ]


# -- parameters -----------------------------------------------------------------------------------------------

PARAM_KIND = {"apiVersion": "v1", "kind": "ConfigMap"}
LIMITED = {
    "paramKind": PARAM_KIND,
    "validations": [{"expression": "object.data.size() <= int(params.data.most)", "message": "too many"}],
    "matchConditions": [{"name": "m", "expression": "request.name == 'c'"}],
}
BY_NAME = {"name": "limit", "namespace": "default", "parameterNotFoundAction": "Deny"}
BY_LABEL = {"selector": {"matchLabels": {"limit": "yes"}}, "parameterNotFoundAction": "Allow"}
PARAMS = {
    "by name": (LIMITED, BY_NAME, "too many"),
    "of the same namespace": (LIMITED, {"name": "limit", "parameterNotFoundAction": "Deny"}, "too many"),
    "by label": (LIMITED, BY_LABEL, "too many"),
    "not there": (
        LIMITED,
        BY_NAME | {"name": "none"},
        "failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction",
    ),
    "not there and no matter": (LIMITED, BY_NAME | {"name": "none", "parameterNotFoundAction": "Allow"}, None),
    "let pass": (LIMITED | {"failurePolicy": "Ignore"}, BY_NAME | {"name": "none"}, None),
    "no such kind": (
        LIMITED | {"paramKind": {"apiVersion": "v1", "kind": "Nope"}},
        BY_NAME,
        "failed to configure policy: failed to find resource referenced by paramKind: 'v1, Kind=Nope'",
    ),
    "no reference": (LIMITED | {"validations": [{"expression": "params != null", "message": "none"}]}, None, "none"),
}


@pytest.mark.parametrize(("spec", "ref", "why"), PARAMS.values(), ids=PARAMS)
def test_a_policy_looks_at_its_parameters(world, spec, ref, why):
    """Of each object that the binding names one opinion."""
    world.post(MAPS, config_map("limit", {"limit": "yes"}, most="1"))
    world.post(MAPS, config_map("wide", {"limit": "yes"}, most="9"))
    world.enforce(spec, {} if ref is None else {"paramRef": ref})
    code, obj = world.call("POST", MAPS, config_map(a="1", b="2"))
    assert code == (201 if why is None else 422), obj
    assert why is None or obj["message"].endswith(f"denied request: {why}")


# -- what is refused ------------------------------------------------------------------------------------------

UNDECLARED = "compilation failed: ERROR: <input>:1:1: undeclared reference to '{}' (in container '')"
BAD_POLICIES = {
    "expression": ({"expression": "objekt == 1"}, "validations[0].expression", UNDECLARED.format("objekt")),
    "no truth": ({"expression": "1"}, "validations[0].expression", "must evaluate to bool but got int"),
    "no certain truth": ({"expression": "object.a"}, "validations[0].expression", "must evaluate to bool but got dyn"),
    "empty": ({"expression": " "}, "validations[0].expression", "Required value: expression is not specified"),
    "params without a kind": ({"expression": "params == 1"}, "validations[0].expression", UNDECLARED.format("params")),
    "variable": (
        {"expression": "variables.a == 1"},
        "validations[0].expression",
        "compilation failed: ERROR: <input>:1:10: undefined field 'a'",
    ),
    "its type": (
        {"expression": "variables.size == 'a'", "variables": [SIZE | {"expression": "1"}]},
        "validations[0].expression",
        "found no matching overload for '_==_' applied to '(int, string)'",
    ),
    "a later variable": (
        {"expression": "true", "variables": [TWICE, SIZE]},
        "variables[0].expression",
        "undefined field 'size'",
    ),
    "name of a variable": (
        {"expression": "true", "variables": [SIZE | {"name": "in"}]},
        "variables[0].name",
        "name is not a valid CEL identifier",
    ),
    "field of the request": ({"expression": "request.nope"}, "validations[0].expression", "undefined field 'nope'"),
    "message": (
        {"validations": [{"expression": "true", "message": "a\nb"}]},
        "validations[0].message",
        "message must not contain line breaks",
    ),
    "made message": (
        {"validations": [{"expression": "true", "messageExpression": "1"}]},
        "validations[0].messageExpression",
        "must evaluate to string but got int",
    ),
    "authorizer in a message": (
        {"validations": [{"expression": "true", "messageExpression": "authorizer.path('/a').check('get').reason()"}]},
        "validations[0].messageExpression",
        "undeclared reference to 'authorizer'",
    ),
    "reason": (
        {"validations": [{"expression": "true", "reason": "Because"}]},
        "validations[0].reason",
        'Unsupported value: "Because"',
    ),
    "kind of parameters": ({"paramKind": {"apiVersion": "v1", "kind": "a/b"}}, "paramKind.kind", "may have mixed case"),
    "their version": ({"paramKind": {"apiVersion": "10%", "kind": "X"}}, "paramKind.apiVersion", "DNS-1035 label"),
    "their group": ({"paramKind": {"apiVersion": "A_/v1", "kind": "X"}}, "paramKind.apiVersion", "RFC 1123 subdomain"),
    "failure policy": ({"failurePolicy": "Maybe"}, "failurePolicy", "Unsupported value"),
    "condition": (
        {"matchConditions": [{"name": "a", "expression": "variables.size == 1"}], "variables": [SIZE]},
        "matchConditions[0].expression",
        "undefined field 'size'",
    ),
    "rule": ({"rules": [rule(operations=["READ"])]}, "matchConstraints.resourceRules[0].operations[0]", "Unsupported"),
    "annotation": (
        {"auditAnnotations": [{"key": "k", "valueExpression": "1"}]},
        "auditAnnotations[0].valueExpression",
        "must evaluate to one of [string null_type] but got int",
    ),
}


@pytest.mark.parametrize(("spec", "field", "why"), BAD_POLICIES.values(), ids=BAD_POLICIES)
def test_a_bad_policy_is_refused_with_its_field(world, spec, field, why):
    """422, one cause."""
    code, obj = world.call("POST", POLICIES, policy(**spec))
    assert code == 422, obj
    [cause] = obj["details"]["causes"]
    assert cause["field"] == f"spec.{field}" and why in cause["message"]


def test_a_policy_needs_rules_and_something_to_say(world):
    """Each with the field that is missing."""
    code, obj = world.call("POST", POLICIES, {"metadata": {"name": "p"}, "spec": {}})
    fields = {cause["field"] for cause in obj["details"]["causes"]}
    assert (code, fields) == (422, {"spec.matchConstraints", "spec.validations", "spec.auditAnnotations"})


BAD_BINDINGS = {
    "policy": ({"to": ""}, "policyName", "Required value"),
    "actions": ({"actions": []}, "validationActions", "at least one validation action is required"),
    "unknown action": ({"actions": ["Shout"]}, "validationActions[0]", 'Unsupported value: "Shout"'),
    "twice": ({"actions": ["Deny", "Deny"]}, "validationActions[1]", "Duplicate value"),
    "deny and warn": ({"actions": ["Deny", "Warn"]}, "validationActions", "must not contain both Deny and Warn"),
    "no parameter": ({"paramRef": {"parameterNotFoundAction": "Deny"}}, "paramRef", "one of name or selector"),
    "a way up": ({"paramRef": {"name": "..", "parameterNotFoundAction": "Deny"}}, "paramRef.name", "may not be '..'"),
    "no action": ({"paramRef": {"name": "a"}}, "paramRef.parameterNotFoundAction", "Required value"),
}


@pytest.mark.parametrize(("spec", "field", "why"), BAD_BINDINGS.values(), ids=BAD_BINDINGS)
def test_a_bad_binding_is_refused_with_its_field(world, spec, field, why):
    """422, one cause."""
    code, obj = world.call("POST", BINDINGS, bound(**spec))
    assert code == 422, obj
    [cause] = obj["details"]["causes"]
    assert cause["field"] == f"spec.{field}" and why in cause["message"]


def test_no_policy_can_lock_itself_in(world):
    """Policies, bindings and webhook configurations are never judged."""
    world.enforce({"rules": [rule(["*/*"], groups=["*"])]})
    assert world.call("POST", MAPS, config_map())[0] == 422
    assert world.call("DELETE", f"{BINDINGS}/b")[0] == 200
    world.post(MAPS, config_map())
