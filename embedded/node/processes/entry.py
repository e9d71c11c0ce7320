"""What a container's process does before it becomes the command: enters its cgroups and mounts, then executes.

Run by path in an interpreter with an empty environment. Its arguments are the numbers of two open files: one says what
to do (everyone on the machine can read the arguments of a process, but not that file), the other is a pipe whose end
tells that the command has begun, or else why not. A program of its own and not code between fork and exec, because a
fork of a threaded process may deadlock.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # `signal` costs every container 4 ms for its enumerations
import marshal
import os
import sys

NOT_STARTED = 125
FAILED = "!"  # begins what is said at the door by a process that does not become its command
_MOST_CHARACTERS = 1000
_FIRST_REALTIME_SIGNAL = 32
_TIOCSCTTY = 0x540E

# Mounts (target, source, read-only) and an empty directory, or the pid whose namespace to join, or the machine's.
Space = tuple[list[tuple[str, str, bool]], str] | int | None
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypedDict

    class Room(TypedDict):
        """What a container on its own image's files is given; `pid` is of a running one to join, else 0.

        `mounts` are target, source on the machine (empty: a fresh tmpfs) and read-only; `capabilities` a bit each.
        """

        pid: int
        root: str
        stage: str
        mounts: list[tuple[str, str, bool]]
        read_only: bool
        privileged: bool
        machine_pids: bool
        hostname: str
        user: int
        group: int
        groups: list[int]
        capabilities: int
        no_new_privileges: bool

    # OOM score, cgroup.procs files to enter, argument vector with an absolute path first, environment, directory,
    # mounts, and the room of a container that has an image's files.
    Launch = tuple[str, list[str], list[str], dict[str, str], str, Space, Room | None]


def launch_file(launch: Launch) -> int:
    """A descriptor to read it from; nothing of it is on a disk."""
    descriptor = os.memfd_create("launch")
    os.write(descriptor, marshal.dumps(launch))  # type: ignore[arg-type] # of plain values, the room too
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def read_launch(descriptor: int) -> Launch:
    with open(descriptor, "rb") as file:
        launch: Launch = marshal.load(file)
    return launch


def become(launch: Launch, door: int) -> None:
    """Return never. Raises OSError or ValueError where a cgroup or the command refuses."""
    score, entrances, command, variables, directory, space, room = launch
    try:  # noqa: SIM105 — importing contextlib costs more than all of this
        _write("/proc/self/oom_score_adj", score)
    except OSError:
        pass  # without CAP_SYS_RESOURCE it cannot be lowered; the pod runs all the same
    for entrance in entrances:
        _enter_cgroup(entrance)
    if os.isatty(0):
        import fcntl  # noqa: F401 — for _take_terminal, while the interpreter's files are there
    if room is not None:
        _enter_room(room, directory, door)
    else:
        if space is not None:
            _enter(space)
        os.chdir(directory)
    if os.isatty(0):
        _take_terminal()
    # What is ignored here, by Python or by whoever started us (nohup), would stay so in the command.
    for number in range(1, _FIRST_REALTIME_SIGNAL):
        if number not in (_signal.SIGKILL, _signal.SIGSTOP):
            _signal.signal(number, _signal.SIG_DFL)
    os.execve(command[0], command, variables)


def _enter_cgroup(entrance: str) -> None:
    """Added and not written over: a simulated cgroup's file is a list of who asked in, see simkernel.tree."""
    name = f"{os.getpid()}:{_started_ticks()}" if entrance.endswith("/.joined") else str(os.getpid())
    descriptor = os.open(entrance, os.O_WRONLY | os.O_APPEND)
    try:
        os.write(descriptor, f"{name}\n".encode())
    finally:
        os.close(descriptor)


def _started_ticks() -> str:
    with open("/proc/self/stat", "rb") as file:  # noqa: PTH123 — nor pathlib
        return file.read().rpartition(b")")[2].split()[19].decode()


def _enter(space: tuple[list[tuple[str, str, bool]], str] | int) -> None:
    """Imported only here: ctypes costs 8 ms, which a container without mounts need not pay."""
    sys.path.append(os.path.dirname(__file__))  # noqa: PTH120
    import mount_namespace  # type: ignore[import-not-found]

    if isinstance(space, int):
        mount_namespace.join(space)
    else:
        mount_namespace.enter_new(*space)


def _enter_room(room: Room, directory: str, door: int) -> None:
    sys.path.append(os.path.dirname(__file__))  # noqa: PTH120
    import root_filesystem  # type: ignore[import-not-found]

    root_filesystem.enter(room, directory, door)
    root_filesystem.settle(room)


def _take_terminal() -> None:
    """Only the leader of a session can, which a process in a new PID namespace is not yet."""
    import fcntl

    if os.getsid(0) != os.getpid():
        os.setsid()
    fcntl.ioctl(0, _TIOCSCTTY, 0)


def _write(path: str, text: str) -> None:
    with open(path, "w") as file:  # noqa: PTH123 — nor pathlib
        file.write(text)


def main() -> None:
    launch, door = read_launch(int(sys.argv[1])), int(sys.argv[2])
    # Closed by the execution of the command: whoever reads the other end then knows that it has begun.
    os.set_inheritable(door, False)
    try:
        become(launch, door)
    except (OSError, ValueError) as error:
        print(f"{launch[2][0]}: {error}", file=sys.stderr, flush=True)
        os.write(door, f"{FAILED}{error}"[:_MOST_CHARACTERS].encode())
        os._exit(NOT_STARTED)


if __name__ == "__main__":
    main()
