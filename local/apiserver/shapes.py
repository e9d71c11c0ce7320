"""Types of the fields this server reads, so that no later step meets a list where it expects a map.

Only fields that defaulting, validation, printing or a controller touch are named; everything else in an object
passes through unread.
"""

import msgspec

from local.apiserver.definition_shapes import Definition
from local.apiserver.objects import Object
from local.apiserver.pod_shapes import Amounts, Condition, LabelSelector, Metadata, Pod, PodSpec, Shape, Texts
from local.apiserver.registry import ResourceType
from local.apiserver.status import bad_request


class Taint(Shape):
    key: str
    effect: str
    value: str | None = None


class NodeSpec(Shape):
    taints: list[Taint] | None = None
    unschedulable: bool | None = None


class Address(Shape):
    type: str
    address: str


class Endpoint(Shape):
    port: int = msgspec.field(name="Port")


class DaemonEndpoints(Shape):
    kubelet_endpoint: Endpoint | None = None


class NodeStatus(Shape):
    capacity: Amounts | None = None
    allocatable: Amounts | None = None
    conditions: list[Condition] | None = None
    addresses: list[Address] | None = None
    node_info: Object | None = None
    daemon_endpoints: DaemonEndpoints | None = None


class Node(Shape):
    metadata: Metadata | None = None
    spec: NodeSpec | None = None
    status: NodeStatus | None = None


class NamespaceSpec(Shape):
    finalizers: list[str] | None = None


class Namespace(Shape):
    metadata: Metadata | None = None
    spec: NamespaceSpec | None = None
    status: Object | None = None


class ConfigMap(Shape):
    metadata: Metadata | None = None
    data: Texts | None = None
    binary_data: Texts | None = None
    immutable: bool | None = None


class Secret(Shape):
    metadata: Metadata | None = None
    type: str | None = None
    data: Texts | None = None
    string_data: Texts | None = None
    immutable: bool | None = None


class PriorityClass(Shape):
    metadata: Metadata | None = None
    value: int | None = None
    global_default: bool | None = None
    preemption_policy: str | None = None
    description: str | None = None


class BudgetSpec(Shape):
    min_available: int | str | None = None
    max_unavailable: int | str | None = None
    selector: LabelSelector | None = None
    unhealthy_pod_eviction_policy: str | None = None


class BudgetStatus(Shape):
    disruptions_allowed: int | None = None
    current_healthy: int | None = None
    desired_healthy: int | None = None
    expected_pods: int | None = None
    conditions: list[Condition] | None = None


class Budget(Shape):
    metadata: Metadata | None = None
    spec: BudgetSpec | None = None
    status: BudgetStatus | None = None


class PodTemplate(Shape):
    metadata: Metadata | None = None
    spec: PodSpec | None = None


class JobSpec(Shape):
    template: PodTemplate | None = None
    parallelism: int | None = None
    completions: int | None = None
    backoff_limit: int | None = None
    active_deadline_seconds: int | None = None
    ttl_seconds_after_finished: int | None = None
    completion_mode: str | None = None
    suspend: bool | None = None
    manual_selector: bool | None = None
    selector: LabelSelector | None = None


class JobStatus(Shape):
    active: int | None = None
    succeeded: int | None = None
    failed: int | None = None
    ready: int | None = None
    start_time: str | None = None
    completion_time: str | None = None
    conditions: list[Condition] | None = None


class Job(Shape):
    metadata: Metadata | None = None
    spec: JobSpec | None = None
    status: JobStatus | None = None


class LeaseSpec(Shape):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None


class Lease(Shape):
    metadata: Metadata | None = None
    spec: LeaseSpec | None = None


class ObjectReference(Shape):
    kind: str | None = None
    namespace: str | None = None
    name: str | None = None
    uid: str | None = None


class EventSource(Shape):
    component: str | None = None
    host: str | None = None


class Event(Shape):
    metadata: Metadata | None = None
    involved_object: ObjectReference | None = None
    reason: str | None = None
    message: str | None = None
    type: str | None = None
    count: int | None = None
    source: EventSource | None = None
    series: Object | None = None
    first_timestamp: str | None = None
    last_timestamp: str | None = None


class Service(Shape):
    metadata: Metadata | None = None
    spec: Object | None = None
    status: Object | None = None


class Plain(Shape):
    """Any object: only its metadata is typed."""

    metadata: Metadata | None = None


_SHAPES: dict[str, type[Shape]] = {
    "pods": Pod,
    "nodes": Node,
    "namespaces": Namespace,
    "configmaps": ConfigMap,
    "secrets": Secret,
    "events": Event,
    "services": Service,
    "jobs.batch": Job,
    "leases.coordination.k8s.io": Lease,
    "priorityclasses.scheduling.k8s.io": PriorityClass,
    "poddisruptionbudgets.policy": Budget,
    "customresourcedefinitions.apiextensions.k8s.io": Definition,
}


def check_shape(rtype: ResourceType, obj: Object) -> None:
    """Raise 400, naming the field, when a field this server reads has the wrong JSON type."""
    try:
        msgspec.convert(obj, _SHAPES.get(rtype.id, Plain))
    except msgspec.ValidationError as error:
        raise bad_request(
            f'{rtype.kind} in version "{rtype.version}" cannot be handled as a {rtype.kind}: '
            f"json: cannot unmarshal: {str(error).replace('$.', '.')}"
        ) from None
