"""Sources: what a checkpoint is saved from; and where its files are read into."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import BinaryIO

from sublet_sdk import manifest
from sublet_sdk.faults import SettingFault

Source = bytes | bytearray | memoryview | Path
"""A file to save: its bytes, or the path of a file, which stays as it is until the save has ended."""


def checked_sources(files: Mapping[str, Source], step: int, epoch: int) -> dict[str, Callable[[], BinaryIO]]:
    """How each file is opened.

    :raises SettingFault: no file, a name that cannot be used, a value that is neither bytes nor a path; a bad number
    """
    for what, number in (("step", step), ("epoch", epoch)):
        if isinstance(number, bool) or not isinstance(number, int) or number < 0:
            raise SettingFault(what, f"is {number!r}", "give a whole number of 0 or more")
    if not files:
        raise SettingFault("files", "is empty", "give at least one file to save")
    opened = {manifest.checked_file(name): _opener(name, source) for name, source in files.items()}
    manifest.check_together(opened)
    return opened


def copied(files: Mapping[str, Source]) -> dict[str, Source]:
    """The same files, whose bytes the caller may overwrite from now on."""
    return {name: source if isinstance(source, Path) else bytes(source) for name, source in files.items()}


def _opener(name: str, source: Source) -> Callable[[], BinaryIO]:
    if isinstance(source, Path):
        if not source.is_file():
            raise SettingFault(f"file {name!r}", f"{source} is no file", "give bytes, or the path of a file")
        return lambda: source.open("rb")
    if not isinstance(source, bytes | bytearray | memoryview):
        raise SettingFault(f"file {name!r}", f"is {type(source).__name__}", "give bytes, or a pathlib.Path")
    return lambda: io.BytesIO(source)


class BytesKept:
    """Bytes that outlive the closing of the stream that they were written to."""

    def __init__(self) -> None:
        self.bytes = b""

    def opened(self) -> BinaryIO:
        """An empty stream; once closed its bytes are here."""
        return _Sink(self)


class _Sink(io.BytesIO):
    def __init__(self, kept: BytesKept) -> None:
        super().__init__()
        self._kept = kept

    def close(self) -> None:
        if not self.closed:
            self._kept.bytes = self.getvalue()
        super().close()
