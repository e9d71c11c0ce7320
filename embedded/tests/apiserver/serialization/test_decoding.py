"""Objects of built-in types as they are decoded: strictly, typed, in canonical form."""

import contextlib

import pytest

from embedded.apiserver.apimachinery.repeated_fields import decode_json
from embedded.apiserver.apimachinery.resource_types import (
    CONFIG_MAPS,
    CUSTOM_RESOURCE_DEFINITIONS,
    DISRUPTION_BUDGETS,
    LEASES,
    NODES,
    PODS,
    RESOURCE_QUOTAS,
    SECRETS,
    SERVICES,
)
from embedded.apiserver.apimachinery.status import Undecodable
from embedded.apiserver.serialization import decoding
from embedded.apiserver.serialization.decoding import MAX_TOLD, decode_object

DEPLOYED = "/api/v1/namespaces/default/pods"


def spec(**fields):
    return {"spec": fields}


def container(**fields):
    return spec(containers=[{"name": "c", **fields}])


# As the test of field validation in Kubernetes has it (test/integration/apiserver/field_validation_test.go).
UPSTREAM = b"""{"metadata": {"name": "p"}, "spec": {
  "unknown1": "val1", "unknownDupe": "valDupe", "unknownDupe": "valDupe2", "hostPID": true, "hostPID": false,
  "containers": [{"name": "nginx", "unknownNested": "val1", "imagePullPolicy": "Always", "imagePullPolicy": "Never"}]}}"""
TOLD = [
    'unknown field "spec.unknown1"',
    'unknown field "spec.unknownDupe"',
    'duplicate field "spec.hostPID"',
    'unknown field "spec.containers[0].unknownNested"',
    'duplicate field "spec.containers[0].imagePullPolicy"',
]


def test_what_is_unknown_or_twice_is_told_in_the_order_of_the_body():
    """Unknown fields that are also repeated are only unknown; none of them is kept."""
    decoded = decode_object(PODS, decode_json(UPSTREAM))
    assert decoded.told == TOLD
    kept = decoded.value["spec"]
    assert "unknown1" not in kept and kept["hostPID"] is False
    assert kept["containers"] == [{"name": "nginx", "imagePullPolicy": "Never"}]


def test_keys_of_maps_are_free_but_not_twice():
    """Labels and data have any keys."""
    decoded = decode_object(
        CONFIG_MAPS, decode_json(b'{"metadata": {}, "data": {"any.thing": "a", "x": "1", "x": "2"}}')
    )
    assert decoded.told == ['duplicate field "data.x"']
    assert decoded.value["data"] == {"any.thing": "a", "x": "2"}


def test_no_more_is_told_than_upstream_tells():
    """A body full of nonsense does not make an answer full of it."""
    assert len(decode_object(PODS, {f"u{i}": 1 for i in range(500)}).told) == MAX_TOLD


MISFITS = {
    "text for a list": (
        PODS,
        spec(containers="x"),
        "unmarshal string into Go struct field PodSpec.spec.containers of type []v1.Container",
    ),
    "number for a text": (
        PODS,
        container(env=[{"name": "A", "value": 1}]),
        "unmarshal number into Go struct field EnvVar.spec.containers.env.value of type string",
    ),
    "text for a number": (
        PODS,
        spec(priority="1"),
        "unmarshal string into Go struct field PodSpec.spec.priority of type int32",
    ),
    "fraction": (
        PODS,
        spec(priority=1.5),
        "unmarshal number 1.5 into Go struct field PodSpec.spec.priority of type int32",
    ),
    "too large": (
        PODS,
        container(ports=[{"containerPort": 1 << 31}]),
        "unmarshal number 2147483648 into Go struct field ContainerPort.spec.containers.ports.containerPort of type int32",
    ),
    "bool for a number": (
        PODS,
        spec(priority=True),
        "unmarshal bool into Go struct field PodSpec.spec.priority of type int32",
    ),
    "list for a struct": (
        PODS,
        spec(affinity=[]),
        "unmarshal array into Go struct field PodSpec.spec.affinity of type v1.Affinity",
    ),
    "metadata": (PODS, {"metadata": "x"}, "unmarshal string into Go struct field Pod.metadata of type v1.ObjectMeta"),
    "label": (NODES, {"metadata": {"labels": {"a": 1}}}, "Go struct field ObjectMeta.metadata.labels.a of type string"),
    "after a nested struct": (
        PODS,
        spec(securityContext={"runAsUser": 1}, hostNetwork="no"),
        "unmarshal string into Go struct field PodSpec.spec.hostNetwork of type bool",
    ),
    "int or string": (DISRUPTION_BUDGETS, spec(minAvailable=[]), "unmarshal array into Go value of type int32"),
    "quantity": (PODS, container(resources={"limits": {"cpu": "1x"}}), "quantities must match the regular expression"),
    "quota": (RESOURCE_QUOTAS, spec(hard={"pods": []}), "spec.hard.pods: quantities must match the regular expression"),
    "time": (PODS, {"metadata": {"creationTimestamp": "noon"}}, 'parsing time "noon" as "2006-01-02T15:04:05Z07:00"'),
    "no such day": (PODS, {"metadata": {"creationTimestamp": "2026-02-30T00:00:00Z"}}, 'parsing time "2026-02-30T'),
    "before the first year": (
        PODS,
        {"metadata": {"creationTimestamp": "0001-01-01T00:00:00+14:00"}},
        "cannot parse it",
    ),
    "after the last year": (PODS, {"metadata": {"creationTimestamp": "9999-12-31T23:59:59-14:00"}}, "cannot parse it"),
    "micro time": (LEASES, spec(renewTime="2026-01-01T00:00:00Z"), 'as "2006-01-02T15:04:05.000000Z07:00"'),
    "base64": (SECRETS, {"data": {"a": "!"}}, "data.a: illegal base64 data"),
    "schema": (
        CUSTOM_RESOURCE_DEFINITIONS,
        spec(versions=[{"schema": {"openAPIV3Schema": {"items": {"type": 1}}}}]),
        "JSONSchemaProps.spec.versions.schema.openAPIV3Schema.items.type of type string",
    ),
}


@pytest.mark.parametrize(("rtype", "obj", "words"), MISFITS.values(), ids=MISFITS)
def test_a_value_of_the_wrong_type_is_refused_as_go_would(rtype, obj, words):
    """400, naming kind, version and field."""
    with pytest.raises(Undecodable) as refused:
        decode_object(rtype, obj)
    assert refused.value.code == 400
    assert refused.value.message.startswith(f'{rtype.kind} in version "v1" cannot be handled as a {rtype.kind}: ')
    assert words in refused.value.why


KEPT = {
    "nulls are absent": (PODS, spec(nodeName=None, affinity=None), {"spec": {"containers": []}}),
    "empty lists and maps are absent, empty structs stay": (
        PODS,
        spec(tolerations=[], nodeSelector={}, securityContext={}),
        {"spec": {"containers": [], "securityContext": {}}},
    ),
    "a null in a map is the zero value": (
        NODES,
        {"metadata": {"labels": {"a": None}}},
        {"metadata": {"labels": {"a": ""}}},
    ),
    "what Go always writes is there": (
        NODES,
        spec(taints=[{"key": "a"}]),
        {"spec": {"taints": [{"key": "a", "effect": ""}]}},
    ),
    "quantities are canonical": (
        NODES,
        {"status": {"capacity": {"cpu": 0.5, "memory": "1024Mi"}}},
        {"status": {"capacity": {"cpu": "500m", "memory": "1Gi"}}},
    ),
    "times have seconds, in UTC": (
        PODS,
        {"metadata": {"creationTimestamp": "2026-01-01T01:00:00.5+01:00"}},
        {"metadata": {"creationTimestamp": "2026-01-01T00:00:00Z"}},
    ),
    "the last moment of all": (
        PODS,
        {"metadata": {"creationTimestamp": "9999-12-31T23:59:59.999999999Z"}},
        {"metadata": {"creationTimestamp": "9999-12-31T23:59:59Z"}},
    ),
    "micro times have six digits, in UTC": (
        LEASES,
        spec(renewTime="2026-01-01T00:00:00.000001Z", acquireTime="2026-01-01T01:00:00.000000+01:00"),
        spec(renewTime="2026-01-01T00:00:00.000001Z", acquireTime="2026-01-01T00:00:00.000000Z"),
    ),
    "ports by name": (
        SERVICES,
        spec(ports=[{"port": 1, "targetPort": "http"}]),
        spec(ports=[{"port": 1, "targetPort": "http"}]),
    ),
    "meaningful nulls and empties of a schema": (
        CUSTOM_RESOURCE_DEFINITIONS,
        spec(
            versions=[
                {"schema": {"openAPIV3Schema": {"default": {}, "enum": [None, []], "additionalProperties": False}}}
            ]
        ),
        {
            "spec": {
                "group": "",
                "scope": "",
                "names": {"kind": "", "plural": ""},
                "versions": [
                    {
                        "name": "",
                        "served": False,
                        "storage": False,
                        "schema": {
                            "openAPIV3Schema": {"default": {}, "enum": [None, []], "additionalProperties": False}
                        },
                    }
                ],
            }
        },
    ),
}


@pytest.mark.parametrize(("rtype", "obj", "kept"), KEPT.values(), ids=KEPT)
def test_objects_are_kept_in_the_form_go_writes(rtype, obj, kept):
    """And decoding what was decoded changes nothing."""
    found = decode_object(rtype, obj).value
    assert {key: found[key] for key in kept} == kept
    assert decode_object(rtype, found).value == found


# -- through the API -------------------------------------------------------------------------------------------


def pod_text(**query):
    return f"{DEPLOYED}?{'&'.join(f'{key}={value}' for key, value in query.items())}"


VALID = UPSTREAM.replace(b'"name": "nginx"', b'"name": "nginx", "image": "nginx"')


def test_strict_refuses_with_everything_that_is_wrong(api):
    """400 in Kubernetes' words."""
    code, status = api.call("POST", pod_text(fieldValidation="Strict"), VALID)
    assert (code, status["reason"]) == (400, "BadRequest")
    assert status["message"] == 'Pod in version "v1" cannot be handled as a Pod: strict decoding error: ' + ", ".join(
        TOLD
    )


@pytest.mark.parametrize(
    ("query", "warnings"), [("", TOLD), ("?fieldValidation=Warn", TOLD), ("?fieldValidation=Ignore", [])]
)
def test_otherwise_fields_are_dropped(api, query, warnings):
    """With a warning for each, or silently when that is asked for."""
    answer = api.raw("POST", DEPLOYED + query, VALID)
    assert answer.status == 201 and list(answer.warnings) == warnings
    assert "unknown1" not in api.get(f"{DEPLOYED}/p")["spec"]


def test_replacing_is_as_strict(api):
    """Repeated fields of a PUT are noticed too, in custom resources as well."""
    without_token = VALID.replace(b'"spec": {', b'"spec": {"automountServiceAccountToken": false,')
    assert api.raw("POST", DEPLOYED, without_token).status == 201
    code, status = api.call("PUT", f"{DEPLOYED}/p?fieldValidation=Strict", without_token)
    assert code == 400 and status["message"].endswith("strict decoding error: " + ", ".join(TOLD))
    code, status = api.call("PUT", f"{DEPLOYED}/p?fieldValidation=Ignore", without_token)
    assert code == 200, status


def test_custom_resources_are_decoded_strictly_too(api):
    """What is repeated comes first there, then what is unknown; metadata has the schema it has everywhere."""
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"a": {"type": "integer"}}}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": "widgets", "kind": "Widget"}
    definition = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]}
    api.post(
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        {"metadata": {"name": "widgets.example.com"}, "spec": definition},
    )
    body = (
        b'{"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w", "frob": 1},'
        b' "spec": {"x": 1, "a": 1, "a": 2}}'
    )
    url = "/apis/example.com/v1/namespaces/default/widgets"
    code, status = api.call("POST", f"{url}?fieldValidation=Strict", body)
    assert code == 400 and status["message"] == (
        'Widget in version "v1" cannot be handled as a Widget: strict decoding error: '
        'duplicate field "spec.a", unknown field "spec.x", unknown field "metadata.frob"'
    )
    code, found = api.call("POST", url, body)
    assert code == 201 and found["spec"] == {"a": 2} and "frob" not in found["metadata"]


def test_patches_are_as_strict(api):
    """422 without a kind, as the result of a patch is not what the client sent."""
    assert api.raw("POST", DEPLOYED, VALID).status == 201
    url = f"{DEPLOYED}/p?fieldValidation=Strict"
    for kind in ("merge", "strategic"):
        code, status = api.patch(url, {"spec": {"nonsense": 1}}, kind)
        assert code == 422, status
        assert 'strict decoding error: unknown field "spec.nonsense"' in status["message"]
    code, status = api.patch(f"{DEPLOYED}/p", {"spec": {"containers": "x"}}, "merge")
    assert (code, status["details"]["causes"][0]["field"]) == (422, "patch")


@pytest.mark.parametrize("text", ["x" * 100_000, f"2026-01-01T00:00:00.{'1' * 100_000}Z"])
def test_no_long_text_is_remembered_for_a_time(text):
    """A client chooses it: thousands of a mebibyte would stay for good."""
    kept = decoding._remembered_seconds.cache_info().currsize
    with contextlib.suppress(Undecodable):
        decode_object(PODS, {"metadata": {"creationTimestamp": text}})
    assert decoding._remembered_seconds.cache_info().currsize == kept
