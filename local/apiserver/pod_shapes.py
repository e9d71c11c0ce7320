"""Types of the fields of metadata and pods that this server reads."""

import msgspec

from local.apiserver.objects import Object


class Shape(msgspec.Struct, rename="camel", gc=False):
    """Base of all shapes: camelCase names, unnamed fields ignored."""


Texts = dict[str, str]
Amounts = dict[str, str | int | float]


class OwnerReference(Shape):
    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class Metadata(Shape):
    name: str | None = None
    generate_name: str | None = None
    namespace: str | None = None
    uid: str | None = None
    resource_version: str | None = None
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None
    generation: int | None = None
    labels: Texts | None = None
    annotations: Texts | None = None
    finalizers: list[str] | None = None
    owner_references: list[OwnerReference] | None = None


class Condition(Shape):
    type: str
    status: str
    reason: str | None = None
    message: str | None = None


class Expression(Shape):
    key: str
    operator: str
    values: list[str] | None = None


class LabelSelector(Shape):
    match_labels: Texts | None = None
    match_expressions: list[Expression] | None = None


class Resources(Shape):
    limits: Amounts | None = None
    requests: Amounts | None = None


class Port(Shape):
    container_port: int | None = None
    protocol: str | None = None
    name: str | None = None
    host_port: int | None = None


class FieldReference(Shape):
    field_path: str | None = None
    api_version: str | None = None


class ResourceFieldReference(Shape):
    resource: str | None = None
    divisor: str | int | float | None = None


class EnvironmentSource(Shape):
    field_ref: FieldReference | None = None
    resource_field_ref: ResourceFieldReference | None = None


class Environment(Shape):
    name: str
    value: str | None = None
    value_from: EnvironmentSource | None = None


class Mount(Shape):
    name: str
    mount_path: str | None = None


class Container(Shape):
    name: str | None = None
    image: str | None = None
    image_pull_policy: str | None = None
    command: list[str] | None = None
    args: list[str] | None = None
    env: list[Environment] | None = None
    ports: list[Port] | None = None
    resources: Resources | None = None
    volume_mounts: list[Mount] | None = None
    liveness_probe: Object | None = None
    readiness_probe: Object | None = None
    startup_probe: Object | None = None
    restart_policy: str | None = None


class EmptyDirectory(Shape):
    size_limit: str | int | float | None = None


class Volume(Shape):
    name: str | None = None
    empty_dir: EmptyDirectory | None = None
    secret: Object | None = None
    config_map: Object | None = None
    projected: Object | None = None
    host_path: Object | None = None


class Toleration(Shape):
    key: str | None = None
    operator: str | None = None
    value: str | None = None
    effect: str | None = None
    toleration_seconds: int | None = None


class Gate(Shape):
    name: str


class PodSpec(Shape):
    containers: list[Container] | None = None
    init_containers: list[Container] | None = None
    volumes: list[Volume] | None = None
    tolerations: list[Toleration] | None = None
    node_selector: Texts | None = None
    node_name: str | None = None
    priority_class_name: str | None = None
    priority: int | None = None
    preemption_policy: str | None = None
    restart_policy: str | None = None
    scheduler_name: str | None = None
    service_account_name: str | None = None
    termination_grace_period_seconds: int | None = None
    active_deadline_seconds: int | None = None
    host_network: bool | None = None
    security_context: Object | None = None
    overhead: Amounts | None = None
    scheduling_gates: list[Gate] | None = None
    readiness_gates: list[Object] | None = None
    affinity: Object | None = None


class ContainerStatus(Shape):
    name: str
    ready: bool | None = None
    restart_count: int | None = None
    state: Object | None = None
    last_state: Object | None = None


class PodStatus(Shape):
    phase: str | None = None
    reason: str | None = None
    message: str | None = None
    conditions: list[Condition] | None = None
    container_statuses: list[ContainerStatus] | None = None
    init_container_statuses: list[ContainerStatus] | None = None
    pod_ip: str | None = msgspec.field(default=None, name="podIP")
    nominated_node_name: str | None = None


class Pod(Shape):
    metadata: Metadata | None = None
    spec: PodSpec | None = None
    status: PodStatus | None = None
