"""Valid by default: a pod that fits, a node with room, a gang that is complete."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec

from kube import objects
from kube.dialects.gangs import podgroups
from model.node import Node
from model.pod.pod import Pod
from model.resources import BATCH_CPU, ResourceVector
from model.workload import Gang, GangMembership, GangSource, GangSpec, GangTimes, WorkloadId
from scheduler.core.gangs.assembly import Candidate, assemble, roster
from scheduler.core.snapshot.snapshot import ClusterSnapshot, take
from tests.pods import make_pod

SCHEDULER = "koord-scheduler"


def node(name: str = "n1", *, pods: int = 110, batch_cpu: int = 1000, **more: Any) -> Node:
    """A node that lends batch-cpu; `amounts` adds resources by full name."""
    amounts = {"pods": pods, BATCH_CPU: batch_cpu} | more.pop("amounts", {})
    return Node(name=name, allocatable=ResourceVector(amounts), **more)


def pod(name: str = "p1", *, batch_cpu: int = 500, gang: GangMembership | None = None, **more: Any) -> Pod:
    """A pending pod of ours asking for batch-cpu; `requests` replaces the whole request."""
    requests = more.pop("requests", None) or {BATCH_CPU: batch_cpu}
    fields = {"uid": f"uid-{name}", "scheduler_name": SCHEDULER, "namespace": "default"} | more
    return make_pod(name=name, requests=ResourceVector(requests), gang=gang, **fields)


def in_group(name: str = "train") -> GangMembership:
    return GangMembership("default", name, GangSource.POD_GROUP)


def annotated(name: str = "train", minimum: int = 2, problem: str = "") -> GangMembership:
    return GangMembership("default", name, GangSource.ANNOTATION, GangSpec(minimum, problem=problem))


def gang(minimum: int = 3, name: str = "train", **more: Any) -> Gang:
    return Gang("default", name, GangSpec(minimum, **more), uid=f"uid-{name}")


def members(count: int, *, batch_cpu: int = 500, name: str = "w", group: str = "train", **more: Any) -> list[Pod]:
    """Pods of a PodGroup, oldest first."""
    own = {"gang": in_group(group)} | more
    return [pod(f"{name}{i}", batch_cpu=batch_cpu, created_seconds=float(i), **own) for i in range(count)]


def candidate(pods: Iterable[Pod], group: Gang | None = None) -> Candidate:
    """The candidate of one subject; fails where there is none."""
    pods = list(pods)
    subject = WorkloadId.gang(pods[0].spec.gang.key) if pods[0].spec.gang else WorkloadId.pod(pods[0].key)
    found = assemble(subject, roster(pods, (), (SCHEDULER,)), group).candidate
    assert found is not None
    return found


def snapshot(*nodes: Node, usage: Mapping[str, Mapping[str, int]] | None = None) -> ClusterSnapshot:
    return take({item.name: item for item in nodes}, usage or {})


def raw_node(name: str = "n1", *, batch_cpu: str = "1000", version: str = "1", **spec: Any) -> objects.Node:
    amounts: dict[str, str | int | float] = {"pods": "110", BATCH_CPU: batch_cpu}
    metadata = objects.Metadata(name=name, uid=f"uid-{name}", resource_version=version)
    return objects.Node(metadata, objects.NodeSpec(**spec), objects.NodeStatus(amounts, amounts))


def raw_pod(
    name: str = "p1",
    *,
    batch_cpu: str = "500",
    group: str = "",
    node_name: str = "",
    phase: str = "Pending",
    deleting: bool = False,
    condition: str = "",
    scheduler_name: str = SCHEDULER,
    created: float = 0.0,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    priority: int | None = None,
    policy: str | None = None,
    nominated: str = "",
) -> objects.Pod:
    """A pod as the API server has it; `condition` is the message of PodScheduled=False, `policy` preemptionPolicy."""
    told = [objects.Condition("PodScheduled", "False", "Unschedulable", condition)] if condition else None
    resources = objects.Resources({BATCH_CPU: batch_cpu}, {BATCH_CPU: batch_cpu})
    metadata = objects.Metadata(
        name=name,
        namespace="default",
        uid=f"uid-{name}",
        labels={**(labels or {}), **({"pod-group.scheduling.sigs.k8s.io": group} if group else {})},
        annotations=dict(annotations or {}),
        creation_timestamp=datetime.fromtimestamp(created, UTC),
        deletion_timestamp=datetime.fromtimestamp(created, UTC) if deleting else None,
    )
    spec = objects.PodSpec(
        [objects.Container("main", resources)],
        node_name=node_name,
        scheduler_name=scheduler_name,
        priority=priority,
        preemption_policy=policy,
    )
    return objects.Pod(metadata, spec, objects.PodStatus(phase=phase, conditions=told, nominated_node_name=nominated))


def marked(group: objects.PodGroup, times: GangTimes) -> objects.PodGroup:
    """A PodGroup with the scheduler's annotations."""
    seconds = {podgroups.PARTIAL_SINCE: times.partial_seconds, podgroups.WHOLE_SINCE: times.whole_seconds}
    told = {name: datetime.fromtimestamp(at, UTC).isoformat() for name, at in seconds.items() if at}
    kept = {name: text for name, text in (group.metadata.annotations or {}).items() if name not in seconds}
    return msgspec.structs.replace(group, metadata=msgspec.structs.replace(group.metadata, annotations=kept | told))


def raw_group(
    name: str = "train", minimum: int = 3, *, annotations: Mapping[str, str] | None = None, **spec: Any
) -> objects.PodGroup:
    metadata = objects.Metadata(name=name, namespace="default", uid=f"uid-{name}", annotations=dict(annotations or {}))
    return objects.PodGroup(metadata, objects.PodGroupSpec(min_member=minimum, **spec))
