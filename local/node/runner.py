"""One container's life: start, end, wait, start again — until it need not, or may not, run any more."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import msgspec

from local.node import restarts
from local.node.images import Missing, Refused
from local.node.logs import last_words
from local.node.podobject import PodContainer, PodObject
from local.node.ports import ContainerPort, Exit, Services
from local.node.status import LOST_EXIT_CODE, ContainerView, Running, Terminated, Waiting
from model.fault import KernelFault

START_ERROR_EXIT_CODE = 128

Record = Callable[[str, str, bool], None]


class ContainerRunner:
    """`run` returns when the container is through for good; `view` is its status at any moment."""

    def __init__(
        self,
        pod: PodObject,
        container: PodContainer,
        view: ContainerView,
        services: Services,
        *,
        policy: str | None,
        changed: Callable[[], None],
        record: Record,
    ) -> None:
        self.view = view
        self._pod = pod
        self._container = container
        self._services = services
        self._policy = policy
        self._changed = changed
        self._record = record
        self._stopping = asyncio.Event()
        self._process: ContainerPort | None = None
        self._kill_timers: list[asyncio.TimerHandle] = []
        self._quick_ends = 1 if view.ended else 0

    async def run(self) -> None:
        while not self._stopping.is_set():
            ended = self.view.ended
            if ended and not restarts.restarts(self._policy, ended.exit_code):
                break
            if ended:
                await self._back_off(ended)
            if not self._stopping.is_set():
                await self._run_once()
        self._settle()

    def stop(self, grace_seconds: float | None) -> None:
        """SIGTERM now, SIGKILL after the grace (None: never); a later call may only shorten the grace."""
        first = not self._stopping.is_set()
        self._stopping.set()
        if self._process is None:
            return
        if first:
            self._record("Killing", f"Stopping container {self._container.name}", False)
            self._process.terminate()
        if grace_seconds is not None:
            self._kill_timers.append(asyncio.get_running_loop().call_later(grace_seconds, self._process.kill))

    async def _run_once(self) -> None:
        count = self.view.restart_count + (1 if self.view.ended else 0)
        try:
            outcome = self._services.runtime.start(self._pod, self._container, count)
        except KernelFault as fault:
            await self._not_created(Refused("CreateContainerError", str(fault)), self._services.backoff_base_seconds)
            return
        if isinstance(outcome, Refused):
            await self._not_created(outcome, None)
        elif isinstance(outcome, Missing):
            self._never_began(outcome, count)
        else:
            await self._running(outcome, count)

    async def _running(self, process: ContainerPort, count: int) -> None:
        name, started = self._container.name, self._services.now()
        self._process = process
        self._record("Pulled", f'Container image "{self._container.image}" already present on machine', False)
        self._record("Created", f"Created container: {name}", False)
        self._record("Started", f"Started container {name}", False)
        self._show(Running(started), last=self.view.ended, restart_count=count, container_id=process.container_id)
        ending = await process.wait()
        self._process = None
        for timer in self._kill_timers:
            timer.cancel()
        finished = self._services.now()
        ran_seconds = (finished - started).total_seconds()
        self._quick_ends = restarts.quick_ends(self._quick_ends, ran_seconds, self._services.backoff_base_seconds)
        self._show(
            Terminated(
                ending.code, _reason(ending), finished, started, process.container_id, self._message(ending, count)
            )
        )

    def _message(self, ending: Exit, count: int) -> str:
        if ending.code == 0 or self._container.termination_message_policy != "FallbackToLogsOnError":
            return ""
        return last_words(self._services.runtime.log_file(self._pod, self._container.name, count))

    def _never_began(self, missing: Missing, count: int) -> None:
        now, last = self._services.now(), self.view.ended
        self._record("Failed", f"Error: {missing.message}", True)
        self._quick_ends += 1
        end = Terminated(START_ERROR_EXIT_CODE, "StartError", now, message=missing.message)
        self._show(end, last=last, restart_count=count)

    async def _not_created(self, refused: Refused, retry_seconds: float | None) -> None:
        """Waiting with a reason: for ever when the pod itself is at fault, else until the next attempt."""
        self._record("Failed", f"Error: {refused.message}", True)
        self._show(Waiting(refused.reason, refused.message), last=self.view.ended)
        await self._pause(retry_seconds)

    async def _back_off(self, ended: Terminated) -> None:
        delay = restarts.delay_seconds(self._quick_ends, self._services.backoff_base_seconds)
        if delay <= 0:
            return
        which = f"restarting failed container={self._container.name} pod={self._pod.full_name}"
        self._show(Waiting("CrashLoopBackOff", f"back-off {delay:g}s {which}"), last=ended)
        self._record(
            "BackOff", f"Back-off restarting failed container {self._container.name} in pod {self._pod.full_name}", True
        )
        await self._pause(delay)

    async def _pause(self, seconds: float | None) -> None:
        try:
            await asyncio.wait_for(self._stopping.wait(), seconds)
        except TimeoutError:
            return

    def _settle(self) -> None:
        """A container that will not start again shows its end, not that it waits."""
        if isinstance(self.view.state, Waiting) and self._stopping.is_set():
            unknown = Terminated(
                LOST_EXIT_CODE,
                "ContainerStatusUnknown",
                None,
                message="The container could not be located when the pod was terminated",
            )
            self._show(self.view.last or unknown, last=None)

    def _show(self, state: Running | Terminated | Waiting, **fields: object) -> None:
        self.view = msgspec.structs.replace(self.view, state=state, **fields)
        self._changed()


def _reason(ending: Exit) -> str:
    if ending.code == 0:
        return "Completed"
    return "OOMKilled" if ending.oom_killed else "Error"
