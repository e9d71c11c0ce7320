"""All pods of the node: changes come in, workers live, and every pod is judged once before it may start."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable
from pathlib import Path

import structlog

from embedded.fault import Fault, KernelFault, KubernetesFault
from embedded.kubernetes_qos import KubernetesQoS
from embedded.node.objects.pod import NodeObject, PodObject
from embedded.node.objects.pod_resources import effective_requests, qos_class
from embedded.node.pods.admission import Rejection, judge, judge_under_pressure
from embedded.node.pods.resizing import judge_resize, order
from embedded.node.pods.statistics import RunningPod
from embedded.node.pods.worker import PodWorker
from embedded.node.ports import ContainerPort, Services
from embedded.resources import CPU, parse_resources

log = structlog.get_logger()

_ANY = ("0.0.0.0", "::")


class Kubelet:
    """`observe` takes changes in order; `run` works them off; `node` is our Node as last seen.

    `pressures` are the conditions that hold; see pods.housekeeping.Housekeeping.
    """

    def __init__(self, services: Services, node: Callable[[], NodeObject | None]) -> None:
        self._services = services
        self._node = node
        self._changes: asyncio.Queue[tuple[PodObject, bool]] = asyncio.Queue()
        self._workers: dict[str, PodWorker] = {}
        self.pressures: frozenset[str] = frozenset()
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def observe(self, pod: PodObject, *, gone: bool = False) -> None:
        """A pod of this node as it is now; of one that is gone, as it was last."""
        self._changes.put_nowait((pod, gone))

    async def run(self) -> None:
        """Starts with what was observed before the call: the pods already bound here, oldest first."""
        known = [self._changes.get_nowait() for _ in range(self._changes.qsize())]
        self._services.runtime.keep_only({pod.uid for pod, _ in known})
        for pod, gone in sorted(known, key=lambda each: each[0].metadata.creation_timestamp or ""):
            await self._apply(pod, gone)
        while True:
            await self._apply(*await self._changes.get())

    async def stop(self, grace_seconds: float) -> None:
        """SIGTERM to every container; what the grace does not end is left to the removal of all cgroups at once."""
        for worker in self._workers.values():
            worker.run_down()
        waits = [asyncio.create_task(worker.quiet.wait()) for worker in self._workers.values()]
        if waits:
            await asyncio.wait(waits, timeout=grace_seconds)
        for task in (*waits, *self._tasks.values()):
            task.cancel()

    def worker_of(self, namespace: str, name: str) -> PodWorker | None:
        """The newest pod of that name."""
        for worker in reversed(self._workers.values()):
            if (worker.pod.metadata.namespace, worker.pod.metadata.name) == (namespace, name):
                return worker
        return None

    @property
    def workers(self) -> list[PodWorker]:
        """Of pods that hold resources."""
        return [each for each in self._workers.values() if each.holds_resources]

    def living(self) -> list[RunningPod]:
        """Pods of which something may run."""
        return [RunningPod(each.pod, each.views) for each in self.workers]

    def log_file(self, namespace: str, name: str, container: str, *, previous: bool) -> Path | str:
        """A container's output, or a sentence why there is none."""
        worker = self.worker_of(namespace, name)
        if worker is None:
            return f'pod "{name}" in namespace "{namespace}" is not on this node'
        return worker.log_file(container, previous=previous)

    def container(self, namespace: str, name: str, container: str) -> ContainerPort | str:
        """One that runs, or the kubelet's sentence why there is none. Raises LookupError for an unknown pod."""
        return self._known(namespace, name).container(container) or f'container not found ("{container}")'

    async def dial(self, namespace: str, name: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A connection to a TCP port of a pod. Raises LookupError for an unknown pod, OSError.

        Pods share this machine's network, so who listens is looked up: a pod's port is nobody else's.
        """
        pod = self._known(namespace, name).pod
        for address in await asyncio.to_thread(self._services.runtime.listeners, pod, port):
            return await asyncio.open_connection(pod.address if address in _ANY else address, port)
        raise ConnectionRefusedError(errno.ECONNREFUSED, "connection refused: nothing in the pod listens on it")

    def _known(self, namespace: str, name: str) -> PodWorker:
        if (worker := self.worker_of(namespace, name)) is None:
            raise LookupError(name)
        return worker

    async def _apply(self, pod: PodObject, gone: bool) -> None:
        worker = self._workers.get(pod.uid)
        if gone:
            if worker:
                worker.vanish()
        elif worker:
            worker.update(pod)
            self._settle_resizes()
        else:
            await self._begin(pod)

    async def _begin(self, pod: PodObject) -> None:
        rejection = None if pod.terminal or pod.deleting else await self._judge(pod)
        worker = self._worker(pod, rejection)
        self._workers[pod.uid] = worker
        task = asyncio.create_task(self._see_through(worker), name=pod.full_name)
        self._tasks[pod.uid] = task
        if rejection is None:
            self._settle_burstable(worker)
            self._settle_resizes()

    def _worker(self, pod: PodObject, rejection: Rejection | None) -> PodWorker:
        try:
            return PodWorker(pod, self._services, rejection, self._freed)
        except Fault as fault:
            return PodWorker(pod, self._services, Rejection("UnexpectedAdmissionError", f"Pod was rejected: {fault}"))

    async def _see_through(self, worker: PodWorker) -> None:
        try:
            await worker.run()
        except Exception:
            log.exception("pod worker failed", pod=worker.pod.full_name)
        finally:
            self._workers.pop(worker.pod.uid, None)
            self._tasks.pop(worker.pod.uid, None)

    async def _judge(self, pod: PodObject) -> Rejection | None:
        node = self._node()
        rejection = self._verdict(pod, node) if node else None
        if node and rejection is None:
            return None
        # The watch of our own Node may lag behind the binding that its new allocatable made possible.
        try:
            return self._verdict(pod, await self._services.api.read_node())
        except KubernetesFault as fault:
            log.warning("own node not read", error=str(fault))
            return rejection

    def _verdict(self, pod: PodObject, node: NodeObject) -> Rejection | None:
        try:
            return judge_under_pressure(pod, qos_class(pod), self.pressures) or judge(
                effective_requests(pod),
                [worker.requests for worker in self._workers.values() if worker.holds_resources],
                parse_resources(node.status.allocatable or {}, "node allocatable"),
                node_selector=pod.spec.node_selector or {},
                node_labels=node.metadata.labels or {},
            )
        except Fault as fault:
            return Rejection("UnexpectedAdmissionError", f"Pod was rejected: {fault}")

    def _freed(self, worker: PodWorker) -> None:
        """What it was allocated is there for others."""
        self._settle_burstable(worker)
        self._settle_resizes()

    def _settle_resizes(self) -> None:
        """Pods that want another size get it, or are told why not, in the kubelet's order."""
        node = self._node()
        if node is None:
            return
        allocatable = parse_resources(node.status.allocatable or {}, "node allocatable")
        waiting = []
        for worker in self.workers:
            if worker.size.resized:
                waiting.append(worker)
            else:
                worker.size.settled()
        for worker in sorted(waiting, key=lambda each: order(each.pod, each.size.wanted, each.qos)):
            others = [each.requests for each in self.workers if each is not worker]
            if why := judge_resize(worker.size.wanted, others, allocatable):
                worker.size.refuse(why)
            else:
                worker.allocate()
                self._settle_burstable(worker)

    def _settle_burstable(self, changed: PodWorker) -> None:
        """The weight of all Burstable pods together follows their requests."""
        if changed.qos is not KubernetesQoS.BURSTABLE:
            return
        total = sum(
            worker.requests[CPU]
            for worker in self._workers.values()
            if worker.holds_resources and worker.qos is KubernetesQoS.BURSTABLE
        )
        try:
            self._services.runtime.set_burstable(total)
        except KernelFault as fault:
            log.warning("burstable weight not set", error=str(fault))
