"""The API server without a transport: one request in, one answer out."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TypeVar

from embedded.apiserver.admission.admitted_writes import AdmittedWrites
from embedded.apiserver.admission.chain import AdmissionChain
from embedded.apiserver.admission.escalation import Escalation
from embedded.apiserver.admission.operations import connection
from embedded.apiserver.admission.policies import Policies
from embedded.apiserver.admission.webhook_call import HttpsCaller
from embedded.apiserver.admission.webhooks import Webhooks
from embedded.apiserver.apimachinery import status
from embedded.apiserver.apimachinery.event_forms import EVENTS_V1
from embedded.apiserver.apimachinery.objects import Clock, Object, dig, encode
from embedded.apiserver.apimachinery.resource_types import BINDINGS, EVICTIONS, PODS, Registry, ResourceType
from embedded.apiserver.apimachinery.status import StatusError
from embedded.apiserver.authentication.authenticator import Authenticator, Credentials
from embedded.apiserver.authentication.service_account_tokens import AccountTokens
from embedded.apiserver.authorization.node_authorizer import Nodes
from embedded.apiserver.authorization.rbac import Rbac
from embedded.apiserver.handlers import get, health, modify, openid, pod_streams, pod_subresources, scale
from embedded.apiserver.handlers.access_reviews import ACCESS_REVIEWS, AccessReviews
from embedded.apiserver.handlers.pod_metrics import METRICS, Metrics, NodeServers
from embedded.apiserver.handlers.pod_streams import NodeConnections
from embedded.apiserver.handlers.token_requests import TokenRequests
from embedded.apiserver.handlers.token_reviews import AUTHENTICATION_REVIEWS, AuthenticationReviews
from embedded.apiserver.handlers.watch import WatchLimits, watch
from embedded.apiserver.http.access import AccessControl, AdmittedRequest
from embedded.apiserver.http.audit import AuditLog
from embedded.apiserver.presentation import discovery, encodings, openapi
from embedded.apiserver.registry.resources import Resources, WriteOptions
from embedded.apiserver.request.attributes import Authorizer
from embedded.apiserver.request.messages import Request, Response, Stream, Upgraded, answer
from embedded.apiserver.request.query_options import check_options
from embedded.apiserver.request.target import Target, resolve, split_path
from embedded.apiserver.serialization.request_body import APPLY_PATCH, body_of, check_place, read_in_worker_thread
from embedded.apiserver.storage.object_store import Log, Store

_log = logging.getLogger(__name__)
_Answer = TypeVar("_Answer", bound=Response | Stream | Upgraded)


class Router:
    """One embedded API server: its objects, its types, and `handle`."""

    def __init__(
        self,
        clock: Clock,
        nodes: NodeServers | None = None,
        limits: WatchLimits | None = None,
        ring_events: int = 8192,
        log: Log | None = None,
        credentials: Credentials | None = None,
        authorizer: Authorizer | None = None,
        audit: AuditLog | None = None,
        connections: NodeConnections | None = None,
    ) -> None:
        credentials = credentials or Credentials()
        self.registry = Registry()
        self.registry.register(EVENTS_V1, *METRICS, *ACCESS_REVIEWS, *AUTHENTICATION_REVIEWS)
        self._documents = openapi.Documents(self.registry, clock)
        self.store = Store(clock, ring_events, log=log)
        self.resources = Resources(self.store, self.registry, clock)
        self._webhook_calls = HttpsCaller()
        rbac = Rbac(self.resources)
        self.authorizer = authorizer or Nodes(self.resources, rbac)
        webhooks = Webhooks(self.resources, self._webhook_calls, self.authorizer)
        hooks = AdmissionChain(Policies(self.resources, self.authorizer), webhooks)
        self.writes = AdmittedWrites(self.resources, Escalation(hooks, self.authorizer, rbac))
        self._access = AccessControl(self.resources, self.authorizer)
        self._access_reviews = AccessReviews(self.resources, self.authorizer, rbac)
        self._audit = audit
        self._key = credentials.key
        accounts = AccountTokens(self.store, clock, self._key)
        self.authenticator = Authenticator(credentials.known, accounts)
        self._token_requests = TokenRequests(self.resources, self.writes, accounts)
        self._token_reviews = AuthenticationReviews(self.resources, self.authenticator)
        self._nodes = nodes
        self._connections = connections
        self._metrics = Metrics(self.resources, nodes)
        self._monitoring = health.Monitoring(self.registry, self.store)
        self._limits = limits or WatchLimits()

    async def handle(self, request: Request) -> Response | Stream | Upgraded:
        """Answer a request. Never raises: what is refused or fails becomes a Status."""
        visit = AdmittedRequest.of(request, self.resources.clock())
        try:
            media = encodings.negotiated(request)
        except StatusError as error:
            return self._recorded(visit, _refused(error))
        result = self._recorded(visit, await self._result(visit))
        return await encodings.written(result, media, request) if isinstance(result, Response) else result

    def _recorded(self, visit: AdmittedRequest, result: _Answer) -> _Answer:
        self._monitoring.count(visit.attributes, result.status, self.resources.clock() - visit.received)
        if self._audit is not None:
            self._audit.record(visit, result)
        return result

    async def _result(self, visit: AdmittedRequest) -> Response | Stream | Upgraded:
        request = visit.request
        try:
            request = self._access.admit(visit)
            if request.method == "GET":
                return await self._route(request)
            self.store.log.admit()
            result = await self._route(await read_in_worker_thread(request))
            await self.store.log.settled()
            return result
        except StatusError as error:
            return _refused(error)
        except RecursionError:  # nothing of this server's own is nested that deep
            refusal = status.bad_request("the request cannot be handled: json: exceeded max depth")
            return answer(refusal.body, refusal.code)
        except Exception:
            _log.exception("request failed: %s %s", request.method, request.path)
            failure = status.internal()
            return answer(failure.body, failure.code)

    async def close(self) -> None:
        """Give up connections to webhooks."""
        await self._webhook_calls.close()

    async def _route(self, request: Request) -> Response | Stream | Upgraded:
        segments = split_path(request.path)
        if request.method not in ("GET", "HEAD") and _is_document(segments):
            raise status.method_not_allowed()
        if (told := health.health(segments, request)) is not None:
            return told
        match segments:
            case ["metrics"]:
                return self._monitoring.page(request)
            case [""]:
                return answer(discovery.index(self.registry))
            case ["version"]:
                return answer(discovery.VERSION)
            case ["openapi", "v2"] if openapi.V2_ACCEPTED in request.accept:
                return Response(200, openapi.V2_DOCUMENT, openapi.V2_CONTENT_TYPE)
            case ["openapi", "v3", *rest]:
                return self._documents.answer(request, rest)
            case [".well-known", "openid-configuration"]:
                return openid.configuration(request)
            case ["openid", "v1", "jwks"]:
                return openid.keys(self._key)
            case ["api"] | ["apis"]:
                return self._discovery(request, core=segments == ["api"])
            case ["apis", group]:
                found = discovery.group(self.registry, group)
                if found is None:
                    raise status.unknown_path()
                return answer(found)
            case ["api", "v1", "namespaces", namespace, "pods", name, "ephemeralcontainers"]:
                self.resources.get(PODS, namespace, name)
                raise status.not_implemented("debug is not supported by the embedded cluster")
            case ["api", "v1", *rest]:
                return await self._group(request, "", "v1", rest)
            case ["apis", group, version, *rest]:
                return await self._group(request, group, version, rest)
        raise status.unknown_path()

    def _discovery(self, request: Request, core: bool) -> Response:
        version = discovery.aggregated_version(request.accept)
        if version is not None:
            body = answer(discovery.aggregated(self.registry, core, version)).body
            return Response(200, body, discovery.aggregated_content_type(version))
        return answer(discovery.api_versions() if core else discovery.group_list(self.registry))

    async def _group(self, request: Request, group: str, version: str, rest: list[str]) -> Response | Stream | Upgraded:
        if not rest:
            if not self.registry.serves(group, version):
                raise status.unknown_path()
            return answer(discovery.resource_list(self.registry, group, version))
        if group == "" and len(rest) == 3 and rest[0] == "namespaces" and rest[2] == "bindings":
            return await self._legacy_binding(request, rest[1])
        target = resolve(self.registry, group, version, rest)
        if target.rtype in METRICS:
            return await self._metrics.read(target, request)
        if target.rtype in ACCESS_REVIEWS:
            return self._access_reviews.create(target, request)
        if target.rtype in AUTHENTICATION_REVIEWS:
            return self._token_reviews.create(target, request)
        if target.subresource == "token":
            return await self._token_requests.create(target, request)
        if target.subresource == "scale":
            return await scale.respond(self.writes, target, request)
        if target.subresource not in ("", "status", "finalize", "resize"):
            return await self._pod_subresource(request, target)
        return await self._resource(request, target)

    async def _resource(self, request: Request, target: Target) -> Response | Stream:
        check_options(request, collection=not target.name)
        if target.subresource == "finalize" and request.method != "PUT":
            raise status.method_not_allowed()
        if request.method == "GET":
            if request.flag("watch") and not target.name:
                return watch(self.resources, target, request, self._limits)
            return (get.read_object if target.name else get.read_list)(self.resources, target, request)
        table = _COLLECTION if not target.name else _OBJECT if not target.subresource else _SUBRESOURCE
        act = table.get(request.method)
        if act is None or not (target.name or _writable(target, request.method)):
            raise status.method_not_allowed()
        if request.content_type == APPLY_PATCH or (request.method == "PUT" and modify.bears(self.resources, target)):
            self._access.admit_birth(target, request)
        return get.presented(self.resources, target, request, await act(self.writes, target, request))

    async def _pod_subresource(self, request: Request, target: Target) -> Response | Stream | Upgraded:
        if target.subresource not in pod_streams.WAYS:
            check_options(request, collection=False)
        where = (target.namespace, target.name)
        match (request.method, target.subresource):
            case ("POST", "binding"):
                return await self._bound(request, *where)
            case ("POST", "eviction"):
                return await self._evicted(request, *where)
            case ("GET", "log"):
                return await pod_subresources.read_log(self.resources, self._nodes, *where, request.query)
            case ("GET" | "POST", way) if way in pod_streams.WAYS:
                return await self._led_in(request, *where, way)
        raise status.method_not_allowed()

    async def _led_in(self, request: Request, namespace: str, name: str, way: str) -> Response | Upgraded:
        """A way into a pod, once admission agrees."""
        self.resources.get(PODS, namespace, name)
        options, warnings = pod_streams.options_of(request, way), list[str]()
        await self.writes.connect(connection(namespace, name, way, options, request.user), warnings)
        found = await pod_streams.open_way(self.resources, self._connections, (namespace, name), way, request)
        return replace(found, warnings=tuple(warnings))

    async def _bound(self, request: Request, namespace: str, name: str) -> Response:
        options, body = modify.write_options(request), body_of(request, BINDINGS)
        binding = await self._admitted(body, BINDINGS, namespace, options)
        return answer(pod_subresources.bind(self.resources, namespace, name, binding, options), 201, options.warnings)

    async def _evicted(self, request: Request, namespace: str, name: str) -> Response:
        options, body = modify.write_options(request), body_of(request, EVICTIONS, "policy/v1beta1")
        eviction = await self._admitted(body, EVICTIONS, namespace, options)
        return answer(pod_subresources.evict(self.resources, namespace, name, eviction, options), 201, options.warnings)

    async def _admitted(self, body: Object, rtype: ResourceType, namespace: str, options: WriteOptions) -> Object:
        """The body of a request to a sub-resource of pods, as admission webhooks leave it."""
        check_place(body, rtype, namespace)
        body = self.resources.accepted(rtype, body, options)
        body |= {"apiVersion": rtype.api_version, "kind": rtype.kind}
        body["metadata"]["namespace"] = namespace
        return await self.writes.admit(PODS, rtype.kind.lower(), body, None, options)

    async def _legacy_binding(self, request: Request, namespace: str) -> Response:
        """POST …/bindings, where the binding's own name says which pod it is for."""
        if request.method != "POST":
            raise status.method_not_allowed()
        check_options(request)
        name = dig(body_of(request, BINDINGS), "metadata.name")
        if not name:
            raise status.bad_request("Name parameter required.")
        return await self._bound(request, namespace, str(name))


def _writable(target: Target, method: str) -> bool:
    """Whether a collection takes this method: what has namespaces is written in one of them."""
    verb = {"POST": "create", "DELETE": "deletecollection"}.get(method, "")
    return verb in target.rtype.verbs and bool(target.namespace or not target.rtype.namespaced)


def _is_document(segments: list[str]) -> bool:
    """Whether the path is one of the server's own descriptions, which can only be read."""
    depth = {"version": 1, "openapi": 4, "api": 2, "apis": 3, ".well-known": 2, "openid": 3}.get(segments[0], 0)
    return len(segments) <= depth


def _refused(error: StatusError) -> Response:
    seconds = error.details.get("retryAfterSeconds")
    return Response(error.code, encode(error.body), headers={"Retry-After": str(seconds)} if seconds else {})


_Act = Callable[[AdmittedWrites, Target, Request], Awaitable[Response]]
_COLLECTION: dict[str, _Act] = {"POST": modify.create, "DELETE": modify.delete_collection}
_OBJECT: dict[str, _Act] = {"PUT": modify.replace, "PATCH": modify.patch, "DELETE": modify.delete}
_SUBRESOURCE: dict[str, _Act] = {"PUT": modify.replace, "PATCH": modify.patch}
