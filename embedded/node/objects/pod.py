"""The fields of a Pod and a Node that a kubelet reads."""

from __future__ import annotations

from typing import Any

import msgspec

HOST_ADDRESS = "127.0.0.1"
"""The node's, and that of pods with `hostNetwork`."""


Quantities = dict[str, str | int | float]


class Resources(msgspec.Struct, frozen=True):
    requests: Quantities | None = None
    limits: Quantities | None = None


class PodMetadata(msgspec.Struct, frozen=True, rename="camel"):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None


class EnvVar(msgspec.Struct, frozen=True, rename="camel"):
    name: str = ""
    value: str | None = None
    value_from: dict[str, dict[str, Any]] | None = None


class VolumeMount(msgspec.Struct, frozen=True, rename="camel"):
    name: str = ""
    mount_path: str = ""
    sub_path: str = ""
    sub_path_expr: str = ""
    read_only: bool | None = None


class ExecAction(msgspec.Struct, frozen=True):
    command: list[str] | None = None


class HeaderField(msgspec.Struct, frozen=True):
    name: str = ""
    value: str = ""


class HttpGetAction(msgspec.Struct, frozen=True, rename="camel"):
    port: int | str = 0
    path: str | None = None
    host: str | None = None
    scheme: str | None = None
    http_headers: list[HeaderField] | None = None


class TcpSocketAction(msgspec.Struct, frozen=True):
    port: int | str = 0
    host: str | None = None


class GrpcAction(msgspec.Struct, frozen=True):
    port: int = 0
    service: str | None = None


class SleepAction(msgspec.Struct, frozen=True):
    seconds: int = 0


class Handler(msgspec.Struct, frozen=True, rename="camel"):
    """One step of a container's lifecycle: exactly one of the fields is set."""

    exec: ExecAction | None = None
    http_get: HttpGetAction | None = None
    tcp_socket: TcpSocketAction | None = None
    grpc: GrpcAction | None = None
    sleep: SleepAction | None = None


class ProbeSpec(Handler, frozen=True, rename="camel"):
    initial_delay_seconds: int | None = None
    timeout_seconds: int | None = None
    period_seconds: int | None = None
    success_threshold: int | None = None
    failure_threshold: int | None = None
    termination_grace_period_seconds: int | None = None


class Lifecycle(msgspec.Struct, frozen=True, rename="camel"):
    post_start: Handler | None = None
    pre_stop: Handler | None = None


class ContainerPortSpec(msgspec.Struct, frozen=True, rename="camel"):
    name: str | None = None
    container_port: int = 0


class ReadinessGate(msgspec.Struct, frozen=True, rename="camel"):
    condition_type: str = ""


class CapabilityChange(msgspec.Struct, frozen=True):
    add: list[str] | None = None
    drop: list[str] | None = None


class Security(msgspec.Struct, frozen=True, rename="camel"):
    """A container's securityContext."""

    run_as_user: int | None = None
    run_as_group: int | None = None
    run_as_non_root: bool | None = None
    capabilities: CapabilityChange | None = None
    allow_privilege_escalation: bool | None = None
    read_only_root_filesystem: bool | None = None
    privileged: bool | None = None


class PodSecurity(msgspec.Struct, frozen=True, rename="camel"):
    """A pod's securityContext."""

    run_as_user: int | None = None
    run_as_group: int | None = None
    run_as_non_root: bool | None = None
    supplemental_groups: list[int] | None = None
    supplemental_groups_policy: str | None = None
    fs_group: int | None = None


class HostAlias(msgspec.Struct, frozen=True):
    ip: str = ""
    hostnames: list[str] | None = None


class ResizeRule(msgspec.Struct, frozen=True, rename="camel"):
    """Of a container's resizePolicy."""

    resource_name: str = ""
    restart_policy: str = ""


class PodContainer(msgspec.Struct, frozen=True, rename="camel"):
    name: str = ""
    image: str = ""
    command: list[str] | None = None
    args: list[str] | None = None
    env: list[EnvVar] | None = None
    env_from: list[dict[str, Any]] | None = None
    working_dir: str | None = None
    resources: Resources | None = None
    resize_policy: list[ResizeRule] | None = None
    volume_mounts: list[VolumeMount] | None = None
    restart_policy: str | None = None
    termination_message_path: str | None = None
    termination_message_policy: str | None = None
    ports: list[ContainerPortSpec] | None = None
    startup_probe: ProbeSpec | None = None
    readiness_probe: ProbeSpec | None = None
    liveness_probe: ProbeSpec | None = None
    lifecycle: Lifecycle | None = None
    security_context: Security | None = None
    stdin: bool | None = None
    stdin_once: bool | None = None
    tty: bool | None = None

    @property
    def sidecar(self) -> bool:
        """Of an init container: it is started in its turn and then runs beside the containers."""
        return self.restart_policy == "Always"


class Toleration(msgspec.Struct, frozen=True):
    key: str = ""
    operator: str = ""
    effect: str = ""


class KubeletPodSpec(msgspec.Struct, frozen=True, rename="camel"):
    containers: list[PodContainer] = []
    init_containers: list[PodContainer] | None = None
    ephemeral_containers: list[PodContainer] | None = None
    volumes: list[dict[str, Any]] | None = None
    restart_policy: str | None = None
    termination_grace_period_seconds: int | None = None
    active_deadline_seconds: int | None = None
    node_name: str = ""
    node_selector: dict[str, str] | None = None
    service_account_name: str | None = None
    hostname: str | None = None
    subdomain: str | None = None
    host_network: bool | None = None
    host_pid: bool | None = msgspec.field(name="hostPID", default=None)
    host_aliases: list[HostAlias] | None = None
    security_context: PodSecurity | None = None
    overhead: Quantities | None = None
    priority: int | None = None
    tolerations: list[Toleration] | None = None
    readiness_gates: list[ReadinessGate] | None = None


class RunningState(msgspec.Struct, frozen=True, rename="camel"):
    started_at: str | None = None


class TerminatedState(msgspec.Struct, frozen=True, rename="camel"):
    exit_code: int = 0
    reason: str = ""
    message: str = ""
    started_at: str | None = None
    finished_at: str | None = None
    container_id: str = msgspec.field(name="containerID", default="")


class WaitingState(msgspec.Struct, frozen=True):
    reason: str = ""
    message: str = ""


class AnyState(msgspec.Struct, frozen=True):
    running: RunningState | None = None
    terminated: TerminatedState | None = None
    waiting: WaitingState | None = None


class ReportedContainer(msgspec.Struct, frozen=True, rename="camel"):
    """One entry of status.containerStatuses as an earlier run of this node wrote it."""

    name: str = ""
    restart_count: int = 0
    state: AnyState | None = None
    last_state: AnyState | None = None
    container_id: str | None = msgspec.field(name="containerID", default=None)
    allocated_resources: Quantities | None = None
    resources: Resources | None = None


class ReportedCondition(msgspec.Struct, frozen=True, rename="camel"):
    type: str = ""
    status: str = ""
    last_transition_time: str | None = None


class ReportedStatus(msgspec.Struct, frozen=True, rename="camel"):
    phase: str = ""
    reason: str | None = None
    message: str | None = None
    start_time: str | None = None
    pod_ip: str = msgspec.field(name="podIP", default="")
    host_ip: str = msgspec.field(name="hostIP", default="")
    conditions: list[ReportedCondition] | None = None
    container_statuses: list[ReportedContainer] | None = None
    init_container_statuses: list[ReportedContainer] | None = None


class PodObject(msgspec.Struct, frozen=True):
    metadata: PodMetadata = PodMetadata()
    spec: KubeletPodSpec = KubeletPodSpec()
    status: ReportedStatus = ReportedStatus()

    @property
    def uid(self) -> str:
        return self.metadata.uid

    @property
    def full_name(self) -> str:
        """`name_namespace(uid)`, as the kubelet writes a pod in messages."""
        return f"{self.metadata.name}_{self.metadata.namespace}({self.metadata.uid})"

    @property
    def address(self) -> str:
        """Its own, or the node's."""
        return self.status.pod_ip or self.host_address

    @property
    def host_address(self) -> str:
        """The node's."""
        return self.status.host_ip or HOST_ADDRESS

    @property
    def deleting(self) -> bool:
        return self.metadata.deletion_timestamp is not None

    @property
    def terminal(self) -> bool:
        """The phase is final, so nothing of this pod may run again."""
        return self.status.phase in ("Succeeded", "Failed")

    @property
    def grace_seconds(self) -> float:
        """Seconds between SIGTERM and SIGKILL: what the deletion says, else the spec (one, if negative), else 30."""
        for told in (self.metadata.deletion_grace_period_seconds, self.spec.termination_grace_period_seconds):
            if told is not None:
                return float(told) if told >= 0 else 1.0
        return 30.0


class NodeMetadata(msgspec.Struct, frozen=True, rename="camel"):
    name: str = ""
    uid: str = ""
    resource_version: str = ""
    labels: dict[str, str] | None = None


class NodeTaints(msgspec.Struct, frozen=True):
    pod_cidr: str = msgspec.field(name="podCIDR", default="")
    taints: list[dict[str, Any]] | None = None


class NodeAmounts(msgspec.Struct, frozen=True):
    allocatable: Quantities | None = None
    conditions: list[dict[str, Any]] | None = None


class NodeObject(msgspec.Struct, frozen=True):
    metadata: NodeMetadata = NodeMetadata()
    spec: NodeTaints = NodeTaints()
    status: NodeAmounts = NodeAmounts()
