"""Charge: one pod's use of one node, in the name of one queue."""

from __future__ import annotations

import msgspec

from model.cpubinding import BoundCpus
from model.placement import PlacementState
from model.pod.pod import Pod
from model.pod.status import PodPhase
from model.priority import SYSTEM_PRIORITY
from model.queue import DEFAULT_QUEUE, ROOT_QUEUE, governing
from model.workload import WorkloadId
from scheduler.core.snapshot.podclass import PodClass, PodTraits, class_of, pod_traits_of


class Charge(msgspec.Struct, frozen=True, gc=False):
    """`pod_class.request` is what it takes; `pod` is None where only the amounts are known.

    `subject` is its job where that is more than the pod's own gang (a gang group), None otherwise. `gang_priority` is
    its gang's own word on priority, None where the pod's counts. `cpus` are those of its own, None without any.
    """

    uid: str
    node: str
    pod_class: PodClass
    pod_traits: PodTraits = PodTraits()
    pod: Pod | None = None
    queue: str = DEFAULT_QUEUE
    state: PlacementState = PlacementState.ASSUMED
    subject: WorkloadId | None = None
    gang_priority: int | None = None
    cpus: BoundCpus | None = None

    @property
    def priority(self) -> int:
        """At which it may be a victim: its gang's, but no gang makes less of a system-critical pod."""
        own = self.pod.spec.priority if self.pod else 0
        return own if self.gang_priority is None or own >= SYSTEM_PRIORITY else self.gang_priority

    @property
    def governed_by(self) -> str:
        """The queue that governs it; the root's where none does."""
        own = governing(self.queue, online=self.pod is not None and not self.pod.colocation.below_prod)
        return own if self.taken_in else ROOT_QUEUE

    @property
    def counted_to(self) -> str | None:
        """The queue whose amounts it makes; None: those of no queue and not even of what work outside of queues has."""
        return self.governed_by if self.taken_in else None

    @property
    def taken_in(self) -> bool:
        """Whether we, another scheduler's Binding or its kubelet say that the pod belongs on its node.

        Whoever makes a pod may name any node for it, one that does not exist or that has no such room.
        """
        if self.state is PlacementState.ASSUMED or self.pod is None:
            return True
        status = self.pod.status
        return status.phase is not PodPhase.PENDING or bool(status.scheduled_seconds or status.started_seconds)

    @property
    def evicting(self) -> bool:
        """Whether the pod is leaving its node; one that is only assumed is not there yet."""
        return self.state is PlacementState.BOUND and self.pod is not None and self.pod.deleting

    @property
    def job(self) -> WorkloadId:
        """What is preempted and explained as one."""
        if self.subject is not None:
            return self.subject
        if self.pod is None:
            return WorkloadId.pod(self.uid)
        return self.pod.own_workload


class ChargeChange(msgspec.Struct, frozen=True, gc=False):
    """`uid` is charged so from now on; None: not at all."""

    uid: str
    charge: Charge | None


def charge_of(pod: Pod) -> Charge | None:
    """What a pod uses by its own word: nothing while it has no node or once it is terminal."""
    if not pod.spec.node_name or pod.terminal:
        return None
    return Charge(
        pod.uid,
        pod.spec.node_name,
        class_of(pod),
        pod_traits_of(pod),
        pod,
        pod.spec.queue,
        PlacementState.BOUND,
        cpus=pod.colocation.bound_cpus,
    )
