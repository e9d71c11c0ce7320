"""An API without sockets (`api`), and one real server process over TLS for the clients (`live`)."""

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from embedded.apiserver.authentication.authenticator import Credentials
from embedded.apiserver.bootstrap import create_system_objects
from embedded.apiserver.controller_manager import Controllers
from embedded.apiserver.handlers.watch import WatchLimits
from embedded.apiserver.http.router import Router
from embedded.apiserver.request.attributes import AllowAll, Authorizer
from embedded.apiserver.request.messages import Request, Stream
from embedded.apiserver.request.user_info import ANONYMOUS
from embedded.tests.authority import Authority

Object = dict[str, Any]
NOON = 1_790_000_000.0
TOKEN = "a-token-for-tests"


class FakeClock:
    """Time that moves only when told to."""

    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> float:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += seconds


class Api:
    """A core with system objects and controllers, driven request by request."""

    def __init__(
        self, ring_events: int = 8192, credentials: Credentials | None = None, authorizer: Authorizer | None = None
    ) -> None:
        self.clock = FakeClock()
        self.user = ANONYMOUS  # who asks
        limits = WatchLimits(bookmark_seconds=0.01)
        self.core = Router(
            self.clock, None, limits, ring_events, credentials=credentials, authorizer=authorizer or AllowAll()
        )
        self.resources = self.core.resources
        create_system_objects(self.resources)
        self.controllers = Controllers(self.resources, self.core.writes)

    def raw(self, method: str, url: str, body: Any = None, **headers: str) -> Any:
        """The core's answer; keyword headers use `_` for `-`."""
        return asyncio.run(self._raw(method, url, body, headers))

    async def _raw(self, method: str, url: str, body: Any, headers: dict[str, str]) -> Any:
        parts = urlsplit(url)
        data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        query = dict(parse_qsl(parts.query, keep_blank_values=True))
        return await self.core.handle(Request(method, parts.path, query, named, data, self.user))

    def call(self, method: str, url: str, body: Any = None, **headers: str) -> tuple[int, Object]:
        answer = self.raw(method, url, body, **headers)
        return answer.status, json.loads(answer.body)

    def get(self, url: str) -> Object:
        code, obj = self.call("GET", url)
        assert code == 200, obj
        return obj

    def post(self, url: str, body: Object) -> Object:
        code, obj = self.call("POST", url, body)
        assert code == 201, obj
        return obj

    def patch(self, url: str, body: Any, kind: str = "merge") -> tuple[int, Object]:
        suffix = {"merge": "merge-patch", "json": "json-patch", "strategic": "strategic-merge-patch"}[kind]
        return self.call("PATCH", url, body, content_type=f"application/{suffix}+json")

    def set_pod_status(self, name: str, status: Object, namespace: str = "default") -> None:
        code, obj = self.patch(f"/api/v1/namespaces/{namespace}/pods/{name}/status", {"status": status})
        assert code == 200, obj

    def settle(self) -> None:
        asyncio.run(self.controllers.settle())

    def watch(self, url: str, seconds: float = 0.05) -> list[Object]:
        """Everything a watch sends until nothing has come for a moment."""

        async def collect() -> list[Object]:
            stream = await self._raw("GET", url, None, {})
            assert isinstance(stream, Stream), stream
            lines: list[Object] = []
            chunks: AsyncIterator[bytes] = stream.chunks
            try:
                async with asyncio.timeout(seconds):
                    async for chunk in chunks:
                        lines += [json.loads(line) for line in chunk.splitlines()]
            except TimeoutError:
                pass
            return lines

        return asyncio.run(collect())


@pytest.fixture
def api() -> Api:
    return Api()


@pytest.fixture
def small_ring_api() -> Api:
    return Api(ring_events=8)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


# -- a real server ---------------------------------------------------------------------------------------------


def _write_credentials(directory: Path) -> None:
    authority = Authority("authority of tests")
    certificate, key = authority.issue("apiserver")
    for name, content in (("ca.crt", authority.certificate_pem), ("tls.crt", certificate), ("tls.key", key)):
        (directory / name).write_bytes(content)
    (directory / "tokens").write_text(f"# who may do everything\n{TOKEN},admin,,system:masters\n")


@pytest.fixture
def credentials(tmp_path: Path) -> Path:
    """A directory with ca.crt, and tls.crt and tls.key of a server on loopback."""
    _write_credentials(tmp_path)
    return tmp_path


class Live:
    """A running server process and the ways to reach it."""

    def __init__(self, directory: Path, *options: str) -> None:
        self.directory = directory
        _write_credentials(directory)
        started = time.monotonic()
        self.process = subprocess.Popen(self.command(*options), stderr=(directory / "log").open("wb"))
        self.address = self._wait_until_ready()
        self.start_seconds = time.monotonic() - started
        self.kubeconfig = directory / "kubeconfig"
        self.kubeconfig.write_text(json.dumps(self._kubeconfig()))

    def command(self, *options: str) -> list[str]:
        here = self.directory
        files = ("--tls-cert", here / "tls.crt", "--tls-key", here / "tls.key", "--kubelet-ca", here / "ca.crt")
        rest = ("--token-file", here / "tokens", "--ready-file", here / "ready.json")
        listen = () if "--listen" in options else ("--listen", "127.0.0.1:0")
        return [sys.executable, "-m", "embedded.apiserver", *listen, *map(str, (*files, *rest)), *options]

    def _wait_until_ready(self) -> str:
        ready = self.directory / "ready.json"
        for _ in range(2400):
            if ready.exists():
                found = json.loads(ready.read_text())
                return f"https://{found['address']}:{found['port']}"
            if self.process.poll() is not None:
                break
            time.sleep(0.025)
        raise AssertionError("the server did not start: " + (self.directory / "log").read_text())

    def _kubeconfig(self) -> Object:
        cluster = {"server": self.address, "certificate-authority": str(self.directory / "ca.crt")}
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "it", "cluster": cluster}],
            "users": [{"name": "me", "user": {"token": TOKEN}}],
            "contexts": [{"name": "here", "context": {"cluster": "it", "user": "me"}}],
            "current-context": "here",
        }

    def kubectl_command(self, *arguments: str) -> list[str]:
        found = shutil.which("kubectl") or "kubectl"
        cache = self.directory / "kubectl-cache"
        return [found, "--kubeconfig", str(self.kubeconfig), "--cache-dir", str(cache), *arguments]

    def kubectl(self, *arguments: str, stdin: Any = None, code: int = 0) -> str:
        """What kubectl prints, both streams; it must exit with this code."""
        text = stdin if isinstance(stdin, str | None) else json.dumps(stdin)
        done = subprocess.run(
            self.kubectl_command(*arguments),
            input=text,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=30,
            check=False,
            env={**os.environ, "HOME": str(self.directory)},
        )
        assert done.returncode == code, f"kubectl {' '.join(arguments)} exited {done.returncode}: {done.stdout}"
        return done.stdout

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=10)


@pytest.fixture(scope="session")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    server = Live(tmp_path_factory.mktemp("apiserver"))
    yield server
    server.stop()
    assert "Traceback" not in (server.directory / "log").read_text()


@pytest.fixture
def start_live(tmp_path: Path) -> Iterator[Any]:
    """Starts further servers, each with its own options, and stops them afterwards."""
    servers: list[Live] = []

    def start(*options: str) -> Live:
        directory = tmp_path / f"server-{len(servers)}"
        directory.mkdir()
        servers.append(Live(directory, *options))
        return servers[-1]

    yield start
    for server in servers:
        if server.process.poll() is None:
            server.stop()
