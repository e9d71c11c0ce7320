"""The kernel a node works with, real or simulated, and the program that plays the simulated one."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import structlog

from embedded.cgroups.ceilings import Ceiling, quota_us
from embedded.cgroups.hierarchy import Cgroups, discover
from embedded.cgroups.layout import Layout
from embedded.cgroups.ownership import Owner
from embedded.child_process import Child, how_it_ended
from embedded.cpu_lists import format_cpus
from embedded.node.machine.facts import cpus_of_machine
from embedded.node.machine.share import Share, siblings
from embedded.node.settings import Kernel, NodeSettings
from embedded.simkernel.process_table import ProcessTable
from embedded.simkernel.tree import SimulatedCgroups, make_root, simulated_layout

log = structlog.get_logger()

_READY_SECONDS, _STOP_SECONDS, _PAUSE_SECONDS = 15.0, 3.0, 0.5


def open_cgroups(settings: NodeSettings) -> Cgroups:
    """Raises UnsuitableKernel, ConfigurationFault."""
    if settings.kernel is Kernel.REAL:
        return Cgroups(discover(settings.cgroup_root, settings.id, settings.cgroup_driver))
    make_root(settings.cgroup_root, format_cpus(cpus_of_machine()))
    layout = simulated_layout(settings.cgroup_root, settings.id, settings.cgroup_driver)
    return SimulatedCgroups(layout, ProcessTable())


def neighbours(settings: NodeSettings, own: Cgroups) -> dict[str, Cgroups]:
    """All nodes of this machine by id, for reading; a simulated kernel has a tree for each, side by side."""
    return {id_: own if id_ == settings.id else _reader(settings, id_, own.layout) for id_ in _ids(settings)}


def confine(cgroups: Cgroups, share: Share, owner: Owner) -> None:
    """Keep everything of the node within its share: its own CPUs where cgroups can, CPU time and memory.

    Where that is a part of a CPU's time, a quota bounds it on cgroup v2. On v1 none does, since the kernel then refuses
    every pod whose own quota is larger: nodes there have equal weights, which divide what all of them want.
    Raises KernelFault.
    """
    confined = "cpuset" in cgroups.layout.controllers
    if confined and share.cpus != cpus_of_machine():
        _keep_on(cgroups, share, owner)
    reach_millis = 1000 * len(share.cpus if confined else cpus_of_machine())
    timed = cgroups.layout.version == 2 and share.bound_cpu_millis < reach_millis
    bound = Ceiling(0, quota_us(share.bound_cpu_millis) if timed else None, share.bound_memory_bytes)
    for write in cgroups.knobs.ceiling(bound):
        # The weight beside everything else on this machine stays the kernel's default.
        if (write.controller, write.file) != cgroups.knobs.shares_file:
            cgroups.write(write.controller, cgroups.layout.prefix, write.file, write.text)


def _keep_on(cgroups: Cgroups, share: Share, owner: Owner) -> None:
    prefix = cgroups.layout.prefix
    # v1 refuses a parent fewer CPUs than a child has.
    for path in (f"{prefix}/{owner.claim}", prefix):
        cgroups.write("cpuset", path, "cpuset.cpus", format_cpus(share.cpus))


class Simulator:
    """Keeps the simulating program running: when it ends, its successor lets go whom it had stopped."""

    def __init__(self, settings: NodeSettings) -> None:
        self._root = settings.cgroup_root
        self._run_dir = settings.run_dir
        self._child: Child | None = None
        self._keeper: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Simulator:
        """Raises ProgramFault."""
        self._child = await self._start()
        self._keeper = asyncio.create_task(self._keep(self._child))
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._keeper is not None:
            self._keeper.cancel()
            await asyncio.gather(self._keeper, return_exceptions=True)
        if self._child is not None:
            await self._child.stop(_STOP_SECONDS)

    async def _keep(self, child: Child) -> None:
        while True:
            await child.wait()
            log.error("simulated kernel ended, starting it again", how=how_it_ended(child.exit_code))
            await asyncio.sleep(_PAUSE_SECONDS)
            self._child = child = await self._start()

    async def _start(self) -> Child:
        ready = self._run_dir / "simkernel.json"
        argv = [sys.executable, "-P", "-m", "embedded.simkernel"]
        argv += ["--root", str(self._root), "--owner", str(os.getpid())]
        child = await Child.start(
            "simkernel", [*argv, "--ready-file", str(ready)], self._run_dir / "simkernel.log", ready
        )
        try:
            await child.wait_ready(_READY_SECONDS)
        except BaseException:
            await child.stop(_STOP_SECONDS)
            raise
        return child


def _ids(settings: NodeSettings) -> tuple[str, ...]:
    return siblings(settings.id, settings.share)


def _reader(settings: NodeSettings, id_: str, own: Layout) -> Cgroups:
    root = settings.cgroup_root
    if settings.kernel is Kernel.SIMULATED:
        return Cgroups(simulated_layout(Path(root).parent / id_, id_, own.driver))
    return Cgroups(Layout(own.root, id_, own.controllers, own.version, own.driver))
