"""Pods as ReplicaSets, DaemonSets and Services see them: the few fields that count, decoded without the rest."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from embedded.apiserver.apimachinery.objects import parse_time
from embedded.apiserver.jobs.job_pods import PodCondition
from embedded.apiserver.storage.records import Record

_DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
_NODE_NAME = "metadata.name"


class _Field(msgspec.Struct, rename="camel", frozen=True, gc=False): ...


class Owner(_Field, frozen=True):
    uid: str
    controller: bool | None = None


class _Metadata(_Field, frozen=True):
    name: str
    uid: str
    creation_timestamp: str = ""
    deletion_timestamp: str | None = None
    annotations: dict[str, str] | None = None
    labels: dict[str, str] | None = None
    owner_references: tuple[Owner, ...] | None = None


class _Port(_Field, frozen=True):
    container_port: int
    name: str | None = None
    protocol: str = "TCP"


class _Container(_Field, frozen=True):
    ports: tuple[_Port, ...] | None = None
    restart_policy: str | None = None


class _FieldTerm(_Field, frozen=True):
    key: str
    operator: str
    values: tuple[str, ...] | None = None


class _NodeTerm(_Field, frozen=True):
    match_fields: tuple[_FieldTerm, ...] | None = None


class _NodeSelector(_Field, frozen=True):
    node_selector_terms: tuple[_NodeTerm, ...] | None = None


class _NodeAffinity(_Field, frozen=True):
    required: _NodeSelector | None = msgspec.field(name="requiredDuringSchedulingIgnoredDuringExecution", default=None)


class _Affinity(_Field, frozen=True):
    node_affinity: _NodeAffinity | None = None


class _Spec(_Field, frozen=True):
    node_name: str = ""
    affinity: _Affinity | None = None
    containers: tuple[_Container, ...] = ()
    init_containers: tuple[_Container, ...] | None = None
    hostname: str = ""
    subdomain: str = ""


class _ContainerStatus(_Field, frozen=True):
    restart_count: int | None = None


class _Status(_Field, frozen=True):
    phase: str | None = None
    conditions: tuple[PodCondition, ...] | None = None
    container_statuses: tuple[_ContainerStatus, ...] | None = None
    pod_ip: str = msgspec.field(name="podIP", default="")


class WorkloadPod(_Field, frozen=True):
    """One pod that something keeps running."""

    metadata: _Metadata
    spec: _Spec = _Spec()
    status: _Status = _Status()

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def uid(self) -> str:
        return self.metadata.uid

    @property
    def labels(self) -> dict[str, str]:
        return self.metadata.labels or {}

    @property
    def node(self) -> str:
        """Where it is; empty while it waits for a place."""
        return self.spec.node_name

    @property
    def target(self) -> str:
        """Where it is or alone may go; empty when it may go anywhere."""
        return self.node or next(self._targets(), "")

    def _targets(self) -> Iterator[str]:
        affinity = self.spec.affinity.node_affinity if self.spec.affinity else None
        terms = (affinity.required.node_selector_terms or ()) if affinity and affinity.required else ()
        for term in terms:
            for found in term.match_fields or ():
                if found.key == _NODE_NAME and found.operator == "In" and len(found.values or ()) == 1:
                    yield (found.values or ("",))[0]

    @property
    def created(self) -> float:
        return parse_time(self.metadata.creation_timestamp) or 0.0

    @property
    def phase(self) -> str:
        return self.status.phase or "Pending"

    @property
    def ended(self) -> bool:
        return self.phase in ("Succeeded", "Failed")

    @property
    def deleting(self) -> bool:
        return self.metadata.deletion_timestamp is not None

    @property
    def active(self) -> bool:
        return not self.ended and not self.deleting

    @property
    def ready(self) -> bool:
        return self.ready_since is not None

    @property
    def ready_since(self) -> float | None:
        """Since when, in seconds; None while it is not."""
        found = next((c for c in self.status.conditions or () if c.type == "Ready"), None)
        if found is None or found.status != "True":
            return None
        return parse_time(found.last_transition_time) or 0.0

    def available(self, min_ready_seconds: int, now: float) -> bool:
        """Whether it has been ready for long enough."""
        since = self.ready_since
        return since is not None and (not min_ready_seconds or since + min_ready_seconds <= now)

    @property
    def restarts(self) -> int:
        """Of the container that was restarted most."""
        return max((status.restart_count or 0 for status in self.status.container_statuses or ()), default=0)

    @property
    def deletion_cost(self) -> int:
        text = (self.metadata.annotations or {}).get(_DELETION_COST, "0")
        return int(text) if text.removeprefix("-").isdecimal() and len(text) <= 11 else 0

    def port_number(self, name: str, protocol: str) -> int | None:
        """The number of a named container port; of init containers, those that keep running count."""
        lasting = (each for each in self.spec.init_containers or () if each.restart_policy == "Always")
        ports = (port for container in (*self.spec.containers, *lasting) for port in container.ports or ())
        return next((p.container_port for p in ports if p.name == name and p.protocol == protocol), None)


_decode = msgspec.json.Decoder(WorkloadPod).decode


class SeenPods:
    """Decoded pods, each decoded once for as long as it does not change."""

    def __init__(self) -> None:
        self._pods: dict[str, tuple[int, WorkloadPod]] = {}

    def of(self, record: Record) -> WorkloadPod:
        held = self._pods.get(record.uid)
        if held is None or held[0] != record.revision:
            held = self._pods[record.uid] = (record.revision, _decode(record.body))
        return held[1]

    def forget(self, uid: str) -> None:
        self._pods.pop(uid, None)


def next_available(pods: list[WorkloadPod], min_ready_seconds: int, now: float) -> float | None:
    """When the next of these will have been ready for long enough."""
    waiting = (pod.ready_since for pod in pods if not pod.available(min_ready_seconds, now))
    return min((since + min_ready_seconds for since in waiting if since is not None), default=None)
