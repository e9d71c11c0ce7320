"""A pod and its containers as their status shows them: values only, and what follows from them at once."""

from __future__ import annotations

from datetime import datetime

import msgspec

from embedded.kubernetes_qos import KubernetesQoS
from embedded.node.objects.pod import HOST_ADDRESS, Resources
from embedded.node.pods.admission import Rejection

# Of a run whose end nobody saw: as if it had been killed.
LOST_EXIT_CODE = 137


class Waiting(msgspec.Struct, frozen=True):
    """Not running now: not yet started, backing off, or refused."""

    reason: str = "ContainerCreating"
    message: str = ""


class Running(msgspec.Struct, frozen=True):
    started_at: datetime


class Terminated(msgspec.Struct, frozen=True):
    """The end of one run; times are None for a run that never began."""

    exit_code: int
    reason: str
    finished_at: datetime | None
    started_at: datetime | None = None
    container_id: str = ""
    message: str = ""


State = Waiting | Running | Terminated


class ContainerView(msgspec.Struct, frozen=True):
    """One container as its status shows it; `last` is the run before the current state.

    `allocated` is what it may have, `resources` what it has; a node that says neither resizes nothing.
    """

    name: str
    image: str
    state: State = Waiting()
    last: Terminated | None = None
    restart_count: int = 0
    container_id: str = ""
    ready: bool = False
    started: bool = False
    sidecar: bool = False
    allocated: Resources | None = None
    resources: Resources | None = None

    @property
    def running(self) -> bool:
        return isinstance(self.state, Running)

    @property
    def ended(self) -> Terminated | None:
        """The end that counts: the current one, or the last while waiting to start again."""
        if isinstance(self.state, Terminated):
            return self.state
        return self.last if isinstance(self.state, Waiting) else None


class Gate(msgspec.Struct, frozen=True):
    """A condition that somebody else sets and readiness waits for; None: it is not there."""

    condition: str
    status: str | None


class ResizeView(msgspec.Struct, frozen=True):
    """How far a resize is; `told`: a condition of it may be in the pod's status, and is to go."""

    pending: Rejection | None = None
    in_progress: Rejection | None = None
    told: bool = False


class PodView(msgspec.Struct, frozen=True):
    """All that a pod's status is made of. `made`: its volumes are there. `over`: no container will ever start again.

    `disruption` is the message of a pod that this node evicts.
    """

    qos: KubernetesQoS
    started_at: datetime
    containers: tuple[ContainerView, ...]
    init_containers: tuple[ContainerView, ...] = ()
    ephemeral_containers: tuple[ContainerView, ...] = ()
    made: bool = True
    over: bool = False
    failure: Rejection | None = None
    disruption: str = ""
    gates: tuple[Gate, ...] = ()
    resize: ResizeView = ResizeView()
    address: str = HOST_ADDRESS
    host_address: str = HOST_ADDRESS

    @property
    def initialized(self) -> bool:
        return all(initialized(view) for view in self.init_containers)

    @property
    def unready(self) -> list[str]:
        """Containers and sidecars that are not ready, in the kubelet's order."""
        sidecars = (each for each in self.init_containers if each.sidecar)
        return [each.name for each in (*sidecars, *self.containers) if not each.ready]


def succeeded(view: ContainerView) -> bool:
    """Ended well, and for now for good."""
    return isinstance(view.state, Terminated) and view.state.exit_code == 0


def initialized(view: ContainerView) -> bool:
    """A sidecar counts from its first start on, also while it starts again."""
    if view.sidecar:
        return view.started or view.ended is not None or view.restart_count > 0
    return succeeded(view)
