"""The demonstration from start to end: a cluster, a service, and the same batch work run in two ways beside it.

start · service · alone · today's way · remove it · base load until the gang runs · Sublet's way · stop · check
"""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from embedded.node.settings import Kernel
from kube.client import KubeClient
from kube.objects import Pod
from local.choices import Choices
from local.demo import manifests
from local.demo.load import Segment
from local.demo.measure import OtherWork, ProcessMark, describe_machine, mark_process, read_cpu_time, still_alive
from local.demo.phase import PhaseContext, raise_if_speed_changed, raise_if_spoiled, run_phase, start_generator
from local.demo.results import (
    ALONE,
    BUSY_PCT,
    CALM_SECONDS,
    SUBLET,
    TODAY,
    Checks,
    DemoResult,
    Inconclusive,
    PhaseResult,
    spared,
)
from local.demo.service import LOOPBACK, ROUNDS, answers, cost_of_request, free_port, load_for
from local.faults import FAULTS
from local.leftovers import NodeCgroups
from local.up import RunningCluster
from model.fault import ConfigurationFault, KubernetesFault

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

_GANG, _BATCH_PODS = "app=training", 4
_BATCH = "app in (nightly,training)"
_BATCH_FILES = ("2-batch-job.yaml", "3-gang.yaml")
_TODAY_FILE = "today/batch.yaml"
_START_BOUND, _RUN_BOUND, _GONE_BOUND = 15.0, 25.0, 10.0
_WATCH_SECONDS = 2.0
# Condition times have whole seconds: one round of binding may straddle a second's end, or two.
_ONE_ROUND_SECONDS = 2.0
# The phases are seconds long, and so must be the window that online usage is averaged over.
_SETTINGS = {"colocation": {"aggregate_seconds": 10.0}}
SETTINGS_TOLD = (
    "the agent averages online usage over 10 s instead of 300 s, since phases last seconds; all else default"
)


class Demonstration:
    """`tell` gets a line at each step, `live` one a second; `run` returns what was found.

    It raises a Fault, or Inconclusive where other work keeps the machine busy, unless `anyway`.
    """

    def __init__(
        self,
        phase_seconds: float,
        kernel: Kernel,
        tell: Callable[[str], None],
        live: Callable[[str], None],
        *,
        anyway: bool = False,
    ) -> None:
        self._phase_seconds = phase_seconds
        self._anyway = anyway
        self._kernel = kernel
        self._tell = tell
        self._live = live
        self._phases: list[PhaseResult] = []
        self._gang_told = "its phase was not reached"
        self._gang_whole = False
        self._marks: list[ProcessMark] = []
        self._machine = ""
        self._cost = 0.0
        self._other_work_pct = 0.0

    async def run(self) -> DemoResult:
        """Everything, the cleaning-up and its check included."""
        if (os.cpu_count() or 1) < 2:
            raise ConfigurationFault("this machine", "has one CPU", "the demonstration needs two or more")
        self._other_work_pct = await self._wait_for_calm()
        began = time.monotonic()
        self._cost = cost_of_request()
        work_dir = Path(tempfile.mkdtemp(prefix="sublet-demo-"))
        try:
            cluster, started = await self._in_cluster(work_dir, began)
        except FAULTS:
            self._tell(f"logs are in {work_dir}")
            raise
        except BaseException:
            shutil.rmtree(work_dir, ignore_errors=True)
            raise
        result = self._result(self._checks(cluster.trees), started - began, time.monotonic() - began)
        if result.passed:
            shutil.rmtree(work_dir, ignore_errors=True)
        else:
            self._tell(f"logs are in {work_dir}")
        return result

    async def _wait_for_calm(self) -> float:
        """What else keeps this machine busy, in percent: it takes from all phases, and from what can be lent.

        Raises Inconclusive where that does not end in time.
        """
        loop = asyncio.get_running_loop()
        deadline, told = loop.time() + CALM_SECONDS, False
        while True:
            before = read_cpu_time()
            await asyncio.sleep(_WATCH_SECONDS)
            busy = before.utilisation_pct(read_cpu_time())
            if busy <= BUSY_PCT:
                return busy
            if self._anyway:
                self._tell(f"other work keeps this machine {busy:.0f} % busy: the numbers will show that too")
                return busy
            if loop.time() >= deadline:
                raise Inconclusive(f"for {CALM_SECONDS:.0f} s other work kept this machine busy, {busy:.0f} % at last")
            if not told:
                self._tell(
                    f"other work keeps this machine {busy:.0f} % busy: "
                    f"waiting up to {CALM_SECONDS:.0f} s until it is {BUSY_PCT:.0f} % or less"
                )
                told = True
            self._live(f"other work keeps this machine {busy:.0f} % busy: {deadline - loop.time():.0f} s left to wait")

    async def _in_cluster(self, work_dir: Path, began: float) -> tuple[RunningCluster, float]:
        settings = work_dir / "agent.yaml"
        settings.write_bytes(msgspec.yaml.encode(_SETTINGS))
        cluster = RunningCluster(work_dir / "up", Choices(agent_settings=settings, kernel=self._kernel), self._tell)
        self._tell("starting API server, node, scheduler, admission and agent")
        async with cluster:
            started = time.monotonic()
            self._tell(f"all five run, after {started - began:.1f} s")
            async with await KubeClient.connect(cluster.kubeconfig, "sublet-demo") as client:
                story = asyncio.create_task(self._phases_in(cluster, client, work_dir))
                await _first_of(story, asyncio.create_task(cluster.wait()))
            self._remember(cluster)
            self._tell("stopping everything")
        return cluster, started

    async def _phases_in(self, cluster: RunningCluster, client: KubeClient, work_dir: Path) -> None:
        ends = cluster.endpoints
        load = load_for(self._cost, self._phase_seconds, os.cpu_count() or 1, free_port())
        self._machine = describe_machine(ends.nodes[0])
        bench = PhaseContext(client, ends.nodes[0], work_dir, load, self._tell, self._live, self._anyway)
        await self._start_service(client, load.port)
        await self._measure(bench, ALONE, [])
        await self._today(bench)
        await self._sublet(bench)

    async def _measure(self, bench: PhaseContext, name: str, batch: list[Pod]) -> None:
        """One phase; then whether the CPUs are still as fast as when the load was chosen.

        Raises Inconclusive where they are not: neighbours on the same hardware slow them down, and no counter says so.
        """
        measured = await run_phase(bench, name, batch)
        cost = cost_of_request()
        raise_if_speed_changed(self._anyway, name, self._cost, cost)
        self._phases.append(msgspec.structs.replace(measured, request_cost_ms=cost * 1000))

    async def _start_service(self, client: KubeClient, port: int) -> None:
        (service,) = manifests.documents("1-service.yaml")
        # Where that port was found free, and where the load goes; a pod's own address is another one.
        where = {"BIND": LOOPBACK, "PORT": str(port)}
        service = manifests.with_environment(service, where | {"ROUNDS": str(ROUNDS)})
        await manifests.apply(client, [service])
        if await manifests.wait_for(lambda: answers(port), _START_BOUND) is None:
            raise KubernetesFault("pod web", await manifests.why_not_running(client, "app=web"))
        self._tell("the web service answers")

    async def _today(self, bench: PhaseContext) -> None:
        objects = manifests.documents(_TODAY_FILE)
        await manifests.apply(bench.client, objects)
        selector = "app=batch-today"
        batch = await manifests.wait_for(
            lambda: manifests.all_running(bench.client, selector, _BATCH_PODS), _START_BOUND
        )
        if batch is None:
            self._tell(f"not all batch pods run: {await manifests.why_not_running(bench.client, selector)}")
        found = batch or await manifests.pods(bench.client, selector)
        await self._measure(bench, TODAY, found)
        await manifests.remove(bench.client, objects)
        await manifests.wait_for(lambda: manifests.gone(bench.client, selector), _GONE_BOUND)

    async def _sublet(self, bench: PhaseContext) -> None:
        """Base load runs while the gang waits for room, so that the offer is the one beside a serving service."""
        async with _base_load(bench):
            await manifests.apply(bench.client, manifests.documents(*_BATCH_FILES))
            self._tell("batch job and gang of 3 applied; they wait until enough batch-cpu is offered")
            look = lambda: manifests.all_running(bench.client, _BATCH, _BATCH_PODS)  # noqa: E731
            others, since = OtherWork(), time.monotonic()
            batch = await manifests.wait_for(look, _RUN_BOUND)
            if batch is None:
                waited = time.monotonic() - since
                raise_if_spoiled(self._anyway, "waiting for batch-cpu", others.pct(), waited, waited)
            await self._judge_gang(bench.client)
        found = batch or await manifests.pods(bench.client, _BATCH)
        await self._measure(bench, SUBLET, found)

    async def _judge_gang(self, client: KubeClient) -> None:
        gang = await manifests.all_running(client, _GANG, 3)
        if gang is None:
            self._gang_told = await manifests.why_not_running(client, _GANG)
        else:
            apart = manifests.bound_apart_seconds(gang)
            self._gang_whole = apart is not None and apart <= _ONE_ROUND_SECONDS
            self._gang_told = "3 of 3 ran at the same time" + (
                "" if self._gang_whole else f", but were bound {apart} s apart"
            )
        self._tell(f"gang: {self._gang_told}")

    def _remember(self, cluster: RunningCluster) -> None:
        pids = {*cluster.endpoints.programs.values(), *cluster.trees.processes()}
        self._marks = [mark for pid in pids if (mark := mark_process(pid)) is not None]

    def _checks(self, trees: NodeCgroups) -> Checks:
        alive, cgroups = still_alive(self._marks), trees.cgroups()
        told = f"{len(self._marks)} processes ended, no cgroup left"
        if alive or cgroups:
            told = f"left behind: processes {alive}, cgroups {[str(path) for path in cgroups]}"
        return Checks(self._gang_whole, self._gang_told, *spared(self._phases), not alive and not cgroups, told)

    def _result(self, checks: Checks, start_seconds: float, took_seconds: float) -> DemoResult:
        load = load_for(self._cost, self._phase_seconds, os.cpu_count() or 1, 0)
        return DemoResult(
            machine=self._machine,
            kernel=self._kernel.value,
            base_per_second=load.base.per_second,
            surge_per_second=load.surge.per_second,
            phase_seconds=self._phase_seconds,
            request_cost_ms=self._cost * 1000,
            other_work_pct=self._other_work_pct,
            settings=SETTINGS_TOLD,
            phases=tuple(self._phases),
            checks=checks,
            start_seconds=start_seconds,
            took_seconds=took_seconds,
            passed=checks.passed,
        )


@asynccontextmanager
async def _base_load(bench: PhaseContext) -> AsyncIterator[None]:
    segment = Segment(_RUN_BOUND + 10.0, bench.load.base.per_second)
    generator = await start_generator(bench, "waiting", [segment], time.monotonic() + 0.5)
    try:
        yield
    finally:
        await generator.stop(1.0)


async def _first_of(story: asyncio.Task[None], ended: asyncio.Task[None]) -> None:
    """Wait for the story; a cluster that ends meanwhile ends it with its fault."""
    try:
        await asyncio.wait({story, ended}, return_when=asyncio.FIRST_COMPLETED)
        await (story if story.done() else ended)
    finally:
        story.cancel()
        ended.cancel()
        await asyncio.gather(story, ended, return_exceptions=True)
