"""Certificates as the Kubernetes world passes them around: PEM, ECDSA P-256, an authority and what it signed.

Nothing here reads a clock: the time of issue is given, and so is the life of a certificate.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from ipaddress import ip_address

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

CLOCK_SKEW = timedelta(hours=1)
"""Clients whose clock is a little behind ours must still find a certificate valid."""


class KeyPair(msgspec.Struct, frozen=True):
    """A certificate and its unencrypted key, both PEM."""

    certificate: bytes
    key: bytes


class CertificateFacts(msgspec.Struct, frozen=True):
    """What a certificate says of itself; times are Unix seconds, ids are hex of the keys' identifiers."""

    fingerprint: str
    key_id: str
    signer_id: str
    not_before: float
    not_after: float
    names: tuple[str, ...] = ()


class Authority:
    """A certificate authority that signs server certificates."""

    def __init__(self, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> None:
        self._certificate = certificate
        self._key = key

    @classmethod
    def create(cls, name: str, now: datetime, life: timedelta) -> Authority:
        """A new self-signed one."""
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = (
            _builder((_named(name), _named(name)), key.public_key(), now, life)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_usage(signs=True), critical=True)
            .sign(key, hashes.SHA256())
        )
        return cls(certificate, key)

    @classmethod
    def load(cls, pair: KeyPair) -> Authority:
        """One that was kept. Raises ValueError where the two are not an authority and its key."""
        certificate, key = _loaded(pair)
        return cls(certificate, key)

    @property
    def pair(self) -> KeyPair:
        return KeyPair(self.certificate_pem, _key_pem(self._key))

    @property
    def certificate_pem(self) -> bytes:
        return self._certificate.public_bytes(serialization.Encoding.PEM)

    def issue(self, name: str, names: Iterable[str], now: datetime, life: timedelta) -> KeyPair:
        """A server certificate for host names and addresses; it never outlives its authority."""
        key = ec.generate_private_key(ec.SECP256R1())
        life = min(life, self._certificate.not_valid_after_utc - now)
        certificate = (
            _builder((_named(name), self._certificate.subject), key.public_key(), now, life)
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
        return KeyPair(certificate.public_bytes(serialization.Encoding.PEM), _key_pem(key))


def request(name: str, organization: str) -> tuple[bytes, bytes]:
    """A request for a client certificate: (request PEM, unencrypted key PEM)."""
    key = ec.generate_private_key(ec.SECP256R1())
    group = x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization)
    subject = x509.Name([group, x509.NameAttribute(NameOID.COMMON_NAME, name)])
    made = x509.CertificateSigningRequestBuilder().subject_name(subject).sign(key, hashes.SHA256())
    return made.public_bytes(serialization.Encoding.PEM), _key_pem(key)


def described(pair: KeyPair) -> CertificateFacts:
    """A certificate with its key. Raises ValueError where one is damaged or they do not belong together."""
    certificate, _ = _loaded(pair)
    return _described(certificate)


def described_certificate(pem: bytes) -> CertificateFacts:
    """A certificate alone. Raises ValueError where it is damaged."""
    return _described(x509.load_pem_x509_certificate(pem))


def _loaded(pair: KeyPair) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
    certificate = x509.load_pem_x509_certificate(pair.certificate)
    try:
        key = serialization.load_pem_private_key(pair.key, password=None)
    except TypeError as error:
        raise ValueError("the key is encrypted") from error
    if not isinstance(key, ec.EllipticCurvePrivateKey) or certificate.public_key() != key.public_key():
        raise ValueError("the key is not the certificate's")
    return certificate, key


def _described(certificate: x509.Certificate) -> CertificateFacts:
    own = x509.SubjectKeyIdentifier.from_public_key(certificate.public_key())
    return CertificateFacts(
        fingerprint=certificate.fingerprint(hashes.SHA256()).hex(),
        key_id=own.digest.hex(),
        signer_id=_signer(certificate) or own.digest.hex(),
        not_before=certificate.not_valid_before_utc.timestamp(),
        not_after=certificate.not_valid_after_utc.timestamp(),
        names=_names(certificate),
    )


def _signer(certificate: x509.Certificate) -> str:
    """Empty where the certificate does not name its authority's key, as one that signed itself need not."""
    try:
        found = certificate.extensions.get_extension_for_class(x509.AuthorityKeyIdentifier).value
    except x509.ExtensionNotFound:
        return ""
    return (found.key_identifier or b"").hex()


def _names(certificate: x509.Certificate) -> tuple[str, ...]:
    try:
        found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return ()
    return tuple(str(name.value) for name in found)


def _builder(
    names: tuple[x509.Name, x509.Name], key: ec.EllipticCurvePublicKey, now: datetime, life: timedelta
) -> x509.CertificateBuilder:
    """`names` are subject and issuer."""
    subject, issuer = names
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - CLOCK_SKEW)
        .not_valid_after(now + life)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


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
