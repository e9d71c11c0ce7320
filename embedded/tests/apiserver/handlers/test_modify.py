"""Writes as requests: body formats, options, resourceVersions, and every way to delete.

https://kubernetes.io/docs/reference/using-api/api-concepts/
"""

import json

import pytest

MAPS = "/api/v1/namespaces/default/configmaps"
PODS = "/api/v1/namespaces/default/pods"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"


def config_map(name="c", **data):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def pod(name="p", **spec):
    containers = [{"name": "c", "image": "busybox"}]
    return {"metadata": {"name": name}, "spec": {"containers": containers, "nodeName": "n"} | spec}


def revision(api):
    return api.resources.store.revision


# -- bodies ----------------------------------------------------------------------------------------------------

FORMATS = {
    "JSON": ("application/json", None),
    "JSON with a character set": ("application/json; charset=utf-8", None),
    "no type": ("", None),
    "YAML": ("application/yaml", b"metadata: {name: c}\ndata: {a: '1'}\n"),
}


@pytest.mark.parametrize(("kind", "body"), FORMATS.values(), ids=FORMATS)
def test_bodies_may_come_in_several_formats(api, kind, body):
    """Kind and version are those of the path where the body does not say."""
    code, obj = api.call("POST", MAPS, body or json.dumps(config_map(a="1")).encode(), content_type=kind)
    assert (code, obj["data"], obj["kind"]) == (201, {"a": "1"}, "ConfigMap")


def test_no_self_link_is_kept(api):
    """Neither as an object is made nor later, through whichever path: Kubernetes stores none."""
    link = {"metadata": {"selfLink": "x" * 1000}}
    code, obj = api.call(
        "POST", MAPS, json.dumps(config_map() | {"metadata": {"name": "c"} | link["metadata"]}).encode()
    )
    assert code == 201 and "selfLink" not in obj["metadata"]
    api.post(PODS, pod())
    for path in (f"{MAPS}/c", f"{PODS}/p", f"{PODS}/p/status"):
        kind = "application/merge-patch+json"
        code, obj = api.call("PATCH", path, json.dumps(link).encode(), content_type=kind)
        assert code == 200 and "selfLink" not in obj["metadata"]


def test_a_format_nobody_reads_is_refused_with_those_that_are(api):
    """415, with the list for bodies; what curl says unless told is such a format, too, and so is that of a patch."""
    form, patch = "application/x-www-form-urlencoded", "application/merge-patch+json"
    for kind in ("application/xml", form, patch, "application/json;;", "application/json; utf-8"):
        code, status = api.call("POST", MAPS, b"{}", content_type=kind)
        assert (code, status["reason"]) == (415, "UnsupportedMediaType")
        assert status["message"] == (
            "the body of the request was in an unknown format - accepted media types include: "
            "application/json, application/yaml, application/vnd.kubernetes.protobuf"
        )
    code, status = api.call("PATCH", f"{MAPS}/c", {}, content_type="application/json")
    assert (code, status["message"]) == (415, "415: Unsupported Media Type")


EMPTY = {"POST": MAPS, "PUT": f"{MAPS}/c"}


@pytest.mark.parametrize(("method", "url"), EMPTY.items(), ids=EMPTY)
@pytest.mark.parametrize("body", [b"", b" ", b"[]", b'"x"', b"{"])
def test_a_body_that_is_no_object_is_the_callers_fault(api, method, url, body):
    """400, never 500."""
    api.post(MAPS, config_map())
    code, status = api.call(method, url, body)
    assert (code, status["reason"]) == (400, "BadRequest")


def test_null_is_an_object_without_anything(api):
    """So that what is missing is its name; a patch of nothing changes nothing."""
    made = api.post(MAPS, config_map())
    code, status = api.call("POST", MAPS, b"null")
    assert (code, status["message"]) == (
        *(422, 'ConfigMap "" is invalid: metadata.name: Required value: name or generateName is required'),
    )
    code, status = api.call("PUT", f"{MAPS}/c", b"null")
    assert (code, status["message"]) == (
        *(400, "the name of the object (c based on URL) was undeterminable: name must be provided"),
    )
    assert [api.patch(f"{MAPS}/c", b"null", kind) for kind in ("json", "strategic")] == [(200, made)] * 2
    assert api.patch(f"{MAPS}/c", b"null", "merge")[0] == 400


@pytest.mark.parametrize("kind", ["merge", "json", "strategic"])
@pytest.mark.parametrize("body", [b"", b"3", b'"x"'])
def test_a_patch_that_is_no_patch_is_the_callers_fault(api, kind, body):
    """400, never 500."""
    api.post(MAPS, config_map())
    assert api.patch(f"{MAPS}/c", body, kind)[0] == 400


def test_another_kind_or_version_is_refused(api):
    """With both names."""
    code, status = api.call("POST", MAPS, {"apiVersion": "v1", "kind": "Pod"})
    assert code == 400 and 'Pod in version "v1" cannot be handled as a ConfigMap' in status["message"]
    code, status = api.call("POST", MAPS, config_map() | {"apiVersion": "v2"})
    told = "the API version in the data (v2) does not match the expected API version (v1)"
    assert (code, status["message"]) == (400, told)


def test_generated_names_differ(api):
    """Each creation of the same body makes another object."""
    body = {"metadata": {"generateName": "c-"}}
    names = {api.post(MAPS, body)["metadata"]["name"] for _ in range(20)}
    assert len(names) == 20 and all(name.startswith("c-") for name in names)


# -- resourceVersions ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [None, "", "0"])
def test_a_put_without_a_version_overwrites_where_that_is_allowed(api, version):
    """Config maps allow it, leases insist."""
    api.post(MAPS, config_map(a="1"))
    body = config_map(a="2")
    body["metadata"]["resourceVersion"] = version
    assert api.call("PUT", f"{MAPS}/c", body)[1]["data"] == {"a": "2"}
    api.post(LEASES, {"metadata": {"name": "l"}})
    code, status = api.call("PUT", f"{LEASES}/l", {"metadata": {"name": "l", "resourceVersion": version}})
    assert code == 422 and "metadata.resourceVersion: Invalid value: 0x0" in status["message"]


@pytest.mark.parametrize("kind", ["merge", "strategic", "json", "put"])
def test_a_version_is_a_precondition_of_every_write(api, kind):
    """409 with the well-known words, and nothing changes."""
    old = api.post(MAPS, config_map(a="1"))["metadata"]["resourceVersion"]
    api.patch(f"{MAPS}/c", {"data": {"a": "2"}})
    stale = {"metadata": {"name": "c", "resourceVersion": old}, "data": {"a": "3"}}
    match kind:
        case "put":
            code, status = api.call("PUT", f"{MAPS}/c", stale)
        case "json":
            code, status = api.patch(
                f"{MAPS}/c", [{"op": "replace", "path": "/metadata/resourceVersion", "value": old}], kind
            )
        case _:
            code, status = api.patch(f"{MAPS}/c", stale, kind)
    assert (code, status["reason"]) == (409, "Conflict")
    assert "the object has been modified; please apply your changes to the latest version" in status["message"]
    assert api.get(f"{MAPS}/c")["data"] == {"a": "2"}


@pytest.mark.parametrize(
    ("patch", "kind"),
    [({"data": {"a": "1"}}, "merge"), ({}, "strategic"), ([{"op": "test", "path": "/data/a", "value": "1"}], "json")],
    ids=["merge", "strategic", "json"],
)
def test_a_patch_without_effect_is_no_write(api, patch, kind):
    """The version stays, and watchers hear nothing."""
    api.post(MAPS, config_map(a="1"))
    before = revision(api)
    assert api.patch(f"{MAPS}/c", patch, kind)[0] == 200
    assert revision(api) == before


def test_a_patch_whose_result_is_no_object_is_refused(api):
    """422 about the patch, as kube-apiserver has it."""
    api.post(PODS, pod())
    for query, body, told in (
        ("", {"spec": {"containers": "x"}}, "cannot unmarshal string into Go struct field"),
        ("?fieldValidation=Strict", {"spec": {"foo": 1}}, 'strict decoding error: unknown field "spec.foo"'),
    ):
        code, status = api.patch(f"{PODS}/p{query}", body)
        assert (code, status["details"]["causes"][0]["field"]) == (422, "patch")
        assert told in status["message"]


def test_strict_patches_are_strict_about_themselves(api):
    """Repeated fields of any patch, unknown members of JSON patches: refused or told, by fieldValidation."""
    api.post(MAPS, config_map())
    for kind, body, told in (
        ("merge", b'{"data":{"a":"1","a":"2"}}', 'duplicate field "data.a"'),
        ("json", [{"op": "add", "path": "/data/a", "value": "1", "x": 1}], 'json patch unknown field "[0].x"'),
    ):
        code, status = api.patch(f"{MAPS}/c?fieldValidation=Strict", body, kind)
        assert code == 422 and f"strict decoding error: {told}" in status["message"]
        media = "application/json-patch+json" if kind == "json" else "application/merge-patch+json"
        assert api.raw("PATCH", f"{MAPS}/c", body, content_type=media).warnings == (told,)


def test_a_manifest_without_what_admission_decided_replaces_a_pod(api):
    """Priority and tolerations stay as they were decided; as with kubectl replace on a pod not yet scheduled."""
    created = api.post(PODS, pod(nodeName="", automountServiceAccountToken=False))
    manifest = pod(nodeName="", automountServiceAccountToken=False)
    manifest["metadata"]["labels"] = {"a": "b"}
    code, obj = api.call("PUT", f"{PODS}/p", manifest)
    assert (code, obj["metadata"].get("labels"), obj["spec"]) == (200, {"a": "b"}, created["spec"])


# -- deletions -------------------------------------------------------------------------------------------------

WAYS = {
    "body": ("", {"gracePeriodSeconds": 5}, "application/json"),
    "body with its kind": (
        "",
        {"kind": "DeleteOptions", "apiVersion": "policy/v1", "gracePeriodSeconds": 5},
        "application/json",
    ),
    "YAML": ("", b"gracePeriodSeconds: 5\n", "application/yaml"),
    "query": ("?gracePeriodSeconds=5", None, ""),
}


@pytest.mark.parametrize(("query", "body", "kind"), WAYS.values(), ids=WAYS)
def test_options_of_a_deletion_come_from_the_body_or_the_query(api, query, body, kind):
    """The same either way."""
    api.post(PODS, pod())
    code, obj = api.call("DELETE", f"{PODS}/p{query}", body, content_type=kind)
    assert (code, obj["metadata"]["deletionGracePeriodSeconds"]) == (200, 5)


def test_some_types_answer_a_deletion_with_the_object(api):
    """As the typed clients expect; most answer with a Status."""
    for plural, kind in (("services", "Service"), ("serviceaccounts", "ServiceAccount"), ("configmaps", "Status")):
        body = {"metadata": {"name": "x"}} | ({"spec": {"ports": [{"port": 1}]}} if plural == "services" else {})
        api.post(f"/api/v1/namespaces/default/{plural}", body)
        assert api.call("DELETE", f"/api/v1/namespaces/default/{plural}/x")[1]["kind"] == kind


def test_a_negative_grace_period_is_a_second(api):
    """As the API documents it."""
    api.post(PODS, pod())
    assert api.call("DELETE", f"{PODS}/p", {"gracePeriodSeconds": -3})[1]["metadata"]["deletionGracePeriodSeconds"] == 1


@pytest.mark.parametrize(("query", "body"), [("?dryRun=All", None), ("", {"dryRun": ["All"]})], ids=["query", "body"])
def test_a_dry_deletion_deletes_nothing(api, query, body):
    """It answers as if."""
    api.post(MAPS, config_map())
    before = revision(api)
    assert api.call("DELETE", f"{MAPS}/c{query}", body)[0] == 200
    assert api.get(f"{MAPS}/c") and revision(api) == before


BAD_DELETIONS = {
    "unknown policy": ({"propagationPolicy": "Sideways"}, 422, "propagationPolicy: Unsupported value"),
    "two policies": (
        {"propagationPolicy": "Orphan", "orphanDependents": True},
        422,
        "orphanDependents and deletionPropagation cannot be both set",
    ),
    "another dry run": ({"dryRun": ["Some"]}, 422, "dryRun: Unsupported value"),
    "grace in words": ({"gracePeriodSeconds": "soon"}, 400, "gracePeriodSeconds must be int"),
    "grace as a truth": ({"gracePeriodSeconds": True}, 400, "gracePeriodSeconds must be int"),
    "preconditions in words": ({"preconditions": "x"}, 400, "preconditions must be dict"),
    "another kind": ({"kind": "Pod"}, 400, "Pod cannot be handled as DeleteOptions"),
    "no object": ([], 400, "must be an object"),
    "another uid": ({"preconditions": {"uid": "x"}}, 409, "Precondition failed: UID in precondition: x"),
    "another version": (
        {"preconditions": {"resourceVersion": "1"}},
        409,
        "Precondition failed: ResourceVersion in precondition: 1",
    ),
}


@pytest.mark.parametrize(("body", "code", "told"), BAD_DELETIONS.values(), ids=BAD_DELETIONS)
@pytest.mark.parametrize("url", [f"{MAPS}/c", MAPS], ids=["one", "collection"])
def test_deletions_that_are_refused(api, url, body, code, told):
    """With the reason, and nothing is deleted."""
    api.post(MAPS, config_map())
    got, status = api.call("DELETE", url, body)
    assert got == code and told in status["message"]
    assert api.get(f"{MAPS}/c")


def test_orphan_dependents_is_the_old_way_to_say_it(api):
    """The finalizer that carries it out appears."""
    owner = api.post(MAPS, config_map() | {"metadata": {"name": "c", "finalizers": ["example.com/hold"]}})
    code, obj = api.call("DELETE", f"{MAPS}/c", {"orphanDependents": True})
    assert (code, obj["metadata"]["finalizers"]) == (200, ["example.com/hold", "orphan"])
    assert obj["metadata"]["uid"] == owner["metadata"]["uid"]


def test_a_collection_is_deleted_by_selectors_and_options(api):
    """Labels, fields, dry run; the answer lists what went."""
    for name, label in (("a", "x"), ("b", "x"), ("d", "y")):
        api.post(MAPS, {"metadata": {"name": name, "labels": {"l": label}}})
    code, listed = api.call("DELETE", f"{MAPS}?labelSelector=l%3Dx&dryRun=All")
    assert (code, [item["metadata"]["name"] for item in listed["items"]]) == (200, ["a", "b"])
    api.call("DELETE", f"{MAPS}?labelSelector=l%3Dx&fieldSelector=metadata.name%3Da")
    assert [item["metadata"]["name"] for item in api.get(MAPS)["items"]] == ["b", "d"]
    code, listed = api.call("DELETE", MAPS)
    assert (listed["kind"], len(listed["items"]), api.get(MAPS)["items"]) == ("ConfigMapList", 2, [])
