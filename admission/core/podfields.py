"""Reading and changing a pod as the API server sends it: a JSON document of which most is none of our business.

A change gives a new document that shares with the old one what did not change, so that the old one stays as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Pod = Mapping[str, Any]
Document = dict[str, Any]

LABEL_QOS = "koordinator.sh/qosClass"
LABEL_PRIORITY_CLASS = "koordinator.sh/priority-class"
LABEL_SUB_PRIORITY = "koordinator.sh/priority"
LABEL_EVICTION_ENABLED = "koordinator.sh/eviction-enabled"
QUEUE_LABELS = (
    "sublet.dev/queue",
    "volcano.sh/queue-name",
    "quota.scheduling.koordinator.sh/name",
    "kueue.x-k8s.io/queue-name",
    "pod-group.scheduling.sigs.k8s.io",
    "pod-group.scheduling.sigs.k8s.io/name",
)
QUEUE_ANNOTATIONS = (
    "scheduling.volcano.sh/queue-name",
    "volcano.sh/queue-name",
    "kueue.x-k8s.io/queue-name",
    "scheduling.k8s.io/group-name",
    "scheduling.volcano.sh/group-name",
    "gang.scheduling.koordinator.sh/name",
    "kueue.x-k8s.io/workload",
)
"""By which a pod names its queue, the gang whose object may name one, or the job that was admitted with it."""
CONTAINERS = ("initContainers", "containers")
"""Ephemeral containers can have no resources."""


def labels_of(pod: Pod) -> Mapping[str, str]:
    return (pod.get("metadata") or {}).get("labels") or {}


def annotations_of(pod: Pod) -> Mapping[str, str]:
    return (pod.get("metadata") or {}).get("annotations") or {}


def spec(pod: Pod) -> Mapping[str, Any]:
    return pod.get("spec") or {}


def containers(pod: Pod) -> list[Document]:
    """Those that may have resources, the ones that run first in front."""
    return [each for name in CONTAINERS for each in spec(pod).get(name) or ()]


def with_metadata(pod: Pod, field: str, changes: Mapping[str, str | None]) -> Document:
    """Labels or annotations with changes; None removes, and an empty map that nobody wrote is not made."""
    before = (pod.get("metadata") or {}).get(field) or {}
    after = {key: text for key, text in {**before, **changes}.items() if text is not None}
    if after == before:
        return dict(pod)
    return {**pod, "metadata": {**(pod.get("metadata") or {}), field: after}}


def with_spec(pod: Pod, changes: Mapping[str, Any]) -> Document:
    """Fields of the spec with changes; None removes."""
    after = {key: value for key, value in {**spec(pod), **changes}.items() if value is not None}
    return {**pod, "spec": after}


def with_containers(pod: Pod, change: Callable[[Document], Document]) -> Document:
    """Each container that may have resources, changed."""
    found = {name: spec(pod)[name] for name in CONTAINERS if spec(pod).get(name)}
    return with_spec(pod, {name: [change(each) for each in items] for name, items in found.items()})
