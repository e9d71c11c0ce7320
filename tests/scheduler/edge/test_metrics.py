"""Metrics and the HTTP server."""

from __future__ import annotations

import contextlib
import socket
import urllib.error
import urllib.request
from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

from model.fault import ConfigurationFault
from scheduler.edge.metrics import METRICS, HttpServer, Metrics


def fetch(address: str, path: str) -> tuple[int, str]:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(f"http://{address}{path}", timeout=5) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


@pytest.mark.parametrize("row", METRICS, ids=lambda row: row.name)
def test_every_row_is_named_as_promtool_wants(row: Any) -> None:
    """Counters end in _total, histograms carry their unit, help ends with a full stop."""
    assert row.name.endswith("_total") == (row.type == "counter")
    assert row.type != "histogram" or row.name.endswith(("_seconds", "_victims"))
    assert row.help.endswith(".")


def test_pages() -> None:
    """/metrics parses and counts, probes say what is wrong, other paths do not exist."""
    metrics = Metrics(CollectorRegistry())
    metrics.cycle(0.002, scheduled=2, unschedulable=1)
    metrics.bound(0.01, "bound")
    metrics.waited(3.0)
    metrics.waiting(candidates=5, parked=2, held=1)
    metrics.refused("Pod")
    metrics.leads(True)
    metrics.watch({"links": lambda: 4})
    problem = ["not synced"]
    server = HttpServer("127.0.0.1:0", metrics.registry, lambda: "", lambda: problem[0])
    try:
        status, text = fetch(server.address, "/metrics")
        assert status == 200
        samples = {
            (sample.name, *sample.labels.values()): sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
        }
        assert samples["sublet_scheduler_attempts_total", "scheduled"] == 2
        assert samples["sublet_scheduler_waiting_workloads", "ready"] == 3
        assert samples["sublet_scheduler_links",] == 4
        assert not [name for name, *_ in samples if name.endswith("_created")]
        assert fetch(server.address, "/healthz") == (200, "ok\n")
        assert fetch(server.address, "/readyz") == (503, "not synced\n")
        problem[0] = ""
        assert fetch(server.address, "/readyz") == (200, "ok\n")
        assert fetch(server.address, "/other")[0] == 404
        with pytest.raises(ConfigurationFault, match="cannot listen"):
            HttpServer(server.address, metrics.registry, lambda: "", lambda: "")
    finally:
        server.close()


def test_a_silent_client_is_cut_off() -> None:
    """A connection that never asks does not hold its thread for ever."""
    server = HttpServer("127.0.0.1:0", CollectorRegistry(), lambda: "", lambda: "", patience_seconds=0.05)
    host, _, port = server.address.rpartition(":")
    try:
        with socket.create_connection((host, int(port)), timeout=10) as silent:
            assert silent.recv(1) == b""
    finally:
        server.close()


def test_idle_connections_are_few_and_keep_no_probe_out() -> None:
    """Each holds a thread and a descriptor: the seventeenth cuts off the first, long before that is cut for silence."""
    server = HttpServer("127.0.0.1:0", CollectorRegistry(), lambda: "", lambda: "")
    host, _, port = server.address.rpartition(":")
    try:
        with contextlib.ExitStack() as stack:
            idle = [stack.enter_context(socket.create_connection((host, int(port)), timeout=10)) for _ in range(16)]
            assert fetch(server.address, "/healthz") == (200, "ok\n")
            assert idle[0].recv(1) == b""
            idle[15].sendall(b"GET /healthz HTTP/1.0\r\n\r\n")
            assert idle[15].recv(12) == b"HTTP/1.0 200"
    finally:
        server.close()
