"""/metrics, /healthz and /readyz over HTTP on a thread of their own."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from agent.metrics import ROWS, Row, Sample
from agent.settings import require_loopback
from model.fault import ConfigurationFault

_CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_MOST_CONNECTIONS = 16
_REST_SECONDS = 0.1


class TableCollector(Collector):
    """Turns the metric table into what Prometheus reads; `read` gives every series at each scrape."""

    def __init__(self, read: Callable[[], Mapping[str, list[Sample]]]) -> None:
        self._read = read

    def describe(self) -> Iterable[Metric]:
        return [_family(row) for row in ROWS]

    def collect(self) -> Iterator[Metric]:
        series = self._read()
        for row in ROWS:
            family = _family(row)
            for sample in series[row.name]:
                family.add_metric(list(sample.labels), sample.value)
            yield family


def _family(row: Row) -> CounterMetricFamily | GaugeMetricFamily:
    kind = CounterMetricFamily if row.name.endswith("_total") else GaugeMetricFamily
    return kind(row.name, row.help, labels=row.labels)


class _Server(ThreadingHTTPServer):
    """A thread for each of few connections: one more cuts off the oldest, so that idle ones never keep a probe out."""

    daemon_threads = True

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        super().__init__(address, handler)
        self._open: dict[socket.socket, None] = {}
        self._guard = threading.Lock()

    def get_request(self) -> tuple[socket.socket, Any]:
        try:
            return super().get_request()
        except OSError:
            # Short of descriptors the listening socket stays readable: without a rest this is a busy loop.
            time.sleep(_REST_SECONDS)
            raise

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._guard:
            if len(self._open) >= _MOST_CONNECTIONS:
                oldest = next(iter(self._open))
                del self._open[oldest]
                with contextlib.suppress(OSError):
                    oldest.shutdown(socket.SHUT_RDWR)
            self._open[request] = None
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        with self._guard:
            self._open.pop(request, None)
        super().shutdown_request(request)


class HttpEdge:
    """Answers GET only; `alive` and `ready` decide the probes."""

    def __init__(
        self,
        listen: str,
        read: Callable[[], Mapping[str, list[Sample]]],
        alive: Callable[[], bool],
        ready: Callable[[], bool],
    ) -> None:
        registry = CollectorRegistry()
        registry.register(TableCollector(read))
        ProcessCollector(registry=registry)
        host, port = require_loopback("--http-listen", listen)
        try:
            self._server = _Server((host, port), _handler(registry, alive, ready))
        except OSError as error:
            raise ConfigurationFault(f"--http-listen {listen}", f"cannot be listened on: {error.strerror}") from error
        self.address = f"{host}:{self._server.server_address[1]}"

    def start(self) -> None:
        threading.Thread(target=self._server.serve_forever, name="http", daemon=True).start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def _handler(
    registry: CollectorRegistry, alive: Callable[[], bool], ready: Callable[[], bool]
) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = 10

        def do_GET(self) -> None:
            path = self.path.partition("?")[0]
            if path == "/metrics":
                self._answer(200, generate_latest(registry), _CONTENT_TYPE)
            elif path in ("/healthz", "/livez"):
                self._probe(alive(), "ticks have stopped")
            elif path == "/readyz":
                self._probe(ready(), "usage is not measured yet or the API server was not read")
            else:
                self._answer(404, b"try /metrics, /healthz or /readyz\n", "text/plain")

        def log_message(self, format: str, *args: object) -> None:
            """Scrapes are not news."""

        def _probe(self, good: bool, why_not: str) -> None:
            self._answer(200 if good else 503, b"ok\n" if good else why_not.encode() + b"\n", "text/plain")

        def _answer(self, status: int, body: bytes, content_type: str) -> None:
            self.send_response(status)
            self.send_header("Content-Type", content_type)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    return Handler
