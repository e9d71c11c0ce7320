"""The agent's settings: one frozen value, read from YAML or JSON, checked as a whole before anything uses it."""

from __future__ import annotations

from pathlib import Path

import msgspec

from model.fault import ConfigurationFault
from model.strategy import ColocationStrategy, SuppressStrategy


class AgentSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`colocation` and `suppress` are the cluster's defaults; a NodeSLO overrides `suppress` for its node."""

    tick_seconds: float = 1.0
    brake_interval_seconds: float = 0.1
    node_metric_interval_seconds: float = 60.0
    heartbeat_seconds: float = 60.0
    colocation: ColocationStrategy = ColocationStrategy()
    suppress: SuppressStrategy = SuppressStrategy()

    def __post_init__(self) -> None:
        for name, low, high in (
            ("tick_seconds", 0.5, 3.0),
            ("brake_interval_seconds", 0.02, 1.0),
            ("node_metric_interval_seconds", 1.0, 3600.0),
            ("heartbeat_seconds", 1.0, 300.0),
        ):
            if not low <= getattr(self, name) <= high:
                raise ValueError(f"{name} must be between {low:g} and {high:g}")


def load_settings(path: Path | None) -> AgentSettings:
    """Defaults where `path` is None. Raises ConfigurationFault naming the file, the field and what it must be."""
    if path is None:
        return AgentSettings()
    try:
        return msgspec.yaml.decode(path.read_bytes(), type=AgentSettings)
    except OSError as error:
        raise ConfigurationFault(str(path), f"cannot be read: {error.strerror}", "check --settings") from error
    except msgspec.MsgspecError as error:
        raise ConfigurationFault(str(path), str(error), "see agent/settings.py for fields and defaults") from error


def require_loopback(flag: str, address: str) -> tuple[str, int]:
    """(host, port) of HOST:PORT. Raises ConfigurationFault off loopback: plain text never leaves the machine."""
    host, _, port = address.rpartition(":")
    if not port.isdigit() or int(port) > 65535:
        raise ConfigurationFault(f"{flag} {address}", "is not HOST:PORT", "write for example 127.0.0.1:10316")
    if host not in ("127.0.0.1", "localhost", "[::1]"):
        fix = "use 127.0.0.1; reach it with kubectl port-forward"
        raise ConfigurationFault(f"{flag} {address}", "is not a loopback address", fix)
    return host.strip("[]"), int(port)
