"""A gRPC probe: grpc.health.v1.Health/Check. Imported at the first such probe only, for grpc is slow to load.

Source: kubernetes pkg/probe/grpc/grpc.go.
"""

from __future__ import annotations

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from embedded.node.pods.probe_results import Outcome


async def check(address: str, service: str, timeout_seconds: float) -> Outcome:
    """Passes when the service says SERVING within the time."""
    async with grpc.aio.insecure_channel(address, options=[("grpc.enable_http_proxy", 0)]) as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        try:
            answer = await stub.Check(health_pb2.HealthCheckRequest(service=service), timeout=timeout_seconds)
        except grpc.aio.AioRpcError as error:
            return Outcome(False, _words(error, address, timeout_seconds))
    status = health_pb2.HealthCheckResponse.ServingStatus.Name(answer.status)
    if status == "SERVING":
        return Outcome(True, "service healthy")
    return Outcome(False, f'service unhealthy (responded with "{status}")')


def _words(error: grpc.aio.AioRpcError, address: str, timeout_seconds: float) -> str:
    code, details = error.code(), error.details()
    if code is grpc.StatusCode.UNIMPLEMENTED:
        return f"error: this server does not implement the grpc health protocol (grpc.health.v1.Health): {details}"
    if code in (grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.UNAVAILABLE):
        return f'timeout: failed to connect service "{address}" within {timeout_seconds:g}s: {details}'
    return f"error: health rpc probe failed: {details}"
