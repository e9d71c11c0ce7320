"""The embedded cluster as one object: `async with Cluster(...)` and everything runs; leave it and nothing is left.

    run directory → secrets → API server → kubeconfigs → nodes, scheduler, admission → agents

Scheduler and agent stop first, while the API server can still hear them; a node then ends its pods.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType

from embedded.cgroups.ownership import boot_id, started_ticks
from local.accounts import write_kubeconfigs, write_secrets
from local.choices import Choices, NodeSlot, ids_of
from local.control_plane import ControlPlane
from local.joining import Joining
from local.leftovers import NodeCgroups, end_processes
from local.programkind import ProgramKind
from local.programs import (
    api_address,
    embedded_programs,
    static_programs,
    stop_order,
    write_scheduler_settings,
)
from local.rundir import Endpoints, NodeEndpoints, RunDirectory
from local.staticprograms import write_programs
from local.supervisor import Supervisor
from model.fault import KernelFault


class RunningCluster:
    """A running embedded cluster; entering raises a Fault when a program does not come up.

    `tell` gets one line for each event a person should know of. Several clusters may run side by side, each in
    its own directory.
    """

    def __init__(
        self,
        directory: Path,
        choices: Choices,
        tell: Callable[[str], None] = lambda line: None,
    ) -> None:
        self._run = RunDirectory(directory)
        self._choices = choices
        self._tell = tell
        self._tokens: dict[str, str] = {}
        self._programs = embedded_programs(self._run, self._choices)
        self._supervisor = Supervisor(self._run, self._programs, tell, self._became_ready, lived=self._show_programs)
        self._held = ExitStack()
        self._joining = Joining(self._run, choices, tell) if choices.join else None
        self._control_plane = ControlPlane(self._run, choices, tell) if choices.apiserver else None

    @property
    def directory(self) -> Path:
        return self._run.path

    @property
    def kubeconfig(self) -> Path:
        return self._run.kubeconfig

    @property
    def trees(self) -> NodeCgroups:
        """The cgroups of this cluster's nodes."""
        return NodeCgroups(ids_of(self._choices.id), self._run.kernels)

    @property
    def endpoints(self) -> Endpoints:
        """Where everything is reached at this moment."""
        bound, programs = self._supervisor.bound, self._supervisor.pids
        scheduler = bound.get(ProgramKind.SCHEDULER, {})
        nodes = tuple(self._node_endpoints(slot) for slot in self._choices.slots)
        first = nodes[0] if nodes else NodeEndpoints("")
        return Endpoints(
            id=self._choices.id,
            directory=str(self._run.path),
            kubeconfig=str(self._run.kubeconfig),
            node=first.name,
            api=f"https://{api_address(bound)}" if ProgramKind.APISERVER in bound else "",
            cgroup_prefix=first.cgroup_prefix,
            agent_grpc=first.agent_grpc,
            agent_http=first.agent_http,
            agent_socket=first.agent_socket,
            scheduler_link=scheduler.get("link", ""),
            scheduler_grpc=scheduler.get("grpc", ""),
            scheduler_http=scheduler.get("http", ""),
            up_pid=os.getpid(),
            up_ticks=started_ticks(os.getpid()) or 0,
            boot_id=boot_id(),
            programs=programs,
            started_ticks={name: started_ticks(pid) or 0 for name, pid in programs.items()},
            nodes=nodes,
        )

    def _node_endpoints(self, slot: NodeSlot) -> NodeEndpoints:
        node = self._supervisor.bound.get(f"node{slot.suffix}", {})
        agent = self._supervisor.bound.get(f"agent{slot.suffix}", {})
        return NodeEndpoints(
            name=slot.name,
            kernel=node.get("kernel", ""),
            cgroup_root=node.get("cgroup_root", ""),
            cgroup_version=node.get("cgroup_version", 0),
            cgroup_prefix=node.get("cgroup_prefix", ""),
            kubepods=node.get("kubepods", ""),
            agent_grpc=agent.get("grpc", ""),
            agent_http=agent.get("http", ""),
            agent_socket=agent.get("socket", ""),
        )

    async def __aenter__(self) -> RunningCluster:
        self._held.enter_context(self._run)
        try:
            await self._clean_up_after_previous_run()
            self._tokens = write_secrets(self._run, self._choices)
            write_scheduler_settings(self._run, self._choices)
            if self._joining is not None:
                self._supervisor.bound[ProgramKind.APISERVER] = await self._joining.join()
            if self._control_plane is not None:
                self._supervisor.bound[ProgramKind.APISERVER] = await self._control_plane.start(self._tokens)
            await self._supervisor.start()
        except BaseException:
            await self._stop()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stop()

    async def wait(self) -> None:
        """Return never; raises ProgramFault when the cluster has come to its end."""
        waiting = [asyncio.create_task(self._supervisor.wait())]
        if self._control_plane is not None:
            waiting.append(asyncio.create_task(self._control_plane.wait()))
        try:
            ended, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            ended.pop().result()
        finally:
            for task in waiting:
                task.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)

    async def _stop(self) -> None:
        """Clean up to the end even where this task is cancelled meanwhile: it is bounded, and must not be left half."""
        work = asyncio.create_task(self._stop_everything())
        cancelled = False
        while not work.done():
            try:
                await asyncio.shield(work)
            except asyncio.CancelledError:
                cancelled = True
        work.result()
        if cancelled:
            raise asyncio.CancelledError

    async def _stop_everything(self) -> None:
        try:
            await self._supervisor.stop(stop_order(self._programs))
            await _remove(self.trees)
            if self._joining is not None:
                await self._joining.leave()
            if self._control_plane is not None:
                await self._control_plane.leave()
        finally:
            self._held.close()

    def _became_ready(self, program: str) -> None:
        if program == ProgramKind.APISERVER:
            write_kubeconfigs(self._run, api_address(self._supervisor.bound), self._tokens)
        self._run.publish(self.endpoints)

    def _show_programs(self) -> None:
        """For the nodes, which look at the file each second."""
        known = static_programs(self._run, self._programs, self._supervisor.bound, self._supervisor.lives)
        try:
            write_programs(self._run.static_programs, known)
        except OSError as error:
            # They run all the same; the nodes then show what was true before.
            self._tell(f"{self._run.static_programs}: not written: {error.strerror}")

    async def _clean_up_after_previous_run(self) -> None:
        previous = self._run.previous
        if previous is None:
            return
        await end_processes({pid: previous.started_ticks.get(name, 0) for name, pid in previous.programs.items()})
        await _remove(NodeCgroups(ids_of(previous.id), self._run.kernels))
        self._run.forget_previous()


async def _remove(trees: NodeCgroups) -> None:
    if resisted := await trees.sweep():
        raise KernelFault(str(resisted[0]), "this cgroup could not be removed", "see what runs in cgroup.procs")
