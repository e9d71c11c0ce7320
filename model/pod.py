"""Pod: what Sublet needs to know of one, already translated from Kubernetes' and Koordinator's words."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

import msgspec

from model.qos import KubernetesQoS, PriorityBand, QoSClass
from model.resources import ResourceVector
from model.workload import GangMembership


class PodPhase(StrEnum):
    """status.phase; an unset phase is PENDING."""

    PENDING = "Pending"
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    UNKNOWN = "Unknown"


class Toleration(msgspec.Struct, frozen=True):
    """One toleration; empty `key` with operator Exists tolerates all, empty `effect` all effects."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""


class Container(msgspec.Struct, frozen=True):
    """A container with its own requests and limits; `sidecar` is an init container that keeps running."""

    name: str
    requests: ResourceVector = ResourceVector()
    limits: ResourceVector = ResourceVector()
    sidecar: bool = False


class EvictionTerms(msgspec.Struct, frozen=True):
    """What a pod itself says about being evicted (Koordinator apis/extension/evict.go, and our notice).

    `features` are the rules that may evict it, None: all. `sub_priority` is label koordinator.sh/priority, None without
    one. `notice_seconds` is how long before its end it wants to be told; 0: not at all.
    """

    enabled: bool = False
    features: frozenset[str] | None = None
    priority: int = 0
    sub_priority: int | None = None
    notice_seconds: float = 0.0


class Pod(msgspec.Struct, frozen=True):
    """One pod. `requests` is Kubernetes' effective request (containers, sidecars, init maximum, overhead).

    `qos_label` is the label as written (NONE when absent or unknown), `qos` the class with default.
    Times are Unix seconds. `container_ids` are the runtime's ids by container name, without the `runtime://` prefix.
    `cgroup_uid` names the pod's cgroup: the uid, or the configuration hash of a static pod's mirror.
    `numa_zones` and `cpuset` are what the scheduler pinned the pod to (Koordinator resource-status); empty: nothing.
    `containers` are the regular ones, `init_containers` those before them, sidecars included.
    `grace_seconds` is how long it may take to end (terminationGracePeriodSeconds).
    `unsupported` names constraints this version cannot honour: such a pod is never placed by guesswork.
    """

    namespace: str
    name: str
    uid: str
    requests: ResourceVector = ResourceVector()
    containers: tuple[Container, ...] = ()
    qos: QoSClass = QoSClass.LS
    qos_label: QoSClass = QoSClass.NONE
    kubernetes_qos: KubernetesQoS = KubernetesQoS.BURSTABLE
    band: PriorityBand = PriorityBand.PROD
    priority: int = 0
    phase: PodPhase = PodPhase.PENDING
    node_name: str = ""
    scheduler_name: str = ""
    gang: GangMembership | None = None
    node_selector: Mapping[str, str] = {}
    tolerations: tuple[Toleration, ...] = ()
    gated: bool = False
    deleting: bool = False
    created_seconds: float = 0.0
    container_ids: Mapping[str, str] = {}
    cgroup_uid: str = ""
    host_network: bool = False
    numa_zones: tuple[int, ...] = ()
    cpuset: str = ""
    unsupported: tuple[str, ...] = ()
    init_containers: tuple[Container, ...] = ()
    eviction: EvictionTerms = EvictionTerms()
    grace_seconds: float = 30.0

    @property
    def key(self) -> str:
        """`namespace/name`."""
        return f"{self.namespace}/{self.name}"

    @property
    def terminal(self) -> bool:
        """The pod holds no resources any more."""
        return self.phase in (PodPhase.SUCCEEDED, PodPhase.FAILED)

    @property
    def best_effort(self) -> bool:
        """Suppressed as batch work: label BE, or Kubernetes class BestEffort (Koordinator's rule for suppression)."""
        return self.qos_label is QoSClass.BE or self.kubernetes_qos is KubernetesQoS.BEST_EFFORT
