"""PodSpec: what a pod asks for: amounts, where it may go, and when."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum

import msgspec

from model.node import Taint, TaintEffect
from model.pod.affinity import NOWHERE, Affinity, HostPort, SpreadConstraint
from model.priority import PreemptionPolicy
from model.queue import DEFAULT_QUEUE
from model.resources import ResourceVector
from model.workload import GangMembership


class TolerationOperator(StrEnum):
    """Whether a toleration names the taint's value; any other word counts as EQUAL."""

    EQUAL = "Equal"
    EXISTS = "Exists"


class Toleration(msgspec.Struct, frozen=True):
    """One toleration of taints."""

    key: str = ""
    """The taint's key; empty with operator Exists: all taints."""
    operator: TolerationOperator = TolerationOperator.EQUAL
    """EQUAL compares the value, EXISTS does not."""
    value: str = ""
    """The taint's value."""
    effect: TaintEffect | None = None
    """The taint's effect; None: every effect."""


class Tolerations:
    """Kubernetes' rule: any toleration that matches effect, key and value. A taint is looked up, however many
    tolerations there are.
    """

    def __init__(self, tolerations: Iterable[Toleration]) -> None:
        exists = TolerationOperator.EXISTS
        told = tuple(tolerations)
        self._keys = {(each.effect, each.key) for each in told if each.operator is exists}
        self._values = {(each.effect, each.key, each.value) for each in told if each.operator is not exists}

    def allow(self, taint: Taint) -> bool:
        """Whether the taint is tolerated; an empty key with Exists tolerates all, with Equal none."""
        key, value = taint.key, taint.value
        return any(
            (effect, key) in self._keys
            or (effect, "") in self._keys
            or (bool(key) and (effect, key, value) in self._values)
            for effect in (None, taint.effect)
        )


class Container(msgspec.Struct, frozen=True):
    """A container with its own requests and limits."""

    name: str
    """As in spec.containers and spec.initContainers."""
    requests: ResourceVector = ResourceVector()
    """resources.requests in base units."""
    limits: ResourceVector = ResourceVector()
    """resources.limits in base units."""
    sidecar: bool = False
    """An init container that keeps running."""


class PodSpec(msgspec.Struct, frozen=True):
    """What a pod asks for; fields that the scheduler alone reads are empty in an agent."""

    requests: ResourceVector = ResourceVector()
    """Kubernetes' effective request in base units: containers, sidecars, init maximum, overhead; while it is resized in
    place the most of what is wanted, promised and in force."""
    certain: ResourceVector | None = None
    """The least of these while it is resized, None while it is not."""
    limits: ResourceVector = ResourceVector()
    """What the containers may use together, in base units."""
    scored: ResourceVector = ResourceVector()
    """The request as scores count it: a container without one counts 100 milli-CPU and 200 MB, as in kube-scheduler."""
    containers: tuple[Container, ...] = ()
    """The regular containers."""
    init_containers: tuple[Container, ...] = ()
    """The containers before those, sidecars included."""
    node_name: str = ""
    """The node that it is bound to, empty while it waits."""
    scheduler_name: str = ""
    """Which scheduler is to place it."""
    plain: bool = False
    """It is placed as kube-scheduler places it, whatever it says of gangs and of its load."""
    gated: bool = False
    """It has spec.schedulingGates: nobody places it yet."""
    queue: str = DEFAULT_QUEUE
    """The queue that it waits in: its own word, else its PodGroup's, else that of its namespace."""
    named_queue: str = ""
    """The queue that it names itself, empty where it names none."""
    local_queue: str = ""
    """Kueue's LocalQueue that it names, which counts before where a queue has that name."""
    named_flavors: tuple[tuple[str, str], ...] = ()
    """The flavour of each resource that its queue gave it when it was placed, by its own word."""
    flavors: tuple[tuple[str, str], ...] = ()
    """Resource and flavour: what its amounts count to in its queue, where that counts by flavours."""
    charged_queue: str | None = None
    """The queue that its PodGroup or its maker named when it was bound, empty for none; None where nobody wrote it."""
    gang: GangMembership | None = None
    """The gang that it belongs to."""
    task: str = ""
    """The task of its gang that it does, where the gang tells tasks apart."""
    rank: int = -1
    """Its index in the gang's topology, else among its Job's or StatefulSet's pods; -1 without one."""
    priority: int = 0
    """spec.priority."""
    preemption_policy: PreemptionPolicy = PreemptionPolicy.LOWER
    """Whom it may preempt."""
    node_selector: Mapping[str, str] = {}
    """Labels that its node must have."""
    affinity: Affinity = NOWHERE
    """What it asks of nodes, and of the pods on them."""
    spread: tuple[SpreadConstraint, ...] = ()
    """spec.topologySpreadConstraints."""
    tolerations: tuple[Toleration, ...] = ()
    """Taints that do not keep it from a node."""
    host_ports: tuple[HostPort, ...] = ()
    """Ports of the node that it listens on."""
    host_network: bool = False
    """It lives in the node's own network."""
    claims: tuple[str, ...] = ()
    """Names of PersistentVolumeClaims in its namespace."""
    unsupported: tuple[str, ...] = ()
    """Fields with constraints that this version cannot honour: such a pod is never placed by guesswork."""
    grace_seconds: float = 30.0
    """How long it may take to end (spec.terminationGracePeriodSeconds)."""
    deadline_seconds: float | None = None
    """How long it may run at most (spec.activeDeadlineSeconds), None without end."""
