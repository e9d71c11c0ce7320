"""The nodes' HTTPS servers, for the API server alone, each on its node's address."""

from __future__ import annotations

import contextlib
import ssl
from collections.abc import Iterator, Mapping

from aiohttp import web

from embedded.node.ports import Handler
from kube.connection_limit import ConnectionBounds
from kube.listener import HandshakeTimeouts, TlsListener
from local.node.callers import Admits

LOG_ADDRESS = "127.0.0.1"
_LINE_BYTES = 1 << 20  # as Go's server takes; a command to run stands in the path
_BOUNDS = ConnectionBounds(connections=1024, greetings=64)
_WAITS = HandshakeTimeouts(handshake_seconds=10.0, first_seconds=10.0)
"""For the API server, which connects to ask at once; whoever else of this machine does costs little."""


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
        self._listener: TlsListener | None = None

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
        if context is None:
            await web.TCPSite(self._runner, address, 0).start()
            return int(self._runner.addresses[0][1])
        server = self._runner.server
        assert server is not None
        self._listener = TlsListener(server, context, _BOUNDS, _WAITS)
        self._listener.listen(address, 0)
        return self._listener.port

    async def stop(self) -> None:
        if self._listener:
            await self._listener.stop_listening()
        if self._runner:
            await self._runner.cleanup()
        if self._listener:
            self._listener.cut_all()

    @contextlib.contextmanager
    def _busy(self, request: web.Request) -> Iterator[None]:
        with self._listener.busy(request.protocol) if self._listener else contextlib.nullcontext():
            yield

    def _guarded(self, handler: Handler, verb: str) -> Handler:
        async def answer(request: web.Request) -> web.StreamResponse:
            with self._busy(request):
                if not await self._admits(request, verb):
                    return web.Response(status=401, text="Unauthorized\n")
                return await handler(request)

        return answer
