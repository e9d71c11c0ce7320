"""When the node itself is short of something, which conditions that makes, and who has to go. Pure.

Source: kubernetes pkg/kubelet/eviction/helpers.go and https://kubernetes.io/docs/concepts/scheduling-eviction/
node-pressure-eviction/. The agent's own evictions begin long before these thresholds are near.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from enum import StrEnum

import msgspec

from embedded.fault import ConfigurationFault
from embedded.node.pods.admission import SYSTEM_CRITICAL_PRIORITY
from embedded.quantity import QuantityError, parse_units

DEFAULT_THRESHOLDS = "memory.available<100Mi,nodefs.available<10%,nodefs.inodesFree<5%"
TRANSITION_SECONDS = 300.0
_THRESHOLD = re.compile(r"([A-Za-z.]+)<([0-9.]+[A-Za-z]*|[0-9.]+%)\Z")


class Signal(StrEnum):
    MEMORY = "memory.available"
    DISK = "nodefs.available"
    INODES = "nodefs.inodesFree"
    PIDS = "pid.available"


# In the order in which the kubelet reclaims.
CONDITION = {
    Signal.MEMORY: "MemoryPressure",
    Signal.DISK: "DiskPressure",
    Signal.INODES: "DiskPressure",
    Signal.PIDS: "PIDPressure",
}
_RESOURCE = {
    Signal.MEMORY: "memory",
    Signal.DISK: "ephemeral-storage",
    Signal.INODES: "inodes",
    Signal.PIDS: "pids",
}


class Level(msgspec.Struct, frozen=True):
    """What is left of how much: bytes, inodes or process ids."""

    available: int
    capacity: int


class Threshold(msgspec.Struct, frozen=True):
    """Met when less than this is available: an amount, or a share of the capacity."""

    signal: Signal
    amount: int = 0
    ratio: float = 0.0

    def of(self, capacity: int) -> int:
        return round(self.ratio * capacity) if self.ratio else self.amount


class Limits(msgspec.Struct, frozen=True):
    """When the node is short of something, and how long it then says so at least."""

    thresholds: tuple[Threshold, ...] = ()
    transition_seconds: float = TRANSITION_SECONDS


class Crossed(msgspec.Struct, frozen=True):
    """A threshold that is met, and the level that meets it."""

    signal: Signal
    threshold: int
    available: int

    @property
    def resource(self) -> str:
        """As messages name it."""
        return _RESOURCE[self.signal]


class Candidate(msgspec.Struct, frozen=True):
    """A pod that could go: what it uses and asked for of the resource in question, all in all and by container."""

    uid: str
    name: str
    priority: int
    used: int
    requested: int
    containers: tuple[tuple[str, int, int], ...] = ()


def parse_thresholds(text: str) -> tuple[Threshold, ...]:
    """The kubelet's --eviction-hard. Raises ConfigurationFault; an empty text is no threshold at all."""
    return tuple(_threshold(each.strip()) for each in text.split(",") if each.strip())


def _threshold(text: str) -> Threshold:
    where, fix = "--eviction-hard", "write it like memory.available<100Mi,nodefs.available<10%"
    match = _THRESHOLD.match(text)
    if not match or match[1] not in list(Signal):
        raise ConfigurationFault(where, f"{text!r} is no threshold on one of {', '.join(Signal)}", fix)
    try:
        if match[2].endswith("%"):
            return Threshold(Signal(match[1]), ratio=float(match[2][:-1]) / 100)
        return Threshold(Signal(match[1]), amount=parse_units(match[2]))
    except (QuantityError, ValueError) as error:
        raise ConfigurationFault(where, f"{text!r}: {error}", fix) from error


def crossed(thresholds: Iterable[Threshold], levels: Mapping[Signal, Level]) -> list[Crossed]:
    """Memory first, then disk, then process ids."""
    met = [
        Crossed(each.signal, each.of(level.capacity), level.available)
        for each in thresholds
        if (level := levels.get(each.signal)) and level.available < each.of(level.capacity)
    ]
    order = list(Signal)
    return sorted(met, key=lambda each: order.index(each.signal))


def observed(
    last_met: Mapping[str, datetime], met: Iterable[Crossed], now: datetime, transition_seconds: float
) -> dict[str, datetime]:
    """Conditions that hold, with the time they were last met; one holds on for the transition period."""
    held = {name: at for name, at in last_met.items() if now - at < timedelta(seconds=transition_seconds)}
    return held | {CONDITION[each.signal]: now for each in met}


def ranked(signal: Signal, candidates: Iterable[Candidate]) -> list[Candidate]:
    """The order of eviction: above its request, then of low priority, then far above its request; system pods never."""
    evictable = [each for each in candidates if each.priority < SYSTEM_CRITICAL_PRIORITY]
    if signal is Signal.PIDS:
        return sorted(evictable, key=lambda each: (each.priority, -each.used, each.uid))
    return sorted(
        evictable,
        key=lambda each: (each.used <= each.requested, each.priority, each.requested - each.used, each.uid),
    )


def message(cause: Crossed, victim: Candidate) -> str:
    """The kubelet's evictionMessage."""
    text = f"The node was low on resource: {cause.resource}. "
    text += f"Threshold quantity: {_amount(cause, cause.threshold)}, available: {_amount(cause, cause.available)}. "
    for name, used, requested in victim.containers:
        if used > requested:
            text += (
                f"Container {name} was using {_amount(cause, used)}, request is {_amount(cause, requested)}, "
                f"has larger consumption of {cause.resource}. "
            )
    return text


def _amount(cause: Crossed, amount: int) -> str:
    """A canonical quantity: binary for bytes."""
    if cause.signal in (Signal.INODES, Signal.PIDS) or amount == 0:
        return str(amount)
    for suffix in ("", "Ki", "Mi", "Gi"):
        if amount % 1024 or suffix == "Gi":
            return f"{amount}{suffix}"
        amount //= 1024
    raise AssertionError
