"""Taints that follow from a node's state, and how long a pod may stay on a node with taints.

https://kubernetes.io/docs/concepts/scheduling-eviction/taint-and-toleration/#taint-based-evictions
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from embedded.apiserver.apimachinery.objects import Object, rfc3339

NO_SCHEDULE, NO_EXECUTE = "NoSchedule", "NoExecute"
NOT_READY = "node.kubernetes.io/not-ready"
UNREACHABLE = "node.kubernetes.io/unreachable"
_UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
# condition → its status → the key of the taint
_BY_CONDITION = {
    "Ready": {"False": NOT_READY, "Unknown": UNREACHABLE},
    "MemoryPressure": {"True": "node.kubernetes.io/memory-pressure"},
    "DiskPressure": {"True": "node.kubernetes.io/disk-pressure"},
    "PIDPressure": {"True": "node.kubernetes.io/pid-pressure"},
    "NetworkUnavailable": {"True": "node.kubernetes.io/network-unavailable"},
}
_FOLLOWING = {(key, NO_SCHEDULE) for by_status in _BY_CONDITION.values() for key in by_status.values()}
_OURS = frozenset({*_FOLLOWING, (_UNSCHEDULABLE, NO_SCHEDULE), (NOT_READY, NO_EXECUTE), (UNREACHABLE, NO_EXECUTE)})


class _Shape(msgspec.Struct, rename="camel", frozen=True, gc=False): ...


class Taint(_Shape, frozen=True):
    key: str
    effect: str
    value: str | None = None


class Toleration(_Shape, frozen=True):
    key: str | None = None
    operator: str | None = None
    value: str | None = None
    effect: str | None = None
    toleration_seconds: int | None = None

    def covers(self, taint: Taint) -> bool:
        if self.effect and self.effect != taint.effect:
            return False
        if self.key and self.key != taint.key:
            return False
        return self.operator == "Exists" or (self.value or "") == (taint.value or "")


def wanted_taints(conditions: dict[str, str], unschedulable: bool) -> frozenset[tuple[str, str]]:
    """(key, effect) of the taints a node must have; `conditions` is type → status."""
    found = {(key, NO_SCHEDULE) for kind, status in conditions.items() if (key := _key(kind, status))}
    if unschedulable:
        found.add((_UNSCHEDULABLE, NO_SCHEDULE))
    if lost := _key("Ready", conditions.get("Ready", "")):
        found.add((lost, NO_EXECUTE))
    return frozenset(found)


def _key(condition: str, status: str) -> str | None:
    return _BY_CONDITION.get(condition, {}).get(status)


def surplus_and_missing(
    held: Iterable[tuple[str, str]], wanted: frozenset[tuple[str, str]], judged: bool
) -> tuple[set[tuple[str, str]], set[tuple[str, str]]]:
    """Which (key, effect) to take away and to add. Whether pods must leave is decided once a node is `judged`."""
    ours = {pair for pair in held if pair in _OURS and (judged or pair[1] != NO_EXECUTE)}
    return ours - wanted, set(wanted) - set(held)


def with_taints(
    held: list[Object], surplus: set[tuple[str, str]], missing: set[tuple[str, str]], now: float
) -> list[Object]:
    """The node's taints after the change; added ones say when."""
    kept = [taint for taint in held if (taint["key"], taint["effect"]) not in surplus]
    return [*kept, *({"key": key, "effect": effect, "timeAdded": rfc3339(now)} for key, effect in sorted(missing))]


def stay_seconds(tolerations: Iterable[Toleration], taints: Iterable[Taint]) -> float | None:
    """How long a pod may stay on a node with these NoExecute taints: 0 not at all, None for ever."""
    listed, stay = list(tolerations), float("inf")
    for taint in taints:
        found = next((toleration for toleration in listed if toleration.covers(taint)), None)
        if found is None:
            return 0.0
        if found.toleration_seconds is not None:
            stay = min(stay, max(0.0, float(found.toleration_seconds)))
    return None if stay == float("inf") else stay
