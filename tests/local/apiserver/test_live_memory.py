"""The memory of a real server: it stops growing, however much comes and goes."""

from __future__ import annotations

import http.client
import json
import re
import ssl
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

POD = {"containers": [{"name": "c", "image": "i", "env": [{"name": f"V{n}", "value": "x" * 400} for n in range(40)]}]}
PODS = "/api/v1/namespaces/default/pods"
PATCHED = {"Content-Type": "application/merge-patch+json"}


class Client:
    """One connection that is kept."""

    def __init__(self, server: Any) -> None:
        context = ssl.create_default_context(cafile=server.directory / "ca.crt")
        self._connection = http.client.HTTPSConnection(urlsplit(server.address).netloc, context=context)
        self._token = json.loads(server.kubeconfig.read_text())["users"][0]["user"]["token"]

    def send(self, method: str, path: str, body: Any, headers: dict[str, str] | None = None) -> None:
        sent = None if body is None else json.dumps(body)
        self._connection.request(method, path, sent, {"Authorization": f"Bearer {self._token}", **(headers or {})})
        answer = self._connection.getresponse()
        assert answer.status < 300, answer.read()
        answer.read()


def resident_mib(pid: int) -> int:
    found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    assert found is not None
    return int(found[1]) >> 10


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_the_memory_of_a_server_under_churn_has_a_plateau(start_live):
    """Pods of 20 kB come, run and go; after the watch history is full nothing more is kept of them."""
    server = start_live()
    client = Client(server)

    def churn(begin: int, count: int) -> int:
        for number in range(begin, begin + count):
            name = f"p{number}"
            client.send("POST", PODS, {"metadata": {"name": name}, "spec": POD})
            client.send("POST", f"{PODS}/{name}/binding", {"target": {"kind": "Node", "name": "n"}})
            for phase in ("Running", "Succeeded"):
                client.send("PATCH", f"{PODS}/{name}/status", {"status": {"phase": phase}}, PATCHED)
            client.send("DELETE", f"{PODS}/{name}?gracePeriodSeconds=0", None)
        return resident_mib(server.process.pid)

    churn(0, 1500)  # 150 MB of history, of which 48 MiB are kept
    full, later = churn(1500, 500), churn(2000, 3000)
    assert later - full < 12, f"{full} MiB, and {later} MiB after as much again and more"
    assert later < 250
