"""The wiring of this machine: what is read of it, what is limited on it, and the thread that waits for no tick."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec
import structlog

from agent.core.limit.brake import BrakePlan
from agent.core.limit.watch import Watch
from agent.core.observe.files import FILES, cpu_pressure_file
from agent.core.observe.knobs import RootKnobs, quota_knob
from agent.core.observe.layout import SERVICES, Layout
from agent.core.observe.observation import NetworkBytes
from agent.edge.brake import BrakeThread
from agent.edge.cgroupfs import CgroupReader
from agent.edge.discovery import Discovery, tree_of
from agent.edge.executor import KnobExecutor
from agent.edge.host import HostReader
from agent.edge.killer import Killer
from agent.edge.memorylevels import MemoryLevels
from agent.edge.memorymarks import memory_alarms
from agent.edge.memorypoll import MemoryPoll
from agent.edge.nodelock import NodeLock, best_effort_folder
from agent.edge.reclaimer import MemoryReclaimer
from agent.edge.stalltriggers import StallTriggers
from agent.edge.topology import TopologyReader
from agent.files.statefile import StateFile, originals_in
from agent.kill_thread import KillThread
from agent.last_resort_kill import LastResortKill
from agent.observer import NodeObserver, ObserverSources
from agent.run.heartbeat_guard import last_plan

log = structlog.get_logger()

_KUBELET_SECONDS = 2.0
_LOOKS_A_TOPOLOGY = 30


class MachinePaths(msgspec.Struct, frozen=True):
    """Where this machine's files are; `guard_file` is the state file of the agent's guard, `cpu_manager_state` the
    kubelet's."""

    cgroup_root: Path
    proc: Path
    sys: Path
    guard_file: Path
    cpu_manager_state: Path


class AgentMachine:
    """Every edge that reads or limits this machine.

    With `dry` nothing is ever written or killed, the kernel is asked to tell nothing, and an agent that enforces may
    run beside. `wake` starts a tick early. Whatever was opened is closed by `stack`; the lock is held as long.
    """

    def __init__(
        self,
        paths: MachinePaths,
        layout: Layout,
        state: StateFile,
        brake_interval_seconds: float,
        wake: Callable[[], None],
        stack: contextlib.AsyncExitStack,
        *,
        dry: bool,
    ) -> None:
        root, proc = paths.cgroup_root, paths.proc
        self._layout, self._state, self._dry = layout, state, dry
        self.cgroups = CgroupReader(root, FILES[layout.version])
        stack.callback(self.cgroups.close)
        self.cgroups.require(layout)
        if not dry:
            stack.callback(NodeLock(best_effort_folder(root, layout)).close)
        self.host = HostReader(proc, sys=paths.sys, services=root / cpu_pressure_file(layout.version, SERVICES))
        stack.callback(self.host.close)
        self.discovery = Discovery.watching(root, layout)
        stack.callback(self.discovery.close)
        self.topology = TopologyReader(paths.sys, proc, paths.cpu_manager_state)
        stack.callback(self.topology.close)
        self.cpu_info = self.topology.read()
        self.tree = tree_of(root, layout.version)
        self.executor = KnobExecutor(root, state, dry=dry, guarded=lambda: originals_in(paths.guard_file))
        stack.callback(self.executor.close)
        # Ticks have ended by then.
        stack.callback(self.executor.lower_raised)
        self.reclaimer = MemoryReclaimer(root, layout)
        stack.callback(self.reclaimer.close)
        knobs = RootKnobs.of(layout)
        # What somebody resets later is put right, even where the disk is full by then.
        self.executor.remember(*knobs.always)
        _tell_without_pids(self.executor.path(knobs.pids))
        killing = LastResortKill(MemoryLevels(root, layout, proc, paths.sys), KillThread(Killer(root, layout, proc)))
        alarms = () if dry else (StallTriggers(root, layout, proc), memory_alarms(root, layout), MemoryPoll(proc))
        self.brake = BrakeThread(
            root,
            layout,
            brake_interval_seconds,
            self.executor.lower,
            wake,
            alarms,
            None if dry else killing,
            look=self.executor.look,
        )

    def observer(self, network: Callable[[], Mapping[str, NetworkBytes]]) -> NodeObserver:
        """`network` is the newest traffic by pod uid."""
        sources = ObserverSources(
            directories=self.discovery,
            cgroups=self.cgroups,
            host=self.host,
            network=network,
            numa=lambda: self.topology.numa(self.cpu_info),
        )
        return NodeObserver(self._layout, sources, lambda: (time.time(), time.monotonic()))

    def arm_as_before(self, heartbeat: Path) -> BrakePlan | None:
        """Arm the brake with the plan that an agent before this one left; None where there is none to go by.

        It holds until a tick has measured.
        """
        quota = quota_knob(self._layout, self._layout.best_effort)
        last = None if self._dry or quota not in self._state.originals else last_plan(heartbeat, self._layout)
        held = self.executor.read(quota)
        if last is None or not isinstance(held, int):
            return None
        plan = last.plan.lowered_to(held)
        self.brake.arm(Watch(plan))
        return plan

    async def follow_topology(self) -> None:
        """CPUs may come and go, and the kubelet gives them to pods. Never returns."""
        for look in itertools.count(1):
            await asyncio.sleep(_KUBELET_SECONDS)
            read = self.topology.read if look % _LOOKS_A_TOPOLOGY == 0 else self.topology.refreshed
            # The kubelet's file lies on a disk, and one that does not answer holds no tick up.
            found = await asyncio.to_thread(read)
            if found is not None and found != self.cpu_info:
                self.cpu_info = found


def _tell_without_pids(file: Path) -> None:
    if not file.exists():
        effect = "a fork bomb in a batch pod may take every process of the node"
        log.warning("no pids controller", path=str(file), effect=effect, fix="enable it below kubepods")
