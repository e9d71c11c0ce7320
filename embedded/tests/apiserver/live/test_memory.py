"""The memory of a real server: it stops growing, however much comes and goes."""

from __future__ import annotations

import http.client
import json
import re
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

POD = {"containers": [{"name": "c", "image": "i", "env": [{"name": f"V{n}", "value": "x" * 400} for n in range(40)]}]}
HERE = "/api/v1/namespaces/default"
LONG = {f"k{n}": "eHh4" * 125 for n in range(32)}
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
    """Objects of 20 kB come and go; once the watch history is full, no type adds to it, whichever comes next."""
    server = start_live()
    client = Client(server)

    def pods(number: int) -> None:
        name = f"p{number}"
        client.send("POST", f"{HERE}/pods", {"metadata": {"name": name}, "spec": POD})
        client.send(
            "POST", f"{HERE}/pods/{name}/binding", {"metadata": {"name": name}, "target": {"kind": "Node", "name": "n"}}
        )
        for phase in ("Running", "Succeeded"):
            client.send("PATCH", f"{HERE}/pods/{name}/status", {"status": {"phase": phase}}, PATCHED)
        client.send("DELETE", f"{HERE}/pods/{name}?gracePeriodSeconds=0", None)

    def texts(plural: str) -> Callable[[int], None]:
        def life(number: int) -> None:
            url = f"{HERE}/{plural}"
            client.send("POST", url, {"metadata": {"name": f"t{number}"}, "data": LONG})
            for value in "abc":
                client.send("PATCH", f"{url}/t{number}", {"metadata": {"annotations": {"v": value}}}, PATCHED)
            client.send("DELETE", f"{url}/t{number}", None)

        return life

    def resident_after(life: Callable[[int], None], rounds: int) -> int:
        for number in range(rounds):
            life(number)
        return resident_mib(server.process.pid)

    full = resident_after(pods, 900)  # 90 MB of history, of which 48 MiB are kept
    later = [resident_after(life, 800) for life in (texts("secrets"), texts("configmaps"), pods)]
    assert max(later) - full < 30, f"{full} MiB, and then {later}"
