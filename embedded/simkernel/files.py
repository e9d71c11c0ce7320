"""The control files of one simulated cgroup, kept open: one system call a file and step."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from embedded.simkernel.accounts import Account
from embedded.simkernel.limits import CONTROLS
from embedded.simkernel.process_table import Process
from embedded.simkernel.tree import JOINED, MEMBERS, PROCS, first_data, parse_pairs
from embedded.sparse_files import punch_hole

_LONGEST_BYTES = 8192
_LIST_BYTES = 63


class CgroupFiles:
    """Files in `folder`. Raises OSError where one is missing, as in a cgroup that goes away at this moment."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._joined_bytes = self._trimmed_bytes = 0
        self._written: dict[str, str] = {}
        self._listed: str | None = None
        self._descriptors: dict[str, int] = {}
        try:
            for name in CONTROLS:
                self._descriptors[name] = os.open(folder / name, os.O_RDONLY | os.O_CLOEXEC)
            for name in (*Account().texts(), "cpuset.cpus.effective", JOINED):
                self._descriptors[name] = os.open(folder / name, os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            self.close()
            raise

    def read(self, name: str) -> str:
        return os.pread(self._descriptors[name], _LONGEST_BYTES, 0).decode(errors="replace")

    def controls(self) -> dict[str, str]:
        return {name: self.read(name) for name in CONTROLS}

    def joined(self) -> list[tuple[int, int]]:
        """(pid, start time) of all who asked in since the last call."""
        file = self._descriptors[JOINED]
        new = os.fstat(file).st_size - self._joined_bytes
        if new <= 0:
            return []
        if not self._joined_bytes:
            self._joined_bytes = self._trimmed_bytes = first_data(file)
        content = os.pread(file, new, self._joined_bytes)
        whole = content[: content.rfind(b"\n") + 1]
        self._joined_bytes += len(whole)
        return parse_pairs(whole.decode(errors="replace"))

    def write(self, texts: dict[str, str]) -> None:
        """Overwrite what changed, each with one call and without changing its length."""
        for name, text in texts.items():
            if self._written.get(name) != text:
                os.pwrite(self._descriptors[name], text.encode(), 0)
                self._written[name] = text

    def write_cpus(self, cpus: str) -> None:
        """cpuset.cpus.effective; blanks keep its length."""
        self.write({"cpuset.cpus.effective": cpus.ljust(_LIST_BYTES) + "\n"})

    def list_members(self, processes: Iterable[Process]) -> None:
        """Readers open these two each time, so they see all of the old or all of the new."""
        listed = sorted((process.pid, process.started_ticks) for process in processes)
        members = "".join(f"{pid}:{ticks}\n" for pid, ticks in listed)
        if members != self._listed:
            with suppress(OSError):
                self._replace(MEMBERS, members)
                self._replace(PROCS, "".join(f"{pid}\n" for pid, _ in listed))
                self._listed = members
        if members == self._listed:
            self._trim_joined()

    def _trim_joined(self) -> None:
        """Who was heard and listed need not be told of again. A file system without holes keeps the lines."""
        if self._joined_bytes > self._trimmed_bytes:
            punch_hole(self._descriptors[JOINED], self._joined_bytes)
            self._trimmed_bytes = self._joined_bytes

    def close(self) -> None:
        for descriptor in self._descriptors.values():
            os.close(descriptor)
        self._descriptors.clear()

    def _replace(self, name: str, text: str) -> None:
        fresh = self._folder / f".new-{name}"
        fresh.write_text(text)
        fresh.replace(self._folder / name)
