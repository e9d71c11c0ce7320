"""`kubectl top` against a server process whose node answers over TLS, with every kubectl found on the machine."""

import asyncio
import json
import os
import ssl
import subprocess
import threading

import pytest
from aiohttp import web

from embedded.tests.conformance.kubectl import binaries

VERSIONS = list(binaries().values())
NODE_TOKEN = "a-token-of-nodes"


def usage(cpu_nanos, memory_bytes):
    time = "2026-01-01T00:00:00Z"
    memory = {"time": time, "workingSetBytes": memory_bytes, "usageBytes": memory_bytes}
    return {"startTime": time, "cpu": {"time": time, "usageNanoCores": cpu_nanos}, "memory": memory}


def pod(name, **containers):
    parts = [{"name": container, **usage(*amounts)} for container, amounts in containers.items()]
    return {"podRef": {"name": name, "namespace": "default", "uid": name}, "containers": parts}


SUMMARY = {
    "node": {"nodeName": "n1", **usage(500_000_000, 1 << 30)},
    "pods": [pod("small", a=(10_000_000, 8 << 20)), pod("large", a=(100_000_000, 1 << 20), b=(50_000_000, 63 << 20))],
}


async def _answer(request):
    if request.headers.get("Authorization") != f"Bearer {NODE_TOKEN}" or request.path != "/stats/summary":
        return web.Response(status=401)
    return web.json_response(SUMMARY)


@pytest.fixture
def node_port(credentials):
    """A node's server on a loop of its own."""
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(credentials / "tls.crt", credentials / "tls.key")
    loop, started, ports = asyncio.new_event_loop(), threading.Event(), []
    stop = asyncio.Event()

    async def serve():
        runner = web.ServerRunner(web.Server(_answer), shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls).start()
        ports.append(runner.addresses[0][1])
        started.set()
        await stop.wait()
        await runner.cleanup()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    assert started.wait(10)
    yield ports[0]
    loop.call_soon_threadsafe(stop.set)
    thread.join(10)
    loop.close()


@pytest.fixture
def server(start_live, credentials, node_port):
    """With one node and two running pods, of which the node reports the usage."""
    (credentials / "node-token").write_text(NODE_TOKEN)
    options = ("--kubelet-token-file", str(credentials / "node-token"), "--kubelet-ca", str(credentials / "ca.crt"))
    live = start_live(*options)
    allocatable = {"cpu": "2", "memory": "4Gi", "pods": "10"}
    status = {
        "allocatable": allocatable,
        "capacity": allocatable,
        "daemonEndpoints": {"kubeletEndpoint": {"Port": node_port}},
    }
    live.kubectl(
        "create", "-f", "-", stdin={"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}, "status": status}
    )
    for name, containers in (("small", "a"), ("large", "ab")):
        spec = {"nodeName": "n1", "containers": [{"name": container, "image": "i"} for container in containers]}
        meta = {"name": name, "labels": {"size": name}}
        live.kubectl("create", "-f", "-", stdin={"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec})
        live.kubectl(
            "patch",
            "pod",
            name,
            "--subresource=status",
            "--type=merge",
            "-p",
            json.dumps({"status": {"phase": "Running"}}),
        )
    return live


COMMANDS = {
    ("top", "nodes", "--no-headers"): [["n1", "500m", "25%", "1024Mi", "25%"]],
    ("top", "pods", "--no-headers", "--sort-by=cpu"): [["large", "150m", "64Mi"], ["small", "10m", "8Mi"]],
    ("top", "pods", "--no-headers", "-l", "size=small"): [["small", "10m", "8Mi"]],
    ("top", "pod", "large", "--no-headers", "--containers", "--sort-by=memory"): [
        ["large", "b", "50m", "63Mi"],
        ["large", "a", "100m", "1Mi"],
    ],
    ("get", "podmetrics", "large", "--no-headers"): [["large", "150000000n", "65536Ki", "10s"]],
}


def test_kubectl_top_shows_what_nodes_report(server):
    """Nodes in percent of what is allocatable; pods and containers, sorted and selected."""
    for kubectl in VERSIONS:
        for arguments, expected in COMMANDS.items():
            files = ("--kubeconfig", str(server.kubeconfig), "--cache-dir", str(server.directory / kubectl.name))
            done = subprocess.run(
                [str(kubectl), *files, *arguments],
                capture_output=True,
                text=True,
                timeout=30,
                check=False,
                env={**os.environ, "HOME": str(server.directory)},
            )
            assert (done.returncode, done.stderr) == (0, ""), (kubectl, arguments, done.stderr)
            assert [line.split() for line in done.stdout.splitlines()] == expected, (kubectl, arguments)
