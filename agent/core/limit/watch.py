"""The brake's orders for the time between two ticks: cut CPU, wake up, kill as a last resort."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from agent.core.limit.brake import BrakePlan

_STEP_BYTES = 16 << 20
_STEP_SHIFT = 6
_MUCH_STEPS = 4
_MARK_SECONDS = 5.0
LONGEST_DYING_SECONDS = 5.0
"""Nobody is waited for any longer: who does not end within this is stuck in the kernel."""
_SETTLE_SECONDS = 0.05
_SECONDS_PER_GB = 0.11
"""From SIGKILL until the memory is given back: 22 ms at 200 MB, 113 ms at 1 GB, 310 ms at 3 GB, measured on 6.18."""


class WakeCause(StrEnum):
    """Why a tick starts early."""

    CPU_USE = "cpu_use"
    CPU_PRESSURE = "cpu_pressure"
    MEMORY_PRESSURE = "memory_pressure"
    MEMORY_MARK = "memory_mark"
    MEMORY_LEVEL = "memory_level"
    MEMORY_REFAULTS = "memory_refaults"
    LAST_RESORT = "last_resort"


class Mechanism(msgspec.Struct, frozen=True):
    """One way of waking up that works here, and on how many cgroups (None where it is not about cgroups)."""

    name: str
    cgroups: int | None = None

    @property
    def words(self) -> str:
        if self.cgroups is None:
            return self.name
        return f"{self.name} on {self.cgroups} cgroup{'' if self.cgroups == 1 else 's'}"


class MemoryMark(msgspec.Struct, frozen=True):
    """A tick is due once the cgroup's whole charge (cache included) passes `bytes`."""

    cgroup: str
    bytes: int


class MemorySigns(msgspec.Struct, frozen=True):
    """A tick is due once MemAvailable falls below `available_bytes`, and once `refault_pct` percent of it are read back
    in ten seconds, at the pace of the last; None: not watched."""

    available_bytes: int | None = None
    refault_pct: int | None = None


class PreparedVictim(msgspec.Struct, frozen=True):
    """A best-effort pod that may be killed on the spot: where its processes are, and what that would free."""

    uid: str
    namespace: str
    name: str
    cgroup: str
    frees_bytes: int


class LastResort(msgspec.Struct, frozen=True):
    """Kill the first victim that still lives while memory is this short; one, then wait until it is gone.

    Short is less than `node_available_bytes` of /proc/meminfo's MemAvailable, or less than `kubepods_room_bytes`
    between kubepods' charge without page cache and its limit (None: it has none). Nobody is killed where all victims
    together hold less than `least_help_pct` percent of what is left.
    """

    node_available_bytes: int
    kubepods_room_bytes: int | None
    kubepods_limit_bytes: int | None
    victims: tuple[PreparedVictim, ...]
    least_help_pct: int = 0


class Watch(msgspec.Struct, frozen=True):
    """`cpu` is None where there is nothing to defend; `online` are the cgroups whose waiting for CPU is watched.

    They are heard once they wait `stall_pct` of the time.
    """

    cpu: BrakePlan | None = None
    memory: tuple[MemoryMark, ...] = ()
    last_resort: LastResort | None = None
    online: tuple[str, ...] = ()
    stall_pct: int = 10
    signs: MemorySigns = MemorySigns()


class Kill(msgspec.Struct, frozen=True):
    """What the last resort did: to whom, when, what was left of memory then, and how many processes it reached."""

    victim: PreparedVictim
    at_seconds: float
    monotonic_seconds: float
    available_bytes: int
    processes: int


def short_of_memory(
    last_resort: LastResort, available: int | None, kubepods_charge: int | None, page_cache: int
) -> int | None:
    """The bytes that are left where that is too little, of node or kubepods; None where there is enough.

    What is not known is not short: nobody is killed on a guess. All file pages count as left, those in use too: the
    kernel drops them before it kills anybody.
    """
    if available is not None and available < last_resort.node_available_bytes:
        return available
    room, limit = last_resort.kubepods_room_bytes, last_resort.kubepods_limit_bytes
    if room is None or limit is None or kubepods_charge is None:
        return None
    left = limit - (kubepods_charge - min(page_cache, kubepods_charge))
    return max(left, 0) if left < room else None


def dying_seconds(held_bytes: int) -> float:
    """How long after its kill a victim's memory may still be in use."""
    return min(_SETTLE_SECONDS + _SECONDS_PER_GB * max(held_bytes, 0) / 1e9, LONGEST_DYING_SECONDS)


def mark_moved(registered_bytes: int, wanted_bytes: int) -> bool:
    """Far enough to register it again: by 16 MiB, or 1/64 where that is more. The tick catches what slips through."""
    return abs(wanted_bytes - registered_bytes) > _mark_step(registered_bytes)


def mark_urgent(registered_bytes: int, wanted_bytes: int) -> bool:
    """So much lower (four such steps) that the old mark would tell too late."""
    return registered_bytes - wanted_bytes > _MUCH_STEPS * _mark_step(registered_bytes)


def mark_rested(age_seconds: float) -> bool:
    """Registered long enough ago: each time costs the kernel 30 to 75 ms, in which nothing else is watched."""
    return age_seconds >= _MARK_SECONDS


def _mark_step(registered_bytes: int) -> int:
    return max(_STEP_BYTES, registered_bytes >> _STEP_SHIFT)
