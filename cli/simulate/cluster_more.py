"""Capacity planning: the same cluster with further nodes of a kind."""

from __future__ import annotations

import re

import msgspec

from cli.simulate.manifests import GivenObject, Manifests
from kube.dialects.upstream import core_objects
from model.fault import ConfigurationFault

_FORM = re.compile(r"nodes=([0-9]{1,5})(?:,like=(\S+))?\Z")
_HOST = "kubernetes.io/hostname"


class MoreNodes(msgspec.Struct, frozen=True):
    """So many nodes like the named one; of an empty name like the largest."""

    count: int
    like: str = ""


def more_nodes(text: str) -> MoreNodes:
    """`nodes=N` or `nodes=N,like=NODE`. Raises ConfigurationFault."""
    found = _FORM.match(text)
    if found is None or not int(found[1]):
        raise ConfigurationFault(f"--what-if {text}", "is not nodes=N", "such as nodes=4, or nodes=4,like=NODE")
    return MoreNodes(int(found[1]), found[2] or "")


def with_more(found: Manifests, more: MoreNodes) -> tuple[Manifests, str]:
    """The same manifests with these nodes, and what they are like. Raises ConfigurationFault."""
    pattern = _pattern(found, more.like)
    copies = Manifests(found.kinds)
    copies.take(found)
    name = pattern.object.metadata.name
    for number in range(1, more.count + 1):
        own = f"{name}-more-{number}"
        metadata = msgspec.structs.replace(
            pattern.object.metadata, name=own, uid="", labels={**(pattern.object.metadata.labels or {}), _HOST: own}
        )
        node = msgspec.structs.replace(pattern.object, metadata=metadata)
        copies.put("Node", f"/{own}", GivenObject(node, pattern.where, f"Node {own}"))
    return copies, name


def _pattern(found: Manifests, like: str) -> GivenObject:
    if like:
        known = found.named("Node", like)
        if known is None:
            raise ConfigurationFault(f"--what-if like={like}", "no such Node is given", "name one that is")
        return known
    nodes = list(found.of("Node"))
    if not nodes:
        raise ConfigurationFault("--what-if", "no Node is given that others could be like", "add one")
    return max(nodes, key=_size)


def _size(given: GivenObject) -> tuple[tuple[int, ...], str]:
    """Devices before CPU before memory; of equal ones the last name."""
    amounts = core_objects.node(given.object).allocatable
    devices = sum(amounts[name] for name in amounts if "/" in name and not name.startswith("kubernetes.io/"))
    return (devices, amounts["cpu"], amounts["memory"]), given.object.metadata.name
