"""A person's terminal for one guide: a home directory of its own, and what was exported stays exported."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from tests.e2e.guides.guide import Step, unmet

_KEPT = re.compile(r"export |cd |[A-Za-z_]\w*=\S*(?:\(.*\))?$")
_START_SECONDS = 60.0
_COMMAND_SECONDS = 90.0
_PENDING_SECONDS = 3.0
_PAUSE_SECONDS = 0.3


class Shell:
    """Runs steps in their order; a command that ends with `&` runs until `close`.

    `elsewhere` is what `sublet up` is told besides, see `joined` in tests/e2e/conftest.py.
    """

    def __init__(self, directory: Path, home: Path | None = None, elsewhere: Sequence[str] = ()) -> None:
        self.directory = directory
        self._elsewhere = elsewhere
        # Not pytest's own directory: a unix socket's path holds 107 bytes.
        self.home = home or Path(tempfile.mkdtemp(prefix="guide-"))
        self._owns_home = home is None
        self.printed = ""
        """By the last command that ended."""
        self._kept: list[str] = []
        self._done: set[int] = set()
        self._background: list[subprocess.Popen[bytes]] = []

    def catch_up(self, steps: Iterable[Step]) -> None:
        """Do what was not done yet, whatever it prints."""
        for step in steps:
            if step.number not in self._done:
                self.run(step)

    def run(self, step: Step) -> str:
        """What breaks the step's promise; empty where it is kept."""
        self._done.add(step.number)
        if _KEPT.match(step.command):
            self._kept.append(step.command)
            return ""
        if step.command.endswith("&"):
            return self._start(step)
        deadline = time.monotonic() + (0.0 if step.pending else step.until_seconds)
        while (broken := self._once(step)) and time.monotonic() < deadline:
            time.sleep(_PAUSE_SECONDS)
        return broken

    def has_metrics(self) -> bool:
        """Whether the API server given from outside serves them; ours does in any case."""
        return not self._elsewhere or not self._once(Step(0, "", "kubectl get apiservice v1beta1.metrics.k8s.io"))

    def _once(self, step: Step) -> str:
        script = "\n".join([*self._kept, step.command])
        bound = _PENDING_SECONDS if step.pending else _COMMAND_SECONDS
        try:
            done = subprocess.run(
                ["timeout", f"{bound}", "bash", "-c", script],
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                text=True,
                timeout=bound + 5,
                cwd=self.directory,
                env=self._environment(),
            )
        except subprocess.TimeoutExpired:
            return f"no end within {bound + 5:.0f} s"
        self.printed = done.stdout
        if (done.returncode != 0) != step.fails:
            return f"exit code {done.returncode}:\n{done.stdout}"
        return unmet(step.promised, done.stdout)

    def _start(self, step: Step) -> str:
        output = self.home / f"output-{step.number}"
        with output.open("wb") as file:
            command = shlex.split(step.command.removesuffix("&").replace("\\\n", " "))
            command += self._elsewhere if command[:2] == ["sublet", "up"] else ()
            program = subprocess.Popen(
                command,
                stdout=file,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                cwd=self.directory,
                env=self._environment(),
            )
        self._background.append(program)
        deadline = time.monotonic() + _START_SECONDS
        while (broken := unmet(step.promised, output.read_text())) and program.poll() is None:
            if time.monotonic() > deadline:
                break
            time.sleep(_PAUSE_SECONDS)
        return broken

    def _environment(self) -> dict[str, str]:
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        return {**os.environ, "PATH": path, "HOME": str(self.home), "KUBECACHEDIR": str(self.home / "cache")}

    def close(self) -> list[int]:
        """The exit codes of what ran in the background, ended as by a service manager."""
        for program in self._background:
            if program.poll() is None:
                program.terminate()
        codes = [program.wait(60) for program in self._background]
        if self._owns_home:
            shutil.rmtree(self.home, ignore_errors=True)
        return codes
