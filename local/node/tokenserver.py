"""What nodes serve to the API server, and to nobody else: HTTPS on the node's address."""

from __future__ import annotations

import ssl
from collections.abc import Awaitable, Callable, Mapping

from aiohttp import web

from local.node.callers import Admits

LOG_ADDRESS = "127.0.0.1"
_LINE_BYTES = 1 << 20  # as Go's server takes; a command to run stands in the path
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class TokenServer:
    """GET of each path, answered by its handler; 401 for whom `admits` does not admit.

    `streams` answer POST as well, and take the verb `create`: a websocket, which begins with GET, runs commands.
    """

    def __init__(
        self, admits: Admits, handlers: Mapping[str, Handler], streams: Mapping[str, Handler] | None = None
    ) -> None:
        self._admits = admits
        self._streams = streams or {}
        self._handlers = {**handlers, **self._streams}
        self._runner: web.AppRunner | None = None

    async def start(self, context: ssl.SSLContext | None, address: str = LOG_ADDRESS) -> int:
        """Returns the port."""
        application = web.Application()
        for path, handler in self._handlers.items():
            verb = "create" if path in self._streams else "get"
            application.router.add_get(path, self._guarded(handler, verb))
        for path, handler in self._streams.items():
            application.router.add_post(path, self._guarded(handler, "create"))
        self._runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.2, max_line_size=_LINE_BYTES)
        await self._runner.setup()
        await web.TCPSite(self._runner, address, 0, ssl_context=context).start()
        return int(self._runner.addresses[0][1])

    async def stop(self) -> None:
        if self._runner:
            await self._runner.cleanup()

    def _guarded(self, handler: Handler, verb: str) -> Handler:
        async def answer(request: web.Request) -> web.StreamResponse:
            if not await self._admits(request, verb):
                return web.Response(status=401, text="Unauthorized\n")
            return await handler(request)

        return answer
