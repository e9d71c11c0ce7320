"""The settings of a simulated scheduler: those given, and what Koordinator's ConfigMap says in their place."""

from __future__ import annotations

import msgspec

from cli.simulate.manifests import Manifests
from kube.dialects.coverage.asking_scheduler import in_scheduler_config
from kube.dialects.coverage.rows import sentence
from kube.dialects.koordinator import schedulerconfig
from model.fault import ConfigurationFault
from scheduler.settings import SchedulerSettings
from scheduler.settings_overlay import overlaid

NODE_CONFIG = "slo-controller-config"


def configured(settings: SchedulerSettings, found: Manifests) -> tuple[SchedulerSettings, tuple[str, ...]]:
    """The settings in force, and what of the ConfigMap nothing acts on. Raises ConfigurationFault.

    Nothing is on its way here, so what is missing now is missing.
    """
    settings = msgspec.structs.replace(settings, hold_grace_seconds=0.0)
    unserved: tuple[str, ...] = ()
    for given in found.of("ConfigMap"):
        if given.object.metadata.name != schedulerconfig.NAME:
            continue
        try:
            told = schedulerconfig.read(given.object.data or {})
        except ConfigurationFault as fault:
            raise ConfigurationFault(f"{given.where}: {fault.where}", fault.what, fault.fix) from fault
        over = overlaid(settings, told)
        asked = in_scheduler_config(given.object.data or {})
        idle = (sentence(f"ConfigMap {schedulerconfig.NAME}", each) for each in asked)
        settings, unserved = over.settings, (*unserved, *idle, *told.unserved, *over.unserved)
    return settings, unserved
