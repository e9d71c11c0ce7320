"""What Prometheus reads, and what probes answer."""

from __future__ import annotations

import contextlib
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager

import pytest
from prometheus_client.parser import text_string_to_metric_families

from agent.edge.metrics import HttpEdge
from agent.metrics import ROWS, Sample
from model.fault import ConfigurationFault


def read() -> Mapping[str, list[Sample]]:
    """A counter, a gauge with labels; nothing is known of the other rows."""
    return {row.name: [] for row in ROWS} | {
        "sublet_agent_ticks_total": [Sample(3)],
        "sublet_agent_cpu_usage_cores": [Sample(1.5, ("node",)), Sample(2, ('a"b\\c',))],
    }


class Health:
    alive = True
    ready = False


@pytest.fixture
def edge() -> Iterator[HttpEdge]:
    Health.alive, Health.ready = True, False
    served = HttpEdge("127.0.0.1:0", read, lambda: Health.alive, lambda: Health.ready)
    served.start()
    yield served
    served.stop()


def get(edge: HttpEdge, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://{edge.address}{path}", timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def test_metrics(edge: HttpEdge) -> None:
    """Each row with its help and type and its series; an unknown number has no series."""
    status, text = get(edge, "/metrics")
    families = {family.name: family for family in text_string_to_metric_families(text)}
    assert status == 200 and "process_cpu_seconds" in families
    for row in ROWS:
        counter = row.name.endswith("_total")
        family = families[row.name.removesuffix("_total")]
        assert (family.documentation, family.type) == (row.help, "counter" if counter else "gauge")
    assert families["sublet_agent_ticks"].samples[0].value == 3
    labels = {s.labels["consumer"]: s.value for s in families["sublet_agent_cpu_usage_cores"].samples}
    assert labels == {"node": 1.5, 'a"b\\c': 2}
    assert families["sublet_agent_limit"].samples == []


def test_probes(edge: HttpEdge) -> None:
    """503 with the reason until ready, and again when ticks stop."""
    assert get(edge, "/healthz") == (200, "ok\n")
    assert get(edge, "/readyz")[0] == 503
    Health.alive, Health.ready = False, True
    assert get(edge, "/healthz") == (503, "ticks have stopped\n") and get(edge, "/readyz")[0] == 200
    assert get(edge, "/")[0] == 404


def connect(edge: HttpEdge) -> socket.socket:
    host, _, port = edge.address.rpartition(":")
    return socket.create_connection((host, int(port)), timeout=5)


def test_idle_connections_are_few_and_keep_no_probe_out(edge: HttpEdge) -> None:
    """Each holds a thread and a descriptor: the seventeenth cuts off the first, long before that is cut for silence."""
    with contextlib.ExitStack() as stack:
        idle = [stack.enter_context(connect(edge)) for _ in range(16)]
        assert get(edge, "/healthz") == (200, "ok\n")
        assert idle[0].recv(1) == b""
        idle[15].sendall(b"GET /healthz HTTP/1.0\r\n\r\n")
        assert idle[15].recv(15) == b"HTTP/1.0 200 OK"


def test_without_descriptors_the_server_rests(starved: Callable[[], AbstractContextManager[None]]) -> None:
    """A connection that cannot be accepted stays waiting, and asking again at once would take a whole CPU."""
    edge = HttpEdge("127.0.0.1:0", read, lambda: True, lambda: True)
    with connect(edge), starved():
        began = time.monotonic()
        with pytest.raises(OSError, match="Too many open files"):
            edge._server.get_request()
        assert time.monotonic() - began >= 0.1
    edge._server.server_close()


def test_an_address_in_use_is_one_line(edge: HttpEdge) -> None:
    """The flag, the address and the cause."""
    with pytest.raises(ConfigurationFault, match=rf"--http-listen {edge.address}: cannot be listened on"):
        HttpEdge(edge.address, read, lambda: True, lambda: True)


@pytest.mark.parametrize(
    ("address", "told"),
    [
        ("0.0.0.0:1", "is not a loopback address"),
        ("127.0.0.1", "is not HOST:PORT"),
        ("127.0.0.1:x", "is not HOST:PORT"),
    ],
)
def test_only_loopback(address: str, told: str) -> None:
    """Plain text never leaves the machine."""
    with pytest.raises(ConfigurationFault, match=f"--http-listen {address}: {told}"):
        HttpEdge(address, read, lambda: True, lambda: True)
