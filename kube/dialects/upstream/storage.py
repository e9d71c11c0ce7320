"""PersistentVolumes and claims, as far as they decide where a pod may run.

Source: https://kubernetes.io/docs/concepts/storage/persistent-volumes/#node-affinity and kube-scheduler's VolumeZone
(pkg/scheduler/framework/plugins/volumezone).
"""

from __future__ import annotations

from collections.abc import Mapping

from kube import objects
from kube.dialects.documents.selector import one_of
from kube.dialects.upstream.affinity import node_terms
from model.pod.affinity import NodeTerm
from model.selector import Operator, Requirement
from model.storage import Volume, VolumeClaim

_ZONE, _REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
_NODE_LABELS = {
    "failure-domain.beta.kubernetes.io/zone": _ZONE,
    "failure-domain.beta.kubernetes.io/region": _REGION,
    _ZONE: _ZONE,
    _REGION: _REGION,
}
"""Label of a volume → label of a node that says the same."""
_NO_ZONE = tuple(Requirement(label, Operator.DOES_NOT_EXIST) for label in (_ZONE, _REGION))


def claim(source: objects.PersistentVolumeClaim) -> VolumeClaim:
    """The claim, and the volume it names once it is bound."""
    return VolumeClaim(source.metadata.namespace, source.metadata.name, source.spec.volume_name)


def volume(source: objects.PersistentVolume) -> Volume:
    """Required node affinity and zone labels both hold. Raises ConfigurationFault naming the volume and the field."""
    name, affinity = source.metadata.name, source.spec.node_affinity
    where = f"PersistentVolume {name}: spec.nodeAffinity.required"
    required = node_terms(affinity.required, where) if affinity and affinity.required is not None else None
    zones = _zones(source.metadata.labels or {})
    if not zones:
        return Volume(name, required)
    bases = (NodeTerm(),) if required is None else tuple(term for term in required if term != NodeTerm())
    return Volume(
        name, tuple(NodeTerm(base.labels + extra, base.names) for base in bases for extra in (zones, _NO_ZONE))
    )


def _zones(labels: Mapping[str, str]) -> tuple[Requirement, ...]:
    """`a__b` are two zones. A node without any zone label is in every zone, as in VolumeZone."""
    found = []
    for label, on_node in _NODE_LABELS.items():
        values = [part.strip() for part in labels.get(label, "").split("__") if part.strip()]
        if values:
            found.append(one_of(on_node, *values))
    return tuple(found)
