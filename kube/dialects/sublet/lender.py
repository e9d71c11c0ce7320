"""Reads from a Node what its agent lends there, and when it last said so."""

from __future__ import annotations

import msgspec

from kube import objects
from model.condition import ConditionType
from model.lender import Lender
from model.resources import BATCH_CPU, BATCH_MEMORY, MID_CPU, MID_MEMORY

_LENT = (BATCH_CPU, BATCH_MEMORY, MID_CPU, MID_MEMORY)


def lender(source: objects.Node) -> Lender:
    """Never fails: a heartbeat that cannot be read is as old as can be, an amount that is not zero is one."""
    status, metadata = source.status, source.metadata
    amounts = [status.capacity or {}, status.allocatable or {}]
    told = next((each for each in status.conditions or () if each.type == ConditionType.COLOCATION_READY), None)
    return Lender(
        node=metadata.name,
        version=metadata.resource_version,
        offered=tuple(name for name in _LENT if any(str(each.get(name, "0")) != "0" for each in amounts)),
        heartbeat_seconds=_seconds(told.last_heartbeat_time) if told else None,
        ready=told is not None and told.met,
        labels=metadata.labels or {},
    )


def _seconds(moment: str | None) -> float:
    try:
        return msgspec.convert(moment, objects.Time).timestamp()
    except msgspec.ValidationError:
        return 0.0
