"""Taken: what of a bound pod's amounts counts to queues, by facts that its author cannot write.

Whoever makes a pod may say where it runs, and what it asks for. Kubelets refuse what they have no room for, run a pod
whatever it asks for of resources that they do not know, and nobody runs a pod on a node that does not exist.
Source: kubernetes pkg/kubelet/lifecycle/predicate.go (removeMissingExtendedResources).
"""

from __future__ import annotations

from collections.abc import Mapping

from model.node import Node
from model.pod.pod import Pod
from model.pod.status import PodPhase
from model.resources import PODS
from scheduler.core.ledger.charge import NOTHING, Charge
from scheduler.core.snapshot.podclass import PodClass
from scheduler.core.snapshot.snapshot import Usage


def taken_of(charge: Charge, before: Charge | None, node: Node | None, used: Usage) -> PodClass | None:
    """For `Charge.taken`; None: all that its class asks for.

    `before` is how the pod was charged until now. `used` is what pods use by then, by node. Resources that the node
    does not list count nothing, unless they did already there: an agent's token may take the lent ones from its node.
    A pod that no kubelet has taken in yet counts where it fits, or did already.
    """
    if node is None:
        return NOTHING
    here = before if before is not None and before.node == charge.node else None
    settled = (here is not None and here.counts) or charge.pod is None or _taken_in(charge.pod)
    if not settled and not _fits(charge.pod_class, here, node, used.get(charge.node, {})):
        return NOTHING
    request = charge.pod_class.request
    counted = {name for name, _ in here.counted.request} if here is not None else set()
    known = tuple(each for each in request if each[0] in node.allocatable or each[0] == PODS or each[0] in counted)
    return None if len(known) == len(request) else PodClass(known, flavors=charge.pod_class.flavors)


def _taken_in(pod: Pod) -> bool:
    """Whether a Binding gave it its node, or its kubelet says that it has it: a status is not for authors to write."""
    status = pod.status
    return status.phase is not PodPhase.PENDING or status.scheduled_seconds > 0 or status.started_seconds > 0


def _fits(pod_class: PodClass, here: Charge | None, node: Node, used: Mapping[str, int]) -> bool:
    own = dict(here.pod_class.request) if here is not None else {}
    return all(
        used.get(name, 0) - own.get(name, 0) + amount <= node.allocatable[name]
        for name, amount in pod_class.request
        if name in node.allocatable
    )
