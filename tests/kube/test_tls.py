"""A certificate and key in files that are replaced while they are served."""

from __future__ import annotations

from pathlib import Path

import pytest
import structlog

from kube.tls import ServerCertificate, TlsFiles
from local.certificates import LocalAuthority
from model.fault import ConfigurationFault


@pytest.fixture
def files(tmp_path: Path) -> TlsFiles:
    return TlsFiles(tmp_path / "tls.crt", tmp_path / "tls.key")


def write(files: TlsFiles, certificate: bytes, key: bytes) -> None:
    files.certificate.write_bytes(certificate)
    files.key.write_bytes(key)


def test_a_new_pair_is_served_from_the_next_handshake_on(files: TlsFiles) -> None:
    """Unchanged files give the very same pair, so that nothing is made for each connection."""
    authority = LocalAuthority("test")
    write(files, *authority.issue("a"))
    served = ServerCertificate(files)
    first = served.newest()
    assert served.newest() is first
    certificate, key = authority.issue("b")
    write(files, certificate, key)
    second = served.newest()
    assert (second.certificate, second.key) == (certificate, key) and served.newest() is second


def test_half_a_pair_is_not_served(files: TlsFiles) -> None:
    """A writer that has come half-way, or files that went, leave the pair before in use; told once, tried again."""
    authority = LocalAuthority("test")
    write(files, *authority.issue("a"))
    served = ServerCertificate(files)
    first = served.newest()
    certificate, key = authority.issue("b")
    with structlog.testing.capture_logs() as logs:
        files.certificate.write_bytes(certificate)
        assert served.newest() is first and served.newest() is first
        files.key.write_bytes(key)
        assert served.newest().key == key
        files.key.unlink()
        assert served.newest().key == key
    assert [line["event"] for line in logs] == [
        "certificate not renewed; the one before stays in use",
        "certificate renewed",
        "certificate not renewed; the one before stays in use",
    ]


ENCRYPTED = b"""-----BEGIN ENCRYPTED PRIVATE KEY-----
MIHsMFcGCSqGSIb3DQEFDTBKMCkGCSqGSIb3DQEFDDAcBAhQRxKMk8SVhQICCAAw
-----END ENCRYPTED PRIVATE KEY-----
"""


@pytest.mark.parametrize(
    ("certificate", "key"),
    [(None, None), (b"junk", None), (None, b"junk"), (None, b""), (None, ENCRYPTED)],
    ids=["another's key", "junk", "junk key", "empty key", "encrypted key"],
)
def test_what_is_no_pair_ends_the_start(files: TlsFiles, certificate: bytes | None, key: bytes | None) -> None:
    """One line with both files."""
    authority = LocalAuthority("test")
    good, _ = authority.issue("a")
    _, other = authority.issue("b")
    write(files, good if certificate is None else certificate, other if key is None else key)
    with pytest.raises(ConfigurationFault, match="no usable certificate and key") as told:
        ServerCertificate(files)
    assert str(files.certificate) in str(told.value) and str(files.key) in str(told.value)


def test_missing_files_end_the_start(files: TlsFiles) -> None:
    """Named."""
    with pytest.raises(ConfigurationFault, match="No such file"):
        ServerCertificate(files)
