"""A gang's pods sorted by how they count."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import msgspec

from model.pod.pod import Pod
from model.pod.status import PodPhase


class Roster(msgspec.Struct, frozen=True):
    """A gang's pods by how they count: each is in one of these, oldest first."""

    pending: tuple[Pod, ...] = ()
    placed: tuple[Pod, ...] = ()
    succeeded: tuple[Pod, ...] = ()
    failed: tuple[Pod, ...] = ()
    gated: tuple[Pod, ...] = ()
    unsupported: tuple[Pod, ...] = ()
    foreign: tuple[Pod, ...] = ()
    deleting: tuple[Pod, ...] = ()

    @property
    def satisfied(self) -> int:
        """Members that need no node any more: completed ones count, as their work is done."""
        return len(self.placed) + len(self.succeeded)

    @property
    def present(self) -> int:
        """Members that have a node, had one, or can be tried."""
        return self.satisfied + len(self.pending)

    @property
    def counted(self) -> tuple[Pod, ...]:
        """The members that `present` counts, oldest first."""
        return tuple(sorted((*self.pending, *self.placed, *self.succeeded), key=age))

    @property
    def bound(self) -> tuple[Pod, ...]:
        """Placed members whose node the API server has confirmed."""
        return tuple(pod for pod in self.placed if pod.spec.node_name)

    @property
    def rejected(self) -> tuple[Pod, ...]:
        """Members that the kubelet of their node refused."""
        return tuple(pod for pod in self.failed if pod.status.rejected)


def roster(pods: Iterable[Pod], assumed: Collection[str], schedulers: Collection[str]) -> Roster:
    """Sort pods by how they count; `assumed` are uids with a binding on its way, `schedulers` our scheduler names."""
    groups: dict[str, list[Pod]] = {}
    for pod in sorted(pods, key=age):
        groups.setdefault(_column(pod, assumed, schedulers), []).append(pod)
    return Roster(**{name: tuple(members) for name, members in groups.items()})


def age(pod: Pod) -> tuple[float, str, str]:
    """Sorts pods from the oldest to the youngest."""
    return (pod.created_seconds, pod.name, pod.uid)


def _column(pod: Pod, assumed: Collection[str], schedulers: Collection[str]) -> str:
    """The Roster field a pod belongs to."""
    if pod.status.phase is PodPhase.SUCCEEDED:
        return "succeeded"
    if pod.status.phase is PodPhase.FAILED:
        return "failed"
    if pod.deleting:
        return "deleting"
    if pod.spec.node_name or pod.uid in assumed:
        return "placed"
    if pod.spec.scheduler_name not in schedulers:
        return "foreign"
    if pod.spec.gated:
        return "gated"
    return "unsupported" if pod.spec.unsupported else "pending"
