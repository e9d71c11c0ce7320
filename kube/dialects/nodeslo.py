"""What NodeSLO, and the ConfigMap it is rendered from, say of best effort's CPU and of host applications.

Source: Koordinator apis/slo/v1alpha1/{nodeslo_types,host_application}.go, pkg/koordlet/util/host_application.go.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import msgspec
from msgspec import Meta, field

from kube.dialects.document import checked
from kube.objects import NodeSLO
from model.qos import KubernetesQoS, PriorityBand, QoSClass, priority_band
from model.strategy import HostApplication

_Percent = Annotated[int, Meta(ge=0, le=100)]
_Path = Annotated[str, Meta(pattern=r"^[^\x00-\x1f]*$")]


class SuppressPolicy(StrEnum):
    """Koordinator's two, and ours."""

    ADAPTIVE = "adaptive"
    CFS_QUOTA = "cfsQuota"
    CPUSET = "cpuset"
    UNSET = ""


class SuppressFields(msgspec.Struct, frozen=True):
    """Fields of model.strategy.SuppressStrategy that a document sets; None where it is silent."""

    enable: bool | None = None
    threshold_pct: _Percent | None = field(name="cpuSuppressThresholdPercent", default=None)
    min_pct: _Percent | None = field(name="cpuSuppressMinPercent", default=None)
    policy: SuppressPolicy | None = field(name="cpuSuppressPolicy", default=None)


class CgroupBase(StrEnum):
    """What a host application's path starts from; unset is the root."""

    ROOT = "CgroupRoot"
    KUBEPODS = "Kubepods"
    BURSTABLE = "KubepodsBurstable"
    BEST_EFFORT = "KubepodsBesteffort"
    UNSET = ""


class CgroupPath(msgspec.Struct, frozen=True, rename="camel"):
    """`base`, then `parent_dir`, then `relative_path`."""

    base: CgroupBase | None = None
    parent_dir: _Path | None = None
    relative_path: _Path | None = None

    def __post_init__(self) -> None:
        parts = _parts(self.parent_dir, self.relative_path)
        if ".." in parts:
            raise ValueError("expected a path without ..")
        if not parts and self.base in (None, CgroupBase.UNSET, CgroupBase.ROOT):
            raise ValueError("expected a path below the root")


class HostApplicationSpec(msgspec.Struct, frozen=True, rename="camel"):
    """One host application as it is written."""

    name: Annotated[str, Meta(pattern=r"^[^/\x00-\x1f]+$")]
    priority: PriorityBand | None = None
    qos: QoSClass | None = None
    cgroup_path: CgroupPath | None = None

    def __post_init__(self) -> None:
        if self.name in (".", ".."):
            raise ValueError("expected a name")


class HostApplicationFields(msgspec.Struct, frozen=True):
    """The programs of the host that are measured apart; None where the document is silent."""

    applications: list[HostApplicationSpec] | None = None

    def __post_init__(self) -> None:
        names = [application.name for application in self.applications or ()]
        if len(names) != len(set(names)):
            raise ValueError("expected each application's name once")


class NodeSLOFields(msgspec.Struct, frozen=True):
    """What one NodeSLO says of what this version acts on."""

    suppress: SuppressFields = SuppressFields()
    host_applications: HostApplicationFields = HostApplicationFields()


class _Spec(msgspec.Struct, frozen=True, rename="camel"):
    """Sections nothing acts on yet must be objects all the same."""

    threshold: SuppressFields | None = field(name="resourceUsedThresholdWithBE", default=None)
    resource_qos: dict[str, Any] | None = field(name="resourceQOSStrategy", default=None)
    cpu_burst: dict[str, Any] | None = field(name="cpuBurstStrategy", default=None)
    system_strategy: dict[str, Any] | None = None
    extensions: dict[str, Any] | None = None
    host_applications: list[HostApplicationSpec] | None = None


def node_slo(source: NodeSLO) -> NodeSLOFields:
    """Raises ConfigurationFault naming object, field and what to write."""
    where = f"NodeSLO {source.metadata.name}: spec"
    spec = checked({} if source.spec is None else source.spec, _Spec, where)
    applications = {"applications": spec.host_applications}
    return NodeSLOFields(
        spec.threshold or SuppressFields(),
        checked(applications, HostApplicationFields, f"{where}.hostApplications"),
    )


def host_application(spec: HostApplicationSpec, kubepods: str) -> HostApplication:
    """`kubepods` is the pods' root below the controllers' mounts, such as `/kubepods` or `/kubepods.slice`.

    An application without a priority gets its QoS class's: one that counted for nothing would be lent twice.
    """
    qos = spec.qos or QoSClass.NONE
    base = spec.cgroup_path.base if spec.cgroup_path else None
    return HostApplication(
        name=spec.name,
        cgroup="/" + "/".join(_cgroup(spec, kubepods)),
        qos=qos.value,
        priority=(spec.priority or priority_band(None, None, qos)).value,
        below_best_effort=qos is QoSClass.BE and base is CgroupBase.BEST_EFFORT,
    )


def _cgroup(spec: HostApplicationSpec, kubepods: str) -> list[str]:
    path = spec.cgroup_path
    if path is None:
        online = spec.qos in (QoSClass.LSE, QoSClass.LSR, QoSClass.LS)
        parent = "host-latency-sensitive" if online else "host-best-effort" if spec.qos is QoSClass.BE else ""
        return _parts(parent, spec.name)
    below = {
        CgroupBase.KUBEPODS: KubernetesQoS.GUARANTEED,
        CgroupBase.BURSTABLE: KubernetesQoS.BURSTABLE,
        CgroupBase.BEST_EFFORT: KubernetesQoS.BEST_EFFORT,
    }.get(path.base or CgroupBase.ROOT)
    root = _kubernetes_root(kubepods, below) if below else ""
    return _parts(root, path.parent_dir, path.relative_path)


def _kubernetes_root(kubepods: str, qos: KubernetesQoS) -> str:
    """A class's directory; the systemd driver repeats the root's name in it (`kubepods-besteffort.slice`)."""
    if qos is KubernetesQoS.GUARANTEED:
        return kubepods
    name = qos.value.lower()
    parent = kubepods.rpartition("/")[2]
    return (
        f"{kubepods}/{parent.removesuffix('.slice')}-{name}.slice"
        if parent.endswith(".slice")
        else f"{kubepods}/{name}"
    )


def _parts(*paths: str | None) -> list[str]:
    """Components, as Go's filepath.Join leaves them."""
    return [part for path in paths if path for part in path.split("/") if part not in ("", ".")]
