"""Flavour assignment: which flavours the pod sets of a workload get by a queue's quota, and what that takes.

Flavours are tried in the queue's order; all resources of a group come from one. Asked are the same books as for every
other question about quota. Source: kueue pkg/scheduler/flavorassigner and
https://kueue.sigs.k8s.io/docs/concepts/cluster_queue/#flavorfungibility.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import msgspec

from model.flavor.assignment import FlavorAssignment, FlavorMode, FlavorRequest, PodSetFlavors
from model.flavor.resource_flavor import ResourceFlavor
from model.pod.affinity import NodeTerm
from model.pod.spec import Tolerations
from model.queue import (
    Cell,
    FlavorGroup,
    FlavorPreference,
    FlavorStop,
    Fungibility,
    Queue,
    QueuePreemption,
    VictimPolicy,
)
from model.resources import PODS, amount_text
from scheduler.core.queues.headroom import Quota


class FlavorQuestion(msgspec.Struct, frozen=True, eq=False):
    """For one workload of `queue`: `quota` as its own room counts as free, `flavors` all that are defined, by name.

    `passed` are flavours that were tried in vain and are not looked at. `fair`: a queue that borrows may take from one
    that borrows more, by shares.
    """

    quota: Quota
    queue: str
    flavors: Mapping[str, ResourceFlavor]
    passed: Collection[str] = ()
    fair: bool = False


class _Offer(msgspec.Struct, frozen=True):
    """One flavour for one group of resources."""

    flavor: str
    mode: FlavorMode
    borrowing: int
    reason: str = ""


_NOTHING = _Offer("", FlavorMode.NO_FIT, 0)


def assign(asked: FlavorQuestion, pod_sets: Sequence[FlavorRequest]) -> FlavorAssignment:
    """The flavours of all pod sets at their full counts; earlier ones take their amounts before later ones."""
    taken: dict[Cell, int] = {}
    found = []
    for pods in pod_sets:
        own = _assign(asked, pods, taken)
        for cell, amount in own.amounts.items():
            taken[cell] = taken.get(cell, 0) + amount
        found.append(own)
    return FlavorAssignment(tuple(found))


def flavors_at(
    queue: Queue,
    flavors: Mapping[str, ResourceFlavor],
    resources: Collection[str],
    labels: Mapping[str, str] | None,
    named: Mapping[str, str],
) -> tuple[tuple[str, str], ...]:
    """Resource and flavour of a pod on a node with these labels, None: a node that nobody knows.

    What the pod was given (`named`) counts where the node has the labels of that flavour; else that flavour counts
    which says most of the node, the first in order of several; where none does, the first in order, so that what the
    pod has counts in any case.
    """
    found: list[tuple[str, str]] = []
    for group in queue.flavor_groups:
        own = [name for name in group.resources if name in resources]
        if not own:
            continue
        fitting = [name for name in group.flavors if name in flavors and _is_at(flavors[name], labels)]
        fallback = max(fitting, key=lambda name: len(flavors[name].node_labels), default=group.flavors[0])
        told = next((named[name] for name in own if named.get(name) in fitting), fallback)
        found.extend((name, told) for name in own)
    return tuple(sorted(found))


def _is_at(flavor: ResourceFlavor, labels: Mapping[str, str] | None) -> bool:
    return labels is None or flavor.node_labels.items() <= labels.items()


def _assign(asked: FlavorQuestion, pods: FlavorRequest, taken: Mapping[Cell, int]) -> PodSetFlavors:
    queue = asked.quota.tree.queues.get(asked.queue, Queue())
    wanted = {name: amount * pods.count for name, amount in pods.request.items() if amount > 0}
    covered = {name for group in queue.flavor_groups for name in group.resources}
    if PODS not in covered:
        wanted.pop(PODS, None)
    missing = sorted(wanted.keys() - covered)
    if missing:
        reason = f"resource {missing[0]} is in no resource group of queue {asked.queue}"
        return PodSetFlavors(pods.name, pods.count, mode=FlavorMode.NO_FIT, reason=reason)
    flavors: dict[str, str] = {}
    offers: list[_Offer] = []
    for group in queue.flavor_groups:
        amounts = {name: wanted[name] for name in group.resources if name in wanted}
        if amounts:
            offers.append(_of_group(asked, queue, group, pods, amounts, taken))
            flavors.update((name, offers[-1].flavor) for name in amounts if offers[-1].flavor)
    mode = min((each.mode for each in offers), default=FlavorMode.FIT)
    return PodSetFlavors(
        pods.name,
        pods.count,
        flavors if mode is not FlavorMode.NO_FIT else {},
        {(flavors[name], name): amount for name, amount in wanted.items()} if mode is not FlavorMode.NO_FIT else {},
        mode,
        max((each.borrowing for each in offers), default=0),
        "; ".join(each.reason for each in offers if each.reason) if mode is not FlavorMode.FIT else "",
    )


def _of_group(
    asked: FlavorQuestion,
    queue: Queue,
    group: FlavorGroup,
    pods: FlavorRequest,
    amounts: Mapping[str, int],
    taken: Mapping[Cell, int],
) -> _Offer:
    """The best flavour of a group, with what was against each that was looked at."""
    keys = frozenset(key for name in group.flavors if name in asked.flavors for key in asked.flavors[name].node_labels)
    best, reasons = _NOTHING, list[str]()
    for name in group.flavors:
        if name in asked.passed:
            continue
        against = _against(asked.flavors.get(name), name, pods, keys)
        if against:
            reasons.append(against)
            continue
        offer = _offer(asked, queue, name, amounts, taken)
        if offer.reason:
            reasons.append(offer.reason)
        if best is _NOTHING or _rank(offer, queue.fungibility) > _rank(best, queue.fungibility):
            best = offer
        if not _goes_on(offer, queue.fungibility):
            best = offer
            break
    if best is _NOTHING and not reasons:
        reasons.append("every flavor was tried in vain")
    return msgspec.structs.replace(best, reason=", ".join(reasons))


def _against(flavor: ResourceFlavor | None, name: str, pods: FlavorRequest, keys: frozenset[str]) -> str:
    """What keeps the pods from nodes of a flavour, whatever its quota; empty where nothing does."""
    if flavor is None:
        return f"flavor {name} does not exist"
    tolerations = Tolerations((*pods.tolerations, *flavor.tolerations))
    for taint in flavor.taints:
        if taint.effect.refuses and not tolerations.allow(taint):
            return f"untolerated taint {taint.key} in flavor {name}"
    if not _selected(flavor, pods, keys):
        return f"flavor {name} doesn't match node affinity"
    return ""


def _selected(flavor: ResourceFlavor, pods: FlavorRequest, keys: frozenset[str]) -> bool:
    """By the labels that flavours of the group name alone; what a pod says of others is for the nodes to answer."""
    labels = flavor.node_labels
    if any(labels.get(key) != value for key, value in pods.node_selector.items() if key in keys):
        return False
    if pods.node_terms is None:
        return True
    return any(_holds(term, labels, keys) for term in pods.node_terms)


def _holds(term: NodeTerm, labels: Mapping[str, str], keys: frozenset[str]) -> bool:
    return all(each.holds(labels) for each in term.labels if each.key in keys)


def _offer(
    asked: FlavorQuestion, queue: Queue, flavor: str, amounts: Mapping[str, int], taken: Mapping[Cell, int]
) -> _Offer:
    mode, borrowing, reasons = FlavorMode.FIT, 0, list[str]()
    for resource, amount in amounts.items():
        cell = (flavor, resource)
        own, height, reason = _fits(asked, queue.preemption, cell, taken.get(cell, 0) + amount)
        mode, borrowing = min(mode, own), max(borrowing, height)
        if reason:
            reasons.append(reason)
    return _Offer(flavor, mode, borrowing, ", ".join(reasons))


def _fits(asked: FlavorQuestion, rules: QueuePreemption, cell: Cell, amount: int) -> tuple[FlavorMode, int, str]:
    """How so much of a cell is to be had, how high it borrows, and what is against it."""
    quota, (flavor, resource) = asked.quota, cell
    most = quota.potential(asked.queue, cell).amount
    if most is not None and amount > most:
        shown, least = amount_text(amount, resource), amount_text(max(0, most), resource)
        told = f"insufficient quota for {resource} in flavor {flavor}, {shown} is more than the most there may be"
        return FlavorMode.NO_FIT, 0, f"{told} ({least})"
    height, below_top = _height(quota, asked.queue, cell, amount)
    room = quota.headroom(asked.queue, cell).amount
    if room is None or amount <= room:
        return FlavorMode.FIT, height, ""
    lacking = amount_text(amount - room, resource)
    reason = f"insufficient unused quota for {resource} in flavor {flavor}, {lacking} more needed"
    own = quota.own(asked.queue, cell)
    reclaims = asked.fair and rules.reclaim is not VictimPolicy.NEVER
    if own is None or amount <= own or below_top or reclaims or rules.borrowing is not VictimPolicy.NEVER:
        mode = _by_eviction(asked, rules, cell, amount)
        # It borrows what it would once they are gone: nothing of its own, and of the queue's as much less.
        after = 0 if mode is FlavorMode.RECLAIM else _height(quota, asked.queue, cell, max(0, room))[0]
        return mode, after, reason
    return FlavorMode.NO_CANDIDATES, height, reason


def _height(quota: Quota, queue: str, cell: Cell, amount: int) -> tuple[int, bool]:
    """How high above the queue its own amounts hold so much more; and whether that is below the top of its tree."""
    path, after = quota.tree.path(queue)[:-1], quota.after(queue, cell, amount)
    for height, node in enumerate(path):
        own = quota.own(node, cell)
        if own is None or after[node].claimed <= own:
            return height, height < len(path) - 1
    return max(0, len(path) - 1), False


def _by_eviction(asked: FlavorQuestion, rules: QueuePreemption, cell: Cell, amount: int) -> FlavorMode:
    """Whether anybody there is to be evicted by these rules: relatives that borrow, or work of the queue itself."""
    quota, queue = asked.quota, asked.queue
    own = quota.own(queue, cell)
    within = own is None or quota.used(queue, cell) + amount <= own
    if rules.reclaim is not VictimPolicy.NEVER and within and quota.others_borrow(queue, cell):
        return FlavorMode.RECLAIM
    if rules.within is not VictimPolicy.NEVER and quota.used(queue, cell):
        return FlavorMode.PREEMPT
    to_borrow = rules.borrowing is not VictimPolicy.NEVER or (asked.fair and rules.reclaim is not VictimPolicy.NEVER)
    if to_borrow and quota.others_borrow(queue, cell):
        return FlavorMode.PREEMPT
    return FlavorMode.NO_CANDIDATES


def _rank(offer: _Offer, rules: Fungibility) -> tuple[int, int, int]:
    """The larger, the better."""
    possible = int(offer.mode is not FlavorMode.NO_FIT)
    if rules.preference is FlavorPreference.PREEMPTION:
        return (possible, -offer.borrowing, int(offer.mode))
    return (possible, int(offer.mode), -offer.borrowing)


def _goes_on(offer: _Offer, rules: Fungibility) -> bool:
    """Whether a later flavour may be better, so that it is looked at."""
    if offer.mode in (FlavorMode.NO_FIT, FlavorMode.NO_CANDIDATES):
        return True
    if offer.mode.evicts and rules.when_can_preempt is FlavorStop.NEXT:
        return True
    return offer.borrowing > 0 and rules.when_can_borrow is FlavorStop.NEXT
