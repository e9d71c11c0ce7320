"""The start of a process in a container: an interpreter that enters the container, then becomes the command."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import msgspec

from local.node import entry

# An interpreter of its own for the moment before the command: no site packages, no variables, so it starts in 7 ms.
_ENTRY = [sys.executable, "-I", "-S", str(Path(entry.__file__))]
DOOR_BYTES = 4096


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
