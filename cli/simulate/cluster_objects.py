"""Objects from files as an API server would hand them to the scheduler: admitted, defaulted, named and dated.

Priorities come from PriorityClasses as Kubernetes' admission takes them, a request that is missing from the limit, and
how many disruptions a budget allows, where its status does not say, from the pods that are given.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, TypeVar

import msgspec

from cli.simulate.manifests import NODE_KINDS, GivenObject, Kind, Manifests
from kube import objects
from kube.dialects.gangs import volcano as volcano_groups
from kube.dialects.queues import elastic_quota, kueue, kueue_objects, sublet, volcano
from kube.dialects.upstream import core_objects
from model.condition import ConditionStatus, ConditionType
from model.fault import ConfigurationFault
from model.pod.status import PodPhase

DEFAULT_SCHEDULER = "koord-scheduler"
"""Of pods that name none."""
_BUILT_IN = {"system-node-critical": 2_000_001_000, "system-cluster-critical": 2_000_000_000}
_GATED = objects.Condition(
    ConditionType.POD_SCHEDULED,
    ConditionStatus.FALSE,
    "SchedulingGated",
    "Scheduling is blocked due to non-empty scheduling gates",
)
_ENDED = (PodPhase.SUCCEEDED.value, PodPhase.FAILED.value)


class GivenPodSpec(objects.PodSpec, frozen=True, rename="camel"):
    """With the name that admission turns into a number."""

    priority_class_name: str = ""


class GivenPod(objects.Pod, frozen=True):
    spec: GivenPodSpec = GivenPodSpec()


class UpstreamGroupSpec(objects.UpstreamPodGroupSpec, frozen=True, rename="camel"):
    """The same of scheduling.k8s.io's PodGroup."""

    priority_class_name: str = ""


class UpstreamGroup(objects.UpstreamPodGroup, frozen=True):
    spec: UpstreamGroupSpec = UpstreamGroupSpec()


class PodGroupSpec(objects.PodGroupSpec, frozen=True, rename="camel"):
    """With what it asks for where none of its pods is given."""

    min_resources: Any = None


class PodGroup(objects.PodGroup, frozen=True):
    spec: PodGroupSpec = PodGroupSpec()


class BudgetSpec(objects.DisruptionBudgetSpec, frozen=True, rename="camel"):
    """With what the disruption controller counts by."""

    min_available: int | str | None = None
    max_unavailable: int | str | None = None


class Budget(objects.PodDisruptionBudget, frozen=True):
    spec: BudgetSpec = BudgetSpec()


UPSTREAM_GROUP = "PodGroup.scheduling.k8s.io"
VOLCANO_GROUP = "PodGroup.scheduling.volcano.sh"
VOLCANO_QUEUE = "Queue.scheduling.volcano.sh"
QUEUES = {
    "Queue": Kind("sublet.dev", objects.Queue),
    VOLCANO_QUEUE: Kind("scheduling.volcano.sh", objects.VolcanoQueue),
    "ElasticQuota": Kind("scheduling.sigs.k8s.io", objects.ElasticQuota, namespaced=True),
    "ClusterQueue": Kind("kueue.x-k8s.io", objects.ClusterQueue),
    "Cohort": Kind("kueue.x-k8s.io", objects.Cohort),
}
KUEUE = {
    "LocalQueue": Kind("kueue.x-k8s.io", objects.LocalQueue, namespaced=True),
    "ResourceFlavor": Kind("kueue.x-k8s.io", objects.ResourceFlavor),
    "WorkloadPriorityClass": Kind("kueue.x-k8s.io", objects.WorkloadPriorityClass),
    "Topology": Kind("kueue.x-k8s.io", objects.Topology),
}
"""What Kueue's queues go with."""
WHOLE = {
    "Workload": Kind("kueue.x-k8s.io", objects.Workload, namespaced=True),
    "TrainingJob": Kind("sublet.dev", objects.UntypedObject, namespaced=True),
}
"""Jobs that wait whole, beside those that make gangs of their pods."""
MAKERS = {
    "Job": Kind("batch", objects.Job, namespaced=True),
    "JobSet": Kind("jobset.x-k8s.io", objects.JobSet, namespaced=True),
    "LeaderWorkerSet": Kind("leaderworkerset.x-k8s.io", objects.LeaderWorkerSet, namespaced=True),
    "PyTorchJob": Kind("kubeflow.org", objects.PyTorchJob, namespaced=True),
}
OTHERS = {
    "CompositePodGroup": Kind("scheduling.k8s.io", objects.CompositePodGroup, namespaced=True),
    **QUEUES,
    **KUEUE,
    **MAKERS,
    "PriorityClass": Kind("scheduling.k8s.io", objects.PriorityClass),
    "Namespace": Kind("", objects.Namespace),
    "PersistentVolume": Kind("", objects.PersistentVolume),
    "PersistentVolumeClaim": Kind("", objects.PersistentVolumeClaim, namespaced=True),
    "ClusterNetworkTopology": Kind("scheduling.koordinator.sh", objects.ClusterNetworkTopology),
    "NodeMetric": NODE_KINDS["NodeMetric"],
    "NodeResourceTopology": Kind("topology.node.k8s.io", objects.NodeResourceTopology),
}
"""Given to the scheduler as they are."""
CLUSTER_KINDS = {
    "Node": NODE_KINDS["Node"],
    "Pod": Kind("", GivenPod, namespaced=True),
    "PodGroup": Kind("scheduling.sigs.k8s.io", PodGroup, namespaced=True),
    "PodDisruptionBudget": Kind("policy", Budget, namespaced=True),
    UPSTREAM_GROUP: Kind("scheduling.k8s.io", UpstreamGroup, namespaced=True),
    VOLCANO_GROUP: Kind("scheduling.volcano.sh", objects.VolcanoPodGroup, namespaced=True),
    "ConfigMap": NODE_KINDS["ConfigMap"],
    **OTHERS,
    **WHOLE,
}


S = TypeVar("S", GivenPodSpec, UpstreamGroupSpec)


class Admission:
    """What the API server adds to pods and PodGroups; `now` is the creation of those that do not say (Unix seconds)."""

    def __init__(self, found: Manifests, now: float) -> None:
        self._classes: dict[str, objects.PriorityClass] = {
            given.object.metadata.name: given.object for given in found.of("PriorityClass")
        }
        defaults = [one for one in self._classes.values() if one.global_default]
        # The lowest of several, as Kubernetes' own admission takes it.
        self._default = min(defaults, key=lambda one: (one.value, one.metadata.name), default=None)
        self._created = datetime.fromtimestamp(now, UTC)
        self._uids: set[str] = set()

    def pod(self, given: GivenObject) -> objects.Pod:
        """Raises ConfigurationFault naming file, document and pod."""
        pod: GivenPod = given.object
        where = f"{given.where}: {given.label}"
        spec = self._prioritised(pod.spec, where)
        spec = msgspec.structs.replace(
            spec,
            containers=[_requesting(one) for one in spec.containers],
            init_containers=[_requesting(one) for one in spec.init_containers or ()],
            scheduler_name=spec.scheduler_name or DEFAULT_SCHEDULER,
        )
        return msgspec.structs.replace(pod, metadata=self.named(pod.metadata), spec=spec, status=_status(pod))

    def group(self, given: GivenObject) -> UpstreamGroup:
        """Raises ConfigurationFault naming file, document and PodGroup."""
        group: UpstreamGroup = given.object
        return msgspec.structs.replace(group, spec=self._prioritised(group.spec, f"{given.where}: {given.label}"))

    def named(self, metadata: objects.Metadata) -> objects.Metadata:
        """With a uid of its own and a time of creation."""
        uid = metadata.uid
        if not uid or uid in self._uids:
            uid = f"{metadata.namespace}/{metadata.name}"
        self._uids.add(uid)
        created = metadata.creation_timestamp or self._created
        return msgspec.structs.replace(metadata, uid=uid, creation_timestamp=created)

    def _prioritised(self, spec: S, where: str) -> S:
        """What the object says itself stands: one printed by kubectl was admitted already."""
        name = spec.priority_class_name
        found = self._classes.get(name) if name else self._default
        if name and found is None and name not in _BUILT_IN and spec.priority is None:
            raise ConfigurationFault(
                f"{where}: spec.priorityClassName", f"no PriorityClass {name} is given", "give it too, or priority"
            )
        value = found.value if found else _BUILT_IN.get(name, 0)
        policy = found.preemption_policy if found else None
        return msgspec.structs.replace(
            spec,
            priority=value if spec.priority is None else spec.priority,
            preemption_policy=spec.preemption_policy or policy,
        )


def _requesting(container: objects.Container) -> objects.Container:
    """A limit stands for the request that is not made."""
    resources = container.resources
    if resources is None or not resources.limits:
        return container
    requests = {**resources.limits, **(resources.requests or {})}
    return msgspec.structs.replace(container, resources=msgspec.structs.replace(resources, requests=requests))


def _status(pod: GivenPod) -> objects.PodStatus:
    """A gated pod says so, whoever wrote the file."""
    conditions = [one for one in pod.status.conditions or () if one.type != ConditionType.POD_SCHEDULED]
    if not pod.spec.scheduling_gates or pod.spec.node_name:
        return pod.status
    return msgspec.structs.replace(pod.status, conditions=[*conditions, _GATED])


def budget(given: GivenObject, pods: Iterable[objects.Pod]) -> objects.PodDisruptionBudget:
    """Its status, where it has one; else counted as the disruption controller does. Raises ConfigurationFault."""
    source: Budget = given.object
    if source.status is not None:
        return _plain(source, source.status)
    where = f"{given.where}: {given.label}"
    selector, namespace = core_objects.budget(source).selector, source.metadata.namespace
    alive = [
        pod
        for pod in pods
        if pod.metadata.namespace == namespace
        and pod.status.phase not in _ENDED
        and selector.matches(pod.metadata.labels or {})
    ]
    healthy = sum(bool(pod.spec.node_name) and pod.metadata.deletion_timestamp is None for pod in alive)
    allowed = max(0, healthy - _desired(source.spec, len(alive), where))
    return _plain(source, objects.DisruptionBudgetStatus(disruptions_allowed=allowed))


def _plain(source: Budget, status: objects.DisruptionBudgetStatus) -> objects.PodDisruptionBudget:
    """As the scheduler knows it."""
    return objects.PodDisruptionBudget(source.metadata, objects.DisruptionBudgetSpec(source.spec.selector), status)


def _desired(spec: BudgetSpec, expected: int, where: str) -> int:
    """How many pods must stay; percentages are rounded up, as Kubernetes does."""
    if spec.max_unavailable is not None:
        return max(0, expected - _share(spec.max_unavailable, expected, f"{where}: spec.maxUnavailable"))
    if spec.min_available is None:
        raise ConfigurationFault(f"{where}: spec", "has neither minAvailable nor maxUnavailable", "give one of them")
    return _share(spec.min_available, expected, f"{where}: spec.minAvailable")


def _share(told: int | str, of: int, where: str) -> int:
    number = told.removesuffix("%") if isinstance(told, str) else told
    if isinstance(number, int):
        return number
    if told == number or not number.isdecimal():
        raise ConfigurationFault(where, f"is {told!r}", "write a whole number or a percentage such as 50%")
    return math.ceil(int(number) * of / 100)


def checked(found: Manifests, pods: Mapping[str, GivenObject]) -> None:
    """Read everything as the scheduler would. Raises ConfigurationFault naming the file and the object."""
    readers: dict[str, Any] = {
        "Node": core_objects.node,
        "PodDisruptionBudget": core_objects.budget,
        "Queue": sublet.queue,
        VOLCANO_QUEUE: volcano.queue,
        "ElasticQuota": elastic_quota.queue,
        "ClusterQueue": kueue.cluster_queue,
        "Cohort": kueue.cohort,
        "LocalQueue": kueue_objects.submission_queue,
        "ResourceFlavor": kueue_objects.flavor,
        "WorkloadPriorityClass": kueue_objects.priority,
        "Topology": kueue_objects.levels,
    }
    for kind, reader in readers.items():
        for given in found.of(kind):
            _try(reader, given.object, given)
    for given in pods.values():
        _try(core_objects.pod, given.object, given)


def _try(reader: Any, source: Any, given: GivenObject) -> None:
    try:
        reader(source)
    except ConfigurationFault as fault:
        raise ConfigurationFault(f"{given.where}: {fault.where}", fault.what, fault.fix) from fault


def unmet(found: Manifests) -> Iterator[str]:
    """Fields of queues and PodGroups of Volcano that are set and not acted on; none of one that cannot be read."""
    readers: dict[str, Callable[[Any], Iterator[str]]] = {
        VOLCANO_QUEUE: volcano.unmet,
        "ClusterQueue": kueue.unmet,
        VOLCANO_GROUP: volcano_groups.unmet,
    }
    for kind, reader in readers.items():
        for given in found.of(kind):
            with suppress(ConfigurationFault):
                yield from (f"{given.label}: {told}" for told in reader(given.object))
