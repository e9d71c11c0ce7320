"""A certificate authority for one machine, its server certificates, and random tokens.

The authority's key never reaches the disk: it lives as long as the process that starts the servers.
"""

from __future__ import annotations

import os
import secrets
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

LOOPBACK_NAMES = ("localhost", "127.0.0.1", "::1")
VALIDITY = timedelta(days=365)
# Clients whose clock is a little behind ours must still find the certificate valid.
CLOCK_SKEW = timedelta(hours=1)


class Authority:
    """A self-signed CA that exists in memory and signs server certificates; `now` is the time of issue."""

    def __init__(self, name: str, now: datetime | None = None) -> None:
        self._now = now or datetime.now(UTC)
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._certificate = (
            self._builder(_named(name), _named(name), self._key.public_key())
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_usage(signs=True), critical=True)
            .sign(self._key, hashes.SHA256())
        )

    @property
    def certificate_pem(self) -> bytes:
        return self._certificate.public_bytes(serialization.Encoding.PEM)

    def issue(self, name: str, names: tuple[str, ...] = LOOPBACK_NAMES) -> tuple[bytes, bytes]:
        """A server certificate for host names and addresses: (certificate PEM, unencrypted key PEM)."""
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = (
            self._builder(_named(name), self._certificate.subject, key.public_key())
            .add_extension(x509.SubjectAlternativeName([_alternative(n) for n in names]), critical=False)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(signs=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()),
                critical=False,
            )
            .sign(self._key, hashes.SHA256())
        )
        return certificate.public_bytes(serialization.Encoding.PEM), _key_pem(key)

    def _builder(
        self, subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey
    ) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(issuer)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(self._now - CLOCK_SKEW)
            .not_valid_after(self._now + VALIDITY)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
        )


def random_token() -> str:
    """A bearer token that cannot be guessed: 256 bits, safe in URLs, headers and `token,name` lines."""
    return secrets.token_urlsafe(32)


def write_private(path: Path, content: bytes) -> None:
    """Write a file that its owner alone may read, from its first byte on; an older file is replaced."""
    path.unlink(missing_ok=True)
    # O_EXCL with the mode: at no moment does the file exist with wider rights or under another's ownership.
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _alternative(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs,
        crl_sign=signs,
        encipher_only=False,
        decipher_only=False,
    )


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
