"""PodGroups without pods as workloads: `minMember` pods that together request `minResources`.

Only where no Node is given, so that quota alone decides: a group that is said to run has its pods on the node that
stands for the cluster.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from cli.simulate.cluster_objects import VOLCANO_GROUP, GivenPod, GivenPodSpec
from cli.simulate.manifests import GivenObject, Manifests
from kube import objects
from kube.dialects.documents.document import checked
from kube.dialects.gangs.membership import LABEL_POD_GROUP, VOLCANO_NAMES
from model.pod.status import PodPhase
from model.resources import CPU, parse_resources
from model.workload import GangPhase

_RUN = (GangPhase.RUNNING.value, GangPhase.SCHEDULED.value)
_MOST_MEMBERS = 100_000


class _Spec(objects.PodGroupSpec, frozen=True, rename="camel"):
    min_resources: objects.Quantities | None = None
    priority_class_name: str | None = None


def pods_of_groups(found: Manifests, taken: Iterable[str], node: str) -> Iterator[GivenObject]:
    """The pods of groups (`namespace/name`) that are not `taken`; those of running groups are on `node`.

    Raises ConfigurationFault naming file, document and field.
    """
    known = frozenset(taken)
    for kind in ("PodGroup", VOLCANO_GROUP):
        for given in found.of(kind):
            metadata = given.object.metadata
            if f"{metadata.namespace}/{metadata.name}" not in known:
                yield from _pods(given, kind, node)


def _pods(given: GivenObject, kind: str, node: str) -> Iterator[GivenObject]:
    group = given.object
    where = f"{given.where}: {given.label}: spec"
    spec = checked(_written(group.spec), _Spec, where)
    if not spec.min_resources:
        return
    amounts = parse_resources(spec.min_resources, f"{where}.minResources").amounts
    members = spec.min_member if isinstance(spec.min_member, int) else 1
    count = min(max(1, members), _MOST_MEMBERS)
    running = group.status is not None and group.status.phase in _RUN
    for index in range(count):
        parts = {name: _part(amount, count, index) for name, amount in amounts.items()}
        requests: objects.Quantities = {name: _quantity(name, amount) for name, amount in parts.items()}
        container = objects.Container("main", objects.Resources(requests=requests))
        pod = GivenPod(
            metadata=_member(group.metadata, kind, index),
            spec=GivenPodSpec(
                containers=[container],
                node_name=node if running else "",
                priority_class_name=spec.priority_class_name or "",
            ),
            status=objects.PodStatus(phase=PodPhase.RUNNING.value if running else PodPhase.PENDING.value),
        )
        name = f"{group.metadata.namespace}/{pod.metadata.name}"
        yield GivenObject(pod, given.where, f"Pod {name}")


def _written(spec: object) -> object:
    """Untyped as Volcano's is, or what is read of the other kind."""
    if isinstance(spec, objects.PodGroupSpec):
        told = {"minMember": spec.min_member, "minResources": getattr(spec, "min_resources", None)}
        return {key: value for key, value in told.items() if value is not None}
    return {} if spec is None else spec


def _member(group: objects.Metadata, kind: str, index: int) -> objects.Metadata:
    """What the group says of queues counts for its pods."""
    labels, annotations = dict(group.labels or {}), dict(group.annotations or {})
    if kind == VOLCANO_GROUP:
        annotations[VOLCANO_NAMES[0]] = group.name
    else:
        labels[LABEL_POD_GROUP] = group.name
    return objects.Metadata(
        f"{group.name}-{index}",
        group.namespace,
        labels=labels,
        annotations=annotations,
        creation_timestamp=group.creation_timestamp,
    )


def _part(amount: int, count: int, index: int) -> int:
    """Equal parts, the first ones larger by one where it does not come out even."""
    return amount // count + (index < amount % count)


def _quantity(name: str, amount: int) -> str:
    return f"{amount}m" if name == CPU else str(amount)


def named_groups(pods: Mapping[str, objects.Pod]) -> Iterator[str]:
    """The groups that given pods name."""
    for pod in pods.values():
        metadata = pod.metadata
        labels, annotations = metadata.labels or {}, metadata.annotations or {}
        names = (labels.get(LABEL_POD_GROUP), *(annotations.get(key) for key in VOLCANO_NAMES))
        yield from (f"{metadata.namespace}/{name}" for name in names if name)
