"""Custom resource definitions and the objects they define."""

import json

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


def test_custom_objects_are_advised_about_finalizers_of_one_word(widgets):
    """Once; they may have them, as on other servers."""
    obj = widget()
    obj["metadata"]["finalizers"] = ["orphan", "example.com/a", "hold"]
    answer = widgets.raw("POST", WIDGETS, obj)
    assert answer.status == 201
    (told,) = answer.warnings
    assert told.startswith('metadata.finalizers: "hold": prefer a domain-qualified finalizer name')
    change = {"metadata": {"labels": {"a": "b"}}}
    again = widgets.raw("PATCH", f"{WIDGETS}/w", change, content_type="application/merge-patch+json")
    assert (again.status, again.warnings) == (200, ())


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


def test_a_custom_object_says_what_it_is(widgets):
    """Unlike one of a built-in type, whose path is enough."""
    obj = {key: value for key, value in widget().items() if key != "kind"}
    for code, status in (widgets.call("POST", WIDGETS, obj), widgets.call("PUT", f"{WIDGETS}/w", obj)):
        assert (code, status["reason"]) == (400, "BadRequest") and "Object 'Kind' is missing" in status["message"]
    obj = {key: value for key, value in widget().items() if key != "apiVersion"}
    code, status = widgets.call("POST", WIDGETS, obj)
    assert code == 400 and "does not match the expected API version (example.com/v1)" in status["message"]


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
        "spec.validation.openAPIV3Schema.properties[a].type",
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


# -- versions, names, schemas ----------------------------------------------------------------------------------


def with_schema(properties, **more):
    """A definition whose spec has these properties."""
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}} | more
    return definition(versions=[version(schema={"openAPIV3Schema": schema})])


def test_the_most_stable_version_is_preferred(api):
    """v1 before v1beta1 before v1alpha1, however they are listed."""
    names = ["v1alpha1", "v1", "v1beta1", "v2beta1"]
    api.post(DEFINITIONS, definition(versions=[version(name, storage=name == "v1") for name in names]))
    group = api.get("/apis/example.com")
    assert [found["version"] for found in group["versions"]] == ["v1", "v2beta1", "v1beta1", "v1alpha1"]
    assert group["preferredVersion"]["version"] == "v1"


def test_a_name_that_another_definition_has_is_not_accepted_until_it_is_free(api):
    """NamesAccepted tells which; nothing is served meanwhile."""
    api.post(DEFINITIONS, definition())
    names = {"plural": "gadgets", "kind": "Gadget", "shortNames": ["wd"]}
    api.post(DEFINITIONS, definition("gadgets.example.com", names=names))
    gadgets = "/apis/example.com/v1/namespaces/default/gadgets"
    assert condition_of(api, "gadgets", "NamesAccepted") == ("False", "ShortNamesConflict", '"wd" is already in use')
    assert condition_of(api, "gadgets", "Established")[:2] == ("False", "NotAccepted")
    assert api.call("GET", gadgets)[0] == 404
    api.patch(f"{DEFINITIONS}/widgets.example.com", {"metadata": {"finalizers": None}})
    api.call("DELETE", f"{DEFINITIONS}/widgets.example.com")
    assert condition_of(api, "gadgets", "Established")[0] == "True"
    assert api.call("GET", gadgets)[0] == 200


def condition_of(api, plural, kind):
    found = api.get(f"{DEFINITIONS}/{plural}.example.com")["status"]["conditions"]
    told = next(item for item in found if item["type"] == kind)
    return told["status"], told["reason"], told["message"]


def test_what_is_stored_follows_a_changed_schema(api):
    """New defaults appear and dropped fields go, under the resourceVersion the object had."""
    api.post(DEFINITIONS, with_schema({"size": {"type": "integer"}, "old": {"type": "string"}}))
    before = api.post(WIDGETS, widget(old="x"))
    changed = with_schema({"size": {"type": "integer"}, "new": {"type": "string", "default": "n"}})
    code, _ = api.patch(f"{DEFINITIONS}/widgets.example.com", {"spec": changed["spec"]})
    assert code == 200
    after = api.get(f"{WIDGETS}/w")
    assert after["spec"] == {"size": 1, "new": "n"} == api.get(WIDGETS)["items"][0]["spec"]
    assert after["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]


def test_a_version_that_objects_were_stored_in_has_to_stay(api):
    """Until somebody says in the status that none is left."""
    url = f"{DEFINITIONS}/widgets.example.com"
    api.post(DEFINITIONS, definition(versions=[version("v1"), version("v2", storage=False)]))
    both = [version("v1", storage=False), version("v2")]
    _, moved = api.patch(url, {"spec": {"versions": both}})
    assert moved["status"]["storedVersions"] == ["v1", "v2"]
    code, status = api.patch(url, {"spec": {"versions": [version("v2")]}})
    assert (code, status["details"]["causes"][0]["field"]) == (422, "status.storedVersions[0]")
    api.patch(f"{url}/status", {"status": {"storedVersions": ["v2"]}})
    assert api.patch(url, {"spec": {"versions": [version("v2")]}})[0] == 200


def test_nothing_can_be_created_while_the_definition_goes_away(widgets):
    """403 in the words of a real server."""
    widgets.call("DELETE", f"{DEFINITIONS}/widgets.example.com")
    code, status = widgets.call("POST", WIDGETS, widget())
    assert code == 403 and "create not allowed while custom resource definition is terminating" in status["message"]


def test_fields_can_be_made_selectable(api):
    """selectableFields, for objects stored before too; any other field is not supported."""
    body = with_schema({"size": {"type": "integer"}, "color": {"type": "string"}})
    api.post(DEFINITIONS, body)
    for name, color in (("a", "red"), ("b", "blue")):
        api.post(WIDGETS, widget(name, color=color))
    assert api.call("GET", f"{WIDGETS}?fieldSelector=spec.color=red")[0] == 400
    body["spec"]["versions"][0]["selectableFields"] = [{"jsonPath": ".spec.color"}]
    assert api.patch(f"{DEFINITIONS}/widgets.example.com", {"spec": body["spec"]})[0] == 200
    found = api.get(f"{WIDGETS}?fieldSelector=spec.color=red")["items"]
    assert [item["metadata"]["name"] for item in found] == ["a"]


POD = {"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True}
PAIR = {
    "type": "object",
    "required": ["name"],
    "properties": {"name": {"type": "string"}, "n": {"type": "integer", "default": 7}},
}
VALUES = {
    "set": ({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}}, ["a", "b"], ["a", "a"]),
    "list map": (
        {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"], "items": PAIR},
        [{"name": "a", "n": 1}, {"name": "b", "n": 1}],
        [{"name": "a", "n": 1}, {"name": "a", "n": 2}],
    ),
    "date-time": ({"type": "string", "format": "date-time"}, "2026-01-02T03:04:05Z", "yesterday"),
    "byte": ({"type": "string", "format": "byte"}, "YQ==", "YQ"),
    "a format binds no number": ({"type": "integer", "format": "int32"}, 2**31, "2"),
    "not nullable in a list": ({"type": "array", "items": {"type": "string"}}, ["a"], [None]),
    "nullable": ({"type": "array", "items": {"type": "string", "nullable": True}}, [None], [1]),
    "embedded": (POD, {"apiVersion": "v1", "kind": "Pod", "x": 1}, {"kind": "Pod"}),
    "one of": (
        {"type": "object", "properties": PAIR["properties"], "oneOf": [{"required": ["name"]}, {"required": ["n"]}]},
        {"n": 1},
        {"n": 1, "name": "a"},
    ),
    "exclusive bound": ({"type": "number", "minimum": 1, "exclusiveMinimum": True}, 1.5, 1),
    "int or string": ({"x-kubernetes-int-or-string": True, "pattern": "%$"}, "5%", "5"),
}
FAULTS = {
    "a format binds no number": ("FieldValueTypeInvalid", "spec.it"),
    "byte": ("FieldValueTypeInvalid", "spec.it"),
    "date-time": ("FieldValueTypeInvalid", "spec.it"),
    "one of": ("FieldValueInvalid", "<nil>"),
    "set": ("FieldValueDuplicate", "spec.it[1]"),
    "list map": ("FieldValueDuplicate", "spec.it[1]"),
    "not nullable in a list": ("FieldValueTypeInvalid", "spec.it[0]"),
    "nullable": ("FieldValueTypeInvalid", "spec.it[0]"),
    "embedded": ("FieldValueRequired", "spec.it.apiVersion"),
}


@pytest.mark.parametrize("case", VALUES)
def test_values_are_held_against_their_schema(api, case):
    """The right one comes back as sent, the wrong one is refused with its place."""
    schema, right, wrong = VALUES[case]
    api.post(DEFINITIONS, with_schema({"size": {"type": "integer"}, "it": schema}))
    assert api.post(WIDGETS, widget("right", it=right))["spec"]["it"] == right
    code, status = api.call("POST", WIDGETS, widget("wrong", it=wrong))
    assert code == 422, status
    told = [(cause["reason"], cause["field"]) for cause in status["details"]["causes"]]
    assert told == [FAULTS.get(case, ("FieldValueInvalid", "spec.it"))]


def test_items_of_lists_and_values_of_maps_get_their_defaults(api):
    """Wherever an object appears, its own defaults apply."""
    api.post(
        DEFINITIONS,
        with_schema(
            {
                "size": {"type": "integer"},
                "items": {"type": "array", "items": PAIR},
                "map": {"type": "object", "additionalProperties": PAIR},
            }
        ),
    )
    spec = api.post(WIDGETS, widget(items=[{"name": "a"}], map={"k": {"name": "b"}}))["spec"]
    assert (spec["items"], spec["map"]) == ([{"name": "a", "n": 7}], {"k": {"name": "b", "n": 7}})


COLUMNS = {
    "integer": (".spec.size", 3, "integer"),
    "number": (".spec.size", 3.0, "number"),
    "boolean": (".spec.on", True, "boolean"),
    "string": (".spec.color", "red", "string"),
    "string of a number": (".spec.size", "3", "string"),
    "string of a list": (".spec.tags", '["a","b"]', "string"),
    "first of many": (".spec.tags[*]", "a", "string"),
    "date": (".metadata.creationTimestamp", "0s", "date"),
    "no date": (".spec.color", "<invalid>", "date"),
    "absent": (".spec.none", None, "string"),
    "another type": (".spec.color", None, "integer"),
}


@pytest.mark.parametrize(("path", "cell", "kind"), COLUMNS.values(), ids=COLUMNS)
def test_printer_columns(api, path, cell, kind):
    """As a real server fills them; priority 1 is for `-o wide`."""
    body = with_schema(
        {
            "size": {"type": "integer"},
            "on": {"type": "boolean"},
            "color": {"type": "string"},
            "tags": {"type": "array", "items": {"type": "string"}},
        }
    )
    column = {"name": "It", "type": kind, "jsonPath": path, "priority": 1}
    body["spec"]["versions"][0]["additionalPrinterColumns"] = [column]
    api.post(DEFINITIONS, body)
    api.post(WIDGETS, widget(size=3, on=True, color="red", tags=["a", "b"]))
    _, table = api.call("GET", WIDGETS, accept="application/json;as=Table;v=v1;g=meta.k8s.io")
    assert [(found["name"], found["type"], found["priority"]) for found in table["columnDefinitions"]] == [
        ("Name", "string", 0),
        ("It", kind, 1),
    ]
    assert table["rows"][0]["cells"] == ["w", cell]


def version_with(**changes):
    return definition(versions=[version(**changes)])


WRONG = {
    "conversion webhook": (definition(conversion={"strategy": "Webhook"}), "spec.conversion.strategy"),
    "unknown conversion": (definition(conversion={"strategy": "Magic"}), "spec.conversion.strategy"),
    "preserving unknown fields": (definition(preserveUnknownFields=True), "spec.preserveUnknownFields"),
    "kind": (
        definition(names={"plural": "widgets", "kind": "a b", "singular": "a", "listKind": "L"}),
        "spec.names.kind",
    ),
    "short name": (
        definition(names={"plural": "widgets", "kind": "W", "shortNames": ["W"]}),
        "spec.names.shortNames[0]",
    ),
    "same list kind": (definition(names={"plural": "widgets", "kind": "W", "listKind": "W"}), "spec.names.listKind"),
    "version name": (version_with(name="1.0"), "spec.versions[0].name"),
    "same version twice": (definition(versions=[version(), version(storage=False)]), "spec.versions"),
    "column type": (
        version_with(additionalPrinterColumns=[{"name": "a", "type": "map", "jsonPath": ".a"}]),
        "spec.versions[0].additionalPrinterColumns[0].type",
    ),
    "column path": (
        version_with(additionalPrinterColumns=[{"name": "a", "type": "string", "jsonPath": "a"}]),
        "spec.versions[0].additionalPrinterColumns[0].jsonPath",
    ),
    "scale path": (
        version_with(subresources={"scale": {"specReplicasPath": ".a", "statusReplicasPath": ".status.b"}}),
        "spec.versions[0].subresources.scale.specReplicasPath",
    ),
    "selectable field": (
        version_with(selectableFields=[{"jsonPath": ".spec.nope"}]),
        "spec.versions[0].selectableFields[0].jsonPath",
    ),
}


@pytest.mark.parametrize(("body", "field"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_with_a_definition_is_told_with_its_field(api, body, field):
    """422, one cause."""
    code, status = api.call("POST", DEFINITIONS, body)
    assert code == 422, status
    assert [cause["field"] for cause in status["details"]["causes"]] == [field]


def test_protected_groups_need_an_approval(api):
    """Groups below k8s.io belong to the community."""
    body = definition("widgets.sigs.k8s.io", group="sigs.k8s.io")
    code, status = api.call("POST", DEFINITIONS, body)
    annotation = "api-approved.kubernetes.io"
    assert (code, status["details"]["causes"][0]["field"]) == (422, f"metadata.annotations[{annotation}]")
    body["metadata"]["annotations"] = {annotation: "https://example.com/1"}
    told = {found["type"]: found["reason"] for found in api.post(DEFINITIONS, body)["status"]["conditions"]}
    assert told["KubernetesAPIApprovalPolicyConformant"] == "ApprovedAnnotation"


def test_versions_of_one_group_are_ordered_over_all_its_definitions(api):
    """Whichever definition came first."""
    api.post(DEFINITIONS, definition(versions=[version("v1alpha1")]))
    names = {"plural": "gadgets", "kind": "Gadget"}
    api.post(DEFINITIONS, definition("gadgets.example.com", names=names))
    assert [found["version"] for found in api.get("/apis/example.com")["versions"]] == ["v1", "v1alpha1"]


def test_without_a_status_sub_resource_the_status_is_part_of_the_object(api):
    """It is kept at creation, and its change moves the generation."""
    api.post(DEFINITIONS, definition(versions=[version(subresources={})]))
    created = api.post(WIDGETS, widget() | {"status": {"seen": 1}})
    assert created["status"] == {"seen": 1}
    _, changed = api.patch(f"{WIDGETS}/w", {"status": {"seen": 2}})
    assert (changed["status"], changed["metadata"]["generation"]) == ({"seen": 2}, 2)
    assert api.patch(f"{WIDGETS}/w/status", {"status": {"seen": 3}})[0] == 404


def test_a_definition_that_goes_away_says_so(widgets):
    """The condition Terminating, while its objects are being removed."""
    widgets.call("DELETE", f"{DEFINITIONS}/widgets.example.com")
    assert condition_of(widgets, "widgets", "Terminating")[:2] == ("True", "InstanceDeletionInProgress")


@pytest.mark.parametrize("depth", [300, 600, 2000])
def test_a_body_too_deep_to_walk_is_the_callers_fault(widgets, depth):
    """Stored or 400, whichever step finds out; never a fault of the server."""
    body = json.dumps(widget(free="deep")).replace('"deep"', '{"a":' * depth + "1" + "}" * depth)
    code, answer = widgets.call("POST", WIDGETS, body.encode())
    assert code == 201 or (code, answer["reason"]) == (400, "BadRequest")
    assert code == 400 or depth < 2000


def test_a_definition_in_place_of_a_built_in_type_takes_nothing_away(api):
    """Built-in types come first, and outlive it."""
    body = definition("leases.coordination.k8s.io", group="coordination.k8s.io")
    body["spec"]["names"] = {"plural": "leases", "kind": "Rent"}
    body["metadata"]["annotations"] = {"api-approved.kubernetes.io": "unapproved, a test"}
    api.post(DEFINITIONS, body)
    leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
    api.post(leases, {"metadata": {"name": "held"}, "spec": {}})
    api.call("DELETE", f"{DEFINITIONS}/leases.coordination.k8s.io")
    api.settle()
    assert api.call("GET", f"{DEFINITIONS}/leases.coordination.k8s.io")[0] == 404
    assert [lease["metadata"]["name"] for lease in api.get(leases)["items"]] == ["held"]


def test_metrics_are_the_last_group_whatever_is_defined_later(api):
    """So that `kubectl get nodemetrics` finds a custom type of that plural before the metrics of nodes."""
    api.post(DEFINITIONS, definition())
    names = [group["name"] for group in api.get("/apis")["groups"]]
    assert names[-3:] == ["example.com", "scheduling.k8s.io", "metrics.k8s.io"]


def changed(**version):
    made = with_schema({"size": {"type": "integer"}})
    made["spec"]["versions"][0] |= version
    return made


SELECTED = [{"jsonPath": ".spec.size"}]
WRONG_VERSIONS = {
    "a warning of a version that is not deprecated": ({"deprecationWarning": "old"}, "can only be set for deprecated"),
    "an empty warning": ({"deprecated": True, "deprecationWarning": ""}, "must not be an empty string"),
    "a warning of two lines": (
        {"deprecated": True, "deprecationWarning": "a\nb"},
        "non-printable character found at index 1",
    ),
    "a long warning": ({"deprecated": True, "deprecationWarning": "x" * 257}, "must be <= 256 characters long"),
    "a field selected twice": ({"selectableFields": SELECTED * 2}, 'Duplicate value: ".spec.size"'),
}


@pytest.mark.parametrize(("version", "words"), WRONG_VERSIONS.values(), ids=WRONG_VERSIONS)
def test_a_version_is_refused(api, version, words):
    """With the words of Kubernetes."""
    code, status = api.call("POST", DEFINITIONS, changed(**version))
    assert code == 422 and words in status["message"], status


def test_the_root_of_an_object_with_a_status_is_not_compared(api):
    """The status is held to its own schema alone, which would lose what the root says."""
    made = changed(subresources={"status": {}})
    made["spec"]["versions"][0]["schema"]["openAPIV3Schema"] |= {"maxProperties": 4}
    code, status = api.call("POST", DEFINITIONS, made)
    assert code == 422 and "fields are allowed at the root of the schema if the status sub" in status["message"], status


def test_a_webhook_belongs_to_the_strategy_of_its_name(api):
    """And to no other."""
    made = changed()
    made["spec"]["conversion"] = {"strategy": "None", "webhook": {"conversionReviewVersions": ["v1"]}}
    code, status = api.call("POST", DEFINITIONS, made)
    assert code == 422 and "should not be set when strategy is not set to Webhook" in status["message"]


def test_a_format_that_nobody_knows_is_warned_of_once(api):
    """It binds nobody, and is not told of again while it stays."""
    text = {"type": "string", "format": "telephone"}
    answer = api.raw("POST", DEFINITIONS, with_schema({"it": text}))
    assert (answer.status, answer.warnings) == (201, ('unrecognized format "telephone"',))
    again = api.raw("PUT", f"{DEFINITIONS}/widgets.example.com", api.get(f"{DEFINITIONS}/widgets.example.com"))
    assert (again.status, again.warnings) == (200, ())


COSTLY = {"type": "array", "items": {"type": "string"}}
COSTLY["x-kubernetes-validations"] = [{"rule": "self.all(x, self.all(y, x != y))"}]


def test_a_definition_whose_rules_cost_too_much_is_refused(api):
    """New, and where a change makes it so."""
    code, status = api.call("POST", DEFINITIONS, with_schema({"it": COSTLY}))
    assert code == 422 and "estimated rule cost exceeds budget by factor of more than 100x" in status["message"]
    api.post(DEFINITIONS, with_schema({"it": COSTLY | {"maxItems": 10, "items": {"type": "string", "maxLength": 9}}}))
    found = api.get(f"{DEFINITIONS}/widgets.example.com")
    found["spec"]["versions"][0]["schema"] = with_schema({"it": COSTLY})["spec"]["versions"][0]["schema"]
    code, status = api.call("PUT", f"{DEFINITIONS}/widgets.example.com", found)
    assert code == 422 and "exceeds budget" in status["message"]
