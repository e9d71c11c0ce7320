"""A process of the API benchmark that answers commands: one line of JSON in, one line of JSON out."""

from __future__ import annotations

import asyncio
import select
import subprocess
import sys
from collections.abc import Awaitable, Callable, Mapping
from types import TracebackType
from typing import Any

import msgspec

from model.fault import Fault

Handler = Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]
_ANSWER_BOUND_SECONDS = 120.0
_STOP_BOUND_SECONDS = 10.0


class ChildFault(Fault):
    """A process of the benchmark ended or did not answer."""


class CommandedProcess:
    """`python -m module arguments…`, asked from outside; ends with the context."""

    def __init__(self, module: str, *arguments: str) -> None:
        self._module = module
        command = [sys.executable, "-m", module, *arguments]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self, do: str, **options: Any) -> dict[str, Any]:
        """Its answer to a command; raises ChildFault where there is none in two minutes."""
        self.tell(do, **options)
        return self.answer()

    def tell(self, do: str, **options: Any) -> None:
        """Send a command whose answer is taken later."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(msgspec.json.encode({"do": do, **options}) + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise ChildFault(self._module, "has ended", "see what it wrote to standard error") from None

    def answer(self) -> dict[str, Any]:
        output = self._process.stdout
        assert output is not None
        # Each command has one answer, so nothing is left in the reader's buffer that select would not see.
        if not select.select([output], [], [], _ANSWER_BOUND_SECONDS)[0]:
            raise ChildFault(self._module, f"no answer within {_ANSWER_BOUND_SECONDS:g} s")
        if not (line := output.readline()):
            raise ChildFault(self._module, "has ended", "see what it wrote to standard error")
        found: dict[str, Any] = msgspec.json.decode(line)
        return found

    def __enter__(self) -> CommandedProcess:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """The end of its standard input is the end of its work."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(_STOP_BOUND_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()


async def serve_commands(handlers: Mapping[str, Handler]) -> None:
    """Answer commands from standard input until it ends."""
    reader = asyncio.StreamReader(limit=64 << 20)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        command = msgspec.json.decode(line, type=dict[str, Any])
        found = await handlers[command.pop("do")](command)
        sys.stdout.buffer.write(msgspec.json.encode(found) + b"\n")
        sys.stdout.buffer.flush()
