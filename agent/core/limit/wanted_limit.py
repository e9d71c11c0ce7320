"""Limit: what one control file shall hold, and the record of why."""

from __future__ import annotations

import msgspec

from agent.core.observe.observation import Knob, Value
from model.decision import Decision


class Limit(msgspec.Struct, frozen=True):
    """`decision.value` is the same number, and for a CPU list how many CPUs it names.

    A cgroup that was made while `inherits` held a value of ours began with that value: it is no original.
    `gives_back`: nothing is wanted of this file any more, its original is forgotten once it holds the value.
    """

    knob: Knob
    value: Value
    decision: Decision
    inherits: Knob | None = None
    gives_back: bool = False
