"""Statistics of all simulated nodes over HTTPS on the loopback address; the API server asks here for metrics.k8s.io.

GET /stats/summary?node=NAME                        the kubelet's Summary API of that node
GET /containerLogs/{namespace}/{pod}/{container}    says that a simulated container writes nothing
GET or POST /exec/…, /attach/…, /portForward/…      say that it has no processes
Authorization: Bearer <kubelet token>
"""

from __future__ import annotations

from collections.abc import Callable

from aiohttp import web

from local.node.callers import token_callers
from local.node.token_server import TokenServer


class StatisticsServer(TokenServer):
    """`summary` gives the body for a node, or raises KeyError."""

    def __init__(self, summary: Callable[[str], bytes], token: str) -> None:
        self._summary = summary
        routes = {"/stats/summary": self._answer, "/containerLogs/{namespace}/{pod}/{container}": self._refuse}
        ways = ("/exec/{namespace}/{pod}/{container}", "/attach/{namespace}/{pod}/{container}")
        streams = dict.fromkeys((*ways, "/portForward/{namespace}/{pod}"), self._refuse_entry)
        super().__init__(token_callers(token), routes, streams)

    async def _answer(self, request: web.Request) -> web.Response:
        name = request.query.get("node", "")
        try:
            return web.Response(body=self._summary(name), content_type="application/json")
        except KeyError:
            return web.Response(status=404, text=f"{name[:253]!r} is not a simulated node here; give ?node=NAME\n")

    async def _refuse(self, request: web.Request) -> web.Response:
        return web.Response(status=400, text="a simulated pod has no processes, and so no output\n")

    async def _refuse_entry(self, request: web.Request) -> web.Response:
        return web.Response(status=400, text="a simulated pod has no processes: there is nothing to lead into\n")
