"""The link server as a process of its own: thousands of streams do not cost the scheduling loop its interpreter.

Started by scheduler.edge.linkchild with one end of a socket pair. It decides nothing: what agents say goes up in
frames, what they are to know comes down. It ends when the other end does.
"""

from __future__ import annotations

from kube.logs import LogFormat, configure

# isort: split
# Above all others, since whoever loads structlog first decides whether rich comes with it.

import asyncio
import contextlib
import resource
import signal
import socket
import sys
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import msgspec
import structlog

from kube.client import KubeClient
from kube.grpc_server import Listener, tls_server
from kube.memory import give_memory_back
from kube.tls import ServerCertificate, TlsFiles
from model.fault import ConfigurationFault
from scheduler.edge.call_authorization import CallAuthorization
from scheduler.edge.forwarding import DiagnosticsForwarder
from scheduler.edge.link import NodeLinkServicer
from scheduler.link.callers import Callers, ReviewedCallers, TokenTable
from scheduler.link.frames import Frames, FromLinkProcess, LeaderState, Serving, ServingFault, ToLinkProcess
from scheduler.link.remote_reports import RemoteNodeReports
from scheduler.link.stream import StreamLimits

log = structlog.get_logger()

_GATHER_SECONDS = 0.02
_STOP_SECONDS = 0.2
_TRIM_SECONDS = 30.0


class LinkServer:
    """The servicers behind the outward port, told by frames what to say."""

    def __init__(self, serving: Serving, callers: Callers) -> None:
        self.node_reports = RemoteNodeReports(time.time)
        self._serving = serving
        self._callers = callers
        self._forwarder = DiagnosticsForwarder()
        limits = StreamLimits(costs_interval_seconds=serving.costs_interval_seconds)
        self._link = NodeLinkServicer(self.node_reports, callers, time.time, limits)

    async def listen(self) -> Listener:
        """Not leading at first. Raises ConfigurationFault."""
        serving = self._serving
        certificate = ServerCertificate(TlsFiles(Path(serving.certificate), Path(serving.key)))
        servicers = (self._link, self._forwarder)
        authorization = CallAuthorization(self._callers)
        listener = await tls_server(serving.listen, certificate, authorization, servicers, serving.calls)
        await listener.serving(False)
        await listener.start()
        return listener

    async def obey(self, frame: ToLinkProcess, listener: Listener) -> None:
        """Take in what came down; a change of role counts before all else."""
        if frame.role is not None:
            await self._play(frame.role, listener)
        self.node_reports.learn(frame.costs)
        for uid, (node, notice) in frame.notices.items():
            if notice is None:
                self._link.withdraw(node, uid)
            else:
                self._link.notify(node, notice)

    async def _play(self, role: LeaderState, listener: Listener) -> None:
        if role.leading:
            self._link.lead()
        else:
            self._link.stand_by(role.leader)
            self.node_reports.forget()
        await self._forwarder.aim(role.diagnostics)
        await listener.serving(role.leading)


@contextlib.asynccontextmanager
async def _callers(serving: Serving) -> AsyncIterator[Callers]:
    """Raises ConfigurationFault."""
    if serving.tokens:
        yield TokenTable.read(Path(serving.tokens))
        return
    kubeconfig = Path(serving.kubeconfig) if serving.kubeconfig else None
    async with await KubeClient.connect(kubeconfig, "sublet-scheduler-link") as client:
        yield ReviewedCallers(client, serving.audience, serving.agent)


async def _serve(serving: Serving, connection: socket.socket) -> None:
    """Until the scheduling process hangs up."""
    frames = await Frames.over(connection, ToLinkProcess)
    try:
        async with _callers(serving) as callers:
            server = LinkServer(serving, callers)
            await _obey(server, await server.listen(), frames)
    except ConfigurationFault as fault:
        await frames.write(FromLinkProcess(trouble=ServingFault(fault.where, fault.what, fault.fix)))


async def _obey(server: LinkServer, listener: Listener, frames: Frames[ToLinkProcess]) -> None:
    await frames.write(FromLinkProcess(listening=listener.address))
    beside = [asyncio.create_task(work) for work in (_tell(server.node_reports, frames), _give_memory_back())]
    try:
        while (frame := await frames.read()) is not None:
            await server.obey(frame, listener)
    finally:
        for task in beside:
            task.cancel()
        await listener.stop(_STOP_SECONDS)


async def _tell(node_reports: RemoteNodeReports, frames: Frames[ToLinkProcess]) -> None:
    """What agents said, gathered for a moment: the scheduling loop is woken once for many."""
    while await frames.write(await node_reports.take()):
        await asyncio.sleep(_GATHER_SECONDS)


async def _give_memory_back() -> None:
    """For ever: thousands who connect and say nothing cost 40 KiB each until gRPC cuts them off, and nothing then."""
    while True:
        await asyncio.sleep(_TRIM_SECONDS)
        give_memory_back()


def main(argv: Sequence[str]) -> int:
    """`FD SETTINGS`: the inherited socket, and frames.Serving as JSON."""
    # Ctrl-C goes to all processes of a terminal, a service manager's SIGTERM to all of a service; ours ends with its
    # parent, after the streams were closed in order.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    # Each agent is a descriptor, and services start with 1024.
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    serving = msgspec.json.decode(argv[1], type=Serving)
    configure(LogFormat.CONSOLE if serving.console else LogFormat.JSON)
    with contextlib.closing(socket.socket(fileno=int(argv[0]))) as connection:
        asyncio.run(_serve(serving, connection))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
