"""Which process is in which cgroup, from what is seen of processes now and then.

A process is where its parent is. One whose parent was gone before it was seen is where its session began: each
container begins one. What has left its session too, as daemons do, is where the mark in its environment says; who
also threw that away, all within one step, is missed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import msgspec

from embedded.simkernel.process_table import Process


class Member(msgspec.Struct, frozen=True):
    """A process of a cgroup, as seen last."""

    cgroup: str
    process: Process


class Membership:
    """`members` by pid. `owner` begins every container; 0 lets anybody's children join. `marked` reads a mark."""

    def __init__(self, owner: int = 0, marked: Callable[[int], str | None] = lambda pid: None) -> None:
        self.owner = owner
        self._marked = marked
        self._sessions: dict[int, str] = {}
        self._joined: set[int] = set()
        self._held: set[int] = set()
        self._known: frozenset[int] | set[int] = frozenset()
        self.members: dict[int, Member] = {}

    def unknown(self, pids: set[int]) -> set[int]:
        """Of all processes there are, those to look at: members, and whom nobody looked at before."""
        return (pids - self._known) | (pids & self.members.keys())

    def restore(self, cgroup: str, processes: Iterable[Process]) -> None:
        """Members that an earlier simulation wrote down."""
        for process in processes:
            self._sessions.setdefault(process.session, cgroup)
            self._joined.add(process.session)
            self.members[process.pid] = Member(cgroup, process)

    def join(self, cgroup: str, process: Process) -> bool:
        """A process asked to be in the cgroup; False for one that the owner did not begin."""
        if self.owner and process.parent != self.owner:
            return False
        self._sessions[process.session] = cgroup
        self._joined.add(process.session)
        self.members[process.pid] = Member(cgroup, process)
        return True

    def update(self, pids: set[int], seen: Mapping[int, Process]) -> list[Member]:
        """Take in what was seen of `unknown`; returns the members that are gone."""
        before = self.members
        self.members = {}
        for pid, member in before.items():
            process = seen.get(pid)
            if process is not None and process.started_ticks == member.process.started_ticks:
                self.members[pid] = Member(member.cgroup, process)
        # Parents first: a family may be born between two steps.
        for process in sorted(seen.values(), key=lambda each: (each.started_ticks, each.pid)):
            if process.pid not in self.members and (cgroup := self._inherited(process, before)) is not None:
                self.members[process.pid] = Member(cgroup, process)
        self._known = pids
        self._forget_sessions()
        return [member for pid, member in before.items() if pid not in self.members]

    def forget(self, cgroup: str) -> None:
        """The cgroup is gone: nobody is born into it."""
        self._sessions = {session: home for session, home in self._sessions.items() if home != cgroup}

    def _forget_sessions(self) -> None:
        """One in which nobody was at this look and the last has ended: its number may be another's soon."""
        held = self._joined | {member.process.session for member in self.members.values()}
        self._sessions = {number: home for number, home in self._sessions.items() if number in held | self._held}
        self._held, self._joined = held, set()

    def _inherited(self, process: Process, before: Mapping[int, Member]) -> str | None:
        parent = self.members.get(process.parent) or before.get(process.parent)
        if parent:
            return parent.cgroup
        if process.session in self._sessions:
            return self._sessions[process.session]
        # A mark is there from birth: who was looked at before has none.
        return self._marked(process.pid) if process.pid not in self._known else None
