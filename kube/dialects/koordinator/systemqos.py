"""CPUs that belong to system-class pods alone, by a Node's annotation `node.koordinator.sh/system-qos-resource`.

Source: Koordinator apis/extension/system_qos.go.
"""

from __future__ import annotations

import msgspec

from kube.dialects.documents.document import annotated
from model.fault import ConfigurationFault
from model.node import Node
from model.topology import parse_cpus

ANNOTATION_SYSTEM_QOS = "node.koordinator.sh/system-qos-resource"


class _SystemQoS(msgspec.Struct, frozen=True):
    cpuset: str | None = None
    exclusive: bool | None = msgspec.field(name="cpusetExclusive", default=None)


def system_cpus(node: Node) -> tuple[int, ...]:
    """Ascending; none where the annotation shares its CPUs (`cpusetExclusive: false`; without it they are exclusive).

    Raises ConfigurationFault naming Node, annotation, field and what to write.
    """
    told = annotated(node.annotations, ANNOTATION_SYSTEM_QOS, _SystemQoS, f"Node {node.name}") or _SystemQoS()
    try:
        cpus = parse_cpus(told.cpuset or "")
    except ValueError as error:
        where = f"Node {node.name}: annotation {ANNOTATION_SYSTEM_QOS}.cpuset"
        raise ConfigurationFault(where, str(error)) from error
    return () if told.exclusive is False else cpus
