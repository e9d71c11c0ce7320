"""The wiring of the agent's process: what outlives a change of mode, and one agent after the other."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

import msgspec
import structlog

from agent.core.observe.knobs import RootKnobs
from agent.edge.discovery import find_layout
from agent.edge.fleet import FleetState, FleetWatch
from agent.files.statefile import StateFile
from agent.options import AgentOptions
from agent.run.assembly import RunningAgent
from agent.run.edges import ProcessContext
from agent.run.lifecycle import AgentLifecycle
from agent.run.tasks import clear_ready_file
from agent.settings import AgentSettings, PodOrigin, load_settings
from agent.version import VERSION
from kube.client import KubeClient

if TYPE_CHECKING:
    from agent.edge.kubelet import KubeletPods

log = structlog.get_logger()

_USER_AGENT = f"sublet-agent/{VERSION}"


async def run(options: AgentOptions) -> None:
    """Run until SIGTERM or SIGINT. Best-effort ceilings and weights stay in force afterwards."""
    if options.ready_file is not None:
        clear_ready_file(options.ready_file)
    settings = load_settings(options.settings)
    layout = find_layout(options.cgroup_root, options.kubepods, options.cgroup_driver)
    log.info("cgroups found", version=layout.version, driver=layout.driver.value, kubepods=layout.root)
    if RootKnobs.of(layout).memory_high is None:
        log.info("memory.high is not used: cgroup v1 has none", effect="eviction alone keeps memory in its threshold")
    async with contextlib.AsyncExitStack() as stack:
        state = StateFile(options.state_file)
        stack.callback(state.close)
        # On a node whose online pods want every CPU a start is short of CPU time: limits come before all else.
        ticked = asyncio.Event()
        client = await stack.enter_async_context(KubeClient.later(options.kubeconfig, _USER_AGENT, ticked.wait))
        kubelet = await stack.enter_async_context(_kubelet(settings))
        lifecycle = await stack.enter_async_context(_lifecycle(options, settings, client, state))
        lasting = ProcessContext(options, layout, state, client, kubelet, lifecycle, ticked)
        while not lifecycle.stopped:
            mode, ending = lifecycle.begin()
            own = msgspec.structs.replace(settings, mode=mode)
            async with contextlib.AsyncExitStack() as turn:
                await RunningAgent(lasting, own, turn).serve(turn, ending)
    log.info("stopped; best-effort ceilings and weights stay in force")


@contextlib.asynccontextmanager
async def _lifecycle(
    options: AgentOptions, settings: AgentSettings, client: KubeClient, state: StateFile
) -> AsyncIterator[AgentLifecycle]:
    """Until the fleet's switch is read, an agent that enforced before does so again, and lends nothing."""
    lifecycle = AgentLifecycle(settings.mode)
    lifecycle.stop_on_signals()
    if not settings.fleet:
        yield lifecycle
        return
    before = FleetState(lends=bool(state.originals), paused=True)
    watch = FleetWatch(client, options.node_name, settings.fleet, before, lifecycle.turned)
    lifecycle.follow(watch)
    watching = asyncio.create_task(watch.run())
    # It never ends by itself: an agent that no longer hears the switch is of no use.
    watching.add_done_callback(lambda _: lifecycle.stop())
    try:
        yield lifecycle
        if watching.done():
            watching.result()
    finally:
        watching.cancel()
        await asyncio.wait([watching])


@contextlib.asynccontextmanager
async def _kubelet(settings: AgentSettings) -> AsyncIterator[KubeletPods | None]:
    if settings.pods.source is not PodOrigin.KUBELET:
        yield None
        return
    from agent.edge.kubelet import KubeletPods

    kubelet = KubeletPods(settings.pods, _USER_AGENT)
    try:
        yield kubelet
    finally:
        await kubelet.close()
