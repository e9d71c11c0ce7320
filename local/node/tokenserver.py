"""What nodes serve to the API server: HTTPS on the loopback address, for whoever presents the kubelet token."""

from __future__ import annotations

import hmac
import ssl
from collections.abc import Awaitable, Callable, Mapping

from aiohttp import web

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class TokenServer:
    """GET of each path, answered by its handler; 401 without `Authorization: Bearer <token>`."""

    def __init__(self, token: str, handlers: Mapping[str, Handler]) -> None:
        self._expected = f"Bearer {token}".encode()
        self._handlers = handlers
        self._runner: web.AppRunner | None = None

    async def start(self, context: ssl.SSLContext | None) -> int:
        """Listen on 127.0.0.1; returns the port."""
        application = web.Application()
        for path, handler in self._handlers.items():
            application.router.add_get(path, self._guarded(handler))
        self._runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.2)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0, ssl_context=context).start()
        return int(self._runner.addresses[0][1])

    async def stop(self) -> None:
        if self._runner:
            await self._runner.cleanup()

    def _guarded(self, handler: Handler) -> Handler:
        async def answer(request: web.Request) -> web.StreamResponse:
            # A header's bytes that are not UTF-8 arrive as surrogates.
            given = request.headers.get("Authorization", "").encode(errors="surrogateescape")
            if not hmac.compare_digest(given, self._expected):
                return web.Response(status=401, text="Unauthorized\n")
            return await handler(request)

        return answer
