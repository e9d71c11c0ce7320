"""Settings in force: the file's, and those of Koordinator's ConfigMap over them while it can be read."""

from __future__ import annotations

import msgspec

from kube import objects
from kube.dialects.coverage.asking_scheduler import in_scheduler_config
from kube.dialects.coverage.rows import sentence
from kube.dialects.koordinator import schedulerconfig
from kube.dialects.koordinator.schedulerconfig import SchedulerConfig
from model.fault import ConfigurationFault
from model.reason import Reason
from scheduler.ports import NamedObject
from scheduler.settings import SchedulerSettings
from scheduler.settings_overlay import overlaid

INVALID = Reason.CONFIGURATION_INVALID.value
_SETTINGS = "settings"
_KEPT = "; what it said before stays in force"
_UNKNOWN = "; what it says of preemption is not known, so nobody is evicted"
_MOST_TOLD = 8
"""Sentences that one Event repeats; GetSettings has them all."""


class ConfigEvent(msgspec.Struct, frozen=True):
    """An Event on the ConfigMap."""

    config_map: NamedObject
    reason: str
    message: str
    warning: bool = False


class InForce(msgspec.Struct, frozen=True):
    """The sources of what holds: `enabled_by` where preemption's switch stands, `config_map` (`namespace/name`) and its
    version where one was read last, `problem` why its present content is not acted on, `unserved` what of it nothing
    acts on.
    """

    enabled_by: str = _SETTINGS
    config_map: str = ""
    version: str = ""
    problem: str = ""
    unserved: tuple[str, ...] = ()


class SettingsInForce:
    """`settings` are in force; `base` are those without the ConfigMap, which a deletion brings back."""

    def __init__(self, base: SchedulerSettings) -> None:
        self.base = base
        self.settings = base
        self.in_force = InForce()
        self._read = False
        self._data: dict[str, str] | None = None

    def apply(self, source: objects.ConfigMap | None) -> list[ConfigEvent]:
        """The ConfigMap is this now, or is not there; returns what is to be said about that."""
        data = None if source is None else source.data or {}
        if data == self._data:
            return []
        self._data = data
        if source is None:
            self.settings, self.in_force, self._read = self.base, InForce(), False
            return []
        metadata = source.metadata
        named = NamedObject(metadata.namespace, metadata.name, metadata.uid)
        try:
            document = schedulerconfig.read(data or {}, f"ConfigMap {named.key}")
        except ConfigurationFault as fault:
            return self._refuse(named, metadata.resource_version, fault)
        return self._accept(named, metadata.resource_version, document)

    def _accept(self, named: NamedObject, version: str, document: SchedulerConfig) -> list[ConfigEvent]:
        found = overlaid(self.base, document)
        enabled_by = f"ConfigMap {named.key}" if found.switched else _SETTINGS
        asked = in_scheduler_config(self._data or {})
        idle = (sentence(f"ConfigMap {named.key}", each) for each in asked)
        unserved = (*idle, *document.unserved, *found.unserved)
        self.settings, self._read = found.settings, True
        self.in_force = InForce(enabled_by, named.key, version, unserved=unserved)
        events = [ConfigEvent(named, "ConfigurationApplied", "in force, without a restart")]
        if unserved:
            events.append(ConfigEvent(named, "ConfigurationIgnored", _some(unserved), warning=True))
        return events

    def _refuse(self, named: NamedObject, version: str, fault: ConfigurationFault) -> list[ConfigEvent]:
        """The last good content stays; where there was none, preemption waits for a word that can be read."""
        if not self._read:
            preemption = msgspec.structs.replace(self.base.preemption, enable=False)
            self.settings = msgspec.structs.replace(self.base, preemption=preemption)
            self.in_force = InForce(f"ConfigMap {named.key}", named.key)
        problem = f"{fault}{_KEPT if self._read else _UNKNOWN}"
        self.in_force = msgspec.structs.replace(self.in_force, version=version, problem=problem)
        return [ConfigEvent(named, INVALID, problem, warning=True)]


def _some(sentences: tuple[str, ...]) -> str:
    rest = len(sentences) - _MOST_TOLD
    return "; ".join((*sentences[:_MOST_TOLD], *([f"and {rest} more"] if rest > 0 else [])))
