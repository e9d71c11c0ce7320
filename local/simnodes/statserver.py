"""Statistics of all simulated nodes over HTTPS on the loopback address; the API server asks here for metrics.k8s.io.

GET /stats/summary?node=NAME                        the kubelet's Summary API of that node
GET /containerLogs/{namespace}/{pod}/{container}    says that a simulated container writes nothing
Authorization: Bearer <kubelet token>
"""

from __future__ import annotations

import hmac
import ssl
from collections.abc import Callable

from aiohttp import web


class StatisticsServer:
    """`summary` gives the body for a node, or raises KeyError."""

    def __init__(self, summary: Callable[[str], bytes], token: str) -> None:
        self._summary = summary
        self._token = token
        self._runner: web.AppRunner | None = None

    async def start(self, context: ssl.SSLContext) -> int:
        """Listen on 127.0.0.1; returns the port."""
        application = web.Application()
        application.router.add_get("/stats/summary", self._answer)
        application.router.add_get("/containerLogs/{namespace}/{pod}/{container}", self._refuse)
        self._runner = web.AppRunner(application, access_log=None)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0, ssl_context=context).start()
        return int(self._runner.addresses[0][1])

    async def stop(self) -> None:
        if self._runner:
            await self._runner.cleanup()

    async def _answer(self, request: web.Request) -> web.Response:
        if not self._allowed(request):
            return web.Response(status=401, text="Unauthorized\n")
        name = request.query.get("node", "")
        try:
            return web.Response(body=self._summary(name), content_type="application/json")
        except KeyError:
            return web.Response(status=404, text=f"{name[:253]!r} is not a simulated node here; give ?node=NAME\n")

    async def _refuse(self, request: web.Request) -> web.Response:
        if not self._allowed(request):
            return web.Response(status=401, text="Unauthorized\n")
        return web.Response(status=400, text="a simulated pod has no processes, and so no output\n")

    def _allowed(self, request: web.Request) -> bool:
        # A header's bytes that are not UTF-8 arrive as surrogates.
        given = request.headers.get("Authorization", "").encode(errors="surrogateescape")
        return hmac.compare_digest(given, f"Bearer {self._token}".encode())
