"""Admission webhooks, asked over HTTPS. What must hold is told in
https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/.
"""

import asyncio
import json
from contextlib import asynccontextmanager
from urllib.parse import parse_qsl, urlsplit

import pytest
from aiohttp import web

from embedded.apiserver.bootstrap import create_system_objects
from embedded.apiserver.http.router import Router
from embedded.apiserver.request.attributes import AllowAll
from embedded.apiserver.request.messages import Request
from embedded.apiserver.request.user_info import UserInfo
from embedded.tests.apiserver.webhook_server import BREAK, WebhookServer, adding, allowed, denied, patching
from embedded.tests.authority import Authority

REGISTRATION = "/apis/admissionregistration.k8s.io/v1"
MUTATING = f"{REGISTRATION}/mutatingwebhookconfigurations"
VALIDATING = f"{REGISTRATION}/validatingwebhookconfigurations"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
MAPS = "/api/v1/namespaces/default/configmaps"
PODS = "/api/v1/namespaces/default/pods"
NODE = {"metadata": {"name": "n"}}
EVERYTHING = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*/*"]}
MAP_RULE = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps"]}


def config_map(name="c", **data):
    return {"metadata": {"name": name}, "data": data}


def pod(name="p", **meta):
    return {"metadata": {"name": name} | meta, "spec": {"containers": [{"name": "c", "image": "busybox"}]}}


class World:
    """A core and a webhook server in one event loop."""

    def __init__(self, server, clock):
        self.server = server
        self.core = Router(clock, authorizer=AllowAll())
        create_system_objects(self.core.resources)

    async def raw(self, method, url, body=None, kind="application/json"):
        parts = urlsplit(url)
        data = b"" if body is None else json.dumps(body).encode()
        query = dict(parse_qsl(parts.query, keep_blank_values=True))
        return await self.core.handle(
            Request(
                method,
                parts.path,
                query,
                {"content-type": kind},
                data,
                UserInfo("alice", groups=("system:authenticated",)),
            )
        )

    async def call(self, method, url, body=None, kind="application/json"):
        answer = await self.raw(method, url, body, kind)
        return answer.status, json.loads(answer.body)

    async def post(self, url, body):
        code, obj = await self.call("POST", url, body)
        assert code == 201, obj
        return obj

    async def patch(self, url, body):
        return await self.call("PATCH", url, body, "application/merge-patch+json")

    async def register(self, url, *hooks, name="them"):
        return await self.post(url, {"metadata": {"name": name}, "webhooks": list(hooks)})

    def hook(self, path="/a", name=None, rules=(MAP_RULE,), **changes):
        client = {"url": self.server.url + path, "caBundle": self.server.ca}
        found = {"name": name or f"{path.strip('/')}.example.com", "clientConfig": client, "rules": list(rules)}
        return found | {"sideEffects": "None", "admissionReviewVersions": ["v1"]} | changes


@pytest.fixture
def world(credentials, clock):
    """Runs an asynchronous test body with a world of its own."""

    @asynccontextmanager
    async def made():
        server = WebhookServer(credentials)
        async with server.serving():
            found = World(server, clock)
            try:
                yield found
            finally:
                await found.core.close()

    def run(body):
        async def whole():
            async with made() as found:
                await body(found)

        asyncio.run(asyncio.wait_for(whole(), 30))

    return run


# -- what a webhook is asked -----------------------------------------------------------------------------------


def test_a_creation_is_told_in_full(world):
    """Who does what to what, in which version, with which options; a new object has no uid yet."""

    async def body(w):
        await w.register(MUTATING, w.hook(timeoutSeconds=7))
        created = await w.post(f"{MAPS}?fieldValidation=Strict", config_map(a="1"))
        [asked] = w.server.requests("/a")
        kind, resource = (
            {"group": "", "version": "v1", "kind": "ConfigMap"},
            {"group": "", "version": "v1", "resource": "configmaps"},
        )
        assert (asked["kind"], asked["requestKind"]) == (kind, kind)
        assert (asked["resource"], asked["requestResource"]) == (resource, resource)
        assert (asked["operation"], asked["name"], asked["namespace"]) == ("CREATE", "c", "default")
        assert asked["userInfo"]["username"] == "alice" and "system:authenticated" in asked["userInfo"]["groups"]
        assert (asked["oldObject"], asked["dryRun"], "subResource" in asked) == (None, False, False)
        assert (asked["options"]["kind"], asked["options"]["fieldValidation"]) == ("CreateOptions", "Strict")
        assert asked["object"] == {"kind": "ConfigMap", "apiVersion": "v1", "data": {"a": "1"}} | {
            "metadata": {"name": "c", "namespace": "default"}
        }
        assert w.server.queries == ["timeout=7s"] and created["metadata"]["uid"]

    world(body)


def test_a_generated_name_is_not_yet_there_for_mutating_webhooks(world):
    """The server settles it after them and before the validating ones."""

    async def body(w):
        await w.register(MUTATING, w.hook("/m"))
        await w.register(VALIDATING, w.hook("/v"))
        created = await w.post(MAPS, {"metadata": {"generateName": "c-"}})
        [before], [after] = w.server.requests("/m"), w.server.requests("/v")
        assert "name" not in before and "name" not in before["object"]["metadata"]
        assert after["name"] == after["object"]["metadata"]["name"] == created["metadata"]["name"]
        assert after["object"]["metadata"]["uid"] == created["metadata"]["uid"]

    world(body)


def test_changes_and_deletions_come_with_the_old_object(world):
    """UPDATE has both, DELETE only the old one; the sub-resource is named."""

    async def body(w):
        rules = [MAP_RULE, EVERYTHING | {"resources": ["pods", "pods/status"]}]
        await w.register(VALIDATING, w.hook(rules=rules))
        await w.post(MAPS, config_map(a="1"))
        await w.patch(f"{MAPS}/c", {"data": {"a": "2"}})
        await w.call("DELETE", f"{MAPS}/c?gracePeriodSeconds=3")
        update, delete = w.server.requests("/a")[1:]
        assert (update["operation"], update["options"]["kind"]) == ("UPDATE", "UpdateOptions")
        assert (update["object"]["data"], update["oldObject"]["data"]) == ({"a": "2"}, {"a": "1"})
        assert (delete["operation"], delete["object"], delete["oldObject"]["data"]) == ("DELETE", None, {"a": "2"})
        assert delete["options"] == {"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1", "gracePeriodSeconds": 3}
        await w.post(PODS, pod())
        await w.patch(f"{PODS}/p/status", {"status": {"phase": "Running"}})
        assert w.server.requests("/a")[-1]["subResource"] == "status"

    world(body)


def test_a_binding_and_an_eviction_are_creations_of_their_own_kind(world):
    """What a scheduler and a drain send can be refused."""

    async def body(w):
        await w.post(PODS, pod())
        await w.post("/api/v1/nodes", NODE)
        await w.register(VALIDATING, w.hook(rules=[EVERYTHING | {"resources": ["pods/binding", "pods/eviction"]}]))
        await w.post(f"{PODS}/p/binding", {"metadata": {"name": "p"}, "target": {"name": "n"}})
        w.server.answers["/a"] = denied(message="not now")
        code, status = await w.call("POST", f"{PODS}/p/eviction", {"metadata": {"name": "p"}})
        assert (code, status["message"]) == (400, 'admission webhook "a.example.com" denied the request: not now')
        bound, evicted = w.server.requests("/a")
        assert (bound["kind"]["kind"], bound["subResource"], bound["operation"]) == ("Binding", "binding", "CREATE")
        assert evicted["kind"] == {"group": "policy", "version": "v1", "kind": "Eviction"}
        assert (await w.call("GET", f"{PODS}/p"))[0] == 200

    world(body)


def test_a_scale_is_an_update_of_its_own_kind(world):
    """A webhook may change the count that an autoscaler asks for."""

    async def body(w):
        schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
        paths = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
        version = {"name": "v1", "served": True, "storage": True, "schema": schema, "subresources": {"scale": paths}}
        names = {"plural": "widgets", "kind": "Widget"}
        spec = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]}
        await w.post(DEFINITIONS, {"metadata": {"name": "widgets.example.com"}, "spec": spec})
        url = "/apis/example.com/v1/namespaces/default/widgets"
        object_ = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"replicas": 1}}
        await w.post(url, object_)
        await w.register(MUTATING, w.hook(rules=[EVERYTHING | {"resources": ["widgets/scale"]}]))
        w.server.answers["/a"] = patching({"op": "replace", "path": "/spec/replicas", "value": 4})
        code, scale = await w.patch(f"{url}/w/scale", {"spec": {"replicas": 9}})
        [asked] = w.server.requests("/a")
        assert (asked["kind"], asked["operation"]) == (
            {"group": "autoscaling", "version": "v1", "kind": "Scale"},
            "UPDATE",
        )
        assert (asked["object"]["spec"], asked["oldObject"]["spec"]) == ({"replicas": 9}, {"replicas": 1})
        assert (code, scale["spec"]) == (200, {"replicas": 4})

    world(body)


def test_a_dry_run_is_told_and_changes_nothing(world):
    """dryRun is true, and the options say All."""

    async def body(w):
        await w.register(MUTATING, w.hook(sideEffects="NoneOnDryRun"))
        w.server.answers["/a"] = adding("/data/b", "2")
        created = await w.post(f"{MAPS}?dryRun=All", config_map(a="1"))
        assert created["data"] == {"a": "1", "b": "2"}
        [asked] = w.server.requests("/a")
        assert (asked["dryRun"], asked["options"]["dryRun"]) == (True, ["All"])
        assert (await w.call("GET", f"{MAPS}/c"))[0] == 404

    world(body)


# -- whether a webhook is asked --------------------------------------------------------------------------------

RULES = {
    "exact": (MAP_RULE, 1),
    "all resources": (MAP_RULE | {"resources": ["*"]}, 1),
    "all and their sub-resources": (EVERYTHING, 1),
    "sub-resources by star include the resource": (MAP_RULE | {"resources": ["configmaps/*"]}, 1),
    "another group": (MAP_RULE | {"apiGroups": ["batch"]}, 0),
    "another version": (MAP_RULE | {"apiVersions": ["v2"]}, 0),
    "another operation": (MAP_RULE | {"operations": ["DELETE", "UPDATE"]}, 0),
    "only the status": (MAP_RULE | {"resources": ["configmaps/status"]}, 0),
    "namespaced": (MAP_RULE | {"scope": "Namespaced"}, 1),
    "cluster scoped": (MAP_RULE | {"scope": "Cluster"}, 0),
}


@pytest.mark.parametrize(("rule", "calls"), RULES.values(), ids=RULES)
def test_rules_say_what_is_asked_about(world, rule, calls):
    """Operations, groups, versions, resources with sub-resources, scope."""

    async def body(w):
        await w.register(VALIDATING, w.hook(rules=[rule]))
        await w.post(MAPS, config_map())
        assert len(w.server.asked) == calls

    world(body)


SELECTORS = {
    "no selector": ({}, 1),
    "namespace matches": ({"namespaceSelector": {"matchLabels": {"team": "a"}}}, 1),
    "namespace by its name": ({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "mine"}}}, 1),
    "namespace does not": ({"namespaceSelector": {"matchLabels": {"team": "b"}}}, 0),
    "expression": (
        {"namespaceSelector": {"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["a"]}]}},
        0,
    ),
    "object matches": ({"objectSelector": {"matchExpressions": [{"key": "tier", "operator": "Exists"}]}}, 1),
    "object does not": ({"objectSelector": {"matchLabels": {"tier": "back"}}}, 0),
}


@pytest.mark.parametrize(("selectors", "calls"), SELECTORS.values(), ids=SELECTORS)
def test_selectors_look_at_labels_of_namespace_and_object(world, selectors, calls):
    """Both must hold."""

    async def body(w):
        await w.post("/api/v1/namespaces", {"metadata": {"name": "mine", "labels": {"team": "a"}}})
        await w.register(VALIDATING, w.hook(**selectors))
        await w.post("/api/v1/namespaces/mine/configmaps", {"metadata": {"name": "c", "labels": {"tier": "front"}}})
        assert len(w.server.asked) == calls

    world(body)


def test_a_namespace_is_selected_by_its_own_labels_and_cluster_objects_always(world):
    """A namespaceSelector says nothing about a node."""

    async def body(w):
        rule = EVERYTHING | {"resources": ["namespaces", "nodes"]}
        await w.register(VALIDATING, w.hook(rules=[rule], namespaceSelector={"matchLabels": {"team": "a"}}))
        await w.post("/api/v1/namespaces", {"metadata": {"name": "b", "labels": {"team": "b"}}})
        await w.post("/api/v1/namespaces", {"metadata": {"name": "a", "labels": {"team": "a"}}})
        await w.post("/api/v1/nodes", NODE)
        assert [asked["name"] for _, asked in w.server.asked] == ["a", "n"]
        assert w.server.asked[0][1]["namespace"] == "a"

    world(body)


def test_an_object_selector_looks_at_the_old_object_too(world):
    """Nobody escapes by dropping the label."""

    async def body(w):
        await w.register(VALIDATING, w.hook(objectSelector={"matchLabels": {"tier": "front"}}))
        await w.post(MAPS, {"metadata": {"name": "c", "labels": {"tier": "front"}}})
        await w.patch(f"{MAPS}/c", {"metadata": {"labels": None}})
        await w.patch(f"{MAPS}/c", {"data": {"a": "1"}})
        assert [asked["operation"] for _, asked in w.server.asked] == ["CREATE", "UPDATE"]

    world(body)


def test_webhook_configurations_are_never_sent(world):
    """Otherwise a bad one could not be removed."""

    async def body(w):
        w.server.answers["/a"] = denied(message="no")
        await w.register(VALIDATING, w.hook(rules=[EVERYTHING]))
        await w.register(MUTATING, w.hook("/b"), name="other")
        assert (await w.call("DELETE", f"{VALIDATING}/them"))[0] == 200
        assert w.server.asked == []

    world(body)


def test_any_version_counts_unless_exactly_one_is_meant(world):
    """Equivalent converts to the version of the rule; Exact looks only at the one of the request."""

    async def body(w):
        schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
        versions = [{"name": name, "served": True, "storage": name == "v1", "schema": schema} for name in ("v1", "v2")]
        spec = {"group": "example.com", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"}}
        crd = {"metadata": {"name": "widgets.example.com"}, "spec": spec | {"versions": versions}}
        await w.post(DEFINITIONS, crd)
        rule = EVERYTHING | {"apiGroups": ["example.com"], "apiVersions": ["v1"], "resources": ["widgets"]}
        hooks = [w.hook("/e", rules=[rule]), w.hook("/x", rules=[rule], matchPolicy="Exact")]
        await w.register(MUTATING, *hooks)
        w.server.answers["/e"] = adding("/seen", True)
        url = "/apis/example.com/v2/namespaces/default/widgets"
        created = await w.post(url, {"apiVersion": "example.com/v2", "kind": "Widget", "metadata": {"name": "w"}})
        assert (created["apiVersion"], created["seen"]) == ("example.com/v2", True)
        [asked] = [asked for _, asked in w.server.asked]
        assert (asked["kind"]["version"], asked["requestKind"]["version"]) == ("v1", "v2")
        assert asked["object"]["apiVersion"] == "example.com/v1"

    world(body)


# -- what an answer does ---------------------------------------------------------------------------------------


def test_patches_build_on_each_other_in_order_of_configuration_name(world):
    """And within a configuration in the order written."""

    async def body(w):
        w.server.answers |= {f"/{path}": adding(f"/data/{path}", path) for path in "abc"}
        await w.register(MUTATING, w.hook("/c"), name="z")
        await w.register(MUTATING, w.hook("/b"), w.hook("/a"), name="y")
        created = await w.post(MAPS, config_map(x="x"))
        assert [path for path, _ in w.server.asked] == ["/b", "/a", "/c"]
        assert created["data"] == {"x": "x", "b": "b", "a": "a", "c": "c"}
        assert w.server.asked[-1][1]["object"]["data"] == {"x": "x", "b": "b", "a": "a"}

    world(body)


def test_what_a_patch_adds_is_decoded_and_defaulted_like_a_clients_body(world):
    """A container gets its defaults, quantities their usual form, unknown fields go, a status is not believed."""

    async def body(w):
        container = {"name": "side", "image": "s", "nonsense": 1, "resources": {"requests": {"cpu": 0.5}}}
        status = {"op": "add", "path": "/status", "value": {"phase": "Running"}}
        w.server.answers["/a"] = patching({"op": "add", "path": "/spec/containers/-", "value": container}, status)
        await w.register(MUTATING, w.hook(rules=[EVERYTHING | {"resources": ["pods"]}]))
        created = await w.post(PODS, pod())
        side = created["spec"]["containers"][1]
        assert (side["imagePullPolicy"], side["resources"]) == ("Always", {"requests": {"cpu": "500m"}})
        assert "nonsense" not in side
        assert (created["status"]["phase"], created["status"]["qosClass"]) == ("Pending", "Burstable")

    world(body)


def test_an_object_that_a_webhook_makes_invalid_is_refused(world):
    """Validation comes after the webhooks."""

    async def body(w):
        w.server.answers["/a"] = adding("/spec/restartPolicy", "Sometimes")
        await w.register(MUTATING, w.hook(rules=[EVERYTHING | {"resources": ["pods"]}]))
        code, status = await w.call("POST", PODS, pod())
        assert (code, status["details"]["causes"][0]["field"]) == (422, "spec.restartPolicy")

    world(body)


def test_the_priority_follows_a_class_that_a_webhook_sets(world):
    """The server's own admission runs again after a change, as in-tree plugins do."""

    async def body(w):
        await w.post("/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": "batch"}, "value": 5})
        both = [("priorityClassName", "batch"), ("priority", 5)]
        changes = [{"op": "add", "path": f"/spec/{key}", "value": value} for key, value in both]
        await w.register(MUTATING, w.hook(rules=[EVERYTHING | {"resources": ["pods"]}]))
        w.server.answers["/a"] = patching(*changes)
        assert (await w.post(PODS, pod()))["spec"]["priority"] == 5
        w.server.answers["/a"] = patching(changes[0])
        code, status = await w.call("POST", PODS, pod("q"))
        assert code == 403 and "the integer value of priority (0) must not be provided" in status["message"]

    world(body)


def test_an_earlier_webhook_is_asked_once_more_when_it_wants_and_something_changed_after_it(world):
    """IfNeeded, and never more than twice."""

    async def body(w):
        w.server.answers |= {"/b": adding("/data/b", "b"), "/d": adding("/data/d", "d")}
        hooks = [w.hook("/a", reinvocationPolicy="IfNeeded"), w.hook("/b")]
        hooks += [
            w.hook("/c", reinvocationPolicy="IfNeeded"),
            w.hook("/d"),
            w.hook("/e", reinvocationPolicy="IfNeeded"),
        ]
        await w.register(MUTATING, *hooks)
        await w.post(MAPS, config_map(a="1"))
        assert "".join(path.strip("/") for path, _ in w.server.asked) == "abcdeac"

    world(body)


DENIALS = {
    "message": ({"message": "no"}, 400, "", ": no"),
    "code and reason": ({"message": "no", "code": 403, "reason": "Forbidden"}, 403, "Forbidden", ": no"),
    "reason only": ({"reason": "Teapot"}, 400, "Teapot", ": Teapot"),
    "nothing": ({}, 400, "", " without explanation"),
    "a code that is no refusal": ({"code": 200, "message": "no"}, 400, "", ": no"),
}


@pytest.mark.parametrize("kind", [MUTATING, VALIDATING], ids=["mutating", "validating"])
@pytest.mark.parametrize(("status", "code", "reason", "text"), DENIALS.values(), ids=DENIALS)
def test_a_denial_reaches_the_client(world, kind, status, code, reason, text):
    """With the webhook's code and reason, and its name before the message."""

    async def body(w):
        w.server.answers["/a"] = denied(**status)
        await w.register(kind, w.hook())
        found, refusal = await w.call("POST", MAPS, config_map())
        assert (found, refusal.get("reason", "")) == (code, reason)
        assert refusal["message"] == f'admission webhook "a.example.com" denied the request{text}'
        assert (await w.call("GET", f"{MAPS}/c"))[0] == 404

    world(body)


def test_deletions_can_be_denied_one_by_one_and_together(world):
    """deletecollection asks for each."""

    async def body(w):
        await w.post(MAPS, config_map())
        w.server.answers["/a"] = denied(message="keep it")
        await w.register(VALIDATING, w.hook())
        for url in (f"{MAPS}/c", MAPS):
            code, status = await w.call("DELETE", url)
            assert (code, status["message"][-7:]) == (400, "keep it")
        assert (await w.call("GET", f"{MAPS}/c"))[0] == 200

    world(body)


def test_warnings_reach_the_client(world):
    """Of allowed and of refused requests' webhooks alike."""

    async def body(w):
        w.server.answers["/a"] = allowed(warnings=["old field", "odd value"])
        await w.register(VALIDATING, w.hook())
        assert (await w.raw("POST", MAPS, config_map())).warnings == ("old field", "odd value")
        assert (await w.raw("DELETE", f"{MAPS}/c")).warnings == ("old field", "odd value")

    world(body)


def test_a_write_that_another_overtakes_during_the_call_is_made_again(world):
    """No change is lost, and the webhook sees what is really stored."""

    async def body(w):
        await w.post(MAPS, config_map(a="1"))
        await w.register(VALIDATING, w.hook())

        def meddle(request):
            if len(w.server.asked) == 1:
                w.core.resources.update(_maps(w), "default", "c", lambda obj: obj | {"data": {"a": "1", "b": "2"}})
            return allowed()(request)

        w.server.answers["/a"] = meddle
        code, obj = await w.patch(f"{MAPS}/c", {"data": {"c": "3"}})
        assert (code, obj["data"]) == (200, {"a": "1", "b": "2", "c": "3"})
        assert len(w.server.asked) == 2

    world(body)


def _maps(w):
    found = w.core.registry.by_kind("v1", "ConfigMap")
    assert found is not None
    return found


# -- when a webhook fails --------------------------------------------------------------------------------------


async def _never(_):
    await asyncio.Event().wait()


def _text(*content, status=200):
    return lambda _: web.Response(status=status, body=b"".join(content))


FAILURES = {
    "no answer in time": (_never, "failed to call webhook: Post", "context deadline exceeded"),
    "not found": (_text(status=404), "failed to call webhook: ", "the server could not find the requested resource"),
    "server error": (_text(b"oops", status=500), "failed to call webhook: ", 'an error on the server ("oops")'),
    "not JSON": (_text(b"{"), "received invalid webhook response: ", "cannot be decoded"),
    "not a review": (_text(b"[]"), "received invalid webhook response: ", "webhook response was absent"),
    "no response": (_text(b"{}"), "received invalid webhook response: ", "webhook response was absent"),
    "another uid": (lambda _: {"uid": "x", "allowed": True}, "received invalid webhook response: ", 'got "x"'),
    "another kind": (
        _text(b'{"apiVersion":"admission.k8s.io/v1beta1","kind":"AdmissionReview","response":{}}'),
        "received invalid webhook response: ",
        "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview",
    ),
    "patch without type": (allowed(patch="W10="), "received invalid webhook response: ", "but not response.patchType"),
    "strange patch": (allowed(patch="e30=", patchType="X"), "received invalid webhook response: ", "patchType of"),
    "undecodable patch": (allowed(patch="!", patchType="JSONPatch"), "received ", "undecodable patch"),
}


@pytest.mark.parametrize(("answer", "start", "text"), FAILURES.values(), ids=FAILURES)
def test_a_webhook_that_cannot_be_asked_refuses_or_is_passed_over(world, answer, start, text):
    """failurePolicy Fail is 500, in the words of a real server; Ignore goes on."""

    async def body(w):
        w.server.answers["/a"] = answer
        await w.register(MUTATING, w.hook(timeoutSeconds=1))
        code, status = await w.call("POST", MAPS, config_map())
        assert (code, status["reason"]) == (500, "InternalError")
        assert f'failed calling webhook "a.example.com": {start}' in status["message"] and text in status["message"]
        await w.patch(f"{MUTATING}/them", {"webhooks": [w.hook(timeoutSeconds=1, failurePolicy="Ignore")]})
        assert (await w.call("POST", MAPS, config_map()))[0] == 201

    world(body)


def test_a_connection_that_breaks_is_made_again(world):
    """A kept one may have been closed by the other side; twice in a row is a failure."""

    async def body(w):
        left = [1]

        def answer(request):
            if left[0] == 0:
                return allowed()(request)
            left[0] -= 1
            return BREAK

        w.server.answers["/a"] = answer
        await w.register(VALIDATING, w.hook())
        await w.post(MAPS, config_map())
        left[0] = 2
        code, status = await w.call("POST", MAPS, config_map("d"))
        assert code == 500 and "failed to call webhook: Post" in status["message"]

    world(body)


def test_nobody_listening_and_a_wrong_authority_are_failures_that_say_so(world):
    """Connection refused; a certificate that the bundle does not vouch for."""

    async def body(w):
        closed = {"url": "https://127.0.0.1:1/a", "caBundle": w.server.ca}
        await w.register(VALIDATING, w.hook() | {"clientConfig": closed})
        _, status = await w.call("POST", MAPS, config_map())
        assert 'Post "https://127.0.0.1:1/a?timeout=10s": ' in status["message"]
        trusting_system = {"url": w.server.url + "/a"}
        await w.patch(f"{VALIDATING}/them", {"webhooks": [w.hook() | {"clientConfig": trusting_system}]})
        code, status = await w.call("POST", MAPS, config_map())
        assert code == 500 and "tls: failed to verify certificate: " in status["message"]
        assert w.server.asked == []

    world(body)


def test_a_patch_that_does_not_apply_is_an_internal_error(world):
    """Whatever the failure policy, as on a real server."""

    async def body(w):
        w.server.answers["/a"] = patching({"op": "remove", "path": "/data/nope"})
        await w.register(MUTATING, w.hook(failurePolicy="Ignore"))
        code, status = await w.call("POST", MAPS, config_map())
        assert (code, status["reason"]) == (500, "InternalError")

    world(body)


def test_a_validating_webhook_may_not_patch(world):
    """Its answer is then no answer."""

    async def body(w):
        w.server.answers["/a"] = adding("/data", {})
        await w.register(VALIDATING, w.hook())
        _, status = await w.call("POST", MAPS, config_map())
        assert "validating webhook may not return response.patch" in status["message"]

    world(body)


def test_a_service_is_reached_where_its_annotation_says(world, tmp_path_factory):
    """Without one somebody has to be behind it; the certificate has to be for the service's name."""
    authority, directory = Authority("hooks"), tmp_path_factory.mktemp("named")
    certificate, key = authority.issue("hooks", ("hooks.default.svc",))
    for name, content in (("ca.crt", authority.certificate_pem), ("tls.crt", certificate), ("tls.key", key)):
        (directory / name).write_bytes(content)
    named = WebhookServer(directory)

    async def body(w):
        service = {"namespace": "default", "name": "hooks", "path": "/a"}
        await w.register(VALIDATING, w.hook() | {"clientConfig": {"service": service, "caBundle": w.server.ca}})
        _, status = await w.call("POST", MAPS, config_map())
        assert status["message"].endswith('failed to call webhook: service "hooks" not found')
        services = "/api/v1/namespaces/default/services"
        await w.post(services, {"metadata": {"name": "hooks"}, "spec": {"ports": [{"port": 443}]}})
        _, status = await w.call("POST", MAPS, config_map())
        assert status["message"].endswith('failed to call webhook: no endpoints available for service "hooks"')
        await w.patch(f"{services}/hooks", {"metadata": {"annotations": {"sublet.dev/address": w.server.url}}})
        _, status = await w.call("POST", MAPS, config_map())
        assert "hooks.default.svc" in status["message"], "the certificate there is for 127.0.0.1"
        async with named.serving():
            there = {"metadata": {"annotations": {"sublet.dev/address": named.url + "/"}}}
            await w.patch(f"{services}/hooks", there)
            trusting = w.hook() | {"clientConfig": {"service": service, "caBundle": named.ca}}
            await w.patch(f"{VALIDATING}/them", {"webhooks": [trusting]})
            await w.post(MAPS, config_map())
            assert [path for path, _ in named.asked] == ["/a"]

    world(body)


def test_a_service_is_reached_at_a_ready_endpoint_of_its_port(world, tmp_path_factory):
    """Under the service's name, with a port of its own; a port it does not have is told."""
    authority, directory = Authority("hooks"), tmp_path_factory.mktemp("behind")
    certificate, key = authority.issue("hooks", ("hooks.default.svc",))
    for name, content in (("ca.crt", authority.certificate_pem), ("tls.crt", certificate), ("tls.key", key)):
        (directory / name).write_bytes(content)
    behind = WebhookServer(directory, "127.65.0.9")

    async def body(w):
        async with behind.serving():
            ports = [{"name": "other", "port": 1}, {"name": "hook", "port": 9443}]
            await w.post(
                "/api/v1/namespaces/default/services", {"metadata": {"name": "hooks"}, "spec": {"ports": ports}}
            )
            listening = [{"name": "other", "port": 2}, {"name": "hook", "port": int(behind.url.rpartition(":")[2])}]
            subset = {"addresses": [{"ip": "127.65.0.9"}], "ports": listening}
            endpoints = {"metadata": {"name": "hooks"}, "subsets": [subset]}
            await w.post("/api/v1/namespaces/default/endpoints", endpoints)
            service = {"namespace": "default", "name": "hooks", "path": "/a", "port": 9443}
            await w.register(VALIDATING, w.hook() | {"clientConfig": {"service": service, "caBundle": behind.ca}})
            await w.post(MAPS, config_map())
            assert [path for path, _ in behind.asked] == ["/a"]
            elsewhere = w.hook() | {"clientConfig": {"service": service | {"port": 5}, "caBundle": behind.ca}}
            await w.patch(f"{VALIDATING}/them", {"webhooks": [elsewhere]})
            _, status = await w.call("POST", MAPS, config_map("second"))
            assert status["message"].endswith('no service port 5 found for service "hooks"')

    world(body)


# -- configurations --------------------------------------------------------------------------------------------


def test_defaults_of_a_configuration(world):
    """As the API reference lists them."""

    async def body(w):
        created = await w.register(MUTATING, w.hook())
        [hook] = created["webhooks"]
        assert (hook["failurePolicy"], hook["matchPolicy"], hook["reinvocationPolicy"]) == (
            "Fail",
            "Equivalent",
            "Never",
        )
        assert (hook["timeoutSeconds"], hook["namespaceSelector"], hook["objectSelector"]) == (10, {}, {})
        assert hook["rules"][0]["scope"] == "*" and created["metadata"]["generation"] == 1
        [hook] = (await w.register(VALIDATING, w.hook()))["webhooks"]
        assert "reinvocationPolicy" not in hook

    world(body)


def condition(expression, name="c"):
    return {"name": name, "expression": expression}


CONDITIONS = {
    "holds": (["object.data.a == '1'"], "Fail", 201, 1),
    "does not hold": (["object.data.a == '2'"], "Fail", 201, 0),
    "one does not hold": (["object.nope == 1", "request.userInfo.username != 'alice'"], "Fail", 201, 0),
    "has no value": (["object.nope == 1", "true"], "Fail", 403, 0),
    "has no value and may fail": (["object.nope == 1"], "Ignore", 201, 0),
}


@pytest.mark.parametrize(("expressions", "policy", "code", "calls"), CONDITIONS.values(), ids=CONDITIONS)
@pytest.mark.parametrize("url", [MUTATING, VALIDATING], ids=["mutating", "validating"])
def test_a_webhook_is_asked_when_all_its_conditions_hold(world, url, expressions, policy, code, calls):
    """matchConditions; one that has no value is a failure, unless another does not hold."""
    conditions = [condition(text, f"c{index}") for index, text in enumerate(expressions)]

    async def body(w):
        await w.register(url, w.hook(matchConditions=conditions, failurePolicy=policy))
        got, obj = await w.call("POST", MAPS, config_map(a="1"))
        assert (got, len(w.server.requests("/a"))) == (code, calls), obj
        if code == 403:
            why = "expression 'object.nope == 1' resulted in error: no such key: nope"
            assert obj["message"] == f'configmaps "c" is forbidden: {why}'

    world(body)


BAD = {
    "name": ({"name": "short"}, "name", "three segments"),
    "no name": ({"name": ""}, "name", "Required"),
    "side effects": ({"sideEffects": "Some"}, "sideEffects", "supported values"),
    "no side effects": ({"sideEffects": None}, "sideEffects", "must specify one of None, NoneOnDryRun"),
    "timeout": ({"timeoutSeconds": 31}, "timeoutSeconds", "between 1 and 30 seconds"),
    "review versions": ({"admissionReviewVersions": ["v1beta1"]}, "admissionReviewVersions", "at least one of v1"),
    "policy": ({"failurePolicy": "Maybe"}, "failurePolicy", "supported values"),
    "no client": ({"clientConfig": {}}, "clientConfig", "exactly one of url or service is required"),
    "plain http": ({"clientConfig": {"url": "http://h/"}}, "clientConfig.url", "'https' is the only allowed"),
    "query": ({"clientConfig": {"url": "https://h/?a=b"}}, "clientConfig.url", "query parameters are not"),
    "service": ({"clientConfig": {"service": {"namespace": "a"}}}, "clientConfig.service.name", "is required"),
    "operation": ({"rules": [MAP_RULE | {"operations": ["READ"]}]}, "rules[0].operations[0]", "supported values"),
    "no resources": ({"rules": [MAP_RULE | {"resources": []}]}, "rules[0].resources", "Required"),
    "scope": ({"rules": [MAP_RULE | {"scope": "Galaxy"}]}, "rules[0].scope", "supported values"),
    "star and more": ({"rules": [MAP_RULE | {"apiGroups": ["*", "a"]}]}, "rules[0].apiGroups", "if '*' is present"),
    "selector": (
        {"objectSelector": {"matchExpressions": [{"key": "a", "operator": "In"}]}},
        "objectSelector.matchExpressions[0].values",
        "must be specified when",
    ),
    "conditions": (
        {"matchConditions": [{"name": "a", "expression": "objekt == null"}]},
        "matchConditions[0].expression",
        "undeclared reference to 'objekt'",
    ),
}


@pytest.mark.parametrize(("changes", "field", "text"), BAD.values(), ids=BAD)
def test_a_bad_configuration_is_refused_with_its_field(world, changes, field, text):
    """422, one cause."""

    async def body(w):
        code, status = await w.call("POST", MUTATING, {"metadata": {"name": "x"}, "webhooks": [w.hook() | changes]})
        assert code == 422, status
        assert [cause["field"] for cause in status["details"]["causes"]] == [f"webhooks[0].{field}"]
        assert text in status["message"]

    world(body)


def test_names_are_unique_within_a_configuration(world):
    """Another configuration may use the name again."""

    async def body(w):
        twice = {"metadata": {"name": "x"}, "webhooks": [w.hook(), w.hook()]}
        code, status = await w.call("POST", MUTATING, twice)
        assert (code, status["details"]["causes"][0]["reason"]) == (422, "FieldValueDuplicate")
        await w.register(MUTATING, w.hook(), name="x")
        await w.register(MUTATING, w.hook(), name="y")

    world(body)
