"""metrics.k8s.io, from the summaries of nodes."""

import asyncio
import json

import pytest

from embedded.apiserver.apimachinery.status import StatusError
from embedded.apiserver.bootstrap import create_system_objects
from embedded.apiserver.http.router import Router
from embedded.apiserver.request.attributes import AllowAll
from embedded.apiserver.request.messages import Request

BASE = "/apis/metrics.k8s.io/v1beta1"
TIME = "2026-09-21T14:13:20Z"


class Nodes:
    """The servers of the nodes: a summary for each port, or none."""

    def __init__(self):
        self.summaries = {}
        self.asked = []

    async def open(self, port, path, query):
        raise AssertionError("no log is read here")

    async def fetch(self, port, path, query):
        self.asked.append((port, path, dict(query)))
        if port not in self.summaries:
            raise StatusError(502, "BadGateway", "nobody answers")
        return json.dumps(self.summaries[port]).encode()


def usage(cpu, memory):
    return {"cpu": {"time": TIME, "usageNanoCores": cpu}, "memory": {"time": TIME, "workingSetBytes": memory}}


def summary(name, *pods):
    return {"node": {"nodeName": name, **usage(1_500_000_000, 1 << 30)}, "pods": list(pods)}


def measured(name, **containers):
    parts = [{"name": container, **usage(*amounts)} for container, amounts in containers.items()]
    return {"podRef": {"name": name, "namespace": "default", "uid": "u"}, "containers": parts, "unknown": 1}


class Cluster:
    def __init__(self, clock):
        self.nodes = Nodes()
        self.core = Router(clock, self.nodes, authorizer=AllowAll())
        create_system_objects(self.core.resources)

    def call(self, method, url, body=None, query=None, accept=""):
        data = b"" if body is None else json.dumps(body).encode()
        request = Request(method, url, query or {}, {"accept": accept, "content-type": "application/json"}, data)
        answer = asyncio.run(self.core.handle(request))
        return answer.status, json.loads(answer.body)

    def add_node(self, name, port, **labels):
        status = {"daemonEndpoints": {"kubeletEndpoint": {"Port": port}}}
        code, made = self.call(
            "POST", "/api/v1/nodes", {"metadata": {"name": name, "labels": labels}, "status": status}
        )
        assert code == 201, made

    def add_pod(self, name, node, phase="Running", **labels):
        pods = "/api/v1/namespaces/default/pods"
        spec = {"nodeName": node, "containers": [{"name": "c", "image": "i"}]}
        code, made = self.call("POST", pods, {"metadata": {"name": name, "labels": labels}, "spec": spec})
        assert code == 201, made
        made["status"]["phase"] = phase
        code, made = self.call("PUT", f"{pods}/{name}/status", made)
        assert code == 200, made


@pytest.fixture
def cluster(clock):
    made = Cluster(clock)
    made.add_node("n1", 1001, zone="a")
    made.add_node("n2", 1002, zone="b")
    made.nodes.summaries[1001] = summary("n1", measured("p", c=(250_000_000, 5 << 20), d=(1, 1)))
    return made


def test_a_node_uses_what_it_reports(cluster):
    """In the quantities metrics-server writes; a node that does not answer is left out."""
    code, found = cluster.call("GET", f"{BASE}/nodes")
    assert (code, found["kind"], found["apiVersion"]) == (200, "NodeMetricsList", "metrics.k8s.io/v1beta1")
    (node,) = found["items"]
    assert (node["metadata"]["name"], node["metadata"]["labels"]["zone"]) == ("n1", "a")
    assert (node["usage"], node["timestamp"]) == ({"cpu": "1500000000n", "memory": "1048576Ki"}, TIME)
    assert cluster.call("GET", f"{BASE}/nodes/n1")[1] == node
    assert cluster.nodes.asked == [(1001, "/stats/summary", {"node": "n1"}), (1002, "/stats/summary", {"node": "n2"})]


def test_a_pod_uses_what_its_containers_do(cluster):
    """Container by container."""
    cluster.add_pod("p", "n1", app="x")
    code, found = cluster.call("GET", f"{BASE}/namespaces/default/pods/p")
    assert (code, found["kind"], found["metadata"]["labels"]) == (200, "PodMetrics", {"app": "x"})
    assert found["containers"] == [
        {"name": "c", "usage": {"cpu": "250000000n", "memory": "5120Ki"}},
        {"name": "d", "usage": {"cpu": "1n", "memory": "1Ki"}},
    ]


def test_pods_are_selected_by_namespace_and_label(cluster):
    """As `kubectl top pods -l` asks."""
    cluster.add_pod("p", "n1", app="x")
    for url, selector, count in (
        (f"{BASE}/pods", "app=x", 1),
        (f"{BASE}/pods", "app=y", 0),
        (f"{BASE}/namespaces/default/pods", "", 1),
        (f"{BASE}/namespaces/kube-system/pods", "", 0),
    ):
        code, found = cluster.call("GET", url, query={"labelSelector": selector} if selector else {})
        assert (code, len(found["items"])) == (200, count), (url, selector)


def test_what_is_not_measured_is_not_there(cluster):
    """Pods that do not run, pods of silent nodes, pods with a container that has no figures yet."""
    cluster.add_pod("p", "n1", phase="Succeeded")
    cluster.add_pod("q", "n2")
    cluster.add_pod("r", "n1")
    cluster.nodes.summaries[1001]["pods"].append(measured("r", c=(None, 5)))
    assert cluster.call("GET", f"{BASE}/pods")[1]["items"] == []
    code, missing = cluster.call("GET", f"{BASE}/namespaces/default/pods/q")
    assert (code, missing["message"]) == (404, 'podmetrics.metrics.k8s.io "default/q" not found')
    code, missing = cluster.call("GET", f"{BASE}/nodes/n2")
    assert (code, missing["message"]) == (404, 'nodemetrics.metrics.k8s.io "n2" not found')


def test_nodes_are_asked_at_most_every_ten_seconds(cluster, clock):
    """However often somebody looks."""
    for _ in range(3):
        cluster.call("GET", f"{BASE}/nodes/n1")
    assert len(cluster.nodes.asked) == 1
    clock.advance(10)
    cluster.call("GET", f"{BASE}/nodes/n1")
    assert len(cluster.nodes.asked) == 2


def test_nonsense_from_a_node_is_as_good_as_silence(cluster):
    """One broken node does not take the others' figures away."""
    cluster.nodes.summaries[1002] = {"node": "what?"}
    assert [node["metadata"]["name"] for node in cluster.call("GET", f"{BASE}/nodes")[1]["items"]] == ["n1"]


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_metrics_cannot_be_written(cluster, method):
    """405, as for any verb that discovery does not list."""
    code, refused = cluster.call(method, f"{BASE}/nodes/n1", {})
    assert (code, refused["reason"]) == (405, "MethodNotAllowed")


def test_a_table_of_metrics(cluster):
    """`kubectl get nodes.metrics.k8s.io`."""
    _, table = cluster.call("GET", f"{BASE}/nodes", accept="application/json;as=Table;v=v1;g=meta.k8s.io")
    assert table["rows"][0]["cells"] == ["n1", "1500000000n", "1048576Ki", "10s"]
