"""The API server without a transport: one request in, one answer out."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

from local.apiserver import discovery, openapi, pods, reading, status, writing
from local.apiserver.messages import Request, Response, Stream, answer
from local.apiserver.objects import Clock, dig
from local.apiserver.reading import WatchLimits
from local.apiserver.registry import PODS, Registry
from local.apiserver.resources import Resources
from local.apiserver.routes import Target, resolve, split_path
from local.apiserver.status import StatusError
from local.apiserver.store import Store
from local.apiserver.writes import NoHooks, Writes

_log = logging.getLogger(__name__)
_HEALTH = ("healthz", "livez", "readyz")
_STREAMS = {"exec": "exec", "attach": "attach", "portforward": "port-forward"}  # path → what people call it


class Core:
    """One embedded API server: its objects, its types, and `handle`."""

    def __init__(
        self,
        clock: Clock,
        logs: pods.LogSource | None = None,
        limits: WatchLimits | None = None,
        ring_events: int = 8192,
    ) -> None:
        self.registry = Registry()
        self.store = Store(clock, ring_events)
        self.resources = Resources(self.store, self.registry, clock)
        self.writes = Writes(self.resources, NoHooks())
        self._logs = logs
        self._limits = limits or WatchLimits()

    async def handle(self, request: Request) -> Response | Stream:
        """Answer a request. Never raises: what is refused or fails becomes a Status."""
        try:
            return await self._route(request)
        except StatusError as error:
            return answer(error.body, error.code)
        except Exception:
            _log.exception("request failed: %s %s", request.method, request.path)
            failure = status.internal()
            return answer(failure.body, failure.code)

    async def _route(self, request: Request) -> Response | Stream:
        segments = split_path(request.path)
        match segments:
            case [root] if root in _HEALTH:
                return Response(200, b"ok", "text/plain")
            case ["version"]:
                return answer(discovery.VERSION)
            case ["openapi", "v2"] if openapi.V2_ACCEPTED in request.accept:
                return Response(200, openapi.V2_DOCUMENT, openapi.V2_CONTENT_TYPE)
            case ["openapi", "v3", *rest]:
                return self._openapi(rest)
            case ["api"] | ["apis"]:
                return self._discovery(request, core=segments == ["api"])
            case ["apis", group]:
                found = discovery.group(self.registry, group)
                if found is None:
                    raise status.unknown_path()
                return answer(found)
            case ["api", "v1", "namespaces", namespace, "pods", name, stream] if stream in _STREAMS:
                self.resources.get(PODS, namespace, name)
                raise status.not_implemented(f"{_STREAMS[stream]} is not supported by the embedded cluster")
            case ["apis", "authorization.k8s.io", "v1", "selfsubjectaccessreviews"] if request.method == "POST":
                return self._access_review(request)
            case ["api", "v1", *rest]:
                return await self._group(request, "", "v1", rest)
            case ["apis", group, version, *rest]:
                return await self._group(request, group, version, rest)
        raise status.unknown_path()

    def _access_review(self, request: Request) -> Response:
        """`kubectl auth can-i`: whoever comes this far has a known token, and each of those may do everything."""
        review = writing.body_object(request)
        return answer({**review, "status": {"allowed": True, "reason": "every known token may do everything"}}, 201)

    def _openapi(self, rest: list[str]) -> Response:
        match rest:
            case []:
                return answer(openapi.index(self.registry))
            case ["api", version] if self.registry.serves("", version):
                return answer(openapi.document(self.registry, "", version))
            case ["apis", group, version] if self.registry.serves(group, version):
                return answer(openapi.document(self.registry, group, version))
        raise status.unknown_path()

    def _discovery(self, request: Request, core: bool) -> Response:
        version = discovery.aggregated_version(request.accept)
        if version is not None:
            body = answer(discovery.aggregated(self.registry, core, version)).body
            return Response(200, body, discovery.aggregated_content_type(version))
        return answer(discovery.api_versions() if core else discovery.group_list(self.registry))

    async def _group(self, request: Request, group: str, version: str, rest: list[str]) -> Response | Stream:
        if not rest:
            if not self.registry.serves(group, version):
                raise status.unknown_path()
            return answer(discovery.resource_list(self.registry, group, version))
        if group == "" and len(rest) == 3 and rest[0] == "namespaces" and rest[2] == "bindings":
            return self._legacy_binding(request, rest[1])
        target = resolve(self.registry, group, version, rest)
        if target.subresource not in ("", "status", "finalize"):
            return await self._pod_subresource(request, target)
        return await self._resource(request, target)

    async def _resource(self, request: Request, target: Target) -> Response | Stream:
        if request.method == "GET":
            if request.flag("watch") and not target.subresource:
                return reading.watch(self.resources, target, request, self._limits)
            return (reading.read_object if target.name else reading.read_list)(self.resources, target, request)
        table = _COLLECTION if not target.name else _OBJECT if not target.subresource else _SUBRESOURCE
        act = table.get(request.method)
        if act is None or (request.method == "POST" and target.rtype.namespaced and not target.namespace):
            raise status.method_not_allowed()
        return await act(self.writes, target, request)

    async def _pod_subresource(self, request: Request, target: Target) -> Response | Stream:
        where = (target.namespace, target.name)
        match (request.method, target.subresource):
            case ("POST", "binding"):
                return self._bound(request, *where)
            case ("POST", "eviction"):
                return self._evicted(request, *where)
            case ("GET", "log"):
                return await pods.read_log(self.resources, self._logs, *where, request.query)
        raise status.method_not_allowed()

    def _bound(self, request: Request, namespace: str, name: str) -> Response:
        binding, options = writing.body_object(request), writing.write_options(request)
        return answer(pods.bind(self.resources, namespace, name, binding, options), 201)

    def _evicted(self, request: Request, namespace: str, name: str) -> Response:
        eviction, options = writing.body_object(request), writing.write_options(request)
        return answer(pods.evict(self.resources, namespace, name, eviction, options), 201)

    def _legacy_binding(self, request: Request, namespace: str) -> Response:
        """POST …/bindings, where the binding's own name says which pod it is for."""
        if request.method != "POST":
            raise status.method_not_allowed()
        return self._bound(request, namespace, str(dig(writing.body_object(request), "metadata.name") or ""))


_Act = Callable[[Writes, Target, Request], Awaitable[Response]]
_COLLECTION: dict[str, _Act] = {"POST": writing.create, "DELETE": writing.delete_collection}
_OBJECT: dict[str, _Act] = {"PUT": writing.replace, "PATCH": writing.patch, "DELETE": writing.delete}
_SUBRESOURCE: dict[str, _Act] = {"PUT": writing.replace, "PATCH": writing.patch}
