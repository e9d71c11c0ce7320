"""Typed views of Kubernetes objects: only the fields Sublet reads, everything optional, unknown fields skipped.

Decoding with msgspec into these is 70 to 400 times cheaper than the official client's models and keeps no more
than what is used. A missing list or map is an empty one, whether the server omits it or sends null.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

import msgspec

from model.condition import ConditionStatus

Int32 = Annotated[int, msgspec.Meta(ge=-(1 << 31), lt=1 << 31)]
Time = Annotated[datetime, msgspec.Meta(tz=True)]
_LAST_SECOND = 253_402_300_799.0
"""Of the year 9999 in UTC. Where users write times, a time zone may put them behind it, or before the year 1."""


def unix_seconds(time: datetime | None) -> float:
    """What can be written as a time again; 0 for none, and for what is before 1970."""
    return min(max(time.timestamp(), 0.0), _LAST_SECOND) if time else 0.0


class OwnerReference(msgspec.Struct, frozen=True, rename="camel"):
    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None


class Metadata(msgspec.Struct, frozen=True, rename="camel"):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    creation_timestamp: Time | None = None
    deletion_timestamp: Time | None = None
    owner_references: list[OwnerReference] | None = None
    generate_name: str = ""


Quantities = dict[str, str | int | float]


class Resources(msgspec.Struct, frozen=True):
    requests: Quantities | None = None
    limits: Quantities | None = None


Port = Annotated[int, msgspec.Meta(ge=0, le=65_535)]


class ContainerPort(msgspec.Struct, frozen=True, rename="camel"):
    container_port: Port = 0
    host_port: Port | None = None
    protocol: str = ""
    host_ip: str = msgspec.field(name="hostIP", default="")


class Container(msgspec.Struct, frozen=True, rename="camel"):
    name: str = ""
    resources: Resources | None = None
    restart_policy: str | None = None
    ports: list[ContainerPort] | None = None


class Toleration(msgspec.Struct, frozen=True):
    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""


class ClaimSource(msgspec.Struct, frozen=True, rename="camel"):
    claim_name: str = ""


class PodVolume(msgspec.Struct, frozen=True, rename="camel"):
    """`ephemeral` asks for a claim of the pod's own, named after the pod and the volume."""

    name: str = ""
    persistent_volume_claim: ClaimSource | None = None
    ephemeral: dict[str, Any] | None = None


class SchedulingGroup(msgspec.Struct, frozen=True, rename="camel"):
    pod_group_name: str | None = None


class PodSpec(msgspec.Struct, frozen=True, rename="camel"):
    containers: list[Container] = []
    init_containers: list[Container] | None = None
    resources: Resources | None = None
    overhead: Quantities | None = None
    node_name: str = ""
    node_selector: dict[str, str] | None = None
    scheduler_name: str = ""
    priority: Int32 | None = None
    tolerations: list[Toleration] | None = None
    preemption_policy: str | None = None
    affinity: dict[str, Any] | None = None
    topology_spread_constraints: list[dict[str, Any]] | None = None
    scheduling_gates: list[dict[str, Any]] | None = None
    scheduling_group: SchedulingGroup | None = None
    volumes: list[PodVolume] | None = None
    resource_claims: list[dict[str, Any]] | None = None
    host_network: bool = False
    termination_grace_period_seconds: int | None = None
    active_deadline_seconds: int | None = None


class Condition(msgspec.Struct, frozen=True, rename="camel"):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_heartbeat_time: str | None = None
    last_transition_time: str | None = None

    @property
    def met(self) -> bool:
        """Whether its status is True; Unknown is not."""
        return self.status == ConditionStatus.TRUE


class ContainerStatus(msgspec.Struct, frozen=True, rename="camel"):
    name: str = ""
    container_id: str = msgspec.field(name="containerID", default="")
    allocated_resources: Quantities | None = None
    resources: Resources | None = None


class PodStatus(msgspec.Struct, frozen=True, rename="camel"):
    phase: str = ""
    qos_class: str = ""
    reason: str = ""
    conditions: list[Condition] | None = None
    container_statuses: list[ContainerStatus] | None = None
    init_container_statuses: list[ContainerStatus] | None = None
    nominated_node_name: str = ""
    start_time: Time | None = None
    allocated_resources: Quantities | None = None
    resources: Resources | None = None


class Pod(msgspec.Struct, frozen=True):
    metadata: Metadata = Metadata()
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()


class Taint(msgspec.Struct, frozen=True):
    key: str = ""
    value: str = ""
    effect: str = ""


class NodeSpec(msgspec.Struct, frozen=True):
    taints: list[Taint] | None = None
    unschedulable: bool = False


class NodeStatus(msgspec.Struct, frozen=True):
    capacity: Quantities | None = None
    allocatable: Quantities | None = None
    conditions: list[Condition] | None = None


class Node(msgspec.Struct, frozen=True):
    metadata: Metadata = Metadata()
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


class PodGroupSpec(msgspec.Struct, frozen=True, rename="camel"):
    """Untyped where a lax definition lets anything in: the koordinator dialect names what is wrong."""

    min_member: Any = None
    schedule_timeout_seconds: Any = None


class PodGroupStatus(msgspec.Struct, frozen=True, rename="camel"):
    phase: str = ""
    scheduled: int = 0
    running: int = 0
    succeeded: int = 0
    failed: int = 0
    occupied_by: str = ""
    schedule_start_time: Annotated[datetime, msgspec.Meta(tz=True)] | None = None


class PodGroup(msgspec.Struct, frozen=True):
    metadata: Metadata = Metadata()
    spec: PodGroupSpec = PodGroupSpec()
    status: PodGroupStatus | None = None


class GangPolicy(msgspec.Struct, frozen=True, rename="camel"):
    min_count: Int32 = 0


class SchedulingPolicy(msgspec.Struct, frozen=True):
    basic: dict[str, Any] | None = None
    gang: GangPolicy | None = None


class TopologyConstraint(msgspec.Struct, frozen=True):
    key: str = ""


class SchedulingConstraints(msgspec.Struct, frozen=True):
    topology: list[TopologyConstraint] | None = None


class UpstreamPodGroupSpec(msgspec.Struct, frozen=True, rename="camel"):
    """`disruption_mode` is an object with one key since v1alpha3, a word before."""

    scheduling_policy: SchedulingPolicy = SchedulingPolicy()
    scheduling_constraints: SchedulingConstraints | None = None
    disruption_mode: dict[str, Any] | str | None = None
    priority: Int32 | None = None
    preemption_policy: str | None = None
    parent_composite_pod_group_name: str | None = None


class UpstreamPodGroupStatus(msgspec.Struct, frozen=True):
    conditions: list[Condition] | None = None


class UpstreamPodGroup(msgspec.Struct, frozen=True):
    """scheduling.k8s.io's own PodGroup (KEP-4671)."""

    metadata: Metadata = Metadata()
    spec: UpstreamPodGroupSpec = UpstreamPodGroupSpec()
    status: UpstreamPodGroupStatus | None = None


class VolcanoPodGroupStatus(msgspec.Struct, frozen=True):
    """Untyped where nobody reads it: another controller's conditions cannot make a gang unreadable."""

    phase: str = ""
    running: int = 0
    succeeded: int = 0
    failed: int = 0


class VolcanoPodGroup(msgspec.Struct, frozen=True):
    """Of scheduling.volcano.sh. `spec` stays untyped here, as a queue's: the gangs dialect names what is wrong."""

    metadata: Metadata = Metadata()
    spec: Any = None
    status: VolcanoPodGroupStatus | None = None


class Queue(msgspec.Struct, frozen=True):
    """Of sublet.dev. `spec` stays untyped here: the dialect of queues checks it and says what is wrong."""

    metadata: Metadata = Metadata()
    spec: Any = None
    status: Any = None


class VolcanoQueue(msgspec.Struct, frozen=True):
    """Of scheduling.volcano.sh; the status says whether it is open."""

    metadata: Metadata = Metadata()
    spec: Any = None
    status: Any = None


class ElasticQuota(msgspec.Struct, frozen=True):
    """Of scheduling.sigs.k8s.io; labels and annotations of Koordinator say most of it."""

    metadata: Metadata = Metadata()
    spec: Any = None
    status: Any = None


class ElasticQuotaProfile(msgspec.Struct, frozen=True):
    """Of quota.koordinator.sh: an ElasticQuota that is kept at what some nodes have."""

    metadata: Metadata = Metadata()
    spec: Any = None


class ClusterQueue(msgspec.Struct, frozen=True):
    """Of kueue.x-k8s.io, either version, as the five kinds after it; the dialect of queues checks their specs."""

    metadata: Metadata = Metadata()
    spec: Any = None
    status: Any = None


class Cohort(msgspec.Struct, frozen=True):
    metadata: Metadata = Metadata()
    spec: Any = None
    status: Any = None


class LocalQueue(msgspec.Struct, frozen=True):
    metadata: Metadata = Metadata()
    spec: Any = None
    status: Any = None


class ResourceFlavor(msgspec.Struct, frozen=True):
    metadata: Metadata = Metadata()
    spec: Any = None


class WorkloadPriorityClass(msgspec.Struct, frozen=True):
    metadata: Metadata = Metadata()
    value: Any = None


class Topology(msgspec.Struct, frozen=True):
    metadata: Metadata = Metadata()
    spec: Any = None


class TopologyLayer(msgspec.Struct, frozen=True, rename="camel"):
    topology_layer: str = ""
    parent_topology_layer: str = ""
    label_key: list[str] | None = None


class ClusterNetworkTopologySpec(msgspec.Struct, frozen=True, rename="camel"):
    network_topology_spec: list[TopologyLayer] | None = None


class ClusterNetworkTopology(msgspec.Struct, frozen=True):
    metadata: Metadata = Metadata()
    spec: ClusterNetworkTopologySpec = ClusterNetworkTopologySpec()


class Namespace(msgspec.Struct, frozen=True):
    metadata: Metadata = Metadata()


class PriorityClass(msgspec.Struct, frozen=True, rename="camel"):
    metadata: Metadata = Metadata()
    value: Int32 = 0
    global_default: bool = False
    preemption_policy: str | None = None


class DisruptionBudgetSpec(msgspec.Struct, frozen=True):
    """`selector` is untyped here: the budget dialect names what cannot be read."""

    selector: dict[str, Any] | None = None


class DisruptionBudgetStatus(msgspec.Struct, frozen=True, rename="camel"):
    disruptions_allowed: Int32 = 0
    disrupted_pods: dict[str, Any] | None = None


class PodDisruptionBudget(msgspec.Struct, frozen=True):
    metadata: Metadata = Metadata()
    spec: DisruptionBudgetSpec = DisruptionBudgetSpec()
    status: DisruptionBudgetStatus | None = None


class ClaimSpec(msgspec.Struct, frozen=True, rename="camel"):
    volume_name: str = ""


class PersistentVolumeClaim(msgspec.Struct, frozen=True):
    metadata: Metadata = Metadata()
    spec: ClaimSpec = ClaimSpec()


class VolumeNodeAffinity(msgspec.Struct, frozen=True):
    required: dict[str, Any] | None = None


class VolumeSpec(msgspec.Struct, frozen=True, rename="camel"):
    node_affinity: VolumeNodeAffinity | None = None


class PersistentVolume(msgspec.Struct, frozen=True):
    metadata: Metadata = Metadata()
    spec: VolumeSpec = VolumeSpec()


class NodeSLO(msgspec.Struct, frozen=True):
    """`spec` stays untyped here: the koordinator dialect checks it field by field and names what is wrong."""

    metadata: Metadata = Metadata()
    spec: Any = None


class ClusterColocationProfile(msgspec.Struct, frozen=True):
    """`spec` stays untyped here: the profiles dialect reads it part by part and says what is wrong."""

    metadata: Metadata = Metadata()
    spec: Any = None


class _JobObject(msgspec.Struct, frozen=True):
    """`spec` is the bytes of JSON as they came: as a tree of values it would take up to 24 times their memory, for
    each job that there is. The jobs dialect reads it, and `status`, and names what is wrong.
    """

    metadata: Metadata = Metadata()
    spec: msgspec.Raw = msgspec.Raw(b"")
    status: Any = None

    def __post_init__(self) -> None:
        """Bytes of our own: those that were read are a part of the whole answer, which would be kept with them."""
        msgspec.structs.force_setattr(self, "spec", self.spec.copy())


class TrainingJob(_JobObject, frozen=True):
    """Of sublet.dev."""


class VolcanoJob(_JobObject, frozen=True):
    """Volcano's Job (batch.volcano.sh/v1alpha1)."""


class VolcanoCommand(msgspec.Struct, frozen=True):
    """Of bus.volcano.sh: an action to be done once to `target`."""

    metadata: Metadata = Metadata()
    action: str = ""
    target: OwnerReference | None = None


class Workload(_JobObject, frozen=True):
    """Of kueue.x-k8s.io: a job that waits whole; the dialect of suspended jobs reads it."""


class UnreadJob(_JobObject, frozen=True):
    """A job of any kind that waits whole."""


class UntypedObject(msgspec.Struct, frozen=True):
    """An object of which parts are copied as they are, so that nothing of it is typed."""

    metadata: Metadata = Metadata()
    spec: Any = None
    status: Any = None


class ConfigMap(msgspec.Struct, frozen=True):
    metadata: Metadata = Metadata()
    data: dict[str, str] | None = None


class NodeResourceTopology(msgspec.Struct, frozen=True):
    """Its annotations say what is known of CPUs."""

    metadata: Metadata = Metadata()


class NodeMetric(msgspec.Struct, frozen=True):
    """`spec` and `status` stay untyped here, as a NodeSLO's; the nodemetric dialect reads the status into the below."""

    metadata: Metadata = Metadata()
    spec: Any = None
    status: Any = None


class ResourceMap(msgspec.Struct, frozen=True):
    resources: dict[str, Any] | None = None


class AggregatedUsageInfo(msgspec.Struct, frozen=True):
    usage: dict[str, ResourceMap] | None = None
    duration: str = ""


class NumaUsageInfo(msgspec.Struct, frozen=True, rename="camel"):
    numa_node_id: Annotated[int, msgspec.Meta(ge=0, lt=1 << 31)] = msgspec.field(name="numaNodeID", default=0)
    node_usage: ResourceMap | None = None
    system_usage: ResourceMap | None = None


class NodeMetricInfo(msgspec.Struct, frozen=True, rename="camel"):
    node_usage: ResourceMap | None = None
    system_usage: ResourceMap | None = None
    aggregated_node_usages: list[AggregatedUsageInfo] | None = None
    aggregated_system_usages: list[AggregatedUsageInfo] | None = None
    numa_usages: list[NumaUsageInfo] | None = None


class PodMetricInfo(msgspec.Struct, frozen=True, rename="camel"):
    namespace: str = ""
    name: str = ""
    pod_usage: ResourceMap | None = None
    priority: str = ""
    qos: str = ""


class HostApplicationMetricInfo(msgspec.Struct, frozen=True):
    name: str = ""
    usage: ResourceMap | None = None
    priority: str = ""
    qos: str = ""


class PredictedMetric(msgspec.Struct, frozen=True):
    resource: ResourceMap | None = None


class NodeMetricStatus(msgspec.Struct, frozen=True, rename="camel"):
    update_time: Time | None = None
    node_metric: NodeMetricInfo | None = None
    pods_metric: list[PodMetricInfo | None] | None = None
    host_application_metric: list[HostApplicationMetricInfo | None] | None = None
    prod_reclaimable_metric: PredictedMetric | None = None
    prod_peak_metric: PredictedMetric | None = None


class LeaseSpec(msgspec.Struct, frozen=True, rename="camel"):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None


class Lease(msgspec.Struct, frozen=True):
    metadata: Metadata = Metadata()
    spec: LeaseSpec = LeaseSpec()


class PodTemplate(msgspec.Struct, frozen=True):
    metadata: Metadata = Metadata()


class JobSpec(msgspec.Struct, frozen=True):
    """Of a Job, or of the template of one in a definition of others: there numbers may be anything."""

    parallelism: Any = None
    completions: Any = None
    template: PodTemplate = PodTemplate()
    active_deadline_seconds: Any = msgspec.field(name="activeDeadlineSeconds", default=None)


class JobStatus(msgspec.Struct, frozen=True, rename="camel"):
    succeeded: int = 0
    failed_indexes: str = ""


class Job(msgspec.Struct, frozen=True):
    """Of batch: how many pods it makes at once, and how many are through."""

    metadata: Metadata = Metadata()
    spec: JobSpec = JobSpec()
    status: JobStatus = JobStatus()


class JobTemplate(msgspec.Struct, frozen=True):
    spec: JobSpec = JobSpec()


class ReplicatedJob(msgspec.Struct, frozen=True, rename="camel"):
    name: str = ""
    replicas: Any = None
    depends_on: Any = None
    template: JobTemplate = JobTemplate()


class JobSetStartup(msgspec.Struct, frozen=True, rename="camel"):
    startup_policy_order: str = ""


class JobSetSpec(msgspec.Struct, frozen=True, rename="camel"):
    replicated_jobs: list[ReplicatedJob] | None = None
    startup_policy: JobSetStartup | None = None


class JobSet(msgspec.Struct, frozen=True):
    """Of jobset.x-k8s.io: Jobs that belong together."""

    metadata: Metadata = Metadata()
    spec: JobSetSpec = JobSetSpec()


class LeaderWorkerSetSpec(msgspec.Struct, frozen=True, rename="camel"):
    startup_policy: str = ""


class LeaderWorkerSet(msgspec.Struct, frozen=True):
    """Of leaderworkerset.x-k8s.io; a pod says itself how large its group is."""

    metadata: Metadata = Metadata()
    spec: LeaderWorkerSetSpec = LeaderWorkerSetSpec()


class TrainingReplicas(msgspec.Struct, frozen=True):
    replicas: Any = None


class TrainingSchedulingPolicy(msgspec.Struct, frozen=True, rename="camel"):
    min_available: Any = None
    queue: str = ""


class TrainingRunPolicy(msgspec.Struct, frozen=True, rename="camel"):
    scheduling_policy: TrainingSchedulingPolicy | None = None


class PyTorchJobSpec(msgspec.Struct, frozen=True, rename="camel"):
    pytorch_replica_specs: dict[str, TrainingReplicas] | None = None
    run_policy: TrainingRunPolicy | None = None


class PyTorchJob(msgspec.Struct, frozen=True):
    """Of kubeflow.org."""

    metadata: Metadata = Metadata()
    spec: PyTorchJobSpec = PyTorchJobSpec()


class CompositeGangPolicy(msgspec.Struct, frozen=True, rename="camel"):
    min_group_count: Int32 = 0


class CompositePolicy(msgspec.Struct, frozen=True):
    basic: dict[str, Any] | None = None
    gang: CompositeGangPolicy | None = None


class CompositePodGroupSpec(msgspec.Struct, frozen=True, rename="camel"):
    parent_composite_pod_group_name: str | None = None
    scheduling_policy: CompositePolicy = CompositePolicy()
    scheduling_constraints: SchedulingConstraints | None = None


class CompositePodGroup(msgspec.Struct, frozen=True):
    """Of scheduling.k8s.io: pod groups grouped together (KEP-6012)."""

    metadata: Metadata = Metadata()
    spec: CompositePodGroupSpec = CompositePodGroupSpec()
