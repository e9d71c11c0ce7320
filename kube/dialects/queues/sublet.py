"""Our own Queue (sublet.dev/v1alpha1).

An amount that is not written is: of `hard` no bound, of `soft` as much as `hard`, of `guaranteed` nothing. Where
neither `soft` nor `hard` names a resource, the queue's own is its share by weight.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Annotated, Any, Literal, get_args

import msgspec

from kube.dialects.documents.document import GoDuration, checked
from kube.dialects.queues.quota import GPU, Written, cells_of, require_order, written
from kube.objects import Queue as QueueObject
from model.fault import ConfigurationFault
from model.queue import (
    ROOT_QUEUE,
    Cell,
    Queue,
    QueueAdmission,
    QueueOrder,
    QueuePreemption,
    QueueState,
    QuotaCell,
)
from model.resources import CPU, MEMORY

KIND = "Queue"
GROUP = "sublet.dev"
_GRACE_SECONDS = 30.0
_SHORT = {"gpu": GPU, "cpu": CPU, "memory": MEMORY}
_Weight = Annotated[int, msgspec.Meta(ge=1, le=1_000_000)]
_Count = Annotated[int, msgspec.Meta(ge=0, lt=1 << 31)]
_Priority = Annotated[int, msgspec.Meta(ge=-(1 << 31), lt=1 << 31)]
_Ratio = Annotated[float, msgspec.Meta(ge=0, le=1_000_000)]


class _Amounts(msgspec.Struct, frozen=True):
    """`resources` has amounts by the whole name of a resource."""

    gpu: Any = None
    cpu: Any = None
    memory: Any = None
    resources: dict[str, Any] | None = None


class _Quota(msgspec.Struct, frozen=True):
    hard: _Amounts | None = None
    soft: _Amounts | None = None
    guaranteed: _Amounts | None = None


class _Borrowing(msgspec.Struct, frozen=True, rename="camel"):
    enabled: bool | None = None
    allowed_queues: list[str] | None = None
    max_borrow_ratio: _Ratio | None = None
    limit: _Amounts | None = None


class _Lending(msgspec.Struct, frozen=True):
    limit: _Amounts | None = None


class _Preemption(msgspec.Struct, frozen=True, rename="camel"):
    allow_preemption: bool | None = None
    allow_preempt_from: list[str] | None = None
    grace_period: GoDuration | None = None


class _Range(msgspec.Struct, frozen=True):
    min: _Priority | None = None
    max: _Priority | None = None


class _Admission(msgspec.Struct, frozen=True):
    max_jobs: _Count | None = msgspec.field(name="maxJobs", default=None)
    max_gpus: _Count | None = msgspec.field(name="maxGPUsPerJob", default=None)
    priorities: _Range | None = msgspec.field(name="priorityRange", default=None)
    namespaces: list[str] | None = None


class _Spec(msgspec.Struct, frozen=True, rename="camel"):
    parent: str | None = None
    weight: _Weight | None = None
    quota: _Quota | None = None
    borrowing: _Borrowing | None = None
    lending: _Lending | None = None
    preemption: _Preemption | None = None
    admission_control: _Admission | None = None
    order: QueueOrder | None = None
    state: Literal["Open", "Hold", "Closed"] | None = None


def queue(source: QueueObject) -> Queue:
    """Raises ConfigurationFault naming the queue, the field and what to write."""
    name, where = source.metadata.name, where_of(source)
    spec = checked({} if source.spec is None else source.spec, _Spec, f"{where}: spec")
    borrowing = spec.borrowing or _Borrowing()
    return Queue(
        name=name,
        parent=spec.parent or ROOT_QUEUE,
        weight=spec.weight or 1,
        cells=_cells(spec, borrowing, where),
        state=QueueState(spec.state or QueueState.OPEN),
        order=spec.order or QueueOrder.BACKFILL,
        lenders=tuple(borrowing.allowed_queues or ()),
        preemption=_preemption(spec.preemption or _Preemption()),
        admission=_admission(spec.admission_control or _Admission(), where),
        source=f"{KIND}/{name}",
    )


def unread(source: QueueObject) -> Iterator[str]:
    """Fields that a Queue does not have. An API server drops them, or has kubectl say so; a file says nothing."""
    yield from _unknown(source.spec, _Spec, "spec")


def _unknown(given: object, kind: type[msgspec.Struct], path: str) -> Iterator[str]:
    if not isinstance(given, dict):
        return
    known = {field.encode_name: field.type for field in msgspec.structs.fields(kind)}
    for name, value in given.items():
        if name not in known:
            yield f"{path}.{name}: a Queue has no such field"
        for part in get_args(known.get(name)):
            if isinstance(part, type) and issubclass(part, msgspec.Struct):
                yield from _unknown(value, part, f"{path}.{name}")


def where_of(source: QueueObject) -> str:
    """What messages call it."""
    return f"{KIND} {source.metadata.name}"


def _cells(spec: _Spec, borrowing: _Borrowing, where: str) -> dict[Cell, QuotaCell]:
    quota = spec.quota or _Quota()
    hard = _amounts(quota.hard, "spec.quota.hard", where)
    soft = _amounts(quota.soft, "spec.quota.soft", where)
    guaranteed = _amounts(quota.guaranteed, "spec.quota.guaranteed", where)
    require_order(where, guaranteed, soft, hard)
    limit = _amounts(borrowing.limit, "spec.borrowing.limit", where).amounts
    lending = _amounts((spec.lending or _Lending()).limit, "spec.lending.limit", where).amounts

    def cell(name: str) -> QuotaCell:
        nominal = soft.amounts.get(name, hard.amounts.get(name))
        return QuotaCell(
            guaranteed=guaranteed.amounts.get(name, 0),
            nominal=nominal,
            maximum=hard.amounts.get(name),
            borrowing_limit=_borrowing_limit(borrowing, nominal, limit.get(name)),
            lending_limit=lending.get(name),
        )

    names = {*hard.amounts, *soft.amounts, *guaranteed.amounts, *limit, *lending}
    return dict(cells_of(names, {name: cell(name) for name in names}))


def _borrowing_limit(borrowing: _Borrowing, nominal: int | None, limit: int | None) -> int | None:
    """The tightest of what the queue says; the ratio is of its own, and says nothing where that is a share."""
    if borrowing.enabled is False:
        return 0
    if borrowing.max_borrow_ratio is None or nominal is None:
        return limit
    # As it is written: 0.1 is a tenth, which no binary number is.
    by_ratio = int(nominal * Fraction(repr(borrowing.max_borrow_ratio)))
    return by_ratio if limit is None else min(by_ratio, limit)


def _amounts(source: _Amounts | None, field: str, where: str) -> Written:
    """Under whole names. Raises ConfigurationFault for a resource that is written twice."""
    if source is None:
        return Written(field)
    short = {name: value for name in _SHORT if (value := getattr(source, name)) is not None}
    by_name = written(source.resources, f"{field}.resources", where).amounts
    found = dict(by_name)
    for name, amount in written(short, field, where).amounts.items():
        if _SHORT[name] in by_name:
            told = f"is written beside {field}.resources[{_SHORT[name]}], which is the same"
            raise ConfigurationFault(f"{where}: {field}.{name}", told, "write one of them")
        found[_SHORT[name]] = amount
    return Written(field, found)


def _preemption(source: _Preemption) -> QueuePreemption:
    grace = _GRACE_SECONDS if source.grace_period is None else float(source.grace_period)
    return QueuePreemption(source.allow_preemption is not False, tuple(source.allow_preempt_from or ()), grace)


def _admission(source: _Admission, where: str) -> QueueAdmission:
    """0 is no limit."""
    told = source.priorities or _Range()
    if told.min is not None and told.max is not None and told.min > told.max:
        field = f"{where}: spec.admissionControl.priorityRange"
        raise ConfigurationFault(field, f"min {told.min} is more than max {told.max}", "lower min, or raise max")
    namespaces = tuple(source.namespaces or ())
    return QueueAdmission(source.max_jobs or None, source.max_gpus or None, told.min, told.max, namespaces)
