"""A server's certificate and key from two files that are replaced while it serves, as a mounted Secret is."""

from __future__ import annotations

import ssl
import threading
from pathlib import Path

import msgspec
import structlog

from model.fault import ConfigurationFault

log = structlog.get_logger()


class TlsFiles(msgspec.Struct, frozen=True):
    """PEM files of a server's certificate (with the authorities between, if any) and its key, unencrypted."""

    certificate: Path
    key: Path


class TlsPair(msgspec.Struct, frozen=True):
    """A certificate and the key that belongs to it, as PEM, and what the ssl module serves them with."""

    certificate: bytes
    key: bytes
    context: ssl.SSLContext


class ServerCertificate:
    """The newest whole pair of two files. Raises ConfigurationFault where there is none to begin with.

    Safe to be asked from any thread, since handshakes are.
    """

    def __init__(self, files: TlsFiles) -> None:
        self._files = files
        self._guard = threading.Lock()
        self._told = ""
        self._pair = _load(files)

    def newest(self) -> TlsPair:
        """For the next handshake. Files that are missing or do not fit leave the pair before them in use."""
        with self._guard:
            try:
                self._pair = _load(self._files, self._pair)
            except ConfigurationFault as fault:
                # A pair that is being written is whole a moment later: it is tried again, but told once.
                self._tell(str(fault))
            else:
                self._told = ""
            return self._pair

    def _tell(self, problem: str) -> None:
        if problem != self._told:
            log.error("certificate not renewed; the one before stays in use", error=problem)
        self._told = problem


def _load(files: TlsFiles, known: TlsPair | None = None) -> TlsPair:
    """Both files as they were at one moment; `known` itself where they hold what it holds. Raises ConfigurationFault.

    They are compared by what is in them: two writes within one tick of the file system's clock look alike from outside.
    """
    where = f"{files.certificate}, {files.key}"
    try:
        found = _read(files)
        if known is not None and found == (known.certificate, known.key):
            return known
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(files.certificate, files.key, password=_no_password)
        if found != _read(files):
            raise ConfigurationFault(where, "changed while they were read", "replace both in one step")
    except (ssl.SSLError, OSError, ValueError) as error:
        what = f"no usable certificate and key: {error}"
        raise ConfigurationFault(where, what, "give two PEM files that belong together") from error
    if known is not None:
        log.info("certificate renewed", file=str(files.certificate))
    return TlsPair(*found, context)


def _read(files: TlsFiles) -> tuple[bytes, bytes]:
    return files.certificate.read_bytes(), files.key.read_bytes()


def _no_password() -> str:
    """Where the key is encrypted; without this OpenSSL would ask the terminal and wait."""
    raise ValueError("the key is encrypted")
