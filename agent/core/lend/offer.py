"""The offer: the amounts that the Node's status and its zones may say, and why, decided once in each tick.

What may be lent is what online services leave; what is offered besides never falls below what running pods request,
and does not rise while too little was measured. When an offer is written follows from what was written last: shrinking
is told at once, growth with hysteresis (as Koordinator's resourceDiffThreshold and updateTimeThresholdSeconds).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import msgspec

from agent.core.lend.prepare import PREPARED
from agent.core.lend.reclaimable import NodeLending, ZoneLending
from agent.core.observe.usage import NodeUsage
from model.decision import Decision, Term, TermSum
from model.explain import OFFERED
from model.node import Node
from model.pod.pod import Pod
from model.pod.status import PodPhase
from model.reason import Reason
from model.resources import ResourceVector
from model.strategy import ColocationStrategy

BLIND_SECONDS = 15.0
"""For so long what the Node says stands without facts: a restart is over by then."""
_BLIND = (Reason.NODE_METRICS_MISSING, Reason.PODS_UNKNOWN, Reason.SETTINGS_UNREAD)
_GROWTH_REST_SECONDS = 10.0
_LARGEST_UNTOLD_RATIO = 0.1
"""Of what is offered and is not there any more; a document may ask for less of it, and for quieter growth alone."""
_REASSERT_SECONDS = 5.0
"""Time for our own patch to come back with the Node object."""


class OfferFacts(msgspec.Struct, frozen=True):
    """What an offer depends on beside what may be lent.

    `acknowledged` is what the API server took last, which stands for a Node object that is not known. `zones_on_node`
    is what the zones said last, None where they were never read. `admitted` is what pods request that the kubelet let
    in, `withheld` why nothing is offered whatever may be lent.
    """

    node: Node | None
    pods: tuple[Pod, ...] | None
    admitted: ResourceVector
    acknowledged: Mapping[str, int]
    zones_on_node: Mapping[int, ResourceVector] | None
    may_grow: bool
    monotonic_seconds: float
    withheld: Reason | None = None


class OfferMemory(msgspec.Struct, frozen=True):
    """What one tick must know of the one before: when the first of them was (monotonic seconds)."""

    first_seconds: float | None = None


class NodeOffer(msgspec.Struct, frozen=True):
    """What one tick offers. Amounts that the Node has and `decisions` lacks are to be removed from it.

    `decisions` is None where neither the Node nor its pods are known. `without_growth` is the same, but nothing above
    what the Node says; `least` what stays once nothing is lent any more. `zones` is None where nobody may say yet what
    they offer. Until it `may_publish`, a just started agent tells nothing. `on_node` is what the Node said of it.
    """

    decisions: tuple[Decision, ...] | None = None
    without_growth: tuple[Decision, ...] = ()
    least: tuple[Decision, ...] = ()
    zones: Mapping[int, tuple[Decision, ...]] | None = None
    on_node: Mapping[str, int] = {}
    may_publish: bool = True

    @property
    def amounts(self) -> dict[str, int]:
        return amounts_of(self.decisions or ())

    @property
    def every_decision(self) -> tuple[Decision, ...]:
        """Those of the node, then those of its zones."""
        return (*(self.decisions or ()), *(decision for zone in (self.zones or {}).values() for decision in zone))

    def withdrawn(self, reason: Reason) -> NodeOffer:
        """Nothing of it any more, but what running pods hold."""
        if self.decisions is None:
            return msgspec.structs.replace(self, may_publish=True)
        least = tuple(msgspec.structs.replace(decision, reason=reason) for decision in self.least)
        return msgspec.structs.replace(self, decisions=least, without_growth=least, least=least, may_publish=True)


class Published(msgspec.Struct, frozen=True):
    """What the Node's status said last, why, and since when (monotonic seconds)."""

    decisions: tuple[Decision, ...]
    monotonic_seconds: float

    @property
    def amounts(self) -> dict[str, int]:
        return amounts_of(self.decisions)


class _Holds(msgspec.Struct, frozen=True):
    """What keeps an offer up, by resource; `pods` is False while nobody knows them."""

    on_node: Mapping[str, int]
    admitted: ResourceVector
    bound: Mapping[str, int]
    pods: bool


def decide_offer(memory: OfferMemory, lent: NodeLending, about: OfferFacts) -> tuple[OfferMemory, NodeOffer]:
    """The offer of this tick."""
    now = about.monotonic_seconds
    first = now if memory.first_seconds is None else min(memory.first_seconds, now)
    lent = lent if about.withheld is None else withheld(lent, about.withheld)
    on_node = _on_node(lent, about)
    offer = NodeOffer(
        zones=_zones(lent, about), on_node=on_node, may_publish=may_publish(lent.reclaimable, now - first)
    )
    if about.node is not None or about.pods is not None:
        bound = [pod for pod in about.pods or () if not pod.terminal]
        holds = _Holds(on_node, about.admitted, _bound(bound, lent), about.pods is not None)
        offer = msgspec.structs.replace(
            offer,
            decisions=_offered(lent, holds, may_grow=about.may_grow),
            without_growth=_offered(lent, holds, may_grow=False),
            least=_offered(withheld(lent, lent.degraded or Reason.NODE_METRICS_STALE), holds, may_grow=False),
        )
    return OfferMemory(first), offer


def withheld(lent: NodeLending, reason: Reason) -> NodeLending:
    """Nothing of it any more, for that reason."""
    return NodeLending(
        reclaimable=tuple(
            msgspec.structs.replace(decision, value=0, terms=(), reason=reason) for decision in lent.reclaimable
        ),
        normalization_ratio=lent.normalization_ratio,
        degraded=reason,
    )


def may_raise(usage: NodeUsage | None) -> bool:
    """Whether enough was seen to offer more than what stands; not by a just started agent."""
    return usage is not None and usage.live_window_full


def offered(
    lent: NodeLending,
    listed: Iterable[Pod] | None,
    with_cgroup: Collection[str],
    on_node: Mapping[str, int],
    *,
    may_grow: bool,
) -> tuple[Decision, ...]:
    """What belongs into the node's status: what may be lent, but never below what running pods request already.

    A kubelet that restarts admits its running pods again; with less than they request it would fail them
    (docs/adr/0004). A pod that is merely bound here is not admitted yet, and must not make its own room: `with_cgroup`
    are uids of pods that have a cgroup. But what the Node says (`on_node`) does not shrink under it: a gang just placed
    must not be refused one by one. While nobody knows the pods (`listed` is None) they may request all of that.
    A resource that is not in the answer is to be removed from the node, as Koordinator does when it may not lend.
    """
    bound = [pod for pod in listed or () if not pod.terminal]
    holds = _Holds(on_node, admitted_requests(bound, with_cgroup), _bound(bound, lent), listed is not None)
    return _offered(lent, holds, may_grow=may_grow)


def admitted_requests(listed: Iterable[Pod], with_cgroup: Collection[str]) -> ResourceVector:
    """What pods of this node request that its kubelet has let in: they run, or have a cgroup (`with_cgroup`)."""
    total: dict[str, int] = {}
    for pod in listed:
        if not pod.terminal and (pod.status.phase is PodPhase.RUNNING or pod.uid in with_cgroup):
            for name, amount in pod.spec.requests.amounts.items():
                total[name] = total.get(name, 0) + amount
    return ResourceVector(total)


def offered_in_zone(zone: ZoneLending, on_node: Mapping[str, int], *, may_grow: bool) -> tuple[Decision, ...]:
    """What belongs into the rows of one zone; no kubelet admits by them, so that running pods hold nothing up."""
    ready = zone.prepared or zone.decisions
    return tuple(_decided(one, _held_back(one, on_node, may_grow=may_grow)) for one in ready)


def amounts_of(decisions: Iterable[Decision]) -> dict[str, int]:
    """Amounts by resource."""
    return {decision.name: decision.value for decision in decisions}


def may_publish(decisions: Iterable[Decision], age_seconds: float) -> bool:
    """A just started agent that has not measured yet keeps what the Node says; one that stays blind withdraws it."""
    blind = any(d.reason in _BLIND for d in decisions)
    return not blind or age_seconds > BLIND_SECONDS


def due(
    before: Mapping[str, int], after: Mapping[str, int], elapsed_seconds: float, strategy: ColocationStrategy
) -> bool:
    """Whether amounts must be written again, `elapsed_seconds` after `before` was.

    A resource that goes is told at once; one that appears is growth from nothing.
    """
    if before.keys() - after.keys():
        return True
    changes = [(before.get(name, 0), amount) for name, amount in after.items()]
    untold_ratio = min(strategy.resource_diff_ratio, _LARGEST_UNTOLD_RATIO)
    if any(old - new > old * untold_ratio for old, new in changes):
        return True
    appears = bool(after.keys() - before.keys())
    if elapsed_seconds >= strategy.update_interval_seconds:
        return appears or any(old != new for old, new in changes)
    rested = elapsed_seconds >= _GROWTH_REST_SECONDS
    return rested and (appears or any(new - old > old * strategy.resource_diff_ratio for old, new in changes))


def due_for_node(
    last: Published | None,
    amounts: Mapping[str, int],
    on_node: Mapping[str, int],
    strategy: ColocationStrategy,
    monotonic_seconds: float,
) -> bool:
    """Whether the node's status must be patched now; `on_node` is what the Node object says of our resources."""
    if last is None:
        return True
    before = last.amounts
    elapsed = monotonic_seconds - last.monotonic_seconds
    return due(before, amounts, elapsed, strategy) or (elapsed >= _REASSERT_SECONDS and dict(on_node) != before)


def _on_node(lent: NodeLending, about: OfferFacts) -> Mapping[str, int]:
    """What the Node says of our resources, or what it was told last."""
    if about.node is None:
        return about.acknowledged
    names = (decision.name for decision in lent.reclaimable)
    return {name: about.node.allocatable[name] for name in names if name in about.node.allocatable}


def _zones(lent: NodeLending, about: OfferFacts) -> Mapping[int, tuple[Decision, ...]] | None:
    """None while nothing may exceed what the zones say, and nobody has read that."""
    if about.zones_on_node is None and not about.may_grow:
        return None
    before = about.zones_on_node or {}
    return {
        zone.id: offered_in_zone(zone, before.get(zone.id, ResourceVector()).amounts, may_grow=about.may_grow)
        for zone in lent.zones
    }


def _offered(lent: NodeLending, holds: _Holds, *, may_grow: bool) -> tuple[Decision, ...]:
    found = []
    for ready in lent.final:
        terms, on_node = _held_back(ready, holds.on_node, may_grow=may_grow), holds.on_node.get(ready.name, 0)
        if not holds.pods:
            terms.at_least("held: the running pods are not known", on_node, "they may request it")
        admitted = holds.admitted[ready.name]
        terms.at_least("already requested by running pods", admitted, "kubelet must be able to admit them again")
        placed = min(holds.bound[ready.name], on_node)
        terms.at_least("held for pods just placed", placed, "no more than what stands")
        if terms.value or lent.prepared:
            found.append(_decided(ready, terms))
    return tuple(found)


def _bound(pods: list[Pod], lent: NodeLending) -> Mapping[str, int]:
    """What pods of this node request, whether or not its kubelet has let them in."""
    return {ready.name: sum(pod.spec.requests[ready.name] for pod in pods) for ready in lent.reclaimable}


def _held_back(ready: Decision, on_node: Mapping[str, int], *, may_grow: bool) -> TermSum:
    """Without `may_grow` nothing exceeds what is `on_node`."""
    terms = TermSum()
    known = ready.terms if ready.policy == PREPARED else ()
    for term in known or (Term("reclaimable", ready.value, "may be lent now"),):
        terms.add(term.name, term.value, term.note)
    return terms if may_grow else terms.at_most("held: too early to raise", on_node.get(ready.name, 0))


def _decided(ready: Decision, terms: TermSum) -> Decision:
    return msgspec.structs.replace(ready, value=terms.value, terms=terms.terms, policy=OFFERED)
