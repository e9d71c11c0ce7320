"""Processes that die between two changes of files, and what best effort may hold after that."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Mapping

from agent.core.limit.ownership import gives_more
from agent.core.observe.observation import Knob, Value
from model.topology import format_cpus, parse_cpus

KILLED = 137
_BOUND_SECONDS = 60
"""No child hangs longer: SIGALRM ends it."""


def dies_at(step: int, act: Callable[[], object]) -> bool:
    """In a process of its own, killed just before its n-th change of any file; False where it ended before that."""
    child = os.fork()
    if child:
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        assert code in (0, KILLED), "it failed by itself"
        return code == KILLED
    signal.alarm(_BOUND_SECONDS)
    left = [step]

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        flags = arguments[2] if event == "open" else 0
        changes = event == "os.rename" or (isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR))
        if changes and not left[0]:
            os._exit(KILLED)
        left[0] -= bool(changes)

    try:
        sys.addaudithook(hook)
        act()
    finally:
        os._exit(0 if sys.exc_info()[0] is None else 1)


def within_policy(before: Mapping[Knob, Value], planned: Mapping[Knob, Value], held: Mapping[Knob, Value]) -> None:
    """Between the two, knob by knob; while a CPU list moves over, it may be both."""
    for knob, value in held.items():
        one, other = before[knob], planned[knob]
        most = one if gives_more(knob, one, other) else other
        if isinstance(one, str) and isinstance(other, str):
            most = format_cpus({*parse_cpus(one), *parse_cpus(other)})
        assert not gives_more(knob, value, most), (knob, one, value, other)
