"""A certificate and its key as files that exist in memory alone: what is served never touches a disk.

Linux only, as the cgroups are (memfd_create, /proc).
"""

from __future__ import annotations

import os
from pathlib import Path

from kube.tls import TlsFiles
from kube.x509 import KeyPair


class MemoryFiles:
    """`files` can be read like any others, by this process alone, and are replaced whole."""

    def __init__(self, pair: KeyPair) -> None:
        self._certificate = _filled("tls.crt", pair.certificate)
        self._key = _filled("tls.key", pair.key)
        self.files = TlsFiles(_path(self._certificate), _path(self._key))

    def replace(self, pair: KeyPair) -> None:
        """New content under the same paths. One after the other: a reader of both finds that they do not fit yet."""
        for descriptor, content in ((self._key, pair.key), (self._certificate, pair.certificate)):
            fresh = _filled("replaced", content)
            os.dup2(fresh, descriptor, inheritable=False)
            os.close(fresh)

    def close(self) -> None:
        os.close(self._certificate)
        os.close(self._key)


def _filled(name: str, content: bytes) -> int:
    descriptor = os.memfd_create(name, os.MFD_CLOEXEC)
    os.write(descriptor, content)
    return descriptor


def _path(descriptor: int) -> Path:
    return Path(f"/proc/self/fd/{descriptor}")
