"""Node: a machine of the cluster as the scheduler and the agent see it."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from model.resources import ResourceVector


class Taint(msgspec.Struct, frozen=True):
    """A taint; effects are NoSchedule, PreferNoSchedule, NoExecute."""

    key: str
    value: str = ""
    effect: str = "NoSchedule"


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
