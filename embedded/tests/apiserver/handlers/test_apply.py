"""Server-side apply through the API.

https://kubernetes.io/docs/reference/using-api/server-side-apply/
"""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embedded.apiserver.admission.admitted_writes import AdmittedWrites

CORE = "/api/v1/namespaces/default"
MAP = f"{CORE}/configmaps/c"
POD = f"{CORE}/pods/p"
THING = "/apis/example.com/v1/namespaces/default/things/t"


def config_map(meta=None, **data):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"} | (meta or {}), "data": data}


def pod(**container):
    containers = [{"name": "c", "image": "busybox:1"} | container]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": containers}}


@pytest.fixture
def apply(api):
    def send(url, body, manager="me", code=200, **options):
        query = "&".join(f"{key}={value}" for key, value in {"fieldManager": manager, **options}.items())
        got, answer = api.call("PATCH", f"{url}?{query}", body, content_type="application/apply-patch+yaml")
        assert got == code, answer
        return answer

    return send


def managers(obj):
    return {
        (entry.get("manager", ""), entry["operation"], entry.get("subresource", "")): entry["fieldsV1"]
        for entry in obj["metadata"].get("managedFields", [])
    }


# -- the request -----------------------------------------------------------------------------------------------


def test_apply_creates_what_is_not_there(apply, api):
    """201, then 200; the same once more is no write at all."""
    created = apply(MAP, config_map(a="1"), code=201)
    assert managers(created) == {("me", "Apply", ""): {"f:data": {"f:a": {}}}}
    api.clock.advance(60)
    assert apply(MAP, config_map(a="1")) == created == api.get(MAP)
    assert apply(MAP, config_map(a="2"))["metadata"]["managedFields"][0]["time"] == "2026-09-21T14:14:20Z"


def test_a_configuration_may_be_yaml(apply):
    """As the media type says."""
    body = b"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: c\ndata: {a: '1'}\n"
    assert apply(MAP, body, code=201)["data"] == {"a": "1"}
    assert apply(MAP, b"{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {a: '2'}}")["data"] == {"a": "2"}


@pytest.mark.parametrize("query", ["", "?fieldManager=", "?force=true"])
def test_an_applier_has_to_say_who_it_is(api, query):
    """422, as for every option that is missing."""
    code, status = api.call("PATCH", MAP + query, config_map(), content_type="application/apply-patch+yaml")
    assert (code, status["details"]["causes"][0]["field"]) == (422, "fieldManager")
    assert 'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value' in status["message"]


def test_only_apply_can_be_forced(api):
    """422 for the other patches."""
    api.post(f"{CORE}/configmaps", config_map())
    code, status = api.patch(f"{MAP}?force=true", {})
    assert (code, status["details"]["causes"][0]["reason"]) == (422, "FieldValueForbidden")


REFUSED = {
    "no object": ([], 400, "must be an object"),
    "not YAML": (b"{", 400, "cannot be decoded"),
    "another kind": (pod(), 400, "invalid object type: /v1, Kind=Pod"),
    "managers": (config_map({"managedFields": []}), 400, "metadata.managedFields must be nil"),
    "an unknown field": (config_map() | {"foo": 1}, 400, ".foo: field not declared in schema"),
    "a wrong type": (config_map() | {"data": {"a": 1}}, 400, "cannot unmarshal number"),
    "another name": (config_map({"name": "d"}), 400, "does not match the name on the URL"),
    "another namespace": (config_map({"namespace": "d"}), 400, "does not match the namespace"),
    "a uid of nothing": (config_map({"uid": "u"}), 409, "uid mismatch"),
    "an invalid value": (config_map({"labels": {"a": "b c"}}), 422, "metadata.labels"),
}


@pytest.mark.parametrize(("body", "code", "told"), REFUSED.values(), ids=REFUSED)
def test_configurations_that_are_refused(apply, api, body, code, told):
    """With the reason, and nothing created."""
    assert told in apply(MAP, body, code=code)["message"]
    assert api.call("GET", MAP)[0] == 404


def test_a_field_written_twice_is_told_or_refused(api):
    """By fieldValidation."""
    body = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata:\n  a: '1'\n  a: '2'\n"
    answers = [
        api.raw(
            "PATCH", f"{MAP}?fieldManager=me&fieldValidation={how}", body, content_type="application/apply-patch+yaml"
        )
        for how in ("Strict", "Warn", "Ignore")
    ]
    assert [answer.status for answer in answers] == [400, 201, 200]
    assert b"error strict decoding YAML" in answers[0].body and b"already set in map" in answers[0].body
    assert [len(answer.warnings) for answer in answers[1:]] == [1, 0]


def test_what_is_being_stored_meanwhile_is_a_precondition(apply):
    """A resourceVersion or uid in the configuration."""
    live = apply(MAP, config_map(a="1"), code=201)["metadata"]
    apply(MAP, config_map({"resourceVersion": live["resourceVersion"], "uid": live["uid"]}, a="2"))
    assert (
        "modified" in apply(MAP, config_map({"resourceVersion": live["resourceVersion"]}, a="3"), code=409)["message"]
    )
    assert "UID in precondition" in apply(MAP, config_map({"uid": "other"}, a="3"), code=409)["message"]


def test_a_dry_run_changes_nothing(apply, api):
    """Neither what is there nor what is not; but it conflicts like the real thing."""
    assert apply(MAP, config_map(a="1"), code=201, dryRun="All")["data"] == {"a": "1"}
    assert api.call("GET", MAP)[0] == 404
    apply(MAP, config_map(a="1"), code=201)
    before, revision = api.get(MAP), api.resources.store.revision
    assert apply(MAP, config_map(a="2"), dryRun="All")["data"] == {"a": "2"}
    apply(MAP, config_map(a="2"), manager="other", code=409, dryRun="All")
    assert (api.get(MAP), api.resources.store.revision) == (before, revision)


# -- with other writers ----------------------------------------------------------------------------------------


def test_nothing_is_tracked_before_the_first_apply(apply, api):
    """Hot updates cost nothing; the first apply gives what is there an owner."""
    api.post(f"{CORE}/configmaps", config_map({"managedFields": [{"manager": "x"}]}, a="1", b="1"))
    code, obj = api.patch(f"{MAP}?fieldManager=they", {"data": {"a": "2"}})
    assert (code, managers(obj)) == (200, {})
    assert managers(apply(MAP, config_map(b="1"))) == {
        ("me", "Apply", ""): {"f:data": {"f:b": {}}},
        ("before-first-apply", "Update", ""): {"f:data": {".": {}, "f:a": {}, "f:b": {}}},
    }


@pytest.mark.parametrize("kind", ["merge", "json", "strategic", "put"])
def test_every_other_write_is_tracked_afterwards(apply, api, kind):
    """Under the name given, or else the program's."""
    live = apply(MAP, config_map(a="1"), code=201)
    url, agent = MAP, {"user_agent": "curl/8.1 (x)"}
    match kind:
        case "put":
            live["data"]["a"] = "2"
            got, obj = api.call("PUT", url, live, **agent)
        case "json":
            body = [{"op": "replace", "path": "/data/a", "value": "2"}]
            got, obj = api.call("PATCH", url, body, content_type="application/json-patch+json", **agent)
        case _:
            suffix = {"merge": "merge-patch", "strategic": "strategic-merge-patch"}[kind]
            body = {"data": {"a": "2"}}
            got, obj = api.call("PATCH", url, body, content_type=f"application/{suffix}+json", **agent)
    assert (got, managers(obj)) == (200, {("curl", "Update", ""): {"f:data": {"f:a": {}}}})
    assert 'conflict with "curl" using v1: .data.a' in apply(MAP, config_map(a="1"), code=409)["message"]
    assert managers(apply(MAP, config_map(a="1"), force="true")) == {("me", "Apply", ""): {"f:data": {"f:a": {}}}}


def test_an_update_that_says_nothing_of_managers_keeps_them(apply, api):
    """Clients that do not know managedFields do not lose them."""
    live = apply(MAP, config_map(a="1"), code=201)
    kept = live["metadata"].pop("managedFields")
    assert api.call("PUT", MAP, live)[1]["metadata"]["managedFields"] == kept


def test_the_status_of_an_applied_pod_has_its_own_entry(apply, api):
    """Written by its node, and by an applier through the sub-resource."""
    apply(POD, pod(), code=201)
    api.set_pod_status("p", {"phase": "Running"})
    entries = managers(api.get(POD))
    assert entries[("", "Update", "status")] == {"f:status": {"f:phase": {}}}
    status = {"conditions": [{"type": "example.com/x", "status": "True"}]}
    obj = apply(f"{POD}/status", pod(image="busybox:2") | {"status": status}, code=200)
    assert obj["spec"]["containers"][0]["image"] == "busybox:1"
    item = 'k:{"type":"example.com/x"}'
    fields = managers(obj)[("me", "Apply", "status")]["f:status"]["f:conditions"][item]
    assert fields == {".": {}, "f:type": {}, "f:status": {}}
    missing = apply(f"{CORE}/pods/none/status", pod() | {"metadata": {"name": "none"}}, code=404)
    assert missing["reason"] == "NotFound"


def test_defaults_and_admission_belong_to_nobody(apply):
    """So that another applier may set them without a conflict."""
    created = apply(POD, pod(ports=[{"containerPort": 80}]), code=201)
    (entry,) = managers(created).values()
    fields = entry["f:spec"]["f:containers"]['k:{"name":"c"}']
    assert set(fields) == {".", "f:name", "f:image", "f:ports"}
    assert fields["f:ports"] == {'k:{"containerPort":80,"protocol":"TCP"}': {".": {}, "f:containerPort": {}}}
    apply(POD, {**pod(), "spec": {"activeDeadlineSeconds": 9}}, manager="other")


def test_managers_are_written_by_the_object_itself(apply, api):
    """kubectl moves ownership this way; an empty list forgets all of it."""
    apply(MAP, config_map(a="1"), code=201)
    rename = [{"op": "replace", "path": "/metadata/managedFields/0/manager", "value": "you"}]
    code, obj = api.patch(MAP, rename, "json")
    assert (code, list(managers(obj))) == (200, [("you", "Apply", "")])
    assert apply(MAP, config_map(), manager="you").get("data") is None
    code, obj = api.patch(MAP, {"metadata": {"managedFields": [{}]}})
    assert (code, "managedFields" in obj["metadata"]) == (200, False)


SCRAPS = st.recursive(
    st.none() | st.booleans() | st.integers(-1, 99) | st.sampled_from(["", "a", "500m", "TCP"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["name", "labels", "spec", "containers", "ports", "containerPort", "status", "finalizers", "env"]
            ),
            inner,
            max_size=3,
        )
    ),
    max_leaves=12,
)

CONTAINERS = st.dictionaries(st.sampled_from(["env", "ports", "resources", "command", "tty"]), SCRAPS, max_size=2).map(
    lambda found: {"containers": [{"name": "c", "image": "busybox"} | found]}
)


@settings(max_examples=200)
@given(
    st.lists(
        st.tuples(SCRAPS, CONTAINERS | SCRAPS, st.booleans(), st.sampled_from(["me", "you"])), min_size=1, max_size=3
    )
)
def test_no_configuration_is_the_servers_fault(api, steps):
    """Whatever it holds, the answer is about it."""
    for meta, spec, to_status, manager in steps:
        name = {"name": "p"}
        body = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": name | meta if isinstance(meta, dict) else meta,
            "spec": spec,
        }
        url = f"{POD}{'/status' if to_status else ''}?fieldManager={manager}&force=true"
        code, answer = api.call("PATCH", url, body | {"status": spec}, content_type="application/apply-patch+yaml")
        assert code < 500, answer


@settings(max_examples=100)
@given(st.lists(SCRAPS, min_size=1, max_size=3))
def test_no_managed_fields_are_the_servers_fault(api, sent):
    """Clients may write anything there."""
    api.call("PATCH", f"{MAP}?fieldManager=me&force=1", config_map(a="1"), content_type="application/apply-patch+yaml")
    for entries in sent:
        code, answer = api.patch(MAP, {"metadata": {"managedFields": entries}, "data": {"a": "2"}})
        assert code < 500, answer


# -- custom resources ------------------------------------------------------------------------------------------


@pytest.fixture
def things(api):
    """A custom type with a list by key, a set, an atomic map, free-form content and a status."""
    item = {"type": "object", "required": ["key"], "properties": {"key": {"type": "string"}, "n": {"type": "integer"}}}
    texts = {"type": "array", "items": {"type": "string"}}
    spec = {
        "byKey": {
            "type": "array",
            "items": item,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["key"],
        },
        "set": {**texts, "x-kubernetes-list-type": "set"},
        "list": texts,
        "whole": {
            "type": "object",
            "additionalProperties": {"type": "string"},
            "x-kubernetes-map-type": "atomic",
        },
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "size": {"type": "integer", "default": 3},
    }
    schema = {
        "type": "object",
        "properties": {
            "spec": {"type": "object", "properties": spec},
            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        },
    }
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}},
    }
    names = {"plural": "things", "kind": "Thing"}
    api.post(
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        {
            "metadata": {"name": "things.example.com"},
            "spec": {"group": "example.com", "names": names, "scope": "Namespaced", "versions": [version]},
        },
    )
    api.settle()


def thing(meta=None, **spec):
    return {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "t"} | (meta or {}), "spec": spec}


@pytest.mark.usefixtures("things")
def test_custom_types_merge_by_their_schema(apply):
    """Items by key, values of sets, the rest as a whole."""
    apply(THING, thing(byKey=[{"key": "a", "n": 1}], set=["x"], free={"a": {"b": 1}}), code=201)
    got = apply(THING, thing(byKey=[{"key": "b"}, {"key": "a"}], set=["y"], free={"a": {"c": 1}}), manager="two")[
        "spec"
    ]
    assert got["byKey"] == [{"key": "b"}, {"key": "a", "n": 1}]
    assert (got["set"], got["free"], got["size"]) == (["x", "y"], {"a": {"b": 1, "c": 1}}, 3)
    got = apply(THING, thing(byKey=[{"key": "c"}]))["spec"]
    assert got["byKey"] == [{"key": "b"}, {"key": "a"}, {"key": "c"}]
    assert (got["set"], got["free"]) == (["y"], {"a": {"c": 1}})


@pytest.mark.usefixtures("things")
def test_atomic_fields_conflict_as_a_whole(apply):
    """Lists and atomic maps have one owner."""
    apply(THING, thing(whole={"a": "1"}, list=["a"]), code=201)
    told = apply(THING, thing(whole={"b": "1"}, list=["b"]), manager="two", code=409)["details"]["causes"]
    assert {cause["field"] for cause in told} == {".spec.whole", ".spec.list"}
    assert ".spec.nope: field not declared in schema" in apply(THING, thing(nope=1), code=400)["message"]


@pytest.mark.usefixtures("things")
def test_the_status_of_a_custom_resource_is_applied_alone(apply):
    """Metadata stays, but for who owns the status."""
    apply(THING, thing(size=1), code=201)
    obj = apply(f"{THING}/status", thing({"labels": {"a": "b"}}, size=9) | {"status": {"ok": True}})
    assert (obj["spec"], obj["status"], "labels" in obj["metadata"]) == ({"size": 1}, {"ok": True}, False)
    assert managers(obj)[("me", "Apply", "status")] == {"f:status": {"f:ok": {}}}
    assert apply(THING, thing(size=2) | {"status": {"ok": False}})["status"] == {"ok": True}


# -- races -----------------------------------------------------------------------------------------------------


class Meddler:
    """Webhooks during whose first thoughts somebody else creates or deletes the object."""

    def __init__(self, meddle):
        self._meddle = meddle

    def concern(self, rtype, namespace, subresource):
        return rtype.plural == "configmaps"

    async def mutate(self, draft):
        meddle, self._meddle = self._meddle, lambda: None
        meddle()

    async def validate(self, draft): ...

    async def validate_deletion(self, rtype, old, options): ...

    async def validate_connection(self, operation, warnings): ...


def meddle_with(api, act):
    api.core.writes = AdmittedWrites(api.resources, Meddler(act))


def test_an_object_that_somebody_else_creates_meanwhile_is_updated(apply, api):
    """200, and the other's fields are still there."""
    rtype = api.core.registry.by_path("", "v1", "configmaps")
    meddle_with(api, lambda: api.resources.create(rtype, "default", {"metadata": {"name": "c"}, "data": {"b": "1"}}))
    assert apply(MAP, config_map(a="1"))["data"] == {"b": "1", "a": "1"}


def test_an_object_that_somebody_else_deletes_meanwhile_is_created(apply, api):
    """201 with nothing but the configuration."""
    rtype = api.core.registry.by_path("", "v1", "configmaps")
    api.post(f"{CORE}/configmaps", config_map(b="1"))
    meddle_with(api, lambda: api.resources.delete(rtype, "default", "c"))
    assert apply(MAP, config_map(a="1"), code=201)["data"] == {"a": "1"}
