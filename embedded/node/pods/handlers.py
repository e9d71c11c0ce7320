"""One try of a probe or a lifecycle hook: a command in the container, an HTTP request, a TCP connection, a pause.

Source: kubernetes pkg/probe/http/http.go, pkg/probe/tcp/tcp.go, pkg/probe/exec/exec.go. Words are the kubelet's.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable

import aiohttp
import msgspec

from embedded.fault import KernelFault
from embedded.node.objects.pod import HOST_ADDRESS, Handler, HttpGetAction, PodContainer, TcpSocketAction
from embedded.node.pods.probe_results import Outcome
from embedded.node.ports import ContainerPort

_OUTPUT_BYTES = 10 * 1024
_USER_AGENT = "kube-probe/1.37"
_NOT_VERIFIED = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
_NOT_VERIFIED.check_hostname = False
_NOT_VERIFIED.verify_mode = ssl.CERT_NONE


class Attempts(msgspec.Struct, frozen=True):
    """Tries handlers of one container; `sleep` is asyncio.sleep but in tests, `address` is the pod's."""

    container: PodContainer
    process: ContainerPort
    sleep: Callable[[float], Awaitable[None]]
    address: str = HOST_ADDRESS

    async def attempt(self, handler: Handler, timeout_seconds: float) -> Outcome:
        """Never raises: what cannot be tried is an outcome too."""
        if handler.exec:
            return await self._command(handler.exec.command or [], timeout_seconds)
        if handler.http_get:
            return await self._http(handler.http_get, timeout_seconds)
        if handler.tcp_socket:
            return await self._tcp(handler.tcp_socket, timeout_seconds)
        if handler.grpc:
            from embedded.node.pods import grpc_health

            address = f"{self.address}:{handler.grpc.port}"
            return await grpc_health.check(address, handler.grpc.service or "", timeout_seconds)
        if handler.sleep:
            await self.sleep(handler.sleep.seconds)
            return Outcome(True)
        return Outcome(False, "the handler names nothing to do", errored=True)

    async def _command(self, command: list[str], timeout_seconds: float) -> Outcome:
        try:
            done = await self.process.execute(command, timeout_seconds)
        except KernelFault as fault:
            return Outcome(False, str(fault), errored=True)
        if done.code is None:
            return Outcome(False, f'command timed out: "{" ".join(command)}" timed out after {_span(timeout_seconds)}')
        return Outcome(done.code == 0, done.output.decode(errors="replace"))

    async def _http(self, action: HttpGetAction, timeout_seconds: float) -> Outcome:
        url = _url(action, self.address, port_number(self.container, action.port))
        headers = {"User-Agent": _USER_AGENT, "Accept": "*/*"}
        headers |= {each.name: each.value for each in action.http_headers or []}
        timeout = aiohttp.ClientTimeout(total=timeout_seconds)
        try:
            async with (
                aiohttp.ClientSession(trust_env=False) as session,
                session.get(url, headers=headers, timeout=timeout, ssl=_NOT_VERIFIED) as answer,
            ):
                if 200 <= answer.status < 400:
                    return Outcome(True, (await answer.content.read(_OUTPUT_BYTES)).decode(errors="replace"))
                return Outcome(False, f"HTTP probe failed with statuscode: {answer.status}")
        except TimeoutError:
            waited = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
            return Outcome(False, f'Get "{url}": {waited}')
        except (aiohttp.ClientError, OSError, ValueError) as error:
            return Outcome(False, f'Get "{url}": {_dial_words(error, url)}')

    async def _tcp(self, action: TcpSocketAction, timeout_seconds: float) -> Outcome:
        host, port = action.host or self.address, port_number(self.container, action.port)
        try:
            _, writer = await asyncio.wait_for(asyncio.open_connection(host, port), timeout_seconds)
        except TimeoutError:
            return Outcome(False, f"dial tcp {host}:{port}: i/o timeout")
        except OSError as error:
            return Outcome(False, f"dial tcp {host}:{port}: connect: {_words(error)}")
        writer.close()
        return Outcome(True)


def port_number(container: PodContainer, port: int | str) -> int:
    """A port by number, or by the name the container gives it; 0 for a name nobody has."""
    if isinstance(port, int):
        return port
    named = next((each.container_port for each in container.ports or [] if each.name == port), None)
    return named if named is not None else int(port) if port.isdigit() else 0


def _url(action: HttpGetAction, address: str, port: int) -> str:
    path = action.path or "/"
    host = action.host or address
    return f"{(action.scheme or 'HTTP').lower()}://{host}:{port}{path if path.startswith('/') else '/' + path}"


def _dial_words(error: Exception, url: str) -> str:
    if isinstance(error, aiohttp.ClientConnectorError):
        return f"dial tcp {url.partition('://')[2].partition('/')[0]}: connect: {_words(error.os_error)}"
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return "EOF"
    return str(error) or type(error).__name__


def _words(error: OSError) -> str:
    """`connection refused`, as Go has it; asyncio wraps the system's words."""
    if isinstance(error, ConnectionRefusedError):
        return "connection refused"
    return (error.strerror or str(error)).lower()


def _span(seconds: float) -> str:
    return f"{seconds:g}s"
