"""Reading cgroup v1 files through cached descriptors.

A descriptor is opened once and read with pread; the kernel answers ENODEV once the cgroup is gone, even when one of the
same name was made again, so a cached descriptor never reports another pod's numbers.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import structlog

from agent.core import parse
from agent.core.layout import KubepodsLayout
from agent.core.observation import Absence, CgroupSample, Missing
from model.fault import KernelFault

log = structlog.get_logger()

T = TypeVar("T")

_READ_BYTES = 8192
_GONE = (errno.ENOENT, errno.ENODEV, errno.ENOTDIR)


class CgroupReader:
    """Files below `root` (normally /sys/fs/cgroup), one directory a controller."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._descriptors: dict[str, int] = {}
        self._complained: set[str] = set()

    def require(self, layout: KubepodsLayout) -> None:
        """Raise KernelFault where this tree is not one the agent can work on."""
        if (self._root / "cgroup.controllers").exists():
            raise KernelFault(str(self._root), "is cgroup v2, which this version does not read", "use a v1 host")
        for controller in ("cpu", "cpuacct", "memory"):
            path = self._root / controller / layout.best_effort.lstrip("/")
            if not path.is_dir():
                raise KernelFault(str(path), "does not exist", "is kubelet running here? give --kubepods its path")

    def sample(self, cgroup: str, *, throttling: bool = False) -> CgroupSample | Missing:
        """CPU time and memory of one cgroup; absence is a value."""
        cpu = self._read(f"cpuacct{cgroup}/cpuacct.usage", parse.whole_number)
        memory = self._read(f"memory{cgroup}/memory.stat", parse.anonymous_memory)
        if isinstance(cpu, Missing):
            return cpu
        if isinstance(memory, Missing):
            return memory
        throttled = self._read(f"cpu{cgroup}/cpu.stat", parse.throttling) if throttling else None
        return CgroupSample(cpu, memory, None if isinstance(throttled, Missing) else throttled)

    def forget(self, cgroups: set[str]) -> None:
        """Close what belongs to none of `cgroups`."""
        for name in [n for n in self._descriptors if "/" + n.split("/", 1)[1].rsplit("/", 1)[0] not in cgroups]:
            self._close(name)

    def close(self) -> None:
        for name in list(self._descriptors):
            self._close(name)

    def _read(self, name: str, parser: Callable[[bytes], T]) -> T | Missing:
        path = str(self._root / name)
        try:
            value = parser(self._bytes(name, path))
        except OSError as error:
            self._close(name)
            if error.errno in _GONE:
                return Missing(path, Absence.GONE, "no such cgroup")
            return self._unreadable(path, error.strerror or str(error))
        except ValueError as error:
            return self._unreadable(path, str(error))
        self._complained.discard(path)
        return value

    def _bytes(self, name: str, path: str) -> bytes:
        descriptor = self._descriptors.get(name)
        if descriptor is None:
            descriptor = self._descriptors[name] = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        return os.pread(descriptor, _READ_BYTES, 0)

    def _unreadable(self, path: str, detail: str) -> Missing:
        if path not in self._complained:
            self._complained.add(path)
            log.error("control file unreadable", path=path, error=detail, effect="counted as not measured")
        return Missing(path, Absence.UNREADABLE, detail)

    def _close(self, name: str) -> None:
        descriptor = self._descriptors.pop(name, None)
        if descriptor is not None:
            os.close(descriptor)
