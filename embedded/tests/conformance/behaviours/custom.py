"""Custom resource definitions and the objects they bring."""

from __future__ import annotations

from typing import Any

from embedded.tests.conformance import pages
from embedded.tests.conformance import resources as r
from embedded.tests.conformance.behaviour import Via, behaviour
from embedded.tests.conformance.case import Case
from embedded.tests.conformance.resources import DEFINITIONS, Object, Resource, definition, widgets

_REPLICAS = {"type": "object", "properties": {"replicas": {"type": "integer"}, "size": {"type": "integer"}}}
_STATUS: Object = {"subresources": {"status": {}}}
_SCALE = {"scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}}


def _object(**properties: Any) -> Object:
    return {"type": "object", "properties": properties}


def _group(t: Case) -> str:
    return t.unique("g") + ".example.com"


def _refused(t: Case, schema: Object, spec: Any, *words: str) -> None:
    custom = t.custom(schema)
    with t.refused("Invalid", *words):
        t.create(custom, custom.object("w", spec=spec))


@behaviour(pages.CUSTOM, Via.CODE)
def a_definition_is_accepted_and_established(t: Case) -> None:
    group = _group(t)
    t.create(DEFINITIONS, definition(group))

    def conditions() -> bool:
        found = t.now(DEFINITIONS, f"widgets.{group}")["status"].get("conditions") or ()
        return {"NamesAccepted", "Established"} <= {item["type"] for item in found if item["status"] == "True"}

    t.eventually(conditions, "the definition's conditions")
    status = t.now(DEFINITIONS, f"widgets.{group}")["status"]
    assert status["acceptedNames"]["kind"] == "Widget" and status["storedVersions"] == ["v1"]


@behaviour(pages.CUSTOM, Via.CODE)
def a_definition_is_named_by_plural_and_group(t: Case) -> None:
    obj = definition(_group(t))
    obj["metadata"]["name"] = t.unique("other")
    with t.refused("Invalid", "metadata.name"):
        t.create(DEFINITIONS, obj)


@behaviour(pages.CUSTOM_SCHEMA, Via.RAW | Via.KUBECTL, Via.RAW)
def a_schema_must_be_structural(t: Case) -> None:
    untyped = definition(_group(t), {"properties": {"a": {"type": "string"}}})
    with t.refused("Invalid", "openAPIV3Schema.properties[spec].type", "Required value"):
        t.create(DEFINITIONS, untyped)


_TEXTS = {"type": "array", "items": {"type": "string"}}
_REFUSED: tuple[tuple[str, Object, str], ...] = (
    (
        "a rule that may cost too much is refused",
        _object(xs=_TEXTS | {"x-kubernetes-validations": [{"rule": "self.all(x, self.exists_one(y, x == y))"}]}),
        "estimated rule cost exceeds budget by factor of more than 100x",
    ),
    (
        "a rule that uses what Kubernetes does not have is refused",
        _object(n={"type": "integer", "x-kubernetes-validations": [{"rule": "math.abs(self) > 3"}]}),
        "undeclared reference to",
    ),
    ("a pattern with look ahead is refused", _object(a={"type": "string", "pattern": "^(?=.*a)"}), "error parsing reg"),
    (
        "a default that breaks a rule is refused",
        _object(n={"type": "integer", "default": 1, "x-kubernetes-validations": [{"rule": "self > 3"}]}),
        "failed rule: self > 3",
    ),
)


def _enter_refused(title: str, schema: Object, words: str) -> None:
    @behaviour(pages.CUSTOM_SCHEMA, Via.CODE, name=title)
    def refused(t: Case) -> None:
        with t.refused("Invalid", words):
            t.create(DEFINITIONS, definition(_group(t), schema))


for _case in _REFUSED:
    _enter_refused(*_case)


@behaviour(pages.CUSTOM_SCHEMA, Via.CODE)
def what_every_object_has_cannot_be_given_a_default(t: Case) -> None:
    made = definition(_group(t))
    made["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["metadata"] = _object(
        name={"type": "string", "default": "x"}
    )
    with t.refused("Invalid", "must not be set in top-level metadata"):
        t.create(DEFINITIONS, made)


@behaviour(pages.CUSTOM_SCHEMA, Via.CODE)
def an_object_cannot_be_null(t: Case) -> None:
    made = definition(_group(t))
    made["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["nullable"] = True
    with t.refused("Invalid", "nullable cannot be true at the root"):
        t.create(DEFINITIONS, made)


@behaviour(pages.CUSTOM_VERSIONS, Via.CODE)
def only_a_deprecated_version_has_a_warning(t: Case) -> None:
    with t.refused("Invalid", "deprecationWarning", "can only be set for deprecated versions"):
        t.create(DEFINITIONS, definition(_group(t), deprecationWarning="old"))


@behaviour(pages.CUSTOM_SCHEMA, Via.CODE)
def a_pattern_is_one_of_re2(t: Case) -> None:
    custom = t.custom(_object(a={"type": "string", "pattern": r"^[[:alpha:]]+\z"}))
    t.create(custom, custom.object("right", spec={"a": "abc"}))
    with t.refused("Invalid", "should match"):
        t.create(custom, custom.object("wrong", spec={"a": "abc\n"}))


@behaviour(pages.CUSTOM_SCHEMA, Via.CODE)
def the_format_of_a_number_does_not_bind(t: Case) -> None:
    custom = t.custom(_object(n={"type": "integer", "format": "int32"}))
    assert t.create(custom, custom.object("w", spec={"n": 2**31}))["spec"]["n"] == 2**31


@behaviour(pages.CUSTOM_VERSIONS, Via.CODE)
def exactly_one_version_is_stored(t: Case) -> None:
    with t.refused("Invalid", "spec.versions"):
        t.create(DEFINITIONS, definition(_group(t), storage=False))


@behaviour(pages.CUSTOM, Via.RAW)
def a_definition_is_in_discovery_and_openapi(t: Case) -> None:
    custom = t.custom(_REPLICAS, **_STATUS)
    entries = {item["name"]: item for item in t.raw.call("GET", f"/apis/{custom.group}/v1")["resources"]}
    assert entries["widgets"]["kind"] == "Widget" and "widgets/status" in entries
    assert custom.group in {group["name"] for group in t.raw.call("GET", "/apis")["groups"]}

    def described() -> bool:
        return f"apis/{custom.group}/v1" in t.raw.call("GET", "/openapi/v3")["paths"]

    t.eventually(described, "the OpenAPI document")


@behaviour(pages.CUSTOM, Via.RAW)
def deleting_a_definition_deletes_its_objects_and_its_api(t: Case) -> None:
    custom = t.custom(_REPLICAS)
    t.given(custom, custom.object("w", spec={}))
    t.raw.delete(DEFINITIONS, "", f"widgets.{custom.group}")
    t.eventually(lambda: t.raw.answer("GET", custom.path(t.ns)).code == 404, "the API gone")
    t.gone(DEFINITIONS, f"widgets.{custom.group}")


_RULES: tuple[tuple[str, Object, Object, str], ...] = (
    ("a custom field has its type", _object(n={"type": "integer"}), {"n": "one"}, "spec.n"),
    ("a custom field may be required", _object(n={"type": "integer"}) | {"required": ["n"]}, {}, "spec.n"),
    ("a custom number has its bounds", _object(n={"type": "integer", "minimum": 1, "maximum": 9}), {"n": 10}, "spec.n"),
    ("a custom text matches its pattern", _object(n={"type": "string", "pattern": "^a+$"}), {"n": "b"}, "spec.n"),
    (
        "a custom value is one of its enumeration",
        _object(n={"type": "string", "enum": ["a", "b"]}),
        {"n": "c"},
        "spec.n",
    ),
    (
        "a custom list has its length",
        _object(n={"type": "array", "maxItems": 1, "items": {"type": "string"}}),
        {"n": ["a", "b"]},
        "spec.n",
    ),
    ("a custom text has its length", _object(n={"type": "string", "minLength": 3}), {"n": "ab"}, "spec.n"),
    ("a custom date is one", _object(n={"type": "string", "format": "date-time"}), {"n": "today"}, "spec.n"),
    (
        "a custom set holds each value once",
        _object(n={"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}}),
        {"n": ["a", "a"]},
        "spec.n[1]",
    ),
)


def _enter(title: str, schema: Object, spec: Object, field: str) -> None:
    @behaviour(pages.CUSTOM_VALIDATION, Via.RAW | Via.KUBECTL, Via.RAW, name=title)
    def invalid(t: Case) -> None:
        _refused(t, schema, spec, field)


for _row in _RULES:
    _enter(*_row)


@behaviour(pages.CUSTOM_PRUNING)
def unknown_custom_fields_are_pruned(t: Case) -> None:
    custom = t.custom(_REPLICAS)
    if t.by_kubectl:
        found = t.create(custom, custom.object("w", spec={"size": 1, "unknown": 2}), field_validation="Ignore")
    else:
        found = t.create(custom, custom.object("w", spec={"size": 1, "unknown": 2}))
    assert found["spec"] == {"size": 1}


@behaviour(pages.CUSTOM + "#controlling-pruning", Via.CODE)
def unknown_custom_fields_stay_where_the_schema_keeps_them(t: Case) -> None:
    custom = t.custom(_object(free={"type": "object", "x-kubernetes-preserve-unknown-fields": True}))
    found = t.create(custom, custom.object("w", spec={"free": {"any": [1, {"b": None}]}, "other": 1}))
    assert found["spec"].keys() == {"free"} and found["spec"]["free"]["any"][0] == 1


@behaviour(pages.VALIDATION, Via.RAW | Via.KUBECTL)
def strict_validation_refuses_unknown_custom_fields(t: Case) -> None:
    custom = t.custom(_REPLICAS)
    with t.refused("BadRequest", 'unknown field "spec.unknown"'):
        t.create(custom, custom.object("w", spec={"unknown": 2}), field_validation="Strict")


@behaviour(pages.CUSTOM_DEFAULTS)
def custom_fields_have_defaults_deep_down(t: Case) -> None:
    item = _object(id={"type": "string"}, size={"type": "integer", "default": 3})
    custom = t.custom(_object(mode={"type": "string", "default": "slow"}, parts={"type": "array", "items": item}))
    found = t.create(custom, custom.object("w", spec={"parts": [{"id": "a"}, {"id": "b", "size": 1}]}))
    assert found["spec"] == {"mode": "slow", "parts": [{"id": "a", "size": 3}, {"id": "b", "size": 1}]}


@behaviour(pages.CUSTOM_DEFAULTS + "-and-nullable", Via.CODE)
def a_null_stays_where_the_schema_allows_it_and_else_is_defaulted(t: Case) -> None:
    nullable = {"type": "string", "nullable": True}
    plain = {"type": "string", "default": "given"}
    custom = t.custom(_object(a=nullable, b=plain))
    found = t.create(custom, custom.object("w", spec={"a": None, "b": None}))
    assert found["spec"] == {"a": None, "b": "given"}


@behaviour(pages.CUSTOM_SCHEMA, Via.CODE)
def a_custom_field_may_be_a_number_or_text(t: Case) -> None:
    custom = t.custom(_object(port={"x-kubernetes-int-or-string": True}))
    for name, port in (("a", 80), ("b", "http")):
        assert t.create(custom, custom.object(name, spec={"port": port}))["spec"]["port"] == port
    with t.refused("Invalid", "spec.port"):
        t.create(custom, custom.object("c", spec={"port": [1]}))


@behaviour(pages.CUSTOM_STATUS, Via.ALL)
def a_custom_status_is_written_apart(t: Case) -> None:
    custom = t.custom(_REPLICAS, **_STATUS)
    assert "status" not in t.create(custom, custom.object("w", spec={"size": 1}, status={"seen": 1}))
    t.patch(custom, "w", "merge", {"spec": {"size": 9}, "status": {"seen": 2}}, subresource="status")
    t.patch(custom, "w", "merge", {"status": {"seen": 3}})
    found = t.now(custom, "w")
    assert (found["spec"], found["status"]) == ({"size": 1}, {"seen": 2})


@behaviour(pages.CUSTOM_STATUS, Via.CODE)
def the_generation_of_a_custom_object_counts_changes_outside_metadata_and_status(t: Case) -> None:
    custom = t.custom(_REPLICAS, **_STATUS)
    t.given(custom, custom.object("w", spec={"size": 1}))
    bodies: tuple[tuple[Object, str, int], ...] = (
        ({"metadata": {"labels": {"a": "b"}}}, "", 1),
        ({"status": {"seen": 1}}, "status", 1),
        ({"spec": {"size": 2}}, "", 2),
    )
    for body, subresource, generation in bodies:
        found = t.patch(custom, "w", "merge", body, subresource=subresource)
        assert found["metadata"]["generation"] == generation, body


@behaviour(pages.CUSTOM_SCALE, Via.CODE)
def a_scale_shows_and_sets_the_replicas(t: Case) -> None:
    custom = t.custom(_REPLICAS, subresources={"status": {}} | _SCALE)
    t.given(custom, custom.object("w", spec={"replicas": 2}))
    path = t.path(custom, "w", "scale")
    found = t.raw.call("GET", path)
    assert (found["kind"], found["apiVersion"], found["spec"]) == ("Scale", "autoscaling/v1", {"replicas": 2})
    assert found["status"] == {"replicas": 0}
    body = {"spec": {"replicas": 5}}
    assert t.patch(custom, "w", "merge", body, subresource="scale")["spec"]["replicas"] == 5
    assert t.now(custom, "w")["spec"]["replicas"] == 5


@behaviour(pages.CUSTOM_SCALE, Via.RAW)
def a_scale_is_that_of_its_object(t: Case) -> None:
    t.given(r.DEPLOYMENTS, r.workload(r.DEPLOYMENTS, "w", replicas=0))
    path, scale = t.path(r.DEPLOYMENTS, "w", "scale"), {"spec": {"replicas": 5}}
    for meta, code in (
        ({}, 400),
        ({"name": "other"}, 400),
        ({"name": "w", "namespace": "other"}, 400),
        ({"name": "w", "uid": "not-its-uid"}, 409),
    ):
        answer = t.raw.answer("PUT", path, body=scale | {"metadata": meta})
        assert answer.code == code, (meta, answer.body)
    for option in ({"dryRun": "Some"}, {"fieldValidation": "Some"}):
        assert t.raw.answer("PUT", path, body=scale | {"metadata": {"name": "w"}}, query=option).code == 422, option
    assert t.now(r.DEPLOYMENTS, "w")["spec"]["replicas"] == 0


@behaviour(pages.CUSTOM_SCALE, Via.KUBECTL, Via.ALL)
def kubectl_scales_a_custom_object(t: Case) -> None:
    custom = t.custom(_REPLICAS, subresources={"status": {}} | _SCALE)
    t.given(custom, custom.object("w", spec={"replicas": 2}))
    assert t.kubectl("scale", custom.argument, "w", "--replicas=4").out.strip().endswith("scaled")
    assert t.now(custom, "w")["spec"]["replicas"] == 4


def _printed(t: Case) -> Resource:
    columns = [
        {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
        {"name": "Mode", "type": "string", "jsonPath": ".spec.mode", "priority": 1},
        {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
    ]
    schema = _object(size={"type": "integer"}, mode={"type": "string"})
    custom = t.custom(schema, additionalPrinterColumns=columns)
    t.given(custom, custom.object("w", spec={"size": 7, "mode": "slow"}))
    return custom


@behaviour(pages.CUSTOM_COLUMNS, Via.RAW)
def a_definition_names_its_columns(t: Case) -> None:
    headers = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
    table = t.raw.call("GET", _printed(t).path(t.ns), headers=headers)
    columns = [(column["name"], column["type"], column["priority"]) for column in table["columnDefinitions"]]
    assert columns == [("Name", "string", 0), ("Size", "integer", 0), ("Mode", "string", 1), ("Age", "date", 0)]
    assert table["rows"][0]["cells"][:3] == ["w", 7, "slow"]


@behaviour(pages.CUSTOM_COLUMNS, Via.KUBECTL, Via.ALL)
def kubectl_prints_the_columns_of_a_definition(t: Case) -> None:
    custom = _printed(t)
    narrow = [line.split() for line in t.kubectl("get", custom.argument).out.splitlines()]
    assert narrow[0] == ["NAME", "SIZE", "AGE"] and narrow[1][:2] == ["w", "7"]
    wide = [line.split() for line in t.kubectl("get", custom.argument, "-owide").out.splitlines()]
    assert wide[0] == ["NAME", "SIZE", "MODE", "AGE"] and wide[1][:3] == ["w", "7", "slow"]


@behaviour(pages.CUSTOM_COLUMNS, Via.KUBECTL)
def a_definition_without_columns_shows_name_and_age(t: Case) -> None:
    custom = t.custom(_REPLICAS)
    t.given(custom, custom.object("w", spec={}))
    assert t.kubectl("get", custom.argument).out.splitlines()[0].split() == ["NAME", "AGE"]


@behaviour(pages.CUSTOM_CATEGORIES, Via.KUBECTL)
def short_names_and_categories_find_custom_objects(t: Case) -> None:
    group, word = _group(t), f"w{abs(hash(t.ns)) % 10**8}"
    obj = definition(group, _REPLICAS)
    obj["spec"]["names"] |= {"shortNames": [word], "categories": [word + "all"]}
    t.given(DEFINITIONS, obj)
    custom = t.served(widgets(group))
    t.given(custom, custom.object("w", spec={}))
    for name in (word, word + "all"):
        assert f"widget.{group}/w" in t.kubectl("get", name, "-oname").out


@behaviour(pages.CUSTOM_VERSIONS)
def an_object_is_served_in_every_served_version(t: Case) -> None:
    group = _group(t)
    obj = definition(group, _REPLICAS)
    second = obj["spec"]["versions"][0] | {"name": "v2", "storage": False}
    obj["spec"]["versions"].append(second)
    t.given(DEFINITIONS, obj)
    old, new = (t.served(widgets(group, version)) for version in ("v1", "v2"))
    t.create(old, old.object("w", spec={"size": 1}))
    found = t.get(new, "w")
    assert (found["apiVersion"], found["spec"]) == (f"{group}/v2", {"size": 1})
    t.patch(new, "w", "merge", {"spec": {"size": 2}})
    assert t.get(old, "w")["spec"] == {"size": 2}


@behaviour(pages.CUSTOM_VERSIONS, Via.RAW)
def a_version_that_is_not_served_is_not_found(t: Case) -> None:
    group = _group(t)
    obj = definition(group, _REPLICAS)
    obj["spec"]["versions"].append(obj["spec"]["versions"][0] | {"name": "v2", "storage": False, "served": False})
    t.given(DEFINITIONS, obj)
    t.served(widgets(group))
    assert t.raw.answer("GET", widgets(group, "v2").path(t.ns)).code == 404


@behaviour(pages.CUSTOM, Via.CODE)
def a_custom_object_must_be_replaced_from_a_version(t: Case) -> None:
    custom = t.custom(_REPLICAS)
    t.given(custom, custom.object("w", spec={}))
    with t.refused("Invalid", "metadata.resourceVersion", "must be specified for an update"):
        t.replace(custom, custom.object("w", spec={"size": 1}))


@behaviour(pages.CUSTOM_FIELDS, Via.CODE)
def custom_fields_may_be_selectable(t: Case) -> None:
    schema = _object(colour={"type": "string"})
    custom = t.custom(schema, selectableFields=[{"jsonPath": ".spec.colour"}])
    for name, colour in (("a", "red"), ("b", "blue")):
        t.given(custom, custom.object(name, spec={"colour": colour}))
    assert [item["metadata"]["name"] for item in t.list(custom, fields="spec.colour=blue")] == ["b"]


@behaviour(pages.CUSTOM, Via.CODE)
def a_cluster_scoped_definition_has_no_namespaces(t: Case) -> None:
    group = _group(t)
    obj = definition(group, _REPLICAS)
    obj["spec"]["scope"] = "Cluster"
    t.given(DEFINITIONS, obj)
    custom = t.served(Resource(group, "v1", "widgets", "Widget", namespaced=False))
    assert "namespace" not in t.create(custom, custom.object("w", spec={}))["metadata"]
    assert t.raw.answer("GET", widgets(group).path(t.ns)).code == 404


@behaviour(pages.CUSTOM, Via.KUBECTL, Via.ALL)
def kubectl_explains_a_custom_field(t: Case) -> None:
    described = {"type": "integer", "description": "How large it is."}
    custom = t.custom(_object(size=described))
    t.eventually(lambda: f"apis/{custom.group}/v1" in t.raw.call("GET", "/openapi/v3")["paths"], "the OpenAPI document")
    t.kubectl("api-resources")  # kubectl asks again what is served only here, or when a type is wholly unknown
    out = t.kubectl("explain", f"widgets.{custom.group}", "--recursive").out
    assert "size" in out and "<integer>" in out
    assert "How large it is." in t.kubectl("explain", "widgets.spec.size", f"--api-version={custom.group}/v1").out


def _ruled(rule: str, **rest: Any) -> Object:
    return _REPLICAS | {"x-kubernetes-validations": [{"rule": rule} | rest]}


@behaviour(pages.CUSTOM_RULES)
def a_rule_refuses_what_it_does_not_hold_for(t: Case) -> None:
    schema = _ruled("self.size <= self.replicas", message="too big", fieldPath=".size")
    _refused(t, schema, {"replicas": 1, "size": 2}, 'spec.size: Invalid value: "object": too big')


@behaviour(pages.CUSTOM_RULES, Via.CODE)
def a_rule_without_a_message_tells_itself(t: Case) -> None:
    _refused(t, _ruled("self.size < 2"), {"size": 2}, 'spec: Invalid value: "object": failed rule: self.size < 2')


@behaviour(pages.CUSTOM_RULES, Via.CODE)
def a_rule_makes_its_message(t: Case) -> None:
    schema = _ruled("self.size < 2", messageExpression="'%d is too many'.format([self.size])")
    _refused(t, schema, {"size": 2}, "2 is too many")


@behaviour(pages.CUSTOM_RULES, Via.CODE)
def a_rule_about_an_absent_field_is_an_error(t: Case) -> None:
    _refused(t, _ruled("self.size < 2"), {}, "no such key: size evaluating rule: self.size < 2")


@behaviour(pages.CUSTOM_RULES, Via.RAW | Via.KUBECTL, Via.RAW)
def a_rule_must_compile(t: Case) -> None:
    with t.refused("Invalid", "x-kubernetes-validations[0].rule", "undefined field 'sizes'"):
        t.create(DEFINITIONS, definition(_group(t), _ruled("self.sizes < 2")))


@behaviour(pages.CUSTOM_TRANSITIONS)
def a_transition_rule_is_about_changes(t: Case) -> None:
    custom = t.custom(_ruled("self.size == oldSelf.size", message="size stays"))
    t.create(custom, custom.object("w", spec={"size": 1}))
    t.patch(custom, "w", "merge", {"spec": {"replicas": 2}})
    with t.refused("Invalid", "size stays"):
        t.patch(custom, "w", "merge", {"spec": {"size": 2}})
