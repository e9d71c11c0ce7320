"""The sections of NodeSLO and slo-controller-config that Sublet passes on or acts on in parts, with all their ranges.

Fields are None where a document is silent. Source: Koordinator apis/slo/v1alpha1/nodeslo_types.go (validate tags) and
pkg/webhook/cm/plugins/sloconfig.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta, field

from kube.dialects.documents.document import checked
from kube.dialects.koordinator.configkey import ConfigKey, Section
from kube.dialects.koordinator.cpuburst import BurstFields
from kube.dialects.koordinator.sloconfig import Layers, layers
from kube.objects import ConfigMap, NodeSLO
from model.quantity import QuantityError, parse

T = TypeVar("T")

_Percent = Annotated[int, Meta(ge=0, le=100)]
_Switch = Annotated[int, Meta(ge=0, le=1)]
_Positive = Annotated[int, Meta(ge=0)]


def _is_amount(written: str | int) -> bool:
    try:
        return parse(written) >= 0
    except QuantityError:
        return False


class CpuPolicy(StrEnum):
    """What keeps classes apart on the CPU."""

    GROUP_IDENTITY = "groupIdentity"
    CORE_SCHED = "coreSched"
    UNSET = ""


class NetPolicy(StrEnum):
    """What keeps classes apart on the network."""

    TC = "tc"
    TERWAY = "terway-qos"
    UNSET = ""


class BlockType(StrEnum):
    """What a block device is named by."""

    DEVICE = "device"
    VOLUME_GROUP = "volumegroup"
    POD_VOLUME = "podvolume"


class CpuQos(msgspec.Struct, frozen=True, rename="camel"):
    enable: bool | None = None
    group_identity: Annotated[int, Meta(ge=-1, le=2)] | None = None
    sched_idle: _Switch | None = None
    core_expeller: bool | None = None


class MemoryQos(msgspec.Struct, frozen=True, rename="camel"):
    enable: bool | None = None
    min_limit_percent: _Percent | None = None
    low_limit_percent: _Percent | None = None
    throttling_percent: _Percent | None = None
    wmark_ratio: _Percent | None = None
    wmark_scale_permill: Annotated[int, Meta(ge=1, le=1000)] | None = None
    wmark_min_adj: Annotated[int, Meta(ge=-25, le=50)] | None = None
    priority_enable: _Switch | None = None
    priority: Annotated[int, Meta(ge=0, le=12)] | None = None
    oom_kill_group: _Switch | None = None
    page_cache_enable: bool | None = None
    page_cache_limit_percent: _Percent | None = None
    page_cache_limit_size: str | int | None = None
    page_cache_reclaim_sync: bool | None = None


class BlockIo(msgspec.Struct, frozen=True):
    read_iops: _Positive | None = field(name="readIOPS", default=None)
    write_iops: _Positive | None = field(name="writeIOPS", default=None)
    read_bps: _Positive | None = field(name="readBPS", default=None)
    write_bps: _Positive | None = field(name="writeBPS", default=None)
    weight: Annotated[int, Meta(ge=1, le=100)] | None = field(name="ioWeightPercent", default=None)
    read_latency: _Positive | None = field(name="readLatency", default=None)
    write_latency: _Positive | None = field(name="writeLatency", default=None)
    read_latency_percent: _Percent | None = field(name="readLatencyPercent", default=None)
    write_latency_percent: _Percent | None = field(name="writeLatencyPercent", default=None)
    user_model: bool | None = field(name="enableUserModel", default=None)
    model_read_bps: _Positive | None = field(name="modelReadBPS", default=None)
    model_write_bps: _Positive | None = field(name="modelWriteBPS", default=None)
    model_read_seq: _Positive | None = field(name="modelReadSeqIOPS", default=None)
    model_write_seq: _Positive | None = field(name="modelWriteSeqIOPS", default=None)
    model_read_rand: _Positive | None = field(name="modelReadRandIOPS", default=None)
    model_write_rand: _Positive | None = field(name="modelWriteRandIOPS", default=None)


class Block(msgspec.Struct, frozen=True):
    name: str | None = None
    type: BlockType | None = None
    settings: BlockIo | None = field(name="ioCfg", default=None)


class BlockQos(msgspec.Struct, frozen=True):
    enable: bool | None = None
    blocks: list[Block] | None = None


class ResctrlQos(msgspec.Struct, frozen=True):
    """A part of the cache from a percentage to a higher one, and a share of the memory bandwidth."""

    enable: bool | None = None
    start: _Percent | None = field(name="catRangeStartPercent", default=None)
    end: _Percent | None = field(name="catRangeEndPercent", default=None)
    mba: _Percent | None = field(name="mbaPercent", default=None)

    def __post_init__(self) -> None:
        if self.start is not None and self.end is not None and self.start >= self.end:
            raise ValueError("expected catRangeStartPercent below catRangeEndPercent")


class NetworkQos(msgspec.Struct, frozen=True, rename="camel"):
    """Percent of the node's bandwidth as a number, or bits a second as a quantity."""

    enable: bool | None = None
    ingress_request: _Percent | str | None = None
    ingress_limit: _Percent | str | None = None
    egress_request: _Percent | str | None = None
    egress_limit: _Percent | str | None = None

    def __post_init__(self) -> None:
        for each in msgspec.structs.fields(self):
            value = getattr(self, each.name)
            if isinstance(value, str) and not _is_amount(value):
                raise ValueError(f"expected {each.encode_name} to be 0 to 100 percent or a quantity such as 50M")


class QosClassFields(msgspec.Struct, frozen=True):
    """What one class of pods gets."""

    cpu: CpuQos | None = field(name="cpuQOS", default=None)
    memory: MemoryQos | None = field(name="memoryQOS", default=None)
    block: BlockQos | None = field(name="blkioQOS", default=None)
    resctrl: ResctrlQos | None = field(name="resctrlQOS", default=None)
    network: NetworkQos | None = field(name="networkQOS", default=None)


class QosPolicies(msgspec.Struct, frozen=True):
    cpu: CpuPolicy | None = field(name="cpuPolicy", default=None)
    network: NetPolicy | None = field(name="netQOSPolicy", default=None)


class QosFields(msgspec.Struct, frozen=True, rename="camel"):
    """resourceQOSStrategy."""

    policies: QosPolicies | None = None
    lsr_class: QosClassFields | None = None
    ls_class: QosClassFields | None = None
    be_class: QosClassFields | None = None
    system_class: QosClassFields | None = None
    cgroup_root: QosClassFields | None = None


class SystemFields(msgspec.Struct, frozen=True, rename="camel"):
    """systemStrategy."""

    min_free_kbytes_factor: Annotated[int, Meta(gt=0)] | None = None
    watermark_scale_factor: Annotated[int, Meta(gt=0, le=400)] | None = None
    memcg_reap_back_ground: _Switch | None = None
    sched_group_identity_enabled: _Switch | None = None
    sched_idle_saver_wmark: _Positive | None = None
    sched_features: dict[str, bool] | None = None
    page_cache_limit_enabled: bool | None = None
    total_network_bandwidth: str | int | None = None

    def __post_init__(self) -> None:
        if self.total_network_bandwidth is not None and not _is_amount(self.total_network_bandwidth):
            raise ValueError("expected totalNetworkBandwidth to be a quantity such as 10G")


class AmplificationFields(msgspec.Struct, frozen=True, rename="camel"):
    """resource-amplification-config."""

    enable: bool | None = None
    resource_amplification_ratio: dict[str, Annotated[float, Meta(ge=1)]] | None = None


NODE_SLO_SECTIONS: Mapping[Section, type[msgspec.Struct]] = {
    Section.QOS: QosFields,
    Section.CPU_BURST: BurstFields,
    Section.SYSTEM: SystemFields,
}
"""Sections of a NodeSLO and their fields."""


def qos_layers(source: ConfigMap | None) -> Layers[QosFields] | None:
    """`resource-qos-config`; None where there is none. Raises ConfigurationFault, as all below do."""
    return layers(source, ConfigKey.QOS, QosFields)


def system_layers(source: ConfigMap | None) -> Layers[SystemFields] | None:
    """`system-config`."""
    return layers(source, ConfigKey.SYSTEM, SystemFields)


def amplification_layers(source: ConfigMap | None) -> Layers[AmplificationFields] | None:
    """`resource-amplification-config`."""
    return layers(source, ConfigKey.AMPLIFICATION, AmplificationFields)


def slo_sections(source: NodeSLO) -> Mapping[str, Any]:
    """Those of a NodeSLO that have a type here, by their name in the spec."""
    spec = source.spec if isinstance(source.spec, dict) else {}
    where = f"NodeSLO {source.metadata.name}: spec"
    return {
        name: checked(spec[name], kind, f"{where}.{name}")
        for name, kind in NODE_SLO_SECTIONS.items()
        if spec.get(name) is not None
    }
