"""Only prepared victims, each once, one at a time, and only while memory is short."""

from __future__ import annotations

import pytest

from agent.core.watch import Kill, LastResort, PreparedVictim
from agent.lastresort import LastResortKill
from model.fault import KernelFault

GB = 10**9
VICTIMS = tuple(PreparedVictim(f"u{n}", "default", f"job{n}", f"/be/pod{n}", GB) for n in range(3))


class FakeMemory:
    """Levels as a test sets them; remembers whether the dear file was read."""

    unreadable = 0

    def __init__(self, available: int | None = 10, charge: int | None = None, inactive: int | None = 0) -> None:
        self.levels = (available, charge, inactive)
        self.dear_reads = 0

    def available(self) -> int | None:
        return self.levels[0]

    def kubepods_charge(self) -> int | None:
        return self.levels[1]

    def kubepods_inactive_file(self) -> int | None:
        self.dear_reads += 1
        return self.levels[2]

    def close(self) -> None:
        pass


class Rig:
    def __init__(self, memory: FakeMemory | None = None, dead: tuple[str, ...] = ()) -> None:
        self.memory = memory or FakeMemory()
        self.killed: list[str] = []
        self.dead = dead
        self.last_resort = LastResortKill(self.memory, self.kill)

    def kill(self, cgroup: str) -> int:
        self.killed.append(cgroup)
        return 0 if cgroup in self.dead else 4

    def look(self, now: float, *victims: PreparedVictim, room: int | None = None) -> Kill | None:
        limit = 1000 if room is not None else None
        return self.last_resort.look(LastResort(50, room, limit, victims), now, 1e9 + now)


def test_one_dies_and_the_next_only_once_its_memory_must_be_gone() -> None:
    """A gigabyte takes 0.16 s; the second look in between kills nobody, nor does one with enough memory."""
    rig = Rig()
    assert rig.look(5.0, *VICTIMS) == Kill(VICTIMS[0], 1e9 + 5.0, 5.0, 10, 4)
    assert rig.look(5.1, *VICTIMS) is None
    assert rig.look(5.2, *VICTIMS) == Kill(VICTIMS[1], 1e9 + 5.2, 5.2, 10, 4)
    rig.memory.levels = (50, None, None)
    assert rig.look(9.0, *VICTIMS) is None
    assert rig.killed == ["/be/pod0", "/be/pod1"]


def test_nobody_dies_twice_or_unprepared() -> None:
    """When all prepared ones are gone, it is over, however short memory is; a newly prepared one may follow."""
    rig = Rig()
    kills = [rig.look(float(now), *VICTIMS[:2]) for now in range(5)]
    assert [kill.victim.uid for kill in kills if kill] == ["u0", "u1"]
    later = rig.look(6.0, *VICTIMS)
    assert later is not None and later.victim == VICTIMS[2]


def test_who_is_dead_already_costs_no_time() -> None:
    """The next one goes in the same look."""
    rig = Rig(dead=("/be/pod0",))
    kill = rig.look(5.0, *VICTIMS)
    assert kill is not None and kill.victim == VICTIMS[1] and rig.killed == ["/be/pod0", "/be/pod1"]


@pytest.mark.parametrize("error", [OSError(1, "no"), ValueError("no"), KernelFault("x", "no")])
def test_a_kill_that_fails_is_counted_and_the_next_one_tried(error: Exception) -> None:
    """The thread lives on."""

    def kill(cgroup: str) -> int:
        if cgroup == "/be/pod0":
            raise error
        return 1

    last_resort = LastResortKill(FakeMemory(), kill)
    found = last_resort.look(LastResort(50, None, None, VICTIMS), 1.0, 2.0)
    assert found is not None and found.victim == VICTIMS[1] and last_resort.failed_kills == 1


def test_nothing_prepared_is_nothing_to_do() -> None:
    """Without a last resort no file is read at all; without victims nobody dies."""
    rig = Rig()
    assert rig.last_resort.look(None, 1.0, 1.0) is None and rig.look(1.0) is None and rig.killed == []


CACHE: dict[str, tuple[FakeMemory, int | None, int]] = {
    # levels, what is left where somebody dies, how often memory.stat is read
    "far from its limit": (FakeMemory(100, 800, 0), None, 0),
    "at its limit, all held": (FakeMemory(100, 990, 0), 10, 1),
    "at its limit, but for cache": (FakeMemory(100, 990, 500), None, 1),
    "at its limit, cache unknown": (FakeMemory(100, 990, None), None, 1),
    "charge unknown": (FakeMemory(100, None, 0), None, 0),
    "node short, cache unknown": (FakeMemory(10, 990, None), 10, 1),
}


@pytest.mark.parametrize(("memory", "left", "dear_reads"), CACHE.values(), ids=CACHE.keys())
def test_kubepods_own_limit(memory: FakeMemory, left: int | None, dear_reads: int) -> None:
    """memory.stat is read only where the whole charge would be too much; ignorance kills nobody."""
    kill = Rig(memory).look(1.0, *VICTIMS, room=50)
    assert (kill.available_bytes if kill else None) == left and memory.dear_reads == dear_reads
