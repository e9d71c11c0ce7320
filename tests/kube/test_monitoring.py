"""Probes and /metrics: open on loopback, over TLS and for permitted readers elsewhere, few and short connections."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, Gauge

from kube.monitoring import AccessGuard, ClientTimeouts, MonitoringServer, Probes
from kube.reviews import Reviews
from kube.tls import ServerCertificate, TlsFiles
from local.certificates import LocalAuthority
from model.fault import CannotListen, ConfigurationFault

ANYWHERE = "0.0.0.0:0"


def registry() -> CollectorRegistry:
    made = CollectorRegistry()
    Gauge("answer", "The answer.", registry=made).set(42)
    return made


class Health:
    """What the probes say."""

    def __init__(self) -> None:
        self.alive = ""
        self.ready = "not synced"
        self.probes = Probes(lambda: self.alive, lambda: self.ready)


@contextlib.contextmanager
def serving(address: str = "127.0.0.1:0", **options: Any) -> Iterator[MonitoringServer]:
    options = {"probes": Health().probes} | options
    server = MonitoringServer(address, registry(), **options)
    server.start()
    try:
        yield server
    finally:
        server.close()


def port_of(server: MonitoringServer) -> int:
    return int(server.address.rpartition(":")[2])


def ask(server: MonitoringServer, path: str, method: str = "GET", **headers: str) -> tuple[int, str, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", port_of(server), timeout=20)
    return _asked(connection, path, method, headers)


def _asked(connection: Any, path: str, method: str, headers: dict[str, str]) -> tuple[int, str, Any]:
    with contextlib.closing(connection):
        connection.request(method, path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read().decode(), answer.headers


def test_probes_say_what_is_wrong() -> None:
    """503 with the reason, 200 once there is none."""
    health = Health()
    with serving(probes=health.probes) as server:
        assert ask(server, "/healthz")[:2] == (200, "ok\n") and ask(server, "/livez")[0] == 200
        assert ask(server, "/readyz?verbose")[:2] == (503, "not synced\n")
        health.alive, health.ready = "stuck", ""
        assert ask(server, "/healthz")[:2] == (503, "stuck\n") and ask(server, "/readyz")[0] == 200


def test_metrics_in_the_format_that_is_wanted() -> None:
    """Prometheus' text unless OpenMetrics is asked for."""
    with serving() as server:
        status, text, headers = ask(server, "/metrics")
        assert (status, "answer 42.0\n" in text) == (200, True)
        assert headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
        _, text, headers = ask(server, "/metrics", Accept="application/openmetrics-text; version=1.0.0")
        assert headers["Content-Type"].startswith("application/openmetrics-text") and text.endswith("# EOF\n")


@pytest.mark.parametrize(
    ("method", "path", "status", "body"),
    [
        ("HEAD", "/healthz", 200, ""),
        ("HEAD", "/metrics", 200, ""),
        ("GET", "/", 404, "try /metrics, /healthz or /readyz\n"),
        ("GET", "/metrics/x", 404, "try /metrics, /healthz or /readyz\n"),
        ("POST", "/metrics", 405, "only GET and HEAD\n"),
        ("DELETE", "/healthz", 405, "only GET and HEAD\n"),
    ],
)
def test_methods_and_paths(method: str, path: str, status: int, body: str) -> None:
    """HEAD is GET without a body; the length is told all the same."""
    with serving() as server:
        got, text, headers = ask(server, path, method)
        assert (got, text) == (status, body)
        assert int(headers["Content-Length"]) > 0
        assert (headers["Allow"] == "GET, HEAD") == (status == 405)


def test_a_page_that_fails_is_one_answer() -> None:
    """An error of ours is told as one, and the next page is served."""

    def broken() -> str:
        raise LookupError("a bug")

    with serving(probes=Probes(broken, lambda: "")) as server:
        assert ask(server, "/healthz")[:2] == (500, "an error of this program; see its log\n")
        assert ask(server, "/readyz")[0] == 200


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"GET /healthz HTTP/1.0\r\n" + b"A: b\r\n" * 200, b"431"),
        (b"GET /healthz HTTP/1.0\r\nA: " + b"x" * 70_000, b"431"),
        (b"GET /" + b"x" * 70_000, b"414"),
        (b"nonsense\r\n", b"400"),
    ],
    ids=["too many headers", "too long a header", "too long a path", "nonsense"],
)
def test_heads_are_bounded(head: bytes, status: bytes) -> None:
    """Nobody fills our memory."""
    with serving() as server, connect(server) as client:
        client.sendall(head + b"\r\n\r\n")
        got = b""
        with contextlib.suppress(ConnectionResetError):
            while chunk := client.recv(4096):
                got += chunk
        assert status in got


def connect(server: MonitoringServer) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port_of(server)), timeout=20)


def test_idle_connections_are_few_and_keep_no_probe_out() -> None:
    """Each holds a thread and a descriptor: the seventeenth cuts off the first, long before that is cut for silence."""
    with serving() as server, contextlib.ExitStack() as stack:
        idle = [stack.enter_context(connect(server)) for _ in range(16)]
        assert ask(server, "/healthz")[0] == 200
        assert idle[0].recv(1) == b""
        idle[15].sendall(b"GET /healthz HTTP/1.0\r\n\r\n")
        assert idle[15].recv(15) == b"HTTP/1.0 200 OK"


def test_a_flood_cuts_off_its_own() -> None:
    """Whoever has most connections loses the oldest of them: a probe from elsewhere that came first is still heard."""
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(serving())
        where = ("127.0.0.1", port_of(server))
        kubelet = stack.enter_context(socket.create_connection(where, 20, source_address=("127.0.0.2", 0)))
        flood = [stack.enter_context(connect(server)) for _ in range(40)]
        assert flood[0].recv(1) == b""
        kubelet.sendall(b"GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n")
        assert kubelet.recv(15) == b"HTTP/1.0 200 OK"


def test_a_silent_client_is_cut_off() -> None:
    """A connection that never asks does not hold its thread for ever."""
    with serving(patience=ClientTimeouts(silence_seconds=0.05)) as server, connect(server) as silent:
        assert silent.recv(1) == b""


def test_a_client_that_drips_is_cut_off() -> None:
    """A byte now and then is no silence, but the whole has its time too."""
    with serving(patience=ClientTimeouts(whole_seconds=0.05)) as server, connect(server) as drip:
        drip.settimeout(0.01)
        sent = 0
        with contextlib.suppress(ConnectionError):
            for _ in range(2000):
                drip.sendall(b"x")
                sent += 1
                with contextlib.suppress(TimeoutError):
                    if drip.recv(1) == b"":
                        break
        assert 0 < sent < 2000


def test_without_descriptors_the_server_rests(starved: Callable[[], AbstractContextManager[None]]) -> None:
    """A connection that cannot be accepted stays waiting, and asking again at once would take a whole CPU."""
    server = MonitoringServer("127.0.0.1:0", registry(), Health().probes)
    with connect(server), starved():
        began = time.monotonic()
        with pytest.raises(OSError, match="Too many open files"):
            server._server.get_request()
        assert time.monotonic() - began >= 0.1
    server._server.server_close()


def test_without_threads_the_server_answers_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody has used up the numbers of processes: a program whose probes fail is ended, and not started again."""

    def refused(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with serving() as server:
        monkeypatch.setattr(threading.Thread, "start", refused)
        assert ask(server, "/healthz")[:2] == (200, "ok\n")
        assert ask(server, "/metrics")[0] == 200


@pytest.mark.parametrize(
    ("address", "told"),
    [
        ("0.0.0.0:0", "is not 127.0.0.1, where alone plain text is served (give --tls-cert and --tls-key"),
        ("192.0.2.1:0", "is not 127.0.0.1"),
        ("example.org:80", "is not 127.0.0.1"),
        ("127.65.0.2:0", "is not 127.0.0.1"),
        ("127.0.0.1", "is not HOST:PORT"),
        ("127.0.0.1:x", "is not HOST:PORT"),
        ("127.0.0.1:65536", "is not HOST:PORT"),
        (":10316", "is not HOST:PORT"),
    ],
)
def test_an_address_that_is_not_served_is_one_line(address: str, told: str) -> None:
    """The flag, the address, the cause, and what mends it."""
    with pytest.raises(ConfigurationFault) as error:
        MonitoringServer(address, registry(), Health().probes)
    assert str(error.value).startswith(f"--http-listen {address}: {told}")


def test_an_address_in_use_is_one_line() -> None:
    """So that who starts two of them knows."""
    with (
        serving() as server,
        pytest.raises(CannotListen, match=rf"--http-listen {server.address}: cannot be listened on"),
    ):
        MonitoringServer(server.address, registry(), Health().probes)


def test_a_socket_is_its_owners_alone(tmp_path: Path) -> None:
    """In plain text without a certificate; what an earlier program left there is replaced, a folder is not."""
    path, health = tmp_path / "s", Health()
    path.touch()
    with serving(f"unix:{path}", probes=health.probes), socket.socket(socket.AF_UNIX) as client:
        assert path.stat().st_mode & 0o777 == 0o600
        client.connect(str(path))
        client.sendall(b"GET /readyz HTTP/1.0\r\n\r\n")
        with client.makefile() as answer:
            said = answer.read()
    assert said.startswith("HTTP/1.0 503 ") and said.endswith("not synced\n")
    (tmp_path / "folder").mkdir()
    with pytest.raises(CannotListen, match=r"folder: cannot be listened on: "):
        MonitoringServer(f"unix:{tmp_path / 'folder'}", registry(), health.probes)


def test_ipv6() -> None:
    """[::1] is this machine too."""
    try:
        with serving("[::1]:0") as server, socket.create_connection(("::1", port_of(server)), timeout=20) as client:
            client.sendall(b"GET /healthz HTTP/1.0\r\n\r\n")
            assert client.recv(15) == b"HTTP/1.0 200 OK"
    except ConfigurationFault as fault:
        pytest.skip(f"this machine has no IPv6: {fault}")


class Secured:
    """A server off loopback with a certificate, and the answers of an API server about who asks."""

    def __init__(self, server: MonitoringServer, folder: Path, api: Any, authority: LocalAuthority) -> None:
        self.server = server
        self.files = TlsFiles(folder / "tls.crt", folder / "tls.key")
        self.api = api
        self.authority = authority

    async def ask(self, path: str, token: str | None = None) -> tuple[int, str, Any]:
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        context = ssl.create_default_context(cadata=self.authority.certificate_pem.decode())
        connection = http.client.HTTPSConnection("127.0.0.1", port_of(self.server), timeout=20, context=context)
        return await asyncio.to_thread(_asked, connection, path, "GET", headers)


@pytest.fixture
def secured(tmp_path: Path, server: Any) -> Callable[..., None]:
    """Runs `scene(secured)` against the API server's `answers`."""

    def run(answers: list[Any], scene: Any) -> None:
        async def whole() -> None:
            server.answers = answers
            authority = LocalAuthority("test")
            files = TlsFiles(tmp_path / "tls.crt", tmp_path / "tls.key")
            write(files, authority)
            async with await server.start() as client:
                guard = AccessGuard(ServerCertificate(files), Reviews(client))
                with serving(ANYWHERE, guard=guard) as running:
                    await scene(Secured(running, tmp_path, server, authority))
            await server.stop()

        asyncio.run(whole())

    return run


def write(files: TlsFiles, authority: LocalAuthority) -> None:
    certificate, key = authority.issue("monitoring")
    files.certificate.write_bytes(certificate)
    files.key.write_bytes(key)


KNOWN = {"status": {"authenticated": True, "user": {"username": "ann"}}}
UNKNOWN = {"status": {"authenticated": False}}


def test_off_loopback_probes_are_open_and_metrics_are_not(secured: Any, says_: Any) -> None:
    """A kubelet's probe has no token."""

    async def scene(at: Secured) -> None:
        assert (await at.ask("/healthz"))[0] == 200 and (await at.ask("/readyz"))[0] == 503
        status, text, headers = await at.ask("/metrics")
        assert (status, headers["WWW-Authenticate"]) == (401, "Bearer") and "Authorization: Bearer TOKEN" in text
        assert at.api.requests == []

    secured([says_(UNKNOWN)], scene)


@pytest.mark.parametrize(
    ("answers", "status", "told"),
    [
        ([(UNKNOWN, 201)], 401, "with a token of this cluster"),
        ([(KNOWN, 201), ({"status": {"allowed": False}}, 201)], 403, "ann may not get /metrics"),
        ([({"message": "down"}, 500)], 503, "the API server cannot be asked"),
        ([(KNOWN, 201), ({"message": "forbidden"}, 403)], 503, "the API server cannot be asked"),
        ([(KNOWN, 201), ({"status": {"allowed": True}}, 201)], 200, "answer 42.0"),
    ],
    ids=["unknown token", "no right", "no API server", "we may not ask", "permitted"],
)
def test_who_reads_metrics(secured: Any, says_: Any, answers: list[Any], status: int, told: str) -> None:
    """Whoever may get the non-resource URL /metrics, as with Kubernetes' own components."""

    async def scene(at: Secured) -> None:
        got, text, _ = await at.ask("/metrics", "t0ken")
        assert (got, told in text, "t0ken" in text) == (status, True, False)

    secured([says_(*answer) for answer in answers], scene)


def test_a_renewed_certificate_is_served_at_once(secured: Any, says_: Any) -> None:
    """From the next connection on."""

    async def scene(at: Secured) -> None:
        former, at.authority = at.authority, LocalAuthority("next")
        write(at.files, at.authority)
        assert (await at.ask("/healthz"))[0] == 200
        at.authority = former
        with pytest.raises(ssl.SSLCertVerificationError):
            await at.ask("/healthz")

    secured([says_(UNKNOWN)], scene)


def test_plain_text_and_silence_keep_nobody_out_of_tls(secured: Any, says_: Any) -> None:
    """Connections that never finish a handshake are few and go first."""

    async def scene(at: Secured) -> None:
        with contextlib.ExitStack() as stack:
            for _ in range(20):
                stack.enter_context(connect(at.server))
            plain = stack.enter_context(connect(at.server))
            plain.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
            with contextlib.suppress(ConnectionResetError):
                assert b"42" not in await asyncio.to_thread(plain.recv, 4096)
            assert (await at.ask("/healthz"))[0] == 200

    secured([says_(UNKNOWN)], scene)


def test_on_loopback_a_guard_changes_nothing(tmp_path: Path, server: Any, says_: Any) -> None:
    """The same flags serve plain text there."""

    async def whole() -> None:
        server.answers = [says_(UNKNOWN)]
        files = TlsFiles(tmp_path / "tls.crt", tmp_path / "tls.key")
        write(files, LocalAuthority("test"))
        async with await server.start() as client:
            with serving(guard=AccessGuard(ServerCertificate(files), Reviews(client))) as running:
                assert (await asyncio.to_thread(ask, running, "/metrics"))[0] == 200
        await server.stop()

    asyncio.run(whole())
