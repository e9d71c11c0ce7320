"""Pod: what Sublet needs to know of one, already translated from Kubernetes' and Koordinator's words."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

import msgspec

from model.affinity import NOWHERE, Affinity, HostPort, SpreadConstraint
from model.priority import PreemptionPolicy
from model.qos import KubernetesQoS, PriorityBand, QoSClass
from model.queue import DEFAULT_QUEUE
from model.resources import ResourceVector
from model.workload import GangMembership, WorkloadId


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


class LoadTerms(msgspec.Struct, frozen=True, cache_hash=True):
    """A pod's own words on how its use is estimated before it is measured (Koordinator loadaware annotations).

    `scaling_pct` is (resource, percent of its request); seconds after scheduling or initialisation during which the
    estimate stands in for a measurement, None where the settings decide.
    """

    scaling_pct: tuple[tuple[str, int], ...] = ()
    after_scheduled_seconds: float | None = None
    after_initialized_seconds: float | None = None


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
    `band` is the band with default, `below_prod` whether its own words make it one of mid, batch or free.
    Times are Unix seconds. `container_ids` are the runtime's ids by container name, without the `runtime://` prefix.
    `cgroup_uid` names the pod's cgroup: the uid, or the configuration hash of a static pod's mirror.
    `numa_zones` and `cpuset` are what the scheduler pinned the pod to (Koordinator resource-status); empty: nothing.
    `containers` are the regular ones, `init_containers` those before them, sidecars included.
    `grace_seconds` is how long it may take to end (terminationGracePeriodSeconds).
    `unsupported` names constraints this version cannot honour: such a pod is never placed by guesswork.
    `queue` is the one that it waits in; all wait in one while nothing reads queues.
    `limits` is what the containers may use together, `scored` the request with kube-scheduler's defaults for scoring
    (a container that asks for no CPU counts 100 milli, for no memory 200 MB). `claims` are PersistentVolumeClaims in
    its namespace. `preemptible` is False where a label protects it; `disrupted` where it carries DisruptionTarget of
    a preemption; `rejected` is why the kubelet refused it (status.reason of such a failed pod). `nominated_node` is
    status.nominatedNodeName. `scheduled_seconds`, `started_seconds` and `initialized_seconds` are when it was bound,
    when it started to run and when its init containers were through, 0 before; `owned` whether a controller would
    replace it (`owner`, as `namespace/name`), `daemon` whether a DaemonSet would. `rank` is its index in a topology, -1
    without one. `plain`: it is placed as kube-scheduler places it, whatever it says of gangs and of its load.
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
    below_prod: bool = False
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
    queue: str = DEFAULT_QUEUE
    container_ids: Mapping[str, str] = {}
    cgroup_uid: str = ""
    host_network: bool = False
    numa_zones: tuple[int, ...] = ()
    cpuset: str = ""
    unsupported: tuple[str, ...] = ()
    init_containers: tuple[Container, ...] = ()
    eviction: EvictionTerms = EvictionTerms()
    grace_seconds: float = 30.0
    labels: Mapping[str, str] = {}
    limits: ResourceVector = ResourceVector()
    scored: ResourceVector = ResourceVector()
    affinity: Affinity = NOWHERE
    spread: tuple[SpreadConstraint, ...] = ()
    host_ports: tuple[HostPort, ...] = ()
    claims: tuple[str, ...] = ()
    preemption_policy: PreemptionPolicy = PreemptionPolicy.LOWER
    preemptible: bool = True
    disrupted: bool = False
    rejected: str = ""
    nominated_node: str = ""
    scheduled_seconds: float = 0.0
    started_seconds: float = 0.0
    initialized_seconds: float = 0.0
    owned: bool = False
    owner: str = ""
    daemon: bool = False
    rank: int = -1
    load: LoadTerms = LoadTerms()
    plain: bool = False

    @property
    def key(self) -> str:
        """`namespace/name`."""
        return f"{self.namespace}/{self.name}"

    @property
    def own_workload(self) -> WorkloadId:
        """Its gang by itself, whatever group that is in; the pod where it has none."""
        return WorkloadId.pod(self.key) if self.gang is None else WorkloadId.gang(self.gang.key)

    @property
    def terminal(self) -> bool:
        """The pod holds no resources any more."""
        return self.phase in (PodPhase.SUCCEEDED, PodPhase.FAILED)

    @property
    def borrows(self) -> bool:
        """Lives on what is lent, as batch or as mid, where its kubelet keeps it below the best-effort root."""
        return self.qos_label is QoSClass.BE or self.band is PriorityBand.MID

    @property
    def best_effort(self) -> bool:
        """Suppressed as batch work: label BE, or Kubernetes class BestEffort (Koordinator's rule for suppression)."""
        return self.qos_label is QoSClass.BE or self.kubernetes_qos is KubernetesQoS.BEST_EFFORT
