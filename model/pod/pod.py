"""Pod: what Sublet needs to know of one, already translated from Kubernetes' and Koordinator's words."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from model.pod.colocation import Colocation
from model.pod.spec import PodSpec
from model.pod.status import PodPhase, PodStatus
from model.qos import KubernetesQoS, PriorityBand, QoSClass
from model.workload import WorkloadId

_TERMINAL = (PodPhase.SUCCEEDED, PodPhase.FAILED)


class Pod(msgspec.Struct, frozen=True):
    """One pod: its metadata, and the other parts by name."""

    namespace: str
    """metadata.namespace."""
    name: str
    """metadata.name."""
    uid: str
    """metadata.uid."""
    spec: PodSpec = PodSpec()
    """What it asks for."""
    status: PodStatus = PodStatus()
    """How far it has come."""
    colocation: Colocation = Colocation()
    """What Koordinator's labels and annotations say of it."""
    labels: Mapping[str, str] = {}
    """metadata.labels."""
    created_seconds: float = 0.0
    """metadata.creationTimestamp in Unix seconds, 0 without one."""
    deleting: bool = False
    """It has a metadata.deletionTimestamp."""
    ends_seconds: float = 0.0
    """metadata.deletionTimestamp in Unix seconds, its grace included: by when it is to be gone; 0 without one."""
    owned: bool = False
    """It has a controller, which would replace it."""
    owner: str = ""
    """Its controller as `namespace/name`, empty without one."""
    owner_kind: str = ""
    """Its controller's kind, such as Job; empty without one."""
    daemon: bool = False
    """Its controller is a DaemonSet."""
    cgroup_uid: str = ""
    """What its cgroup is named by: the uid, or for the mirror of a static pod the hash of its configuration."""

    @property
    def key(self) -> str:
        """`namespace/name`."""
        return f"{self.namespace}/{self.name}"

    @property
    def submission_key(self) -> str:
        """Key of the LocalQueue that it names (`namespace/name`), with no name where it names none."""
        return f"{self.namespace}/{self.spec.local_queue}"

    @property
    def own_workload(self) -> WorkloadId:
        """Its gang by itself, whatever group that is in; the pod where it has none."""
        gang = self.spec.gang
        return WorkloadId.pod(self.key) if gang is None else WorkloadId.gang(gang.key)

    @property
    def terminal(self) -> bool:
        """The pod holds no resources any more."""
        return self.status.phase in _TERMINAL

    @property
    def borrows(self) -> bool:
        """Lives on what is lent, as batch or as mid, where its kubelet keeps it below the best-effort root."""
        return self.colocation.qos_label is QoSClass.BE or self.colocation.band is PriorityBand.MID

    @property
    def best_effort(self) -> bool:
        """Suppressed as batch work: label BE, or Kubernetes class BestEffort (Koordinator's rule for suppression)."""
        return self.colocation.qos_label is QoSClass.BE or self.status.kubernetes_qos is KubernetesQoS.BEST_EFFORT
