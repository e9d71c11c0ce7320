"""A cluster from files as facts for the scheduler: admitted pods, templates multiplied, and what stands for nodes.

Where no Node is given but queues are, one node takes the place of the cluster, and PodGroups without pods have some.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from cli.simulate.cluster_by_quota import NODE, cluster_nodes
from cli.simulate.cluster_groups import named_groups, pods_of_groups
from cli.simulate.cluster_objects import (
    KUEUE,
    OTHERS,
    QUEUES,
    UPSTREAM_GROUP,
    VOLCANO_GROUP,
    Admission,
    budget,
    checked,
)
from cli.simulate.cluster_settings import NODE_CONFIG
from cli.simulate.cluster_templates import copies, count_of
from cli.simulate.cluster_workloads import workloads
from cli.simulate.manifests import GivenObject, Manifests
from kube import objects
from kube.dialects.suspended.stand_ins import stand_ins
from kube.dialects.suspended.workload import workload
from kube.dialects.upstream import core_objects
from kube.informer import Change, ChangeKind
from model.fault import ConfigurationFault
from scheduler.cache import facts
from scheduler.cache.queue_cache import QueueCache


class GivenCluster:
    """`pods` by uid, `groups` by `namespace/name`; `templates` has the template of each pod that is a copy, by uid.

    Raises ConfigurationFault naming file, document, object and field.
    """

    def __init__(self, found: Manifests, now: float) -> None:
        self.pods: dict[str, objects.Pod] = {}
        self.templates: dict[str, str] = {}
        self._found = found
        self._by_quota = not any(found.of("Node")) and any(given for kind in QUEUES for given in found.of(kind))
        admission = Admission(found, now)
        given = {item.label: item for item in found.of("Pod")}
        admitted = {label: admission.pod(item) for label, item in sorted(given.items())}
        if self._by_quota:
            members = tuple(pods_of_groups(found, named_groups(admitted), NODE))
            given |= {item.label: item for item in members}
            admitted |= {item.label: admission.pod(item) for item in members}
            admitted = {label: _on_cluster(pod) for label, pod in admitted.items()}
        checked(found, {label: msgspec.structs.replace(given[label], object=pod) for label, pod in admitted.items()})
        for label, pod in admitted.items():
            self._add(given[label], pod, admission)
        self.groups = {
            _key(item): msgspec.structs.replace(item.object, metadata=admission.named(item.object.metadata))
            for item in found.of("PodGroup")
        }
        self._volcano_groups = [
            msgspec.structs.replace(item.object, metadata=admission.named(item.object.metadata))
            for item in found.of(VOLCANO_GROUP)
        ]
        self.workloads = tuple(workloads(found, admission, self.pods.values()))
        self._upstream_groups = [admission.group(item) for item in found.of(UPSTREAM_GROUP)]

    def facts(self) -> Iterator[facts.Fact]:
        """Everything as the API server would list it, pods last."""
        found = self._found
        configs = [item.object for item in found.of("ConfigMap") if item.object.metadata.name == NODE_CONFIG]
        yield from (facts.ObjectSeen(Change(ChangeKind.ADDED, config)) for config in configs)
        for kind in OTHERS:
            yield from (facts.ObjectSeen(Change(ChangeKind.ADDED, item.object)) for item in found.of(kind))
        yield from (facts.ObjectSeen(Change(ChangeKind.ADDED, each)) for each in self.workloads)
        others = [*self._upstream_groups, *self._volcano_groups]
        yield from (facts.ObjectSeen(Change(ChangeKind.ADDED, group)) for group in others)
        for item in found.of("PodDisruptionBudget"):
            yield facts.ObjectSeen(Change(ChangeKind.ADDED, budget(item, self.pods.values())))
        nodes = list(self._cluster()) if self._by_quota else [item.object for item in found.of("Node")]
        yield from (facts.NodeSeen(Change(ChangeKind.ADDED, node)) for node in nodes)
        yield from (facts.PodGroupSeen(Change(ChangeKind.ADDED, group)) for group in self.groups.values())
        yield from (facts.PodSeen(Change(ChangeKind.ADDED, pod)) for pod in self.pods.values())

    def _add(self, given: GivenObject, pod: objects.Pod, admission: Admission) -> None:
        count = count_of(given)
        if count is None:
            self.pods[pod.metadata.uid] = pod
            return
        for copy in copies(pod, count, admission):
            self.pods[copy.metadata.uid] = copy
            self.templates[copy.metadata.uid] = f"{pod.metadata.namespace}/{pod.metadata.name}"

    def _cluster(self) -> tuple[objects.Node, ...]:
        """What the queues bring; whatever is requested besides has no end."""
        queues = QueueCache(_refuse, lambda where: None, tell=lambda where, metadata, message: None)
        for kind in (*QUEUES, *KUEUE):
            for item in self._found.of(kind):
                queues.apply(Change(ChangeKind.ADDED, item.object))
        seen = {id(pod.spec): pod for pod in self.pods.values()}
        stand_for = (pod for each in map(workload, self.workloads) for pod in stand_ins(each, lambda name: None, 0.0))
        requested = {name for pod in (*seen.values(), *stand_for) for name in core_objects.pod(pod).spec.requests}
        return cluster_nodes(queues.queues(), sorted(requested), queues.kueue.flavors)


def _refuse(where: str, metadata: objects.Metadata, message: str) -> None:
    raise ConfigurationFault(where, message.removeprefix(f"{where}: "))


def _on_cluster(pod: objects.Pod) -> objects.Pod:
    """One that has a node is on the one there is."""
    if not pod.spec.node_name:
        return pod
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name=NODE))


def _key(item: GivenObject) -> str:
    return f"{item.object.metadata.namespace}/{item.object.metadata.name}"
