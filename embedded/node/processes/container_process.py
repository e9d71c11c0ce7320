"""A running container: its main process, whatever that started, and commands executed beside it."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

import msgspec

from embedded.cgroups.hierarchy import Cgroups
from embedded.fault import KernelFault
from embedded.node.ports import Ends, Execution, Exit
from embedded.node.processes import entry
from embedded.node.processes.attachment import Attachment, MainStreams
from embedded.node.processes.exec_process import ExecProcess
from embedded.node.processes.spawning import DOOR_BYTES, Spawned, spawn

_OUTPUT_BYTES = 10 * 1024


class Program(msgspec.Struct, frozen=True):
    """What a container runs; the command begins with an absolute path. `find` looks for further programs in it.

    `mounts` are of a container on the machine's own files, `room` is of one on its image's.
    """

    directory: str
    command: list[str]
    variables: dict[str, str]
    mounts: list[tuple[str, str, bool]]
    stage: str
    find: Callable[[str], str | None]
    room: Mapping[str, Any] | None = None

    def launch(self, score: int, entrances: list[str], mark: dict[str, str]) -> entry.Launch:
        """`mark` is of the container's cgroup, see cgroups."""
        space = (self.mounts, self.stage) if self.mounts else None
        room = cast("entry.Room | None", dict(self.room) if self.room else None)
        return (str(score), entrances, self.command, self.variables | mark, self.directory, space, room)


class _Watched:
    """A child of ours; `ended` is called when it has."""

    def __init__(self, pid: int, ended: Callable[[], None]) -> None:
        self.pid = pid
        self._pidfd = os.pidfd_open(pid)
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._pidfd, self._on_end)
        self._ended = ended
        self.running = True

    def signal(self, number: signal.Signals) -> None:
        if self.running:
            signal.pidfd_send_signal(self._pidfd, number)

    def _on_end(self) -> None:
        self._loop.remove_reader(self._pidfd)
        os.close(self._pidfd)
        self.running = False
        self._ended()


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
        streams: MainStreams,
    ) -> None:
        self.container_id = container_id
        self._path = path
        self._process = spawned.process
        self._door = spawned.door
        self._cgroups = cgroups
        self._launch = launch
        self._find = find
        self._streams = streams
        self._inside = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._ended: asyncio.Future[int] = self._loop.create_future()
        self._told_to_end = False
        self._main = _Watched(self._process.pid, self._on_first_end)
        self._loop.add_reader(self._door, self._listen)
        streams.begin()

    async def wait(self) -> Exit:
        """The end of the main process ends the container, as the end of process 1 ends a PID namespace."""
        code = await self._ended
        out_of_memory = self._cgroups.oom_kills(self._path) > 0
        await self._cgroups.remove(self._path)
        await self._streams.end()
        return Exit(128 - code if code < 0 else code, out_of_memory)

    async def execute(self, command: list[str], timeout_seconds: float) -> Execution:
        """A command in the container's cgroups, mounts and environment. Raises KernelFault when it cannot be run."""
        launch = await self._beside(command)
        program = launch[2][0]
        output = os.memfd_create("output")
        try:
            spawned = spawn(launch, output)
            os.close(spawned.door)
            code = await _ended_within(spawned.process, timeout_seconds)
            return Execution(code, os.pread(output, _OUTPUT_BYTES, 0))
        except OSError as error:
            raise KernelFault("exec", f"{program}: {error.strerror}") from error
        finally:
            os.close(output)

    async def open(self, command: list[str], ends: Ends) -> ExecProcess:
        """A command as by `execute`, with its ends in hand. Raises KernelFault."""
        score, entrances, words, variables, directory, space, room = await self._beside(command)
        if ends.tty:
            variables = {"TERM": "xterm"} | variables
        root = Path(f"/proc/{self._main.pid}/root") if room else None
        try:
            return ExecProcess((score, entrances, words, variables, directory, space, room), ends, root)
        except OSError as error:
            raise KernelFault("exec", f"{words[0]}: {error.strerror}") from error

    def attach(self, ends: Ends) -> Attachment:
        """A client of the main process' own streams."""
        return Attachment(self._streams, ends)

    async def _beside(self, command: list[str]) -> entry.Launch:
        """How a command joins the running container. Raises KernelFault where there is no such program."""
        program = self._find(command[0]) if command else None
        if program is None:
            raise KernelFault("exec", f'"{" ".join(command[:1])}": executable file not found in $PATH')
        await self._inside.wait()
        if self._ended.done():
            raise KernelFault("exec", "the container has ended")
        score, entrances, _, variables, directory, space, room = self._launch
        pid = self._main.pid
        joined: entry.Room | None = {**room, "pid": pid} if room else None
        words = [program, *command[1:]]
        return (score, entrances, words, variables, directory, None if space is None else pid, joined)

    def terminate(self) -> bool:
        """SIGTERM to the main process; False where that leaves it alone, as process 1 of a PID namespace.

        The kernel drops a signal for process 1 that has neither a handler nor waits for it (pid_namespaces(7)). Where
        the main process is no process 1, this does the same. A command that has not begun yet is killed.
        """
        self._told_to_end = True
        if not self._inside.is_set():
            self._main.signal(signal.SIGKILL)
            return True
        heeded = heeds(_status(self._main.pid), signal.SIGTERM)
        if heeded:
            self._main.signal(signal.SIGTERM)
        return heeded

    def kill(self) -> None:
        # The main process may have been started a moment ago and not be inside yet.
        self._main.signal(signal.SIGKILL)
        self._cgroups.kill(self._path)

    def _listen(self) -> None:
        """At the door."""
        if self._inside.is_set():
            return
        try:
            told = os.read(self._door, DOOR_BYTES).decode()
        except BlockingIOError:
            return
        if told:
            pid, _, _ = told.partition(entry.FAILED)  # both may come at once
            if pid:
                self._follow(int(pid))
            return
        self._loop.remove_reader(self._door)
        os.close(self._door)
        self._inside.set()

    def _follow(self, pid: int) -> None:
        """The process we started has brought another one on its way, and ends."""
        self._main = _Watched(pid, self._on_end)
        if self._told_to_end:
            self._main.signal(signal.SIGKILL)

    def _on_first_end(self) -> None:
        self._listen()
        code = self._process.wait()
        if self._main.pid == self._process.pid and not self._ended.done():
            self._ended.set_result(code)

    def _on_end(self) -> None:
        _, status = os.waitpid(self._main.pid, 0)
        if not self._ended.done():
            self._ended.set_result(os.waitstatus_to_exitcode(status))


def heeds(status: str, number: signal.Signals) -> bool:
    """Whether process 1 with this /proc/PID/status notices a signal: it has a handler, or blocks it to wait for it.

    Source: the kernel's sig_ignored() in kernel/signal.c; proc_pid_status(5) for the masks.
    """
    masks = (line.partition(":") for line in status.splitlines() if line.startswith(("SigCgt:", "SigBlk:")))
    return any(int(mask, 16) >> (number - 1) & 1 for _, _, mask in masks)


def _status(pid: int) -> str:
    """Empty for a process that is gone."""
    try:
        return Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return ""


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
