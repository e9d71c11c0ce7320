"""The link process as the scheduling process has it: started, fed, listened to, and started again when it ends."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import sys
import time
from typing import Any

import msgspec
import structlog

from model.fault import ConfigurationFault
from model.report import EvictionCost, PreemptionNotice
from scheduler.link.frames import Frames, FromLinkProcess, LeaderState, Serving, ToLinkProcess
from scheduler.link.newest_saved import NewestSaved
from scheduler.link.notices import NoticeBoard
from scheduler.ports import Clock, NodeReportSink

log = structlog.get_logger()

_FIRST_DELAY_SECONDS = 0.2
_LONGEST_DELAY_SECONDS = 10.0
_STEADY_SECONDS = 60.0
_STOP_SECONDS = 2.0
_SLICE = 64
_COSTS_A_SECOND = 1000
_RESTS = 9.0
"""Times as long as checkpoints took: a tenth of this process is theirs at most."""


class LinkChild:
    """Runs the link server beside this process, and keeps it running.

    Reports go to what `lead` was given; before that and after `stand_by` no stream is taken. As
    scheduler.ports.NoticeSender it passes notices on, again to a process that was started again. `restarts` counts
    those, `dropped` decisions lost on the way.
    """

    def __init__(self, serving: Serving, clock: Clock = time.time) -> None:
        self.restarts = 0
        self.dropped = 0
        self._serving = serving
        self._notices = NoticeBoard(clock)
        self._role = LeaderState()
        self._node_reports: NodeReportSink | None = None
        self._links: set[str] = set()
        self._pending = ToLinkProcess()
        self._wake = asyncio.Event()
        self._saved = NewestSaved()
        self._saving = asyncio.Event()
        self._listening: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._told_costs: dict[str, tuple[tuple[str, str, int, float | None], ...]] = {}

    @property
    def links(self) -> int:
        """How many agents are connected."""
        return len(self._links)

    async def address(self) -> str:
        """Where it listens, once it does. Raises ConfigurationFault where it cannot."""
        return await asyncio.shield(self._listening)

    def lead(self, node_reports: NodeReportSink, diagnostics: str) -> None:
        """Take agents' streams; answer diagnostics from `diagnostics`, a loopback address of ours."""
        self._node_reports = node_reports
        self._play(LeaderState(True, "", diagnostics))

    def stand_by(self, leader: str) -> None:
        """Close all streams and send their agents to `leader`, empty where nobody is known to lead."""
        if self._role.leading or self._role.leader != leader:
            self._play(LeaderState(False, leader))
        self._lose_links()
        self._saved.take()
        self._node_reports = None

    def notify(self, node: str, notice: PreemptionNotice) -> None:
        """scheduler.ports.NoticeSender."""
        self._notices.put(node, notice)
        self._say(ToLinkProcess(notices={notice.pod_uid: (node, notice)}))

    def withdraw(self, node: str, pod_uid: str) -> None:
        """scheduler.ports.NoticeSender."""
        self._notices.remove(node, pod_uid)
        self._say(ToLinkProcess(notices={pod_uid: (node, None)}))

    async def run(self) -> None:
        """Never returns; cancel it to end the process. Raises ConfigurationFault where it cannot serve at all."""
        delay = _FIRST_DELAY_SECONDS
        while True:
            began = time.monotonic()
            try:
                await self._live()
            except OSError as error:
                # No room for one more process is no reason to end the one that schedules.
                log.error("link process not started", error=str(error))
            except ConfigurationFault as fault:
                if not self._listening.done():
                    self._listening.set_exception(fault)
                    self._listening.exception()  # this method raises it too: nobody need ask for the address
                    raise
                log.error("link process cannot serve", error=str(fault))
            finally:
                self._lose_links()
            self.restarts += 1
            if time.monotonic() - began > _STEADY_SECONDS:
                delay = _FIRST_DELAY_SECONDS
            log.error("link process ended; starting it again", restarts=self.restarts, delay_seconds=delay)
            await asyncio.sleep(delay)
            delay = min(delay * 2, _LONGEST_DELAY_SECONDS)

    async def _live(self) -> None:
        """One life of the process."""
        ours, theirs = socket.socketpair()
        with contextlib.closing(theirs):
            process = await self._start(theirs.fileno())
        frames = await Frames.over(ours, FromLinkProcess)
        helpers = [asyncio.create_task(work) for work in (self._write(frames), self._sweep(), self._save())]
        try:
            open_notices: dict[str, tuple[str, PreemptionNotice | None]]
            open_notices = {notice.pod_uid: (node, notice) for node, notice in self._notices.all()}
            self._pending = ToLinkProcess()
            self._say(ToLinkProcess(role=self._role, notices=open_notices))
            while (frame := await frames.read()) is not None:
                self._take(frame)
        finally:
            for task in helpers:
                task.cancel()
            frames.close()
            await _end(process)

    async def _start(self, descriptor: int) -> Any:
        settings = msgspec.json.encode(self._serving).decode()
        # -P: what lies in the folder that the scheduler was started in is not imported.
        return await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", "scheduler.link_process", str(descriptor), settings),
            stdin=asyncio.subprocess.DEVNULL,
            pass_fds=(descriptor,),
            # gRPC writes a line for each handshake that fails, so whoever knocks could fill the log.
            env={"GRPC_VERBOSITY": "ERROR"} | os.environ,
        )

    def _take(self, frame: FromLinkProcess) -> None:
        """What agents said, to who keeps the reports; what an agent said to a former leader is nobody's."""
        if frame.trouble is not None:
            raise ConfigurationFault(frame.trouble.where, frame.trouble.what, frame.trouble.fix)
        if frame.listening:
            self._listens(frame.listening)
        self.dropped += frame.dropped
        if self._node_reports is not None:
            self._hand_in(frame, self._node_reports)

    def _listens(self, address: str) -> None:
        """The port stays the same over restarts, since agents know it."""
        self._serving = msgspec.structs.replace(self._serving, listen=address)
        if not self._listening.done():
            self._listening.set_result(address)

    def _hand_in(self, frame: FromLinkProcess, node_reports: NodeReportSink) -> None:
        for node, up in frame.links.items():
            self._links.add(node) if up else self._links.discard(node)
            self._told_costs.pop(node, None)
            (node_reports.connected if up else node_reports.disconnected)(node)
        for node, report in frame.reports.items():
            node_reports.report(node, report)
        if frame.saved:
            self._saved.put(frame.saved)
            self._saving.set()
        for node, decision in frame.decisions:
            node_reports.decision(node, decision)
        if frame.links:
            self._tell_costs(node_reports, [node for node, up in frame.links.items() if up])

    async def _save(self) -> None:
        """Checkpoints, with rests: a gang of thousands is gone through for each batch, whoever tells how often."""
        while True:
            await self._saving.wait()
            self._saving.clear()
            began, told = time.monotonic(), self._saved.take()
            if self._node_reports is not None:
                self._node_reports.checkpoints(told)
            await asyncio.sleep((time.monotonic() - began) * _RESTS)

    async def _sweep(self) -> None:
        """Costs of every linked node, a few at a time so that no turn waits, at most a thousand nodes a second."""
        while True:
            nodes = sorted(self._links)
            for start in range(0, len(nodes), _SLICE):
                if self._node_reports is not None:
                    self._tell_costs(self._node_reports, nodes[start : start + _SLICE])
                await asyncio.sleep(_SLICE / _COSTS_A_SECOND)
            await asyncio.sleep(self._serving.costs_interval_seconds)

    def _tell_costs(self, node_reports: NodeReportSink, nodes: list[str]) -> None:
        """Only what changed; that a checkpoint grew older is no change."""
        news: dict[str, tuple[EvictionCost, ...]] = {}
        now = time.monotonic()
        for node in nodes:
            costs = node_reports.costs(node)
            key = tuple(_key(cost, now) for cost in costs)
            if self._told_costs.get(node, ()) != key:
                self._told_costs[node] = key
                news[node] = costs
        if news:
            self._say(ToLinkProcess(costs=news))

    def _play(self, role: LeaderState) -> None:
        self._role = role
        self._say(ToLinkProcess(role=role))

    def _say(self, more: ToLinkProcess) -> None:
        """Join what waits: the newest role, the newest costs of a node, the newest word on a pod."""
        if more.role is not None:
            self._pending = msgspec.structs.replace(self._pending, role=more.role)
        self._pending.costs.update(more.costs)
        self._pending.notices.update(more.notices)
        self._wake.set()

    async def _write(self, frames: Frames[FromLinkProcess]) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            frame, self._pending = self._pending, ToLinkProcess()
            await frames.write(frame)

    def _lose_links(self) -> None:
        self._told_costs.clear()
        for node in sorted(self._links):
            if self._node_reports is not None:
                self._node_reports.disconnected(node)
        self._links.clear()


def _key(cost: EvictionCost, now: float) -> tuple[str, str, int, float | None]:
    saved = None if cost.checkpoint_age_seconds is None else round(now - cost.checkpoint_age_seconds)
    return (cost.pod_uid, cost.gang, cost.members_above_minimum, saved)


async def _end(process: Any) -> None:
    """It ends by itself once we hang up; one that hangs is killed."""
    try:
        await asyncio.wait_for(process.wait(), _STOP_SECONDS)
    except TimeoutError:
        process.kill()
        await process.wait()
