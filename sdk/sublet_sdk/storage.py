"""Storage: files below one URL, through fsspec. Names are relative, with `/` between their parts."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from contextlib import suppress
from typing import Any, BinaryIO

import fsspec

from sublet_sdk.faults import SettingFault, StorageFault
from sublet_sdk.manifest import StoredFile
from sublet_sdk.retries import Retries

_CHUNK_BYTES = 1 << 20
_OBJECT_STORES = {"s3", "s3a", "gcs", "gs", "abfs", "az", "adl"}
"""They have no folders to be made; s3fs would make a bucket that is absent."""
Opened = Callable[[], BinaryIO]
"""Opens what is to be written, from its beginning, at each attempt."""


class Storage:
    """Files below `root` of a file system of fsspec; each call is retried.

    Where the storage is asked for a name that is absent the answer is FileNotFoundError.
    """

    def __init__(self, files: Any, root: str, retries: Retries | None = None) -> None:
        self._files = files
        self._root = root.rstrip("/")
        self._retries = retries or Retries()
        protocols = {files.protocol} if isinstance(files.protocol, str) else set(files.protocol)
        self._local = "file" in protocols
        self._has_folders = not protocols & _OBJECT_STORES

    def write(self, name: str, source: Opened) -> StoredFile:
        """The file, whose bytes may become visible before it is whole."""
        return self._written(name, lambda: self._write(self._path(name), source))

    def write_whole(self, name: str, source: Opened) -> StoredFile:
        """The file, which becomes visible at once and whole, as an object of S3 does by itself."""
        if not self._local:
            return self.write(name, source)
        return self._written(name, lambda: self._write_and_move(self._path(name), source))

    def read(self, name: str, sink: Callable[[], BinaryIO], limit_bytes: int | None = None) -> StoredFile:
        """Copies the file into what `sink` opens, at each attempt; no more than a chunk above `limit_bytes`."""
        return self._retries.call(f"read {self._path(name)}", lambda: self._read(self._path(name), sink, limit_bytes))

    def folders(self, name: str) -> list[str]:
        """Names of the folders below that one, in order; all pages of the storage's listing; none if it is absent."""
        try:
            return self._retries.call(f"list {self._path(name)}", lambda: self._folders(self._path(name)))
        except FileNotFoundError:
            return []

    def delete(self, name: str) -> None:
        """The file; nothing happens where it is absent."""
        with suppress(FileNotFoundError):
            self._retries.call(f"delete {self._path(name)}", lambda: self._files.rm_file(self._path(name)))

    def delete_folder(self, name: str) -> None:
        """The folder with all in it; nothing happens where it is absent."""
        with suppress(FileNotFoundError):
            self._retries.call(f"delete {self._path(name)}", lambda: self._files.rm(self._path(name), recursive=True))
        self._files.invalidate_cache()

    def _path(self, name: str) -> str:
        return f"{self._root}/{name}"

    def _written(self, name: str, action: Callable[[], StoredFile]) -> StoredFile:
        try:
            return self._retries.call(f"write {self._path(name)}", action)
        except FileNotFoundError as fault:
            raise StorageFault(
                f"write {self._path(name)}: there is no such folder, bucket or source: {fault}"
            ) from fault

    def _write(self, path: str, source: Opened) -> StoredFile:
        if self._has_folders:
            self._files.makedirs(path.rpartition("/")[0], exist_ok=True)
        with source() as given, self._files.open(path, "wb") as file:
            stored = _copied(given, file)
            if self._local:
                file.flush()
                os.fsync(file.fileno())
        return stored

    def _write_and_move(self, path: str, source: Opened) -> StoredFile:
        partial = f"{path}.partial"
        stored = self._write(partial, source)
        self._files.mv(partial, path)
        return stored

    def _read(self, path: str, sink: Callable[[], BinaryIO], limit_bytes: int | None) -> StoredFile:
        with self._files.open(path, "rb") as file, sink() as target:
            return _copied(file, target, limit_bytes)

    def _folders(self, path: str) -> list[str]:
        # Another process writes there, too.
        self._files.invalidate_cache()
        found = self._files.ls(path, detail=True)
        return sorted(each["name"].rstrip("/").rpartition("/")[2] for each in found if each["type"] == "directory")


def opened(url: str, retries: Retries | None = None) -> Storage:
    """The storage at a URL: a path of this machine, or what fsspec knows.

    :raises SettingFault: no such protocol, or the package that it needs is not installed
    """
    try:
        files, root = fsspec.core.url_to_fs(url)
    except (ValueError, ImportError) as fault:
        raise SettingFault(
            f"url {url!r}", str(fault), "give a path, or a URL whose package is installed (s3: sublet-sdk[s3])"
        ) from fault
    return Storage(files, root, retries)


def _copied(source: BinaryIO, target: BinaryIO, limit_bytes: int | None = None) -> StoredFile:
    digest, size = hashlib.sha256(), 0
    while chunk := source.read(_CHUNK_BYTES):
        target.write(chunk)
        digest.update(chunk)
        size += len(chunk)
        if limit_bytes is not None and size > limit_bytes:
            break
    return StoredFile(size, digest.hexdigest())
