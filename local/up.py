"""The embedded cluster as one object: `async with Cluster(...)` and everything runs; leave it and nothing is left.

    run directory → secrets → API server → kubeconfigs → node → scheduler → agent

Scheduler and agent stop first, while the API server can still hear them; the node then ends its pods.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType

from local.leftovers import CGROUP_ROOT, end_processes, sweep
from local.node.cgroups import UnsuitableKernel, discover
from local.node.ownership import started_ticks
from local.programs import Choices, api_address, embedded_programs, write_kubeconfigs, write_secrets
from local.rundir import DEFAULT_DIRECTORY, Endpoints, RunDirectory
from local.supervisor import Supervisor
from model.fault import KernelFault

_STOP_ORDER = ("scheduler", "agent", "node", "apiserver")


def default_node_name() -> str:
    """This machine's host name as Kubernetes allows it."""
    return socket.gethostname().split(".")[0].lower().replace("_", "-") or "localhost"


def require_cgroups(command: str, root: Path = CGROUP_ROOT) -> None:
    """Raises KernelFault, before anything is made, where this machine or this user cannot run a cluster."""
    try:
        discover(root, "")
    except UnsuitableKernel as fault:
        fix = f"{fault.where}: {fault.what}; {fault.fix}"
        raise KernelFault(command, "needs root and writable cgroup v1 controllers", fix) from fault


class Cluster:
    """A running embedded cluster; entering raises a Fault when a program does not come up.

    `tell` gets one line for each event a person should know of. Several clusters may run side by side, each in
    its own directory.
    """

    def __init__(
        self,
        directory: Path = DEFAULT_DIRECTORY,
        node_name: str = "",
        *,
        agent_settings: Path | None = None,
        agent_journal: Path | None = None,
        tell: Callable[[str], None] = lambda line: None,
    ) -> None:
        self._run = RunDirectory(directory)
        name = node_name or default_node_name()
        self._choices = Choices(name, secrets.token_hex(3), agent_settings, agent_journal)
        self._tell = tell
        self._tokens: dict[str, str] = {}
        self._supervisor = Supervisor(self._run, embedded_programs(self._run, self._choices), tell, self._became_ready)
        self._held = ExitStack()

    @property
    def directory(self) -> Path:
        return self._run.path

    @property
    def kubeconfig(self) -> Path:
        return self._run.kubeconfig

    @property
    def cgroup_name(self) -> str:
        """The name of this cluster's top cgroup in every controller."""
        return f"sublet-{self._choices.id}"

    @property
    def endpoints(self) -> Endpoints:
        """Where everything is reached at this moment."""
        bound = self._supervisor.bound
        agent, scheduler = bound.get("agent", {}), bound.get("scheduler", {})
        programs = self._supervisor.pids
        return Endpoints(
            id=self._choices.id,
            directory=str(self._run.path),
            kubeconfig=str(self._run.kubeconfig),
            node=self._choices.node_name,
            api=f"https://{api_address(bound)}" if "apiserver" in bound else "",
            cgroup_prefix=bound.get("node", {}).get("cgroup_prefix", f"/{self.cgroup_name}"),
            agent_grpc=agent.get("grpc", ""),
            agent_http=agent.get("http", ""),
            agent_socket=agent.get("socket", ""),
            scheduler_link=scheduler.get("link", ""),
            scheduler_grpc=scheduler.get("grpc", ""),
            scheduler_http=scheduler.get("http", ""),
            up_pid=os.getpid(),
            programs=programs,
            started_ticks={name: started_ticks(pid) or 0 for name, pid in programs.items()},
        )

    async def __aenter__(self) -> Cluster:
        self._held.enter_context(self._run)
        try:
            await self._clean_up_after_previous_run()
            self._tokens = write_secrets(self._run, self._choices)
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
        await self._supervisor.wait()

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
            await self._supervisor.stop(_STOP_ORDER)
            await self._remove_cgroups(self.cgroup_name)
        finally:
            self._held.close()

    def _became_ready(self, program: str) -> None:
        if program == "apiserver":
            write_kubeconfigs(self._run, api_address(self._supervisor.bound), self._tokens)
        self._run.publish(self.endpoints)

    async def _clean_up_after_previous_run(self) -> None:
        previous = self._run.previous
        if previous is None:
            return
        await end_processes({pid: previous.started_ticks.get(name, 0) for name, pid in previous.programs.items()})
        await self._remove_cgroups(f"sublet-{previous.id}")

    async def _remove_cgroups(self, name: str) -> None:
        if resisted := await sweep(name):
            raise KernelFault(str(resisted[0]), "this cgroup could not be removed", "see what runs in cgroup.procs")
