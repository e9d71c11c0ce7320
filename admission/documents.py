"""Which kinds of objects are checked when they are written, and by whom: one line a kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import msgspec

from admission.checked import Checked, Surroundings
from admission.configcheck import NAME, check_config
from admission.profilecheck import check_profile
from kube.dialects.nodeslo import (
    EvictionFields,
    SuppressFields,
    SwitchFields,
    slo_host_applications,
    slo_others,
    slo_threshold,
)
from kube.dialects.slosections import slo_sections
from kube.objects import ClusterColocationProfile, ConfigMap, NodeSLO
from model.fault import ConfigurationFault

T = TypeVar("T")

Check = Callable[[Any, Surroundings], Checked]


def _of(kind: type[T], check: Callable[[T, Surroundings], Checked]) -> tuple[type, Check]:
    return kind, check


def check_named_config(source: ConfigMap, surroundings: Surroundings) -> Checked:
    """Other ConfigMaps are nobody's business here."""
    return check_config(source, surroundings) if source.metadata.name == NAME else Checked()


def check_node_slo(source: NodeSLO, surroundings: Surroundings) -> Checked:
    """Each section by the readers that act on it."""
    refusals = []
    for reader in (
        lambda: slo_others(source),
        lambda: slo_threshold(source, SwitchFields),
        lambda: slo_threshold(source, SuppressFields),
        lambda: slo_threshold(source, EvictionFields),
        lambda: slo_host_applications(source),
        lambda: slo_sections(source),
    ):
        try:
            reader()
        except ConfigurationFault as fault:
            refusals.append(str(fault))
    return Checked(tuple(dict.fromkeys(refusals)))


KINDS: Mapping[tuple[str, str], tuple[type, Check]] = {
    ("", "ConfigMap"): _of(ConfigMap, check_named_config),
    ("slo.koordinator.sh", "NodeSLO"): _of(NodeSLO, check_node_slo),
    ("config.koordinator.sh", "ClusterColocationProfile"): _of(ClusterColocationProfile, check_profile),
}
"""API group and kind → how an object is read, and its check."""


def check(group: str, kind: str, raw: bytes, old: bytes | None, surroundings: Surroundings) -> Checked | None:
    """What is found; None for a kind that nobody checks.

    What was wrong before a change already is only warned of: whoever switches something off in a hurry must not have
    to mend everything else first.
    """
    if (group, kind) not in KINDS:
        return None
    found = _checked(group, kind, raw, surroundings)
    if not (found.refusals and old):
        return found
    known = set(_checked(group, kind, old, surroundings).refusals)
    refusals = tuple(each for each in found.refusals if each not in known)
    return Checked(refusals, (*(each for each in found.refusals if each in known), *found.warnings))


def _checked(group: str, kind: str, raw: bytes, surroundings: Surroundings) -> Checked:
    """An object that cannot even be read is refused."""
    type_, checks = KINDS[group, kind]
    try:
        return checks(msgspec.json.decode(raw, type=type_, strict=False), surroundings)
    except msgspec.ValidationError as error:
        return Checked((f"{kind}: {error}; correct the field",))
