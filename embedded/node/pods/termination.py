"""The end of a running container: its preStop hook, SIGTERM, and SIGKILL when the grace is over.

Source: kubernetes pkg/kubelet/kuberuntime/kuberuntime_container.go (killContainer): the hook runs on the grace's time,
and after it a container has at least two seconds left.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from embedded.node.ports import ContainerPort

_LEAST_GRACE_SECONDS = 2.0


class Termination:
    """`begin` may be called again with a shorter grace; `close` when the container has ended."""

    def __init__(self, process: ContainerPort, pre_stop: Callable[[float], Awaitable[None]] | None) -> None:
        self._process = process
        self._pre_stop = pre_stop
        self._begun = False
        self._hook: asyncio.Task[None] | None = None
        self._timers: list[asyncio.TimerHandle] = []

    def begin(self, grace_seconds: float | None) -> None:
        """Without a grace (None) there is no hook, and SIGKILL only for who does not heed SIGTERM."""
        first, self._begun = not self._begun, True
        if first and self._pre_stop and grace_seconds:
            self._hook = asyncio.create_task(self._after_hook(self._pre_stop, grace_seconds))
            return
        if first and not self._process.terminate() and grace_seconds is None:
            self._process.kill()
        if grace_seconds is not None:
            self._kill_in(grace_seconds)

    def close(self) -> None:
        for timer in self._timers:
            timer.cancel()
        if self._hook:
            self._hook.cancel()

    async def _after_hook(self, hook: Callable[[float], Awaitable[None]], grace_seconds: float) -> None:
        loop = asyncio.get_running_loop()
        began = loop.time()
        await hook(grace_seconds)
        self._process.terminate()
        self._kill_in(max(grace_seconds - (loop.time() - began), _LEAST_GRACE_SECONDS))

    def _kill_in(self, seconds: float) -> None:
        self._timers.append(asyncio.get_running_loop().call_later(seconds, self._process.kill))
