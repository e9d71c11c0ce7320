"""OpenAPI v3 documents."""

import json

import pytest

from embedded.apiserver.apimachinery.resource_types import Registry
from embedded.apiserver.presentation.openapi import Documents

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
REFERENCE = "#/components/schemas/"


def references(value):
    """Every schema a document refers to."""
    if isinstance(value, dict):
        for key, item in value.items():
            if key == "$ref" and isinstance(item, str):
                yield item.removeprefix(REFERENCE)
            else:
                yield from references(item)
    elif isinstance(value, list):
        for item in value:
            yield from references(item)


def widgets(description):
    schema = {"type": "object", "description": description, "properties": {"spec": {"type": "object"}}}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}},
    }
    names = {"plural": "widgets", "kind": "Widget"}
    spec = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]}
    return {"metadata": {"name": "widgets.example.com"}, "spec": spec}


def index(api):
    return {path: entry["serverRelativeURL"] for path, entry in api.get("/openapi/v3")["paths"].items()}


def test_every_group_and_version_has_a_document_that_is_whole(api):
    """No reference leads out of its document, and every kind has a schema that says so."""
    api.post(DEFINITIONS, widgets("A widget."))
    assert set(index(api)) >= {"api/v1", "apis/batch/v1", "apis/example.com/v1"}
    for path, url in index(api).items():
        document = api.get(url)
        schemas = document["components"]["schemas"]
        assert set(references(document)) <= set(schemas), path
        kinds = [
            (k["group"], k["version"], k["kind"])
            for s in schemas.values()
            for k in s.get("x-kubernetes-group-version-kind") or ()
        ]
        for operations in document["paths"].values():
            for operation in operations.values():
                kind = operation["x-kubernetes-group-version-kind"]
                assert (kind["group"], kind["version"], kind["kind"]) in kinds, (path, kind)


def test_operations_are_where_kubectl_looks_for_them(api):
    """explain goes by the GET of a path, writes by the PATCH and its parameters."""
    paths = api.get("/openapi/v3/api/v1")["paths"]
    assert paths["/api/v1/nodes"]["get"]["x-kubernetes-group-version-kind"]["kind"] == "Node"
    one = paths["/api/v1/namespaces/{namespace}/pods/{name}"]
    assert set(one) == {"get", "put", "patch", "delete"}
    assert "application/strategic-merge-patch+json" in one["patch"]["requestBody"]["content"]
    assert {"dryRun", "fieldValidation"} <= {parameter["name"] for parameter in one["patch"]["parameters"]}
    assert set(paths["/api/v1/namespaces/{namespace}/pods/{name}/status"]) == {"get", "put", "patch"}
    assert set(paths["/api/v1/namespaces/{namespace}/pods/{name}/eviction"]) == {"post"}
    assert set(paths["/api/v1/pods"]) == {"get"}


def test_a_changed_definition_is_another_document(api):
    """The hash in the index moves with the content, and only that of the changed group."""
    api.post(DEFINITIONS, widgets("One."))
    before = index(api)
    assert (
        api.get(before["apis/example.com/v1"])["components"]["schemas"]["com.example.v1.Widget"]["description"]
        == "One."
    )
    code, _ = api.patch(f"{DEFINITIONS}/widgets.example.com", {"spec": widgets("Two.")["spec"]})
    after = index(api)
    assert code == 200
    assert {path for path in after if after[path] != before[path]} == {"apis/example.com/v1"}
    assert (
        api.get(after["apis/example.com/v1"])["components"]["schemas"]["com.example.v1.Widget"]["description"] == "Two."
    )


def test_a_client_that_has_a_document_is_not_sent_it_again(api):
    """ETag and If-None-Match; what is asked for by its hash may be kept for ever."""
    url = index(api)["api/v1"]
    first = api.raw("GET", url)
    assert "immutable" in first.headers["Cache-Control"]
    again = api.raw("GET", url, if_none_match=first.headers["ETag"])
    assert (again.status, again.body) == (304, b"")
    assert first.headers["Expires"] == "Tue, 21 Sep 2027 14:13:20 GMT"
    assert not {"Cache-Control", "Expires"} & set(api.raw("GET", "/openapi/v3/api/v1").headers)
    assert api.raw("GET", "/openapi/v3/api/v1", if_none_match='"other"').status == 200


@pytest.mark.parametrize("path", ["api/v1", "apis/batch/v1"])
def test_an_old_hash_leads_to_the_newest_document(api, path):
    """As kube-apiserver does: 301."""
    answer = api.raw("GET", f"/openapi/v3/{path}?hash=OLD")
    assert (answer.status, answer.headers["Location"]) == (301, index(api)[path])


def test_documents_are_made_once():
    """And kept while the registry stays as it is."""
    documents = Documents(Registry(), lambda: 0.0)
    assert documents.index() == documents.index()
    assert documents._document("", "v1") is documents._document("", "v1")


@pytest.mark.parametrize("url", ["/openapi/v3/api/v2", "/openapi/v3/apis/nope/v1", "/openapi/v3/x"])
def test_documents_of_what_is_not_served_are_not_found(api, url):
    """404."""
    assert api.call("GET", url)[0] == 404


def test_merge_keys_are_in_the_schemas(api):
    """By them kubectl makes its strategic patches."""
    schemas = json.loads(api.raw("GET", "/openapi/v3/api/v1").body)["components"]["schemas"]
    containers = schemas["io.k8s.api.core.v1.PodSpec"]["properties"]["containers"]
    assert (containers["x-kubernetes-patch-strategy"], containers["x-kubernetes-patch-merge-key"]) == ("merge", "name")
