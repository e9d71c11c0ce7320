"""An HTTPS admission webhook inside the test process."""

from __future__ import annotations

import base64
import contextlib
import http.server
import json
import ssl
import tempfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from embedded.tests.authority import Authority
from embedded.tests.conformance.resources import Object

Answer = Callable[[Object], Object]


@dataclass
class Webhook:
    """Where it listens, whom to trust for it, and what it was asked."""

    url: str
    ca_bundle: str
    asked: list[Object] = field(default_factory=list)

    @property
    def config(self) -> Object:
        return {"url": self.url, "caBundle": self.ca_bundle}


def allowed(**response: Any) -> Answer:
    return lambda request: {"allowed": True} | response


def denied(**status: Any) -> Answer:
    return lambda request: {"allowed": False} | ({"status": status} if status else {})


def patching(*operations: Object) -> Answer:
    patch = base64.b64encode(json.dumps(operations).encode()).decode()
    return allowed(patchType="JSONPatch", patch=patch)


def _handler(answer: Answer, asked: list[Object]) -> type[http.server.BaseHTTPRequestHandler]:
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            asked.append(review["request"])
            response = {"uid": review["request"]["uid"]} | answer(review["request"])
            kind = {"apiVersion": review["apiVersion"], "kind": "AdmissionReview"}
            body = json.dumps(kind | {"response": response}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """A test says itself what was asked."""

    return Handler


@contextlib.contextmanager
def serving(answer: Answer) -> Iterator[Webhook]:
    """A webhook on loopback that answers every review so."""
    authority, asked = Authority("authority of a webhook"), list[Object]()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.TemporaryDirectory() as folder:
        for name, content in zip(("crt", "key"), authority.issue("webhook"), strict=True):
            (Path(folder) / name).write_bytes(content)
        context.load_cert_chain(Path(folder) / "crt", Path(folder) / "key")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _handler(answer, asked))
    server.daemon_threads = True
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        ca_bundle = base64.b64encode(authority.certificate_pem).decode()
        yield Webhook(f"https://127.0.0.1:{server.server_address[1]}/", ca_bundle, asked)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
