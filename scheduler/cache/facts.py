"""Facts that reach the scheduling loop from outside, in the order in which they happened."""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec

from kube import objects
from kube.informer import Change
from model.workload import WorkloadId


class PodSeen(msgspec.Struct, frozen=True):
    """The API server's word on a pod."""

    change: Change[objects.Pod]


class NodeSeen(msgspec.Struct, frozen=True):
    """The API server's word on a node."""

    change: Change[objects.Node]


class PodGroupSeen(msgspec.Struct, frozen=True):
    """The API server's word on a PodGroup."""

    change: Change[objects.PodGroup]


class ObjectSeen(msgspec.Struct, frozen=True):
    """The API server's word on any other object the scheduler reads."""

    change: Change[Any]


class Configured(msgspec.Struct, frozen=True):
    """Koordinator's ConfigMap for schedulers is this now; None: it is not there."""

    config_map: objects.ConfigMap | None


class BindingReleased(msgspec.Struct, frozen=True):
    """An assumed pod was not bound; `error` is empty where it was not even tried, `status` is the HTTP code."""

    subject: WorkloadId
    uid: str
    error: str = ""
    status: int = 0


class BatchDone(msgspec.Struct, frozen=True):
    """All bindings of one decision are through, well or not."""

    subject: WorkloadId


class PodConditionFailed(msgspec.Struct, frozen=True):
    """A pod's condition could not be written, so what it says is not known."""

    uid: str


class AdmissionFailed(msgspec.Struct, frozen=True):
    """A Workload (`namespace/name`) was not admitted: its status could not be written."""

    key: str
    subject: WorkloadId
    error: str


Fact: TypeAlias = (
    PodSeen
    | NodeSeen
    | PodGroupSeen
    | ObjectSeen
    | Configured
    | BindingReleased
    | BatchDone
    | PodConditionFailed
    | AdmissionFailed
)
