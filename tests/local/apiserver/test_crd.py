"""Custom resource definitions and the objects they define."""

import pytest

SIZE = {"type": "integer", "minimum": 1, "maximum": 10}
SPEC = {
    "type": "object",
    "required": ["size"],
    "properties": {
        "size": SIZE,
        "color": {"type": "string", "enum": ["red", "blue"], "default": "red"},
        "code": {"type": "string", "pattern": "^[a-z]+$"},
        "when": {"x-kubernetes-int-or-string": True},
        "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 2},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "amounts": {"type": "object", "additionalProperties": {"type": "integer"}},
        "nested": {"type": "object", "default": {}, "properties": {"level": {"type": "integer", "default": 3}}},
    },
}
SCHEMA = {
    "type": "object",
    "properties": {"spec": SPEC, "status": {"type": "object", "properties": {"seen": {"type": "integer"}}}},
}
WIDGETS = "/apis/example.com/v1/namespaces/default/widgets"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def version(name="v1", storage=True, **changes):
    found = {"name": name, "served": True, "storage": storage, "subresources": {"status": {}}}
    return found | {"schema": {"openAPIV3Schema": SCHEMA}} | changes


def definition(name="widgets.example.com", versions=None, **spec):
    names = {"plural": "widgets", "kind": "Widget", "shortNames": ["wd"]}
    found = {"group": "example.com", "names": names, "scope": "Namespaced", "versions": versions or [version()]} | spec
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": name},
        "spec": found,
    }


def widget(name="w", api_version="example.com/v1", **spec):
    return {"apiVersion": api_version, "kind": "Widget", "metadata": {"name": name}, "spec": {"size": 1} | spec}


@pytest.fixture
def widgets(api):
    api.post(DEFINITIONS, definition())
    return api


def test_a_definition_is_served_and_established_at_once(api):
    """After the definition is accepted its objects can be written, and its condition says so."""
    assert api.call("GET", WIDGETS)[0] == 404
    created = api.post(DEFINITIONS, definition())
    conditions = {found["type"]: found["status"] for found in created["status"]["conditions"]}
    assert conditions == {"NamesAccepted": "True", "Established": "True"}
    assert created["status"]["storedVersions"] == ["v1"]
    assert api.get(WIDGETS)["kind"] == "WidgetList"


def test_defaults_are_filled_in_nested_ones_too(widgets):
    """Defaults of a defaulted map apply inside it."""
    spec = widgets.post(WIDGETS, widget())["spec"]
    assert spec == {"size": 1, "color": "red", "nested": {"level": 3}}


INVALID = {
    "missing": ({"size": None}, "spec.size", "FieldValueRequired"),
    "too small": ({"size": 0}, "spec.size", "FieldValueInvalid"),
    "too large": ({"size": 11}, "spec.size", "FieldValueInvalid"),
    "wrong type": ({"size": "big"}, "spec.size", "FieldValueTypeInvalid"),
    "a flag is no number": ({"size": True}, "spec.size", "FieldValueTypeInvalid"),
    "not in the enum": ({"color": "green"}, "spec.color", "FieldValueNotSupported"),
    "pattern": ({"code": "A1"}, "spec.code", "FieldValueInvalid"),
    "neither number nor text": ({"when": []}, "spec.when", "FieldValueTypeInvalid"),
    "item of a list": ({"tags": ["a", 1]}, "spec.tags[1]", "FieldValueTypeInvalid"),
    "too many items": ({"tags": ["a", "b", "c"]}, "spec.tags", "FieldValueTooMany"),
    "value of a map": ({"amounts": {"x": "y"}}, "spec.amounts.x", "FieldValueTypeInvalid"),
}


@pytest.mark.parametrize(("spec", "field", "reason"), INVALID.values(), ids=INVALID)
def test_what_the_schema_does_not_allow_is_refused_with_its_path(widgets, spec, field, reason):
    """422 with one cause that names the field."""
    code, status = widgets.call("POST", WIDGETS, widget(**spec))
    assert (code, status["reason"]) == (422, "Invalid")
    assert [(cause["field"], cause["reason"]) for cause in status["details"]["causes"]] == [(field, reason)]


def test_int_or_string_takes_both(widgets):
    """x-kubernetes-int-or-string."""
    assert widgets.post(WIDGETS, widget("a", when=3))["spec"]["when"] == 3
    assert widgets.post(WIDGETS, widget("b", when="30%"))["spec"]["when"] == "30%"


def test_unknown_fields_are_pruned_with_a_warning(widgets):
    """Unless the schema preserves them."""
    sent = widget(frob=1, free={"any": {"thing": 1}})
    answer = widgets.raw("POST", WIDGETS, sent)
    assert answer.status == 201
    assert answer.warnings == ('unknown field "spec.frob"',)
    spec = widgets.get(f"{WIDGETS}/w")["spec"]
    assert "frob" not in spec and spec["free"] == {"any": {"thing": 1}}


def test_strict_validation_refuses_unknown_fields(widgets):
    """kubectl asks for it by default."""
    code, status = widgets.call("POST", f"{WIDGETS}?fieldValidation=Strict", widget(frob=1))
    assert code == 400 and 'unknown field "spec.frob"' in status["message"]


def test_status_is_written_apart_and_moves_no_generation(widgets):
    """Main writes ignore the status; status writes ignore everything else."""
    created = widgets.post(WIDGETS, widget() | {"status": {"seen": 1}})
    assert "status" not in created and created["metadata"]["generation"] == 1
    _, same = widgets.patch(f"{WIDGETS}/w", {"status": {"seen": 2}})
    assert same["metadata"]["resourceVersion"] == created["metadata"]["resourceVersion"]
    body = {"spec": {"size": 9}, "status": {"seen": 3}, "metadata": {"labels": {"a": "b"}}}
    _, seen = widgets.patch(f"{WIDGETS}/w/status", body)
    assert (seen["status"], seen["spec"]["size"], seen["metadata"].get("labels")) == ({"seen": 3}, 1, None)
    assert seen["metadata"]["generation"] == 1
    _, changed = widgets.patch(f"{WIDGETS}/w", {"spec": {"size": 2}})
    assert (changed["metadata"]["generation"], changed["status"]) == (2, {"seen": 3})


def test_replacing_needs_a_resource_version_and_strategic_patches_do_not_apply(widgets):
    """Custom resources are stricter than pods here."""
    widgets.post(WIDGETS, widget())
    assert widgets.call("PUT", f"{WIDGETS}/w", widget(size=2))[0] == 422
    assert widgets.patch(f"{WIDGETS}/w", {"spec": {"size": 2}}, "strategic")[0] == 415


def test_several_versions_show_the_same_objects(api):
    """An object is stored once and answers in every served version."""
    versions = [version("v1"), version("v2", storage=False)]
    api.post(DEFINITIONS, definition(versions=versions))
    other = "/apis/example.com/v2/namespaces/default/widgets"
    api.post(other, widget(api_version="example.com/v2"))
    assert api.get(f"{WIDGETS}/w")["apiVersion"] == "example.com/v1"
    assert api.get(f"{other}/w")["apiVersion"] == "example.com/v2"
    assert [found["apiVersion"] for found in api.get(other)["items"]] == ["example.com/v2"]
    assert [event["object"]["apiVersion"] for event in api.watch(f"{other}?watch=1")] == ["example.com/v2"]


def test_a_version_no_longer_served_is_gone(api):
    """An update of the definition changes what is served."""
    api.post(DEFINITIONS, definition(versions=[version("v1"), version("v2", storage=False)]))
    api.patch(f"{DEFINITIONS}/widgets.example.com", {"spec": {"versions": [version("v1")]}})
    assert api.call("GET", "/apis/example.com/v2/namespaces/default/widgets")[0] == 404
    assert api.call("GET", WIDGETS)[0] == 200


def test_deleting_a_definition_deletes_its_objects(widgets):
    """The finalizer holds the definition until the last of them is gone."""
    widgets.post(WIDGETS, widget())
    held = widget("held")
    held["metadata"]["finalizers"] = ["example.com/hold"]
    widgets.post(WIDGETS, held)
    widgets.call("DELETE", f"{DEFINITIONS}/widgets.example.com")
    widgets.settle()
    assert [found["metadata"]["name"] for found in widgets.get(WIDGETS)["items"]] == ["held"]
    widgets.patch(f"{WIDGETS}/held", {"metadata": {"finalizers": None}})
    widgets.settle()
    assert widgets.call("GET", f"{DEFINITIONS}/widgets.example.com")[0] == 404
    assert widgets.call("GET", WIDGETS)[0] == 404


BROKEN = {
    "name is not plural.group": (definition("gadgets.example.com"), "metadata.name"),
    "no storage version": (definition(versions=[version(storage=False)]), "spec.versions"),
    "unknown scope": (definition(scope="Galaxy"), "spec.scope"),
    "no schema": (definition(versions=[version(schema={})]), "spec.versions[0].schema.openAPIV3Schema"),
    "untyped field": (
        definition(versions=[version(schema={"openAPIV3Schema": {"type": "object", "properties": {"a": {}}}})]),
        "spec.versions[0].schema.openAPIV3Schema.properties[a].type",
    ),
}


@pytest.mark.parametrize(("body", "field"), BROKEN.values(), ids=BROKEN)
def test_a_broken_definition_is_refused(api, body, field):
    """A definition that cannot be served is 422 and names the field."""
    code, status = api.call("POST", DEFINITIONS, body)
    assert code == 422
    assert status["details"]["causes"][0]["field"] == field


def test_empty_and_null_defaults_survive_storage(api):
    """A schema's `default: {}` is meaning, not emptiness."""
    api.post(DEFINITIONS, definition())
    stored = api.get(f"{DEFINITIONS}/widgets.example.com")["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    assert stored["properties"]["spec"]["properties"]["nested"]["default"] == {}
