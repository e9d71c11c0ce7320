"""The server process as its clients reach it: addresses, TLS, and bounds on what they send."""

import asyncio
import gzip
import http.client
import json
import socket
import ssl
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import cast

import pytest

from embedded.apiserver.authentication.authenticator import Credentials
from embedded.apiserver.authentication.token_file import TokenFile
from embedded.apiserver.http.router import Router
from embedded.apiserver.http.server import Server, tls_context
from embedded.apiserver.request.messages import Request, Stream
from embedded.apiserver.request.user_info import known_user
from embedded.tests.apiserver.conftest import TOKEN, Live


def test_a_server_for_other_machines_says_so(start_live):
    """It works like any other, and warns in one line of what an open port means here."""
    server: Live = start_live("--listen", "0.0.0.0:0")
    assert server.address.startswith("https://127.0.0.1:")
    assert "default" in server.kubectl("get", "namespaces")
    log = (server.directory / "log").read_text()
    assert log.count("runs commands on this one") == 1


@contextmanager
def connected(server: Live) -> Iterator[ssl.SSLSocket]:
    context = ssl.create_default_context(cafile=str(server.directory / "ca.crt"))
    port = int(server.address.rsplit(":", 1)[1])
    with (
        socket.create_connection(("127.0.0.1", port), timeout=20) as plain,
        context.wrap_socket(plain, server_hostname="localhost") as secured,
    ):
        yield secured


def exchange(server: Live, request: bytes) -> tuple[int, dict]:
    """Status and body of the answer to raw bytes."""
    with connected(server) as secured:
        secured.sendall(request)
        answer = b""
        while chunk := secured.recv(65536):
            answer += chunk
            head, found, body = answer.partition(b"\r\n\r\n")
            if found and body and len(body) >= int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0]):
                break
    return int(answer.split(b" ", 2)[1]), json.loads(answer.partition(b"\r\n\r\n")[2])


def request(target=b"/api/v1/namespaces", method=b"GET", host=b"localhost", body=b"", more=b""):
    head = b"%b %b HTTP/1.1\r\nHost: %b\r\nAuthorization: Bearer %b\r\n" % (method, target, host, TOKEN.encode())
    return head + b"Content-Type: application/json\r\nContent-Length: %d\r\n%b\r\n%b" % (len(body), more, body)


BROKEN = {
    "not HTTP": (b"what is this\r\n\r\n", 400, "BadRequest"),
    "a long path": (request(b"/" + b"x" * 40_000), 431, "RequestHeaderFieldsTooLarge"),
    "a long header": (request(more=b"X: " + b"x" * 20_000 + b"\r\n"), 431, "RequestHeaderFieldsTooLarge"),
    "many headers": (request(more=b"".join(b"X-%d: y\r\n" % n for n in range(200))), 400, "BadRequest"),
    "a large body": (request(method=b"POST", body=b"x" * (4 << 20)), 413, "RequestEntityTooLarge"),
    "another user": (request(more=b"impersonate-user: bob\r\n"), 403, "Forbidden"),
    "a group without a user": (request(more=b"Impersonate-Group: bobs\r\n"), 500, "InternalError"),
    "another host": (request(host=b"evil.example"), 403, "Forbidden"),
}


@pytest.mark.parametrize(("raw", "code", "reason"), BROKEN.values(), ids=BROKEN)
def test_what_is_too_much_or_not_http_is_answered_with_a_status(live, raw, code, reason):
    """Bounded before anything is decoded, and told in the form every client reads."""
    found, answer = exchange(live, raw)
    assert (found, answer["kind"], answer["reason"], answer["code"]) == (code, "Status", reason, code)


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_current_tls_is_spoken(live, version):
    """1.2 and 1.3; plain text is not answered as HTTP."""
    context = ssl.create_default_context(cafile=str(live.directory / "ca.crt"))
    context.minimum_version = context.maximum_version = version
    port = int(live.address.rsplit(":", 1)[1])
    with (
        socket.create_connection(("127.0.0.1", port), timeout=20) as plain,
        context.wrap_socket(plain, server_hostname="localhost") as secured,
    ):
        assert secured.version() == {"TLSv1_2": "TLSv1.2", "TLSv1_3": "TLSv1.3"}[version.name]


def post(body: bytes, more: bytes = b"") -> bytes:
    return request(b"/api/v1/namespaces/default/configmaps", b"POST", body=body, more=more)


BODIES = {
    "not the gzip it should be": (b"plain", b"Content-Encoding: gzip\r\n"),
    "broken in the middle": (gzip.compress(bytes(range(256)) * 9)[:100] + b"x" * 300, b"Content-Encoding: gzip\r\n"),
}


@pytest.mark.parametrize(("body", "more"), BODIES.values(), ids=BODIES)
def test_a_body_that_cannot_be_unpacked_is_refused(start_live, body, more):
    """The client's mistake, so 400, and nothing in the server's log."""
    server: Live = start_live()
    code, answer = exchange(server, post(body, more))
    assert (code, answer["reason"]) == (400, "BadRequest")
    server.stop()
    assert (server.directory / "log").read_text() == ""


def test_a_client_that_leaves_amid_its_body_is_no_failure(start_live):
    """The connection ends, the log stays empty."""
    server: Live = start_live()
    with connected(server) as connection:
        connection.sendall(post(b"{" + b" " * 1000)[:-500])
    assert exchange(server, request())[0] == 200
    server.stop()
    assert (server.directory / "log").read_text() == ""


def test_a_client_that_asks_before_it_sends_is_told_to_go_on(live):
    """curl asks, and waits for a second otherwise; the answer to the body itself comes after that."""
    head, _, body = post(b'{"metadata": {"name": "invited"}}', b"Expect: 100-continue\r\n").partition(b"\r\n\r\n")
    with connected(live) as connection:
        connection.sendall(head + b"\r\n\r\n")
        assert connection.recv(65536) == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.sendall(body)
        assert connection.recv(65536).startswith(b"HTTP/1.1 201 ")


@pytest.mark.parametrize("field", ["x\x00y\x1b", "x" * 100_000], ids=["control characters", "long"])
def test_any_field_name_can_be_warned_of(live, field):
    """A warning never keeps the answer from the client."""
    body = {"metadata": {"name": f"warned-{len(field)}"}, field: 1}
    assert exchange(live, post(json.dumps(body).encode()))[0] == 201


class Endless:
    """A core whose every answer is a stream that says nothing after its first chunk."""

    def __init__(self) -> None:
        self.released = asyncio.Event()

    async def handle(self, _: Request) -> Stream:
        return Stream(200, self._chunks(), release=self.released.set)

    async def _chunks(self) -> AsyncIterator[bytes]:
        yield b"begun"
        await asyncio.Event().wait()


def test_a_stream_ends_when_its_client_leaves(credentials):
    """At once, also while there is nothing to write to it."""

    async def watch_and_leave() -> int:
        core, known = Endless(), TokenFile({TOKEN: known_user("admin")})
        tls = tls_context(credentials / "tls.crt", credentials / "tls.key")
        server = Server(cast(Router, core), Router(time.time, credentials=Credentials(known)).authenticator, tls)
        port = await server.start("127.0.0.1", 0)
        try:
            trusted = ssl.create_default_context(cafile=str(credentials / "ca.crt"))
            reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trusted)
            writer.write(request())
            await reader.readuntil(b"begun")
            writer.close()
            await asyncio.wait_for(core.released.wait(), 20)
            return len(server._streams)
        finally:
            await server.stop()

    assert asyncio.run(watch_and_leave()) == 0


def test_a_large_list_comes_whole(live):
    """In several pieces, under one length."""
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "large"}}
    live.kubectl("create", "-f", "-", stdin=namespace)
    maps = "/api/v1/namespaces/large/configmaps"
    for number in range(4):
        made = {"metadata": {"name": f"m{number}"}, "data": {"k": str(number) * 200_000}}
        code, _ = exchange(live, request(maps.encode(), b"POST", body=json.dumps(made).encode()))
        assert code == 201
    code, found = exchange(live, request(maps.encode()))
    data = {item["metadata"]["name"]: item["data"]["k"] for item in found["items"] if "k" in item["data"]}
    assert (code, data) == (200, {f"m{number}": str(number) * 200_000 for number in range(4)})


def test_a_client_is_told_when_to_come_back(live):
    """In the header that client libraries obey, as well as in the Status."""
    context = ssl.create_default_context(cafile=str(live.directory / "ca.crt"))
    host, port = live.address.removeprefix("https://").split(":")
    connection = http.client.HTTPSConnection(host, int(port), context=context, timeout=20)
    target = f"/api/v1/namespaces?resourceVersion={2**62}"
    connection.request("GET", target, headers={"Authorization": f"Bearer {TOKEN}"})
    answer = connection.getresponse()
    details = json.loads(answer.read())["details"]
    connection.close()
    assert (answer.status, answer.headers["Retry-After"], details["retryAfterSeconds"]) == (504, "1", 1)


@pytest.mark.parametrize("root", ["healthz", "livez", "readyz"])
def test_health_in_detail(live, root):
    """As `kubectl get --raw` asks for it."""
    assert live.kubectl("get", "--raw", f"/{root}") == "ok"
    assert live.kubectl("get", "--raw", f"/{root}?verbose") == f"[+]ping ok\n{root} check passed\n"
