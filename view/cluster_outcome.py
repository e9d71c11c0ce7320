"""Decisions of `sublet simulate cluster`: rows as docs/simulate-cluster.md describes them, and as tables."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from view.table import Table


class SimulatedPlacement(msgspec.Struct, frozen=True):
    """A pod that gets a node; `pod` is `namespace/name` here and below."""

    pod: str
    node: str


class Nomination(msgspec.Struct, frozen=True):
    """A pod that waits for its node to be freed."""

    pod: str
    node: str


class SimulatedVictim(msgspec.Struct, frozen=True):
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

    placements: tuple[SimulatedPlacement, ...]
    nominations: tuple[Nomination, ...]
    victims: tuple[SimulatedVictim, ...]
    pending: tuple[Pending, ...]
    gangs: tuple[GangOut, ...]


def tables(outcome: Outcome) -> tuple[Table, ...]:
    """A table a kind of row; a kind without rows has none."""
    return tuple(
        _table(name, rows)
        for name, rows in (
            ("placed", outcome.placements),
            ("nominated", outcome.nominations),
            ("victims", outcome.victims),
            ("pending", outcome.pending),
            ("gangs", outcome.gangs),
        )
        if rows
    )


def _table(title: str, rows: Sequence[msgspec.Struct]) -> Table:
    names = rows[0].__struct_fields__
    head = tuple(name.replace("_", " ") for name in names)
    return Table(title, head, tuple(tuple(str(getattr(row, name)) for name in names) for row in rows))
