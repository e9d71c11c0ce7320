"""In which encoding answers come."""

import json

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from embedded.apiserver.apimachinery.status import StatusError
from embedded.apiserver.presentation.encodings import _as_yaml, negotiated
from embedded.apiserver.request.messages import Request, Stream

MAPS = "/api/v1/namespaces/default/configmaps"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
JSON, YAML = "application/json", "application/yaml"
PROTOBUF = "application/vnd.kubernetes.protobuf"


def asking(accept, path=MAPS, **query):
    return Request("GET", path, query, {"accept": accept} if accept else {})


@pytest.mark.parametrize(
    ("accept", "media"),
    [
        ("", JSON),
        ("*/*", JSON),
        ("application/*", JSON),
        ("*; q=.2", JSON),  # as Java's HttpURLConnection writes it
        (f"{PROTOBUF},{JSON}", JSON),
        (f"{PROTOBUF};stream=watch, */*", JSON),
        (f"{TABLE},{JSON}", JSON),
        (TABLE, JSON),
        (YAML, YAML),
        ("Application/YAML", YAML),
        (f"{YAML};q=0.4, {JSON};q=0.5", JSON),
        (f"{JSON};q=0.4, {YAML}", YAML),
        (f"text/html, {YAML}", YAML),
    ],
)
def test_the_most_welcome_encoding_is_taken(accept, media):
    """By order, unless weights say otherwise."""
    assert negotiated(asking(accept)) == media


@pytest.mark.parametrize("accept", ["application/xml", PROTOBUF, "text/plain", "text/*", "application/cbor"])
def test_an_encoding_nobody_writes_is_not_acceptable(api, accept):
    """406, and nothing is done."""
    code, status = api.call("POST", MAPS, {"metadata": {"name": "m"}}, accept=accept)
    assert (code, status["code"], status["reason"]) == (406, 406, "NotAcceptable")
    assert status["message"] == f"only the following media types are accepted: {JSON}, {YAML}"
    assert "m" not in [found["metadata"]["name"] for found in api.get(MAPS)["items"]]


def test_a_watch_is_json(api):
    """YAML has no stream."""
    with pytest.raises(StatusError) as refused:
        negotiated(asking(YAML, watch="true"))
    assert refused.value.code == 406
    assert isinstance(api.raw("GET", f"{MAPS}?watch=true", accept=f"{YAML}, {JSON};stream=watch"), Stream)


@pytest.mark.parametrize("path", ["/healthz", "/version", "/openapi/v3", "/"])
def test_what_is_no_api_object_is_not_negotiated(api, path):
    """It has one form."""
    assert api.raw("GET", path, accept="text/plain").status == 200


@pytest.mark.parametrize("path", [f"{MAPS}/m", MAPS, f"{MAPS}/nope", "/api", "/apis", "/apis/batch", "/apis/batch/v1"])
def test_answers_in_yaml_say_the_same(api, path):
    """Objects, lists, failures and discovery."""
    api.post(MAPS, {"metadata": {"name": "m"}, "data": {"text": "a\nb\n"}})
    answer = api.raw("GET", path, accept=YAML)
    plain = api.raw("GET", path)
    assert (answer.status, answer.content_type) == (plain.status, YAML)
    assert yaml.safe_load(answer.body) == json.loads(plain.body)


def test_yaml_may_be_a_table(api):
    """As for JSON."""
    answer = api.raw("GET", MAPS, accept=TABLE.replace("json", "yaml"))
    assert (answer.content_type, yaml.safe_load(answer.body)["kind"]) == (YAML, "Table")


@pytest.mark.parametrize(
    "text", ["1e3", "12", "0o17", "1_000", "y", "N", "yes", "null", "2026-01-02", "", " a", "a: b"]
)
def test_texts_that_look_like_something_else_are_quoted(text):
    """Whatever YAML they are read by: Go's takes 1e3 for a number and y for true."""
    assert _as_yaml(json.dumps({"key": text}).encode()).decode()[len("key: ")] in "'\""


def test_several_lines_stand_as_such():
    """For people."""
    assert _as_yaml(b'{"b":"x\\n y\\n","a":[1]}') == b"a:\n- 1\nb: |\n  x\n   y\n"


_LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=8),
    st.text(st.sampled_from(" \n\tab:#-'\"{}[]|>&*!%@`019eE.+x~y"), max_size=12),
)


@given(st.dictionaries(st.text(max_size=4), st.one_of(_LEAVES, st.lists(_LEAVES, max_size=3)), max_size=4))
def test_yaml_is_read_as_it_was_meant(value):
    """Any JSON."""
    assert yaml.safe_load(_as_yaml(json.dumps(value).encode())) == value


def test_what_is_too_deep_for_yaml_stays_json(api):
    """Its Content-Type says so."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    names = {"plural": "deeps", "kind": "Deep"}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    spec = {"group": "example.com", "scope": "Cluster", "names": names, "versions": [version]}
    api.post(
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        {"metadata": {"name": "deeps.example.com"}, "spec": spec},
    )
    inner: object = 1
    for _ in range(400):
        inner = {"a": inner}
    url = "/apis/example.com/v1/deeps"
    api.post(url, {"apiVersion": "example.com/v1", "kind": "Deep", "metadata": {"name": "d"}, "x": inner})
    answer = api.raw("GET", f"{url}/d", accept=YAML)
    assert (answer.status, answer.content_type) == (200, JSON)


@pytest.mark.parametrize(
    ("query", "agent", "lines"),
    [
        ("", "kubectl/v1.32", False),
        ("?pretty=true", "kubectl/v1.32", True),
        ("?pretty=1", "", True),
        ("?pretty=nonsense", "", False),
        ("", "curl/8.0", True),
        ("", "Mozilla/5.0 (X11)", True),
        ("?pretty=false", "curl/8.0", False),
    ],
)
def test_people_get_lines(api, query, agent, lines):
    """Who asks for them, and who reads with curl or a browser."""
    answer = api.raw("GET", f"/api/v1/namespaces/default{query}", user_agent=agent)
    assert (b'\n  "kind": "Namespace"' in answer.body) is lines
    assert json.loads(answer.body) == api.get("/api/v1/namespaces/default")
