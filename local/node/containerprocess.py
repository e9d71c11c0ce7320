"""A running container: its main process, whatever that started, and commands executed beside it."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec

from local.node import entry
from local.node.cgroups import Cgroups
from local.node.ports import Execution, Exit
from model.fault import KernelFault

# An interpreter of its own for the moment before the command: no site packages, no variables, so it starts in 7 ms.
_ENTRY = [sys.executable, "-I", "-S", str(Path(entry.__file__))]
_OUTPUT_BYTES = 10 * 1024


class Program(msgspec.Struct, frozen=True):
    """What a container runs; the command begins with an absolute path. `find` looks for further programs in it."""

    directory: str
    command: list[str]
    variables: dict[str, str]
    mounts: list[tuple[str, str, bool]]
    stage: str
    find: Callable[[str], str | None]

    def launch(self, score: int, entrances: list[str], mark: dict[str, str]) -> entry.Launch:
        """`mark` is of the container's cgroup, see cgroups."""
        space = (self.mounts, self.stage) if self.mounts else None
        return (str(score), entrances, self.command, self.variables | mark, self.directory, space)


class Spawned(msgspec.Struct, frozen=True):
    """A process on its way to its command: `door` is a pipe that ends when the command begins, or the process ends."""

    process: subprocess.Popen[bytes]
    door: int


def spawn(launch: entry.Launch, output: int) -> Spawned:
    """Raises OSError."""
    door, other_end = os.pipe()
    file = entry.launch_file(launch)
    try:
        process = subprocess.Popen(
            [*_ENTRY, str(file), str(other_end)],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
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


class ContainerProcess:
    """One container: its main process and whatever that started."""

    def __init__(
        self,
        container_id: str,
        path: str,
        spawned: Spawned,
        cgroups: Cgroups,
        launch: entry.Launch,
        find: Callable[[str], str | None],
    ) -> None:
        self.container_id = container_id
        self._path = path
        self._process = spawned.process
        self._door = spawned.door
        self._cgroups = cgroups
        self._launch = launch
        self._find = find
        self._pidfd = os.pidfd_open(self._process.pid)
        self._inside = asyncio.Event()
        self._ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        loop = asyncio.get_running_loop()
        loop.add_reader(self._pidfd, self._on_end)
        loop.add_reader(self._door, self._on_inside)

    async def wait(self) -> Exit:
        """The end of the main process ends the container, as the end of process 1 ends a PID namespace."""
        await self._ended
        code = self._process.wait()
        out_of_memory = self._cgroups.oom_kills(self._path) > 0
        await self._cgroups.remove(self._path)
        return Exit(128 - code if code < 0 else code, out_of_memory)

    async def execute(self, command: list[str], timeout_seconds: float) -> Execution:
        """A command in the container's cgroups, mounts and environment. Raises KernelFault when it cannot be run."""
        program = self._find(command[0]) if command else None
        if program is None:
            words = " ".join(command[:1])
            raise KernelFault("exec", f'"{words}": executable file not found in $PATH')
        score, entrances, _, variables, directory, space = self._launch
        inside = None if space is None else self._process.pid
        await self._inside.wait()
        output = os.memfd_create("output")
        try:
            launch = (score, entrances, [program, *command[1:]], variables, directory, inside)
            spawned = spawn(launch, output)
            os.close(spawned.door)
            code = await _ended_within(spawned.process, timeout_seconds)
            return Execution(code, os.pread(output, _OUTPUT_BYTES, 0))
        except OSError as error:
            raise KernelFault("exec", f"{program}: {error.strerror}") from error
        finally:
            os.close(output)

    def terminate(self) -> None:
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        # The main process may have been started a moment ago and not be inside yet.
        self._signal(signal.SIGKILL)
        self._cgroups.kill(self._path)

    def _signal(self, number: signal.Signals) -> None:
        if not self._ended.done():
            signal.pidfd_send_signal(self._pidfd, number)

    def _on_inside(self) -> None:
        asyncio.get_running_loop().remove_reader(self._door)
        os.close(self._door)
        self._inside.set()

    def _on_end(self) -> None:
        asyncio.get_running_loop().remove_reader(self._pidfd)
        os.close(self._pidfd)
        if not self._ended.done():
            self._ended.set_result(None)


async def _ended_within(process: subprocess.Popen[bytes], timeout_seconds: float) -> int | None:
    """The exit code; None for one that had to be killed. Nobody is left waiting, whatever happens."""
    loop = asyncio.get_running_loop()
    pidfd = os.pidfd_open(process.pid)
    ended = asyncio.Event()
    try:
        loop.add_reader(pidfd, ended.set)
        await asyncio.wait_for(ended.wait(), timeout_seconds)
        return process.wait()
    except TimeoutError:
        return None
    finally:
        loop.remove_reader(pidfd)
        os.close(pidfd)
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)  # with the children it waits for
            process.wait()
