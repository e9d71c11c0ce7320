"""Node: a machine of the cluster as the scheduler and the agent see it."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

import msgspec

from model.cpubinding import CpuRules
from model.resources import ResourceVector


class TaintEffect(StrEnum):
    """What a taint does to pods that do not tolerate it; one that nobody here knows does nothing."""

    NO_SCHEDULE = "NoSchedule"
    PREFER_NO_SCHEDULE = "PreferNoSchedule"
    NO_EXECUTE = "NoExecute"
    UNKNOWN = "Unknown"

    @property
    def refuses(self) -> bool:
        """Whether it keeps pods from being placed."""
        return self in (TaintEffect.NO_SCHEDULE, TaintEffect.NO_EXECUTE)


class Taint(msgspec.Struct, frozen=True):
    """A taint of a node."""

    key: str
    value: str = ""
    effect: TaintEffect = TaintEffect.NO_SCHEDULE


class Node(msgspec.Struct, frozen=True):
    """One node; `capacity` and `allocatable` in base units."""

    name: str
    capacity: ResourceVector = ResourceVector()
    allocatable: ResourceVector = ResourceVector()
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False
    uid: str = ""
    cpu_rules: CpuRules = CpuRules()
