"""One pod's life on this node: from its admission until its object is gone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import structlog

from local.node.admission import Rejection
from local.node.podobject import PodContainer, PodObject, ReportedCondition
from local.node.ports import Services
from local.node.reporting import PodReporter, until_gone
from local.node.resources import effective_requests, qos_class
from local.node.runner import ContainerRunner
from local.node.status import ContainerView, PodView, initial_views, moment, pod_status, rejected_status
from model.fault import KernelFault
from model.qos import KubernetesQoS
from model.resources import ResourceVector

log = structlog.get_logger()

# The kubelet's spam filter lets 25 events of one object through, then one in five minutes.
_EVENT_BURST = 25
_EVENT_REFILL_SECONDS = 300.0


class PodWorker:
    """`run` ends when the object is gone and nothing of the pod is left on the machine."""

    def __init__(
        self,
        pod: PodObject,
        services: Services,
        rejection: Rejection | None = None,
        finished: Callable[[PodWorker], None] = lambda worker: None,
    ) -> None:
        self.pod = pod
        self._services = services
        self._rejection = rejection
        self._finished = finished
        self._over = rejection is not None or pod.terminal
        self._failure: Rejection | None = None
        self._started_at = moment(pod.status.start_time) or services.now()
        self._conditions = list(pod.status.conditions or [])
        self._reporter = PodReporter(services.api, pod)
        self._leaving = asyncio.Event()
        self._vanished = asyncio.Event()
        self._stopping = asyncio.Event()
        self._silent = False
        self.quiet = asyncio.Event()
        self._events_left = float(_EVENT_BURST)
        self._event_at = services.now()
        self.qos = KubernetesQoS.BEST_EFFORT if rejection else qos_class(pod)
        self.requests = ResourceVector() if rejection else effective_requests(pod)
        main, init = initial_views(pod, services.now())
        self._runners = self._make_runners(pod.spec.containers, main, pod.spec.restart_policy)
        init_policy = "Never" if pod.spec.restart_policy == "Never" else "OnFailure"
        self._init_runners = self._make_runners(pod.spec.init_containers or [], init, init_policy)

    @property
    def holds_resources(self) -> bool:
        """Counts in admission: admitted, and not yet through."""
        return not self._over

    def update(self, pod: PodObject) -> None:
        """The object changed; only its deletion matters to a running pod."""
        self.pod = pod
        if pod.deleting:
            self._leaving.set()
            self.stop(pod.grace_seconds)

    def vanish(self) -> None:
        """The object is gone: kill at once, there is nobody left to tell."""
        self._vanished.set()
        self._leaving.set()
        self.stop(0)

    def stop(self, grace_seconds: float | None) -> None:
        self._stopping.set()
        for runner in (*self._init_runners, *self._runners):
            runner.stop(grace_seconds)

    async def run(self) -> None:
        reporter = asyncio.create_task(self._reporter.run())
        deadline = self._arm_deadline()
        try:
            if self._rejection:
                self._reject(self._rejection)
            elif not self._over:
                await self._live()
            self.quiet.set()
            await self._leave()
        finally:
            if deadline:
                deadline.cancel()
            reporter.cancel()

    def run_down(self) -> None:
        """The node itself stops: SIGTERM, but report nothing, so that a next start takes the pod up.

        `quiet` is set once nothing of the pod runs any more.
        """
        self._silent = True
        self.stop(None)

    def log_file(self, container: str, *, previous: bool) -> Path | str:
        """The output of the current or the previous run, or a sentence why there is none."""
        for runner in (*self._runners, *self._init_runners):
            if runner.view.name == container:
                return self._log_of(runner.view, previous)
        return f"container {container} is not valid for pod {self.pod.metadata.name}"

    def running(self, container: str) -> bool:
        return any(r.view.name == container and r.view.running for r in (*self._runners, *self._init_runners))

    def _log_of(self, view: ContainerView, previous: bool) -> Path | str:
        file = self._services.runtime.log_file(self.pod, view.name, view.restart_count - (1 if previous else 0))
        if file.exists():
            return file
        if previous:
            return f'previous terminated container "{view.name}" in pod "{self.pod.metadata.name}" not found'
        why = getattr(view.state, "reason", "ContainerCreating")
        return f'container "{view.name}" in pod "{self.pod.metadata.name}" is waiting to start: {why}'

    async def _live(self) -> None:
        if self.pod.deleting:
            self.update(self.pod)
        if not self._stopping.is_set() and await self._made():
            self._publish()
            if await self._initialize():
                await asyncio.gather(*(runner.run() for runner in self._runners))
        for runner in self._runners:
            if self._stopping.is_set():
                await runner.run()
        await self._services.runtime.remove_pod(self.pod)
        self._over = True
        self._publish()
        self._finished(self)

    async def _made(self) -> bool:
        while not self._stopping.is_set():
            try:
                self._services.runtime.make_pod(self.pod)
                return True
            except KernelFault as fault:
                self._record("FailedCreatePodSandBox", f"Failed to create pod: {fault}", True)
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._stopping.wait(), self._services.backoff_base_seconds)
        return False

    async def _initialize(self) -> bool:
        """Run init containers one after the other; False when the pod may not go on."""
        for runner in self._init_runners:
            await runner.run()
            ended = runner.view.ended
            if self._stopping.is_set() or ended is None or ended.exit_code != 0:
                return False
        return True

    async def _leave(self) -> None:
        """Wait for the deletion of the object, then let it go."""
        if self.pod.deleting:
            self._leaving.set()
        await self._leaving.wait()
        if not self._vanished.is_set():
            gone = asyncio.create_task(self._report_and_delete())
            vanished = asyncio.create_task(self._vanished.wait())
            await asyncio.wait({gone, vanished}, return_when=asyncio.FIRST_COMPLETED)
            gone.cancel()
            vanished.cancel()
        self._services.runtime.remove_logs(self.pod)

    async def _report_and_delete(self) -> None:
        await self._reporter.settled()
        await until_gone(lambda: self._services.api.delete_pod(self.pod), self.pod.full_name)

    def _reject(self, rejection: Rejection) -> None:
        log.info("pod rejected", pod=self.pod.full_name, reason=rejection.reason, message=rejection.message)
        self._record(rejection.reason, rejection.message.removeprefix("Pod was rejected: "), True)
        self._reporter.offer(rejected_status(self.qos, rejection, self._services.now()))

    def _arm_deadline(self) -> asyncio.TimerHandle | None:
        seconds = self.pod.spec.active_deadline_seconds
        if seconds is None or self._over:
            return None
        already = (self._services.now() - self._started_at).total_seconds()
        return asyncio.get_running_loop().call_later(max(0.0, seconds - already), self._expire)

    def _expire(self) -> None:
        if not self._over and not self._stopping.is_set():
            message = "Pod was active on the node longer than the specified deadline"
            self._failure = Rejection("DeadlineExceeded", message)
            self._record("DeadlineExceeded", message, False)
            self.stop(self.pod.grace_seconds)

    def _publish(self) -> None:
        if self._silent or self._vanished.is_set():
            return
        view = PodView(
            self.qos,
            self._started_at,
            tuple(runner.view for runner in self._runners),
            tuple(runner.view for runner in self._init_runners),
            over=self._over,
            failure=self._failure if self._over else None,
        )
        status = pod_status(view, self.pod.spec.restart_policy, self._conditions, self._services.now())
        self._conditions = [
            ReportedCondition(each["type"], each["status"], each["lastTransitionTime"]) for each in status["conditions"]
        ]
        self._reporter.offer(status)

    def _record(self, reason: str, message: str, warning: bool) -> None:
        now = self._services.now()
        refill = (now - self._event_at).total_seconds() / _EVENT_REFILL_SECONDS
        self._events_left, self._event_at = min(_EVENT_BURST, self._events_left + refill), now
        if self._events_left >= 1:
            self._events_left -= 1
            self._services.api.record(self.pod, reason, message, warning=warning)

    def _make_runners(
        self, containers: list[PodContainer], views: tuple[ContainerView, ...], policy: str | None
    ) -> list[ContainerRunner]:
        return [
            ContainerRunner(
                self.pod,
                container,
                view,
                self._services,
                policy=policy,
                changed=self._publish,
                record=self._record,
            )
            for container, view in zip(containers, views, strict=True)
        ]
