"""Ways into a running pod: exec, attach and port-forward, handed to the node that runs it.

What is said there is between the client and the node, whose bytes pass through untouched once the node has agreed to
another protocol: a websocket, or SPDY/3.1. Words are those of kube-apiserver (pkg/registry/core/pod/strategy.go) where
it refuses, and of the node where that does, as plain text.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from email.parser import BytesHeaderParser
from typing import Protocol
from urllib.parse import parse_qsl, quote, urlencode

from embedded.apiserver.apimachinery import status
from embedded.apiserver.apimachinery.objects import Object, dig, name_of
from embedded.apiserver.apimachinery.resource_types import NODES, PODS
from embedded.apiserver.apimachinery.status import StatusError
from embedded.apiserver.handlers.pod_subresources import container_of
from embedded.apiserver.registry.resources import Resources
from embedded.apiserver.request.messages import Request, Response, Upgraded

WAYS = ("exec", "attach", "portforward")
# Kubernetes' words for a command's streams, and the kubelet's.
_STREAMS = {"stdin": "input", "stdout": "output", "stderr": "error", "tty": "tty"}
_PASSED_ON = (
    *("connection", "upgrade", "sec-websocket-key", "sec-websocket-version", "sec-websocket-protocol"),
    "x-stream-protocol-version",
)
_CONNECT_SECONDS = 5.0
# The node agrees at once; a client that is slow to open its streams is waited for after that.
_ANSWER_SECONDS = 10.0
_HEAD_BYTES, _BODY_BYTES = 16 << 10, 64 << 10
_PORT_DIGITS = 5


class NodeConnections(Protocol):
    """Nodes that can be asked to go on in another protocol."""

    async def upgrade(self, port: int, target: str, headers: Mapping[str, str]) -> Response | Upgraded:
        """The node's agreement, or its refusal; raises 502 where it does not answer."""


async def open_way(
    resources: Resources, nodes: NodeConnections | None, pod_name: tuple[str, str], way: str, request: Request
) -> Response | Upgraded:
    """A way into a pod, by namespace and name. Raises StatusError, 501 where the pod's node leads nobody in."""
    namespace, name = pod_name
    pod = resources.get(PODS, namespace, name)
    options = parse_qsl(request.query_string, keep_blank_values=True)
    where = [namespace, name] + ([] if way == "portforward" else [container_of(pod, _last(options, "container"))])
    node_name = dig(pod, "spec.nodeName")
    if not node_name:
        raise status.bad_request(f"pod {name_of(pod)} does not have a host assigned")
    if "upgrade" not in request.headers.get("connection", "").lower() or not request.headers.get("upgrade"):
        raise status.bad_request("Upgrade request required")
    port = dig(resources.find(NODES, "", node_name) or {}, "status.daemonEndpoints.kubeletEndpoint.Port")
    if nodes is None or not port:
        raise status.not_implemented(
            f'node "{node_name}" leads nobody into its pods: it reports no '
            "status.daemonEndpoints.kubeletEndpoint.Port, or this server has no --kubelet-token-file"
        )
    path = "/".join(quote(each, safe="") for each in ({"portforward": "portForward"}.get(way, way), *where))
    passed = {key: value for key, value in request.headers.items() if key in _PASSED_ON}
    return await nodes.upgrade(int(port), f"/{path}?{urlencode(_for_node(options, way))}", passed)


def options_of(request: Request, way: str) -> Object:
    """What a request asks for, as the object that admission is shown."""
    given = parse_qsl(request.query_string, keep_blank_values=True)
    kind = {"exec": "PodExecOptions", "attach": "PodAttachOptions", "portforward": "PodPortForwardOptions"}[way]
    found: Object = {"apiVersion": "v1", "kind": kind}
    if way == "portforward":
        texts = [text for key, value in given if key == "ports" for text in value.split(",")]
        ports = [int(text) for text in texts if text.isdecimal() and len(text) <= _PORT_DIGITS]
        return found | ({"ports": ports} if ports else {})
    found |= {name: True for name in _STREAMS if _flag(_last(given, name))}
    if container := _last(given, "container"):
        found["container"] = container
    if way == "exec":
        found["command"] = [value for key, value in given if key == "command"]
    return found


def _for_node(options: list[tuple[str, str]], way: str) -> list[tuple[str, str]]:
    if way == "portforward":
        return [("port", value) for key, value in options if key == "ports"]
    streams = [(theirs, "1") for ours, theirs in _STREAMS.items() if _flag(_last(options, ours))]
    return [*streams, *(each for each in options if each[0] == "command" and way == "exec")]


def _last(options: list[tuple[str, str]], name: str) -> str:
    return next((value for key, value in reversed(options) if key == name), "")


def _flag(text: str) -> bool:
    return text.lower() in ("1", "true", "t")


@dataclass(frozen=True, slots=True)
class NodeHttpsConnections:
    """Implements NodeConnections: `https://127.0.0.1:<port>/…` with the nodes' bearer token."""

    token: str
    tls: ssl.SSLContext

    async def upgrade(self, port: int, target: str, headers: Mapping[str, str]) -> Response | Upgraded:
        try:
            async with asyncio.timeout(_CONNECT_SECONDS):
                reader, writer = await asyncio.open_connection(
                    "127.0.0.1", port, ssl=self.tls, server_hostname="127.0.0.1", limit=_HEAD_BYTES
                )
        except (OSError, TimeoutError) as error:
            raise _silent(port, error) from None
        try:
            async with asyncio.timeout(_ANSWER_SECONDS):
                writer.write(self._request(port, target, headers))
                head = await reader.readuntil(b"\r\n\r\n")
                first, _, rest = head.partition(b"\r\n")
                code = int(first.split(b" ", 2)[1])
                if code == 101:
                    return Upgraded(head, reader, writer)
                fields = BytesHeaderParser().parsebytes(rest)
                body = await reader.readexactly(min(int(fields.get("Content-Length", "0")), _BODY_BYTES))
        except (OSError, TimeoutError, EOFError, asyncio.LimitOverrunError, ValueError, IndexError) as error:
            writer.close()
            raise _silent(port, error) from None
        except BaseException:
            writer.close()
            raise
        writer.close()
        told = {key: value for key, value in fields.items() if key.lower().startswith("x-")}
        return Response(code, body, "text/plain; charset=utf-8", headers=told)

    def _request(self, port: int, target: str, headers: Mapping[str, str]) -> bytes:
        own = {"Host": f"127.0.0.1:{port}", "Authorization": f"Bearer {self.token}", "Content-Length": "0"}
        websocket = "websocket" in headers.get("upgrade", "").lower()
        lines = [f"{'GET' if websocket else 'POST'} {target} HTTP/1.1"]
        lines += [f"{key}: {value}" for key, value in {**own, **headers}.items()]
        return "\r\n".join([*lines, "", ""]).encode("latin-1")


def _silent(port: int, error: Exception) -> StatusError:
    return StatusError(502, "BadGateway", f"the node on port {port} does not answer: {error or type(error).__name__}")
