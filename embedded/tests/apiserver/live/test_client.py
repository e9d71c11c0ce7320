"""The server as a process over TLS, driven by the official Python client."""

import http.client
import json
import ssl
import subprocess
import threading

import pytest
import yaml

pytestmark = pytest.mark.e2e
kubernetes = pytest.importorskip("kubernetes")


@pytest.fixture(scope="module")
def v1(live):
    configuration = kubernetes.client.Configuration()
    kubernetes.config.load_kube_config(str(live.kubeconfig), client_configuration=configuration)
    with kubernetes.client.ApiClient(configuration) as client:
        yield kubernetes.client.CoreV1Api(client)


@pytest.fixture
def namespace(v1, request):
    """A namespace of the test's own."""
    meta = {"generateName": "client-"}
    created = v1.create_namespace({"metadata": meta}).metadata.name
    yield created
    v1.delete_namespace(created)


def pod(name="p", **spec):
    containers = [{"name": "c", "image": "busybox", "resources": {"limits": {"cpu": "2000m", "memory": "1024Mi"}}}]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": containers} | spec}


def refusal(call, *arguments, **named):
    """Code and reason of a call that must be refused."""
    with pytest.raises(kubernetes.client.ApiException) as refused:
        call(*arguments, **named)
    return refused.value.status, json.loads(refused.value.body)["reason"]


def test_the_typed_models_read_what_the_server_writes(v1, namespace):
    """Quantities come back canonical, defaults filled in."""
    v1.create_namespaced_pod(namespace, pod())
    found = v1.read_namespaced_pod("p", namespace)
    assert found.spec.containers[0].resources.requests == {"cpu": "2", "memory": "1Gi"}
    assert found.status.phase == "Pending"
    assert [item.metadata.name for item in v1.list_namespaced_pod(namespace).items] == ["p"]


def test_conflicts_have_their_codes(v1, namespace):
    """409 for a second creation, a stale write and a second binding."""
    v1.create_namespaced_pod(namespace, pod())
    assert refusal(v1.create_namespaced_pod, namespace, pod()) == (409, "AlreadyExists")
    stale = v1.read_namespaced_pod("p", namespace)
    v1.patch_namespaced_pod("p", namespace, {"metadata": {"labels": {"a": "b"}}})
    assert refusal(v1.replace_namespaced_pod, "p", namespace, stale) == (409, "Conflict")
    binding = {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "bound"}}
    v1.create_namespaced_pod_binding("p", namespace, binding, _preload_content=False)
    assert refusal(v1.create_namespaced_pod_binding, "p", namespace, binding) == (409, "Conflict")
    v1.delete_namespaced_pod("p", namespace, grace_period_seconds=0)


def test_a_watch_goes_on_where_the_list_ended(v1, namespace):
    """ADDED, MODIFIED and DELETED in order, nothing from before."""
    v1.create_namespaced_pod(namespace, pod("before"))
    since = v1.list_namespaced_pod(namespace).metadata.resource_version

    def change():
        v1.create_namespaced_pod(namespace, pod("after"))
        v1.patch_namespaced_pod("after", namespace, {"metadata": {"labels": {"a": "b"}}})
        v1.delete_namespaced_pod("after", namespace)

    threading.Timer(0.1, change).start()
    watch, seen = kubernetes.watch.Watch(), []
    for event in watch.stream(v1.list_namespaced_pod, namespace, resource_version=since, timeout_seconds=20):
        seen.append((event["type"], event["object"].metadata.name))
        if event["type"] == "DELETED":
            watch.stop()
    assert seen == [("ADDED", "after"), ("MODIFIED", "after"), ("DELETED", "after")]


def test_an_old_revision_is_gone(v1, namespace):
    """The client raises 410, so that its user lists again."""
    watch = kubernetes.watch.Watch()
    with pytest.raises(kubernetes.client.ApiException) as refused:
        list(watch.stream(v1.list_namespaced_pod, namespace, resource_version="5", timeout_seconds=5))
    assert refused.value.status == 410


def test_a_streamed_list_ends_with_a_bookmark(v1, namespace):
    """sendInitialEvents, as informers of newer clients use it."""
    v1.create_namespaced_pod(namespace, pod())
    answer = v1.list_namespaced_pod(
        namespace,
        watch=True,
        send_initial_events=True,
        resource_version_match="NotOlderThan",
        allow_watch_bookmarks=True,
        timeout_seconds=1,
        _preload_content=False,
    )
    events = [json.loads(line) for line in answer.data.splitlines()]
    assert [event["type"] for event in events][:2] == ["ADDED", "BOOKMARK"]
    assert events[1]["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}


def test_pages_are_followed(v1, namespace):
    """limit and continue."""
    for number in range(5):
        v1.create_namespaced_config_map(namespace, {"metadata": {"name": f"m{number}"}})
    first = v1.list_namespaced_config_map(namespace, limit=3)
    rest = v1.list_namespaced_config_map(namespace, limit=3, _continue=first.metadata._continue)
    assert [item.metadata.name for item in first.items + rest.items] == [f"m{number}" for number in range(5)]
    assert rest.metadata._continue is None


def test_a_custom_resource_through_the_generic_client(v1, namespace):
    """A definition and its objects, created and patched."""
    client = v1.api_client
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"n": {"type": "integer"}}}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": "gizmos", "kind": "Gizmo"}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "gizmos.client.example.com"},
        "spec": {"group": "client.example.com", "names": names, "scope": "Namespaced", "versions": [version]},
    }
    definitions = kubernetes.client.ApiextensionsV1Api(client)
    definitions.create_custom_resource_definition(definition)
    custom = kubernetes.client.CustomObjectsApi(client)
    where = ("client.example.com", "v1", namespace, "gizmos")
    body = {"apiVersion": "client.example.com/v1", "kind": "Gizmo", "metadata": {"name": "g"}, "spec": {"n": 1}}
    custom.create_namespaced_custom_object(*where, body)
    patched = custom.patch_namespaced_custom_object(*where, "g", {"spec": {"n": 2}})
    assert patched["spec"] == {"n": 2}
    assert refusal(custom.patch_namespaced_custom_object, *where, "g", {"spec": {"n": "x"}}) == (422, "Invalid")
    definitions.delete_custom_resource_definition("gizmos.client.example.com")


def test_a_job_gets_its_pods_from_the_running_controllers(v1, namespace):
    """Pods appear without anybody else at work, and go with the job."""
    batch = kubernetes.client.BatchV1Api(v1.api_client)
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "busybox"}]}}
    since = v1.list_namespaced_pod(namespace).metadata.resource_version
    batch.create_namespaced_job(namespace, {"metadata": {"name": "j"}, "spec": {"template": template}})
    watch = kubernetes.watch.Watch()
    for event in watch.stream(v1.list_namespaced_pod, namespace, resource_version=since, timeout_seconds=20):
        if event["type"] == "ADDED":
            batch.delete_namespaced_job("j", namespace, propagation_policy="Background")
        if event["type"] == "DELETED":
            watch.stop()
    assert v1.list_namespaced_pod(namespace).items == []


# -- the door --------------------------------------------------------------------------------------------------


def connect(live):
    address = live.address.removeprefix("https://")
    context = ssl.create_default_context(cafile=str(live.directory / "ca.crt"))
    return http.client.HTTPSConnection(address, context=context, timeout=10)


def token_of(live):
    return yaml.safe_load(live.kubeconfig.read_text())["users"][0]["user"]["token"]


def raw(live, path="/api", token=None, host=None, method="GET", body=None):
    """Status and Status object of one request made by hand."""
    connection = connect(live)
    headers = ({"Authorization": f"Bearer {token}"} if token else {}) | ({"Host": host} if host else {})
    try:
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


@pytest.fixture(scope="module")
def token(live):
    return token_of(live)


def test_without_a_token_there_is_only_health(live, token):
    """401 for everything else, whatever the path."""
    assert raw(live)[0] == 401 and raw(live, token="wrong")[0] == 401
    assert raw(live, "/api/v1/pods?watch=1")[0] == 401
    assert [raw(live, path) for path in ("/healthz", "/livez", "/readyz")] == [(200, b"ok")] * 3
    assert raw(live, token=token)[0] == 200


def test_another_host_header_is_refused(live, token):
    """Also with a good token: it may have been a browser that was tricked."""
    assert raw(live, token=token, host="evil.example")[0] == 403
    assert raw(live, "/healthz", host="evil.example")[0] == 403


def test_a_body_larger_than_any_object_is_refused(live, token):
    """413 instead of memory."""
    status, body = raw(live, "/api/v1/namespaces", token, method="POST", body=b"x" * (4 << 20))
    told = json.loads(body)
    assert (status, told["reason"]) == (413, "RequestEntityTooLarge")
    assert told["message"] == "Request entity too large: limit is 3145728"


# -- the process -----------------------------------------------------------------------------------------------


def test_it_stops_at_once_and_cleanly_with_watches_open(start_live):
    """SIGTERM ends it within two seconds, with code 0."""
    server = start_live()
    connection = connect(server)
    connection.request("GET", "/api/v1/namespaces?watch=1", headers={"Authorization": f"Bearer {token_of(server)}"})
    assert b"default" in connection.getresponse().readline()
    server.process.terminate()
    assert server.process.wait(timeout=5) == 0
    assert "Traceback" not in (server.directory / "log").read_text()


def test_bootstrap_manifests_are_there_from_the_start(start_live, tmp_path):
    """Files and directories; definitions before the objects that need them."""
    manifests = tmp_path / "manifests"
    manifests.mkdir()
    (manifests / "a.yaml").write_text("apiVersion: v1\nkind: Namespace\nmetadata: {name: extra}\n---\n")
    (manifests / "kustomization.yaml").write_text("kind: Kustomization\nresources: [a.yaml]\n")
    single = tmp_path / "single.yaml"
    single.write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: made}\ndata: {k: v}\n")
    server = start_live("--bootstrap", str(manifests), "--bootstrap", str(single))
    server.kubectl("get", "namespace/extra", "configmap/made")


REFUSED_STARTS = {
    "not our address": (("--listen", "192.0.2.1:0"), "192.0.2.1"),
    "no port": (("--listen", "127.0.0.1"), "expected HOST:PORT"),
    "no such manifest": (("--bootstrap", "/nonexistent.yaml"), "/nonexistent.yaml: cannot be read"),
    "no such token file": (("--token-file", "/nonexistent"), "/nonexistent: cannot be read"),
    "no such certificate": (("--tls-cert", "/nonexistent"), "--tls-cert /nonexistent"),
}


@pytest.mark.parametrize(("options", "message"), REFUSED_STARTS.values(), ids=REFUSED_STARTS)
def test_a_start_that_cannot_succeed_is_one_clear_error(live, options, message):
    """Exit code 2 and one line that says what is wrong."""
    done = subprocess.run(live.command(*options), capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 2
    lines = [line for line in done.stderr.splitlines() if "reachable from other machines" not in line]
    assert len(lines) == 1 and message in lines[0]


def test_a_broken_manifest_names_file_and_field(live, tmp_path):
    """So that the person who wrote it finds it."""
    broken = tmp_path / "broken.yaml"
    broken.write_text("apiVersion: v1\nkind: Namespace\nmetadata: {name: Not_Valid}\n")
    command = live.command("--bootstrap", str(broken))
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 2
    assert str(broken) in done.stderr and "metadata.name" in done.stderr
