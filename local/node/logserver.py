"""Container output over HTTPS on the loopback address; the API server fetches `kubectl logs` from here.

GET /containerLogs/{namespace}/{pod}/{container}?follow=&tailLines=&previous=&limitBytes=
Authorization: Bearer <kubelet token>
"""

from __future__ import annotations

import asyncio
import hmac
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from aiohttp import web

from local.node.logs import tail_offset
from model.fault import ConfigurationFault

_CHUNK = 256 * 1024
_LOOK_SECONDS = 0.1


class LogSource(Protocol):
    """Where outputs are; see kubelet.Kubelet."""

    def log_file(self, namespace: str, name: str, container: str, *, previous: bool) -> Path | str: ...


class LogServer:
    """`still_running` says whether a followed container may write more."""

    def __init__(self, source: LogSource, token: str, still_running: Callable[[str, str, str], bool]) -> None:
        self._source = source
        self._token = token
        self._still_running = still_running
        self._runner: web.AppRunner | None = None

    async def start(self, context: ssl.SSLContext | None) -> int:
        """Listen on 127.0.0.1; returns the port."""
        application = web.Application()
        application.router.add_get("/containerLogs/{namespace}/{pod}/{container}", self._answer)
        self._runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.2)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0, ssl_context=context).start()
        return int(self._runner.addresses[0][1])

    async def stop(self) -> None:
        if self._runner:
            await self._runner.cleanup()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        # A header's bytes that are not UTF-8 arrive as surrogates.
        given = request.headers.get("Authorization", "").encode(errors="surrogateescape")
        if not hmac.compare_digest(given, f"Bearer {self._token}".encode()):
            return web.Response(status=401, text="Unauthorized\n")
        where = (request.match_info["namespace"], request.match_info["pod"], request.match_info["container"])
        try:
            tail, limit = _number(request, "tailLines"), _number(request, "limitBytes")
        except ValueError:
            return web.Response(status=400, text="tailLines and limitBytes are whole numbers of 0 or more\n")
        file = self._source.log_file(*where, previous=_flag(request, "previous"))
        if isinstance(file, str):
            return web.Response(status=400, text=file + "\n")
        follow = _flag(request, "follow") and not _flag(request, "previous")
        return await self._send(request, file, tail, limit, (lambda: self._still_running(*where)) if follow else None)

    async def _send(
        self,
        request: web.Request,
        file: Path,
        tail: int | None,
        limit: int | None,
        more: Callable[[], bool] | None,
    ) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/plain; charset=utf-8"})
        await response.prepare(request)
        left = limit
        try:
            with file.open("rb") as source:
                source.seek(tail_offset(file, tail))
                while left is None or left > 0:
                    # Asked before reading: what a container wrote before its end is then always read.
                    going_on = more is not None and more()
                    block = source.read(_CHUNK if left is None else min(left, _CHUNK))
                    if block:
                        await response.write(block)
                        left = None if left is None else left - len(block)
                    elif going_on:
                        await asyncio.sleep(_LOOK_SECONDS)
                        if file.stat().st_size < source.tell():
                            source.seek(0)  # the log was cut
                    else:
                        break
            await response.write_eof()
        except (ConnectionError, FileNotFoundError):
            pass  # the reader left, or the pod did
        return response


def tls_context(certificate: Path, key: Path) -> ssl.SSLContext:
    """Raises ConfigurationFault naming the file."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(certificate, key)
    except (OSError, ssl.SSLError) as error:
        raise ConfigurationFault(f"--tls-cert {certificate}", f"not usable with {key}: {error}") from error
    return context


def _flag(request: web.Request, name: str) -> bool:
    return request.query.get(name, "").lower() in ("true", "1")


def _number(request: web.Request, name: str) -> int | None:
    text = request.query.get(name)
    if text is None or text == "":
        return None
    if int(text) < 0:
        raise ValueError(text)
    return int(text)
