"""An API server in a thread of its own, for verbs that run a loop of theirs: answers by method and path."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import msgspec

Answers = Mapping[tuple[str, str], Any]
"""(method, path without its query) → body; what is not there is answered with 404."""


class Spoken:
    """`kubeconfig` leads to it; `requests` are (method, path) of what came in."""

    def __init__(self, kubeconfig: Path) -> None:
        self.kubeconfig = kubeconfig
        self.requests: list[tuple[str, str]] = []

    @property
    def changes(self) -> list[tuple[str, str]]:
        return [request for request in self.requests if request[0] != "GET"]


@contextmanager
def spoken(folder: Path, answers: Answers) -> Iterator[Spoken]:
    """Listens on loopback while the block lasts."""
    heard = Spoken(folder / "kubeconfig")

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            asked = (self.command, self.path.partition("?")[0])
            heard.requests.append(asked)
            known = asked in answers
            body = json.dumps(answers[asked] if known else {"kind": "Status", "code": 404}).encode()
            self.send_response(200 if known else 404)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = do_PATCH = do_DELETE = answer

        def log_message(self, format: str, *args: Any) -> None:
            """Nobody reads it."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        heard.kubeconfig.write_bytes(msgspec.yaml.encode(_config(server.server_port)))
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield heard
        finally:
            server.shutdown()
            thread.join()


def _config(port: int) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
        "users": [{"name": "u", "user": {"token": "t0ken"}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
    }
