"""Memory limits of the simulated kernel: who is over one loses its largest process, counted as the kernel counts it."""

from __future__ import annotations

import signal
from collections.abc import Iterable, Mapping
from typing import Protocol

from embedded.simkernel.accounts import Account
from embedded.simkernel.actions import Actions
from embedded.simkernel.files import CgroupFiles
from embedded.simkernel.limits import Controls
from embedded.simkernel.membership import Member
from embedded.simkernel.process_table import ProcessTable

_LOOK_AGAIN_SECONDS = 0.5


class Charged(Protocol):
    """What is needed of a cgroup."""

    path: str
    files: CgroupFiles
    controls: Controls
    account: Account
    memory_bytes: int


class MemoryLimits:
    """Kills by `actions`. Where processes share memory the cheap sum is too large, so it alone condemns nobody."""

    def __init__(self, table: ProcessTable, actions: Actions) -> None:
        self._table = table
        self._actions = actions
        self._acquitted: dict[str, float] = {}
        self._dying: set[int] = set()

    def enforce(self, groups: Iterable[Charged], members: Mapping[int, Member], now: float) -> None:
        """One victim a cgroup and step, the innermost cgroups first; nobody while the last one is still dying."""
        self._dying &= members.keys()
        by_depth = sorted(groups, key=lambda each: each.path.count("/"), reverse=True)
        for group in by_depth:
            limit, high = group.controls.memory_max, group.controls.memory_high
            if high is not None and group.memory_bytes > high:
                self._count_up(group, by_depth, high=1)
            if limit is not None and group.memory_bytes > limit and now >= self._acquitted.get(group.path, 0.0):
                self._judge(group, by_depth, members, now)

    def _judge(self, group: Charged, groups: list[Charged], members: Mapping[int, Member], now: float) -> None:
        inside = [pid for pid, member in members.items() if _is_in(member.cgroup, group.path)]
        if self._dying.intersection(inside):
            return
        sizes = {pid: self._table.fair_memory(pid) for pid in inside}
        if not sizes or sum(sizes.values()) <= (group.controls.memory_max or 0):
            self._acquitted[group.path] = now + _LOOK_AGAIN_SECONDS
            return
        victim = max(sizes, key=lambda pid: (sizes[pid], pid))
        home = members[victim].cgroup
        together = any(each.path == home and each.controls.kills_together for each in groups)
        condemned = [pid for pid in inside if members[pid].cgroup == home] if together else [victim]
        self._count_up(group, groups, oom=1)
        own = next((each for each in groups if each.path == home), group)
        self._count_up(own, groups, kills=len(condemned))
        # Whoever waits for the victim's end looks at the counters at once.
        for each in groups:
            each.files.write(each.account.texts())
        for pid in condemned:
            self._actions.signal(pid, signal.SIGKILL)
        self._dying.update(condemned)

    def _count_up(self, group: Charged, groups: list[Charged], *, high: int = 0, oom: int = 0, kills: int = 0) -> None:
        """In the cgroup and in all above it, as memory.events does; only its own in memory.events.local."""
        own = group.account
        own.local_high, own.local_oom, own.local_oom_kill = (
            own.local_high + high,
            own.local_oom + oom,
            own.local_oom_kill + kills,
        )
        for each in groups:
            if _is_in(group.path, each.path):
                account = each.account
                account.high += high
                account.maximum += oom
                account.oom += oom
                account.oom_kill += kills


def _is_in(path: str, top: str) -> bool:
    return top == "." or path == top or path.startswith(f"{top}/")
