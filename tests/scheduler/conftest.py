"""Certificates for servers under test; and the builders below this folder, made importable."""

from __future__ import annotations

import datetime
import ipaddress
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent / "builders")]


class Certificate(NamedTuple):
    """PEM files of a self-signed certificate for 127.0.0.1 and localhost."""

    certificate: Path
    key: Path


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    folder = tmp_path_factory.mktemp("certificate")
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    today = datetime.datetime.now(datetime.UTC)
    names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(today - datetime.timedelta(days=1))
        .not_valid_after(today + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    (folder / "tls.crt").write_bytes(signed.public_bytes(pem))
    private = serialization.PrivateFormat.PKCS8
    (folder / "tls.key").write_bytes(key.private_bytes(pem, private, serialization.NoEncryption()))
    return Certificate(folder / "tls.crt", folder / "tls.key")


@pytest.fixture
def cluster(tmp_path: Path, certificate: Certificate) -> Iterator[Any]:
    """An embedded API server of its own."""
    from scheduler_processes import Cluster

    running = Cluster(tmp_path, certificate)
    try:
        yield running
    finally:
        running.process.kill()
        running.process.wait(10)
