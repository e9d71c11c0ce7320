"""HTTP as the standard library speaks it: what goes over the wire is exactly what a test says."""

from __future__ import annotations

import http.client
import json
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode, urlsplit

import kubernetes

from embedded.tests.conformance.clients import Refused
from embedded.tests.conformance.resources import Object, Resource

PATCH_TYPES = {
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "json": "application/json-patch+json",
    "apply": "application/apply-patch+yaml",
}
# snake_case options of every client → query parameters
OPTIONS = {
    "dry_run": "dryRun",
    "field_manager": "fieldManager",
    "field_validation": "fieldValidation",
    "propagation": "propagationPolicy",
    "grace": "gracePeriodSeconds",
}
_SECONDS = 60


@dataclass(frozen=True)
class Answer:
    code: int
    headers: http.client.HTTPMessage
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def media_type(self) -> str:
        return self.headers.get_content_type()


def query_of(options: dict[str, Any]) -> dict[str, str]:
    named = {OPTIONS.get(name, name): value for name, value in options.items() if value is not None}
    return {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in named.items()}


def _tls(configuration: kubernetes.client.Configuration, certified: bool) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=configuration.ssl_ca_cert)
    if certified and configuration.cert_file:
        context.load_cert_chain(configuration.cert_file, configuration.key_file)
    if not configuration.verify_ssl:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


class RawClient:
    """Requests with the credentials of a kubeconfig."""

    def __init__(self, configuration: kubernetes.client.Configuration) -> None:
        self._address = urlsplit(configuration.host)
        # By whether the certificate of the kubeconfig is shown: where it is, a server asks for no token.
        self._tls = {shown: _tls(configuration, shown) for shown in (True, False)}
        token = configuration.auth_settings().get("BearerToken")
        self._credentials = {"Authorization": token["value"]} if token else {}
        self._connections: dict[bool, http.client.HTTPConnection] = {}

    def _connect(self, certified: bool = True) -> http.client.HTTPConnection:
        host, port = self._address.hostname or "", self._address.port
        if self._address.scheme == "http":
            return http.client.HTTPConnection(host, port, timeout=_SECONDS)
        return http.client.HTTPSConnection(host, port, timeout=_SECONDS, context=self._tls[certified])

    def close(self) -> None:
        while self._connections:
            self._connections.popitem()[1].close()

    def _send(self, connection: http.client.HTTPConnection, method: str, path: str, **more: Any) -> Any:
        body, headers = more.get("body"), dict(more.get("headers") or {})
        if body is not None and not isinstance(body, bytes):
            body = body.encode() if isinstance(body, str) else json.dumps(body).encode()
            headers = {"Content-Type": "application/json"} | headers
        query = query_of(more.get("query") or {})
        url = self._address.path.rstrip("/") + path + ("?" + urlencode(query) if query else "")
        credentials = {} if more.get("anonymous") else self._credentials
        connection.request(method, url, body, credentials | {"Accept": "application/json"} | headers)
        return connection.getresponse()

    def answer(self, method: str, path: str, **more: Any) -> Answer:
        """The answer whatever its code; `more`: body, query, headers, anonymous. A stale connection is made again.

        A request that is anonymous or has a token of its own shows no certificate.
        """
        certified = not more.get("anonymous") and "Authorization" not in (more.get("headers") or {})
        for attempt in (1, 2):
            fresh = certified not in self._connections
            if fresh:
                self._connections[certified] = self._connect(certified)
            connection = self._connections[certified]
            try:
                response = self._send(connection, method, path, **more)
                return Answer(response.status, response.headers, response.read())
            except (ConnectionError, http.client.HTTPException, ssl.SSLError):
                self.close()
                if fresh or attempt == 2:
                    raise
        raise AssertionError("unreachable")

    def call(self, method: str, path: str, **more: Any) -> Any:
        """The decoded answer; raises Refused from 400 on."""
        answer = self.answer(method, path, **more)
        if answer.code >= 400:
            raise Refused.from_body(answer.code, answer.body)
        return answer.json

    def _object(self, method: str, path: str, **more: Any) -> Object:
        found: Object = self.call(method, path, **more)
        return found

    def create(self, resource: Resource, namespace: str, obj: Object, **options: Any) -> Object:
        return self._object("POST", resource.path(namespace), body=obj, query=options)

    def get(self, resource: Resource, namespace: str, name: str) -> Object:
        return self._object("GET", resource.path(namespace, name))

    def list(self, resource: Resource, namespace: str, labels: str = "", fields: str = "") -> list[Object]:
        query = {"labelSelector": labels, "fieldSelector": fields}
        items: list[Object] = self.call("GET", resource.path(namespace), query=query)["items"]
        return items

    def replace(self, resource: Resource, namespace: str, obj: Object, **options: Any) -> Object:
        path = resource.path(namespace, obj["metadata"]["name"], options.pop("subresource", ""))
        return self._object("PUT", path, body=obj, query=options)

    def patch(
        self, resource: Resource, target: tuple[str, str], kind: str, body: Any, subresource: str = "", **options: Any
    ) -> Object:
        path = resource.path(*target, subresource)
        return self._object("PATCH", path, body=body, query=options, headers={"Content-Type": PATCH_TYPES[kind]})

    def apply(
        self, resource: Resource, namespace: str, obj: Object, manager: str, force: bool = False, **options: Any
    ) -> Object:
        options |= {"field_manager": manager} | ({"force": True} if force else {})
        return self.patch(resource, (namespace, obj["metadata"]["name"]), "apply", obj, **options)

    def delete(self, resource: Resource, namespace: str, name: str, **options: Any) -> None:
        self.call("DELETE", resource.path(namespace, name), query=options)

    def watch(self, path: str, **query: Any) -> Iterator[Object]:
        """The events of a watch until the server ends it; raises Refused when it does not begin."""
        connection = self._connect()
        try:
            headers = query.pop("headers", {})
            response = self._send(connection, "GET", path, query={"watch": True} | query, headers=headers)
            if response.status >= 400:
                raise Refused.from_body(response.status, response.read())
            for line in response:
                if line.strip():
                    yield json.loads(line)
        finally:
            connection.close()
