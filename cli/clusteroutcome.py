"""What `sublet simulate cluster` prints: rows by pod and by gang, sorted by name; as JSON just so, or as tables."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import msgspec

from model.workload import WorkloadId
from scheduler.cache.cluster_cache import ClusterCache
from scheduler.steps.turn import Eviction

_PREEMPTOR = re.compile(r"preemptor: (.+), triggerPod: ")


class Placement(msgspec.Struct, frozen=True):
    """A pod that gets a node; `pod` is `namespace/name` here and below."""

    pod: str
    node: str


class Nomination(msgspec.Struct, frozen=True):
    """A pod that waits for its node to be freed."""

    pod: str
    node: str


class Victim(msgspec.Struct, frozen=True):
    """A pod that is evicted for `preemptor`, a gang or a pod; `reason` is that of its condition DisruptionTarget."""

    pod: str
    node: str
    preemptor: str
    reason: str


class Pending(msgspec.Struct, frozen=True):
    """A pod without a node: the stable code of why, and the text of its condition."""

    pod: str
    reason: str
    message: str


class GangOut(msgspec.Struct, frozen=True, rename="camel"):
    """A gang as its PodGroup's status tells; one of annotations alone has no phase."""

    name: str
    phase: str
    scheduled: int
    min_member: int


class Outcome(msgspec.Struct, frozen=True):
    """All that was decided."""

    placements: tuple[Placement, ...]
    nominations: tuple[Nomination, ...]
    victims: tuple[Victim, ...]
    pending: tuple[Pending, ...]
    gangs: tuple[GangOut, ...]


def victim(eviction: Eviction, node: str) -> Victim:
    """Who it goes for stands in the message that the pod gets."""
    named = _PREEMPTOR.search(eviction.message)
    return Victim(eviction.pod.key, node, named[1] if named else "", eviction.reason)


def gangs_out(cache: ClusterCache) -> tuple[GangOut, ...]:
    """Every gang that has a PodGroup or a pod, by name."""
    return tuple(_gang(cache, key) for key in sorted(cache.gang_keys() | cache.gangs.keys))


def _gang(cache: ClusterCache, key: str) -> GangOut:
    (part,), record = cache.parts(WorkloadId.gang(key)), cache.gangs.get(key)
    return GangOut(key, record.told.phase if record else "", part.members.satisfied, part.spec.min_member)


def table(outcome: Outcome) -> str:
    """For people: a block a kind of row, left out where it is empty."""
    blocks = [
        _block(name, rows)
        for name, rows in (
            ("placed", outcome.placements),
            ("nominated", outcome.nominations),
            ("victims", outcome.victims),
            ("pending", outcome.pending),
            ("gangs", outcome.gangs),
        )
        if rows
    ]
    return "\n\n".join(blocks) or "no pod waits for a node"


def _block(title: str, rows: Sequence[msgspec.Struct]) -> str:
    names = rows[0].__struct_fields__
    cells = [[name.replace("_", " ") for name in names], *([str(getattr(row, name)) for name in names] for row in rows)]
    return "\n".join([title, *(f"  {line}" for line in _aligned(cells))])


def _aligned(cells: Sequence[Sequence[str]]) -> Iterator[str]:
    widths = [max(len(cell) for cell in column) for column in zip(*cells, strict=True)]
    for line in cells:
        yield "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
