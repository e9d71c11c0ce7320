"""Settings of the scheduler, from a YAML or JSON file; every default is kube-scheduler's or says why not."""

from __future__ import annotations

from pathlib import Path

import msgspec

from kube.lease import LeaseSettings
from model.fault import ConfigurationFault
from scheduler.core.parking import BackoffPolicy


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`scheduler_names` are the spec.schedulerName values this scheduler serves.

    `hold_grace_seconds`: a gang whose pods are still being created is told so only once that lasts, since a gang of
    n members would otherwise cost n² condition writes. `workloads_per_cycle` bounds how long one cycle keeps the
    event loop from leases and streams. `concurrent_calls` bounds the TLS listener, where each agent keeps one open.
    """

    scheduler_names: tuple[str, ...] = ("koord-scheduler", "sublet-scheduler")
    backoff: BackoffPolicy = BackoffPolicy()
    debounce_seconds: float = 0.01
    hold_grace_seconds: float = 1.0
    workloads_per_cycle: int = 256
    concurrent_binds: int = 16
    concurrent_writes: int = 8
    concurrent_calls: int = 10_000
    decision_history: int = 1000
    lease: LeaseSettings = LeaseSettings()


def load(path: Path | None) -> Settings:
    """Read a settings file; None gives the defaults. Raises ConfigurationFault naming the file and the field."""
    if path is None:
        return Settings()
    try:
        return msgspec.yaml.decode(path.read_bytes(), type=Settings)
    except OSError as error:
        raise ConfigurationFault(str(path), f"cannot be read: {error.strerror}", "give --settings FILE") from error
    except msgspec.MsgspecError as error:
        raise ConfigurationFault(str(path), str(error), "see scheduler/settings.py for the fields") from error
