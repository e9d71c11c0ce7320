"""One program as a child process: started so that it cannot outlive us, known to be ready, stopped in bounded time."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from embedded.fault import Fault

# Runs before the program, in its process: asks the kernel for a SIGTERM when the parent dies (PR_SET_PDEATHSIG
# is 1), then becomes the program. A stub and not preexec_fn, because a fork of a threaded process may deadlock.
_STUB = (
    "import ctypes,os,signal,sys;"
    "ctypes.CDLL(None).prctl(1,signal.SIGTERM);"
    "os.getppid()==int(sys.argv[1]) or os._exit(1);"
    "os.execv(sys.argv[2],sys.argv[2:])"
)
_POLL_SECONDS = 0.02
_LOG_TAIL_BYTES = 8192
_ERROR = "error: "


class ProgramFault(Fault):
    """A program of ours ended early or did not become ready; `exit_code` is None where it still ran."""

    def __init__(self, where: str, what: str, fix: str = "", *, exit_code: int | None = None) -> None:
        self.exit_code = exit_code
        super().__init__(where, what, fix)


class Child:
    """A running program. `log` collects its output, of this run from `log_begin` on; `ready_file` is what it writes
    once it serves.
    """

    def __init__(
        self, name: str, process: asyncio.subprocess.Process, log: Path, ready_file: Path | None, log_begin: int = 0
    ) -> None:
        self.name = name
        self.log = log
        self.log_begin = log_begin
        self.started_seconds = time.time()
        self._process = process
        self._ready_file = ready_file

    @classmethod
    async def start(cls, name: str, argv: Sequence[str], log: Path, ready_file: Path | None = None) -> Child:
        """Start `argv` (absolute program path first) in its own session, output appended to `log`.

        Raises ProgramFault where this user cannot run the interpreter.
        """
        if ready_file is not None:
            ready_file.unlink(missing_ok=True)
        with log.open("ab") as output:
            log_begin = output.tell()
            try:
                process = await asyncio.create_subprocess_exec(
                    *(sys.executable, "-I", "-S", "-c", _STUB, str(os.getpid()), *argv),
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    start_new_session=True,
                )
            except OSError as error:
                fix = "it must be a file that this user may execute"
                raise ProgramFault(name, f"cannot start {sys.executable}: {error.strerror}", fix) from error
        return cls(name, process, log, ready_file, log_begin)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """None while it runs; minus the signal's number where one ended it."""
        return self._process.returncode

    async def wait(self) -> int:
        """Return its exit code once it has ended."""
        return await self._process.wait()

    async def wait_ready(self, bound_seconds: float) -> dict[str, Any]:
        """The content of its ready file. Raises ProgramFault with its last words when it ends first or is late."""
        assert self._ready_file is not None, f"{self.name} has no ready file"
        loop = asyncio.get_running_loop()
        deadline = loop.time() + bound_seconds
        while True:
            if (found := _read_ready(self._ready_file)) is not None:
                return found
            if self.exit_code is not None:
                raise ProgramFault(self.name, self.last_words(), exit_code=self.exit_code)
            if loop.time() > deadline:
                raise ProgramFault(self.name, f"not ready after {bound_seconds:.0f} s", f"see {self.log}")
            await asyncio.sleep(_POLL_SECONDS)

    async def stop(self, bound_seconds: float) -> int:
        """SIGTERM, and SIGKILL to its whole group after the bound; returns its exit code."""
        self._signal(signal.SIGTERM, group=False)
        try:
            return await asyncio.wait_for(self._process.wait(), bound_seconds)
        except TimeoutError:
            self._signal(signal.SIGKILL, group=True)
            return await self._process.wait()

    def kill(self) -> None:
        """SIGKILL, to it alone: what it started outlives it, as after any crash."""
        self._signal(signal.SIGKILL, group=False)

    def last_words(self) -> str:
        """What it said last, or how it ended. Of a signal it could say nothing: what it said last is not the cause."""
        by_signal = self.exit_code is not None and self.exit_code < 0
        return ("" if by_signal else last_words(self.log, self.log_begin)) or how_it_ended(self.exit_code)

    def _signal(self, number: signal.Signals, *, group: bool) -> None:
        if self.exit_code is not None:
            return
        try:
            if group:
                os.killpg(self.pid, number)
            else:
                os.kill(self.pid, number)
        except ProcessLookupError:
            return


def how_it_ended(exit_code: int | None) -> str:
    """`ended with exit code 3`, `was ended by SIGKILL`."""
    if exit_code is None:
        return "still runs"
    if exit_code >= 0:
        return f"ended with exit code {exit_code}"
    return f"was ended by {signal.Signals(-exit_code).name}"


def last_words(log: Path, begin: int = 0) -> str:
    """The last `error: …` line without that word, or else the last line that says something; empty where there is none.

    `begin` is where this life of the program begins in the log: what an earlier one said is not the cause.
    """
    try:
        with log.open("rb") as file:
            file.seek(max(begin, log.stat().st_size - _LOG_TAIL_BYTES))
            text = file.read().decode(errors="replace")
    except OSError:
        return ""
    # The frame that Python draws around the traceback of several errors says nothing.
    written = [line for each in text.splitlines() if (line := each.strip().lstrip("|+- ").strip())]
    # Warnings of libraries may follow the line that says what is wrong.
    errors = [line for line in written if line.startswith(_ERROR)]
    return (errors or written or [""])[-1].removeprefix(_ERROR)


def _read_ready(path: Path) -> dict[str, Any] | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
    except (OSError, msgspec.MsgspecError):
        # Absent, or caught half-written: the next look decides.
        return None
