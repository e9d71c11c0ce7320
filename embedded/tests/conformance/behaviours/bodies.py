"""What a request may hold: encodings, unknown fields, dry runs."""

from __future__ import annotations

import json

import yaml

from embedded.tests.conformance import pages
from embedded.tests.conformance import resources as r
from embedded.tests.conformance.behaviour import Via, behaviour
from embedded.tests.conformance.case import Case
from embedded.tests.conformance.resources import CONFIG_MAPS, Object, config_map


def _pod_with_typos(name: str) -> Object:
    obj = r.pod(name)
    obj["spec"]["replicass"] = 1
    obj["spec"]["containers"][0]["imagee"] = "x"
    return obj


@behaviour(pages.VALIDATION, Via.RAW | Via.KUBECTL, Via.ALL)
def strict_validation_refuses_unknown_fields(t: Case) -> None:
    with t.refused("BadRequest", 'unknown field "spec.containers[0].imagee"', 'unknown field "spec.replicass"'):
        t.create(r.PODS, _pod_with_typos("p"), field_validation="Strict")
    assert not t.exists(r.PODS, "p")


@behaviour(pages.VALIDATION, Via.RAW | Via.KUBECTL, Via.ALL)
def warning_validation_drops_unknown_fields_and_says_so(t: Case) -> None:
    if t.by_raw:
        answer = t.raw.answer("POST", t.path(r.PODS), body=_pod_with_typos("p"), query={"field_validation": "Warn"})
        assert answer.code == 201
        told = " ".join(answer.headers.get_all("Warning", []))
    else:
        told = t.kubectl("create", "-f-", "--validate=warn", stdin=_pod_with_typos("p")).err
    assert "spec.containers[0].imagee" in told and "spec.replicass" in told
    assert "replicass" not in t.now(r.PODS, "p")["spec"]


@behaviour(pages.VALIDATION, Via.RAW)
def warnings_are_the_default_and_have_code_299(t: Case) -> None:
    answer = t.raw.answer("POST", t.path(r.PODS), body=_pod_with_typos("p"))
    warnings = answer.headers.get_all("Warning")
    assert answer.code == 201 and warnings and all(text.startswith("299 - ") for text in warnings)


@behaviour(pages.VALIDATION, Via.RAW | Via.KUBECTL)
def ignoring_validation_drops_unknown_fields_in_silence(t: Case) -> None:
    if t.by_raw:
        answer = t.raw.answer("POST", t.path(r.PODS), body=_pod_with_typos("p"), query={"field_validation": "Ignore"})
        assert answer.code == 201 and answer.headers.get_all("Warning") is None
    else:
        assert "Warning" not in t.kubectl("create", "-f-", "--validate=ignore", stdin=_pod_with_typos("p")).err
    assert "imagee" not in t.now(r.PODS, "p")["spec"]["containers"][0]


@behaviour(pages.VALIDATION, Via.RAW)
def strict_validation_refuses_duplicate_fields(t: Case) -> None:
    body = '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"m"},"data":{"a":"1"},"data":{"a":"2"}}'
    answer = t.raw.answer("POST", t.path(CONFIG_MAPS), body=body, query={"field_validation": "Strict"})
    assert answer.code == 400 and 'duplicate field "data"' in answer.json["message"]
    assert t.raw.answer("POST", t.path(CONFIG_MAPS), body=body, query={"field_validation": "Ignore"}).code == 201
    assert t.now(CONFIG_MAPS, "m")["data"] == {"a": "2"}


@behaviour(pages.VALIDATION, Via.RAW)
def patches_are_validated_strictly_too(t: Case) -> None:
    t.given(r.PODS, r.pod("p"))
    # The page says 400; API servers answer 422, because the patch and not the body is what is wrong.
    headers, query = {"Content-Type": "application/merge-patch+json"}, {"field_validation": "Strict"}
    answer = t.raw.answer("PATCH", t.path(r.PODS, "p"), body={"spec": {"nosuch": 1}}, headers=headers, query=query)
    assert answer.code in (400, 422) and 'unknown field "spec.nosuch"' in answer.json["message"]


@behaviour(pages.VALIDATION, Via.CODE)
def an_unknown_validation_level_is_refused(t: Case) -> None:
    with t.refused("Invalid", "fieldValidation"):
        t.create(CONFIG_MAPS, config_map("m"), field_validation="Loud")


@behaviour(pages.VERBS, Via.RAW)
def a_value_of_the_wrong_type_is_a_bad_request(t: Case) -> None:
    for body in (config_map("m") | {"data": ["a"]}, r.pod("p") | {"spec": {"containers": {}}}):
        resource = CONFIG_MAPS if body["kind"] == "ConfigMap" else r.PODS
        answer = t.raw.answer("POST", t.path(resource), body=body)
        assert (answer.code, answer.json["reason"]) == (400, "BadRequest"), answer.body


@behaviour(pages.VERBS, Via.RAW)
def a_body_that_cannot_be_read_is_a_bad_request(t: Case) -> None:
    for body in ("{", "[]", "", '"text"'):
        answer = t.raw.answer("POST", t.path(CONFIG_MAPS), body=body)
        assert (answer.code, answer.json["kind"]) == (400, "Status"), body


@behaviour(pages.VERBS, Via.RAW)
def nothing_is_an_object_without_a_name(t: Case) -> None:
    answer = t.raw.answer("POST", t.path(CONFIG_MAPS), body="null")
    assert (answer.code, "name or generateName is required" in answer.json["message"]) == (422, True)


@behaviour(pages.ENCODINGS, Via.RAW)
def a_form_is_no_body(t: Case) -> None:
    for media_type in ("application/x-www-form-urlencoded", "application/merge-patch+json"):
        headers = {"Content-Type": media_type}
        answer = t.raw.answer("POST", t.path(CONFIG_MAPS), body=config_map("m"), headers=headers)
        assert (answer.code, answer.json["reason"]) == (415, "UnsupportedMediaType")
        assert "application/json" in answer.json["message"]
    assert not t.exists(CONFIG_MAPS, "m")


@behaviour(pages.VERBS, Via.RAW)
def a_question_is_of_the_kind_of_its_path(t: Case) -> None:
    for path in (
        "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
        "/apis/authentication.k8s.io/v1/tokenreviews",
        t.path(r.SERVICE_ACCOUNTS, "default", "token"),
    ):
        answer = t.raw.answer("POST", path, body={"apiVersion": "v1", "kind": "Pod", "metadata": {}})
        assert (answer.code, "Pod in version" in answer.json["message"]) == (400, True), path


@behaviour(pages.VERBS, Via.RAW)
def the_kind_of_the_body_is_that_of_the_path(t: Case) -> None:
    answer = t.raw.answer("POST", t.path(r.SECRETS), body=config_map("m"))
    assert (answer.code, answer.json["reason"]) == (400, "BadRequest")


@behaviour(pages.VERBS, Via.RAW)
def a_verb_that_a_path_does_not_have_is_not_allowed(t: Case) -> None:
    t.given(CONFIG_MAPS, config_map("m"))
    for method, path in (
        ("POST", t.path(CONFIG_MAPS, "m")),
        ("PUT", t.path(CONFIG_MAPS)),
        ("PATCH", t.path(CONFIG_MAPS)),
    ):
        answer = t.raw.answer(method, path, body=config_map("m"))
        assert (answer.code, answer.json["reason"]) == (405, "MethodNotAllowed"), (method, path)


@behaviour(pages.ENCODINGS, Via.RAW)
def bodies_may_be_yaml(t: Case) -> None:
    headers = {"Content-Type": "application/yaml"}
    assert t.raw.answer("POST", t.path(CONFIG_MAPS), body=yaml.safe_dump(config_map("m")), headers=headers).code == 201
    assert t.now(CONFIG_MAPS, "m")["data"] == {"key": "value"}


@behaviour(pages.ENCODINGS, Via.RAW)
def answers_may_be_yaml(t: Case) -> None:
    t.given(CONFIG_MAPS, config_map("m"))
    answer = t.raw.answer("GET", t.path(CONFIG_MAPS, "m"), headers={"Accept": "application/yaml"})
    assert answer.media_type == "application/yaml"
    assert yaml.safe_load(answer.body)["data"] == {"key": "value"}


@behaviour(pages.ENCODINGS, Via.RAW)
def a_client_that_prefers_protobuf_but_takes_json_is_served(t: Case) -> None:
    headers = {"Accept": "application/vnd.kubernetes.protobuf, application/json"}
    answer = t.raw.answer("GET", t.path(r.NAMESPACES, t.ns), headers=headers)
    protobuf = answer.media_type == "application/vnd.kubernetes.protobuf"
    assert answer.body.startswith(b"k8s\x00") if protobuf else answer.json["metadata"]["name"] == t.ns


@behaviour(pages.ENCODINGS, Via.RAW)
def an_answer_in_an_unknown_encoding_is_not_acceptable(t: Case) -> None:
    answer = t.raw.answer("GET", t.path(CONFIG_MAPS), headers={"Accept": "application/xml"})
    assert answer.code == 406


@behaviour(pages.ENCODINGS, Via.RAW)
def a_body_in_an_unknown_encoding_is_unsupported(t: Case) -> None:
    headers = {"Content-Type": "application/xml"}
    answer = t.raw.answer("POST", t.path(CONFIG_MAPS), body="<a/>", headers=headers)
    assert (answer.code, answer.json["reason"]) == (415, "UnsupportedMediaType")


@behaviour(pages.PARAMETERS + "#pretty", Via.RAW)
def pretty_answers_have_lines(t: Case) -> None:
    plain = t.raw.answer("GET", t.path(r.NAMESPACES, t.ns)).body
    pretty = t.raw.answer("GET", t.path(r.NAMESPACES, t.ns), query={"pretty": "true"}).body
    assert json.loads(plain) == json.loads(pretty) and b"\n  " in pretty


# -- dry runs --------------------------------------------------------------------------------------------------


@behaviour(pages.DRY_RUN, fast=Via.ALL)
def a_dry_creation_answers_but_stores_nothing(t: Case) -> None:
    found = t.create(r.PODS, r.pod("p"), dry_run="All")
    assert found["spec"]["restartPolicy"] == "Always" and found["metadata"]["uid"]
    assert not t.exists(r.PODS, "p")


@behaviour(pages.DRY_RUN)
def a_dry_replacement_changes_nothing(t: Case) -> None:
    before = t.given(CONFIG_MAPS, config_map("m"))
    assert t.replace(CONFIG_MAPS, config_map("m", key="dry"), dry_run="All")["data"] == {"key": "dry"}
    assert t.now(CONFIG_MAPS, "m") == before


@behaviour(pages.DRY_RUN)
def a_dry_patch_changes_nothing(t: Case) -> None:
    before = t.given(CONFIG_MAPS, config_map("m"))
    assert t.patch(CONFIG_MAPS, "m", "merge", {"data": {"key": "dry"}}, dry_run="All")["data"] == {"key": "dry"}
    assert t.now(CONFIG_MAPS, "m") == before


@behaviour(pages.DRY_RUN)
def a_dry_deletion_deletes_nothing(t: Case) -> None:
    before = t.given(CONFIG_MAPS, config_map("m"))
    t.delete(CONFIG_MAPS, "m", dry_run="All")
    assert t.now(CONFIG_MAPS, "m") == before


@behaviour(pages.DRY_RUN)
def a_dry_creation_is_validated(t: Case) -> None:
    with t.refused("Invalid", "spec.containers[0].name"):
        t.create(r.PODS, r.pod("p", containers=[r.container("Not_A_Label")]), dry_run="All")


@behaviour(pages.DRY_RUN, Via.CODE)
def a_dry_creation_of_what_exists_is_refused(t: Case) -> None:
    t.given(CONFIG_MAPS, config_map("m"))
    with t.refused("AlreadyExists"):
        t.create(CONFIG_MAPS, config_map("m"), dry_run="All")


@behaviour(pages.GENERATED_NAMES, Via.CODE)
def a_dry_creation_generates_a_name(t: Case) -> None:
    found = t.create(CONFIG_MAPS, config_map("") | {"metadata": {"generateName": "dry-"}}, dry_run="All")
    assert (
        found["metadata"]["name"].startswith("dry-")
        and t.list(CONFIG_MAPS, fields="metadata.name=" + found["metadata"]["name"]) == []
    )


@behaviour(pages.DRY_RUN, Via.CODE)
def an_unknown_dry_run_is_refused(t: Case) -> None:
    with t.refused("Invalid", "dryRun"):
        t.create(CONFIG_MAPS, config_map("m"), dry_run="Some")
