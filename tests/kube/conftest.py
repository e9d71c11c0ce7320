"""A scripted API server on loopback: a test says what each request is answered."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from aiohttp import web

from kube.client import KubeClient
from tests.scheduler.conftest import certificate, cluster

__all__ = ["certificate", "cluster"]

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


class ScriptedServer:
    """`requests` is what came in; `answers` are used in turn, the last one for ever."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.requests: list[tuple[str, str, dict[str, str], Any]] = []
        self.answers: list[Answer] = []
        self._runner: web.AppRunner | None = None

    async def start(self) -> KubeClient:
        app = web.Application()
        app.router.add_route("*", "/{tail:.*}", self._handle)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        port = self._runner.addresses[0][1]
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "c",
            "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
            "users": [{"name": "u", "user": {"token": "t0ken"}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        }
        path = self._folder / "kubeconfig"
        path.write_bytes(msgspec.yaml.encode(config))
        return await KubeClient.connect(path, "test/1")

    async def stop(self) -> None:
        assert self._runner is not None
        await self._runner.cleanup()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        query = dict(request.query)
        self.requests.append((request.method, request.path, query, msgspec.json.decode(body) if body else None))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return await answer(request)


def says(body: Any, status: int = 200) -> Answer:
    async def answer(request: web.Request) -> web.StreamResponse:
        return web.Response(status=status, body=msgspec.json.encode(body), content_type="application/json")

    return answer


def streams(*events: Any, hold: bool = False) -> Answer:
    """A watch: one line an event, in odd chunks; `hold` keeps it open until the client leaves."""

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        whole = b"".join(msgspec.json.encode(event) + b"\n" for event in events)
        for start in range(0, len(whole), 7):
            await response.write(whole[start : start + 7])
        while hold and request.transport is not None and not request.transport.is_closing():
            await asyncio.sleep(0.02)
        return response

    return answer


@pytest.fixture
def server(tmp_path: Path) -> ScriptedServer:
    return ScriptedServer(tmp_path)


@pytest.fixture
def says_() -> Any:
    return says


@pytest.fixture
def streams_() -> Any:
    return streams
