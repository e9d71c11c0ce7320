"""One container's life: start, end, wait, start again — until it need not, or may not, run any more."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime

import msgspec

from embedded.fault import KernelFault, KubernetesFault
from embedded.node.images.commands import Missing, Refused
from embedded.node.logs.files import last_words
from embedded.node.objects.pod import PodContainer, PodObject, ProbeSpec, Resources
from embedded.node.objects.sources import gather, of_container
from embedded.node.pods import restarts
from embedded.node.pods.handlers import Attempts
from embedded.node.pods.pod_view import LOST_EXIT_CODE, ContainerView, Running, Terminated, Waiting
from embedded.node.pods.probe_results import Outcome, ProbeKind, kill_message
from embedded.node.pods.probing import Prober
from embedded.node.pods.termination import Termination
from embedded.node.ports import ContainerPort, Exit, Services

START_ERROR_EXIT_CODE = 128
# A postStart hook has no deadline of its own.
_NO_TIMEOUT_SECONDS = 86_400.0

Record = Callable[[str, str, bool], None]


class ContainerRunner:
    """`run` returns when the container is through for good; `view` is its status at any moment.

    `started` is set once it ran and its startup probe, if any, had passed; `process` is what runs now.
    """

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
        self._termination: Termination | None = None
        self.process: ContainerPort | None = None
        self._restart_count = view.restart_count
        self._last = view.ended
        self.started = asyncio.Event()
        self._quick_ends = 1 if view.ended else 0
        self._running_as: PodContainer | None = None
        self._again = False
        self.view = msgspec.structs.replace(view, allocated=container.resources or Resources())

    async def run(self) -> None:
        while not self._stopping.is_set():
            ended = self.view.ended
            again, self._again = self._again, False
            if ended and not again and not restarts.restarts(self._policy, ended.exit_code):
                break
            if ended and not again:
                await self._back_off(ended)
            if not self._stopping.is_set():
                await self._run_once()
        self._settle()

    def stop(self, grace_seconds: float | None) -> None:
        """preStop, SIGTERM, SIGKILL after the grace (None: see Termination); a later call may only shorten it."""
        first = not self._stopping.is_set()
        self._stopping.set()
        if self._termination is None:
            return
        if first:
            self._record("Killing", f"Stopping container {self._container.name}", False)
        self._termination.begin(grace_seconds)

    def begin_resize(self, pod: PodObject, container: PodContainer) -> PodContainer | None:
        """What it runs as, None while it does not run; from now on it starts as `container`."""
        self._pod, self._container = pod, container
        self.view = msgspec.structs.replace(self.view, allocated=container.resources or Resources())
        return self._running_as

    def on_resized(self, container: PodContainer) -> None:
        """What runs has the amounts of `container`."""
        self._running_as = container
        self.view = msgspec.structs.replace(self.view, resources=container.resources or Resources())

    def restart(self) -> None:
        """End it, to start it at once with its new amounts."""
        if not self._again:
            self._again = True
            self._record("Killing", f"Container {self._container.name} resize requires restart", False)
            self._end(self._pod.grace_seconds)

    def on_started(self) -> None:
        self.started.set()
        self._change(started=True)

    def on_ready(self, ready: bool) -> None:
        self._change(ready=ready)

    def on_unhealthy(self, message: str) -> None:
        self._record("Unhealthy", message, True)

    def on_dead(self, kind: ProbeKind, probe: ProbeSpec) -> None:
        self._record("Killing", kill_message(kind, self._container.name), False)
        own = probe.termination_grace_period_seconds
        self._end(float(own) if own is not None else self._pod.grace_seconds)

    def _end(self, grace_seconds: float) -> None:
        if self._termination:
            self._termination.begin(grace_seconds)

    async def _run_once(self) -> None:
        count = self.view.restart_count + (1 if self.view.ended else 0)
        outcome = await self._begun(count)
        if outcome is None:
            return
        if isinstance(outcome, Refused):
            await self._not_created(outcome)
        elif isinstance(outcome, Missing):
            self._never_began(outcome, count)
        else:
            await self._running(outcome, count)

    async def _begun(self, count: int) -> ContainerPort | Refused | Missing | None:
        """The container, or why there is none; None when it is to stop before it began."""
        services, namespace = self._services, self._pod.metadata.namespace
        try:
            refs = of_container(self._container)
            sources = await gather(refs, lambda ref: services.api.read_source(namespace, ref))
            if self._stopping.is_set():
                return None
            return services.runtime.start(self._pod, self._container, count, sources)
        except KernelFault as fault:
            return Refused("CreateContainerError", str(fault))
        except KubernetesFault as fault:
            return Refused("CreateContainerConfigError", str(fault))

    async def _running(self, process: ContainerPort, count: int) -> None:
        name, started = self._container.name, self._services.now()
        attempts = Attempts(self._container, process, self._services.sleep, self._pod.address)
        self._termination = Termination(process, self._pre_stop(attempts))
        self.process = process
        self.on_resized(self._container)
        self._record("Pulled", f'Container image "{self._container.image}" already present on machine', False)
        self._record("Created", f"Created container: {name}", False)
        self._record("Started", f"Started container {name}", False)
        self._restart_count, self._last = count, self.view.ended
        care = asyncio.create_task(self._care_for(attempts, started, process.container_id))
        try:
            ending = await process.wait()
        finally:
            self._termination.close()
            self._termination = self.process = self._running_as = None
            self.view = msgspec.structs.replace(self.view, resources=None)
            care.cancel()
            await asyncio.gather(care, return_exceptions=True)
        finished = self._services.now()
        self._services.runtime.container_ended(self._pod, name, count)
        ran_seconds = (finished - started).total_seconds()
        self._quick_ends = restarts.quick_ends(self._quick_ends, ran_seconds, self._services.backoff_base_seconds)
        message = self._message(ending, count)
        end = Terminated(ending.code, _reason(ending), finished, started, process.container_id, message)
        self._show(
            end, last=self._last, restart_count=count, container_id=process.container_id, ready=False, started=False
        )

    async def _care_for(self, attempts: Attempts, started: datetime, container_id: str) -> None:
        """postStart, then probes. A container runs, for others to see, when its postStart hook is through."""
        hook = self._container.lifecycle and self._container.lifecycle.post_start
        outcome = await attempts.attempt(hook, _NO_TIMEOUT_SECONDS) if hook else Outcome(True)
        self._show(Running(started), last=self._last, restart_count=self._restart_count, container_id=container_id)
        if not outcome.passed:
            self._record("FailedPostStartHook", f"PostStartHook failed: {outcome.output}", True)
            self._record("Killing", "FailedPostStartHook", False)
            self._end(self._pod.grace_seconds)
            return
        prober = Prober(self._container, self, attempts.attempt, self._services.sleep, self._services.now)
        await prober.run(started)

    def _pre_stop(self, attempts: Attempts) -> Callable[[float], Awaitable[None]] | None:
        hook = self._container.lifecycle and self._container.lifecycle.pre_stop
        if not hook:
            return None

        async def run(grace_seconds: float) -> None:
            try:
                outcome = await asyncio.wait_for(attempts.attempt(hook, grace_seconds), grace_seconds)
            except TimeoutError:
                outcome = Outcome(False, "it did not end within the grace period")
            if not outcome.passed:
                self._record("FailedPreStopHook", f"PreStopHook failed: {outcome.output}", True)

        return run

    def _message(self, ending: Exit, count: int) -> str:
        runtime, name = self._services.runtime, self._container.name
        written = runtime.termination_message(self._pod, name, count)
        if written or ending.code == 0 or self._container.termination_message_policy != "FallbackToLogsOnError":
            return written
        return last_words(runtime.log_file(self._pod, name, count))

    def _never_began(self, missing: Missing, count: int) -> None:
        now, last = self._services.now(), self.view.ended
        self._record("Failed", f"Error: {missing.message}", True)
        self._quick_ends += 1
        end = Terminated(START_ERROR_EXIT_CODE, "StartError", now, message=missing.message)
        self._show(end, last=last, restart_count=count)

    async def _not_created(self, refused: Refused) -> None:
        """Waiting with a reason until the next attempt: what is lacking may come."""
        self._record("Failed", f"Error: {refused.message}", True)
        self._show(Waiting(refused.reason, refused.message), last=self.view.ended)
        await self._pause(self._services.backoff_base_seconds)

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
        self._change(state=state, **fields)

    def _change(self, **fields: object) -> None:
        self.view = msgspec.structs.replace(self.view, **fields)
        self._changed()


def _reason(ending: Exit) -> str:
    if ending.code == 0:
        return "Completed"
    return "OOMKilled" if ending.oom_killed else "Error"
