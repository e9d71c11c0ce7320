"""Whose cgroup prefix is it? The owner's pid and start time are the name of an empty cgroup in the prefix.

The claim lives and dies with what it claims: it survives `kill -9`, needs no file in a run directory that the next
start might not know, and is gone after a reboot.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import msgspec
import structlog

from embedded.cgroups.hierarchy import Cgroups
from embedded.fault import ConfigurationFault, KernelFault

log = structlog.get_logger()

_CLAIM = re.compile(r"owner-(\d+)-(\d+)\Z")


class Owner(msgspec.Struct, frozen=True):
    """A process told apart from a later one with the same pid by its start time (clock ticks after boot)."""

    pid: int
    started_ticks: int

    @property
    def claim(self) -> str:
        return f"owner-{self.pid}-{self.started_ticks}"


def this_process() -> Owner:
    return Owner(os.getpid(), started_ticks(os.getpid()) or 0)


def started_ticks(pid: int) -> int | None:
    """Field 22 of /proc/<pid>/stat; None when there is no such process, or only its zombie."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in ("Z", "X") else int(fields[19])


def boot_id() -> str:
    """Another after every start of the machine, with which process ids and their times begin again."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


async def take(cgroups: Cgroups, me: Owner) -> int:
    """Claim the prefix and remove what a dead owner left; returns how many leftover processes were killed.

    Raises ConfigurationFault when the prefix has a living owner, KernelFault when leftovers cannot be removed.
    """
    prefix, kubepods = cgroups.layout.prefix, cgroups.layout.kubepods
    before = owners(cgroups)
    if cgroups.exists(kubepods) and not before:
        raise ConfigurationFault(prefix, "holds cgroups that no process node made", "choose another --id")
    _refuse_living(prefix, [each for each in before if each != me])
    await _claim(cgroups, me)
    # Two starts at the same moment each see the other's claim here, and both give way.
    rivals = [each for each in owners(cgroups) if each not in (*before, me)]
    if any(_alive(each) for each in rivals):
        await cgroups.remove(f"{prefix}/{me.claim}")
        _refuse_living(prefix, rivals)
    killed = len(cgroups.members(kubepods))
    if not await cgroups.remove(kubepods):
        raise KernelFault(kubepods, "leftovers of a dead process node cannot be removed", "see the log for the pids")
    for dead in before:
        await cgroups.remove(f"{prefix}/{dead.claim}")
    return killed


async def _claim(cgroups: Cgroups, me: Owner) -> None:
    try:
        cgroups.create(f"{cgroups.layout.prefix}/{me.claim}")
    except KernelFault:
        await cgroups.remove(f"{cgroups.layout.prefix}/{me.claim}")
        raise


async def release(cgroups: Cgroups) -> bool:
    """Remove every cgroup of ours, the claim last; False when something stays."""
    clean = await cgroups.remove(cgroups.layout.kubepods)
    return await cgroups.remove(cgroups.layout.prefix) and clean


def owners(cgroups: Cgroups) -> list[Owner]:
    """Everybody who claims the prefix, dead or alive."""
    directory = Path(cgroups.layout.directory("cpu", cgroups.layout.prefix))
    try:
        claims = [_CLAIM.match(entry.name) for entry in sorted(directory.iterdir())]
    except OSError:
        return []
    return [Owner(int(claim[1]), int(claim[2])) for claim in claims if claim]


def _refuse_living(prefix: str, claimed: list[Owner]) -> None:
    for owner in claimed:
        if _alive(owner):
            raise ConfigurationFault(
                prefix, f"belongs to the running process node with pid {owner.pid}", "stop it or choose another --id"
            )


def _alive(owner: Owner) -> bool:
    return started_ticks(owner.pid) == owner.started_ticks
