"""Pods, profiles and their surroundings: valid unless a test says otherwise."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from admission.core.mutate import Mutation, MutationPolicy, PodFacts, created
from admission.core.queue_rules import KnownQueue
from kube.dialects.koordinator.profiles import ANNOTATION_SKIP_RESOURCES
from kube.dialects.koordinator.profiles import profile as read_profile
from kube.objects import ClusterColocationProfile, Metadata
from kube.podmerge import merge_pod
from model.priority import PreemptionPolicy, PriorityClass
from model.profile import ColocationProfile

POLICY = MutationPolicy()
CLASSES = {
    "koord-prod": PriorityClass("koord-prod", 9000),
    "koord-mid": PriorityClass("koord-mid", 7000),
    "koord-batch": PriorityClass("koord-batch", 5000),
    "never": PriorityClass("never", 5500, PreemptionPolicy.NEVER),
}
BATCH_SPEC = {
    "namespaceSelector": {"matchLabels": {"koordinator.sh/enable-colocation": "true"}},
    "selector": {"matchLabels": {"app-type": "batch"}},
    "qosClass": "BE",
    "priorityClassName": "koord-batch",
    "schedulerName": "koord-scheduler",
    "labels": {"koordinator.sh/mutated": "true"},
}
COLOCATED = {"koordinator.sh/enable-colocation": "true"}


def raw_container(name: str = "main", requests: Any = None, limits: Any = None, **more: Any) -> dict[str, Any]:
    resources = {key: value for key, value in (("requests", requests), ("limits", limits)) if value is not None}
    return {"name": name, "image": "busybox", "resources": resources, **more}


def raw_pod(*containers: dict[str, Any], labels: Any = None, annotations: Any = None, **spec: Any) -> dict[str, Any]:
    """A pod as the API server sends it when it is created; one container of 2 CPUs and 4Gi without any."""
    both = {"cpu": "2", "memory": "4Gi"}
    metadata: dict[str, Any] = {"generateName": "job-", "namespace": "batch"}
    metadata["labels"] = {"app-type": "batch"} if labels is None else labels
    if annotations is not None:
        metadata["annotations"] = annotations
    inner = list(containers) or [raw_container(requests=both, limits=both)]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": inner, **spec}}


def profile(name: str = "batch", *, skips: bool = False, **spec: Any) -> ColocationProfile:
    """From what a person writes; an empty spec selects every pod and does nothing. `skips` leaves resources alone."""
    metadata = Metadata(name=name, annotations={ANNOTATION_SKIP_RESOURCES: ""} if skips else {})
    return read_profile(ClusterColocationProfile(metadata, spec))


BATCH = profile(**BATCH_SPEC)


def create(pod: Mapping[str, Any], *profiles: ColocationProfile, draw: int = 50, **facts: Any) -> Mutation:
    """A pod that is created in a namespace with colocation."""
    known = PodFacts(profiles or (BATCH,), COLOCATED, CLASSES, draw)
    return created(pod, msgspec.structs.replace(known, **facts), POLICY, merge_pod)


def resources(pod: Mapping[str, Any], field: str = "containers") -> list[Any]:
    return [each["resources"] for each in pod["spec"][field]]


class Cluster:
    """admission.check_result.Surroundings that are told."""

    def __init__(self, *profiles: ColocationProfile, nodes: Mapping[str, Mapping[str, str]] | None = None) -> None:
        self.namespaces: dict[str, Mapping[str, str]] = {"batch": COLOCATED, "default": {}}
        self._profiles = profiles
        self._nodes = nodes or {}
        self.known: Mapping[str, KnownQueue] | None = {}

    def profiles(self) -> tuple[ColocationProfile, ...]:
        return self._profiles

    def namespace_labels(self, name: str) -> Mapping[str, str] | None:
        return self.namespaces.get(name)

    def classes(self) -> Mapping[str, PriorityClass]:
        return CLASSES

    def local_queues(self) -> tuple[str, ...]:
        return ()

    def queues(self) -> Mapping[str, KnownQueue] | None:
        return self.known

    def node_labels(self) -> Mapping[str, Mapping[str, str]]:
        return self._nodes
