"""Ports between the parts of the admission program."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, Protocol

import msgspec
from msgspec import Meta

from admission.core.evictions import StoredPod


class WebhookLimits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What clients of the webhooks may cost."""

    body_bytes: Annotated[int, Meta(ge=1 << 16, le=1 << 26, description="Largest review that is read.")] = 3 << 20
    buffered_bytes: Annotated[
        int, Meta(ge=1 << 20, le=1 << 32, description="What all clients together may have sent of unfinished reviews.")
    ] = 64 << 20
    connections: Annotated[
        int,
        Meta(
            ge=1,
            le=100_000,
            description="Open at once, 0.3 MiB each; one more closes the oldest that asks for nothing, of the address "
            "with most of them.",
        ),
    ] = 512
    handshakes: Annotated[
        int, Meta(ge=1, le=10_000, description="Of these in their handshake; one more closes the oldest of those.")
    ] = 64
    request_seconds: Annotated[
        float, Meta(gt=0, le=60, description="Time for a handshake, to the first request, and for one to arrive.")
    ] = 5.0


class Reply(msgspec.Struct, frozen=True):
    """An HTTP answer; the body is JSON where the status is 200, else a line of text."""

    status: int
    body: bytes


Handle = Callable[[str, bytes], Awaitable[Reply]]
"""Path and body of a POST."""

FindPod = Callable[[str, str], Awaitable[StoredPod]]
"""The pod of that namespace and name as it is stored now. Raises KubernetesFault; status 404 where there is none."""


class Meter(Protocol):
    """What is counted of reviews."""

    def reviewed(self, kind: str, result: str, seconds: float) -> None: ...

    def profiled(self, profile: str, reason: str) -> None: ...


class CertificateMeter(Protocol):
    """What is counted of certificates."""

    def wrote(self, name: str) -> None: ...
