"""The start of a process in a container: an interpreter that enters the container, then becomes the command."""

from __future__ import annotations

import errno
import fcntl
import functools
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import msgspec

from embedded.node.processes import entry

# An interpreter of its own for the moment before the command: no site packages, no variables, so it starts in 7 ms.
_ENTRY = [sys.executable, "-I", "-S", str(Path(entry.__file__))]
DOOR_BYTES = 4096
_MFD_EXEC = 0x10  # linux/memfd.h, from 6.3 on
_SEALS = fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE


class Spawned(msgspec.Struct, frozen=True):
    """A process on its way to its command.

    `door` is a pipe that ends when the command begins, or the process ends. What it says before is the id of the
    process that goes on in this one's place.
    """

    process: subprocess.Popen[bytes]
    door: int


def spawn(launch: entry.Launch, output: int, errors: int | None = None, stdin: int = subprocess.DEVNULL) -> Spawned:
    """With these descriptors for its own; errors go where the output goes unless they have one. Raises OSError."""
    door, other_end = os.pipe()
    os.set_blocking(door, False)
    file = entry.launch_file(launch)
    try:
        process = subprocess.Popen(
            [*_ENTRY, str(file), str(other_end)],
            executable=None if launch[-1] is None else sealed_interpreter(),
            stdin=stdin,
            stdout=output,
            stderr=output if errors is None else errors,
            cwd="/",
            env={},
            pass_fds=[file, other_end],
            start_new_session=True,
        )
    except OSError:
        os.close(door)
        raise
    finally:
        os.close(file)
        os.close(other_end)
    return Spawned(process, door)


@functools.cache
def sealed_interpreter() -> str:
    """The path of a copy of the interpreter that nobody can write to, for a container with a root of its own.

    Such a container's command may be a script of /proc/self/exe, or its root open our /proc/PID/exe on the way: that
    leads out of its file system to what entered it, and must not be this machine's own interpreter (as CVE-2019-5736
    was for runc). Raises OSError, also where the interpreter does not run from a copy.
    """
    copy = _executable_memory()
    with Path(sys.executable).open("rb") as file:
        while block := file.read(1 << 20):
            os.write(copy, block)
    fcntl.fcntl(copy, fcntl.F_ADD_SEALS, _SEALS)
    path = f"/proc/{os.getpid()}/fd/{copy}"
    tried = subprocess.run([*_ENTRY[:-1], "-c", ""], executable=path, env={}, capture_output=True, check=False)
    if tried.returncode:
        why = tried.stderr.decode(errors="replace").strip()
        raise OSError(errno.ENOEXEC, f"{sys.executable} does not run from a copy of itself: {why}")
    return path


def _executable_memory() -> int:
    with suppress(OSError):
        return os.memfd_create("interpreter", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING | _MFD_EXEC)
    return os.memfd_create("interpreter", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
