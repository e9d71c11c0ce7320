"""Tokens of service accounts for the volumes of one pod: asked for when needed, and again in good time.

Source: kubernetes pkg/kubelet/token/token_manager.go (requiresRefresh).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

import msgspec
import structlog

from embedded.fault import KubernetesFault
from embedded.node.objects.pod import PodObject
from embedded.node.objects.sources import TokenRef, VolumeNotReady

log = structlog.get_logger()

_DEFAULT_SECONDS = 3600
_RENEW_AFTER_PART = 0.8
_RENEW_AFTER = timedelta(hours=24)


class Token(msgspec.Struct, frozen=True):
    text: str
    issued_at: datetime
    expires_at: datetime

    def due(self, now: datetime) -> bool:
        """Time for the next: four fifths of its life are over, or a day is."""
        life = self.expires_at - self.issued_at
        return now >= self.issued_at + min(life * _RENEW_AFTER_PART, _RENEW_AFTER)


def token_ref(source: Mapping[str, Any]) -> TokenRef:
    """Of one `serviceAccountToken`."""
    return TokenRef(str(source.get("audience") or ""), int(source.get("expirationSeconds") or _DEFAULT_SECONDS))


def wanted(pod: PodObject) -> Iterator[tuple[str, TokenRef]]:
    """Volume and token, for each token of the pod's volumes."""
    for volume in pod.spec.volumes or []:
        for source in (volume.get("projected") or {}).get("sources") or []:
            if source.get("serviceAccountToken") is not None:
                yield str(volume.get("name")), token_ref(source["serviceAccountToken"])


class PodTokens:
    """`ask` raises KubernetesFault."""

    def __init__(self, ask: Callable[[PodObject, TokenRef], Awaitable[Token]], now: Callable[[], datetime]) -> None:
        self._ask = ask
        self._now = now
        self._held: dict[TokenRef, Token] = {}

    async def of(self, pod: PodObject) -> dict[TokenRef, bytes]:
        """Raises VolumeNotReady; a token that could not be renewed is good until it expires."""
        for volume, ref in wanted(pod):
            held = self._held.get(ref)
            if held is None or held.due(self._now()):
                await self._renew(pod, volume, ref)
        return {ref: token.text.encode() for ref, token in self._held.items()}

    async def _renew(self, pod: PodObject, volume: str, ref: TokenRef) -> None:
        try:
            self._held[ref] = await self._ask(pod, ref)
        except KubernetesFault as fault:
            held = self._held.get(ref)
            if held is None or held.expires_at <= self._now():
                raise VolumeNotReady(volume, f"failed to fetch token: {fault}") from fault
            log.warning("token not renewed", pod=pod.full_name, error=str(fault))
