"""metrics.k8s.io/v1beta1: what nodes and pods use now, asked from the nodes when somebody wants to know.

Shapes and refusals follow metrics-server (`pkg/api/node.go`, `pkg/api/pod.go`); a node's part is the kubelet's Summary
API (`/stats/summary`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Protocol

import msgspec

from embedded.apiserver.apimachinery import status
from embedded.apiserver.apimachinery.objects import Object, dig, name_of, namespace_of, parse_time, rfc3339
from embedded.apiserver.apimachinery.resource_types import NODES, PODS, ResourceType
from embedded.apiserver.apimachinery.selectors import Filter
from embedded.apiserver.apimachinery.status import StatusError
from embedded.apiserver.handlers.get import filter_of
from embedded.apiserver.handlers.pod_subresources import LogSource
from embedded.apiserver.presentation.tables import included, table, wants_table
from embedded.apiserver.registry.resources import Resources
from embedded.apiserver.request.messages import Request, Response, answer
from embedded.apiserver.request.query_options import check_options
from embedded.apiserver.request.target import Target

_GROUP, _VERSION = "metrics.k8s.io", "v1beta1"
_READ = ("get", "list")
NODE_METRICS = ResourceType(_GROUP, _VERSION, "nodes", "NodeMetrics", False, verbs=_READ)
POD_METRICS = ResourceType(_GROUP, _VERSION, "pods", "PodMetrics", True, verbs=_READ)
METRICS = (NODE_METRICS, POD_METRICS)
_FRESH_SECONDS = 10.0
_WINDOW = "10s"
_AT_ONCE = 32  # nodes asked at the same time


class _Cpu(msgspec.Struct, rename="camel"):
    usage_nano_cores: int | None = None
    time: str = ""


class _Memory(msgspec.Struct, rename="camel"):
    working_set_bytes: int | None = None


class _Usage(msgspec.Struct):
    name: str = ""
    cpu: _Cpu | None = None
    memory: _Memory | None = None


class _PodRef(msgspec.Struct):
    name: str
    namespace: str


class _Pod(msgspec.Struct, rename="camel"):
    pod_ref: _PodRef
    containers: list[_Usage] = []


class Summary(msgspec.Struct):
    """The parts of a node's `/stats/summary` that are used here."""

    node: _Usage
    pods: list[_Pod] = []


class SummarySource(Protocol):
    """Where a node's summary comes from."""

    async def fetch(self, port: int, path: str, query: Mapping[str, str]) -> bytes:
        """The body of the answer; raises StatusError when there is none."""


class NodeServers(LogSource, SummarySource, Protocol):
    """The servers of the nodes."""


class Metrics:
    """Answers for both resources. A node's summary is asked for again once it is ten seconds old."""

    def __init__(self, resources: Resources, source: SummarySource | None) -> None:
        self._resources = resources
        self._source = source
        self._summaries: dict[str, tuple[float, Summary | None]] = {}
        self._slots = asyncio.Semaphore(_AT_ONCE)

    async def read(self, target: Target, request: Request) -> Response:
        if request.method != "GET" or request.flag("watch"):
            raise status.method_not_allowed()
        check_options(request, collection=not target.name)
        of_nodes = target.rtype is NODE_METRICS
        found = await (self._node_metrics if of_nodes else self._pod_metrics)(target, request)
        if target.name and not found:
            raise _absent(target)
        return self._shown(target, request, found)

    def _shown(self, target: Target, request: Request, found: list[Object]) -> Response:
        rtype, meta = target.rtype, {"resourceVersion": str(self._resources.store.revision)}
        if wants_table(request.accept):
            include = included(request)
            return answer({**table(rtype, found, include, self._resources.clock()), "metadata": meta})
        if target.name:
            return answer(found[0])
        head = {"kind": rtype.listing_kind, "apiVersion": rtype.api_version}
        return answer({**head, "metadata": meta, "items": found})

    async def _node_metrics(self, target: Target, request: Request) -> list[Object]:
        nodes = list(self._resources.objects(NODES, _source_filter(target, request, NODES)))
        summaries = await self._fresh(nodes)
        shown = (self._node_metric(node, summaries.get(name_of(node))) for node in nodes)
        return [metric for metric in shown if metric is not None]

    def _node_metric(self, node: Object, summary: Summary | None) -> Object | None:
        usage = None if summary is None else _usage(summary.node)
        if summary is None or usage is None:
            return None
        return self._metric(NODE_METRICS, node, {"usage": usage}, summary.node.cpu)

    async def _pod_metrics(self, target: Target, request: Request) -> list[Object]:
        pods = list(self._resources.objects(PODS, _source_filter(target, request, PODS)))
        names = {str(dig(pod, "spec.nodeName")) for pod in pods if dig(pod, "spec.nodeName")}
        found = (self._resources.find(NODES, "", name) for name in sorted(names))
        summaries = await self._fresh([node for node in found if node is not None])
        measured = {
            (pod.pod_ref.namespace, pod.pod_ref.name): pod
            for summary in summaries.values()
            if summary is not None
            for pod in summary.pods
        }
        shown = (self._pod_metric(pod, measured.get((namespace_of(pod), name_of(pod)))) for pod in pods)
        return [metric for metric in shown if metric is not None]

    def _pod_metric(self, pod: Object, measured: _Pod | None) -> Object | None:
        """None for a pod that does not run, or of which a container is not measured yet."""
        if measured is None or dig(pod, "status.phase") != "Running":
            return None
        used = [(container, _usage(container)) for container in measured.containers]
        if not used or any(usage is None for _, usage in used):
            return None
        containers = [{"name": container.name, "usage": usage} for container, usage in used]
        return self._metric(POD_METRICS, pod, {"containers": containers}, measured.containers[0].cpu)

    def _metric(self, rtype: ResourceType, obj: Object, usage: Object, cpu: _Cpu | None) -> Object:
        now = rfc3339(self._resources.clock())
        meta = {key: obj["metadata"][key] for key in ("name", "namespace", "labels") if key in obj["metadata"]}
        measured = cpu.time if cpu and parse_time(cpu.time) is not None else now
        return {
            "kind": rtype.kind,
            "apiVersion": rtype.api_version,
            "metadata": {**meta, "creationTimestamp": now},
            "timestamp": measured,
            "window": _WINDOW,
            **usage,
        }

    async def _fresh(self, nodes: Iterable[Object]) -> dict[str, Summary | None]:
        """The summary of each node; None for one that does not answer."""
        ports = {name_of(node): dig(node, "status.daemonEndpoints.kubeletEndpoint.Port") for node in nodes}
        self._summaries = {name: held for name, held in self._summaries.items() if self._is_fresh(held[0])}
        asked = [name for name, port in ports.items() if port and name not in self._summaries]
        answers = await asyncio.gather(*(self._ask(name, int(ports[name])) for name in asked))
        now = self._resources.clock()
        self._summaries |= {name: (now, summary) for name, summary in zip(asked, answers, strict=True)}
        return {name: held[1] for name in ports if (held := self._summaries.get(name)) is not None}

    def _is_fresh(self, asked_at: float) -> bool:
        return 0 <= self._resources.clock() - asked_at < _FRESH_SECONDS

    async def _ask(self, node: str, port: int) -> Summary | None:
        if self._source is None:
            return None
        async with self._slots:
            try:
                # One server may answer for many simulated nodes: it is told which one is meant.
                return _SUMMARY.decode(await self._source.fetch(port, "/stats/summary", {"node": node}))
            except (StatusError, msgspec.DecodeError):
                return None


_SUMMARY = msgspec.json.Decoder(Summary)


def _usage(measured: _Usage) -> Object | None:
    """Kubernetes quantities as metrics-server writes them; None where either is not known yet."""
    cpu = measured.cpu.usage_nano_cores if measured.cpu else None
    memory = measured.memory.working_set_bytes if measured.memory else None
    if cpu is None or memory is None:
        return None
    return {"cpu": f"{cpu}n" if cpu else "0", "memory": f"{-(-memory // 1024)}Ki" if memory else "0"}


def _source_filter(target: Target, request: Request, rtype: ResourceType) -> Filter:
    """The selectors apply to the nodes or pods themselves, as metrics have their names and labels."""
    return filter_of(Target(rtype, target.namespace, target.name), request)


def _absent(target: Target) -> StatusError:
    name = f"{target.namespace}/{target.name}" if target.namespace else target.name
    plural = "nodemetrics" if target.rtype is NODE_METRICS else "podmetrics"
    details = {"name": name, "group": _GROUP, "kind": plural}
    return StatusError(404, "NotFound", f'{plural}.{_GROUP} "{name}" not found', details)
