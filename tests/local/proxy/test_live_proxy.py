"""The proxy as a process of its own, beside a real API server."""

import signal
import socket
import subprocess
import sys
import threading
import time

import pytest

SECONDS = 20
POD_ADDRESS = "127.65.0.9"


def eventually(probe, what):
    give_up = time.monotonic() + SECONDS
    while time.monotonic() < give_up:
        if found := probe():
            return found
        time.sleep(0.02)
    raise AssertionError(f"not within {SECONDS} s: {what}")


def asked(place):
    """What somebody says who listens there; nothing where nobody does."""
    try:
        with socket.create_connection(place, timeout=SECONDS) as peer:
            return peer.recv(100)
    except ConnectionError:
        return b""


@pytest.fixture
def backend():
    """Somebody who says hello to everyone."""
    with socket.create_server((POD_ADDRESS, 0)) as server:

        def greet():
            while True:
                try:
                    peer, _ = server.accept()
                except OSError:
                    return
                with peer:
                    peer.sendall(b"hello")

        threading.Thread(target=greet, daemon=True).start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)


def test_services_are_reached_while_it_runs(start_live, backend, tmp_path):
    """From the endpoints' coming to their going; SIGTERM ends it in order."""
    live = start_live()
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": {"ports": [{"port": 7480}]}}
    address = live.kubectl("create", "-f", "-", "-o", "jsonpath={.spec.clusterIP}", stdin=service)
    ready = tmp_path / "ready.json"
    files = ("--kubeconfig", str(live.kubeconfig), "--ready-file", str(ready))
    with subprocess.Popen([sys.executable, "-m", "local.proxy", *files], stderr=subprocess.PIPE, text=True) as proxy:
        try:
            eventually(ready.exists, "the proxy serves")
            assert asked((address, 7480)) == b""
            meta = {"name": "web-1", "labels": {"kubernetes.io/service-name": "web"}}
            slice_ = {"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "metadata": meta}
            endpoints = {
                "addressType": "IPv4",
                "endpoints": [{"addresses": [POD_ADDRESS]}],
                "ports": [{"port": backend}],
            }
            live.kubectl("create", "-f", "-", stdin=slice_ | endpoints)
            assert eventually(lambda: asked((address, 7480)), "an endpoint answers") == b"hello"
            live.kubectl("delete", "service", "web")
            eventually(lambda: not asked((address, 7480)), "nobody listens")
        finally:
            proxy.send_signal(signal.SIGTERM)
            _, told = proxy.communicate(timeout=SECONDS)
    assert proxy.returncode == 0 and "Traceback" not in told
