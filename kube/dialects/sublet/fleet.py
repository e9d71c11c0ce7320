"""The switch of the whole fleet: a ConfigMap that says on which nodes agents lend, and whether any of them does.

mode: observe            observe, or lend
paused: "false"          "true": nothing is lent anywhere, at once
canary: pool=batch       nodes that match lend although mode is observe; empty: none
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

import msgspec

from kube.dialects.documents.selector import selector_of
from kube.objects import ConfigMap
from model.fault import ConfigurationFault
from model.selector import Selector


class FleetMode(StrEnum):
    """What agents do on nodes that no canary names."""

    OBSERVE = "observe"
    LEND = "lend"


class Fleet(msgspec.Struct, frozen=True):
    """What the ConfigMap says. Without a word of it nothing is lent."""

    mode: FleetMode = FleetMode.OBSERVE
    paused: bool = False
    canary: Selector | None = None

    def lends(self, labels: Mapping[str, str]) -> bool:
        """Whether a node with these labels is one that lends, paused or not."""
        return self.mode is FleetMode.LEND or (self.canary is not None and self.canary.matches(labels))


_SWITCHES = {"true": True, "false": False, "": False}


def fleet(source: ConfigMap) -> Fleet:
    """Raises ConfigurationFault naming ConfigMap, key and what to write."""
    where = f"ConfigMap {source.metadata.namespace}/{source.metadata.name}"
    data = {key: text.strip() for key, text in (source.data or {}).items()}
    if unknown := sorted(data.keys() - {"mode", "paused", "canary"}):
        raise ConfigurationFault(f"{where}: {unknown[0]}", "is no key", "write mode, paused or canary")
    mode, paused = data.get("mode", "") or FleetMode.OBSERVE.value, data.get("paused", "").lower()
    if mode not in tuple(FleetMode):
        raise ConfigurationFault(f"{where}: mode", f"is {mode!r}", "write observe or lend")
    if paused not in _SWITCHES:
        raise ConfigurationFault(f"{where}: paused", f"is {paused!r}", 'write "true" or "false"')
    return Fleet(FleetMode(mode), _SWITCHES[paused], _canary(data.get("canary", ""), where))


def _canary(text: str, where: str) -> Selector | None:
    try:
        return selector_of(text) if text else None
    except ValueError as error:
        raise ConfigurationFault(f"{where}: canary", str(error), "write a label selector as for kubectl -l") from error
