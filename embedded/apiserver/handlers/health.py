"""What the server tells of itself: /healthz, /livez and /readyz, each also by its one check, and /metrics.

Names and labels of the metrics are those of kube-apiserver, so that its dashboards and rules find them:
https://kubernetes.io/docs/reference/instrumentation/metrics/
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from embedded.apiserver.apimachinery.resource_types import Registry
from embedded.apiserver.handlers.access_reviews import ACCESS_REVIEWS
from embedded.apiserver.handlers.pod_metrics import METRICS
from embedded.apiserver.handlers.token_reviews import AUTHENTICATION_REVIEWS
from embedded.apiserver.presentation.discovery import VERSION
from embedded.apiserver.request.attributes import Attributes
from embedded.apiserver.request.messages import Request, Response
from embedded.apiserver.storage.object_store import Store

_ROOTS = ("healthz", "livez", "readyz")
_LABELS = ("verb", "group", "version", "resource", "subresource", "scope")
_VERBS = {
    **{verb: verb.upper() for verb in ("get", "list", "watch", "patch", "delete", "deletecollection")},
    "create": "POST",
    "update": "PUT",
}
_BUCKETS = (0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 45, 60)
_KEPT_BY_NOBODY = {rtype.id for rtype in (*METRICS, *ACCESS_REVIEWS, *AUTHENTICATION_REVIEWS)}


def health(segments: list[str], request: Request) -> Response | None:
    """The answer where the path is one of health: a server that answers is well. None for other paths."""
    match segments:
        case [root] if root in _ROOTS and "verbose" in request.query:
            text = f"[+]ping ok\n{root} check passed\n"
        case [root] | [root, "ping"] if root in _ROOTS:
            text = "ok"
        case _:
            return None
    return Response(200, text.encode(), "text/plain; charset=utf-8")


class Monitoring:
    """Counts requests, and shows the counts. Labels come from what is served, never from what somebody asks for."""

    def __init__(self, registry: Registry, store: Store) -> None:
        self._served = registry
        self._shown = CollectorRegistry()
        self._requests = Counter(
            "apiserver_request_total",
            "Requests answered, a watch when it begins.",
            (*_LABELS, "component", "code"),
            registry=self._shown,
        )
        self._seconds = Histogram(
            "apiserver_request_duration_seconds",
            "Time from a request's arrival to its answer, watches left out.",
            (*_LABELS, "component"),
            registry=self._shown,
            buckets=_BUCKETS,
        )
        self._counters: dict[tuple[tuple[str, ...], int], tuple[Counter, Histogram | None]] = {}
        self._shown.register(_Stored(registry, store))
        ProcessCollector(registry=self._shown)

    def count(self, wanted: Attributes, code: int, seconds: float) -> None:
        labels = self._labels(wanted)
        found = self._counters.get((labels, code))
        if found is None:  # looking them up by their labels takes longer than counting
            self._forget_types()
            durations = None if wanted.verb == "watch" else self._seconds.labels(*labels, "apiserver")
            found = (self._requests.labels(*labels, "apiserver", str(code)), durations)
            self._counters[labels, code] = found
        answered, durations = found
        answered.inc()
        if durations is not None:
            durations.observe(max(seconds, 0.0))

    def _forget_types(self) -> None:
        """Drop the counts of types that are served no more, so that definitions that come and go fill no memory."""
        for labels, code in list(self._counters):
            _, group, version, resource, *_ = labels
            if resource and self._served.by_path(group, version, resource) is None:
                del self._counters[labels, code]
                self._requests.remove(*labels, "apiserver", str(code))
                with contextlib.suppress(KeyError):  # other codes share it
                    self._seconds.remove(*labels, "apiserver")

    def _labels(self, wanted: Attributes) -> tuple[str, ...]:
        verb = _VERBS.get(wanted.verb, "other")
        rtype = self._served.by_path(wanted.group, wanted.version, wanted.resource)
        if rtype is None:
            return (verb, "", "", "", "", "")
        subresource = wanted.subresource if wanted.subresource in rtype.subresources else ""
        scope = "resource" if wanted.name else "namespace" if wanted.namespace else "cluster"
        return (verb, rtype.group, rtype.version, rtype.plural, subresource, scope)

    def page(self, request: Request) -> Response:
        """Every metric, in the exposition format that the client asks for."""
        self._forget_types()
        encode, content_type = choose_encoder(request.accept)
        return Response(200, bytes(encode(self._shown)), content_type)


class _Stored(Collector):
    """What is known at the moment of asking alone."""

    def __init__(self, registry: Registry, store: Store) -> None:
        self._registry = registry
        self._store = store

    def collect(self) -> Iterator[Metric]:
        told = GaugeMetricFamily("apiserver_storage_objects", "Stored objects.", labels=("resource",))
        for rtype in self._registry.stored():
            if rtype.id not in _KEPT_BY_NOBODY:
                told.add_metric([rtype.id], self._store.count(rtype.id))
        yield told
        build = GaugeMetricFamily("kubernetes_build_info", "The version it answers to.", labels=("git_version",))
        build.add_metric([VERSION["gitVersion"]], 1)
        yield build
