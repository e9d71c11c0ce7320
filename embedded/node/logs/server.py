"""Container output, and what is in use, for the API server to ask: what a node answers, whatever serves it.

GET /containerLogs/{namespace}/{pod}/{container}    kubectl logs: follow, previous, tailLines, limitBytes,
                                                    sinceSeconds, sinceTime, timestamps
GET /stats/summary                                  the kubelet's Summary API, for metrics.k8s.io
GET /metrics/resource                               the same numbers for Prometheus
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from aiohttp import web

from embedded.fault import ConfigurationFault
from embedded.node.logs.reading import LogQuery, LogReading, parse
from embedded.node.ports import Handler

_LOOK_SECONDS = 0.1


class LogSource(Protocol):
    """Where outputs are; see pods.kubelet.Kubelet."""

    def log_file(self, namespace: str, name: str, container: str, *, previous: bool) -> Path | str: ...


class UsageSource(Protocol):
    """What is in use; see pods.statistics.Statistics."""

    def summary(self) -> bytes: ...
    def metrics(self) -> str: ...


class LogHandlers:
    """`still_running` says whether a followed container may write more."""

    def __init__(
        self,
        source: LogSource,
        statistics: UsageSource,
        still_running: Callable[[str, str, str], bool],
    ) -> None:
        self._statistics = statistics
        self._source = source
        self._still_running = still_running

    def handlers(self) -> Mapping[str, Handler]:
        """Of GET, by path."""
        return {
            "/containerLogs/{namespace}/{pod}/{container}": self._answer,
            "/stats/summary": self._summary,
            "/metrics/resource": self._metrics,
        }

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        where = (request.match_info["namespace"], request.match_info["pod"], request.match_info["container"])
        try:
            query = parse(request.query, datetime.now(UTC))
        except ValueError as error:
            return web.Response(status=400, text=f"{error}\n")
        file = self._source.log_file(*where, previous=query.previous)
        if isinstance(file, str):
            return web.Response(status=400, text=file + "\n")
        follow = query.follow and not query.previous
        return await self._send(request, file, query, lambda: follow and self._still_running(*where))

    async def _send(
        self, request: web.Request, file: Path, query: LogQuery, more: Callable[[], bool]
    ) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/plain; charset=utf-8"})
        await response.prepare(request)
        try:
            with LogReading(file, query) as reading:
                while not reading.exhausted:
                    # Asked before reading: what a container wrote before its end is then always read.
                    going_on = more()
                    block = reading.read()
                    if block:
                        await response.write(block)
                    elif going_on:
                        await asyncio.sleep(_LOOK_SECONDS)
                    else:
                        break
            await response.write_eof()
        except (ConnectionError, FileNotFoundError):
            pass  # the reader left, or the pod did
        return response

    async def _summary(self, request: web.Request) -> web.Response:
        return web.Response(body=self._statistics.summary(), content_type="application/json")

    async def _metrics(self, request: web.Request) -> web.Response:
        return web.Response(text=self._statistics.metrics(), content_type="text/plain")


def read_token(file: Path) -> str:
    """What a reader must present. Raises ConfigurationFault."""
    try:
        token = file.read_text().strip()
    except OSError as error:
        raise ConfigurationFault(f"--kubelet-token-file {file}", f"cannot be read: {error.strerror}") from error
    if not token:
        raise ConfigurationFault(f"--kubelet-token-file {file}", "is empty", "write a token into it")
    return token


def tls_context(certificate: Path, key: Path) -> ssl.SSLContext:
    """Raises ConfigurationFault naming the file."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(certificate, key)
    except (OSError, ssl.SSLError) as error:
        raise ConfigurationFault(f"--tls-cert {certificate}", f"not usable with {key}: {error}") from error
    return context
