"""Charge: one pod's use of one node, in the name of one queue."""

from __future__ import annotations

import msgspec

from model.cpubinding import BoundCpus
from model.placement import PlacementState
from model.pod.pod import Pod
from model.priority import SYSTEM_PRIORITY
from model.queue import DEFAULT_QUEUE, ROOT_QUEUE, governing
from model.workload import GangSource, WorkloadId
from scheduler.core.snapshot.podclass import PodClass, PodTraits, class_of, pod_traits_of

NOTHING = PodClass(())
"""What a pod takes that no node of the cluster has."""


class Charge(msgspec.Struct, frozen=True, gc=False):
    """`pod_class.request` is what it takes; `pod` is None where only the amounts are known.

    `subject` is its job, None where that is the pod's own gang, or the pod alone. `gang_priority` is its gang's own
    word on priority, None where the pod's counts. `cpus` are those of its own, None without any.
    `taken` is what it takes of the cluster where that is not all that its class asks for (see `taken_of`).
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
    taken: PodClass | None = None

    @property
    def counted(self) -> PodClass:
        """What of its amounts counts to queues, and to what no queue governs."""
        return self.pod_class if self.taken is None else self.taken

    @property
    def counts(self) -> bool:
        """Whether it takes anything of the cluster."""
        return self.taken is not NOTHING

    @property
    def priority(self) -> int:
        """At which it may be a victim: its gang's, but no gang makes less of a system-critical pod."""
        own = self.pod.spec.priority if self.pod else 0
        return own if self.gang_priority is None or own >= SYSTEM_PRIORITY else self.gang_priority

    @property
    def outer_priority(self) -> int:
        """The same beside work that is not of its queue: what orders its queue alone does not raise it."""
        gang = self.pod.spec.gang if self.pod is not None else None
        if self.pod is None or gang is None or gang.source is not GangSource.WORKLOAD:
            return self.priority
        return min(self.priority, self.pod.spec.priority)

    @property
    def governed_by(self) -> str:
        """The queue whose quota it counts to; the root's where no queue governs it, and for one that takes nothing."""
        if not self.counts:
            return ROOT_QUEUE
        return governing(self.queue, online=self.pod is not None and not self.pod.colocation.below_prod)

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
