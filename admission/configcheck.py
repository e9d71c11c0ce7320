"""Checks of Koordinator's ConfigMaps: what their readers refuse, and what only the writer can
mend.

Source: Koordinator pkg/webhook/cm/plugins/sloconfig.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

import msgspec

from admission.check_result import CheckContext, CheckResult
from admission.core.overlap import nested, overlap
from kube.dialects.coverage.bandwidth import at_odds
from kube.dialects.coverage.rules import flaws_of
from kube.dialects.documents.document import parsed, part, value_of
from kube.dialects.documents.selector import LabelSelector
from kube.dialects.documents.spelling import not_known, unknown_fields
from kube.dialects.koordinator import cpuburst, schedulerconfig, sloconfig, slosections
from kube.dialects.koordinator.configkey import ConfigKey
from kube.dialects.koordinator.nodeslo import EvictionFields, HostApplicationFields, SuppressFields, SwitchFields
from kube.objects import ConfigMap
from model.fault import ConfigurationFault
from model.selector import Selector

NAME = "slo-controller-config"

_Reader = Callable[[ConfigMap], object]
_SECONDS = {
    "aggregate_seconds": "metricAggregateDurationSeconds",
    "report_seconds": "metricReportIntervalSeconds",
    "update_interval_seconds": "updateTimeThresholdSeconds",
}


class _Check(msgspec.Struct, frozen=True):
    """The reader of one key of the ConfigMap, and the fields it fills; `rules` finds what no reader minds."""

    readers: tuple[_Reader, ...]
    fields: tuple[type, ...]
    rules: Callable[[ConfigMap], CheckResult] = lambda source: CheckResult()


def _evictions(source: ConfigMap) -> CheckResult:
    """Rules that would be off: some Koordinator refuses. Where everything is switched off no more is asked for."""
    switch = sloconfig.cluster_switch(source)
    found = list(flaws_of(sloconfig.eviction_layers(source)))
    told = [(f"{_where(source)}: {ConfigKey.THRESHOLD}.{place}.{flaw}", flaw) for place, flaw in found]
    off = switch is not None and switch.enable is False
    return CheckResult(
        tuple(text for text, flaw in told if flaw.refused),
        tuple(text for text, flaw in told if not flaw.refused and not off),
    )


def _network(source: ConfigMap) -> CheckResult:
    try:
        system = slosections.system_layers(source)
    except ConfigurationFault:
        system = None  # told of by its own key
    at = f"{_where(source)}: {ConfigKey.QOS}"
    return CheckResult(warnings=tuple(f"{at}.{each}" for each in at_odds(slosections.qos_layers(source), system)))


def _durations(source: ConfigMap) -> CheckResult:
    """Readers bring times into range; one below a second is a mistake (Koordinator's validate tags: min=1)."""
    layers = sloconfig.colocation_layers(source)
    told = [("", layers.cluster)] if layers else []
    told += [
        (f".{ConfigKey.COLOCATION.entries}[{number}]", entry.fields)
        for number, entry in enumerate(layers.nodes if layers else ())
    ]
    refusals = []
    for place, fields in told:
        for name, written in _SECONDS.items():
            seconds = getattr(fields, name)
            if seconds is not None and seconds < 1:
                where = f"{_where(source)}: {ConfigKey.COLOCATION}{place}.{written}"
                refusals.append(f"{where}: is {seconds:g}; write 1 or more")
    return CheckResult(tuple(refusals))


def _where(source: ConfigMap) -> str:
    return f"ConfigMap {source.metadata.namespace}/{source.metadata.name}"


_THRESHOLD_READERS = (
    sloconfig.cluster_switch,
    sloconfig.entry_switches,
    sloconfig.suppress_layers,
    sloconfig.eviction_layers,
)
_CHECKS: Mapping[ConfigKey, _Check] = {
    ConfigKey.COLOCATION: _Check((sloconfig.colocation_layers,), (sloconfig.ColocationFields,), _durations),
    ConfigKey.THRESHOLD: _Check(_THRESHOLD_READERS, (SwitchFields, SuppressFields, EvictionFields), _evictions),
    ConfigKey.QOS: _Check((slosections.qos_layers,), (slosections.QosFields,), _network),
    ConfigKey.CPU_BURST: _Check((cpuburst.burst_layers,), (cpuburst.BurstFields,)),
    ConfigKey.SYSTEM: _Check((slosections.system_layers,), (slosections.SystemFields,)),
    ConfigKey.HOST_APPLICATIONS: _Check((sloconfig.host_application_layers,), (HostApplicationFields,)),
    ConfigKey.NORMALIZATION: _Check((sloconfig.normalization_layers,), (sloconfig.NormalizationFields,)),
    ConfigKey.AMPLIFICATION: _Check((slosections.amplification_layers,), (slosections.AmplificationFields,)),
}
_KEYS = {key.value: key for key in ConfigKey}


class _Entry(msgspec.Struct, frozen=True, rename="camel"):
    """What tells a node entry apart; `extensions` belongs to any of them."""

    name: str | None = None
    node_selector: LabelSelector | None = None
    extensions: dict[str, Any] | None = None


class _Named(msgspec.Struct, frozen=True):
    name: str
    selector: Selector


def check_config(source: ConfigMap, surroundings: CheckContext) -> CheckResult:
    """Every key by itself, so that each fault is told at once; keys that nobody reads only draw a warning."""
    refusals: list[str] = []
    warnings: list[str] = []
    where = _where(source)
    for name, text in sorted((source.data or {}).items()):
        key = _KEYS.get(name)
        if key is None:
            warnings.append(not_known(name, _KEYS, f"{where}: data"))
        elif text.strip():
            found = _checked(key, source, f"{where}: {name}", text, surroundings)
            refusals += found.refusals
            warnings += found.warnings
    return CheckResult(tuple(dict.fromkeys(refusals)), tuple(warnings))


def check_scheduler_config(source: ConfigMap) -> CheckResult:
    """koord-scheduler-config: refused where the scheduler could not read it; what nothing acts on draws a warning."""
    where = f"ConfigMap {source.metadata.namespace}/{source.metadata.name}"
    try:
        return CheckResult((), schedulerconfig.read(source.data or {}, where).unserved)
    except ConfigurationFault as fault:
        return CheckResult((str(fault),))


def _checked(key: ConfigKey, source: ConfigMap, where: str, text: str, surroundings: CheckContext) -> CheckResult:
    check = _CHECKS[key]
    try:
        for reader in check.readers:
            reader(source)
        document = parsed(text, where)
        entries = tuple(_named(document, key, where))
    except ConfigurationFault as fault:
        return CheckResult((str(fault),))
    more = check.rules(source)
    warnings = [*_misspelt(document, key, where), *_possible(entries, f"{where}.{key.entries}"), *more.warnings]
    refusals = [
        *_twice(entries, f"{where}.{key.entries}"),
        *_conflicts(entries, where, surroundings.node_labels()),
        *more.refusals,
    ]
    return CheckResult(tuple(refusals), tuple(warnings))


def _named(document: dict[str, Any], key: ConfigKey, where: str) -> Iterator[_Named]:
    for index, raw in enumerate(value_of(document, key.entries) or ()):
        place = f"{where}.{key.entries}[{index}]"
        entry = part(raw, _Entry, place)
        if not entry.name:
            raise ConfigurationFault(f"{place}.name", "is missing", "give each entry a name of its own")
        selector = entry.node_selector.in_model() if entry.node_selector else Selector()
        if not selector.requirements:
            raise ConfigurationFault(f"{place}.nodeSelector", "is empty", "select nodes by their labels")
        yield _Named(entry.name, selector)


def _twice(entries: Sequence[_Named], where: str) -> Iterator[str]:
    names = [entry.name for entry in entries]
    for name in sorted({name for name in names if names.count(name) > 1}):
        yield f"{where}: name {name!r} is given twice; give each entry a name of its own"


def _conflicts(entries: Sequence[_Named], where: str, nodes: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    """Pairs of entries that both speak of a node, one that exists first of all."""
    for one, other in combinations(entries, 2):
        shared = [
            name for name, labels in nodes.items() if one.selector.matches(labels) and other.selector.matches(labels)
        ]
        told = f"{where}: entries {one.name!r} and {other.name!r}"
        if shared:
            yield f"{told} both select node {min(shared)}; only one entry may speak of a node"
        elif nested(one.selector, other.selector):
            yield f"{told} select the same nodes; narrow one of their nodeSelectors"


def _possible(entries: Sequence[_Named], where: str) -> Iterator[str]:
    for one, other in combinations(entries, 2):
        if overlap(one.selector, other.selector) and not nested(one.selector, other.selector):
            yield f"{where}: a node may match {one.name!r} and {other.name!r}; then the first one holds"


def _misspelt(document: dict[str, Any], key: ConfigKey, where: str) -> Iterator[str]:
    entries, fields = value_of(document, key.entries) or (), _CHECKS[key].fields
    rest = {name: value for name, value in document.items() if name.casefold() != key.entries.casefold()}
    if key.cluster:
        shape = msgspec.defstruct("_Document", [(key.cluster, Any, None)])
        yield from unknown_fields(rest, (shape,), where)
        yield from unknown_fields(value_of(rest, key.cluster) or {}, (*fields, _Extended), f"{where}.{key.cluster}")
    else:
        yield from unknown_fields(rest, (*fields, _Extended), where)
    for index, entry in enumerate(entries):
        yield from unknown_fields(entry, (*fields, _Entry), f"{where}.{key.entries}[{index}]")


class _Extended(msgspec.Struct, frozen=True):
    extensions: dict[str, Any] | None = None
