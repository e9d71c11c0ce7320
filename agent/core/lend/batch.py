"""batch-cpu and batch-memory of a node and of its NUMA zones.

    batch = capacity - margin - max(system used, reserved) - what pods above batch keep, between 0 and the caps

Under the `request` policy system use does not count: it asks what nobody was promised, not what is idle.

Source: Koordinator pkg/slo-controller/noderesource/plugins/{batchresource,util}; differences in docs/adr/0007.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from agent.core.lend.high_priority import KeptAmount, KeptByPod, kept_in_zones
from agent.core.lend.lending_scope import Lendable, LendingScope, cap, share
from model.decision import Decision, TermSum
from model.explain import amount
from model.reason import Reason
from model.strategy import CalculatePolicy
from model.topology import Zone


def batch(resource: Lendable, scope: LendingScope, held: Iterable[KeptAmount], at_seconds: float) -> Decision:
    """What of one scope may be lent as batch, in the resource's base unit."""
    unsafe_pct = 100 - resource.reclaim_threshold_pct
    terms = TermSum().add("capacity", scope.capacity, scope.source)
    # The margin is negative above 100 %, where a cluster lends more than it holds: the capacity cap ends that.
    terms.add("safety margin", -share(scope.capacity, unsafe_pct), f"{unsafe_pct} % of capacity")
    _add_occupied(terms, resource, scope)
    for part in held:
        terms.add(part.term, -part.amount, part.note)
    cap(terms, scope, resource.batch_cap_name, resource.batch_cap_pct)
    return Decision(
        scope.subject,
        resource.batch,
        terms.value,
        resource.unit,
        Reason.COMPUTED,
        terms.terms,
        resource.policy.value,
        at_seconds,
    )


def _add_occupied(terms: TermSum, resource: Lendable, scope: LendingScope) -> None:
    """Only the larger of system use and reservation counts; the note tells the other."""
    reserved = f"kubelet, annotation or limits of kubepods; system used is {amount(scope.system, resource.unit)}"
    if resource.policy is CalculatePolicy.REQUEST or scope.system < scope.reserved:
        terms.add("reserved", -scope.reserved, reserved)
        return
    hosts = (
        f", {amount(scope.host_applications, resource.unit)} by host applications" if scope.host_applications else ""
    )
    terms.add("system used", -scope.system, f"outside pods{hosts}; reserved is {amount(scope.reserved, resource.unit)}")


def batch_in_zones(
    resource: Lendable, node: LendingScope, claimed: Iterable[KeptByPod], zones: Sequence[Zone], at_seconds: float
) -> tuple[Decision, ...]:
    """One decision a zone. How much of system use and reservation falls on a zone is not known: all bear the same."""
    held = kept_in_zones(resource, claimed, [zone.id for zone in zones])
    even = msgspec.structs.replace(
        node,
        source="zone allocatable",
        system=-(-node.system // len(zones)),
        host_applications=-(-node.host_applications // len(zones)),
        reserved=-(-node.reserved // len(zones)),
    )
    return tuple(
        batch(
            resource,
            msgspec.structs.replace(
                even, subject=f"{node.subject}/zone/{zone.name}", capacity=zone.allocatable[resource.native]
            ),
            own,
            at_seconds,
        )
        for zone, own in zip(zones, held, strict=True)
    )
