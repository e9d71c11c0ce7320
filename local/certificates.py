"""A certificate authority for one machine, its server certificates, and random tokens.

The authority's key never reaches the disk: it lives as long as the process that starts the servers.
"""

from __future__ import annotations

import secrets
from datetime import UTC, datetime, timedelta

from cryptography import x509 as crypto
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from kube import x509

LOOPBACK_NAMES = ("localhost", "127.0.0.1", "::1")
VALIDITY = timedelta(days=365)


class LocalAuthority:
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

    def issue_client(self, name: str) -> tuple[bytes, bytes]:
        """A client certificate of the user `name`: (certificate PEM, unencrypted key PEM)."""
        signer = serialization.load_pem_private_key(self._signer.pair.key, None)
        assert isinstance(signer, ec.EllipticCurvePrivateKey)
        key = ec.generate_private_key(ec.SECP256R1())
        issuer = crypto.load_pem_x509_certificate(self.certificate_pem)
        made = (
            crypto.CertificateBuilder()
            .subject_name(crypto.Name([crypto.NameAttribute(NameOID.COMMON_NAME, name)]))
            .issuer_name(issuer.subject)
            .public_key(key.public_key())
            .serial_number(crypto.random_serial_number())
            .not_valid_before(self._now - x509.CLOCK_SKEW)
            .not_valid_after(issuer.not_valid_after_utc)
            .add_extension(crypto.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
            .sign(signer, hashes.SHA256())
        )
        form, secret = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        encoding = serialization.Encoding.PEM
        return made.public_bytes(encoding), key.private_bytes(encoding, form, secret)


def random_token() -> str:
    """A bearer token that cannot be guessed: 256 bits, safe in URLs, headers and `token,name` lines."""
    return secrets.token_urlsafe(32)
