"""The settings of a simulated scheduler: those given, and what Koordinator's ConfigMap says of gangs."""

from __future__ import annotations

import msgspec

from cli.manifests import Manifests
from kube.dialects import schedulerconfig
from model.fault import ConfigurationFault
from scheduler.settings import Settings

CONFIG_MAP = "koord-scheduler-config"
NODE_CONFIG = "slo-controller-config"


def configured(settings: Settings, found: Manifests) -> Settings:
    """Nothing is on its way here, so what is missing now is missing. Raises ConfigurationFault."""
    settings = msgspec.structs.replace(settings, hold_grace_seconds=0.0)
    for given in found.of("ConfigMap"):
        if given.object.metadata.name != CONFIG_MAP:
            continue
        try:
            settings = settings.overlaid(schedulerconfig.coscheduling(given.object.data or {}))
        except ConfigurationFault as fault:
            raise ConfigurationFault(f"{given.where}: {fault.where}", fault.what, fault.fix) from fault
    return settings
