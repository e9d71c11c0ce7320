"""CEL rules of custom resources. What must hold is told in
https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#validation-rules.
"""

import pytest

from embedded.apiserver.cel.schema_types import escaped

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WIDGETS = "/apis/example.com/v1/namespaces/default/widgets"
TEXT, NUMBER = {"type": "string"}, {"type": "integer"}
INT_OR_STRING = {"x-kubernetes-int-or-string": True}


def ruled(rule, schema, **rest):
    """A schema with one rule."""
    return schema | {"x-kubernetes-validations": [{"rule": rule} | rest]}


def record(**properties):
    return {"type": "object", "properties": properties}


def array(items, kind=None, *keys):
    listed = {"x-kubernetes-list-type": kind} if kind else {}
    return (
        {"type": "array", "maxItems": 10, "items": items}
        | listed
        | ({"x-kubernetes-list-map-keys": list(keys)} if keys else {})
    )


def mapping(values, **rest):
    return {"type": "object", "maxProperties": 10, "additionalProperties": values} | rest


def definition(spec_schema, **root):
    schema = record(spec=spec_schema) | root
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"}
    spec = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]}
    return {"metadata": {"name": "widgets.example.com"}, "spec": spec}


def widget(spec, name="w"):
    return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name}, "spec": spec}


def told(answer):
    """Field and message of each cause."""
    code, obj = answer
    return [] if code < 300 else [(cause.get("field"), cause["message"]) for cause in obj["details"]["causes"]]


ABOVE = ruled("self > 0", NUMBER)
ITEM = record(name=TEXT, size=NUMBER)
OBJECTS = {
    "a rule that holds": (record(a=ABOVE), {"a": 1}, []),
    "a rule that does not": (
        record(a=ABOVE),
        {"a": 0},
        [("spec.a", 'Invalid value: "integer": failed rule: self > 0')],
    ),
    "a message": (
        record(a=ruled("self > 0", NUMBER, message=" more ")),
        {"a": 0},
        [("spec.a", 'Invalid value: "integer": more')],
    ),
    "a made message": (
        record(a=ruled("self > 0", NUMBER, messageExpression="'more than ' + (self < 0 ? 'less' : '0')", message="x")),
        {"a": 0},
        [("spec.a", 'Invalid value: "integer": more than 0')],
    ),
    "a message that cannot be made": (
        ruled("false", record(a=TEXT), messageExpression="self.a", message="x"),
        {},
        [("spec", 'Invalid value: "object": x')],
    ),
    "a reason": (
        record(a=ruled("false", NUMBER, reason="FieldValueForbidden", message="no")),
        {"a": 0},
        [("spec.a", "Forbidden: no")],
    ),
    "a field below": (
        ruled("self.a < self.b", record(a=NUMBER, b=NUMBER), fieldPath=".b", reason="FieldValueRequired", message="no"),
        {"a": 1, "b": 1},
        [("spec.b", "Required value: no")],
    ),
    "a field of a map": (
        ruled("false", record(m=mapping(NUMBER)), fieldPath=".m['a.b']", message="no"),
        {},
        [("spec.m[a.b]", 'Invalid value: "object": no')],
    ),
    "an absent field": (
        ruled("self.a > 0", record(a=NUMBER)),
        {},
        [("spec", 'Invalid value: "object": no such key: a evaluating rule: self.a > 0')],
    ),
    "an absent field with a rule": (record(a=ABOVE), {}, []),
    "presence": (ruled("has(self.a) || !has(self.b)", record(a=NUMBER, b=NUMBER)), {}, []),
    "items": (
        record(l=array(ABOVE)),
        {"l": [1, 0]},
        [("spec.l[1]", 'Invalid value: "integer": failed rule: self > 0')],
    ),
    "values": (
        record(m=mapping(ABOVE)),
        {"m": {"a": 0, "b": 1}},
        [("spec.m[a]", 'Invalid value: "integer": failed rule: self > 0')],
    ),
    "lists of lists": (
        record(l=array(array(ABOVE))),
        {"l": [[1], [0]]},
        [("spec.l[1][0]", 'Invalid value: "integer": failed rule: self > 0')],
    ),
    "macros over items": (
        ruled("self.l.all(x, x.size < self.most)", record(l=array(ITEM), most=NUMBER)),
        {"most": 2, "l": [{"size": 1}]},
        [],
    ),
    "int or string, an int": (
        record(a=ruled("type(self) == int ? self > 0 : self.endsWith('%')", INT_OR_STRING)),
        {"a": 1},
        [],
    ),
    "int or string, a string": (
        record(a=ruled("type(self) == int ? self > 0 : self.endsWith('%')", INT_OR_STRING)),
        {"a": "5%"},
        [],
    ),
    "int or string, of the wrong type": (
        record(a=ruled("self > 0", INT_OR_STRING)),
        {"a": "1"},
        [
            (
                "spec.a",
                "Invalid value: \"\": 'no such overload': call arguments did not match a supported operator, "
                "function or macro signature for rule: self > 0",
            )
        ],
    ),
    "quantities": (
        ruled("quantity(self.a).isLessThan(quantity(self.b))", record(a=TEXT, b=TEXT)),
        {"a": "900m", "b": "1"},
        [],
    ),
    "escaped names": (
        ruled(
            "self.a__dash__b + self.c__dot__d + self.__namespace__ + self.e__underscores__f == 10",
            record(**{"a-b": NUMBER, "c.d": NUMBER, "namespace": NUMBER, "e__f": NUMBER}),
        ),
        {"a-b": 1, "c.d": 2, "namespace": 3, "e__f": 4},
        [],
    ),
    "numbers": (ruled("self.a / 2.0 == 0.5", record(a={"type": "number"})), {"a": 1}, []),
    "moments": (
        ruled("self.a < self.b", record(a=TEXT | {"format": "date-time"}, b=TEXT | {"format": "date"})),
        {"a": "2020-01-01T00:00:00Z", "b": "2020-01-02"},
        [],
    ),
    "durations": (ruled("self.a > duration('89m')", record(a=TEXT | {"format": "duration"})), {"a": "1h30m"}, []),
    "bytes": (ruled("self.a == b'a'", record(a=TEXT | {"format": "byte"})), {"a": "YQ=="}, []),
    "what cannot be held to rules": (
        ruled("false", record(a=NUMBER)),
        {"a": "x"},
        [
            ("spec.a", 'Invalid value: "string": spec.a in body must be of type integer: "string"'),
            (
                "<nil>",
                "Invalid value: null: some validation rules were not checked because the object was invalid; correct "
                "the existing errors to complete validation",
            ),
        ],
    ),
}


@pytest.mark.parametrize(("schema", "spec", "causes"), OBJECTS.values(), ids=OBJECTS)
def test_an_object_is_held_to_the_rules(api, schema, spec, causes):
    """422, each fault at its field, whose value is told as its type."""
    api.post(DEFINITIONS, definition(schema))
    assert told(api.call("POST", WIDGETS, widget(spec))) == causes


def test_a_rule_at_the_root_knows_the_name(api):
    """Of metadata name and generateName alone."""
    root = ruled("self.metadata.name.startsWith('w') && self.kind == 'Widget'", {})
    api.post(DEFINITIONS, definition(record(a=NUMBER), **root))
    assert told(api.call("POST", WIDGETS, widget({}))) == []
    [(field, message)] = told(api.call("POST", WIDGETS, widget({}, "x")))
    assert (field, message[:24]) == ("<nil>", 'Invalid value: "object":')


FIXED = "self == oldSelf"
MAYBE = ruled("!oldSelf.hasValue() || oldSelf.value() <= self", NUMBER, optionalOldSelf=True)
ITEMS = array(record(name=TEXT, size=ruled(FIXED, NUMBER)) | {"required": ["name"]}, "map", "name")
CHANGES = {
    "unchanged": (record(a=ruled(FIXED, TEXT)), {"a": "x"}, {"a": "x"}, []),
    "changed": (record(a=ruled(FIXED, TEXT)), {"a": "x"}, {"a": "y"}, ["spec.a"]),
    "set": (record(a=ruled(FIXED, TEXT)), {}, {"a": "y"}, []),
    "taken away": (ruled("!has(oldSelf.a) || has(self.a)", record(a=TEXT)), {"a": "x"}, {}, ["spec"]),
    "an item": (
        record(l=ITEMS),
        {"l": [{"name": "a", "size": 1}]},
        {"l": [{"name": "a", "size": 2}]},
        ["spec.l[0].size"],
    ),
    "an item elsewhere": (
        record(l=ITEMS),
        {"l": [{"name": "a", "size": 1}]},
        {"l": [{"name": "b", "size": 2}, {"name": "a", "size": 2}]},
        ["spec.l[1].size"],
    ),
    "a value": (record(m=mapping(ruled(FIXED, TEXT))), {"m": {"a": "x"}}, {"m": {"a": "y", "b": "z"}}, ["spec.m[a]"]),
    "an optional old value": (record(a=MAYBE), {"a": 2}, {"a": 1}, ["spec.a"]),
    "an optional old value that is none": (record(a=MAYBE), {}, {"a": 1}, []),
    "a whole set": (
        ruled("self.l.all(x, x in oldSelf.l)", record(l=array(NUMBER, "set"))),
        {"l": [1, 2]},
        {"l": [3]},
        ["spec"],
    ),
}


@pytest.mark.parametrize(("schema", "old", "new", "fields"), CHANGES.values(), ids=CHANGES)
def test_a_change_is_compared_with_what_was(api, schema, old, new, fields):
    """Rules with oldSelf, which have nothing to say of a new object."""
    api.post(DEFINITIONS, definition(schema))
    made = api.post(WIDGETS, widget(old))
    answer = api.call("PUT", f"{WIDGETS}/w", made | {"spec": new})
    assert [field for field, _ in told(answer)] == fields


def test_what_a_change_leaves_alone_is_not_held_against_it(api):
    """A rule that came later ratchets; it is heard again once its part changes."""
    schema = record(a=NUMBER, b=NUMBER, l=array(NUMBER, "atomic"))
    api.post(DEFINITIONS, definition(schema))
    api.post(WIDGETS, widget({"a": 0, "b": 1, "l": [0]}))
    strict = record(a=ABOVE, b=NUMBER, l=array(ABOVE, "atomic"))
    code, _ = api.patch(f"{DEFINITIONS}/widgets.example.com", {"spec": definition(strict)["spec"]})
    assert code == 200
    assert told(api.patch(f"{WIDGETS}/w", {"spec": {"b": 2}})) == []
    assert [field for field, _ in told(api.patch(f"{WIDGETS}/w", {"spec": {"a": -1}}))] == ["spec.a"]
    assert [field for field, _ in told(api.patch(f"{WIDGETS}/w", {"spec": {"l": [0, 1]}}))] == ["spec.l[0]"]


SPEC = "spec.validation.openAPIV3Schema.properties[spec]"
BAD_RULES = {
    "unknown field": (
        ruled("self.b > 0", record(a=NUMBER)),
        "rule",
        "compilation failed: ERROR: <input>:1:5: undefined field 'b'",
    ),
    "types": (
        ruled("self.a > 'x'", record(a=NUMBER)),
        "rule",
        "found no matching overload for '_>_' applied to '(int, string)'",
    ),
    "no truth": (ruled("self.a", record(a=NUMBER)), "rule", "cel expression must evaluate to a bool"),
    "metadata": (ruled("self.metadata.name == ''", record(a=NUMBER)), "rule", "undefined field 'metadata'"),
    "empty": (ruled(" ", record(a=NUMBER)), "rule", "Required value: rule is not specified"),
    "message": (ruled("true", record(), message="a\nb"), "message", "message must not contain line breaks"),
    "made message": (
        ruled("true", record(), messageExpression="1"),
        "messageExpression",
        "messageExpression must evaluate to a string",
    ),
    "reason": (ruled("true", record(), reason="Because"), "reason", "Unsupported value"),
    "path": (
        ruled("true", record(a=NUMBER), fieldPath=".b"),
        "fieldPath",
        "fieldPath must be a valid path: does not refer to a valid field",
    ),
    "optional without": (
        ruled("true", record(), optionalOldSelf=True),
        "optionalOldSelf",
        "may not be set if oldSelf is not used in rule",
    ),
}


@pytest.mark.parametrize(("schema", "field", "why"), BAD_RULES.values(), ids=BAD_RULES)
def test_a_bad_rule_is_refused_with_its_field(api, schema, field, why):
    """422: a definition whose rules do not compile is not stored."""
    [(where, message)] = told(api.call("POST", DEFINITIONS, definition(schema)))
    assert where == f"{SPEC}.x-kubernetes-validations[0].{field}" and why in message


def test_a_rule_needs_a_type(api):
    """A field that may be anything has none."""
    anything = ruled("true", {"x-kubernetes-preserve-unknown-fields": True})
    [(where, message)] = told(api.call("POST", DEFINITIONS, definition(record(a=anything))))
    assert where == f"{SPEC}.properties[a].x-kubernetes-validations"
    assert "rule declared on schema that does not support validation rules" in message


ODD = ("foo", "FooEntry", "fooEntry", "_", "__", "a-b", "a__dash__b", "a.b", "1a", "ä", "in", "T0", "x" * 300, "f1")
KINDS = {
    "texts": TEXT,
    "maps": mapping(TEXT),
    "maps of maps": mapping(mapping(TEXT)),
    "lists of maps": array(mapping(TEXT)),
    "objects": record(foo=mapping(TEXT)),
}


@pytest.mark.parametrize("kind", KINDS)
def test_fields_may_have_any_name_and_type(api, kind):
    """What CEL cannot name is there all the same."""
    api.post(DEFINITIONS, definition(ruled("has(self.foo)", record(**dict.fromkeys(ODD, KINDS[kind])))))
    assert [field for field, _ in told(api.call("POST", WIDGETS, widget({})))] == ["spec"]


def test_what_is_not_known_again_has_no_old_value(api):
    """Items of a list without keys."""
    answer = api.call("POST", DEFINITIONS, definition(record(l=array(ruled(FIXED, NUMBER)))))
    [(where, message)] = told(answer)
    assert where == f"{SPEC}.properties[l].items.x-kubernetes-validations[0].rule"
    path = ".properties[spec].properties[l]"
    assert message.endswith(f"oldSelf cannot be used on the uncorrelatable portion of the schema within {path}")


ESCAPES = {"a": "a", "a-b": "a__dash__b", "a.b/c": "a__dot__b__slash__c", "a__b": "a__underscores__b", "in": "__in__"}
ESCAPES |= {"1a": None, "ä": None}


@pytest.mark.parametrize("name", ESCAPES)
def test_a_name_is_escaped(name):
    """kubernetes `apiserver/pkg/cel/escaping.go`."""
    assert escaped(name) == ESCAPES[name]
