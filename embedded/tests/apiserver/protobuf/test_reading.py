"""Protobuf bodies, as kubectl's generators send them."""

import pytest

from embedded.apiserver.apimachinery.status import StatusError
from embedded.apiserver.protobuf.reading import MAGIC, decode_protobuf


def varint(value):
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def block(number, data):
    data = data.encode() if isinstance(data, str) else data
    return varint(number << 3 | 2) + varint(len(data)) + data


def number(field, value):
    return varint(field << 3) + varint(value & (1 << 64) - 1)


def body(api_version, kind, raw):
    return MAGIC + block(1, block(1, api_version) + block(2, kind)) + block(2, raw)


CASES = {
    "namespace": (
        body("v1", "Namespace", block(1, block(1, "a") + block(11, block(1, "k") + block(2, "v")))),
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a", "labels": {"k": "v"}}},
    ),
    "config map": (
        body(
            "v1",
            "ConfigMap",
            block(1, block(1, "a"))
            + block(2, block(1, "k") + block(2, "v"))
            + block(3, block(1, "b") + block(2, b"\0\1")),
        ),
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "a"},
            "data": {"k": "v"},
            "binaryData": {"b": "AAE="},
        },
    ),
    "priority class": (
        body(
            "scheduling.k8s.io/v1",
            "PriorityClass",
            block(1, block(1, "a")) + number(2, -5) + number(3, 1) + block(5, "Never"),
        ),
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": "a"},
            "value": -5,
            "globalDefault": True,
            "preemptionPolicy": "Never",
        },
    ),
    "delete options": (
        body("v1", "DeleteOptions", number(1, 0) + block(2, block(1, "uid")) + block(4, "Orphan")),
        {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "gracePeriodSeconds": 0,
            "preconditions": {"uid": "uid"},
            "propagationPolicy": "Orphan",
        },
    ),
    "job": (
        body(
            "batch/v1",
            "Job",
            block(1, block(1, "a"))
            + block(
                2,
                number(7, 3)
                + block(
                    6,
                    block(1, block(8, b""))
                    + block(
                        2,
                        block(2, block(1, "c") + block(2, "i") + block(3, "sleep") + block(3, "1") + block(8, b""))
                        + block(3, "Never")
                        + number(11, 0),
                    ),
                ),
            )
            + block(3, b""),
        ),
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": "a"},
            "spec": {
                "backoffLimit": 3,
                "template": {
                    "metadata": {},
                    "spec": {
                        "containers": [{"name": "c", "image": "i", "command": ["sleep", "1"], "resources": {}}],
                        "restartPolicy": "Never",
                    },
                },
            },
            "status": {},
        },
    ),
    "access review": (
        body(
            "authorization.k8s.io/v1", "SelfSubjectAccessReview", block(2, block(1, block(2, "get") + block(5, "pods")))
        ),
        {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}},
        },
    ),
    "an empty text is an unset one": (
        body("v1", "Namespace", block(1, block(1, "a") + block(2, "")) + block(3, block(1, ""))),
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}, "status": {}},
    ),
    "unknown fields are skipped": (
        body("v1", "Namespace", block(1, block(1, "a") + number(99, 7)) + varint(50 << 3 | 1) + b"12345678"),
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}},
    ),
}


@pytest.mark.parametrize(("raw", "expected"), CASES.values(), ids=CASES)
def test_bodies_are_read_into_json_form(raw, expected):
    """Texts, numbers with their sign, maps, bytes and nested messages."""
    assert decode_protobuf(raw) == expected


REFUSED = {
    "another kind": (body("v1", "ComponentStatus", b""), 415),
    "no magic": (b"abcd", 400),
    "cut short": (body("v1", "Namespace", block(1, block(1, "a")))[:-2], 400),
    "endless number": (MAGIC + b"\x08" + b"\xff" * 12, 400),
    "not text": (body("v1", "Namespace", block(1, block(1, b"\xff"))), 400),
    "a number where a message belongs": (body("v1", "Namespace", number(1, 5)), 400),
    "empty": (MAGIC, 415),
}


@pytest.mark.parametrize(("raw", "code"), REFUSED.values(), ids=REFUSED)
def test_bodies_that_cannot_be_read_are_refused(raw, code):
    """415 for an unknown kind, 400 for a broken body."""
    with pytest.raises(StatusError) as refused:
        decode_protobuf(raw)
    assert refused.value.code == code


def test_a_namespace_is_created_from_protobuf(api):
    """The core takes such a body where it takes JSON."""
    raw = body("v1", "Namespace", block(1, block(1, "proto")))
    code, created = api.call("POST", "/api/v1/namespaces", raw, content_type="application/vnd.kubernetes.protobuf")
    assert (code, created["metadata"]["name"]) == (201, "proto")


CONFIG_MAP_VOLUME = block(19, block(1, block(1, "settings")) + number(3, 0o640))
HTTP_GET = block(2, block(1, "/") + block(2, number(1, 1) + number(2, 0) + block(3, "http")))
RICH_CONTAINER = (
    block(1, "c")
    + block(6, block(1, "") + number(2, 0) + number(3, 80))
    + block(7, block(1, "KEY") + block(3, block(3, block(1, block(1, "settings")) + block(2, "k"))))
    + block(8, block(2, block(1, "cpu") + block(2, block(1, "2"))))
    + block(10, block(1, HTTP_GET))
    + number(16, 0)
)
RICH = block(1, block(1, "data") + block(2, CONFIG_MAP_VOLUME)) + block(2, RICH_CONTAINER)


def test_a_pod_template_keeps_every_field():
    """Embedded structs, quantities, numbers or names, maps; what Go writes without being set is left out."""
    found = decode_protobuf(body("batch/v1", "Job", block(2, block(6, block(2, RICH)))))["spec"]["template"]["spec"]
    assert found == {
        "volumes": [{"name": "data", "configMap": {"name": "settings", "defaultMode": 0o640}}],
        "containers": [
            {
                "name": "c",
                "ports": [{"containerPort": 80}],
                "env": [{"name": "KEY", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "k"}}}],
                "resources": {"requests": {"cpu": "2"}},
                "livenessProbe": {"httpGet": {"path": "/", "port": "http"}},
            }
        ],
    }


def test_times_have_the_precision_of_their_kind():
    """A lease is timed in microseconds."""
    stamp = number(1, 1_790_000_000) + number(2, 123_456_789)
    found = decode_protobuf(body("coordination.k8s.io/v1", "Lease", block(2, block(4, stamp))))
    assert found["spec"] == {"renewTime": "2026-09-21T14:13:20.123456Z"}
