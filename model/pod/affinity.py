"""Placement constraints of a pod besides amounts, as hashable values: affinity, spreading, ports, volumes.

Source: https://kubernetes.io/docs/concepts/scheduling-eviction/assign-pod-node/ and topology-spread-constraints/.
Everything here is part of a pod's equivalence class, so a field that is empty by default stays empty where unused.
"""

from __future__ import annotations

from functools import cached_property

import msgspec

from model.selector import Requirement, Selector


class NodeTerm(msgspec.Struct, frozen=True, cache_hash=True):
    """Requirements on a node's labels, and on metadata.name (`names`); all must hold; an empty term matches none."""

    labels: tuple[Requirement, ...] = ()
    names: tuple[Requirement, ...] = ()


class PreferredNodes(msgspec.Struct, frozen=True, cache_hash=True):
    """Nodes of the term score `weight` (1 to 100)."""

    weight: int
    term: NodeTerm


class PodTerm(msgspec.Struct, frozen=True, cache_hash=True, dict=True):
    """Pods that `selector` matches (None: no pod at all), counted per domain of the node label `topology_key`.

    `namespaces` are the names listed, the pod's own where neither these nor a namespace selector are given.
    `namespace_selector` adds the namespaces whose labels it matches; empty: all of them.
    """

    topology_key: str
    selector: Selector | None
    namespaces: tuple[str, ...] = ()
    namespace_selector: Selector | None = None

    @cached_property
    def listed(self) -> frozenset[str]:
        """The names, to look one up: whoever writes a term chooses how many there are."""
        return frozenset(self.namespaces)


class PreferredPods(msgspec.Struct, frozen=True, cache_hash=True):
    """Domains with pods of the term score `weight` (1 to 100) each; negative for anti-affinity."""

    weight: int
    term: PodTerm


class Affinity(msgspec.Struct, frozen=True, cache_hash=True):
    """`nodes` are required terms of which one must match, None where none is given (an empty tuple matches no node)."""

    nodes: tuple[NodeTerm, ...] | None = None
    preferred_nodes: tuple[PreferredNodes, ...] = ()
    pods: tuple[PodTerm, ...] = ()
    anti_pods: tuple[PodTerm, ...] = ()
    preferred_pods: tuple[PreferredPods, ...] = ()


class SpreadConstraint(msgspec.Struct, frozen=True, cache_hash=True):
    """Pods of the namespace that `selector` matches differ by at most `max_skew` between domains of `topology_key`.

    `hard` is DoNotSchedule; otherwise it only scores. `min_domains` is at least 1. `honor_affinity`
    (nodeAffinityPolicy Honor) leaves nodes out that the pod's own selector and affinity exclude, `honor_taints`
    (nodeTaintsPolicy Honor) those it does not tolerate.
    """

    topology_key: str
    max_skew: int
    hard: bool
    selector: Selector | None
    min_domains: int = 1
    honor_affinity: bool = True
    honor_taints: bool = False


class HostPort(msgspec.Struct, frozen=True, cache_hash=True):
    """A port of the node; `ip` 0.0.0.0 is every address of it."""

    port: int
    protocol: str = "TCP"
    ip: str = "0.0.0.0"


NOWHERE = Affinity()
