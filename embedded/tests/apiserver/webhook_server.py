"""A webhook over HTTPS in the test's own loop: it records what it is asked and answers as told."""

import base64
import json
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from aiohttp import web

Object = dict[str, Any]
Answer = Callable[[Object], Any]

BREAK = object()  # an answer that closes the connection instead


def allowed(**response: Any) -> Answer:
    """Allows, with these further fields of the response."""
    return lambda request: {"uid": request["uid"], "allowed": True, **response}


def denied(**status: Any) -> Answer:
    return lambda request: {"uid": request["uid"], "allowed": False, "status": status}


def patching(*operations: Object) -> Answer:
    """Allows, with this JSON patch."""
    patch = base64.b64encode(json.dumps(operations).encode()).decode()
    return allowed(patchType="JSONPatch", patch=patch)


def adding(path: str, value: Any) -> Answer:
    return patching({"op": "add", "path": path, "value": value})


class WebhookServer:
    """Answers by path; `asked` holds (path, request of the review) in order."""

    def __init__(self, certificates: Path, address: str = "127.0.0.1") -> None:
        self._address = address
        self.answers: dict[str, Any] = {}
        self.asked: list[tuple[str, Object]] = []
        self.queries: list[str] = []
        self.url = ""
        self.ca = base64.b64encode((certificates / "ca.crt").read_bytes()).decode()
        self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._tls.load_cert_chain(certificates / "tls.crt", certificates / "tls.key")

    def requests(self, path: str) -> list[Object]:
        return [request for asked, request in self.asked if asked == path]

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        runner = web.ServerRunner(web.Server(self._handle), shutdown_timeout=0.1)
        await runner.setup()
        try:
            await web.TCPSite(runner, self._address, 0, ssl_context=self._tls).start()
            self.url = f"https://{self._address}:{runner.addresses[0][1]}"
            yield
        finally:
            await runner.cleanup()

    async def _handle(self, raw: web.BaseRequest) -> web.StreamResponse:
        review = json.loads(await raw.read())
        assert (review["kind"], review["apiVersion"]) == ("AdmissionReview", "admission.k8s.io/v1")
        self.asked.append((raw.path, review["request"]))
        self.queries.append(raw.query_string)
        answer = self.answers.get(raw.path, allowed())
        found = answer(review["request"]) if callable(answer) else answer
        if hasattr(found, "__await__"):
            found = await found
        if found is BREAK:
            assert raw.transport is not None
            raw.transport.close()
            return web.Response()
        if isinstance(found, web.StreamResponse):
            return found
        return web.json_response({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "response": found})
