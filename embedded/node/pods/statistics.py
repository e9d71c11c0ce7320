"""CPU and memory in use by containers, pods and the node: samples in, the kubelet's Summary API out.

Source: kubernetes staging/src/k8s.io/kubelet/pkg/apis/stats/v1alpha1/types.go and
pkg/kubelet/metrics/collectors/resource_metrics.go. A rate needs two samples: what began since the last one has none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import Any, Protocol

import msgspec
import psutil

from embedded.cgroups.knobs import Use
from embedded.node.objects.pod import PodObject
from embedded.node.objects.times import stamp
from embedded.node.pods.pod_view import ContainerView, Running

SAMPLE_SECONDS = 5.0


class ResourceUsage(Protocol):
    """See processes.runtime.ProcessRuntime."""

    def use(self, pod: PodObject, container_id: str = "") -> Use | None: ...
    def use_of_all(self) -> Use | None:
        """Of the node."""


class NodeUses:
    """As `uses`, but the node's own use is `of_node`: with what is no pod, as an agent on it sees it."""

    def __init__(self, uses: ResourceUsage, of_node: Callable[[], Use]) -> None:
        self._uses = uses
        self._of_node = of_node

    def use(self, pod: PodObject, container_id: str = "") -> Use | None:
        return self._uses.use(pod, container_id)

    def use_of_all(self) -> Use | None:
        return self._of_node()


def use_of_machine() -> Use:
    """What everybody on this machine uses."""
    cpu, memory = psutil.cpu_times(), psutil.virtual_memory()
    # Guest time is part of user time; idle and waiting for a disk are not use.
    busy = cpu.user + cpu.nice + cpu.system + cpu.irq + cpu.softirq
    return Use(round(busy * 1e9), memory.used, memory.total - memory.available)


class RunningPod(msgspec.Struct, frozen=True):
    """A pod of this node and its containers."""

    pod: PodObject
    views: tuple[ContainerView, ...]


class Sample(msgspec.Struct, frozen=True):
    """Use at a time, and the CPU rate since the sample before."""

    at: datetime
    use: Use
    nano_cores: int | None = None


def next_sample(before: Sample | None, at: datetime, use: Use) -> Sample:
    """A counter that went back has started again: no rate."""
    if before is None or use.cpu_ns < before.use.cpu_ns or at <= before.at:
        return Sample(at, use)
    return Sample(at, use, round((use.cpu_ns - before.use.cpu_ns) / (at - before.at).total_seconds()))


class Statistics:
    """`sample` is called every SAMPLE_SECONDS; the answers are made of the last samples."""

    def __init__(
        self,
        node_name: str,
        uses: ResourceUsage,
        living: Callable[[], Iterable[RunningPod]],
        now: Callable[[], datetime],
    ) -> None:
        self._node_name = node_name
        self._uses = uses
        self._living = living
        self._now = now
        self._started_at = now()
        self._samples: dict[str, Sample] = {}

    def sample(self) -> None:
        taken = {key: next_sample(self._samples.get(key), self._now(), use) for key, use in self._read()}
        self._samples = taken

    def working_set_bytes(self, pod: PodObject) -> int:
        """As of the last sample; 0 for a pod that has none."""
        sample = self._samples.get(_pod_key(pod))
        return sample.use.working_set_bytes if sample else 0

    def _read(self) -> Iterator[tuple[str, Use]]:
        whole = self._uses.use_of_all()
        if whole:
            yield "", whole
        for each in self._living():
            pod_use = self._uses.use(each.pod)
            if pod_use is None:
                continue
            yield _pod_key(each.pod), pod_use
            for view in each.views:
                use = self._uses.use(each.pod, view.container_id) if view.running else None
                if use:
                    yield view.container_id, use

    def summary(self) -> bytes:
        """JSON of stats/v1alpha1 Summary. For the numbers of the node see NodeUses."""
        node = {"nodeName": self._node_name, "startTime": stamp(self._started_at), **self._figures("")}
        node.get("memory", {})["availableBytes"] = psutil.virtual_memory().available
        return msgspec.json.encode({"node": node, "pods": [self._pod(each) for each in self._living()]})

    def _pod(self, living: RunningPod) -> dict[str, Any]:
        metadata = living.pod.metadata
        return {
            "podRef": {"name": metadata.name, "namespace": metadata.namespace, "uid": metadata.uid},
            "startTime": living.pod.status.start_time,
            "containers": [
                {"name": view.name, "startTime": stamp(view.state.started_at), **self._figures(view.container_id)}
                for view in living.views
                if isinstance(view.state, Running)
            ],
            **self._figures(_pod_key(living.pod)),
        }

    def _figures(self, key: str) -> dict[str, Any]:
        sample = self._samples.get(key)
        if sample is None:
            return {}
        at = stamp(sample.at)
        cpu: dict[str, Any] = {"time": at, "usageCoreNanoSeconds": sample.use.cpu_ns}
        if sample.nano_cores is not None:
            cpu["usageNanoCores"] = sample.nano_cores
        use = sample.use
        memory = {"time": at, "usageBytes": use.memory_bytes, "workingSetBytes": use.working_set_bytes}
        return {"cpu": cpu, "memory": memory}

    def metrics(self) -> str:
        """The kubelet's /metrics/resource in Prometheus' text form."""
        lines = list(self._lines("node", "", ""))
        for each in self._living():
            metadata = each.pod.metadata
            of_pod = f'namespace="{metadata.namespace}",pod="{metadata.name}"'
            lines += self._lines("pod", _pod_key(each.pod), of_pod)
            for view in each.views:
                if view.running:
                    lines += self._lines("container", view.container_id, f'container="{view.name}",{of_pod}')
        return "\n".join(lines) + "\n"

    def _lines(self, subject: str, key: str, labels: str) -> Iterator[str]:
        sample = self._samples.get(key)
        if sample:
            at_ms, inside = int(sample.at.timestamp() * 1000), f"{{{labels}}}" if labels else ""
            yield f"{subject}_cpu_usage_seconds_total{inside} {sample.use.cpu_ns / 1e9:.9g} {at_ms}"
            yield f"{subject}_memory_working_set_bytes{inside} {sample.use.working_set_bytes} {at_ms}"


def _pod_key(pod: PodObject) -> str:
    return f"pod {pod.uid}"
