"""NodeSLO, and the ConfigMap it is rendered from: best effort's CPU, evictions and host applications.

Each part is read by itself, so that what is wrong in one holds up no other, the switch to off least of all.

Source: Koordinator apis/slo/v1alpha1/{nodeslo_types,host_application}.go, pkg/koordlet/util/host_application.go.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta, field

from kube.dialects.documents.document import checked
from kube.dialects.koordinator.configkey import Section
from kube.objects import NodeSLO
from model.qos import KubernetesQoS, PriorityBand, QoSClass, priority_band
from model.strategy import CpuLimitPolicy, HostApplication, SuppressPolicy

T = TypeVar("T")

_Percent = Annotated[int, Meta(ge=0, le=100)]
_Share = Annotated[int, Meta(ge=0, le=1 << 31)]
_Priority = Annotated[int, Meta(ge=-(1 << 31), lt=1 << 31)]
_Path = Annotated[str, Meta(pattern=r"^[^\x00-\x1f]*$")]


class SuppressPolicyText(StrEnum):
    """model.strategy.SuppressPolicy as documents write it: an empty text is as none."""

    ADAPTIVE = SuppressPolicy.ADAPTIVE.value
    CFS_QUOTA = SuppressPolicy.CFS_QUOTA.value
    CPUSET = SuppressPolicy.CPUSET.value
    UNSET = ""


class SwitchFields(msgspec.Struct, frozen=True):
    """Whether best effort is suppressed and evicted at all; None where a document is silent."""

    enable: bool | None = None


class SuppressFields(msgspec.Struct, frozen=True):
    """Fields of model.strategy.SuppressStrategy that a document sets; None where it is silent."""

    threshold_pct: _Percent | None = field(name="cpuSuppressThresholdPercent", default=None)
    min_pct: _Percent | None = field(name="cpuSuppressMinPercent", default=None)
    policy: SuppressPolicyText | None = field(name="cpuSuppressPolicy", default=None)


class EvictionPolicy(StrEnum):
    """What best effort's satisfaction is measured against."""

    REAL_LIMIT = CpuLimitPolicy.REAL_LIMIT.value
    ALLOCATABLE = CpuLimitPolicy.ALLOCATABLE.value
    UNSET = ""


class EvictionFields(msgspec.Struct, frozen=True):
    """Fields of model.strategy.EvictionStrategy that a document sets; None where it is silent."""

    memory_threshold_pct: _Percent | None = field(name="memoryEvictThresholdPercent", default=None)
    memory_lower_pct: _Percent | None = field(name="memoryEvictLowerPercent", default=None)
    memory_allocatable_threshold_pct: _Share | None = field(name="memoryAllocatableEvictThresholdPercent", default=None)
    memory_allocatable_lower_pct: _Share | None = field(name="memoryAllocatableEvictLowerPercent", default=None)
    cpu_satisfaction_upper_pct: _Percent | None = field(name="cpuEvictBESatisfactionUpperPercent", default=None)
    cpu_satisfaction_lower_pct: _Percent | None = field(name="cpuEvictBESatisfactionLowerPercent", default=None)
    cpu_be_usage_threshold_pct: _Percent | None = field(name="cpuEvictBEUsageThresholdPercent", default=None)
    cpu_window_seconds: Annotated[int, Meta(gt=0)] | None = field(name="cpuEvictTimeWindowSeconds", default=None)
    cpu_threshold_pct: _Percent | None = field(name="cpuEvictThresholdPercent", default=None)
    cpu_lower_pct: _Percent | None = field(name="cpuEvictLowerPercent", default=None)
    cpu_allocatable_threshold_pct: _Share | None = field(name="cpuAllocatableEvictThresholdPercent", default=None)
    cpu_allocatable_lower_pct: _Share | None = field(name="cpuAllocatableEvictLowerPercent", default=None)
    cpu_limit_policy: EvictionPolicy | None = field(name="cpuEvictPolicy", default=None)
    priority_threshold: _Priority | None = field(name="evictEnabledPriorityThreshold", default=None)
    allocatable_priority_threshold: Annotated[int, Meta(ge=-(1 << 31), le=7999)] | None = field(
        name="allocatableEvictPriorityThreshold", default=None
    )

    def __post_init__(self) -> None:
        for low, high in _ORDERED:
            lower, upper = getattr(self, low), getattr(self, high)
            if lower is None or upper is None or lower < upper:
                continue
            names = msgspec.structs.fields(self)
            low_name, high_name = (next(f.encode_name for f in names if f.name == name) for name in (low, high))
            raise ValueError(f"expected {low_name} below {high_name}")


_ORDERED = (
    ("memory_lower_pct", "memory_threshold_pct"),
    ("memory_allocatable_lower_pct", "memory_allocatable_threshold_pct"),
    ("cpu_lower_pct", "cpu_threshold_pct"),
    ("cpu_allocatable_lower_pct", "cpu_allocatable_threshold_pct"),
)
"""Lower and upper. Satisfaction's pair is not among them: out of order it switches its rule off, as in koordlet."""


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


class _Threshold(msgspec.Struct, frozen=True):
    section: dict[str, Any] | None = field(name=Section.THRESHOLD.value, default=None)


class _Hosts(msgspec.Struct, frozen=True, rename="camel"):
    host_applications: list[HostApplicationSpec] | None = None


class OtherSections(msgspec.Struct, frozen=True):
    """Sections nothing acts on yet must be objects all the same."""

    resource_qos: dict[str, Any] | None = field(name=Section.QOS.value, default=None)
    system: dict[str, Any] | None = field(name=Section.SYSTEM.value, default=None)
    extensions: dict[str, Any] | None = None


def slo_threshold(source: NodeSLO | None, kind: type[T]) -> T:
    """The fields of `kind` in `resourceUsedThresholdWithBE`; silent without an object.

    Raises ConfigurationFault naming object, field and what to write, as the two below do.
    """
    return checked(_spec(source, _Threshold).section or {}, kind, f"{_where(source)}.{Section.THRESHOLD}")


def slo_host_applications(source: NodeSLO | None) -> HostApplicationFields:
    """`hostApplications`."""
    applications = {"applications": _spec(source, _Hosts).host_applications}
    return checked(applications, HostApplicationFields, f"{_where(source)}.hostApplications")


def slo_others(source: NodeSLO | None) -> OtherSections:
    """All the rest."""
    return _spec(source, OtherSections)


def _where(source: NodeSLO | None) -> str:
    return f"NodeSLO {source.metadata.name if source else ''}: spec"


def _spec(source: NodeSLO | None, kind: type[T]) -> T:
    return checked({} if source is None or source.spec is None else source.spec, kind, _where(source))


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
