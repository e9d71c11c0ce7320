"""One try of each kind of handler, with the kubelet's words for what went wrong."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from typing import Any

import grpc
import msgspec
import pytest
from aiohttp import web

from embedded.fault import KernelFault
from embedded.node.objects.pod import ProbeSpec
from embedded.node.pods.handlers import Attempts
from embedded.node.pods.probe_results import Outcome
from embedded.node.ports import Execution, Exit


class Process:
    """A container that answers as told."""

    container_id = "c"

    def __init__(self, answer: Execution | KernelFault) -> None:
        self._answer = answer

    async def execute(self, command: list[str], timeout_seconds: float) -> Execution:
        if isinstance(self._answer, KernelFault):
            raise self._answer
        return self._answer

    async def wait(self) -> Exit:
        return Exit(0)

    def terminate(self) -> bool:
        return True

    def kill(self) -> None: ...


PASSED = Execution(0)


def attempt(pod: Any, handler: dict[str, Any], answer: Execution | KernelFault = PASSED) -> Outcome:
    container = pod(containers=[{"ports": [{"name": "web", "containerPort": 1}]}]).spec.containers[0]
    attempts = Attempts(container, Process(answer), asyncio.sleep)
    return asyncio.run(attempts.attempt(msgspec.convert(handler, ProbeSpec), 1.0))


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        pytest.param(Execution(0, b"fine"), Outcome(True, "fine"), id="passed"),
        pytest.param(Execution(2, b"no\n"), Outcome(False, "no\n"), id="failed"),
        pytest.param(Execution(None), Outcome(False, 'command timed out: "sh -c x" timed out after 1s'), id="too slow"),
        pytest.param(KernelFault("exec", "no sh"), Outcome(False, "exec: no sh", errored=True), id="cannot be run"),
    ],
)
def test_command(pod: Any, answer: Execution | KernelFault, expected: Outcome) -> None:
    """A command's exit code decides; one that cannot be run says nothing about the container."""
    assert attempt(pod, {"exec": {"command": ["sh", "-c", "x"]}}, answer) == expected


def test_nothing_to_do(pod: Any) -> None:
    """A probe without a handler is told apart from a failure."""
    assert attempt(pod, {}).errored


@pytest.mark.parametrize(
    ("answer", "service", "expected"),
    [
        pytest.param(b"\x08\x01", "", Outcome(True, "service healthy"), id="serving"),
        pytest.param(
            b"\x08\x02", "db", Outcome(False, 'service unhealthy (responded with "NOT_SERVING")'), id="not serving"
        ),
        pytest.param(b"", "db", Outcome(False, 'service unhealthy (responded with "UNKNOWN")'), id="unknown"),
    ],
)
def test_grpc(pod: Any, answer: bytes, service: str, expected: Outcome) -> None:
    """The standard health service decides."""
    asked: list[bytes] = []

    class Health(grpc.GenericRpcHandler):
        def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler | None:
            async def check(request: bytes, context: Any) -> bytes:
                asked.append(request)
                return answer

            return grpc.unary_unary_rpc_method_handler(check) if details.method.endswith("Health/Check") else None

    async def play() -> Outcome:
        server = grpc.aio.server(handlers=[Health()])
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        try:
            attempts = Attempts(pod().spec.containers[0], Process(PASSED), asyncio.sleep)
            probe = msgspec.convert({"grpc": {"port": port, "service": service}}, ProbeSpec)
            return await attempts.attempt(probe, 20)
        finally:
            await server.stop(None)

    assert asyncio.run(play()) == expected
    assert asked == [b"\n\x02db" if service else b""]


def test_grpc_nobody_listens(pod: Any) -> None:
    """As the kubelet says it."""
    port = free_port()
    outcome = attempt(pod, {"grpc": {"port": port}})
    assert not outcome.passed
    assert outcome.output.startswith(f'timeout: failed to connect service "127.0.0.1:{port}" within 1s: ')


async def served(
    answer: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]], probe: Callable[[int], Awaitable[Outcome]]
) -> Outcome:
    server = web.Server(answer)
    runner = web.ServerRunner(server, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        return await probe(runner.addresses[0][1])
    finally:
        await runner.cleanup()


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (200, Outcome(True, "seen: v kube-probe/1.37")),
        (399, Outcome(True, "seen: v kube-probe/1.37")),
        (404, Outcome(False, "HTTP probe failed with statuscode: 404")),
        (500, Outcome(False, "HTTP probe failed with statuscode: 500")),
    ],
)
def test_http(pod: Any, status: int, expected: Outcome) -> None:
    """200 to 399 pass; headers arrive."""

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        text = f"seen: {request.headers['X-Own']} {request.headers['User-Agent']}"
        return web.Response(status=status, text=text)

    async def probe(port: int) -> Outcome:
        action = {"port": port, "path": "ok", "httpHeaders": [{"name": "X-Own", "value": "v"}]}
        container = pod().spec.containers[0]
        attempts = Attempts(container, Process(Execution(0)), asyncio.sleep)
        return await attempts.attempt(msgspec.convert({"httpGet": action}, ProbeSpec), 20)

    assert asyncio.run(served(answer, probe)) == expected


def test_http_too_slow(pod: Any) -> None:
    """Go's words for a deadline."""

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        await asyncio.Event().wait()
        raise AssertionError

    async def probe(port: int) -> Outcome:
        attempts = Attempts(pod().spec.containers[0], Process(Execution(0)), asyncio.sleep)
        return await attempts.attempt(msgspec.convert({"httpGet": {"port": port}}, ProbeSpec), 0.05)

    outcome = asyncio.run(served(answer, probe))
    assert not outcome.passed and outcome.output.endswith("(Client.Timeout exceeded while awaiting headers)")


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def test_nobody_listens(pod: Any) -> None:
    """Connection refused, as Go says it."""
    port = free_port()
    refused = f"dial tcp 127.0.0.1:{port}: connect: connection refused"
    assert attempt(pod, {"tcpSocket": {"port": port}}) == Outcome(False, refused)
    assert attempt(pod, {"httpGet": {"port": port}}) == Outcome(False, f'Get "http://127.0.0.1:{port}/": {refused}')


def test_tcp(pod: Any) -> None:
    """A connection is enough; a port has a number, or a name of the container's."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        assert attempt(pod, {"tcpSocket": {"port": server.getsockname()[1]}}) == Outcome(True)
    assert "127.0.0.1:1:" in attempt(pod, {"tcpSocket": {"port": "web"}}).output


@pytest.mark.parametrize(
    "handler", [{"tcpSocket": {"port": 1}}, {"httpGet": {"port": 1}}, {"httpGet": {"port": 1, "scheme": "HTTPS"}}]
)
def test_address_of_the_pod(pod: Any, handler: dict[str, Any]) -> None:
    """Probes go to the pod's own address unless they name a host."""
    container = pod().spec.containers[0]
    attempts = Attempts(container, Process(PASSED), asyncio.sleep, "127.65.0.2")
    assert "127.65.0.2:1" in asyncio.run(attempts.attempt(msgspec.convert(handler, ProbeSpec), 5)).output
    elsewhere = {kind: {**action, "host": "127.0.0.9"} for kind, action in handler.items()}
    assert "127.0.0.9:1" in asyncio.run(attempts.attempt(msgspec.convert(elsewhere, ProbeSpec), 5)).output
