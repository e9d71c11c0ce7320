"""Which files are read when, and how their parts make one value."""

from __future__ import annotations

import pytest

from agent.core.observe.files import (
    FILES,
    NEEDED,
    Cadence,
    FilePart,
    Role,
    cadence,
    cpu_pressure_file,
    memory_events,
    moved,
    pressure,
)
from agent.core.observe.observation import CgroupPressure, MemoryEvents, Stall

MIB = 1 << 20
SOME, FULL = Stall(1.0), Stall(0.5)


@pytest.mark.parametrize(
    ("part", "role", "expected"),
    [
        (FilePart.CPU, Role.CONTAINER, Cadence.TWICE_A_ROUND),
        (FilePart.CPU, Role.ROOT, Cadence.EVERY_PASS),
        (FilePart.MEMORY, Role.ROOT, Cadence.EVERY_PASS),
        (FilePart.MEMORY, Role.POD, Cadence.WHEN_MOVED),
        (FilePart.MEMORY, Role.BEST_EFFORT_POD, Cadence.WHEN_MOVED),
        (FilePart.MEMORY, Role.CONTAINER, Cadence.SLOW_TURN),
        (FilePart.LEVEL, Role.POD, Cadence.EVERY_PASS),
        (FilePart.LEVEL, Role.CONTAINER, Cadence.NEVER),
        (FilePart.THROTTLING, Role.BEST_EFFORT_POD, Cadence.EVERY_PASS),
        (FilePart.THROTTLING, Role.POD, Cadence.SLOW_TURN),
        (FilePart.CPU_PRESSURE, Role.BEST_EFFORT_POD, Cadence.SLOW_TURN),
        (FilePart.OOM, Role.ROOT, Cadence.EVERY_PASS),
        (FilePart.CPUS, Role.ROOT, Cadence.EVERY_PASS),
        (FilePart.CPUS, Role.POD, Cadence.NEVER),
        (FilePart.LEVEL, Role.ROOT, Cadence.EVERY_PASS),
        (FilePart.MEMORY_LIMIT, Role.ROOT, Cadence.EVERY_PASS),
        (FilePart.MEMORY_LIMIT, Role.POD, Cadence.NEVER),
    ],
)
def test_cadence(part: FilePart, role: Role, expected: Cadence) -> None:
    """What enforcement needs each second is read each pass, the dear rest in turns."""
    assert cadence(part, role) is expected


@pytest.mark.parametrize(
    ("level", "then", "expected"),
    [
        (100 * MIB, 100 * MIB, False),
        (104 * MIB, 100 * MIB, False),
        (104 * MIB + 1, 100 * MIB, True),
        (96 * MIB - 1, 100 * MIB, True),
        # 6400 MiB / 64 = 100 MiB
        (6400 * MIB, 6300 * MIB, False),
        (6400 * MIB, 6300 * MIB - 1, True),
    ],
)
def test_moved(level: int, then: int, expected: bool) -> None:
    """More than 4 MiB, or 1/64 of what is charged, in either direction."""
    assert moved(level, then) is expected


def test_both_versions_have_what_a_sample_needs() -> None:
    """And the level stands before memory.stat, whose reading it decides."""
    for files in FILES.values():
        parts = [kind.part for kind in files]
        assert set(parts) >= NEEDED and len(set(parts)) == len(parts)
        assert parts.index(FilePart.LEVEL) < parts.index(FilePart.MEMORY)


def test_where_waiting_for_cpu_is_told() -> None:
    """On v1 by the hierarchy beside the controllers."""
    assert cpu_pressure_file(1, "/system.slice") == "unified/system.slice/cpu.pressure"
    assert cpu_pressure_file(2, "/system.slice") == "system.slice/cpu.pressure"


def test_pressure() -> None:
    """Six lines of three files; None only where there is none at all."""
    assert pressure(None, None, None) is None
    assert pressure((SOME, None), (SOME, FULL), None) == CgroupPressure(SOME, None, SOME, FULL, None, None)


@pytest.mark.parametrize(
    ("oom", "failures", "expected"),
    [
        (MemoryEvents(1, 2, 3, 4), None, MemoryEvents(1, 2, 3, 4)),
        (3, 9, MemoryEvents(maximum=9, oom_kill=3)),
        (None, 9, MemoryEvents(maximum=9)),
        (None, None, None),
    ],
)
def test_memory_events(oom: MemoryEvents | int | None, failures: int | None, expected: MemoryEvents | None) -> None:
    """One file on v2, two on v1."""
    assert memory_events(oom, failures) == expected
