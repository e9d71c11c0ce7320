"""What the kernel is told of threads: SCHED_IDLE, and slices by sched_setattr (Linux >= 6.12, sched(7))."""

from __future__ import annotations

import ctypes
import os
import platform
import struct
from collections.abc import Iterable
from pathlib import Path

from model.fault import KernelFault

_SET_ATTR = {"x86_64": 314, "aarch64": 274}
_LAYOUT = "=IIQiIQQQ"
"""struct sched_attr: size, policy, flags, nice, priority, runtime, deadline, period (uapi/linux/sched/types.h)."""


def set_slice(threads: Iterable[int], microseconds: int) -> None:
    """Raises KernelFault where the kernel refuses."""
    number = _SET_ATTR.get(platform.machine())
    if number is None:
        raise KernelFault("sched_setattr", f"its number is not known on {platform.machine()}")
    library = ctypes.CDLL(None, use_errno=True)
    for thread in threads:
        attr = struct.pack(_LAYOUT, struct.calcsize(_LAYOUT), os.SCHED_OTHER, 0, 0, 0, microseconds * 1000, 0, 0)
        if library.syscall(number, thread, ctypes.c_char_p(attr), 0) != 0:
            raise KernelFault(f"sched_setattr of {thread}", os.strerror(ctypes.get_errno()), "it needs Linux 6.12")


def set_idle(threads: Iterable[int]) -> None:
    """SCHED_IDLE."""
    for thread in threads:
        os.sched_setscheduler(thread, os.SCHED_IDLE, os.sched_param(0))


def threads_of(directory: Path) -> list[int]:
    """All threads of the processes in a cgroup."""
    processes = (directory / "cgroup.procs").read_text().split()
    return [int(task.name) for process in processes for task in Path(f"/proc/{process}/task").iterdir()]
