"""Koordinator's ConfigMap `koord-scheduler-config`, as far as it is about gangs.

Source: Koordinator config/manager/scheduler-config.yaml and pkg/scheduler/apis/config/v1/types.go (CoschedulingArgs).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
import yaml

from kube.dialects.document import GoDuration, checked
from model.fault import ConfigurationFault
from model.workload import MatchPolicy

NAME = "koord-scheduler-config"
_WHERE = f"ConfigMap {NAME}: "
_KIND = "KubeSchedulerConfiguration"
_PLUGIN = "Coscheduling"


class CoschedulingArgs(msgspec.Struct, frozen=True, rename="camel"):
    """What the Coscheduling plugin is told; None where the document is silent."""

    enable_preemption: bool | None = None
    default_timeout: GoDuration | None = None
    default_match_policy: MatchPolicy | None = None


class _Plugin(msgspec.Struct, frozen=True):
    name: str = ""
    args: dict[str, Any] | None = None


class _Profile(msgspec.Struct, frozen=True):
    plugin_config: list[_Plugin] | None = msgspec.field(name="pluginConfig", default=None)


class _Configuration(msgspec.Struct, frozen=True):
    profiles: list[_Profile] | None = None


def coscheduling(data: Mapping[str, str]) -> CoschedulingArgs:
    """The plugin's arguments: the first profile that has any, keys of the ConfigMap in order of their names.

    Keys that hold other kinds of documents are skipped. Raises ConfigurationFault naming the key and the field.
    """
    for key in sorted(data):
        where = f"{_WHERE}data[{key!r}]"
        for document in _documents(data[key], where):
            found = _arguments(checked(document, _Configuration, where), where)
            if found is not None:
                return found
    return CoschedulingArgs()


def arguments(data: Mapping[str, str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every plugin that any profile gives arguments, with these. Raises ConfigurationFault, as `coscheduling` does."""
    for key in sorted(data):
        where = f"{_WHERE}data[{key!r}]"
        for document in _documents(data[key], where):
            for profile in checked(document, _Configuration, where).profiles or ():
                yield from ((plugin.name, plugin.args or {}) for plugin in profile.plugin_config or ())


def _documents(text: str, where: str) -> Iterator[dict[str, Any]]:
    try:
        found = list(yaml.safe_load_all(text))
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ConfigurationFault(where, f"is not YAML: {error}", "write a KubeSchedulerConfiguration") from error
    for document in found:
        if isinstance(document, dict) and document.get("kind") == _KIND:
            yield document


def _arguments(told: _Configuration, where: str) -> CoschedulingArgs | None:
    for number, profile in enumerate(told.profiles or ()):
        for index, plugin in enumerate(profile.plugin_config or ()):
            if plugin.name == _PLUGIN:
                field = f"{where}.profiles[{number}].pluginConfig[{index}].args"
                return checked(plugin.args or {}, CoschedulingArgs, field)
    return None
