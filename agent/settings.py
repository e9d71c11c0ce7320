"""The agent's settings: one frozen value, read from YAML or JSON, checked as a whole before anything uses it."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from agent.core.observe.prediction import PredictionPolicy
from kube.settingsfile import read_settings
from model.fault import ConfigurationFault
from model.qos import UclampStrategy
from model.strategy import BurstStrategy, ColocationStrategy, EvictionStrategy, NormalizationStrategy, SuppressStrategy


class PodOrigin(StrEnum):
    """The source of the node's pods."""

    API = "api"
    KUBELET = "kubelet"


class PodSource(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where the agent learns of its pods."""

    source: Annotated[
        PodOrigin, Meta(description="api: watch the API server; kubelet: poll this node's kubelet each 10 s.")
    ] = PodOrigin.API
    kubelet_url: Annotated[
        str, Meta(pattern=r"^https://[^/]+$", description="The kubelet's address, as https://HOST:PORT.")
    ] = "https://127.0.0.1:10250"
    ca_file: Annotated[str, Meta(description="Certificate authority of the kubelet's certificate.")] = ""
    token_file: Annotated[
        str, Meta(description="Service-account token; read again for every request, since it is rotated.")
    ] = "/var/run/secrets/kubernetes.io/serviceaccount/token"
    insecure_skip_verify: Annotated[
        bool, Meta(description="Trust any certificate, as Koordinator does; only without ca_file.")
    ] = False

    def __post_init__(self) -> None:
        if self.ca_file and self.insecure_skip_verify:
            raise ValueError("insecure_skip_verify must not be set together with ca_file")
        if self.source is PodOrigin.KUBELET and not self.ca_file and not self.insecure_skip_verify:
            raise ValueError("ca_file must be set for source kubelet, or insecure_skip_verify")


class Mode(StrEnum):
    """Whether the agent acts."""

    ENFORCE = "enforce"
    OBSERVE = "observe"


class AgentSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Of `colocation`, `suppress`, `eviction`, `burst`, `normalization` these are defaults: documents override them.

    Their fields stand in model/strategy.py.
    """

    mode: Annotated[
        Mode, Meta(description="enforce, or observe: compute and report, write nothing to kernel or cluster.")
    ] = Mode.ENFORCE
    tick_seconds: Annotated[float, Meta(ge=0.5, le=3.0, description="Time between two observations.")] = 1.0
    brake_interval_seconds: Annotated[
        float, Meta(ge=0.02, le=1.0, description="How often the brake looks between two ticks.")
    ] = 0.1
    heartbeat_seconds: Annotated[
        float, Meta(ge=1.0, le=300.0, description="How often the node's condition is renewed unchanged.")
    ] = 60.0
    topology_seconds: Annotated[
        float, Meta(ge=1.0, le=3600.0, description="How often the NodeResourceTopology is checked.")
    ] = 60.0
    config_map: Annotated[
        str,
        Meta(pattern="^[a-z0-9.-]+/[a-z0-9.-]+$", description="Namespace/name of Koordinator's slo-controller-config."),
    ] = "koordinator-system/slo-controller-config"
    fleet: Annotated[
        str,
        Meta(
            pattern="^([a-z0-9.-]+/[a-z0-9.-]+)?$",
            description="Namespace/name of the ConfigMap that switches lending on all nodes; empty: only mode counts.",
        ),
    ] = ""
    pods: PodSource = PodSource()
    colocation: ColocationStrategy = ColocationStrategy()
    suppress: SuppressStrategy = SuppressStrategy()
    eviction: EvictionStrategy = EvictionStrategy()
    burst: BurstStrategy = BurstStrategy()
    uclamp: UclampStrategy = UclampStrategy()
    oom_scores: Annotated[
        bool,
        Meta(
            description="Set oom_score_adj of containers as annotations koordinator.sh/oom-score-adj say; of processes "
            "of other users than root only with CAP_DAC_OVERRIDE, which deploy/ does not grant."
        ),
    ] = False
    normalization: NormalizationStrategy = NormalizationStrategy()
    prediction: PredictionPolicy = PredictionPolicy()


def load_settings(path: Path | None) -> AgentSettings:
    """The defaults where there is no file. Raises ConfigurationFault."""
    return read_settings(path, AgentSettings)


def require_loopback(flag: str, address: str) -> tuple[str, int]:
    """(host, port) of HOST:PORT. Raises ConfigurationFault off loopback: plain text never leaves the machine."""
    host, _, port = address.rpartition(":")
    if not port.isdigit() or int(port) > 65535:
        raise ConfigurationFault(f"{flag} {address}", "is not HOST:PORT", "write for example 127.0.0.1:10316")
    if host not in ("127.0.0.1", "localhost", "[::1]"):
        fix = "use 127.0.0.1; reach it with kubectl port-forward"
        raise ConfigurationFault(f"{flag} {address}", "is not a loopback address", fix)
    return host.strip("[]"), int(port)
