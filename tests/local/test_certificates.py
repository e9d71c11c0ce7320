"""The certificates a cluster starts with are accepted by ordinary TLS, for loopback names only."""

from __future__ import annotations

import ssl
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509

from embedded.own_files import write_private
from local.certificates import LocalAuthority, random_token

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def handshake(tmp_path: Path, authority_pem: bytes, issued: tuple[bytes, bytes], host: str) -> None:
    """A TLS handshake in memory between a server with `issued` and a client that trusts `authority_pem`."""
    (tmp_path / "crt").write_bytes(issued[0])
    (tmp_path / "key").write_bytes(issued[1])
    server_context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server_context.load_cert_chain(tmp_path / "crt", tmp_path / "key")
    client_context = ssl.create_default_context(cadata=authority_pem.decode())
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = client_context.wrap_bio(to_client, to_server, server_hostname=host)
    server = server_context.wrap_bio(to_server, to_client, server_side=True)
    for _ in range(10):
        waiting = False
        for side in (client, server):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                waiting = True
        if not waiting:
            return
    raise AssertionError("the handshake did not end")


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1"])
def test_a_server_certificate_is_accepted_on_every_loopback_name(tmp_path: Path, host: str) -> None:
    """A client that trusts the authority completes the handshake."""
    authority = LocalAuthority("test")
    handshake(tmp_path, authority.certificate_pem, authority.issue("server"), host)


@pytest.mark.parametrize(
    ("case", "host", "same_authority"),
    [("another name", "example.org", True), ("another authority", "127.0.0.1", False)],
)
def test_a_server_certificate_is_refused(tmp_path: Path, case: str, host: str, same_authority: bool) -> None:
    """A name it was not issued for, or an authority that is not trusted, ends the handshake."""
    authority = LocalAuthority("test")
    trusted = authority if same_authority else LocalAuthority("test")
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(tmp_path, trusted.certificate_pem, authority.issue("server"), host)


def test_validity_covers_a_clock_that_is_behind_and_lasts_a_year() -> None:
    """Not before the time of issue less an hour, not after it plus 365 days; for the authority too."""
    authority = LocalAuthority("test", NOW)
    for pem in (authority.certificate_pem, authority.issue("server")[0]):
        certificate = x509.load_pem_x509_certificate(pem)
        assert certificate.not_valid_before_utc == NOW - timedelta(hours=1)
        assert certificate.not_valid_after_utc == NOW + timedelta(days=365)


def test_a_server_certificate_cannot_sign_others() -> None:
    """Its basic constraints say that it is no authority."""
    certificate = x509.load_pem_x509_certificate(LocalAuthority("test").issue("server")[0])
    assert certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca is False


def test_a_private_file_is_its_owners_alone(tmp_path: Path) -> None:
    """Mode 0600 also where a file with wider rights stood before."""
    path = tmp_path / "key"
    path.write_text("old")
    path.chmod(0o644)
    write_private(path, b"new")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.read_bytes() == b"new"


def test_tokens_are_long_distinct_and_safe_in_token_lines() -> None:
    """At least 256 bits, never the same twice, no comma or space."""
    tokens = {random_token() for _ in range(100)}
    assert len(tokens) == 100
    assert all(len(token) >= 43 and "," not in token and not token.isspace() for token in tokens)
