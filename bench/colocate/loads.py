"""The C programs of bench/loads: compiled once for a run, started outside, moved into their cgroup, then let go."""

from __future__ import annotations

import os
import selectors
import subprocess
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import TracebackType

import psutil

from bench.native import c_compiler
from model.fault import Fault

_SOURCES = Path(__file__).parent.parent / "loads"
_NAMES = ("calibrate", "service", "generator", "spinner", "hog", "surge", "trace", "lockholder", "lockwaiter")
_BUILD_BOUND_SECONDS = 120.0
_ANSWER_BOUND_SECONDS = 20.0


class LoadFault(Fault):
    """A load could not be built, or ended when it should run."""


class Programs:
    """Paths of the built programs in `folder`; those built there before from the same sources are kept."""

    def __init__(self, folder: Path) -> None:
        """Raises LoadFault where there is no C compiler or it fails."""
        self._folder = folder
        header = (_SOURCES / "load.h").stat().st_mtime
        for name in _NAMES:
            source, program = _SOURCES / f"{name}.c", self.path(name)
            newest = max(source.stat().st_mtime, header)
            if not program.exists() or program.stat().st_mtime < newest:
                _build(source, program)

    def path(self, name: str) -> Path:
        return self._folder / name

    def rounds_per_ms(self) -> float:
        """How much work is a millisecond of this machine's CPU."""
        found = subprocess.run([self.path("calibrate")], capture_output=True, text=True, check=True, timeout=60)
        return float(found.stdout)


def _build(source: Path, program: Path) -> None:
    compiler = c_compiler()
    if compiler is None:
        raise LoadFault("cc", "no C compiler on PATH", "apt-get install gcc libc6-dev")
    part = program.with_suffix(".part")
    command = [compiler, "-O2", "-pthread", "-o", str(part), str(source), "-lm"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_BUILD_BOUND_SECONDS)
    if done.returncode != 0:
        raise LoadFault(source.name, f"does not compile: {done.stderr.strip()[:300]}", "is libc6-dev installed?")
    part.replace(program)


class LoadProgram:
    """A running program. Its first line says it is ready; `into` moves it, `go` lets it work; leaving kills it."""

    def __init__(self, command: Sequence[str | Path]) -> None:
        pipe = subprocess.PIPE
        self.name = Path(command[0]).name
        # A session of its own: Ctrl-C is for the benchmark, which then ends its loads.
        self._process = subprocess.Popen(list(map(str, command)), stdin=pipe, stdout=pipe, start_new_session=True)
        self._pending = b""

    def __enter__(self) -> LoadProgram:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def into(self, directories: Iterable[Path]) -> None:
        for directory in directories:
            (directory / "cgroup.procs").write_text(str(self.pid))

    def oom_score(self, requested_bytes: int) -> None:
        """As kubelet sets it: by the share of the machine's memory that was requested; 1000 for best effort."""
        score = 1000 - 1000 * requested_bytes // psutil.virtual_memory().total
        most = 1000 if requested_bytes == 0 else 999
        Path(f"/proc/{self.pid}/oom_score_adj").write_text(str(min(max(score, 3), most)))

    def say(self, line: str) -> None:
        """Raises LoadFault where it is gone."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(f"{line}\n".encode())
            self._process.stdin.flush()
        except OSError as error:
            raise LoadFault(self.name, "ended early") from error

    def line(self, bound_seconds: float = _ANSWER_BOUND_SECONDS) -> str:
        """Its next line. Raises LoadFault where it ended, or says nothing within the bound."""
        found = self.line_within(bound_seconds)
        if found is None:
            raise LoadFault(self.name, f"said nothing for {bound_seconds:g} s")
        return found

    def line_within(self, seconds: float) -> str | None:
        """None where it says nothing so long. Raises LoadFault where it ended."""
        assert self._process.stdout is not None
        deadline = time.monotonic() + seconds
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            while b"\n" not in self._pending:
                if not selector.select(max(deadline - time.monotonic(), 0)):
                    return None
                more = os.read(self._process.stdout.fileno(), 65536)
                if not more:
                    raise LoadFault(self.name, "ended early")
                self._pending += more
        found, self._pending = self._pending.split(b"\n", 1)
        return found.decode()


def started(command: Sequence[str | Path], directories: Iterable[Path] = ()) -> LoadProgram:
    """A load at work in the cgroups of `directories`; for one whose first line matters use Load itself."""
    load = LoadProgram(command)
    try:
        load.line()
        load.into(directories)
        load.say("go")
    except BaseException:
        load.__exit__(None, None, None)
        raise
    return load
