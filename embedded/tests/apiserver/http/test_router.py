"""The API as a whole: paths, optimistic concurrency, lists, watches, discovery."""

import asyncio
import json

import pytest

from embedded.apiserver.apimachinery.resource_types import CONFIG_MAPS
from embedded.apiserver.request.messages import Request

MAPS = "/api/v1/namespaces/default/configmaps"
PODS = "/api/v1/namespaces/default/pods"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"


def config_map(name="a", data=None, **meta):
    return {"metadata": {"name": name} | meta, "data": {"k": "v"} if data is None else data}


def version_of(obj):
    return obj["metadata"]["resourceVersion"]


UNKNOWN = [
    ("GET", "/nonsense"),
    ("GET", "/api/v2/pods"),
    ("GET", "/api/v1/frobs"),
    ("GET", "/apis/nope.example.com/v1/things"),
    ("GET", "/openapi/v2"),
    ("GET", "/api/v1/namespaces/default/nodes"),
    ("GET", "/api/v1/pods/p"),
    ("GET", f"{PODS}/p/exec"),
    ("GET", f"{PODS}/p/frob"),
    ("GET", f"{PODS}/p/status/more"),
    ("GET", f"{PODS}//status"),
]


@pytest.mark.parametrize(("method", "url"), UNKNOWN)
def test_what_is_not_served_is_not_found(api, method, url):
    """404 with a Status, never an empty page."""
    code, status = api.call(method, url)
    assert (code, status["kind"], status["reason"]) == (404, "Status", "NotFound")
    assert "details" in status, "kubectl debug crashes without"


@pytest.mark.parametrize(
    ("method", "url"), [("PUT", MAPS), ("POST", f"{MAPS}/a"), ("FROB", MAPS), ("DELETE", f"{PODS}/p/log")]
)
def test_methods_that_do_not_apply_are_not_allowed(api, method, url):
    """405."""
    api.post(MAPS, config_map())
    assert api.call(method, url, {})[0] == 405


def test_an_encoded_slash_stays_inside_a_name(api):
    """A name is decoded after the path is split."""
    code, status = api.call("GET", f"{MAPS}/a%2Fb")
    assert (code, status["details"]["name"]) == (404, "a/b")


def test_a_failure_of_ours_is_a_plain_500(api):
    """The client learns nothing of the inside, the server goes on."""
    api.core.registry = None
    code, status = api.call("GET", MAPS)
    assert (code, status["reason"]) == (500, "InternalError")
    assert "Traceback" not in status["message"] and "NoneType" not in status["message"]


def test_creating_twice_is_a_conflict_and_generated_names_differ(api):
    """409 AlreadyExists; generateName never collides."""
    api.post(MAPS, config_map())
    code, status = api.call("POST", MAPS, config_map())
    assert (code, status["reason"], status["details"]["name"]) == (409, "AlreadyExists", "a")
    names = {api.post(MAPS, {"metadata": {"generateName": "g-"}})["metadata"]["name"] for _ in range(20)}
    assert len(names) == 20 and all(name.startswith("g-") and len(name) == 7 for name in names)


def test_the_server_decides_who_an_object_is(api):
    """uid, creation and generation sent by a client are not believed."""
    sent = config_map(uid="mine", creationTimestamp="1999-01-01T00:00:00Z", deletionTimestamp="1999-01-01T00:00:00Z")
    meta = api.post(MAPS, sent)["metadata"]
    assert meta["uid"] != "mine" and meta["creationTimestamp"] == "2026-09-21T14:13:20Z"
    assert "deletionTimestamp" not in meta


def test_a_namespace_in_the_body_must_be_that_of_the_path(api):
    """An empty one counts as none, as kubectl's generators send it."""
    assert api.call("POST", MAPS, config_map(namespace="other"))[0] == 400
    assert api.post(MAPS, config_map(namespace=""))["metadata"]["namespace"] == "default"


def test_a_stale_write_is_a_conflict(api):
    """PUT and PATCH alike, when they carry a resourceVersion."""
    old = api.post(MAPS, config_map())
    code, new = api.call("PUT", f"{MAPS}/a", old | {"data": {"k": "2"}})
    assert code == 200 and int(version_of(new)) > int(version_of(old))
    code, status = api.call("PUT", f"{MAPS}/a", old | {"data": {"k": "3"}})
    assert (code, status["reason"]) == (409, "Conflict")
    assert api.patch(f"{MAPS}/a", {"metadata": {"resourceVersion": version_of(old)}})[0] == 409
    assert api.get(f"{MAPS}/a")["data"] == {"k": "2"}


def test_a_put_without_resource_version(api):
    """Allowed where Kubernetes allows it, refused for leases."""
    api.post(MAPS, config_map())
    assert api.call("PUT", f"{MAPS}/a", config_map(data={"k": "2"}))[0] == 200
    api.post(LEASES, {"metadata": {"name": "l"}})
    code, status = api.call("PUT", f"{LEASES}/l", {"metadata": {"name": "l"}})
    assert code == 422 and status["details"]["causes"][0]["field"] == "metadata.resourceVersion"


def test_a_write_that_changes_nothing_is_no_change(api):
    """Same resourceVersion, no event."""
    created = api.post(MAPS, config_map())
    _, put = api.call("PUT", f"{MAPS}/a", config_map())
    _, patched = api.patch(f"{MAPS}/a", {"data": {"k": "v"}})
    assert version_of(created) == version_of(put) == version_of(patched)
    assert api.watch(f"{MAPS}?watch=1&resourceVersion={version_of(created)}") == []


def test_a_dry_run_changes_nothing(api):
    """Create, update, patch and delete answer as if, and bump nothing."""
    created, before = api.post(MAPS, config_map()), api.core.store.revision
    assert api.call("POST", f"{MAPS}?dryRun=All", config_map("b"))[0] == 201
    _, changed = api.call("PUT", f"{MAPS}/a?dryRun=All", config_map(data={"k": "2"}))
    assert changed["data"] == {"k": "2"}
    assert api.call("DELETE", f"{MAPS}/a?dryRun=All")[0] == 200
    assert api.call("POST", f"{MAPS}?dryRun=Some", config_map("c"))[0] == 422
    assert (api.get(f"{MAPS}/a"), api.core.store.revision) == (created, before)
    assert api.call("GET", f"{MAPS}/b")[0] == 404


def test_identity_cannot_be_changed(api):
    """Name, namespace, kind and uid belong to the path and the server."""
    created = api.post(MAPS, config_map())
    for body in (config_map("b"), config_map(namespace="other"), config_map() | {"kind": "Secret"}):
        assert api.call("PUT", f"{MAPS}/a", body)[0] == 400
    assert api.call("PUT", f"{MAPS}/a", config_map(uid="x"))[0] == 409
    assert api.get(f"{MAPS}/a") == created


def test_unknown_patch_and_body_types_are_unsupported(api):
    """415, as kube-apiserver words it."""
    api.post(MAPS, config_map())
    code, status = api.call("PATCH", f"{MAPS}/a", {}, content_type="application/apply-patch+cbor")
    assert (code, status["message"]) == (415, "415: Unsupported Media Type")
    assert api.call("POST", MAPS, b"<a/>", content_type="text/xml")[0] == 415


def test_yaml_bodies_are_read(api):
    """Clients may send YAML."""
    body = b"metadata: {name: x}\ndata: {k: v}\n"
    code, created = api.call("POST", MAPS, body, content_type="application/yaml")
    assert (code, created["data"]) == (201, {"k": "v"})


@pytest.mark.parametrize("body", ["[" * 100_000, "a: &a [*a]", "data: {? [a] : b}", "data: {a: 5", "data: {a: .nan}"])
def test_yaml_that_cannot_be_read_is_refused(api, body):
    """400 in the body's own words, whatever it does to a parser."""
    code, told = api.call("POST", MAPS, body.encode(), content_type="application/yaml")
    assert (code, told["message"].startswith("the request body cannot be decoded: ")) == (400, True)


def test_keys_of_yaml_are_texts(api):
    """Also for apply, whose bodies are YAML by definition."""
    body = (
        b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, annotations: {day: 2020-01-01}}\ndata: {5: x, yes: z}\n"
    )
    code, made = api.call("PATCH", f"{MAPS}/x?fieldManager=m", body, content_type="application/apply-patch+yaml")
    assert (code, made["data"], made["metadata"]["annotations"]) == (
        201,
        {"5": "x", "true": "z"},
        {"day": "2020-01-01"},
    )


# -- lists -----------------------------------------------------------------------------------------------------


def test_pages_cover_a_list_exactly_once(api):
    """Each page continues after the last, under the first page's resourceVersion."""
    for number in range(7):
        api.post(MAPS, config_map(f"m{number}"))
    names, token, versions = [], "", set()
    while True:
        page = api.get(f"{MAPS}?limit=3&continue={token}")
        names += [item["metadata"]["name"] for item in page["items"]]
        versions.add(version_of(page))
        token = page["metadata"].get("continue", "")
        if not token:
            break
        api.post(MAPS, config_map(f"a-{len(names)}"))
    assert names == [f"m{number}" for number in range(7)]
    assert len(versions) == 1


def test_a_page_whose_history_is_gone_is_expired(small_ring_api):
    """A list that cannot be made consistent by watching on is 410."""
    api = small_ring_api
    for number in range(3):
        api.post(MAPS, config_map(f"m{number}"))
    token = api.get(f"{MAPS}?limit=1")["metadata"]["continue"]
    for number in range(10):
        api.patch(f"{MAPS}/m0", {"data": {"k": str(number)}})
    code, status = api.call("GET", f"{MAPS}?limit=1&continue={token}")
    assert (code, status["reason"]) == (410, "Expired")
    assert api.call("GET", f"{MAPS}?continue=nonsense")[0] == 400


def test_lists_select_by_labels_and_fields(api):
    """Across namespaces and inside one."""
    api.post("/api/v1/namespaces", {"metadata": {"name": "other"}})
    api.post(MAPS, config_map("a", labels={"x": "1"}))
    api.post(MAPS, config_map("b", labels={"x": "2"}))
    api.post("/api/v1/namespaces/other/configmaps", config_map("c", labels={"x": "1"}))

    def names(url):
        return [item["metadata"]["name"] for item in api.get(url)["items"]]

    assert names("/api/v1/configmaps?labelSelector=x%3D1") == ["a", "c"]
    assert names(f"{MAPS}?labelSelector=x%3D1") == ["a"]
    assert names("/api/v1/configmaps?fieldSelector=metadata.namespace%3Dother") == ["c"]
    assert names(f"{MAPS}?fieldSelector=metadata.name%3Db") == ["b"]


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("limit=x", 400),
        ("resourceVersion=x", 400),
        ("resourceVersion=" + "9" * 5000, 400),
        ("watch=1&resourceVersion=" + "9" * 5000, 400),
        ("labelSelector=a%3D%28", 400),
    ],
)
def test_bad_list_parameters_are_refused(api, query, code):
    """400, never a list of something else."""
    assert api.call("GET", f"{MAPS}?{query}")[0] == code


def test_a_list_from_the_future_is_a_timeout(api):
    """504 with the cause ResourceVersionTooLarge."""
    code, status = api.call("GET", f"{MAPS}?resourceVersion={api.core.store.revision + 5}")
    assert (code, status["details"]["causes"][0]["reason"]) == (504, "ResourceVersionTooLarge")


def test_deleting_a_collection_deletes_what_matches(api):
    """And nothing else."""
    api.post(MAPS, config_map("a", labels={"x": "1"}))
    api.post(MAPS, config_map("b"))
    assert api.call("DELETE", f"{MAPS}?labelSelector=x")[0] == 200
    assert [item["metadata"]["name"] for item in api.get(MAPS)["items"]] == ["b"]


# -- watches ---------------------------------------------------------------------------------------------------


def kinds(events):
    return [(event["type"], event["object"]["metadata"].get("name")) for event in events]


def test_a_watch_without_a_revision_starts_with_what_is_there(api):
    """Synthetic ADDED events first."""
    api.post(MAPS, config_map("a"))
    assert kinds(api.watch(f"{MAPS}?watch=1")) == [("ADDED", "a")]
    assert kinds(api.watch(f"{MAPS}?watch=true&resourceVersion=0")) == [("ADDED", "a")]


def test_a_streamed_list_ends_with_its_bookmark(api):
    """sendInitialEvents: ADDED, then a BOOKMARK that says the list is complete."""
    api.post(MAPS, config_map("a"))
    query = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    first, second, *_ = api.watch(f"{MAPS}?{query}")
    assert (first["type"], second["type"]) == ("ADDED", "BOOKMARK")
    assert second["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
    assert int(version_of(second["object"])) == api.core.store.revision
    assert api.call("GET", f"{MAPS}?watch=1&sendInitialEvents=true")[0] == 422


def test_bookmarks_come_when_asked_for(api):
    """They carry the current revision, also when only other types change."""
    before = version_of(api.get(MAPS))
    api.post(PODS.replace("pods", "secrets"), {"metadata": {"name": "s"}})
    events = api.watch(f"{MAPS}?watch=1&allowWatchBookmarks=true&resourceVersion={before}")
    assert {event["type"] for event in events} == {"BOOKMARK"}
    assert int(version_of(events[-1]["object"])) == api.core.store.revision
    assert api.watch(f"{MAPS}?watch=1&resourceVersion={before}") == []


def test_a_watch_too_far_back_is_told_inside_the_stream(small_ring_api):
    """HTTP 200 with one ERROR event of code 410, then the end."""
    api = small_ring_api
    start = version_of(api.post(MAPS, config_map()))
    for number in range(10):
        api.patch(f"{MAPS}/a", {"data": {"k": str(number)}})
    (event,) = api.watch(f"{MAPS}?watch=1&resourceVersion={start}", seconds=5)
    assert (event["type"], event["object"]["code"], event["object"]["reason"]) == ("ERROR", 410, "Expired")


def test_a_watch_ends_after_its_timeout(api):
    """timeoutSeconds is kept."""
    assert api.watch(f"{MAPS}?watch=1&timeoutSeconds=1&resourceVersion=0", seconds=30) == []


def test_what_happens_before_the_first_read_comes_after_the_list(api):
    """The bookmark that ends the list does not claim changes that are still queued."""

    async def read():
        query = {"watch": "1", "sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
        query["allowWatchBookmarks"] = "true"
        stream = await api.core.handle(Request("GET", MAPS, query))
        before = api.core.store.revision
        api.resources.create(CONFIG_MAPS, "default", config_map("late"))
        chunks = stream.chunks
        bookmark, added = [json.loads(await anext(chunks)) for _ in range(2)]
        stream.release()
        return before, bookmark["object"], added

    before, bookmark, added = asyncio.run(read())
    assert int(version_of(bookmark)) == before
    assert (added["type"], added["object"]["metadata"]["name"]) == ("ADDED", "late")


def test_a_watch_nobody_reads_can_be_released(api):
    """A client that leaves before the first byte leaves nothing behind."""

    async def leave():
        stream = await api.core.handle(Request("GET", MAPS, {"watch": "1"}))
        stream.release()
        await api.core.handle(Request("POST", MAPS, body=json.dumps(config_map()).encode()))
        return [chunk async for chunk in stream.chunks]

    assert asyncio.run(leave()) == []


def test_a_watch_of_one_object_sees_only_that(api):
    """By its name as a field selector; a GET of the object itself is no watch, whatever it asks."""
    api.post(MAPS, config_map("a"))
    api.post(MAPS, config_map("b"))
    assert kinds(api.watch(f"{MAPS}?watch=1&fieldSelector=metadata.name%3Db")) == [("ADDED", "b")]
    assert api.get(f"{MAPS}/b?watch=1")["metadata"]["name"] == "b"


def test_replaying_a_watch_from_any_revision_gives_the_list(api):
    """No event lost or doubled, whatever the starting point."""
    start, snapshots = version_of(api.get(MAPS)), []
    for step in range(12):
        name = f"m{step % 4}"
        if step % 5 == 4:
            api.call("DELETE", f"{MAPS}/{name}")
        elif api.call("GET", f"{MAPS}/{name}")[0] == 200:
            api.patch(f"{MAPS}/{name}", {"data": {"k": str(step)}})
        else:
            api.post(MAPS, config_map(name))
        snapshots.append(api.get(MAPS))
    final = {item["metadata"]["name"]: api.get(f"{MAPS}/{item['metadata']['name']}") for item in snapshots[-1]["items"]}
    for snapshot in [{"metadata": {"resourceVersion": start}, "items": []}, *snapshots]:
        named = {"kind": "ConfigMap", "apiVersion": "v1"}
        state = {item["metadata"]["name"]: named | item for item in snapshot["items"]}
        for event in api.watch(f"{MAPS}?watch=1&resourceVersion={version_of(snapshot)}", seconds=0.01):
            name = event["object"]["metadata"]["name"]
            assert (event["type"] == "ADDED") == (name not in state)
            state.pop(name, None)
            if event["type"] != "DELETED":
                state[name] = event["object"]
        assert state == final


# -- discovery -------------------------------------------------------------------------------------------------


def test_aggregated_discovery_echoes_its_content_type(api):
    """kubectl asks once for /api and once for /apis."""
    answer = api.raw("GET", "/apis", accept=AGGREGATED)
    assert answer.content_type == "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    groups = [item["metadata"]["name"] for item in json.loads(answer.body)["items"]]
    assert {"batch", "policy", "coordination.k8s.io", "scheduling.k8s.io", "apiextensions.k8s.io"} <= set(groups)
    (core,) = api.call("GET", "/api", accept=AGGREGATED)[1]["items"]
    pods = next(entry for entry in core["versions"][0]["resources"] if entry["resource"] == "pods")
    assert (pods["shortNames"], pods["categories"], pods["scope"]) == (["po"], ["all"], "Namespaced")
    assert "eviction" in [entry["subresource"] for entry in pods["subresources"]]


def test_legacy_discovery_names_the_eviction_group(api):
    """kubectl drain looks for pods/eviction of policy/v1 in the core list."""
    resources = {entry["name"]: entry for entry in api.get("/api/v1")["resources"]}
    assert (resources["pods/eviction"]["group"], resources["pods/eviction"]["kind"]) == ("policy", "Eviction")
    assert api.get("/api")["versions"] == ["v1"]
    assert "batch" in [group["name"] for group in api.get("/apis")["groups"]]
    assert api.get("/apis/batch")["preferredVersion"]["groupVersion"] == "batch/v1"
    assert api.get("/apis/batch/v1")["groupVersion"] == "batch/v1"


def test_openapi_has_what_kubectl_needs_to_write(api):
    """A PATCH operation with its kind, fieldValidation and the patch types, for every served type."""
    index = api.get("/openapi/v3")["paths"]
    url = index["api/v1"]["serverRelativeURL"]
    operation = api.get(url)["paths"]["/api/v1/namespaces/{namespace}/pods/{name}"]["patch"]
    assert operation["x-kubernetes-group-version-kind"] == {"group": "", "version": "v1", "kind": "Pod"}
    assert "fieldValidation" in [parameter["name"] for parameter in operation["parameters"]]
    assert "application/strategic-merge-patch+json" in operation["requestBody"]["content"]
    assert "apis/batch/v1" in index


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz"])
def test_health(api, path):
    """Plain ok."""
    assert api.raw("GET", path).body == b"ok"


def test_openapi_v2_is_an_empty_document_for_those_who_read_protobuf(api):
    """kubectl asks it about a manifest of kind List."""
    answer = api.raw("GET", "/openapi/v2", accept="application/com.github.proto-openapi.spec.v2@v1.0+protobuf")
    assert (answer.status, answer.body) == (200, b"")
    assert answer.content_type == "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"


def test_the_root_lists_the_paths(api):
    """Of every group and version, and of what the server tells of itself."""
    paths = api.get("/")["paths"]
    assert {"/api", "/api/v1", "/apis", "/apis/batch", "/apis/batch/v1", "/openapi/v3"} <= set(paths)
    assert {"/healthz", "/livez", "/readyz", "/version"} <= set(paths)
    assert paths == sorted(set(paths)) and all(api.raw("GET", path).status == 200 for path in paths)


def test_bindings_are_announced_for_creation_alone(api):
    """Only core has them."""
    resources = {entry["name"]: entry for entry in api.get("/api/v1")["resources"]}
    assert (resources["bindings"]["kind"], resources["bindings"]["verbs"]) == ("Binding", ["create"])
    assert "bindings" not in {entry["name"] for entry in api.get("/apis/batch/v1")["resources"]}
    assert api.call("GET", "/api/v1/namespaces/default/bindings")[0] == 405
