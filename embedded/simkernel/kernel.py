"""One step of the simulated kernel: look · count · limit · write."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from embedded.cpu_lists import format_cpus
from embedded.simkernel.accounts import Account
from embedded.simkernel.actions import Actions
from embedded.simkernel.files import CgroupFiles
from embedded.simkernel.limits import Bucket, Controls, Priority, allowed_cpus, controls, priority
from embedded.simkernel.membership import Member, Membership
from embedded.simkernel.memory import MemoryLimits
from embedded.simkernel.process_table import Process, ProcessTable
from embedded.simkernel.tree import MARK, cgroups_below, read_members

_TREE_EVERY_STEPS = 2
_SETTLED_SECONDS = 1.0
_LAST_LOOKS = 3


class Group:
    """One cgroup; `chain` is every cgroup from the top down to this one, itself the last."""

    def __init__(self, path: str, files: CgroupFiles, above: tuple[Group, ...]) -> None:
        self.path = path
        self.files = files
        self.chain = (*above, self)
        self.controls = controls(files.controls(), Controls())
        self.account = Account.continued(files.read("cpu.stat"), files.read("memory.events"))
        self.bucket = Bucket()
        self.base = msgspec.structs.replace(self.account)
        self.cpu_us_of_members = 0
        self.used_us = 0
        self.memory_bytes = 0
        self.processes = 0
        self.wanted = Priority()
        self.wanted_since = 0.0


class _Set(msgspec.Struct, frozen=True):
    """What a process was given last."""

    cpus: tuple[int, ...]
    priority: Priority


class _Asked(msgspec.Struct, frozen=True):
    """A process that asked to be in a cgroup, and when it began."""

    path: str
    pid: int
    ticks: int


class SimulatedKernel:
    """The tree below `root`. `owner` is the process that begins every container; `cpus` are all there are."""

    def __init__(
        self, root: Path, table: ProcessTable, actions: Actions, cpus: tuple[int, ...], owner: int = 0
    ) -> None:
        self._root = root
        self._table = table
        self._actions = actions
        self._cpus = cpus
        self._membership = Membership(owner, self._marked)
        self._groups: dict[str, Group] = {}
        self._stopped: set[int] = set()
        self._given: dict[int, _Set] = {}
        self._memory = MemoryLimits(table, actions)
        self._asked: list[_Asked] = []
        self._refused: list[_Asked] = []
        self._steps = 0
        self._stepped_at: float | None = None

    @property
    def members(self) -> dict[int, Member]:
        return self._membership.members

    def finds_cgroups(self) -> bool:
        """Beside the root, which is never removed."""
        self._find_groups()
        return len(self._groups) > 1

    def step(self, now: float) -> None:
        """`now` is a monotonic clock's, in seconds."""
        passed = 0.0 if self._stepped_at is None else now - self._stepped_at
        self._stepped_at = now
        if self._steps % _TREE_EVERY_STEPS == 0:
            self._find_groups()
        self._steps += 1
        gone = self._look()
        self._count(gone)
        self._limit_cpu(now, passed)
        self._memory.enforce(self._groups.values(), self._membership.members, now)
        self._write()

    def end(self) -> None:
        """Let everybody run again."""
        self._signal_all(signal.SIGCONT)
        self._close()

    def bury(self, heir: int) -> None:
        """The owner has died and `heir` has its children: end all of them, who joined a moment ago too."""
        self._membership.owner = heir
        # Who was looked at after the owner's death, and before it was known, was nobody's then.
        self._asked, self._refused = self._refused, []
        for _ in range(_LAST_LOOKS * _TREE_EVERY_STEPS):
            self.step(self._stepped_at or 0.0)
            self._signal_all(signal.SIGKILL)
        self._close()

    def _signal_all(self, number: signal.Signals) -> None:
        for pid in self._membership.members:
            self._actions.signal(pid, number)

    def _close(self) -> None:
        for group in self._groups.values():
            group.files.close()
        self._groups.clear()

    def _find_groups(self) -> None:
        """Parents come before their children; a cgroup that is not whole yet is found in the next step."""
        found = {str(folder.relative_to(self._root)): folder for folder in cgroups_below(self._root)}
        for path in self._groups.keys() - found.keys():
            self._groups.pop(path).files.close()
            self._membership.forget(path)
        for path, folder in found.items():
            if path not in self._groups:
                self._add(path, folder)

    def _add(self, path: str, folder: Path) -> None:
        try:
            files = CgroupFiles(folder)
        except OSError:
            return
        above = self._groups.get(str(Path(path).parent)) if path != "." else None
        group = self._groups[path] = Group(path, files, above.chain if above else ())
        there = self._table.look_at(pid for pid, _ in read_members(folder))
        left = [there[pid] for pid, ticks in read_members(folder) if pid in there and there[pid].started_ticks == ticks]
        if left:
            # An earlier simulation may have ended with them stopped.
            self._membership.restore(path, left)
            group.cpu_us_of_members = sum(process.cpu_us for process in left)
            for process in left:
                self._actions.signal(process.pid, signal.SIGCONT)

    def _look(self) -> list[Member]:
        asked, self._asked = [*self._asked, *self._newly_asked()], []
        there = self._table.look_at(each.pid for each in asked)
        # Listed after that: what a leader that is gone already has left behind is then among them.
        pids = self._table.pids()
        # Who joined may have begun others before, and those were strangers until now.
        seen = self._table.look_at(pids if asked else self._membership.unknown(pids))
        for each in asked:
            self._let_in(each, there.get(each.pid), seen)
        self._refused = [each for each in self._refused if self._is_there(each)]
        gone = self._membership.update(pids, {**there, **seen})
        self._stopped &= self._membership.members.keys()
        self._given = {pid: given for pid, given in self._given.items() if pid in self._membership.members}
        return gone

    def _marked(self, pid: int) -> str | None:
        """The cgroup, even one that is gone: it is then about to end."""
        home, top = self._table.variable(pid, MARK), f"{self._root.as_posix()}/"
        if not home or not home.startswith(top):
            return None
        path = home.removeprefix(top)
        if path not in self._groups:
            # It may have been made a moment ago.
            self._find_groups()
        return path

    def _newly_asked(self) -> Iterator[_Asked]:
        for path, group in self._groups.items():
            yield from (_Asked(path, pid, ticks) for pid, ticks in group.files.joined())

    def _let_in(self, asked: _Asked, process: Process | None, seen: Mapping[int, Process]) -> None:
        if process is None:
            left = (each for each in seen.values() if each.session == asked.pid)
            found = [each for each in left if each.in_session_of(asked.ticks, seen.get(asked.pid))]
            self._membership.restore(asked.path, found)
        elif process.started_ticks == asked.ticks and not self._membership.join(asked.path, process):
            self._refused.append(asked)

    def _is_there(self, asked: _Asked) -> bool:
        process = self._table.look(asked.pid)
        return process is not None and process.started_ticks == asked.ticks

    def _count(self, gone: list[Member]) -> None:
        """CPU time of who is gone went to a parent that waited, else it would be lost."""
        members = self._membership.members
        totals = dict.fromkeys(self._groups, 0)
        lost = dict.fromkeys(self._groups, 0)
        for group in self._groups.values():
            group.used_us = group.memory_bytes = group.processes = 0
        for member in members.values():
            if member.cgroup in totals:
                totals[member.cgroup] += member.process.cpu_us
                self._hold(member)
        for member in gone:
            if member.cgroup in lost and member.process.parent not in members:
                lost[member.cgroup] += member.process.cpu_us
        for path, group in self._groups.items():
            used = max(totals[path] - group.cpu_us_of_members + lost[path], 0)
            group.cpu_us_of_members = totals[path]
            for each in group.chain:
                each.used_us += used

    def _hold(self, member: Member) -> None:
        size = self._table.own_memory(member.process.pid) if member.process.alive else 0
        for each in self._groups[member.cgroup].chain:
            each.memory_bytes += size
            each.processes += 1

    def _limit_cpu(self, now: float, passed: float) -> None:
        for group in self._groups.values():
            group.controls = controls(group.files.controls(), group.controls)
            group.bucket.step(group.controls, passed, group.used_us)
            wanted = priority([each.controls for each in group.chain])
            if wanted != group.wanted:
                group.wanted, group.wanted_since = wanted, now
        for pid, member in self._membership.members.items():
            group_of = self._groups.get(member.cgroup)
            if group_of is None:
                # Its cgroup was removed while it was being born.
                self._actions.signal(pid, signal.SIGKILL)
                continue
            self._halt(member, any(each.bucket.stopped for each in group_of.chain))
            self._place(pid, group_of, now)

    def _halt(self, member: Member, stop: bool) -> None:
        """Only who was stopped here is let go: a person may have stopped others."""
        process = member.process
        if stop and not process.stopped and process.alive:
            self._actions.signal(process.pid, signal.SIGSTOP)
            self._stopped.add(process.pid)
        elif not stop and process.pid in self._stopped:
            self._actions.signal(process.pid, signal.SIGCONT)
            self._stopped.discard(process.pid)

    def _place(self, pid: int, group: Group, now: float) -> None:
        """A weight that will be another in a moment is not acted upon, since niceness cannot be taken back."""
        given = self._given.get(pid, _Set(self._cpus, Priority()))
        cpus = allowed_cpus([each.controls for each in group.chain], self._cpus)
        settled = group.wanted if now - group.wanted_since >= _SETTLED_SECONDS else given.priority
        if cpus != given.cpus:
            self._actions.pin(pid, cpus)
        if settled != given.priority:
            self._actions.lower(pid, settled)
        self._given[pid] = _Set(cpus, settled)

    def _write(self) -> None:
        residents = dict(self._residents())
        for path, group in self._groups.items():
            account, bucket = group.account, group.bucket
            account.cpu_us += group.used_us
            account.periods = group.base.periods + bucket.counted
            account.throttled = group.base.throttled + bucket.throttled
            account.throttled_us = group.base.throttled_us + int(bucket.throttled_us)
            account.memory_bytes, account.processes = group.memory_bytes, group.processes
            group.files.write(account.texts())
            group.files.write_cpus(format_cpus(allowed_cpus([each.controls for each in group.chain], self._cpus)))
            group.files.list_members(member.process for member in residents.get(path, ()))

    def _residents(self) -> Iterator[tuple[str, list[Member]]]:
        by_group: dict[str, list[Member]] = {}
        for member in self._membership.members.values():
            by_group.setdefault(member.cgroup, []).append(member)
        yield from by_group.items()
