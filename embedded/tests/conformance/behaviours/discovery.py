"""Finding out what a server serves, how it is, and who one is."""

from __future__ import annotations

import json

import kubernetes

from embedded.tests.conformance import pages
from embedded.tests.conformance.behaviour import Via, behaviour
from embedded.tests.conformance.case import Case
from embedded.tests.conformance.resources import PODS

_AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


@behaviour(pages.DISCOVERY, Via.ALL, Via.ALL)
def the_version_says_major_minor_and_git_version(t: Case) -> None:
    found = t.kubectl("version", "-ojson").json["serverVersion"] if t.by_kubectl else t.raw.call("GET", "/version")
    assert found["major"] == "1" and found["minor"].strip("+").isdigit()
    assert found["gitVersion"].startswith("v1." + found["minor"].strip("+"))


@behaviour(pages.HEALTH, Via.RAW)
def livez_and_readyz_answer_ok(t: Case) -> None:
    for path in ("/livez", "/readyz", "/healthz"):
        answer = t.raw.answer("GET", path, headers={"Accept": "*/*"})
        assert (answer.code, answer.body) == (200, b"ok"), path


@behaviour(pages.HEALTH, Via.RAW)
def a_check_of_health_can_be_asked_alone(t: Case) -> None:
    for path in ("/livez/ping", "/readyz/ping", "/healthz/ping"):
        answer = t.raw.answer("GET", path, headers={"Accept": "*/*"})
        assert (answer.code, answer.body) == (200, b"ok"), path
    assert t.raw.answer("GET", "/livez/no-such-check", headers={"Accept": "*/*"}).code == 404


@behaviour("https://kubernetes.io/docs/concepts/cluster-administration/system-metrics/", Via.RAW)
def metrics_are_told_in_the_format_of_prometheus(t: Case) -> None:
    t.raw.call("GET", "/api/v1/namespaces")
    answer = t.raw.answer("GET", "/metrics", headers={"Accept": "text/plain"})
    assert answer.code == 200 and b"# TYPE apiserver_request_total counter" in answer.body
    listed = [line for line in answer.body.splitlines() if line.startswith(b"apiserver_request_total{")]
    assert any(b'resource="namespaces"' in line and b'verb="LIST"' in line for line in listed)


@behaviour(pages.HEALTH, Via.RAW)
def verbose_health_lists_its_checks(t: Case) -> None:
    answer = t.raw.answer("GET", "/readyz?verbose", headers={"Accept": "*/*"})
    assert answer.code == 200 and b"[+]ping ok" in answer.body and b"readyz check passed" in answer.body


@behaviour(pages.DISCOVERY, Via.RAW)
def the_core_group_has_its_versions_under_api(t: Case) -> None:
    found = t.raw.call("GET", "/api")
    assert found["kind"] == "APIVersions" and found["versions"] == ["v1"]


@behaviour(pages.DISCOVERY, Via.RAW)
def named_groups_are_listed_with_a_preferred_version(t: Case) -> None:
    found = t.raw.call("GET", "/apis")
    assert found["kind"] == "APIGroupList"
    groups = {group["name"]: group for group in found["groups"]}
    served = "batch policy coordination.k8s.io scheduling.k8s.io apiextensions.k8s.io admissionregistration.k8s.io"
    for name in [*served.split(), "events.k8s.io"]:
        assert groups[name]["preferredVersion"]["groupVersion"] == f"{name}/v1"
        assert groups[name]["preferredVersion"] in groups[name]["versions"]


@behaviour(pages.DISCOVERY, Via.RAW)
def one_group_has_a_document_of_its_own(t: Case) -> None:
    found = t.raw.call("GET", "/apis/batch")
    assert (found["kind"], found["name"]) == ("APIGroup", "batch")
    assert {"groupVersion": "batch/v1", "version": "v1"} in found["versions"]


@behaviour(pages.DISCOVERY, Via.RAW)
def a_version_lists_its_resources_with_verbs_and_short_names(t: Case) -> None:
    found = t.raw.call("GET", "/api/v1")
    assert (found["kind"], found["groupVersion"]) == ("APIResourceList", "v1")
    pods = next(entry for entry in found["resources"] if entry["name"] == "pods")
    assert pods["kind"] == "Pod" and pods["singularName"] == "pod" and pods["namespaced"] is True
    assert pods["shortNames"] == ["po"] and "all" in pods["categories"]
    assert {"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"} <= set(pods["verbs"])


@behaviour(pages.DISCOVERY, Via.RAW)
def sub_resources_are_listed_beside_their_resource(t: Case) -> None:
    entries = {entry["name"]: entry for entry in t.raw.call("GET", "/api/v1")["resources"]}
    assert {"pods/status", "pods/binding", "pods/eviction", "pods/log", "nodes/status"} <= entries.keys()
    assert set(entries["pods/status"]["verbs"]) == {"get", "patch", "update"}
    assert (entries["pods/eviction"]["group"], entries["pods/eviction"]["version"]) == ("policy", "v1")
    assert entries["pods/eviction"]["kind"] == "Eviction"


@behaviour(pages.DISCOVERY, Via.RAW)
def cluster_scoped_resources_say_so(t: Case) -> None:
    entries = {entry["name"]: entry for entry in t.raw.call("GET", "/api/v1")["resources"]}
    assert [entries[name]["namespaced"] for name in ("nodes", "namespaces", "configmaps")] == [False, False, True]


@behaviour(pages.AGGREGATED, Via.RAW)
def aggregated_discovery_is_one_document_per_root(t: Case) -> None:
    for path in ("/api", "/apis"):
        answer = t.raw.answer("GET", path, headers={"Accept": _AGGREGATED})
        assert "as=APIGroupDiscoveryList" in answer.headers["Content-Type"]
        assert answer.json["apiVersion"] == "apidiscovery.k8s.io/v2"
        assert answer.json["kind"] == "APIGroupDiscoveryList"


@behaviour(pages.AGGREGATED, Via.RAW)
def aggregated_discovery_names_kind_scope_verbs_and_sub_resources(t: Case) -> None:
    found = t.raw.call("GET", "/api", headers={"Accept": _AGGREGATED})
    version = found["items"][0]["versions"][0]
    pods = next(entry for entry in version["resources"] if entry["resource"] == "pods")
    assert pods["scope"] == "Namespaced" and pods["responseKind"]["kind"] == "Pod"
    assert "watch" in pods["verbs"]
    assert {"status", "eviction", "binding"} <= {sub["subresource"] for sub in pods["subresources"]}


@behaviour(pages.OPENAPI, Via.RAW)
def openapi_v3_has_an_index_of_group_versions(t: Case) -> None:
    paths = t.raw.call("GET", "/openapi/v3")["paths"]
    assert {"api/v1", "apis/batch/v1", "apis/apiextensions.k8s.io/v1"} <= paths.keys()
    assert paths["api/v1"]["serverRelativeURL"].startswith("/openapi/v3/api/v1?hash=")


@behaviour(pages.OPENAPI, Via.RAW)
def openapi_v3_documents_name_the_kind_of_every_schema(t: Case) -> None:
    url = t.raw.call("GET", "/openapi/v3")["paths"]["api/v1"]["serverRelativeURL"]
    document = t.raw.call("GET", url)
    assert document["openapi"].startswith("3.0")
    schema = document["components"]["schemas"]["io.k8s.api.core.v1.Pod"]
    assert {"group": "", "version": "v1", "kind": "Pod"} in schema["x-kubernetes-group-version-kind"]
    assert {"spec", "status", "metadata"} <= schema["properties"].keys()


@behaviour(pages.OPENAPI, Via.RAW)
def an_openapi_document_with_its_hash_may_be_cached_for_ever(t: Case) -> None:
    url = t.raw.call("GET", "/openapi/v3")["paths"]["apis/batch/v1"]["serverRelativeURL"]
    answer = t.raw.answer("GET", url)
    assert "immutable" in answer.headers["Cache-Control"] and answer.headers["Expires"]


@behaviour(pages.OPENAPI, Via.RAW)
def an_openapi_document_of_an_old_hash_redirects_to_the_newest(t: Case) -> None:
    url = t.raw.call("GET", "/openapi/v3")["paths"]["apis/batch/v1"]["serverRelativeURL"]
    answer = t.raw.answer("GET", "/openapi/v3/apis/batch/v1?hash=OLD")
    assert 300 < answer.code < 400 and answer.headers["Location"] == url


@behaviour(pages.URIS, Via.RAW)
def an_unknown_group_or_resource_is_not_found(t: Case) -> None:
    for path in ("/apis/no.such.group/v1/things", f"/api/v1/namespaces/{t.ns}/nosuchthings", "/apis/batch/v0/jobs"):
        assert t.raw.answer("GET", path).code == 404, path


@behaviour(pages.AUTHENTICATION, Via.RAW)
def an_invalid_bearer_token_is_unauthorized(t: Case) -> None:
    headers = {"Authorization": "Bearer not-a-token"}
    answer = t.raw.answer("GET", "/api/v1/namespaces", headers=headers, anonymous=True)
    assert answer.code == 401
    assert (answer.json["kind"], answer.json["reason"]) == ("Status", "Unauthorized")


@behaviour(pages.AUTHENTICATION, Via.RAW)
def a_stranger_may_not_read_objects(t: Case) -> None:
    answer = t.raw.answer("GET", "/api/v1/secrets", anonymous=True)
    assert answer.code in (401, 403) and answer.json["kind"] == "Status"


@behaviour(pages.AUTHORIZATION, Via.ALL, Via.ALL)
def one_may_ask_whether_an_act_is_allowed(t: Case) -> None:
    if t.by_kubectl:
        assert t.kubectl("auth", "can-i", "list", "pods").out.strip() == "yes"
        return
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {"verb": "list", "resource": "pods", "namespace": t.ns}},
    }
    found = t.raw.call("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", body=review)
    assert found["status"]["allowed"] is True


@behaviour(pages.DISCOVERY, Via.RAW, needs="metrics.k8s.io")
def metrics_are_an_api_group_of_nodes_and_pods(t: Case) -> None:
    entries = {entry["name"]: entry for entry in t.raw.call("GET", "/apis/metrics.k8s.io/v1beta1")["resources"]}
    assert [entries[name]["kind"] for name in ("nodes", "pods")] == ["NodeMetrics", "PodMetrics"]
    assert entries["nodes"]["namespaced"] is False
    assert t.raw.call("GET", PODS.path(t.ns).replace("/api/v1", "/apis/metrics.k8s.io/v1beta1"))["items"] == []


@behaviour(pages.ACCESS, Via.RAW)
def the_root_lists_its_paths(t: Case) -> None:
    paths = t.raw.call("GET", "/")["paths"]
    assert {"/api", "/apis", "/version", "/openapi/v3", "/apis/batch/v1"} <= set(paths)


@behaviour(pages.DISCOVERY, Via.PYTHON)
def the_python_client_finds_groups_and_resources(t: Case) -> None:
    groups = kubernetes.client.ApisApi(t.python.api).get_api_versions().groups
    assert "batch" in {group.name for group in groups}
    names = {entry.name for entry in t.python.typed("batch").get_api_resources().resources}
    assert {"jobs", "jobs/status", "cronjobs"} <= names


@behaviour(pages.kubectl("api-resources"), Via.KUBECTL, Via.ALL)
def kubectl_lists_the_resources_with_scope_and_kind(t: Case) -> None:
    rows = [line.split() for line in t.kubectl("api-resources", "--no-headers").out.splitlines()]
    assert ["pods", "po", "v1", "true", "Pod"] in rows
    assert [
        "customresourcedefinitions",
        "crd,crds",
        "apiextensions.k8s.io/v1",
        "false",
        "CustomResourceDefinition",
    ] in rows
    assert ["cronjobs", "cj", "batch/v1", "true", "CronJob"] in rows


@behaviour(pages.kubectl("api-versions"), Via.KUBECTL)
def kubectl_lists_the_group_versions(t: Case) -> None:
    assert {"v1", "batch/v1", "policy/v1", "events.k8s.io/v1"} <= set(t.kubectl("api-versions").out.split())


@behaviour(pages.kubectl("cluster-info"), Via.KUBECTL)
def kubectl_shows_where_the_control_plane_is(t: Case) -> None:
    out = t.kubectl("cluster-info").out
    assert "control plane" in out and "is running at" in out


@behaviour(pages.kubectl("get"), Via.KUBECTL)
def kubectl_gets_a_raw_path(t: Case) -> None:
    assert json.loads(t.kubectl("get", "--raw", "/api/v1/namespaces/" + t.ns).out)["metadata"]["name"] == t.ns
