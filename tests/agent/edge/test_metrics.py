"""What Prometheus reads, and what probes answer."""

from __future__ import annotations

import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest
from prometheus_client.parser import text_string_to_metric_families

from agent.edge.metrics import HttpEdge, Row, Sample
from model.fault import ConfigurationFault

ROWS = (
    Row("sublet_test_total", "A counter.", lambda: [Sample(3)]),
    Row("sublet_test_cores", "A gauge.", lambda: [Sample(1.5, ("a",)), Sample(2, ("b",))], ("part",)),
    Row("sublet_test_unknown", "Not known yet.", list),
)


class Health:
    alive = True
    ready = False


@pytest.fixture
def edge() -> Iterator[HttpEdge]:
    Health.alive, Health.ready = True, False
    served = HttpEdge("127.0.0.1:0", ROWS, lambda: Health.alive, lambda: Health.ready)
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
    """Each row with its help, type and series; an unknown number has no series."""
    status, text = get(edge, "/metrics")
    families = {family.name: family for family in text_string_to_metric_families(text)}
    assert status == 200
    assert (families["sublet_test"].type, families["sublet_test"].samples[0].value) == ("counter", 3)
    assert {s.labels["part"]: s.value for s in families["sublet_test_cores"].samples} == {"a": 1.5, "b": 2}
    assert families["sublet_test_unknown"].samples == [] and "process_cpu_seconds" in families


def test_probes(edge: HttpEdge) -> None:
    """503 with the reason until ready, and again when ticks stop."""
    assert get(edge, "/healthz") == (200, "ok\n")
    assert get(edge, "/readyz")[0] == 503
    Health.alive, Health.ready = False, True
    assert get(edge, "/healthz") == (503, "ticks have stopped\n") and get(edge, "/readyz")[0] == 200
    assert get(edge, "/")[0] == 404


def test_an_address_in_use_is_one_line(edge: HttpEdge) -> None:
    """The flag, the address and the cause."""
    with pytest.raises(ConfigurationFault, match=rf"--http-listen {edge.address}: cannot be listened on"):
        HttpEdge(edge.address, ROWS, lambda: True, lambda: True)


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
        HttpEdge(address, ROWS, lambda: True, lambda: True)
