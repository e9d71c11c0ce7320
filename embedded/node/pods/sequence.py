"""A pod's containers in their order: init containers and sidecars one after the other, the containers together, and
the sidecars' end after all others.

Source: https://kubernetes.io/docs/concepts/workloads/pods/sidecar-containers/ and kubernetes
pkg/kubelet/kuberuntime/kuberuntime_termination_order.go.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from embedded.node.pods.runner import ContainerRunner

_LEAST_GRACE_SECONDS = 2.0


class ContainerSequence:
    """`run` returns when nothing runs any more; `own_grace` is what sidecars get when nobody stopped the pod."""

    def __init__(
        self, init: list[ContainerRunner], containers: list[ContainerRunner], own_grace: Callable[[], float]
    ) -> None:
        self.init = init
        self.containers = containers
        self._own_grace = own_grace
        self._stopping = asyncio.Event()
        self._end: float | None = None
        self._had_grace = True
        self._sidecars: list[tuple[ContainerRunner, asyncio.Task[None]]] = []
        self._sidecars_turn = False

    @property
    def all(self) -> list[ContainerRunner]:
        return [*self.init, *self.containers]

    def stop(self, grace_seconds: float | None) -> None:
        """Sidecars follow when the containers have ended, within the same grace (None: see Termination.begin)."""
        self._stopping.set()
        if grace_seconds is not None:
            self._had_grace = grace_seconds > 0
            end = asyncio.get_running_loop().time() + grace_seconds
            self._end = end if self._end is None else min(end, self._end)
        for runner in self.all:
            if self._sidecars_turn or not runner.view.sidecar:
                runner.stop(grace_seconds)

    async def run(self) -> None:
        if not self._stopping.is_set() and await self._initialize():
            await asyncio.gather(*(runner.run() for runner in self.containers))
        for runner in self.containers:
            if self._stopping.is_set():
                await runner.run()  # one that never ran shows that it never will
        await self._end_sidecars()

    async def _initialize(self) -> bool:
        """Steps to their end, sidecars until they have started; False: go no further."""
        for runner in self.init:
            if runner.view.sidecar:
                self._sidecars.append((runner, asyncio.create_task(runner.run())))
                await self._started(runner)
            else:
                await runner.run()
            ended = runner.view.ended
            if self._stopping.is_set() or not (runner.view.sidecar or (ended and ended.exit_code == 0)):
                return False
        return True

    async def _started(self, runner: ContainerRunner) -> None:
        waits = [asyncio.create_task(event.wait()) for event in (runner.started, self._stopping)]
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for wait in waits:
            wait.cancel()

    async def _end_sidecars(self) -> None:
        """In reverse order of their start, each after the next one's end."""
        self._sidecars_turn = True
        for runner, task in reversed(self._sidecars):
            runner.stop(self._remaining_seconds())
            await task

    def _remaining_seconds(self) -> float | None:
        """Of the grace; a moment when the containers used it up, unless there was none at all."""
        if not self._stopping.is_set():
            return self._own_grace()
        if self._end is None:
            return None
        left = self._end - asyncio.get_running_loop().time()
        return max(left, _LEAST_GRACE_SECONDS if self._had_grace else 0.0)
