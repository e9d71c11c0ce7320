"""A Prometheus of one test, on loopback."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from tests.e2e.conftest import until


class Prometheus(NamedTuple):
    """A server that answers at `address`."""

    address: str

    def ask(self, path: str, **query: str) -> Any:
        """`data` of an answer of its API. Fails the test with what it says of the query."""
        url = f"http://{self.address}/api/v1/{path}?{urllib.parse.urlencode(query)}"
        try:
            with urllib.request.urlopen(url, timeout=20) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as refused:
            raise AssertionError(f"{query}: {refused.read().decode()}") from None

    def series(self, expression: str) -> list[tuple[dict[str, str], float]]:
        """Labels and value of each series at this moment."""
        found = self.ask("query", query=expression)["result"]
        return [(each["metric"], float(each["value"][1])) for each in found]

    @property
    def ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://{self.address}/-/ready", timeout=5) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False


@contextmanager
def running_prometheus(program: str, configuration: Path, folder: Path) -> Iterator[Prometheus]:
    """By a configuration, with its data in `folder`; it ends with the block."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        server = Prometheus(f"127.0.0.1:{free.getsockname()[1]}")
    output = folder / "prometheus.output"
    where = (f"--config.file={configuration}", f"--storage.tsdb.path={folder / 'prometheus.data'}")
    with output.open("wb") as told:
        process = subprocess.Popen(
            [program, *where, f"--web.listen-address={server.address}"], stdout=told, stderr=subprocess.STDOUT
        )
    try:
        assert until(lambda: server.ready or process.poll() is not None), "not ready in time"
        assert process.poll() is None, output.read_text()
        yield server
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)
