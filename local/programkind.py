"""Programs that `sublet up` runs, by kind."""

from __future__ import annotations

from enum import StrEnum


class ProgramKind(StrEnum):
    """A program's name; where each node has one, a node's number may follow it (`agent-2`)."""

    APISERVER = "apiserver"
    NODE = "node"
    PROXY = "proxy"
    SCHEDULER = "scheduler"
    ADMISSION = "admission"
    AGENT = "agent"
    SIMNODES = "simnodes"

    @classmethod
    def of(cls, name: str) -> ProgramKind:
        """The kind of the program with this name. Raises ValueError for a name that no program has."""
        return cls(name.partition("-")[0])
