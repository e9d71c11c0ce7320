"""Logs over HTTP: whole or in part, to the end or for as long as the container runs."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from embedded.fault import ConfigurationFault
from embedded.node.logs.files import LogKeeper
from embedded.node.logs.server import LogHandlers, tls_context


class Source:
    """One file for every container but `none`."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def log_file(self, namespace: str, name: str, container: str, *, previous: bool) -> Path | str:
        if container == "none":
            return "container none is waiting to start: ContainerCreating"
        return self.file.with_name("previous.log") if previous else self.file


class Numbers:
    def summary(self) -> bytes:
        return b'{"node": {}}'

    def metrics(self) -> str:
        return "node_cpu_usage_seconds_total 1 2\n"


def ask(
    file: Path,
    path: str,
    *,
    running: Callable[[], bool] = lambda: False,
    meanwhile: Callable[[], Awaitable[None]] | None = None,
) -> tuple[int, str]:
    async def run() -> tuple[int, str]:
        application = web.Application()
        for pattern, handler in LogHandlers(Source(file), Numbers(), lambda *where: running()).handlers().items():
            application.router.add_get(pattern, handler)
        runner = web.AppRunner(application, shutdown_timeout=0.2)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        port = runner.addresses[0][1]
        try:
            async with (
                aiohttp.ClientSession(trust_env=False) as session,
                session.get(f"http://127.0.0.1:{port}{path}") as answer,
            ):
                if meanwhile:
                    await meanwhile()
                return answer.status, await answer.text()
        finally:
            await runner.cleanup()

    return asyncio.run(run())


@pytest.fixture
def log(tmp_path: Path) -> Path:
    file, keeper = tmp_path / "0.log", LogKeeper()
    file.touch()
    keeper.add(file)
    for second, line in enumerate(("one\n", "two\n", "three\n")):
        with file.open("a") as output:
            output.write(line)
        os.utime(file, (datetime(2030, 1, 1, 0, 0, second, tzinfo=UTC).timestamp(),) * 2)
        keeper.look()
    (tmp_path / "previous.log").write_text("before\n")
    return tmp_path / "0.log"


@pytest.mark.parametrize(
    ("query", "status", "text"),
    [
        ("c", 200, "one\ntwo\nthree\n"),
        ("c?tailLines=1", 200, "three\n"),
        ("c?tailLines=0", 200, ""),
        ("c?limitBytes=5", 200, "one\nt"),
        ("c?previous=true", 200, "before\n"),
        ("c?follow=true", 200, "one\ntwo\nthree\n"),
        ("c?timestamps=true&tailLines=1", 200, "2030-01-01T00:00:02.000000000Z three\n"),
        ("c?timestamps=true&limitBytes=35", 200, "2030-01-01T00:00:00.000000000Z one\n"),
        ("c?sinceTime=2030-01-01T00:00:01Z", 200, "two\nthree\n"),
        ("c?sinceTime=2030-01-01T00:00:03%2B00:00", 200, ""),
        ("c?sinceTime=2030-01-01T00:00:01Z&tailLines=9", 200, "two\nthree\n"),
        ("c?tailLines=-1", 400, "tailLines must be a whole number of 0 or more, not '-1'\n"),
        ("c?limitBytes=x", 400, "limitBytes must be a whole number of 0 or more, not 'x'\n"),
        ("c?sinceTime=soon", 400, "sinceTime 'soon' is no RFC 3339 time\n"),
        ("c?sinceSeconds=1&sinceTime=x", 400, "at most one of sinceTime or sinceSeconds may be specified\n"),
        ("none", 400, "container none is waiting to start: ContainerCreating\n"),
    ],
)
def test_answers(log: Path, query: str, status: int, text: str) -> None:
    """Query parameters are the kubelet's."""
    assert ask(log, f"/containerLogs/ns/pod/{query}") == (status, text)


@pytest.mark.parametrize(
    ("path", "text"),
    [("/stats/summary", '{"node": {}}'), ("/metrics/resource", "node_cpu_usage_seconds_total 1 2\n")],
)
def test_statistics(log: Path, path: str, text: str) -> None:
    """As the API server and Prometheus ask for it."""
    assert ask(log, path) == (200, text)


def test_follow(log: Path) -> None:
    """A follower gets what is written later, until the container has ended, a cut of the log included."""
    runs = [True]

    async def write() -> None:
        for text in ("four\n", "five\n"):
            with log.open("a") as output:
                output.write(text)
            await asyncio.sleep(0.3)
        log.write_text("cut\n")
        await asyncio.sleep(0.3)
        runs[0] = False

    status, text = ask(log, "/containerLogs/ns/pod/c?follow=true", running=lambda: runs[0], meanwhile=write)
    assert (status, text) == (200, "one\ntwo\nthree\nfour\nfive\ncut\n")


def test_tls_files(tmp_path: Path) -> None:
    """Unusable certificate files are named."""
    with pytest.raises(ConfigurationFault, match="tls-cert"):
        tls_context(tmp_path / "none.pem", tmp_path / "none.key")
