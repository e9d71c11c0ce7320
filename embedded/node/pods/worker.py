"""One pod's life on this node: from its admission until its object is gone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import structlog

from embedded.fault import KernelFault, KubernetesFault
from embedded.kubernetes_qos import KubernetesQoS
from embedded.node.objects.pod import PodContainer, PodObject, ReportedCondition
from embedded.node.objects.pod_resources import effective_requests, qos_class
from embedded.node.objects.sources import VolumeNotReady
from embedded.node.objects.times import moment
from embedded.node.pods.admission import Rejection
from embedded.node.pods.conditions import RESIZE_CONDITIONS
from embedded.node.pods.event_limit import EventLimit
from embedded.node.pods.pod_size import PodSize
from embedded.node.pods.pod_status import initial_views, pod_status, rejected_status
from embedded.node.pods.pod_view import ContainerView, Gate, PodView, ResizeView, Terminated
from embedded.node.pods.pod_volumes import PodVolumes
from embedded.node.pods.runner import START_ERROR_EXIT_CODE, ContainerRunner
from embedded.node.pods.sequence import ContainerSequence
from embedded.node.pods.status_reporting import PodReporter, until_gone
from embedded.node.ports import ContainerPort, Services
from embedded.resources import ResourceVector

log = structlog.get_logger()

# Source: kubernetes pkg/kubelet/eviction/eviction_manager.go (immediateEvictionGracePeriodSeconds).
_EVICTION_GRACE_SECONDS = 1.0
_NOT_RUN = "this node runs no ephemeral containers (kubectl debug); kubectl exec leads into those that are there"


class PodWorker:
    """`run` ends when the object is gone and nothing of the pod is left on the machine."""

    def __init__(
        self,
        pod: PodObject,
        services: Services,
        rejection: Rejection | None = None,
        finished: Callable[[PodWorker], None] = lambda worker: None,
    ) -> None:
        self._over = rejection is not None or pod.terminal
        self.pod = pod
        self._services = services
        self._rejection = rejection
        self._finished = finished
        self._volumes = PodVolumes(services, self._record)
        self._deadline: asyncio.TimerHandle | None = None
        self._failure: Rejection | None = None
        self._disruption = ""
        self._made_once = self._running = False
        self._started_at = moment(pod.status.start_time) or services.now()
        self._conditions = list(pod.status.conditions or [])
        self._reporter = PodReporter(services.api, pod)
        self._refused: dict[str, ContainerView] = {}  # ephemeral containers
        self._leaving = asyncio.Event()
        self._vanished = asyncio.Event()
        self._stopping = asyncio.Event()
        self._silent = False
        self.quiet = asyncio.Event()
        self._budget = EventLimit(services.now())
        self.qos = KubernetesQoS.BEST_EFFORT if rejection else qos_class(pod)
        if not self._over:
            pod = services.runtime.adapted(pod)
        self.size = PodSize(pod, services, self._record, self._publish)
        self._resize_told = any(each.type in RESIZE_CONDITIONS for each in self._conditions)
        self.pod = pod = self.size.pod
        main, init = initial_views(pod, services.now())
        init_policy = "Never" if pod.spec.restart_policy == "Never" else "OnFailure"
        self._sequence = ContainerSequence(
            self._make_runners(pod.spec.init_containers or [], init, init_policy),
            self._make_runners(pod.spec.containers, main, pod.spec.restart_policy),
            lambda: self.pod.grace_seconds,
        )
        self.size.have(self._sequence.all)

    @property
    def requests(self) -> ResourceVector:
        """What it is allocated."""
        return ResourceVector() if self._rejection else effective_requests(self.pod)

    @property
    def holds_resources(self) -> bool:
        """Counts in admission: admitted, and not yet through."""
        return not self._over

    @property
    def leaving(self) -> bool:
        """On its way out, or gone already: evicting it would gain nothing."""
        return self._over or self._stopping.is_set()

    @property
    def views(self) -> tuple[ContainerView, ...]:
        return tuple(runner.view for runner in self._sequence.all)

    def update(self, pod: PodObject) -> None:
        """The object changed; its deletion, deadline and the gates of its readiness matter to a running pod."""
        deadline, before = self.pod.spec.active_deadline_seconds, self.pod.metadata
        if (before.labels, before.annotations) != (pod.metadata.labels, pod.metadata.annotations):
            self._volumes.changed()
        self.pod = pod if self._over else self.size.follow(self._services.runtime.adapted(pod))
        if self._running and pod.spec.active_deadline_seconds != deadline:
            self._arm_deadline()
        self._refuse_ephemeral()
        self._reporter.seen(next((c.status for c in pod.status.conditions or () if c.type == "Ready"), None))
        if pod.spec.readiness_gates and not self._over and self._made_once:
            self._publish()
        if pod.deleting:
            self._leaving.set()
            self.stop(pod.grace_seconds)

    def allocate(self) -> None:
        """Give the pod the size that is wanted."""
        self.pod = self.size.allocate()

    def evict(self, message: str) -> None:
        """End a pod of this node for the node's own sake; it has a second, and Failed is how it ends."""
        if not self.leaving:
            self._failure, self._disruption = Rejection("Evicted", message), message
            self._record("Evicted", message, True)
            self.stop(_EVICTION_GRACE_SECONDS)

    def vanish(self) -> None:
        """The object is gone: kill at once, there is nobody left to tell."""
        self._vanished.set()
        self._leaving.set()
        self.stop(0)

    def stop(self, grace_seconds: float | None) -> None:
        self._stopping.set()
        self._sequence.stop(grace_seconds)

    async def run(self) -> None:
        reporter = asyncio.create_task(self._reporter.run())
        self._running = True
        self._arm_deadline()
        try:
            if self._rejection:
                self._reject(self._rejection)
            elif not self._over:
                await self._live()
            self.quiet.set()
            await self._leave()
        finally:
            self._running = False
            self._disarm_deadline()
            reporter.cancel()

    def run_down(self) -> None:
        """The node itself stops: SIGTERM, but report nothing, so that a next start takes the pod up.

        `quiet` is set once nothing of the pod runs any more.
        """
        self._silent = True
        self.stop(None)

    def log_file(self, container: str, *, previous: bool) -> Path | str:
        """The output of the current or the previous run, or a sentence why there is none."""
        for runner in self._sequence.all:
            if runner.view.name == container:
                return self._log_of(runner.view, previous)
        if container in self._refused:
            return f"{container}: {_NOT_RUN}"
        return f"container {container} is not valid for pod {self.pod.metadata.name}"

    def container(self, name: str) -> ContainerPort | None:
        """One that runs."""
        return next((each.process for each in self._sequence.all if each.view.name == name), None)

    def running(self, container: str) -> bool:
        return any(r.view.name == container and r.view.running for r in self._sequence.all)

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
        self._refuse_ephemeral()
        if not self._stopping.is_set() and await self._made():
            self._publish()
        fresh = asyncio.create_task(self._volumes.keep_fresh(lambda: self.pod))
        try:
            await self._sequence.run()
        finally:
            fresh.cancel()
        await self._services.runtime.remove_pod(self.pod)
        self._over = True
        self.size.close()
        self._publish()
        self._finished(self)

    async def _made(self) -> bool:
        while not self._stopping.is_set():
            try:
                made = self.pod
                self._made_once = await self._volumes.make(made, self._stopping.is_set)
                self.size.made(made)
                self.size.act()
                return self._made_once
            except VolumeNotReady as reason:
                self._record("FailedMount", str(reason), True)
            except KubernetesFault as fault:
                self._record("FailedMount", f"MountVolume.SetUp failed: {fault}", True)
            except KernelFault as fault:
                self._record("FailedCreatePodSandBox", f"Failed to create pod: {fault}", True)
            self._publish()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), self._services.backoff_base_seconds)
        return False

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

    def _refuse_ephemeral(self) -> None:
        """Another API server than the embedded one takes them for any node: each is told once."""
        asked = [each for each in self.pod.spec.ephemeral_containers or [] if each.name not in self._refused]
        for each in asked:
            end = Terminated(START_ERROR_EXIT_CODE, "StartError", self._services.now(), message=_NOT_RUN)
            self._refused[each.name] = ContainerView(each.name, each.image, end)
            self._record("Failed", f"Error: ephemeral container {each.name}: {_NOT_RUN}", True)
        if asked and self._made_once and not self._over:
            self._publish()

    def _arm_deadline(self) -> None:
        self._disarm_deadline()
        seconds = self.pod.spec.active_deadline_seconds
        if seconds is not None and not self._over:
            already = (self._services.now() - self._started_at).total_seconds()
            self._deadline = asyncio.get_running_loop().call_later(max(0.0, seconds - already), self._expire)

    def _disarm_deadline(self) -> None:
        if self._deadline:
            self._deadline.cancel()
            self._deadline = None

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
            tuple(runner.view for runner in self._sequence.containers),
            tuple(runner.view for runner in self._sequence.init),
            tuple(self._refused.values()),
            made=self._made_once,
            over=self._over,
            failure=self._failure if self._over else None,
            disruption=self._disruption,
            resize=self._resize_view(),
            gates=_gates(self.pod),
            address=self.pod.address,
            host_address=self.pod.host_address,
        )
        status = pod_status(view, self.pod.spec.restart_policy, self._conditions, self._services.now())
        self._conditions = [
            ReportedCondition(each["type"], each["status"], each["lastTransitionTime"])
            for each in status["conditions"]
            if "status" in each
        ]
        self._reporter.offer(status)

    def _resize_view(self) -> ResizeView:
        pending, in_progress = self.size.pending, self.size.in_progress
        self._resize_told |= pending is not None or in_progress is not None
        return ResizeView(pending, in_progress, self._resize_told)

    def _changed(self) -> None:
        self._publish()
        self.size.act()

    def _record(self, reason: str, message: str, warning: bool) -> None:
        if self._budget.take(self._services.now()):
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
                policy="Always" if view.sidecar else policy,
                changed=self._changed,
                record=self._record,
            )
            for container, view in zip(containers, views, strict=True)
        ]


def _gates(pod: PodObject) -> tuple[Gate, ...]:
    held = {each.type: each.status for each in pod.status.conditions or []}
    return tuple(Gate(each.condition_type, held.get(each.condition_type)) for each in pod.spec.readiness_gates or [])
