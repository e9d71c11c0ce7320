"""Processes as /proc tells of them."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from embedded.cgroups.ownership import started_ticks
from embedded.simkernel.process_table import Process, ProcessTable, parse
from embedded.tests.dummies import until


def test_a_name_may_hold_anything() -> None:
    """What follows the last parenthesis counts; CPU time includes children that were waited for."""
    rest = "S 5 6 7 0 -1 0 1 2 3 4 10 20 30 40 20 0 1 0 99 1 2"
    tick_us = 1_000_000 // os.sysconf("SC_CLK_TCK")
    assert parse(f"12 (a) R 1 (b) {rest}") == Process(12, 5, 7, 99, "S", 100 * tick_us)


@pytest.mark.parametrize("text", ["", "12", "12 (a)", "x (a) S 1 1 1"])
def test_what_is_no_process(text: str) -> None:
    """Raises, and looking at it gives none."""
    with pytest.raises((ValueError, IndexError)):
        parse(text)
    assert ProcessTable().look(1 << 30) is None


def test_a_variable() -> None:
    """Of a live process of this user; none where there is none."""
    child = subprocess.Popen(["/bin/sleep", "60"], env={"A": "1", "AB": "2=\u00e9"})
    try:
        assert until(lambda: ProcessTable().variable(child.pid, "AB") == "2=\u00e9")
        assert ProcessTable().variable(child.pid, "B") is None
    finally:
        child.kill()
        child.wait()
    assert ProcessTable().variable(child.pid, "A") is None


def test_this_machine() -> None:
    """A child is found by its session, with memory of its own that a fork shares."""
    code = "import os; held = bytearray(b'x' * (30 << 20)); os.fork(); input()"
    child = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, start_new_session=True)
    table = ProcessTable()
    try:
        assert until(lambda: len(table.in_sessions({child.pid: started_ticks(child.pid) or 0})) == 2)
        process = table.look(child.pid)
        assert process is not None and process.parent == os.getpid() and process.alive
        assert table.own_memory(child.pid) > 30 << 20
        assert 15 << 20 < table.fair_memory(child.pid) < 30 << 20
    finally:
        child.communicate(b"\n\n")
