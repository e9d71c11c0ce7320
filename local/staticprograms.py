"""Sublet's own programs as a node's static pods: what `sublet up` knows of each, in a file that the nodes read."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec

from kube.wholefile import write_whole
from local.programkind import ProgramKind


class ProgramRun(msgspec.Struct, frozen=True):
    """One run of a program: Unix seconds, and where in its log it begins; `exit_code` is minus a signal's number.

    One that has not ended has neither `ended_seconds` nor `exit_code`.
    """

    pid: int
    started_seconds: float
    log_begin: int = 0
    ended_seconds: float = 0.0
    exit_code: int = 0

    @property
    def over(self) -> bool:
        return self.ended_seconds > 0


class ProgramHistory(msgspec.Struct, frozen=True):
    """A program from its first start on: its newest run, the one before, and how often it was started again."""

    run: ProgramRun
    previous: ProgramRun | None = None
    restarts: int = 0


class StaticProgram(msgspec.Struct, frozen=True):
    """A program of the node `node`: its newest run and the one before it, and where it is asked whether it is ready.

    `port` is 0 where it answers on the unix socket alone. `log` collects the output of all runs.
    """

    name: ProgramKind
    node: str
    log: str
    run: ProgramRun
    previous: ProgramRun | None = None
    restarts: int = 0
    host: str = ""
    port: int = 0
    socket: str = ""


def write_programs(file: Path, programs: Iterable[StaticProgram]) -> None:
    """Readers see the old file or the new one. Raises OSError."""
    write_whole(file, msgspec.json.encode(list(programs)), file.with_name(f"{file.name}.new"))


def read_programs(file: Path, node: str) -> tuple[StaticProgram, ...] | None:
    """The programs of one node; None where the file is not there or cannot be read, so that nothing is known."""
    try:
        found = msgspec.json.decode(file.read_bytes(), type=list[StaticProgram])
    except (OSError, msgspec.MsgspecError):
        return None
    return tuple(each for each in found if each.node == node)
