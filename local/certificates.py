"""A certificate authority for one machine, its server certificates, and random tokens.

The authority's key never reaches the disk: it lives as long as the process that starts the servers.
"""

from __future__ import annotations

import secrets
from datetime import UTC, datetime, timedelta

from kube import x509

LOOPBACK_NAMES = ("localhost", "127.0.0.1", "::1")
VALIDITY = timedelta(days=365)


class Authority:
    """A self-signed CA that exists in memory and signs server certificates; `now` is the time of issue."""

    def __init__(self, name: str, now: datetime | None = None) -> None:
        self._now = now or datetime.now(UTC)
        self._signer = x509.Authority.create(name, self._now, VALIDITY)

    @property
    def certificate_pem(self) -> bytes:
        return self._signer.certificate_pem

    def issue(self, name: str, names: tuple[str, ...] = LOOPBACK_NAMES) -> tuple[bytes, bytes]:
        """A server certificate for host names and addresses: (certificate PEM, unencrypted key PEM)."""
        pair = self._signer.issue(name, names, self._now, VALIDITY)
        return pair.certificate, pair.key


def random_token() -> str:
    """A bearer token that cannot be guessed: 256 bits, safe in URLs, headers and `token,name` lines."""
    return secrets.token_urlsafe(32)
