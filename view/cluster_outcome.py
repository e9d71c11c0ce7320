"""Decisions of `sublet simulate cluster`: rows as docs/simulate-cluster.md describes them, and as tables."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from model.queue import DEFAULT_QUEUE
from view.simulated_queues import JobOut, PreemptionOut, QueueOut, ServedOut, WhatIfOut, WorkloadOut, queue_table
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


class Outcome(msgspec.Struct, frozen=True, rename="camel"):
    """All that was decided; `served` is the order in which jobs were tried, `what_if` what further nodes would do."""

    placements: tuple[SimulatedPlacement, ...]
    nominations: tuple[Nomination, ...]
    victims: tuple[SimulatedVictim, ...]
    pending: tuple[Pending, ...]
    gangs: tuple[GangOut, ...]
    queues: tuple[QueueOut, ...] = ()
    jobs: tuple[JobOut, ...] = ()
    workloads: tuple[WorkloadOut, ...] = ()
    preemptions: tuple[PreemptionOut, ...] = ()
    served: tuple[ServedOut, ...] = ()
    what_if: WhatIfOut | msgspec.UnsetType = msgspec.UNSET


def tables(outcome: Outcome) -> tuple[Table, ...]:
    """A table a kind of row; a kind without rows has none, and those of queues where nobody wrote one."""
    rows: list[tuple[str, Sequence[msgspec.Struct]]] = [
        ("placed", outcome.placements),
        ("nominated", outcome.nominations),
        ("victims", outcome.victims),
        ("pending", outcome.pending),
        ("gangs", outcome.gangs),
    ]
    found = [_table(name, each) for name, each in rows if each]
    if any(queue.name != DEFAULT_QUEUE for queue in outcome.queues):
        found.append(queue_table(outcome.queues))
        found += [_table("preemptions", outcome.preemptions)] if outcome.preemptions else []
        found += [_workloads(outcome.workloads)] if outcome.workloads else []
    if isinstance(outcome.what_if, WhatIfOut):
        found.append(_what_if(outcome.what_if))
    return tuple(found)


def _workloads(rows: Sequence[WorkloadOut]) -> Table:
    head = ("workload", "queue", "outcome", "count", "reason")
    return Table("workloads", head, tuple((r.name, r.queue, r.outcome, str(r.count), r.reason) for r in rows))


def _what_if(found: WhatIfOut) -> Table:
    title = f"runs only with {found.nodes} more {'node' if found.nodes == 1 else 'nodes'} like {found.like}"
    return Table(title, ("workload",), tuple((name,) for name in found.workloads) or (("nothing",),))


def _table(title: str, rows: Sequence[msgspec.Struct]) -> Table:
    names = rows[0].__struct_fields__
    head = tuple(name.replace("_", " ") for name in names)
    return Table(title, head, tuple(tuple(str(getattr(row, name)) for name in names) for row in rows))
