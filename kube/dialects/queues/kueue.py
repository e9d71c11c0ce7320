"""Kueue's ClusterQueue and Cohort (kueue.x-k8s.io, v1beta1 and v1beta2) as queues.

Both versions are read by one reader, since a definition may keep either: `cohort` is v1beta1's word for `cohortName`,
`parent` an older one for `parentName`, `Borrow` and `Preempt` are older ones for `MayStopSearch`. A ClusterQueue is a
leaf, a Cohort a queue with others below it (`kueue_tree` has its amounts).
Source: kueue apis/kueue/{v1beta1,v1beta2}, pkg/webhooks; https://kueue.sigs.k8s.io/docs/concepts/cluster_queue/.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from typing import Annotated, Any, Literal

import msgspec

from kube.dialects.documents.document import checked
from kube.dialects.documents.selector import LabelSelector
from kube.dialects.queues.quota import written
from kube.objects import ClusterQueue, Cohort
from model.fault import ConfigurationFault
from model.quantity import QuantityError, parse
from model.queue import (
    ROOT_QUEUE,
    Cell,
    FlavorGroup,
    FlavorPreference,
    FlavorStop,
    Fungibility,
    Queue,
    QueueAdmission,
    QueueOrder,
    QueuePreemption,
    QueueState,
    QuotaCell,
    VictimPolicy,
)
from model.selector import Operator, Requirement, Selector

GROUP = "kueue.x-k8s.io"
KIND, COHORT = "ClusterQueue", "Cohort"
COHORT_PREFIX = "cohort/"
"""Cohorts and ClusterQueues may have the same name in Kueue: the queue of a Cohort has this before its own."""
WEIGHT_ONE = 1000
"""The weight of a queue that says nothing: weights may be fractions in Kueue, and count in thousandths here."""
_NOBODY = Selector((Requirement("", Operator.EXISTS),))
"""No namespace has a label without a name."""
_STATES = {"None": QueueState.OPEN, "Hold": QueueState.HOLD, "HoldAndDrain": QueueState.DRAIN}
_MOST_FLAVORS = 256
_BY_USAGE = "UsageBasedAdmissionFairSharing"

StopPolicy = Literal["None", "Hold", "HoldAndDrain"]
_Int32 = Annotated[int, msgspec.Meta(ge=-(1 << 31), lt=1 << 31)]


class _Resource(msgspec.Struct, frozen=True, rename="camel"):
    name: str
    nominal_quota: Any = None
    borrowing_limit: Any = None
    lending_limit: Any = None


class _Flavor(msgspec.Struct, frozen=True):
    name: str
    resources: list[_Resource] | None = None


class _Group(msgspec.Struct, frozen=True, rename="camel"):
    covered_resources: list[str] | None = None
    flavors: list[_Flavor] | None = None


class _Fungibility(msgspec.Struct, frozen=True, rename="camel"):
    when_can_borrow: Literal["Borrow", "MayStopSearch", "TryNextFlavor"] | None = None
    when_can_preempt: Literal["Preempt", "MayStopSearch", "TryNextFlavor"] | None = None
    preference: FlavorPreference | None = None


class _Borrowing(msgspec.Struct, frozen=True, rename="camel"):
    policy: Literal["Never", "LowerPriority"] | None = None
    max_priority_threshold: _Int32 | None = None


class _Preemption(msgspec.Struct, frozen=True, rename="camel"):
    within_cluster_queue: Literal["Never", "LowerPriority", "LowerOrNewerEqualPriority"] | None = None
    reclaim_within_cohort: Literal["Never", "LowerPriority", "Any"] | None = None
    borrow_within_cohort: _Borrowing | None = None


class FairSharing(msgspec.Struct, frozen=True):
    """`weight` is a quantity."""

    weight: Any = None


class _Scope(msgspec.Struct, frozen=True, rename="camel"):
    admission_mode: Literal["", "UsageBasedAdmissionFairSharing", "NoAdmissionFairSharing"] | None = None


class _Spec(msgspec.Struct, frozen=True, rename="camel"):
    resource_groups: list[_Group] | None = None
    cohort: str | None = None
    cohort_name: str | None = None
    queueing_strategy: Literal["StrictFIFO", "BestEffortFIFO"] | None = None
    namespace_selector: LabelSelector | None = None
    flavor_fungibility: _Fungibility | None = None
    preemption: _Preemption | None = None
    stop_policy: StopPolicy | None = None
    fair_sharing: FairSharing | None = None
    admission_scope: _Scope | None = None
    admission_checks: list[str] | None = None
    admission_checks_strategy: Any = None
    concurrent_admission_policy: Any = None


class _CohortSpec(msgspec.Struct, frozen=True, rename="camel"):
    parent: str | None = None
    parent_name: str | None = None
    resource_groups: list[_Group] | None = None
    fair_sharing: FairSharing | None = None


def where_of(source: ClusterQueue | Cohort) -> str:
    """What messages call it."""
    return f"{KIND if isinstance(source, ClusterQueue) else COHORT} {source.metadata.name}"


def cluster_queue(source: ClusterQueue) -> Queue:
    """The leaf. Raises ConfigurationFault naming the object, the field and what to write."""
    where = where_of(source)
    spec = _spec(source)
    parent = _one_of(spec.cohort_name, spec.cohort, "cohortName", "cohort", where)
    cells, groups = _quotas(spec.resource_groups or [], bool(parent), "spec.cohortName", where)
    if not parent:
        cells = {cell: msgspec.structs.replace(quota, maximum=quota.nominal) for cell, quota in cells.items()}
    selector = _NOBODY if spec.namespace_selector is None else spec.namespace_selector.in_model()
    return Queue(
        name=source.metadata.name,
        parent=COHORT_PREFIX + parent if parent else ROOT_QUEUE,
        weight=weight_millis(spec.fair_sharing, where),
        cells=cells,
        state=state_of(spec.stop_policy),
        order=QueueOrder(spec.queueing_strategy or QueueOrder.BEST_EFFORT_FIFO),
        preemption=_preemption(spec.preemption or _Preemption(), where),
        admission=QueueAdmission(namespace_selector=selector if selector.requirements else None),
        source=f"{KIND}/{source.metadata.name}",
        flavor_groups=groups,
        fungibility=_fungibility(spec.flavor_fungibility or _Fungibility(), where),
        by_submission=spec.admission_scope is not None and spec.admission_scope.admission_mode == _BY_USAGE,
    )


def cohort(source: Cohort) -> Queue:
    """The inner queue with what it has beside its members. Raises ConfigurationFault."""
    where = where_of(source)
    spec = checked({} if source.spec is None else source.spec, _CohortSpec, f"{where}: spec")
    parent = _one_of(spec.parent_name, spec.parent, "parentName", "parent", where)
    cells, _ = _quotas(spec.resource_groups or [], bool(parent), "spec.parentName", where)
    return Queue(
        name=COHORT_PREFIX + source.metadata.name,
        parent=COHORT_PREFIX + parent if parent else ROOT_QUEUE,
        weight=weight_millis(spec.fair_sharing, where),
        cells=cells,
        source=f"{COHORT}/{source.metadata.name}",
    )


def unmet(source: ClusterQueue) -> Iterator[str]:
    """Fields that are set and not acted on, each with what follows. Raises ConfigurationFault."""
    spec = _spec(source)
    if spec.admission_checks or spec.admission_checks_strategy:
        yield "spec.admissionChecks: workloads are admitted without them"
    if spec.concurrent_admission_policy:
        yield "spec.concurrentAdmissionPolicy: a workload is tried on one flavor after the other"


def shares_fairly(source: ClusterQueue) -> bool:
    """Whether it says how it shares. Raises ConfigurationFault."""
    return _spec(source).fair_sharing is not None


def state_of(policy: str | None) -> QueueState:
    """What a stopPolicy says."""
    return _STATES[policy or "None"]


def weight_millis(told: FairSharing | None, where: str) -> int:
    """A weight in thousandths; one of 0 is the least there is. Raises ConfigurationFault."""
    if told is None or told.weight is None:
        return WEIGHT_ONE
    try:
        weight = parse(told.weight)
    except QuantityError as error:
        raise ConfigurationFault(
            f"{where}: spec.fairSharing.weight", str(error), "write a number of 0 or more"
        ) from None
    if not 0 <= weight <= 1_000_000:
        raise ConfigurationFault(
            f"{where}: spec.fairSharing.weight", f"is {told.weight}", "write a number of 0 or more"
        )
    return max(1, int(weight * Fraction(WEIGHT_ONE)))


def _spec(source: ClusterQueue) -> _Spec:
    return checked({} if source.spec is None else source.spec, _Spec, f"{where_of(source)}: spec")


def _one_of(new: str | None, old: str | None, new_name: str, old_name: str, where: str) -> str:
    """The name that is written under the word of either version."""
    if new and old and new != old:
        told = f'is "{new}", and spec.{old_name}, which means the same, is "{old}"'
        raise ConfigurationFault(f"{where}: spec.{new_name}", told, "write one of them")
    return new or old or ""


def _quotas(
    groups: list[_Group], borrows: bool, parent: str, where: str
) -> tuple[dict[Cell, QuotaCell], tuple[FlavorGroup, ...]]:
    """Cells by flavour and resource, and the groups in their order. Raises ConfigurationFault."""
    cells: dict[Cell, QuotaCell] = {}
    found: list[FlavorGroup] = []
    resources: set[str] = set()
    flavors: set[str] = set()
    for index, group in enumerate(groups):
        field = f"{where}: spec.resourceGroups[{index}]"
        covered = _covered(group, field, resources)
        names = []
        for at, flavor in enumerate(group.flavors or []):
            place = f"{field}.flavors[{at}]"
            if flavor.name in flavors:
                raise ConfigurationFault(f"{place}.name", f"{flavor.name} is listed twice", "list a flavor once")
            flavors.add(flavor.name)
            names.append(flavor.name)
            cells.update(_of_flavor(flavor, covered, place, borrows, parent))
        if not names:
            raise ConfigurationFault(f"{field}.flavors", "is empty", "list at least one ResourceFlavor")
        found.append(FlavorGroup(covered, tuple(names)))
    if len(flavors) > _MOST_FLAVORS:
        told = f"list {len(flavors)} flavors"
        raise ConfigurationFault(f"{where}: spec.resourceGroups", told, f"list at most {_MOST_FLAVORS} in all")
    return cells, tuple(found)


def _covered(group: _Group, field: str, known: set[str]) -> tuple[str, ...]:
    covered = tuple(group.covered_resources or ())
    if not covered:
        raise ConfigurationFault(f"{field}.coveredResources", "is empty", "list the resources that it has quota of")
    for name in covered:
        if name in known:
            told = f"{name} is covered twice"
            raise ConfigurationFault(f"{field}.coveredResources", told, "cover a resource in one group, once")
        known.add(name)
    return covered


def _of_flavor(
    flavor: _Flavor, covered: tuple[str, ...], field: str, borrows: bool, parent: str
) -> Mapping[Cell, QuotaCell]:
    listed = [each.name for each in flavor.resources or []]
    if sorted(listed) != sorted(covered):
        told = f"are {', '.join(listed) or 'none'}, and the group covers {', '.join(covered)}"
        raise ConfigurationFault(f"{field}.resources", told, "list each covered resource once")
    return {
        (flavor.name, each.name): _cell(each, f"{field}.resources[{each.name}]", borrows, parent)
        for each in flavor.resources or []
    }


def _cell(source: _Resource, field: str, borrows: bool, parent: str) -> QuotaCell:
    nominal = _amount(source, source.nominal_quota, f"{field}.nominalQuota")
    if nominal is None:
        raise ConfigurationFault(f"{field}.nominalQuota", "is missing", "write an amount, 0 for none")
    limits = {"borrowingLimit": source.borrowing_limit, "lendingLimit": source.lending_limit}
    for name, raw in limits.items():
        if raw is not None and not borrows:
            told = f"is set, and {parent} is empty, so that nothing is borrowed or lent"
            raise ConfigurationFault(f"{field}.{name}", told, f"name a cohort in {parent}, or leave it out")
    borrowing, lending = (_amount(source, raw, f"{field}.{name}") for name, raw in limits.items())
    return QuotaCell(nominal=nominal, borrowing_limit=borrowing, lending_limit=lending)


def _amount(source: _Resource, raw: Any, field: str) -> int | None:
    """In base units. Raises ConfigurationFault for what is no amount, or below 0."""
    if raw is None:
        return None
    amount = written({source.name: raw}, "", field).amounts[source.name]
    if amount < 0:
        raise ConfigurationFault(field, f"is {raw}", "write an amount of 0 or more")
    return amount


def _fungibility(told: _Fungibility, where: str) -> Fungibility:
    borrow, preempt = told.when_can_borrow or FlavorStop.STOP, told.when_can_preempt or FlavorStop.NEXT
    both = borrow == preempt == FlavorStop.NEXT
    if told.preference is not None and not both:
        fix = "leave it out, or write TryNextFlavor for whenCanBorrow and whenCanPreempt"
        field = f"{where}: spec.flavorFungibility.preference"
        raise ConfigurationFault(field, "is set where a search may stop before there are two to choose from", fix)
    preference = told.preference or FlavorPreference.BORROWING
    return Fungibility(_stop(borrow), _stop(preempt), preference)


def _stop(word: str) -> FlavorStop:
    """`Borrow` and `Preempt` are v1beta1's words for MayStopSearch."""
    return FlavorStop.NEXT if word == FlavorStop.NEXT else FlavorStop.STOP


def _preemption(told: _Preemption, where: str) -> QueuePreemption:
    reclaim = VictimPolicy(told.reclaim_within_cohort or "Never")
    borrowing = told.borrow_within_cohort or _Borrowing()
    policy = VictimPolicy(borrowing.policy or "Never")
    if policy is not VictimPolicy.NEVER and reclaim is VictimPolicy.NEVER:
        field = f"{where}: spec.preemption.borrowWithinCohort.policy"
        fix = "write Never here, or LowerPriority or Any there"
        raise ConfigurationFault(field, f"is {policy.value}, and reclaimWithinCohort is Never", fix)
    return QueuePreemption(
        within=VictimPolicy(told.within_cluster_queue or "Never"),
        reclaim=reclaim,
        borrowing=policy,
        borrowing_most=borrowing.max_priority_threshold,
    )


def flavors_of(queue: Queue) -> Iterable[str]:
    """The flavours that a queue names, in order."""
    return (name for group in queue.flavor_groups for name in group.flavors)
