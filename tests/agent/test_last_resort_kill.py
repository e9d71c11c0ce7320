"""Only prepared victims, one at a time, each until it is gone, and only while memory is short."""

from __future__ import annotations

import pytest

from agent.core.limit.watch import Kill, LastResort, PreparedVictim
from agent.last_resort_kill import LastResortKill
from model.fault import KernelFault

GB = 10**9
VICTIMS = tuple(PreparedVictim(f"u{n}", "default", f"job{n}", f"/be/pod{n}", GB) for n in range(3))


class FakeMemory:
    """Levels as a test sets them; remembers whether the dear file was read."""

    unreadable = 0

    def __init__(self, available: int | None = 10, charge: int | None = None, cache: int | None = 0) -> None:
        self.levels = (available, charge, cache)
        self.held_now: dict[str, int] = {}
        self.dear_reads = 0

    def available(self) -> int | None:
        return self.levels[0]

    def kubepods_charge(self) -> int | None:
        return self.levels[1]

    def kubepods_page_cache(self) -> int | None:
        self.dear_reads += 1
        return self.levels[2]

    def held(self, cgroup: str) -> int | None:
        return self.held_now.get(cgroup)

    def close(self) -> None:
        pass


class FakeKernel:
    """Who lives where; a kill ends all but those that are `stuck`. `error` is what killing /be/pod0 raises."""

    def __init__(self, error: Exception | None = None) -> None:
        self.killed: list[str] = []
        self.living = {victim.cgroup: frozenset({10 * n, 10 * n + 1}) for n, victim in enumerate(VICTIMS, 1)}
        self.stuck: set[str] = set()
        self.silent = self.prepared = False
        self.error = error

    def __call__(self, cgroup: str) -> int:
        self.killed.append(cgroup)
        if self.error is not None and cgroup == "/be/pod0":
            raise self.error
        reached = len(self.living[cgroup])
        if cgroup not in self.stuck:
            self.living[cgroup] = frozenset()
        return reached

    def processes(self, cgroup: str) -> frozenset[int] | None:
        return None if self.silent else self.living[cgroup]

    def prepare(self) -> None:
        self.prepared = True

    def close(self) -> None:
        self.prepared = False


class Rig:
    def __init__(self, memory: FakeMemory | None = None, error: Exception | None = None) -> None:
        self.memory = memory or FakeMemory()
        self.kernel = FakeKernel(error)
        self.last_resort = LastResortKill(self.memory, self.kernel)

    def look(self, now: float, *victims: PreparedVictim, room: int | None = None) -> Kill | None:
        limit = 1000 if room is not None else None
        return self.last_resort.look(LastResort(50, room, limit, victims or VICTIMS), now, 1e9 + now)

    def dies(self, now: float) -> str:
        """Who dies now; empty where nobody does."""
        kill = self.look(now)
        return kill.victim.uid if kill else ""


def test_one_dies_and_the_next_only_once_its_memory_must_be_gone() -> None:
    """A gigabyte takes 0.16 s; the second look in between kills nobody, nor does one with enough memory."""
    rig = Rig()
    assert rig.look(5.0) == Kill(VICTIMS[0], 1e9 + 5.0, 5.0, 10, 2)
    assert rig.dies(5.1) == ""
    assert rig.look(5.2) == Kill(VICTIMS[1], 1e9 + 5.2, 5.2, 10, 2)
    rig.memory.levels = (50, None, None)
    assert rig.dies(9.0) == ""
    assert rig.kernel.killed == ["/be/pod0", "/be/pod0", "/be/pod1"]


def test_it_waits_for_what_the_victim_holds_now() -> None:
    """Ten gigabytes take 1.15 s, however little the victim held when it was prepared."""
    rig = Rig()
    rig.memory.held_now["/be/pod0"] = 10 * GB
    assert [rig.dies(now) for now in (5.0, 6.1, 6.2)] == ["u0", "", "u1"]


def test_nobody_else_dies_while_the_last_one_lives() -> None:
    """However long it takes, up to five seconds; then it is stuck, and passed over for half a minute. After that it is
    tried again, and nobody waits for it; somebody who started there meanwhile is none of those."""
    rig = Rig()
    rig.kernel.stuck.add("/be/pod0")
    assert [rig.dies(now) for now in (5.0, 6.0, 9.9)] == ["u0", "", ""]
    assert [rig.dies(now) for now in (10.1, 12.0, 39.9)] == ["u1", "u2", ""]
    rig.kernel.living["/be/pod1"] = frozenset({71})
    assert rig.dies(41.0) == "u1" and rig.kernel.killed[-2:] == ["/be/pod0", "/be/pod1"]
    rig.kernel.living["/be/pod0"] = frozenset({72})
    assert rig.dies(72.0) == "u0"


def test_who_stands_still_is_waited_for_a_second() -> None:
    """It lives, and holds what it held: the kernel does not end it. Whoever gives some back has five."""
    rig = Rig()
    rig.kernel.stuck |= {"/be/pod0", "/be/pod1"}
    rig.memory.held_now = {"/be/pod0": GB, "/be/pod1": GB}
    assert [rig.dies(now) for now in (5.0, 5.9, 6.1)] == ["u0", "", "u1"]
    for held, now in enumerate((6.5, 7.4, 8.3, 9.2), 1):
        rig.memory.held_now["/be/pod1"] = GB // 2 // held
        assert rig.dies(now) == ""
    assert [rig.dies(now) for now in (10.1, 10.3)] == ["", "u2"]


def test_who_comes_back_while_the_dead_are_counted_is_somebody_else() -> None:
    """The kubelet may start the pod again within a moment: its new processes are not those that die."""
    rig = Rig()
    assert rig.dies(5.0) == "u0"
    rig.kernel.living["/be/pod0"] = frozenset({77})
    assert rig.dies(5.2) == "u0" and rig.kernel.killed == ["/be/pod0"] * 2


def test_who_was_started_again_dies_again() -> None:
    """A pod that fills the node each time costs no neighbour its life."""
    rig = Rig()
    for now in (5.0, 35.0, 65.0):
        rig.kernel.living["/be/pod0"] = frozenset({int(now)})
        assert rig.dies(now) == "u0"


def test_when_all_are_gone_it_is_over() -> None:
    """However short memory is; an empty cgroup is looked at once a second."""
    rig = Rig()
    assert [rig.dies(now) for now in (1.0, 2.0, 3.0)] == ["u0", "u1", "u2"]
    rig.kernel.killed.clear()
    assert [rig.dies(now) for now in (4.0, 4.1, 4.9, 5.1)] == ["", "", "", ""]
    assert rig.kernel.killed == [victim.cgroup for victim in VICTIMS] * 2


def test_only_prepared_ones_die() -> None:
    """A newly prepared one may follow."""
    rig = Rig()
    kills = [rig.look(float(now), *VICTIMS[:2]) for now in range(5)]
    assert [kill.victim.uid for kill in kills if kill] == ["u0", "u1"]
    assert rig.dies(6.0) == "u2"


def test_who_is_dead_already_costs_no_time() -> None:
    """The next one goes in the same look."""
    rig = Rig()
    rig.kernel.living["/be/pod0"] = frozenset()
    assert rig.dies(5.0) == "u1" and rig.kernel.killed == ["/be/pod0", "/be/pod1"]


@pytest.mark.parametrize("error", [OSError(1, "no"), ValueError("no"), KernelFault("x", "no")])
def test_a_kill_that_fails_is_counted_and_the_next_one_tried(error: Exception) -> None:
    """The thread lives on."""
    rig = Rig(error=error)
    assert rig.dies(1.0) == "u1" and rig.last_resort.failed_kills == 1


def test_nothing_prepared_is_nothing_to_do() -> None:
    """Without a last resort no file is read at all; without victims nobody dies."""
    rig = Rig()
    assert rig.last_resort.look(None, 1.0, 1.0) is None and rig.kernel.killed == []
    assert rig.last_resort.look(LastResort(50, None, None, ()), 1.0, 1.0) is None and rig.kernel.killed == []


# available, what each victim holds now (None: as prepared), least percent -> who dies, looks in vain
HELP: dict[str, tuple[int, tuple[int | None, ...], int, str, int]] = {
    "as prepared": (10, (None, None, None), 5, "u0", 0),
    "all together too little": (49_000, (1000, 1000, 449), 5, "", 1),
    "just enough together": (49_000, (1000, 1000, 450), 5, "u0", 0),
    "by setting, whoever holds anything": (49_000, (0, 0, 1), 0, "u2", 0),
    "who holds nothing is passed over": (49_000, (0, 10_000, 0), 5, "u1", 0),
    "nobody holds anything": (49_000, (0, 0, 0), 0, "", 0),
    "nothing is left: each byte counts": (0, (0, 1, 0), 5, "u1", 0),
    "what came since it was prepared": (49_000, (10_000, 0, 0), 5, "u0", 0),
}


@pytest.mark.parametrize(("left", "held", "least_pct", "dies", "futile"), HELP.values(), ids=HELP.keys())
def test_nobody_dies_in_vain(left: int, held: tuple[int | None, ...], least_pct: int, dies: str, futile: int) -> None:
    """What they hold at that moment counts, beside what is left of memory."""
    rig = Rig(FakeMemory(left))
    now = zip(VICTIMS, held, strict=True)
    rig.memory.held_now = {victim.cgroup: bytes_ for victim, bytes_ in now if bytes_ is not None}
    kill = rig.last_resort.look(LastResort(50_000, None, None, VICTIMS, least_pct), 1.0, 1.0)
    assert (kill.victim.uid if kill else "", rig.last_resort.futile_looks) == (dies, futile)


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
    kill = Rig(memory).look(1.0, room=50)
    assert (kill.available_bytes if kill else None) == left and memory.dear_reads == dear_reads


def test_a_victim_of_which_nothing_is_told_is_taken_to_live() -> None:
    """Its kill may take a while where it has thousands of processes; nobody else goes for that, up to the bound."""
    rig = Rig()
    rig.kernel.silent = True
    assert rig.dies(5.0) == "u0" and rig.kernel.prepared
    assert [rig.dies(at) for at in (5.2, 9.9)] == ["", ""]
    rig.kernel.silent = False
    assert rig.dies(9.95) == "u1"
    rig.kernel.silent = True
    assert rig.dies(14.9) == ""
    assert rig.dies(14.96) == "u2", "who does not end is passed over"
    rig.last_resort.close()
    assert not rig.kernel.prepared
