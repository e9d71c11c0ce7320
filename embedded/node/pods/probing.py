"""Probes of one run of a container: first startup, then readiness and liveness side by side, for as long as it runs."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Protocol

import msgspec

from embedded.node.objects.pod import Handler, PodContainer, ProbeSpec
from embedded.node.pods import probe_results
from embedded.node.pods.probe_results import Outcome, ProbeKind


class ProbedContainer(Protocol):
    """Who is told; see runner.ContainerRunner."""

    def on_started(self) -> None: ...
    def on_ready(self, ready: bool) -> None: ...
    def on_dead(self, kind: ProbeKind, probe: ProbeSpec) -> None: ...
    def on_unhealthy(self, message: str) -> None: ...


class Prober(msgspec.Struct, frozen=True):
    """`attempt` tries a handler within a number of seconds."""

    container: PodContainer
    told: ProbedContainer
    attempt: Callable[[Handler, float], Awaitable[Outcome]]
    sleep: Callable[[float], Awaitable[None]]
    now: Callable[[], datetime]

    async def run(self, started_at: datetime) -> None:
        """Ends when the container is found dead, or has no probe left to make."""
        startup = self.container.startup_probe
        if startup and not await self._verdict(ProbeKind.STARTUP, startup, started_at):
            return
        self.told.on_started()
        if self.container.readiness_probe is None:
            self.told.on_ready(True)
        loops = [
            self._verdict(kind, probe, started_at)
            for kind in (ProbeKind.READINESS, ProbeKind.LIVENESS)
            if (probe := probe_results.probe_of(self.container, kind))
        ]
        await asyncio.gather(*loops)

    async def _verdict(self, kind: ProbeKind, probe: ProbeSpec, started_at: datetime) -> bool:
        """Probe until the answer is final: started, or dead. Readiness has no final answer."""
        numbers, tally = probe_results.timing(probe), probe_results.start_tally(kind)
        elapsed = (self.now() - started_at).total_seconds()
        if elapsed < numbers.initial_delay_seconds:
            await self.sleep(numbers.initial_delay_seconds - elapsed)
        while True:
            outcome = await self.attempt(probe, numbers.timeout_seconds)
            if not outcome.passed:
                self.told.on_unhealthy(probe_results.unhealthy(kind, outcome))
            # What could not be tried tells nothing about the container (prober/worker.go: "throw away the result").
            if not outcome.errored:
                before, tally = tally.passing, probe_results.count(tally, outcome.passed, numbers)
                if kind is ProbeKind.READINESS and tally.passing is not before:
                    self.told.on_ready(bool(tally.passing))
                elif kind is not ProbeKind.READINESS and tally.passing is False:
                    self.told.on_dead(kind, probe)
                    return False
                elif kind is ProbeKind.STARTUP and tally.passing:
                    return True
            await self.sleep(numbers.period_seconds)
