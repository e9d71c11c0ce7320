"""Volume filter: the nodes that reach a pod's volumes.

Source: kubernetes pkg/scheduler/framework/plugins/volumebinding/{volume_binding,binder}.go. A claim that waits for its
first consumer is treated as any unbound one: this scheduler binds no volumes.
"""

from __future__ import annotations

import numpy as np

from scheduler.core.filters.nodes import matching
from scheduler.core.snapshot.snapshot import Mask, NodeTraits, RelatedObjects

CONFLICT = "node(s) had volume node affinity conflict"
NO_VOLUME = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
UNBOUND = "pod has unbound immediate PersistentVolumeClaims"


def missing(related: RelatedObjects, claims: tuple[str, ...]) -> str:
    """Why no node at all is tried for a pod with these claims (`namespace/name`); empty where nodes are."""
    for claim in claims:
        if claim not in related.claims:
            return f'persistentvolumeclaim "{claim.partition("/")[2]}" not found'
    return UNBOUND if any(not related.claims[claim].volume for claim in claims) else ""


def refusals(traits: NodeTraits, claims: tuple[str, ...]) -> tuple[tuple[Mask, str], ...]:
    """The rows from which some volume of these bound claims cannot be reached, in order of what is told first."""
    volumes = traits.related.volumes
    names = [traits.related.claims[claim].volume for claim in claims]
    conflict = np.zeros(len(traits.labels), bool)
    for name in names:
        nodes = volumes[name].nodes if name in volumes else None
        if nodes is not None:
            conflict |= ~matching(traits, nodes)
    if all(name in volumes for name in names):
        return ((conflict, CONFLICT),) if conflict.any() else ()
    return (conflict, CONFLICT), (~conflict, NO_VOLUME)
